"""Plots of characteristics: portions of equal mass, where the flow carries them, and clusters."""

from dataclasses import replace
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from drawings import frames, panels, room, texts, words
from matplotlib.collections import EllipseCollection, LineCollection

import meanfield as mf
from meanfield.plotting import orthographic, snapshots, spacetime, theme, trajectories
from meanfield.plotting.appearance import appearance_of, equal_masses, quantiles
from meanfield.plotting.curves import _spaced, cumulated
from meanfield.plotting.layouts import resolved_states, states_along_path
from meanfield.plotting.registry import kinds_of
from meanfield.plotting.spaces import chart_of

ANGULAR = ("overview", "trajectories", "distribution", "polar", "observables")
VIEWS = ("overview", "orthographic", "map", "observables")
SPACES = {"circle": ANGULAR, "zonal": ANGULAR, "sphere": VIEWS}
DRAWN = [(space, kind) for space, kinds in SPACES.items() for kind in kinds]
SEAM = mf.Circle(16).von_mises(2.8, 0.5)  # gathers where the axis of angles is cut


def angles_along(state):
    """Coordinates of the nodes on the axis on which they are drawn."""
    return chart_of(type(state.space)).of_nodes(state)


def colours_of(run, nodes):
    """The colours in which nodes are drawn."""
    return list(appearance_of(run.final).colours(run, nodes))


def solved(density, drift, end, **options):
    state = mf.Characteristics(density, **options)
    times = np.linspace(0, end, 6)
    return mf.solve(mf.Transformer(drift), state, (0, end), t_eval=times, rtol=1e-6)


@pytest.fixture(scope="module")
def circle():
    return solved(SEAM, mf.USA(0.5), 20.0)


@pytest.fixture(scope="module")
def zonal():
    return solved(mf.Zonal(5, 8).zonal([1, 0.3]), mf.USA(1.0), 8.0)


@pytest.fixture(scope="module")
def sphere():
    density = mf.Sphere(4).density(lambda x, y, z: 1 + 0.5 * x + 0.2 * y * z)
    return solved(density, mf.USA(0.5), 10.0, nodes=4096)


@pytest.fixture(scope="module")
def parted(circle):
    """The same run, but with three quarters of the mass at pi in the end, and the rest at 1."""
    start = circle[0]
    few = (angles_along(start) > 0.5) & (start.masses.cumsum() < 0.25)
    angle = np.where(few, 1.0, np.pi) - np.arctan2(-start.limit[1], -start.limit[0])
    last = start.moved(angle + 2e-2 * (-1.0) ** np.arange(len(start)))
    assert not last.resolved  # every second node lies elsewhere
    stats = {**circle.stats, "unresolved_since": float(circle.t[-1])}
    states = (*circle.states[:-1], last)
    return replace(circle, states=states, stats=stats, message="nodes too few")


def shares(figure):
    """The shares of mass written at clusters, in percent."""
    return [int(text[:-1]) for text in texts(figure) if text.endswith("%")]


def panel_of(figure, label):
    """The panel with this label at its side."""
    return next(ax for ax in panels(figure) if label in ax.get_ylabel())


@pytest.mark.repeats
@pytest.mark.parametrize(("space", "kind"), DRAWN)
def test_every_kind_is_drawn_with_room_for_its_panels(space, kind, request):
    figure = request.getfixturevalue(space).plot(kind)
    assert any("USA" in text for text in texts(figure))
    assert room(figure) > 0.7


def test_curves_begin_at_the_quantiles_of_the_density(circle):
    """The mass of 1 + a cos below each of them is known in closed form."""
    a = 0.6
    density = mf.Circle(4).density(lambda theta: 1 + a * np.cos(theta - 1))
    state = mf.Characteristics(density)
    angles = np.sort(angles_along(state)[quantiles(state, angles_along(state), 20)])
    below = (angles + a * np.sin(angles - 1)) / (2 * np.pi)
    np.testing.assert_allclose(np.diff(below), 1 / 20, atol=2 * state.masses.max())


@pytest.mark.parametrize("space", ["circle", "zonal"])
def test_between_two_curves_lies_the_same_mass_at_all_times(space, request):
    run = request.getfixturevalue(space)
    nodes = quantiles(run[0], angles_along(run[0]), 10)
    for state in run:
        angles = angles_along(state)
        ends = np.sort(angles[nodes])
        if np.diff(ends).min() < 1e-12:  # nodes of a cluster change places by rounding
            continue
        between = [state.masses[(angles > a) & (angles <= b)].sum() for a, b in pairwise(ends)]
        np.testing.assert_allclose(between, 0.1, atol=2 * state.masses.max())


def test_a_curve_that_crosses_pi_is_seen_once_and_does_not_jump(circle):
    ax = trajectories(circle, count=16).axes[0]
    (lines,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    curves = np.array(lines.get_segments())[..., 1]
    assert len(curves) > 16, "none of them crosses pi"
    assert np.abs(np.diff(curves, axis=1)).max() < 2.0
    inside = (curves >= -np.pi) & (curves < np.pi)
    np.testing.assert_array_equal(inside.sum(axis=0), 16)
    assert ax.get_ylim() == (-np.pi, np.pi)


def test_polar_angles_begin_at_the_last_axis_whatever_the_limit():
    for sign in (1, -1):
        state = mf.Characteristics(mf.Zonal(4, 4).zonal([1, 0.2 * sign]))
        np.testing.assert_allclose(np.cos(angles_along(state)), state.points[:, -1], atol=1e-14)


def test_the_distribution_ends_at_the_whole_mass_and_jumps_at_clusters(parted, zonal):
    angles, below = cumulated(parted.final)
    assert (angles[0], angles[-1], below[0]) == (-np.pi, np.pi, 0.0)
    assert below[-1] == pytest.approx(1.0, abs=1e-10)
    assert (np.diff(angles) >= 0).all() and (np.diff(below) >= 0).all()
    jump = np.interp([0.9, 1.1], angles, below) @ [-1, 1]
    assert jump == pytest.approx(parted.final.clusters()[-1].mass, abs=1e-3)
    ax = zonal.plot("distribution", times=[0, 8]).axes[0]
    assert ax.get_xlim() == (0, np.pi)


@pytest.mark.long
def test_shares_of_clusters_add_up(circle, parted, zonal, sphere):
    for run, kind in [(circle, "trajectories"), (zonal, "trajectories"), (sphere, "map")]:
        assert shares(run.plot(kind))[-1] == 100
    found = shares(parted.plot("trajectories"))
    assert sum(found) == 100
    assert found == [round(100 * cluster.mass) for cluster in parted.final.clusters()]
    assert "%" not in "".join(texts(sphere.plot("map", clusters=False)))


def test_curves_have_the_colour_of_the_cluster_in_which_they_end(parted):
    nodes = quantiles(parted[0], angles_along(parted[0]), 40)
    heavy, light = parted.final.clusters()
    expected = np.where(
        parted.final.points[nodes] @ light.point > parted.final.points[nodes] @ heavy.point,
        theme.PALETTE[1],
        theme.PALETTE[0],
    )
    assert colours_of(parted, nodes) == list(expected)
    start = replace(parted, t=parted.t[:1], states=parted.states[:1])
    assert set(colours_of(start, nodes)) == {theme.PALETTE[0]}


def test_labels_of_near_clusters_are_moved_apart_and_others_stay():
    places = np.array([0.5, -3.1, 0.52, 3.1, 0.55])
    moved = _spaced(places, 0.3, (-np.pi, np.pi))
    np.testing.assert_array_equal(np.argsort(moved), np.argsort(places))
    assert np.diff(np.sort(moved)).min() >= 0.3 - 1e-12
    np.testing.assert_allclose(moved[[1, 3]], places[[1, 3]])
    assert moved[[0, 2, 4]].mean() == pytest.approx(places[[0, 2, 4]].mean())


def test_pieces_share_out_the_mass_evenly_over_the_sphere(sphere):
    state = sphere[0]
    nodes, masses = equal_masses(state, 7)
    assert len(set(nodes)) == 128
    assert masses.sum() == pytest.approx(float(state.mass), abs=1e-13)
    np.testing.assert_allclose(masses, 1 / 128, atol=7 * state.masses.max())
    mean, exact = masses @ state.points[nodes], state.masses @ state.points
    assert np.linalg.norm(mean - exact) < 0.02


@pytest.mark.long
def test_dots_have_areas_in_proportion_to_masses_and_follow_the_flow(sphere):
    figure = sphere.plot("orthographic", times=[0, 10])
    (first,), (last,) = [
        [c for c in ax.collections if isinstance(c, EllipseCollection)] for ax in panels(figure)
    ]
    _, masses = equal_masses(sphere[0], 9)
    areas = np.pi / 4 * first.get_widths() ** 2
    np.testing.assert_allclose(areas / areas.sum(), masses / masses.sum())
    assert np.ptp(first.get_offsets(), axis=0).min() > 1.8
    assert np.median(np.abs(last.get_offsets() - np.median(last.get_offsets(), axis=0))) < 0.1
    assert any("1/512 of the mass" in text for text in texts(figure))


def test_observables_are_on_the_scales_they_need(circle, parted):
    figure = circle.plot("observables")
    for label in ["$W_2$ to a Dirac", "speed", "quadrature error"]:
        assert panel_of(figure, label).get_yscale() == "log"
    (count,) = panel_of(figure, "clusters").lines
    assert count.get_drawstyle() == "steps-post"
    masses = panel_of(parted.plot("observables"), "masses of clusters").lines
    found = {line.get_color(): line.get_ydata()[-1] for line in masses}
    assert found[theme.PALETTE[0]] + found[theme.PALETTE[1]] == pytest.approx(1.0, abs=1e-10)
    with pytest.raises(ValueError, match=r"w2_to_dirac, .* got .*'entropy'"):
        circle.plot("observables", names=["entropy"])


def test_times_are_spread_along_the_way_that_the_mass_goes(zonal):
    shown = states_along_path(zonal, [()], 4)
    assert {0, len(zonal) - 1} <= set(shown)
    assert len(zonal) - 2 not in shown, "nothing moves at the end"


@pytest.mark.parametrize("kind", ["overview", "distribution"])
def test_a_run_that_is_not_resolved_is_framed_in_red(parted, kind):
    np.testing.assert_array_equal(resolved_states(parted), [True] * 5 + [False])
    figure = parted.plot(kind)
    assert "NOT RESOLVED: nodes too few" in texts(figure)
    assert figure.patch.get_edgecolor() == matplotlib.colors.to_rgba(theme.WARNING)


def test_kinds_that_do_not_exist_are_answered_with_those_that_do(circle, sphere):
    assert set(kinds_of(circle)) == set(ANGULAR)
    with pytest.raises(ValueError, match="on the Circle; got 'spacetime'"):
        circle.plot("spacetime")
    with pytest.raises(ValueError, match=r"'map', .* characteristics on the Sphere"):
        sphere.plot("trajectories")
    for draw in (snapshots, spacetime, orthographic):
        with pytest.raises(TypeError, match=r"needs densities .* got characteristics"):
            draw(sphere)
    with pytest.raises(TypeError, match="the Zonal; got"):
        trajectories(sphere)


def test_one_saved_time_has_an_overview_but_no_trajectories(circle, sphere):
    for run in (circle, sphere):
        last = replace(run, t=run.t[-1:].copy(), states=run.states[-1:])
        assert texts(last.plot())
    last = replace(circle, t=circle.t[-1:].copy(), states=circle.states[-1:])
    with pytest.raises(ValueError, match="at least two saved times; got 1"):
        last.plot("trajectories")
    with pytest.raises(ValueError, match="count must be a whole number >= 1"):
        circle.plot("trajectories", count=0)


def test_a_view_can_be_drawn_into_an_axes_of_the_caller(circle, sphere):
    with theme.style():
        page = theme.figure(width=8, height=3)
        left, right = page.subplots(1, 2)
    assert circle.plot("trajectories", ax=left) is page
    assert sphere.plot("map", ax=right, times=[0]) is page
    assert right.get_title() == "$t = 0$"


def test_dots_on_a_meridian_have_a_mirror_image(zonal, circle):
    """The axis is upright, and each of the dots stands for an equal part of the mass."""
    ax = panels(zonal.plot("polar", times=[0]))[0]
    right, left = (dots.get_offsets() for dots in ax.collections)
    np.testing.assert_allclose(left, right * [-1, 1])
    np.testing.assert_allclose(np.hypot(*right.T), 1.0)
    assert "2% of the mass each pair" in texts(zonal.plot("polar"))
    (dots,) = panels(circle.plot("polar", times=[0]))[0].collections
    angles = np.sort(np.arctan2(*dots.get_offsets().T[::-1]))
    nodes = circle[0].points[quantiles(circle[0], angles_along(circle[0]), 50)]
    np.testing.assert_allclose(angles, np.sort(np.arctan2(*nodes.T[::-1])), atol=1e-12)


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize("space", ["circle", "zonal", "sphere"])
def test_a_gif_has_one_frame_for_each_state(space, request, tmp_path):
    run = request.getfixturevalue(space)
    assert frames(run.animate(tmp_path / "movie.gif", dpi=50)) == len(run)


def test_a_density_saved_at_other_times_is_refused():
    """The curve of another time was drawn under the title of this one."""
    circle, model = mf.Circle(16), mf.Transformer(mf.USA(2.0), 3.0)
    start, times = circle.von_mises(1.0, 1.0), np.linspace(0, 1, 11)
    tokens = mf.solve(model, start.sample(20, rng=0), (0, 1), t_eval=times, rng=1)
    early = mf.solve(model, start, (0, 1), t_eval=[0.0, 1.0])
    for kind in ("histogram", "polar"):
        assert tokens.plot(kind, density=early, times=[1.0])
        with pytest.raises(ValueError, match=r"t = 0\.4 .* t = 0\..*t_eval"):
            tokens.plot(kind, density=early, times=[0.4])


SEVERAL_TIMES = {
    "density": ["snapshots", "polar", "spectrum"],
    "tokens": ["polar", "histogram", "projection"],
    "gaussian": ["ellipses"],
}


@pytest.mark.parametrize("name", SEVERAL_TIMES)
def test_a_run_with_kept_steps_is_drawn_at_the_times_asked_for(name):
    start = {
        "density": mf.Circle(16).von_mises(0.3, 1.0),
        "tokens": mf.Tokens.on_circle([0.0, 0.5, 2.0]),
        "gaussian": mf.Gaussian([0.0, 0.0], [[1.0, 0.2], [0.2, 0.5]]),
    }[name]
    model = mf.Transformer(mf.Attention(0.1 * np.eye(2)) if name == "gaussian" else mf.USA(1.0))
    run = mf.solve(model, start, (0, 2), t_eval=[0.0, 2.0], dense=True)
    for kind in SEVERAL_TIMES[name]:
        figure = run.plot(kind, times=[0.25, 2.0])
        assert "0.25" in words(figure), kind
    plain = mf.solve(model, start, (0, 2), t_eval=[0.0, 2.0])
    with pytest.warns(UserWarning, match="dense=True"):
        figure = plain.plot(SEVERAL_TIMES[name][0], times=[0.25, 2.0])
    assert "0.25" not in words(figure)


def test_a_density_beside_tokens_is_evaluated_at_times_between_its_outputs():
    start = mf.Circle(16).von_mises(0, 1)
    options = {"t_eval": [0, 1], "dense": True, "progress": False}
    law = mf.solve(mf.Transformer(mf.SA(4.0), kappa=6.0), start, (0, 1), **options)
    tokens = mf.solve(mf.Transformer(mf.SA(4.0)), start.sample(20, rng=0), (0, 1), **options)
    tokens.plot("histogram", times=[0.25], density=law)
    with pytest.raises(ValueError, match="density must be saved at the times"):
        tokens.plot(
            "histogram", times=[0.25], density=mf.solve(law.model, start, (0, 1), t_eval=[0, 1])
        )
