"""Transport of axisymmetric densities on S^(d-1): -div(mu v) in Gegenbauer series, compiled.

The weak form of `sphere_transport` with the order m = 0 only, for any d:

    -int p_l div(mu grad g) = int mu G (sin(theta) d_theta p_l) / sin(theta)^2,
    G = sin(theta) d_theta g.
"""

import numpy as np
from numba import cfunc, njit, types

from ..legendre import analyse, recurrence, synthesise
from ..native import float_array, integer_array
from .circle_transport import NO_MASS
from .latitudes import Latitudes
from .sphere_transport import band_of

__all__ = ["ZonalTransport"]


class ZonalTransport:
    """mu -> -div(mu v[mu]) with v = grad (W * mu) / (Z * mu); see `Geometry.transport`.

    Attributes
    ----------
    latitudes : Latitudes
    speed : ndarray, (1,)
        Largest |v| met since it was last set to 0.
    """

    def __init__(
        self,
        attraction: np.ndarray,
        normaliser: np.ndarray | None,
        members: int,
        dimension: int,
    ):
        degree = attraction.shape[1] - 1
        band = band_of(attraction)
        points = 2 * degree + (band if normaliser is None else degree) + 1
        self.latitudes = rules = Latitudes(-(-points // 4), degree + 1, 0, dimension)
        half, fields = rules.x.size, 2 if normaliser is None else 3
        self.speed = np.zeros(1)
        self.error: BaseException | None = None
        series = np.zeros((4, rules.padded(0)))
        self._buffers = [
            np.array(attraction, dtype=float),
            np.zeros((1, 1)) if normaliser is None else np.array(normaliser, dtype=float),
            recurrence(degree + 2, 0, dimension),
            *(rules.x, rules.weights / rules.sines_squared, rules.sines_squared),
            *(rules.start, rules.a, rules.b),
            np.zeros((fields, 4, half)),
            np.zeros((8, half)),
            *(series, np.zeros((2, half)), self.speed),
        ]
        fixed = (degree, band, half, len(attraction), fields, dimension)
        addresses = (array.ctypes.data for array in self._buffers)
        self._context = np.array([*fixed, rules.a.size, series.shape[1], *addresses], np.int64)
        self.address, self.context = _transport.address, self._context.ctypes.data
        self._shape = (members, degree + 1)

    def __call__(self, coefficients: np.ndarray) -> np.ndarray:
        """Coefficients of -div(mu v), (members, degree + 1), for densities of that shape."""
        source = np.ascontiguousarray(coefficients, dtype=float).reshape(self._shape)
        target = np.empty_like(source)
        for member in range(len(source)):
            addresses = source[member].ctypes.data, target[member].ctypes.data
            _transport_member(self.context, member, *addresses)
        return target


@njit(cache=True, error_model="numpy")
def _transport_member(context, member, source, target):
    c = integer_array(context, (22,))
    degree, band, half, tables, fields, d = c[0], c[1], c[2], c[3], c[4], c[5]
    modes, size = degree + 1, c[6]
    density, result = float_array(source, (modes,)), float_array(target, (modes,))
    table = member if tables > 1 else 0
    attraction = float_array(c[8], (tables, modes))[table]
    e, x = float_array(c[10], (degree + 3,)), float_array(c[11], (half,))
    weights, sines = float_array(c[12], (half,)), float_array(c[13], (half,))
    start, a, b = (
        float_array(c[14], (half,)),
        float_array(c[15], (size,)),
        float_array(c[16], (size,)),
    )
    sums = float_array(c[17], (fields, 4, half))
    products = float_array(c[18], (8, half))
    series, work = float_array(c[19], (4, c[7])), float_array(c[20], (2, half))

    rules = (x, start, a, b, work)
    _sum(density, np.ones(modes), rules, series, sums[0])
    _sum_slope(density, attraction, band, e, d, rules, series, sums[1])
    if fields == 3:
        _sum(density, float_array(c[9], (tables, modes))[table], rules, series, sums[2])
    speed = _multiply(sums, weights, sines, fields, products)
    highest = float_array(c[21], (1,))
    highest[0] = max(highest[0], speed)
    analyse(0, x, start, a, b, products, series, _padded(modes + 1), work)
    result[0] = 0.0
    for l in range(1, modes):
        result[l] = l * e[l + 1] * series[0, l + 1] - (l + d - 2) * e[l] * series[0, l - 1]


@njit(cache=True)
def _sum(density, multipliers, rules, series, sums):
    x, start, a, b, work = rules
    series[:] = 0
    for l in range(density.size):
        series[0, l] = multipliers[l] * density[l]
    synthesise(0, x, start, a, b, series, _padded(density.size), sums, work)


@njit(cache=True)
def _sum_slope(density, attraction, band, e, dimension, rules, series, sums):
    """G = sin(theta) d_theta g for the potential g = W * mu."""
    x, start, a, b, work = rules
    series[:] = 0
    for l in range(band + 1):
        g = attraction[l] * density[l]
        series[0, l + 1] += l * e[l + 1] * g
        if l > 0:
            series[0, l - 1] -= (l + dimension - 2) * e[l] * g
    synthesise(0, x, start, a, b, series, _padded(band + 2), sums, work)


@njit(cache=True)
def _padded(count):
    return (count + 3) // 4 * 4


@njit(cache=True, error_model="numpy")
def _multiply(sums, weights, sines, fields, products):
    """mu G at the latitudes x and -x, with quadrature weights; returns the largest |v|."""
    largest = 0.0
    for j in range(sines.size):
        total = difference = 0.0
        for side in range(2):
            sign = 1 - 2 * side
            slope = sums[1, 0, j] + sign * sums[1, 2, j]
            if fields == 3:
                slope /= max(sums[2, 0, j] + sign * sums[2, 2, j], NO_MASS)
            largest = max(largest, slope * slope / sines[j])
            flux = (sums[0, 0, j] + sign * sums[0, 2, j]) * slope * weights[j]
            total += flux
            difference += sign * flux
        products[0, j], products[4, j] = total, difference
    return min(np.sqrt(largest), 1.0) if fields == 3 else np.sqrt(largest)


@cfunc(types.void(*[types.int64] * 4), cache=True)
def _transport(context, member, source, target):
    _transport_member(context, member, source, target)
