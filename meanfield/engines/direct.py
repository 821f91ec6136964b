"""Sums over all pairs of tokens; for a constant kernel, by the mean of the tokens.

Systems and sums are arrays of columns, (R, rows + 1, n), as in `pairs`. Kernels without a loop in
`pairs` are evaluated on blocks of Gram matrices, see `gram_pairs`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import cycle
from typing import Any, Self

import numpy as np

from ..core.cached import cached_property
from ..core.checks import as_given
from ..core.dual import Dual, contiguous
from ..lowlevel.blas import one_blas_thread
from ..lowlevel.compilation import njit
from ..models import ZonalDrift
from .contract import SINGLE_THREAD, DualEngine, ThreadPool, ZonalEngine
from .gram_pairs import Weigh, Workspace, exponentials, gram_sums, weights_of, within_one
from .pairs import add_pairs, columns_of, more_than_three, single_sums, sums_of

FEW_DIMENSIONS, FEW_TOKENS = 8, 64  # up to these, loops over differences are faster than BLAS
SMALL_SYSTEM = 1000  # threads do not share a system of at most this many tokens; bits depend on it
FEW_PAIRS = 10**6  # for at most this many pairs, other threads cost more than they save
LOWEST_LEVEL = 1e-280  # below this level, weights that underflow would matter
ROW_ENTRIES = 1 << 15  # inner products of a block of whole rows
PAIR_COST, FUNCTION_COST = 0.5e-3, 20e-3  # microseconds per pair: exponential kernel, other kernel
MEAN_BLOCK = 1024  # tokens of a partial sum of a mean


class DirectSums(ZonalEngine):
    """Sums over all pairs, O(n^2 d) time and O(n d) memory, for any zonal drift and dimension.

    Drifts with an `exponent` are summed by compiled code, others by `slope` and `weight` on blocks
    of inner products. Each pair is evaluated once for both of its tokens, but twice for drifts
    without exponent whose Z is not 1.

    Parameters
    ----------
    drift : ZonalDrift
    threads : int
        The results are the same, bit for bit, for every number of threads.

    Notes
    -----
    With an exponential kernel the error of a force is the rounding of its own weight, and no token
    acts on itself: forces of e^-200 between clusters have all their digits. If n > 64 and d > 8,
    and for other kernels, this holds for isolated tokens; in a cluster of several tokens the
    rounding of their mutual weights, 1e-16, remains.

    Kernels are evaluated at inner products of unit vectors; where they exceed +-1 by rounding, at
    +-1. While Gram matrices are computed, BLAS is limited to one thread in the whole process.
    """

    name = "direct"
    takes_any_members = True

    def __init__(self, drift: ZonalDrift, threads: int = 1) -> None:
        if not isinstance(drift, ZonalDrift):
            raise TypeError(f"drift must be a ZonalDrift, as USA(beta); got {as_given(drift)}.")
        super().__init__(drift, threads)
        self._workspace = Workspace()
        if drift.exponent is None:
            self._members[0].slope(np.zeros(1))  # refuses potentials that have none

    def of_members(self, members: np.ndarray) -> Self:
        part = super().of_members(members)
        if part is not self and "_members" in vars(self):
            part._members = [self._members[r] for r in members]
        return part

    @cached_property
    def _members(self) -> list[ZonalDrift]:
        """Single drifts: one for each system, or one for all."""
        count = int(np.prod(self.drift.shape))
        return [self.drift.member(r) for r in range(count)]

    @staticmethod
    def cost_of(drift: ZonalDrift, n: int) -> float:
        """About the microseconds that velocities of n tokens take, see `contract`."""
        return (FUNCTION_COST if drift.exponent is None else PAIR_COST) * n**2

    def velocity(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        columns, d = columns_of(x, masses), x.shape[2]
        return projected(columns, self._pulls(columns, d), d)

    def attention(self, t: float, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Output sum_j m_j W'(t_ij) x_j / sum_j m_j Z(t_ij), (R, n, d), with the token itself."""
        columns, d = columns_of(x, masses), x.shape[2]
        pulls = self._pulls(columns, d)
        attention = columns[:, :-1] * pulls[:, -1:] + pulls[:, :-1]
        return np.ascontiguousarray(attention[:, :d].swapaxes(1, 2))

    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        return 0.5 * np.einsum("rj,rj->r", masses, self.potential(x, masses))

    def potential(self, x: np.ndarray, masses: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Potentials sum_j m_j W(t_ij), (R, n); infinite where exp(|beta|) overflows."""
        columns, d = columns_of(x, masses), x.shape[2]
        if self.drift.exponent is None:
            functions = [member.potential_at for member in self._members]
            return self._symmetric_sums(columns, functions)[:, -1]
        beta = self._beta(len(x))[:, None]
        levels = self._exponential_sums(columns, beta[:, 0], d)[:, -1]
        mean = np.einsum("rcj,rj->rc", columns[:, :-1], masses)
        with np.errstate(over="ignore"):
            scale = np.exp(np.abs(beta)) / np.where(beta == 0, 1.0, beta)
        scaled = scale * np.where(np.isinf(scale), 1.0, levels)
        return np.where(beta == 0, np.einsum("rc,rcj->rj", mean, columns[:, :-1]), scaled)

    def single_velocities(
        self, x: np.ndarray, masses: np.ndarray, replica: int, tokens: np.ndarray
    ) -> np.ndarray:
        """Velocities (k, d) of k tokens, given by their indices, of one system x (n, d).

        For drifts that are divided by Z * mu; `replica` is the index of the system's member drift.
        """
        columns = columns_of(x[None], masses[None])
        drift = self._members[replica % len(self._members)]
        if drift.exponent is None:
            pulls = self._row_pulls(columns[0], drift, tokens, self.threads)
        else:
            pulls = self._single_sums(columns[0], float(drift.exponent), tokens)
            pulls /= pulls[-1]
        return projected(columns[:, :, tokens], pulls[None], x.shape[1])[0]

    def _beta(self, replicas: int) -> np.ndarray:
        return np.full(replicas, self.drift.exponent, dtype=float)

    def _pulls(self, columns: np.ndarray, d: int) -> np.ndarray:
        """Pulls and sums of weights over the normaliser sum_j m_j Z(t_ij), (R, rows + 1, n).

        Pulls are sum_j m_j W'(t_ij) (u_j - u_i); the last row is sum_j m_j W'(t_ij).
        """
        if self.drift.exponent is None:
            if not self.drift.normalised:
                return self._symmetric_sums(columns, [member.slope for member in self._members])
            every, threads = np.arange(columns.shape[2]), self._threads_for(columns)
            systems = zip(columns, cycle(self._members), strict=False)
            return np.stack([self._row_pulls(*system, every, threads) for system in systems])
        beta = self._beta(len(columns))
        sums = self._exponential_sums(columns, beta, d)
        if self.drift.normalised:
            self._renew_faint(columns, beta, sums)
            return np.divide(sums, sums[:, -1:], out=sums)
        return np.multiply(sums, np.exp(np.abs(beta))[:, None, None], out=sums)

    def _exponential_sums(self, columns: np.ndarray, beta: np.ndarray, d: int) -> np.ndarray:
        if d > FEW_DIMENSIONS and columns.shape[2] > FEW_TOKENS:
            kernels = [partial(exponentials, b) for b in beta]
            return self._gram_sums(columns, kernels, np.exp(beta - np.abs(beta)))
        sums, threads = np.zeros_like(columns)[:, None], self._threads_for(columns)
        if columns.shape[2] <= SMALL_SYSTEM:
            work = partial(sums_of, columns, beta, sums, more_than_three(columns))
            threads.share(work, len(columns))
        else:
            for r, one in enumerate(columns):
                add_pairs(one, None, beta[r], None, sums[r], threads)
        return sums[:, 0]

    def _renew_faint(self, columns: np.ndarray, beta: np.ndarray, sums: np.ndarray) -> None:
        """Replace, in place, the sums of tokens whose weights all underflow.

        The new sums are relative to the largest weight of each token.
        """
        for r in np.flatnonzero((sums[:, -1] < LOWEST_LEVEL).any(axis=1)):
            tokens = np.flatnonzero(sums[r, -1] < LOWEST_LEVEL)
            sums[r][:, tokens] = self._single_sums(columns[r], beta[r], tokens)

    def _single_sums(self, columns: np.ndarray, beta: float, tokens: np.ndarray) -> np.ndarray:
        sums = np.zeros((1, len(columns), tokens.size))
        work = partial(single_sums, columns, None, beta, None, tokens, sums)
        self.threads.share(work, tokens.size)
        return sums[0]

    def _symmetric_sums(
        self, columns: np.ndarray, functions: Sequence[Callable[..., Any]]
    ) -> np.ndarray:
        """Sums (R, rows + 1, n) with weights function(t), one function for all systems or each."""
        itself = [float(np.asarray(function(np.ones(1)))[0]) for function in functions]
        return self._gram_sums(columns, [weights_of(f) for f in functions], itself)

    def _gram_sums(
        self, columns: np.ndarray, kernels: Sequence[Weigh], itself: Sequence[float] | np.ndarray
    ) -> np.ndarray:
        sums, no_changes = np.empty_like(columns), np.empty((0, *columns.shape[1:]))
        pool = self._threads_for(columns), self._workspace
        systems = zip(columns, cycle(kernels), cycle(itself), sums, strict=False)
        with one_blas_thread():
            for one, weigh, weight, total in systems:
                gram_sums(one, no_changes, weigh, weight, total[None], *pool)
        return sums

    def _row_pulls(
        self, columns: np.ndarray, drift: ZonalDrift, tokens: np.ndarray, threads: ThreadPool
    ) -> np.ndarray:
        """Normalised pulls (rows + 1, k) of k tokens, by whole rows of the Gram matrix.

        `slope` and `weight` are called with the same rows, as the factor that they have in common
        may differ between rows.
        """
        pulls = np.empty((len(columns), tokens.size))
        sources = np.flatnonzero(columns[-1])
        u, masses = columns[:-1, sources], columns[-1, sources]
        pulling = np.concatenate([u * masses, masses[None]])
        size = max(1, ROW_ENTRIES // sources.size)

        def work(first: int, last: int) -> None:
            for begin in range(first * size, min(last * size, tokens.size), size):
                rows = tokens[begin : begin + size]
                column = np.minimum(np.searchsorted(sources, rows), sources.size - 1)
                itself = np.flatnonzero(sources[column] == rows)
                t = within_one(columns[:-1, rows].T @ u)
                levels = drift.weight(t) @ masses
                weights = np.array(drift.slope(t), dtype=float)  # a copy, as it may be t itself
                of_itself = np.zeros(rows.size)
                pair = itself, column[itself]
                of_itself[itself] = weights[pair] * masses[pair[1]]
                weights[pair] = 0.0
                sums = pulling @ weights.T
                sums[:-1] -= columns[:-1, rows] * sums[-1]
                sums[-1] += of_itself
                pulls[:, begin : begin + size] = sums / levels

        with one_blas_thread():
            threads.share(work, -(-tokens.size // size))
        return pulls

    def _threads_for(self, columns: np.ndarray) -> ThreadPool:
        replicas, _, n = columns.shape
        return self.threads if replicas * n**2 > FEW_PAIRS else SINGLE_THREAD


def projected(columns: np.ndarray, pulls: np.ndarray, d: int) -> np.ndarray:
    """Velocities (R, n, d): tangential parts P_i of the pulls (R, rows + 1, n).

    The pulls are projected in place.
    """
    _project(columns, pulls, d)
    return np.ascontiguousarray(pulls[:, :d].swapaxes(1, 2))  # faster than loops of ours


@njit(cache=True, nogil=True)
def _project(columns: np.ndarray, pulls: np.ndarray, d: int) -> None:
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


# The constant kernel, by the mean ------------------------------------------------------------


class MeanDirection(ZonalEngine):
    """Velocities v_i = P_i M, M = sum_j m_j x_j, O(n d): Kuramoto, and USA and SA at beta = 0."""

    name = "mean"
    takes_any_members = True

    def velocity(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        velocity = np.empty(x.shape)
        _project_means(x, _means(x, masses), velocity)
        return velocity

    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        return 0.5 * (_means(x, masses) ** 2).sum(axis=1)

    def with_tangents(self, names: Sequence[str | None]) -> Any:
        """Tangents by means; by all pairs if the drift changes with a parameter of some tangent."""
        return super().with_tangents(names) if any(names) else MeanTangents()


class MeanTangents(DualEngine):
    """Velocities v_i = P_i M and their changes, by means, O(n d); potentials are <u_i, M>."""

    def velocity(self, x: Dual, masses: Dual, *known: Any) -> Dual:
        u, M = self._directions(x, masses)
        values = np.empty(x.shape)
        _project_means(x.value, M.value[:, 0], values)
        along = (u.value * M.value).sum(axis=-1, keepdims=True)
        changed = (u.changes * M.value + u.value * M.changes).sum(axis=-1, keepdims=True)
        return Dual(values, M.changes - along * u.changes - changed * u.value)

    def attention(self, t: float, x: Dual, masses: Dual) -> Dual:
        raise NotImplementedError("Means are summed for tangential velocities.")

    def potential(self, x: Dual, masses: Dual, t: float = 0.0) -> Dual:
        u, M = self._directions(x, masses)
        return (u * M).sum(axis=-1)

    @staticmethod
    def _directions(x: Dual, masses: Dual) -> tuple[Dual, Dual]:
        """Directions u (R, n, d) and their mean M (R, 1, d)."""
        length = np.linalg.norm(x.value, axis=-1, keepdims=True)
        u, m = x.value / length, contiguous(masses).value
        du = (x.changes - (u * x.changes).sum(axis=-1, keepdims=True) * u) / length
        dM = np.einsum("prn,rnd->prd", masses.changes, u) + np.einsum("rn,prnd->prd", m, du)
        return Dual(u, du), Dual(_means(contiguous(x).value, m)[:, None], dM[:, :, None])


@njit(cache=True, nogil=True, error_model="numpy")
def _means(x: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """The mean directions (R, d), summed block by block."""
    replicas, n, d = x.shape
    means, part = np.zeros((replicas, d)), np.empty(d)
    for r in range(replicas):
        for begin in range(0, n, MEAN_BLOCK):
            part[:] = 0.0
            for i in range(begin, min(n, begin + MEAN_BLOCK)):
                square = 0.0
                for c in range(d):
                    square += x[r, i, c] * x[r, i, c]
                weight = masses[r, i] / np.sqrt(square)
                for c in range(d):
                    part[c] += weight * x[r, i, c]
            means[r] += part
    return means


@njit(cache=True, nogil=True, error_model="numpy")
def _project_means(x: np.ndarray, means: np.ndarray, velocity: np.ndarray) -> None:
    replicas, n, d = x.shape
    for r in range(replicas):
        for i in range(n):
            square, radial = 0.0, 0.0
            for c in range(d):
                square += x[r, i, c] * x[r, i, c]
                radial += x[r, i, c] * means[r, c]
            for c in range(d):
                velocity[r, i, c] = means[r, c] - radial / square * x[r, i, c]
