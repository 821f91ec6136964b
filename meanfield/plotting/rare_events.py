"""Figures of measured passages: probabilities of levels, and the law of first-passage times."""

from typing import TYPE_CHECKING

import numpy as np

from . import theme
from .layouts import Canvas, of_result

if TYPE_CHECKING:
    from ..metastability import FirstPassages, SplittingStudy


@of_result
def levels(page: Canvas, study: "SplittingStudy") -> None:
    """The probability to climb above a level before the source: every repetition and their mean.

    Parameters
    ----------
    study : SplittingStudy
    ax : Axes, optional
    width, height : float, optional
        Of a new figure, in inches.

    Returns
    -------
    Figure
    """
    z, each = study.curve()
    each = np.where(each > 0, each, np.nan)
    (ax,) = page.divide(1, 4.6, 3.3)
    ax.plot(z, each.T, color=theme.FAINT, lw=0.7)
    ax.plot(z, np.nan_to_num(each).mean(axis=0), color=theme.colour(0), label="mean")
    p = study.probability
    if p.value > 0:
        ends = np.array(p.interval)
        error = np.abs(np.maximum(ends, p.value / 10) - p.value)[:, None]
        ax.errorbar([z[-1]], [p.value], error, fmt="o", ms=4, color=theme.colour(1),
                    label=f"$p = {p.value:.2g}$")  # fmt: skip
    ax.set(yscale="log", xlabel="level", ylabel="P(level before source)")
    ax.legend(loc="best")


@of_result
def passages(page: Canvas, study: "FirstPassages") -> None:
    """The share of trajectories without a passage against time, and the exponential of their mean.

    Parameters
    ----------
    study : FirstPassages
        Without source.
    ax : Axes, optional
    width, height : float, optional
        Of a new figure, in inches.

    Returns
    -------
    Figure
    """
    mean, count = study.mean_time, study.data.sizes["trajectory"]
    times = np.sort(study.times)
    left = 1 - np.arange(1, len(times) + 1) / count
    (ax,) = page.divide(1, 4.6, 3.3)
    ax.step(np.append(0, times), np.append(1, left), where="post", label="trajectories")
    if np.isfinite(mean.value):
        t = np.linspace(0, times.max(), 201)
        ax.plot(t, np.exp(-t / mean.value), "--", color=theme.INK, lw=0.9,
                label=f"$e^{{-t/T}}$, $T = {mean.value:.4g}$")  # fmt: skip
    ax.set(yscale="log", ylim=(0.5 / count, 1.1), xlabel="time $t$", ylabel="P($T > t$)")
    ax.legend(loc="best")
