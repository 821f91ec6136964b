"""Zonal drifts: v[mu] = grad (W * mu) / (Z * mu) with W and Z functions of the inner product.

    USA        W = exp(beta t) / beta                Z = 1
    SA         W = exp(beta t) / beta                Z = exp(beta t)
    Kuramoto   W = t                                 Z = 1

with t = <x, y>. SA is grad (1/beta) log(exp(beta t) * mu).
"""

import numpy as np

from ..spaces.kernels import exponential_multipliers
from .drift import Ensemble, ZonalDrift

__all__ = ["SA", "USA", "Kuramoto"]

SMALL = -40.0  # log x where 1 - e^-x is x to rounding


class _Exponential(ZonalDrift):
    multiplier_error = 0.0

    beta: Ensemble

    @property
    def exponent(self) -> np.ndarray:
        return self.beta

    def _beta_like(self, t: np.ndarray) -> np.ndarray:
        return self.beta.reshape(self.shape + (1,) * (t.ndim - len(self.shape)))

    def contrast(self, log_gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """e^(beta gap) - 1."""
        beta = self._beta_like(log_gap)
        with np.errstate(divide="ignore"):
            log_size = log_gap + np.log(np.abs(beta))
            size = np.exp(log_size)
            small = np.where(log_size < SMALL, log_size, np.log(-np.expm1(-size)))
        sign = np.sign(beta * np.ones_like(log_gap))
        return sign, small + np.where(sign > 0, size, 0.0)

    def potential(self, t: np.ndarray) -> np.ndarray:
        """exp(beta t) / beta, infinite where it overflows; t at beta = 0."""
        beta = self.beta
        with np.errstate(over="ignore"):
            return np.where(beta == 0, t, np.exp(beta * t) / np.where(beta == 0, 1.0, beta))

    def potential_at(self, t: np.ndarray) -> np.ndarray:
        return self.potential(t)

    def _over_beta(self, multipliers: np.ndarray, dimension: int) -> np.ndarray:
        """multipliers / beta in degrees >= 1, and at beta = 0 the limit 1/d in degree 1."""
        beta = np.broadcast_to(self.beta[..., None], multipliers.shape)
        quotient = np.zeros_like(multipliers)
        np.divide(multipliers, beta, out=quotient, where=beta != 0)
        quotient[..., 0] = 0
        quotient[..., 1:2] = np.where(beta[..., 1:2] == 0, 1 / dimension, quotient[..., 1:2])
        return quotient

    def interaction(self, degree: int, dimension: int) -> np.ndarray:
        """Multipliers of exp(beta t)/beta; at beta = 0 of t, its limit without the constant.

        Infinite where exp(|beta|) overflows.
        """
        beta = self.beta
        with np.errstate(over="ignore"):
            scale = np.exp(np.abs(beta))[..., None]
            multipliers = exponential_multipliers(beta, degree, dimension) * scale
        weights = self._over_beta(multipliers, dimension)
        weights[..., 0] = np.where(beta == 0, 0.0, multipliers[..., 0] / np.where(beta, beta, 1.0))
        return weights


class USA(_Exponential):
    """Unnormalised self-attention: v(x) = P_x int e^(beta <x, y>) y dmu(y).

    Parameters
    ----------
    beta : float or array
        Inverse temperature. beta = 0 is Kuramoto; an array makes an ensemble.

    Raises
    ------
    ValueError
        If beta is not finite, or exp(|beta|) overflows (|beta| > 700).

    References
    ----------
    Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2312.10794, equation (USA).
    """

    def validate(self) -> None:
        super().validate()
        if isinstance(self.beta, np.ndarray) and (np.abs(self.beta) > 700).any():
            raise ValueError(
                "USA(beta) needs |beta| <= 700, or exp(beta) overflows; got beta = "
                f"{self.beta.tolist()}. SA takes any beta."
            )

    def rate(self, t: float = 0.0) -> np.ndarray:
        return np.exp(np.abs(self.beta))

    def slope(self, t: np.ndarray) -> np.ndarray:
        return np.exp(self.beta * t)

    def attraction(self, degree: int, dimension: int) -> np.ndarray:
        scale = np.exp(np.abs(self.beta))[..., None]
        multipliers = exponential_multipliers(self.beta, degree, dimension) * scale
        return self._over_beta(multipliers, dimension)


class SA(_Exponential):
    """Softmax self-attention: the attention weights seen from each token sum to one.

        v(x) = P_x int e^(beta <x, y>) y dmu(y) / int e^(beta <x, y>) dmu(y)

    Parameters
    ----------
    beta : float or array
        Inverse temperature, any finite number. beta = 0 is Kuramoto; an array makes an ensemble.

    Notes
    -----
    With noise SA is not a Wasserstein gradient flow, so it has no free energy.

    Z * mu, by which the velocity is divided, is computed with an absolute error of rounding. For
    beta > 0 it is large where the density is, and nothing is lost. For beta < 0 it is smallest
    there, e^(2 beta) relative to its maximum for a narrow density: below beta = -10 narrow
    densities lose their digits, and a run is then reported as unresolved.

    References
    ----------
    Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2312.10794, equation (SA).
    """

    def rate(self, t: float = 0.0) -> np.ndarray:
        return 1 + np.abs(self.beta) / 2

    def slope(self, t: np.ndarray) -> np.ndarray:
        exponent = self.beta * t
        return np.exp(exponent - exponent.max(axis=-1, keepdims=True))

    weight = slope

    def attraction(self, degree: int, dimension: int) -> np.ndarray:
        return self._over_beta(self.normaliser(degree, dimension), dimension)

    def normaliser(self, degree: int, dimension: int) -> np.ndarray:
        multipliers = exponential_multipliers(self.beta, degree, dimension)
        return multipliers / multipliers[..., :1]


class Kuramoto(ZonalDrift):
    """Kuramoto's drift v(x) = P_x int y dmu(y): attention at beta = 0."""

    exponent = np.zeros(())
    polynomial_degree = 1
    multiplier_error = 0.0

    def rate(self, t: float = 0.0) -> np.ndarray:
        return np.ones(())

    def slope(self, t: np.ndarray) -> np.ndarray:
        return np.ones_like(t)

    def contrast(self, log_gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros_like(log_gap), np.full_like(log_gap, -np.inf)

    def potential(self, t: np.ndarray) -> np.ndarray:
        return t

    def potential_at(self, t: np.ndarray) -> np.ndarray:
        return t

    def attraction(self, degree: int, dimension: int) -> np.ndarray:
        weights = np.zeros(degree + 1)
        weights[1:2] = 1 / dimension
        return weights

    def interaction(self, degree: int, dimension: int) -> np.ndarray:
        return self.attraction(degree, dimension)
