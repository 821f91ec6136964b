"""Indexed densities: maps of index against angle, and the order parameter by index.

The kinds of a density, such as "snapshots", draw the marginal law of the points.
"""

from dataclasses import replace

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from ..results.solution import Solution
from ..spaces import Circle, Sphere, Zonal
from ..spaces.indexed import Indexed
from . import theme
from .curves import draw_curves
from .fields import MOST_COLUMNS, between, choose_scale, density_bar, field_maps, visible_chart
from .indices import axis_of
from .labels import Member, member_of
from .layouts import Draw, Panels
from .registry import figure
from .times import columns_of_times, is_logarithmic, need_two_times, time_edges

DENSITY_BY_INDEX = r"density $\mu_s(\theta)$"
ORDER = r"order parameter $|m_1(s)|$"
MOST_ANGLES = 256
ORDER_MARGIN = 1.06


@figure("map", Indexed, Circle, Zonal, sheet=(4, 1.0, 4))
def index_map(page: Panels, solution: Solution, *, scale: str = "auto") -> None:
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
        Times to show: the nearest saved ones are taken, and labelled as they are. By default
        `count` times spread evenly along the path of the densities; in an `ax` the last.
    count : int, optional
        How many, where `times` is not given; by default 4, or 3 for several members.
    scale : {"auto", "linear", "log", "power"}
        Colour scale, common to all panels; "auto" is logarithmic if a peak exceeds 30 times the
        mean.

    Raises
    ------
    ValueError
        If a time lies outside the solution, the member does not exist, or there are too many.
    TypeError
        If the states are not indexed densities on the circle, or axisymmetric.
    """
    axis, chart = axis_of(solution.final.index), visible_chart(solution)
    states = [member_of(solution[i], m) for i in page.times for m in page.members]
    judged = [state.values[state.space.judged] for state in states]
    chosen = choose_scale(np.array([[v.min(), v.max()] for v in judged]), scale)
    colours = {"norm": chosen.norm, "cmap": theme.DENSITY_MAP}
    members = [(row,) for row in range(len(axis.rows))]

    def prepare(member: Member, _row: list[tuple[Axes, int]]) -> Draw:
        def draw(ax: Axes, i: int) -> list[Artist]:
            rows = axis.densities(member_of(solution[i], member))
            theta, values = chart.profiles([rows], members, MOST_ANGLES)
            middles = (theta[1:] + theta[:-1]) / 2
            edges = np.concatenate([theta[:1], middles, theta[-1:]])
            return [ax.pcolormesh(edges, axis.edges, values[:, 0], rasterized=True, **colours)]

        return draw

    page.each(prepare)
    few = replace(chart, ticks=chart.ticks[::2], labels=chart.labels[::2])
    for ax, bottom, left in page.outer:
        name = ax.get_ylabel()
        few.beneath(ax, named=bottom)
        axis.beside(ax, named=left)
        if name:  # label of a member
            ax.set_ylabel(f"{name}\n{axis.name}")
        ax.spines[:].set_visible(True)
    density_bar(page, ScalarMappable(**colours), chosen, DENSITY_BY_INDEX)


@figure("order", Indexed, Circle, Sphere, Zonal, panels=(6.0, 3.4, 7))
def order(target: Panels, solution: Solution) -> None:
    """The order parameter |m_1| of the density at each index, at several times, coloured by time.

    Curves of positions are interrupted at breaks, where the densities may jump. Dotted curves are
    not resolved, and their times red.

    Parameters
    ----------
    solution : Solution
        Indexed densities.
    times : sequence of float, optional
        Times to show: the nearest saved ones are taken, and labelled as they are. By default
        `count` times spread evenly along the path of the densities.
    count : int, optional
        How many, where `times` is not given; by default 7.
    bar : bool
        Whether a colour bar shows the times.

    Raises
    ------
    ValueError
        If a time lies outside the solution, the member does not exist, or there are too many.
    TypeError
        If the states are not indexed densities.
    """
    axis = axis_of(solution.final.index)
    orders = [
        [axis.order_at_places(member_of(solution[i], member)) for i in target.times]
        for member in target.members
    ]
    draw_curves(target, solution, [[(axis.places, y) for y in each] for each in orders])
    for ax, bottom, left in target.outer:
        axis.beneath(ax, named=bottom)
        ax.set(ylim=(0, ORDER_MARGIN * np.nanmax(orders)), ylabel=ORDER if left else "")


@figure("order_map", Indexed, Circle, Sphere, Zonal, panels=(7.0, 3.2))
def order_map(target: Panels, solution: Solution, *, log_time: bool | None = None) -> None:
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
    log_time, axis = is_logarithmic(solution, log_time), axis_of(solution.final.index)
    need_two_times(solution, "A map over time", "order")
    kept, _ = columns_of_times(solution, MOST_COLUMNS, log_time=log_time)
    orders = [
        [axis.order_of_rows(member_of(solution[i], member)) for i in kept]
        for member in target.members
    ]
    t = np.log(solution.t[kept]) if log_time else solution.t[kept]
    t, fields = between(t, np.array(orders))
    times = time_edges(np.exp(t) if log_time else t, log_time=log_time)
    norm = Normalize(0, np.nanmax(fields))
    mesh = field_maps(target, solution, times, axis.edges, fields, norm, axis, log_time=log_time)
    target.figure.colorbar(mesh, ax=target.axes, label=ORDER, pad=0.02)
