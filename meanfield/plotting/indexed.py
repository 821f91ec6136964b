"""Indexed densities: maps of index against angle, and the order parameter by index.

The kinds of a density, such as "snapshots", draw the marginal law of the points.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator

from ..spaces import Circle, Space, Sphere, Zonal
from ..spaces.density import Density
from ..spaces.index import Classes, Index, Positions
from ..spaces.indexed import Indexed
from .appearance import evenly
from .curves import draw_curves
from .fields import MOST_COLUMNS, between, choose_scale, density_bar, field_maps, visible_chart
from .labels import Member, distinct
from .layouts import Panels, columns_of_times, is_logarithmic, need_two_times, time_edges
from .registry import figure
from .spaces import CoordinateAxis

ROWS_PER_UNIT = 160  # of a map, for positions from 0 to 1
FEWEST_INDEX_ROWS = 4  # of a piece
SINK = (-0.2, -0.05)  # where the atom at s = 0 is drawn
MOST_SEPARATE_CLASSES = 12  # more rows of classes than these touch
LEAST_TAIL = 1e-4  # nodes in tails of less weight are not shown
MOST_TICKS = 6

Part = tuple[np.ndarray, np.ndarray]  # edges (n + 1,) or places (n,), and weights (n, P) of nodes


@dataclass(frozen=True, eq=False, kw_only=True)
class IndexAxis(CoordinateAxis):
    """An index as an axis of a panel.

    Attributes
    ----------
    edges : ndarray, (R + 1,)
        Edges of the rows of a map.
    rows : ndarray, (R, P)
        Weights that combine the densities at the P nodes to that of each row; nan for empty rows.
    places : ndarray, (n,)
        Positions of the points of a curve.
    points : ndarray, (n, P)
        Weights at `places`, as in `rows`; nan where the curve is interrupted.
    """

    edges: np.ndarray
    rows: np.ndarray
    places: np.ndarray
    points: np.ndarray


def mixtures(state: Indexed, weights: np.ndarray) -> Density:
    """The densities sum_p weights_rp mu_p, an ensemble (*ensemble, R)."""
    return Density.computed(np.einsum("rp,...pk->...rk", weights, state.each), state.slice_space)


def order_of(state: Indexed, weights: np.ndarray) -> np.ndarray:
    """|m_1| of the densities sum_p weights_rp mu_p, (*ensemble, R)."""
    space: Space = state.slice_space
    return np.abs(space.scalar_moment(mixtures(state, weights).coefficients, 1))


def nodes_to_tell(index: Index, count: int) -> np.ndarray:
    """Indices of at most `count` nodes, with about equal weights between neighbours."""
    levels = np.cumsum(index.weights) - index.weights / 2
    targets = np.linspace(levels[0], levels[-1], count)
    return np.unique(np.abs(levels[:, None] - targets).argmin(axis=0))


# Each kind of index --------------------------------------------------------------------------


@singledispatch
def axis_of(index: Index) -> IndexAxis:
    """The axis of an index: by default nodes at their own coordinates, without negligible tails."""
    levels = np.cumsum(index.weights)
    kept = np.flatnonzero((levels > LEAST_TAIL) & (levels - index.weights < 1 - LEAST_TAIL))
    places, weights = index.nodes[kept], np.eye(len(index))[kept]
    middles = (places[1:] + places[:-1]) / 2
    half = (places[[1, -1]] - places[[0, -2]]) / 2 if len(places) > 1 else np.full(2, 0.5)
    first, last = places[0] - half[0], places[-1] + half[1]
    edges = np.concatenate([[first], middles, [last]])
    ticks = MaxNLocator(5).tick_values(first, last)
    ticks = ticks[(ticks >= first) & (ticks <= last)]
    labels = [f"${tick:g}$" for tick in ticks]
    return _axis(index, ticks, labels, [(edges, weights)], [(places, weights)])


@axis_of.register
def _positions(index: Positions) -> IndexAxis:
    """The axis of positions from 0 to 1, with the attention sink beneath."""
    rows: list[Part] = []
    curve: list[Part] = []
    ticks, labels = np.linspace(0.0, 1.0, 5), ["$0$", "$0.25$", "$0.5$", "$0.75$", "$1$"]
    if index.sink:
        rows, curve = _one_node(index, 0, *SINK)
        ticks, labels = np.append(np.mean(SINK), ticks[::2]), ["sink", *labels[::2]]
    for a, b in zip(index.breaks[:-1], index.breaks[1:], strict=True):
        edges = np.linspace(a, b, 1 + max(FEWEST_INDEX_ROWS, round(ROWS_PER_UNIT * (b - a))))
        rows.append((edges, index.interpolation((edges[1:] + edges[:-1]) / 2)))
        # At a break the density is that on its left, and at s = 0 that of the sink.
        places = np.concatenate([[np.nextafter(a, 1)], edges[1:]])
        curve.append((places, index.interpolation(places)))
    return _axis(index, ticks, labels, rows, curve)


@axis_of.register
def _classes(index: Classes) -> IndexAxis:
    """The axis of classes: rows of equal height, whatever the coordinate and share of a class."""
    half = 0.45 if len(index) <= MOST_SEPARATE_CLASSES else 0.5
    parts = [_one_node(index, p, p - half, p + half) for p in range(len(index))]
    rows, curve = ([part for (part,) in side] for side in zip(*parts, strict=True))
    ticks = evenly(len(index), MOST_TICKS)
    return _axis(index, ticks, [f"${text}$" for text in distinct(index.nodes[ticks])], rows, curve)


def _one_node(index: Index, node: int, low: float, high: float) -> tuple[list[Part], list[Part]]:
    """One node as a row of a map, and as a constant part of a curve, from `low` to `high`."""
    ends, weights = np.array([low, high]), np.eye(len(index))[[node]]
    return [(ends, weights)], [(ends, np.repeat(weights, 2, axis=0))]


def _axis(
    index: Index, ticks: np.ndarray, labels: Sequence[str], rows: list[Part], curve: list[Part]
) -> IndexAxis:
    """The axis of an index in parts, with empty rows in gaps, and curves interrupted there."""
    gap = np.full((1, len(index)), np.nan)
    edges, weights = [rows[0][0]], [rows[0][1]]
    for places_of_row, mixture in rows[1:]:
        has_gap = places_of_row[0] > edges[-1][-1]
        edges.append(places_of_row if has_gap else places_of_row[1:])
        weights += [gap, mixture] if has_gap else [mixture]
    places = [part for places_of_row, _ in curve for part in (places_of_row, places_of_row[-1:])]
    points = [part for _, mixture in curve for part in (mixture, gap)]
    all_edges = np.concatenate(edges)
    return IndexAxis(
        name=index.label,
        limits=(all_edges[0], all_edges[-1]),
        ticks=np.asarray(ticks),
        labels=tuple(labels),
        edges=all_edges,
        rows=np.concatenate(weights),
        places=np.concatenate(places[:-1]),
        points=np.concatenate(points[:-1]),
    )


# Figures ------------------------------------------------------------------------------------------

DENSITY_BY_INDEX = r"density $\mu_s(\theta)$"
ORDER = r"order parameter $|m_1(s)|$"
MOST_ANGLES = 256
ORDER_MARGIN = 1.06


@figure("map", Indexed, Circle, Zonal, sheet=(4, 1.0, 4))
def index_map(panels: Panels, *, scale: str = "auto") -> None:
    """Maps of the density over the index and the angle at several times.

    Each row is the density at one index. Over positions, densities are interpolated by polynomials
    between the nodes, with the attention sink as a strip beneath; classes, whatever their shares,
    are rows of equal height; frequencies are cells around the nodes. The mark on the colour bar is
    the uniform state, 1. Times in red are not resolved.

    Parameters
    ----------
    solution : Solution
        Indexed densities on the circle, or axisymmetric.
    times : sequence of float, optional
        Times to show; those not saved as for `plot`. By default `count` saved ones, chosen so that
        the law moves equally far between them; in an `ax` the last.
    count : int, optional
        How many, where `times` is not given; by default 4, or 3 for several members.
    scale : {"auto", "linear", "log", "power"}
        Colour scale, common to all panels; "auto" is logarithmic if a peak exceeds 30 times the
        mean.

    Raises
    ------
    ValueError
        If a time lies outside the solution, a member does not exist, or too many are chosen.
    TypeError
        If the states are not indexed densities on the circle, or axisymmetric.
    """
    axis, chart = axis_of(panels.solution.final.index), visible_chart(panels)
    states = [panels.state(i, m) for i in panels.times for m in panels.members]
    judged = [state.values[state.space.judged] for state in states]
    density_scale = choose_scale(np.array([[v.min(), v.max()] for v in judged]), scale)
    colours = density_scale.colours
    members = [(row,) for row in range(len(axis.rows))]

    def draw(ax: Axes, member: Member, i: int) -> list[Artist]:
        rows = mixtures(panels.state(i, member), axis.rows)
        theta, values = chart.profiles([rows], members, MOST_ANGLES)
        edges = time_edges(theta, log_time=False)
        return [ax.pcolormesh(edges, axis.edges, values[:, 0], rasterized=True, **colours)]

    panels.each(draw)
    sparse = replace(chart, ticks=chart.ticks[::2], labels=chart.labels[::2])
    panels.frame(sparse, axis)
    density_bar(panels, density_scale, DENSITY_BY_INDEX)


@figure("order", Indexed, Circle, Sphere, Zonal, panels=(6.0, 3.4, 7))
def order(panels: Panels) -> None:
    """The order parameter |m_1| of the density at each index, at several times, coloured by time.

    Curves of positions are interrupted at breaks, where the densities may jump. Dotted curves are
    not resolved, and their times red.

    Parameters
    ----------
    solution : Solution
        Indexed densities.
    times : sequence of float, optional
        Times to show; those not saved as for `plot`. By default `count` saved ones, chosen so that
        the law moves equally far between them.
    count : int, optional
        How many, where `times` is not given; by default 7.
    bar : bool
        Whether a colour bar shows the times.

    Raises
    ------
    ValueError
        If a time lies outside the solution, a member does not exist, or too many are chosen.
    TypeError
        If the states are not indexed densities.
    """
    axis = axis_of(panels.solution.final.index)
    orders = [
        [order_of(panels.state(i, member), axis.points) for i in panels.times]
        for member in panels.members
    ]
    draw_curves(panels, [[(axis.places, y) for y in each] for each in orders])
    for ax, bottom, left in panels.outer:
        axis.draw_below(ax, named=bottom)
        ax.set(ylim=(0, ORDER_MARGIN * np.nanmax(orders)), ylabel=ORDER if left else "")


@figure("order_map", Indexed, Circle, Sphere, Zonal, panels=(7.0, 3.2))
def order_map(panels: Panels, *, log_time: bool | None = None) -> None:
    """Heat map of the order parameter |m_1| over time and index.

    Between saved times it is interpolated linearly, on the axis that is shown.

    Parameters
    ----------
    solution : Solution
        Indexed densities at two saved times or more.
    log_time : bool, optional
        Whether the axis of times is logarithmic, from the first saved time above 0 on;
        by default where saved times are spaced like numpy.geomspace.

    Raises
    ------
    ValueError
        If there are fewer than two saved times (above 0 with `log_time`), the member does not
        exist, or there are too many.
    TypeError
        If the states are not indexed densities.
    """
    solution, axis = panels.solution, axis_of(panels.solution.final.index)
    log_time = is_logarithmic(solution, log_time)
    need_two_times(solution, "A map over time", "order")
    columns, _ = columns_of_times(solution, MOST_COLUMNS, log_time=log_time)
    orders = [
        [order_of(panels.state(i, member), axis.rows) for i in columns] for member in panels.members
    ]
    t = np.log(solution.t[columns]) if log_time else solution.t[columns]
    t, fields = between(t, np.array(orders))
    times = time_edges(np.exp(t) if log_time else t, log_time=log_time)
    norm = Normalize(0, np.nanmax(fields))
    image = field_maps(panels, times, axis.edges, fields, norm, axis, log_time=log_time)
    panels.figure.colorbar(image, ax=panels.axes, label=ORDER, pad=0.02)
