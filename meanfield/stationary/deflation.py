"""Newton's method away from states that are known."""

import numpy as np

from .equation import Equation
from .newton import Iteration, newton

__all__ = ["Deflated"]


class Deflated:
    """The equation R(a) M(a) = 0, M(a) = prod_k (1 + 1/|a - a_k|^2), of further states.

    Parameters
    ----------
    equation : Equation
    kappa : float
    known : list of ndarray, (N,)
        The a_k. Their mirror images, with the signs of odd degrees changed, are known too.
    """

    def __init__(self, equation: Equation, kappa: float, known: list[np.ndarray] | tuple = ()):
        self.equation, self.kappa = equation, kappa
        signs = np.where(equation.degrees % 2, -1.0, 1.0)
        mirrored = [signs * a for a in known if np.any(signs * a != a)]
        self._known = np.array([*known, *mirrored]).reshape(-1, len(signs))

    def solved(self, a: np.ndarray, tolerance: float) -> Iteration:
        """A state near a, with the residuals of the equation itself."""
        if not len(self._known):
            return newton(self._system, a, tolerance)
        found = newton(self._deflated, a, tolerance)
        return newton(self._system, found.x, tolerance) if found.converged else found

    def _system(self, a: np.ndarray):
        mean = self.equation.mean(a, self.kappa)
        return a - mean.moments, lambda: self.equation.jacobian(mean, self.kappa)

    def _deflated(self, a: np.ndarray):
        residual, jacobian = self._system(a)
        away = a - self._known
        distances = np.einsum("kn,kn->k", away, away)
        if not distances.all():
            return np.full(len(a), np.inf), lambda: np.eye(len(a))
        factor = np.prod(1 + 1 / distances)
        slope = -2 * factor * (away / (distances * (distances + 1))[:, None]).sum(axis=0)
        return factor * residual, lambda: factor * jacobian() + np.outer(residual, slope)
