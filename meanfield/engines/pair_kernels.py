"""Sums over tokens, and velocities of densities, under a `PairKernel`.

The integrals of a density are sums over a grid whose harmonics resolve y -> k(x, y), as a matrix:
dense where it is small, else of low rank by adaptive cross approximation (ACA) with partial
pivoting, which takes single rows and columns. Its error is measured on random rows.

References
----------
Bebendorf, Numer. Math. 86 (2000), 565-589, for the cross approximation.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np

from ..core.annotations import Values
from ..core.cached import cached_property
from ..core.dual import Dual
from ..core.errors import MeanfieldError
from ..models import PairKernel
from ..spaces.contract import Space
from ..spaces.validity import HarmonicSizes
from .contract import Engine, along_tangents
from .density_heads import GridDensity, Quotient
from .fields import FIELDS, DensityField

BLOCK_VALUES = 2**20  # numbers of a kernel that are computed together
DENSE_ENTRIES = 2**23  # entries of the largest dense matrix, 64 MB
MOST_RANK = 512
PROBES = 16  # points at which resolution and errors are measured
FINEST_GRIDS = {2: 2048, 3: 96}  # degree of the finest grid of y, by dimension

Rows = Callable[[np.ndarray, np.ndarray], np.ndarray]


class PairSums(Engine):
    """Sums sum_j m_j k(x_i, x_j) / sum_j m_j z(x_i, x_j) over tokens (R, n, d), by blocks.

    Parameters
    ----------
    drift : PairKernel

    Notes
    -----
    Derivatives are differences of order 10 along the change of all tokens.
    """

    name = "pairs"
    tangential = False

    def attention(self, t: float, x: Values, masses: Values) -> Values:
        """The sums (R, n, d)."""
        if isinstance(x, Dual) or isinstance(masses, Dual):
            return along_tangents(partial(self.attention, t), x, masses, "PairKernel.kernel")
        pairs = zip(x, masses, strict=True)
        return np.stack([pulls(self.drift, points, points, m) for points, m in pairs])

    def with_tangents(self, names: Sequence[str | None]) -> Self:
        return self


def pulls(drift: PairKernel, x: np.ndarray, y: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Sums at points x (n, d) over points y (m, d) with masses (m,), (n, d), by blocks of rows."""
    result, size = np.empty_like(x), max(1, BLOCK_VALUES // y.size)
    for first in range(0, len(x), size):
        rows = slice(first, first + size)
        row_points = x[rows, None]
        result[rows] = np.einsum("j,ijd->id", masses, drift.values(row_points, y[None]))
        if drift.weight is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                result[rows] /= (drift.weights(row_points, y[None]) @ masses)[:, None]
    return result


class LowRank:
    """A matrix A (rows, columns), stored dense, or as U V of low rank.

    Parameters
    ----------
    rows : callable
        (points (p, d), points (q, d)) -> values (p, q, c) of c rows for each of the p points.
    x, y : ndarray, (N, d) and (M, d)
        Points of the rows and of the columns.
    components : int
        c; the matrix is (N c, M).
    tolerance : float
        Error of an entry, relative to the largest one seen.

    Attributes
    ----------
    rank : int
        The rank of U V; the smaller side of a dense matrix.
    error : float
        The largest error of entries in random rows, relative to the largest entry; 0 if dense.

    Raises
    ------
    MeanfieldError
        If a matrix of more than `DENSE_ENTRIES` entries has a rank above `MOST_RANK`.
    """

    def __init__(
        self, rows: Rows, x: np.ndarray, y: np.ndarray, components: int, tolerance: float
    ) -> None:
        """Matrix k(x_i, y_j), whole up to DENSE_ENTRIES, beyond by cross approximation."""
        self._rows, self._x, self._y, self._c = rows, x, y, components
        self.shape = len(x) * components, len(y)
        self.error, self._whole = 0.0, None
        if np.prod(self.shape) <= DENSE_ENTRIES:
            size = max(1, BLOCK_VALUES // (len(y) * components))
            blocks = [rows(x[i : i + size], y) for i in range(0, len(x), size)]
            parts = [block.swapaxes(1, 2).reshape(-1, len(y)) for block in blocks]
            self._whole, self.rank = np.concatenate(parts), min(self.shape)
        else:
            self._crossed(tolerance)

    def __matmul__(self, vectors: np.ndarray) -> np.ndarray:
        """A times (M, r)."""
        return self._whole @ vectors if self._whole is not None else self._U @ (self._V @ vectors)

    def transposed(self, vectors: np.ndarray) -> np.ndarray:
        """The transpose of A times (N c, r)."""
        if self._whole is not None:
            return self._whole.T @ vectors
        return self._V.T @ (self._U.T @ vectors)

    def _point_rows(self, i: int) -> np.ndarray:
        """All rows of the point i, (c, M)."""
        return self._rows(self._x[i : i + 1], self._y)[0].T

    def _crossed(self, tolerance: float) -> None:
        """Crosses through pivots of the largest residuals, until random rows are met."""
        U, V = np.zeros((self.shape[0], MOST_RANK)), np.zeros((MOST_RANK, self.shape[1]))
        probes = np.random.default_rng(0).choice(len(self._x), PROBES, replace=False)
        sought = np.concatenate([self._point_rows(i) for i in probes])  # (PROBES c, M)
        places = (probes[:, None] * self._c + np.arange(self._c)).ravel()
        largest, last, rank = float(np.abs(sought).max()), np.inf, 0
        used, residual = np.zeros(self.shape[0], dtype=bool), sought.copy()
        row = int(places[np.abs(residual).max(axis=1).argmax()])
        while True:
            self.error = float(np.abs(residual).max()) / (largest or 1.0)
            if self.error <= tolerance and last <= tolerance * largest:
                break
            if rank == MOST_RANK:
                raise MeanfieldError(
                    f"The matrix {self.shape} of the kernel has no low rank: at rank {rank} its "
                    f"error is {self.error:.1e} of the largest entry, expected <= {tolerance:.1e}. "
                    "Use a smoother kernel, a larger tolerance, a lower degree, or Tokens."
                )
            v = self._point_rows(row // self._c)[row % self._c] - U[row, :rank] @ V[:rank]
            used[row], column = True, int(np.abs(v).argmax())
            if abs(v[column]) <= 0.1 * tolerance * largest:  # spent: go on where a probe is off
                last, sizes = 0.0, np.abs(residual).max(axis=1) * ~used[places]
                row = int(places[sizes.argmax()]) if sizes.any() else int(np.argmin(used))
                continue
            entries = self._rows(self._x, self._y[column : column + 1])[:, 0].ravel()
            u = entries - U[:, :rank] @ V[:rank, column]
            largest = max(largest, float(np.abs(entries).max()))
            U[:, rank], V[rank] = u / v[column], v
            residual -= np.multiply.outer(U[places, rank], v)
            last, rank = float(np.abs(u).max()), rank + 1
            row = int((np.abs(u) * ~used).argmax())
        self._U, self._V, self.rank = U[:, :rank].copy(), V[:rank].copy(), rank


class PairField(DensityField):
    """Velocity of a density by sums over a grid that resolves the kernel in its second point."""

    drift: PairKernel

    @cached_property
    def _sources(self) -> Any:
        """The space whose grid resolves y -> k(x, y) and z(x, y).

        Raises MeanfieldError if the finest one does not.
        """
        space = self.space
        finest = max(space.degree, FINEST_GRIDS.get(space.dimension, 32))
        x = space.points[:: max(1, len(space.points) // PROBES)]
        degree, tail = space.degree, np.inf
        while degree <= finest:
            fine = space.with_degree(degree)
            values = self.drift.values(x[:, None], fine.points[None]).swapaxes(1, 2)
            rows = [*values.reshape(-1, len(fine.points))]
            if self.drift.weight is not None:
                rows += [*self.drift.weights(x[:, None], fine.points[None])]
            coefficients = np.array([fine.to_coefficients(row) for row in rows])
            series, limit = HarmonicSizes(fine.degrees, coefficients), self.drift.tolerance
            scale = series.sizes.max() or 1.0
            tail = series.tail(degree, limit * scale) / scale
            if tail <= limit:
                return fine
            degree *= 2
        raise MeanfieldError(
            "The kernel is not resolved as a function of its second point: at degree "
            f"{degree // 2} the last coefficients are {tail:.1e} of the largest, expected <= "
            f"{self.drift.tolerance:.1e}. Use a smoother kernel, a larger tolerance, or Tokens."
        )

    @cached_property
    def kernel(self) -> LowRank:
        """The matrix of k from sources to points, (N d, M)."""
        values = self.drift.values
        return self._matrix(lambda x, y: values(x[:, None], y[None]), self.space.dimension)

    @cached_property
    def weight(self) -> LowRank | None:
        """The matrix of z, (N, M); None for 1."""
        weights = self.drift.weights
        if self.drift.weight is None:
            return None
        return self._matrix(lambda x, y: weights(x[:, None], y[None])[..., None], 1)

    def _matrix(self, rows: Rows, components: int) -> LowRank:
        points = self.space.points, self._sources.points
        return LowRank(rows, *points, components, self.drift.tolerance)

    def _masses(self, coefficients: np.ndarray) -> np.ndarray:
        """Masses (M, r) of functions with coefficients (r, modes) at the sources."""
        fine = self._sources
        finer = self.space.resample(coefficients, fine.degree)
        return np.array([fine.weights * fine.to_values(row) for row in finer]).T

    def attention(self, t: float, density: GridDensity) -> np.ndarray:
        masses = self._masses(density.coefficients[None])
        total = (self.kernel @ masses).reshape(len(self.space.points), -1)
        return total if self.weight is None else total / (self.weight @ masses)

    def quotients(
        self, functions: GridDensity, names: Sequence[str] = (), rows: int = 1
    ) -> list[Quotient]:
        """Quotient K mu / Z mu of linear maps of the density, without derivatives."""
        masses, space = self._masses(functions.coefficients), self.space
        pulled = (self.kernel @ masses).reshape(len(space.points), space.dimension, -1)
        numerator = np.einsum("fnd,ndr->frn", space.frame, pulled)
        denominator = None if self.weight is None else (self.weight @ masses).T
        return [Quotient(numerator, denominator, transposed=self._transposed)]

    def _transposed(self, F: np.ndarray, s: np.ndarray | None) -> np.ndarray:
        """Gradient (modes,) of <F, numerator> + <s, denominator> by the density."""
        fine, weights = self._sources, self.space.weights
        pushed = np.einsum("fnd,fn->nd", self.space.frame, weights * F).reshape(-1, 1)
        values = self.kernel.transposed(pushed)[:, 0]
        if s is not None and self.weight is not None:
            values = values + self.weight.transposed((weights * s)[:, None])[:, 0]
        return fine.resample(fine.to_coefficients(values), self.space.degree)


class PairPoints:
    """Velocities of points in the field of a density with given coefficients on a space."""

    def __init__(self, drift: PairKernel, space: Space) -> None:
        self._field = PairField(drift, space)

    def attention(self, t: float, x: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """The sums (R, n, d)."""
        field, sources = self._field, self._field._sources.points
        masses = field._masses(coefficients[None])[:, 0]
        return np.stack([pulls(field.drift, points, sources, masses) for points in x])


FIELDS[PairKernel] = PairField
