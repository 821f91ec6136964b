"""Tokens on the circle: how many are where over time, for those that never come to rest."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase

from ..spaces import Circle
from . import theme
from .panels import Panels, drawing
from .profiles import AROUND
from .spaces import expect_tokens
from .sphere_sheet import member_of
from .time_axis import is_logarithmic, time_axis, time_edges

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["draw_token_spacetime", "token_spacetime"]

BINS = 72
MOST_COLUMNS = 600
NAME = "tokens, 1 if uniform"


def token_spacetime(
    solution: "Solution",
    *,
    bins: int = BINS,
    ax: Axes | None = None,
    member: int | tuple[int, ...] | None = None,
    log_time: bool | None = None,
    title: str | None = None,
) -> Figure:
    """Heat map of the angles of tokens over time, relative to the uniform state.

    Parameters
    ----------
    solution : Solution
        Tokens on the circle, at two saved times or more.
    bins : int
        How many, of equal width around the circle.
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
        If there are fewer than two saved times (above 0 with `log_time`), `bins` is not positive,
        or the member does not exist.
    TypeError
        If the states are not tokens on the circle.
    """
    expect_tokens(solution, Circle)
    with drawing(ax, solution, member, title, width=7, height=3.2) as target:
        draw_token_spacetime(target.figure, target, solution, bins=bins, log_time=log_time)
    return target.figure


def draw_token_spacetime(
    figure: FigureBase,
    target: Panels,
    solution: "Solution",
    *,
    bins: int = BINS,
    log_time: bool | None = None,
) -> None:
    """A heat map in each panel with one bar for all."""
    log_time = is_logarithmic(solution, log_time)
    if len(solution) < 2 or bins < 1:
        raise ValueError(
            f"A space-time map needs two saved times and a bin or more; got {len(solution)} and "
            f"{bins}. A single time: kind='histogram'."
        )
    first = int(np.flatnonzero(solution.t > 0)[0]) if log_time else 0
    count = len(solution) - first
    kept = first + np.unique(
        np.linspace(0, count - 1, min(count, MOST_COLUMNS)).round().astype(int)
    )
    shares = [_shares(solution, member, kept, bins) for member in target.members]
    top = max(found.max() for found in shares)
    for (ax, bottom, left), found in zip(target.outer, shares, strict=True):
        image = ax.pcolormesh(
            time_edges(np.asarray(solution.t)[kept], log_time=log_time),
            np.linspace(-np.pi, np.pi, bins + 1),
            found.T,
            vmin=0,
            vmax=top,
            cmap=theme.DENSITY_MAP,
            rasterized=True,
        )
        ax.set_yticks(AROUND.ticks, AROUND.labels if left else [])
        ax.set_ylabel(AROUND.name if left else "")
        time_axis(ax, solution, log_time=log_time, named=bottom)
    figure.colorbar(image, ax=target.axes, label=NAME, pad=0.02)


def _shares(solution: "Solution", member, kept: np.ndarray, bins: int) -> np.ndarray:
    """Masses in bins over the uniform ones, (times, bins)."""
    edges, rows = np.linspace(-np.pi, np.pi, bins + 1), []
    for i in kept:
        tokens = member_of(solution[i], member)
        angles = np.arctan2(tokens.x[:, 1], tokens.x[:, 0])
        rows.append(np.histogram(angles, edges, weights=tokens.masses)[0] * bins)
    return np.array(rows)
