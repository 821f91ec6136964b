"""Sums over all pairs of tokens."""

from functools import partial

import numpy as np
from numba import njit

from ..lowlevel.blas import one_blas_thread
from ..models import SA, USA, Interaction, Kuramoto, ZonalDrift
from .contract import Engine
from .differences import BLOCK, columns_of, lone_sums, meetings_of_round, own_blocks, sums_of
from .gram import exponential_weights, gram_sums
from .team import Team
from .tournament import rounds_of

__all__ = ["DirectSums", "lone_velocities"]

FEW_DIMENSIONS, FEW_TOKENS = 8, 64  # up to these, differences are faster than BLAS
SMALL = 1000  # tokens of a system that no threads share: the last bits depend on it
FEW_PAIRS = 10**6  # they take less time than to wake other threads
LOWEST_LEVEL = 1e-280  # below it weights that underflow would be missed
ALONE = Team(1)


class DirectSums(Engine):
    """All pairs, O(n^2 d) time and O(n d) memory, for any zonal drift and dimension.

    The exponential kernels of few dimensions or few tokens are summed by `differences`, others by
    `gram`. The kernel is symmetric, and each pair's weight computed once.

    Parameters
    ----------
    drift : ZonalDrift
        USA, SA, Kuramoto or Interaction.
    threads : int
        The results are the same, bit for bit, for every number of threads.

    Notes
    -----
    Every force is accurate to the rounding of its own weight, and no token pulls itself: forces of
    e^-200 between clusters have all their digits. Where both n > 64 and d > 8, and for an
    Interaction, that holds for single tokens; in clusters of several the rounding of their weights
    for each other, 1e-16, remains.

    An Interaction is evaluated at inner products of unit vectors; where they exceed 1 by rounding,
    at 1. While Gram matrices are computed, BLAS is limited to one thread in the whole process.
    """

    name = "direct"

    def __init__(self, drift: ZonalDrift, threads: int = 1):
        super().__init__(drift)
        self._team = Team(threads)
        if isinstance(drift, Interaction):
            drift.slope(np.zeros(1))  # refuses potentials that have none
        elif not isinstance(drift, USA | SA | Kuramoto):
            raise TypeError(f"Expected USA, SA, Kuramoto or Interaction; got {drift!r}.")

    def velocity(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        columns, d = columns_of(x, masses), x.shape[2]
        return _projected(columns, self._pulls(columns, d), d)

    def attention(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """sum_j m_j W'(t_ij) x_j / sum_j m_j Z(t_ij), (R, n, d), the token itself included."""
        columns, d = columns_of(x, masses), x.shape[2]
        pulls = self._pulls(columns, d)
        attention = columns[:, :-1] * pulls[:, -1:] + pulls[:, :-1]
        return np.ascontiguousarray(attention[:, :d].swapaxes(1, 2))

    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        return 0.5 * np.einsum("rj,rj->r", masses, self.potential(x, masses))

    def potential(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """sum_j m_j W(t_ij), (R, n); infinite where exp(|beta|) overflows."""
        columns, d = columns_of(x, masses), x.shape[2]
        if isinstance(self.drift, Interaction):
            return self._interaction_sums(columns, self.drift.potential_at)[:, -1]
        beta = self._beta(len(x))[:, None]
        levels = self._exponential_sums(columns, beta[:, 0], d)[:, -1]
        mean = np.einsum("rcj,rj->rc", columns[:, :-1], masses)
        with np.errstate(over="ignore"):
            scale = np.exp(np.abs(beta)) / np.where(beta == 0, 1.0, beta)
        scaled = scale * np.where(np.isinf(scale), 1.0, levels)
        return np.where(beta == 0, np.einsum("rc,rcj->rj", mean, columns[:, :-1]), scaled)

    def _beta(self, replicas: int) -> np.ndarray:
        return np.full(replicas, getattr(self.drift, "beta", 0.0), dtype=float)

    def _pulls(self, columns, d):
        """sum_j m_j W'(t_ij) (u_j - u_i) and sum_j m_j W'(t_ij), over sum_j m_j Z(t_ij)."""
        if isinstance(self.drift, Interaction):
            return self._interaction_sums(columns, self.drift.slope)
        beta = self._beta(len(columns))
        sums = self._exponential_sums(columns, beta, d)
        if isinstance(self.drift, SA):
            self._renew_faint(columns, beta, sums)
            return np.divide(sums, sums[:, -1:], out=sums)
        return np.multiply(sums, np.exp(np.abs(beta))[:, None, None], out=sums)

    def _exponential_sums(self, columns, beta, d):
        if d > FEW_DIMENSIONS and columns.shape[2] > FEW_TOKENS:
            weights = [exponential_weights(b) for b in beta]
            return self._gram_sums(columns, weights, np.exp(beta - np.abs(beta)))
        sums, team = np.zeros_like(columns), self._team_for(columns)
        if columns.shape[2] <= SMALL:
            team.share(partial(sums_of, columns, beta, sums), len(columns))
            return sums
        blocks = -(-columns.shape[2] // BLOCK)
        for system in zip(columns, beta, sums, strict=True):
            team.share(partial(own_blocks, *system), blocks)
            for turn in range(rounds_of(blocks)):
                team.share(partial(meetings_of_round, *system, turn), (blocks + 1) // 2)
        return sums

    def _interaction_sums(self, columns, function):
        def weigh(gram):
            gram[...] = function(gram)

        own = np.asarray(function(np.ones(1)), dtype=float)
        replicas = len(columns)
        return self._gram_sums(columns, [weigh] * replicas, np.repeat(own, replicas))

    def _gram_sums(self, columns, weights, own):
        sums, team = np.empty_like(columns), self._team_for(columns)
        with one_blas_thread():
            for system in zip(columns, weights, own, sums, strict=True):
                gram_sums(*system, team)
        return sums

    def _team_for(self, columns):
        replicas, _, n = columns.shape
        return self._team if replicas * n**2 > FEW_PAIRS else ALONE

    def _renew_faint(self, columns, beta, sums):
        """Replace sums of tokens so far from all others that their weights underflow."""
        for r in np.flatnonzero((sums[:, -1] < LOWEST_LEVEL).any(axis=1)):
            tokens = np.flatnonzero(sums[r, -1] < LOWEST_LEVEL)
            sums[r][:, tokens] = _lone_sums(columns[r], beta[r], tokens, self._team)


def lone_velocities(
    x: np.ndarray, masses: np.ndarray, beta: float, tokens: np.ndarray, team: Team
) -> np.ndarray:
    """Velocities (k, d) under SA of k tokens, given by their numbers, of one system x (n, d)."""
    columns = columns_of(x[None], masses[None])
    pulls = _lone_sums(columns[0], beta, tokens, team)
    pulls /= pulls[-1]
    return _projected(columns[:, :, tokens], pulls[None], x.shape[1])[0]


def _lone_sums(columns, beta, tokens, team):
    sums = np.zeros((len(columns), tokens.size))
    team.share(partial(lone_sums, columns, beta, tokens, sums), tokens.size)
    return sums


def _projected(columns, pulls, d):
    """P_i of the pulls (R, rows + 1, n), in place, and as velocities (R, n, d)."""
    _project(columns, pulls, d)
    return np.ascontiguousarray(pulls[:, :d].swapaxes(1, 2))  # faster than loops of ours


@njit(cache=True, nogil=True)
def _project(columns, pulls, d):
    replicas, _, n = columns.shape
    radial = np.empty(n)
    for r in range(replicas):
        radial[:] = 0.0
        for c in range(d):
            along, pull = columns[r, c], pulls[r, c]
            for i in range(n):
                radial[i] += along[i] * pull[i]
        for c in range(d):
            along, pull = columns[r, c], pulls[r, c]
            for i in range(n):
                pull[i] -= radial[i] * along[i]
