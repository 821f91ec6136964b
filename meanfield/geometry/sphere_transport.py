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
from ..columns import ROW, good_length, radices, read_row, transform, twiddles, write_row
from ..lanes import LANES, load, store
from ..legendre import analyse, fold, recurrence, synthesise, unfold
from ..native import complex_array, float_array, integer_array
from .circle_transport import NO_MASS
from .latitudes import Latitudes, aligned, aligned_copy

__all__ = ["SphereTransport", "band_of"]

NEGLIGIBLE = 2.0**-60
PAIRS = LANES  # pairs of latitudes transformed at a time: a cache line of each sum


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
        self.length = good_length(points)
        self.speed = np.zeros(1)
        self.error: BaseException | None = None
        self._buffers = self._arrays(attraction, normaliser, band)
        fixed = (degree, band, half, len(attraction), fields, self.length)
        sizes = [self.latitudes.ladder.shape[1], self.latitudes.pairs(0)]
        sizes += [array.size for array in self._buffers[-2:]]
        addresses = (array.ctypes.data for array in self._buffers)
        self._context = np.array([*fixed, *sizes, *addresses], dtype=np.int64)
        self.address, self.context = _transport.address, self._context.ctypes.data
        self._shape = (members, (degree + 1) * (degree + 2) // 2)

    def _arrays(self, attraction, normaliser, band) -> list[np.ndarray]:
        """Tables and scratch memory, in the order in which the compiled code knows them.

        Sums over degrees are rows of (order, 8, latitudes): those of mu and of Z * mu, where
        the products come later; those of the two components of v sin(theta) / sin(theta).
        """
        latitudes, degree = self.latitudes, attraction.shape[1] - 1
        half, sines = latitudes.x.size, np.sqrt(latitudes.sines_squared)
        weights = latitudes.weights / (2 * self.length * sines)
        pairs, fields = latitudes.pairs(0), 3 if normaliser is None else 4
        factors = radices(self.length)
        return [
            *(aligned(fields, self.length, 2, PAIRS) for _ in range(2)),
            aligned(self.length, 2, PAIRS),
            np.array(attraction, dtype=float),
            np.zeros((1, 1)) if normaliser is None else np.array(normaliser, dtype=float),
            np.stack([recurrence(degree + 2, m, 3) for m in range(degree + 1)]),
            aligned_copy(latitudes.x),
            aligned_copy(np.stack([weights, weights * latitudes.x])),
            aligned_copy(latitudes.start[: band + 1] / sines),
            *latitudes.rules(),
            *(aligned(degree + 1, 8, half), aligned(band + 1, 8, half)),
            *(aligned(8, pairs), np.zeros((2, 2 * pairs), dtype=complex), self.speed),
            *(np.array(factors), twiddles(factors)),
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
    c = integer_array(context, (32,))
    degree, band, half, tables, fields, pairs = c[0], c[1], c[2], c[3], c[4], c[7]
    modes = (degree + 1) * (degree + 2) // 2
    density, result = complex_array(source, (modes,)), complex_array(target, (modes,))
    table = member if tables > 1 else 0
    attraction = float_array(c[13], (tables, degree + 1))[table]
    e = float_array(c[15], (degree + 1, degree + 3))
    squares, start = float_array(c[19], (half,)), float_array(c[20], (degree + 1, half))
    ladder, first = float_array(c[21], (5, c[6])), integer_array(c[22], (degree + 1,))
    rungs, work = integer_array(c[23], (degree + 2,)), float_array(c[24], (2, half))
    rules = squares, start, ladder, first, rungs, work
    divided = squares, float_array(c[18], (band + 1, half)), ladder, first, rungs, work
    sums = float_array(c[25], (degree + 1, 8, half))
    slopes = float_array(c[26], (band + 1, 8, half))
    folded, series = float_array(c[27], (8, pairs)), complex_array(c[28], (2, 2 * pairs))

    begin = 0
    for m in range(degree + 1):
        mine = density[begin : begin + degree + 1 - m]
        synthesise(m, rules, folded, fold(m, rules, mine, folded), sums[m, :4])
        if m <= band:
            _sum_potential(mine, attraction, band, e[m], m, divided, series[0], folded, slopes[m])
        if fields == 4:
            normaliser = float_array(c[14], (tables, degree + 1))[table]
            _sum_normaliser(mine, normaliser, m, rules, series[0], folded, sums[m, 4:])
        begin += degree + 1 - m
    speed = _multiply(c)
    highest = float_array(c[29], (1,))
    highest[0] = max(highest[0], speed)
    begin = 0
    for m in range(degree + 1):
        mine = result[begin : begin + degree + 1 - m]
        _project(sums[m], e[m], degree, m, rules, folded, series, mine)
        begin += degree + 1 - m


@njit(cache=True)
def _sum_normaliser(density, normaliser, m, rules, series, folded, sums):
    for i in range(density.size):
        z = density[i]
        series[i] = complex(normaliser[m + i] * z.real, normaliser[m + i] * z.imag)
    n = fold(m, rules, series[: density.size], folded)
    synthesise(m, rules, folded, n, sums)


@njit(cache=True)
def _sum_potential(density, attraction, band, e, m, rules, series, folded, sums):
    """G = sin(theta) d_theta g and H = d_phi g for the potential g = W * mu, of one order."""
    count = band + 1 - m
    series[: count + 1] = 0
    for i in range(count):
        l = m + i
        re, im = attraction[l] * density[i].real, attraction[l] * density[i].imag
        up, down = l * e[l + 1], (l + 1) * e[l]
        series[i + 1] += complex(up * re, up * im)
        if i > 0:
            series[i - 1] -= complex(down * re, down * im)
    n = fold(m, rules, series[: count + 1], folded)
    synthesise(m, rules, folded, n, sums[:4])
    for i in range(count):
        factor = m * attraction[m + i]
        series[i] = complex(-factor * density[i].imag, factor * density[i].real)
    synthesise(m, rules, folded, fold(m, rules, series[:count], folded), sums[4:])


@njit(cache=True, error_model="numpy")
def _multiply(c):
    """mu v on every pair of latitudes, with quadrature weights; returns the largest |v|.

    The values at x and -x are the real and the imaginary part of one complex function.
    """
    degree, band, half, fields, length = c[0], c[1], c[2], c[4], c[5]
    spectra, values_at, scratch, x, weights = c[10], c[11], c[12], c[16], c[17]
    sums, slopes, first = c[25], c[26], integer_array(c[22], (degree + 1,))
    factors, table = integer_array(c[30], (c[8],)), float_array(c[31], (c[9],))
    size, largest = length * ROW, 0.0
    values = float_array(values_at, (fields, size // 8))
    count = 0
    for j in range(0, half, PAIRS):
        while count <= degree and first[count] <= j:
            count += 1  # orders that do not pass over these latitudes
        _join(sums, count, degree, j, half, x, length, spectra)
        _join(slopes, min(count, band + 1), band, j, half, x, length, spectra + size)
        _join(
            slopes + 32 * half, min(count, band + 1), band, j, half, x, length, spectra + 2 * size
        )
        if fields == 4:
            _join(sums + 32 * half, count, degree, j, half, x, length, spectra + 3 * size)
        for f in range(fields):
            transform(spectra + f * size, values_at + f * size, scratch, factors, table)
        if fields == 4:
            _divide(values[1], values[2], values[3])
        largest = max(largest, _flux(values[0], values[1], values[2]))
        for f in range(2):  # of mu v, the spectrum of each component to where a field was
            target = values_at + f * size
            transform(target + size, target, scratch, factors, table)
            _part(target, length, count, j, half, weights, sums + 16 * half * f)
    return min(np.sqrt(largest), 1.0) if fields == 4 else np.sqrt(largest)


@njit(cache=True)
def _join(sums, count, last, j, half, x, length, spectrum):
    """The spectra of f(x) + i f(-x) at PAIRS pairs of latitudes, from the sums E and O.

    Orders from `count` to the last one are 0. All arrays by their addresses: rows of sums lie
    8 * half bytes apart, orders 8 rows.
    """
    step, z = 8 * half, load(x + 8 * j)
    nothing = z - z
    for m in range(count, last + 1):
        write_row(spectrum + m * ROW, nothing, nothing)
        write_row(spectrum + (length - m) * ROW, nothing, nothing)
    for m in range(count - 1, -1, -1):
        at, back = sums + (8 * m * half + j) * 8, length - m if m > 0 else 0
        even_re, even_im = load(at), load(at + step)
        odd_re, odd_im = z * load(at + 2 * step), z * load(at + 3 * step)
        p, q, r, s = even_re + odd_re, even_im - odd_im, even_im + odd_im, even_re - odd_re
        write_row(spectrum + back * ROW, p + q, s - r)
        write_row(spectrum + m * ROW, p - q, s + r)


@njit(cache=True)
def _part(spectrum, length, count, j, half, weights, products):
    """f(x) + f(-x) and x (f(x) - f(-x)) with weights, from the spectra of f(x) + i f(-x).

    The transform was that to values: order m is at n - m.
    """
    step, even, odd = 8 * half, load(weights + 8 * j), load(weights + 8 * half + 8 * j)
    for m in range(count):
        at, back = products + (8 * m * half + j) * 8, length - m if m > 0 else 0
        re, im = read_row(spectrum + back * ROW)
        back_re, back_im = read_row(spectrum + m * ROW)
        p, q, r, s = re + back_re, im - back_im, im + back_im, back_re - re
        store(at, even * (p + r))
        store(at + step, even * (q + s))
        store(at + 4 * step, odd * (p - r))
        store(at + 5 * step, odd * (q - s))


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
def _project(products, e, degree, m, rules, folded, series, result):
    """Coefficients of -div(mu v) of one order."""
    pairs = (degree + 3 - m) // 2
    analyse(m, rules, products, folded, (pairs + 1) // 2 * 2)
    unfold(m, rules, folded, series[:, : 2 * pairs])
    for i in range(degree + 1 - m):
        l = m + i
        up, above, turned = l * e[l + 1], series[0, i + 1], series[1, i]
        re, im = up * above.real + m * turned.imag, up * above.imag - m * turned.real
        if i > 0:
            down, below = (l + 1) * e[l], series[0, i - 1]
            re, im = re - down * below.real, im - down * below.imag
        result[i] = complex(re, im)


@cfunc(types.void(*[types.int64] * 4), cache=True)
def _transport(context, member, source, target):
    _transport_member(context, member, source, target)
