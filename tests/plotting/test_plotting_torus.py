"""Maps of densities, tokens and nodes on the torus."""

import numpy as np
import pytest
from drawings import drawn, frames, panels, texts, words
from matplotlib.collections import EllipseCollection, QuadMesh

import meanfield as mf
from meanfield.plotting.appearance import appearance_of
from meanfield.plotting.registry import kinds_of
from meanfield.plotting.torus import plane_values

MODEL = mf.Transformer(mf.USA(1.0), kappa=3.0)


def run_on(torus):
    return mf.solve(MODEL, torus.von_mises([0.5] * torus.circles, 0.5), (0, 0.2), t_eval=[0, 0.2])


def test_a_map_has_the_values_of_the_density_of_the_first_two_angles():
    flat = mf.Torus(12).von_mises([0.5, -1.0], 0.6)
    solid = mf.Torus(12, 3).von_mises([0.5, -1.0, 2.0], 0.6)
    shown = plane_values(flat)
    angles = np.linspace(-np.pi, np.pi, len(shown))
    grid = np.stack(np.meshgrid(angles, angles, indexing="ij"), axis=-1)
    np.testing.assert_allclose(shown, flat.at(flat.space.embed(grid)), rtol=0, atol=1e-13)
    np.testing.assert_allclose(plane_values(solid), shown, rtol=0, atol=1e-12)


@pytest.mark.repeats
@pytest.mark.parametrize("torus", [mf.Torus(5, 3), mf.Torus(8)], ids=repr)
@pytest.mark.filterwarnings("ignore::meanfield.UnresolvedWarning")
def test_maps_are_drawn_at_times_and_in_the_overview(torus):
    run = run_on(torus)
    figure = run.plot("map")
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    assert titles == ["$t = 0$", "$t = 0.2$"]
    (quad,) = figure.axes[0].collections
    np.testing.assert_allclose(quad.get_array(), plane_values(run[0]).T, rtol=1e-12)
    assert all(ax.get_aspect() == 1 for ax in figure.axes if ax.get_title())
    assert len(run.plot().axes) > len(figure.axes)


ANGLES = np.random.default_rng(0).uniform(-8, 8, (12, 2))
GATHERING = mf.Transformer(mf.SA(1.0))


@pytest.fixture(scope="module")
def tokens():
    return mf.solve(GATHERING, mf.Tokens.on_torus(ANGLES), (0, 20), t_eval=[0, 1, 20])


@pytest.fixture(scope="module")
def density():
    return run_on(mf.Torus(10))


def dots(ax):
    (found,) = drawn(ax, EllipseCollection)
    return found.get_offsets()


def assert_equal_angles(places, angles):
    turns = (angles - places) / (2 * np.pi)
    np.testing.assert_allclose(turns, np.round(turns), atol=1e-12)


def test_tokens_are_dots_at_their_angles_on_the_square_of_the_map(tokens, density):
    figure = tokens.plot("map", times=[0])
    (ax,) = panels(figure)
    assert_equal_angles(dots(ax)[: len(ANGLES)], ANGLES)  # and copies across edges
    assert np.abs(ANGLES).max() > np.pi >= np.abs(dots(ax)[: len(ANGLES)]).max()
    (beside,) = panels(density.plot("map", times=[0]))
    for one in (ax, beside):
        assert one.get_xlim() == one.get_ylim() == (-np.pi, np.pi)
        assert one.get_aspect() == 1
        assert one.get_xlabel() == r"angle $\theta_1$"
        assert one.get_ylabel() == r"angle $\theta_2$"
    assert "12 tokens" in words(figure)


def test_tokens_that_have_gathered_are_marked_with_their_share(tokens):
    figure = tokens.plot("map", times=[20])
    (ax,) = panels(figure)
    clusters = appearance_of(tokens.final).clusters(tokens.final)
    marks = [line.get_xydata()[0] for line in ax.lines[::2]]
    assert len(clusters) == len(marks) >= 1
    for cluster, mark in zip(clusters, marks, strict=True):
        assert f"{100 * cluster.mass:.0f}%" in texts(figure)
        gaps = np.angle(np.exp(1j * (dots(ax)[cluster.tokens] - mark)))
        assert np.abs(gaps).max() < 0.1
    assert "%" not in words(tokens.plot("map", clusters=False))


def test_dots_across_an_edge_are_seen_at_both_sides():
    inner, edge, corner = [1.0, -2.0], [0.5, np.pi - 1e-3], [-np.pi, np.pi]
    (ax,) = panels(mf.Tokens.on_torus(np.array([inner, edge, corner])).plot("map"))
    shown = dots(ax)
    assert len(shown) == 1 + 2 + 4
    assert_equal_angles(shown[:3], [inner, edge, corner])
    assert_equal_angles(shown[3:], [edge if abs(x) < 1 else corner for x in shown[3:, 0]])
    (found,) = drawn(ax, EllipseCollection)
    assert len(found.get_widths()) == len(shown)


def test_a_stationary_state_is_drawn_as_its_density():
    start = mf.Torus(12).von_mises(0.0, 0.9)
    state = mf.stationary(mf.Transformer(mf.Kuramoto(), kappa=2.4), start)
    (ax,) = panels(state.plot("map"))
    (quad,) = drawn(ax, QuadMesh)
    np.testing.assert_array_equal(quad.get_array(), plane_values(state.density).T)
    with pytest.raises(ValueError, match="kind"):
        state.plot("no such kind")


def test_a_cluster_across_the_edge_of_the_square_is_one():
    angles = np.pi + 1e-3 * np.array([[-1, 1], [1, 1], [1, -1], [-1, -1]])
    state = mf.Tokens.on_torus(np.concatenate([angles, angles - np.pi]))
    first, second = appearance_of(state).clusters(state)
    assert first.mass == second.mass == 0.5
    assert words(state.plot()).count("50%") == 2


@pytest.mark.long
def test_the_overview_of_tokens_shows_them_at_several_times_above_observables(tokens):
    maps = [ax for ax in panels(tokens.plot()) if drawn(ax, EllipseCollection)]
    assert [ax.get_title() for ax in maps] == ["$t = 0$", "$t = 1$", "$t = 20$"]
    assert "order parameter" in words(tokens.plot())
    replicas = mf.Tokens.on_torus(np.stack([ANGLES, -ANGLES]))
    run = mf.solve(GATHERING, replicas, (0, 1), t_eval=[0, 1])
    assert len(panels(run.plot("map"))) == 4


@pytest.mark.filterwarnings("ignore::meanfield.UnresolvedWarning")
def test_of_three_angles_the_axes_name_the_first_two():
    solid = mf.Tokens.on_torus(np.column_stack([ANGLES, ANGLES[:, 0]]))
    for state in (solid, mf.Torus(4, 3).von_mises([0.5, -1.0, 2.0], 0.1)):
        (ax,) = panels(state.plot("map"))
        assert ax.get_xlabel() == r"angle $\theta_1$ of 3"
        assert ax.get_ylabel() == r"angle $\theta_2$ of 3"
    (ax,) = panels(solid.plot())
    assert_equal_angles(dots(ax)[: len(ANGLES)], ANGLES)  # and copies across edges


def test_a_density_is_drawn_beneath_tokens_and_nodes(tokens, density):
    nodes = mf.Characteristics(mf.Torus(10).von_mises([0.5, 0.5], 0.5), nodes=256)
    run = mf.solve(mf.Transformer(mf.USA(1.0)), nodes, (0, 0.2), t_eval=[0, 0.2])
    for each, times in ((tokens, [0]), (run, [0, 0.2])):
        shown = panels(each.plot("map", density=density, times=times))
        for ax, state in zip(shown, density[: len(times)], strict=True):
            (grey,) = drawn(ax, QuadMesh)
            np.testing.assert_allclose(grey.get_array(), plane_values(state).T, rtol=1e-12)
            assert grey.get_zorder() < drawn(ax, EllipseCollection)[0].get_zorder()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::meanfield.UnresolvedWarning")
def test_a_density_that_does_not_fit_is_refused(tokens):
    with pytest.raises(ValueError, match="as many angles as the points, 2; got 3"):
        tokens.plot("map", density=run_on(mf.Torus(5, 3)))
    with pytest.raises(TypeError, match="densities on the torus; got densities on the Circle"):
        tokens.plot("map", density=run_on(mf.Torus(12, 1)))


@pytest.mark.repeats
@pytest.mark.parametrize("kind", ["tokens", "density"])
def test_a_film_has_one_frame_for_each_state(kind, request, tmp_path):
    run = request.getfixturevalue(kind)
    assert frames(run.animate(tmp_path / "film.gif", dpi=30)) == len(run)


def test_nodes_that_represent_equal_masses_are_dots():
    nodes = mf.Characteristics(mf.Torus(10).von_mises([0.5, -1.0], 0.5), nodes=900)
    (ax,) = panels(nodes.plot())
    assert len(dots(ax)) > 400
    mean = np.exp(1j * np.asarray(dots(ax))).mean(axis=0)
    np.testing.assert_allclose(np.angle(mean), [0.5, -1.0], atol=0.1)


LINE = np.linspace(-3, 3, 9)
ONE, CIRCLE = mf.Torus(12, 1).von_mises([0.5], 0.5), mf.Circle(12).von_mises(0.5, 0.5)
PAIRS = {
    "tokens": (mf.Tokens.on_torus(LINE[:, None]), mf.Tokens.on_circle(LINE)),
    "densities": (ONE, CIRCLE),
    "nodes": (mf.Characteristics(ONE, nodes=64), mf.Characteristics(CIRCLE, nodes=512)),
}


@pytest.mark.repeats
@pytest.mark.parametrize("name", PAIRS)
def test_with_one_angle_everything_is_drawn_as_on_the_circle(name, tmp_path):
    runs = [mf.solve(MODEL if name == "densities" else GATHERING, state, (0, 1), t_eval=[0, 1])
            for state in PAIRS[name]]  # fmt: skip
    kinds = [set(kinds_of(run)) for run in runs]
    assert kinds[1] - kinds[0] <= {"projection", "paths", "inner_products"}
    for kind in kinds[0] - {"overview", "observables"}:
        one, other = (panels(run.plot(kind))[0] for run in runs)
        assert one.get_xlim() == other.get_xlim() and one.get_ylabel() == other.get_ylabel()
    if name == "tokens":
        one, other = (panels(run.plot("polar"))[0].collections[0].get_offsets() for run in runs)
        np.testing.assert_allclose(one, other, atol=1e-12)
    if name == "densities":
        one, other = (panels(run.plot("snapshots"))[0].lines[1].get_ydata() for run in runs)
        np.testing.assert_allclose(one.max(), other.max(), rtol=1e-3)
    if name == "nodes":
        one, other = (panels(run.plot("distribution"))[0].lines[1].get_xydata() for run in runs)
        below = [np.interp(LINE, *each.T) for each in (one, other)]
        np.testing.assert_allclose(*below, atol=0.02)
    assert frames(runs[0].animate(tmp_path / "film.gif", dpi=30)) == 2
    assert runs[0].plot().axes
    with pytest.raises(ValueError, match="on the Circle; got 'map'"):
        runs[0].plot("map")


def test_order_parameters_are_divided_by_the_root_of_the_number_of_angles():
    """In diagrams and sets of states; on the circle there is nothing to divide by."""
    for space, share in ((mf.Torus(6), r"/\sqrt{2}"), (mf.Circle(8), "")):
        states = mf.stationary_states(mf.Transformer(mf.USA(1.0), 0.5), space, count=1)
        (ax,) = states.plot().axes
        assert ax.get_xlabel() == rf"$r = |\int x\, d\mu|{share}$"
