"""Distances between points: geodesic on the sphere, Euclidean in R^d."""

import numpy as np
from numba import njit

__all__ = ["between", "pairwise", "scaled"]

NEAR = 0.01  # angles from 0 or pi below it lose digits in an inner product


def between(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Angles in radians of unit vectors (..., d), broadcast, with the relative accuracy of each."""
    chord, other = (np.linalg.norm(x - sign * y, axis=-1) for sign in (1, -1))
    return 2 * np.arctan2(chord, other)


def scaled(x: np.ndarray, y: np.ndarray, p: float, on_sphere: bool) -> tuple[np.ndarray, float]:
    """(d(x_i, y_j) / scale)^p and the scale, the largest distance, so that no power overflows."""
    if on_sphere:
        distances = pairwise(x, y, 1, True)
        scale = float(distances.max()) or 1.0
        distances /= scale
    else:
        scale = float(np.abs(x).max() + np.abs(y).max()) or 1.0
        distances = pairwise(x / scale, y / scale, 1, False)
        largest = float(distances.max()) or 1.0
        distances, scale = distances / largest, scale * largest
    if p == 2:
        return np.multiply(distances, distances, out=distances), scale
    return (distances if p == 1 else np.power(distances, p, out=distances)), scale


def pairwise(x: np.ndarray, y: np.ndarray, p: float, on_sphere: bool) -> np.ndarray:
    """d(x_i, y_j)^p for points (n, d) and (m, d), (n, m); angles to 1e-14."""
    if on_sphere:
        distances = x @ y.T
        np.clip(distances, -1, 1, out=distances)
        np.arccos(distances, out=distances)
        _refine(x, y, distances)
    else:
        distances = np.empty((len(x), len(y)))
        _euclidean(x, y, distances)
    if p == 2:
        return np.multiply(distances, distances, out=distances)
    return distances if p == 1 else np.power(distances, p, out=distances)


@njit(cache=True, nogil=True)
def _refine(x, y, angles):
    """Angles near 0 and pi from the difference and the sum of the vectors."""
    for i in range(len(x)):
        for j in range(len(y)):
            if angles[i, j] < NEAR or angles[i, j] > np.pi - NEAR:
                apart = together = 0.0
                for k in range(x.shape[1]):
                    apart += (x[i, k] - y[j, k]) ** 2
                    together += (x[i, k] + y[j, k]) ** 2
                angles[i, j] = 2 * np.arctan2(np.sqrt(apart), np.sqrt(together))


@njit(cache=True, nogil=True)
def _euclidean(x, y, distances):
    for i in range(len(x)):
        for j in range(len(y)):
            square = 0.0
            for k in range(x.shape[1]):
                square += (x[i, k] - y[j, k]) ** 2
            distances[i, j] = np.sqrt(square)
