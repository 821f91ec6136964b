"""Densities over the angle, on the circle or from an axis: space-time map, and snapshots."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure

from . import resolution, theme
from .density_bar import density_bar
from .digits import distinct
from .panels import Panels, drawing
from .profiles import AngleAxis, angles_of, profiles
from .scales import EXPONENT, Scale, choose_scale
from .times import pick_times

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["draw_snapshots", "draw_spacetime", "snapshots", "spacetime", "time_bar"]

MOST_COLUMNS, MOST_ROWS = 2000, 1536  # beyond, a heat map has more cells than a page has dots
FEWEST_COLUMNS = 600  # below, its cells show
DENSITY = r"density $\mu_t(\theta)$"


def spacetime(
    solution: "Solution",
    *,
    ax: Axes | None = None,
    member: int | tuple[int, ...] | None = None,
    scale: str = "auto",
    title: str | None = None,
) -> Figure:
    """Heat map of the density over time and angle.

    Between saved times the density is interpolated linearly. The mark on the colour bar is the
    uniform state, 1.

    Parameters
    ----------
    solution : Solution
        Densities on the circle, or axisymmetric, at two saved times or more.
    ax : Axes, optional
        Draw here rather than in a new figure.
    member : int or tuple of int, optional
        Member of an ensemble; by default one panel for each, at most nine.
    scale : {"auto", "linear", "log", "power"}
        Colour scale; "auto" is logarithmic if a peak exceeds 30 times the mean.
    title : str, optional
        Heading; by default the model, and none if it is "". Not used with `ax`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If there are fewer than two saved times, the member does not exist, or there are too many.
    TypeError
        If the states are neither densities on the circle nor axisymmetric.
    """
    with drawing(ax, solution, member, title, width=7, height=3.2) as target:
        draw_spacetime(target, solution, scale)
    return target.figure


def draw_spacetime(target: Panels, solution: "Solution", scale: str) -> None:
    """Heat maps in all panels, with one colour bar for all."""
    if len(solution.t) < 2:
        raise ValueError(
            f"A space-time map needs at least two saved times; got {len(solution.t)}. Use "
            "kind='snapshots', or solve with more times in t_eval."
        )
    count = len(solution.t)
    kept = np.unique(np.linspace(0, count - 1, min(count, MOST_COLUMNS)).round().astype(int))
    theta, values = profiles(solution, target.members, times=kept, most_angles=MOST_ROWS)
    angles = angles_of(solution)
    chosen = choose_scale(_within(theta, values, angles), scale)
    for (ax, bottom, left), density in zip(target.outer, chosen.shown(values), strict=True):
        times, smooth = _between(np.asarray(solution.t)[kept], density)
        mesh = ax.pcolormesh(
            times,
            theta,
            smooth.T,
            norm=chosen.norm,
            cmap=theme.DENSITY_MAP,
            shading="nearest",
            rasterized=True,
        )
        ax.set(xlim=(solution.t[0], solution.t[-1]), ylim=angles.limits)
        ax.set_yticks(angles.ticks, angles.labels if left else [])
        ax.set_xlabel("time $t$" if bottom else "")
        ax.set_ylabel(angles.name if left else "")
        for spine in ax.spines.values():
            spine.set_visible(True)
        resolution.hatch(ax, solution)
    density_bar(target.figure, target.axes, mesh, chosen, DENSITY, rows=target.rows)


def _between(t: np.ndarray, density: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Linear interpolation in time, at equally many times between each two; density (m, n)."""
    pieces = -(-FEWEST_COLUMNS // (len(t) - 1))
    place = np.arange(pieces * (len(t) - 1) + 1) / pieces
    before = np.minimum(place.astype(int), len(t) - 2)
    part = place - before
    rows = density[before] + part[:, None] * (density[before + 1] - density[before])
    return t[before] + part * (t[before + 1] - t[before]), rows


def snapshots(
    solution: "Solution",
    *,
    times: Sequence[float] | None = None,
    count: int = 7,
    ax: Axes | None = None,
    member: int | tuple[int, ...] | None = None,
    scale: str = "auto",
    title: str | None = None,
) -> Figure:
    """Density over the angle at several times, coloured by time.

    The dashed line is the uniform state, 1. Dotted curves are not resolved, and their times red.

    Parameters
    ----------
    times : sequence of float, optional
        Times to show: the nearest saved ones are taken, and labelled as they are. By default
        `count` times spread evenly along the path of the density, so that fast and slow phases
        are shown alike.
    count : int
        How many, where `times` is not given.
    solution, ax, member, scale, title
        As for `spacetime`; "power" is a power scale of the vertical axis.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If a time lies outside the solution, the member does not exist, or there are too many.
    TypeError
        If the states are neither densities on the circle nor axisymmetric.
    """
    with drawing(ax, solution, member, title, width=6, height=3.4) as target:
        draw_snapshots(target, solution, pick_times(solution, target.members, times, count), scale)
    return target.figure


def draw_snapshots(
    target: Panels, solution: "Solution", times: np.ndarray, scale: str, *, bar: bool = True
) -> None:
    """Curves in all panels at the saved times of index `times`, and one bar of the times."""
    theta, values = profiles(solution, target.members, times=times)
    angles = angles_of(solution)
    chosen = choose_scale(_within(theta, values, angles), scale)
    resolved = resolution.resolved_states(solution)[times]
    colours = theme.ordered_colours(len(times))
    for (ax, bottom, left), curves in zip(target.outer, values, strict=True):
        for curve, colour, known in zip(curves, colours, resolved, strict=True):
            ax.plot(theta, curve, color=colour, linestyle="-" if known else ":")
        uniform_line(ax)
        angle_axis(ax, chosen, angles)
        ax.set_xlabel(angles.name if bottom else "")
        ax.set_ylabel(DENSITY + chosen.note if left else "")
    if bar:
        time_bar(target, solution, times)


def uniform_line(ax: Axes) -> None:
    """The uniform state, density 1."""
    ax.axhline(1.0, color=theme.FAINT, linewidth=1.0, linestyle=(0, (5, 3)), zorder=1)


def _within(theta: np.ndarray, values: np.ndarray, angles: AngleAxis) -> np.ndarray:
    return values[..., (theta >= angles.limits[0]) & (theta <= angles.limits[1])]


def angle_axis(ax: Axes, scale: Scale, angles: AngleAxis) -> None:
    """Angles beneath, densities on `scale` at the side."""
    ax.set_xlim(angles.limits)
    ax.set_xticks(angles.ticks, angles.labels)
    if scale.name == "log":
        ax.set_yscale("log")
        ax.set_ylim(scale.low, 1.4 * scale.high)
        return
    if scale.name == "power":
        ax.set_yscale("function", functions=(_power, _root))
    low = min(0.0, scale.low)
    ax.set_ylim(low, max(scale.high, 1.0) + 0.06 * (max(scale.high, 1.0) - low))


def _power(values: np.ndarray) -> np.ndarray:
    return np.sign(values) * np.abs(values) ** EXPONENT


def _root(values: np.ndarray) -> np.ndarray:
    return np.sign(values) * np.abs(values) ** (1 / EXPONENT)


def time_bar(target: Panels, solution: "Solution", times: np.ndarray) -> None:
    """A bar of one colour for each time shown."""
    count = len(times)
    colours = ListedColormap(theme.ordered_colours(count))
    norm = BoundaryNorm(np.arange(count + 1) - 0.5, count)
    bar = target.figure.colorbar(
        ScalarMappable(norm, colours),
        ax=target.axes,
        label="time $t$",
        ticks=np.arange(count),
        aspect=26 * target.rows,
        pad=0.02,
    )
    shown = distinct(np.asarray(solution.t)[times])
    names = bar.ax.set_yticklabels([f"${text}$" for text in shown])
    for name, known in zip(names, resolution.resolved_states(solution)[times], strict=True):
        if not known:
            name.set_color(theme.WARNING)
    bar.ax.tick_params(length=0, which="both")
    bar.outline.set_linewidth(matplotlib.rcParams["axes.linewidth"])
