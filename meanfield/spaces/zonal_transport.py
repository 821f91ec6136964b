"""Transport of axisymmetric densities on S^(d-1) without a grid, for Z = 1: compiled.

The coefficients of -div(mu v), in the weak form of `sphere_transport` with the order m = 0 only,
for any d, are

    int mu v sin(theta)^2 p_l' = (l + d - 2) e_l f_(l-1) - l e_(l+1) f_(l+1),

with x = cos(theta), v the slope by x of the potential, and f_l = int p_l v dmu.
"""

import numpy as np

from ..lowlevel.callbacks import CompiledFunction, float_array
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.legendre import recurrence, values_at_the_pole
from ..lowlevel.records import Layout, floats
from ..lowlevel.simd import LANES, aligned
from .transport import Transport


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
            measure_offset=self._measure_offset,
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
        **dict.fromkeys(("measure_offset", "band", "dimension"), int),
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
    moving = float_array(source + record.measure_offset, (modes,))
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
