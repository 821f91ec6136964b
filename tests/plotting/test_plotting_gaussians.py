"""Plots of Gaussians: ellipses, the cone of covariances, variances."""

from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner
from drawings import frames
from matplotlib.figure import Figure

import meanfield as mf
from meanfield.app.cli import main
from meanfield.plotting import cone_points
from meanfield.plotting.observables import _least_known as least_known

COV = np.array([[1.0, 0.3], [0.3, 0.5]])


def run(d=2, sign=-1.0, **options):
    cov = COV if d == 2 else np.diag(np.arange(1.0, d + 1))
    law = mf.Gaussian(np.full(d, 0.4), cov)
    return mf.solve(mf.Transformer(mf.Attention(sign)), law, (0, 1), **options)


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("d", "sign", "kind"),
    [
        *((2, -1.0, kind) for kind in ("overview", "ellipses", "cone", "variances")),
        *((2, 1.0, kind) for kind in ("ellipses", "variances", "observables")),
        *((1, 1.0, kind) for kind in ("overview", "variances")),
        *((4, -1.0, kind) for kind in ("overview", "observables")),
    ],
)
def test_every_kind_is_drawn(d, sign, kind, tmp_path):
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
    with pytest.raises(TypeError, match="ax must be one matplotlib Axes"):
        solution.plot("cone", ax=[ax, flat])
    with pytest.raises(ValueError, match='needs an ax with projection="3d"'):
        solution.plot("cone", ax=flat)
    with pytest.raises(TypeError, match="got trace_one = 'a'"):
        solution.plot("cone", trace_one="a")


def test_one_saved_time_and_kinds_that_are_not_there(tmp_path):
    for d in (1, 2, 3):
        run(d, t_eval=[1.0]).plot().savefig(tmp_path / "one.png", dpi=40)
    with pytest.raises(ValueError, match=r"for Gaussians in R.d, d > 2; got 'cone'"):
        run(4).plot("cone")
    run(4, t_eval=np.geomspace(0.01, 1, 5)).plot(log_time=True)


@pytest.mark.long
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
    with pytest.raises(ValueError, match=r"log_time needs .* two saved times"):
        run(sign=1.0, t_eval=[0.1, 1.0]).plot("variances", log_time=True)
    model, law = mf.Transformer(mf.Attention(-1.0)), mf.Gaussian([0.4], [[1.0]])
    with pytest.raises(ValueError, match=r"t = -5, -4\.96, .* -1 \(101 times\)"):
        mf.solve(model, law, (-5, -1), t_eval=np.linspace(-5, -1, 101)).plot(log_time=True)


def labels_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["ellipses", "overview"])
def test_the_ellipses_of_a_blow_up_are_those_before_it(kind):
    """Each is in the panel, from the start to where they leave it; that is said."""
    law = mf.Gaussian([0.5, -0.2], COV)
    solution = mf.solve(mf.Transformer(mf.Attention([[1.0, 0.2], [0.2, -0.3]])), law, (0, 1))
    assert solution.status == "blow-up"
    ax, *others = solution.plot(kind).axes
    *times, note = labels_of(ax)
    shown = [float(label.strip("$t= ")) for label in times]
    assert len(shown) >= 6 and shown[0] == 0 and np.diff(shown).max() <= 0.2
    assert note == "outside from\n$t = 0.45$ on"
    curves = [line.get_xydata() for line in ax.lines if len(line.get_xdata()) > 100]
    low, high = np.transpose([ax.get_xlim(), ax.get_ylim()])
    assert all((low < curve).all() and (curve < high).all() for curve in curves)
    if kind == "overview":
        disc = others[0].lines[1].get_xydata()
        np.testing.assert_array_equal(disc, cone_points(solution, trace_one=True)[:-1, :2])
    late = solution.plot("ellipses", times=[0.2, solution.t[-1]]).axes[0]
    assert labels_of(late) == ["$t = 0.2$", "$t = 0.45$"]


@pytest.mark.long
def test_a_logarithmic_panel_shows_all_of_what_grows():
    law = mf.Gaussian([0.5, -0.2], COV)
    model = mf.Transformer(mf.Attention(Q=[[-1, 0.2], [0, -0.1]]))
    solution = mf.solve(model, law, (0, 100), t_eval=[0.01, 0.1, 1, 10, 100])
    assert solution.observables["order_parameter"][-1] > 1e40
    panels = [ax for ax in solution.plot("observables").axes if ax.get_yscale() == "log"]
    assert len(panels) == 2
    for ax in panels:
        assert ax.get_ylim()[0] < ax.lines[0].get_ydata().min()
    *_, note = labels_of(solution.plot("ellipses").axes[0])
    assert note == "outside from\n$t = 10$ on"


def test_what_decays_is_shown_down_to_its_noise():
    decay = np.array([[1.0, 1e-10, 1e-30, 1e-25], [np.nan, 1e-3, 0.0, 1e-4]])
    assert least_known(decay, 1e-20) == 1e-10
    assert least_known(decay, 0.0) == 1e-30
    assert least_known(decay[:, ::-1], 1e-20) == 1e-30
    run = mf.solve(mf.Transformer(mf.SA(1.0)), mf.Equiangular(32, 0.0), (0, 100))
    (ax,) = run.plot("observables", names=["gap"]).axes  # with all its digits
    assert ax.get_ylim()[0] < run.observables["gap"].min() < 1e-80


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


@pytest.mark.repeats
@pytest.mark.parametrize("sign", [-1.0, 1.0], ids=["clustering", "blow-up"])
def test_a_movie_shows_the_ellipse(sign, tmp_path):
    solution = run(sign=sign, t_eval=np.linspace(0, 0.3, 4) if sign < 0 else [0, 0.1, 0.2, 1])
    assert frames(solution.animate(tmp_path / "film.gif", dpi=40)) == len(solution) - (
        sign > 0
    )  # not the state next to infinity


@pytest.mark.repeats
@pytest.mark.parametrize("d", [1, 4])
def test_in_other_dimensions_a_line_runs_through_the_variances(d, tmp_path):
    solution = run(d, t_eval=[0, 0.5, 1])
    assert frames(solution.animate(tmp_path / "film.gif", dpi=40)) == 3


@pytest.mark.long
def test_the_command_line_writes_a_movie_of_equiangular_tokens(tmp_path):
    model, path, film = mf.Transformer(mf.SA(1.0)), tmp_path / "run.nc", tmp_path / "film.gif"
    mf.solve(model, mf.Equiangular(8, 0.1), (0, 1), t_eval=[0, 0.5, 1]).save(path)
    result = CliRunner().invoke(main, ["plot", str(path), "-o", str(film)])
    assert result.exit_code == 0, result.output
    assert frames(film) == 3
    text = CliRunner().invoke(main, ["plot", "--help"]).output
    assert all(kind in text for kind in ("variances", "ellipses", "cone"))


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("times", "scale"),
    [(np.geomspace(0.01, 1, 7), "log"), (np.linspace(0, 1, 7), "linear"), ([0.01, 1], "linear")],
)
def test_times_spaced_by_factors_are_shown_on_a_logarithmic_axis(times, scale):
    figure = run(3, t_eval=times).plot("observables")
    assert {ax.get_xscale() for ax in figure.axes} == {scale}


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("first", "last"),
    [
        *((0.01, 0.456), (0.3, 0.39), (1e-12, 5)),
        *(
            pytest.param(*times, marks=pytest.mark.long)
            for times in ((0.6, 0.95), (0.02, 5), (1e-6, 3e-6), (2e3, 9e4))
        ),
    ],
)
def test_labels_of_logarithmic_times_do_not_overlap(first, last):
    model, law = mf.Transformer(mf.Attention(-1.0)), mf.Gaussian([0.0, 0.0], COV)
    solution = mf.solve(model, law, (0, last), t_eval=np.geomspace(first, last, 6))
    figure = solution.plot("observables", log_time=True)
    figure.draw_without_rendering()
    for ax in figure.axes:
        low, high = ax.get_xlim()
        ticks = [*ax.xaxis.get_major_ticks(), *ax.xaxis.get_minor_ticks()]
        seen = [tick.label1 for tick in ticks if low <= tick.get_loc() <= high]
        boxes = sorted(t.get_window_extent().extents[[0, 2]].tolist() for t in seen if t.get_text())
        assert len(boxes) >= 2
        assert all(end < begin for (_, end), (begin, _) in pairwise(boxes))
