"""Newton's method away from states that are known."""

from math import gcd

import numpy as np

from .equation import Equation
from .newton import Iteration, newton

__all__ = ["Deflated"]

VISIBLE = 1e-8
SAME = 1e-5


class Deflated:
    """The equation R(a) M(a) = 0, M(a) = prod_k (1 + 1/|a - a_k|^2), of further states.

    Parameters
    ----------
    equation : Equation
    kappa : float
    known : list of ndarray, (N,)
        The a_k. The same states turned, as far as they keep their symmetry, are known too.
    """

    def __init__(self, equation: Equation, kappa: float, known: list[np.ndarray] | tuple = ()):
        self.equation, self.kappa = equation, kappa
        turned = [self._turned(a) for a in known]
        images = [*known, *(b for a, b in zip(known, turned, strict=True) if np.any(a != b))]
        self._known = np.array(images).reshape(-1, len(equation.degrees))

    def solved(self, a: np.ndarray, tolerance: float) -> Iteration:
        """A state near a. Steps away from known states are not shortened: residuals may grow."""
        scale = self.equation.basis.sizes
        if not len(self._known):
            return newton(self._system, a, tolerance, scale)
        found = newton(self._deflated, a, tolerance, scale, shortened=False)
        if not found.converged:
            return found
        last = newton(self._system, found.x, tolerance, scale)
        return last._replace(residuals=[*found.residuals, *last.residuals[1:]])

    def found_again(self, a: np.ndarray) -> bool:
        """Whether a is a known state, to the accuracy of other degrees."""
        return bool((np.linalg.norm(self._known - a, axis=1) < SAME).any())

    def _turned(self, a: np.ndarray) -> np.ndarray:
        """The other place of a state: its axis reversed, on the circle turned by half a period."""
        degrees, period = self.equation.degrees, 1
        if self.equation.dimension == 2:
            period = gcd(*(int(k) for k in degrees[np.abs(a) > VISIBLE])) or 1
        return np.where(degrees // period % 2, -1.0, 1.0) * a

    def _system(self, a: np.ndarray):
        mean = self.equation.mean(a, self.kappa)
        return a - mean.moments, lambda: self.equation.jacobian(mean, self.kappa)

    def _deflated(self, a: np.ndarray):
        residual, jacobian = self._system(a)
        away = a - self._known
        distances = np.einsum("kn,kn->k", away, away)
        if not distances.all():
            return np.full(len(a), np.inf), lambda: np.eye(len(a))
        with np.errstate(over="ignore", invalid="ignore"):
            factor = np.prod(1 + 1 / distances)
        if not np.isfinite(factor):
            return np.full(len(a), np.inf), lambda: np.eye(len(a))
        slope = -2 * factor * (away / (distances * (distances + 1))[:, None]).sum(axis=0)
        return factor * residual, lambda: factor * jacobian() + np.outer(residual, slope)
