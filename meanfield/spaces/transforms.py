"""Transforms between harmonics and values on a grid of a sphere, for compiled code.

Grids and quadratures are those of the transports, with the same products free of aliases. The
transforms from values to harmonics are the exact transposes of those from harmonics to values:

    sum_x w f Y* = <f, Y>,    sum_x w <F, grad Y*> = the coefficients of -div F.
"""

from typing import TYPE_CHECKING

import numpy as np

from ..lowlevel.batched_fft import ROW
from ..lowlevel.callbacks import CompiledFunction, float_array
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.legendre import analyse, fold, recurrence, synthesise, unfold
from ..lowlevel.records import InCode, Layout, floats, numbers_at
from ..lowlevel.simd import address_of, aligned
from .latitudes import LATITUDE_FIELDS, Latitudes
from .sphere_transport import (
    PAIRS,
    SPHERE_FIELDS,
    divergence,
    fourier,
    join,
    part,
    sphere_values,
    sum_order,
    sum_potential,
    take,
    with_heights,
)
from .transport import GridTransforms

if TYPE_CHECKING:
    from .contract import Space

# Axisymmetric functions ------------------------------------------------------------------------


AXIS_GRID = Layout(
    "ZonalGridTransforms",
    {
        **LATITUDE_FIELDS,
        **dict.fromkeys(("dimension", "modes"), int),
        "e": floats("e_size"),  # see `legendre.recurrence`
        **dict.fromkeys(("weights", "divided_weights", "cosecants"), floats("half")),
        "sums": floats(4, "width"),
    },
)
_axis_at = AXIS_GRID.at


@njit(**INNER)
def _cleared_series(record: InCode) -> np.ndarray:
    """The series of the record, in pairs of floats, of which the second stay 0; filled with 0."""
    series = record.series[0]
    for i in range(series.size):
        series[i] = 0.0
    return series


@njit(**INNER)
def _sum_series(record: InCode, count: int) -> np.ndarray:
    """Sums of the first `count` terms of the series of the record: even and odd parts of values."""
    folded, rules = record.folded, record.rules
    synthesise(0, rules, folded, fold(0, rules, record.series[0], count, folded), record.sums)
    return record.sums


@CompiledFunction
def _values_on_axis(context: int, number: int, source: int, target: int) -> None:
    record = _axis_at(context)
    x, half, series = record.x, record.half, _cleared_series(record)
    coefficients, values = float_array(source, (number + 1,)), float_array(target, (2 * half,))
    for l in range(number + 1):
        series[2 * l] = coefficients[l]
    sums = _sum_series(record, number + 1)
    for j in range(half):
        even, odd = sums[0, j], x[j] * sums[2, j]
        values[j], values[half + j] = even + odd, even - odd


@CompiledFunction
def _gradient_on_axis(context: int, number: int, source: int, target: int) -> None:
    """Write d_theta g for a series g, from the coefficients of sin(theta) d_theta g."""
    record = _axis_at(context)
    x, cosecants, half, series = record.x, record.cosecants, record.half, _cleared_series(record)
    g, values = float_array(source, (number + 1,)), float_array(target, (2 * half,))
    e, d = record.e, record.dimension
    for l in range(number + 1):
        series[2 * l + 2] += l * e[l + 1] * g[l]
        if l > 0:
            series[2 * l - 2] -= (l + d - 2) * e[l] * g[l]
    sums = _sum_series(record, number + 2)
    for j in range(half):
        even, odd = cosecants[j] * sums[0, j], cosecants[j] * x[j] * sums[2, j]
        values[j], values[half + j] = even + odd, even - odd


@njit(**INNER)
def _analyse_axis(record: InCode, values: np.ndarray, weights: np.ndarray) -> None:
    """Fill every second entry of `series[0]` with the coefficients of a function, by its values.

    `weights` (half,) are quadrature weights.
    """
    x, half, products = record.x, record.half, record.products
    for j in range(half):
        f, g = weights[j] * values[j], weights[j] * values[half + j]
        products[0, j], products[4, j] = f + g, x[j] * (f - g)
    analyse(0, record.rules, products, record.unfolded, record.pairs)
    unfold(0, record.rules, record.unfolded, record.pairs, record.series[0])


@CompiledFunction
def _analysis_on_axis(context: int, number: int, source: int, target: int) -> None:
    record = _axis_at(context)
    modes, series = record.modes, record.series[0]
    values = float_array(source, (number, 2 * record.half))
    result = float_array(target, (number, modes))
    for i in range(number):
        _analyse_axis(record, values[i], record.weights)
        for l in range(modes):
            result[i, l] = series[2 * l]


@CompiledFunction
def _divergence_on_axis(context: int, number: int, source: int, target: int) -> None:
    """Write the coefficients of -div of a field along the meridians: see `zonal_transport`."""
    record = _axis_at(context)
    e, d, series = record.e, record.dimension, record.series[0]
    values, result = float_array(source, (2 * record.half,)), float_array(target, (record.modes,))
    _analyse_axis(record, values, record.divided_weights)
    result[0] = 0.0
    for l in range(1, result.size):
        up, down = l * e[l + 1], (l + d - 2) * e[l]
        result[l] = up * series[2 * l + 2] - down * series[2 * l - 2]


class ZonalGridTransforms(GridTransforms):
    """GridTransforms of Gegenbauer series: see `zonal_transport`."""

    compiled = _values_on_axis, _gradient_on_axis, _analysis_on_axis, _divergence_on_axis

    def __init__(self, space: "Space", points: int) -> None:
        modes, dimension = space.degree + 1, space.dimension
        latitudes = Latitudes(-(-points // 4), modes, 0, dimension)
        self.size, cosecants = 2 * latitudes.x.size, 1 / np.sqrt(latitudes.sines_squared)
        values = latitudes.values()
        record = AXIS_GRID.filled(
            **values,
            dimension=dimension,
            modes=modes,
            e=recurrence(modes + 1, 0, dimension),
            weights=latitudes.weights,
            divided_weights=latitudes.weights * cosecants,
            cosecants=cosecants,
            sums=aligned(4, values["rules"].width),
        )
        self._enter(record)


# S^2 -------------------------------------------------------------------------------------------

SPHERE_GRID = Layout(
    "SphereTransforms",
    {
        **SPHERE_FIELDS,
        "ones": floats("orders"),
        **dict.fromkeys(("weights", "divided_weights"), floats(2, "half")),
        **dict.fromkeys(("spectrum", "result"), int),
    },
)
_sphere_at = SPHERE_GRID.at


@njit(**INNER)
def _to_rings(record: InCode, last: int, fields: int, target: int) -> None:
    """Write at `target` the values of `fields` functions on all rings, from sums over degrees.

    `last` is the highest order of the functions.
    """
    half, first = record.half, numbers_at(record.rules.first, 0, 0)
    size, count = record.length * ROW, 0
    for j in range(0, half, PAIRS):
        while count <= last and first[count] <= j:
            count += 1
        for f in range(fields):
            at = target + (f * (half // PAIRS) + j // PAIRS) * size
            sums = address_of(record.sums) + 32 * half * f
            join(record, sums, record.orders, count, j, record.spectrum)
            fourier(record, record.spectrum, at)


@njit(**INNER)
def _from_rings(record: InCode, fields: int, weights: np.ndarray, source: int) -> None:
    """Fill the sums of the record with sums over longitudes of `fields` functions, with weights.

    `source` is the address of their values.
    """
    half, first = record.half, numbers_at(record.rules.first, 0, 0)
    size, count = record.length * ROW, 0
    for j in range(0, half, PAIRS):
        while count < record.orders and first[count] <= j:
            count += 1
        for f in range(fields):
            at = source + (f * (half // PAIRS) + j // PAIRS) * size
            fourier(record, at, record.result)
            part(record, record.result, f, count, j, weights)


@CompiledFunction
def _values_on_sphere(context: int, number: int, source: int, target: int) -> None:
    record, begin = _sphere_at(context), source
    for m in range(number + 1):
        count = number + 1 - m
        sum_order(m, float_array(begin, (2 * count,)), count, record, record.sums[m, :4])
        begin += 16 * (record.orders - m)
    _to_rings(record, number, 1, target)


@CompiledFunction
def _gradient_on_sphere(context: int, number: int, source: int, target: int) -> None:
    record, begin = _sphere_at(context), 0
    for m in range(number + 1):
        count = number + 1 - m
        coefficients = float_array(source + 16 * begin, (2 * count,))
        take(coefficients, record.ones, count, record.series[0, 2:])
        sum_potential(m, count, begin, record, record.sums[m])
        begin += record.orders - m
    _to_rings(record, number, 2, target)


@CompiledFunction
def _analysis_on_sphere(context: int, number: int, source: int, target: int) -> None:
    """Write coefficients (number, modes), pairs of floats, of functions on the grid of S^2."""
    record, begin = _sphere_at(context), 0
    rules, unfolded, series = record.rules, record.unfolded, record.series[0]
    result = float_array(target, (number, record.orders * (record.orders + 1)))
    _from_rings(record, number, record.weights, source)
    for m in range(record.orders):
        count = record.orders - m
        pairs = (count + 1) // 2
        analyse(m, rules, record.sums[m], unfolded, (pairs + 1) // 2 * 2)
        for i in range(number):
            unfold(m, rules, unfolded[:, 2 * i :], pairs, series)
            for k in range(2 * count):
                result[i, 2 * begin + k] = series[k]
        begin += count


@CompiledFunction
def _divergence_on_sphere(context: int, number: int, source: int, target: int) -> None:
    record = _sphere_at(context)
    _from_rings(record, 2, record.divided_weights, source)
    divergence(record, float_array(target, (record.orders * (record.orders + 1),)))


class SphereGridTransforms(GridTransforms):
    """Transforms of spherical harmonics: see `sphere_transport`."""

    components = 2
    compiled = (
        _values_on_sphere, _gradient_on_sphere, _analysis_on_sphere, _divergence_on_sphere
    )  # fmt: skip

    def __init__(self, space: "Space", points: int) -> None:
        latitudes, length, values = sphere_values(space.degree, points)
        weights, sines = latitudes.weights / (2 * length), np.sqrt(latitudes.sines_squared)
        self.size = 2 * latitudes.x.size * length
        record = SPHERE_GRID.filled(
            **values,
            ones=np.ones(space.degree + 1),
            weights=with_heights(weights, latitudes),
            divided_weights=with_heights(weights / sines, latitudes),
            spectrum=aligned(length * ROW // 8),
            result=aligned(length * ROW // 8),
        )
        self._enter(record)
