"""The moving panels of a movie of characteristics, and of tokens on the sphere."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure

from ..spaces import Circle
from . import ensemble, theme
from .circle_movie import moving_line
from .distribution import cumulated, distribution_axes
from .dots import chosen_pair, clusters_at, dot_key, points_of, portions_on, scatter
from .movies import Update
from .polar import QUARTERS
from .portions import colours_of, percent, quantiles
from .rings import ring_axes
from .sphere_movie import reddened
from .sphere_sheet import member_of
from .sphere_views import globe, mark_cluster, name_sides
from .trajectories import CURVES

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["dots_scene", "meridian_scene", "redrawn"]

POLES = ((0.5, "$0$"), (0.0, r"$\pi/2$"), (1.5, r"$\pi$"))


def meridian_scene(
    top: SubFigure, solution: "Solution", members: list[tuple[int, ...]], scale: str
) -> list[Update]:
    """How the mass adds up over the angle, and dots of equal mass on the circle.

    Axisymmetric measures are shown on a meridian and on the one opposite, the axis upright.
    """
    left, right = top.subplots(1, 2, width_ratios=[1.35, 1.0])
    distribution_axes(left, solution)
    curves = [cumulated(state) for state in solution]
    return [
        moving_line(left, solution, curves, theme.PALETTE[0]),
        _moving_ring(right, solution),
    ]


def dots_scene(
    top: SubFigure,
    solution: "Solution",
    members: list[tuple[int, ...]],
    scale: str,
    *,
    seen_from: Sequence[float] | None = None,
) -> list[Update]:
    """Tokens, or pieces of the mass, as dots, from two opposite sides that stay the same."""
    ax, (member,) = top.subplots(), members
    ax.set_title(ensemble.label(solution, member))
    pair = chosen_pair(member_of(solution.final, member), seen_from, beside=True)
    outline = globe(ax, pair, theme.INK)
    portions = portions_on(solution, member)
    dots = scatter(ax, pair, portions, member_of(solution[0], member))
    name_sides(ax, pair)
    dot_key(top, [portions])

    def marked(i: int) -> Iterable[Artist]:
        for cluster in clusters_at(member_of(solution[i], member)):
            yield from mark_cluster(ax, pair, cluster.point, cluster.mass)

    def move(i: int) -> None:
        points = points_of(member_of(solution[i], member))
        dots.set_offsets(pair.place(points[portions.nodes]))

    return [move, redrawn(marked), reddened(outline, solution)]


def _moving_ring(ax: Axes, solution: "Solution") -> Update:
    nodes = quantiles(solution[0], CURVES)
    colours = colours_of(solution, nodes)
    flat = isinstance(solution.final.geometry, Circle)
    ring_axes(ax, QUARTERS if flat else POLES)
    sides = (1,) if flat else (1, -1)
    ax.set_xlabel(f"dots: {percent(1 / CURVES / len(sides))} of the mass each")
    dots = ax.scatter(
        *_across(solution[0].points[nodes], sides).T, s=16, c=colours * len(sides), alpha=0.7
    )

    def named(i: int) -> Iterable[Artist]:
        for cluster in solution[i].clusters():
            place = 1.24 * cluster.point[[0, -1]]
            yield ax.text(*place, percent(cluster.mass), fontsize=9, ha="center", va="center")

    name = redrawn(named)

    def update(i: int) -> None:
        dots.set_offsets(_across(solution[i].points[nodes], sides))
        name(i)

    return update


def _across(points: np.ndarray, sides: Sequence[int]) -> np.ndarray:
    """The first and the last component of points, on both sides of an axis if there are two."""
    return np.concatenate([points[:, [0, -1]] * [side, 1] for side in sides])


def redrawn(draw: Callable[[int], Iterable[Artist]]) -> Update:
    """What `draw` draws of a saved state; it is removed before the next."""
    drawn: list[Artist] = []

    def update(i: int) -> None:
        for artist in drawn:
            artist.remove()
        drawn[:] = draw(i)

    return update
