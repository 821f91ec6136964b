"""Phase diagrams: critical curves, folds, the first-order line and the tricritical point."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from . import theme

if TYPE_CHECKING:
    from ..stationary import PhaseDiagram

__all__ = ["phases"]

BOTH = {"color": theme.FAINT, "alpha": 0.3, "lw": 0}
NAMES = {"fold": "fold", "transition": "first-order transition"}


def phases(*diagrams: "PhaseDiagram", relative: bool = False, ax: Axes | None = None) -> Figure:
    """The plane of beta and kappa, kappa logarithmic: one panel for each diagram.

    Below all curves the uniform state is the only one that attracts; between the fold and the
    critical curve ordered states do too (shaded); above, the uniform state is unstable. Where there
    is a fold, an inset has kappa divided by kappa_1 of the same beta.

    Parameters
    ----------
    *diagrams : PhaseDiagram
        Of USA and of SA, for instance.
    relative : bool
        Whether kappa is divided by kappa_1 of the same beta, which opens up the region between the
        curves.
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
        figure = theme.figure(width=4.4 if len(diagrams) == 1 else 3.6 * len(diagrams), height=3.4)
        panels = figure.subplots(1, len(diagrams), squeeze=False, sharey=not relative)[0]
        for panel, diagram in zip(panels, diagrams, strict=True):
            _draw(panel, diagram, relative)
            if not relative and "fold" in diagram.loci:
                _inset(panel, diagram)
            if panel is not panels[0]:
                panel.set_ylabel("")
    return figure


def _inset(ax: Axes, diagram: "PhaseDiagram") -> None:
    """The region between the curves, which all but coincide at this scale."""
    inner = ax.inset_axes((0.15, 0.09, 0.28, 0.26))
    _draw(inner, diagram, True)
    low, high = inner.get_ylim()
    inner.set_ylim(low, 1 + 0.2 * (high - 1))
    inner.get_legend().remove()  # type: ignore[union-attr]
    lowest = min(point.beta for point in diagram.tricritical) if diagram.tricritical else None
    inner.set_xlim(left=None if lowest is None else 0.9 * lowest)
    inner.set(title="", xlabel="", facecolor="none")
    inner.tick_params(labelsize=7.5)
    inner.yaxis.label.set_size(8.5)


def _draw(ax: Axes, diagram: "PhaseDiagram", relative: bool) -> None:
    data = diagram.data
    curve, degree = data.curve.values, data.degree.values
    beta = data.beta.values
    unit = np.array([diagram.kappa("critical", b) if relative else 1.0 for b in beta])
    kappa = data.kappa.values / unit
    for i, l in enumerate(np.unique(degree[curve == "critical"])):
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
    for point in diagram.tricritical:
        scale = diagram.kappa("critical", point.beta) if relative else 1.0
        place = [point.beta], [point.kappa / scale]
        ax.plot(*place, "o", ms=4.5, mfc="white", mec=theme.INK, zorder=3)
    ax.set(xlabel=r"$\beta$", ylabel=r"$\kappa/\kappa_1$" if relative else r"$\kappa$")
    narrow = relative and bool((curve != "critical").any())
    ax.set(yscale="linear" if narrow else "log", title=data.attrs["drift"])
    if narrow:
        ax.set_ylim(*_around_one(kappa))
    ax.set_xlim(*data.attrs["beta"])
    ax.legend(loc="best")


def _around_one(kappa: np.ndarray) -> tuple[float, float]:
    """From below the lowest curve to a little above kappa_1."""
    below = 1 - float(kappa.min())
    return 1 - 1.2 * max(below, 0.1), 1 + max(below, 0.1)
