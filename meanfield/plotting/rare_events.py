"""Figures of rare events: barriers, paths across them, probabilities of levels, first passages."""

from typing import TYPE_CHECKING

import numpy as np

from . import theme
from .labels import label_of_order
from .layouts import Canvas, of_result

if TYPE_CHECKING:
    from ..metastability import FirstPassages, Saddles, SplittingStudy, TransitionPath

DRAWN_IMAGES, DRAWN_ANGLES = 7, 401  # densities of a path that are drawn, and points of each


@of_result
def saddles(page: Canvas, saddles: "Saddles") -> None:
    """Free energy and order parameter of a stable state, its saddles and the states beyond.

    Stable states are filled; a line joins each saddle to the two states at its ends.

    Parameters
    ----------
    saddles : Saddles
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
    ground = saddles.state
    ax.plot(ground.order_parameter, 0.0, "o", color=theme.INK)
    for i, saddle in enumerate(saddles):
        colour = theme.colour(i)
        states = [saddle.ends[0], saddle.state, saddle.ends[1]]
        places = [(s.order_parameter, s.free_energy) for s in states if s is not None]
        r, energy = zip(*places, strict=True)
        heights = [value - ground.free_energy for value in energy]
        ax.plot(r, heights, color=colour, label=f"barrier {saddle.barrier:.3g}")
        ax.plot(r, heights, "o", color=theme.INK)
        ax.plot(saddle.state.order_parameter, saddle.barrier, "o", mfc="white", mec=theme.INK)
    label = label_of_order(ground.density.space)
    ax.set(xlabel=label, ylabel=r"$F(\mu) - F(\mathrm{stable\ state})$")
    if len(saddles):
        ax.legend()


@of_result
def transition_path(page: Canvas, path: "TransitionPath") -> None:
    """Free energy along a path, and densities at equal distances along it, in the same colours.

    Models without a free energy have the order parameter in its place, and no mark at saddles.
    Densities are over the angle on the circle, and else from the direction of the mean of the last
    density, on S^2 along a great circle. Stable states are filled circles, saddles open ones.

    Parameters
    ----------
    path : TransitionPath
    ax : Axes, optional
        Where to draw the free energy or the order parameter, alone.
    width, height : float, optional
        Of a new figure, in inches.
    legend : bool, optional
        Whether there is a legend, if the figure has one; by default where there is room.

    Returns
    -------
    Figure
    """
    length, energy = path.data.length.values, path.data.free_energy.values
    has_energy = not np.isnan(energy).any()
    height = energy - energy[0] if has_energy else path.data.order_parameter.values
    along, *others = page.divide(2, 3.6, 3.3)
    along.plot(length, height, color=theme.INK)
    turns = 1 + np.flatnonzero(np.diff(np.sign(np.diff(height)))) if has_energy else ()
    for i in (0, *turns, -1):
        top = i in turns and height[i] > height[i - 1]
        along.plot(length[i], height[i], "o", mfc="white" if top else theme.INK, mec=theme.INK)
    along.set(
        xlabel=r"length of the path in $H^{-1}$",
        ylabel=r"$F(\mu) - F(a)$" if has_energy else "order parameter",
    )
    if others:
        places = np.linspace(0.0, length[-1], DRAWN_IMAGES)
        chosen = [int(np.abs(length - place).argmin()) for place in places]
        colours = theme.ordered_colours(len(chosen))
        angles, points = _angles(path)
        for i, tint in zip(chosen, colours, strict=True):
            along.plot(length[i], height[i], "|", color=tint, ms=9, mew=1.8)
            others[0].plot(angles, path.densities[i].at(points), color=tint)
        others[0].set(xlabel=r"$\theta$", ylabel=r"$\mu(\theta)$", xlim=(angles[0], angles[-1]))


def _angles(path: "TransitionPath") -> tuple[np.ndarray, np.ndarray]:
    """Angles, and unit vectors at these, at which the densities of a path are drawn."""
    d = path.densities.dimension
    low = 0.0 if d > 2 else -np.pi
    angles = np.linspace(low, np.pi, DRAWN_ANGLES)
    if d == 2:
        return angles, np.stack([np.cos(angles), np.sin(angles)], axis=1)
    pole = path.densities.space.mean_direction(path.densities[-1])
    aside = np.eye(d)[np.abs(pole).argmin()]
    aside = aside - (aside @ pole) * pole
    aside /= np.linalg.norm(aside)
    return angles, np.cos(angles)[:, None] * pole + np.sin(angles)[:, None] * aside


@of_result
def levels(page: Canvas, study: "SplittingStudy") -> None:
    """The probability to climb above a level before the source: every repetition and their mean.

    Parameters
    ----------
    study : SplittingStudy
    ax : Axes, optional
    width, height : float, optional
        Of a new figure, in inches.
    legend : bool, optional
        Whether there is a legend, if the figure has one; by default where there is room.

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
    legend : bool, optional
        Whether there is a legend, if the figure has one; by default where there is room.

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
