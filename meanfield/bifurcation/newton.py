"""Newton's method with a record of residuals, and what became of it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

__all__ = ["Iteration", "newton", "solve_scaled"]

MOST = 60
HALVINGS = 12


class Iteration(NamedTuple):
    """Where Newton's method ended.

    Attributes
    ----------
    x : ndarray
    status : str
        "converged", "stalled" where no shorter step lowers the residual, "singular" or
        "max_iterations".
    residuals : list of float
        Size of the residual before every step, and at the end.
    """

    x: np.ndarray
    status: str
    residuals: list[float]

    @property
    def converged(self) -> bool:
        return self.status == "converged"


def newton(
    system: Callable[[np.ndarray], tuple[np.ndarray, Callable[[], np.ndarray]]],
    x: np.ndarray,
    tolerance: float,
    scale: np.ndarray,
    most: int = MOST,
    shortened: bool = True,
) -> Iteration:
    """Solve system(x) = (residual, function that gives the Jacobian) for residual = 0.

    The size of a residual is its largest entry, each divided by its scale.
    Steps are halved until the residual falls, unless they are not to be `shortened`. Converged once
    it is <= tolerance, after one more step that squares it.
    """
    residual, jacobian = system(x)
    sizes = [_size(residual / scale)]
    for _ in range(most):
        done = sizes[-1] <= tolerance
        try:
            step = solve_scaled(jacobian(), residual, scale)
        except np.linalg.LinAlgError:
            return Iteration(x, "converged" if done else "singular", sizes)
        for halving in range(HALVINGS):
            tried = x - step / 2**halving
            residual_tried, jacobian_tried = system(tried)
            size = _size(residual_tried / scale)
            if size < sizes[-1]:
                break
            if done:  # at rounding
                return Iteration(x, "converged", sizes)
            if not shortened and np.isfinite(residual_tried).all():
                break
        else:
            return Iteration(x, "stalled", sizes)
        x, residual, jacobian = tried, residual_tried, jacobian_tried
        sizes.append(size)
        if done:
            return Iteration(x, "converged", sizes)
    return Iteration(x, "converged" if sizes[-1] <= tolerance else "max_iterations", sizes)


def solve_scaled(matrix: np.ndarray, right: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """The solution of a linear system whose i-th equation and i-th unknown are of size scale_i."""
    return scale * np.linalg.solve(matrix * (scale / scale[:, None]), right / scale)


def _size(residual: np.ndarray) -> float:
    largest = float(np.abs(residual).max(initial=0.0))
    return largest if np.isfinite(largest) else np.inf
