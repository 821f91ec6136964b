"""Transport of indexed densities, its derivative, and the transpose of that: compiled.

The slice mu_i, the density at node i, is moved by the measure a_i = sum_j C_ij mu_j. With
N_i = N(mu_i, a_i), the transport of pairs of a slice and a measure,

    DN_i h = D_1 N(mu_i, a_i) h_i + D_2 N(mu_i, a_i) sum_j C_ij h_j,
    (DN* l)_j = D_1 N(mu_j, a_j)* l_j + sum_i (w_i C_ij/w_j) D_2 N(mu_i, a_i)* l_i

in the inner product sum_i w_i <l_i, h_i> of the product space, with the weights w of the nodes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..lowlevel.callbacks import CompiledFunction, evaluate, float_array
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.records import Field, Layout, floats, integers
from ..lowlevel.simd import address_of, aligned
from .transport import Transport


class IndexedTransport(Transport):
    """(u, h_1, ..., h_p) -> (N(u), DN(u) h_1 + dN/dp_1, ...) of families of P slices.

    Parameters
    ----------
    inner : sequence of Transport
        Map of pairs, a slice and the measure that moves it, for each node, or one for all nodes. It
        is called with the number member P + i for node i of a member.
    size : int
        Number of floats of the coefficients of a slice.
    influence : ndarray, (P, P)
        Matrix C.
    members : int
        Number of families of P densities.
    rows : int
        1 + p.
    """

    def __init__(
        self, inner: Sequence[Transport], size: int, influence: np.ndarray, members: int = 1,
        rows: int = 1,
    ) -> None:  # fmt: skip
        self._inner, first = list(inner), inner[0]
        self.degree, self.points, self.dtype = first.degree, first.points, np.dtype(first.dtype)
        self.speed, self.time = first.speed, first.time
        self._shape = members, len(influence) * 8 * size // self.dtype.itemsize
        self._of_pairs(False)
        evaluators = [(transport.address, transport.context) for transport in self._inner]
        self._shared: dict[str, Any] = {
            "size": size,
            "called": np.array(evaluators, dtype=np.int64),
            "influence": np.array(influence, order="C"),
        }
        self._fill(rows)

    def _fill(self, rows: int) -> None:
        influence, size = self._shared["influence"], self._shared["size"]
        pairs, change = aligned(rows, 2, size), aligned(rows, size)
        work = {"ranges": _ranges(influence), "pairs": pairs, "change": change}
        self._enter(_tangents, NODE_TANGENTS.filled(**self._shared, **work))

    def check(self) -> None:
        for transport in self._inner:
            transport.check()


class IndexedAdjoint(IndexedTransport):
    """(u, l) -> (DN(u)* l, <l, dN/dp_1>, ...), for compiled code: see `Transport`.

    Parameters
    ----------
    inner, size, influence : see `IndexedTransport`
    weights : ndarray, (P,)
        Weights w of the nodes.
    parameters : int
        Number of parameters p_i.
    """

    def __init__(
        self, inner: Sequence[Transport], size: int, influence: np.ndarray, weights: np.ndarray,
        parameters: int,
    ) -> None:  # fmt: skip
        self._weights, self._parameters = weights, parameters
        super().__init__(inner, size, influence)

    def _fill(self, rows: int) -> None:
        """Enter the record of `_adjoint`; back_ij = w_i C_ij / w_j is the influence seen from j."""
        influence, size, w = self._shared["influence"], self._shared["size"], self._weights
        record = NODE_ADJOINT.filled(
            **self._shared,
            parameters=self._parameters,
            back=w[:, None] * influence / w,
            weights=np.array(w),
            triple=np.zeros((3, size)),
            pulled=np.zeros(2 * size + self._parameters),
        )
        self._enter(_adjoint, record)


NODE_FIELDS: dict[str, Field] = {
    "size": int,
    "called": integers("inner", 2),
    "influence": floats("count", "count"),
}
NODE_TANGENTS = Layout(
    "IndexedTangents",
    {
        **NODE_FIELDS,
        "ranges": integers("count", 2),  # see `_ranges`
        "pairs": floats("rows", 2, "size"),
        "change": floats("rows", "size"),
    },
)
NODE_ADJOINT = Layout(
    "IndexedAdjoint",
    {
        **NODE_FIELDS,
        "parameters": int,
        "back": floats("count", "count"),
        "weights": floats("count"),
        "triple": floats(3, "size"),
        "pulled": floats("floats"),
    },
)
_tangents_at, _adjoint_at = NODE_TANGENTS.at, NODE_ADJOINT.at


def _ranges(influence: np.ndarray) -> np.ndarray:
    """Range (first, last + 1) of the columns that are not 0 in each row of `influence`, (P, 2)."""
    acts = influence != 0
    nonzero, columns = acts.any(axis=1), influence.shape[1]
    last = np.where(nonzero, columns - acts[:, ::-1].argmax(axis=1), 0)
    return np.stack([np.where(nonzero, acts.argmax(axis=1), 0), last], axis=1).astype(np.int64)


@CompiledFunction
def _tangents(context: int, member: int, source: int, target: int) -> None:
    """Write changes of slices (rows, P, size), moved by C times all slices, and tangents."""
    record = _tangents_at(context)
    count, size, rows, inner = record.count, record.size, record.rows, record.inner
    states = float_array(source, (rows, count, size))
    result = float_array(target, (rows, count, size))
    called, influence, ranges = record.called, record.influence, record.ranges
    pairs, change = record.pairs, record.change
    for i in range(count):
        for row in range(rows):
            slice_, acting = pairs[row, 0], pairs[row, 1]
            for k in range(size):
                slice_[k], acting[k] = states[row, i, k], 0.0
            for j in range(ranges[i, 0], ranges[i, 1]):
                _add(acting, influence[i, j], states[row, j])
        node = i if inner > 1 else 0
        number = member * count + i
        evaluate(called[node, 0], called[node, 1], number, address_of(pairs), address_of(change))
        for row in range(rows):
            for k in range(size):
                result[row, i, k] = change[row, k]


@CompiledFunction
def _adjoint(context: int, member: int, source: int, target: int) -> None:
    """Write DN(u)* l, (P, size), and its inner products with derivatives by parameters."""
    record = _adjoint_at(context)
    count, size, parameters, inner = record.count, record.size, record.parameters, record.inner
    states = float_array(source, (2, count, size))
    result = float_array(target, (count, size))
    numbers = float_array(target, (count * size + parameters,))[count * size :]
    called, influence, back = record.called, record.influence, record.back
    weights, triple, pulled = record.weights, record.triple, record.pulled
    for i in range(count):
        for k in range(size):
            result[i, k] = 0.0
    for p in range(parameters):
        numbers[p] = 0.0
    for i in range(count):
        for k in range(size):
            triple[0, k], triple[1, k], triple[2, k] = states[0, i, k], 0.0, states[1, i, k]
        for j in range(count):
            if influence[i, j] != 0.0:
                _add(triple[1], influence[i, j], states[0, j])
        node = i if inner > 1 else 0
        evaluate(called[node, 0], called[node, 1], i, address_of(triple), address_of(pulled))
        _add(result[i], 1.0, pulled[:size])
        for j in range(count):
            if influence[i, j] != 0.0:
                _add(result[j], back[i, j], pulled[size : 2 * size])
        for p in range(parameters):
            numbers[p] += weights[i] * pulled[2 * size + p]


@njit(**INNER)
def _add(total: np.ndarray, factor: float, row: np.ndarray) -> None:
    """total += factor row."""
    for k in range(total.size):
        total[k] += factor * row[k]
