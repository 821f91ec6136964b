"""Stationary states of noisy USA on the circle, from their own equation and not by time stepping.

A stationary density solves mu = exp(kappa g) / int exp(kappa g), g = (1/beta) int e^(beta cos)
dmu. For an even density, with moments m_k = int cos(k theta) dmu and Bessel functions I_k(beta),

    mu proportional to exp((2 kappa/beta) sum_k I_k m_k cos(k theta)),

a finite system for m_1, ..., m_K, solved by Newton's method. Nothing here comes from the package.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import iv, ive

__all__ = ["Stationary", "stationary"]

MODES, POINTS = 30, 512
ANGLES = 2 * np.pi * np.arange(POINTS) / POINTS
K = np.arange(1, MODES + 1)
COSINES = np.cos(np.outer(K, ANGLES))


class Stationary(NamedTuple):
    """An even stationary density on ANGLES, its order parameter, and F minus F(uniform)."""

    density: np.ndarray
    order: float
    free_energy: float


def stationary(beta: float, kappa: float, concentration: float) -> Stationary:
    """The stationary density that Newton finds from a von Mises density.

    Raises
    ------
    RuntimeError
        If the equations are not solved to 1e-13 after 50 iterations.
    """
    moments = ive(K, concentration) / ive(0, concentration)
    pull = 2 * kappa / beta * iv(K, beta)
    for _ in range(50):
        density = _gibbs(pull * moments)
        found = COSINES @ density / POINTS
        residual = found - moments
        if np.abs(residual).max() < 1e-13:
            return Stationary(density, float(found[0]), _free_energy(density, beta, kappa))
        covariance = (COSINES * density) @ COSINES.T / POINTS - np.outer(found, found)
        moments = moments - np.linalg.solve(covariance * pull - np.eye(MODES), residual)
    raise RuntimeError(f"no stationary state found from concentration {concentration}")


def _gibbs(exponent: np.ndarray) -> np.ndarray:
    weight = np.exp(exponent @ COSINES)
    return weight / weight.mean()


def _free_energy(density: np.ndarray, beta: float, kappa: float) -> float:
    """(1/kappa) int mu log mu - E(mu) + E(uniform), E = (1/2 beta) int int e^(beta cos) dmu dmu."""
    kernel = np.exp(beta * np.cos(ANGLES[:, None] - ANGLES)) / POINTS**2
    energy = (density @ kernel @ density - kernel.sum()) / (2 * beta)
    return float((density * np.log(density)).mean() / kappa - energy)
