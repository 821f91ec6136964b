"""A curve of stationary states in (a, p), by pseudo-arclength continuation.

From a point z with the unit tangent t the next one solves R(z) = 0, <t, z' - z> = step: that is
regular at folds too, where p turns back. p stands for kappa or beta: see `path`. Steps grow and
shrink with the angle that the curve turns by and with the work of Newton's method.

Lengths are those of the Legendre moments, |m_l| <= 1, since a_l = sqrt(dim H_l) m_l grows with the
dimension: ds^2 = 2 sum dm_l^2 + dp^2, which is |da|^2 + dp^2 on the circle.
"""

from typing import NamedTuple

import numpy as np

from .basis import Basis
from .newton import newton, solve_scaled
from .path import Path

__all__ = ["Curve", "Point", "lengths"]

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
        Moments and p.
    tangent : ndarray, (N + 1,)
        Of length 1, in the measure of `lengths`.
    value : float
        Of the parameter, kappa or beta.
    """

    z: np.ndarray
    tangent: np.ndarray
    value: float

    @property
    def a(self) -> np.ndarray:
        return self.z[:-1]

    @property
    def p(self) -> float:
        return float(self.z[-1])


class Curve:
    """The stationary states along a path.

    Parameters
    ----------
    path : Path
    max_step : float
        Longest step in (a, p), in the measure of `lengths`.
    """

    def __init__(self, path: Path, max_step: float):
        self.path, self.max_step = path, max_step
        self._lengths = lengths(path.basis, 1)
        self._scale = np.append(path.basis.sizes, 1.0)

    def jacobian(self, z: np.ndarray) -> np.ndarray:
        """(dR/da, dR/dp), (N, N + 1)."""
        equation, kappa = self.path.at(z[-1])
        mean = equation.mean(z[:-1], kappa)
        along = self.path.along(equation, z[:-1], mean, kappa)
        return np.column_stack([equation.jacobian(mean, kappa), along])

    def solved(self, start: np.ndarray, row: np.ndarray, value: float):
        """R(z) = 0 and <row, z> = value, from a start: an `Iteration`."""

        def system(z: np.ndarray):
            if not np.isfinite(self.path.value(z[-1])):  # a step too far; the next is shorter
                return np.full(len(z), np.inf), lambda: np.eye(len(z))
            equation, kappa = self.path.at(z[-1])
            with np.errstate(all="ignore"):  # a step too far gives no number
                mean = equation.mean(z[:-1], kappa)
            residual = np.append(z[:-1] - mean.moments, row @ z - value)

            def jacobian() -> np.ndarray:
                along = self.path.along(equation, z[:-1], mean, kappa)
                above = np.column_stack([equation.jacobian(mean, kappa), along])
                return np.vstack([above, row])

            return residual, jacobian

        return newton(system, start, TOLERANCE, self._scale)

    def point(self, z: np.ndarray, direction: np.ndarray) -> Point:
        """The point with its tangent, which does not go against `direction`."""
        matrix = np.vstack([self.jacobian(z), self._lengths * direction])
        tangent = solve_scaled(matrix, np.append(np.zeros(len(z) - 1), 1.0), self._scale)
        length = np.sqrt(self._lengths @ tangent**2)
        return Point(z, tangent / length, self.path.value(z[-1]))

    def singular(self, z: np.ndarray, row: np.ndarray) -> float:
        """det (dR/dz, row), zero where another curve crosses, for any row along the tangent."""
        matrix = np.vstack([self.jacobian(z), row])
        return float(np.linalg.det(matrix * (self._scale / self._scale[:, None])))

    def kernel(self, z: np.ndarray) -> tuple[np.ndarray, float]:
        """Two directions (2, N + 1), orthonormal, that change R least, and by how much at most."""
        scaled = self.jacobian(z) * (self._scale / self._scale[:-1, None])
        _, sizes, rows = np.linalg.svd(scaled)
        return np.linalg.qr((rows[-2:] * self._scale).T)[0].T, float(sizes[-1])

    def distance(self, point: Point, other: Point) -> float:
        """How far ahead of a point another one lies, along its tangent."""
        return float(self._lengths * point.tangent @ (other.z - point.z))

    def ahead(self, point: Point, step: float, most: int | None = None) -> Point | None:
        """The point a step further, or None where Newton's method finds none in `most` steps."""
        start, row = point.z + step * point.tangent, self._lengths * point.tangent
        found = self.solved(start, row, float(row @ start))
        if not found.converged or (most and len(found.residuals) > most):
            return None
        return self.point(found.x, point.tangent)

    def at_value(self, near: np.ndarray, value: float) -> np.ndarray | None:
        """The solution at this value of the parameter near z, or None."""
        p = self.path.coordinate(value)
        row = np.append(np.zeros(len(near) - 1), 1.0)
        found = self.solved(np.append(near[:-1], p), row, p)
        return found.x if found.converged else None

    def stepped(self, point: Point, step: float) -> tuple[Point, float, float] | None:
        """The next point, the step that led to it, at most `step`, and a proposal for the next one.

        None where none is found.
        """
        while (new := self._tried(point, step)) is None:
            step /= 2
            if step < FINEST:
                return None
        straight = self._cosine(new, point) > STRAIGHT
        return new, step, min(step * GROWTH, self.max_step) if straight else step

    def _tried(self, point: Point, step: float) -> Point | None:
        new = self.ahead(point, step, MANY)
        return new if new is not None and self._cosine(new, point) > CURVED else None

    def _cosine(self, new: Point, point: Point) -> float:
        return float(self._lengths * new.tangent @ point.tangent)


def lengths(basis: Basis, parameters: int) -> np.ndarray:
    """The weights of da^2, and 1 for each parameter, in the square of a length."""
    return np.append(2 / basis.sizes**2, np.ones(parameters))
