"""Tokens on the circle, or on the line: where each is over time."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from ..spaces import Circle
from . import ensemble
from .crowds import Crowd, Gathering, crowd_of, grey_first
from .panels import drawing
from .profiles import AROUND
from .spaces import Space, expect_tokens
from .sphere_sheet import member_of
from .time_axis import is_logarithmic, time_axis
from .trajectories import angle_of, check_curves, mark_ends, turned

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["MOST_CURVES", "draw_token_trajectories", "opacity", "places_over_time", "token_curves"]

MOST_CURVES = 300
MOST_MARKED = 12


def token_curves(
    solution: "Solution",
    *,
    count: int = MOST_CURVES,
    ax: Axes | None = None,
    member: int | tuple[int, ...] | None = None,
    log_time: bool | None = None,
    title: str | None = None,
) -> Figure:
    """The angle, or on the line the place, of every token over time.

    A curve has the colour of the cluster in which it ends (single linkage, gaps up to arccos
    0.9999), grey in none; heavier tokens have thicker curves. The clusters at the end are marked
    with their share of the mass.

    Parameters
    ----------
    solution : Solution
        Tokens on the circle, or on the line, at two saved times or more.
    count : int
        At most how many curves: of more tokens, some are drawn, evenly spread at first.
    ax : Axes, optional
        Draw here rather than in a new figure.
    member : int or tuple of int, optional
        Member of an ensemble; by default all of them, at most nine.
    log_time : bool, optional
        Whether the axis of times is logarithmic, from the first saved time above 0 on;
        by default where saved times are spaced like numpy.geomspace.
    title : str, optional
        Heading; by default the model, and none if it is "". Not used with `ax`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If there are fewer than two saved times, or of those above 0 with `log_time`; if `count`
        is not positive, the member does not exist, or there are too many.
    TypeError
        If the states are not tokens on the circle or on the line.
    """
    expect_tokens(solution, Circle, Space.LINE)
    with drawing(ax, solution, member, title, width=7, height=3.6) as target:
        for panel, index in zip(target.axes, target.members, strict=True):
            draw_token_trajectories(panel, solution, index, count=count, log_time=log_time)
        for panel, bottom, left in target.outer:
            panel.set(xlabel=panel.get_xlabel() if bottom else "")
            panel.set(ylabel=panel.get_ylabel() if left else "")
    return target.figure


def draw_token_trajectories(
    ax: Axes,
    solution: "Solution",
    member: tuple[int, ...],
    *,
    count: int = MOST_CURVES,
    log_time: bool | None = None,
) -> Crowd:
    """The curves and, at the end, the clusters; the tokens that were drawn."""
    check_curves(solution, count, "observables")
    log_time = is_logarithmic(solution, log_time)
    whole = places_over_time(solution, member)
    crowd = crowd_of(solution, member, count, whole[0])
    places = whole[:, crowd.tokens]
    round_ = solution.final.on_sphere
    segments, colours, widths = [], [], []
    for i in grey_first(crowd):
        for copy in turned(places[:, i]) if round_ else [places[:, i]]:
            segments.append(np.column_stack([solution.t, copy]))
            colours.append(crowd.colours[i])
            widths.append(np.clip(0.9 * np.sqrt(crowd.sizes[i]), 0.3, 4.0))
    style = {"alpha": opacity(len(crowd.tokens)), "rasterized": len(segments) > MOST_CURVES}
    ax.add_collection(LineCollection(segments, colors=colours, linewidths=widths, **style))
    if round_:
        ax.set(ylim=AROUND.limits, ylabel=AROUND.name)
        ax.set_yticks(AROUND.ticks, AROUND.labels)
    else:
        margin = 0.04 * (np.ptp(places) or 1.0)
        ax.set(ylim=(places.min() - margin, places.max() + margin), ylabel="$x$")
    text = ", ".join(filter(None, [ensemble.label(solution, member), crowd.note]))
    ax.set_title("")
    ax.set_title(text, loc="left", fontsize=9)
    time_axis(ax, solution, log_time=log_time)
    ends = crowd.ends[:MOST_MARKED]
    mark_ends(ax, solution.t[-1], _places_of(ends, round_), [end.mass for end in ends])
    return crowd


def places_over_time(solution: "Solution", member: tuple[int, ...]) -> np.ndarray:
    """Angles of all tokens, continuous in time; on the line their places. (t, n)."""
    x = np.stack([member_of(state, member).x for state in solution])
    if not solution.final.on_sphere:
        return x[..., 0]
    return np.unwrap(np.arctan2(x[..., 1], x[..., 0]), axis=0)


def opacity(count: int) -> float:
    """How opaque each of `count` tokens is drawn."""
    return float(np.clip(3.0 / np.sqrt(max(count, 1)), 0.25, 0.85))


def _places_of(ends: list[Gathering], round_: bool) -> np.ndarray:
    return np.array([angle_of(end.point) if round_ else end.point[0] for end in ends])
