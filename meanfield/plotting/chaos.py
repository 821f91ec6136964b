"""Studies of propagation of chaos: distances against n, with their rates, and against time."""

import warnings
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from . import theme

if TYPE_CHECKING:
    from ..chaos import Study

__all__ = ["rates"]

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
SPREAD = 1.96


def rates(study: "Study", *, t: float | None = None, name: str | None = None) -> Figure:
    """Left: every distance against n at one time; right: one of them against time for every n.

    Dots are means over replicas with 95 % intervals, lines are fitted powers of n, and dashed lines
    the floor: independent samples of the density.

    Parameters
    ----------
    study : Study
    t : float, optional
        The time on the left, of which the nearest is taken; by default the last.
    name : str, optional
        The distance on the right; by default "W2", or the first.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If there is no such distance.
    """
    names = [*study.data.attrs["distances"]]
    names += ["coupling"] if "coupling" in study.data else []
    known = [*names, *(["coupling up to rotation"] if "coupling" in study.data else [])]
    if not names:
        raise ValueError("rates shows distances or the coupling, and this study has neither.")
    if name is not None and name not in known:
        raise ValueError(f"rates shows one of {', '.join(known)}; got {name!r}.")
    chosen = name or ("W2" if "W2" in names else names[0])
    with theme.style():
        figure = theme.figure(width=7.8, height=3.3)
        left, right = figure.subplots(1, 2)
        _against_size(left, study, names, t)
        _against_time(right, study, chosen)
    return figure


def _against_size(ax: Axes, study: "Study", names: list[str], t: float | None) -> None:
    table = study.data.isel(t=-1) if t is None else study.data.sel(t=t, method="nearest")
    sizes = table.n.values
    for i, name in enumerate(names):
        colour = theme.PALETTE[i % len(theme.PALETTE)]
        mean, error = _mean(table[name])
        if not mean.all() or np.isnan(mean).all():  # coupled tokens at the start; nothing yet
            continue
        ax.errorbar(
            sizes, mean, SPREAD * error, fmt=MARKERS[i % len(MARKERS)], ms=4, color=colour, lw=1
        )
        rate = study.rate(name, t)
        ends = np.array([sizes[0], sizes[-1]])
        label = f"{_label(name)}: $n^{{{rate.exponent:.2f}}}$"
        ax.plot(ends, rate.constant * ends**rate.exponent, color=colour, label=label)
        if f"floor of {name}" in table:
            floor = _mean(table[f"floor of {name}"])[0]
            ax.plot(sizes, floor, "--", color=colour, lw=0.9)
    if any(name.startswith("floor") for name in map(str, table)):
        ax.plot([], [], "--", color=theme.INK, lw=0.9, label="independent samples")
    ax.set(xscale="log", yscale="log", xlabel="$n$ tokens", title=f"$t = {float(table.t):g}$")
    ax.legend()


def _against_time(ax: Axes, study: "Study", name: str) -> None:
    times = study.data.t.values
    sizes = study.data.n.values
    for colour, n in zip(theme.ordered_colours(len(sizes)), sizes, strict=True):
        mean, error = _mean(study.data[name].sel(n=n))
        if np.isnan(mean).all():
            continue
        ax.plot(times, mean, color=colour, marker=".", label=f"$n = {n}$")
        band = mean - SPREAD * error, mean + SPREAD * error
        ax.fill_between(times, *band, color=colour, alpha=0.2)
        if f"floor of {name}" in study.data:
            floor = _mean(study.data[f"floor of {name}"].sel(n=n))[0]
            ax.plot(times, floor, "--", color=colour, lw=0.9)
    ax.set(yscale="log", xlabel="time $t$", title=_label(name))
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles, labels, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _mean(table) -> tuple[np.ndarray, np.ndarray]:
    """Mean over replicas and its standard error."""
    values = table.values
    count = np.isfinite(values).sum(axis=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # sizes that were not begun
        return np.nanmean(values, axis=-1), np.nanstd(values, axis=-1, ddof=1) / count**0.5


def _label(name: str) -> str:
    known = {"W1": "$W_1$", "W2": "$W_2$", "H^-1": "$H^{-1}$", "H^-2": "$H^{-2}$", "mmd": "MMD"}
    return known.get(name, name)
