"""Bifurcation diagrams: branches of stationary states, stable ones solid, unstable ones dashed."""

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from . import theme

if TYPE_CHECKING:
    from ..stationary import Diagram

__all__ = ["bifurcation"]

MARKS = {
    "bifurcation": ("o", "branch point"),
    "fold": ("s", "fold"),
    "transition": ("D", "equal free energy"),
    "symmetry breaking": ("^", "symmetry breaking"),
}


def bifurcation(diagram: "Diagram", *, y: str = "order_parameter", log: bool = False) -> Figure:
    """A quantity of all stationary states against kappa, with the special points.

    Parameters
    ----------
    diagram : Diagram
        With growth rates, or all lines are solid.
    y : str
        A variable on the points of `diagram.data`, "moment l", or the name of an observable.
    log : bool
        Whether kappa has a logarithmic axis.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If there is no such variable.
    """
    values = _values(diagram, y)
    data = diagram.data
    with theme.style():
        figure = theme.figure(width=4.6, height=3.2)
        ax = figure.subplots()
        for number in np.unique(data.branch.values):
            here = data.branch.values == number
            colour = theme.INK if number == 0 else theme.PALETTE[(number - 1) % 6]
            _line(ax, data.kappa.values[here], values[here], data.growth.values[here], colour)
        shown = _specials(ax, diagram, y)
        handles = [Line2D([], [], color=theme.INK, label="stable")]
        handles += [Line2D([], [], color=theme.INK, ls="--", lw=0.9, label="unstable")]
        ax.legend(handles=handles + shown, loc="best")
        ax.set(xlabel=r"$\kappa$", ylabel=_label(y), xscale="log" if log else "linear")
        ax.set_xlim(*data.attrs["kappa"])
    return figure


def _values(diagram: "Diagram", y: str) -> np.ndarray:
    data = diagram.data
    if y.startswith("moment ") and y[7:].isdigit() and 1 <= int(y[7:]) <= data.sizes["degree"]:
        return data.moments.sel(degree=int(y[7:])).values
    if y not in data or data[y].dims != ("point",):
        names = [str(name) for name, table in data.items() if table.dims == ("point",)]
        raise ValueError(f"bifurcation shows {', '.join(names)} or 'moment l'; got {y!r}.")
    return data[y].values


def _line(ax: Axes, kappa: np.ndarray, values: np.ndarray, growth: np.ndarray, colour) -> None:
    """Pieces between changes of stability, each with the first point of the next."""
    stable = ~(growth > 1e-9)
    cuts = [0, *(np.flatnonzero(np.diff(stable.astype(int))) + 1), len(kappa)]
    for begin, end in pairwise(cuts):
        piece = slice(begin, min(end + 1, len(kappa)))
        style = {"ls": "-"} if stable[begin] else {"ls": "--", "lw": 0.9}
        ax.plot(kappa[piece], values[piece], color=colour, **style)


def _specials(ax: Axes, diagram: "Diagram", y: str) -> list[Line2D]:
    """Markers of special points, where the value of y is known; a legend entry for each kind."""
    shown = {}
    for special in diagram.special_points:
        value = _value_at(special.state, y)
        if value is None:
            continue
        marker, label = MARKS[special.kind]
        style = {"marker": marker, "ms": 4.5, "mfc": "white", "mec": theme.INK, "ls": ""}
        ax.plot([special.kappa], [value], zorder=3, **style)
        shown[label] = Line2D([], [], label=label, **style)
    return list(shown.values())


def _value_at(state, y: str) -> float | None:
    if y in ("order_parameter", "free_energy"):
        return getattr(state, y)
    if y.startswith("moment "):
        return float(state.legendre_moments[int(y[7:]) - 1])
    return None


def _label(y: str) -> str:
    known = {
        "order_parameter": r"$r = |\int x\, d\mu|$",
        "free_energy": r"$F(\mu) - F(\mathrm{uniform})$",
        "growth": "largest growth rate",
    }
    return known.get(y, y)
