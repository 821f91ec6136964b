"""Snapshots drawn around the unit circle."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator

from . import resolution, theme
from .circle import time_bar
from .panels import Panels, drawing
from .profiles import profiles
from .scales import Scale, choose_scale
from .times import pick_times

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["RADIUS", "draw_polar", "dress", "polar", "ring"]

RADIUS = r"radius: density $\mu_t(\theta)$"
TURN = np.linspace(0.0, 2 * np.pi, 361)
CENTRED = {"ha": "center", "va": "center"}
PATCH = {"bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.6}}
QUARTERS = ((0.0, "$0$"), (0.5, r"$\pi/2$"), (1.0, r"$\pi$"), (1.5, r"$-\pi/2$"))


def polar(
    solution: "Solution",
    *,
    times: Sequence[float] | None = None,
    count: int = 5,
    ax: Axes | None = None,
    member: int | tuple[int, ...] | None = None,
    scale: str = "auto",
    title: str | None = None,
) -> Figure:
    """Density around the unit circle at several times, coloured by time.

    A density u is drawn at the radius 1 + h(u), where h grows from 0 to 1 at the largest value
    shown: linearly, or as a power if a peak exceeds 30 times the mean. The thick circle is u <= 0,
    the dashed one the uniform state u = 1. Dotted curves are not resolved.

    Parameters
    ----------
    solution, times, count, ax, member, scale, title
        As for `snapshots`; `ax` is an ordinary (not a polar) axes, and "log" takes
        h(u) proportional to log(1 + u).

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If a time lies outside the solution, the member does not exist, or there are too many.
    TypeError
        If the states are not densities on the circle.
    """
    with drawing(ax, solution, member, title, width=5.2, height=4.4) as target:
        draw_polar(target, solution, pick_times(solution, target.members, times, count), scale)
    return target.figure


def draw_polar(
    target: Panels, solution: "Solution", times: np.ndarray, scale: str, *, bar: bool = True
) -> None:
    """Closed curves in all panels at the saved times of index `times`."""
    theta, values = profiles(solution, target.members, times=times)
    chosen = choose_scale(values, scale, heavy="power")
    resolved = resolution.resolved_states(solution)[times]
    colours = theme.ordered_colours(len(times))
    for (ax, bottom, _), curves in zip(target.outer, values, strict=True):
        dress(ax, chosen, quiet_angle(theta, curves))
        for curve, colour, known in zip(curves, colours, resolved, strict=True):
            ax.plot(*ring(theta, curve, chosen), color=colour, linestyle="-" if known else ":")
        if bottom:
            ax.set_xlabel(RADIUS + chosen.note)
    if bar:
        time_bar(target, solution, times)


def ring(theta: np.ndarray, density: np.ndarray, scale: Scale) -> np.ndarray:
    """Closed curve of shape (2, n) at the radius 1 + height of the density."""
    # The grid overhangs by one point on either side; from the second to the last it closes.
    return (1.0 + scale.height(density[1:])) * np.array([np.cos(theta[1:]), np.sin(theta[1:])])


def quiet_angle(theta: np.ndarray, curves: np.ndarray) -> float:
    """Angle at which the largest of the curves is smallest: free for the names of the circles."""
    return float(theta[np.max(curves, axis=0).argmin()])


def dress(ax: Axes, scale: Scale, angle: float) -> None:
    """Unit circle, circles of equal density named at `angle`, names of the angles; no frame."""
    circle = np.array([np.cos(TURN), np.sin(TURN)])
    ax.plot(*circle, color=theme.INK, linewidth=1.6, zorder=1)
    for level in _levels(scale):
        radius = 1.0 + scale.height(np.array(level))
        ax.plot(*(radius * circle), color=theme.FAINT, linewidth=0.5, alpha=0.6, zorder=0)
        ax.text(*_at(radius, angle), f"{level:g}", color="#666666", fontsize=8, **CENTRED, **PATCH)
    uniform = 1.0 + scale.height(np.array(1.0))
    dashes = {"linewidth": 1.0, "linestyle": (0, (5, 3))}
    ax.plot(*(uniform * circle), color=theme.FAINT, zorder=1, **dashes)
    for quarter, name in QUARTERS:
        ax.text(*_at(0.82, quarter * np.pi), name, fontsize=9, **CENTRED)
    ax.set_aspect("equal")
    ax.set(xlim=(-2.1, 2.1), ylim=(-2.1, 2.1), xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_visible(False)


def _at(radius: float, angle: float) -> tuple[float, float]:
    return radius * np.cos(angle), radius * np.sin(angle)


def _levels(scale: Scale) -> list[float]:
    """Densities to draw a circle for: a few round numbers up to the largest, with 1."""
    if scale.name == "linear":
        levels = MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(0.0, scale.high)
    else:
        levels = LogLocator(base=10).tick_values(1.0, scale.high)
    # Closer to the uniform circle than a digit is high, a name could not be read.
    room = scale.height(np.array(1.0)) + 0.13
    return [1.0] + [
        float(x)
        for x in levels
        if x <= scale.high * (1 + 1e-9) and scale.height(np.array(x)) > room
    ]
