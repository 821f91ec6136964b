"""Figures of fits and of advice."""

import numpy as np
from matplotlib.figure import Figure

from meanfield.plotting.theme import INK, PALETTE, figure, style

from .advice import Advice
from .fitting import Fit


def of_fit(fit: Fit) -> Figure:
    """Parameters with intervals, the test of fit, and errors of held-out predictions."""
    bars = PALETTE[0], PALETTE[5]  # dark and light
    with style():
        page = figure(width=11, height=3.2)
        left, middle, right = page.subplots(1, 3)
        labels, interval = fit.family.labels, fit.interval()
        values = fit.family.values(fit.estimate.point)
        scale = np.where(values == 0, 1, np.abs(values))
        for k in range(len(labels)):
            left.plot(interval[k] / scale[k], [k, k], "-", color="C0")
            left.plot(values[k] / scale[k], k, "o", color="C0")
            offset = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center"}
            left.annotate(f"{values[k]:.3g}", (values[k] / scale[k], k), **offset)
        left.set_ylim(-0.5, len(labels) - 0.5)
        left.set(yticks=range(len(labels)), yticklabels=labels, xlabel="relative to the estimate",
                 title=f"{fit.family.name}: {fit.status}")  # fmt: skip
        if fit.goodness is not None:
            names = list(fit.goodness.deviations)
            middle.barh(range(len(names)), list(fit.goodness.deviations.values()))
            middle.set(yticks=range(len(names)), xlabel="standard errors",
                       title=f"test of fit: p {fit.goodness.p_in_words}")  # fmt: skip
            middle.set_yticklabels([name.split(" learned")[0] for name in names], fontsize=7)
        for k, one in enumerate(fit.predictions):
            errors = [one.flow, one.nothing, one.linear]
            look = {"color": bars[k % len(bars)], "label": f"{one.kind} held out"}
            right.bar(np.arange(3) + 0.35 * k, errors, 0.35, **look)
        right.set(xticks=range(3), xticklabels=["flow", "nothing", "linear map"],
                  ylabel="angle, radians", title="predictions")  # fmt: skip
        if fit.predictions:
            right.margins(y=0.3)  # room for the legend
            right.legend(loc="upper right")
    return page


def of_advice(advice: Advice) -> Figure:
    """Mean cosines and numbers of attended tokens, by layer and placement."""
    dashes = "-", "--", ":", "-."
    with style():
        page = figure(width=8.4, height=3.0)
        left, right = page.subplots(1, 2)
        for k, name in enumerate(advice.placements):
            rows = advice.layers.sel(normalisation=name)
            look = {"color": PALETTE[k % 6], "ls": dashes[k % 4], "label": name}
            left.plot(rows.layer, rows.mean_cosine, **look)
            right.plot(rows.layer, rows.attended, **look)
        left.axhline(advice.threshold, color=INK, lw=0.7)
        left.set(xlabel="layer", ylabel="mean cosine of pairs", ylim=(None, 1.03))
        right.axhline(advice.sizes.n, color=INK, lw=0.7)
        right.set(xlabel="layer", ylabel=r"tokens looked at, $1/\sum_j w_{ij}^2$",
                  ylim=(0, 1.08 * advice.sizes.n))  # fmt: skip
        left.legend(loc="lower right")
    return page
