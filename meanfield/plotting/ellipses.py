"""A normal law in the plane at several times: ellipses of one standard deviation."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..states import Gaussian
from . import theme
from .digits import distinct
from .panels import drawing
from .resolution import before_blow_up
from .spaces import Space, expect
from .times import pick_times, spread

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["draw_ellipses", "ellipse", "ellipses", "frame_ellipses"]

TURN = np.linspace(0, 2 * np.pi, 181)
LARGEST = 8.0  # times the extent at the start: what is larger leaves the panel
MARGIN = 1.08


def ellipses(
    solution: "Solution",
    *,
    times: Sequence[float] | None = None,
    count: int = 7,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Ellipses of one standard deviation at several times, and the path of the mean.

    Ellipses more than eight times as large as the first, as before a blow-up, leave the panel: they
    are drawn at given `times`, and else it is said when they leave it. The last state of a blow-up,
    which is next to infinity, is left out.

    Parameters
    ----------
    solution : Solution
        A Gaussian in the plane.
    times : sequence of float, optional
        The saved times nearest to these; by default `count` spread along the path of
        the law, as far as it is in the panel.
    count : int
        At most how many times.
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
        If a time lies outside the solution, or `count` is not positive.
    TypeError
        If the states are not Gaussians in the plane.
    """
    expect(solution, Gaussian, Space.PLANE)
    with drawing(ax, solution, None, title, width=5.4, height=4.4) as target:
        draw_ellipses(target.axes[0], solution, times, count)
    return target.figure


def draw_ellipses(
    ax: Axes, solution: "Solution", times: Sequence[float] | None, count: int
) -> None:
    """The ellipses at some saved times, from dark to light; see `ellipses`."""
    shown, states = pick_times(solution, [()], times, count), list(before_blow_up(solution))
    last = len(states) - 1
    if times is None:
        inside = _inside([ellipse(state) for state in states])
        shown, last = inside[spread([states[i] for i in inside], [()], count)], inside[-1]
    *texts, beyond = distinct(solution.t[[*shown, min(last + 1, len(states) - 1)]])
    colours = theme.ordered_colours(len(shown))
    ax.plot(*np.array([state.mean for state in states]).T, color=theme.FAINT, lw=0.8, zorder=1)
    curves = [ellipse(states[i]) for i in shown]
    for curve, i, text, colour in zip(curves, shown, texts, colours, strict=True):
        ax.plot(*curve, color=colour, linewidth=1.2, label=f"$t = {text}$")
        ax.plot(*states[i].mean, ".", color=colour, markersize=4)
    if last + 1 < len(states):
        ax.plot([], [], " ", label=f"outside from\n$t = {beyond}$ on")
    frame_ellipses(ax, curves)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)


def _inside(curves: Sequence[np.ndarray]) -> np.ndarray:
    """Indices of the curves (2, points) that are not much larger than the first."""
    sizes = np.array([np.abs(curve).max() for curve in curves])
    return np.flatnonzero(sizes <= LARGEST * (sizes[0] if sizes[0] > 0 else sizes.max()))


def frame_ellipses(ax: Axes, curves: Sequence[np.ndarray]) -> None:
    """Axes that hold all curves (2, points) but those that are much larger than the first."""
    points = np.concatenate([curves[i] for i in _inside(curves)], axis=1)
    low, high = points.min(axis=1), points.max(axis=1)
    middle, half = (low + high) / 2, (MARGIN * (high - low).max() / 2 or 1.0) * np.array([-1, 1])
    ax.set(xlim=middle[0] + half, ylim=middle[1] + half, xlabel="$x_1$", ylabel="$x_2$")
    ax.set_aspect("equal")
    ax.locator_params(nbins=5)


def ellipse(state: Gaussian) -> np.ndarray:
    """The curve a + L e(theta), L L^T = S, (2, points)."""
    return state.mean[:, None] + state.root @ np.array([np.cos(TURN), np.sin(TURN)])
