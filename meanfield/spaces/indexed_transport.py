"""Transport of densities that are indexed: each moves in the field of those that act on it."""

import numpy as np

from ..lowlevel.callbacks import CompiledFunction, evaluate, float_array, integer_array
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.simd import aligned
from .contract import Transport


class IndexedTransport(Transport):
    """(mu_1, ..., mu_P) -> -div(mu_i v_i[sum_j C_ij mu_j]), for `members` such families.

    Parameters
    ----------
    inner : Transport
        Of pairs: the density that moves, and the measure that moves it. It knows the density of
        node i of a member by the number member P + i.
    influence : ndarray, (P, P)
        C.
    members : int
    """

    def __init__(self, inner: Transport, influence: np.ndarray, members: int):
        self._inner, count = inner, len(influence)
        modes = inner._shape[1]
        self.degree, self.points, self.dtype = inner.degree, inner.points, inner.dtype
        self.speed, self.time, self._shape = inner.speed, inner.time, (members, count * modes)
        self._of_pairs(False)
        size = modes * np.dtype(inner.dtype).itemsize // 8
        numbers = (count, size, inner.address, inner.context)
        buffers = [np.array(influence, order="C"), _ranges(influence), aligned(count, 2 * size)]
        self._enter(_transport, numbers, buffers)

    def check(self) -> None:
        self._inner.check()


def _ranges(influence: np.ndarray) -> np.ndarray:
    """The first and the last + 1 of the columns in each row that are not 0, (P, 2)."""
    acts = influence != 0
    some, columns = acts.any(axis=1), influence.shape[1]
    last = np.where(some, columns - acts[:, ::-1].argmax(axis=1), 0)
    return np.stack([np.where(some, acts.argmax(axis=1), 0), last], axis=1).astype(np.int64)


@CompiledFunction
def _transport(context, member, source, target):
    c = integer_array(context, (7,))
    count, size = c[0], c[1]
    density, influence = float_array(source, (count, size)), float_array(c[4], (count, count))
    ranges, pairs = integer_array(c[5], (count, 2)), float_array(c[6], (count, 2 * size))
    for i in range(count):
        own, acting = pairs[i, :size], pairs[i, size:]
        for k in range(size):
            own[k], acting[k] = density[i, k], 0.0
        for j in range(ranges[i, 0], ranges[i, 1]):
            _add(acting, influence[i, j], density[j])
        where = 16 * size * i
        evaluate(c[2], c[3], member * count + i, c[6] + where, target + where // 2)


@njit(**INNER)
def _add(total, factor, row):
    for k in range(total.size):
        total[k] += factor * row[k]
