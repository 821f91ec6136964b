"""Figures of periodic orbits and their branches, of several states of one model, and of basins."""

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes

from ..core.checks import require
from ..spaces.density import Density
from ..spaces.indexed import Indexed
from . import theme
from .diagrams import MARKS, STYLES
from .labels import label_of_order, symbol_of
from .layouts import Canvas, of_result
from .theme import Style

if TYPE_CHECKING:
    from ..bifurcation import Basins, Cycle, CycleBranch, StationaryStates

PHASES = 401  # at which moments are drawn
CYCLE_MARKS = {"period doubling": ("P", "period doubling"), "torus": ("X", "torus"),
            "branch point": ("^", "branch point"), "fold": MARKS["fold"]}  # fmt: skip
QUANTITIES = {
    "order_parameter": r"$r = |\int x\, d\mu|$, least and largest",
    "period": "period $T$",
    "amplitude": "amplitude in $L^2$",
}
GROWN_PERIOD = 4.0  # ratio of periods from which on their axis is logarithmic


@of_result
def cycle(page: Canvas, orbit: "Cycle") -> None:
    """Left: the mean int x dmu over one period; right: the multipliers and the unit circle.

    Parameters
    ----------
    orbit : Cycle
    width, height : float, optional
        Of the figure, in inches.
    legend : bool, optional
        Whether there is a legend, if the figure has one; by default where there is room.

    Returns
    -------
    Figure
    """
    require("ax", page.ax, "left out: a cycle has two panels", page.ax is None)
    phases = np.linspace(0, 1, PHASES)
    means = np.array([_mean(orbit.at(float(phase))) for phase in phases])
    left, right = page.divide(2, 3.6, 3.2)
    for k, column in enumerate(means.T):
        left.plot(phases * orbit.period, column, color=theme.colour(k), label=f"$x_{k + 1}$")
    left.plot(phases * orbit.period, np.linalg.norm(means, axis=1), color=theme.INK, lw=0.9,
              ls="--", label="$r$")  # fmt: skip
    left.set(xlabel="time $t$", ylabel=r"$\int x\, d\mu$", xlim=(0, orbit.period))
    left.legend(loc="best")
    angle = np.linspace(0, 2 * np.pi, 181)
    right.plot(np.cos(angle), np.sin(angle), color=theme.FAINT, lw=0.9)
    for label, mask, fill in (("of shifts", orbit.neutral, "white"),
                              ("others", ~orbit.neutral, theme.PALETTE[1])):  # fmt: skip
        values = orbit.multipliers[mask]
        right.plot(values.real, values.imag, "o", ms=4.5, mec=theme.INK, mfc=fill, label=label)
    right.set(xlabel="real part", ylabel="imaginary part", aspect="equal")
    right.legend(loc="best", title="multipliers")
    word = "stable" if orbit.stable else "unstable"
    page.figure.suptitle(f"{word} cycle, period {orbit.period:.6g}")


def _mean(state: Density | Indexed) -> np.ndarray:
    """The mean int x dmu of a density; for indexed densities, of their average."""
    return np.ravel(state.expect(lambda x: x))


@of_result
def cycle_branch(page: Canvas, branch: "CycleBranch", *, y: str | None = None) -> None:
    """Extremes of the order parameter, and the period, along a branch of cycles.

    Unstable cycles are dashed. A vertical line marks a value at which the period is infinite.

    Parameters
    ----------
    branch : CycleBranch
    y : str, optional
        "order_parameter", "period" or "amplitude" alone; by default the first two.
    ax : Axes, optional
        Where to draw a single one, with its legend.
    width, height : float, optional
        Of a new figure, in inches.
    legend : bool, optional
        Whether there is a legend, if the figure has one; by default where there is room.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        For other quantities.
    """
    require("y", y, f"one of {', '.join(QUANTITIES)}", y is None or y in QUANTITIES)
    single = y is not None or page.ax is not None
    names = [y or "order_parameter"] if single else ["order_parameter", "period"]
    key = 1 + len({point.kind for point in branch.special_points})
    panels = page.divide(len(names), 3.4, 3.2, key=key)
    for panel, name in zip(panels, names, strict=True):
        _branch(panel, branch, name)
    page.legend()


def _branch(ax: Axes, branch: "CycleBranch", name: str) -> None:
    """Draw one quantity along a branch, with special points and ends of infinite period."""
    data, extremes = branch.data, name == "order_parameter"
    lines = [data[f"{name}_{end}"].values for end in ("min", "max")] if extremes else [
        data[name].values
    ]  # fmt: skip
    places, unstable = data[branch.parameter].values, data.unstable.values > 0
    cuts = [0, *(np.flatnonzero(unstable[1:] != unstable[:-1]) + 1), len(places)]
    labelled: set[str] = set()
    for begin, end in pairwise(cuts):
        kind = "unstable" if unstable[begin] else "stable"
        for values in lines:
            label = None if kind in labelled else f"{kind} cycles"
            piece = slice(begin, min(end + 1, len(places)))
            ax.plot(places[piece], values[piece], color=theme.PALETTE[0], label=label,
                    **STYLES[kind])  # fmt: skip
            labelled.add(kind)
    for point in branch.special_points:
        marker, label = CYCLE_MARKS[point.kind]
        shifts = (places - point.value) / (np.ptp(places) or 1.0)
        nearest = int(np.hypot(shifts, data.period.values / point.period - 1).argmin())
        height = point.period if name == "period" else lines[-1][nearest]
        shown = None if label in labelled else label
        ax.plot([point.value], [height], marker, ms=4.5, mfc="white", mec=theme.INK, ls="",
                zorder=3, label=shown)  # fmt: skip
        labelled.add(label)
    for end, limit in zip(branch.ends, branch.limits, strict=True):
        if end in ("SNIC", "homoclinic"):
            ax.axvline(limit, color=theme.FAINT, lw=0.9, ls=":", label=end)
    ax.set(xlabel=f"${symbol_of(branch.parameter)}$", ylabel=QUANTITIES[name])
    periods = data.period.values
    if name == "period" and periods.max() > GROWN_PERIOD * periods.min():
        ax.set_yscale("log")


# Several states of one model ----------------------------------------------------------------------


@of_result
def stationary_states(page: Canvas, states: "StationaryStates") -> None:
    """Growth rate and order parameter of every state; stable ones are filled.

    Parameters
    ----------
    states : StationaryStates
    ax : Axes, optional
        Where to draw.
    width, height : float, optional
        Of a new figure, in inches.
    legend : bool, optional
        Whether there is a legend, if the figure has one; by default where there is room.

    Returns
    -------
    Figure
    """
    (ax,) = page.divide(1, 4.6, 3.3)
    r, growth = states.data.order_parameter.values, states.data.growth.values
    colours = np.where(growth <= 0, theme.INK, "none")
    ax.axhline(0.0, color=theme.FAINT, lw=0.8)
    ax.scatter(r, growth, c=colours, edgecolors=theme.INK)
    ax.set(xlabel=label_of_order(states[0].density.space), ylabel="largest growth rate")


@of_result
def basins(page: Canvas, basins: "Basins") -> None:
    """Shares of starts by where they end, with Wilson intervals, against the parameter.

    Bars where there is a single value of the parameter.

    Parameters
    ----------
    basins : Basins
    ax : Axes, optional
        Where to draw.
    width, height : float, optional
        Of a new figure, in inches.
    legend : bool, optional
        Whether there is a legend, if the figure has one; by default where there is room.

    Returns
    -------
    Figure
    """
    data = basins.data
    names, share = [str(name) for name in data.end.values], data.share.values
    errors = np.array([share - data.low.values, data.high.values - share]).clip(0)
    (ax,) = page.divide(1, 4.6, 3.3)
    ax.set(ylabel="share of starts", ylim=(0, 1.05))
    if basins.parameter is None:
        ax.bar(names, share[0], yerr=errors[:, 0], color=theme.FAINT, ecolor=theme.INK)
        return
    for i, name in enumerate(names):
        style: Style = {"marker": "o", "ms": 4, "color": theme.colour(i), "label": name}
        ax.errorbar(data[basins.parameter].values, share[:, i], errors[:, :, i], **style)
    ax.set_xlabel(basins.parameter)
    ax.legend()
