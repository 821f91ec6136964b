"""Figures and movies: every kind is drawn, nothing shows a seam, no failure is hidden."""

import sys

import matplotlib
import matplotlib.colors
import numpy as np
import pytest
from drawings import frames, panels, read, room, words
from matplotlib.figure import Figure
from PIL import Image

import meanfield as mf
from meanfield.plotting import theme
from meanfield.plotting.fields import choose_scale, profiles
from meanfield.plotting.labels import describe_model, distinct
from meanfield.plotting.layouts import DrawnMembers

KINDS = ("overview", "spacetime", "snapshots", "polar", "observables")
DENSITY = r"density $\mu_t(\theta)$"
LABELS = {
    "spacetime": ["time $t$", r"angle $\theta$", DENSITY],
    "snapshots": ["time $t$", r"angle $\theta$", DENSITY],
    "polar": ["time $t$", r"$\pi/2$", "radius: " + DENSITY],
    "observables": ["time $t$", "$|m_k|$", r"$F(\mu_t)$", r"$E(\mu_t)$", "degree"],
}
RED = 255 * np.array(matplotlib.colors.to_rgb(theme.WARNING))
TIMES = np.linspace(0.0, 2.0, 6)
BUMP = mf.Circle(degree=32).von_mises(np.pi, 1.0)  # at the seam


@pytest.fixture(scope="module")
def single():
    return mf.solve(mf.Transformer(mf.USA(1.0), kappa=6.0), BUMP, (0, 2), t_eval=TIMES)


@pytest.fixture(scope="module")
def softmax():
    return mf.solve(mf.Transformer(mf.SA(1.0), kappa=6.0), BUMP, (0, 2), t_eval=TIMES)


@pytest.fixture(scope="module")
def ensemble():
    model = mf.Transformer(mf.Kuramoto(), kappa=[1.5, 3.0, 6.0, np.inf])
    return mf.solve(model, BUMP, (0, 1), t_eval=TIMES / 2)


@pytest.fixture(scope="module")
def crowd():
    model = mf.Transformer(mf.Kuramoto(), kappa=np.linspace(1.0, 6.0, 10))
    return mf.solve(model, BUMP, (0, 1), t_eval=[0.0, 1.0])


@pytest.fixture(scope="module")
def unresolved():
    """A collapse to a point, which 64 modes cannot follow."""
    with pytest.warns(mf.UnresolvedWarning):
        run = mf.solve(mf.Transformer(mf.USA(1.0)), BUMP, (0, 9), max_degree=64)
    assert not run.resolved
    return run


def banner_colours(figure, run):
    """Colours of the texts that hold the whole verdict on a run."""
    verdict = f"NOT RESOLVED: {run.message}"
    figure.draw_without_rendering()
    found = figure.findobj(matplotlib.text.Text)
    found = [text for text in found if text.get_text().replace("\n", " ") == verdict]
    return [text.get_color() for text in found]


def sum_of_drifts():
    drift = 0.5 * mf.USA(2.0) + 0.25 * mf.Kuramoto() + 0.125 * mf.USA(1.5)
    return mf.solve(mf.Transformer(drift, kappa=4.0), BUMP, (0, 0.2), t_eval=[0, 0.1, 0.2])


@pytest.mark.repeats
@pytest.mark.parametrize("options", [{}, {"width": 3.4}, {"title": " ".join(["long"] * 40)}])
def test_a_heading_is_broken_where_the_figure_is_too_narrow(options):
    figure = sum_of_drifts().plot("polar", **options)
    figure.draw_without_rendering()
    (heading,) = (text for text in figure.texts if text.get_text() == figure.get_suptitle())
    box, (ax, *_) = heading.get_window_extent(), figure.axes
    lines = heading.get_text().split("\n")
    assert len(lines) > 1 and all(line.count("$") % 2 == 0 for line in lines)
    assert 0 <= box.x0 and box.x1 <= figure.bbox.width
    assert box.y1 <= figure.bbox.height and box.y0 >= ax.get_tightbbox().y1
    whole = options.get("title") or describe_model(sum_of_drifts())
    assert " ".join(lines) == whole


@pytest.mark.long
def test_the_heading_of_a_narrow_movie_keeps_its_lines(tmp_path):
    path = sum_of_drifts().animate(tmp_path / "movie.gif", dpi=30, title="a b " * 60)
    assert frames(path) == 3


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("kind", "run"),
    [*((kind, "ensemble") for kind in KINDS), ("overview", "single"), ("observables", "softmax")],
)
def test_every_kind_is_drawn_and_labelled(kind, run, request):
    figure = request.getfixturevalue(run).plot(kind)
    assert room(figure) > 0.7
    for ax in panels(figure):
        assert ax.get_xlabel() or ax.get_ylabel() or ax.get_title()


@pytest.mark.repeats
@pytest.mark.parametrize("kind", LABELS)
def test_labels_are_in_the_notation_of_the_field(single, kind):
    written = words(single.plot(kind))
    for label in [*LABELS[kind], "USA", r"$\beta = 1$", r"$\kappa = 6$"]:
        assert label in written


def test_a_map_is_an_image_inside_a_vector_figure(single, tmp_path):
    single.plot("spacetime").savefig(tmp_path / "map.svg")
    content = (tmp_path / "map.svg").read_text()
    assert "<image" in content
    assert len(content) < 1_000_000


def test_figures_are_written_at_300_dots_per_inch_and_shown_by_notebooks(single, tmp_path):
    figure = single.plot("snapshots")
    figure.savefig(tmp_path / "figure.png")
    assert read(tmp_path / "figure.png").shape[1] == round(300 * figure.get_figwidth())
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_matplotlib_is_left_as_it_was(single, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    before = matplotlib.rcParams.copy()
    single.plot("snapshots").savefig(tmp_path / "figure.png", dpi=50)
    single.animate(tmp_path / "movie.gif", dpi=30)
    assert matplotlib.rcParams.copy() == before
    assert "matplotlib.pyplot" not in sys.modules


def test_every_plot_can_be_drawn_into_an_axes_of_the_caller(single, ensemble):
    with theme.style():
        page = theme.figure(width=8, height=6)
        axes = page.subplots(2, 2).ravel()
    assert single.plot("spacetime", ax=axes[0]) is page
    assert single.plot("snapshots", ax=axes[1], times=[0, 0.8, 2]) is page
    assert ensemble.plot("polar", ax=axes[2], member=1) is page
    assert ensemble.plot("observables", ax=axes[3], names=["free_energy"]) is page
    written = words(page)
    assert r"$\kappa = \infty$" in written
    assert "$0.8$" in written, "the time asked for"


def test_the_seam_does_not_show(single):
    """The grid overhangs the seam, and its values are those of the density, also across it."""
    theta, values = profiles(DrawnMembers(single, [()]), range(len(single)))
    assert theta[0] < -np.pi <= theta[1]
    assert theta[-2] < np.pi <= theta[-1]
    for state, drawn in zip(single, values[0], strict=True):
        exact = state.at(state.space.embed(theta))
        np.testing.assert_allclose(drawn, exact, atol=1e-12 * exact.max())


def test_polar_curves_are_closed(single):
    (ax,) = panels(single.plot("polar", count=3))
    curves = [line.get_xydata() for line in ax.lines if len(line.get_xdata()) > 361]
    assert len(curves) == 3
    for curve in curves:
        np.testing.assert_allclose(curve[0], curve[-1], atol=1e-12)
        assert (np.hypot(*curve.T) >= 1).all()


def test_the_uniform_state_is_drawn(single):
    (ax,) = panels(single.plot("snapshots"))
    assert any((np.asarray(line.get_ydata()) == 1).all() for line in ax.lines)
    (bar,) = [ax for ax in single.plot("spacetime").axes if ax.get_label() == "<colorbar>"]
    assert any((np.asarray(line.get_ydata()) == 1).all() for line in bar.lines)


@pytest.mark.long
def test_a_scale_for_heavy_peaks_is_named(single):
    assert choose_scale(np.array([1e-9, 1.0, 29.0])).name == "linear"
    assert choose_scale(np.array([1e-9, 1.0, 31.0])).name == "log"
    assert "(log scale)" in words(single.plot("spacetime", scale="log"))
    assert "(power scale, exponent 0.4)" in words(single.plot("snapshots", scale="power"))


def test_rounding_is_not_painted_as_structure():
    scale = choose_scale(np.array([1 - 1e-15, 1.0, 1 + 1e-15]))
    assert (scale.low, scale.high) == pytest.approx((0.0, 2.0))


def test_numbers_get_the_digits_that_tell_them_apart():
    assert distinct([0.5, 2.0, np.inf, 1e-9]) == ["0.5", "2", r"\infty", "10^{-9}"]
    assert distinct([1.0001, 1.0002, 1.0002]) == ["1.0001", "1.0002", "1.0002"]


@pytest.mark.repeats
@pytest.mark.parametrize("kind", ["spacetime", "snapshots", "polar"])
def test_every_member_of_an_ensemble_gets_a_titled_panel(ensemble, kind):
    titles = [ax.get_title() for ax in panels(ensemble.plot(kind))]
    assert titles == [rf"$\kappa = {k}$" for k in ("1.5", "3", "6", r"\infty")]


def test_too_many_members_ask_for_a_choice(crowd):
    for kind in KINDS[:4]:
        with pytest.raises(ValueError, match=r"10 members .* member=0"):
            crowd.plot(kind)
    assert panels(crowd.plot("spacetime", member=-1))[0].get_title() == r"$\kappa = 6$"
    together = crowd.plot("observables", names=["order_parameter"])
    assert len(panels(together)[0].lines) == 10


def test_the_free_energy_is_drawn_only_where_it_exists(softmax):
    assert "free energy" not in words(softmax.plot("observables"))
    with pytest.raises(ValueError, match="gradient flows"):
        softmax.plot("observables", names=["free_energy"])


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize("kind", KINDS)
def test_an_unresolved_solution_is_framed_in_red(unresolved, single, kind, tmp_path):
    figure = unresolved.plot(kind)
    assert banner_colours(figure, unresolved) == [theme.WARNING]
    figure.savefig(tmp_path / "figure.png", dpi=50)
    pixels = read(tmp_path / "figure.png")
    for edge in (pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]):
        np.testing.assert_allclose(edge, np.broadcast_to(RED, edge.shape), atol=2)
    assert "NOT RESOLVED" not in words(single.plot(kind))


@pytest.mark.repeats
@pytest.mark.parametrize("kind", ["spacetime", "snapshots", "polar"])
def test_an_unresolved_solution_is_marked_in_a_foreign_figure(unresolved, kind):
    figure = Figure()
    ax = figure.subplots()
    unresolved.plot(kind, ax=ax)
    assert banner_colours(figure, unresolved) == [theme.WARNING]
    assert ax.spines["top"].get_edgecolor() == matplotlib.colors.to_rgba(theme.WARNING)


@pytest.mark.parametrize("kind", ["spacetime", "observables"])
def test_time_is_hatched_after_the_last_resolved_state(unresolved, kind):
    patches = unresolved.plot(kind).findobj(matplotlib.patches.Patch)
    hatched = [patch for patch in patches if patch.get_hatch()]
    assert hatched
    for patch in hatched:
        box = patch.get_extents().transformed(patch.axes.transData.inverted())
        assert box.x0 == pytest.approx(unresolved.t[-1])
        assert box.x1 > unresolved.t[-1]


@pytest.mark.repeats
@pytest.mark.parametrize("run", ["single", "ensemble"])
def test_a_gif_has_one_frame_for_each_state(run, request, tmp_path):
    run = request.getfixturevalue(run)
    with Image.open(run.animate(tmp_path / "movie.gif", fps=10, dpi=50)) as movie:
        assert (movie.n_frames, movie.info["duration"]) == (len(run.t), 100)


@pytest.mark.long
def test_frames_of_an_unresolved_movie_are_framed_in_red(unresolved, tmp_path):
    path = unresolved.animate(tmp_path / "movie.gif", dpi=50)
    np.testing.assert_allclose(read(path)[0, 0], RED, atol=8)


@pytest.mark.long
def test_an_mp4_has_one_frame_for_each_state(single, tmp_path):
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    path = single.animate(tmp_path / "movie.mp4", fps=10, dpi=51)
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(path))
    assert frames == len(single.t)
    assert seconds == pytest.approx(frames / 10, abs=0.06)


def test_without_ffmpeg_the_error_names_the_fix(single, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda program: None)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(mf.MeanfieldError, match=r"pip install imageio-ffmpeg.*\.gif"):
        single.animate(tmp_path / "movie.mp4")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "heatmap"}, "kind must be one of 'overview'"),
        ({"kind": "spacetime", "scale": "logarithmic"}, "scale must be one of 'auto'"),
        ({"kind": "spacetime", "member": 0}, "single run, not an ensemble"),
        ({"kind": "snapshots", "times": [3.0]}, "between 0 and 2"),
        ({"kind": "observables", "names": ["energy"]}, "some of moments, order_parameter"),
    ],
)
def test_a_wrong_option_is_refused(single, options, message):
    with pytest.raises(ValueError, match=message):
        single.plot(**options)


@pytest.mark.parametrize("member", [4, -5, (0, 0), 0.5, "0"])
def test_a_member_that_does_not_exist_is_refused(ensemble, member):
    with pytest.raises(ValueError, match=r"not in an ensemble of shape \(4,\)"):
        ensemble.plot("spacetime", member=member)


def test_a_map_of_a_single_time_is_refused():
    run = mf.solve(mf.Transformer(mf.Kuramoto()), BUMP, (0, 0.1), t_eval=[0.1])
    run.plot("polar")
    assert len(run.plot().axes) == len(run.plot("snapshots").axes)
    with pytest.raises(ValueError, match="two saved times"):
        run.plot("spacetime")


@pytest.mark.parametrize("name", ["movie.avi", "missing/movie.gif"])
def test_a_movie_that_cannot_be_written_is_refused(single, tmp_path, name):
    with pytest.raises(ValueError, match=r"written to a name|does not exist"):
        single.animate(tmp_path / name)
