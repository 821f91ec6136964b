"""A curve of stationary states in (a, log kappa), by pseudo-arclength continuation.

From a point z with the unit tangent t the next one solves R(z) = 0, <t, z' - z> = step: that is
regular at folds too, where kappa turns back. Steps grow and shrink with the angle that the curve
turns by and with the work of Newton's method.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .equation import Equation
from .newton import newton

__all__ = ["Curve", "Point"]

TOLERANCE = 1e-12
FINEST = 1e-8
STRAIGHT, CURVED = 0.999, 0.98  # cosines of the angle between tangents: longer, shorter steps
MANY = 7  # Newton steps
GROWTH = 1.6


class Point(NamedTuple):
    """One point of a curve.

    Attributes
    ----------
    z : ndarray, (N + 1,)
        Moments and log kappa.
    tangent : ndarray, (N + 1,)
        Of length 1.
    """

    z: np.ndarray
    tangent: np.ndarray

    @property
    def a(self) -> np.ndarray:
        return self.z[:-1]

    @property
    def kappa(self) -> float:
        return float(np.exp(self.z[-1]))


class Curve:
    """The solutions of an equation near a starting point.

    Parameters
    ----------
    equation : Equation
    max_step : float
        Longest step in (a, log kappa).
    """

    def __init__(self, equation: Equation, max_step: float):
        self.equation, self.max_step = equation, max_step

    def jacobian(self, z: np.ndarray) -> np.ndarray:
        """(dR/da, dR/dlog kappa), (N, N + 1)."""
        kappa = np.exp(z[-1])
        mean = self.equation.mean(z[:-1], kappa)
        along = kappa * self.equation.along_kappa(mean)
        return np.column_stack([self.equation.jacobian(mean, kappa), along])

    def solved(self, start: np.ndarray, row: np.ndarray, value: float):
        """R(z) = 0 and <row, z> = value, from a start: an `Iteration`."""

        def system(z: np.ndarray):
            kappa = np.exp(z[-1])
            mean = self.equation.mean(z[:-1], kappa)
            residual = np.append(z[:-1] - mean.moments, row @ z - value)

            def jacobian() -> np.ndarray:
                along = kappa * self.equation.along_kappa(mean)
                above = np.column_stack([self.equation.jacobian(mean, kappa), along])
                return np.vstack([above, row])

            return residual, jacobian

        return newton(system, start, TOLERANCE)

    def point(self, z: np.ndarray, direction: np.ndarray) -> Point:
        """The point with its tangent, which does not go against `direction`."""
        matrix = np.vstack([self.jacobian(z), direction])
        tangent = np.linalg.solve(matrix, np.append(np.zeros(len(z) - 1), 1.0))
        return Point(z, tangent / np.linalg.norm(tangent))

    def ahead(self, point: Point, step: float, most: int | None = None) -> Point | None:
        """The point a step further, or None where Newton's method finds none in `most` steps."""
        start = point.z + step * point.tangent
        found = self.solved(start, point.tangent, float(point.tangent @ start))
        if not found.converged or (most and len(found.residuals) > most):
            return None
        return self.point(found.x, point.tangent)

    def at_kappa(self, near: np.ndarray, kappa: float) -> np.ndarray | None:
        """The solution at this kappa near z, or None."""
        start = np.append(near[:-1], np.log(kappa))
        row = np.append(np.zeros(len(near) - 1), 1.0)
        found = self.solved(start, row, np.log(kappa))
        return found.x if found.converged else None

    def follow(self, point: Point, step: float) -> Iterator[tuple[Point, float]]:
        """Points one after the other, each with the step that led to it, until none is found."""
        while True:
            new = self._tried(point, step)
            while new is None:
                step /= 2
                if step < FINEST:
                    return
                new = self._tried(point, step)
            yield new, step
            if new.tangent @ point.tangent > STRAIGHT:
                step = min(step * GROWTH, self.max_step)
            point = new

    def _tried(self, point: Point, step: float) -> Point | None:
        new = self.ahead(point, step, MANY)
        return new if new is not None and new.tangent @ point.tangent > CURVED else None
