"""Velocities of tokens on the circle and their tangents, by Fourier modes of the measure.

With z_j = e^(i theta_j) and changes of angles dtheta_j, the modes m_k = sum_j m_j z_j^-k change by

    dm_k = sum_j (dm_j - ik m_j dtheta_j) z_j^-k

Powers of z are computed once for all series that are summed at a token.
"""

from functools import partial

import numpy as np

from ..lowlevel.compilation import IN_ANY_ORDER, WITHIN, njit
from ..spaces.chart import velocity_series
from ..spaces.circle import derivatives
from .circle import CIRCLE_BLOCK, HIGHEST_POWER, CirclePointTransforms, _directions
from .harmonics import PART_SIZE, parts_of
from .mode_tangents import ModeTangents

POWERS_AT_ONCE = 4  # consecutive powers of z that one loop uses


class CircleTangents(ModeTangents):
    """Tangents on the circle, by powers of z up to degree 150, else by transforms of the engine."""

    def of_system(
        self, r: int, x: np.ndarray, masses: np.ndarray, dx: np.ndarray, dm: np.ndarray,
        known: np.ndarray | None, modes: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray, float]:  # fmt: skip
        attraction, normaliser, changes = self.multipliers(r)
        turn = 1j * np.arange(attraction.size)
        angles, weights = np.empty(dm.shape), np.empty((1 + len(dm), len(x)))
        _turn(x, dx, masses, angles, weights)
        moved_masses = [a for a, by in enumerate(dm) if by.any()]
        weights = np.concatenate([weights, dm[moved_masses]])
        if modes is None:
            modes, *turned = self._moments(x, weights)
        else:
            turned = list(self._moments(x, weights[1:]))
        moved = [-turn * by for by in turned[: len(dm)]]
        for a, by in zip(moved_masses, turned[len(dm) :], strict=True):
            moved[a] = moved[a] + by
        series = velocity_series((attraction, normaliser), changes, modes, moved)
        values = self._values(x, derivatives(*series))
        v, dv = np.empty(x.shape), np.empty(dx.shape)
        return v, dv, _quotients(x, angles, values, v, dv)

    def _moments(self, x: np.ndarray, weights: np.ndarray) -> list[np.ndarray] | np.ndarray:
        """Moments sum_j weights_cj z_j^-k, (c, degree + 1), of weights (c, n)."""
        transforms: CirclePointTransforms = self._engine.scattered
        degree = transforms.degree
        if degree > HIGHEST_POWER:
            coordinates = transforms.coordinates(x[None])
            return [transforms.moments(coordinates, by[None])[0] for by in weights]
        moments = np.zeros((parts_of(x[None]), len(weights), _padded(degree)), dtype=complex)
        transforms.threads.share(partial(_moments_together, x, weights, moments), len(moments))
        return moments.sum(axis=0)[:, : degree + 1]

    def _values(self, x: np.ndarray, series: np.ndarray) -> np.ndarray:
        """Values (rows, n) of real series sum_k c_k z^k, |k| <= degree, from c_0, c_1, ...

        `series` is (rows, degree + 1); c_-k = conj c_k.
        """
        transforms: CirclePointTransforms = self._engine.scattered
        degree = transforms.degree
        if degree > HIGHEST_POWER:
            return transforms.values(transforms.coordinates(x[None]), series[None])[0]
        twice = np.zeros((len(series), _padded(degree)), dtype=complex)
        twice[:, : degree + 1] = np.where(np.arange(degree + 1) == 0, 1, 2) * series
        values = np.zeros((len(series), len(x)))
        work = partial(_values_together, x, twice.real.copy(), twice.imag.copy(), values)
        transforms.threads.share(work, parts_of(x[None]))
        return values


def _padded(degree: int) -> int:
    """The number of terms of a series, rounded up to a multiple of POWERS_AT_ONCE."""
    return -(-(degree + 1) // POWERS_AT_ONCE) * POWERS_AT_ONCE


@njit(cache=True, nogil=True, error_model="numpy")
def _turn(
    x: np.ndarray, dx: np.ndarray, masses: np.ndarray, angles: np.ndarray, weights: np.ndarray
) -> None:
    """Fill `angles` (p, n) with changes of angles, and `weights` (1 + p, n).

    The weights are the masses, then the masses times the changes of angles along each tangent.
    """
    weights[0] = masses
    for a in range(len(dx)):
        for i in range(len(x)):
            square = x[i, 0] * x[i, 0] + x[i, 1] * x[i, 1]
            angles[a, i] = (x[i, 0] * dx[a, i, 1] - x[i, 1] * dx[a, i, 0]) / square
            weights[1 + a, i] = masses[i] * angles[a, i]


@njit(cache=True, nogil=True, error_model="numpy")
def _quotients(
    x: np.ndarray, angles: np.ndarray, values: np.ndarray, v: np.ndarray, dv: np.ndarray
) -> float:
    """Fill velocities v (n, 2) and changes dv (p, n, 2); return the least level, inf if Z = 1.

    `values` (rows, n) has the numerator of the speed, its derivative by the angle and p changes,
    then, unless Z = 1, the level, its derivative and p changes.
    """
    count, least = len(angles), np.inf
    leveled = len(values) > 2 + count
    for i in range(len(x)):
        inverse = 1.0 / np.sqrt(x[i, 0] * x[i, 0] + x[i, 1] * x[i, 1])
        cosine, sine = x[i, 0] * inverse, x[i, 1] * inverse
        speed, level, tilt = values[0, i], 1.0, 0.0
        if leveled:
            level, tilt = values[2 + count, i], values[3 + count, i]
            speed /= level
            least = min(least, level)
        v[i, 0], v[i, 1] = -speed * sine, speed * cosine
        for a in range(count):
            angle = angles[a, i]
            change = values[2 + a, i] + values[1, i] * angle
            if leveled:
                by_level = values[4 + count + a, i] + tilt * angle
                change = (change - speed * by_level) / level
            dv[a, i, 0] = -change * sine - speed * angle * cosine
            dv[a, i, 1] = change * cosine - speed * angle * sine
    return least


# Powers of z -----------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _moments_together(
    x: np.ndarray, weights: np.ndarray, moments: np.ndarray, first: int, last: int
) -> None:
    """Add sum_j weights_cj z_j^-k to moments (parts, c, terms), for parts first, ..., last - 1."""
    powers = np.empty((2 * POWERS_AT_ONCE + 2, CIRCLE_BLOCK))
    for part in range(first, last):
        for begin in range(part * PART_SIZE, min(len(x), (part + 1) * PART_SIZE), CIRCLE_BLOCK):
            size = _first_powers(x, begin, powers)
            for k in range(0, moments.shape[2], POWERS_AT_ONCE):
                for c in range(len(weights)):
                    _add_products(powers, weights[c, begin : begin + size], moments[part, c], k)
                _next_powers(powers, size)


@njit(cache=True, nogil=True)
def _values_together(
    x: np.ndarray,
    real: np.ndarray,
    imaginary: np.ndarray,
    values: np.ndarray,
    first: int,
    last: int,
) -> None:
    """Add Re sum_k (real + i imaginary)_k z^k to values (rows, n), for parts first, ..., last - 1.

    `real` and `imaginary` are (rows, terms).
    """
    powers = np.empty((2 * POWERS_AT_ONCE + 2, CIRCLE_BLOCK))
    for part in range(first, last):
        for begin in range(part * PART_SIZE, min(len(x), (part + 1) * PART_SIZE), CIRCLE_BLOCK):
            size = _first_powers(x, begin, powers)
            for k in range(0, real.shape[1], POWERS_AT_ONCE):
                for c in range(len(real)):
                    block = values[c, begin : begin + size]
                    _add_terms(powers, real[c], imaginary[c], k, block)
                _next_powers(powers, size)


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _first_powers(x: np.ndarray, begin: int, powers: np.ndarray) -> int:
    """Write 1, z, z^2, z^3 and z^4 of one block, as pairs of rows; return its number of tokens."""
    size = _directions(x, begin, powers[2], powers[3])
    powers[0, :size], powers[1, :size] = 1.0, 0.0
    cosine, sine = powers[2, :size], powers[3, :size]
    for j in range(2, POWERS_AT_ONCE + 1):
        a, b = powers[2 * j - 2, :size], powers[2 * j - 1, :size]
        re, im = powers[2 * j, :size], powers[2 * j + 1, :size]
        for i in range(size):
            re[i], im[i] = a[i] * cosine[i] - b[i] * sine[i], a[i] * sine[i] + b[i] * cosine[i]
    return size


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _next_powers(powers: np.ndarray, size: int) -> None:
    """Multiply the four powers by z^4, which stays in the last pair of rows."""
    turn, rise = powers[2 * POWERS_AT_ONCE, :size], powers[2 * POWERS_AT_ONCE + 1, :size]
    for j in range(POWERS_AT_ONCE):
        re, im = powers[2 * j, :size], powers[2 * j + 1, :size]
        for i in range(size):
            re[i], im[i] = re[i] * turn[i] - im[i] * rise[i], re[i] * rise[i] + im[i] * turn[i]


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _add_products(powers: np.ndarray, weights: np.ndarray, total: np.ndarray, k: int) -> None:
    a, b, c, d = powers[0], powers[2], powers[4], powers[6]
    e, f, g, h = powers[1], powers[3], powers[5], powers[7]
    re0, re1, re2, re3, im0, im1, im2, im3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(weights.size):
        weight = weights[i]
        re0 += weight * a[i]
        re1 += weight * b[i]
        re2 += weight * c[i]
        re3 += weight * d[i]
        im0 += weight * e[i]
        im1 += weight * f[i]
        im2 += weight * g[i]
        im3 += weight * h[i]
    total[k] += complex(re0, -im0)
    total[k + 1] += complex(re1, -im1)
    total[k + 2] += complex(re2, -im2)
    total[k + 3] += complex(re3, -im3)


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _add_terms(
    powers: np.ndarray, real: np.ndarray, imaginary: np.ndarray, k: int, values: np.ndarray
) -> None:
    a, b, c, d = powers[0], powers[2], powers[4], powers[6]
    e, f, g, h = powers[1], powers[3], powers[5], powers[7]
    a0, a1, a2, a3 = real[k], real[k + 1], real[k + 2], real[k + 3]
    b0, b1, b2, b3 = imaginary[k], imaginary[k + 1], imaginary[k + 2], imaginary[k + 3]
    for i in range(values.size):
        values[i] += (a0 * a[i] - b0 * e[i] + a1 * b[i] - b1 * f[i]) + (
            a2 * c[i] - b2 * g[i] + a3 * d[i] - b3 * h[i]
        )
