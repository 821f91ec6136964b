"""Characteristics or tokens on the sphere at several times, as dots, and their clusters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection
from matplotlib.figure import Figure, FigureBase
from matplotlib.lines import Line2D

from ..spaces import Sphere
from ..spaces.characteristics import Characteristics, Cluster
from ..states import Tokens
from . import theme
from .crowds import Gathering, crowd_of, grey_first, named
from .portions import colours_of, pieces
from .projections import Mollweide, OrthographicPair, Projection, frame_of
from .rings import MOST_DOTS
from .spaces import expect
from .sphere_sheet import choose, finished, member_of, sheet, time_views
from .sphere_views import View, globe, mark_cluster, name_sides

if TYPE_CHECKING:
    from ..results.solution import Solution

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
WIDEST = 0.08  # dots of medium mass, where the radius of the sphere is 1

State = Characteristics | Tokens


@dataclass(frozen=True)
class Portions:
    """What dots stand for.

    Attributes
    ----------
    nodes : ndarray of int
        The nodes, each in the middle of a piece of the mass; or tokens.
    masses : ndarray
        Masses of the pieces or tokens, of sum 1.
    colours : sequence
        That of each dot.
    text : str
        What a dot is, in words.
    """

    nodes: np.ndarray
    masses: np.ndarray
    colours: Sequence[str]
    text: str


def portions_on(solution: "Solution", member: tuple[int, ...] = ()) -> Portions:
    """512 pieces of the first state, or tokens, coloured by the clusters in which they end."""
    if isinstance(solution.final, Tokens):
        crowd = crowd_of(solution, member, MOST_DOTS)
        order = grey_first(crowd)
        colours = list(crowd.colours[order])
        masses = crowd.masses[order] / crowd.masses.sum()
        return Portions(crowd.tokens[order], masses, colours, crowd.note)
    nodes, masses = pieces(solution[0], HALVINGS)
    text = f"1/{len(nodes)} of the mass"
    return Portions(nodes, masses, colours_of(solution, nodes), text)


def orthographic_dots(
    solution: "Solution",
    *,
    times: Sequence[float] | None = None,
    count: int | None = None,
    seen_from: Sequence[float] | None = None,
    clusters: bool = True,
    ax: Axes | None = None,
    member: int | tuple[int, ...] | None = None,
    title: str | None = None,
) -> Figure:
    """The sphere from two opposite sides at several times, the mass as dots that the flow carries.

    Each dot is a token, at most 5000 of them; or one of 512 pieces of about equal mass, at a node
    in its middle. Its area is proportional to its mass, its colour that of the cluster in which it
    ends. The second view is what one sees after walking half around the sphere: up stays up.
    Times in red are not resolved.

    Parameters
    ----------
    solution : Solution
        Characteristics or tokens on the sphere.
    times : sequence of float, optional
        Times to show: the nearest saved ones are taken, and labelled as they are. By default
        `count` times spread evenly along the path of the measure; in an `ax` the last.
    count : int, optional
        How many, where `times` is not given; by default 5, or 3 for several members.
    seen_from : (3,), optional
        Direction of the viewer, of any length. By default, for each member, that of the heaviest
        cluster of the last state shown, or of its mean if there is none.
    clusters : bool
        Whether to mark the clusters with their share of the mass.
    ax : Axes, optional
        Draw one time here rather than in a new figure.
    member : int or tuple of int, optional
        Member of an ensemble of tokens; by default one row for each, at most nine.
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
        If the states are neither characteristics nor tokens on the sphere.
    """
    expect(solution, (Characteristics, Tokens), Sphere)
    members, shown = choose(solution, ax, member, times, count, 5)
    with theme.style():
        beside = len(members) > 1 or len(shown) == 1
        axes, _ = sheet(ax, members, shown, ratio=2.0 if beside else 0.5, most=6)
        last = solution[shown[-1]]
        pairs = [chosen_pair(member_of(last, m), seen_from, beside=beside) for m in members]
        views = time_views(solution, axes, pairs, members, shown)
        figure = axes[0][0].figure
        portions = [portions_on(solution, m) for m in members]
        draw_dots(figure, views, portions, clusters=clusters, key=ax is None)
        for row, pair in zip(axes, pairs, strict=True):
            name_sides(row[0], pair)
        return finished(figure.figure, solution, ax, title)


def mollweide_dots(
    solution: "Solution",
    *,
    times: Sequence[float] | None = None,
    count: int | None = None,
    centre: float = 0.0,
    clusters: bool = True,
    ax: Axes | None = None,
    member: int | tuple[int, ...] | None = None,
    title: str | None = None,
) -> Figure:
    """Maps of the whole sphere at several times, in which equal areas are equal.

    Parameters
    ----------
    centre : float
        Longitude in the middle of the map, in radians.
    count : int, optional
        How many times, where `times` is not given; by default 6, or 3 for several members.
    solution, times, clusters, ax, member, title
        As for `orthographic_dots`.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If a time lies outside the solution, the member does not exist, or there are too many.
    TypeError
        If the states are neither characteristics nor tokens on the sphere.
    """
    expect(solution, (Characteristics, Tokens), Sphere)
    members, shown = choose(solution, ax, member, times, count, 6)
    with theme.style():
        axes, _ = sheet(ax, members, shown, ratio=2.0, most=3)
        views = time_views(solution, axes, [Mollweide(centre)] * len(members), members, shown)
        figure = axes[0][0].figure
        portions = [portions_on(solution, m) for m in members]
        draw_dots(figure, views, portions, clusters=clusters, key=ax is None)
        return finished(figure.figure, solution, ax, title)


def chosen_pair(
    state: State, seen_from: Sequence[float] | None, *, beside: bool
) -> OrthographicPair:
    """Views from a direction, or from that of the heaviest cluster, or else of the mean."""
    if seen_from is None:
        clusters = clusters_at(state)
        mean = state.mean_direction if isinstance(state, Characteristics) else _mean(state)
        seen_from = clusters[0].point if clusters else mean
    return OrthographicPair(frame_of(seen_from), beside)


def clusters_at(state: State) -> Sequence[Cluster | Gathering]:
    """Clusters, with `point` and `mass`, the heaviest first."""
    return state.clusters() if isinstance(state, Characteristics) else named(state)


def points_of(state: State) -> np.ndarray:
    """Unit vectors of all nodes or tokens, (n, 3)."""
    return state.points if isinstance(state, Characteristics) else state.x


def _mean(tokens: Tokens) -> np.ndarray:
    mean = tokens.masses @ tokens.x
    return mean if np.linalg.norm(mean) > 1e-9 else np.array([1.0, 0.0, 0.0])


def draw_dots(
    figure: FigureBase,
    views: Sequence[View],
    portions: Sequence[Portions],
    *,
    clusters: bool,
    key: bool = True,
) -> None:
    """All views, as many in a row for each of the portions, and what a dot stands for."""
    columns = len(views) // len(portions)
    for i, view in enumerate(views):
        globe(view.ax, view.projection, theme.INK)
        scatter(view.ax, view.projection, portions[i // columns], view.state)
        view.head()
        for cluster in clusters_at(view.state) if clusters else []:
            mark_cluster(view.ax, view.projection, cluster.point, cluster.mass)
    if key:
        dot_key(figure, portions)


def dot_key(figure: FigureBase, portions: Sequence[Portions]) -> None:
    """Write beneath a figure what a dot stands for."""
    dot = Line2D([], [], color=theme.PALETTE[0], marker="o", linestyle="", markersize=KEY_SIZE)
    text = portions[0].text
    if any(len(set(some.colours)) > 1 for some in portions):
        text += ", coloured by the cluster in which it ends"
        text = text.replace("tokens, coloured", "tokens, each coloured")
    figure.legend([dot], [text], loc="outside lower center", handletextpad=0.2)


def scatter(
    ax: Axes, projection: Projection, portions: Portions, state: State
) -> EllipseCollection:
    """The dots, of areas proportional to the masses, where a state has them."""
    widths = 2 * np.sqrt(2 * COVERED * portions.masses)  # of the area 2 pi of the whole view
    widths *= min(1.0, WIDEST / np.median(widths))
    many = len(widths) > 2**HALVINGS
    dots = EllipseCollection(
        widths,
        widths,
        np.zeros_like(widths),
        units="xy",
        offsets=projection.place(points_of(state)[portions.nodes]),
        offset_transform=ax.transData,
        facecolors=portions.colours,
        edgecolors="none" if many else "white",
        linewidths=0.25,
        alpha=0.6 if many else None,
        rasterized=many,
        zorder=2.5,
    )
    ax.add_collection(dots, autolim=False)
    return dots
