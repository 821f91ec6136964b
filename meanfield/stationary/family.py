"""Equations that depend on beta, and what changes with it."""

import numpy as np

from ..drifts import SA, USA
from ..kernels import exponential_multipliers
from .equation import Equation, Mean
from .harmonics import Harmonics

__all__ = ["Family", "Member"]


class Member(Equation):
    """The equation at one beta, with derivatives by beta.

    dw/dbeta follows from t P_l = (l P_{l-1} + (l + d - 2) P_{l+1}) / (2 l + d - 2) for the
    multipliers of d exp(beta t)/dbeta = t exp(beta t).
    """

    def __init__(self, drift: USA | SA, harmonics: Harmonics):
        super().__init__(drift, harmonics.dimension, harmonics.degree, harmonics)
        beta, d, l = float(drift.beta), self.dimension, self.degrees
        scaled = exponential_multipliers(beta, harmonics.degree + 1, d)
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


class Family:
    """Equations for all beta of one kind of drift.

    Parameters
    ----------
    drift : type
        USA or SA.
    dimension, degree : int
    """

    def __init__(self, drift: type[USA] | type[SA], dimension: int, degree: int):
        self.drift, self.harmonics = drift, Harmonics(dimension, 0, degree)

    def at(self, beta: float) -> Member:
        """The equation at this beta > 0."""
        return Member(self.drift(beta), self.harmonics)
