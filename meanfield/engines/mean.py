"""Kuramoto's drift: every token is drawn to the mean of all."""

import numpy as np
from numba import njit

from .contract import Engine

__all__ = ["MeanDirection"]

BLOCK = 1024


class MeanDirection(Engine):
    """v_i = P_i M with M = sum_j m_j x_j, O(n d): Kuramoto, and USA and SA at beta = 0."""

    name = "mean"

    def velocity(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        velocity = np.empty(x.shape)
        _project(x, _means(x, masses), velocity)
        return velocity

    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        return 0.5 * (_means(x, masses) ** 2).sum(axis=1)


@njit(cache=True, nogil=True, error_model="numpy")
def _means(x, masses):
    """The mean directions (R, d), summed block by block."""
    replicas, n, d = x.shape
    means, part = np.zeros((replicas, d)), np.empty(d)
    for r in range(replicas):
        for begin in range(0, n, BLOCK):
            part[:] = 0.0
            for i in range(begin, min(n, begin + BLOCK)):
                square = 0.0
                for c in range(d):
                    square += x[r, i, c] * x[r, i, c]
                weight = masses[r, i] / np.sqrt(square)
                for c in range(d):
                    part[c] += weight * x[r, i, c]
            means[r] += part
    return means


@njit(cache=True, nogil=True, error_model="numpy")
def _project(x, means, velocity):
    replicas, n, d = x.shape
    for r in range(replicas):
        for i in range(n):
            square, radial = 0.0, 0.0
            for c in range(d):
                square += x[r, i, c] * x[r, i, c]
                radial += x[r, i, c] * means[r, c]
            for c in range(d):
                velocity[r, i, c] = means[r, c] - radial / square * x[r, i, c]
