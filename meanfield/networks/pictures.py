"""Figures of fits and of advice."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .advice import Advice
    from .fitting import Fit


def of_fit(found: "Fit") -> "Figure":
    """Parameters with intervals, the test of fit, and errors held out."""
    from ..plotting.theme import PALETTE, figure, style

    bars = PALETTE[0], PALETTE[5]  # dark and light
    with style():
        page = figure(width=11, height=3.2)
        left, middle, right = page.subplots(1, 3)
        labels, interval = found.family.labels, found.interval()
        values = found.family.values(found.estimate.point)
        scale = np.where(values == 0, 1, np.abs(values))
        for k in range(len(labels)):
            left.plot(interval[k] / scale[k], [k, k], "-", color="C0")
            left.plot(values[k] / scale[k], k, "o", color="C0")
            place = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center"}
            left.annotate(f"{values[k]:.3g}", (values[k] / scale[k], k), **place)
        left.set_ylim(-0.5, len(labels) - 0.5)
        left.set(yticks=range(len(labels)), yticklabels=labels, xlabel="relative to the estimate",
                 title=f"{found.family.name}: {found.status}")  # fmt: skip
        if found.goodness is not None:
            names = list(found.goodness.deviations)
            middle.barh(range(len(names)), list(found.goodness.deviations.values()))
            middle.set(yticks=range(len(names)), xlabel="standard errors",
                       title=f"test of fit: p {found.goodness.p_in_words}")  # fmt: skip
            middle.set_yticklabels([name.split(" learned")[0] for name in names], fontsize=7)
        for k, one in enumerate(found.predictions):
            errors = [one.flow, one.nothing, one.linear]
            look = {"color": bars[k % len(bars)], "label": f"{one.held} held out"}
            right.bar(np.arange(3) + 0.35 * k, errors, 0.35, **look)
        right.set(xticks=range(3), xticklabels=["flow", "nothing", "linear map"],
                  ylabel="angle, radians", title="predictions")  # fmt: skip
        if found.predictions:
            right.margins(y=0.3)  # room for the legend
            right.legend(loc="upper right")
    return page


def of_advice(found: "Advice") -> "Figure":
    """Mean cosines and numbers of tokens that are looked at, by layer and placement."""
    from ..plotting.theme import INK, PALETTE, figure, style

    dashes = "-", "--", ":", "-."
    with style():
        page = figure(width=8.4, height=3.0)
        left, right = page.subplots(1, 2)
        for k, name in enumerate(found.placements):
            rows = found.layers.sel(normalisation=name)
            look = {"color": PALETTE[k % 6], "ls": dashes[k % 4], "label": name}
            left.plot(rows.layer, rows.mean_cosine, **look)
            right.plot(rows.layer, rows.seen, **look)
        left.axhline(found.threshold, color=INK, lw=0.7)
        left.set(xlabel="layer", ylabel="mean cosine of pairs", ylim=(None, 1.03))
        right.axhline(found.sizes.n, color=INK, lw=0.7)
        right.set(xlabel="layer", ylabel=r"tokens looked at, $1/\sum_j w_{ij}^2$",
                  ylim=(0, 1.08 * found.sizes.n))  # fmt: skip
        left.legend(loc="lower right")
    return page
