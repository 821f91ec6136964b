"""Characteristics on the sphere at several times: portions of their mass as dots, and clusters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection
from matplotlib.figure import Figure, FigureBase
from matplotlib.lines import Line2D

from ..characteristics import Characteristics
from ..geometry import Sphere
from . import theme
from .portions import colours_of, pieces
from .projections import Mollweide, OrthographicPair, Projection, frame_of
from .spaces import expect
from .sphere_sheet import choose, finished, sheet, time_views
from .sphere_views import View, globe, mark_cluster, name_sides

if TYPE_CHECKING:
    from ..solution import Solution

__all__ = [
    "Portions",
    "chosen_pair",
    "dot_key",
    "draw_dots",
    "mollweide_dots",
    "orthographic_dots",
    "portions_on",
    "scatter",
]

HALVINGS = 9
COVERED = 0.25  # of the page, by the dots of the uniform state
KEY_SIZE = 4.0


@dataclass(frozen=True)
class Portions:
    """Nodes that stand for pieces of the mass, the masses of these, and a colour for each."""

    nodes: np.ndarray
    masses: np.ndarray
    colours: list[str]


def portions_on(solution: "Solution") -> Portions:
    """512 pieces of the first state, coloured by the clusters in which they end."""
    nodes, masses = pieces(solution[0], HALVINGS)
    return Portions(nodes, masses, colours_of(solution, nodes))


def orthographic_dots(
    solution: "Solution",
    *,
    times: Sequence[float] | None = None,
    count: int | None = None,
    seen_from: Sequence[float] | None = None,
    clusters: bool = True,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """The sphere from two opposite sides at several times, the mass as dots that the flow carries.

    Each dot is one of 512 pieces of about equal mass, at a node in its middle; its area is
    proportional to its mass. It has the colour of the cluster in which it ends. The second view
    is what one sees after walking half around the sphere: up stays up. Times in red are not
    resolved.

    Parameters
    ----------
    solution : Solution
        Characteristics on the sphere.
    times : sequence of float, optional
        Times to show: the nearest saved ones are taken, and labelled as they are. By default
        `count` times spread evenly along the path of the measure; in an `ax` the last.
    count : int, optional
        How many, where `times` is not given; by default 5.
    seen_from : (3,), optional
        Direction of the viewer, of any length. By default that of the heaviest cluster of the
        last state shown, or of its mean if there is none.
    clusters : bool
        Whether to mark the clusters with their share of the mass.
    ax : Axes, optional
        Draw one time here rather than in a new figure.
    title : str, optional
        Heading; by default the model, and none if it is "". Not used with `ax`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If a time lies outside the solution, or the direction is 0.
    TypeError
        If the states are not characteristics on the sphere.
    """
    expect(solution, Characteristics, Sphere)
    members, shown = choose(solution, ax, None, times, count, 5)
    with theme.style():
        beside = len(shown) == 1
        axes, _ = sheet(ax, members, shown, ratio=2.0 if beside else 0.5, most=6)
        pair = chosen_pair(solution, shown, seen_from, beside=beside)
        views = time_views(solution, axes, [pair], members, shown)
        figure = axes[0][0].figure
        draw_dots(figure, views, portions_on(solution), clusters=clusters, key=ax is None)
        name_sides(axes[0][0], pair)
        return finished(figure.figure, solution, ax, title)


def mollweide_dots(
    solution: "Solution",
    *,
    times: Sequence[float] | None = None,
    count: int | None = None,
    centre: float = 0.0,
    clusters: bool = True,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Maps of the whole sphere at several times, in which equal areas are equal.

    Parameters
    ----------
    centre : float
        Longitude in the middle of the map, in radians.
    count : int, optional
        How many times, where `times` is not given; by default 6.
    solution, times, clusters, ax, title
        As for `orthographic_dots`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If a time lies outside the solution.
    TypeError
        If the states are not characteristics on the sphere.
    """
    expect(solution, Characteristics, Sphere)
    members, shown = choose(solution, ax, None, times, count, 6)
    with theme.style():
        axes, _ = sheet(ax, members, shown, ratio=2.0, most=3)
        views = time_views(solution, axes, [Mollweide(centre)], members, shown)
        figure = axes[0][0].figure
        draw_dots(figure, views, portions_on(solution), clusters=clusters, key=ax is None)
        return finished(figure.figure, solution, ax, title)


def chosen_pair(
    solution: "Solution", shown: np.ndarray, seen_from: Sequence[float] | None, *, beside: bool
) -> OrthographicPair:
    """Views from a direction, or from that of the heaviest cluster, or else of the mean."""
    if seen_from is None:
        last = solution[shown[-1]]
        clusters = last.clusters()
        seen_from = clusters[0].point if clusters else last.mean_direction
    return OrthographicPair(frame_of(seen_from), beside)


def draw_dots(
    figure: FigureBase,
    views: Sequence[View],
    portions: Portions,
    *,
    clusters: bool,
    key: bool = True,
) -> None:
    """All views, and what a dot stands for."""
    for view in views:
        globe(view.ax, view.projection, theme.INK)
        scatter(view.ax, view.projection, portions, view.state)
        view.head()
        for cluster in view.state.clusters() if clusters else []:
            mark_cluster(view.ax, view.projection, cluster.point, cluster.mass)
    if key:
        dot_key(figure, portions)


def dot_key(figure: FigureBase, portions: Portions) -> None:
    """Write beneath a figure what a dot stands for."""
    dot = Line2D([], [], color=theme.PALETTE[0], marker="o", linestyle="", markersize=KEY_SIZE)
    text = f"1/{len(portions.nodes)} of the mass"
    if len(set(portions.colours)) > 1:
        text += ", coloured by the cluster in which it ends"
    figure.legend([dot], [text], loc="outside lower center", handletextpad=0.2)


def scatter(
    ax: Axes, projection: Projection, portions: Portions, state: Characteristics
) -> EllipseCollection:
    """The dots, of areas proportional to the masses, where a state has them."""
    widths = 2 * np.sqrt(2 * COVERED * portions.masses)  # of the area 2 pi of the whole view
    dots = EllipseCollection(
        widths,
        widths,
        np.zeros_like(widths),
        units="xy",
        offsets=projection.place(state.points[portions.nodes]),
        offset_transform=ax.transData,
        facecolors=portions.colours,
        edgecolors="white",
        linewidths=0.25,
        zorder=2.5,
    )
    ax.add_collection(dots, autolim=False)
    return dots
