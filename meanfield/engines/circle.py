"""Tokens on the circle, by the Fourier modes of their measure.

With z_j = e^(i theta_j) and the multipliers W_k and Z_k,

    m_k = sum_j m_j z_j^-k
    v = Re sum_(k=1)^K 2ik W_k m_k z^k / Re (Z_0 + sum_(k=1)^K 2 Z_k m_k z^k)

Up to degree 150 sums over powers of z = x + i y, without trigonometric functions, are fastest;
above, the transforms of ducc0 for scattered points.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from ..lowlevel.compilation import IN_ANY_ORDER, INNER, WITHIN, njit
from ..models import ZonalDrift
from .contract import ThreadPool
from .harmonics import PART_SIZE, HarmonicEngine, PointTransforms, parts_of

HIGHEST_POWER = 150  # highest degree for which powers of z are faster than ducc0
TOKEN_COST, MODE_COST = 8e-3, 0.14e-3  # microseconds of powers of z: per token, per token and mode
CIRCLE_BLOCK = 256  # tokens of a block, whose powers stay in the cache


class CirclePointTransforms(PointTransforms):
    """Transforms of points on the circle: by powers of z up to degree 150, above by ducc0."""

    def __init__(self, degree: int, accuracy: float, threads: ThreadPool) -> None:
        super().__init__(degree, accuracy, threads)
        self.options = {
            "epsilon": accuracy,
            "nthreads": 1,
            "periodicity": 2 * np.pi,
            "fft_order": False,
        }

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        return x if self.degree <= HIGHEST_POWER else np.arctan2(x[..., 1], x[..., 0])

    def moments(self, coordinates: np.ndarray, masses: np.ndarray) -> np.ndarray:
        parts = parts_of(coordinates)
        moments = np.empty((len(coordinates), parts, self.degree + 1), dtype=complex)
        if self.degree > HIGHEST_POWER:
            self._scattered_moments(coordinates, masses, moments)
        else:
            work = partial(_power_moments, coordinates, masses, moments)
            self.threads.share(work, len(coordinates) * parts)
        return moments.sum(axis=1)

    def _scattered_moments(
        self, angles: np.ndarray, masses: np.ndarray, moments: np.ndarray
    ) -> None:
        from ducc0.nufft import nu2u

        def work(r: int, part: int, tokens: slice) -> None:
            grid = np.empty(2 * self.degree + 1, dtype=complex)
            points, coordinates = masses[r, tokens].astype(complex), angles[r, tokens, None]
            nu2u(points=points, coord=coordinates, out=grid, forward=True, **self.options)
            moments[r, part] = grid[self.degree :]

        self.each_part(angles, work)

    def values(self, coordinates: np.ndarray, series: np.ndarray) -> np.ndarray:
        twice = np.where(np.arange(self.degree + 1) == 0, 1, 2) * series
        values = np.empty((*series.shape[:2], coordinates.shape[1]))
        if self.degree > HIGHEST_POWER:
            self._scattered_values(coordinates, twice, values)
        else:
            work = partial(_series_values, coordinates, twice, values)
            self.threads.share(work, len(coordinates) * parts_of(coordinates))
        return values

    def _scattered_values(self, angles: np.ndarray, twice: np.ndarray, values: np.ndarray) -> None:
        from ducc0.nufft import u2nu

        K, count = self.degree, twice.shape[1]

        def work(r: int, _part: int, tokens: slice) -> None:
            angle = angles[r, tokens, None]
            for first in range(0, count, 2):  # two real functions in one transform
                grid = np.zeros(2 * K + 1, dtype=complex)
                for factor, half in zip((1, 1j), twice[r, first : first + 2] / 2, strict=False):
                    grid[K:] += factor * half
                    grid[K::-1] += factor * half.conj()
                both = u2nu(grid=grid, coord=angle, forward=False, **self.options)
                values[r, first, tokens] = both.real
                if first + 1 < count:
                    values[r, first + 1, tokens] = both.imag

        self.each_part(angles, work)


class CircleModes(HarmonicEngine):
    """Velocities on the circle in O(n K) operations, above degree K = 150 in O(n + K log K)."""

    name = "circle"
    dimension = 2
    transforms_of = CirclePointTransforms
    scattered: CirclePointTransforms
    transform = 50.0, 25e-3, 0.0

    def __init__(self, drift: ZonalDrift, tolerance: float = 1e-10, threads: int = 1) -> None:
        super().__init__(drift, tolerance, threads)
        k = np.arange(self.degree + 1)
        self._slopes = 2j * k * self.attraction
        self._levels = None
        if self.normaliser is not None:
            self._levels = np.where(k == 0, 1, 2) * self.normaliser

    def cost(self, n: int) -> float:
        if self.degree > HIGHEST_POWER:
            return super().cost(n)
        return n * (TOKEN_COST + self.transforms * MODE_COST * self.degree)

    def undivided(self) -> Self:
        part = super().undivided()
        part._levels = None
        return part

    def series_of(self, modes: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
        return multipliers * modes

    def fields(
        self, x: np.ndarray, coordinates: np.ndarray, modes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        velocity = np.empty(x.shape)
        levels = None if self._levels is None else np.empty(x.shape[:2])
        if self.degree > HIGHEST_POWER:
            self._scattered_fields(coordinates, modes, velocity, levels)
            return velocity, levels
        series = np.empty((0, 0), dtype=complex) if levels is None else self._levels * modes
        filled = np.empty((0, 0)) if levels is None else levels
        work = partial(_velocities, x, self._slopes * modes, series, velocity, filled)
        self.threads.share(work, len(x) * parts_of(x))
        return velocity, levels

    def with_tangents(self, names: Sequence[str | None]) -> Any:
        from .circle_tangents import CircleTangents

        return CircleTangents(self, names)

    def powers(self, modes: np.ndarray) -> np.ndarray:
        return np.where(np.arange(self.degree + 1) == 0, 1, 2) * np.abs(modes) ** 2

    def _scattered_fields(
        self, angles: np.ndarray, modes: np.ndarray, velocity: np.ndarray, levels: np.ndarray | None
    ) -> None:
        from ducc0.nufft import u2nu

        grids = self._grids(modes)

        def work(r: int, _part: int, tokens: slice) -> None:
            angle = angles[r, tokens]
            values = u2nu(
                grid=grids[r], coord=angle[:, None], forward=False, **self.scattered.options
            )
            speed = values.real
            if levels is not None:
                levels[r, tokens] = values.imag
                speed = speed / values.imag
            velocity[r, tokens, 0] = -speed * np.sin(angle)
            velocity[r, tokens, 1] = speed * np.cos(angle)

        self.scattered.each_part(angles, work)

    def _grids(self, moments: np.ndarray) -> np.ndarray:
        """Modes -K, ..., K, (R, 2K + 1), of a complex function: slope + i level, or slope alone.

        The slope is the numerator of the velocity, the level its denominator.
        """
        K = self.degree
        grids = np.zeros((len(moments), 2 * K + 1), dtype=complex)
        for factor, multipliers in ((1, self._slopes), (1j, self._levels)):
            if multipliers is not None:
                half = multipliers * moments / 2  # Re f = (f + conj f) / 2
                grids[:, K:] += factor * half
                grids[:, K::-1] += factor * half.conj()
        return grids


# Powers of z -----------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _power_moments(
    x: np.ndarray, masses: np.ndarray, moments: np.ndarray, first: int, last: int
) -> None:
    """Fill moments (R, parts, K + 1) with sum_j m_j z_j^-k over the tokens of each part.

    Parts are numbered through all systems; the parts first, ..., last - 1 are filled.
    """
    parts = moments.shape[1]
    real, imaginary = np.empty(CIRCLE_BLOCK), np.empty(CIRCLE_BLOCK)
    re, im = np.empty(CIRCLE_BLOCK), np.empty(CIRCLE_BLOCK)
    for task in range(first, last):
        r, part = task // parts, task % parts
        total = moments[r, part]
        total[:] = 0
        for begin in range(part * PART_SIZE, min(x.shape[1], (part + 1) * PART_SIZE), CIRCLE_BLOCK):
            size = _directions(x[r], begin, real, imaginary)
            im[:size] = 0.0
            for i in range(size):
                re[i] = masses[r, begin + i]
            _add_moments(real[:size], imaginary[:size], re[:size], im[:size], total)


@njit(cache=True, nogil=True)
def _series_values(
    x: np.ndarray, series: np.ndarray, values: np.ndarray, first: int, last: int
) -> None:
    """Fill values (R, r, n) with Re sum_k series_rk z^k, for the parts first, ..., last - 1."""
    parts = parts_of(x)
    real, imaginary = np.empty(CIRCLE_BLOCK), np.empty(CIRCLE_BLOCK)
    im = np.empty(CIRCLE_BLOCK)
    for task in range(first, last):
        r, part = task // parts, task % parts
        for begin in range(part * PART_SIZE, min(x.shape[1], (part + 1) * PART_SIZE), CIRCLE_BLOCK):
            size = _directions(x[r], begin, real, imaginary)
            for c in range(series.shape[1]):
                block = values[r, c, begin : begin + size]
                _real_parts(real[:size], imaginary[:size], series[r, c], block, im[:size])


@njit(cache=True, nogil=True, error_model="numpy")
def _velocities(
    x: np.ndarray,
    slopes: np.ndarray,
    levels: np.ndarray,
    velocity: np.ndarray,
    level: np.ndarray,
    first: int,
    last: int,
) -> None:
    """Fill `velocity` (R, n, 2) and `level` (R, n), for the parts first, ..., last - 1.

    The level is Re sum_k levels_k z^k, or 1 if `levels` is empty. The velocity is
    Re sum_k slopes_k z^k, divided by the level, times the tangent i z. `slopes` and `levels` are
    (R, K + 1).
    """
    parts = parts_of(x)
    real, imaginary = np.empty(CIRCLE_BLOCK), np.empty(CIRCLE_BLOCK)
    im, speed = np.empty(CIRCLE_BLOCK), np.empty(CIRCLE_BLOCK)
    for task in range(first, last):
        r, part = task // parts, task % parts
        for begin in range(part * PART_SIZE, min(x.shape[1], (part + 1) * PART_SIZE), CIRCLE_BLOCK):
            size = _directions(x[r], begin, real, imaginary)
            _real_parts(real[:size], imaginary[:size], slopes[r], speed[:size], im[:size])
            if levels.size > 0:
                values = level[r, begin : begin + size]
                _real_parts(real[:size], imaginary[:size], levels[r], values, im[:size])
                for i in range(size):
                    speed[i] /= values[i]
            for i in range(size):
                velocity[r, begin + i, 0] = -speed[i] * imaginary[i]
                velocity[r, begin + i, 1] = speed[i] * real[i]


@njit(**INNER, error_model="numpy")
def _directions(x: np.ndarray, begin: int, real: np.ndarray, imaginary: np.ndarray) -> int:
    """Write the real and imaginary parts of z for the block of tokens from `begin` on.

    Returns the number of its tokens.
    """
    size = min(CIRCLE_BLOCK, len(x) - begin)
    for i in range(size):
        a, b = x[begin + i, 0], x[begin + i, 1]
        inverse = 1.0 / np.sqrt(a * a + b * b)
        real[i], imaginary[i] = a * inverse, b * inverse
    return size


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _add_moments(
    real: np.ndarray, imaginary: np.ndarray, re: np.ndarray, im: np.ndarray, total: np.ndarray
) -> None:
    for k in range(total.size):
        cosines, sines = 0.0, 0.0
        for i in range(real.size):
            cosines += re[i]
            sines += im[i]
            re[i], im[i] = (
                re[i] * real[i] - im[i] * imaginary[i],
                re[i] * imaginary[i] + im[i] * real[i],
            )
        total[k] += complex(cosines, -sines)


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _real_parts(
    real: np.ndarray, imaginary: np.ndarray, series: np.ndarray, re: np.ndarray, im: np.ndarray
) -> None:
    """re = Re sum_k series_k z^k, by Horner's rule."""
    last = series[-1]
    for i in range(real.size):
        re[i], im[i] = last.real, last.imag
    for k in range(series.size - 2, -1, -1):
        c = series[k]
        for i in range(real.size):
            re[i], im[i] = (
                c.real + re[i] * real[i] - im[i] * imaginary[i],
                c.imag + re[i] * imaginary[i] + im[i] * real[i],
            )
