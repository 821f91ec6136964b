"""Gauss latitudes of S^(d-1) with all that sums over degrees and latitudes need, per order.

On S^2 a function is sum_m f_m(x) e^{im phi}, x = cos(polar angle); axisymmetric functions on
S^(d-1) have the order m = 0 only.
"""

from functools import cached_property

import numpy as np
from numba import njit

from ..lowlevel import legendre
from ..lowlevel.legendre import BLOCK
from ..lowlevel.simd import LANES, aligned
from .contract import read_only

__all__ = ["Latitudes", "aligned_copy"]

NEGLIGIBLE = 2.0**-60


class Latitudes:
    """2 * `half` Gauss latitudes, exact to degree 4 * half - 1, and recurrences to a degree.

    Parameters
    ----------
    half : int
        Number of latitudes with x > 0.
    degree : int
        Highest degree of the sums, over l = m, ..., `degree`.
    orders : int
        Highest order m; 0 for axisymmetric functions.
    dimension : int
        d, which is 3 where orders > 0.

    Attributes
    ----------
    x, weights : ndarray, (half,)
        Nodes in (0, 1), from the pole to the equator; their weights, of sum 1/2.
    start : ndarray, (orders + 1, half)
        p_m of every order m.
    first : ndarray of int, (orders + 1,)
        Latitudes before this one, near the pole, are passed over: all p_l of the order are
        below 2^-60 there. It is a multiple of 8 and does not fall with the order.
    offsets : ndarray of int, (orders + 2,)
        Where the recurrence of an order begins in `a` and `b`, one longer than its degrees.
    a, b : ndarray
        p_{l+1} = a x p_l - b p_{l-1}.
    """

    def __init__(self, half: int, degree: int, orders: int = 0, dimension: int = 3):
        nodes, weights = legendre.gauss(2 * half, dimension)
        self.degree, self.orders, self.dimension = degree, orders, dimension
        self.x, self.weights = read_only(nodes[:half].copy()), read_only(weights[:half].copy())
        sizes = [degree - m + 2 for m in range(orders + 1)]
        self.offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.a, self.b = np.zeros(self.offsets[-1]), np.zeros(self.offsets[-1])
        for m in range(orders + 1):
            e = legendre.recurrence(degree + 1, m, dimension)[m:]
            count, begin = degree - m + 1, self.offsets[m]
            self.a[begin : begin + count] = 1 / e[1:]
            self.b[begin : begin + count] = e[:-1] / e[1:]
            self.a[begin + count - 1] = self.b[begin + count - 1] = 0  # nothing beyond the degree
        sine = np.sqrt((1 - self.x) * (1 + self.x))
        order = np.arange(1, orders + 1)[:, None]
        steps = np.vstack([np.ones_like(sine), np.sqrt((2 * order + 1) / (2 * order)) * sine])
        self.start = aligned_copy(np.cumprod(steps, axis=0))
        first = np.array([self._first(m) for m in range(orders + 1)], dtype=np.int64)
        self.first = np.minimum.accumulate(first[::-1])[::-1].copy()

    def pairs(self, order: int) -> int:
        """Number of pairs of degrees of an order, rounded up to a multiple of BLOCK."""
        return -(-(self.degree - order + 1) // (2 * BLOCK)) * BLOCK

    @cached_property
    def rungs(self) -> np.ndarray:
        """Where an order begins in `ladder`, (orders + 2,)."""
        sizes = [self.pairs(m) for m in range(self.orders + 1)]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @cached_property
    def ladder(self) -> np.ndarray:
        """The recurrence in steps of two degrees, (5, n): see `legendre.ladder`."""
        table = aligned(5, self.rungs[-1])
        for m in range(self.orders + 1):
            pairs = self.pairs(m)
            e = legendre.recurrence(m + 2 * pairs + 4, m, self.dimension)[m:]
            table[:, self.rungs[m] : self.rungs[m + 1]] = legendre.ladder(e, pairs)
        return table

    def rules(self) -> tuple[np.ndarray, ...]:
        """What `synthesise` and `analyse` need, with scratch memory that is not shared.

        Latitudes are as many as a multiple of LANES; p_m is 0 on those that are added.
        """
        half = self.x.size
        width = -(-half // LANES) * LANES
        squares, start, work = aligned(width), self.start, aligned(2, width)
        squares[:half] = self.x**2
        if width > half:
            start = aligned(self.orders + 1, width)
            start[:, :half] = self.start
        return squares, start, self.ladder, self.first, self.rungs, work

    @cached_property
    def sines_squared(self) -> np.ndarray:
        """1 - x^2, (half,)."""
        return (1 - self.x) * (1 + self.x)

    def _first(self, order: int) -> int:
        if order == 0:
            return 0
        begin, count = self.offsets[order], self.degree - order + 1
        largest = _largest(self.x, self.start[order], self.a[begin:], self.b[begin:], count)
        seen = np.flatnonzero(largest > NEGLIGIBLE)
        return int(seen[0]) // LANES * LANES if seen.size else -(-self.x.size // LANES) * LANES


def aligned_copy(array: np.ndarray) -> np.ndarray:
    """The same array of floats, with memory as in `aligned`."""
    copy = aligned(*array.shape)
    copy[...] = array
    return copy


@njit(cache=True)
def _largest(x, start, a, b, count):
    """The largest |p_l| over the degrees, at every latitude."""
    largest = np.empty(x.size)
    for j in range(x.size):
        before, p, size = 0.0, start[j], abs(start[j])
        for i in range(count - 1):
            before, p = p, a[i] * x[j] * p - b[i] * before
            size = max(size, abs(p))
        largest[j] = size
    return largest
