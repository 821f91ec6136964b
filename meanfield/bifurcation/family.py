"""Equations that depend on beta, and what changes with it."""

from functools import lru_cache

import numpy as np

from ..models import SA, USA
from ..spaces.kernels import exponential_multipliers
from .basis import Basis
from .equation import Equation, Mean

__all__ = ["Family", "Member"]

RECENT = 4


class Member(Equation):
    """The equation at one beta, with derivatives by beta.

    dw/dbeta follows from t P_l = (l P_{l-1} + (l + d - 2) P_{l+1}) / (2 l + d - 2) for the
    multipliers of d exp(beta t)/dbeta = t exp(beta t).
    """

    def __init__(self, drift: USA | SA, basis: Basis):
        super().__init__(drift, basis)
        beta, d, l = float(drift.beta), self.dimension, self.degrees
        scaled = exponential_multipliers(beta, basis.degree + 1, d)
        changes = (l * scaled[l - 1] + (l + d - 2) * scaled[l + 1]) / (2 * l + d - 2)
        if isinstance(drift, SA):
            quotients = scaled[l] / scaled[0]
            changes = (changes - quotients * scaled[1]) / scaled[0]
        else:
            changes *= np.exp(abs(beta))
        self.weight_changes = (changes - self.weights) / beta

    def potential_change(self, a: np.ndarray, mean: Mean) -> np.ndarray:
        """dg/dbeta on the nodes, at the same moments."""
        change = (self.weight_changes * a) @ self.values
        if not self.beta:
            return change
        s = (self.weights * a) @ self.values
        return ((s + self.beta * change) * mean.gain - mean.potential) / self.beta

    def gain_change(self, a: np.ndarray, mean: Mean) -> np.ndarray:
        """dgain/dbeta on the nodes, at the same moments."""
        if not self.beta:
            return np.zeros_like(mean.gain)
        s, change = ((w * a) @ self.values for w in (self.weights, self.weight_changes))
        return -(mean.gain**2) * (s + self.beta * change)

    def along_beta(self, a: np.ndarray, mean: Mean, kappa: float) -> np.ndarray:
        """dR/dbeta, (N,)."""
        return -kappa * self.covariance(mean, self.potential_change(a, mean))


class Family:
    """Equations for all beta of one kind of drift.

    Parameters
    ----------
    drift : type
        USA or SA.
    basis : Basis
        Of order 0.
    """

    def __init__(self, drift: type[USA] | type[SA], basis: Basis):
        self.drift, self.basis = drift, basis
        self._member = lru_cache(RECENT)(lambda beta: Member(drift(beta), basis))

    def at(self, beta: float) -> Member:
        """The equation at this beta > 0; the same one for the last few that were asked for."""
        return self._member(float(beta))

    def weights(self, betas: np.ndarray | float) -> np.ndarray:
        """w_l of every function of the basis at every beta, (*B, N)."""
        multipliers = self.drift(betas).attraction(self.basis.degree, self.basis.dimension)
        return multipliers[..., self.basis.degrees]

    def finer(self, degree: int) -> "Family":
        """The same family in more functions."""
        return Family(self.drift, self.basis.finer(degree))
