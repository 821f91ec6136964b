"""The equation of stationary states with a given symmetry.

mu is stationary under a gradient drift v = grad g[mu] with noise kappa if and only if

    mu = exp(kappa g[mu]) / Z,    g = W * mu (USA, Kuramoto, Interaction),  log(Z * mu) / beta (SA).

In the moments a_l = int p_l dmu, l >= 1, this is R(a) = 0 with

    R_l(a) = a_l - E p_l,    dR_l/da_j = delta_lj - kappa w_j Cov(p_l, g' p_j),

where E is the mean with respect to exp(kappa g) / Z, s = sum_l w_l a_l p_l, g = s and g' = 1, or
for SA g = log(1 + beta s)/beta and g' = 1/(1 + beta s). Only degrees whose w_l counts matter.
"""

from typing import NamedTuple

import numpy as np

from ..core.errors import MeanfieldError
from ..models import SA, ZonalDrift
from .basis import Basis

__all__ = ["Equation", "Mean"]

ROUNDING = 2e-15  # of the exponent kappa g, and of p_l by its recurrence for each degree


class Mean(NamedTuple):
    """The law exp(kappa g[a]) / Z on the nodes.

    Attributes
    ----------
    potential, gain : ndarray, (M,)
        g, and g' = dg/ds.
    density, weights : ndarray, (M,)
        With respect to the uniform law; times the weights of the nodes.
    log_mass : float
        log int exp(kappa g) dsigma.
    moments : ndarray, (N,)
        E p_l.
    """

    potential: np.ndarray
    gain: np.ndarray
    density: np.ndarray
    weights: np.ndarray
    log_mass: float
    moments: np.ndarray


class Equation:
    """R(a) = 0 for one drift, in the functions p_l of one symmetry.

    Parameters
    ----------
    drift : ZonalDrift
        A single one.
    basis : Basis
        Of order 0.

    Raises
    ------
    MeanfieldError
        For drifts that are no gradients of a potential of the measure.
    """

    def __init__(self, drift: ZonalDrift, basis: Basis):
        if drift.normaliser(1, basis.dimension) is not None and not isinstance(drift, SA):
            raise MeanfieldError(
                f"Stationary states are known for drifts grad g[mu]: USA, SA, Kuramoto and "
                f"Interaction; got {drift!r}."
            )
        self.drift, self.basis = drift, basis
        self.dimension, self.degree, self.degrees = basis.dimension, basis.degree, basis.degrees
        self.values = basis.values
        self.weights = self.multipliers(basis)
        self.beta = float(drift.beta) if isinstance(drift, SA) else 0.0

    def multipliers(self, basis: Basis) -> np.ndarray:
        """w_l of every function of a basis."""
        return self.drift.attraction(basis.degree, self.dimension)[basis.degrees]

    def finer(self, degree: int) -> "Equation":
        """The same equation in more functions; the first of them are those of this one."""
        return Equation(self.drift, self.basis.finer(degree))

    def mean(self, a: np.ndarray, kappa: float) -> Mean:
        """The law that the moments a give rise to."""
        s = (self.weights * a) @ self.values
        if self.beta:
            with np.errstate(invalid="ignore", divide="ignore"):
                potential, gain = np.log1p(self.beta * s) / self.beta, 1 / (1 + self.beta * s)
        else:
            potential, gain = s, np.ones_like(s)
        top = potential.max()
        density = np.exp(kappa * (potential - top))
        mass = self.basis.weights @ density
        density /= mass
        weights = self.basis.weights * density
        moments = self.values @ weights
        return Mean(potential, gain, density, weights, kappa * top + np.log(mass), moments)

    def residual(self, a: np.ndarray, kappa: float) -> float:
        """max_l |R_l| / sqrt(dim H_l), that of Legendre moments."""
        residual = (a - self.mean(a, kappa).moments) / self.basis.sizes
        return float(np.abs(residual).max())

    def resolves(self, a: np.ndarray, kappa: float, tail: float) -> bool:
        """Whether the last Legendre moments are below `tail` and rounding."""
        potential = np.abs(self.mean(a, kappa).potential).max()
        return self.basis.tail(a) <= tail + ROUNDING * (kappa * potential + self.degree)

    def jacobian(self, mean: Mean, kappa: float) -> np.ndarray:
        """dR/da, (N, N)."""
        covariance = (self.values * (mean.weights * mean.gain)) @ self.values.T
        covariance -= np.outer(mean.moments, self.values @ (mean.weights * mean.gain))
        return np.eye(len(self.degrees)) - kappa * covariance * self.weights

    def legendre_jacobian(self, mean: Mean, kappa: float) -> np.ndarray:
        """That of Legendre moments, all of one size in high dimensions too, (N, N)."""
        sizes = self.basis.sizes
        return self.jacobian(mean, kappa) * (sizes / sizes[:, None])

    def along_kappa(self, mean: Mean) -> np.ndarray:
        """dR/dkappa = -Cov(p_l, g), (N,)."""
        return -self.covariance(mean, mean.potential)

    def covariance(self, mean: Mean, f: np.ndarray) -> np.ndarray:
        """Cov(p_l, f) for a function f on the nodes."""
        return self.values @ (mean.weights * f) - mean.moments * (mean.weights @ f)

    def free_energy(self, a: np.ndarray, kappa: float) -> float:
        """F(mu) - F(uniform) of the law that a gives rise to; nan for SA, which has none.

        F = (1/kappa) int mu log mu - (1/2) int int W dmu dmu.
        """
        if not self.drift.gradient_flow:
            return float("nan")
        mean = self.mean(a, kappa)
        entropy = mean.weights @ (kappa * mean.potential) - mean.log_mass
        return float(entropy / kappa - 0.5 * self.weights @ mean.moments**2)
