"""The transport of indexed densities, linearised, and the transpose of that: compiled.

With a_i = sum_j C_ij mu_j and N_i = N(mu_i, a_i) of the pair of a slice and what acts on it,

    DN_i h = D_1 N(mu_i, a_i) h_i + D_2 N(mu_i, a_i) sum_j C_ij h_j,
    (DN* l)_j = D_1 N(mu_j, a_j)* l_j + sum_i (w_i C_ij/w_j) D_2 N(mu_i, a_i)* l_i

in the inner product sum_i w_i <l_i, h_i> of the product space, with the weights w of the nodes.
"""

from collections.abc import Sequence

import numpy as np

from ..lowlevel.callbacks import CompiledFunction, evaluate, float_array, integer_array
from ..lowlevel.simd import address_of, aligned
from .contract import Transport
from .indexed_transport import _add


class _Linearised(Transport):
    """What both directions share.

    Parameters
    ----------
    inner : sequence of Transport
        Of pairs, linearised or transposed: that of each node, or one for all.
    size : int
        Floats of the coefficients of a slice.
    """

    def __init__(self, inner: Sequence[Transport], size: int):
        self._inner, self._size, self.time = list(inner), size, np.zeros(1)
        called = [(one.address, one.context) for one in self._inner]
        self._called = np.array(called, dtype=np.int64)

    def check(self) -> None:
        for one in self._inner:
            one.check()


class IndexedTangents(_Linearised):
    """(u, h_1, ..., h_p) -> (N(u), DN(u) h_1 + dN/dp_1, ...), for compiled code: see `Transport`.

    Parameters
    ----------
    inner, size : see `_Linearised`
    influence : ndarray, (P, P)
        C.
    rows : int
        1 + p.
    """

    def __init__(self, inner: Sequence[Transport], size: int, influence: np.ndarray, rows: int):
        super().__init__(inner, size)
        numbers = len(influence), size, len(self._inner), rows
        scratch = aligned(rows, 2 * size), aligned(rows, size)
        C = np.array(influence, order="C")
        self._enter(_tangents, numbers, (self._called, C, *scratch))


class IndexedAdjoint(_Linearised):
    """(u, l) -> (DN(u)* l, <l, dN/dp_1>, ...), for compiled code: see `Transport`.

    Parameters
    ----------
    inner, size, influence : see `IndexedTangents`
    weights : ndarray, (P,)
        w.
    parameters : int
    """

    def __init__(
        self,
        inner: Sequence[Transport],
        size: int,
        influence: np.ndarray,
        weights: np.ndarray,
        parameters: int,
    ):
        super().__init__(inner, size)
        numbers = len(influence), size, len(self._inner), parameters
        C, back = np.array(influence, order="C"), weights[:, None] * influence / weights
        w = np.array(weights)
        scratch = np.zeros(3 * size), np.zeros(2 * size + parameters)
        self._enter(_adjoint, numbers, (self._called, C, back, w, *scratch))


@CompiledFunction
def _tangents(context, member, source, target):
    c = integer_array(context, (8,))
    count, size, inner, rows = c[0], c[1], c[2], c[3]
    given, found = (
        float_array(source, (rows, count, size)),
        float_array(target, (rows, count, size)),
    )
    called, C = integer_array(c[4], (inner, 2)), float_array(c[5], (count, count))
    pairs, change = float_array(c[6], (rows, 2, size)), float_array(c[7], (rows, size))
    for i in range(count):
        for row in range(rows):
            pairs[row, 0] = given[row, i]
            pairs[row, 1] = 0.0
            for j in range(count):
                if C[i, j] != 0.0:
                    _add(pairs[row, 1], C[i, j], given[row, j])
        own = called[i if inner > 1 else 0]
        evaluate(own[0], own[1], i, address_of(pairs), address_of(change))
        for row in range(rows):
            found[row, i] = change[row]


@CompiledFunction
def _adjoint(context, member, source, target):
    c = integer_array(context, (10,))
    count, size, inner, parameters = c[0], c[1], c[2], c[3]
    given = float_array(source, (2, count, size))
    found = float_array(target, (count, size))
    numbers = float_array(target, (count * size + parameters,))[count * size :]
    called, C = integer_array(c[4], (inner, 2)), float_array(c[5], (count, count))
    back, w = float_array(c[6], (count, count)), float_array(c[7], (count,))
    triple, pulled = float_array(c[8], (3, size)), float_array(c[9], (2 * size + parameters,))
    found[:] = 0.0
    numbers[:] = 0.0
    for i in range(count):
        triple[0], triple[1], triple[2] = given[0, i], 0.0, given[1, i]
        for j in range(count):
            if C[i, j] != 0.0:
                _add(triple[1], C[i, j], given[0, j])
        own = called[i if inner > 1 else 0]
        evaluate(own[0], own[1], i, address_of(triple), address_of(pulled))
        _add(found[i], 1.0, pulled[:size])
        for j in range(count):
            if C[i, j] != 0.0:
                _add(found[j], back[i, j], pulled[size : 2 * size])
        for p in range(parameters):
            numbers[p] += w[i] * pulled[2 * size + p]
