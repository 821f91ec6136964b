"""The overview of a normal law: ellipses and directions in the plane, variances, observables."""

from typing import TYPE_CHECKING

from matplotlib.figure import Figure, SubFigure

from . import theme
from .cone import draw_disc
from .ellipses import draw_ellipses, ellipses
from .observables import draw_observables
from .panels import title_page
from .quantities import telling
from .spaces import Space, space_of
from .time_axis import is_logarithmic
from .variances import draw_variances, variances

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["gaussian_overview"]

TIMES = 6


def gaussian_overview(
    solution: "Solution", *, log_time: bool | None = None, title: str | None = None
) -> Figure:
    """One page: in the plane ellipses and the covariance of trace one; else variances; observables.

    Parameters
    ----------
    solution : Solution
        A Gaussian in any dimension.
    log_time : bool, optional
        Whether the axes of times are logarithmic, from the first saved time above 0 on;
        by default where saved times are spaced like numpy.geomspace.
    title : str, optional
        Heading; by default the model, and none if it is "".

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If there are fewer than two times above 0 with `log_time`.
    """
    plane = space_of(solution) is Space.PLANE
    if len(solution) == 1:
        return (ellipses if plane else variances)(solution, title=title)
    log_time = is_logarithmic(solution, log_time)
    with theme.style():
        figure = theme.figure(width=7.5, height=7.4)
        top, bottom = figure.subfigures(2, 1, height_ratios=[3.4, 4.0])
        if plane:
            _in_the_plane(top, solution)
        else:
            draw_variances(top.subplots(), solution, log_time=log_time)
        names, shape = telling(solution), {"columns": 2, "log_time": log_time}
        panels = list(bottom.subplots(2, 2).ravel())
        for spare in panels[len(names) :]:
            spare.remove()
        draw_observables(bottom, panels[: len(names)], solution, names, None, **shape)
        return title_page(figure, solution, title)


def _in_the_plane(top: SubFigure, solution: "Solution") -> None:
    left, right = top.subplots(1, 2, width_ratios=[1.25, 1])
    draw_ellipses(left, solution, None, TIMES)
    draw_disc(right, solution)
