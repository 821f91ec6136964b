"""Plots of tokens and of inner products: every token is seen where it is, and where it ends."""

from dataclasses import replace
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
from drawings import drawn, frames, panels, room, words
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.image import PcolorImage

import meanfield as mf
from meanfield.plotting import orthographic, theme, trajectories
from meanfield.plotting.appearance import clusters_of_tokens, space_of
from meanfield.plotting.fields import angle_histogram, shares_at
from meanfield.plotting.points import plane_of
from meanfield.plotting.registry import kinds_of
from meanfield.plotting.spaces import Euclidean, Hypersphere, Line, Plane

SPACES = {
    "circle": mf.Circle,
    "sphere": mf.Sphere,
    "high": Hypersphere,
    "line": Line,
    "plane": Plane,
    "flat": Euclidean,
    "gram": type(None),
}
KINDS = {
    "circle": ["overview", "trajectories", "spacetime", "polar", "histogram", "observables"],
    "sphere": ["orthographic", "map", "inner_products"],
    "high": ["overview", "projection", "paths"],
    "line": ["overview", "trajectories"],
    "plane": ["overview"],
    "flat": ["overview", "inner_products", "projection"],
    "gram": ["overview", "histogram"],
}
DRAWN = [(name, kind) for name, kinds in KINDS.items() for kind in kinds]
TIMES = np.linspace(0, 12, 7)
# Two groups, of which one lies across pi, and the last token takes its own way.
ANGLES = np.concatenate([0.3 * np.arange(-3, 4), np.pi + 0.3 * np.arange(-2, 3), [1.7]])


def run_of(drift, tokens, times=TIMES, **options):
    model = mf.Transformer(drift)
    return mf.solve(model, tokens, (0, times[-1]), t_eval=times, rtol=1e-5, **options)


def flat(d):
    """Tokens of R^d that spread out."""
    eye = np.eye(d)
    x = np.random.default_rng(0).standard_normal((12, d))
    drift = mf.Attention(eye, eye, eye, beta=1.0)
    return run_of(drift, mf.Tokens(x, on_sphere=False), np.linspace(0, 1, 5))


@pytest.fixture(scope="module")
def circle():
    return run_of(mf.SA(9.0), mf.Tokens.on_circle(ANGLES))


@pytest.fixture(scope="module")
def sphere():
    return run_of(mf.USA(2.0), mf.Tokens.uniform(30, 3, rng=1))


@pytest.fixture(scope="module")
def high():
    return run_of(mf.SA(2.0), mf.Tokens.uniform(12, 6, rng=1))


@pytest.fixture(scope="module")
def line():
    return flat(1)


@pytest.fixture(scope="module")
def plane():
    return flat(2)


@pytest.fixture(scope="module")
def flat_run():
    return flat(4)


@pytest.fixture(scope="module")
def gram(high):
    """The same run as inner products, with what is measured of both."""
    run = replace(high, states=tuple(state.gram() for state in high))
    run.__dict__["observables"] = high.observables.drop_vars("speed")
    return run


@pytest.fixture(scope="module")
def replicas():
    return run_of(mf.SA(4.0), mf.Tokens.uniform(8, 2, rng=1, shape=(11,)))


@pytest.fixture
def run(request):
    name = request.param
    return request.getfixturevalue({"flat": "flat_run"}.get(name, name))


@pytest.mark.repeats
@pytest.mark.parametrize(("run", "kind"), DRAWN, indirect=["run"])
def test_every_kind_is_drawn_with_room_for_its_panels(run, kind):
    figure = run.plot(kind)
    assert any(name in words(figure) for name in ("SA", "Attention"))
    assert room(figure) > 0.7
    for ax in panels(figure):
        assert ax.get_xlabel() or ax.get_ylabel() or ax.get_title() or ax.get_title(loc="left")


@pytest.mark.parametrize(
    "run",
    [pytest.param(n, marks=[pytest.mark.long] * (n == "high")) for n in SPACES],
    indirect=True,
)
def test_the_space_of_tokens_is_told_from_what_they_are(run, request):
    name = request.node.callspec.params["run"]
    assert space_of(run) == SPACES[name]
    assert {"overview", *KINDS[name], "observables"} <= set(kinds_of(run))


def test_each_token_has_a_curve_in_the_colour_of_the_cluster_in_which_it_ends(circle):
    (curves,) = drawn(circle.plot("trajectories").axes[0], LineCollection)
    final = np.arctan2(*circle.final.x.T[::-1])
    for segment, colour in zip(curves.get_segments(), curves.get_colors(), strict=True):
        gaps = np.abs(np.exp(1j * segment[-1, 1]) - np.exp(1j * final))
        cluster = mf.cluster_labels(circle.final)[gaps.argmin()]
        size = np.count_nonzero(mf.cluster_labels(circle.final) == cluster)
        expected = {7: theme.PALETTE[0], 5: theme.PALETTE[1], 1: theme.FAINT}
        assert matplotlib.colors.to_hex(colour).upper() == expected.get(size, theme.PALETTE[0])
    assert len(curves.get_segments()) > len(ANGLES), "none of them crosses pi"


def test_a_curve_that_crosses_pi_is_seen_once_and_does_not_jump(circle):
    ax = circle.plot("trajectories").axes[0]
    segments = np.array(drawn(ax, LineCollection)[0].get_segments())[..., 1]
    assert np.abs(np.diff(segments, axis=1)).max() < 2.0
    inside = (segments >= -np.pi) & (segments < np.pi)
    np.testing.assert_array_equal(inside.sum(axis=0), len(ANGLES))
    assert ax.get_ylim() == (-np.pi, np.pi)


@pytest.mark.long
def test_fewer_curves_are_drawn_of_tokens_that_wander(circle):
    """Their vertical paths add up to 100 heights of the panel; `count` is taken as it is."""
    model, times = mf.Transformer(mf.USA(1.0), kappa=1.0), np.linspace(0, 2, 101)
    tokens = mf.Tokens.uniform(400, 2, rng=0)
    run = mf.solve(model, tokens, (0, 2), t_eval=times, rng=1, dt=0.02)
    angles = np.unwrap([np.arctan2(*state.x.T[::-1]) for state in run], axis=0)
    heights = np.abs(np.diff(angles, axis=0)).sum(axis=0).mean() / (2 * np.pi)
    drawn_tokens = int(words(run.plot("trajectories")).split(" of 400")[0].split()[-1])
    assert 20 < drawn_tokens < 60 and drawn_tokens * heights == pytest.approx(100, rel=0.1)
    assert "150 of 400 tokens" in words(run.plot("trajectories", count=150))
    assert "13 tokens" in words(circle.plot("trajectories"))


def test_shares_of_clusters_add_up_to_what_has_gathered(circle):
    ends = clusters_of_tokens(circle.final)
    assert sum(end.mass for end in ends) == pytest.approx(sum(len(e.tokens) for e in ends) / 13)
    for kind in ("trajectories", "polar"):
        written = words(circle.plot(kind))
        assert all(f"{100 * end.mass:.0f}%" in written for end in ends)
    assert "%" not in words(circle.plot("polar", clusters=False))


def test_dots_on_the_sphere_are_where_the_tokens_are(sphere):
    figure = sphere.plot("map", times=[0, 12])
    first, last = (drawn(ax, EllipseCollection)[0] for ax in panels(figure))
    assert len(first.get_offsets()) == 30
    assert np.ptp(first.get_offsets(), axis=0).min() > 1.5
    assert np.ptp(last.get_offsets(), axis=0).max() < 0.2
    assert "30 tokens" in words(figure) and "100%" in words(figure)


def test_histograms_are_densities_and_densities_can_be_drawn_over_them(circle):
    heights, edges = angle_histogram(circle.final)
    assert heights.mean() == pytest.approx(1.0)
    assert (edges[0], edges[-1]) == (-np.pi, np.pi)
    bump = mf.Circle(32).von_mises(1.0, 1.0)
    density = mf.solve(mf.Transformer(mf.SA(1.0), 20.0), bump, (0, 12), t_eval=[0, 12])
    figure = circle.plot("histogram", density=density, times=[0, 12])
    curves = [ax.lines[-1] for ax in panels(figure)]
    for curve, state in zip(curves, density, strict=True):
        assert curve.get_ydata().max() == pytest.approx(state.values.max(), rel=1e-3)
    with pytest.raises(ValueError, match="bins must be a whole number >= 1"):
        circle.plot("histogram", bins=0)


@pytest.mark.long
def test_a_density_is_drawn_beneath_trajectories_and_around_the_circle(circle, sphere, tmp_path):
    bump = mf.Circle(32).von_mises(1.0, 1.0)
    density = mf.solve(mf.Transformer(mf.SA(1.0), 20.0), bump, (0, 12), t_eval=circle.t)
    (grey,) = drawn(panels(circle.plot("trajectories", density=density))[0], PcolorImage)
    places = np.linspace(-3.1, 3.1, 500)
    values = [grey.get_cursor_data(SimpleNamespace(xdata=0.0, ydata=place)) for place in places]
    assert places[np.argmax(values)] == pytest.approx(1.0, abs=0.02)
    first, last = panels(circle.plot("polar", density=density, times=[0, 12]))
    radii = [np.hypot(*ax.lines[-1].get_data()).max() for ax in (first, last)]
    assert 1.0 < radii[0] < radii[1] == pytest.approx(2.0, rel=1e-3), "the highest has height 1"
    assert circle.animate(tmp_path / "both.gif", density=density, dpi=40).exists()
    several = mf.solve(mf.Transformer(mf.SA(np.ones(2))), bump, (0, 1), t_eval=[0, 1])
    with pytest.raises(ValueError, match="density must be a single run"):
        circle.plot("trajectories", density=several)
    with pytest.raises(TypeError, match="density"):
        sphere.plot("map", density=density)


def test_inner_products_of_tokens_and_of_their_gram_matrices_are_the_same(high, gram):
    for one, other in zip(high, gram, strict=True):
        np.testing.assert_allclose(shares_at(one, ()), shares_at(other, ()), atol=1e-12)
    (heat,) = drawn(panels(gram.plot("inner_products"))[0], PcolorImage)
    values = np.asarray(heat.get_array())
    assert values[-1, -1] == pytest.approx(1.0), "all are in one place at the end"
    assert values.shape[1] == len(gram)


def test_the_principal_plane_keeps_the_most_of_tokens_and_does_not_turn(high):
    plane = plane_of(high, ())
    np.testing.assert_allclose(plane.axes @ plane.axes.T, np.eye(2), atol=1e-12)
    kept = np.mean([(plane.place(state.x) ** 2).sum(axis=1).mean() for state in high])
    assert kept == pytest.approx(plane.shares.sum())
    assert (plane.place(high.final.masses @ high.final.x) >= -1e-12).all()
    assert len({ax.get_xlim() for ax in panels(high.plot("projection"))}) == 1


def test_a_projection_has_the_paths_so_far_on_request(plane):
    panels_shown = panels(plane.plot("projection", times=[0, 0.5, 1], trails=True))
    for ax, count in zip(panels_shown, (1, 3, 5), strict=True):
        (paths,) = drawn(ax, LineCollection)
        assert {len(path) for path in paths.get_segments()} == {count}
        end = np.array([path[-1] for path in paths.get_segments()])
        np.testing.assert_allclose(end, plane[count - 1].x)
    assert not drawn(panels(plane.plot("projection"))[0], LineCollection)


def test_histograms_of_inner_products_hold_all_pairs(gram):
    """Of 12 tokens: 66 pairs, of which each is counted twice, or none."""
    (ax,) = panels(gram.plot("histogram", times=[0], bins=20))
    heights = ax.patches[0].get_data().values
    np.testing.assert_allclose(66 * heights, np.round(66 * heights), atol=1e-6)
    assert heights.sum() == pytest.approx(1.0)
    assert ax.get_yscale() == "log"


def test_paths_in_the_plane_begin_and_end_where_the_tokens_do(plane):
    ax = panels(plane.plot("paths"))[0]
    (curves,) = drawn(ax, LineCollection)
    ends = np.array([segment[[0, -1]] for segment in curves.get_segments()])
    np.testing.assert_allclose(ends[:, 0], plane[0].x)
    np.testing.assert_allclose(ends[:, 1], plane.final.x)
    low, high = np.array([ax.get_xlim(), ax.get_ylim()]).T
    assert (plane.final.x > low).all() and (plane.final.x < high).all()


def test_times_over_decades_are_shown_on_a_logarithmic_axis(circle, high):
    for figure in (circle.plot(log_time=True), high.plot("inner_products", log_time=True)):
        for ax in panels(figure):
            assert ax.get_xscale() == "log"
            assert ax.get_xlim() == (TIMES[1], TIMES[-1])
    early = replace(circle, t=circle.t[:2].copy(), states=circle.states[:2])
    with pytest.raises(ValueError, match="two saved times above 0; got t = 0, 2"):
        early.plot(log_time=True)


@pytest.mark.repeats
@pytest.mark.parametrize("run", SPACES, indirect=True)
def test_one_saved_time_has_an_overview(run):
    last = replace(run, t=run.t[-1:].copy(), states=run.states[-1:])
    last.__dict__["observables"] = run.observables.isel(t=slice(-1, None))
    assert words(last.plot())


def test_a_run_that_ended_early_is_framed(sphere):
    figure = replace(sphere, status="max_steps", message="after 10 steps").plot("map", times=[0])
    assert "STOPPED EARLY (max_steps): after 10 steps" in words(figure)
    assert figure.patch.get_edgecolor() == matplotlib.colors.to_rgba(theme.CAUTION)


def test_kinds_that_do_not_exist_are_answered_with_those_that_do(circle, flat_run, gram):
    with pytest.raises(ValueError, match="tokens on the Circle; got 'snapshots'"):
        circle.plot("snapshots")
    with pytest.raises(ValueError, match=r"for tokens in R\^d, d > 2; got 'map'"):
        flat_run.plot("map")
    with pytest.raises(ValueError, match=r"inner products .*; got 'polar'"):
        gram.plot("polar")
    with pytest.raises(TypeError, match=r"circle or the line, .* got inner"):
        trajectories(gram)
    with pytest.raises(TypeError, match=r"needs densities .* got tokens"):
        orthographic(circle)
    one = replace(circle, t=circle.t[:1].copy(), states=circle.states[:1])
    with pytest.raises(ValueError, match="at least two saved times; got 1"):
        one.plot("trajectories")


def test_a_panel_can_be_drawn_into_an_axes_of_the_caller(circle, sphere, plane):
    with theme.style():
        page = theme.figure(width=9, height=3)
        axes = page.subplots(1, 4)
    assert circle.plot("trajectories", ax=axes[0]) is page
    assert circle.plot("polar", ax=axes[1]) is page
    assert sphere.plot("map", ax=axes[2]) is page
    assert plane.plot("paths", ax=axes[3]) is page


@pytest.mark.repeats
@pytest.mark.parametrize("run", [*SPACES, "replicas"], indirect=True)
def test_a_gif_has_one_frame_for_each_state(run, tmp_path):
    few = replace(run, t=run.t[::4].copy(), states=run.states[::4])
    few.__dict__["observables"] = run.observables.isel(t=slice(None, None, 4))
    assert frames(few.animate(tmp_path / "movie.gif", dpi=30)) == len(few)


def test_gaps_of_clusters_are_angles_on_a_sphere_and_distances_in_space():
    points = np.array([[1.0, 0.0], [0.0, 1.0], [-0.6, 0.8]])
    model = mf.Transformer(mf.Attention(0.1 * np.eye(2)))
    for on_sphere, text in ((True, r"gaps $0.8\degree$"), (False, "gaps $0.014$")):
        run = mf.solve(model, mf.Tokens(points, on_sphere=on_sphere), (0, 0.1))
        assert text in words(run.plot("observables", names=["cluster_count"]))
