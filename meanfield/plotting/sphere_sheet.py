"""A sheet of views of the sphere: which members at which times, in which panels."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..states import Gram, Tokens
from . import ensemble, resolution, theme
from .digits import distinct
from .panels import into, title_page
from .projections import Projection
from .sphere_views import View
from .times import pick_times

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["choose", "finished", "member_of", "sheet", "time_views"]

Member = tuple[int, ...]
State = Density | Characteristics | Tokens | Gram


def choose(
    solution: "Solution",
    ax: Axes | None,
    member: int | Member | None,
    times: Sequence[float] | None,
    count: int | None,
    usual: int,
) -> tuple[list[Member], np.ndarray]:
    """The members and the indices of the saved times to show."""
    members = into(ax, solution, member).members if ax else ensemble.choose(solution, member)
    if ax is not None and times is None:
        times = solution.t[-1:]
    usual = usual if len(members) == 1 else 3
    shown = pick_times(solution, members, times, usual if count is None else count)
    if ax is not None and len(shown) > 1:
        raise ValueError(f"One `ax` holds one time; got times = {times!r}. Give one time.")
    return members, shown


def sheet(
    ax: Axes | None, members: list[Member], shown: np.ndarray, *, ratio: float, most: int
) -> tuple[list[list[Axes]], int]:
    """Panels of width / height `ratio`, one row for each member, and the number of rows.

    The times of a single member are broken into rows of at most `most`.
    """
    if ax is not None:
        return [[ax]], 1
    count = len(members) * len(shown)
    columns = len(shown)
    if len(members) == 1 and columns > most:
        columns = -(-count // -(-count // most))
    rows = -(-count // columns)
    width = min(5.8, 6.2 / columns, 3.0 * ratio)
    figure = theme.figure(
        width=max(3.4, width * columns + 1.6), height=0.4 + rows * (width / ratio + 0.3)
    )
    whole = figure.subfigures()  # what is drawn outside its panels stays above the verdict
    axes = list(whole.subplots(rows, columns, squeeze=False).ravel())
    for spare in axes[count:]:
        spare.remove()
    return [axes[i : i + len(shown)] for i in range(0, count, len(shown))], rows


def time_views(
    solution: "Solution",
    axes: Sequence[Sequence[Axes]],
    projections: Sequence[Projection | None],
    members: Sequence[Member],
    shown: np.ndarray,
) -> list[View]:
    """Members in rows at the saved times of index `shown` in columns, titled with the times."""
    texts = [f"$t = {text}$" for text in distinct(np.asarray(solution.t)[shown])]
    resolved = resolution.resolved_states(solution)[shown]
    views = []
    for row, projection, member in zip(axes, projections, members, strict=True):
        if member:
            row[0].set_ylabel(ensemble.label(solution, member))
        for ax, i, text, known in zip(row, shown, texts, resolved, strict=True):
            title = text if row is axes[0] else ""
            views.append(View(ax, projection, member_of(solution[i], member), title, known))
    return views


def member_of(state: State, member: Member) -> State:
    """A member of an ensemble; a single state is its only member, ()."""
    return state[member] if member else state


def finished(figure: Figure, solution: "Solution", ax: Axes | None, title: str | None) -> Figure:
    """The page with its head, or the caller's panel with its verdict."""
    if ax is None:
        return title_page(figure, solution, title)
    resolution.mark(ax, solution)
    return figure
