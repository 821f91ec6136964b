"""The moving panels of a movie of tokens, but for those on the sphere, and of inner products."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import SubFigure

from . import ensemble, theme
from .characteristics_movie import redrawn
from .crowds import Crowd, crowd_of, grey_first
from .inner_products import NAME, SHARE, shares_at
from .movies import Update
from .planes import plane_axes, plane_of
from .polar import QUARTERS
from .rings import MOST_DOTS, crowd_dots, name_gatherings, ring_axes
from .sphere_sheet import member_of
from .token_trajectories import MOST_CURVES, draw_token_trajectories

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["cursor", "line_scene", "plane_scene", "products_scene", "ring_scene"]

Members = list[tuple[int, ...]]
BINS = 80


def ring_scene(top: SubFigure, solution: "Solution", members: Members, scale: str) -> list[Update]:
    """Angles over time with a line at the present, and the tokens on the circle."""
    left, right = top.subplots(1, 2, width_ratios=[1.35, 1.0])
    updates = _past(left, solution, members[0])
    ring_axes(right, QUARTERS)
    crowd = crowd_of(solution, members[0], MOST_DOTS)
    states = [member_of(state, members[0]) for state in solution]

    def named(i: int) -> Iterable[Artist]:
        return name_gatherings(right, states[i])

    dots = crowd_dots(right, crowd, states[0].x)
    moving = _moving(dots, crowd, [state.x for state in states])
    return [*updates, moving, redrawn(named)]


def line_scene(top: SubFigure, solution: "Solution", members: Members, scale: str) -> list[Update]:
    """Places over time, with a line at the present."""
    return _past(top.subplots(), solution, members[0])


def plane_scene(top: SubFigure, solution: "Solution", members: Members, scale: str) -> list[Update]:
    """Tokens in the plane, or on the principal axes of the run, with their paths so far."""
    ax, (member,) = top.subplots(), members
    plane = plane_of(solution, member)
    crowd = crowd_of(solution, member, MOST_DOTS)
    traced = crowd_of(solution, member, MOST_CURVES)
    states = [member_of(state, member) for state in solution]
    plane_axes(ax, plane, crowd, states)
    title = ", ".join(filter(None, [ensemble.label(solution, member), crowd.note]))
    ax.set_title(title, loc="left", fontsize=9)
    places = [plane.place(state.x) for state in states]
    trails = np.stack([place[traced.tokens] for place in places], axis=1)
    style = {"colors": list(traced.colours), "linewidths": 0.6, "alpha": 0.35, "zorder": 2}
    lines = ax.add_collection(LineCollection(list(trails[:, :1]), **style), autolim=False)
    dots = crowd_dots(ax, crowd, places[0])
    return [lambda i: lines.set_segments(list(trails[:, : i + 1])), _moving(dots, crowd, places)]


def products_scene(
    top: SubFigure, solution: "Solution", members: Members, scale: str
) -> list[Update]:
    """The histogram of inner products, on a logarithmic scale."""
    ax = top.subplots()
    ax.set_title(ensemble.label(solution, members[0]))
    edges = np.linspace(-1, 1, BINS + 1)
    stairs = ax.stairs(np.ones(BINS), edges, fill=True, color=theme.PALETTE[5], alpha=0.75)
    ax.set(xlim=(-1, 1), ylim=(1e-4, 1.5), yscale="log", xlabel=NAME, ylabel=SHARE)
    shares = [shares_at(state, members[0], BINS) for state in solution]
    return [lambda i: stairs.set_data(np.maximum(shares[i], 1e-9), edges, baseline=1e-9)]


def cursor(ax: Axes, solution: "Solution") -> Update:
    """A line at the present in a panel over time."""
    line = ax.axvline(solution.t[0], color=theme.INK, linewidth=1.0, zorder=6)
    return lambda i: line.set_xdata([solution.t[i]] * 2)


def _past(ax: Axes, solution: "Solution", member: tuple[int, ...]) -> list[Update]:
    draw_token_trajectories(ax, solution, member)
    return [cursor(ax, solution)]


def _moving(dots, crowd: Crowd, places: list[np.ndarray]) -> Update:
    """Dots, drawn by `crowd_dots`, that go through `places`."""
    order = crowd.tokens[grey_first(crowd)]
    return lambda i: dots.set_offsets(places[i][order])
