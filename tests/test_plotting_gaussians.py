"""Plots of Gaussians: ellipses, the cone of covariances, variances."""

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure
from PIL import Image

import meanfield as mf
from meanfield.cli import main
from meanfield.plotting.cone import cone_points

COV = np.array([[1.0, 0.3], [0.3, 0.5]])


def run(d=2, sign=-1.0, **options):
    cov = COV if d == 2 else np.diag(np.arange(1.0, d + 1))
    law = mf.Gaussian(np.full(d, 0.4), cov)
    return mf.solve(mf.Transformer(mf.Attention(sign)), law, (0, 1), **options)


@pytest.mark.parametrize("sign", [-1.0, 1.0], ids=["clustering", "blow-up"])
@pytest.mark.parametrize(
    ("d", "kind"),
    [
        *((2, kind) for kind in ("overview", "ellipses", "cone", "variances", "observables")),
        *((d, kind) for d in (1, 4) for kind in ("overview", "variances", "observables")),
    ],
)
def test_every_kind_is_drawn(d, kind, sign, tmp_path):
    path = tmp_path / "figure.png"
    solution = run(d, sign)
    solution.plot(kind).savefig(path, dpi=40)
    assert path.stat().st_size > 2000
    solution.plot(kind, title="").savefig(path, dpi=40)


def test_ellipses_are_level_curves():
    solution = run(t_eval=[0, 0.5, 1])
    ax = solution.plot("ellipses", times=[0.5]).axes[0]
    curve = next(line.get_xydata() for line in ax.lines if len(line.get_xdata()) > 100)
    state = solution[1]
    gaps = curve - state.mean
    np.testing.assert_allclose(np.einsum("ni,ij,nj->n", gaps, np.linalg.inv(state.cov), gaps), 1)


def test_the_cone_holds_the_covariances():
    solution = run()
    points = cone_points(solution)
    np.testing.assert_allclose(points[0], [0.5, 0.6, 1.5])
    assert (np.hypot(points[:, 0], points[:, 1]) <= points[:, 2]).all()
    disc = cone_points(solution, trace_one=True)
    np.testing.assert_allclose(disc[:, 2], 1)
    ax = Figure().add_subplot(projection="3d")
    solution.plot("cone", ax=ax)
    drawn = len(ax.lines)
    run(sign=-0.5).plot("cone", ax=ax)
    assert len(ax.lines) == drawn + 3  # the surface is drawn once
    flat = Figure().add_subplot()
    solution.plot("cone", ax=flat, trace_one=True)
    with pytest.raises(ValueError, match='needs an ax with projection="3d"'):
        solution.plot("cone", ax=flat)
    with pytest.raises(TypeError, match="trace_one must be True or False; got trace_one = 'a'"):
        solution.plot("cone", trace_one="a")


def test_one_saved_time_and_kinds_that_are_not_there(tmp_path):
    for d in (1, 2, 3):
        run(d, t_eval=[1.0]).plot().savefig(tmp_path / "one.png", dpi=40)
    with pytest.raises(ValueError, match=r"for Gaussians in R.d, d > 2; got 'cone'"):
        run(4).plot("cone")
    run(4, t_eval=np.geomspace(0.01, 1, 5)).plot(log_time=True)


def test_a_blow_up_is_dotted_and_its_last_state_left_out():
    """The state next to infinity would make a straight line of two points, over ten decades."""
    solution = run(sign=1.0, t_eval=[0.0, 0.1, 1.0])
    T = solution.stats["blow_up_time"]
    for ax in (solution.plot("variances").axes[0], solution.plot("observables").axes[0]):
        curve, dotted = ax.lines[0], ax.lines[-1]
        np.testing.assert_array_equal(curve.get_xdata(), [0.0, 0.1])
        np.testing.assert_array_equal(dotted.get_xdata(), [T, T])
        assert ax.get_xlim()[1] > T
    alone = run(sign=1.0, t_eval=[0.0, 1.0]).plot("observables").axes[0].lines[0]
    assert alone.get_marker() == "." and len(alone.get_xdata()) == 1
    with pytest.raises(ValueError, match="log_time needs at least two saved times above 0"):
        run(sign=1.0, t_eval=[0.1, 1.0]).plot("variances", log_time=True)


def test_the_plots_of_a_run_from_a_file_are_those_of_the_run(tmp_path):
    """With a function in the model, whose observables the file kept."""
    model = mf.Transformer(mf.Attention(beta=lambda t: 1 + t))
    solution = mf.solve(model, mf.Gaussian([0.1], [[1.0]]), (0, 1))
    loaded = mf.load(solution.save(tmp_path / "run.nc"))
    for one, other in zip(
        solution.plot("observables").axes, loaded.plot("observables").axes, strict=True
    ):
        np.testing.assert_array_equal(one.lines[0].get_xydata(), other.lines[0].get_xydata())


def test_variances_are_named_and_rounding_is_left_out():
    law = mf.Gaussian(np.zeros(3), np.diag([1.0, 0.5, 1e-17]))
    ax = mf.solve(mf.Transformer(mf.Attention(-1.0)), law, (0, 1)).plot("variances").axes[0]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        r"$\lambda_{1}$",
        r"$\lambda_{2}$",
    ]
    assert np.isnan(ax.lines[2].get_ydata()).all()


def test_a_mean_that_stays_zero_has_no_panel():
    model, law = mf.Transformer(mf.Attention(-1.0)), mf.Gaussian(np.zeros(2), COV)
    labels = [ax.get_ylabel() for ax in mf.solve(model, law, (0, 1)).plot("observables").axes]
    assert not any("mean" in label for label in labels)
    assert any("mean" in ax.get_ylabel() for ax in run().plot("observables").axes)


@pytest.mark.parametrize("sign", [-1.0, 1.0], ids=["clustering", "blow-up"])
def test_a_movie_shows_the_ellipse(sign, tmp_path):
    solution = run(sign=sign, t_eval=np.linspace(0, 0.3, 4) if sign < 0 else [0, 0.1, 0.2, 1])
    with Image.open(solution.animate(tmp_path / "film.gif", dpi=40)) as film:
        assert film.n_frames == len(solution)
    with pytest.raises(TypeError, match=r"needs Gaussians in the plane; got Gaussians in R.d"):
        run(4).animate(tmp_path / "film.gif")


def test_states_without_a_movie_are_refused_in_one_sentence(tmp_path):
    model, path = mf.Transformer(mf.SA(1.0)), tmp_path / "run.nc"
    mf.solve(model, mf.Equiangular(8, 0.1), (0, 1)).save(path)
    result = CliRunner().invoke(main, ["plot", str(path), "-o", str(tmp_path / "film.gif")])
    assert result.exit_code == 2
    assert "there is none of equiangular tokens: draw" in result.output
    assert "Traceback" not in result.output
    run(3).save(path)
    result = CliRunner().invoke(main, ["plot", str(path), "-o", str(tmp_path / "film.gif")])
    assert result.exit_code == 2 and "needs Gaussians in the plane" in result.output
    text = CliRunner().invoke(main, ["plot", "--help"]).output
    assert all(kind in text for kind in ("variances", "ellipses", "cone"))


@pytest.mark.parametrize(
    ("times", "scale"),
    [(np.geomspace(0.01, 1, 7), "log"), (np.linspace(0, 1, 7), "linear"), ([0.01, 1], "linear")],
)
def test_times_spaced_by_factors_are_shown_on_a_logarithmic_axis(times, scale):
    figure = run(3, t_eval=times).plot("observables")
    assert {ax.get_xscale() for ax in figure.axes} == {scale}
