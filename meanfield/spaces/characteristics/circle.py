"""Nodes on the circle: angles from the antipode of the limit, in [-pi, pi] at first."""

import numpy as np
from numba import njit

from .chart import Chart, graded_rule

__all__ = ["CircleChart"]

BLOCK = 256


class CircleChart(Chart):
    """The angle of a node is that of -limit plus its coordinate.

    Rounding moves the point that repels by about 1e-16, and with it as much mass.
    """

    usual_nodes = 4096
    smallest_w2 = 3e-8

    @property
    def _origin(self) -> float:
        return float(np.arctan2(-self.limit[1], -self.limit[0]))

    def nodes(
        self, count: int, degree: int, peak: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        half = max(count // 2, 2)
        s, weights = graded_rule(half, 2, peak)
        side = 2 * np.arctan(np.exp(-s))
        every_second = np.tile(np.arange(half) % 2 == 0, 2)
        return np.concatenate([side, -side]), np.tile(weights / 2, 2), [every_second]

    def points(self, coordinates: np.ndarray) -> np.ndarray:
        angles = coordinates + self._origin
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)

    def moments(self, coordinates: np.ndarray, masses: np.ndarray, degree: int) -> np.ndarray:
        turned = _moments(np.array(coordinates), np.array(masses), degree)
        return turned * np.exp(-1j * self._origin * np.arange(degree + 1))

    def velocity(self, coordinates, masses, attraction, normaliser) -> np.ndarray:
        angles = np.array(coordinates)
        moments = _moments(angles, np.array(masses), attraction.size - 1)
        weights = np.zeros(0) if normaliser is None else np.array(normaliser)
        return _velocity(angles, moments, np.array(attraction), weights)

    def lengths(self, coordinates: np.ndarray, rates: np.ndarray) -> np.ndarray:
        return np.abs(rates)

    def distances(self, coordinates: np.ndarray, point: np.ndarray) -> np.ndarray:
        turned = coordinates + (self._origin - np.arctan2(point[1], point[0]))
        return np.abs(turned - 2 * np.pi * np.round(turned / (2 * np.pi)))


# Copies, above, are what the compiled functions get: read-only arrays would be another type.


@njit(cache=True)
def _moments(angles, masses, degree):
    """sum_i masses_i e^{-ik angle_i}, k = 0, ..., `degree`."""
    total = np.zeros(degree + 1, dtype=np.complex128)
    for begin in range(0, angles.size, BLOCK):
        block, mass = angles[begin : begin + BLOCK], masses[begin : begin + BLOCK]
        cosine, sine = np.empty(block.size), np.empty(block.size)
        re, im = np.empty(block.size), np.zeros(block.size)
        for i in range(block.size):
            cosine[i], sine[i], re[i] = np.cos(block[i]), np.sin(block[i]), mass[i]
        for k in range(degree + 1):
            real, imaginary = 0.0, 0.0
            for i in range(block.size):
                real += re[i]
                imaginary -= im[i]
                re[i], im[i] = (
                    re[i] * cosine[i] - im[i] * sine[i],
                    (re[i] * sine[i] + im[i] * cosine[i]),
                )
            total[k] += complex(real, imaginary)
    return total


@njit(cache=True, error_model="numpy")
def _velocity(angles, moments, attraction, normaliser):
    """The derivative of sum W_k c_k e^{ik angle}, over sum Z_k c_k e^{ik angle}."""
    velocity = np.empty(angles.size)
    for begin in range(0, angles.size, BLOCK):
        block = angles[begin : begin + BLOCK]
        cosine, sine = np.empty(block.size), np.empty(block.size)
        re, im = np.empty(block.size), np.zeros(block.size)
        v, z = np.zeros(block.size), np.empty(block.size)
        mean = normaliser[0] * moments[0].real if normaliser.size > 0 else 1.0
        for i in range(block.size):
            cosine[i], sine[i], re[i], z[i] = np.cos(block[i]), np.sin(block[i]), 1.0, mean
        for k in range(1, moments.size):
            c = moments[k]
            slope = -2 * k * attraction[k] * c
            level = 2 * normaliser[k] * c if normaliser.size > 0 else 0j
            for i in range(block.size):
                re[i], im[i] = (
                    re[i] * cosine[i] - im[i] * sine[i],
                    (re[i] * sine[i] + im[i] * cosine[i]),
                )
                v[i] += slope.real * im[i] + slope.imag * re[i]
                z[i] += level.real * re[i] - level.imag * im[i]
        for i in range(block.size):
            velocity[begin + i] = v[i] / z[i]
    return velocity
