"""The moving panels of a movie of densities on the sphere."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure
from matplotlib.patches import PathPatch

from . import resolution, theme
from .density_bar import density_bar
from .movies import Update
from .panels import grid
from .projections import OrthographicPair
from .scales import Scale, choose_scale
from .sphere import pair_for
from .sphere_sheet import member_of
from .sphere_views import DENSITY, name_sides, paint, pixels

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["reddened", "sphere_scene"]

PER_UNIT = 160


def sphere_scene(
    top: SubFigure,
    solution: "Solution",
    members: list[tuple[int, ...]],
    scale: str,
    *,
    seen_from: Sequence[float] | None = None,
) -> list[Update]:
    """Each member from two opposite sides, which stay the same throughout the movie."""
    # The grid is fine enough for the ends of the scale, and need not be kept for every time.
    ends = [(state.values.min(), state.values.max()) for state in solution]
    chosen = choose_scale(np.array(ends), scale)
    target = grid(top, members, solution)
    updates = []
    for ax, member in zip(target.axes, members, strict=True):
        pair = pair_for(member_of(solution.final, member), seen_from, beside=True)
        updates.append(_moving_pair(ax, pair, solution, member, chosen))
        if len(members) == 1:
            name_sides(ax, pair)
    picture, rows = target.axes[-1].images[0], target.rows
    density_bar(top, target.axes, picture, chosen, DENSITY, rows=rows, short=rows == 1)
    return updates


def _moving_pair(
    ax: Axes,
    pair: OrthographicPair,
    solution: "Solution",
    member: tuple[int, ...],
    scale: Scale,
) -> Update:
    """Views that go through the states; the outline of what is not resolved is red."""

    def image(i: int) -> np.ndarray:
        return scale.shown(pixels(pair, member_of(solution[i], member), PER_UNIT))

    picture, outline = paint(ax, pair, image(0), scale)
    redden = reddened(outline, solution)

    def update(i: int) -> None:
        picture.set_data(image(i))
        redden(i)

    return update


def reddened(outline: PathPatch, solution: "Solution") -> Update:
    """An outline that is red where the state is not resolved."""
    resolved = resolution.resolved_states(solution)
    return lambda i: outline.set(
        edgecolor=theme.INK if resolved[i] else theme.WARNING,
        linewidth=0.7 if resolved[i] else 2.0,
    )
