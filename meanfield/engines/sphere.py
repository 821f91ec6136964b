"""Tokens on S^2, by the spherical harmonics of their measure."""

import numpy as np

from ..lowlevel.compilation import njit
from ..models import ZonalDrift
from ..spaces.chart import Multipliers
from ..spaces.sphere import Sphere
from ..spaces.sphere_points import SMALLEST_RADIUS, TRANSFORM_ACCURACY, degrees_of, factors
from .contract import ThreadPool
from .harmonics import HarmonicEngine, PointTransforms, parts_of


class SpherePointTransforms(PointTransforms):
    """Transforms on S^2 by ducc0; series have the normalisation of densities, moments of ducc0."""

    def __init__(self, degree: int, accuracy: float, threads: ThreadPool) -> None:
        super().__init__(degree, accuracy, threads)
        self.options = {"lmax": degree, "epsilon": accuracy, "nthreads": 1}
        self._angles = np.empty((0, 0, 2))  # reused: new memory for 10^7 tokens takes a second

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        """Colatitudes and longitudes (R, n, 2)."""
        if self._angles.shape[:-1] != x.shape[:-1]:
            self._angles = np.empty((*x.shape[:-1], 2))
        angles = self._angles
        self.each_part(x, lambda r, _part, tokens: _write_angles(x[r, tokens], angles[r, tokens]))
        return angles

    def moments(self, coordinates: np.ndarray, masses: np.ndarray) -> np.ndarray:
        from ducc0.sht import adjoint_synthesis_general

        size = (self.degree + 1) * (self.degree + 2) // 2
        modes = np.empty((len(coordinates), parts_of(coordinates), size), dtype=complex)

        def work(r: int, part: int, tokens: slice) -> None:
            values, angles = masses[None, r, tokens], coordinates[r, tokens]
            modes[r, part] = adjoint_synthesis_general(
                map=values, loc=angles, spin=0, **self.options
            )[0]

        self.each_part(coordinates, work)
        return modes.sum(axis=1)

    def coefficients(self, coordinates: np.ndarray, masses: np.ndarray) -> np.ndarray:
        return self.moments(coordinates, masses) * factors(self.degree)

    def values(self, coordinates: np.ndarray, series: np.ndarray) -> np.ndarray:
        values, series = (
            np.empty((*series.shape[:2], coordinates.shape[1])),
            series * factors(self.degree),
        )

        def work(r: int, _part: int, tokens: slice) -> None:
            for c, alm in enumerate(series[r]):
                values[r, c, tokens] = self.synthesis(alm, coordinates[r, tokens], 0)[0]

        self.each_part(coordinates, work)
        return values

    def synthesis(self, modes: np.ndarray, angles: np.ndarray, spin: int) -> np.ndarray:
        """Values (1, n) of a series at n points; for spin = 1 derivatives (2, n).

        The derivatives are along the meridian, southwards, and to the east.
        """
        from ducc0.sht import synthesis_general

        mode = "DERIV1" if spin else "STANDARD"
        return synthesis_general(alm=modes[None], loc=angles, spin=spin, mode=mode, **self.options)


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

    def __init__(self, drift: ZonalDrift, tolerance: float = 1e-10, threads: int = 1) -> None:
        super().__init__(drift, tolerance, threads)
        self._degrees = degrees_of(self.degree)
        self._levels = np.empty((0, 0))

    def series_of(self, modes: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
        return multipliers[self._degrees] * modes * factors(self.degree)

    def fields(
        self, x: np.ndarray, coordinates: np.ndarray, modes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        modes = modes * 4 * np.pi  # the harmonics of ducc0 have norm 1 on an area of 4 pi
        velocity, levels = np.empty(x.shape), None
        if self.normaliser is not None:
            if self._levels.shape != x.shape[:2]:
                self._levels = np.empty(x.shape[:2])
            levels = self._levels

        def work(r: int, _part: int, tokens: slice) -> None:
            angles, multipliers = coordinates[r, tokens], self._spread(self.attraction, r)
            slope, turn = self.scattered.synthesis(modes[r] * multipliers, angles, 1)
            if levels is not None:
                multipliers = self._spread(self.normaliser, r)
                level = self.scattered.synthesis(modes[r] * multipliers, angles, 0)[0]
                levels[r, tokens] = level
                slope, turn = slope / level, turn / level
            _embed(x[r, tokens], angles, slope, turn, velocity[r, tokens])

        self.scattered.each_part(x, work)
        return velocity, levels

    def fields_along(
        self, x: np.ndarray, masses: np.ndarray, dx: np.ndarray, dm: np.ndarray,
        multipliers: Multipliers, changes: list[Multipliers],
        known: np.ndarray | None, modes: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray, float]:  # fmt: skip
        accuracy = max(TRANSFORM_ACCURACY, self.accuracy)
        moments = None if modes is None else modes * factors(self.degree)
        system = x, masses, dx, dm, multipliers, changes
        chart = Sphere(1).chart(np.array([0.0, 0.0, 1.0]))
        return chart.field_tangents(*system, accuracy, known, moments)

    def powers(self, modes: np.ndarray) -> np.ndarray:
        orders = np.where(np.arange(self._degrees.size) <= self.degree, 1, 2)  # m = 0 comes first
        squares = 4 * np.pi * orders * np.abs(modes) ** 2
        return np.stack([np.bincount(self._degrees, of_one) for of_one in squares])

    def _spread(self, multipliers: np.ndarray, r: int) -> np.ndarray:
        """The multipliers of system r, repeated for every coefficient, (modes,)."""
        return (multipliers if multipliers.ndim == 1 else multipliers[r])[self._degrees]

    def of_density(self, coefficients: np.ndarray) -> np.ndarray:
        return coefficients / factors(self.degree)


def _write_angles(x: np.ndarray, angles: np.ndarray) -> None:
    """Fill `angles` (n, 2) with colatitudes and longitudes in [0, 2 pi) of tokens x (n, 3)."""
    longitudes = np.arctan2(x[:, 1], x[:, 0])
    angles[:, 0] = np.arctan2(np.sqrt(x[:, 0] ** 2 + x[:, 1] ** 2), x[:, 2])
    angles[:, 1] = np.where(longitudes < 0, longitudes + 2 * np.pi, longitudes)


@njit(cache=True, nogil=True, error_model="numpy")
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
