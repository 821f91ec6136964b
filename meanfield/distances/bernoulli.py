"""Energies of points on the circle for the kernels that Bernoulli polynomials are.

    sum_{k >= 1} 2 cos(k theta) / k^(2s) = (-1)^(s+1) (2 pi)^(2s) / (2s)! B_2s(theta / 2 pi),

0 <= theta <= 2 pi (DLMF 24.8.1): sums over all pairs of n points, in O(n log n).
"""

from math import factorial, pi

import numpy as np
from numba import njit

__all__ = ["energy_on_circle"]

BERNOULLI = {  # coefficients of B_2s, the lowest first
    1: (1 / 6, -1.0, 1.0),
    2: (-1 / 30, 0.0, 1.0, -2.0, 1.0),
    3: (1 / 42, 0.0, -0.5, 0.0, 2.5, -3.0, 1.0),
}


def energy_on_circle(angles: np.ndarray, masses: np.ndarray, s: int) -> float:
    """sum_ij masses_i masses_j sum_{k >= 1} 2 cos(k (angle_i - angle_j)) / k^(2s), s = 1, 2, 3."""
    order = np.argsort(angles)
    sign = -1.0 if s % 2 == 0 else 1.0
    scale = sign * (2 * pi) ** (2 * s) / factorial(2 * s)
    return scale * _pairs(angles[order] / (2 * pi), masses[order], np.array(BERNOULLI[s]))


@njit(cache=True, nogil=True)
def _pairs(x, masses, kernel):
    """sum_ij masses_i masses_j kernel(|x_i - x_j|) for increasing x.

    moments_q = sum over the points before x of masses_j (x - x_j)^q moves along with x.
    """
    size = kernel.size
    moments, shifted = np.zeros(size), np.zeros(size)
    total = place = 0.0
    for i in range(x.size):
        step, place = x[i] - place, x[i]
        for q in range(size):  # Horner's scheme for sum_r binomial(q, r) step^(q - r) moments_r
            shifted[q] = moments[q]
        for q in range(1, size):
            for r in range(size - 1, q - 1, -1):
                shifted[r] += step * shifted[r - 1]
        for q in range(size):
            moments[q] = shifted[q]
        field = 0.0
        for q in range(size):
            field += kernel[q] * moments[q]
        total += masses[i] * (2 * field + masses[i] * kernel[0])
        moments[0] += masses[i]
    return total
