"""Scattered angles: evaluation of a Fourier series, its cumulative law, empirical modes."""

import numpy as np
from numba import njit

__all__ = ["empirical_coefficients", "evaluate", "sample_angles"]

STEPS, CLOSE = 60, 1e-14  # of the inversion of a cumulative law


def evaluate(coefficients: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """sum_{|k| <= K} c_k e^{ik theta} at any angles: (*ensemble, *angles.shape). O(n K)."""
    series = np.array(coefficients.reshape(-1, coefficients.shape[-1]), order="C")
    values = _horner(series, np.array(angles, dtype=float).ravel())
    return values.reshape((*coefficients.shape[:-1], *np.shape(angles)))


@njit(cache=True, nogil=True)
def _horner(series, angles):
    values = np.empty((len(series), angles.size))
    for j in range(angles.size):
        z = np.exp(1j * angles[j])
        for i in range(len(series)):
            total = 0j
            for k in range(series.shape[1] - 1, 0, -1):
                total = (total + series[i, k]) * z
            values[i, j] = series[i, 0].real + 2 * total.real
    return values


def empirical_coefficients(angles: np.ndarray, degree: int) -> np.ndarray:
    """(1/n) sum_j e^{-ik theta_j} for k = 0, ..., degree. O(n degree)."""
    return _empirical(np.array(angles, dtype=float), degree + 1) / angles.size


@njit(cache=True, nogil=True)
def _empirical(angles, modes):
    total = np.zeros(modes, dtype=np.complex128)
    for theta in angles:
        z, power = np.exp(-1j * theta), 1.0 + 0j
        for k in range(modes):
            total[k] += power
            power *= z
    return total


def sample_angles(coefficients: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """n independent angles in [-pi, pi) by inversion of the cumulative law.

        F(theta) = (theta + pi)/2 pi + (1/pi) Re sum_{k >= 1} c_k (e^{ik theta} - (-1)^k)/(ik)

    F is tabulated on 16 points per wavelength and inverted by Newton steps, or bisection where
    those leave the cell of the table, to about 1e-15. O(n K).
    """
    k = np.arange(1, coefficients.size)
    primitive = np.zeros(coefficients.size, dtype=complex)
    primitive[1:] = coefficients[1:] / (2j * np.pi * k)
    offset = 2 * np.sum(primitive[1:] * (-1.0) ** k).real
    grid = np.linspace(-np.pi, np.pi, 16 * coefficients.size + 1)
    table = (grid + np.pi) / (2 * np.pi) + evaluate(primitive, grid) - offset
    level = rng.random(n)
    cell = np.clip(np.searchsorted(table, level, side="right") - 1, 0, grid.size - 2)
    series = np.stack([primitive, coefficients], axis=1)
    return _inverted(series, offset, grid, table, level, cell)


@njit(cache=True, nogil=True)
def _inverted(series, offset, grid, table, level, cell):
    theta = np.empty(level.size)
    for j in range(level.size):
        low, high = grid[cell[j]], grid[cell[j] + 1]
        rise = table[cell[j] + 1] - table[cell[j]]
        part = (level[j] - table[cell[j]]) / rise if rise > 0 else 0.5
        angle = low + (high - low) * min(max(part, 0.0), 1.0)
        for _ in range(STEPS):
            z, law, density = np.exp(1j * angle), 0j, 0j
            for k in range(len(series) - 1, 0, -1):
                law = (law + series[k, 0]) * z
                density = (density + series[k, 1]) * z
            excess = (angle + np.pi) / (2 * np.pi) + 2 * law.real - offset - level[j]
            if excess < 0:
                low = angle
            else:
                high = angle
            slope = (series[0, 1].real + 2 * density.real) / (2 * np.pi)
            new = angle - excess / slope if slope != 0 else low
            if not low < new < high:
                new = (low + high) / 2
            close = abs(new - angle) < CLOSE
            angle = new
            if close:
                break
        theta[j] = angle
    return theta
