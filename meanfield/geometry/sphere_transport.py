"""Transport of densities on S^2: -div(mu v) in spherical harmonics, compiled.

In the weak form, with functions that are smooth up to the poles,

    -int Y* div(mu grad g) = int mu (G sin(theta) d_theta Y* + H d_phi Y*) / sin(theta)^2,
    G = sin(theta) d_theta g,   H = d_phi g,

all is scalar: one synthesis of mu, two of the velocity's potential, which has few degrees, and
two analyses that share their Legendre functions. With modes up to `degree` in mu and `band` in
g the product is integrated exactly by (2 degree + band + 1)/2 latitudes and 2 degree + band + 1
longitudes. SA divides by Z * mu on the grid, with 3 degree + 1 longitudes.
"""

import numpy as np
from numba import cfunc, njit, types

from ..bits import as_bits, from_bits
from ..fourier import ColumnTransform, good_column_length
from ..legendre import analyse, recurrence, synthesise
from ..native import call, complex_array, float_array, integer_array
from .circle_transport import NO_MASS
from .latitudes import Latitudes

__all__ = ["SphereTransport", "band_of"]

NEGLIGIBLE = 2.0**-60
PAIRS = 8  # pairs of latitudes transformed at a time: a cache line of each sum


class SphereTransport:
    """mu -> -div(mu v[mu]) with v = grad (W * mu) / (Z * mu); see `Geometry.transport`.

    Coefficients are those of `Sphere`: orders 0, 1, ..., each from its lowest degree up.

    Attributes
    ----------
    latitudes : Latitudes
    length : int
        Number of longitudes.
    speed : ndarray, (1,)
        Largest |v| met since it was last set to 0.
    """

    def __init__(self, attraction: np.ndarray, normaliser: np.ndarray | None, members: int):
        degree, fields = attraction.shape[1] - 1, 3 if normaliser is None else 4
        band = band_of(attraction)
        points = 2 * degree + (band if normaliser is None else degree) + 1
        half = -(-points // (4 * PAIRS)) * PAIRS
        self.latitudes = Latitudes(half, degree + 1, degree)
        self.length = good_column_length(points)
        self._fft = ColumnTransform(self.length, PAIRS, fields)
        self.speed = np.zeros(1)
        self.error: BaseException | None = None
        series = np.zeros((4, self.latitudes.padded(0)))
        fixed = (degree, band, half, len(attraction), fields, self.length)
        buffers = self._arrays(attraction, normaliser, band)
        self._buffers = [*buffers, series, np.zeros((2, half)), self.speed]
        self._context = np.array(
            [
                *(*fixed, self.latitudes.a.size, series.shape[1]),
                *(*self._fft.inverse, self._fft.forward[1]),
                *(self._fft.spectrum.ctypes.data, self._fft.values.ctypes.data),
                *(array.ctypes.data for array in self._buffers),
            ],
            dtype=np.int64,
        )
        self.address, self.context = _transport.address, self._context.ctypes.data
        self._shape = (members, (degree + 1) * (degree + 2) // 2)

    def _arrays(self, attraction, normaliser, band) -> list[np.ndarray]:
        """Tables and scratch memory, in the order in which the compiled code knows them."""
        rules, degree = self.latitudes, attraction.shape[1] - 1
        half, fields = rules.x.size, 3 if normaliser is None else 4
        sines = np.sqrt(rules.sines_squared)
        return [
            *(rules.first, rules.offsets),
            np.array(attraction, dtype=float),
            np.zeros((1, 1)) if normaliser is None else np.array(normaliser, dtype=float),
            np.stack([recurrence(degree + 2, m, 3) for m in range(degree + 1)]),
            rules.x,
            rules.weights / (2 * self.length * sines),
            rules.start[: band + 1] / sines,
            *(rules.start, rules.a, rules.b),
            np.zeros((fields, degree + 1, 4, half)),
            np.zeros((degree + 1, 8, half)),
        ]

    def __call__(self, coefficients: np.ndarray) -> np.ndarray:
        """Coefficients of -div(mu v), (members, modes), for densities of that shape."""
        source = np.ascontiguousarray(coefficients, dtype=complex).reshape(self._shape)
        target = np.empty_like(source)
        for member in range(len(source)):
            addresses = source[member].ctypes.data, target[member].ctypes.data
            _transport_member(self.context, member, *addresses)
        return target


def band_of(attraction: np.ndarray) -> int:
    """The highest degree of the potential that counts."""
    size = np.abs(attraction).max(axis=0)
    size[0] = 0
    significant = np.flatnonzero(size > NEGLIGIBLE * size.max())
    return int(significant[-1]) if significant.size else 0


@njit(cache=True, error_model="numpy")
def _transport_member(context, member, source, target):
    c = integer_array(context, (29,))
    degree, band, half, tables, fields = c[0], c[1], c[2], c[3], c[4]
    modes = (degree + 1) * (degree + 2) // 2
    density, result = complex_array(source, (modes,)), complex_array(target, (modes,))
    first, offsets = integer_array(c[13], (degree + 1,)), integer_array(c[14], (degree + 2,))
    table = member if tables > 1 else 0
    attraction = float_array(c[15], (tables, degree + 1))[table]
    e = float_array(c[17], (degree + 1, degree + 3))
    x, weights = float_array(c[18], (half,)), float_array(c[19], (half,))
    short, start = float_array(c[20], (band + 1, half)), float_array(c[21], (degree + 1, half))
    a, b = float_array(c[22], (c[6],)), float_array(c[23], (c[6],))
    sums = float_array(c[24], (fields, degree + 1, 4, half))
    products = float_array(c[25], (degree + 1, 8, half))
    series, work = float_array(c[26], (4, c[7])), float_array(c[27], (2, half))
    rules, divided = (x, start, a, b, first, offsets, work), (x, short, a, b, first, offsets, work)

    begin = 0
    for m in range(degree + 1):
        mine = density[begin : begin + degree + 1 - m]
        _sum_density(mine, m, rules, series, sums[0, m])
        if m <= band:
            _sum_potential(mine, attraction, band, e[m], m, divided, series, sums[1, m], sums[2, m])
        if fields == 4:
            normaliser = float_array(c[16], (tables, degree + 1))[table]
            _sum_normaliser(mine, normaliser, m, rules, series, sums[3, m])
        begin += degree + 1 - m
    speed = _multiply(c, sums, weights, products)
    highest = float_array(c[28], (1,))
    highest[0] = max(highest[0], speed)
    begin = 0
    for m in range(degree + 1):
        _project(
            products[m], e[m], degree, m, rules, series, result[begin : begin + degree + 1 - m]
        )
        begin += degree + 1 - m


@njit(cache=True)
def _padded(count):
    return (count + 3) // 4 * 4


@njit(cache=True)
def _sum_order(m, count, rules, series, sums):
    """Sums over the first `count` degrees of order m, which are in `series`."""
    x, start, a, b, first, offsets, work = rules
    n, o = _padded(count), offsets[m]
    series[:2, count:n] = 0
    synthesise(first[m], x, start[m], a[o:], b[o:], series, n, sums, work)


@njit(cache=True)
def _sum_density(density, m, rules, series, sums):
    for i in range(density.size):
        series[0, i], series[1, i] = density[i].real, density[i].imag
    _sum_order(m, density.size, rules, series, sums)


@njit(cache=True)
def _sum_normaliser(density, normaliser, m, rules, series, sums):
    for i in range(density.size):
        z = normaliser[m + i] * density[i]
        series[0, i], series[1, i] = z.real, z.imag
    _sum_order(m, density.size, rules, series, sums)


@njit(cache=True)
def _sum_potential(density, attraction, band, e, m, rules, series, slope, turn):
    """G = sin(theta) d_theta g and H = d_phi g for the potential g = W * mu, of one order."""
    count = band + 1 - m
    series[:2, : count + 1] = 0
    for i in range(count):
        l = m + i
        g = attraction[l] * density[i]
        up, down = l * e[l + 1], (l + 1) * e[l]
        series[0, i + 1] += up * g.real
        series[1, i + 1] += up * g.imag
        if i > 0:
            series[0, i - 1] -= down * g.real
            series[1, i - 1] -= down * g.imag
    _sum_order(m, count + 1, rules, series, slope)
    for i in range(count):
        g = attraction[m + i] * density[i]
        series[0, i], series[1, i] = -m * g.imag, m * g.real
    _sum_order(m, count, rules, series, turn)


@njit(cache=True, error_model="numpy")
def _multiply(c, sums, weights, products):
    """mu v on every pair of latitudes, with quadrature weights; returns the largest |v|.

    The values at x and -x are the real and the imaginary part of one complex function.
    """
    degree, band, half, fields, length = c[0], c[1], c[2], c[4], c[5]
    spectra = float_array(c[11], (fields, length, 2 * PAIRS))
    fluxes = float_array(c[12], (fields, length, 2 * PAIRS))
    values = float_array(c[12], (fields, length * 2 * PAIRS))
    spectra_at, values_at, size = c[11], c[12], 8 * length * 2 * PAIRS
    largest = 0.0
    for j in range(0, half, PAIRS):
        for f in range(fields):
            last = band if f == 1 or f == 2 else degree
            _join(sums[f], last, j, spectra[f])
            call(c[8], c[9], spectra_at + f * size, values_at + f * size)
        if fields == 4:
            _divide(values[1], values[2], values[3])
        largest = max(largest, _flux(values[0], values[1], values[2]))
        for f in range(2):  # of mu v, the spectrum of each component to where a field was
            call(c[8], c[10], values_at + (f + 1) * size, values_at + f * size)
            _part(fluxes[f], f, degree, j, weights, products)
    return min(np.sqrt(largest), 1.0) if fields == 4 else np.sqrt(largest)


@njit(cache=True)
def _join(sums, last, j, spectrum):
    """The spectra of f(x) + i f(-x) at PAIRS pairs of latitudes, from the even and odd sums."""
    for m in range(last, -1, -1):
        back = len(spectrum) - m if m > 0 else 0
        for i in range(PAIRS):
            even_re, even_im = sums[m, 0, j + i], sums[m, 1, j + i]
            odd_re, odd_im = sums[m, 2, j + i], sums[m, 3, j + i]
            p, q, r, s = even_re + odd_re, even_im - odd_im, even_im + odd_im, even_re - odd_re
            spectrum[back, 2 * i], spectrum[back, 2 * i + 1] = p + q, s - r
            spectrum[m, 2 * i], spectrum[m, 2 * i + 1] = p - q, s + r


@njit(cache=True)
def _part(spectrum, f, degree, j, weights, products):
    """The inverse of `_join`: twice the even and odd sums, with weights."""
    for m in range(degree + 1):
        back = len(spectrum) - m if m > 0 else 0
        for i in range(PAIRS):
            re, im = spectrum[m, 2 * i], spectrum[m, 2 * i + 1]
            back_re, back_im = spectrum[back, 2 * i], spectrum[back, 2 * i + 1]
            p, q, r, s = re + back_re, im - back_im, im + back_im, back_re - re
            weight = weights[j + i]
            products[m, 2 * f, j + i] = weight * (p + r)
            products[m, 2 * f + 1, j + i] = weight * (q + s)
            products[m, 4 + 2 * f, j + i] = weight * (p - r)
            products[m, 5 + 2 * f, j + i] = weight * (q - s)


@njit(cache=True, error_model="numpy")
def _divide(slope, turn, normaliser):
    for i in range(slope.size):
        z = max(normaliser[i], NO_MASS)
        slope[i] /= z
        turn[i] /= z


@njit(cache=True)
def _flux(density, slope, turn):
    """mu v in the place of the components of v; returns the largest |v|^2."""
    largest = 0
    for i in range(density.size):
        largest = max(largest, as_bits(slope[i] * slope[i] + turn[i] * turn[i]))
        slope[i] *= density[i]
        turn[i] *= density[i]
    return from_bits(largest)


@njit(cache=True)
def _project(products, e, degree, m, rules, series, result):
    """Coefficients of -div(mu v) of one order."""
    x, start, a, b, first, offsets, work = rules
    n, o = _padded(degree + 2 - m), offsets[m]
    analyse(first[m], x, start[m], a[o:], b[o:], products, series, n, work)
    for i in range(degree + 1 - m):
        l = m + i
        up, down = l * e[l + 1], (l + 1) * e[l]
        re = up * series[0, i + 1] + m * series[3, i]
        im = up * series[1, i + 1] - m * series[2, i]
        if i > 0:
            re -= down * series[0, i - 1]
            im -= down * series[1, i - 1]
        result[i] = complex(re, im)


@cfunc(types.void(*[types.int64] * 4), cache=True)
def _transport(context, member, source, target):
    _transport_member(context, member, source, target)
