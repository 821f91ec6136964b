"""Tokens around the unit circle at several times."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from ..spaces import Circle
from ..states import Tokens
from . import theme
from .crowds import Crowd, crowd_of, grey_first, named
from .polar import QUARTERS
from .portions import percent
from .spaces import expect_tokens
from .sphere_sheet import choose, finished, sheet, time_views
from .token_trajectories import opacity

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["MOST_DOTS", "crowd_dots", "name_gatherings", "ring_axes", "rings"]

TURN = np.linspace(0.0, 2 * np.pi, 361)
CENTRED = {"ha": "center", "va": "center"}
MOST_DOTS = 5000


def rings(
    solution: "Solution",
    *,
    times: Sequence[float] | None = None,
    count: int | None = None,
    clusters: bool = True,
    ax: Axes | None = None,
    member: int | tuple[int, ...] | None = None,
    title: str | None = None,
) -> Figure:
    """Tokens on the unit circle at several times, each a dot.

    A dot has the colour of the cluster in which its token ends, grey in none, and an area
    proportional to its mass. Clusters are named by their share of the mass.

    Parameters
    ----------
    solution : Solution
        Tokens on the circle.
    times : sequence of float, optional
        Times to show: the nearest saved ones are taken, and labelled as they are. By default
        `count` times spread evenly along the path of the tokens; in an `ax` the last.
    count : int, optional
        How many, where `times` is not given; by default 6, or 3 for several members.
    clusters : bool
        Whether to write the shares of clusters.
    ax : Axes, optional
        Draw one time here rather than in a new figure.
    member : int or tuple of int, optional
        Member of an ensemble; by default one row for each, at most nine.
    title : str, optional
        Heading; by default the model, and none if it is "". Not used with `ax`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If a time lies outside the solution, the member does not exist, or there are too many.
    TypeError
        If the states are not tokens on the circle.
    """
    expect_tokens(solution, Circle)
    members, shown = choose(solution, ax, member, times, count, 6)
    with theme.style():
        axes, _ = sheet(ax, members, shown, ratio=1.0, most=3)
        views = time_views(solution, axes, [None] * len(members), members, shown)
        crowds = [crowd_of(solution, m, MOST_DOTS) for m in members]
        for i, view in enumerate(views):
            ring_axes(view.ax, QUARTERS)
            crowd_dots(view.ax, crowds[i // len(shown)], view.state.x)
            view.head()
            if clusters:
                name_gatherings(view.ax, view.state)
        return finished(axes[0][0].figure.figure, solution, ax, title)


def ring_axes(ax: Axes, names: Sequence[tuple[float, str]]) -> None:
    """The unit circle, its angles, named in units of pi, inside it; no frame."""
    ax.plot(np.cos(TURN), np.sin(TURN), color=theme.FAINT, linewidth=0.7, zorder=1)
    for quarter, name in names:
        place = 0.8 * np.array([np.cos(quarter * np.pi), np.sin(quarter * np.pi)])
        ax.text(*place, name, fontsize=9, **CENTRED)
    ax.set_aspect("equal")
    ax.set(xlim=(-1.45, 1.45), ylim=(-1.3, 1.3), xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_visible(False)


def crowd_dots(ax: Axes, crowd: Crowd, places: np.ndarray) -> PathCollection:
    """Dots of the crowd at the `places` (n, 2) of all tokens."""
    order = grey_first(crowd)
    count = len(order)
    area = float(np.clip(1500 / count, 2.0, 22.0))
    return ax.scatter(
        *places[crowd.tokens[order]].T,
        s=area * np.minimum(crowd.sizes[order], 20.0),
        c=list(crowd.colours[order]),
        alpha=opacity(count),
        linewidths=0,
        zorder=3,
        rasterized=count > MOST_DOTS // 10,
    )


def name_gatherings(ax: Axes, tokens: Tokens) -> list[Artist]:
    """Shares of the mass beside the circle, as far as there is room."""
    drawn = []
    for end in named(tokens):
        place = 1.23 * end.point / np.linalg.norm(end.point)
        drawn.append(ax.text(*place, percent(end.mass), fontsize=8, **CENTRED))
    return drawn
