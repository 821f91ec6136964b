"""Distances between points: geodesic ones of spheres and tori, Euclidean ones of R^d."""

from typing import NamedTuple

import numpy as np

from ..lowlevel.compilation import njit
from ..spaces import Circle, Space, Sphere, Torus
from ..states.points import angles_between

SMALL_ANGLE = 0.01  # closer to 0 or pi than this, the arc cosine loses digits
WAVES = 2.0  # standard deviation of wave numbers of projections


class Metric(NamedTuple):
    """The distance of R^d, or of a product of unit spheres: the root of a sum of squared angles.

    Attributes
    ----------
    dimension : int
        Number of components of a point.
    factor : int
        Number of its components on each sphere: all on a single sphere, 2 on a torus; 0 in R^d.
    """

    dimension: int
    factor: int

    def __str__(self) -> str:
        d = self.dimension
        if not self.factor:
            return f"in R^{d}"
        return f"on S^{d - 1}" if self.on_sphere else f"on the torus of {self.factors} angles"

    @property
    def on_sphere(self) -> bool:
        """True for a single sphere."""
        return self.factor == self.dimension

    @property
    def factors(self) -> int:
        """Number of spheres; 0 in R^d."""
        return self.dimension // self.factor if self.factor else 0

    def harmonics(self, name: str, degree: int) -> Space:
        """The circle, S^2 or torus up to a degree; ValueError in other spaces, for `name`."""
        if self.factors > 1:
            return Torus(degree, self.factors)
        if not self.on_sphere or self.dimension > 3:
            raise ValueError(
                f"The states of {name} must be on the circle, on S^2, on a torus, or axisymmetric "
                f"measures; got measures {self}."
            )
        return Circle(degree) if self.dimension == 2 else Sphere(degree)

    def directions(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Random projections on the circle, and by how much each may lengthen distances, (count,).

        On a sphere x goes to its nearest point on a great circle, spanned by pairs (count, d, 2).
        On a torus it goes to <k, x>, of rounded normal vectors k without a common divisor,
        (count, m), which lengthens distances by |k|; of k and -k it is the one in `Torus.waves`.
        """
        if self.on_sphere:
            frames = rng.standard_normal((count, self.dimension, 2))
            return np.linalg.qr(frames)[0], np.ones(count)
        waves = np.zeros((count, self.factors), dtype=int)
        while (zero := ~waves.any(axis=1)).any():
            waves[zero] = np.rint(WAVES * rng.standard_normal((zero.sum(), self.factors)))
        first, last = waves[np.arange(count), (waves != 0).argmax(axis=1)], waves[:, -1]
        waves *= np.sign(np.where(last == 0, first, last))[:, None]
        waves //= np.gcd.reduce(waves, axis=1, keepdims=True)
        return waves, np.linalg.norm(waves, axis=1)

    def between(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Distances between points (..., d), broadcast, to relative rounding."""
        if not self.factor:
            return np.linalg.norm(x - y, axis=-1)
        if self.on_sphere:
            return angles_between(x, y)
        x, y = (points.reshape(*points.shape[:-1], -1, self.factor) for points in (x, y))
        return np.linalg.norm(angles_between(x, y), axis=-1)

    def pairwise(self, x: np.ndarray, y: np.ndarray, p: float) -> np.ndarray:
        """d(x_i, y_j)^p for points (n, d) and (m, d), (n, m), angles to 1e-14."""
        if not self.factor:
            from scipy.spatial.distance import cdist

            return _to_the_power(cdist(x, y), p)
        if self.on_sphere:
            return _to_the_power(_angles(x, y), p)
        squares = np.zeros((len(x), len(y)))
        for begin in range(0, self.dimension, self.factor):
            part = slice(begin, begin + self.factor)
            angles = _angles(*(np.ascontiguousarray(points[:, part]) for points in (x, y)))
            squares += np.multiply(angles, angles, out=angles)
        return squares if p == 2 else _to_the_power(np.sqrt(squares, out=squares), p)

    def scaled_costs(self, x: np.ndarray, y: np.ndarray, p: float) -> tuple[np.ndarray, float]:
        """(d(x_i, y_j) / scale)^p and the scale, the largest distance: no power overflows."""
        radius = 1.0 if self.factor else float(np.abs(x).max() + np.abs(y).max()) or 1.0
        distances = self.pairwise(x / radius, y / radius, 1)
        largest = float(distances.max()) or 1.0
        distances /= largest
        return _to_the_power(distances, p), radius * largest


def _angles(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Angles (n, m) between unit vectors (n, d) and (m, d)."""
    angles = x @ y.T
    np.clip(angles, -1, 1, out=angles)
    np.arccos(angles, out=angles)
    _refine(x, y, angles)
    return angles


def _to_the_power(distances: np.ndarray, p: float) -> np.ndarray:
    """distances^p, in place."""
    if p == 2:
        return np.multiply(distances, distances, out=distances)
    return distances if p == 1 else np.power(distances, p, out=distances)


@njit(cache=True, nogil=True)
def arc(x: np.ndarray, y: np.ndarray, factor: int) -> float:
    """The distance of two points of a product of spheres, to relative rounding."""
    squares = 0.0
    for begin in range(0, len(x), factor):
        difference = total = 0.0
        for k in range(begin, begin + factor):
            difference += (x[k] - y[k]) ** 2
            total += (x[k] + y[k]) ** 2
        squares += (2 * np.arctan2(np.sqrt(difference), np.sqrt(total))) ** 2
    return np.sqrt(squares)


@njit(cache=True, nogil=True)
def _refine(x: np.ndarray, y: np.ndarray, angles: np.ndarray) -> None:
    """Recompute angles near 0 and pi from the difference and the sum of the vectors."""
    for i in range(len(x)):
        for j in range(len(y)):
            if angles[i, j] < SMALL_ANGLE or angles[i, j] > np.pi - SMALL_ANGLE:
                angles[i, j] = arc(x[i], y[j], len(x[i]))
