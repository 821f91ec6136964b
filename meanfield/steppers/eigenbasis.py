"""The eigenbasis of an L that is not diagonal, and compiled changes of coordinates."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..lowlevel.callbacks import CompiledFunction, float_array
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.records import Layout, floats, integers

COLUMN_BLOCK = 4  # columns that are added in one pass over a result


class Eigenbasis(NamedTuple):
    """Eigenbasis E of L = E diag(rates) E^-1, in blocks of coordinates that L does not couple.

    Coordinates are real, one for each rate. The eigenvalues of a block have the indices of its
    coordinates. Sums over columns always have the same order, so that the same state gives the
    same bits.

    order : (n,) the indices of coordinates, block after block
    starts : (blocks + 1,) the positions in `order` at which blocks begin
    offsets : (blocks,) the positions in `forth` and `back` at which the columns of blocks begin
    forth, back : the columns of E^-1 and of E, block after block, each block padded by columns of
        zeros to a multiple of four columns
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
            np.concatenate([np.empty(0), *(_columns(block[column]) for block in blocks)])
            for column in (1, 2)
        ]
        return cls(
            np.concatenate([np.empty(0, dtype=np.int64), *order]),
            np.cumsum([0, *sizes], dtype=np.int64),
            np.cumsum([0, *lengths], dtype=np.int64)[:-1],
            *flat,
        )

    def into(self, u: np.ndarray) -> np.ndarray:
        """Coordinates E^-1 u for each of the rows u, (rows, n); u itself if there is no basis."""
        return self._changed(self.forth, u)

    def out_of(self, modal: np.ndarray) -> np.ndarray:
        """States E m for each of the rows m of `modal`, (rows, n)."""
        return self._changed(self.back, modal)

    def _changed(self, columns: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Rows (rows, n) times the matrix of `columns`; the rows themselves without a basis."""
        if not self.order.size:
            return rows
        result, work = np.empty_like(rows), scratch(rows.shape[-1], rows.dtype)
        _change_all(self, columns, np.ascontiguousarray(rows), result, work)
        return result


def _columns(matrix: np.ndarray) -> np.ndarray:
    size = len(matrix)
    return np.pad(matrix.T, ((0, -size % COLUMN_BLOCK), (0, 0))).ravel()


NO_BASIS = Eigenbasis.of([])  # L is diagonal in the states themselves


def scratch(size: int, dtype: np.dtype) -> np.ndarray:
    """Workspace of `change` for `size` coordinates."""
    return np.empty((2, size + COLUMN_BLOCK), dtype=dtype)


@njit(cache=True)
def _change_all(
    basis: Eigenbasis, columns: np.ndarray, rows: np.ndarray, result: np.ndarray, work: np.ndarray
) -> None:
    """Apply `change` to each of the rows."""
    for row in range(len(rows)):
        change(basis, columns, rows[row], result[row], work)


BASIS_LAYOUT = Layout(
    "Basis",
    {
        "order": integers("size"),
        "starts": integers("ends"),
        "offsets": integers("blocks"),
        "forth": floats("entries"),
        "back": floats("entries"),
        "work": floats(2, "room"),
    },
)
_basis_at = BASIS_LAYOUT.at
FORTH, BACK = 0, 1


class CalledBasis:
    """Change of coordinates that compiled code calls by its `address`, which is 0 without a basis.

    Loops that call it by address need not be compiled together with it.
    """

    def __init__(self, basis: Eigenbasis):
        """Record of a basis, with a workspace, for calls by address."""
        self.address = _changed.address if basis.order.size else 0
        work = scratch(basis.order.size, np.dtype(float))
        self._record = BASIS_LAYOUT.filled(**basis._asdict(), work=work)

    @property
    def context(self) -> int:
        """The first argument of the function at the address."""
        return self._record.address


@CompiledFunction
def _changed(context: int, direction: int, source: int, target: int) -> None:
    """Change one state of floats to coordinates in the basis (FORTH) or back (BACK).

    `source` and `target` are addresses, `context` that of a record BASIS_LAYOUT.
    """
    record = _basis_at(context)
    basis = Eigenbasis(record.order, record.starts, record.offsets, record.forth, record.back)
    columns, shape = basis.forth if direction == FORTH else basis.back, (record.size,)
    change(basis, columns, float_array(source, shape), float_array(target, shape), record.work)


@njit(**INNER)
def change(
    basis: Eigenbasis, columns: np.ndarray, u: np.ndarray, result: np.ndarray, work: np.ndarray
) -> None:
    """Fill `result` with the matrix of these columns, `forth` or `back`, times u.

    `work` is a workspace from `scratch`.
    """
    coordinates, sums = work[0], work[1]
    for block in range(basis.offsets.size):
        first, size = basis.starts[block], basis.starts[block + 1] - basis.starts[block]
        order, offset = basis.order[first : first + size], basis.offsets[block]
        for j in range(size):
            coordinates[j], sums[j] = u[order[j]], 0.0
        for j in range(size, size + COLUMN_BLOCK):
            coordinates[j] = 0.0
        for j in range(0, size, COLUMN_BLOCK):  # sums of rows are independent, so vectorised
            a, b = coordinates[j], coordinates[j + 1]
            c, d = coordinates[j + 2], coordinates[j + 3]
            p, q = columns[offset : offset + size], columns[offset + size : offset + 2 * size]
            offset += 2 * size
            r, s = columns[offset : offset + size], columns[offset + size : offset + 2 * size]
            offset += 2 * size
            for i in range(size):
                sums[i] += a * p[i] + b * q[i] + c * r[i] + d * s[i]
        for j in range(size):
            result[order[j]] = sums[j]
