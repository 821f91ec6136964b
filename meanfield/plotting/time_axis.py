"""The axis of times beneath a panel: linear, or logarithmic for runs over decades."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from . import resolution, theme

if TYPE_CHECKING:
    from ..solution import Solution

__all__ = ["check_log_time", "time_axis", "time_edges"]

NAME = "time $t$"


def check_log_time(solution: "Solution", log_time: bool) -> None:
    """Raise ValueError if times are to be shown on a logarithmic axis and cannot."""
    shown = resolution.before_blow_up(solution).t
    if log_time and np.count_nonzero(shown > 0) < 2:
        raise ValueError(
            "log_time needs at least two saved times above 0; got t = "
            f"{', '.join(f'{t:g}' for t in shown)}. Solve with more times in t_eval, for "
            "instance numpy.geomspace."
        )


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
        ax.set_xlim(left=t[t > 0][0])
    ax.set_xlabel(NAME if named else "")


def time_edges(t: np.ndarray, *, log_time: bool) -> np.ndarray:
    """Where one saved time gives way to the next: halfway, on the axis that is shown."""
    places = np.log(t) if log_time else t
    middles = (places[1:] + places[:-1]) / 2
    edges = np.concatenate([places[:1], middles, places[-1:]])
    return np.exp(edges) if log_time else edges
