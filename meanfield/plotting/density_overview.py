"""The overview of densities on the circle and of axisymmetric ones: all figures on one page."""

from typing import TYPE_CHECKING

from matplotlib.figure import Figure, SubFigure

from ..spaces import Circle
from . import ensemble, theme
from .circle import draw_snapshots, draw_spacetime, snapshots, time_bar
from .observables import draw_observables
from .panels import Panels, grid, title_page
from .polar import draw_polar
from .quantities import energy_name
from .times import pick_times

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["density_overview"]


def density_overview(
    solution: "Solution",
    *,
    member: int | tuple[int, ...] | None = None,
    scale: str = "auto",
    title: str | None = None,
) -> Figure:
    """One page: the space-time map, snapshots, observables.

    On the circle snapshots are drawn over the angle and around the circle.

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
    TypeError
        If the states are neither densities on the circle nor axisymmetric.
    """
    if len(solution) == 1:
        return snapshots(solution, member=member, scale=scale, title=title)
    members = ensemble.choose(solution, member)
    with theme.style():
        draw = _one_member if len(members) == 1 else _all_members
        figure = draw(solution, members, scale)
        return title_page(figure, solution, title)


def _one_member(solution: "Solution", members: list[tuple[int, ...]], scale: str) -> Figure:
    figure = theme.figure(width=7.5, height=8.2)
    top, middle, bottom = figure.subfigures(3, 1, height_ratios=[2.5, 3.0, 2.1])
    draw_spacetime(grid(top, members, solution), solution, scale)
    if isinstance(solution.final.geometry, Circle):
        _over_and_around(middle, solution, members, scale)
    else:
        times = pick_times(solution, members, None, 6)
        draw_snapshots(grid(middle, members, solution), solution, times, scale)
    names = ["moments", energy_name(solution)]
    member = members[0] or None
    draw_observables(bottom, bottom.subplots(1, 2), solution, names, member, columns=2)
    return figure


def _over_and_around(
    figure: SubFigure, solution: "Solution", members: list[tuple[int, ...]], scale: str
) -> None:
    """Snapshots over the angle, and around the circle, with one bar of times."""
    over, around = figure.subplots(1, 2, width_ratios=[1.2, 1.0])
    times = pick_times(solution, members, None, 6)
    draw_snapshots(Panels(figure, [over], members, 1), solution, times, scale, bar=False)
    draw_polar(Panels(figure, [around], members, 1), solution, times, scale, bar=False)
    time_bar(Panels(figure, [over, around], members, 1), solution, times)


def _all_members(solution: "Solution", members: list[tuple[int, ...]], scale: str) -> Figure:
    """The maps of several members above observables of all."""
    rows = -(-len(members) // 3)
    above = 0.4 + 1.7 * rows
    figure = theme.figure(width=8.2, height=above + 2.8)
    top, bottom = figure.subfigures(2, 1, height_ratios=[above, 2.4])
    draw_spacetime(grid(top, members, solution), solution, scale)
    names = ["order_parameter", energy_name(solution)]
    draw_observables(bottom, bottom.subplots(1, 2), solution, names, None, columns=2)
    return figure
