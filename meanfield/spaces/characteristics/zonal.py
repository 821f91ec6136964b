"""Nodes of an axisymmetric density: s = log tan(theta / 2), theta the angle from the limit."""

import numpy as np
from numba import njit

from ...lowlevel.legendre import recurrence
from .chart import ROUNDING, Chart, graded_rule
from .clusters import Cluster, cap_at

__all__ = ["ZonalChart"]

BLOCK = 256


class ZonalChart(Chart):
    """With x = <point, limit> = -tanh(s) the flow is ds/dt = -(W * mu)'(x) / (Z * mu)(x).

    Every distance from the limit, and from its antipode, keeps its relative accuracy.
    """

    usual_nodes = 1024

    def nodes(
        self, count: int, degree: int, peak: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        s, weights = graded_rule(max(count, 2), self.geometry.dimension, peak)
        return s, weights, [np.arange(s.size) % 2 == 0]

    def _heights(self, coordinates: np.ndarray) -> np.ndarray:
        """<point, limit>."""
        return -np.tanh(coordinates)

    def points(self, coordinates: np.ndarray) -> np.ndarray:
        points = np.zeros((coordinates.size, self.geometry.dimension))
        points[:, 0] = _sech(coordinates)
        points[:, -1] = self._heights(coordinates) * self.limit[-1]
        return points

    def moments(self, coordinates: np.ndarray, masses: np.ndarray, degree: int) -> np.ndarray:
        e = recurrence(degree + 1, 0, self.geometry.dimension)
        return _moments(self._heights(coordinates) * self.limit[-1], np.array(masses), e)

    def velocity(self, coordinates, masses, attraction, normaliser) -> np.ndarray:
        x = self._heights(coordinates)
        e = recurrence(attraction.size, 0, self.geometry.dimension)
        moments = _moments(x, np.array(masses), e)
        weights = np.zeros(0) if normaliser is None else normaliser * moments
        return _slope(x, attraction * moments, weights, e)

    def lengths(self, coordinates: np.ndarray, rates: np.ndarray) -> np.ndarray:
        return np.abs(rates) * _sech(coordinates)

    def distances(self, coordinates: np.ndarray, point: np.ndarray) -> np.ndarray:
        s = -coordinates if point @ self.limit < 0 else coordinates
        near = 2 * np.arctan(np.exp(-np.abs(s)))
        return np.where(s > 0, np.pi - near, near)

    def mean_direction(self, coordinates: np.ndarray, masses: np.ndarray) -> np.ndarray:
        mean = masses @ self._heights(coordinates)
        return -self.limit if mean < -ROUNDING else self.limit

    def clusters(
        self, coordinates: np.ndarray, masses: np.ndarray, *, radius: float, least: float
    ) -> list[Cluster]:
        """Those at the two poles of the axis: mass at another latitude is a ring."""
        poles = (self.limit, -self.limit)
        caps = [cap_at(pole, self.distances(coordinates, pole), masses, radius) for pole in poles]
        return sorted((c for c in caps if c and c.mass >= least), key=lambda c: -c.mass)

    def relative_error(
        self, error: np.ndarray, coordinates: np.ndarray, masses: np.ndarray, finest: float
    ) -> float:
        """Root mean square of the errors of s: relative errors of the distances to both poles."""
        return float(np.sqrt(np.mean(error**2)))


def _sech(s: np.ndarray) -> np.ndarray:
    """1/cosh(s), which does not overflow however far a pole is."""
    small = np.exp(-np.abs(s))
    return 2 * small / (1 + small**2)


@njit(cache=True)
def _moments(x, masses, e):
    """sum_i masses_i p_l(x_i), l = 0, ..., e.size - 2."""
    total = np.zeros(e.size - 1)
    for begin in range(0, x.size, BLOCK):
        block, mass = x[begin : begin + BLOCK], masses[begin : begin + BLOCK]
        before, p = np.zeros(block.size), np.empty(block.size)
        for i in range(block.size):
            p[i] = mass[i]
        for l in range(total.size):
            a, b, sum_of_p = 1 / e[l + 1], e[l], 0.0
            for i in range(block.size):
                sum_of_p += p[i]
                after = a * (block[i] * p[i] - b * before[i])
                before[i], p[i] = p[i], after
            total[l] += sum_of_p
    return total


@njit(cache=True, error_model="numpy")
def _slope(x, potential, normaliser, e):
    """-g'(x) / z(x) for g = sum potential_l p_l and z = sum normaliser_l p_l, or 1."""
    slope = np.empty(x.size)
    for begin in range(0, x.size, BLOCK):
        block = x[begin : begin + BLOCK]
        before, p = np.zeros(block.size), np.ones(block.size)
        before_slope, p_slope = np.zeros(block.size), np.zeros(block.size)
        g, z = np.zeros(block.size), np.empty(block.size)
        for i in range(block.size):
            z[i] = 0.0 if normaliser.size > 0 else 1.0
        for l in range(potential.size):
            a, b, weight = 1 / e[l + 1], e[l], potential[l]
            level = normaliser[l] if normaliser.size > 0 else 0.0
            for i in range(block.size):
                g[i] += weight * p_slope[i]
                z[i] += level * p[i]
                after_slope = a * (p[i] + block[i] * p_slope[i] - b * before_slope[i])
                after = a * (block[i] * p[i] - b * before[i])
                before[i], p[i] = p[i], after
                before_slope[i], p_slope[i] = p_slope[i], after_slope
        for i in range(block.size):
            slope[begin + i] = -g[i] / z[i]
    return slope
