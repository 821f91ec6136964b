"""Curves of special points in the plane of beta and kappa, by continuation of those points.

A fold is a solution of

    R(a, kappa, beta) = 0,   sigma(a, kappa, beta) = 0,

with sigma from the bordered system (dR/da, b; c, 0) (v, sigma) = (0, 1): it vanishes where dR/da is
singular, and its gradient is -u . d(dR/da) v with u from the transposed system (Govaerts). On the
line of first-order transitions sigma is kappa (F(mu) - F(uniform)), of size 1 for all beta, whose
derivative by a vanishes. Either way the solutions are curves in (a, log kappa, beta), followed by
pseudo-arclength.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np

from .curve import lengths
from .equation import Mean
from .family import Family, Member
from .newton import newton, solve_scaled

__all__ = ["Folds", "Locus", "Transitions"]

TOLERANCE = 1e-12
FINEST = 1e-7
STRAIGHT, CURVED, GROWTH, MANY = 0.999, 0.98, 1.6, 7


class Locus(ABC):
    """A curve of special points z = (a, log kappa, beta).

    Parameters
    ----------
    family : Family
    max_step : float
    """

    def __init__(self, family: Family, max_step: float = 0.2):
        self.family, self.max_step = family, max_step
        self._lengths = lengths(family.basis, 2)
        self._scale = np.append(family.basis.sizes, [1.0, 1.0])

    @abstractmethod
    def condition(self, member: Member, a: np.ndarray, kappa: float, mean: Mean):
        """sigma, and its gradient by (a, log kappa, beta)."""

    def system(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The residual (N + 1,) and its Jacobian (N + 1, N + 2)."""
        a, kappa, beta = z[:-2], float(np.exp(z[-2])), float(z[-1])
        member = self.family.at(beta)
        mean = member.mean(a, kappa)
        above = np.column_stack(
            [
                member.jacobian(mean, kappa),
                kappa * member.along_kappa(mean),
                member.along_beta(a, mean, kappa),
            ]
        )
        sigma, gradient = self.condition(member, a, kappa, mean)
        return np.append(a - mean.moments, sigma), np.vstack([above, gradient])

    def solved(self, start: np.ndarray, row: np.ndarray, value: float):
        """The special point with <row, z> = value near a start: an `Iteration`."""

        def system(z: np.ndarray):
            if z[-1] <= 0:  # a step too far; the next is shorter
                return np.full(len(z), np.inf), lambda: np.eye(len(z))
            residual, jacobian = self.system(z)
            return np.append(residual, row @ z - value), lambda: np.vstack([jacobian, row])

        return newton(system, start, TOLERANCE, self._scale)

    def at_beta(self, near: np.ndarray, beta: float) -> np.ndarray | None:
        """The special point at this beta, or None."""
        row = np.append(np.zeros(len(near) - 1), 1.0)
        found = self.solved(np.append(near[:-1], beta), row, beta)
        return found.x if found.converged else None

    def tangent(self, z: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Of length 1 in the measure of `lengths`, not against a direction."""
        matrix = np.vstack([self.system(z)[1], self._lengths * direction])
        tangent = solve_scaled(matrix, np.append(np.zeros(len(z) - 1), 1.0), self._scale)
        return tangent / np.sqrt(self._lengths @ tangent**2)

    def follow(self, z: np.ndarray, direction: np.ndarray, step: float) -> Iterator[np.ndarray]:
        """Points one after the other, until none is found."""
        tangent = self.tangent(z, direction)
        while step >= FINEST:
            start, row = z + step * tangent, self._lengths * tangent
            found = self.solved(start, row, float(row @ start))
            if not found.converged or len(found.residuals) > MANY:
                step /= 2
                continue
            new = self.tangent(found.x, tangent)
            cosine = float(row @ new)
            if cosine < CURVED:
                step /= 2
                continue
            z, tangent = found.x, new
            yield z
            if cosine > STRAIGHT:
                step = min(step * GROWTH, self.max_step)


class Folds(Locus):
    """The curve on which two stationary states meet.

    Parameters
    ----------
    family : Family
    null : ndarray, (N,)
        About the null vector of dR/da in Legendre moments, of length about 1.
    max_step : float
    """

    def __init__(self, family: Family, null: np.ndarray, max_step: float = 0.2):
        super().__init__(family, max_step)
        self.null = null

    def condition(self, member: Member, a: np.ndarray, kappa: float, mean: Mean):
        n, sizes = len(a), member.basis.sizes
        bordered = np.zeros((n + 1, n + 1))
        bordered[:n, :n] = member.legendre_jacobian(mean, kappa)
        bordered[:n, n] = bordered[n, :n] = self.null
        unit = np.append(np.zeros(n), 1.0)
        right, left = np.linalg.solve(bordered, unit), np.linalg.solve(bordered.T, unit)
        return right[n], -_slope(member, a, kappa, mean, left[:n] / sizes, right[:n] * sizes)


class Transitions(Locus):
    """The curve on which the free energy is that of the uniform state; of gradient flows."""

    def condition(self, member: Member, a: np.ndarray, kappa: float, mean: Mean):
        entropy = mean.weights @ (kappa * mean.potential) - mean.log_mass
        moments = mean.moments
        energy = 0.5 * kappa * (member.weights @ moments**2)
        by_beta = -0.5 * kappa * (member.weight_changes @ moments**2)
        return entropy - energy, np.concatenate([np.zeros(len(a)), [-energy, by_beta]])


def _slope(member: Member, a, kappa: float, mean: Mean, left, right) -> np.ndarray:
    """The gradient of left . (dR/da) right = left . right - kappa Cov(f, h).

    f = sum left_l p_l and h = gain sum w_l right_l p_l. The law changes like exp(kappa g), so that
    dE X = kappa Cov(X, dg) + E dX.
    """
    p, w, mass = member.values, member.weights, mean.weights
    f, s = left @ p, (w * right) @ p
    h = mean.gain * s
    f = f - mass @ f
    pairs = mass * f * (h - mass @ h)
    covariance = pairs.sum()
    bent = -member.beta * mean.gain**2 * s  # dh/dg' s
    by_moments = kappa * (p @ (pairs * mean.gain) - covariance * (p @ (mass * mean.gain)))
    by_moments = w * (by_moments + p @ (mass * f * bent))
    by_kappa = covariance + kappa * (pairs @ mean.potential - covariance * (mass @ mean.potential))
    change = member.potential_change(a, mean)
    moved = mean.gain * ((member.weight_changes * right) @ p) + s * member.gain_change(a, mean)
    by_beta = kappa * (pairs @ change - covariance * (mass @ change)) + (mass * f) @ moved
    return -kappa * np.concatenate([by_moments, [by_kappa, by_beta]])
