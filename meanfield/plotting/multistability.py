"""Figures of several states of one model, and of shares of starts by where they end."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from ..core.provided import FIGURES
from . import theme
from .layouts import Canvas

if TYPE_CHECKING:
    from ..bifurcation import Basins, StationaryStates


@FIGURES.register
def stationary_states(states: "StationaryStates", **where: Any) -> Figure:
    """Growth rate and order parameter of every state; stable ones are filled.

    Parameters
    ----------
    states : StationaryStates
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
        r, growth = states.data.order_parameter.values, states.data.growth.values
        colours = np.where(growth <= 0, theme.INK, "none")
        ax.axhline(0.0, color=theme.FAINT, lw=0.8)
        ax.scatter(r, growth, c=colours, edgecolors=theme.INK)
        ax.set(xlabel=r"$r = |\int x\, d\mu|$", ylabel="largest growth rate")
    return page.figure


@FIGURES.register
def basins(basins: "Basins", **where: Any) -> Figure:
    """Shares of starts by where they end, with Wilson intervals, against the parameter.

    Bars where there is a single value of the parameter.

    Parameters
    ----------
    basins : Basins
    ax : Axes, optional
        Where to draw.
    width, height : float, optional
        Of a new figure, in inches.

    Returns
    -------
    Figure
    """
    data: Any = basins.data
    with theme.style():
        page = Canvas(1, 4.6, 3.3, **where)
        (ax,) = page.panels
        names = [str(name) for name in data.end.values]
        share = data.share.values
        spread = np.array([share - data.low.values, data.high.values - share]).clip(0)
        if basins.parameter is None:
            ax.bar(names, share[0], yerr=spread[:, 0], color=theme.FAINT, ecolor=theme.INK)
        for i, name in enumerate(names if basins.parameter is not None else []):
            colour = theme.colour(i)
            values = data[basins.parameter].values
            ax.errorbar(
                values, share[:, i], spread[:, :, i], marker="o", ms=4, color=colour, label=name
            )
        ax.set(ylabel="share of starts", ylim=(0, 1.05))
        if basins.parameter is not None:
            ax.set_xlabel(basins.parameter)
            ax.legend()
    return page.figure
