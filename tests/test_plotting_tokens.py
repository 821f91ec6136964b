"""Plots of tokens and of inner products: every token is seen where it is, and where it ends."""

from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import EllipseCollection, LineCollection, PathCollection, QuadMesh
from PIL import Image

import meanfield as mf
from meanfield.plotting import orthographic, theme, token_curves
from meanfield.plotting.crowds import crowd_of, gatherings
from meanfield.plotting.inner_products import shares_at
from meanfield.plotting.kinds import KINDS
from meanfield.plotting.planes import plane_of
from meanfield.plotting.spaces import Space, space_of
from meanfield.plotting.time_axis import time_edges
from meanfield.plotting.token_histogram import angle_histogram
from meanfield.states import Gram, Tokens

SPACES = {
    "circle": mf.Circle,
    "sphere": mf.Sphere,
    "high": Space.HYPERSPHERE,
    "line": Space.LINE,
    "plane": Space.PLANE,
    "flat": Space.EUCLIDEAN,
    "gram": Space.PAIRS,
}
DRAWN = [
    (name, kind)
    for name, space in SPACES.items()
    for kind in KINDS[Gram if name == "gram" else Tokens][space]
    if kind != "observables" or name in ("circle", "line")  # the others are drawn by "overview"
]
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


def crowded(count, d=2):
    """Many tokens that are pulled to one place, as a run that was never computed."""
    x = mf.Tokens.uniform(count, d, rng=0).x
    pulled = [x + k * np.eye(d)[0] for k in (0, 1, 1000)]
    states = tuple(mf.Tokens(p / np.linalg.norm(p, axis=-1, keepdims=True)) for p in pulled)
    model, t = mf.Transformer(mf.SA(1.0)), np.array([0.0, 1.0, 2.0])
    return mf.Solution(t, states, model, "finished", "Reached t = 2.", {})


def panels(figure):
    """The axes of a figure that are not colour bars."""
    return [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]


def words(figure):
    """Everything written in a figure, in one line."""
    figure.draw_without_rendering()
    found = figure.findobj(matplotlib.text.Text)
    return " ".join(text.get_text().replace("\n", " ") for text in found)


def drawn(ax, kind):
    """The artists of a kind in a panel."""
    return [artist for artist in ax.collections if type(artist) is kind]


def colours_in(colours):
    """Colours as hexadecimal words, without their opacity."""
    return {matplotlib.colors.to_hex(colour).upper() for colour in colours}


@pytest.mark.parametrize(("run", "kind"), DRAWN, indirect=["run"])
def test_every_kind_is_drawn_with_room_for_its_panels(run, kind):
    figure = run.plot(kind)
    assert any(name in words(figure) for name in ("SA", "Attention"))
    for ax in panels(figure):
        assert ax.get_xlabel() or ax.get_ylabel() or ax.get_title() or ax.get_title(loc="left")
        assert (ax.get_window_extent().size > 0.7 * figure.dpi).all(), "a panel has no room"


@pytest.mark.parametrize("run", SPACES, indirect=True)
def test_the_space_of_tokens_is_told_from_what_they_are(run, request):
    assert space_of(run) == SPACES[request.node.callspec.params["run"]]


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


def test_shares_of_clusters_add_up_to_what_has_gathered(circle):
    ends = gatherings(circle.final)
    assert sum(end.mass for end in ends) == pytest.approx(sum(len(e.tokens) for e in ends) / 13)
    for kind in ("trajectories", "polar"):
        written = words(circle.plot(kind))
        assert all(f"{100 * end.mass:.0f}%" in written for end in ends)
    assert "%" not in words(circle.plot("polar", clusters=False))


def test_tokens_that_have_not_gathered_have_one_colour_but_few_have_one_each():
    many = mf.Tokens.on_circle(0.3 * np.arange(20))
    assert gatherings(many) == []
    two = mf.Tokens.on_circle([0.0, 2.0], masses=[0.3, 0.7])
    assert [(end.mass, list(end.tokens)) for end in gatherings(two)] == [
        (pytest.approx(0.7), [1]),
        (pytest.approx(0.3), [0]),
    ]
    chain = mf.Tokens.on_circle(np.linspace(0, 3, 1000))
    assert gatherings(chain) == [], "linked, but not in one place"


def test_heavier_tokens_have_thicker_curves_and_larger_dots():
    masses = np.array([0.7, 0.2, 0.1])
    run = run_of(mf.SA(1.0), mf.Tokens.on_circle([0.0, 1.0, 2.0], masses), np.array([0.0, 0.1]))
    (curves,) = drawn(run.plot("trajectories").axes[0], LineCollection)
    assert (np.diff(curves.get_linewidths()) < 0).all()
    (dots,) = drawn(run.plot("polar", times=[0]).axes[0], PathCollection)
    np.testing.assert_allclose(dots.get_sizes() / dots.get_sizes().sum(), masses)


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
    density = mf.solve(mf.Transformer(mf.SA(1.0)), bump, (0, 1), t_eval=[0, 1])
    figure = circle.plot("histogram", density=density, times=[0, 12])
    curves = [ax.lines[-1] for ax in panels(figure)]
    for curve, state in zip(curves, density, strict=True):
        assert curve.get_ydata().max() == pytest.approx(state.values.max(), rel=1e-3)
    with pytest.raises(ValueError, match="bins must be at least 1"):
        circle.plot("histogram", bins=0)


def test_inner_products_of_tokens_and_of_their_gram_matrices_are_the_same(high, gram):
    for one, other in zip(high, gram, strict=True):
        np.testing.assert_allclose(shares_at(one, ()), shares_at(other, ()), atol=1e-12)
    (heat,) = drawn(panels(gram.plot("inner_products"))[0], QuadMesh)
    values = np.asarray(heat.get_array())
    assert values[-1, -1] == pytest.approx(1.0), "all are in one place at the end"
    assert values.shape[1] == len(gram)


def test_cells_of_the_heat_map_meet_halfway():
    t = np.array([1.0, 10.0, 1000.0])
    np.testing.assert_allclose(time_edges(t, log_time=False), [1, 5.5, 505, 1000])
    np.testing.assert_allclose(time_edges(t, log_time=True), [1, 10**0.5, 100, 1000])


def test_the_principal_plane_keeps_the_most_of_tokens_and_does_not_turn(high):
    plane = plane_of(high, ())
    np.testing.assert_allclose(plane.axes @ plane.axes.T, np.eye(2), atol=1e-12)
    kept = np.mean([(plane.place(state.x) ** 2).sum(axis=1).mean() for state in high])
    assert kept == pytest.approx(plane.shares.sum())
    assert (plane.place(high.final.masses @ high.final.x) >= -1e-12).all()
    assert len({ax.get_xlim() for ax in panels(high.plot("projection"))}) == 1


def test_paths_in_the_plane_begin_and_end_where_the_tokens_do(plane):
    ax = panels(plane.plot("paths"))[0]
    (curves,) = drawn(ax, LineCollection)
    ends = np.array([segment[[0, -1]] for segment in curves.get_segments()])
    np.testing.assert_allclose(ends[:, 0], plane[0].x)
    np.testing.assert_allclose(ends[:, 1], plane.final.x)
    low, high = np.array([ax.get_xlim(), ax.get_ylim()]).T
    assert (plane.final.x > low).all() and (plane.final.x < high).all()


def test_replicas_are_a_median_and_a_band(replicas):
    figure = replicas.plot("observables", names=["order_parameter"])
    (ax,) = panels(figure)
    (median,) = ax.lines
    values = replicas.observables["order_parameter"].transpose("t", "member").to_numpy()
    np.testing.assert_allclose(median.get_ydata(), np.median(values, axis=1))
    (band,) = ax.collections
    inside = band.get_paths()[0].vertices[:, 1]
    np.testing.assert_allclose(inside.max(), np.percentile(values, 95, axis=1).max())
    assert "5 to 95% of 11 replicas" in words(figure)
    alone = replicas.plot("observables", member=3, names=["order_parameter"]).axes[0]
    np.testing.assert_allclose(alone.lines[0].get_ydata(), values[:, 3])
    assert not alone.collections


def test_replicas_of_several_parameters_have_a_band_for_each():
    tokens = mf.Tokens.uniform(6, 2, rng=1, shape=(2, 4))
    run = run_of(mf.SA(np.array([[1.0], [4.0]])), tokens, np.array([0.0, 1.0]))
    figure = run.plot("observables", names=["order_parameter"])
    assert len(figure.axes[0].lines) == 2
    assert "4 replicas" in words(figure) and r"$\beta = 4$" in words(figure)


def test_the_overview_of_replicas_shows_the_first_and_says_so(replicas):
    assert "member 0, 8 tokens" in words(replicas.plot())
    assert "member 4, 8 tokens" in words(replicas.plot(member=4))
    with pytest.raises(ValueError, match="Choose one member"):
        replicas.plot("trajectories")
    with pytest.raises(ValueError, match="the last member is member=10"):
        replicas.plot(member=11)


def test_times_over_decades_are_shown_on_a_logarithmic_axis(circle, high):
    for figure in (circle.plot(log_time=True), high.plot("inner_products", log_time=True)):
        for ax in panels(figure):
            assert ax.get_xscale() == "log"
            assert ax.get_xlim() == (TIMES[1], TIMES[-1])
    early = replace(circle, t=circle.t[:2].copy(), states=circle.states[:2])
    with pytest.raises(ValueError, match="two saved times above 0; got t = 0, 2"):
        early.plot(log_time=True)


def test_of_very_many_tokens_some_are_drawn_and_the_figure_says_how_many():
    run = crowded(100_000)
    figure = token_curves(run)
    (curves,) = drawn(figure.axes[0], LineCollection)
    begins = {round(float(s[0, 1] % (2 * np.pi)), 9) for s in curves.get_segments()}
    assert len(begins) == 300 and "300 of 100000 tokens" in words(figure)
    assert colours_in(curves.get_colors()) == {theme.PALETTE[0]} and "100%" in words(figure)
    assert "500 of 100000 tokens" in words(run.plot("inner_products"))
    crowd = crowd_of(crowded(30_000, 5), (), 1000)
    assert len(crowd.tokens) == 1000 and crowd.ends[0].mass == pytest.approx(1.0)


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
    names = "'overview', 'trajectories', 'polar', 'histogram', 'inner_products', 'observables'"
    with pytest.raises(ValueError, match=f"{names} for tokens on the Circle; got 'spacetime'"):
        circle.plot("spacetime")
    with pytest.raises(ValueError, match=r"for tokens in R\^d, d > 2; got 'map'"):
        flat_run.plot("map")
    with pytest.raises(ValueError, match="for inner products of tokens; got 'polar'"):
        gram.plot("polar")
    with pytest.raises(TypeError, match="needs tokens on the circle or the line; got inner"):
        token_curves(gram)
    with pytest.raises(TypeError, match="needs densities on the sphere; got tokens on the Circle"):
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


@pytest.mark.parametrize("run", [*SPACES, "replicas"], indirect=True)
def test_a_gif_has_one_frame_for_each_state(run, tmp_path):
    few = replace(run, t=run.t[::4].copy(), states=run.states[::4])
    few.__dict__["observables"] = run.observables.isel(t=slice(None, None, 4))
    with Image.open(few.animate(tmp_path / "movie.gif", dpi=30)) as movie:
        assert movie.n_frames == len(few)
