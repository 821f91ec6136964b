"""Velocities of tokens in the mean field of densities that were solved, by their harmonics."""

import numpy as np

from ..models.mean_field import MeanField
from ..spaces.sphere_points import factors
from .circle import CircleModes
from .sphere import SphereModes, write_angles

__all__ = ["FieldSums"]

TOLERANCE = 1e-12


class FieldSums:
    """v[mu_t](x_i) for tokens (R, n, d), in O(n) for each degree.

    Parameters
    ----------
    drift : MeanField
    threads : int
    """

    name = "field"

    def __init__(self, drift: MeanField, threads: int = 1):
        self.drift = drift
        self._sums = FIELDS[drift.geometry.dimension](drift.source, TOLERANCE, threads)

    def attention(self, t: float, x: np.ndarray, _masses: np.ndarray) -> np.ndarray:
        """The velocities (R, n, d) at time t, which are tangential."""
        kept = self.drift.geometry.resample(self.drift.coefficients(t), self._sums.degree)
        self._sums.given = kept
        return self._sums._fields(x, np.empty(x.shape[:2]))[0]


class _OnCircle(CircleModes):
    given: np.ndarray

    def _moments(self, x, masses):
        return np.broadcast_to(self.given, (len(x), self.given.size))


class _OnSphere(SphereModes):
    given: np.ndarray

    def _analysis(self, x, masses):
        angles = np.empty((*x.shape[:2], 2))
        self._each_part(x, lambda r, _part, tokens: write_angles(x[r, tokens], angles[r, tokens]))
        modes = self.given / factors(self.degree)
        return angles, np.broadcast_to(modes, (len(x), modes.size))


FIELDS = {kind.dimension: kind for kind in (_OnCircle, _OnSphere)}
