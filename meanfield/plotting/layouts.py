"""Panels to draw in: one for each member, or one for each member at each of several times.

Movies and figures are drawn by the same functions: `Panels.show` draws the states at given times,
or in a movie the current state in place of the previous one.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from itertools import pairwise
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase, SubFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from ..core.checks import as_given, boolean, positive, real_array, require, whole_number
from ..core.errors import MeanfieldError
from ..core.forms import nearest
from ..core.provided import FIGURES
from ..results.solution import Solution
from ..spaces.density import Density
from . import labels, theme
from .appearance import DrawnSample, appearance_of, evenly
from .spaces import CoordinateAxis

NAME = "time $t$"
FEWEST_TIMES, LONG_TIMES = 5, 30.0  # least number and least range of times for a logarithmic axis
EVEN_STEPS, MOST = 0.1, 0.7  # deviation of even steps from their median, and their least share
MOST_LISTED = 4  # times in a message
SAVED_TIME = 1e-9  # relative difference of a time and the saved one that it means


def resolved_states(solution: Solution) -> np.ndarray:
    """A mask (m,) over saved states: True before the first that is not resolved."""
    if solution.resolved:
        return np.ones(len(solution.t), dtype=bool)
    return appearance_of(solution.final).resolved_mask(solution)


def is_timeless(solution: Solution) -> bool:
    """True for a state that `state.plot()` draws without a run; it has no time."""
    return solution.stored.get("timeless", False)


def titles_of(solution: Solution, shown: np.ndarray) -> list[str]:
    """Saved times as titles, t = 0.5; empty for a state without a run."""
    if is_timeless(solution):
        return [""] * len(shown)
    return [f"$t = {text}$" for text in labels.distinct(solution.t[shown])]


def drawn_count(solution: Solution) -> int:
    """The number of saved states that are drawn: all, but not the last one of a blow-up."""
    return len(solution) - (solution.status == "blow-up" and len(solution) > 1)


def pick_times(
    solution: Solution, members: Sequence[labels.Member], times: Sequence[float] | None, count: int
) -> np.ndarray:
    """Increasing indices of the saved states nearest to `times`, by default `states_along_path`.

    The last state of a blow-up is never among them.

    Raises
    ------
    ValueError
        If a time lies outside the solution, this is a state without a run, or `count` is not
        positive.
    """
    if times is None:
        count = whole_number("count", count)
        return states_along_path(solution, members, count)
    targets = _checked_times(solution, times)
    shown = solution.t[: drawn_count(solution)]
    return np.unique(np.abs(shown[:, None] - targets).argmin(axis=0))


def _checked_times(solution: Solution, times: Sequence[float]) -> np.ndarray:
    """The argument `times` of figures, as an array of times within a solution."""
    if is_timeless(solution):
        raise ValueError(
            f"times = {as_given(times)}: a state by itself has no times. Leave `times` out, "
            "or plot the run that it comes from."
        )
    targets = np.atleast_1d(real_array("times", times))
    begin, end = solution.t[0], solution.t[-1]
    slack = 1e-9 * max(abs(begin), abs(end))
    fits = targets.size and ((targets >= begin - slack) & (targets <= end + slack)).all()
    require("times", times, f"between {begin:g} and {end:g}, where this solution was saved", fits)
    return targets


def evaluated_at(solution: Solution, times: Sequence[float] | None) -> Solution:
    """The solution with its states at `times` beside those saved, if it can be evaluated there.

    If it cannot, it is returned as it is, with a warning: the nearest saved states are drawn.

    Raises
    ------
    ValueError
        If a time lies outside the solution, or this is a state without a run.
    """
    if times is None:
        return solution
    targets = np.unique(_checked_times(solution, times))
    gaps = np.abs(targets[:, None] - solution.t).min(axis=1)
    size = np.maximum(np.abs(targets), np.diff(solution.t).min(initial=np.inf))
    missing = targets[gaps > SAVED_TIME * size]
    if not missing.size:
        return solution
    try:
        return solution(np.union1d(solution.t, np.clip(missing, *solution.t[[0, -1]])))
    except MeanfieldError as reason:
        message = f"{reason} The nearest saved states are drawn, with their own times."
        warnings.warn(message, UserWarning, stacklevel=2)
        return solution


def states_along_path(
    solution: Solution, members: Sequence[labels.Member], count: int
) -> np.ndarray:
    """Indices of at most `count` saved states, between which the measure moves equally far.

    Distance along the path is measured in the harmonics of degree 16 at most, or by how far the
    nodes of characteristics or the tokens move, or inner products change, in the mean square: fast
    and slow phases are shown alike. Normal laws are rescaled so that infinity is finite.
    The first and the last state are always included, except for the last of a blow-up.
    """
    return subset(solution.states[: drawn_count(solution)], members, count)


def subset(states: Sequence[Any], members: Sequence[labels.Member], count: int) -> np.ndarray:
    """Indices of at most `count` of these states, as for `states_along_path`."""
    if len(states) == 1:
        return np.array([0])
    places = appearance_of(states[0]).vectors(states, members)
    steps = np.array([np.linalg.norm(b - a) for a, b in pairwise(places)])
    # A small multiple of the index makes the path increase where the measure does not move.
    path = np.concatenate([[0.0], np.cumsum(steps + 1e-3 * steps.mean() + 1e-300)])
    targets = np.linspace(0.0, path[-1], min(count, len(path)))
    return np.unique(np.abs(path[:, None] - targets).argmin(axis=0))


def is_logarithmic(solution: Solution, log_time: bool | None) -> bool:
    """True for a logarithmic axis of times: if asked, or for None by the spacing of times.

    Raises
    ------
    ValueError
        If it is asked for and there are fewer than two times above 0.
    """
    shown = solution.t[: drawn_count(solution)]
    t = shown[shown > 0]
    if log_time is None:
        if len(t) < FEWEST_TIMES or t[-1] < LONG_TIMES * t[0]:
            return False
        steps = np.diff(np.log(t))
        return bool(np.mean(np.abs(steps / np.median(steps) - 1) < EVEN_STEPS) > MOST)
    log_time = boolean("log_time", log_time)
    if log_time and len(t) < 2:
        texts = [f"{t:g}" for t in shown]
        if len(texts) > MOST_LISTED:
            texts = [*texts[:2], "...", f"{texts[-1]} ({len(texts)} times)"]
        raise ValueError(
            f"log_time needs at least two saved times above 0; got t = {', '.join(texts)}. Solve "
            "with more times in t_eval, for instance numpy.geomspace."
        )
    return log_time


def time_axis(ax: Axes, solution: Solution, *, log_time: bool = False, named: bool = True) -> None:
    """Set limits, scale and name; hatch unresolved times, and draw a blow-up as a dotted line."""
    t = solution.t
    if solution.status == "blow-up":
        end = solution.stats["blow_up_time"]
        ax.axvline(end, color=theme.CAUTION, linestyle=":", linewidth=1.0)
        ax.set_xlim(t[0], end + 0.03 * (end - t[0]))
    elif len(t) > 1:
        ax.set_xlim(t[0], t[-1])
    if not solution.resolved:
        hatch(ax, solution)
    if log_time:
        ax.set_xscale("log")
        ax.set_xlim(left=t[t > 0][0])
    ax.set_xlabel(NAME if named else "")
    if is_timeless(solution):
        ax.set(xticks=[], xlabel="")


def hatch(ax: Axes, solution: Solution) -> None:
    """Hatch a time axis from the last resolved time towards the time that was asked for.

    A run that stopped long before its end is hatched as far as a quarter of what it reached.
    """
    begin, end = solution.t[0], solution.t[-1]
    times = solution.t[resolved_states(solution)]
    span = (end - begin) or 1.0
    t_end = max(solution.options.get("t_eval", [end]))
    edge = end + min(max(t_end - end, 0.06 * span), 0.25 * span)
    style: theme.Style = {"facecolor": (1, 1, 1, 0.35), "edgecolor": theme.WARNING, "hatch": "////"}
    ax.axvspan(times[-1] if len(times) else begin, edge, linewidth=1.2, zorder=5, **style)
    ax.set_xlim(begin, edge)


def time_edges(t: np.ndarray, *, log_time: bool) -> np.ndarray:
    """Edges (m + 1,) of the cells of saved times: both ends, and midpoints on the axis shown."""
    places = np.log(t) if log_time else t
    middles = (places[1:] + places[:-1]) / 2
    edges = np.concatenate([places[:1], middles, places[-1:]])
    return np.exp(edges) if log_time else edges


def cell_edges(middles: np.ndarray) -> np.ndarray:
    """Edges (n + 1,) of cells about n >= 2 increasing numbers; the outer cells are symmetric."""
    edges = (middles[1:] + middles[:-1]) / 2
    return np.concatenate([[2 * middles[0] - edges[0]], edges, [2 * middles[-1] - edges[-1]]])


def columns_of_times(
    solution: Solution, limit: int, *, log_time: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Indices of at most `limit` saved times for the columns of a map, and the edges of columns.

    A logarithmic axis begins at the first time above 0.
    """
    t = solution.t
    first = int(np.flatnonzero(t > 0)[0]) if log_time else 0
    columns = first + evenly(len(t) - first, limit)
    return columns, time_edges(t[columns], log_time=log_time)


def need_two_times(solution: Solution, figure: str, instead: str) -> None:
    """Raise ValueError for a single saved time; `instead` is the kind of figure for one."""
    if len(solution) < 2:
        raise ValueError(
            f"{figure} needs at least two saved times; got {len(solution)}. Use kind={instead!r}, "
            "or solve with more times in t_eval."
        )


# Panels -------------------------------------------------------------------------------------------

KEY = 1.4  # inches for a legend beside the panels,
MOST_KEY = 0.3  # at most this share of the width
LEAST_PANEL = 2.0  # inches, with its labels
LEGEND_COLUMN = 1.6  # inches of an entry of a legend beneath the panels
LEGEND_ROW, SMALL_ROW = 0.2, 0.13  # inches of a row of a legend: outside panels, inside small ones
LOWEST_PANEL = 1.6  # inches that a legend outside leaves to the panels, with their labels
SMALL_PANEL, SMALL_FONT = 2.6, 6.0  # axes narrower than these inches have a legend of this size
MOST_COVERED = 0.4  # of the height of a panel, by a legend inside
Update = Callable[[int], object]  # sets a part of a figure to the saved state of an index
# Draws in a panel a member of the saved state of an index
Draw = Callable[[Axes, labels.Member, int], Sequence[Artist]]


@dataclass
class DrawnMembers:
    """The members of a solution that are drawn.

    Attributes
    ----------
    solution : Solution
    members : list of tuple of int
        Index of each member; [()] for a single solution.
    """

    solution: Solution
    members: list[labels.Member]

    @property
    def look(self) -> Any:
        """The appearance of the states."""
        return appearance_of(self.solution.final)

    @property
    def chart(self) -> Any:
        """The axis of the one coordinate of the space, or None."""
        return self.look.chart(self.solution.final)

    def state(self, i: int, member: labels.Member) -> Any:
        """A member of the saved state of an index."""
        return labels.member_of(self.solution[i], member)

    def law(self, i: int) -> Density:
        """The density that is drawn of the saved state of an index."""
        return self.look.law(self.solution[int(i)])

    def samples(self, limit: int) -> dict[labels.Member, DrawnSample]:
        """At most `limit` points of each member, in the colours of their final clusters."""
        return {m: self.look.sample(self.solution, m, limit) for m in self.members}

    def spread_times(self, count: int) -> np.ndarray:
        """Indices of at most `count` saved states, between which the measure moves equally far."""
        return states_along_path(self.solution, self.members, count)


@dataclass
class Panels(DrawnMembers):
    """Panels of a figure, with the solution, members and times that are drawn in them.

    Attributes
    ----------
    figure : Figure or SubFigure
        Figure that gets the colour bar and the legend.
    axes : list of Axes
        One panel for each member; in a sheet, one for each member and each of `times`.
    columns : int
        Panels in a row.
    times : ndarray of int
        Indices of the saved times that are drawn: of a sheet, or of the curves in each panel; in a
        movie all of them.
    upright : bool
        Whether panels are twice as high as wide.
    inside : bool
        Whether the axes belong to the caller.
    film : list of callable, or None
        In a movie, functions that set the panels to the saved state of a given index.
    bar : bool
        Whether a colour bar shows the times of curves.
    """

    figure: Figure | SubFigure
    axes: list[Axes]
    columns: int
    times: np.ndarray = field(default_factory=lambda: np.array([-1]))
    upright: bool = False
    inside: bool = False
    film: list[Update] | None = None
    bar: bool = True

    @property
    def rows(self) -> int:
        return -(-len(self.axes) // self.columns)

    @property
    def outer(self) -> list[tuple[Axes, bool, bool]]:
        """Each panel, whether nothing lies beneath it, and whether nothing lies to its left."""
        count, columns = len(self.axes), self.columns
        return [(ax, i + columns >= count, i % columns == 0) for i, ax in enumerate(self.axes)]

    @property
    def views(self) -> list[tuple[labels.Member, list[tuple[Axes, int]]]]:
        """The rows of a sheet: each member, its panels and the indices of their times."""
        count = len(self.axes) // len(self.members)
        times = self.times if self.film is None else [-1]
        cells = list(zip(self.axes, [*times] * len(self.members), strict=True))
        return [(m, cells[k * count : (k + 1) * count]) for k, m in enumerate(self.members)]

    def label(self, axis: CoordinateAxis, name: str) -> None:
        """Set the horizontal axis of all panels, named on the lowest; name the left ones."""
        for ax, bottom, left in self.outer:
            axis.draw_below(ax, named=bottom)
            if left and not ax.get_ylabel():
                ax.set_ylabel(name)

    def frame(self, below: CoordinateAxis, left: CoordinateAxis) -> None:
        """Frame all panels; name their axes where there is room, beside labels of members."""
        for ax, lowest, first in self.outer:
            label = ax.get_ylabel()
            below.draw_below(ax, named=lowest)
            left.draw_left(ax, named=first)
            if label:
                ax.set_ylabel(f"{label}\n{left.name}")
            ax.spines[:].set_visible(True)

    def show(self, draw: Callable[[int], Iterable[Artist]], times: Iterable[int]) -> None:
        """Draw the states of these indices; in a movie, each replaces what was drawn before it."""
        if self.film is None:
            for i in times:
                draw(int(i))
            return
        artists: list[Artist] = []

        def update(i: int) -> None:
            for artist in artists:
                artist.remove()
            artists[:] = draw(i)

        update(0)
        self.film.append(update)

    def each(self, draw: Draw) -> None:
        """Draw a sheet: each member at each time."""
        for member, row in self.views:
            for ax, i in row:
                self.show(partial(draw, ax, member), [i])


def panels_in(figure: FigureBase, count: int, columns: int) -> list[Axes]:
    """`count` panels, `columns` in a row."""
    axes = list(np.ravel(figure.subplots(-(-count // columns), columns, squeeze=False)))
    for extra in axes[count:]:
        extra.remove()
    return axes[:count]


def columns_for(count: int) -> int:
    """Panels in a row, of `count` in all."""
    return 2 if count == 4 else min(count, 3)


def grid(figure: Figure | SubFigure, view: DrawnMembers, **options: Any) -> Panels:
    """Divide `figure` into one titled panel for each member, at most three in a row."""
    solution, members = view.solution, view.members
    columns = columns_for(len(members))
    axes = panels_in(figure, len(members), columns)
    for ax, index in zip(axes, members, strict=True):
        ax.set_title(labels.label_of_member(solution, index))
    return Panels(solution, members, figure, axes, columns, **options)


def sheet_in(
    figure: Figure | SubFigure, view: DrawnMembers, times: np.ndarray, columns: int, **options: Any
) -> Panels:
    """A sheet with members in rows, titled with the saved times of the indices `times`."""
    solution, members = view.solution, view.members
    axes = panels_in(figure, len(members) * len(times), columns)
    return titled(Panels(solution, members, figure, axes, columns, times, **options))


def titled(sheet: Panels) -> Panels:
    """The sheet with the times of its columns, red where not resolved, and names of members."""
    solution = sheet.solution
    texts = titles_of(solution, sheet.times)
    mask = resolved_states(solution)[sheet.times]
    for member, row in sheet.views:
        if member:
            pad = 24 if sheet.upright else None
            row[0][0].set_ylabel(labels.label_of_member(solution, member), labelpad=pad)
        if member == sheet.members[0]:
            for (ax, _), text, is_resolved in zip(row, texts, mask, strict=True):
                if text or not sheet.inside:
                    ax.set_title(text, color=theme.INK if is_resolved else theme.WARNING)
    return sheet


def square(ax: Axes, low: np.ndarray, high: np.ndarray, margin: float) -> None:
    """Set equal scales that show the box from `low` (2,) to `high` (2,), with a relative margin."""
    middle, half = (low + high) / 2, (0.5 + margin) * (high - low).max() or 1.0
    ax.set(xlim=middle[0] + half * np.array([-1, 1]), ylim=middle[1] + half * np.array([-1, 1]))
    ax.set_aspect("equal")
    ax.locator_params(nbins=5)


# Pages of their own, and axes of the caller ------------------------------------------------------


def check_axes(ax: object) -> None:
    """Raise TypeError unless the option `ax` is None or axes of matplotlib."""
    if ax is not None and not isinstance(ax, Axes):
        shape = getattr(ax, "shape", ())
        count = " x ".join(map(str, shape)) or (len(ax) if isinstance(ax, list | tuple) else "")
        got = f"an array of {count}" if count else f"ax = {as_given(ax)}"
        raise TypeError(f"ax must be one matplotlib Axes; got {got}.")


def _members(
    solution: Solution, member: int | labels.Member | None, ax: Axes | None
) -> DrawnMembers:
    """The members to draw: one, in axes of the caller."""
    check_axes(ax)
    if ax is not None and solution.shape and member is None:
        raise ValueError(
            f"An ensemble of shape {tuple(solution.shape)} does not fit into one `ax`. Choose a "
            "member with member=..., or leave `ax` out for one panel each."
        )
    return DrawnMembers(solution, labels.choose_members(solution, member))


def panels(
    solution: Solution,
    width: float,
    height: float,
    default: int = 0,
    *,
    times: Sequence[float] | None = None,
    count: int | None = None,
    bar: bool | None = None,
    ax: Axes | None = None,
    member: int | labels.Member | None = None,
) -> Panels:
    """Panels in a new figure, where a single one is `width` by `height` inches; or in `ax`.

    With `default`, each panel shows the states at `times`, see `evaluated_at`, or `count` of those
    saved, by default `default`; `bar` is that of `Panels`.
    """
    solution = evaluated_at(solution, times)
    view = _members(solution, member, ax)
    members, options = view.members, dict[str, Any](bar=bar is not False)
    if default:
        options["times"] = pick_times(solution, members, times, default if count is None else count)
    if ax is not None:
        return Panels(solution, members, ax.figure, [ax], 1, inside=True, **options)
    if len(members) > 1:
        columns = columns_for(len(members))
        tall = max(1.7, height * min(1.0, 7.5 / (columns * width)))
        width, height = 8.2, 1.1 + -(-len(members) // columns) * tall
    return grid(theme.figure(width=width, height=height), view, **options)


def sheet(
    solution: Solution,
    default: int,
    ratio: float,
    most: int,
    *,
    times: Sequence[float] | None = None,
    count: int | None = None,
    ax: Axes | None = None,
    member: int | labels.Member | None = None,
) -> Panels:
    """A sheet in a new figure; or one panel, at one time, in `ax`.

    Parameters
    ----------
    default : int
        How many times of a single member are shown by default; of several members 3.
    ratio : float
        Width over height of a panel. If it is 0.5, that holds for several times of a single
        member, and otherwise panels are twice as wide as high.
    most : int
        Panels in a row for a single member.
    """
    solution = evaluated_at(solution, times)
    view = _members(solution, member, ax)
    members = view.members
    default = default if len(members) == 1 else 3
    if ax is not None and times is None and count is None:
        shown = np.array([drawn_count(solution) - 1])
    else:
        shown = pick_times(solution, members, times, default if count is None else count)
    if ax is not None:
        if len(shown) > 1:
            request = f"count = {count}" if times is None else f"times = {as_given(times)}"
            raise ValueError(f"One `ax` holds one time; got {request}.")
        return titled(Panels(solution, members, ax.figure, [ax], 1, shown, inside=True))
    upright = ratio < 1 and len(members) == 1 and len(shown) > 1
    ratio = 2.0 if ratio < 1 and not upright else ratio
    cells, columns = len(members) * len(shown), len(shown)
    if len(members) == 1 and columns > most:
        columns = -(-cells // -(-cells // most))
    width = min(5.8, 6.2 / columns, 3.0 * ratio)
    height = 0.4 + -(-cells // columns) * (width / ratio + 0.3)
    figure = theme.figure(width=max(3.4, width * columns + 1.6), height=height)
    body: Any = figure.subfigures()  # what is drawn outside its panels stays above the verdict
    return sheet_in(body, view, shown, columns, upright=upright)


class Canvas:
    """A new figure with panels in a row and a legend on their right; or axes of the caller.

    Parameters
    ----------
    ax : Axes, optional
    width, height : float, optional
        Of the new figure, in inches.
    legend : bool, optional
        Whether there is a legend. By default where there is room for it: in a small figure it is
        inside the last panel, and left out if it would cover more than four tenths of its height;
        axes of the caller always have it.
    """

    figure: Any
    panels: list[Axes]

    def __init__(
        self,
        ax: Axes | None = None,
        width: float | None = None,
        height: float | None = None,
        legend: bool | None = None,
        **unknown: Any,
    ) -> None:
        """Keep the options; TypeError for an unknown one."""
        if unknown:
            name, known = next(iter(unknown)), ("ax", "width", "height", "legend")
            hint = nearest(name, known) or "."
            raise TypeError(
                f"{name!r} is no option of this figure; it has {', '.join(known)}{hint}"
            )
        self._legend = None if legend is None else boolean("legend", legend)
        self._inside = ax is not None
        check_axes(ax)
        self._before = None if ax is None else ax.get_legend()
        self.ax, self._position = ax, dict[str, Any](loc="outside right center")
        self._width = None if width is None else positive("width", width)
        self._height = None if height is None else positive("height", height)

    def divide(self, count: int, panel_width: float, tall: float, key: int = 0) -> list[Axes]:
        """Make the panels; of axes of the caller, these alone.

        Where the legend would take more than three tenths of the width, or panels would be narrower
        than 2 inches, it is beneath them; and if that is not enough, they are one beneath the
        other, where there is the height for it.

        Parameters
        ----------
        count : int
            Number of panels.
        panel_width, tall : float
            Inches of a panel in a figure whose `width` and `height` are None.
        key : int
            Number of entries of the legend.
        """
        if self.ax is not None:
            self.figure, self.panels = self.ax.figure.figure, [self.ax]
            return self.panels
        key = 0 if self._legend is False else key
        side, height = KEY if key else 0.0, self._height
        self._inside = height is not None and height < key * LEGEND_ROW
        width = count * panel_width + side if self._width is None else self._width
        bottom, rows = 0.0, 1
        if width < max(count * LEAST_PANEL + side, side / MOST_KEY):
            columns = max(1, int(width // LEGEND_COLUMN))
            self._position = {"loc": "outside lower center", "ncols": columns}
            bottom = LEGEND_ROW * -(-key // columns)
            self._inside = height is not None and height - bottom < LOWEST_PANEL
            stacked = height is None or height - bottom > 0.8 * LEAST_PANEL * count
            rows = count if width < count * LEAST_PANEL and stacked else 1
        bottom = 0.0 if self._inside else bottom
        if height is None:
            height = rows * tall * (0.8 if rows > 1 else 1.0) + bottom
        self.figure = theme.figure(width=width, height=height)
        self.panels = panels_in(self.figure, count, count // rows)
        return self.panels

    def legend(self, handles: Iterable[Artist] = ()) -> None:
        """A legend of these handles, by default of everything with a label, each label once."""
        of_panels = [panel.get_legend_handles_labels() for panel in self.panels]
        labelled = {text: h for each in of_panels for h, text in zip(*each, strict=True)}
        entries = list(handles) or list(labelled.values())
        if self._legend is False:
            return
        if not self._inside:
            self.figure.legend(handles=entries, **self._position)
            return
        box = self.panels[-1].bbox
        width, height = box.width / self.figure.dpi, box.height / self.figure.dpi
        count, most = len(entries), MOST_COVERED * height
        small = self.ax is None or width < SMALL_PANEL or count * LEGEND_ROW > most
        if self._legend or self.ax is not None or count * SMALL_ROW <= most:
            font = {"fontsize": SMALL_FONT} if small else {}
            self.panels[-1].legend(handles=entries, loc="best", **font)

    def remove_unwanted_legends(self) -> None:
        """Remove legends that were drawn although the option `legend` is False."""
        for legend in filter(None, (panel.get_legend() for panel in self.panels)):
            if self._legend is False and legend is not self._before:
                legend.remove()


def of_result(draw: Callable[..., None]) -> Callable[..., Figure]:
    """Register a function that draws a result on a `Canvas`, as the figure of its name.

    Its first argument after the canvas is a result of the class, or are results of the class, that
    its annotation names: TypeError for others. Options that it does not have are those of the
    canvas.
    """
    own = list(signature(draw).parameters.values())[1:]
    name, kind, several = own[0].name, own[0].annotation, own[0].kind is Parameter.VAR_POSITIONAL

    @wraps(draw)
    def figure(*results: Any, **options: Any) -> Figure:
        of_draw = {p.name: options.pop(p.name) for p in own if p.name in options}
        named = [of_draw[name]] if name in of_draw else []
        for result in results if several else [*results[:1], *named]:
            fits = kind in [base.__name__ for base in type(result).__mro__]
            require(name, result, f"of the class {kind}", fits, TypeError)
        with theme.style():
            page = Canvas(**options)
            draw(page, *results, **of_draw)
            labels.label_logarithmic(page.panels)
            page.remove_unwanted_legends()
        return page.figure

    others = Parameter("options", Parameter.VAR_KEYWORD, annotation=Any)
    figure.__signature__ = Signature([*own, others], return_annotation=Figure)  # type: ignore[attr-defined]
    return FIGURES.register(figure)


def finish(panels: Panels, title: str | None) -> Figure:
    """Add the heading and the verdict, to a new figure or to the caller's axes."""
    figure: Any = panels.figure.figure
    labels.label_logarithmic(panels.axes)
    if not panels.inside:
        return title_page(figure, panels.solution, title)
    if title is not None:
        panels.axes[0].set_title(title)
    mark(panels.axes[0], panels.solution)
    return figure


# Headings and verdicts -----------------------------------------------------------------------


def verdict(solution: Solution) -> tuple[str, str] | None:
    """Text and colour of the banner, or None for a solution that is resolved and finished."""
    if not solution.resolved_after_start:
        return f"NOT RESOLVED: {solution.message}", theme.WARNING
    if not solution.resolved:
        return f"INITIAL DENSITY CUT OFF: {solution.message}", theme.CAUTION
    if not solution.success:
        return f"STOPPED EARLY ({solution.status}): {solution.message}", theme.CAUTION
    return None


def title_page(figure: Figure, solution: Solution, title: str | None, **position: Any) -> Figure:
    """Add a heading, the model or the caller's title, and the verdict, if any, with a frame.

    Room for both is reserved here, since the layout engine does not account for the frame.
    """
    heading = labels.describe_model(solution) if title is None else title
    outcome, bottom, side = verdict(solution), 0.0, 0.0
    if outcome is not None:
        message, colour = outcome
        banner = fill(message, int(11 * figure.get_figwidth()))
        bottom, side = 0.3 + 0.2 * (1 + banner.count("\n")), 0.1
        figure.set_figheight(figure.get_figheight() + bottom)
        figure.patch.set(edgecolor=colour, linewidth=8)
        style = {"va": "bottom", "color": colour, "fontsize": 11, "fontweight": "bold"}
        place = 0.12 / figure.get_figheight()
        figure.supxlabel(banner, y=place, parse_math=False, **style)
    width, height = figure.get_size_inches()
    top = side + (0.3 if heading else 0.0)
    if heading:
        text = figure.suptitle(heading, y=1 - (0.1 + 0.5 * side) / height, va="top", **position)
        top += theme.break_heading(figure, text)
    rect = (side / width, bottom / height, 1 - 2 * side / width, 1 - (bottom + top) / height)
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(rect=rect)
    return figure


def mark(ax: Axes, solution: Solution) -> None:
    """Frame one panel of the caller's figure and write the verdict into it, if there is one."""
    outcome = verdict(solution)
    if outcome is None:
        return
    text, colour = outcome
    ax.spines[:].set(visible=True, edgecolor=colour, linewidth=2.5)
    width = ax.get_position().width * ax.figure.bbox.width / ax.figure.dpi
    box = {"facecolor": "white", "edgecolor": colour, "alpha": 0.9}
    style: theme.Style = {
        "ha": "center",
        "va": "top",
        "color": colour,
        "fontsize": 7.5,
        "fontweight": "bold",
    }
    style |= {"transform": ax.transAxes, "zorder": 10, "bbox": box, "parse_math": False}
    ax.text(0.5, 0.97, fill(text, max(20, int(15 * width))), **style)
