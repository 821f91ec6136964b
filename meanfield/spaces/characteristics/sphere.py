"""Nodes on S^2: unit vectors; sums over harmonics by ducc0's transforms at scattered points."""

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from ..sphere_points import empirical_coefficients, evaluate, gradient
from .chart import Chart, graded_rule

if TYPE_CHECKING:
    from ..sphere import Sphere

__all__ = ["SphereChart"]

FEWEST_LONGITUDES = 32


class SphereChart(Chart):
    """Latitudes about the limit, graded towards it and its antipode, times longitudes."""

    usual_nodes = 16384
    geometry: "Sphere"

    def nodes(
        self, count: int, degree: int, peak: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        around = max(FEWEST_LONGITUDES, 4 * (degree + 1), 2 * int(sqrt(count) / 4))
        s, weights = graded_rule(max(count // around, 2), 3, peak)
        phi = 2 * np.pi * np.arange(around) / around
        upright = np.empty((s.size, around, 3))
        upright[..., 0] = np.cos(phi) / np.cosh(s)[:, None]
        upright[..., 1] = np.sin(phi) / np.cosh(s)[:, None]
        upright[..., 2] = -np.tanh(s)[:, None]
        row, column = np.indices((s.size, around)).reshape(2, -1)
        points = self.projected(upright.reshape(-1, 3) @ self._frame())
        return points, np.repeat(weights / around, around), [row % 2 == 0, column % 2 == 0]

    def _frame(self) -> np.ndarray:
        """Rows: two directions across the limit, and the limit."""
        z = self.limit
        helper = np.eye(3)[np.argmin(np.abs(z))]
        x = np.cross(helper, z)
        x /= np.linalg.norm(x)
        return np.stack([x, np.cross(z, x), z])

    def points(self, coordinates: np.ndarray) -> np.ndarray:
        return coordinates

    def moments(self, coordinates: np.ndarray, masses: np.ndarray, degree: int) -> np.ndarray:
        return empirical_coefficients(coordinates, masses, degree)

    def velocity(self, coordinates, masses, attraction, normaliser) -> np.ndarray:
        degree = attraction.size - 1
        degrees = self.geometry.with_degree(degree).degrees
        moments = empirical_coefficients(coordinates, masses, degree)
        velocity = gradient(attraction[degrees] * moments, degree, coordinates)
        if normaliser is not None:
            level = (normaliser[degrees] * moments)[None]
            velocity /= evaluate(level, degree, coordinates)[0, :, None]
        return velocity

    def lengths(self, coordinates: np.ndarray, rates: np.ndarray) -> np.ndarray:
        return np.linalg.norm(rates, axis=1)

    def distances(self, coordinates: np.ndarray, point: np.ndarray) -> np.ndarray:
        across = np.linalg.norm(np.cross(coordinates, point), axis=1)
        return np.arctan2(across, coordinates @ point)

    def projected(self, coordinates: np.ndarray) -> np.ndarray:
        return coordinates / np.linalg.norm(coordinates, axis=1, keepdims=True)
