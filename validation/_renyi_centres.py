"""Renyi centres of tokens in their order, and how many there are on the circle."""

import numpy as np
from scipy.integrate import quad
from scipy.special import exp1

__all__ = ["centres", "number_of_centres", "parked", "strong_centres"]


def strong_centres(x: np.ndarray, delta: float) -> np.ndarray:
    """Whether tokens (samples, n, d) are farther than delta from all before them."""
    found = np.ones(x.shape[:2], dtype=bool)
    for j in range(1, x.shape[1]):
        found[:, j] = (np.einsum("sjd,sd->sj", x[:, :j], x[:, j]) < np.cos(delta)).all(axis=1)
    return found


def centres(x: np.ndarray, delta: float) -> np.ndarray:
    """Whether tokens (samples, n, d) are farther than delta from all centres before them."""
    found = np.ones(x.shape[:2], dtype=bool)
    for j in range(1, x.shape[1]):
        far = np.einsum("sjd,sd->sj", x[:, :j], x[:, j]) < np.cos(delta)
        found[:, j] = (far | ~found[:, :j]).all(axis=1)
    return found


def parked(n: float, delta: float) -> float:
    """Renyi's number of centres among n tokens on the circle."""
    length = 2 * np.pi / delta

    def free(u):
        return np.exp(-2 * (np.euler_gamma + np.log(u) + exp1(u))) if u > 0 else 1.0

    return length * quad(free, 0, n / length, limit=200)[0]


def number_of_centres(x: np.ndarray, delta: float) -> int:
    """How many Renyi centres many tokens (n, d) have, which `centres` takes too long for."""
    leaders = np.zeros((0, x.shape[1]))
    for token in x:
        if (leaders @ token < np.cos(delta)).all():
            leaders = np.vstack([leaders, token])
    return len(leaders)
