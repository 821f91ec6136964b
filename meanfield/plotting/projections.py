"""Projections of the sphere to the page: Mollweide's, and a pair of orthographic views.

A projection maps points of the sphere to the page with `place` and back with `points`, and tells
the `box` it fills (left, right, bottom, top) and the closed `outlines` (n, 2) within which it lies.
`points` gives nan outside the outlines; places outside by less than `slack` show the nearest point
of an outline, which fills the pixels that it cuts.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..core.checks import fitting
from ..states.points import unit

GAP = 0.06  # between the discs of a pair, whose radius is 1
FULL_TURN = np.linspace(0.0, 2 * np.pi, 361)
GRATICULE_STEP = np.pi / 6  # between meridians, and parallels


def frame_of(direction) -> np.ndarray:
    """Right, up and towards the viewer as the rows of a rotation, seen from `direction`.

    The north pole is up. Seen from a pole, the first axis is to the right.

    Raises
    ------
    ValueError
        If the direction is not a finite vector (3,) other than 0.
    """
    towards = np.asarray(direction, dtype=float)
    some = towards.shape == (3,) and 0 < np.linalg.norm(towards) < np.inf
    fitting("seen_from", direction, "a direction, three numbers, not all 0", some)
    towards = towards / np.linalg.norm(towards)
    right = np.array([-towards[1], towards[0], 0.0])
    length = np.linalg.norm(right)
    right = right / length if length > 1e-9 else np.array([1.0, 0.0, 0.0])
    right -= (right @ towards) * towards  # to rounding, also near the poles
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(towards, right), towards])


@dataclass(frozen=True)
class OrthographicPair:
    """The hemisphere before `frame` and the one behind it, each as seen from its own side.

    One walks around the sphere to see the second: up stays up, and left and right change.

    Attributes
    ----------
    frame : ndarray, (3, 3)
        Rotation, as `frame_of` returns it.
    beside : bool
        Whether the discs, of radius 1, lie side by side; else the second is beneath the first.
    leap : float
        Longer steps between neighbouring points of a curve cross to the other disc.
    """

    leap: ClassVar[float] = 0.8 * GAP
    frame: np.ndarray
    beside: bool = True

    @property
    def centres(self) -> np.ndarray:
        """Centres of the discs in front and behind, (2, 2)."""
        half = 1.0 + GAP / 2
        return np.array([[-half, 0.0], [half, 0.0]] if self.beside else [[0.0, half], [0.0, -half]])

    @property
    def box(self) -> tuple[float, float, float, float]:
        long = 2.0 + GAP / 2
        return (-long, long, -1.0, 1.0) if self.beside else (-1.0, 1.0, -long, long)

    @property
    def outlines(self) -> list[np.ndarray]:
        disc = np.stack([np.cos(FULL_TURN), np.sin(FULL_TURN)], axis=-1)
        return [centre + disc for centre in self.centres]

    def points(self, x: np.ndarray, y: np.ndarray, slack: float = 0.0) -> np.ndarray:
        behind = x > 0 if self.beside else y < 0
        middle = self.centres[behind.astype(int)]
        x, y = x - middle[..., 0], y - middle[..., 1]
        x, y = _within(x, y, slack)
        height = np.sqrt(np.maximum(1 - x**2 - y**2, 0.0))
        side = np.where(behind, -1.0, 1.0)
        return unit(np.stack([side * x, y, side * height], axis=-1)) @ self.frame

    def place(self, points: np.ndarray) -> np.ndarray:
        right, up, towards = np.moveaxis(points @ self.frame.T, -1, 0)
        behind = towards < 0
        local = np.stack([np.where(behind, -right, right), up], axis=-1)
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
        return [np.stack([2 * np.cos(FULL_TURN), np.sin(FULL_TURN)], axis=-1)]

    def points(self, x: np.ndarray, y: np.ndarray, slack: float = 0.0) -> np.ndarray:
        u, v = _within(x / 2, y, slack)
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


def _within(x: np.ndarray, y: np.ndarray, slack: float) -> tuple[np.ndarray, np.ndarray]:
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
    radius = np.sqrt(1 - z**2)
    return np.stack(
        [radius * np.cos(FULL_TURN), radius * np.sin(FULL_TURN), np.full(FULL_TURN.size, z)],
        axis=-1,
    )


def _broken(curve: np.ndarray, leap: float) -> np.ndarray:
    """The curve with nan inserted in steps longer than `leap`."""
    jumps = np.flatnonzero(np.linalg.norm(np.diff(curve, axis=0), axis=1) > leap) + 1
    return np.insert(curve, jumps, np.nan, axis=0)
