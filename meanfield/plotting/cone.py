"""Covariances [[a, c], [c, b]] as points (a - b, 2c, a + b) of a cone, or of a disc in it."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..core.checks import boolean
from ..states import Gaussian
from . import resolution, theme
from .panels import title_page
from .spaces import Space, expect

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["cone", "cone_points", "draw_cone", "draw_disc"]

TURN = np.linspace(0, 2 * np.pi, 181)
RULES = 12  # straight lines on the cone
NAMES = ("$a - b$", "$2c$", "$a + b$")


def cone(
    solution: "Solution",
    *,
    trace_one: bool = False,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """The path of the covariance [[a, c], [c, b]] in coordinates (a - b, 2c, a + b).

    Covariances are the cone a + b >= |(a - b, 2c)|: its tip is 0, its surface has rank 1, its axis
    the multiples of the identity. A path begins in a ring and ends in a dot. After a blow-up the
    last state, which is next to infinity, is left out.

    Parameters
    ----------
    solution : Solution
        A Gaussian in the plane.
    trace_one : bool
        Divide by the trace, which leaves the disc |(a - b, 2c)| <= a + b = 1: directions alone.
    ax : Axes, optional
        Draw here rather than in a new figure, which may show other paths too; with
        projection="3d" unless `trace_one`.
    title : str, optional
        Heading; by default the model, and none if it is "". Not used with `ax`.

    Returns
    -------
    Figure

    Raises
    ------
    TypeError
        If the states are not Gaussians in the plane, or `trace_one` is not True or False.
    ValueError
        If `ax` is not of the kind it should be.
    """
    expect(solution, Gaussian, Space.PLANE)
    trace_one = boolean("trace_one", trace_one)
    shape = "rectilinear" if trace_one else "3d"
    if ax is not None and ax.name != shape:
        raise ValueError(f'cone needs an ax with projection="{shape}" here; got "{ax.name}".')
    with theme.style():
        figure = theme.figure(width=4.8, height=4.6) if ax is None else ax.figure
        panel = figure.add_subplot(projection=shape) if ax is None else ax
        (draw_disc if trace_one else draw_cone)(panel, solution)
        return title_page(figure, solution, title) if ax is None else figure


def cone_points(solution: "Solution", *, trace_one: bool = False) -> np.ndarray:
    """The points (a - b, 2c, a + b) of all saved states, (m, 3)."""
    covs = np.array([state.trace_one if trace_one else state.cov for state in solution])
    a, b, c = covs[:, 0, 0], covs[:, 1, 1], covs[:, 0, 1]
    return np.stack([a - b, 2 * c, a + b], axis=1)


def draw_cone(ax: Any, solution: "Solution", colour: str = theme.PALETTE[0]) -> None:
    """The path in the cone, whose surface is drawn up to the highest point of the first path."""
    points = cone_points(resolution.before_blow_up(solution))
    if not ax.lines:
        _surface(ax, 1.05 * points[:, 2].max() or 1.0)
    ax.plot(*points.T, color=colour, linewidth=1.0)
    ax.plot(*points[0][:, None], "o", color=colour, markersize=3, markerfacecolor="none")
    ax.plot(*points[-1][:, None], "o", color=colour, markersize=3)


def _surface(ax: Any, height: float) -> None:
    faint: dict[str, Any] = {"color": theme.FAINT, "linewidth": 0.5}
    for angle in 2 * np.pi * np.arange(RULES) / RULES:
        ends = height * np.array([[0, np.cos(angle)], [0, np.sin(angle)], [0, 1]])
        ax.plot(*ends, **faint)
    rim = height * np.array([np.cos(TURN), np.sin(TURN), np.ones_like(TURN)])
    ax.plot(*rim, **faint)
    ax.plot([0, 0], [0, 0], [0, height], linestyle=":", **faint)
    ax.set(xlabel=NAMES[0], ylabel=NAMES[1], zlabel=NAMES[2])
    ax.set_box_aspect((1, 1, 0.8), zoom=0.85)
    ax.view_init(elev=18, azim=-60)
    ax.locator_params(nbins=4)
    ax.tick_params(labelsize=7, pad=-1)
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.labelpad = -3


def draw_disc(ax: Axes, solution: "Solution", colour: str = theme.PALETTE[0]) -> None:
    """The path in the disc of covariances of trace one, whose edge has rank 1."""
    if not ax.lines:
        ax.plot(np.cos(TURN), np.sin(TURN), color=theme.FAINT, linewidth=0.7)
        ax.set(xlabel="$(a - b)/(a + b)$", ylabel="$2c/(a + b)$", aspect="equal")
        ax.locator_params(nbins=5)
    x, y, _ = cone_points(resolution.before_blow_up(solution), trace_one=True).T
    ax.plot(x, y, color=colour, linewidth=1.0)
    ax.plot(x[:1], y[:1], "o", color=colour, markersize=3.5, markerfacecolor="none")
    ax.plot(x[-1:], y[-1:], "o", color=colour, markersize=3.5)
