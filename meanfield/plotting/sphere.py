"""Densities on the sphere at several times: orthographic views from two sides, and maps."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..spaces import Sphere
from ..spaces.density import Density
from . import theme
from .projections import Mollweide, OrthographicPair, frame_of
from .spaces import expect_densities_on
from .sphere_sheet import choose, finished, member_of, sheet, time_views
from .sphere_views import direction_of, draw_views, name_sides

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["mollweide", "orthographic", "pair_for"]


def orthographic(
    solution: "Solution",
    *,
    times: Sequence[float] | None = None,
    count: int | None = None,
    seen_from: Sequence[float] | None = None,
    clusters: bool = False,
    ax: Axes | None = None,
    member: int | tuple[int, ...] | None = None,
    scale: str = "auto",
    title: str | None = None,
) -> Figure:
    """The sphere from two opposite sides at several times.

    Each pixel shows the density at its point. The second view is what one sees after walking half
    around the sphere: up stays up. Thin lines are meridians and parallels every 30 degrees, the
    stronger ones the equator and the meridian phi = 0. Times in red are not resolved.

    Parameters
    ----------
    solution : Solution
        Densities on the sphere.
    times : sequence of float, optional
        Times to show: the nearest saved ones are taken, and labelled as they are. By default
        `count` times spread evenly along the path of the density, so that fast and slow phases
        are shown alike; in an `ax` the last.
    count : int, optional
        How many, where `times` is not given; by default 5, or 3 for several members.
    seen_from : (3,), optional
        Direction of the viewer, of any length. By default, for each member, that of the mean of
        the last density shown, or of its maximum if the mean is shorter than 0.1.
    clusters : bool
        Whether to mark the maxima above twice the mean, with the share of the mass that steepest
        ascent leads to each.
    ax : Axes, optional
        Draw one time here rather than in a new figure.
    member : int or tuple of int, optional
        Member of an ensemble; by default one row for each, at most nine.
    scale : {"auto", "linear", "log", "power"}
        Colour scale, common to all views; "auto" is logarithmic if a peak exceeds 30 times the
        mean.
    title : str, optional
        Heading; by default the model, and none if it is "". Not used with `ax`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If a time lies outside the solution, the direction is 0, the member does not exist, or
        there are too many.
    TypeError
        If the states are not densities on the sphere.
    """
    expect_densities_on(solution, Sphere)
    members, shown = choose(solution, ax, member, times, count, 5)
    with theme.style():
        beside = len(members) > 1 or len(shown) == 1
        axes, rows = sheet(ax, members, shown, ratio=2.0 if beside else 0.5, most=6)
        pairs = [pair_for(member_of(solution[shown[-1]], m), seen_from, beside) for m in members]
        views = time_views(solution, axes, pairs, members, shown)
        figure = axes[0][0].figure
        draw_views(figure, views, scale, rows=rows if beside else 2 * rows, clusters=clusters)
        for row, pair in zip(axes, pairs, strict=True):
            name_sides(row[0], pair)
        return finished(figure.figure, solution, ax, title)


def mollweide(
    solution: "Solution",
    *,
    times: Sequence[float] | None = None,
    count: int | None = None,
    centre: float = 0.0,
    clusters: bool = False,
    ax: Axes | None = None,
    member: int | tuple[int, ...] | None = None,
    scale: str = "auto",
    title: str | None = None,
) -> Figure:
    """Maps of the whole sphere at several times, in which equal areas are equal.

    Parameters
    ----------
    centre : float
        Longitude in the middle of the map, in radians.
    count : int, optional
        How many times, where `times` is not given; by default 6, or 3 for several members.
    solution, times, clusters, ax, member, scale, title
        As for `orthographic`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If a time lies outside the solution, the member does not exist, or there are too many.
    TypeError
        If the states are not densities on the sphere.
    """
    expect_densities_on(solution, Sphere)
    members, shown = choose(solution, ax, member, times, count, 6)
    with theme.style():
        axes, rows = sheet(ax, members, shown, ratio=2.0, most=3)
        maps = [Mollweide(centre)] * len(members)
        views = time_views(solution, axes, maps, members, shown)
        draw_views(axes[0][0].figure, views, scale, rows=rows, clusters=clusters)
        return finished(axes[0][0].figure.figure, solution, ax, title)


def pair_for(density: Density, seen_from: Sequence[float] | None, beside: bool) -> OrthographicPair:
    """Views from a direction, or from where a density is best seen."""
    direction = direction_of(density) if seen_from is None else seen_from
    return OrthographicPair(frame_of(direction), beside)
