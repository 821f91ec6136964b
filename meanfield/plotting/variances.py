"""The eigenvalues of a covariance over time, on scales that show which of them vanish."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..states import Gaussian
from . import resolution, theme
from .panels import drawing
from .spaces import Space, expect
from .time_axis import is_logarithmic, time_axis

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["draw_variances", "variances"]

ROUNDING = 1e-15  # of the largest: a given covariance does not know such an eigenvalue
NEGLIGIBLE = 1e-12  # nor is it known later, unless it grows
MOST_IN_LEGEND = 8


def variances(
    solution: "Solution",
    *,
    ax: Axes | None = None,
    log_time: bool | None = None,
    title: str | None = None,
) -> Figure:
    """The eigenvalues of the covariance over time, on a logarithmic axis.

    Those that are rounding of a singular covariance at the start are left out. Before a blow-up,
    which is dotted, the last state is: choose `t_eval` up to its time to see the approach.

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
    with drawing(ax, solution, None, title, width=7, height=3.4) as target:
        draw_variances(target.axes[0], solution, log_time=log_time)
    return target.figure


def draw_variances(ax: Axes, solution: "Solution", *, log_time: bool | None = None) -> None:
    """One curve for each eigenvalue in order."""
    log_time = is_logarithmic(solution, log_time)
    solution = resolution.before_blow_up(solution)
    values = np.array([state.variances for state in solution])
    count = values.shape[1]
    known = _known(solution, values)
    marker = {"marker": "."} if len(solution) == 1 else {}
    for i, colour in enumerate(theme.ordered_colours(count)):
        curve = np.where(known[:, i], values[:, i], np.nan)
        named = known[:, i].any() and (count <= MOST_IN_LEGEND or i in (0, count - 1))
        label = rf"$\lambda_{{{i + 1}}}$" if named else None
        ax.plot(solution.t, curve, color=colour, label=label, **marker)
    ax.set_yscale("log")
    ax.set_ylabel(r"eigenvalues of $\Sigma$")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
    time_axis(ax, solution, log_time=log_time)


def _known(solution: "Solution", values: np.ndarray) -> np.ndarray:
    """Which of the eigenvalues are more than the rounding of the given covariance."""
    given = solution.t[0] == solution.options.get("t_start")
    noise = (values[0] <= ROUNDING * values[0, 0]) & given
    return (values > 0) & ~(noise & (values <= NEGLIGIBLE * values[:, :1]))
