"""Tokens on the circle, by the Fourier modes of their measure.

With z_j = e^(i theta_j) and the multipliers W_k and Z_k,

    m_k = sum_j m_j z_j^-k
    v = Re sum_(k=1)^K 2ik W_k m_k z^k / Re (Z_0 + sum_(k=1)^K 2 Z_k m_k z^k)

Up to some degree powers of z are fastest, then the transforms of ducc0 for scattered points.
"""

from functools import partial

import numpy as np

from ..models import ZonalDrift
from .harmonics import HarmonicEngine
from .powers import moments_of, parts_of, velocities_of

__all__ = ["POWERS", "CircleModes"]

POWERS = 150  # up to this degree they are faster


class CircleModes(HarmonicEngine):
    """Velocities on the circle in O(n K) operations, above degree K = 150 in O(n + K log K)."""

    name = "circle"
    dimension = 2

    def __init__(self, drift: ZonalDrift, tolerance: float = 1e-10, threads: int = 1):
        super().__init__(drift, tolerance, threads)
        k = np.arange(self.degree + 1)
        self._slopes = 2j * k * self.attraction
        self._levels = None
        if self.normaliser is not None:
            self._levels = np.where(k == 0, 1, 2) * self.normaliser
        self._options = {
            "epsilon": self.accuracy,
            "nthreads": 1,
            "periodicity": 2 * np.pi,
            "fft_order": False,
        }

    def _fields(self, x, masses):
        if self.degree > POWERS:
            return self._scattered_fields(x, masses)
        moments = self._moments(x, masses)
        velocity, levels = np.empty(x.shape), None
        series, filled = np.empty((0, 0), dtype=complex), np.empty((0, 0))
        if self._levels is not None:
            series, levels = self._levels * moments, np.empty(masses.shape)
            filled = levels
        work = partial(velocities_of, x, self._slopes * moments, series, velocity, filled)
        self._team.share(work, len(x) * parts_of(x))
        return velocity, levels

    def _moments(self, x, masses):
        moments = np.empty((len(x), parts_of(x), self.degree + 1), dtype=complex)
        if self.degree > POWERS:
            self._scattered_moments(_angles(x), masses, moments)
        else:
            work = partial(moments_of, x, masses, moments)
            self._team.share(work, len(x) * parts_of(x))
        return moments.sum(axis=1)

    def _powers(self, x, masses):
        orders = np.where(np.arange(self.degree + 1) == 0, 1, 2)
        return orders * np.abs(self._moments(x, masses)) ** 2

    def _scattered_fields(self, x, masses):
        from ducc0.nufft import u2nu

        angles = _angles(x)
        grids = self._grids(self._moments(x, masses))
        velocity, levels = np.empty(x.shape), None
        if self._levels is not None:
            levels = np.empty(masses.shape)

        def work(r, _part, tokens):
            place = angles[r, tokens]
            values = u2nu(grid=grids[r], coord=place[:, None], forward=False, **self._options)
            speed = values.real
            if levels is not None:
                levels[r, tokens] = values.imag
                speed = speed / values.imag
            velocity[r, tokens, 0] = -speed * np.sin(place)
            velocity[r, tokens, 1] = speed * np.cos(place)

        self._each_part(x, work)
        return velocity, levels

    def _grids(self, moments):
        """Modes -K, ..., K of the slope and, as the imaginary part of the field, the level."""
        K = self.degree
        grids = np.zeros((len(moments), 2 * K + 1), dtype=complex)
        for factor, multipliers in ((1, self._slopes), (1j, self._levels)):
            if multipliers is not None:
                half = multipliers * moments / 2  # Re f = (f + conj f) / 2
                grids[:, K:] += factor * half
                grids[:, K::-1] += factor * half.conj()
        return grids

    def _scattered_moments(self, angles, masses, moments):
        from ducc0.nufft import nu2u

        def work(r, part, tokens):
            grid = np.empty(2 * self.degree + 1, dtype=complex)
            points, places = masses[r, tokens].astype(complex), angles[r, tokens, None]
            nu2u(points=points, coord=places, out=grid, forward=True, **self._options)
            moments[r, part] = grid[self.degree :]

        self._each_part(angles, work)


def _angles(x):
    return np.arctan2(x[..., 1], x[..., 0])
