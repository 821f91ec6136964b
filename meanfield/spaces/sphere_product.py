"""mu v on the grid of S^2, from sums over degrees to sums over longitudes, compiled.

Eight pairs of latitudes x and -x at a time go from their sums to spectra, by FFTs to values,
and with the products back, so that all that happens in between stays in the cache.
"""

import numpy as np
from numba import njit

from ..lowlevel.batched_fft import ROW, read_row, transform, write_row
from ..lowlevel.callbacks import float_array
from ..lowlevel.compilation import INNER
from ..lowlevel.floating_point import as_bits, from_bits
from ..lowlevel.simd import LANES, load, spread, store
from .circle_transport import NO_MASS

__all__ = ["PAIRS", "multiply"]

PAIRS = LANES  # pairs of latitudes taken at a time: a cache line of each sum


@njit(**INNER, error_model="numpy")
def multiply(shape, addresses, first, factors, table):
    """mu v on every pair of latitudes, with quadrature weights; returns the largest |v|.

    The values at x and -x are the real and the imaginary part of one complex function.

    Parameters
    ----------
    shape : (degree, band, half, fields, length)
    addresses : spectra and values, (fields, length, 2, PAIRS); scratch for one of them; x and
        weights, (2, half); the sums of mu and of Z * mu, (degree + 1, 8, half), where the products
        are written; those of v, (band + 1, 8, half)
    first : latitudes before this one are passed over, (degree + 1,)
    factors, table : of the transforms, see `batched_fft`
    """
    degree, band, half, fields, length = shape
    spectra, values_at, scratch, x, weights, sums, slopes = addresses
    size, largest = length * ROW, 0.0
    values = float_array(values_at, (fields, size // 8))
    count = 0
    for j in range(0, half, PAIRS):
        while count <= degree and first[count] <= j:
            count += 1  # orders that do not pass over these latitudes
        _join(sums, count, degree, j, half, x, length, spectra)
        few = min(count, band + 1)
        _join(slopes, few, band, j, half, x, length, spectra + size)
        _join(slopes + 32 * half, few, band, j, half, x, length, spectra + 2 * size)
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


@njit(**INNER)
def _join(sums, count, last, j, half, x, length, spectrum):
    """The spectra of f(x) + i f(-x) at PAIRS pairs of latitudes, from the sums E and O.

    Orders from `count` to the last one are 0. All arrays by their addresses: rows of sums lie
    8 * half bytes apart, orders 8 rows.
    """
    step, z = 8 * half, load(x + 8 * j)
    nothing = spread(0.0)
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


@njit(**INNER)
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


@njit(**INNER, error_model="numpy")
def _divide(slope, turn, normaliser):
    for i in range(slope.size):
        z = max(normaliser[i], NO_MASS)
        slope[i] /= z
        turn[i] /= z


@njit(**INNER)
def _flux(density, slope, turn):
    """mu v in the place of the components of v; returns the largest |v|^2."""
    largest = 0
    for i in range(density.size):
        largest = max(largest, as_bits(slope[i] * slope[i] + turn[i] * turn[i]))
        slope[i] *= density[i]
        turn[i] *= density[i]
    return from_bits(largest)
