"""Between harmonics and values on a grid, both ways, for compiled code on every space.

The grids are those of the transports, free of aliases in the same products. The sums over the
points are the quadrature of the transports too, so that each way back is the exact transpose,

    sum_x w f Y* = <f, Y>,    sum_x w <F, grad Y*> = the coefficients of -div F.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ..lowlevel.batched_fft import ROW, good_length, radices, transform, twiddles
from ..lowlevel.callbacks import CompiledFunction, call, complex_array, float_array, integer_array
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.fourier import RealTransform
from ..lowlevel.fourier import good_length as good_length_of_fftw
from ..lowlevel.legendre import analyse, fold, recurrence, synthesise, unfold
from ..lowlevel.simd import LANES, aligned
from .latitudes import Latitudes, aligned_copy
from .sphere_transport import PAIRS, _join, _part, _project, _slopes, _sum_potential, _take
from .zonal_transport import _sum, _sum_slope


class Transforms(ABC):
    """Four functions for compiled code, ``void f(context, number, source, target)``.

    They take the coefficients of one real function, as floats, or values at the points.

    `values` : coefficients to values, of degrees up to `number`
    `gradient` : the same to the components of the gradient, one after the other
    `analysis` : values of `number` functions, 1 or 2, to coefficients
    `divergence` : components of a tangent field to the coefficients of -div

    Parameters
    ----------
    degree : int
        Of the functions.
    points : int
        The least number of points on a great circle.

    Attributes
    ----------
    size : int
        Number of points, in an order of its own.
    components : int
        Number of components of tangent fields.
    addresses : ndarray of int, (5,)
        Of the four functions, and the context.
    """

    components = 1
    size: int

    @property
    @abstractmethod
    def compiled(self) -> tuple[Any, Any, Any, Any]:
        """The four functions."""

    def _enter(self, numbers: Any, buffers: Any) -> None:
        self._buffers = buffers
        addresses = [buffer.ctypes.data for buffer in buffers]
        self._context = np.array([*numbers, *addresses], dtype=np.int64)
        functions = [function.address for function in self.compiled]
        self.addresses = np.array([*functions, self._context.ctypes.data], dtype=np.int64)


# The circle ------------------------------------------------------------------------------------


@njit(**INNER)
def _circle_values(context, number, source, target, slope):
    c = integer_array(context, (9,))
    modes, length, stride = c[0], c[1], c[2]
    given, values = complex_array(source, (modes,)), float_array(target, (length,))
    spectrum, found = complex_array(c[7], (stride,)), float_array(c[8], (2 * stride,))
    for k in range(number + 1):
        spectrum[k] = given[k]
        if slope:
            spectrum[k] = complex(-k * given[k].imag, k * given[k].real)
    for k in range(number + 1, stride):
        spectrum[k] = 0.0
    call(c[3], c[4], c[7], c[8])
    for j in range(length):
        values[j] = found[j]


@CompiledFunction
def _values_on_circle(context, number, source, target):
    _circle_values(context, number, source, target, False)


@CompiledFunction
def _gradient_on_circle(context, number, source, target):
    _circle_values(context, number, source, target, True)


@njit(**INNER)
def _circle_coefficients(context, source, target, slope):
    c = integer_array(context, (9,))
    modes, length, stride = c[0], c[1], c[2]
    given, found = float_array(source, (length,)), complex_array(target, (modes,))
    spectrum, values = complex_array(c[7], (stride,)), float_array(c[8], (2 * stride,))
    for j in range(length):
        values[j] = given[j]
    call(c[5], c[6], c[8], c[7])
    for k in range(modes):
        if slope:
            factor = k / length
            found[k] = complex(factor * spectrum[k].imag, -factor * spectrum[k].real)
        else:
            found[k] = spectrum[k] / length


@CompiledFunction
def _analysis_on_circle(context, number, source, target):
    c = integer_array(context, (9,))
    for i in range(number):
        _circle_coefficients(context, source + 8 * i * c[1], target + 16 * i * c[0], False)


@CompiledFunction
def _divergence_on_circle(context, number, source, target):
    _circle_coefficients(context, source, target, True)


class CircleTransforms(Transforms):
    """Those of Fourier series, by FFTW."""

    def __init__(self, degree: int, points: int):
        self.size = good_length_of_fftw(points)
        self._fft = fft = RealTransform(self.size, rows=1)
        numbers = (degree + 1, self.size, fft.stride, *fft.inverse, *fft.forward)
        self._enter(numbers, (fft.spectrum, fft.values))

    @property
    def compiled(self) -> tuple[Any, Any, Any, Any]:
        return _values_on_circle, _gradient_on_circle, _analysis_on_circle, _divergence_on_circle


# Axisymmetric functions ------------------------------------------------------------------------


class ZonalTransforms(Transforms):
    """Those of Gegenbauer series: see `zonal_transport`."""

    def __init__(self, degree: int, points: int, dimension: int):
        latitudes = Latitudes(-(-points // 4), degree + 1, 0, dimension)
        self.size, half = 2 * latitudes.x.size, latitudes.x.size
        pairs, arrays = latitudes.pairs(0), latitudes.rules()
        width, sines = arrays[0].size, np.sqrt(latitudes.sines_squared)
        buffers = [
            *(recurrence(degree + 2, 0, dimension), np.ones(degree + 1)),
            *(latitudes.x, latitudes.weights, sines, *arrays),
            *(aligned(4, width), aligned(8, width), aligned(8, pairs), aligned(4 * pairs)),
        ]
        self._enter((degree + 1, half, dimension, pairs), buffers)

    @property
    def compiled(self) -> tuple[Any, Any, Any, Any]:
        return _values_on_axis, _gradient_on_axis, _analysis_on_axis, _divergence_on_axis


@njit(**INNER)
def _axis(context):
    """The arrays of `ZonalTransforms`."""
    c = integer_array(context, (19,))
    modes, half, pairs = c[0], c[1], c[3]
    width = (half + LANES - 1) // LANES * LANES
    rules = (
        *(float_array(c[9], (width,)), float_array(c[10], (1, width))),
        *(float_array(c[11], (5, pairs)), integer_array(c[12], (1,))),
        *(integer_array(c[13], (2,)), float_array(c[14], (2, width))),
    )
    e, ones = float_array(c[4], (modes + 2,)), float_array(c[5], (modes,))
    x, weights = float_array(c[6], (half,)), float_array(c[7], (half,))
    sines, sums = float_array(c[8], (half,)), float_array(c[15], (4, width))
    products, series = float_array(c[16], (8, width)), float_array(c[18], (4 * pairs,))
    folded, found = float_array(c[17], (4, pairs)), float_array(c[17], (pairs, 8))
    return rules, e, ones, x, weights, sines, sums, products, folded, found, series


@CompiledFunction
def _values_on_axis(context, number, source, target):
    rules, _, ones, x, _, _, sums, _, folded, _, series = _axis(context)
    half = x.size
    given, values = float_array(source, (number + 1,)), float_array(target, (2 * half,))
    _sum(given, ones, rules, series, folded, sums)
    for j in range(half):
        even, odd = sums[0, j], x[j] * sums[2, j]
        values[j], values[half + j] = even + odd, even - odd


@CompiledFunction
def _gradient_on_axis(context, number, source, target):
    rules, e, ones, x, _, sines, sums, _, folded, _, series = _axis(context)
    half, dimension = x.size, integer_array(context, (3,))[2]
    given, values = float_array(source, (number + 1,)), float_array(target, (2 * half,))
    _sum_slope(given, ones, number, e, dimension, rules, series, folded, sums)
    for j in range(half):
        even, odd = sums[0, j] / sines[j], x[j] * sums[2, j] / sines[j]
        values[j], values[half + j] = even + odd, even - odd


@CompiledFunction
def _analysis_on_axis(context, number, source, target):
    rules, _, ones, x, weights, _, _, products, _, found, series = _axis(context)
    half, modes = x.size, ones.size
    given, result = float_array(source, (number, 2 * half)), float_array(target, (number, modes))
    for i in range(number):
        for j in range(half):
            f, g = weights[j] * given[i, j], weights[j] * given[i, half + j]
            products[0, j], products[4, j] = f + g, x[j] * (f - g)
        analyse(0, rules, products, found, series.size // 4)
        unfold(0, rules, found, series.size // 4, series)
        for l in range(modes):
            result[i, l] = series[2 * l]


@CompiledFunction
def _divergence_on_axis(context, number, source, target):
    rules, e, ones, x, weights, sines, _, products, _, found, series = _axis(context)
    half, modes, dimension = x.size, ones.size, integer_array(context, (3,))[2]
    given, result = float_array(source, (2 * half,)), float_array(target, (modes,))
    for j in range(half):
        weight = weights[j] / sines[j]
        f, g = weight * given[j], weight * given[half + j]
        products[0, j], products[4, j] = f + g, x[j] * (f - g)
    analyse(0, rules, products, found, series.size // 4)
    unfold(0, rules, found, series.size // 4, series)
    result[0] = 0.0
    for l in range(1, modes):
        up, down = l * e[l + 1], (l + dimension - 2) * e[l]
        result[l] = up * series[2 * l + 2] - down * series[2 * l - 2]


# S^2 -------------------------------------------------------------------------------------------


class SphereTransforms(Transforms):
    """Those of spherical harmonics: see `sphere_transport`."""

    components = 2

    def __init__(self, degree: int, points: int):
        half, length = -(-points // (4 * PAIRS)) * PAIRS, good_length(points)
        latitudes = Latitudes(half, degree + 1, degree)
        self.size, pairs, factors = 2 * half * length, latitudes.pairs(0), radices(length)
        sines, weights = np.sqrt(latitudes.sines_squared), latitudes.weights / (2 * length)
        buffers = [
            *(np.ones(degree + 1), _slopes(degree), aligned_copy(latitudes.x)),
            aligned_copy(np.stack([weights, weights * latitudes.x])),
            aligned_copy(np.stack([weights, weights * latitudes.x]) / sines),
            aligned_copy(latitudes.start / sines),
            *latitudes.rules(),
            *(aligned(degree + 1, 8, half), aligned(length, 2, PAIRS), aligned(length, 2, PAIRS)),
            *(aligned(8, pairs), aligned(2, 4 * pairs + 8)),
            *(np.array(factors), twiddles(factors), aligned(length, 2, PAIRS)),
        ]
        sizes = latitudes.ladder.shape[1], pairs, len(factors), buffers[-2].size
        self._enter((degree, half, length, *sizes), buffers)

    @property
    def compiled(self) -> tuple[Any, Any, Any, Any]:
        return _values_on_sphere, _gradient_on_sphere, _analysis_on_sphere, _divergence_on_sphere


@njit(**INNER)
def _sphere(context):
    """The arrays of `SphereTransforms`."""
    c = integer_array(context, (27,))
    degree, half, pairs = c[0], c[1], c[4]
    modes = (degree + 1) * (degree + 2) // 2
    ladder, first = float_array(c[15], (5, c[3])), integer_array(c[16], (degree + 1,))
    rungs, work = integer_array(c[17], (degree + 2,)), float_array(c[18], (2, half))
    squares, start = float_array(c[13], (half,)), float_array(c[14], (degree + 1, half))
    rules = squares, start, ladder, first, rungs, work
    divided = squares, float_array(c[12], (degree + 1, half)), ladder, first, rungs, work
    steps, sums = float_array(c[8], (2, modes + 3)), float_array(c[19], (degree + 1, 8, half))
    folded, found = float_array(c[22], (4, pairs)), float_array(c[22], (pairs, 8))
    series = float_array(c[23], (2, 4 * pairs + 8))
    return rules, divided, steps, sums, folded, found, series


@njit(**INNER)
def _to_rings(context, first, last, fields, target):
    """Values of `fields` functions on all rings, from their sums over degrees."""
    c = integer_array(context, (27,))
    degree, half, length = c[0], c[1], c[2]
    factors, turns = integer_array(c[24], (c[5],)), float_array(c[25], (c[6],))
    size, count = length * ROW, 0
    for j in range(0, half, PAIRS):
        while count <= last and first[count] <= j:
            count += 1
        for f in range(fields):
            at = target + (f * (half // PAIRS) + j // PAIRS) * size
            _join(c[19] + 32 * half * f, count, degree, j, half, c[9], length, c[20])
            transform(c[20], at, c[21], factors, turns)


@njit(**INNER)
def _from_rings(context, first, fields, weights, source):
    """Sums over longitudes of `fields` functions, with weights, where `_project` seeks them."""
    c = integer_array(context, (27,))
    degree, half, length = c[0], c[1], c[2]
    factors, turns = integer_array(c[24], (c[5],)), float_array(c[25], (c[6],))
    size, count = length * ROW, 0
    for j in range(0, half, PAIRS):
        while count <= degree and first[count] <= j:
            count += 1
        for f in range(fields):
            at = source + (f * (half // PAIRS) + j // PAIRS) * size
            transform(at, c[26], c[21], factors, turns)
            _part(c[26], length, count, j, half, weights, c[19] + 16 * half * f)


@CompiledFunction
def _values_on_sphere(context, number, source, target):
    rules, _, _, sums, folded, _, _ = _sphere(context)
    degree, begin = len(sums) - 1, 0
    given = float_array(source, ((degree + 1) * (degree + 2),))
    for m in range(number + 1):
        n = fold(m, rules, given[2 * begin :], number + 1 - m, folded)
        synthesise(m, rules, folded, n, sums[m, :4])
        begin += degree + 1 - m
    _to_rings(context, rules[3], number, 1, target)


@CompiledFunction
def _gradient_on_sphere(context, number, source, target):
    rules, divided, steps, sums, folded, _, series = _sphere(context)
    degree, begin = len(sums) - 1, 0
    given = float_array(source, ((degree + 1) * (degree + 2),))
    ones = float_array(integer_array(context, (8,))[7], (degree + 1,))
    for m in range(number + 1):
        up, down = steps[0, begin:], steps[1, begin:]
        _take(given[2 * begin :], ones, number + 1 - m, series[0, 2:])
        _sum_potential(m, number + 1 - m, up, down, divided, series, folded, sums[m])
        begin += degree + 1 - m
    _to_rings(context, rules[3], number, 2, target)


@CompiledFunction
def _analysis_on_sphere(context, number, source, target):
    rules, _, _, sums, _, found, series = _sphere(context)
    degree, begin = len(sums) - 1, 0
    result = float_array(target, (number, (degree + 1) * (degree + 2)))
    _from_rings(context, rules[3], number, integer_array(context, (11,))[10], source)
    for m in range(degree + 1):
        count = degree + 1 - m
        pairs = (count + 1) // 2
        analyse(m, rules, sums[m], found, (pairs + 1) // 2 * 2)
        for i in range(number):
            unfold(m, rules, found[:, 2 * i :], pairs, series[0])
            for k in range(2 * count):
                result[i, 2 * begin + k] = series[0, k]
        begin += count


@CompiledFunction
def _divergence_on_sphere(context, number, source, target):
    rules, _, steps, sums, _, found, _ = _sphere(context)
    degree, begin = len(sums) - 1, 0
    result = float_array(target, ((degree + 1) * (degree + 2),))
    _from_rings(context, rules[3], 2, integer_array(context, (12,))[11], source)
    for m in range(degree + 1):
        up, down = steps[0, begin + 1 :], steps[1, begin + 1 :]
        _project(m, degree, sums[m], up, down, rules, found, result[2 * begin :])
        begin += degree + 1 - m
