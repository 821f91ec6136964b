"""Sums over the grid of a `Sphere` for harmonics in their factors f(theta) e_k(phi).

With e_k(phi) = cos(k phi) for k >= 0 and sin(|k| phi) for k < 0, so that e_k' = -k e_-k,

    sum_n f_i f_j e_k e_l masses_n = sum_theta f_i(theta) f_j(theta) K_kl(theta),

where K_kl is a sum of two Fourier coefficients of the masses in longitude. The sums for all pairs
of harmonics up to a degree L cost O(L^5), those of tables at the nodes O(L^6).
"""

from typing import Any

import numpy as np

from ..spaces import Sphere
from .bases import Array, latitudinal


class Factors:
    """Functions f_i(theta) e_k(phi) on the grid of a space.

    Attributes
    ----------
    latitudes : ndarray, (N, rows)
        f_i at the latitudes of the grid.
    waves : ndarray of int, (K,)
        The different k.
    which : ndarray of int, (N,)
        Index of the k of each function.
    """

    def __init__(self, latitudes: Array, waves: np.ndarray):
        self.latitudes = latitudes
        self.waves, self.which = np.unique(waves, return_inverse=True)
        self.phases = np.where(self.waves < 0, -1j, 1.0)  # e_k is the real part of these waves
        self.members = [np.flatnonzero(self.which == i) for i in range(self.waves.size)]

    def pairings(self, other: "Factors", grid: Array, chosen: Any = slice(None)) -> Array:
        """Sums (N, N') over the nodes of f_i e_k f_j e_l times values (rows, columns) there.

        For the functions j that are `chosen`.
        """
        columns, which, latitudes = grid.shape[1], other.which[chosen], other.latitudes[chosen]
        series = np.fft.ifft(grid, axis=1, norm="forward")  # sums of grid e^(i k phi)
        k, l = np.abs(self.waves)[:, None], np.abs(other.waves)
        sums = np.outer(self.phases, other.phases) * series[:, (k + l) % columns]
        sums += np.outer(self.phases, np.conj(other.phases)) * series[:, (k - l) % columns]
        kernels = np.moveaxis(sums.real / 2, 0, -1)  # (K, K', rows)
        matrix = np.empty((self.which.size, which.size))
        for here, kernel in zip(self.members, kernels, strict=True):
            matrix[here] = self.latitudes[here] @ (latitudes * kernel[which]).T
        return matrix


class ByLongitude:
    """Real harmonics on the grid of a space, each in its factors.

    Parameters
    ----------
    space : Sphere
    members : ndarray of int, (N,)
        Indices among the harmonics of degree 1, 2, ..., as in `AllHarmonics`.
    signs : ndarray, (N,)
        Factors of the harmonics.

    Attributes
    ----------
    values : Factors
        The harmonics.
    gradients : tuple of Factors
        Components of their gradients, to the south and to the east.
    """

    def __init__(self, space: Sphere, members: np.ndarray, signs: np.ndarray):
        degrees = np.floor(np.sqrt(members + 1)).astype(int)
        place = members + 1 - degrees**2  # m = 0, cos(phi), -sin(phi), cos(2 phi), ...
        orders, sine = (place + 1) // 2, (place > 0) & (place % 2 == 0)
        sizes = signs * np.where(sine, -1, 1) * np.where(orders > 0, np.sqrt(2), 1)
        p, slopes = np.empty((2, members.size, space.z.size))
        for m in np.unique(orders):
            here = orders == m
            tables = latitudinal(space.z, 3, m, int(degrees[here].max()))
            p[here], slopes[here] = (table[degrees[here] - m] for table in tables)
        p, slopes = sizes[:, None] * p, sizes[:, None] * slopes
        waves = np.where(sine, -orders, orders)
        east = -waves[:, None] * p / np.sqrt((1 - space.z) * (1 + space.z))
        self.values = Factors(p, waves)
        self.gradients = Factors(-slopes, waves), Factors(east, -waves)
        angles = np.abs(self.values.waves)[:, None] * space.longitudes
        self._around = np.where(self.values.waves[:, None] < 0, np.sin(angles), np.cos(angles))

    def synthesised(self, c: Array) -> Array:
        """sum_i c_i p_i on the grid, (rows, columns)."""
        p, members = self.values.latitudes, self.values.members
        return np.array([c[here] @ p[here] for here in members]).T @ self._around

    def analysed(self, grid: Array) -> Array:
        """sum_n p_i grid_n, (N,), over the nodes of the grid."""
        along = self._around @ grid.T
        return np.einsum("it,it->i", self.values.latitudes, along[self.values.which])
