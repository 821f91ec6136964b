"""Characteristics on the circle, or from pole to pole: how the mass adds up over the angle."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..spaces import Circle, Zonal
from ..spaces.characteristics import Characteristics
from . import resolution, theme
from .circle import time_bar
from .panels import Panels, drawing
from .portions import angles_along
from .profiles import axis_on
from .spaces import expect
from .times import pick_times

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["cumulated", "distribution", "distribution_axes", "draw_distribution"]


def distribution(
    solution: "Solution",
    *,
    times: Sequence[float] | None = None,
    count: int = 7,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """The mass below each angle at several times, coloured by time: a cluster is a jump.

    On the circle the mass is counted from -pi on; on a sphere from the pole at which the polar
    angle is 0. The dashed line is the uniform state. Dotted curves are not resolved.

    Parameters
    ----------
    solution : Solution
        Characteristics on the circle, or axisymmetric.
    times : sequence of float, optional
        Times to show: the nearest saved ones are taken, and labelled as they are. By default
        `count` times spread evenly along the path of the measure.
    count : int
        How many, where `times` is not given.
    ax : Axes, optional
        Draw here rather than in a new figure.
    title : str, optional
        Heading; by default the model, and none if it is "". Not used with `ax`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If a time lies outside the solution.
    TypeError
        If the states are not characteristics on the circle or axisymmetric.
    """
    expect(solution, Characteristics, Circle, Zonal)
    with drawing(ax, solution, None, title, width=6, height=3.4) as target:
        draw_distribution(target, solution, pick_times(solution, [()], times, count))
    return target.figure


def draw_distribution(target: Panels, solution: "Solution", times: np.ndarray) -> None:
    """Curves at the saved times of index `times`, and one bar of the times."""
    (ax,) = target.axes
    distribution_axes(ax, solution)
    resolved = resolution.resolved_states(solution)[times]
    for i, colour, known in zip(times, theme.ordered_colours(len(times)), resolved, strict=True):
        ax.plot(*cumulated(solution[i]), color=colour, linestyle="-" if known else ":")
    time_bar(target, solution, times)


def cumulated(state: Characteristics) -> tuple[np.ndarray, np.ndarray]:
    """Angles from one end of the axis to the other, and the mass below each.

    Half of the mass of a node lies below it.
    """
    low, high = axis_on(state.geometry).limits
    angles = angles_along(state)
    if isinstance(state.geometry, Circle):
        angles = low + np.mod(angles - low, high - low)
    order = np.argsort(angles, kind="stable")
    masses = state.masses[order]
    below = np.cumsum(masses) - masses / 2
    total = float(state.mass)
    return np.r_[low, angles[order], high], np.r_[0.0, below, total]


def distribution_axes(ax: Axes, solution: "Solution") -> None:
    """Angles beneath, masses at the side, and the line of the uniform state."""
    geometry = solution.final.geometry
    axis = axis_on(geometry)
    angles = np.linspace(*axis.limits, 361)
    ax.plot(
        angles,
        _uniform(geometry, angles),
        color=theme.FAINT,
        linewidth=1.0,
        linestyle=(0, (5, 3)),
        zorder=1,
    )
    ax.set(xlim=axis.limits, ylim=(-0.02, 1.02))
    ax.set_xticks(axis.ticks, axis.labels)
    ax.set(xlabel=axis.name, ylabel="mass below the angle")


def _uniform(geometry: Circle | Zonal, angles: np.ndarray) -> np.ndarray:
    """The mass of the uniform state below each angle, by the trapezoidal rule."""
    heights = np.sin(angles) ** (geometry.dimension - 2) if geometry.dimension > 2 else angles**0
    below = np.concatenate([[0.0], np.cumsum((heights[1:] + heights[:-1]) / 2)])
    return below / below[-1]
