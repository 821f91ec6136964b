"""The sphere from two sides and as a map: one drawing layer for densities and one for dots.

A layer paints a state into a projection: `FieldLayer` the pixels of a density, `DotLayer` tokens,
or nodes that stand for equal masses.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, Protocol

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import EllipseCollection
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline

from ..core.checks import require
from ..spaces import Sphere
from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..states import State, Tokens
from ..states.points import unit
from . import theme
from .appearance import POLE_POINTS, appearance_of
from .fields import Scale, choose_scale, density_bar, law_in_words
from .labels import Member, member_of, percent
from .layouts import DrawnMembers, Panels
from .points import explain_dots
from .registry import figure
from .spaces import UNIT_CIRCLE

GAP = 0.06  # between the discs of a pair, whose radius is 1
GRATICULE_STEP = np.pi / 6  # between meridians, and parallels


def frame_of(direction: Sequence[float] | np.ndarray) -> np.ndarray:
    """Right, up and towards the viewer as the rows of a rotation, seen from `direction`.

    The north pole is up. Seen from a pole, the first axis is to the right.

    Raises
    ------
    ValueError
        If the direction is not a finite vector (3,) other than 0.
    """
    axis = np.asarray(direction, dtype=float)
    fits = axis.shape == (3,) and 0 < np.linalg.norm(axis) < np.inf
    require("seen_from", direction, "a direction, three numbers, not all 0", fits)
    axis = axis / np.linalg.norm(axis)
    right = np.array([-axis[1], axis[0], 0.0])
    length = np.linalg.norm(right)
    right = right / length if length > 1e-9 else np.array([1.0, 0.0, 0.0])
    right -= (right @ axis) * axis  # to rounding, also near the poles
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(axis, right), axis])


class View(Protocol):
    """Places of points in a panel."""

    @property
    def outlines(self) -> list[np.ndarray]:
        """Closed curves (n, 2) around the view."""

    def place(self, points: np.ndarray) -> np.ndarray:
        """Places (..., 2) of points (..., d)."""


@dataclass(frozen=True)
class OrthographicPair:
    """The hemisphere before `frame` and the one behind it, each as seen from its own side.

    One walks around the sphere to see the second: up stays up, and left and right change.

    Attributes
    ----------
    frame : ndarray, (3, 3)
        Rotation, as `frame_of` returns it.
    upright : bool
        Whether the second disc, of radius 1, lies beneath the first; else they lie side by side.
    leap : float
        Longer steps between neighbouring points of a curve cross to the other disc.
    """

    leap: ClassVar[float] = 0.8 * GAP
    frame: np.ndarray
    upright: bool = False

    @property
    def centres(self) -> np.ndarray:
        """Centres of the discs in front and behind, (2, 2)."""
        half = 1.0 + GAP / 2
        return np.array(
            [[0.0, half], [0.0, -half]] if self.upright else [[-half, 0.0], [half, 0.0]]
        )

    @property
    def box(self) -> tuple[float, float, float, float]:
        half = 2.0 + GAP / 2
        return (-1.0, 1.0, -half, half) if self.upright else (-half, half, -1.0, 1.0)

    @property
    def outlines(self) -> list[np.ndarray]:
        return [centre + UNIT_CIRCLE.T for centre in self.centres]

    def points(self, x: np.ndarray, y: np.ndarray, slack: float = 0.0) -> np.ndarray:
        behind = y < 0 if self.upright else x > 0
        middle = self.centres[behind.astype(int)]
        x, y = x - middle[..., 0], y - middle[..., 1]
        x, y = _in_disc(x, y, slack)
        height = np.sqrt(np.maximum(1 - x**2 - y**2, 0.0))
        side = np.where(behind, -1.0, 1.0)
        return unit(np.stack([side * x, y, side * height], axis=-1)) @ self.frame

    def place(self, points: np.ndarray) -> np.ndarray:
        right, height, depth = np.moveaxis(points @ self.frame.T, -1, 0)
        behind = depth < 0
        local = np.stack([np.where(behind, -right, right), height], axis=-1)
        return local + self.centres[behind.astype(int)]


@dataclass(frozen=True)
class Mollweide:
    """The equal-area map of the whole sphere in an ellipse of half axes 2 and 1.

    With the auxiliary angle t, 2 t + sin 2 t = pi z: x = 2 (phi - centre) / pi cos t, y = sin t.

    Attributes
    ----------
    centre : float
        Longitude of the central meridian in radians.
    leap : float
        Longer steps between neighbouring points of a curve cross to the other side.

    References
    ----------
    Snyder, Map Projections: A Working Manual, US Geological Survey (1987), section 31.
    """

    leap: ClassVar[float] = 0.3
    centre: float = 0.0

    @property
    def box(self) -> tuple[float, float, float, float]:
        return -2.0, 2.0, -1.0, 1.0

    @property
    def outlines(self) -> list[np.ndarray]:
        return [UNIT_CIRCLE.T * [2.0, 1.0]]

    def points(self, x: np.ndarray, y: np.ndarray, slack: float = 0.0) -> np.ndarray:
        """Points (..., 3) of S^2; 1 - |z| without cancellation at the poles."""
        u, v = _in_disc(x / 2, y, slack)
        cosine = np.sqrt(np.maximum((1 - v) * (1 + v), 0.0))
        t = np.arctan2(v, cosine)
        # 1 - |z| without cancellation: with s = pi - 2 |t|, it is (s - sin s) / pi.
        low = _excess(np.pi - 2 * np.abs(t)) / np.pi
        radius = np.sqrt(low * (2 - low))
        share = np.divide(u, cosine, out=np.zeros_like(u), where=cosine > 0)
        phi = self.centre + np.pi * np.clip(share, -1.0, 1.0)
        z = np.copysign(1 - low, v)
        return np.stack([radius * np.cos(phi), radius * np.sin(phi), z + 0 * u], axis=-1)

    def place(self, points: np.ndarray) -> np.ndarray:
        x, y, z = np.moveaxis(points, -1, 0)
        s = _inverse_excess(np.pi * (x**2 + y**2) / (1 + np.abs(z)))
        phi = np.remainder(np.arctan2(y, x) - self.centre + np.pi, 2 * np.pi) - np.pi
        return np.stack([2 * phi / np.pi * np.sin(s / 2), np.copysign(np.cos(s / 2), z)], axis=-1)


Projection = OrthographicPair | Mollweide


def _in_disc(x: np.ndarray, y: np.ndarray, slack: float) -> tuple[np.ndarray, np.ndarray]:
    """Points in the unit disc: the nearest rim point up to `slack` outside it, nan beyond."""
    radius = np.hypot(x, y)
    shrink = np.where(radius > 1, 1 / np.maximum(radius, 1.0), 1.0)
    shrink = np.where(radius > 1 + slack, np.nan, shrink)
    return x * shrink, y * shrink


def _excess(s: np.ndarray) -> np.ndarray:
    """s - sin s, to rounding also for small s."""
    return np.where(s < 0.05, s**3 / 6 * (1 - s**2 / 20 * (1 - s**2 / 42)), s - np.sin(s))


def _inverse_excess(q: np.ndarray) -> np.ndarray:
    """The s in [0, pi] with s - sin s = q: Kepler's equation of eccentricity 1, by Newton steps."""
    s = np.cbrt(6 * q)  # below the root, where the function is convex
    for _ in range(6):
        slope = 2 * np.sin(s / 2) ** 2
        s = s - np.divide(_excess(s) - q, slope, out=np.zeros_like(s), where=slope > 0)
    return s


def graticule(projection: Projection) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Placed curves (n, 2) of the graticule, and of its equator and meridian phi = 0.

    Meridians and parallels are 30 degrees apart; those meridians end at 75 degrees, so that they
    do not crowd at the poles. Where a curve leaves a disc or the map, it is broken by a nan.
    """
    fine = [_meridian(k * GRATICULE_STEP, np.pi / 12) for k in range(1, 12)]
    fine += [_parallel(np.sin(k * GRATICULE_STEP)) for k in (-2, -1, 1, 2)]
    main = [_meridian(0.0, 0.0), _parallel(0.0)]
    leap = projection.leap
    placed = [[_broken(projection.place(c), leap) for c in curves] for curves in (fine, main)]
    return placed[0], placed[1]


def _meridian(phi: float, end: float) -> np.ndarray:
    """Points from the polar angle `end` to pi - `end`."""
    polar = np.linspace(end, np.pi - end, 361)
    radius = np.sin(polar)
    return np.stack([radius * np.cos(phi), radius * np.sin(phi), np.cos(polar)], axis=-1)


def _parallel(z: float) -> np.ndarray:
    return np.insert(np.sqrt(1 - z**2) * UNIT_CIRCLE.T, 2, z, axis=1)


def _broken(curve: np.ndarray, leap: float) -> np.ndarray:
    """The curve with nan inserted in steps longer than `leap`."""
    jumps = np.flatnonzero(np.linalg.norm(np.diff(curve, axis=0), axis=1) > leap) + 1
    return np.insert(curve, jumps, np.nan, axis=0)


# Layers -------------------------------------------------------------------------------------------

PER_UNIT = 240  # pixels in the radius of a disc, and in half the height of a map
MOVING = 160  # the same, of a movie
GLOBE_MARGIN = 0.02
COVERED = 0.25  # share of the view that dots of the uniform state cover
WIDEST = 0.08  # largest diameter of dots of median mass, on a sphere of radius 1
TEXT_SIZE = 7.5  # points of the texts at clusters
WIDE = 0.66  # width of a digit or % over its height
RING = 4.0  # points from the middle of a mark to its text
TURNS = tuple(product((False, True), repeat=2))  # changes of side: none, vertical, horizontal, both
MOST_EDGED_DOTS = 512  # more dots than these have no edges


class FieldLayer:
    """Layer that paints densities as pixels, on one colour scale for all states that are shown."""

    lines = "white"

    def __init__(self, panels: Panels, scale: str | Scale):
        self._panels, self._per_unit = panels, PER_UNIT if panels.film is None else MOVING
        self._scale = common_scale(panels, panels.times, scale)
        self._colours = self._scale.colours

    def paint(
        self, ax: Axes, outline: PathPatch, projection: "Projection", member: Member, state: State
    ) -> Artist:
        """Draw a single state, clipped at the outline; returns the image."""
        image = pixels(projection, self._panels.look.law(state), self._per_unit)
        picture = ax.imshow(image, extent=projection.box, origin="lower", **self._colours)
        picture.set_clip_path(outline)
        return picture

    def explain(self) -> None:
        """A colour bar beside the panels."""
        density_bar(self._panels, self._scale, law_in_words(self._panels, "x"))


def common_scale(view: DrawnMembers, times: np.ndarray, scale: str | Scale) -> Scale:
    """One scale of colours for the densities of these members at these saved times."""
    states = [member_of(law, m) for law in map(view.law, times) for m in view.members]
    peaks = [np.append(state.values, state.at(POLE_POINTS)) for state in states]
    return choose_scale(np.array([[p.min(), p.max()] for p in peaks]), scale)


class DotLayer:
    """Layer that paints tokens, or nodes, as dots with areas proportional to their masses.

    Attributes
    ----------
    radius : float
        Radius of each of two discs that together have the area of the view.
    """

    lines = theme.INK
    radius = 1.0

    def __init__(self, panels: Panels):
        self._panels, self._samples = panels, panels.samples(panels.look.most_dots)

    def paint(
        self, ax: Axes, outline: PathPatch | None, view: View, member: Member, state: State
    ) -> Artist:
        """Draw the dots of a single state; returns their collection."""
        sample = self._samples[member]
        shares = sample.masses / sample.masses.sum()
        widths = 2 * self.radius * np.sqrt(2 * COVERED * shares)
        widths *= min(1.0, WIDEST * self.radius / np.median(widths))
        crowded = len(widths) > MOST_EDGED_DOTS
        places = view.place(self._panels.look.points(state)[sample.indices])
        index, places = self.visible(places, widths)
        widths, colours = widths[index], sample.colours[index]
        style = {"edgecolors": "none", "alpha": 0.6} if crowded else {"edgecolors": "white"}
        style |= {"facecolors": list(colours), "linewidths": 0.25, "rasterized": crowded}
        positions = {"offsets": places, "offset_transform": ax.transData, "units": "xy"}
        angles = np.zeros_like(widths)
        dots = EllipseCollection(widths, widths, angles, zorder=2.5, **positions, **style)
        return ax.add_collection(dots, autolim=False)

    def visible(self, places: np.ndarray, _widths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Index of the dot at each drawn place, and the places (n, 2)."""
        return np.arange(len(places)), places

    def explain(self) -> None:
        """The meaning of a dot, beneath the panels."""
        explain_dots(self._panels, self._samples)


Layer = FieldLayer | DotLayer


def draw_globes(panels: Panels, layer: Layer, views: Sequence[Projection], clusters: bool) -> None:
    """Draw each member of a sheet in its projection, one of `views` for each member."""

    projections = dict(zip(panels.members, views, strict=True))
    outlines = {
        ax: globe(ax, projections[m], layer.lines) for m, row in panels.views for ax, _ in row
    }

    def draw(ax: Axes, member: Member, i: int) -> list[Artist]:
        state, projection = panels.state(i, member), projections[member]
        picture = layer.paint(ax, outlines[ax], projection, member, state)
        return [picture, *(mark_clusters(ax, projection, state) if clusters else [])]

    panels.each(draw)
    layer.explain()


# Figures -------------------------------------------------------------------------------------


@figure("orthographic", Density, Sphere, sheet=(5, 0.5, 6))
def orthographic(
    panels: Panels, *, seen_from: Sequence[float] | None = None, clusters: bool = False,
    scale: str = "auto",
) -> None:  # fmt: skip
    """The sphere from two opposite sides at several times.

    Each pixel shows the density at its point. The second view is what one sees after walking half
    around the sphere: up stays up. Thin lines are meridians and parallels every 30 degrees, the
    stronger ones the equator and the meridian phi = 0. Times in red are not resolved.

    Parameters
    ----------
    solution : Solution
        Densities on the sphere.
    times : sequence of float, optional
        Times to show; those not saved as for `plot`. By default `count` saved ones, chosen so that
        the density moves equally far between them; in an `ax` the last.
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
    draw_pairs(panels, FieldLayer(panels, scale), seen_from, clusters)


@figure("orthographic", (Characteristics, Tokens), Sphere, sheet=(5, 0.5, 6))
def orthographic_dots(
    panels: Panels, *, seen_from: Sequence[float] | None = None, clusters: bool = True
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
        Times to show; those not saved as for `plot`. By default `count` saved ones, chosen so that
        the measure moves equally far between them; in an `ax` the last.
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
    draw_pairs(panels, DotLayer(panels), seen_from, clusters)


def draw_pairs(
    panels: Panels, layer: Layer, seen_from: Sequence[float] | None, clusters: bool
) -> None:
    """Draw each member from two opposite sides, which are equal at all times.

    `seen_from` is the direction of the viewer, by default `best_seen_from` of the last state shown.
    """
    pairs = []
    for member, row in panels.views:
        last = panels.state(row[-1][1], member)
        direction = panels.look.best_seen_from(last) if seen_from is None else seen_from
        pairs.append(OrthographicPair(frame_of(direction), upright=panels.upright))
        if panels.film is None or len(panels.members) == 1:
            name_sides(row[0][0], pairs[-1])
    draw_globes(panels, layer, pairs, clusters)


@figure("map", Density, Sphere, sheet=(6, 2.0, 3))
def mollweide(
    panels: Panels, *, centre: float = 0.0, clusters: bool = False, scale: str = "auto"
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
        If a time lies outside the solution, a member does not exist, or too many are chosen.
    TypeError
        If the states are not densities on the sphere.
    """
    maps = [Mollweide(centre)] * len(panels.members)
    draw_globes(panels, FieldLayer(panels, scale), maps, clusters)


@figure("map", (Characteristics, Tokens), Sphere, sheet=(6, 2.0, 3))
def mollweide_dots(panels: Panels, *, centre: float = 0.0, clusters: bool = True) -> None:
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
        If a time lies outside the solution, a member does not exist, or too many are chosen.
    TypeError
        If the states are neither characteristics nor tokens on the sphere.
    """
    maps = [Mollweide(centre)] * len(panels.members)
    draw_globes(panels, DotLayer(panels), maps, clusters)


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
    mask = np.isfinite(points[..., 0])
    image = np.full(mask.shape, np.nan)
    image[mask] = density.at(points[mask])
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
    left, right, bottom, top = projection.box
    ax.set(
        xlim=(left - GLOBE_MARGIN, right + GLOBE_MARGIN),
        ylim=(bottom - GLOBE_MARGIN, top + GLOBE_MARGIN),
    )
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.spines[:].set_visible(False)
    return outline


def name_sides(ax: Axes, pair: OrthographicPair) -> None:
    """Write the direction of view beside each disc."""
    numbers = ", ".join(f"{{{number:.2f}}}" for number in pair.frame[2]).replace("-0.00", "0.00")
    names = (f"seen from $({numbers})$", "from behind")
    for (right, height), name in zip(pair.centres, names, strict=True):
        place = {"x": right, "y": height - 1.07, "va": "top", "ha": "center"}
        if pair.upright:
            place = {"x": right - 1.07, "y": height, "va": "center", "ha": "right", "rotation": 90}
            name = name.replace("from $", "from\n$")
        ax.text(s=name, fontsize=8, multialignment="center", **place)


def mark_clusters(ax: Axes, view: View, state: State) -> list[Artist]:
    """A ring at each cluster of a single state, and its share of the mass beside it."""
    marks: list[Artist] = []
    ring = {"zorder": 4, "clip_on": False, "mfc": "none", "ms": 4.6}
    clusters = appearance_of(state).clusters(state)
    places = [view.place(cluster.point) for cluster in clusters]
    sides = _free_sides(ax, view, places, [percent(cluster.mass) for cluster in clusters])
    for cluster, place, (left, below) in zip(clusters, places, sides, strict=True):
        marks += ax.plot(*place, "o", mec="white", mew=1.7, **ring)
        marks += ax.plot(*place, "o", mec=theme.INK, mew=0.8, **ring)
        alignment = {"ha": "right" if left else "left", "va": "top" if below else "baseline"}
        offset = {"xytext": (-4 if left else 4, -3 if below else 3), "textcoords": "offset points"}
        style = {"fontsize": TEXT_SIZE, "zorder": 5, "path_effects": theme.HALO}
        marks.append(ax.annotate(percent(cluster.mass), place, **offset, **alignment, **style))
    return marks


def _free_sides(
    ax: Axes, view: View, places: list[np.ndarray], texts: list[str]
) -> list[tuple[bool, bool]]:
    """The sides (left, below) of texts at their marks that overlap other texts and marks least.

    Of equal sides the first is taken: right and above, but inwards near the edge of an outline.
    """
    spans = np.ptp([ax.get_xlim(), ax.get_ylim()], axis=1)
    points = (ax.bbox.size / spans).min() * 72 / ax.figure.dpi  # points per unit of data
    marks = [np.array([place * points - RING, place * points + RING]) for place in places]
    sides, taken = [], list[np.ndarray]()
    for k, (place, text) in enumerate(zip(places, texts, strict=True)):
        default = _near_the_end(view, place)
        obstacles = [*taken, *marks[:k], *marks[k + 1 :]]
        boxes = {}
        for left, below in ((default[0] ^ a, default[1] ^ b) for a, b in TURNS):
            size = TEXT_SIZE * np.array([WIDE * len(text), 1.0])
            low = place * points + np.where([left, below], -RING - size, RING)
            boxes[left, below] = np.array([low, low + size])
        side = min(boxes, key=lambda side: sum(_overlap(boxes[side], box) for box in obstacles))
        sides.append(side)
        taken.append(boxes[side])
    return sides


def _overlap(first: np.ndarray, second: np.ndarray) -> float:
    """The area that two boxes, lower and upper corners (2, 2), have in common."""
    sides = np.minimum(first[1], second[1]) - np.maximum(first[0], second[0])
    return float(np.maximum(sides, 0.0).prod())


def _near_the_end(view: View, place: np.ndarray) -> tuple[bool, bool]:
    """Whether a place is near the right, and whether near the upper, edge of its outline."""
    ends = [(outline.min(axis=0), outline.max(axis=0)) for outline in view.outlines]
    low, high = min(ends, key=lambda box: np.linalg.norm(place - (box[0] + box[1]) / 2))
    right, top = (place - low) / (high - low) > 0.85
    return bool(right), bool(top)
