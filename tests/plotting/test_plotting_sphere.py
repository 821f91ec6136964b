"""Figures and movies of densities on the sphere: every kind is drawn, and no failure is hidden."""

import matplotlib
import numpy as np
import pytest
from drawings import frames, panels, room, words
from PIL import Image

import meanfield as mf
from meanfield.plotting import layouts, mollweide, orthographic, snapshots, theme
from meanfield.plotting.appearance import appearance_of

KINDS = ("overview", "orthographic", "map", "observables")
SPHERE = mf.Sphere(16)
POLE = SPHERE.von_mises_fisher([0, 0, 1], 2.0)
TIMES = np.linspace(0.0, 1.0, 6)


@pytest.fixture(scope="module")
def single():
    return mf.solve(mf.Transformer(mf.USA(1.0), kappa=6.0), POLE, (0, 1), t_eval=TIMES)


@pytest.fixture(scope="module")
def ensemble():
    model = mf.Transformer(mf.USA(1.0), kappa=[3.0, 6.0])
    return mf.solve(model, POLE, (0, 1), t_eval=TIMES)


@pytest.fixture(scope="module")
def crowd():
    model = mf.Transformer(mf.Kuramoto(), kappa=np.linspace(1.0, 6.0, 10))
    return mf.solve(model, POLE, (0, 1), t_eval=[0.0, 1.0])


@pytest.fixture(scope="module")
def one_time():
    return mf.solve(mf.Transformer(mf.USA(1.0)), POLE, (0, 0.1), t_eval=[0.1])


@pytest.fixture(scope="module")
def unresolved():
    """A collapse to a point, which 24 degrees cannot follow."""
    with pytest.warns(mf.UnresolvedWarning):
        return mf.solve(
            mf.Transformer(mf.USA(1.0)), POLE, (0, 9), t_eval=np.linspace(0, 9, 4), max_degree=24
        )


def best_seen(density):
    """The direction from which a density is drawn."""
    return appearance_of(density).best_seen_from(density)


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("kind", "run"),
    [*((kind, "ensemble") for kind in KINDS), ("overview", "single"), ("map", "one_time")],
)
def test_every_kind_is_drawn_and_labelled(kind, run, request):
    figure = request.getfixturevalue(run).plot(kind)
    assert "USA" in words(figure)
    assert room(figure) > 0.7


@pytest.mark.long
def test_labels_are_in_the_notation_of_the_field(single):
    pair, flat = words(single.plot("orthographic")), words(single.plot("map"))
    for label in [r"density $\mu_t(x)$", "$t = 0$", "$t = 1$", r"$\kappa = 6$"]:
        assert label in pair
        assert label in flat
    assert "seen from $({0.00}, {0.00}, {1.00})$" in pair
    assert "from behind" in pair


@pytest.mark.long
def test_the_overview_holds_maps_a_pair_and_observables(single):
    written = words(single.plot())
    assert "from behind" in written
    assert "moments $|m_k|$" in written
    assert r"free energy $F(\mu_t)$" in written
    assert len([ax for ax in panels(single.plot()) if ax.images]) == 7


def test_without_kept_steps_the_nearest_saved_times_are_shown_and_a_warning_says_so(single):
    with pytest.warns(UserWarning, match="no state at t = 0.55.* nearest saved states are drawn"):
        figure = single.plot("map", times=[0, 0.55, 1])
    assert [ax.get_title() for ax in panels(figure)] == ["$t = 0$", "$t = 0.6$", "$t = 1$"]


def test_all_views_have_one_colour_scale(single):
    images = [ax.images[0] for ax in panels(single.plot("map", times=[0, 1]))]
    assert images[0].norm.vmax == images[1].norm.vmax
    assert images[0].norm.vmax == pytest.approx(single.final.at(np.array([0, 0, 1.0])), rel=1e-3)


@pytest.mark.long
def test_a_scale_for_heavy_peaks_is_named(single):
    assert "(log scale)" in words(single.plot("map", scale="log"))


@pytest.mark.long
def test_members_are_rows_and_can_be_chosen(ensemble, crowd):
    figure = ensemble.plot("orthographic", times=[0, 1])
    labels = [ax.get_ylabel() for ax in panels(figure)]
    assert labels == [r"$\kappa = 3$", "", r"$\kappa = 6$", ""]
    assert len(panels(crowd.plot("map", member=-1, times=[1]))) == 1
    for kind in KINDS[:3]:
        with pytest.raises(ValueError, match=r"10 members .* member=0"):
            crowd.plot(kind)
        with pytest.raises(ValueError, match=r"not in an ensemble of shape \(2,\)"):
            ensemble.plot(kind, member=2)


def test_a_view_can_be_drawn_into_an_axes_of_the_caller(single, ensemble):
    with theme.style():
        page = theme.figure(width=8, height=3)
        left, right = page.subplots(1, 2)
    assert single.plot("map", ax=left) is page
    assert ensemble.plot("orthographic", ax=right, member=0, times=[0]) is page
    assert (left.get_title(), right.get_title()) == ("$t = 1$", "$t = 0$")
    with pytest.raises(ValueError, match="One `ax` holds one time"):
        single.plot("map", ax=left, times=[0, 1])


def test_a_density_is_seen_from_its_mean_or_its_maximum():
    """A mean of length below 0.1 has no direction worth looking from."""
    north = np.array([0.0, 0.0, 1.0])
    mean = best_seen(POLE)
    np.testing.assert_allclose(mean / np.linalg.norm(mean), north, atol=1e-12)
    both = 0.5 * POLE + 0.5 * SPHERE.von_mises_fisher([0, 0, -1], 2.0)
    assert best_seen(both) @ north > 0.99
    np.testing.assert_array_equal(best_seen(SPHERE.uniform()), [1, 0, 0])


@pytest.mark.long
def test_clusters_are_marked_on_request(single):
    assert "100%" in words(single.plot("orthographic", clusters=True))
    assert "%" not in words(single.plot("orthographic"))


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize("kind", KINDS)
def test_an_unresolved_solution_is_framed_in_red(unresolved, kind):
    figure = unresolved.plot(kind)
    assert "NOT RESOLVED" in words(figure)
    assert figure.patch.get_edgecolor() == matplotlib.colors.to_rgba(theme.WARNING)


@pytest.mark.long
def test_times_that_are_not_resolved_are_red(single, monkeypatch):
    known = single.t < 0.5
    monkeypatch.setattr(layouts, "resolved_states", lambda solution: known)
    for kind in ("map", "orthographic"):
        shown = panels(single.plot(kind, times=single.t))
        red = [ax.title.get_color() == theme.WARNING for ax in shown]
        np.testing.assert_array_equal(red, ~known)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"kind": "spacetime"},
            "'orthographic', 'map', 'spectrum', 'observables' for densities on the Sphere",
        ),
        ({"kind": "map", "times": [3.0]}, "between 0 and 1"),
        ({"kind": "orthographic", "count": 0}, "count must be a whole number >= 1"),
        ({"kind": "orthographic", "member": 0}, "single run, not an ensemble"),
        ({"kind": "orthographic", "seen_from": [0, 0, 0]}, "seen_from must be a direction"),
        ({"kind": "map", "scale": "logarithmic"}, "scale must be one of 'auto'"),
    ],
)
def test_a_wrong_option_is_refused(single, options, message):
    with pytest.raises(ValueError, match=message):
        single.plot(**options)


def test_a_plot_for_another_space_is_refused(single):
    circle = mf.Circle(8).von_mises(0.0, 0.1)
    run = mf.solve(mf.Transformer(mf.Kuramoto()), circle, (0, 0.1), t_eval=[0.1])
    with pytest.raises(TypeError, match="densities on the circle"):
        snapshots(single)
    for draw in (orthographic, mollweide):
        with pytest.raises(TypeError, match="densities on the sphere"):
            draw(run)
    with pytest.raises(ValueError, match="for densities on the Circle"):
        run.plot("map")


@pytest.mark.long
@pytest.mark.parametrize("run", ["single", "ensemble"])
def test_a_gif_has_one_frame_for_each_state(run, request, tmp_path):
    run = request.getfixturevalue(run)
    assert frames(run.animate(tmp_path / "movie.gif", seen_from=(1, 0, 0), dpi=50)) == len(run.t)


@pytest.mark.long
def test_a_peak_keeps_its_colour_in_a_gif(tmp_path):
    """Of 256 colours, some are left for the few pixels at the top of the scale.

    Their error is 13 of 255; it was 33, towards the orange of a curve.
    """
    model = mf.Transformer(mf.Kuramoto(), kappa=np.arange(1.0, 7.0))
    run = mf.solve(model, POLE, (0, 1), t_eval=[0.0, 1.0])
    path = run.animate(tmp_path / "movie.gif", dpi=100)
    with Image.open(path) as movie:
        movie.seek(movie.n_frames - 1)
        pixels = np.asarray(movie.convert("RGB"), dtype=float)
    top = 255 * np.array(matplotlib.colormaps[theme.DENSITY_MAP](1.0)[:3])
    assert np.abs(pixels - top).max(axis=-1).min() < 20


@pytest.mark.long
def test_an_mp4_has_one_frame_for_each_state(single, tmp_path):
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    path = single.animate(tmp_path / "movie.mp4", dpi=50)
    assert imageio_ffmpeg.count_frames_and_secs(str(path))[0] == len(single.t)


@pytest.mark.long
def test_the_bar_beside_a_low_row_of_maps_is_as_wide_as_others_and_holds_its_label():
    sphere = mf.Sphere(24).von_mises_fisher([0, 0, 1], 2.0)
    page = sphere.plot("map", scale="log")
    wide = page.figure.get_figheight() >= 2.4
    run = mf.solve(mf.Transformer(mf.Kuramoto(), 5.0), sphere, (0, 0.2), t_eval=[0, 0.1, 0.2])
    row = run.plot("map", scale="log")
    row.draw_without_rendering()
    (bar,) = (ax for ax in row.axes if ax.get_label() == "<colorbar>")
    label = bar.yaxis.label.get_window_extent()
    assert wide and row.get_figheight() < 2.4
    assert label.y0 >= 0 and label.y1 <= row.bbox.y1
    assert bar.get_window_extent().width / row.dpi > 0.08
