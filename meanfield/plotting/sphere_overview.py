"""The overview of densities on the sphere: maps, views from two sides and observables."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from ..spaces import Sphere
from . import ensemble, resolution, theme
from .digits import mathematical
from .observables import draw_observables
from .panels import grid, title_page
from .projections import Mollweide
from .quantities import energy_name
from .spaces import expect_densities_on
from .sphere import pair_for
from .sphere_sheet import member_of, time_views
from .sphere_views import View, draw_views, name_sides
from .times import pick_times

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["sphere_overview"]

Member = tuple[int, ...]


def sphere_overview(
    solution: "Solution",
    *,
    seen_from: Sequence[float] | None = None,
    clusters: bool = True,
    member: int | tuple[int, ...] | None = None,
    scale: str = "auto",
    title: str | None = None,
) -> Figure:
    """One page: maps at several times, the last density from two sides, observables.

    An ensemble gives the maps of its members at the last time, at most nine, above observables
    of all; a single saved time gives its map and the views from two sides.

    Parameters
    ----------
    solution, seen_from, clusters, member, scale, title
        As for `orthographic`, `clusters` for the two sides; all maps have the meridian phi = 0
        in the middle. Several members are shown by maps alone, which need no `seen_from`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If the direction is 0, the member does not exist, or there are too many.
    TypeError
        If the states are not densities on the sphere.
    """
    expect_densities_on(solution, Sphere)
    members = ensemble.choose(solution, member)
    with theme.style():
        if len(members) > 1:
            figure = _all_members(solution, members, scale)
        else:
            figure = _one_member(solution, members[0], seen_from, scale, clusters)
        return title_page(figure, solution, title)


def _one_member(
    solution: "Solution",
    member: Member,
    seen_from: Sequence[float] | None,
    scale: str,
    clusters: bool,
) -> Figure:
    shown = pick_times(solution, [member], None, 6)
    columns = min(len(shown), 3)
    rows = -(-len(shown) // columns)
    heights = [(3.2, 1.8, 1.4)[columns - 1] * rows, 3.5, *([2.1] if len(solution) > 1 else [])]
    figure = theme.figure(width=7.5, height=sum(heights) + 0.4)
    top, middle, *bottom = figure.subfigures(len(heights), 1, height_ratios=heights)
    axes = top.subplots(rows, columns, squeeze=False).ravel()
    for spare in axes[len(shown) :]:
        spare.remove()
    maps = time_views(solution, [list(axes[: len(shown)])], [Mollweide()], [member], shown)
    draw_views(top, maps, scale, rows=rows)
    pair = pair_for(maps[-1].state, seen_from, beside=True)
    sides = time_views(solution, [[middle.subplots()]], [pair], [member], shown[-1:])
    draw_views(middle, sides, scale, clusters=clusters)
    name_sides(sides[0].ax, pair)
    if bottom:
        names = ["moments", energy_name(solution)]
        draw_observables(
            bottom[0], bottom[0].subplots(1, 2), solution, names, member or None, columns=2
        )
    return figure


def _all_members(solution: "Solution", members: list[Member], scale: str) -> Figure:
    rows = -(-len(members) // 3)
    above = 0.5 + 1.3 * rows
    figure = theme.figure(width=8.2, height=above + 2.8)
    top, bottom = figure.subfigures(2, 1, height_ratios=[above, 2.4])
    target = grid(top, members, solution)
    known = bool(resolution.resolved_states(solution)[-1])
    text = f"$t = {mathematical(float(solution.t[-1]), 4)}$"
    views = [
        View(ax, Mollweide(), member_of(solution.final, m), f"{ax.get_title()}, {text}", known)
        for ax, m in zip(target.axes, members, strict=True)
    ]
    draw_views(top, views, scale, rows=target.rows)
    names = ["order_parameter", energy_name(solution)]
    draw_observables(bottom, bottom.subplots(1, 2), solution, names, None, columns=2)
    return figure
