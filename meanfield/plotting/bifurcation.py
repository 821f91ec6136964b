"""Bifurcation diagrams: stable stationary states solid, unstable ones dashed, others dotted."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from . import theme

if TYPE_CHECKING:
    from ..bifurcation import Diagram

__all__ = ["bifurcation"]

STYLES = {
    "stable": {"ls": "-"},
    "unstable": {"ls": "--", "lw": 0.9},
    "stability unknown": {"ls": ":"},
}
MARKS = {
    "bifurcation": ("o", "branch point"),
    "fold": ("s", "fold"),
    "transition": ("D", "equal free energy"),
    "symmetry breaking": ("^", "symmetry breaking"),
}


def bifurcation(
    diagram: "Diagram", *, y: str | Sequence[str] | None = None, log: bool = False
) -> Figure:
    """A quantity of all stationary states against kappa or beta, with the special points.

    Parameters
    ----------
    diagram : Diagram
        Without growth rates all lines but the uniform one are dotted.
    y : str or sequence of str
        A variable on the points of `diagram.data`, "moment l", or the name of an observable; of
        several each has its panel. By default the order parameter, which polyhedra have not got:
        theirs is the first moment.
    log : bool
        Whether the parameter has a logarithmic axis.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If there is no such variable.
    """
    if y is None:
        least = int(diagram.data.degree[0])
        y = "order_parameter" if least == 1 else f"moment {least}"
    names = [y] if isinstance(y, str) else list(y)
    table = [(name, _values(diagram, name)) for name in names]
    with theme.style():
        figure = theme.figure(width=4.6 if len(names) == 1 else 3.5 * len(names), height=3.2)
        panels = figure.subplots(1, len(names), squeeze=False)[0]
        for ax, (name, values) in zip(panels, table, strict=True):
            shown = _panel(ax, diagram, name, values)
            ax.set(
                xlabel=f"${_symbol(diagram)}$",
                ylabel=_label(name),
                xscale="log" if log else "linear",
            )
            ax.set_xlim(*diagram.span)
        found = set(_stability(diagram.data.growth.values))
        handles = [
            Line2D([], [], color=theme.INK, label=kind, **style)
            for kind, style in STYLES.items()
            if kind in found
        ]
        panels[0].legend(handles=handles + shown, loc="best")
    return figure


def _panel(ax: Axes, diagram: "Diagram", y: str, values: np.ndarray) -> list[Line2D]:
    """Branches and special points; legend entries of the latter."""
    data = diagram.data
    for number in np.unique(data.branch.values):
        here = data.branch.values == number
        colour = theme.INK if number == 0 else theme.PALETTE[(number - 1) % 6]
        places = data[diagram.parameter].values[here]
        _line(ax, places, values[here], data.growth.values[here], colour)
    ax.margins(y=0.1)
    above = np.nanmin(values) < -np.nanmax(values)
    for onset in diagram.special("bifurcation", 0):
        value = _value_at(onset.state, y)
        if value is not None:
            ax.annotate(
                rf"${_symbol(diagram)}_{{{onset.degree}}}$", (onset.value, value), ha="center",
                xytext=(0, 5 if above else -13), textcoords="offset points",
            )  # fmt: skip
    return _specials(ax, diagram, y)


def _values(diagram: "Diagram", y: str) -> np.ndarray:
    data = diagram.data
    if y.startswith("moment ") and y[7:].isdigit() and int(y[7:]) in data.degree:
        return data.moments.values[:, np.flatnonzero(data.degree.values == int(y[7:]))[0]]
    if y not in data or data[y].dims != ("point",):
        names = [str(name) for name, table in data.items() if table.dims == ("point",)]
        raise ValueError(f"bifurcation shows {', '.join(names)} or 'moment l'; got {y!r}.")
    return data[y].values


def _stability(growth: np.ndarray) -> np.ndarray:
    """A key of STYLES for every point."""
    known = np.where(growth > 1e-9, "unstable", "stable")
    return np.where(np.isnan(growth), "stability unknown", known)


def _line(ax: Axes, places: np.ndarray, values: np.ndarray, growth: np.ndarray, colour) -> None:
    """Pieces between changes of stability, each with the first point of the next."""
    kinds = _stability(growth)
    cuts = [0, *(np.flatnonzero(kinds[1:] != kinds[:-1]) + 1), len(places)]
    for begin, end in pairwise(cuts):
        piece = slice(begin, min(end + 1, len(places)))
        ax.plot(places[piece], values[piece], color=colour, **STYLES[str(kinds[begin])])


def _specials(ax: Axes, diagram: "Diagram", y: str) -> list[Line2D]:
    """Markers of special points in the range, where y is known; a legend entry for each kind."""
    shown, (low, high) = {}, diagram.span
    for special in diagram.special_points:
        value = _value_at(special.state, y)
        if value is None or not low <= special.value <= high:
            continue
        marker, label = MARKS[special.kind]
        edge = theme.WARNING if special.status == "not located" else theme.INK
        style = {"marker": marker, "ms": 4.5, "mfc": "white", "mec": edge, "ls": ""}
        ax.plot([special.value], [value], zorder=3, **style)
        shown[label] = Line2D([], [], label=label, **style)
    return list(shown.values())


def _value_at(state, y: str) -> float | None:
    if y in ("order_parameter", "free_energy"):
        return getattr(state, y)
    if y.startswith("moment "):
        found = np.flatnonzero(state.equation.degrees == int(y[7:]))
        return float(state.legendre_moments[found[0]]) if len(found) else None
    return None


def _symbol(diagram: "Diagram") -> str:
    """The parameter of a diagram in a formula."""
    name = diagram.parameter
    return rf"\{name}" if name in ("kappa", "beta") else rf"\mathrm{{{name.replace('_', ' ')}}}"


def _label(y: str) -> str:
    known = {
        "order_parameter": r"$r = |\int x\, d\mu|$",
        "free_energy": r"$F(\mu) - F(\mathrm{uniform})$",
        "growth": "largest growth rate",
    }
    return known.get(y, y)
