"""Layouts: a panel for each member, or for each member at each of several times, with a heading."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase, SubFigure

from ..results.solution import Solution
from . import resolution, theme
from .labels import Member, choose_members, describe_model, distinct, label_of_member, member_of
from .times import pick_times

__all__ = ["Panels", "Sheet", "View"]

Update = Callable[[int], object]  # sets a part of a figure to the saved state of an index


@dataclass(frozen=True)
class Panels:
    """Where to draw which members.

    Attributes
    ----------
    figure : Figure or SubFigure
        Holds the colour bar and the legend.
    axes : list of Axes
        One for each member.
    members : list of tuple of int
        Index of each member; [()] for a single solution.
    columns : int
        Panels in a row.
    """

    figure: FigureBase
    axes: list[Axes]
    members: list[Member]
    columns: int

    @property
    def rows(self) -> int:
        return -(-len(self.axes) // self.columns)

    @property
    def outer(self) -> list[tuple[Axes, bool, bool]]:
        """Each panel, whether nothing lies beneath it, and whether nothing lies to its left."""
        count, columns = len(self.axes), self.columns
        return [(ax, i + columns >= count, i % columns == 0) for i, ax in enumerate(self.axes)]


def panels_in(figure: FigureBase, count: int, columns: int, **options: Any) -> list[Axes]:
    """`count` panels, `columns` in a row."""
    rows = -(-count // columns)
    axes = list(np.ravel(figure.subplots(rows, columns, squeeze=False, **options)))
    for spare in axes[count:]:
        spare.remove()
    return axes[:count]


def grid(figure: Figure | SubFigure, members: list[Member], solution: Solution) -> Panels:
    """Divide `figure` into one titled panel for each member, at most three in a row."""
    columns = min(len(members), 3) if len(members) != 4 else 2
    axes = panels_in(figure, len(members), columns)
    if solution.shape:
        for ax, index in zip(axes, members, strict=True):
            ax.set_title(label_of_member(solution, index))
    return Panels(figure, axes, members, columns)


def page(solution: Solution, member: int | Member | None, *, width: float, height: float) -> Panels:
    """A new figure of panels, each about `width` by `height` inches."""
    members = choose_members(solution, member)
    if len(members) == 1:
        return grid(theme.figure(width=width, height=height), members, solution)
    columns = 2 if len(members) in (2, 4) else 3
    rows = -(-len(members) // columns)
    shrink = 7.5 / (columns * width)
    tall = 1.1 + rows * max(1.7, height * min(1.0, shrink))
    return grid(theme.figure(width=8.2, height=tall), members, solution)


def into(ax: Axes, solution: Solution, member: int | Member | None) -> Panels:
    """Draw into an axes of the caller's own figure: one member only."""
    if solution.shape and member is None:
        raise ValueError(
            f"An ensemble of shape {tuple(solution.shape)} does not fit into one `ax`. Choose a "
            "member with member=..., or leave `ax` out for one panel each."
        )
    return Panels(ax.figure, [ax], choose_members(solution, member), 1)


@contextmanager
def panels(
    solution: Solution,
    width: float,
    height: float,
    *,
    ax: Axes | None = None,
    member: int | Member | None = None,
    title: str | None = None,
) -> Iterator[Panels]:
    """Panels to draw in; then a new figure gets its heading, the caller's own axes the verdict."""
    with theme.style():
        if ax is None:
            target = page(solution, member, width=width, height=height)
            yield target
            title_page(target.figure, solution, title)
        else:
            yield into(ax, solution, member)
            resolution.mark(ax, solution)


def title_page(figure: Figure, solution: Solution, title: str | None, **position: Any) -> Figure:
    """Head of a finished figure: the model, or the caller's title; and the verdict beneath.

    Both get room of their own, which the layout cannot give them inside a red frame.
    """
    heading = describe_model(solution) if title is None else title
    beneath = resolution.frame(figure, solution)
    above = 0.3 if heading else 0.0
    side = 0.1 if beneath else 0.0
    width, height = figure.get_size_inches()
    figure.get_layout_engine().set(
        rect=(
            side / width,
            beneath / height,
            1 - 2 * side / width,
            1 - (beneath + above + side) / height,
        )
    )
    if heading:
        figure.suptitle(heading, y=1 - (0.1 + 0.5 * side) / height, va="top", **position)
    return figure


@dataclass(frozen=True)
class View:
    """One member at one saved time, which `ax` shows.

    Attributes
    ----------
    resolved : bool
        Whether the state is; else the title is red.
    """

    ax: Axes
    state: Any
    member: Member
    title: str = ""
    resolved: bool = True

    def __post_init__(self):
        self.ax.set_title(self.title, color=theme.INK if self.resolved else theme.WARNING)


def views(
    solution: Solution,
    axes: Sequence[Sequence[Axes]],
    members: Sequence[Member],
    shown: np.ndarray,
) -> list[list[View]]:
    """Members in rows at the saved times of index `shown` in columns, titled with the times."""
    texts = [f"$t = {text}$" for text in distinct(np.asarray(solution.t)[shown])]
    resolved = resolution.resolved_states(solution)[shown]
    found = []
    for row, member in zip(axes, members, strict=True):
        if member:
            row[0].set_ylabel(label_of_member(solution, member))
        found.append(
            [
                View(
                    ax,
                    member_of(solution[i], member),
                    member,
                    text if row is axes[0] else "",
                    known,
                )
                for ax, i, text, known in zip(row, shown, texts, resolved, strict=True)
            ]
        )
    return found


@dataclass(frozen=True)
class Sheet:
    """Views of members in rows, at several times in columns.

    Attributes
    ----------
    figure : Figure or SubFigure
        Holds what is drawn outside the panels.
    views : list of list of View
        A row for each member.
    times : ndarray of int
        Indices of the saved times.
    rows : int
        Rows of panels: the times of a single member may be broken into several.
    upright : bool
        Whether panels are twice as high as wide.
    inside : bool
        Whether it is drawn in axes of the caller.
    """

    figure: FigureBase
    views: list[list[View]]
    times: np.ndarray
    rows: int
    upright: bool = False
    inside: bool = False


def row_of_views(
    figure: SubFigure, solution: Solution, member: Member, shown: np.ndarray, *, upright=False
) -> Sheet:
    """One member at the saved times of index `shown`, in a row across a band of a page."""
    axes = panels_in(figure, len(shown), len(shown))
    table = views(solution, [axes], [member], shown)
    axes[0].set_ylabel(label_of_member(solution, member), labelpad=24)
    return Sheet(figure, table, shown, 1, upright)


@contextmanager
def sheet(
    solution: Solution,
    usual: int,
    ratio: float,
    most: int,
    *,
    times: Sequence[float] | None = None,
    count: int | None = None,
    ax: Axes | None = None,
    member: int | Member | None = None,
    title: str | None = None,
) -> Iterator[Sheet]:
    """A sheet to draw in; then a new figure gets its heading, the caller's own axes the verdict.

    Parameters
    ----------
    usual : int
        How many times of a single member are shown by default; of several members 3.
    ratio : float
        Width over height of a panel. If it is 0.5, that holds for several times of a single
        member, and otherwise panels are twice as wide as high.
    most : int
        Panels in a row for a single member.
    """
    members = into(ax, solution, member).members if ax else choose_members(solution, member)
    if ax is not None and times is None:
        times = solution.t[-1:]
    usual = usual if len(members) == 1 else 3
    shown = pick_times(solution, members, times, usual if count is None else count)
    if ax is not None and len(shown) > 1:
        raise ValueError(f"One `ax` holds one time; got times = {times!r}. Give one time.")
    upright = ratio < 1 and len(members) == 1 and len(shown) > 1
    ratio = 2.0 if ratio < 1 and not upright else ratio
    with theme.style():
        if ax is not None:
            yield Sheet(ax.figure, views(solution, [[ax]], members, shown), shown, 1, upright, True)
            resolution.mark(ax, solution)
            return
        cells = len(members) * len(shown)
        columns = len(shown)
        if len(members) == 1 and columns > most:
            columns = -(-cells // -(-cells // most))
        rows = -(-cells // columns)
        width = min(5.8, 6.2 / columns, 3.0 * ratio)
        figure = theme.figure(
            width=max(3.4, width * columns + 1.6), height=0.4 + rows * (width / ratio + 0.3)
        )
        whole = figure.subfigures()  # what is drawn outside its panels stays above the verdict
        axes = panels_in(whole, cells, columns)
        table = [axes[i : i + len(shown)] for i in range(0, cells, len(shown))]
        yield Sheet(whole, views(solution, table, members, shown), shown, rows, upright)
        title_page(figure, solution, title)
