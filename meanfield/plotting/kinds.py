"""The kinds of figure by name, and the overview that puts them on one page."""

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from . import ensemble, theme
from .circle import draw_snapshots, draw_spacetime, pick_times, snapshots, spacetime, time_bar
from .observables import draw_observables, observables, present
from .panels import Panels, grid, title_page
from .polar import draw_polar, polar

if TYPE_CHECKING:
    from ..solution import Solution

__all__ = ["KINDS", "overview", "plot"]


def plot(solution: "Solution", kind: str = "overview", **options: Any) -> Figure:
    """A figure of a solution.

    Parameters
    ----------
    solution : Solution
    kind : {"overview", "spacetime", "snapshots", "polar", "observables"}
    **options
        Of the function of that name in this room: `member`, `scale`, `times`, `ax`, ...

    Returns
    -------
    Figure
        Write it with `figure.savefig(path)`: 300 dpi, maps as images inside vector formats.

    Raises
    ------
    ValueError
        If the kind is unknown; and as the function of that name.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}; got {kind!r}.")
    return KINDS[kind](solution, **options)


def overview(
    solution: "Solution",
    *,
    member: int | tuple[int, ...] | None = None,
    scale: str = "auto",
    title: str | None = None,
) -> Figure:
    """One page: the space-time map, snapshots over the angle and around the circle, observables.

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
        If the states are not densities on the circle.
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
    over, around = middle.subplots(1, 2, width_ratios=[1.2, 1.0])
    both = Panels(middle, [over, around], members, 1)
    times = pick_times(solution, both, None, 6)
    draw_snapshots(Panels(middle, [over], members, 1), solution, times, scale, bar=False)
    draw_polar(Panels(middle, [around], members, 1), solution, times, scale, bar=False)
    time_bar(both, solution, times)
    names = ["moments", _energy(solution)]
    member = members[0] or None
    draw_observables(bottom, bottom.subplots(1, 2), solution, names, member, columns=2)
    return figure


def _all_members(solution: "Solution", members: list[tuple[int, ...]], scale: str) -> Figure:
    rows = -(-len(members) // 3)
    above = 0.4 + 1.7 * rows
    figure = theme.figure(width=8.2, height=above + 2.8)
    top, bottom = figure.subfigures(2, 1, height_ratios=[above, 2.4])
    draw_spacetime(grid(top, members, solution), solution, scale)
    names = ["order_parameter", _energy(solution)]
    draw_observables(bottom, bottom.subplots(1, 2), solution, names, None, columns=2)
    return figure


def _energy(solution: "Solution") -> str:
    """The free energy where it exists, and else the entropy, which every density has."""
    return "free_energy" if present(solution, "free_energy") else "entropy"


KINDS = {
    "overview": overview,
    "spacetime": spacetime,
    "snapshots": snapshots,
    "polar": polar,
    "observables": observables,
}
