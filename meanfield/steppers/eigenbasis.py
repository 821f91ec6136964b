"""The eigenbasis of an L that is not diagonal, and the change of coordinates, compiled."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..lowlevel.callbacks import CompiledFunction, float_array, integer_array
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.records import Layout

COLUMN_BLOCK = 4  # that one pass over a result adds


class Eigenbasis(NamedTuple):
    """L = E diag(rates) E^-1 in blocks of coordinates that L does not couple, for compiled code.

    Coordinates are real, and as many as there are rates. The eigenvalues of a block have the
    numbers of its coordinates. A sum over columns is taken in one order everywhere, so that the
    same state gives the same bits.

    order : (n,) the coordinates, block after block
    starts : (blocks + 1,) where a block begins among them
    offsets : (blocks,) where the columns of a block begin in `forth` and `back`
    forth, back : the columns of E^-1 and of E, block after block, zeros up to a multiple of four
    """

    order: np.ndarray
    starts: np.ndarray
    offsets: np.ndarray
    forth: np.ndarray
    back: np.ndarray

    @classmethod
    def of(cls, blocks: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> "Eigenbasis":
        """The basis made of blocks (coordinates, E^-1, E)."""
        sizes = [len(coordinates) for coordinates, _, _ in blocks]
        lengths = [size * (-(-size // COLUMN_BLOCK) * COLUMN_BLOCK) for size in sizes]
        order = [np.asarray(coordinates, dtype=np.int64) for coordinates, _, _ in blocks]
        flat = [
            np.concatenate([np.empty(0), *(_columns(block[which]) for block in blocks)])
            for which in (1, 2)
        ]
        return cls(
            np.concatenate([np.empty(0, dtype=np.int64), *order]),
            np.cumsum([0, *sizes], dtype=np.int64),
            np.cumsum([0, *lengths], dtype=np.int64)[:-1],
            *flat,
        )

    def into(self, u: np.ndarray) -> np.ndarray:
        """E^-1 u for rows u; u itself where there is no basis."""
        return self._changed(self.forth, u)

    def out_of(self, modal: np.ndarray) -> np.ndarray:
        """E times each of the rows."""
        return self._changed(self.back, modal)

    def _changed(self, columns: np.ndarray, rows: np.ndarray) -> np.ndarray:
        if not self.order.size:
            return rows
        result, part = np.empty_like(rows), scratch(rows.shape[-1], rows.dtype)
        _change_all(self, columns, np.ascontiguousarray(rows), result, part)
        return result


def _columns(matrix: np.ndarray) -> np.ndarray:
    size = len(matrix)
    return np.pad(matrix.T, ((0, -size % COLUMN_BLOCK), (0, 0))).ravel()


NO_BASIS = Eigenbasis.of([])  # L is diagonal in the states themselves


def scratch(size: int, dtype: np.dtype) -> np.ndarray:
    """Memory that `change` overwrites, for this many coordinates."""
    return np.empty((2, size + COLUMN_BLOCK), dtype=dtype)


@njit(cache=True, error_model="numpy")
def _change_all(
    basis: Eigenbasis, columns: np.ndarray, rows: np.ndarray, result: np.ndarray, part: np.ndarray
) -> None:
    for row in range(len(rows)):
        change(basis, columns, rows[row], result[row], part)


BASIS_LAYOUT = Layout(
    "Basis",
    dict.fromkeys(("size", "blocks", "order", "starts", "offsets", "forth", "back", "part"), int),
)
_basis_at = BASIS_LAYOUT.at
FORTH, BACK = 0, 1


class CalledBasis:
    """A basis in which compiled code changes coordinates by an address: 0 where there is none.

    Loops that call it there are compiled without it.
    """

    def __init__(self, basis: Eigenbasis):
        self.address = _changed.address if basis.order.size else 0
        self._kept = basis, scratch(basis.order.size, np.dtype(float))
        self._record = np.zeros(1, BASIS_LAYOUT.dtype)
        record = self._record[0]
        record["size"], record["blocks"] = basis.order.size, basis.offsets.size
        for name, array in (*basis._asdict().items(), ("part", self._kept[1])):
            record[name] = array.ctypes.data

    @property
    def context(self) -> int:
        """The first argument of the function at the address."""
        return self._record.ctypes.data


@CompiledFunction
def _changed(context: int, direction: int, source: int, target: int) -> None:
    """Coordinates in the basis (FORTH) or out of it (BACK), of one state of floats."""
    record = _basis_at(context)
    size, blocks = record.size, record.blocks
    basis = Eigenbasis(
        integer_array(record.order, (size,)),
        integer_array(record.starts, (blocks + 1,)),
        integer_array(record.offsets, (blocks,)),
        float_array(record.forth, (0,)),
        float_array(record.back, (0,)),
    )
    offsets, starts = basis.offsets, basis.starts
    width = starts[blocks] - starts[blocks - 1]
    length = offsets[blocks - 1] + width * (
        (width + COLUMN_BLOCK - 1) // COLUMN_BLOCK * COLUMN_BLOCK
    )
    columns = float_array(record.forth if direction == FORTH else record.back, (length,))
    part = float_array(record.part, (2, size + COLUMN_BLOCK))
    change(basis, columns, float_array(source, (size,)), float_array(target, (size,)), part)


@njit(**INNER, error_model="numpy")
def change(
    basis: Eigenbasis, columns: np.ndarray, u: np.ndarray, result: np.ndarray, part: np.ndarray
) -> None:
    """The matrix with these columns, `forth` or `back`, times u; `part` is `scratch`."""
    coordinates, sums = part[0], part[1]
    for block in range(basis.offsets.size):
        first, size = basis.starts[block], basis.starts[block + 1] - basis.starts[block]
        order, at = basis.order[first : first + size], basis.offsets[block]
        for j in range(size):
            coordinates[j], sums[j] = u[order[j]], 0.0
        for j in range(size, size + COLUMN_BLOCK):
            coordinates[j] = 0.0
        for j in range(
            0, size, COLUMN_BLOCK
        ):  # the sums of rows are independent: they are vectorised
            a, b = coordinates[j], coordinates[j + 1]
            c, d = coordinates[j + 2], coordinates[j + 3]
            p, q = columns[at : at + size], columns[at + size : at + 2 * size]
            at += 2 * size
            r, s = columns[at : at + size], columns[at + size : at + 2 * size]
            at += 2 * size
            for i in range(size):
                sums[i] += a * p[i] + b * q[i] + c * r[i] + d * s[i]
        for j in range(size):
            result[order[j]] = sums[j]
