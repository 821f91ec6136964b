"""Transport of axisymmetric densities on S^(d-1): -div(mu v) in Gegenbauer series, compiled.

Its coefficients, in the weak form of `sphere_transport` with the order m = 0 only, for any d, are

    int mu v sin(theta)^2 p_l' = (l + d - 2) e_l f_(l-1) - l e_(l+1) f_(l+1),

with x = cos(theta), v the slope by x of the potential, and f_l = int p_l v dmu.
"""

from typing import Any

import numpy as np

from ..lowlevel.callbacks import CompiledFunction, float_array, integer_array
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.legendre import (
    analyse,
    fold,
    recurrence,
    rules_at,
    synthesise,
    unfold,
    values_at_the_pole,
)
from ..lowlevel.records import Layout
from ..lowlevel.simd import LANES, aligned
from .circle_transport import NO_MASS
from .contract import Transport, bands_of
from .latitudes import Latitudes


def zonal_bands(attraction: np.ndarray, dimension: int) -> np.ndarray:
    """The highest degree that counts in the velocity of each potential (n, degree + 1).

    W' = sum_l W_l dim H_l P_l' is larger at a cluster than W_l by far, in many dimensions.
    """
    degree = attraction.shape[1] - 1
    l = np.arange(degree + 1)
    with np.errstate(divide="ignore"):
        logs = np.log(np.abs(attraction)) + np.log(l * (l + dimension - 2.0))
    logs += 2 * np.log(values_at_the_pole(degree, dimension))
    largest = logs.max(axis=1, keepdims=True)
    return bands_of(np.exp(logs - np.where(np.isfinite(largest), largest, 0.0)))


def zonal_transport(
    attraction: Any, normaliser: Any, members: int, dimension: int, pairs: bool = False
) -> Transport:
    """mu -> -div(mu v[mu]) with v = grad (W * mu) / (Z * mu); see `Space.transport`."""
    if normaliser is None:
        return PolynomialTransport(attraction, members, dimension, pairs)
    return QuotientTransport(attraction, normaliser, members, dimension, pairs)


class PolynomialTransport(Transport):
    """mu -> -div(mu grad (W * mu)) without a grid.

    v is a polynomial of x, and multiplication by x is a symmetric tridiagonal matrix X in the
    coefficients:

        v = sum_k b_k P_k(x),    f = sum_k b_k P_k(X) c,

    with Legendre's polynomials of R^(d+2), by Clenshaw's recurrence. Rounding errors of a
    coefficient are relative to those within the band of v about it. On a grid they would be
    relative to the largest of all, which of a cluster in d = 50 is 1e11 times the tail.
    """

    dtype = float

    def __init__(self, attraction: Any, members: int, dimension: int, pairs: bool = False):
        modes, band = attraction.shape[1], _band(attraction, dimension)
        super().__init__(attraction, None, members, modes, pairs, band)
        l, sizes = np.arange(modes), values_at_the_pole(modes - 1, dimension)
        rates = attraction * sizes * (l * (l + dimension - 2.0) / (dimension - 1))
        size = modes + band // 2 + 2  # what lies beyond does not come back to the modes kept
        x = np.cos(np.pi * (np.arange(LANES * (band // 2 + 2)) + 0.5) / (LANES * (band // 2 + 2)))
        buffers = [
            *(rates, recurrence(size + 1, 0, dimension), x),
            *(aligned(2, size), aligned(2, x.size), aligned(size), self.speed),
        ]
        numbers = (modes, band, len(attraction), dimension, size, x.size)
        self._enter(_polynomial, (self._apart, *numbers), buffers)


def _band(attraction: np.ndarray, dimension: int) -> int:
    """The highest degree of the velocities that counts for any member."""
    return int(zonal_bands(np.abs(attraction).max(axis=0, keepdims=True), dimension)[0])


@CompiledFunction
def _polynomial(context, member, source, target):
    c, apart = integer_array(context + 8, (13,)), integer_array(context, (1,))[0]
    modes, band, tables, d, size, count = c[0], c[1], c[2], c[3], c[4], c[5]
    density, result = float_array(source, (modes,)), float_array(target, (modes,))
    moving = float_array(source + apart, (modes,))
    rates = float_array(c[6], (tables, modes))[member if tables > 1 else 0]
    e, x = float_array(c[7], (size + 2,)), float_array(c[8], (count,))
    sums, slopes = float_array(c[9], (2, size)), float_array(c[10], (2, count))
    padded, highest = float_array(c[11], (size,)), float_array(c[12], (1,))
    for l in range(size):
        padded[l] = density[l] if l < modes else 0.0
        sums[0, l] = sums[1, l] = 0.0
    for j in range(count):
        slopes[0, j] = slopes[1, j] = 0.0
    for k in range(band - 1, -1, -1):
        b, up, down = rates[k + 1] * moving[k + 1], (2 * k + d) / (k + d), (k + 1) / (k + d + 1)
        new, old = (band - 1 - k) % 2, (band - k) % 2
        _next_sums(sums[new], sums[old], padded, e, b, up, down)
        _next_values(slopes[new], slopes[old], x, b, up, down)
    last = (band - 1) % 2
    f, slope, largest = sums[last], slopes[last], 0.0
    for j in range(count):
        largest = max(largest, slope[j] * slope[j] * (1 - x[j]) * (1 + x[j]))
    highest[0] = max(highest[0], np.sqrt(largest))
    result[0] = 0.0
    for l in range(1, modes):
        result[l] = (l + d - 2) * e[l] * f[l - 1] - l * e[l + 1] * f[l + 1]


@njit(**INNER)
def _next_sums(before, last, c, e, b, up, down):
    """b c + up X last - down before, written over `before`."""
    top = c.size - 1
    before[0] = b * c[0] + up * e[1] * last[1] - down * before[0]
    for l in range(1, top):
        across = e[l + 1] * last[l + 1] + e[l] * last[l - 1]
        before[l] = b * c[l] + up * across - down * before[l]
    before[top] = b * c[top] + up * e[top] * last[top - 1] - down * before[top]


@njit(**INNER)
def _next_values(before, last, x, b, up, down):
    """b + up x last - down before, written over `before`."""
    for j in range(x.size):
        before[j] = b + up * x[j] * last[j] - down * before[j]


class QuotientTransport(Transport):
    """mu -> -div(mu grad (W * mu) / (Z * mu)) on a grid.

    Attributes
    ----------
    latitudes : Latitudes
    """

    dtype = float

    def __init__(
        self, attraction: Any, normaliser: Any, members: int, dimension: int, pairs: bool = False
    ):
        modes = attraction.shape[1]
        super().__init__(
            attraction, normaliser, members, modes, pairs, _band(attraction, dimension)
        )
        self.latitudes = rules = Latitudes(-(-self.points // 4), modes, 0, dimension)
        steps, records, half = rules.pairs(0), rules.rules(), rules.x.size
        record = QUOTIENT.filled(
            apart=self._apart,
            degree=self.degree,
            band=self.band,
            half=half,
            width=records.width,
            tables=len(attraction),
            dimension=dimension,
            pairs=steps,
            attraction=self.tables[0],
            normaliser=self.tables[1],
            ones=np.ones(modes),
            e=recurrence(modes + 1, 0, dimension),
            x=rules.x,
            weights=rules.weights / rules.sines_squared,
            sines_squared=rules.sines_squared,
            rules=records,
            sums=aligned(3, 4, records.width),
            products=aligned(8, records.width),
            folded=aligned(8, steps),
            series=aligned(4 * steps),
            speed=self.speed,
        )
        self._enter_record(_quotient, record)


QUOTIENT = Layout(
    "QuotientTransport",
    dict.fromkeys(
        (
            *("apart", "degree", "band", "half", "width", "tables", "dimension", "pairs"),
            *("attraction", "normaliser", "ones"),  # (tables, degree + 1), the last (degree + 1,)
            "e",  # (degree + 3,), see `legendre.recurrence`
            *("x", "weights", "sines_squared"),  # (half,), the weights divided by sin^2
            "rules",  # a record of RULES
            "sums",  # (3, 4, width)
            *("products", "folded", "series"),  # (8, width), (8, pairs), (4 pairs,)
            "speed",
        ),
        int,
    ),
)
_quotient_at = QUOTIENT.at


@CompiledFunction
def _quotient(context, member, source, target):
    own = _quotient_at(context)
    degree, band, half, tables = own.degree, own.band, own.half, own.tables
    d, pairs, width, modes = own.dimension, own.pairs, own.width, degree + 1
    density, result = float_array(source, (modes,)), float_array(target, (modes,))
    moving = float_array(source + own.apart, (modes,))
    table = member if tables > 1 else 0
    attraction = float_array(own.attraction, (tables, modes))[table]
    e, x = float_array(own.e, (degree + 3,)), float_array(own.x, (half,))
    weights, sines = float_array(own.weights, (half,)), float_array(own.sines_squared, (half,))
    rules, ones = rules_at(own.rules), float_array(own.ones, (modes,))
    sums, products = float_array(own.sums, (3, 4, width)), float_array(own.products, (8, width))
    folded, series = float_array(own.folded, (4, pairs)), float_array(own.series, (4 * pairs,))

    _sum(density, ones, rules, series, folded, sums[0])
    _sum_slope(moving, attraction, band, e, d, rules, series, folded, sums[1])
    normaliser = float_array(own.normaliser, (tables, modes))[table]
    _sum(moving, normaliser, rules, series, folded, sums[2])
    speed = _multiply(sums, x, weights, sines, products)
    highest = float_array(own.speed, (1,))
    highest[0] = max(highest[0], speed)
    found = float_array(own.folded, (pairs, 8))
    analyse(0, rules, products, found, pairs)
    unfold(0, rules, found, pairs, series)
    result[0] = 0.0
    for l in range(1, modes):
        up, down = l * e[l + 1], (l + d - 2) * e[l]
        result[l] = up * series[2 * l + 2] - down * series[2 * l - 2]


@njit(**INNER)
def _sum(density, multipliers, rules, series, folded, sums):
    for i in range(series.size):
        series[i] = 0.0
    for l in range(density.size):
        series[2 * l] = multipliers[l] * density[l]
    synthesise(0, rules, folded, fold(0, rules, series, density.size, folded), sums)


@njit(**INNER)
def _sum_slope(density, attraction, band, e, dimension, rules, series, folded, sums):
    """G = sin(theta) d_theta g for the potential g = W * mu."""
    for i in range(series.size):
        series[i] = 0.0
    for l in range(band + 1):
        g = attraction[l] * density[l]
        series[2 * l + 2] += l * e[l + 1] * g
        if l > 0:
            series[2 * l - 2] -= (l + dimension - 2) * e[l] * g
    synthesise(0, rules, folded, fold(0, rules, series, band + 2, folded), sums)


@njit(**INNER, error_model="numpy")
def _multiply(sums, x, weights, sines, products):
    """mu G at the latitudes x and -x, with quadrature weights; returns the largest |v|."""
    largest = 0.0
    for j in range(sines.size):
        total = difference = 0.0
        for side in range(2):
            z = x[j] if side == 0 else -x[j]
            slope = sums[1, 0, j] + z * sums[1, 2, j]
            slope /= max(sums[2, 0, j] + z * sums[2, 2, j], NO_MASS)
            largest = max(largest, slope * slope / sines[j])
            flux = (sums[0, 0, j] + z * sums[0, 2, j]) * slope * weights[j]
            total += flux
            difference += z * flux
        products[0, j], products[4, j] = total, difference
    return min(np.sqrt(largest), 1.0)
