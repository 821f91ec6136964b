"""Tokens on S^2, by the spherical harmonics of their measure."""

import numpy as np
from numba import njit

from ..drifts import ZonalDrift
from .harmonics import HarmonicEngine

__all__ = ["SphereModes"]


class SphereModes(HarmonicEngine):
    """Velocities on S^2 in O(n + L^3) operations, by the transforms of ducc0.

    With a_lm = sum_j m_j conj Y_lm(x_j) and the multipliers W_l and Z_l

        v = grad sum_lm W_l a_lm Y_lm / sum_lm Z_l a_lm Y_lm

    Results for several threads differ in the last bits.
    """

    name = "sphere"
    dimension = 3

    def __init__(self, drift: ZonalDrift, tolerance: float = 1e-10, threads: int = 1):
        super().__init__(drift, tolerance, threads)
        L = self.degree
        self._degrees = np.concatenate([np.arange(m, L + 1) for m in range(L + 1)])
        self._options = {"lmax": L, "epsilon": self.accuracy, "nthreads": threads}

    def _fields(self, x, masses):
        velocity = np.empty(x.shape)
        levels = None if self.normaliser is None else np.empty(masses.shape)
        for r in range(len(x)):
            angles = _angles(x[r])
            modes = 4 * np.pi * self._modes(angles, masses[r])  # harmonics of ducc0 have norm 1
            slope, turn = self._synthesis(modes * self._spread(self.attraction, r), angles, 1)
            if levels is not None:
                levels[r] = self._synthesis(modes * self._spread(self.normaliser, r), angles, 0)[0]
                slope, turn = slope / levels[r], turn / levels[r]
            _embed(x[r], slope, turn, velocity[r])
        return velocity, levels

    def _powers(self, x, masses):
        orders = np.where(np.arange(self._degrees.size) <= self.degree, 1, 2)  # m = 0 comes first
        powers = np.empty((len(x), self.degree + 1))
        for r in range(len(x)):
            squares = 4 * np.pi * orders * np.abs(self._modes(_angles(x[r]), masses[r])) ** 2
            powers[r] = np.bincount(self._degrees, squares)
        return powers

    def _spread(self, multipliers, r):
        """The multipliers of system r for every coefficient."""
        return (multipliers if multipliers.ndim == 1 else multipliers[r])[self._degrees]

    def _modes(self, angles, masses):
        from ducc0.sht import adjoint_synthesis_general

        return adjoint_synthesis_general(map=masses[None], loc=angles, spin=0, **self._options)[0]

    def _synthesis(self, modes, angles, spin):
        """The values of a series, or for spin = 1 its derivatives along and across meridians."""
        from ducc0.sht import synthesis_general

        mode = "DERIV1" if spin else "STANDARD"
        return synthesis_general(
            alm=modes[None], loc=angles, spin=spin, mode=mode, **self._options
        )


def _angles(x):
    """Colatitudes and longitudes (n, 2) of tokens (n, 3)."""
    angles = np.empty((len(x), 2))
    radii = np.sqrt(x[:, 0] ** 2 + x[:, 1] ** 2)
    angles[:, 0] = np.arctan2(radii, x[:, 2])
    longitudes = np.arctan2(x[:, 1], x[:, 0])
    angles[:, 1] = np.where(longitudes < 0, longitudes + 2 * np.pi, longitudes)
    return angles


@njit(cache=True, nogil=True, error_model="numpy")
def _embed(x, slope, turn, velocity):
    """Vectors (n, 3) of components along the meridian, southwards, and to the east."""
    for i in range(len(x)):
        radius = np.sqrt(x[i, 0] ** 2 + x[i, 1] ** 2)
        length = np.sqrt(radius**2 + x[i, 2] ** 2)
        cosine, sine = (x[i, 0] / radius, x[i, 1] / radius) if radius > 0 else (1.0, 0.0)
        along = slope[i] * x[i, 2] / length
        velocity[i, 0] = along * cosine - turn[i] * sine
        velocity[i, 1] = along * sine + turn[i] * cosine
        velocity[i, 2] = -slope[i] * radius / length
