"""The overviews of characteristics: where their mass goes, and observables."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure, SubFigure

from ..spaces import Sphere
from ..spaces.characteristics import Characteristics
from . import theme
from .distribution import distribution
from .dots import chosen_pair, draw_dots, orthographic_dots, portions_on
from .observables import draw_observables
from .panels import title_page
from .spaces import expect
from .sphere_sheet import time_views
from .sphere_views import name_sides
from .times import pick_times
from .trajectories import draw_trajectories

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["dots_overview", "trajectories_overview"]

PAIRS = 5


def trajectories_overview(solution: "Solution", *, title: str | None = None) -> Figure:
    """One page: quantiles of the mass over time, W2 to a Dirac, clusters, moments and energy.

    A single saved time gives its distribution.

    Parameters
    ----------
    solution : Solution
        Characteristics on the circle, or axisymmetric.
    title : str, optional
        Heading; by default the model, and none if it is "".

    Returns
    -------
    Figure

    Raises
    ------
    TypeError
        If the states are not characteristics on the circle or axisymmetric.
    """
    if len(solution) == 1:
        return distribution(solution, title=title)
    with theme.style():
        figure = theme.figure(width=7.5, height=7.8)
        top, bottom = figure.subfigures(2, 1, height_ratios=[3.4, 4.0])
        draw_trajectories(top.subplots(), solution)
        _measured(bottom, solution)
        return title_page(figure, solution, title)


def dots_overview(
    solution: "Solution",
    *,
    seen_from: Sequence[float] | None = None,
    clusters: bool = True,
    title: str | None = None,
) -> Figure:
    """One page: the sphere from two sides at several times, W2 to a Dirac, clusters, ...

    A single saved time gives its views from two sides.

    Parameters
    ----------
    solution, seen_from, clusters, title
        As for `orthographic_dots`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If the direction is 0.
    TypeError
        If the states are not characteristics on the sphere.
    """
    expect(solution, Characteristics, Sphere)
    if len(solution) == 1:
        return orthographic_dots(solution, seen_from=seen_from, clusters=clusters, title=title)
    with theme.style():
        figure = theme.figure(width=7.5, height=7.3)
        top, bottom = figure.subfigures(2, 1, height_ratios=[3.1, 4.0])
        shown = pick_times(solution, [()], None, PAIRS)
        axes = list(top.subplots(1, len(shown), squeeze=False)[0])
        pair = chosen_pair(solution[shown[-1]], seen_from, beside=False)
        views = time_views(solution, [axes], [pair], [()], shown)
        draw_dots(top, views, [portions_on(solution)], clusters=clusters)
        name_sides(axes[0], pair)
        _measured(bottom, solution)
        return title_page(figure, solution, title)


def _measured(figure: SubFigure, solution: "Solution") -> None:
    """Four observables; the speed takes the place of clusters as long as there are none."""
    second = "cluster_mass" if solution.observables["cluster_count"].any() else "speed"
    names = ["w2_to_dirac", second, "moments", "interaction_energy"]
    draw_observables(figure, list(figure.subplots(2, 2).flat), solution, names, None, columns=2)
