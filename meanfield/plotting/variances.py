"""The eigenvalues of a covariance over time, on scales that show which of them vanish."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..states import Gaussian
from . import resolution, theme
from .panels import into, page, title_page
from .spaces import Space, expect
from .time_axis import is_logarithmic, time_axis

if TYPE_CHECKING:
    from ..solution import Solution

__all__ = ["draw_variances", "variances"]

DEEPEST = 1e-16  # of the largest of all: below it an eigenvalue is rounding


def variances(
    solution: "Solution",
    *,
    ax: Axes | None = None,
    log_time: bool | None = None,
    title: str | None = None,
) -> Figure:
    """The eigenvalues of the covariance over time, on a logarithmic axis.

    Parameters
    ----------
    solution : Solution
        A Gaussian in any dimension.
    ax : Axes, optional
        Draw here rather than in a new figure.
    log_time : bool, optional
        Whether the axis of times is logarithmic, from the first saved time above 0 on;
        by default where saved times are spaced like numpy.geomspace.
    title : str, optional
        Heading; by default the model, and none if it is "". Not used with `ax`.

    Returns
    -------
    Figure

    Raises
    ------
    TypeError
        If the states are not Gaussians.
    ValueError
        If `log_time` is asked for and there are fewer than two times above 0.
    """
    expect(solution, Gaussian, Space.LINE, Space.PLANE, Space.EUCLIDEAN)
    with theme.style():
        target = into(ax, solution, None) if ax else page(solution, None, width=7, height=3.4)
        draw_variances(target.axes[0], solution, log_time=log_time)
        if ax is None:
            return title_page(target.figure, solution, title)
        resolution.mark(ax, solution)
        return ax.figure


def draw_variances(ax: Axes, solution: "Solution", *, log_time: bool | None = None) -> None:
    """One curve for each eigenvalue in order."""
    log_time = is_logarithmic(solution, log_time)
    values = np.array([np.linalg.eigvalsh(state.cov) for state in solution])
    shown = np.where(values > DEEPEST * values.max(), values, np.nan)
    marker = {"marker": "."} if len(solution) == 1 else {}
    for curve, colour in zip(shown.T, theme.ordered_colours(values.shape[1]), strict=True):
        ax.plot(solution.t, curve, color=colour, **marker)
    ax.set_yscale("log")
    ax.set_ylabel(r"eigenvalues of $\Sigma$")
    time_axis(ax, solution, log_time=log_time)
