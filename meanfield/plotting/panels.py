"""A figure with one panel for each member of an ensemble, from its opening to its title."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase, SubFigure

from . import ensemble, resolution, theme

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["Panels", "drawing", "grid", "into", "page", "title_page"]


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
    members: list[tuple[int, ...]]
    columns: int

    @property
    def rows(self) -> int:
        return -(-len(self.axes) // self.columns)

    @property
    def outer(self) -> list[tuple[Axes, bool, bool]]:
        """Each panel, whether nothing lies beneath it, and whether nothing lies to its left."""
        count, columns = len(self.axes), self.columns
        return [(ax, i + columns >= count, i % columns == 0) for i, ax in enumerate(self.axes)]


def grid(
    figure: Figure | SubFigure, members: list[tuple[int, ...]], solution: "Solution"
) -> Panels:
    """Divide `figure` into one titled panel for each member, at most three in a row."""
    columns = min(len(members), 3) if len(members) != 4 else 2
    rows = -(-len(members) // columns)
    axes = list(np.ravel(figure.subplots(rows, columns, squeeze=False)))
    for spare in axes[len(members) :]:
        spare.remove()
    axes = axes[: len(members)]
    if solution.shape:
        for ax, index in zip(axes, members, strict=True):
            ax.set_title(ensemble.label(solution, index))
    return Panels(figure, axes, members, columns)


def page(
    solution: "Solution", member: int | tuple[int, ...] | None, *, width: float, height: float
) -> Panels:
    """A new figure of panels, each about `width` by `height` inches."""
    members = ensemble.choose(solution, member)
    if len(members) == 1:
        return grid(theme.figure(width=width, height=height), members, solution)
    columns = 2 if len(members) in (2, 4) else 3
    rows = -(-len(members) // columns)
    shrink = 7.5 / (columns * width)
    tall = 1.1 + rows * max(1.7, height * min(1.0, shrink))
    return grid(theme.figure(width=8.2, height=tall), members, solution)


def into(ax: Axes, solution: "Solution", member: int | tuple[int, ...] | None) -> Panels:
    """Draw into an axes of the caller's own figure: one member only."""
    if solution.shape and member is None:
        raise ValueError(
            f"An ensemble of shape {tuple(solution.shape)} does not fit into one `ax`. Choose a "
            "member with member=..., or leave `ax` out for one panel each."
        )
    return Panels(ax.figure, [ax], ensemble.choose(solution, member), 1)


@contextmanager
def drawing(
    ax: Axes | None, solution: "Solution", member: int | tuple[int, ...] | None,
    title: str | None, *, width: float, height: float,
) -> Iterator[Panels]:  # fmt: skip
    """Panels to draw in; then a new figure gets its head, the caller's own axes the verdict."""
    with theme.style():
        if ax is None:
            target = page(solution, member, width=width, height=height)
            yield target
            title_page(target.figure, solution, title)
        else:
            yield into(ax, solution, member)
            resolution.mark(ax, solution)


def title_page(figure: Figure, solution: "Solution", title: str | None, **position: Any) -> Figure:
    """Head of a finished figure: the model, or the caller's title; and the verdict beneath.

    Both get room of their own, which the layout cannot give them inside a red frame.
    """
    heading = ensemble.describe(solution) if title is None else title
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
