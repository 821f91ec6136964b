"""Radau IIA with five stages, order 9, for stiff motions of few coordinates.

The collocation polynomial of degree 5 equals x at the beginning of the step and has the slope v at
the nodes, the last of which is the end of the step. The scheme is L-stable: fast decay does not
limit the step. The increments Z solve A^-1 Z / dt = v(x + Z), by Newton's method with one matrix
J = dv/dx for all iterations, in the basis of eigenvectors of A^-1.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .flow import PointFlow, VelocityField
from .schemes import Scheme

RADAU_STAGES = 5
NEWTON_ITERATIONS = 20
NEWTON_TOLERANCE = 1e-3  # tolerance of Newton's method, relative to rtol
NEWTON_NOISE = 0.1  # tolerance, relative to rtol, once rounding stops its convergence
NEWTON_ROUNDING = 1e-15  # smallest tolerance of Newton's method
JACOBIAN_DIFFERENCE = 2.0**-10  # relative step of differences for derivatives
SHORTEST_COLUMN = 1e-100  # least length of a column, relative to the largest entry

Radau = Scheme(
    name="Radau",
    order=2 * RADAU_STAGES - 1,
    estimate_order=RADAU_STAGES,
    nodes=(),
    stages=(),
    solution={},
    estimate={},
    reference="Hairer and Wanner, Solving Ordinary Differential Equations II, section IV.8",
)


class _Table(NamedTuple):
    """Coefficients of Radau IIA with s stages.

    nodes : (s,) c
    inverse : (s, s) A^-1
    values, vectors, back : eigenvalues of A^-1, its eigenvectors, and the inverse of their matrix
    real : the real eigenvalue of A^-1
    error : (s,) weights e of the error estimate
    """

    nodes: np.ndarray
    inverse: np.ndarray
    values: np.ndarray
    vectors: np.ndarray
    back: np.ndarray
    real: float
    error: np.ndarray


@cache
def _table() -> _Table:
    """Coefficients, cached. The error estimate e . Z + (dt / lambda) v(x) has order s.

    lambda is the real eigenvalue of A^-1.
    """
    legendre = np.polynomial.legendre.Legendre
    nodes = (1 + (legendre.basis(RADAU_STAGES) - legendre.basis(RADAU_STAGES - 1)).roots().real) / 2
    nodes[-1] = 1.0
    powers = np.arange(1, RADAU_STAGES + 1)
    sums = nodes[:, None] ** (powers - 1)  # sum_j a_ij c_j^(k-1) = c_i^k / k
    A = (nodes[:, None] ** powers / powers) @ np.linalg.inv(sums)
    inverse = np.linalg.inv(A)
    values, vectors = np.linalg.eig(inverse)
    real = float(values[np.abs(values.imag).argmin()].real)
    moments = 1 / powers - np.where(powers == 1, 1 / real, 0.0)
    error = (np.linalg.solve(sums.T, moments) - A[-1]) @ inverse
    return _Table(nodes, inverse, values, vectors, np.linalg.inv(vectors), real, error)


def collocation() -> tuple[np.ndarray, np.ndarray]:
    """Nodes c (s,), and the matrix A (s, s) with Z = dt A v of increments Z and slopes v."""
    table = _table()
    return table.nodes, np.linalg.inv(table.inverse)


class StiffFlow(PointFlow):
    """Steps of `Radau`, with the error control of `PointFlow`.

    A step for N coordinates costs a Jacobian by differences, that is 4 N velocities, which `field`
    evaluates in stacks (N, *x.shape); three inverses of complex (N, N) matrices; and five
    velocities for every iteration.
    """

    def step(
        self, x: np.ndarray, velocity: np.ndarray, elapsed: float, dt: float
    ) -> tuple[Any, Any, float]:
        """Positions and velocities one step after x, and the relative error."""
        table, t, identity = _table(), self._start + elapsed, np.eye(x.size)
        J = jacobian(self._field, x, t)
        self.counts[2] += 4 * x.size + 1
        Z = self._increments(x, t, dt, J) if np.isfinite(J).all() else None
        if Z is None:
            return x, velocity, np.inf
        new = self._field.projected(x + Z[-1].reshape(x.shape))
        difference = table.error @ Z + dt / table.real * velocity.ravel()
        error = np.linalg.solve(identity - dt / table.real * J, difference).reshape(x.shape)
        return new, self._field.velocity(new, t + dt), self._field.relative_error(error, new)

    def increments(self, x: np.ndarray, elapsed: float, dt: float) -> np.ndarray | None:
        """Increments Z (s, N) of a step from x; None if Newton's method does not converge."""
        t = self._start + elapsed
        return self._increments(x, t, dt, jacobian(self._field, x, t))

    def _increments(self, x: np.ndarray, t: float, dt: float, J: np.ndarray) -> np.ndarray | None:
        """Increments Z (s, N), or None if Newton's method does not converge."""
        table, Z, last = _table(), np.zeros((RADAU_STAGES, x.size)), np.inf
        inverses = np.empty((RADAU_STAGES, x.size, x.size), dtype=complex)
        upper = table.values.imag >= 0  # inverses of conjugate values are conjugate
        inverses[upper] = np.linalg.inv(table.values[upper, None, None] / dt * np.eye(x.size) - J)
        inverses[~upper] = inverses[upper & (table.values.imag > 0)].conj()
        tolerance = max(NEWTON_TOLERANCE * self._rtol, NEWTON_ROUNDING)
        noise = max(NEWTON_NOISE * self._rtol, 10 * NEWTON_ROUNDING)
        for _ in range(NEWTON_ITERATIONS):
            slopes = [
                self._field.velocity(x + z.reshape(x.shape), t + c * dt).ravel()
                for z, c in zip(Z, table.nodes, strict=True)
            ]
            self.counts[2] += RADAU_STAGES
            residual = table.back @ (np.array(slopes) - table.inverse @ Z / dt)
            change = (table.vectors @ np.einsum("sij,sj->si", inverses, residual)).real
            Z = Z + change
            sizes = [self._field.relative_error(z.reshape(x.shape), x) for z in change]
            size = max(sizes)
            if not np.isfinite(size) or size > 2 * last:
                return None
            if size <= tolerance or (size <= noise and size > last / 4):
                return Z
            last = size
        return None


def jacobian(field: VelocityField, x: np.ndarray, t: float) -> np.ndarray:
    """Jacobian dv/dx (N, N) by differences of order 4, with steps relative to columns of x.

    The step for a coordinate is relative to the largest entry of its column. Up to rounding, J is
    exact for velocities of degree 3 or 4. Newton's method converges only if the error of J is small
    compared with 1/dt, however large J is.
    """
    largest = np.abs(x).max(initial=0.0) or 1.0
    lengths = np.maximum(np.abs(x).max(axis=0), SHORTEST_COLUMN * largest)
    steps = JACOBIAN_DIFFERENCE * np.broadcast_to(lengths, x.shape)
    shifts = np.zeros((x.size, x.size))
    np.fill_diagonal(shifts, steps)
    shifts = shifts.reshape(x.size, *x.shape)
    with np.errstate(all="ignore"):  # the caller checks whether the result is finite
        once, twice = (
            field.velocity(x + m * shifts, t) - field.velocity(x - m * shifts, t) for m in (1, 2)
        )
        return ((8 * once - twice).reshape(x.size, x.size) / (12 * steps.reshape(-1, 1))).T
