"""The figure of a fit."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .fitted import Fit


def of_fit(found: "Fit") -> "Figure":
    """Parameters with intervals, the test of fit, and errors held out."""
    from ..plotting.theme import figure, style

    with style():
        page = figure(width=11, height=3.2)
        left, middle, right = page.subplots(1, 3)
        labels, interval = found.family.labels, found.interval()
        values = found.family.values(found.estimate.point)
        scale = np.where(values == 0, 1, np.abs(values))
        for k in range(len(labels)):
            left.plot(interval[k] / scale[k], [k, k], "-", color="C0")
            left.plot(values[k] / scale[k], k, "o", color="C0")
            left.annotate(f"{values[k]:.3g}", (values[k] / scale[k], k + 0.15))
        left.set(yticks=range(len(labels)), yticklabels=labels, xlabel="relative to the estimate",
                 title=f"{found.family.name}: {found.status}")  # fmt: skip
        if found.goodness is not None:
            names = list(found.goodness.deviations)
            middle.barh(range(len(names)), list(found.goodness.deviations.values()))
            middle.set(yticks=range(len(names)), xlabel="standard errors",
                       title=f"test of fit: p = {found.goodness.p_value:.2g}")  # fmt: skip
            middle.set_yticklabels([name.split(" learned")[0] for name in names], fontsize=7)
        for k, one in enumerate(found.predictions):
            errors = [one.flow, one.nothing, one.linear]
            right.bar(np.arange(3) + 0.35 * k, errors, 0.35, label=f"{one.held} held out")
        right.set(xticks=range(3), xticklabels=["flow", "nothing", "linear map"],
                  ylabel="angle, radians", title="predictions")  # fmt: skip
        if found.predictions:
            right.legend()
    return page
