"""Times: which saved states to show, which of them are resolved, and the axis of time."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ..core.checks import as_given, boolean, fitting, real_array, whole_number
from ..results.solution import Solution
from . import theme
from .appearance import appearance_of
from .clusters import evenly
from .labels import Member, distinct, label_logarithmic

NAME = "time $t$"
FEWEST, LONG = 5, 30.0  # least number and least range of times for a logarithmic axis
EVEN, MOST = 0.1, 0.7  # deviation of even steps from their median, and their least share
MOST_LISTED = 4  # times in a message


def resolved_states(solution: Solution) -> np.ndarray:
    """A mask (m,) over saved states: True before the first that is not resolved."""
    if solution.resolved:
        return np.ones(len(solution.t), dtype=bool)
    return appearance_of(solution.final).resolved(solution)


def is_timeless(solution: Solution) -> bool:
    """True for a state that `state.plot()` draws without a run; it has no time."""
    return solution.stored.get("timeless", False)


def titles_of(solution: Solution, shown: np.ndarray) -> list[str]:
    """Saved times as titles, t = 0.5; empty for a state without a run."""
    if is_timeless(solution):
        return [""] * len(shown)
    return [f"$t = {text}$" for text in distinct(solution.t[shown])]


def drawn_count(solution: Solution) -> int:
    """The number of saved states that are drawn: all, but not the last one of a blow-up."""
    return len(solution) - (solution.status == "blow-up" and len(solution) > 1)


def pick_times(
    solution: Solution, members: Sequence[Member], times: Sequence[float] | None, count: int
) -> np.ndarray:
    """Increasing indices of the saved states nearest to `times`, or by default those of `story`.

    The last state of a blow-up is never among them.

    Raises
    ------
    ValueError
        If a time lies outside the solution, this is a state without a run, or `count` is not
        positive.
    """
    if times is None:
        count = whole_number("count", count)
        return story(solution, members, count)
    if is_timeless(solution):
        raise ValueError(
            f"times = {as_given(times)}: a state by itself has no times. Leave `times` out, "
            "or plot the run that it comes from."
        )
    wanted = np.atleast_1d(real_array("times", times))
    begin, end = solution.t[0], solution.t[-1]
    slack = 1e-9 * max(abs(begin), abs(end))
    saved = wanted.size and ((wanted >= begin - slack) & (wanted <= end + slack)).all()
    fitting("times", times, f"between {begin:g} and {end:g}, where this solution was saved", saved)
    shown = solution.t[: drawn_count(solution)]
    return np.unique(np.abs(shown[:, None] - wanted).argmin(axis=0))


def story(solution: Solution, members: Sequence[Member], count: int) -> np.ndarray:
    """Indices of at most `count` saved states, evenly spread along the path of the measure.

    Distance along the path is measured in the harmonics of degree 16 at most, or by how far the
    nodes of characteristics or the tokens move, or inner products change, in the mean square: fast
    and slow phases are shown alike. Normal laws are rescaled so that infinity is finite.
    The first and the last state are always included, except for the last of a blow-up.
    """
    return spread(solution.states[: drawn_count(solution)], members, count)


def spread(states: Sequence[Any], members: Sequence[Member], count: int) -> np.ndarray:
    """Indices of at most `count` of these states, as for `story`."""
    if len(states) == 1:
        return np.array([0])
    places = appearance_of(states[0]).vectors(states, members)
    steps = np.array([np.linalg.norm(after - before) for before, after in pairwise(places)])
    # A small multiple of the index makes the path increase where the measure does not move.
    path = np.concatenate([[0.0], np.cumsum(steps + 1e-3 * steps.mean() + 1e-300)])
    wanted = np.linspace(0.0, path[-1], min(count, len(path)))
    return np.unique(np.abs(path[:, None] - wanted).argmin(axis=0))


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
        if len(t) < FEWEST or t[-1] < LONG * t[0]:
            return False
        steps = np.diff(np.log(t))
        return bool(np.mean(np.abs(steps / np.median(steps) - 1) < EVEN) > MOST)
    log_time = boolean("log_time", log_time)
    if log_time and len(t) < 2:
        listed = [f"{t:g}" for t in shown]
        if len(listed) > MOST_LISTED:
            listed = [*listed[:2], "...", f"{listed[-1]} ({len(listed)} times)"]
        raise ValueError(
            f"log_time needs at least two saved times above 0; got t = {', '.join(listed)}. Solve "
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
        label_logarithmic(ax.xaxis)
    ax.set_xlabel(NAME if named else "")
    if is_timeless(solution):
        ax.set(xticks=[], xlabel="")


def hatch(ax: Axes, solution: Solution) -> None:
    """Hatch a time axis from the last resolved time towards the time that was asked for.

    A run that stopped long before its end is hatched as far as a quarter of what it reached.
    """
    begin, end = solution.t[0], solution.t[-1]
    resolved = solution.t[resolved_states(solution)]
    span = (end - begin) or 1.0
    asked = max(solution.options.get("t_eval", [end]))
    edge = end + min(max(asked - end, 0.06 * span), 0.25 * span)
    style = {"facecolor": (1, 1, 1, 0.35), "edgecolor": theme.WARNING, "hatch": "////"}
    ax.axvspan(resolved[-1] if len(resolved) else begin, edge, linewidth=1.2, zorder=5, **style)
    ax.set_xlim(begin, edge)


def time_edges(t: np.ndarray, *, log_time: bool) -> np.ndarray:
    """Edges (m + 1,) of the cells of saved times: both ends, and midpoints on the axis shown."""
    places = np.log(t) if log_time else t
    middles = (places[1:] + places[:-1]) / 2
    edges = np.concatenate([places[:1], middles, places[-1:]])
    return np.exp(edges) if log_time else edges


def columns_of_times(
    solution: Solution, most: int, *, log_time: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Indices of at most `most` saved times for the columns of a map, and the edges of columns.

    A logarithmic axis begins at the first time above 0.
    """
    t = solution.t
    first = int(np.flatnonzero(t > 0)[0]) if log_time else 0
    kept = first + evenly(len(t) - first, most)
    return kept, time_edges(t[kept], log_time=log_time)


def need_two_times(solution: Solution, figure: str, instead: str) -> None:
    """Raise ValueError for a single saved time; `instead` is the kind of figure for one."""
    if len(solution) < 2:
        raise ValueError(
            f"{figure} needs at least two saved times; got {len(solution)}. Use kind={instead!r}, "
            "or solve with more times in t_eval."
        )
