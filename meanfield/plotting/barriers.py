"""Figures of barriers of the free energy between stationary states."""

from typing import TYPE_CHECKING

import numpy as np

from . import theme
from .labels import label_of_order
from .layouts import Canvas, of_result

if TYPE_CHECKING:
    from ..metastability import Saddles, TransitionPath

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
