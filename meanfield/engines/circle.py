"""Tokens on the circle, by the Fourier modes of their measure.

With z_j = e^(i theta_j) and the multipliers W_k and Z_k,

    m_k = sum_j m_j z_j^-k
    v = Re sum_(k=1)^K 2ik W_k m_k z^k / Re (Z_0 + sum_(k=1)^K 2 Z_k m_k z^k)

Along changes dtheta_j of angles, the modes change by

    dm_k = sum_j (dm_j - ik m_j dtheta_j) z_j^-k

Up to degree 150 sums over powers of z = x + i y, without trigonometric functions, are fastest;
above, the transforms of ducc0 for scattered points. Powers of z are computed once for all series.
"""

from functools import partial

import numpy as np

from ..core.cached import cached_property
from ..lowlevel.compilation import IN_ANY_ORDER, INNER, WITHIN, njit
from ..spaces.chart import Multipliers, velocity_series
from ..spaces.circle import derivatives
from .contract import ThreadPool
from .harmonics import PART_SIZE, HarmonicEngine, PointTransforms, parts_of

HIGHEST_POWER = 150  # highest degree for which powers of z are faster than ducc0
TOKEN_COST, MODE_COST = 8e-3, 0.14e-3  # microseconds of powers of z: per token, per token and mode
CIRCLE_BLOCK = 256  # tokens of a block, whose powers stay in the cache
POWERS_AT_ONCE = 4  # consecutive powers of z that one loop uses


class CirclePointTransforms(PointTransforms):
    """Transforms of points on the circle: by powers of z up to degree 150, above by ducc0."""

    def __init__(self, degree: int, accuracy: float, threads: ThreadPool) -> None:
        """Transforms up to `degree`; options are those of finufft."""
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
        """Moments sum_j m_j e^(-ik theta_j), (R, K + 1), k = 0, ..., K."""
        if self.degree > HIGHEST_POWER:
            return self.moments_of_all(coordinates, masses[:, None])[:, 0]
        moments = np.empty((len(coordinates), parts_of(coordinates), self.degree + 1), complex)
        work = partial(_power_moments, coordinates, masses, moments)
        self.threads.share(work, moments.shape[0] * moments.shape[1])
        return moments.sum(axis=1)

    def moments_of_all(self, coordinates: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Moments sum_j weights_cj z_j^-k, (R, c, degree + 1), of weights (R, c, n)."""
        K, shape = self.degree, (len(coordinates), parts_of(coordinates), weights.shape[1])
        if K > HIGHEST_POWER:
            from ducc0.nufft import nu2u

            moments = np.empty((*shape, K + 1), dtype=complex)

            def work(r: int, part: int, tokens: slice) -> None:
                """Fill the moments of the tokens of a part of system r."""
                grid = np.empty(2 * K + 1, dtype=complex)
                system = {"coord": coordinates[r, tokens, None], "out": grid}
                for c, values in enumerate(weights[r, :, tokens].astype(complex)):
                    nu2u(points=values, forward=True, **system, **self.options)
                    moments[r, part, c] = grid[K:]

            self.each_part(coordinates, work)
            return moments.sum(axis=1)
        moments = np.zeros((*shape, _padded(K)), dtype=complex)
        fill = partial(_fill_moments, coordinates, weights, moments)
        self.threads.share(fill, shape[0] * shape[1])
        return moments.sum(axis=1)[..., : K + 1]

    def values(self, coordinates: np.ndarray, series: np.ndarray) -> np.ndarray:
        """Values (R, rows, n) of Fourier series (R, rows, K + 1) at the tokens."""
        values = np.empty((*series.shape[:2], coordinates.shape[1]))
        if self.degree > HIGHEST_POWER:
            self._scattered_values(coordinates, series, values)
        else:
            work = partial(_fill_values, coordinates, *self.terms(series), values)
            self.threads.share(work, len(coordinates) * parts_of(coordinates))
        return values

    def terms(self, series: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Parts a_k, b_k (R, r, terms) with values Re sum_k (a_k + i b_k) z^k, k >= 0."""
        count = self.degree + 1
        terms = np.zeros((2, *series.shape[:2], _padded(self.degree)))
        twice = np.where(np.arange(count) == 0, 1, 2) * series
        terms[0, ..., :count], terms[1, ..., :count] = twice.real, twice.imag
        return terms[0], terms[1]

    def _scattered_values(self, angles: np.ndarray, series: np.ndarray, values: np.ndarray) -> None:
        """Write values (R, count, n) at angles (R, n) of real series (R, count, K + 1)."""
        from ducc0.nufft import u2nu

        K, count = self.degree, series.shape[1]
        halves = np.where(np.arange(K + 1) == 0, 0.5, 1) * series  # Re f = (f + conj f) / 2

        def work(r: int, _part: int, tokens: slice) -> None:
            """Write values of all series of system r at `tokens`, two series per transform."""
            angle = angles[r, tokens, None]
            for first in range(0, count, 2):  # two real functions in one transform
                grid = np.zeros(2 * K + 1, dtype=complex)
                for factor, half in zip((1, 1j), halves[r, first : first + 2], strict=False):
                    grid[K:] += factor * half
                    grid[K::-1] += factor * half.conj()
                value_pair = u2nu(grid=grid, coord=angle, forward=False, **self.options)
                values[r, first, tokens] = value_pair.real
                if first + 1 < count:
                    values[r, first + 1, tokens] = value_pair.imag

        self.each_part(angles, work)


class CircleModes(HarmonicEngine):
    """Velocities on the circle in O(n K) operations, above degree K = 150 in O(n + K log K)."""

    name = "circle"
    dimension = 2
    transforms_of = CirclePointTransforms
    scattered: CirclePointTransforms
    transform = 50.0, 25e-3, 0.0

    @cached_property
    def _terms(self) -> tuple[np.ndarray, np.ndarray]:
        """Factors f_k in Re sum_{k >= 0} f_k modes_k z^k: of numerators, of denominators (K + 1,).

        The second array is empty where Z = 1.
        """
        k, Z = self.degrees, self.normaliser
        return 2j * k * self.attraction, np.zeros(0) if Z is None else np.where(k == 0, 1, 2) * Z

    def cost(self, n: int) -> float:
        if self.degree > HIGHEST_POWER:
            return super().cost(n)
        return n * (TOKEN_COST + self.transforms * MODE_COST * self.degree)

    @cached_property
    def degrees(self) -> np.ndarray:
        return np.arange(self.degree + 1)

    def fields(
        self, x: np.ndarray, coordinates: np.ndarray, modes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Velocities by powers of z; above HIGHEST_POWER by non-uniform transforms."""
        velocity, denominators = np.empty(x.shape), np.empty((int(self.normalised), *x.shape[:2]))
        if self.degree > HIGHEST_POWER:
            rows = [1j * self.degrees * self.attraction * modes]
            rows += [self.normaliser * modes] if self.normalised else []
            none, series = np.empty((0, *x.shape)), np.stack(rows, axis=1)
            self._divide(x, coordinates, none[..., 0], series, velocity, none, denominators)
            return velocity, denominators[0] if self.normalised else None
        numerator, divisor = self._terms
        stored = denominators[0] if self.normalised else np.empty((0, 0))
        series = divisor * modes if self.normalised else np.empty((0, 0), complex)
        work = partial(_velocities, x, numerator * modes, series, velocity, stored)
        self.threads.share(work, len(x) * parts_of(x))
        return velocity, denominators[0] if self.normalised else None

    def fields_along(
        self, x: np.ndarray, masses: np.ndarray, dx: np.ndarray, dm: np.ndarray,
        multipliers: Multipliers, changes: list[Multipliers],
        computed: np.ndarray | None, modes: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray, float]:  # fmt: skip
        """Quotients of Fourier series with moments of the tokens, and changes of these moments."""
        angles, weights = np.empty((len(dm), 1, len(x))), np.empty((1 + len(dm), len(x)))
        _turn(x, dx, masses, angles[:, 0], weights)
        moved_masses = [a for a, by in enumerate(dm) if by.any()]
        weights = np.concatenate([weights, dm[moved_masses]])[modes is not None :]
        system, coordinates = x[None], self.scattered.coordinates(x[None])
        turned = list(self.scattered.moments_of_all(coordinates, weights[None])[0])
        modes = turned.pop(0) if modes is None else modes
        moved = [-1j * np.arange(modes.size) * by for by in turned[: len(dm)]]
        for a, by in zip(moved_masses, turned[len(dm) :], strict=True):
            moved[a] = moved[a] + by
        series = derivatives(*velocity_series(multipliers, changes, modes, moved))[None]
        v, dv = np.empty(system.shape), np.empty((len(dx), *system.shape))
        denominators = np.empty((0 if multipliers[1] is None else 1, *dm.shape[1:]))[:, None]
        self._divide(system, coordinates, angles, series, v, dv, denominators)
        return v[0], dv[:, 0], float(denominators.min(initial=np.inf))

    def _divide(
        self, x: np.ndarray, coordinates: np.ndarray, angles: np.ndarray, series: np.ndarray,
        velocity: np.ndarray, changes: np.ndarray, denominators: np.ndarray,
    ) -> None:  # fmt: skip
        """Fill velocities (R, n, 2), their changes (p, R, n, 2), and denominators (1 or 0, R, n).

        `angles` (p, R, n) are changes of angles, `series` (R, rows, modes) as in `_quotients`.
        """
        results = angles, velocity, changes, denominators
        if self.degree > HIGHEST_POWER:
            values = self.scattered.values(coordinates, series)
            work = partial(_divide_values, x, values, *results)
        else:
            work = partial(_divide_series, x, *self.scattered.terms(series), *results)
        self.threads.share(work, len(x) * parts_of(x))

    def powers(self, modes: np.ndarray) -> np.ndarray:
        return np.where(self.degrees == 0, 1, 2) * np.abs(modes) ** 2


def _padded(degree: int) -> int:
    """The number of terms of a series, rounded up to a multiple of POWERS_AT_ONCE."""
    return -(-(degree + 1) // POWERS_AT_ONCE) * POWERS_AT_ONCE


@njit(cache=True, nogil=True)
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


# Loops over parts of tokens: those with the numbers first, ..., last - 1, through all systems -----


@njit(cache=True, nogil=True)
def _power_moments(
    x: np.ndarray, masses: np.ndarray, moments: np.ndarray, first: int, last: int
) -> None:
    """Fill moments (R, parts, K + 1) with sum_j m_j z_j^-k over the tokens of each part."""
    parts = moments.shape[1]
    z, re, im = np.empty((2, CIRCLE_BLOCK)), np.empty(CIRCLE_BLOCK), np.empty(CIRCLE_BLOCK)
    real, imaginary = z[0], z[1]
    for task in range(first, last):
        r, part = task // parts, task % parts
        total = moments[r, part]
        total[:] = 0
        for begin in range(part * PART_SIZE, min(x.shape[1], (part + 1) * PART_SIZE), CIRCLE_BLOCK):
            size = _directions(x[r], begin, z)
            im[:size] = 0.0
            for i in range(size):
                re[i] = masses[r, begin + i]
            _add_moments(real[:size], imaginary[:size], re[:size], im[:size], total)


@njit(cache=True, nogil=True)
def _velocities(
    x: np.ndarray, numerator: np.ndarray, divisor: np.ndarray, velocity: np.ndarray,
    denominators: np.ndarray, first: int, last: int,
) -> None:  # fmt: skip
    """Fill velocities (R, n, 2) and denominators (R, n) for tasks first, ..., last - 1.

        velocity = i z Re sum_k numerator_k z^k / Re sum_k divisor_k z^k

    with the series `numerator` and `divisor` (R, K + 1); without division if `divisor` is empty.
    """
    parts = parts_of(x)
    z, im, speed = np.empty((2, CIRCLE_BLOCK)), np.empty(CIRCLE_BLOCK), np.empty(CIRCLE_BLOCK)
    real, imaginary = z[0], z[1]
    for task in range(first, last):
        r, part = task // parts, task % parts
        for begin in range(part * PART_SIZE, min(x.shape[1], (part + 1) * PART_SIZE), CIRCLE_BLOCK):
            size = _directions(x[r], begin, z)
            _real_parts(real[:size], imaginary[:size], numerator[r], speed[:size], im[:size])
            if divisor.size > 0:
                values = denominators[r, begin : begin + size]
                _real_parts(real[:size], imaginary[:size], divisor[r], values, im[:size])
                for i in range(size):
                    speed[i] /= values[i]
            for i in range(size):
                velocity[r, begin + i, 0] = -speed[i] * imaginary[i]
                velocity[r, begin + i, 1] = speed[i] * real[i]


@njit(cache=True, nogil=True)
def _fill_moments(
    x: np.ndarray, weights: np.ndarray, moments: np.ndarray, first: int, last: int
) -> None:
    """Add sum_j weights_cj z_j^-k to moments (R, parts, c, terms)."""
    parts, powers = moments.shape[1], np.empty((2 * POWERS_AT_ONCE + 4, CIRCLE_BLOCK))
    for task in range(first, last):
        r, part = task // parts, task % parts
        for begin in range(part * PART_SIZE, min(x.shape[1], (part + 1) * PART_SIZE), CIRCLE_BLOCK):
            size = _first_powers(x[r], begin, powers)
            for k in range(0, moments.shape[3], POWERS_AT_ONCE):
                for c in range(weights.shape[1]):
                    block = weights[r, c, begin : begin + size]
                    _add_products(powers, block, moments[r, part, c], k)
                _next_powers(powers, size)


@njit(cache=True, nogil=True)
def _fill_values(
    x: np.ndarray,
    real: np.ndarray,
    imaginary: np.ndarray,
    values: np.ndarray,
    first: int,
    last: int,
) -> None:
    """Fill values (R, rows, n) with Re sum_k (real + i imaginary)_k z^k."""
    parts, powers = parts_of(x), np.empty((2 * POWERS_AT_ONCE + 4, CIRCLE_BLOCK))
    for task in range(first, last):
        r, part = task // parts, task % parts
        for begin in range(part * PART_SIZE, min(x.shape[1], (part + 1) * PART_SIZE), CIRCLE_BLOCK):
            size = _first_powers(x[r], begin, powers)
            _evaluate(powers, real[r], imaginary[r], values[r, :, begin : begin + size])


@njit(cache=True, nogil=True)
def _divide_series(
    x: np.ndarray, real: np.ndarray, imaginary: np.ndarray, angles: np.ndarray,
    velocity: np.ndarray, changes: np.ndarray, denominators: np.ndarray, first: int, last: int,
) -> None:  # fmt: skip
    """Fill velocities, changes and denominators from the terms of series, see `_quotients`."""
    parts, powers = parts_of(x), np.empty((2 * POWERS_AT_ONCE + 4, CIRCLE_BLOCK))
    values = np.empty((real.shape[1], CIRCLE_BLOCK))
    for task in range(first, last):
        r, part = task // parts, task % parts
        for begin in range(part * PART_SIZE, min(x.shape[1], (part + 1) * PART_SIZE), CIRCLE_BLOCK):
            size = _first_powers(x[r], begin, powers)
            _evaluate(powers, real[r], imaginary[r], values[:, :size])
            block, z = values[:, :size], powers[-2:]
            _quotients(r, begin, block, z, angles, velocity, changes, denominators)


@njit(cache=True, nogil=True)
def _divide_values(
    x: np.ndarray, values: np.ndarray, angles: np.ndarray,
    velocity: np.ndarray, changes: np.ndarray, denominators: np.ndarray, first: int, last: int,
) -> None:  # fmt: skip
    """Fill velocities, changes and denominators from values (R, rows, n), see `_quotients`."""
    parts, powers = parts_of(x), np.empty((2, CIRCLE_BLOCK))
    for task in range(first, last):
        r, part = task // parts, task % parts
        for begin in range(part * PART_SIZE, min(x.shape[1], (part + 1) * PART_SIZE), CIRCLE_BLOCK):
            size = _directions(x[r], begin, powers)
            block = values[r, :, begin : begin + size]
            _quotients(r, begin, block, powers, angles, velocity, changes, denominators)


@njit(**INNER)
def _quotients(
    r: int, begin: int, values: np.ndarray, z: np.ndarray, angles: np.ndarray,
    velocity: np.ndarray, changes: np.ndarray, denominators: np.ndarray,
) -> None:  # fmt: skip
    """Fill velocities, changes and denominators of a block of tokens of system r, from `begin` on.

    `values` (rows, size) are the numerator of the speed and, with tangents, its derivative by the
    angle and its p changes; then the rows of the denominator in this order, unless Z = 1. z has
    real and imaginary parts. `values` is overwritten.
    """
    cosines, sines, speed = z[0], z[1], values[0]
    divided, half = len(denominators) > 0, len(values) // 2
    if divided:
        denominator = values[half]
        for i in range(speed.size):
            speed[i] /= denominator[i]
            denominators[0, r, begin + i] = denominator[i]
    for i in range(speed.size):
        velocity[r, begin + i, 0] = -speed[i] * sines[i]
        velocity[r, begin + i, 1] = speed[i] * cosines[i]
    for a in range(len(angles)):
        change = values[2 + a]
        for i in range(speed.size):
            angle = angles[a, r, begin + i]
            by = change[i] + values[1, i] * angle
            if divided:
                change_of_denominator = values[half + 2 + a, i] + values[half + 1, i] * angle
                by = (by - speed[i] * change_of_denominator) / values[half, i]
            changes[a, r, begin + i, 0] = -by * sines[i] - speed[i] * angle * cosines[i]
            changes[a, r, begin + i, 1] = by * cosines[i] - speed[i] * angle * sines[i]


# Powers of z -----------------------------------------------------------------------------------


@njit(**INNER)
def _directions(x: np.ndarray, begin: int, z: np.ndarray) -> int:
    """Write real and imaginary parts of z for a block of tokens; return the number of its tokens.

    The block begins at the token `begin`.
    """
    size = min(CIRCLE_BLOCK, len(x) - begin)
    for i in range(size):
        a, b = x[begin + i, 0], x[begin + i, 1]
        inverse = 1.0 / np.sqrt(a * a + b * b)
        z[0, i], z[1, i] = a * inverse, b * inverse
    return size


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _first_powers(x: np.ndarray, begin: int, powers: np.ndarray) -> int:
    """Write 1, z, z^2, z^3, z^4 and z of one block, as pairs of rows; return its token count."""
    size = _directions(x, begin, powers[-2:])
    powers[0, :size], powers[1, :size] = 1.0, 0.0
    cosine, sine = powers[-2, :size], powers[-1, :size]
    for j in range(1, POWERS_AT_ONCE + 1):
        a, b = powers[2 * j - 2, :size], powers[2 * j - 1, :size]
        re, im = powers[2 * j, :size], powers[2 * j + 1, :size]
        for i in range(size):
            re[i], im[i] = a[i] * cosine[i] - b[i] * sine[i], a[i] * sine[i] + b[i] * cosine[i]
    return size


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _evaluate(
    powers: np.ndarray, real: np.ndarray, imaginary: np.ndarray, values: np.ndarray
) -> None:
    """Fill values (rows, size) from the terms of series (rows, terms) and the first powers."""
    values[:] = 0.0
    for k in range(0, real.shape[1], POWERS_AT_ONCE):
        for c in range(len(real)):
            _add_terms(powers, real[c], imaginary[c], k, values[c])
        _next_powers(powers, values.shape[1])


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _next_powers(powers: np.ndarray, size: int) -> None:
    """Multiply the four powers by z^4, which stays in the fifth pair of rows."""
    turn, rise = powers[2 * POWERS_AT_ONCE, :size], powers[2 * POWERS_AT_ONCE + 1, :size]
    for j in range(POWERS_AT_ONCE):
        re, im = powers[2 * j, :size], powers[2 * j + 1, :size]
        for i in range(size):
            re[i], im[i] = re[i] * turn[i] - im[i] * rise[i], re[i] * rise[i] + im[i] * turn[i]


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _add_products(powers: np.ndarray, weights: np.ndarray, total: np.ndarray, k: int) -> None:
    """Add sums of weights times conjugates of four powers, Re and Im in turn, to total."""
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
    """Add Re(c z) of the coefficients k, ..., k + 3, and as many powers z, to values (n,)."""
    a, b, c, d = powers[0], powers[2], powers[4], powers[6]
    e, f, g, h = powers[1], powers[3], powers[5], powers[7]
    a0, a1, a2, a3 = real[k], real[k + 1], real[k + 2], real[k + 3]
    b0, b1, b2, b3 = imaginary[k], imaginary[k + 1], imaginary[k + 2], imaginary[k + 3]
    for i in range(values.size):
        values[i] += (a0 * a[i] - b0 * e[i] + a1 * b[i] - b1 * f[i]) + (
            a2 * c[i] - b2 * g[i] + a3 * d[i] - b3 * h[i]
        )


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _add_moments(
    real: np.ndarray, imaginary: np.ndarray, re: np.ndarray, im: np.ndarray, total: np.ndarray
) -> None:
    """Add sums of conj(w z^k), w = re + i im, z = real + i imaginary; w (n,) is overwritten."""
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
