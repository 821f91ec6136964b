"""Transport of axisymmetric densities on S^(d-1): -div(mu v) in Gegenbauer series, compiled.

The weak form of `sphere_transport` with the order m = 0 only, for any d:

    -int p_l div(mu grad g) = int mu G (sin(theta) d_theta p_l) / sin(theta)^2,
    G = sin(theta) d_theta g.
"""

from typing import Any

import numpy as np

from ..lowlevel.callbacks import CompiledFunction, float_array, integer_array
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.legendre import analyse, fold, recurrence, synthesise, unfold
from ..lowlevel.simd import LANES, aligned
from .circle_transport import NO_MASS
from .contract import Transport
from .latitudes import Latitudes


class ZonalTransport(Transport):
    """mu -> -div(mu v[mu]) with v = grad (W * mu) / (Z * mu); see `Geometry.transport`.

    Attributes
    ----------
    latitudes : Latitudes
    """

    dtype = float

    def __init__(
        self, attraction: Any, normaliser: Any, members: int, dimension: int, pairs: bool = False
    ):
        modes, fields = attraction.shape[1], 2 if normaliser is None else 3
        super().__init__(attraction, normaliser, members, modes, pairs)
        self.latitudes = rules = Latitudes(-(-self.points // 4), modes, 0, dimension)
        rungs, arrays = rules.pairs(0), rules.rules()
        width = arrays[0].size
        buffers = [
            *self.tables,
            recurrence(modes + 1, 0, dimension),
            *(rules.x, rules.weights / rules.sines_squared, rules.sines_squared),
            *arrays,
            *(aligned(fields, 4, width), aligned(8, width), aligned(8, rungs)),
            *(aligned(4 * rungs), self.speed),
        ]
        numbers = (self.degree, self.band, rules.x.size, len(attraction), fields, dimension, rungs)
        self._enter(_transport, (self._apart, *numbers), buffers)


@CompiledFunction
def _transport(context, member, source, target):
    c, apart = integer_array(context + 8, (24,)), integer_array(context, (1,))[0]
    degree, band, half, tables, fields, d, pairs = c[0], c[1], c[2], c[3], c[4], c[5], c[6]
    modes = degree + 1
    density, result = float_array(source, (modes,)), float_array(target, (modes,))
    moving = float_array(source + apart, (modes,))
    table = member if tables > 1 else 0
    attraction = float_array(c[7], (tables, modes))[table]
    e, x = float_array(c[9], (degree + 3,)), float_array(c[10], (half,))
    weights, sines = float_array(c[11], (half,)), float_array(c[12], (half,))
    width = (half + LANES - 1) // LANES * LANES
    rules = (
        *(float_array(c[13], (width,)), float_array(c[14], (1, width))),
        *(float_array(c[15], (5, pairs)), integer_array(c[16], (1,))),
        *(integer_array(c[17], (2,)), float_array(c[18], (2, width))),
    )
    sums, products = float_array(c[19], (fields, 4, width)), float_array(c[20], (8, width))
    folded, series = float_array(c[21], (4, pairs)), float_array(c[22], (4 * pairs,))

    _sum(density, np.ones(modes), rules, series, folded, sums[0])
    _sum_slope(moving, attraction, band, e, d, rules, series, folded, sums[1])
    if fields == 3:
        normaliser = float_array(c[8], (tables, modes))[table]
        _sum(moving, normaliser, rules, series, folded, sums[2])
    speed = _multiply(sums, x, weights, sines, fields, products)
    highest = float_array(c[23], (1,))
    highest[0] = max(highest[0], speed)
    found = float_array(c[21], (pairs, 8))
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
def _multiply(sums, x, weights, sines, fields, products):
    """mu G at the latitudes x and -x, with quadrature weights; returns the largest |v|."""
    largest = 0.0
    for j in range(sines.size):
        total = difference = 0.0
        for side in range(2):
            z = x[j] if side == 0 else -x[j]
            slope = sums[1, 0, j] + z * sums[1, 2, j]
            if fields == 3:
                slope /= max(sums[2, 0, j] + z * sums[2, 2, j], NO_MASS)
            largest = max(largest, slope * slope / sines[j])
            flux = (sums[0, 0, j] + z * sums[0, 2, j]) * slope * weights[j]
            total += flux
            difference += z * flux
        products[0, j], products[4, j] = total, difference
    return min(np.sqrt(largest), 1.0) if fields == 3 else np.sqrt(largest)
