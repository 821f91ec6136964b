"""The overview of axisymmetric densities: over the polar angle, and observables."""

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from . import ensemble, theme
from .circle import draw_snapshots, draw_spacetime, snapshots
from .circle_overview import all_members
from .observables import draw_observables
from .panels import grid, title_page
from .quantities import energy_name
from .times import pick_times

if TYPE_CHECKING:
    from ..solution import Solution

__all__ = ["zonal_overview"]


def zonal_overview(
    solution: "Solution",
    *,
    member: int | tuple[int, ...] | None = None,
    scale: str = "auto",
    title: str | None = None,
) -> Figure:
    """One page: the density over time and polar angle, snapshots, observables.

    An ensemble gives the maps of its members, at most nine, above observables of all; a single
    saved time gives its snapshot.

    Parameters
    ----------
    solution, member, scale, title
        As for `spacetime`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If the member does not exist, or there are too many.
    """
    if len(solution) == 1:
        return snapshots(solution, member=member, scale=scale, title=title)
    members = ensemble.choose(solution, member)
    with theme.style():
        draw = _one_member if len(members) == 1 else all_members
        figure = draw(solution, members, scale)
        return title_page(figure, solution, title)


def _one_member(solution: "Solution", members: list[tuple[int, ...]], scale: str) -> Figure:
    figure = theme.figure(width=7.5, height=8.0)
    top, middle, bottom = figure.subfigures(3, 1, height_ratios=[2.5, 2.8, 2.1])
    draw_spacetime(grid(top, members, solution), solution, scale)
    times = pick_times(solution, members, None, 6)
    draw_snapshots(grid(middle, members, solution), solution, times, scale)
    names = ["moments", energy_name(solution)]
    member = members[0] or None
    draw_observables(bottom, bottom.subplots(1, 2), solution, names, member, columns=2)
    return figure
