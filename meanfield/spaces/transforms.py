"""Between harmonics and values on a grid, both ways, for compiled code on every space.

The grids are those of the transports, free of aliases in the same products. The sums over the
points are the quadrature of the transports too, so that each way back is the exact transpose,

    sum_x w f Y* = <f, Y>,    sum_x w <F, grad Y*> = the coefficients of -div F.
"""

import numpy as np

from ..lowlevel.batched_fft import ROW, good_length, radices, transform, twiddles
from ..lowlevel.callbacks import CompiledFunction, complex_array, float_array, integer_array
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.fourier import TRANSFORM, RealTransform, fill_spectrum, fill_values
from ..lowlevel.fourier import good_length as good_length_of_fftw
from ..lowlevel.legendre import analyse, fold, rules_at, synthesise, unfold
from ..lowlevel.records import Layout, Record, floats, numbers_at
from ..lowlevel.simd import aligned
from .circle_transport import minus_derivative
from .latitudes import Latitudes, aligned_copy
from .sphere_transport import PAIRS, _join, _part, _project, _slopes, _sum_potential, _take
from .zonal_transport import AXIS, axis_values, sum_series, sum_slope, weak_divergence


class Transforms:
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
    functions : Record
        Addresses of the four functions and their context, see `FUNCTIONS`.
    """

    components = 1
    size: int
    compiled: tuple[CompiledFunction, CompiledFunction, CompiledFunction, CompiledFunction]

    def _enter(self, record: Record) -> None:
        """Have the functions called with a record, in which they find numbers and arrays."""
        self._record = record
        addresses = [function.address for function in self.compiled]
        names = zip(FUNCTIONS.fields, [*addresses, record.address], strict=True)
        self.functions = FUNCTIONS.filled(**dict(names))


FUNCTIONS = Layout(
    "Transforms",
    dict.fromkeys(("values", "gradient", "analysis", "divergence", "context"), int),
)


# The circle ------------------------------------------------------------------------------------


CIRCLE_GRID = Layout("CircleTransforms", {"modes": int, "length": int, "fft": TRANSFORM})
_circle_at = CIRCLE_GRID.at


@njit(**INNER)
def _circle_values(context, number, source, target, slope):
    """Values of a series at `target`, or those of its slope."""
    record = _circle_at(context)
    length, fft = record.length, record.fft
    series, result = complex_array(source, (record.modes,)), float_array(target, (length,))
    spectrum, values = fft.spectrum[0], fft.values[0]
    for k in range(number + 1):
        spectrum[k] = series[k]
        if slope:
            spectrum[k] = complex(-k * series[k].imag, k * series[k].real)
    for k in range(number + 1, fft.stride):
        spectrum[k] = 0.0
    fill_values(fft)
    for j in range(length):
        result[j] = values[j]


@CompiledFunction
def _values_on_circle(context, number, source, target):
    _circle_values(context, number, source, target, False)


@CompiledFunction
def _gradient_on_circle(context, number, source, target):
    _circle_values(context, number, source, target, True)


@njit(**INNER)
def _circle_spectrum(fft, values):
    """Fill in the spectrum of values, which is not normalised."""
    for j in range(values.size):
        fft.values[0, j] = values[j]
    fill_spectrum(fft)


@CompiledFunction
def _analysis_on_circle(context, number, source, target):
    record = _circle_at(context)
    length, fft, modes = record.length, record.fft, record.modes
    values = float_array(source, (number, length))
    result = complex_array(target, (number, modes))
    for i in range(number):
        _circle_spectrum(fft, values[i])
        for k in range(modes):
            result[i, k] = fft.spectrum[0, k] / length


@CompiledFunction
def _divergence_on_circle(context, number, source, target):
    record = _circle_at(context)
    _circle_spectrum(record.fft, float_array(source, (record.length,)))
    result = complex_array(target, (record.modes,))
    minus_derivative(record.fft.spectrum[0], record.length, result)


class CircleTransforms(Transforms):
    """Transforms of Fourier series, by FFTW."""

    compiled = (
        _values_on_circle, _gradient_on_circle, _analysis_on_circle, _divergence_on_circle
    )  # fmt: skip

    def __init__(self, degree: int, points: int):
        self.size = good_length_of_fftw(points)
        self._fft = RealTransform(self.size, rows=1)
        fft = self._fft.record
        self._enter(CIRCLE_GRID.filled(modes=degree + 1, length=self.size, fft=fft))


# Axisymmetric functions ------------------------------------------------------------------------


AXIS_GRID = Layout(
    "ZonalTransforms",
    {
        **AXIS,
        **dict.fromkeys(("weights", "divided_weights", "sines"), floats("half")),
        "sums": floats(4, "width"),
    },
)
_axis_at = AXIS_GRID.at


@CompiledFunction
def _values_on_axis(context, number, source, target):
    record = _axis_at(context)
    x, sums, half = record.x, record.sums, record.half
    series, values = float_array(source, (number + 1,)), float_array(target, (2 * half,))
    sum_series(series, record.ones, record, sums)
    for j in range(half):
        even, odd = sums[0, j], x[j] * sums[2, j]
        values[j], values[half + j] = even + odd, even - odd


@CompiledFunction
def _gradient_on_axis(context, number, source, target):
    record = _axis_at(context)
    x, sines, sums, half = record.x, record.sines, record.sums, record.half
    series, values = float_array(source, (number + 1,)), float_array(target, (2 * half,))
    sum_slope(series, record.ones, number, record, sums)
    for j in range(half):
        even, odd = sums[0, j] / sines[j], x[j] * sums[2, j] / sines[j]
        values[j], values[half + j] = even + odd, even - odd


@njit(**INNER)
def _analyse_axis(record, values, weights):
    """Fill in the coefficients of a function, every second place of `series`, by its values."""
    x, half, products = record.x, record.half, record.products
    for j in range(half):
        f, g = weights[j] * values[j], weights[j] * values[half + j]
        products[0, j], products[4, j] = f + g, x[j] * (f - g)
    analyse(0, record.rules, products, record.unfolded, record.pairs)
    unfold(0, record.rules, record.unfolded, record.pairs, record.series)


@CompiledFunction
def _analysis_on_axis(context, number, source, target):
    record = _axis_at(context)
    modes, series = record.modes, record.series
    values = float_array(source, (number, 2 * record.half))
    result = float_array(target, (number, modes))
    for i in range(number):
        _analyse_axis(record, values[i], record.weights)
        for l in range(modes):
            result[i, l] = series[2 * l]


@CompiledFunction
def _divergence_on_axis(context, number, source, target):
    record = _axis_at(context)
    values = float_array(source, (2 * record.half,))
    _analyse_axis(record, values, record.divided_weights)
    weak_divergence(record, float_array(target, (record.modes,)))


class ZonalTransforms(Transforms):
    """Transforms of Gegenbauer series: see `zonal_transport`."""

    compiled = _values_on_axis, _gradient_on_axis, _analysis_on_axis, _divergence_on_axis

    def __init__(self, degree: int, points: int, dimension: int):
        latitudes = Latitudes(-(-points // 4), degree + 1, 0, dimension)
        self.size, sines = 2 * latitudes.x.size, np.sqrt(latitudes.sines_squared)
        values = axis_values(latitudes, degree)
        record = AXIS_GRID.filled(
            **values,
            weights=latitudes.weights,
            divided_weights=latitudes.weights / sines,
            sines=sines,
            sums=aligned(4, values["rules"].width),
        )
        self._enter(record)


# S^2 -------------------------------------------------------------------------------------------


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


class SphereTransforms(Transforms):
    """Transforms of spherical harmonics: see `sphere_transport`."""

    components = 2
    compiled = (
        _values_on_sphere, _gradient_on_sphere, _analysis_on_sphere, _divergence_on_sphere
    )  # fmt: skip

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
        self._enter(record)
