"""Tokens seen in a plane: their own, or that of the two principal axes of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from ..spaces import Circle, Sphere
from ..states import Tokens
from . import ensemble, theme
from .crowds import Crowd, crowd_of, grey_first
from .panels import drawing
from .rings import MOST_DOTS, TURN, crowd_dots
from .spaces import Space, expect_tokens
from .sphere_sheet import choose, finished, member_of, sheet, time_views
from .token_trajectories import MOST_CURVES, opacity

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = [
    "Plane",
    "draw_paths",
    "draw_projection",
    "paths",
    "plane_axes",
    "plane_of",
    "projection",
]

FEW = 32  # saved times from which the principal axes are found
MARGIN = 0.06


@dataclass(frozen=True)
class Plane:
    """The plane through `centre` (d,) with the orthonormal `axes` (2, d).

    Attributes
    ----------
    shares : ndarray, (2,), or None
        Of the second moment of the run that each axis holds; None for the plane of the tokens.
    """

    centre: np.ndarray
    axes: np.ndarray
    shares: np.ndarray | None

    def place(self, x: np.ndarray) -> np.ndarray:
        """Where points (..., d) are seen, (..., 2)."""
        return (x - self.centre) @ self.axes.T

    @property
    def names(self) -> tuple[str, str]:
        """Of the axes."""
        if self.shares is None:
            return "$x_1$", "$x_2$"
        first, second = (f"{100 * share:.0f}%" for share in self.shares)
        return f"axis 1 ({first})", f"axis 2 ({second})"


def plane_of(solution: "Solution", member: tuple[int, ...]) -> Plane:
    """The plane of tokens in R^2; else that of the principal axes over all times.

    On a sphere those of sum_i m_i x_i x_i^T, in R^d those of the covariance, averaged over times.
    The mean of the last state lies to the right and above.
    """
    last = member_of(solution.final, member)
    d = last.dimension
    if d == 2 and not last.on_sphere:
        return Plane(np.zeros(2), np.eye(2), None)
    kept = np.unique(np.linspace(0, len(solution) - 1, min(FEW, len(solution))).astype(int))
    states = [member_of(solution[i], member) for i in kept]
    centre = np.zeros(d)
    if not last.on_sphere:
        centre = np.mean([state.masses @ state.x for state in states], axis=0)
    second = np.zeros((d, d))
    for state in states:
        weighted = np.sqrt(state.masses)[:, None] * (state.x - centre)
        second += weighted.T @ weighted / len(states)
    values, vectors = np.linalg.eigh(second)
    axes = vectors[:, [-1, -2]].T
    signs = np.where(axes @ (last.masses @ last.x - centre) < 0, -1.0, 1.0)
    shares = values[[-1, -2]] / (values.sum() or 1.0)
    return Plane(centre, signs[:, None] * axes, shares)


def projection(
    solution: "Solution",
    *,
    times: Sequence[float] | None = None,
    count: int | None = None,
    ax: Axes | None = None,
    member: int | tuple[int, ...] | None = None,
    title: str | None = None,
) -> Figure:
    """Tokens on the two principal axes of the run at several times, each a dot.

    The axes are those of the second moment, averaged over all times, so that they stay the same;
    their names tell the share of it that each holds. A dot has the colour of the cluster in which
    its token ends, grey in none, and an area proportional to its mass. The projection of a sphere
    lies inside the circle.

    Parameters
    ----------
    solution : Solution
        Tokens in any dimension above 1; in R^2 they are seen in their own plane.
    times, count, ax, member, title
        As for `rings`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If a time lies outside the solution, the member does not exist, or there are too many.
    TypeError
        If the states are not tokens in more than one dimension.
    """
    expect_tokens(solution, Circle, Sphere, Space.HYPERSPHERE, Space.PLANE, Space.EUCLIDEAN)
    members, shown = choose(solution, ax, member, times, count, 6)
    with theme.style():
        axes, _ = sheet(ax, members, shown, ratio=1.0, most=3)
        draw_projection(solution, axes, members, shown)
        return finished(axes[0][0].figure.figure, solution, ax, title)


def draw_projection(
    solution: "Solution",
    axes: Sequence[Sequence[Axes]],
    members: Sequence[tuple[int, ...]],
    shown: np.ndarray,
) -> None:
    """Panels of all members at the saved times of index `shown`, with common limits in a row."""
    views = time_views(solution, axes, [None] * len(members), members, shown)
    for i, view in enumerate(views):
        row, column = divmod(i, len(shown))
        if column == 0:
            plane = plane_of(solution, members[row])
            crowd = crowd_of(solution, members[row], MOST_DOTS)
            states = [member_of(solution[k], members[row]) for k in shown]
        first = column == 0 and members[row] == ()
        plane_axes(view.ax, plane, crowd, states, named=first)
        crowd_dots(view.ax, crowd, plane.place(view.state.x))
        view.head()


def plane_axes(
    ax: Axes, plane: Plane, crowd: Crowd, states: Sequence[Tokens], *, named: bool = True
) -> None:
    """Equal scales that hold the crowd in all states; a circle around a projected sphere."""
    if states[0].on_sphere:
        ax.plot(np.cos(TURN), np.sin(TURN), color=theme.FAINT, linewidth=0.7, zorder=1)
        low, high = np.full(2, -1.0), np.ones(2)
    else:
        seen = [plane.place(state.x[crowd.tokens]) for state in states]
        low = np.min([places.min(axis=0) for places in seen], axis=0)
        high = np.max([places.max(axis=0) for places in seen], axis=0)
    half = (0.5 + MARGIN) * (high - low).max() or 1.0
    middle = (low + high) / 2
    ax.set(xlim=middle[0] + half * np.array([-1, 1]), ylim=middle[1] + half * np.array([-1, 1]))
    ax.set_aspect("equal")
    ax.locator_params(nbins=5)
    if named:
        ax.set(xlabel=plane.names[0], ylabel=plane.names[1])


def paths(
    solution: "Solution",
    *,
    count: int = MOST_CURVES,
    ax: Axes | None = None,
    member: int | tuple[int, ...] | None = None,
    title: str | None = None,
) -> Figure:
    """The paths of tokens in the plane, or on the two principal axes of the run.

    Paths begin in a small ring and end in a dot; they have the colour of the cluster in which
    they end, grey in none. The axes are those of `projection`.

    Parameters
    ----------
    solution : Solution
        Tokens in any dimension above 1.
    count : int
        At most how many paths.
    ax : Axes, optional
        Draw here rather than in a new figure.
    member : int or tuple of int, optional
        Member of an ensemble; by default all of them, at most nine.
    title : str, optional
        Heading; by default the model, and none if it is "". Not used with `ax`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If `count` is not positive, the member does not exist, or there are too many.
    TypeError
        If the states are not tokens in more than one dimension.
    """
    expect_tokens(solution, Circle, Sphere, Space.HYPERSPHERE, Space.PLANE, Space.EUCLIDEAN)
    if count < 1:
        raise ValueError(f"count must be at least 1; got {count}.")
    with drawing(ax, solution, member, title, width=5, height=4.6) as target:
        for panel, index in zip(target.axes, target.members, strict=True):
            draw_paths(panel, solution, index, count)
    return target.figure


def draw_paths(
    ax: Axes, solution: "Solution", member: tuple[int, ...], count: int = MOST_CURVES
) -> None:
    """The paths of one member, at most `count`."""
    plane, crowd = plane_of(solution, member), crowd_of(solution, member, count)
    states = [member_of(state, member) for state in solution]
    plane_axes(ax, plane, crowd, states)
    order = grey_first(crowd)
    tokens, colours = crowd.tokens[order], list(crowd.colours[order])
    places = np.stack([plane.place(state.x[tokens]) for state in states], axis=1)
    style = {"linewidths": 0.8, "alpha": opacity(len(tokens))}
    ax.add_collection(LineCollection(list(places), colors=colours, zorder=2, **style))
    rings = {"facecolors": "none", "edgecolors": colours, "linewidths": 0.6}
    ax.scatter(*places[:, 0].T, s=9, alpha=0.7, zorder=2.5, **rings)
    sizes = 14 * np.minimum(crowd.sizes[order], 20.0)
    ax.scatter(*places[:, -1].T, s=sizes, c=colours, linewidths=0, alpha=0.9, zorder=3)
    text = ", ".join(filter(None, [ensemble.label(solution, member), crowd.note]))
    ax.set_title("")
    ax.set_title(text, loc="left", fontsize=9)
