"""Spaces in figures: their names in messages, and the axes of spaces with one coordinate.

Densities and characteristics live on a `Space`. Tokens and Gaussians have only a dimension, and may
lie on a sphere: the classes here represent their spaces.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ..spaces import Circle, Sphere, Torus, Zonal
from ..spaces.characteristics import Characteristics
from ..spaces.density import Density

Profiles = tuple[np.ndarray, np.ndarray]  # coordinates, and values (members, times, n) there


class Hypersphere:
    """The unit sphere of R^d, d > 3."""

    words = "on a sphere of R^d, d > 3"


class Flat:
    """R^d."""

    words = "in R^d"


class Line(Flat):
    """R."""

    words = "on the line"


class Euclidean(Flat):
    """R^d, d > 1; the class itself is R^d, d > 2."""

    words = "in R^d, d > 2"


class Plane(Euclidean):
    """R^2."""

    words = "in the plane"


SPHERES: dict[int, type] = {2: Circle, 3: Sphere}
EUCLIDEAN_SPACES: dict[int, type] = {1: Line, 2: Plane}


def space_of_tokens(dimension: int, on_sphere: bool) -> type:
    """The space of tokens, or of a Gaussian, in R^dimension."""
    if on_sphere:
        return SPHERES.get(dimension, Hypersphere)
    return EUCLIDEAN_SPACES.get(dimension, Euclidean)


def space_of_angles(count: int) -> type:
    """The space of points with so many angles: one is drawn on the circle."""
    return Circle if count == 1 else Torus


PLAIN_NAMES = {"Circle": "circle", "Sphere": "sphere", "Torus": "torus"}


def in_words(space: type, *, plain: bool = False) -> str:
    """ "on the Circle", if `plain` "on the circle"; nothing for states without a space."""
    if space in (object, type(None)):
        return ""
    name = PLAIN_NAMES.get(space.__name__, space.__name__) if plain else space.__name__
    return getattr(space, "words", f"on the {name}")


UNIT_CIRCLE = np.array([f(np.linspace(0.0, 2 * np.pi, 361)) for f in (np.cos, np.sin)])
QUARTERS = ((0.0, "$0$"), (0.5, r"$\pi/2$"), (1.0, r"$\pi$"), (1.5, r"$-\pi/2$"))
POLES = ((0.5, "$0$"), (0.0, r"$\pi/2$"), (1.5, r"$\pi$"))


@dataclass(frozen=True)
class CoordinateAxis:
    """One coordinate of a space as an axis of a panel.

    Subclasses have methods for the states that are drawn on their space. For points:
    `of_points(points)`, coordinates (..., d) -> (...), and `over_time(points)`, coordinates
    continuous in time, (t, n, d) -> (t, n). For characteristics: `of_nodes(state)`, coordinates of
    nodes, and `uniform_below(coordinates, dimension)`, the mass of the uniform state below each of
    increasing coordinates. For densities: `profiles(states, members, most)`, coordinates (n,) and
    values of densities there, (members, times, n).

    Attributes
    ----------
    name : str
        Label of the axis.
    limits : tuple of float
    ticks : ndarray
    labels : tuple of str
    around : tuple of (float, str)
        Angles in the plane of the first and the last axis, in units of pi, and their names.
    sides : tuple of int
        1, or also -1 where a point stands for its mirror image in the last axis too.
    """

    name: str
    limits: tuple[float, float]
    ticks: np.ndarray | None = None
    labels: tuple[str, ...] = ()
    around: tuple[tuple[float, str], ...] = QUARTERS
    sides: tuple[int, ...] = (1,)

    def draw_below(self, ax: Axes, *, named: bool = True) -> None:
        """Draw the coordinate as the horizontal axis of a panel."""
        ax.set(xlim=self.limits, xlabel=self.name if named else "")
        if self.ticks is not None:
            ax.set_xticks(self.ticks, self.labels)

    def draw_left(self, ax: Axes, *, named: bool = True) -> None:
        """Draw the coordinate as the vertical axis of a panel; without a name ticks are bare."""
        ax.set(ylim=self.limits, ylabel=self.name if named else "")
        if self.ticks is not None:
            ax.set_yticks(self.ticks, self.labels if named else [])

    def around_places(self, places: np.ndarray) -> "CoordinateAxis":
        """The axis with limits that hold these coordinates."""
        return self

    def with_mass(self, space: Any) -> "CoordinateAxis":
        """The part of the axis where there can be mass."""
        return self

    def wrapped(self, coordinates: np.ndarray) -> np.ndarray:
        """Coordinates within the limits."""
        return coordinates

    def values_within(self, coordinates: np.ndarray, values: np.ndarray) -> np.ndarray:
        """The values (..., n) at coordinates (n,) within the limits."""
        low, high = self.limits
        return values[..., (coordinates >= low) & (coordinates <= high)]

    def copies(self, curve: np.ndarray) -> list[np.ndarray]:
        """The periodic copies of a curve that are partly visible; by default the curve itself."""
        return [curve]


class CircleAxis(CoordinateAxis):
    """Angles in [-pi, pi]."""

    def copies(self, curve: np.ndarray) -> list[np.ndarray]:
        """The curve shifted by each multiple of 2 pi at which a part of it is visible.

        A curve that crosses pi leaves the panel at the top while a copy enters at the bottom.
        """
        ends = np.array([curve.min(), curve.max()])
        first, last = np.floor((ends + np.pi) / (2 * np.pi)).astype(int)
        return [curve - 2 * np.pi * turn for turn in range(first, last + 1)]

    def wrapped(self, angles: np.ndarray) -> np.ndarray:
        return np.mod(angles + np.pi, 2 * np.pi) - np.pi

    def of_points(self, points: np.ndarray) -> np.ndarray:
        return self.wrapped(np.arctan2(points[..., 1], points[..., 0]))

    def over_time(self, points: np.ndarray) -> np.ndarray:
        return np.unwrap(np.arctan2(points[..., 1], points[..., 0]), axis=0)

    def of_nodes(self, state: Characteristics) -> np.ndarray:
        origin = state.chart.points(np.zeros((1, *state.coordinates.shape[1:])))[0]
        return state.coordinates.reshape(len(state)) + np.arctan2(origin[1], origin[0])

    def uniform_below(self, coordinates: np.ndarray, dimension: int) -> np.ndarray:
        low, high = self.limits
        return (coordinates - low) / (high - low)

    def profiles(
        self, states: Sequence[Density], members: Sequence[tuple[int, ...]], limit: int | None
    ) -> Profiles:
        """The grid overhangs [-pi, pi] by one point on both sides.

        The first point is the last but one minus 2 pi, and the last the second plus 2 pi, so that
        a curve clipped at -pi and pi has no seam.
        """
        degree = max(SMOOTH_DEGREE, *(state.space.degree for state in states))
        frames = []
        for state in states:
            fine = state.resample(degree)
            # The rounding keeps the point pi from landing on either side.
            angles = self.wrapped(np.round(fine.space.angles, 14))
            order = np.argsort(angles)
            densities = np.stack([fine.values[index] for index in members])
            frames.append(_averaged(densities[:, order], limit))
        theta = _averaged(angles[order], limit)
        theta = np.concatenate([[theta[-1] - 2 * np.pi], theta, [theta[0] + 2 * np.pi]])
        values = np.stack(frames, axis=1)
        return theta, np.concatenate([values[..., -1:], values, values[..., :1]], axis=-1)


class PolarAxis(CoordinateAxis):
    """Polar angles in [0, pi], from the pole on the last axis."""

    def of_points(self, points: np.ndarray) -> np.ndarray:
        # The clusters of axisymmetric measures are poles.
        return np.where(points[..., -1] > 0, 0.0, np.pi)

    def of_nodes(self, state: Characteristics) -> np.ndarray:
        return 2 * np.arctan(np.exp(state.coordinates * state.limit[-1]))

    def uniform_below(self, coordinates: np.ndarray, dimension: int) -> np.ndarray:
        heights = np.sin(coordinates) ** (dimension - 2)
        levels = np.concatenate([[0.0], np.cumsum((heights[1:] + heights[:-1]) / 2)])
        return levels / levels[-1]

    def profiles(
        self, states: Sequence[Density], members: Sequence[tuple[int, ...]], limit: int | None
    ) -> Profiles:
        theta = np.linspace(0, np.pi, POLAR_ANGLES)
        points = np.zeros((theta.size, states[0].space.dimension))
        points[:, 0], points[:, -1] = np.sin(theta), np.cos(theta)
        values = [np.stack([state.at(points)[index] for index in members]) for state in states]
        return theta, np.stack(values, axis=1)

    def with_mass(self, space: Zonal) -> "PolarAxis":
        """In high dimension only the angles where there is mass."""
        low = max(0.0, np.arccos(space.x[space.judged].max()) - 0.02)
        if low < 0.1:
            return self
        ticks = np.linspace(low, np.pi - low, 5)
        labels = tuple(f"${tick / np.pi:.2f}\\pi$" for tick in ticks)
        return replace(self, limits=(low, np.pi - low), ticks=ticks, labels=labels)


class LineAxis(CoordinateAxis):
    """The real line."""

    def over_time(self, points: np.ndarray) -> np.ndarray:
        return self.of_points(points)

    def around_places(self, places: np.ndarray) -> "CoordinateAxis":
        margin = 0.04 * (np.ptp(places) or 1.0)
        return replace(self, limits=(places.min() - margin, places.max() + margin))

    def of_points(self, points: np.ndarray) -> np.ndarray:
        return points[..., 0]


POLAR_ANGLES = 1025
SMOOTH_DEGREE = 256  # at least this degree, or a curve shows its corners
AROUND = CircleAxis(
    r"angle $\theta$",
    (-np.pi, np.pi),
    np.pi * np.array([-1.0, -0.5, 0.0, 0.5, 1.0]),
    (r"$-\pi$", r"$-\pi/2$", "$0$", r"$\pi/2$", r"$\pi$"),
)
FROM_POLE_TO_POLE = PolarAxis(
    r"polar angle $\theta$",
    (0.0, np.pi),
    np.pi * np.array([0.0, 0.25, 0.5, 0.75, 1.0]),
    ("$0$", r"$\pi/4$", r"$\pi/2$", r"$3\pi/4$", r"$\pi$"),
    around=POLES,
    sides=(1, -1),
)
# The axis of each space with one coordinate; a subclass has that of its base.
CHARTS: dict[type, CoordinateAxis] = {
    Circle: AROUND,
    Zonal: FROM_POLE_TO_POLE,
    Line: LineAxis("$x$", (-np.inf, np.inf)),
}


def chart_of(space: type) -> Any:
    """The chart of a space, or None."""
    return next((CHARTS[kind] for kind in space.__mro__ if kind in CHARTS), None)


def _averaged(values: np.ndarray, limit: int | None) -> np.ndarray:
    """Means of equally many neighbours along the last axis (the last block may be shorter)."""
    count = values.shape[-1]
    if limit is None or count <= limit:
        return values
    starts = np.arange(0, count, -(-count // limit))
    return np.add.reduceat(values, starts, axis=-1) / np.diff(starts, append=count)
