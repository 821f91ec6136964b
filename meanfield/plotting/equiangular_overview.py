"""The overview of equiangular tokens: how close they are, over all orders, and observables."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..states import Equiangular
from . import ensemble, theme
from .bands import groups_of, key_of_groups
from .observables import draw_observables, observables
from .panels import title_page
from .quantities import is_present
from .spaces import Space, expect
from .time_axis import is_logarithmic, time_axis

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["equiangular_overview"]

TELLING = ("rho", "radius", "effective_rank", "interaction_energy", "speed")
Member = tuple[int, ...]


def equiangular_overview(
    solution: "Solution",
    *,
    member: int | Member | None = None,
    log_time: bool | None = None,
    title: str | None = None,
) -> Figure:
    """One page: the logarithm of 1 - rho, which has no least number, above four observables.

    A single saved time is shown by its observables.

    Parameters
    ----------
    solution : Solution
        Equiangular tokens.
    member : int or tuple of int, optional
        Member of an ensemble; by default all.
    log_time : bool, optional
        Whether the axes of times are logarithmic, from the first saved time above 0 on;
        by default where saved times are spaced like numpy.geomspace.
    title : str, optional
        Heading; by default the model, and none if it is "".

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If the member does not exist, or there are fewer than two times above 0 with `log_time`.
    """
    expect(solution, Equiangular, Space.ANYWHERE)
    if len(solution) == 1:
        return observables(solution, member=member, title=title)
    log_time = is_logarithmic(solution, log_time)
    with theme.style():
        figure = theme.figure(width=7.5, height=7.2)
        top, bottom = figure.subfigures(2, 1, height_ratios=[3.0, 4.0])
        _draw_gaps(top.subplots(), solution, member, log_time)
        names = [name for name in TELLING if is_present(solution, name)][:4]
        shape = {"columns": 2, "log_time": log_time, "key": False}
        draw_observables(bottom, bottom.subplots(2, 2).ravel(), solution, names, member, **shape)
        return title_page(figure, solution, title)


def _draw_gaps(ax: Axes, solution: "Solution", member: int | Member | None, log_time: bool) -> None:
    """log10(1 - rho) of every member."""
    if member is None:
        members = list(np.ndindex(tuple(solution.shape)))
    else:
        members = ensemble.choose(solution, member)
    groups = groups_of(solution, members)
    for group in groups:
        for index in group.members:
            gaps = [np.broadcast_to(s.log_gap, solution.shape)[index] for s in solution]
            ax.plot(solution.t, np.array(gaps) / np.log(10), color=group.colour)
    ax.set_ylabel(r"$\log_{10}(1 - \rho)$")
    time_axis(ax, solution, log_time=log_time)
    key_of_groups(ax.figure, [ax], solution, groups)
