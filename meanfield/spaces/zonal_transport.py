"""Transport of axisymmetric densities on S^(d-1): -div(mu v) in Gegenbauer series, compiled.

Its coefficients, in the weak form of `sphere_transport` with the order m = 0 only, for any d, are

    int mu v sin(theta)^2 p_l' = (l + d - 2) e_l f_(l-1) - l e_(l+1) f_(l+1),

with x = cos(theta), v the slope by x of the potential, and f_l = int p_l v dmu.
"""

from typing import Any

import numpy as np

from ..lowlevel.callbacks import CompiledFunction, float_array
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.legendre import analyse, fold, recurrence, synthesise, unfold, values_at_the_pole
from ..lowlevel.records import Field, InCode, Layout, floats
from ..lowlevel.simd import LANES, aligned
from .latitudes import LATITUDE_FIELDS, Latitudes
from .transport import NO_MASS, Transport


class PolynomialTransport(Transport):
    """mu -> -div(mu grad (W * mu)) without a grid.

    v is a polynomial of x, and multiplication by x is a symmetric tridiagonal matrix X in the
    coefficients:

        v = sum_k b_k P_k(x),    f = sum_k b_k P_k(X) c,

    with Legendre's polynomials of R^(d+2), by Clenshaw's recurrence. The rounding error of a
    coefficient is relative to the coefficients whose degrees differ by at most the band of v. On a
    grid it would be relative to the largest coefficient, which for a cluster in d = 50 is 1e11
    times the tail.
    """

    def _prepare(self) -> None:
        attraction, dimension, band = self.tables[0], self.space.dimension, self.band
        modes = attraction.shape[1]
        l, sizes = np.arange(modes), values_at_the_pole(modes - 1, dimension)
        rates = attraction * sizes * (l * (l + dimension - 2.0) / (dimension - 1))
        size = modes + band // 2 + 2  # coefficients beyond do not affect the modes kept
        count = LANES * (band // 2 + 2)
        record = POLYNOMIAL.filled(
            apart=self._apart,
            band=band,
            dimension=dimension,
            rates=rates,
            e=recurrence(size + 1, 0, dimension),
            x=np.cos(np.pi * (np.arange(count) + 0.5) / count),
            sums=aligned(2, size),
            slopes=aligned(2, count),
            padded=aligned(size),
            speed=self.speed,
        )
        self._enter(_polynomial, record)


POLYNOMIAL = Layout(
    "PolynomialTransport",
    {
        **dict.fromkeys(("apart", "band", "dimension"), int),
        "rates": floats("tables", "modes"),
        "e": floats("e_size"),  # see `legendre.recurrence`
        "x": floats("count"),
        **{"sums": floats(2, "size"), "slopes": floats(2, "count"), "padded": floats("size")},
        "speed": floats(1),
    },
)
_polynomial_at = POLYNOMIAL.at


@CompiledFunction
def _polynomial(context: int, member: int, source: int, target: int) -> None:
    """Write -div(mu v) of a zonal member: mu W' * nu in coefficients, by Clenshaw's recurrence."""
    record = _polynomial_at(context)
    modes, band, d = record.modes, record.band, record.dimension
    size, count = record.size, record.count
    density, result = float_array(source, (modes,)), float_array(target, (modes,))
    moving = float_array(source + record.apart, (modes,))
    rates = record.rates[member if record.tables > 1 else 0]
    e, x, sums, slopes, padded = record.e, record.x, record.sums, record.slopes, record.padded
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
    record.speed[0] = max(record.speed[0], np.sqrt(largest))
    result[0] = 0.0
    for l in range(1, modes):
        result[l] = (l + d - 2) * e[l] * f[l - 1] - l * e[l + 1] * f[l + 1]


@njit(**INNER)
def _next_sums(
    before: np.ndarray, last: np.ndarray, c: np.ndarray, e: np.ndarray, b: float, up: float,
    down: float,
) -> None:  # fmt: skip
    """Step of Clenshaw's recurrence: b c + up X last - down before, written into `before`."""
    top = c.size - 1
    before[0] = b * c[0] + up * e[1] * last[1] - down * before[0]
    for l in range(1, top):
        across = e[l + 1] * last[l + 1] + e[l] * last[l - 1]
        before[l] = b * c[l] + up * across - down * before[l]
    before[top] = b * c[top] + up * e[top] * last[top - 1] - down * before[top]


@njit(**INNER)
def _next_values(
    before: np.ndarray, last: np.ndarray, x: np.ndarray, b: float, up: float, down: float
) -> None:
    """Step of Clenshaw's recurrence: b + up x last - down before, written into `before`."""
    for j in range(x.size):
        before[j] = b + up * x[j] * last[j] - down * before[j]


class QuotientTransport(Transport):
    """Transport mu -> -div(mu grad (W * mu) / (Z * mu)) on a grid.

    Attributes
    ----------
    latitudes : Latitudes
        Latitudes of the grid.
    """

    def _prepare(self) -> None:
        dimension, modes = self.space.dimension, self.degree + 1
        self.latitudes = latitudes = Latitudes(-(-self.points // 4), modes, 0, dimension)
        values = axis_values(latitudes, self.degree)
        record = QUOTIENT.filled(
            **values,
            apart=self._apart,
            band=self.band,
            attraction=self.tables[0],
            normaliser=self.tables[1],
            weights=latitudes.weights / latitudes.sines_squared,
            sines_squared=latitudes.sines_squared,
            sums=aligned(3, 4, values["rules"].width),
            speed=self.speed,
        )
        self._enter(_quotient, record)


AXIS: dict[str, Field] = {
    **LATITUDE_FIELDS,
    "dimension": int,
    "e": floats("e_size"),  # see `legendre.recurrence`
    "ones": floats("modes"),
}


def axis_values(latitudes: Latitudes, degree: int) -> dict[str, Any]:
    """Values of the fields AXIS, common to all records of sums along the axis, up to a degree."""
    d = latitudes.dimension
    e, ones = recurrence(degree + 2, 0, d), np.ones(degree + 1)
    return {**latitudes.values(), "dimension": d, "e": e, "ones": ones}


QUOTIENT = Layout(
    "QuotientTransport",
    {
        **AXIS,
        **dict.fromkeys(("apart", "band"), int),
        **dict.fromkeys(("attraction", "normaliser"), floats("tables", "modes")),
        **dict.fromkeys(("weights", "sines_squared"), floats("half")),  # weights over sin^2
        "sums": floats(3, 4, "width"),
        "speed": floats(1),
    },
)
_quotient_at = QUOTIENT.at


@CompiledFunction
def _quotient(context: int, member: int, source: int, target: int) -> None:
    """Write -div(mu v) of a zonal member, with v = grad W * nu / (Z * nu) at latitudes."""
    record = _quotient_at(context)
    modes, sums = record.modes, record.sums
    density, moving = float_array(source, (modes,)), float_array(source + record.apart, (modes,))
    table = member if record.tables > 1 else 0
    sum_series(density, record.ones, record, sums[0])
    sum_slope(moving, record.attraction[table], record.band, record, sums[1])
    sum_series(moving, record.normaliser[table], record, sums[2])
    speed = _multiply(record, sums)
    record.speed[0] = max(record.speed[0], speed)
    analyse(0, record.rules, record.products, record.unfolded, record.pairs)
    unfold(0, record.rules, record.unfolded, record.pairs, record.series[0])
    weak_divergence(record, float_array(target, (modes,)))


@njit(**INNER)
def sum_series(
    density: np.ndarray, multipliers: np.ndarray, record: InCode, sums: np.ndarray
) -> None:
    """Fill `sums` with the even and odd parts of the values of multipliers times a density.

    The record has the fields AXIS.
    """
    series, folded, rules = record.series[0], record.folded, record.rules
    for i in range(series.size):
        series[i] = 0.0
    for l in range(density.size):
        series[2 * l] = multipliers[l] * density[l]
    synthesise(0, rules, folded, fold(0, rules, series, density.size, folded), sums)


@njit(**INNER)
def sum_slope(
    density: np.ndarray, attraction: np.ndarray, band: int, record: InCode, sums: np.ndarray
) -> None:
    """Fill `sums`, as `sum_series`, with G = sin(theta) d_theta g for the potential g = W * mu."""
    series, folded, rules = record.series[0], record.folded, record.rules
    e, d = record.e, record.dimension
    for i in range(series.size):
        series[i] = 0.0
    for l in range(band + 1):
        g = attraction[l] * density[l]
        series[2 * l + 2] += l * e[l + 1] * g
        if l > 0:
            series[2 * l - 2] -= (l + d - 2) * e[l] * g
    synthesise(0, rules, folded, fold(0, rules, series, band + 2, folded), sums)


@njit(**INNER)
def weak_divergence(record: InCode, result: np.ndarray) -> None:
    """Fill `result` with the coefficients of -div of a field along the meridians, from `series`."""
    e, d, series = record.e, record.dimension, record.series[0]
    result[0] = 0.0
    for l in range(1, result.size):
        up, down = l * e[l + 1], (l + d - 2) * e[l]
        result[l] = up * series[2 * l + 2] - down * series[2 * l - 2]


@njit(**INNER, error_model="numpy")
def _multiply(record: InCode, sums: np.ndarray) -> float:
    """Fill the products mu G at the latitudes x and -x, with weights; return the largest |v|."""
    x, weights, sines, products = record.x, record.weights, record.sines_squared, record.products
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
