"""The axis of times beneath a panel: linear, or logarithmic for runs over decades."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from ..core.checks import boolean
from . import resolution, theme
from .log_labels import label_logarithmic

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["is_logarithmic", "time_axis", "time_edges"]

NAME = "time $t$"
FEWEST, LONG = 5, 30.0  # so many times, and so long a range, are worth a logarithmic axis
EVEN, MOST = 0.1, 0.7
MOST_LISTED = 4  # times in a message


def is_logarithmic(solution: "Solution", log_time: bool | None) -> bool:
    """Whether times are shown on a logarithmic axis: if asked, or by themselves for None.

    Raises
    ------
    ValueError
        If it is asked for and there are fewer than two times above 0.
    """
    shown = np.asarray(resolution.before_blow_up(solution).t)
    t = shown[shown > 0]
    if log_time is None:
        return len(t) >= FEWEST and t[-1] >= LONG * t[0] and _is_geometric(t)
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


def _is_geometric(t: np.ndarray) -> bool:
    """Whether most times are the same factor apart."""
    steps = np.diff(np.log(t))
    return bool(np.mean(np.abs(steps / np.median(steps) - 1) < EVEN) > MOST)


def time_axis(
    ax: Axes, solution: "Solution", *, log_time: bool = False, named: bool = True
) -> None:
    """Limits, scale and name; what lies beyond a resolved state is hatched, a blow-up is dotted."""
    t = np.asarray(solution.t)
    if solution.status == "blow-up":
        end = solution.stats["blow_up_time"]
        ax.axvline(end, color=theme.CAUTION, linestyle=":", linewidth=1.0)
        ax.set_xlim(t[0], end + 0.03 * (end - t[0]))
    elif len(t) > 1:
        ax.set_xlim(t[0], t[-1])
    resolution.hatch(ax, solution)
    if log_time:
        ax.set_xscale("log")
        label_logarithmic(ax.xaxis)
        ax.set_xlim(left=t[t > 0][0])
    ax.set_xlabel(NAME if named else "")


def time_edges(t: np.ndarray, *, log_time: bool) -> np.ndarray:
    """Where one saved time gives way to the next: halfway, on the axis that is shown."""
    places = np.log(t) if log_time else t
    middles = (places[1:] + places[:-1]) / 2
    edges = np.concatenate([places[:1], middles, places[-1:]])
    return np.exp(edges) if log_time else edges
