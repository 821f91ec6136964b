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
from ..lowlevel.legendre import analyse, fold, recurrence, rules_at, synthesise, unfold
from ..lowlevel.records import Layout, Record, numbers_at
from ..lowlevel.simd import aligned
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
        self._enter_context(self._context.ctypes.data)

    def _enter_record(self, record: Record) -> None:
        self._record = record
        self._enter_context(record.address)

    def _enter_context(self, context: int) -> None:
        functions = [function.address for function in self.compiled]
        self.addresses = np.array([*functions, context], dtype=np.int64)


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
        rules, pairs, sines = latitudes.rules(), latitudes.pairs(0), latitudes.sines_squared
        record = AXIS.filled(
            modes=degree + 1,
            half=half,
            dimension=dimension,
            pairs=pairs,
            width=rules.width,
            e=recurrence(degree + 2, 0, dimension),
            ones=np.ones(degree + 1),
            x=latitudes.x,
            weights=latitudes.weights,
            sines=np.sqrt(sines),
            rules=rules,
            sums=aligned(4, rules.width),
            products=aligned(8, rules.width),
            folded=aligned(8, pairs),
            series=aligned(4 * pairs),
        )
        self._enter_record(record)

    @property
    def compiled(self) -> tuple[Any, Any, Any, Any]:
        return _values_on_axis, _gradient_on_axis, _analysis_on_axis, _divergence_on_axis


AXIS = Layout(
    "ZonalTransforms",
    dict.fromkeys(
        (
            *("modes", "half", "dimension", "pairs", "width"),
            *("e", "ones"),  # (modes + 2,), see `legendre.recurrence`, and (modes,)
            *("x", "weights", "sines"),  # (half,)
            "rules",  # a record of RULES
            *("sums", "products", "folded", "series"),  # (4 or 8, width), (8, pairs), (4 pairs,)
        ),
        int,
    ),
)
_axis_at = AXIS.at


@njit(**INNER)
def _axis(context):
    """The arrays of `ZonalTransforms`."""
    own = _axis_at(context)
    modes, half, pairs, width = own.modes, own.half, own.pairs, own.width
    e, ones = float_array(own.e, (modes + 2,)), float_array(own.ones, (modes,))
    x, weights = float_array(own.x, (half,)), float_array(own.weights, (half,))
    sines, sums = float_array(own.sines, (half,)), float_array(own.sums, (4, width))
    products, series = float_array(own.products, (8, width)), float_array(own.series, (4 * pairs,))
    folded, found = float_array(own.folded, (4, pairs)), float_array(own.folded, (pairs, 8))
    rules = rules_at(own.rules)
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
    half, dimension = x.size, _axis_at(context).dimension
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
    half, modes, dimension = x.size, ones.size, _axis_at(context).dimension
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
        both = np.stack([weights, weights * latitudes.x])
        record = SPHERE.filled(
            degree=degree,
            half=half,
            length=length,
            pairs=pairs,
            ones=np.ones(degree + 1),
            slopes=_slopes(degree),
            x=aligned_copy(latitudes.x),
            weights=aligned_copy(both),
            divided_weights=aligned_copy(both / sines),
            rules=latitudes.rules(),
            divided=latitudes.rules(latitudes.start / sines),
            sums=aligned(degree + 1, 8, half),
            spectrum=aligned(length, 2, PAIRS),
            scratch=aligned(length, 2, PAIRS),
            result=aligned(length, 2, PAIRS),
            folded=aligned(8, pairs),
            series=aligned(2, 4 * pairs + 8),
            passes=len(factors),
            factors=np.array(factors),
            turns=twiddles(factors),
        )
        self._enter_record(record)

    @property
    def compiled(self) -> tuple[Any, Any, Any, Any]:
        return _values_on_sphere, _gradient_on_sphere, _analysis_on_sphere, _divergence_on_sphere


SPHERE = Layout(
    "SphereTransforms",
    dict.fromkeys(
        (
            *("degree", "half", "length", "pairs"),
            *("ones", "slopes", "x"),  # (degree + 1,), see `_slopes`, (half,)
            *("weights", "divided_weights"),  # (2, half): with x as well; divided by sin(theta)
            *("rules", "divided"),  # records of RULES: of p_m, and of p_m / sin(theta)
            "sums",  # (degree + 1, 8, half)
            *("spectrum", "scratch", "result"),  # (length, 2, PAIRS)
            *("folded", "series"),  # (8, pairs), (2, 4 pairs + 8)
            *("passes", "factors", "turns"),  # of the FFTs, see `batched_fft`
        ),
        int,
    ),
)
_sphere_at = SPHERE.at


@njit(**INNER)
def _sphere(context):
    """The arrays of `SphereTransforms`."""
    own = _sphere_at(context)
    degree, half, pairs = own.degree, own.half, own.pairs
    modes = (degree + 1) * (degree + 2) // 2
    rules, divided = rules_at(own.rules), rules_at(own.divided)
    steps = float_array(own.slopes, (2, modes + 3))
    sums = float_array(own.sums, (degree + 1, 8, half))
    folded, found = float_array(own.folded, (4, pairs)), float_array(own.folded, (pairs, 8))
    series = float_array(own.series, (2, 4 * pairs + 8))
    return rules, divided, steps, sums, folded, found, series


@njit(**INNER)
def _to_rings(context, last, fields, target):
    """Values of `fields` functions on all rings, from their sums over degrees."""
    own = _sphere_at(context)
    degree, half, length, spectrum = own.degree, own.half, own.length, own.spectrum
    factors, first = integer_array(own.factors, (own.passes,)), rules_at(own.rules).first
    size, count = length * ROW, 0
    for j in range(0, half, PAIRS):
        while count <= last and numbers_at(first, count, 0)[0] <= j:
            count += 1
        for f in range(fields):
            at = target + (f * (half // PAIRS) + j // PAIRS) * size
            _join(own.sums + 32 * half * f, count, degree, j, half, own.x, length, spectrum)
            transform(spectrum, at, own.scratch, factors, own.turns)


@njit(**INNER)
def _from_rings(context, fields, weights, source):
    """Sums over longitudes of `fields` functions, with weights, where `_project` seeks them."""
    own = _sphere_at(context)
    degree, half, length, result = own.degree, own.half, own.length, own.result
    factors, first = integer_array(own.factors, (own.passes,)), rules_at(own.rules).first
    size, count = length * ROW, 0
    for j in range(0, half, PAIRS):
        while count <= degree and numbers_at(first, count, 0)[0] <= j:
            count += 1
        for f in range(fields):
            at = source + (f * (half // PAIRS) + j // PAIRS) * size
            transform(at, result, own.scratch, factors, own.turns)
            _part(result, length, count, j, half, weights, own.sums + 16 * half * f)


@CompiledFunction
def _values_on_sphere(context, number, source, target):
    rules, _, _, sums, folded, _, _ = _sphere(context)
    degree, begin = len(sums) - 1, 0
    given = float_array(source, ((degree + 1) * (degree + 2),))
    for m in range(number + 1):
        n = fold(m, rules, given[2 * begin :], number + 1 - m, folded)
        synthesise(m, rules, folded, n, sums[m, :4])
        begin += degree + 1 - m
    _to_rings(context, number, 1, target)


@CompiledFunction
def _gradient_on_sphere(context, number, source, target):
    _rules, divided, steps, sums, folded, _, series = _sphere(context)
    degree, begin = len(sums) - 1, 0
    given = float_array(source, ((degree + 1) * (degree + 2),))
    ones = float_array(_sphere_at(context).ones, (degree + 1,))
    for m in range(number + 1):
        up, down = steps[0, begin:], steps[1, begin:]
        _take(given[2 * begin :], ones, number + 1 - m, series[0, 2:])
        _sum_potential(m, number + 1 - m, up, down, divided, series, folded, sums[m])
        begin += degree + 1 - m
    _to_rings(context, number, 2, target)


@CompiledFunction
def _analysis_on_sphere(context, number, source, target):
    rules, _, _, sums, _, found, series = _sphere(context)
    degree, begin = len(sums) - 1, 0
    result = float_array(target, (number, (degree + 1) * (degree + 2)))
    _from_rings(context, number, _sphere_at(context).weights, source)
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
    _from_rings(context, 2, _sphere_at(context).divided_weights, source)
    for m in range(degree + 1):
        up, down = steps[0, begin + 1 :], steps[1, begin + 1 :]
        _project(m, degree, sums[m], up, down, rules, found, result[2 * begin :])
        begin += degree + 1 - m
