"""Phase diagrams: critical curves, folds, the first-order line and the tricritical point."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from . import theme

if TYPE_CHECKING:
    from ..bifurcation import PhaseDiagram

__all__ = ["phases"]

BOTH = {"color": theme.FAINT, "alpha": 0.3, "lw": 0}
NAMES = {"fold": "fold", "transition": "first-order transition"}


def phases(
    *diagrams: "PhaseDiagram",
    relative: bool = False,
    close_up: bool = False,
    ax: Axes | None = None,
) -> Figure:
    """The plane of beta and kappa, kappa logarithmic: one panel for each diagram.

    Below all curves the uniform state is the only one that attracts; between the fold and the
    critical curve ordered states do too (shaded); above, the uniform state is unstable.

    Parameters
    ----------
    *diagrams : PhaseDiagram
        Of USA and of SA, for instance.
    relative : bool
        Whether kappa is divided by kappa_1 of the same beta, which opens up the region between the
        curves.
    close_up : bool
        Whether those with a fold have a second, relative panel, at the end.
    ax : Axes, optional
        Where to draw a single one.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        Without a diagram, and for several on one Axes.
    """
    if not diagrams or (ax is not None and len(diagrams) > 1):
        raise ValueError(f"phases draws one diagram on an Axes; got {len(diagrams)}.")
    with theme.style():
        if ax is not None:
            _draw(ax, diagrams[0], relative)
            return ax.figure  # type: ignore[return-value]
        table = [(diagram, relative) for diagram in diagrams]
        if close_up and not relative:
            table += [(diagram, True) for diagram in diagrams if "fold" in diagram.loci]
        figure = theme.figure(width=4.2 if len(table) == 1 else 3.3 * len(table), height=3.4)
        panels = figure.subplots(1, len(table), squeeze=False)[0]
        for panel, (diagram, divided) in zip(panels, table, strict=True):
            _draw(panel, diagram, divided)
        planes = [panel for panel, (_, divided) in zip(panels, table, strict=True) if not divided]
        for panel in planes[1:]:
            panel.sharey(planes[0])
            panel.autoscale(axis="y")
    return figure


def _draw(ax: Axes, diagram: "PhaseDiagram", relative: bool) -> None:
    data = diagram.data
    curve, degree = data.curve.values, data.degree.values
    beta = data.beta.values
    unit = np.array([diagram.kappa("critical", b) if relative else 1.0 for b in beta])
    kappa = data.kappa.values / unit
    degrees = np.unique(degree[curve == "critical"])
    narrow = relative and bool((curve != "critical").any())
    for i, l in enumerate(degrees[degrees == 1] if narrow else degrees):
        here = (curve == "critical") & (degree == l)
        style = {"lw": 1.6} if l == 1 else {"lw": 0.9}
        colour = theme.INK if l == 1 else theme.PALETTE[(i + 2) % 6]
        ax.plot(beta[here], kappa[here], color=colour, label=rf"$\kappa_{{{l}}}$", **style)
    for name, colour in zip(NAMES, theme.PALETTE, strict=False):
        here = curve == name
        if here.any():
            style = "--" if name == "fold" else "-"
            ax.plot(beta[here], kappa[here], style, color=colour, label=NAMES[name])
    here = curve == "fold"
    if here.any():  # where both states attract
        top = np.array([diagram.kappa("critical", b) for b in beta[here]]) / unit[here]
        ax.fill_between(beta[here], kappa[here], top, label="both stable", **BOTH)
    for point in (p for p in diagram.tricritical if p.degree == 1 or not narrow):
        scale = diagram.kappa("critical", point.beta) if relative else 1.0
        place = [point.beta], [point.kappa / scale]
        ax.plot(*place, "o", ms=4.5, mfc="white", mec=theme.INK, zorder=3)
    ax.set(xlabel=r"$\beta$", ylabel=r"$\kappa/\kappa_1$" if relative else r"$\kappa$")
    ax.set(yscale="linear" if narrow else "log", title=data.attrs["drift"])
    if narrow:
        ax.set_ylim(*_around_one(kappa))
    ax.set_xlim(*data.attrs["beta"])
    ax.legend(loc="best")


def _around_one(kappa: np.ndarray) -> tuple[float, float]:
    """From below the lowest curve to a little above kappa_1."""
    below = 1 - float(kappa.min())
    return 1 - 1.2 * max(below, 0.1), 1 + 0.3 * max(below, 0.1)
