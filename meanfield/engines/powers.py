"""Fourier modes of points on the circle, by powers of z = x + i y: no trigonometric functions."""

import numpy as np
from numba import njit

__all__ = ["PART", "moments_of", "parts_of", "velocities_of"]

BLOCK = 256
PART = 131072  # tokens; a multiple of BLOCK
IN_ANY_ORDER = {"contract", "reassoc", "nsz"}


@njit(cache=True, nogil=True)
def parts_of(x):
    """Into how many parts a system of x (R, n, d) is cut: sums of parts have a fixed order."""
    return -(-x.shape[1] // PART)


@njit(cache=True, nogil=True)
def moments_of(x, masses, moments, first, last):
    """Fill some of the moments (R, parts, K + 1): sum_j m_j z_j^-k over PART tokens each.

    Parts are numbered through all systems; `first`, ..., `last` - 1 are done.
    """
    parts = moments.shape[1]
    real, imaginary = np.empty(BLOCK), np.empty(BLOCK)
    re, im = np.empty(BLOCK), np.empty(BLOCK)
    for task in range(first, last):
        r, part = task // parts, task % parts
        total = moments[r, part]
        total[:] = 0
        for begin in range(part * PART, min(x.shape[1], (part + 1) * PART), BLOCK):
            size = _directions(x[r], begin, real, imaginary)
            re[:size], im[:size] = masses[r, begin : begin + size], 0.0
            _add_moments(real[:size], imaginary[:size], re[:size], im[:size], total)


@njit(cache=True, nogil=True)
def velocities_of(x, slopes, levels, velocity, level, first, last):
    """Fill velocities (R, n, 2) and levels (R, n) of some parts.

    The level is Re sum levels_k z^k, or 1 if `levels` is empty, and the velocity that of
    `slopes` (R, K + 1) divided by it, along the tangent i z.
    """
    parts = parts_of(x)
    real, imaginary = np.empty(BLOCK), np.empty(BLOCK)
    re, im, speed = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for task in range(first, last):
        r, part = task // parts, task % parts
        for begin in range(part * PART, min(x.shape[1], (part + 1) * PART), BLOCK):
            size = _directions(x[r], begin, real, imaginary)
            _real_parts(real[:size], imaginary[:size], slopes[r], re[:size], im[:size])
            speed[:size] = re[:size]
            if levels.size > 0:
                _real_parts(real[:size], imaginary[:size], levels[r], re[:size], im[:size])
                level[r, begin : begin + size] = re[:size]
                _divide(speed[:size], re[:size])
            for i in range(size):
                velocity[r, begin + i, 0] = -speed[i] * imaginary[i]
                velocity[r, begin + i, 1] = speed[i] * real[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _directions(x, begin, real, imaginary):
    """Write z of the tokens of one block, and say how many they are."""
    size = min(BLOCK, len(x) - begin)
    for i in range(size):
        a, b = x[begin + i, 0], x[begin + i, 1]
        inverse = 1.0 / np.sqrt(a * a + b * b)
        real[i], imaginary[i] = a * inverse, b * inverse
    return size


@njit(cache=True, nogil=True, error_model="numpy")
def _divide(numbers, divisors):
    for i in range(numbers.size):
        numbers[i] /= divisors[i]


@njit(cache=True, nogil=True, fastmath=IN_ANY_ORDER)
def _add_moments(real, imaginary, re, im, total):
    for k in range(total.size):
        cosines, sines = 0.0, 0.0
        for i in range(real.size):
            cosines += re[i]
            sines += im[i]
            re[i], im[i] = (
                re[i] * real[i] - im[i] * imaginary[i],
                re[i] * imaginary[i] + im[i] * real[i],
            )
        total[k] += complex(cosines, -sines)


@njit(cache=True, nogil=True, fastmath=IN_ANY_ORDER)
def _real_parts(real, imaginary, series, re, im):
    """re = Re sum_k series_k z^k, by Horner's rule."""
    re[:], im[:] = series[-1].real, series[-1].imag
    for k in range(series.size - 2, -1, -1):
        c = series[k]
        for i in range(real.size):
            re[i], im[i] = (
                c.real + re[i] * real[i] - im[i] * imaginary[i],
                c.imag + re[i] * imaginary[i] + im[i] * real[i],
            )
