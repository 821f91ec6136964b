"""Figures of indexed densities, of laws whose moments and values are known at every index."""

import numpy as np
import pytest
from drawings import frames, panels, texts, words
from matplotlib.collections import QuadMesh

import meanfield as mf
from meanfield.plotting.indexed import axis_of, mixtures, nodes_to_tell, order_of
from meanfield.results.solution import Solution

CIRCLE = mf.Circle(16)
TIMES = np.array([0.0, 0.5, 1.0])
JUMPS = mf.Positions((0.0, 0.05, 0.4, 1.0), 6, sink=0.1)
INDICES = {
    "position": mf.Positions(order=6),
    "jumps": JUMPS,
    "class": mf.Classes([0.0, 1.0, 5.0], [0.2, 0.3, 0.5]),
    "frequency": mf.NormalIndex(0.5, 16),
}


def height(s, t):
    """|m_1| at index s and time t: a polynomial between breaks, with a jump at 0.4."""
    return np.where(s <= 0.4, 0.2, 0.05 + 0.1 * s**2) + 0.1 * t


def smooth(s, t):
    """|m_1| at index s and time t, for indices without breaks."""
    return 0.2 + 0.02 * s + 0.003 * s**2 + 0.1 * t


def run(index, order=smooth, times=TIMES, space=CIRCLE, model=None):
    """Saved states 1 + 2 order(s, t) cos(theta - t) of a run that was never made."""
    states = tuple(
        space.indexed(lambda s, theta, t=t: 1 + 2 * order(s, t) * np.cos(theta - t), index)
        for t in times
    )
    return of(states, times, model)


def of(states, times=TIMES, model=None):
    return Solution(
        t=np.array(times),
        states=tuple(states),
        model=model or mf.Transformer(mf.USA(2.0), 5.0),
        status="finished",
        message="",
        stats={},
        options={},
    )


def ensemble(index=None):
    """Two members, the second as the first is a time 0.5 later."""
    index = index or INDICES["position"]
    pairs = [run(index, times=[t, t + 0.5]).states for t in TIMES]
    return of([mf.Indexed.stack(pair) for pair in pairs])


def on(space):
    """A run on the sphere, or of axisymmetric densities, which gathers at the pole."""
    index = mf.Positions(order=4)
    functions = {
        mf.Sphere: lambda s, x, y, z: 1 + (0.2 + 0.3 * s) * z,
        mf.Zonal: lambda s, x: 1 + (0.2 + 0.3 * s) * x,
    }
    state = space.indexed(functions[type(space)], index)
    later = space.indexed(lambda s, *x: 1 + 0.9 * x[-1] + 0 * s, index)
    return of([state, later], [0.0, 1.0])


# The axis of an index ------------------------------------------------------------------------


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_rows_and_curves_are_means_of_densities_of_weight_one(index):
    axis = axis_of(index)
    assert axis.rows.shape == (len(axis.edges) - 1, len(index))
    assert axis.points.shape == (len(axis.places), len(index))
    assert (np.diff(axis.edges) > 0).all() and axis.limits == (axis.edges[0], axis.edges[-1])
    assert axis.name == index.label
    for weights in (axis.rows, axis.points):
        known = np.isfinite(weights).all(axis=1)
        assert np.isnan(weights[~known]).all() and known.sum() >= len(weights) / 2
        np.testing.assert_allclose(weights[known].sum(axis=1), 1, rtol=1e-12)


def test_rows_of_positions_are_the_densities_in_their_middles():
    state = run(JUMPS, height).final
    axis = axis_of(JUMPS)
    middles = (axis.edges[1:] + axis.edges[:-1]) / 2
    assert set(JUMPS.breaks) < set(axis.edges)
    assert middles[0] < 0 and np.isnan(axis.rows[1]).all()
    found = mixtures(state, axis.rows).coefficients
    wanted = state.at_position(middles[2:]).coefficients
    np.testing.assert_allclose(found[2:], wanted, atol=1e-14)
    np.testing.assert_array_equal(found[0], state.each[0])  # the sink


def test_curves_of_positions_have_both_values_at_a_break():
    axis, state = axis_of(JUMPS), run(JUMPS, height).final
    orders = order_of(state, axis.points)
    (here,) = np.nonzero(np.isclose(axis.places, 0.4, atol=1e-12) & np.isfinite(orders))
    assert len(here) == 2 and np.isnan(orders[here[0] + 1])
    np.testing.assert_allclose(orders[here], [0.3, 0.166], rtol=1e-12)


def test_classes_are_rows_of_equal_height_and_levels_of_curves():
    axis = axis_of(INDICES["class"])
    assert axis.labels == ("$0$", "$1$", "$5$") and list(axis.ticks) == [0, 1, 2]
    known = np.isfinite(axis.rows).all(axis=1)
    np.testing.assert_array_equal(axis.rows[known], np.eye(3))
    np.testing.assert_allclose(np.diff(axis.edges)[known], 0.9)
    assert np.isnan(axis.points[2]).all() and not np.isnan(axis.points[[0, 1, 3, 4]]).any()
    many = axis_of(mf.Classes(np.arange(40.0)))
    assert len(many.rows) == 40 and len(many.ticks) <= 6


def test_frequencies_are_shown_where_there_are_some():
    index = mf.NormalIndex(0.5, 32, centre=2.0)
    axis = axis_of(index)
    shown = axis.points.argmax(axis=1)
    assert 1 - 2e-4 < index.weights[shown].sum() < 1 and len(shown) < 32
    np.testing.assert_array_equal(axis.places, index.nodes[shown])
    assert (axis.edges[:-1] < axis.places).all() and (axis.places < axis.edges[1:]).all()
    assert abs(np.mean(axis.limits) - 2) < 1e-12
    (only,) = axis_of(mf.NormalIndex(0.5, 1)).rows
    assert only == 1


def test_nodes_to_tell_have_as_much_of_the_index_between_them():
    index = mf.NormalIndex(0.5, 32)
    below = np.cumsum(index.weights) - index.weights / 2
    found = below[nodes_to_tell(index, 4)]
    assert len(found) == 4 and np.ptp(np.diff(found)) < 0.25
    np.testing.assert_array_equal(nodes_to_tell(INDICES["class"], 4), [0, 1, 2])


# The kinds -----------------------------------------------------------------------------------


def test_a_map_has_the_density_of_each_row():
    solution = run(INDICES["position"])
    figure = solution.plot("map", times=TIMES, scale="linear")
    axis, maps = axis_of(INDICES["position"]), panels(figure)
    assert [ax.get_title() for ax in maps] == ["$t = 0$", "$t = 0.5$", "$t = 1$"]
    for ax, t in zip(maps, TIMES, strict=True):
        (mesh,) = (c for c in ax.collections if isinstance(c, QuadMesh))
        corners = mesh.get_coordinates()
        s = (axis.edges[1:] + axis.edges[:-1]) / 2
        theta = corners[0, 1:-2, 0], corners[0, 2:-1, 0]  # but for the halved cells at the ends
        wanted = 1 + 2 * smooth(s[:, None], t) * np.cos((theta[0] + theta[1]) / 2 - t)
        np.testing.assert_allclose(mesh.get_array()[:, 1:-1], wanted, atol=2e-3)
        np.testing.assert_array_equal(corners[:, 0, 1], axis.edges)
        assert ax.get_xlim() == (-np.pi, np.pi) and ax.get_ylim() == (0, 1)
    assert [ax.get_ylabel() for ax in maps] == ["position", "", ""]
    assert any("density" in text for text in texts(figure))


def test_the_row_between_the_sink_and_the_first_position_is_empty():
    figure = run(JUMPS, height).plot("map")
    (mesh,) = panels(figure)[0].collections
    assert mesh.get_array().mask[1].all() and not mesh.get_array().mask[0].any()
    assert "sink" in texts(figure)


def test_order_by_index_is_that_of_the_densities():
    figure = run(INDICES["position"]).plot("order", times=TIMES)
    axis, (ax,) = axis_of(INDICES["position"]), panels(figure)
    assert ax.get_xlabel() == "position" and ax.get_ylim()[0] == 0
    for line, t in zip(ax.lines, TIMES, strict=True):
        s, order = line.get_data()
        np.testing.assert_array_equal(s, axis.places)
        np.testing.assert_allclose(order, smooth(s, t), rtol=1e-12)


def test_order_over_time_is_a_map_of_the_same():
    figure = run(INDICES["position"]).plot("order_map")
    (ax,), axis = panels(figure), axis_of(INDICES["position"])
    (image,) = ax.images
    found = image.get_array()
    s, t = (axis.edges[1:] + axis.edges[:-1]) / 2, np.linspace(0, 1, found.shape[1])
    np.testing.assert_allclose(found, smooth(s[:, None], t), rtol=1e-12)
    np.testing.assert_allclose(ax.get_xlim(), [0, 1])
    with pytest.raises(ValueError, match="kind='order'"):
        run(INDICES["position"], times=[0.0]).plot("order_map")


def test_times_of_a_map_may_be_logarithmic():
    times = np.array([0.0, *np.geomspace(0.01, 1, 9)])
    (ax,) = panels(run(INDICES["position"], times=times).plot("order_map"))
    assert ax.get_xscale() == "log" and ax.get_xlim()[0] == 0.01
    (mesh,) = (c for c in ax.collections if isinstance(c, QuadMesh))
    assert mesh.get_coordinates()[0, :, 0].min() == pytest.approx(0.01)


@pytest.mark.long
def test_kinds_of_densities_draw_the_marginal():
    solution = run(INDICES["class"])
    figure = solution.plot("snapshots", times=[1.0])
    (ax,) = panels(figure)
    (theta, values) = max((line.get_data() for line in ax.lines), key=lambda xy: len(xy[0]))
    marginal = solution.final.marginal()
    np.testing.assert_allclose(values, marginal.at(CIRCLE.embed(theta)), rtol=1e-10)
    assert ax.get_ylabel().startswith("marginal density")
    for kind in ("spacetime", "polar"):
        assert "marginal density" in words(solution.plot(kind))
    assert "marginal" not in words(CIRCLE.uniform().plot("snapshots"))


@pytest.mark.repeats
@pytest.mark.parametrize("kind", ["overview", "observables", "map", "order", "order_map"])
@pytest.mark.parametrize(
    "name",
    [
        "jumps",
        "class",
        *(pytest.param(n, marks=pytest.mark.long) for n in ("position", "frequency")),
    ],
)
def test_every_kind_is_drawn_of_every_index(kind, name):
    figure = run(INDICES[name], height if name == "jumps" else smooth).plot(kind)
    assert INDICES[name].label in words(figure)


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize("kind", ["overview", "observables", "map", "order", "order_map", "polar"])
def test_members_have_panels(kind):
    solution = ensemble()
    found = words(solution.plot(kind))
    assert "member 0" in found and "member 1" in found
    assert "member 0" not in words(solution.plot(kind, member=1))


def test_members_at_the_last_time_in_overviews():
    assert panels(ensemble().plot())[0].get_title() == "$t = 1$"
    sphere = mf.Sphere(8)
    pair = mf.Density.stack([sphere.density(lambda x, y, z, k=k: 1 + k * z) for k in (0.2, 0.5)])
    assert panels(of([pair] * 3).plot())[0].get_title() == "$t = 1$"


# Observables, overviews, films ---------------------------------------------------------------


def test_observables_by_index_are_curves_of_a_few_nodes():
    solution = run(INDICES["class"])
    (ax,) = panels(solution.plot("observables", names=["order_by_index"]))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["$0$", "$1$", "$5$"]
    assert ax.get_legend().get_title().get_text() == "class"
    for line, s in zip(ax.lines, (0, 1, 5), strict=True):
        np.testing.assert_allclose(line.get_ydata(), smooth(s, TIMES), rtol=1e-12)
    assert "tail in the index" not in words(solution.plot("observables"))


def test_observables_by_index_of_an_ensemble_are_those_of_one_member():
    solution = ensemble()
    (ax,) = panels(solution.plot("observables", names="order_by_index", member=1))
    np.testing.assert_allclose(
        ax.lines[0].get_ydata(), solution.observables["order_by_index"][:, 1, 0]
    )
    with pytest.raises(ValueError, match=r"'order_by_index' are drawn for one member"):
        solution.plot("observables", names=["order_by_index"])
    assert "m_1(s)" not in words(solution.plot("observables"))


@pytest.mark.long
def test_overviews_show_maps_orders_and_two_observables():
    found = words(run(INDICES["position"]).plot())
    for text in ("angle", "position", "|m_1(s)|", "|m_1|", "tail in the index", "$t = 0.5$"):
        assert text in found
    assert "minimum" in words(run(INDICES["frequency"]).plot())
    assert len(panels(run(INDICES["position"], times=[0.0]).plot())) == 1


@pytest.mark.long
@pytest.mark.parametrize("space", [mf.Sphere(8), mf.Zonal(4, 8)], ids=["sphere", "zonal"])
def test_other_spaces_have_overviews_and_films(space, tmp_path):
    solution = on(space)
    for kind in ("overview", "observables", "map", "order", "order_map"):
        solution.plot(kind).savefig(tmp_path / "figure.png", dpi=40)
    assert "position" in words(solution.plot()) and "|m_1(s)|" in words(solution.plot())
    assert solution.final.plot().axes
    path = solution.animate(tmp_path / "film.gif", dpi=40)
    assert frames(path) == 2


@pytest.mark.long
def test_maps_on_the_sphere_are_those_of_the_marginal():
    solution = on(mf.Sphere(8))
    whole = of([state.marginal() for state in solution], solution.t)
    for kind in ("map", "orthographic"):
        mine, wanted = (panels(s.plot(kind))[0].images[0].get_array() for s in (solution, whole))
        np.testing.assert_array_equal(mine, wanted)
    assert "marginal density" in words(solution.plot("map", clusters=True))


def test_axisymmetric_maps_run_over_the_polar_angle():
    (ax,) = panels(on(mf.Zonal(3, 16)).final.plot())
    assert "polar angle" in ax.get_xlabel() and ax.get_xlim() == (0, np.pi)


@pytest.mark.long
@pytest.mark.parametrize("name", ["jumps", "class"])
def test_films_have_a_frame_for_each_state(name, tmp_path):
    solution = run(INDICES[name], height if name == "jumps" else smooth)
    assert frames(solution.animate(tmp_path / "film.gif", dpi=40)) == 3
    assert frames(ensemble().animate(tmp_path / "members.gif", dpi=40)) == 3


def test_headings_say_whether_attention_is_causal():
    causal = mf.Transformer(mf.USA(2.0), 5.0, causal="mean")
    assert "USA, causal (mean)" in words(run(INDICES["position"], model=causal).plot("order"))
    plain = mf.Transformer(mf.SA(2.0), 5.0, causal=True)
    assert "SA, causal, " in words(run(INDICES["position"], model=plain).plot("order"))
    assert "causal" not in words(run(INDICES["position"]).plot("order"))


def test_kinds_are_listed_for_a_name_that_is_none():
    with pytest.raises(ValueError, match=r"'map', 'order', .* indexed densities"):
        run(INDICES["position"]).plot("paths")
    with pytest.raises(TypeError, match="indexed densities on the circle"):
        mf.plotting.index_map(of([CIRCLE.uniform()], [0.0]))
