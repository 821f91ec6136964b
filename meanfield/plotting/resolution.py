"""Marks that make a solution which is not resolved, or not finished, impossible to miss."""

from dataclasses import replace
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..results.solution import Solution
from . import theme

__all__ = ["frame", "hatch", "mark", "verdict"]


def verdict(solution: Solution) -> tuple[str, str] | None:
    """Text and colour of the banner, or None for a solution that is resolved and finished."""
    if not solution.resolved:
        return f"NOT RESOLVED: {solution.message}", theme.WARNING
    if not solution.success:
        return f"STOPPED EARLY ({solution.status}): {solution.message}", theme.CAUTION
    return None


def resolved_states(solution: Solution) -> np.ndarray:
    """Whether each saved state comes before the first that is not resolved, (m,).

    A density is while its spectral tail is at most rtol; a run of characteristics knows since
    when they are not.
    """
    if solution.resolved:
        return np.ones(len(solution.t), dtype=bool)
    since = solution.stats.get("unresolved_since")
    if since is not None:
        return solution.t < since
    worst = np.array([state.spectral_tail.max() for state in solution])
    return np.logical_and.accumulate(worst <= solution.rtol)


def before_blow_up(solution: Solution) -> Solution:
    """Without the last state of a blow-up, which is next to infinity and hides all others."""
    if solution.status != "blow-up" or len(solution) == 1:
        return solution
    measured = ("observables", "observed")
    kept = {name: values for name, values in solution.stored.items() if name not in measured}
    for group in (group for group in measured if group in solution.stored):
        kept[group] = {
            name: (dims, values[:-1] if dims[:1] == ("t",) else values)
            for name, (dims, values) in solution.stored[group].items()
        }
    return replace(solution, t=solution.t[:-1], states=solution.states[:-1], stored=kept)


def last_resolved_time(solution: Solution) -> float:
    """Time of the last saved state known to be resolved; the first time if there is none."""
    known = np.flatnonzero(resolved_states(solution))
    return float(solution.t[known[-1] if known.size else 0])


def frame(figure: Figure, solution: Solution) -> float:
    """Frame a whole figure, add room beneath it and write the verdict there.

    Returns
    -------
    float
        Height of that room in inches; 0 without a verdict.
    """
    found = verdict(solution)
    if found is None:
        return 0.0
    text, colour = found
    banner = fill(text, int(11 * figure.get_figwidth()))
    room = 0.2 + 0.2 * (1 + banner.count("\n"))
    figure.set_figheight(figure.get_figheight() + room)
    figure.patch.set(edgecolor=colour, linewidth=8)
    figure.supxlabel(
        banner,
        y=0.12 / figure.get_figheight(),
        va="bottom",
        color=colour,
        fontsize=11,
        fontweight="bold",
        parse_math=False,
    )
    return room


def mark(ax: Axes, solution: Solution) -> None:
    """Frame one panel of somebody else's figure and write the verdict into it."""
    found = verdict(solution)
    if found is None:
        return
    text, colour = found
    for spine in ax.spines.values():
        spine.set(visible=True, edgecolor=colour, linewidth=2.5)
    width = ax.get_position().width * ax.figure.get_figwidth()
    ax.text(
        0.5,
        0.97,
        fill(text, max(20, int(15 * width))),
        transform=ax.transAxes,
        ha="center",
        va="top",
        color=colour,
        fontsize=7.5,
        fontweight="bold",
        parse_math=False,
        zorder=10,
        bbox={"facecolor": "white", "edgecolor": colour, "alpha": 0.9},
    )


def hatch(ax: Axes, solution: Solution) -> None:
    """Hatch a time axis from the last resolved time towards the time that was asked for.

    A run that stopped long before its end is hatched as far as a quarter of what it reached.
    """
    if solution.resolved:
        return
    begin, end = float(solution.t[0]), float(solution.t[-1])
    span = (end - begin) or 1.0
    asked = max(solution.options.get("t_eval", [end]))
    edge = end + min(max(asked - end, 0.06 * span), 0.25 * span)
    ax.axvspan(
        last_resolved_time(solution),
        edge,
        facecolor=(1, 1, 1, 0.35),
        edgecolor=theme.WARNING,
        hatch="////",
        linewidth=1.2,
        zorder=5,
    )
    ax.set_xlim(begin, edge)
