"""Tokens on the circle, by the Fourier modes of their measure.

With z_j = e^(i theta_j) and the multipliers W_k and Z_k,

    m_k = sum_j m_j z_j^-k
    v = Re sum_(k=1)^K 2ik W_k m_k z^k / Re (Z_0 + sum_(k=1)^K 2 Z_k m_k z^k)

Up to some degree powers of z are fastest, then the transforms of ducc0 for scattered points.
"""

from functools import partial

import numpy as np

from ..drifts import ZonalDrift
from .harmonics import HarmonicEngine
from .powers import PART, moments_of, velocities_of

__all__ = ["CircleModes"]

POWERS = 90  # up to this degree they are faster


class CircleModes(HarmonicEngine):
    """Velocities on the circle in O(n K) operations, above degree K = 90 in O(n + K log K).

    Up to K = 90 results are the same, bit for bit, for every number of threads; then the last
    bits differ.
    """

    name = "circle"
    dimension = 2

    def __init__(self, drift: ZonalDrift, tolerance: float = 1e-10, threads: int = 1):
        super().__init__(drift, tolerance, threads)
        k = np.arange(self.degree + 1)
        self._slopes = 2j * k * self.attraction
        self._levels = None
        self._options = {
            "epsilon": self.accuracy,
            "nthreads": threads,
            "periodicity": 2 * np.pi,
            "fft_order": False,
        }
        if self.normaliser is not None:
            self._levels = np.where(k == 0, 1, 2) * self.normaliser

    def _fields(self, x, masses):
        if self.degree > POWERS:
            return self._by_transforms(x, masses)
        moments = self._moments(x, masses)
        velocity, levels, series = np.empty(x.shape), None, np.empty((0, 0), dtype=complex)
        if self._levels is not None:
            levels, series = np.empty(masses.shape), self._levels * moments
        filled = np.empty((0, 0)) if levels is None else levels
        work = partial(velocities_of, x, self._slopes * moments, series, velocity, filled)
        self._team.share(work, len(x) * _parts(x))
        return velocity, levels

    def _moments(self, x, masses):
        if self.degree > POWERS:
            systems = zip(_angles(x), masses, strict=True)
            return np.stack([self._scattered_moments(*system) for system in systems])
        moments = np.empty((len(x), _parts(x), self.degree + 1), dtype=complex)
        self._team.share(partial(moments_of, x, masses, moments), len(x) * _parts(x))
        return moments.sum(axis=1)

    def _by_transforms(self, x, masses):
        """As `_fields`: both series at once, that of the level as the imaginary part."""
        angles, K = _angles(x), self.degree
        grids = np.zeros((len(x), 2 * K + 1), dtype=complex)
        moments = np.stack([self._scattered_moments(*it) for it in zip(angles, masses)])
        parts = [(1, self._slopes)] if self._levels is None else [(1, self._slopes), (1j, self._levels)]
        for factor, multipliers in parts:  # Re f(z) = (f(z) + conj f(z)) / 2
            series = multipliers * moments / 2
            grids[:, K:] += factor * series
            grids[:, K::-1] += factor * series.conj()
        fields = np.stack([self._scattered_values(*it) for it in zip(angles, grids)])
        speed, levels = fields.real, None
        if self._levels is not None:
            levels = fields.imag.copy()
            speed = speed / levels
        turned = np.stack([-np.sin(angles), np.cos(angles)], axis=-1)
        return speed[..., None] * turned, levels

    def _scattered_moments(self, angles, masses):
        from ducc0.nufft import nu2u

        grid = np.empty(2 * self.degree + 1, dtype=complex)
        nu2u(points=masses.astype(complex), coord=angles[:, None], out=grid, forward=True, **self._options)
        return grid[self.degree :]

    def _scattered_values(self, angles, grid):
        from ducc0.nufft import u2nu

        return u2nu(grid=grid, coord=angles[:, None], forward=False, **self._options)

    def _powers(self, x, masses):
        moments = self._moments(x, masses)
        return np.where(np.arange(self.degree + 1) == 0, 1, 2) * np.abs(moments) ** 2


def _parts(x):
    return -(-x.shape[1] // PART)


def _angles(x):
    return np.arctan2(x[..., 1], x[..., 0])
