"""Figures of barriers of the free energy between stationary states."""

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from ..core.provided import FIGURES
from . import theme
from .layouts import Canvas

if TYPE_CHECKING:
    from ..metastability import Saddles


@FIGURES.register
def saddles(saddles: "Saddles", **where: Any) -> Figure:
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
    with theme.style():
        page = Canvas(1, 4.6, 3.3, **where)
        (ax,) = page.panels
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
        ax.set(xlabel=r"$r = |\int x\, d\mu|$", ylabel=r"$F(\mu) - F(\mathrm{stable\ state})$")
        if len(saddles):
            ax.legend()
    return page.figure
