"""Characteristics on the circle, or from pole to pole: quantiles of the mass over time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from ..spaces import Circle, Zonal
from ..spaces.characteristics import Characteristics
from . import theme
from .panels import drawing
from .portions import angles_along, colours_of, final_clusters, percent, quantiles
from .profiles import AROUND, axis_on
from .spaces import expect
from .time_axis import is_logarithmic, time_axis

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = [
    "CURVES",
    "angle_of",
    "check_curves",
    "draw_trajectories",
    "mark_ends",
    "trajectories",
    "turned",
]

CURVES = 50
LINE = 9.5  # height of a label in points


def trajectories(
    solution: "Solution",
    *,
    count: int = CURVES,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Quantiles of the mass over time: between each two curves lies the same mass.

    A curve is a characteristic: it belongs to a node that the flow carries, and has the colour of
    the cluster in which it ends. The clusters at the end are marked with their share of the mass.

    Parameters
    ----------
    solution : Solution
        Characteristics on the circle, or axisymmetric, at two saved times or more.
    count : int
        How many curves.
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
        If there are fewer than two saved times, or `count` is not positive.
    TypeError
        If the states are not characteristics on the circle or axisymmetric.
    """
    with drawing(ax, solution, None, title, width=7, height=3.6) as target:
        draw_trajectories(target.axes[0], solution, count)
    return target.figure


def draw_trajectories(ax: Axes, solution: "Solution", count: int = CURVES) -> None:
    """The curves and, at the end, the clusters."""
    expect(solution, Characteristics, Circle, Zonal)
    check_curves(solution, count, "distribution")
    nodes = quantiles(solution[0], count)
    angles = np.array([angles_along(state)[nodes] for state in solution])
    axis = axis_on(solution.final.geometry)
    for curve, colour in zip(angles.T, colours_of(solution, nodes), strict=True):
        for copy in turned(curve) if axis is AROUND else [curve]:
            ax.plot(solution.t, copy, color=colour, linewidth=0.8, alpha=0.8)
    ax.set(ylim=axis.limits, ylabel=axis.name)
    ax.set_yticks(axis.ticks, axis.labels)
    ax.set_title(f"{percent(1 / count)} of the mass between curves", loc="left", fontsize=9)
    time_axis(ax, solution, log_time=is_logarithmic(solution, None))
    clusters = final_clusters(solution)
    places = np.array([angle_of(cluster.point) for cluster in clusters])
    mark_ends(ax, solution.t[-1], places, [cluster.mass for cluster in clusters])


def check_curves(solution: "Solution", count: int, other: str) -> None:
    """Raise ValueError if there is no curve to draw; `other` is the kind of plot for one time."""
    if len(solution) < 2:
        raise ValueError(
            f"Trajectories need at least two saved times; got {len(solution)}. Use "
            f"kind='{other}', or solve with more times in t_eval."
        )
    if count < 1:
        raise ValueError(f"count must be at least 1; got {count}.")


def turned(curve: np.ndarray) -> list[np.ndarray]:
    """A curve on the circle at all the turns at which it is seen in [-pi, pi].

    One that crosses pi leaves the panel at the top while its copy enters at the bottom.
    """
    turns = np.floor((np.array([curve.min(), curve.max()]) + np.pi) / (2 * np.pi)).astype(int)
    return [curve - 2 * np.pi * turn for turn in range(turns[0], turns[1] + 1)]


def angle_of(point: np.ndarray) -> float:
    """The angle of a point on the circle, in [-pi, pi); for a pole of an axis its polar angle."""
    if point.size == 2:
        return float(np.mod(np.arctan2(point[1], point[0]) + np.pi, 2 * np.pi) - np.pi)
    return 0.0 if point[-1] > 0 else np.pi


def mark_ends(ax: Axes, end: float, places: np.ndarray, masses: Sequence[float]) -> None:
    """A disc for each cluster at the time `end`, and its share of the mass beside the panel."""
    if not len(places):
        return
    low, high = ax.get_ylim()
    height = 72 * ax.figure.bbox.height / ax.figure.dpi * ax.get_position().height
    room = LINE / height * (high - low)
    halo = [withStroke(linewidth=1.6, foreground="white")]
    labels = _apart(places, room, (low, high))
    for i, (place, mass, label) in enumerate(zip(places, masses, labels, strict=True)):
        colour = theme.PALETTE[i % len(theme.PALETTE)]
        size = 2.5 + 4.0 * np.sqrt(mass)
        ax.plot(end, place, "o", color=colour, ms=size, clip_on=False, zorder=6)
        ax.annotate(
            percent(mass),
            (1.0, label),
            xycoords=ax.get_yaxis_transform(),
            xytext=(6, 0),
            textcoords="offset points",
            ha="left",
            va="center",
            color=colour,
            fontsize=9,
            path_effects=halo,
        )


def _apart(places: np.ndarray, room: float, limits: tuple[float, float]) -> np.ndarray:
    """The places moved as little as it takes to lie `room` apart, inside the limits if they fit."""
    order = np.argsort(places, kind="stable")
    steps = room * np.arange(len(places))
    # Without the steps, places at least 0 apart: the nearest increasing sequence.
    free = places[order] - steps
    rising = np.array([_isotonic(free, i) for i in range(len(free))])
    low, high = limits[0], limits[1] - steps[-1]
    moved = np.empty_like(places)
    moved[order] = np.clip(rising, low, max(low, high)) + steps
    return moved


def _isotonic(values: np.ndarray, i: int) -> float:
    """The value at i of the increasing sequence nearest to `values`, by its min-max formula."""
    n = len(values)
    return max(min(values[a : b + 1].mean() for b in range(i, n)) for a in range(i + 1))
