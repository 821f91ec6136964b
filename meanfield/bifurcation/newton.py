"""Newton's method with a record of residuals, and deflation of computed solutions."""

from collections.abc import Callable, Sequence
from operator import add
from typing import Any, NamedTuple

import numpy as np

MOST_ITERATIONS = 60  # Newton steps
MOST_HALVINGS = 12  # of one step
KRYLOV = 1e-10  # relative tolerance of GMRES
SPACE, CYCLES = 100, 4  # GMRES: vectors between restarts, and number of restarts

System = Callable[[np.ndarray], tuple[np.ndarray, Callable[[], Any]]]


class Iteration(NamedTuple):
    """Result of Newton's method.

    Attributes
    ----------
    x : ndarray
    status : str
        "converged", "stalled" if no shorter step lowers the residual, "singular" or
        "max_iterations".
    residuals : list of float
        Largest entry of the residual before every step, and at the end.
    """

    x: np.ndarray
    status: str
    residuals: list[float]

    @property
    def converged(self) -> bool:
        return self.status == "converged"


class Coupled(NamedTuple):
    """The matrix 1 - C, where C has few nonzero columns.

    Attributes
    ----------
    columns : ndarray, (N, k)
        Nonzero columns of C.
    indices : ndarray of int, (k,)
        Indices of these columns.
    """

    columns: np.ndarray
    indices: np.ndarray

    def solve(self, right: np.ndarray) -> np.ndarray:
        """(1 - C)^-1 right, by a (k, k) system; raises LinAlgError if that is singular."""
        inner = np.eye(len(self.indices)) - self.columns[self.indices]
        return right + self.columns @ np.linalg.solve(inner, right[self.indices])


class Bordered(NamedTuple):
    """The matrix 1 - C with another column and another row, where C has few nonzero columns.

    Attributes
    ----------
    coupled : Coupled
        1 - C, (N, N).
    along : ndarray, (N,)
        Last column.
    row : ndarray, (N + 1,)
        Last row.
    """

    coupled: Coupled
    along: np.ndarray
    row: np.ndarray

    def solve(self, right: np.ndarray) -> np.ndarray:
        """Solution of a (k + 1, k + 1) system, in the columns of C and the last unknown."""
        columns, indices = self.coupled
        last = right[-1] - self._others @ right[:-1]
        few = np.linalg.solve(self._inner, np.append(right[indices], last))
        return np.append(right[:-1] + columns @ few[:-1] - few[-1] * self.along, few[-1])

    @property
    def determinant(self) -> float:
        return float(np.linalg.det(self._inner))

    @property
    def _others(self) -> np.ndarray:
        """The last row, (N,), without the entries of the columns of C."""
        others = self.row[:-1].copy()
        others[self.coupled.indices] = 0.0
        return others

    @property
    def _inner(self) -> np.ndarray:
        """The matrix of the unknowns that remain if those without a column of C are eliminated."""
        (columns, indices), others = self.coupled, self._others
        size = len(indices)
        inner = np.eye(size + 1)
        inner[:size, :size] -= columns[indices]
        inner[:size, size] = self.along[indices]
        inner[size, :size] = self.row[indices] + others @ columns
        inner[size, size] = self.row[-1] - others @ self.along
        return inner


def newton(
    system: System,
    x: np.ndarray,
    tolerance: float,
    most: int = MOST_ITERATIONS,
    shortened: bool = True,
    halvings: int = MOST_HALVINGS,
    reused: float = 0.0,
    moved: Callable[[np.ndarray, np.ndarray], np.ndarray] = add,
) -> Iteration:
    """Solve residual(x) = 0, where system(x) = (residual, function that computes the Jacobian).

    A step is halved while the residual after it is not finite. If `shortened`, it is also halved
    until the largest entry of the residual falls. The iteration has converged when that entry is
    <= tolerance; one more step is then taken if it lowers the residual.

    A Jacobian is used again after a step that reduces the residual to less than the part `reused`;
    if that is not 0, Jacobians are expensive, and no step is taken after convergence. A step leads
    from x to `moved`(x, step), which is x + step to first order.
    """
    residual, jacobian = system(x)
    sizes, matrix = [_size(residual)], None
    if not np.isfinite(sizes[0]):
        return Iteration(x, "stalled", sizes)
    while len(sizes) <= most:
        done, fresh = sizes[-1] <= tolerance, matrix is None
        if done and reused:
            return Iteration(x, "converged", sizes)
        try:
            matrix = jacobian() if matrix is None else matrix
            step = solved(matrix, residual)
        except np.linalg.LinAlgError:
            return Iteration(x, "converged" if done else "singular", sizes)
        for halving in range(halvings if fresh else 1):
            tried = moved(x, -step / 2**halving)
            residual_tried, jacobian_tried = system(tried)
            size = _size(residual_tried)
            if size < sizes[-1]:
                break
            if done:  # the residual is rounding
                return Iteration(x, "converged", sizes)
            if not shortened and np.isfinite(residual_tried).all():
                break
        else:
            if fresh:
                return Iteration(x, "stalled", sizes)
            matrix = None
            continue
        matrix = matrix if size < reused * sizes[-1] else None
        x, residual, jacobian = tried, residual_tried, jacobian_tried
        sizes.append(size)
        if done:
            return Iteration(x, "converged", sizes)
    return Iteration(x, "converged" if sizes[-1] <= tolerance else "max_iterations", sizes)


def deflated(system: System, solutions: Sequence[np.ndarray], sizes: np.ndarray) -> System:
    """Deflated system F(x) M(x) = 0 for further solutions, M(x) = prod_k (1 + 1/|x - x_k|^2).

    Parameters
    ----------
    system : callable
        F and a function for its Jacobian, as for `newton`.
    solutions : sequence of ndarray, (N,)
        Solutions x_k to exclude.
    sizes : ndarray, (N,)
        Weights of the entries in |x - x_k|.

    References
    ----------
    Farrell, Birkisson and Funke, SIAM J. Sci. Comput. 37 (2015).
    """
    centres = np.array(solutions)

    def without(x: np.ndarray) -> Any:
        """Residual times prod_k (1 + 1 / |x - x_k|^2) over the known zeros, and its Jacobian."""
        residual, jacobian = system(x)
        away = sizes * (x - centres)
        distances = np.einsum("kn,kn->k", away, away)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            factor = np.prod(1 + 1 / distances)
        if not np.isfinite(factor):
            return np.full(len(x), np.inf), lambda: np.eye(len(x))
        slope = -2 * factor * (sizes * away / (distances * (distances + 1))[:, None]).sum(axis=0)
        return factor * residual, lambda: _with_outer(factor * jacobian(), residual, slope)

    return without


def solved(matrix: Any, right: np.ndarray) -> np.ndarray:
    """matrix^-1 right, for an array, an object that solves or, by GMRES, a `LinearOperator`."""
    if isinstance(matrix, np.ndarray):
        return np.linalg.solve(matrix, right)
    if hasattr(matrix, "solve"):
        return matrix.solve(right)
    from scipy.sparse.linalg import gmres

    solution, failed = gmres(matrix, right, rtol=KRYLOV, restart=SPACE, maxiter=CYCLES)
    if failed:
        raise np.linalg.LinAlgError(f"GMRES did not converge in {SPACE * CYCLES} iterations")
    return solution


def determinant(matrix: Any) -> float:
    """Determinant of an array or a `Bordered` matrix."""
    return matrix.determinant if isinstance(matrix, Bordered) else float(np.linalg.det(matrix))


def _with_outer(matrix: Any, column: np.ndarray, row: np.ndarray) -> Any:
    """matrix + column row^T."""
    if isinstance(matrix, np.ndarray):
        return matrix + np.outer(column, row)
    from scipy.sparse.linalg import LinearOperator

    return matrix + LinearOperator(matrix.shape, lambda v: column * (row @ np.ravel(v)))


def _size(residual: np.ndarray) -> float:
    """Largest entry in absolute value; inf if an entry is not finite."""
    largest = float(np.abs(residual).max(initial=0.0))
    return largest if np.isfinite(largest) else np.inf
