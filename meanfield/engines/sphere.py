"""Tokens on S^2, by the spherical harmonics of their measure."""

import numpy as np

from ..core.cached import cached_property
from ..lowlevel.compilation import njit
from ..spaces.chart import Multipliers
from ..spaces.sphere import Sphere, SphereNodeChart
from ..spaces.sphere_points import (
    SMALLEST_RADIUS,
    TRANSFORM_ACCURACY,
    AngleTransforms,
    degrees_of,
)
from .contract import ThreadPool
from .harmonics import HarmonicEngine, PointTransforms, parts_of


class SpherePointTransforms(PointTransforms):
    """Transforms of points on S^2, by ducc0."""

    def __init__(self, degree: int, accuracy: float, threads: ThreadPool) -> None:
        super().__init__(degree, accuracy, threads)
        self._angles = np.empty((0, 0, 2))  # reused: new memory for 10^7 tokens takes a second

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        """Colatitudes and longitudes (R, n, 2)."""
        if self._angles.shape[:-1] != x.shape[:-1]:
            self._angles = np.empty((*x.shape[:-1], 2))
        angles = self._angles
        self.each_part(x, lambda r, _part, tokens: _write_angles(x[r, tokens], angles[r, tokens]))
        return angles

    def at(self, angles: np.ndarray) -> AngleTransforms:
        """Transforms of the points with angles (n, 2)."""
        return AngleTransforms(angles, self.degree, self.accuracy)

    def moments(self, coordinates: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Moments sum_j m_j conj Y(x_j), (R, modes)."""
        size = (self.degree + 1) * (self.degree + 2) // 2
        modes = np.empty((len(coordinates), parts_of(coordinates), size), dtype=complex)

        def work(r: int, part: int, tokens: slice) -> None:
            modes[r, part] = self.at(coordinates[r, tokens]).moments(masses[r, tokens])

        self.each_part(coordinates, work)
        return modes.sum(axis=1)

    def values(self, coordinates: np.ndarray, series: np.ndarray) -> np.ndarray:
        """Values (R, rows, n) of spherical harmonic series (R, rows, modes) at the tokens."""
        values = np.empty((*series.shape[:2], coordinates.shape[1]))

        def work(r: int, _part: int, tokens: slice) -> None:
            points = self.at(coordinates[r, tokens])
            for c, row in enumerate(series[r]):
                values[r, c, tokens] = points.values(row)

        self.each_part(coordinates, work)
        return values


class SphereModes(HarmonicEngine):
    """Velocities on S^2 in O(n + L^3) operations, by the transforms of ducc0.

    With a_lm = sum_j m_j conj Y_lm(x_j) and the multipliers W_l and Z_l

        v = grad sum_lm W_l a_lm Y_lm / sum_lm Z_l a_lm Y_lm
    """

    name = "sphere"
    dimension = 3
    transforms_of = SpherePointTransforms
    scattered: SpherePointTransforms
    transform = 50.0, 50e-3, 0.05

    _denominators = np.empty((0, 0))

    @cached_property
    def _chart(self) -> SphereNodeChart:
        return Sphere(1).chart(np.array([0.0, 0.0, 1.0]))

    @cached_property
    def degrees(self) -> np.ndarray:
        return degrees_of(self.degree)

    def fields(
        self, x: np.ndarray, coordinates: np.ndarray, modes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Velocities from gradients, in colatitude and longitude, of spherical harmonic series."""
        velocity, denominators = np.empty(x.shape), None
        numerators = self.attraction[..., self.degrees] * modes
        if self.normaliser is not None:
            if self._denominators.shape != x.shape[:2]:
                self._denominators = np.empty(x.shape[:2])
            denominators = self._denominators
            denominator_modes = self.normaliser[..., self.degrees] * modes

        def work(r: int, _part: int, tokens: slice) -> None:
            """Fill velocities and denominators of some tokens of system r."""
            angles = coordinates[r, tokens]
            points = self.scattered.at(angles)
            slope, turn = points.gradient(numerators[r])
            if denominators is not None:
                denominators[r, tokens] = denominator = points.values(denominator_modes[r])
                slope, turn = slope / denominator, turn / denominator
            _embed(x[r, tokens], angles, slope, turn, velocity[r, tokens])

        self.scattered.each_part(x, work)
        return velocity, denominators

    def fields_along(
        self, x: np.ndarray, masses: np.ndarray, dx: np.ndarray, dm: np.ndarray,
        multipliers: Multipliers, changes: list[Multipliers],
        computed: np.ndarray | None, modes: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray, float]:  # fmt: skip
        """Velocities and changes by `SphereNodeChart.field_tangents`."""
        system = x, masses, dx, dm, multipliers, changes
        return self._chart.field_tangents(
            *system, max(TRANSFORM_ACCURACY, self.accuracy), computed, modes
        )

    def powers(self, modes: np.ndarray) -> np.ndarray:
        squares = np.where(np.arange(modes.shape[1]) <= self.degree, 1, 2) * np.abs(modes) ** 2
        return np.stack([np.bincount(self.degrees, of_one) for of_one in squares])  # m = 0 first


def _write_angles(x: np.ndarray, angles: np.ndarray) -> None:
    """Fill `angles` (n, 2) with colatitudes and longitudes in [0, 2 pi) of tokens x (n, 3)."""
    longitudes = np.arctan2(x[:, 1], x[:, 0])
    angles[:, 0] = np.arctan2(np.sqrt(x[:, 0] ** 2 + x[:, 1] ** 2), x[:, 2])
    angles[:, 1] = np.where(longitudes < 0, longitudes + 2 * np.pi, longitudes)


@njit(cache=True, nogil=True)
def _embed(
    x: np.ndarray, angles: np.ndarray, slope: np.ndarray, turn: np.ndarray, velocity: np.ndarray
) -> None:
    """Fill `velocity` (n, 3) with vectors at x, from components southwards and to the east.

    `slope` (n,) is the component along the meridian, southwards, `turn` (n,) that to the east.
    """
    for i in range(len(x)):
        radius = np.sqrt(x[i, 0] ** 2 + x[i, 1] ** 2)
        length = np.sqrt(radius**2 + x[i, 2] ** 2)
        if radius > SMALLEST_RADIUS:
            cosine, sine = x[i, 0] / radius, x[i, 1] / radius
        else:
            cosine, sine = np.cos(angles[i, 1]), np.sin(angles[i, 1])
        along = slope[i] * x[i, 2] / length
        velocity[i, 0] = along * cosine - turn[i] * sine
        velocity[i, 1] = along * sine + turn[i] * cosine
        velocity[i, 2] = -slope[i] * radius / length
