"""Scattered angles: evaluation of a Fourier series, its cumulative law, empirical modes."""

import numpy as np
from numba import njit

__all__ = ["empirical_coefficients", "evaluate", "sample_angles"]


def evaluate(coefficients: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """sum_{|k| <= K} c_k e^{ik theta} at any angles: (*ensemble, *angles.shape). O(n K)."""
    series = np.ascontiguousarray(coefficients.reshape(-1, coefficients.shape[-1]))
    values = _horner(series, np.ascontiguousarray(angles, dtype=float).ravel())
    return values.reshape((*coefficients.shape[:-1], *np.shape(angles)))


@njit(cache=True)
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
    return _empirical(np.ascontiguousarray(angles, dtype=float), degree + 1) / angles.size


@njit(cache=True)
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

    F is tabulated on 16 points per wavelength and inverted by bisection and Newton steps, to
    about 1e-15.
    """
    k = np.arange(1, coefficients.size)
    primitive = np.zeros(coefficients.size, dtype=complex)
    primitive[1:] = coefficients[1:] / (2j * np.pi * k)
    offset = 2 * np.sum(primitive[1:] * (-1.0) ** k).real

    def cumulative(theta):
        return (theta + np.pi) / (2 * np.pi) + evaluate(primitive, theta) - offset

    grid = np.linspace(-np.pi, np.pi, 16 * coefficients.size + 1)
    table = cumulative(grid)
    level = rng.random(n)
    cell = np.clip(np.searchsorted(table, level, side="right") - 1, 0, grid.size - 2)
    low, high = grid[cell], grid[cell + 1]
    theta = (low + high) / 2
    for _ in range(60):
        excess = cumulative(theta) - level
        low, high = np.where(excess < 0, theta, low), np.where(excess < 0, high, theta)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = theta - 2 * np.pi * excess / evaluate(coefficients, theta)
        inside = (newton > low) & (newton < high)
        update = np.where(inside, newton, (low + high) / 2)
        converged = np.abs(update - theta).max(initial=0) < 1e-14
        theta = update
        if converged:
            break
    return theta
