"""The sphere from two sides and as a map: one drawing layer for densities and for dots.

A `Layer` draws one member at one time into a projection, and moves it to another time in a movie:
`FieldLayer` draws the pixels of a density, `DotLayer` tokens, or nodes that stand for equal masses.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection
from matplotlib.figure import FigureBase
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from matplotlib.patheffects import withStroke

from ..results.solution import Solution
from ..spaces import Sphere
from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..states import Tokens
from . import resolution, theme
from .appearance import Sample, appearance_of, sample_of
from .labels import Member, member_of, percent
from .layouts import Sheet, Update, View
from .points import redrawn
from .projections import Mollweide, OrthographicPair, Projection, frame_of, graticule
from .registry import figure
from .scales import Scale, choose_scale, density_bar

__all__ = ["mollweide", "mollweide_dots", "orthographic", "orthographic_dots"]

DENSITY = r"density $\mu_t(x)$"
PER_UNIT = 240  # pixels in the radius of a disc, and in half the height of a map
MOVING = 160  # the same, of a movie
MARGIN = 0.02
COVERED = 0.25  # of the page, by the dots of the uniform state
KEY_SIZE = 4.0
WIDEST = 0.08  # dots of medium mass, where the radius of the sphere is 1
MANY = 512  # more dots than these have no edges


Placed = Sequence[tuple[View, Projection]]


class Layer(ABC):
    """What is drawn of a run on the sphere, in any projection."""

    @abstractmethod
    def draw(
        self, figure: FigureBase, placed: Placed, *, rows: int = 1, clusters: bool = False
    ) -> None:
        """Draw views, with what explains their colours or dots, in `rows` rows of panels."""

    @abstractmethod
    def moving(
        self, ax: Axes, projection: Projection, member: Member
    ) -> tuple[PathPatch, list[Update]]:
        """Draw the first state of a member: its outline, and what moves the rest to other times."""

    @abstractmethod
    def explain(self, figure: FigureBase, axes: Sequence[Axes], rows: int) -> None:
        """A colour bar beside the panels, or a legend beneath them."""


class FieldLayer(Layer):
    """The pixels of densities, on one scale of colours."""

    def __init__(self, solution: Solution, scale: str):
        self._solution, self._name = solution, scale
        self._scale: Scale | None = None
        self._picture: AxesImage | None = None

    def draw(self, figure, placed, *, rows=1, clusters=False):
        images = [pixels(projection, view.state) for view, projection in placed]
        self._scale = choose_scale(np.concatenate([i.ravel() for i in images]), self._name)
        for (view, projection), image in zip(placed, images, strict=True):
            self._paint(view.ax, projection, image)
            if clusters:
                mark_clusters(view.ax, projection, view.state)
        self.explain(figure, [view.ax for view, _ in placed], rows)

    def moving(self, ax, projection, member):
        if self._scale is None:
            # The grid is fine enough for the ends of the scale; pixels are not kept at all times.
            ends = [(state.values.min(), state.values.max()) for state in self._solution]
            self._scale = choose_scale(np.array(ends), self._name)
        scale = self._scale

        def image(i: int) -> np.ndarray:
            return pixels(projection, member_of(self._solution[i], member), MOVING)

        picture, outline = self._paint(ax, projection, image(0))
        return outline, [lambda i: picture.set_data(scale.shown(image(i)))]

    def _paint(
        self, ax: Axes, projection: Projection, image: np.ndarray
    ) -> tuple[AxesImage, PathPatch]:
        """The picture, cut at the outline, beneath the graticule; and the outline."""
        left, right, bottom, top = projection.box
        outline = globe(ax, projection, "white")
        self._picture = ax.imshow(
            self._scale.shown(image),
            extent=(left, right, bottom, top),
            origin="lower",
            norm=self._scale.norm,
            cmap=theme.DENSITY_MAP,
        )
        self._picture.set_clip_path(outline)
        ax.set(**_limits(projection))
        return self._picture, outline

    def explain(self, figure, axes, rows):
        short = rows == 1
        density_bar(figure, axes, self._picture, self._scale, DENSITY, rows=rows, short=short)


class DotLayer(Layer):
    """Dots of areas in proportion to masses: tokens, or nodes that stand for equal masses."""

    def __init__(self, solution: Solution, *, key: bool = True):
        self._solution, self._key = solution, key
        self._look = appearance_of(solution.final)
        self._samples: dict[Member, Sample] = {}

    def _sample(self, member: Member) -> Sample:
        if member not in self._samples:
            self._samples[member] = sample_of(self._solution, member, self._look.most_dots)
        return self._samples[member]

    def draw(self, figure, placed, *, rows=1, clusters=False):
        for view, projection in placed:
            globe(view.ax, projection, theme.INK)
            self._scatter(view.ax, projection, view.member, view.state)
            if clusters:
                mark_clusters(view.ax, projection, view.state)
        if self._key:
            self.explain(figure, [], rows)

    def moving(self, ax, projection, member):
        outline = globe(ax, projection, theme.INK)
        states = [member_of(state, member) for state in self._solution]
        dots = self._scatter(ax, projection, member, states[0])
        indices = self._sample(member).indices

        def move(i: int) -> None:
            dots.set_offsets(projection.place(self._look.points(states[i])[indices]))

        return outline, [move, redrawn(lambda i: mark_clusters(ax, projection, states[i]))]

    def _scatter(
        self, ax: Axes, projection: Projection, member: Member, state: Any
    ) -> EllipseCollection:
        sample = self._sample(member)
        shares = sample.masses / sample.masses.sum()
        widths = 2 * np.sqrt(2 * COVERED * shares)  # of the area 2 pi of the whole view
        widths *= min(1.0, WIDEST / np.median(widths))
        many = len(widths) > MANY
        dots = EllipseCollection(
            widths,
            widths,
            np.zeros_like(widths),
            units="xy",
            offsets=projection.place(self._look.points(state)[sample.indices]),
            offset_transform=ax.transData,
            facecolors=list(sample.colours),
            edgecolors="none" if many else "white",
            linewidths=0.25,
            alpha=0.6 if many else None,
            rasterized=many,
            zorder=2.5,
        )
        ax.add_collection(dots, autolim=False)
        return dots

    def explain(self, figure, axes, rows):
        """Write beneath a figure what a dot stands for."""
        samples = list(self._samples.values())
        dot = Line2D([], [], color=theme.PALETTE[0], marker="o", linestyle="", markersize=KEY_SIZE)
        text = samples[0].note
        if any(len(set(sample.colours)) > 1 for sample in samples):
            text += ", coloured by the cluster in which it ends"
            text = text.replace("tokens, coloured", "tokens, each coloured")
        figure.legend([dot], [text], loc="outside lower center", handletextpad=0.2)


# Figures -------------------------------------------------------------------------------------


@figure("orthographic", Density, Sphere, sheet=(5, 0.5, 6))
def orthographic(
    page: Sheet,
    solution: Solution,
    *,
    seen_from: Sequence[float] | None = None,
    clusters: bool = False,
    scale: str = "auto",
) -> None:
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
    scale : {"auto", "linear", "log", "power"}
        Colour scale, common to all views; "auto" is logarithmic if a peak exceeds 30 times the
        mean.

    Raises
    ------
    ValueError
        If a time lies outside the solution, the direction is 0, the member does not exist, or
        there are too many.
    TypeError
        If the states are not densities on the sphere.
    """
    draw_pairs(page, FieldLayer(solution, scale), seen_from, clusters=clusters)


@figure("orthographic", (Characteristics, Tokens), Sphere, sheet=(5, 0.5, 6))
def orthographic_dots(
    page: Sheet,
    solution: Solution,
    *,
    seen_from: Sequence[float] | None = None,
    clusters: bool = True,
) -> None:
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

    Raises
    ------
    ValueError
        If a time lies outside the solution, the direction is 0, the member does not exist, or
        there are too many.
    TypeError
        If the states are neither characteristics nor tokens on the sphere.
    """
    draw_pairs(page, DotLayer(solution, key=not page.inside), seen_from, clusters=clusters)


def draw_pairs(page: Sheet, layer: Layer, seen_from: Any, *, clusters: bool) -> None:
    """Each member of a sheet from two opposite sides, the same at all times."""
    placed = []
    for row in page.views:
        pair = pair_for(row[-1].state, seen_from, beside=not page.upright)
        placed += [(view, pair) for view in row]
        name_sides(row[0].ax, pair)
    rows = 2 * page.rows if page.upright else page.rows
    layer.draw(page.figure, placed, rows=rows, clusters=clusters)


@figure("map", Density, Sphere, sheet=(6, 2.0, 3))
def mollweide(
    page: Sheet,
    solution: Solution,
    *,
    centre: float = 0.0,
    clusters: bool = False,
    scale: str = "auto",
) -> None:
    """Maps of the whole sphere at several times, in which equal areas are equal.

    Parameters
    ----------
    centre : float
        Longitude in the middle of the map, in radians.
    count : int, optional
        How many times, where `times` is not given; by default 6, or 3 for several members.
    solution, times, clusters, scale
        As for `orthographic`.

    Raises
    ------
    ValueError
        If a time lies outside the solution, the member does not exist, or there are too many.
    TypeError
        If the states are not densities on the sphere.
    """
    draw_maps(page, FieldLayer(solution, scale), centre, clusters=clusters)


@figure("map", (Characteristics, Tokens), Sphere, sheet=(6, 2.0, 3))
def mollweide_dots(
    page: Sheet, solution: Solution, *, centre: float = 0.0, clusters: bool = True
) -> None:
    """Maps of the whole sphere at several times, in which equal areas are equal.

    Parameters
    ----------
    centre : float
        Longitude in the middle of the map, in radians.
    count : int, optional
        How many times, where `times` is not given; by default 6, or 3 for several members.
    solution, times, clusters
        As for `orthographic_dots`.

    Raises
    ------
    ValueError
        If a time lies outside the solution, the member does not exist, or there are too many.
    TypeError
        If the states are neither characteristics nor tokens on the sphere.
    """
    draw_maps(page, DotLayer(solution, key=not page.inside), centre, clusters=clusters)


def draw_maps(page: Sheet, layer: Layer, centre: float = 0.0, *, clusters: bool = False) -> None:
    """Each member of a sheet as a map."""
    placed = [(view, Mollweide(centre)) for row in page.views for view in row]
    layer.draw(page.figure, placed, rows=page.rows, clusters=clusters)


def pair_for(state: Any, seen_from: Sequence[float] | None, *, beside: bool) -> OrthographicPair:
    """Views from a direction, or from where a single state is best seen.

    That is from its heaviest cluster, or else from its mean; a density from its mean.
    """
    if seen_from is None:
        seen_from = appearance_of(state).best_seen_from(state)
    return OrthographicPair(frame_of(seen_from), beside)


# Pixels, outlines and marks ------------------------------------------------------------------


def pixels(projection: Projection, density: Density, per_unit: int = PER_UNIT) -> np.ndarray:
    """Values at the middles of pixels, (rows from below, columns); nan outside the outlines.

    The density is evaluated there, not interpolated from a grid: poles and the date line are
    points like others. Pixels which the outline cuts show its nearest point.
    """
    left, right, bottom, top = projection.box
    columns, rows = round((right - left) * per_unit), round((top - bottom) * per_unit)
    x = left + (right - left) * (np.arange(columns) + 0.5) / columns
    y = bottom + (top - bottom) * (np.arange(rows) + 0.5) / rows
    points = projection.points(*np.meshgrid(x, y), slack=1.5 / per_unit)
    seen = np.isfinite(points[..., 0])
    image = np.full(seen.shape, np.nan)
    image[seen] = density.at(points[seen])
    return image


def globe(ax: Axes, projection: Projection, lines: str) -> PathPatch:
    """The outline of a view, which is returned, and its graticule in the colour `lines`."""
    path = Outline.make_compound_path(*(Outline(c, closed=True) for c in projection.outlines))
    outline = PathPatch(path, facecolor="none", edgecolor=theme.INK, linewidth=0.7, zorder=3)
    ax.add_patch(outline)
    fine, main = graticule(projection)
    for curves, alpha in ((fine, 0.3), (main, 0.65)):
        for curve in curves:
            ax.plot(*curve.T, color=lines, linewidth=0.45, alpha=alpha, zorder=2)
    ax.set(**_limits(projection), xticks=[], yticks=[], aspect="equal")
    for spine in ax.spines.values():
        spine.set_visible(False)
    return outline


def _limits(projection: Projection) -> dict[str, tuple[float, float]]:
    left, right, bottom, top = projection.box
    return {
        "xlim": (left - MARGIN, right + MARGIN),
        "ylim": (bottom - MARGIN, top + MARGIN),
    }


def name_sides(ax: Axes, pair: OrthographicPair) -> None:
    """Write beside the discs from where each is seen."""
    numbers = ", ".join(f"{{{number:.2f}}}" for number in pair.frame[2]).replace("-0.00", "0.00")
    names = (f"seen from $({numbers})$", "from behind")
    for (right, up), name in zip(pair.centres, names, strict=True):
        if pair.beside:
            place = {"x": right, "y": up - 1.07, "va": "top", "ha": "center"}
        else:
            place = {"x": right - 1.07, "y": up, "va": "center", "ha": "right", "rotation": 90}
            name = name.replace("from $", "from\n$")
        ax.text(s=name, fontsize=8, multialignment="center", **place)


def mark_clusters(ax: Axes, projection: Projection, state: Any) -> list[Artist]:
    """A ring at each cluster of a single state, and its share of the mass beside it."""
    marks = []
    for cluster in appearance_of(state).clusters(state):
        marks += mark_cluster(ax, projection, cluster.point, cluster.mass)
    return marks


def mark_cluster(ax: Axes, projection: Projection, point: np.ndarray, share: float) -> list[Artist]:
    """A ring at a cluster, and its share of the mass beside it."""
    halo = [withStroke(linewidth=1.6, foreground="white")]
    place = projection.place(point)
    left, down = _near_the_end(projection, place)  # else the text would leave the outline
    free = {"zorder": 4, "clip_on": False, "mfc": "none", "ms": 4.6}
    rings = ax.plot(*place, "o", mec="white", mew=1.7, **free)
    rings += ax.plot(*place, "o", mec=theme.INK, mew=0.8, **free)
    label = ax.annotate(
        percent(share),
        place,
        xytext=(-4 if left else 4, -3 if down else 3),
        ha="right" if left else "left",
        va="top" if down else "baseline",
        textcoords="offset points",
        fontsize=7.5,
        zorder=5,
        path_effects=halo,
    )
    return [*rings, label]


def _near_the_end(projection: Projection, place: np.ndarray) -> tuple[bool, bool]:
    """Whether a place is near the right and the upper end of the outline it lies in."""
    ends = [(outline.min(axis=0), outline.max(axis=0)) for outline in projection.outlines]
    low, high = min(ends, key=lambda box: np.linalg.norm(place - (box[0] + box[1]) / 2))
    right, top = (place - low) / (high - low) > 0.85
    return bool(right), bool(top)


def reddened(outline: PathPatch, solution: Solution) -> Update:
    """An outline that is red where the state is not resolved."""
    resolved = resolution.resolved_states(solution)
    return lambda i: outline.set(
        edgecolor=theme.INK if resolved[i] else theme.WARNING,
        linewidth=0.7 if resolved[i] else 2.0,
    )
