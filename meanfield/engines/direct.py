"""Sums over all pairs of tokens; for a constant kernel, by the mean of the tokens.

For every token i, with directions u = x/|x| and weights w_ij = W'(<u_i, u_j>), the sums

    D_i = sum_j m_j w_ij (u_j - u_i),    S_i = sum_j m_j w_ij,    L_i = sum_j m_j Z_ij

(pull, sum of weights, denominator) give the velocity P_i D_i / L_i and the output of attention
(D_i + u_i S_i) / L_i. Systems and sums are arrays of columns, (R, rows + 1, n), as in `pairs`;
their changes along p tangents are stacked on a leading axis. Kernels without a loop in `pairs` are
evaluated on blocks of Gram matrices, see `gram_pairs`.
"""

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from itertools import cycle, product
from typing import Any, Self

import numpy as np

from ..core.cached import cached_property
from ..core.checks import as_given
from ..core.dual import Dual, contiguous
from ..lowlevel.blas import one_blas_thread
from ..lowlevel.compilation import WITHIN, njit
from ..models import ZonalDrift
from ..models.changes import derivative_by
from .contract import ThreadPool, ZonalEngine
from .gram_pairs import (
    Weigh,
    Workspace,
    exponential_weights,
    exponentials,
    gram_sums,
    weights_of,
    within_one,
)
from .kernel_series import KernelSeries
from .pairs import add_pairs, columns_of, more_than_three, single_sums, sums_of

FEW_DIMENSIONS, FEW_TOKENS = 8, 64  # up to these, loops over differences are faster than BLAS
SMALL_SYSTEM = 1000  # threads do not share a system of at most this many tokens; bits depend on it
LOWEST_DENOMINATOR = 1e-280  # below this denominator, weights that underflow would matter
ROW_ENTRIES = 1 << 15  # inner products of a block of whole rows
PAIR_COST, FUNCTION_COST = 0.5e-3, 20e-3  # microseconds per pair: exponential kernel, other kernel
BLOCK_COST = 80.0  # microseconds of a block of inner products in addition to its pairs
DIVIDED_STRIP = 256  # tokens whose sums are divided at a time
MEAN_BLOCK = 1024  # tokens of a partial sum of a mean

Kernel = Callable[[np.ndarray], tuple[Any, ...]]


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
    rounding of their mutual weights, 1e-16, remains. Changes along tangents of `Dual` tokens have
    the same accuracy; kernels of drifts without exponent are then interpolated to 1e-12.

    Kernels are evaluated at inner products of unit vectors; where they exceed +-1 by rounding, at
    +-1. While Gram matrices are computed, BLAS is limited to one thread in the whole process.
    """

    name = "direct"
    takes_any_members = True
    takes_velocities = True
    _names: tuple[str | None, ...] = ()  # parameters that change along the tangents
    _rates: np.ndarray  # changes of the exponents along the tangents, (p, members)

    def __init__(self, drift: ZonalDrift, threads: int = 1) -> None:
        """Engine of `drift`; TypeError if it is not zonal."""
        if not isinstance(drift, ZonalDrift):
            raise TypeError(f"drift must be a ZonalDrift, as USA(beta); got {as_given(drift)}.")
        super().__init__(drift, threads)
        self._workspace = Workspace()
        if drift.exponent is None:
            self.members[0].slope(np.zeros(2))  # refuses potentials that have none

    def of_members(self, members: np.ndarray) -> Self:
        """Engine of the members of an ensemble with these indices."""
        chosen = super().of_members(members)
        if chosen is not self and "members" in vars(self):
            chosen.members = [self.members[r] for r in members]
        return chosen

    def with_tangents(self, names: Sequence[str | None]) -> Self:
        """Copy with derivatives of the exponents by the parameters, (p, members), or kernels."""

        def exponents(drifts: Any) -> np.ndarray:
            return np.broadcast_to(drifts.exponent, drifts.shape)

        copied = copy(self)
        copied._names, copied._workspace = tuple(names), Workspace()
        if self.drift.exponent is None:
            copied._kernels = [KernelSeries(member, names).at for member in self.members]
        else:
            rates: list[Any] = [
                0.0 if name is None else derivative_by(member, name, exponents)
                for name in names
                for member in self.members
            ]
            copied._rates = np.reshape(rates, (len(names), len(self.members)))
        return copied

    @cached_property
    def members(self) -> list[ZonalDrift]:
        """Single drifts: one for each system, or one for all."""
        return [self.drift.member(r) for r in range(int(np.prod(self.drift.shape)))]

    @cached_property
    def _kernels(self) -> list[Kernel]:
        """Kernels of the members, as in `row_sums`."""

        def kernel(member: ZonalDrift, t: np.ndarray) -> tuple[Any, ...]:
            slope = np.array(member.slope(t), dtype=float)  # a copy: it may be t itself
            return slope, None, member.weight(t) if member.normalised else None

        return [partial(kernel, member) for member in self.members]

    @staticmethod
    def cost_of(drift: ZonalDrift, n: int) -> float:
        """About the microseconds that velocities of n tokens take, see `contract`."""
        return BLOCK_COST + FUNCTION_COST * n**2 if drift.exponent is None else PAIR_COST * n**2

    def velocity(self, x: np.ndarray, masses: np.ndarray, *computed: Any) -> np.ndarray:
        """Velocities (R, n, d); of `Dual` tokens with their changes.

        `computed` are values of the velocities, where these were computed before.
        """
        if isinstance(x, Dual):
            return self._vectors_along(x, masses, *computed[:1], whole=False)
        columns, d = columns_of(x, masses), x.shape[2]
        return projected(columns, self._pulls(columns, d), d)

    def attention(self, t: float, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Output sum_j m_j W'(t_ij) x_j / sum_j m_j Z(t_ij), (R, n, d), with the token itself."""
        if isinstance(x, Dual):
            return self._vectors_along(x, masses, whole=True)
        columns, d = columns_of(x, masses), x.shape[2]
        return whole_output(columns, self._pulls(columns, d), d)

    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        return 0.5 * np.einsum("rj,rj->r", masses, self.potential(x, masses))

    def potential(self, x: np.ndarray, masses: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Potentials sum_j m_j W(<x_i, x_j>), (R, n); infinite where exp(|beta|) overflows."""
        if isinstance(x, Dual):
            return self._potentials_along(contiguous(x), contiguous(masses))
        columns, d = columns_of(x, masses), x.shape[2]
        if self.drift.exponent is None:
            functions = [member.potential_at for member in self.members]
            return self._symmetric_sums(columns, functions)[:, -1]
        beta = self._beta(len(x))[:, None]
        denominators = self._exponential_sums(columns, beta[:, 0], d)[:, -1]
        mean = np.einsum("rcj,rj->rc", columns[:, :-1], masses)
        with np.errstate(over="ignore"):
            scale = np.exp(np.abs(beta)) / np.where(beta == 0, 1.0, beta)
        scaled = scale * np.where(np.isinf(scale), 1.0, denominators)
        return np.where(beta == 0, np.einsum("rc,rcj->rj", mean, columns[:, :-1]), scaled)

    def single_velocities(
        self, x: np.ndarray, masses: np.ndarray, replica: int, tokens: np.ndarray
    ) -> np.ndarray:
        """Velocities (k, d) of k tokens, given by their indices, of one system x (n, d).

        For drifts that are divided by Z * mu; `replica` is the index of the system's member drift.
        """
        columns = columns_of(x[None], masses[None])
        r = replica % len(self.members)
        exponent = self.members[r].exponent
        if exponent is None:
            pulls = self._row_pulls(columns, tokens, r)
        else:
            pulls = self._single_sums(columns[0], None, float(exponent), None, tokens)
            pulls /= pulls[:, -1:]
        return projected(columns[:, :, tokens], pulls, x.shape[1])[0]

    # Sums over pairs -----------------------------------------------------------------------

    def _beta(self, replicas: int) -> np.ndarray:
        return np.full(replicas, self.drift.exponent, dtype=float)

    def _pulls(self, columns: np.ndarray, d: int) -> np.ndarray:
        """Sums (R, rows + 1, n) of m_j w_ij (x_j - x_i) and, last, of m_j w_ij, with w = W'(t_ij).

        Normalised, both are divided by sum_j m_j Z(t_ij).
        """
        if self.drift.exponent is None:
            if not self.drift.normalised:
                return self._symmetric_sums(columns, [member.slope for member in self.members])
            return self._row_pulls(columns, np.arange(columns.shape[2]))
        beta = self._beta(len(columns))
        sums = self._exponential_sums(columns, beta, d)
        if self.drift.normalised:
            self._replace_underflows(columns, None, beta, None, sums[None])
            return np.divide(sums, sums[:, -1:], out=sums)
        return np.multiply(sums, np.exp(np.abs(beta))[:, None, None], out=sums)

    def _exponential_sums(self, columns: np.ndarray, beta: np.ndarray, d: int) -> np.ndarray:
        """Sums (R, d + 1, n) over pairs with weights exp(beta t - |beta|); beta (R,)."""
        if d > FEW_DIMENSIONS and columns.shape[2] > FEW_TOKENS:
            kernels = [partial(exponentials, b) for b in beta]
            return self._gram_sums(columns, kernels, np.exp(beta - np.abs(beta)))
        sums, threads = np.zeros_like(columns)[:, None], self._threads_for(columns)
        if columns.shape[2] <= SMALL_SYSTEM:
            work = partial(sums_of, columns, beta, sums, more_than_three(columns))
            threads.share(work, len(columns))
        else:
            for r, system in enumerate(columns):
                add_pairs(system, None, beta[r], None, sums[r], threads)
        return sums[:, 0]

    def _replace_underflows(
        self, columns: np.ndarray, changes: Any, beta: np.ndarray, rates: Any, sums: np.ndarray
    ) -> None:
        """Replace, in place, the sums (1 + p, R, rows + 1, n) of tokens whose weights underflow.

        The new sums are relative to the largest weight of each token.
        """
        for r in np.flatnonzero((sums[0, :, -1] < LOWEST_DENOMINATOR).any(axis=1)):
            tokens = np.flatnonzero(sums[0, r, -1] < LOWEST_DENOMINATOR)
            along, rate = (None if a is None else a[:, r].copy() for a in (changes, rates))
            sums[:, r][..., tokens] = self._single_sums(columns[r], along, beta[r], rate, tokens)

    def _single_sums(
        self, columns: np.ndarray, changes: Any, beta: float, rates: Any, tokens: np.ndarray
    ) -> np.ndarray:
        """Sums (1 + p, rows + 1, tokens) of some tokens of a system over pairs with all others."""
        count = 0 if changes is None else len(changes)
        sums = np.zeros((1 + count, len(columns), tokens.size))
        work = partial(single_sums, columns, changes, beta, rates, tokens, sums)
        self.threads.share(work, tokens.size)
        return sums

    def _symmetric_sums(
        self, columns: np.ndarray, functions: Sequence[Callable[..., Any]]
    ) -> np.ndarray:
        """Sums (R, rows + 1, n) with weights function(t), one function for all systems or each."""
        diagonal = [float(np.asarray(function(np.ones(1)))[0]) for function in functions]
        return self._gram_sums(columns, [weights_of(f) for f in functions], diagonal)

    def _gram_sums(
        self, columns: np.ndarray, kernels: Sequence[Weigh], diagonal: Sequence[float] | np.ndarray
    ) -> np.ndarray:
        """Sums (R, d + 1, n) over pairs by Gram matrices; `diagonal` holds the kernels at t = 1."""
        sums, no_changes = np.empty_like(columns), np.empty((0, *columns.shape[1:]))
        pool = self._threads_for(columns), self._workspace
        systems = zip(columns, cycle(kernels), cycle(diagonal), sums, strict=False)
        with one_blas_thread():
            for system, weigh, weight, total in systems:
                gram_sums(system, no_changes, weigh, weight, total[None], *pool)
        return sums

    def _row_pulls(self, columns: np.ndarray, tokens: np.ndarray, first: int = 0) -> np.ndarray:
        """Normalised pulls (R, rows + 1, k) of k tokens; `first` is the member of system 0."""
        sums = np.empty((1, *columns.shape[:2], tokens.size))
        denominators, threads = np.empty((1, len(columns), tokens.size)), self._threads_for(columns)
        no_changes = np.empty((0, *columns.shape))
        self._add_rows(columns, no_changes, tokens, sums, denominators, threads, first)
        return sums[0] / denominators[0, :, None]

    def _add_rows(
        self, columns: np.ndarray, changes: np.ndarray, tokens: np.ndarray, sums: np.ndarray,
        denominators: np.ndarray, threads: ThreadPool, first: int = 0,
    ) -> None:  # fmt: skip
        """Fill sums and denominators of `tokens` in each system by the kernel of its member."""
        for r in range(len(columns)):
            kernel = self._kernels[(first + r) % len(self._kernels)]
            system, results = (columns[r], changes[:, r]), (sums[:, r], denominators[:, r])
            row_sums(*system, kernel, tokens, *results, threads)

    def _threads_for(self, columns: np.ndarray) -> ThreadPool:
        return self.threads.for_pairs(len(columns) * columns.shape[2] ** 2)

    # Changes along tangents ----------------------------------------------------------------

    def _vectors_along(
        self, x: Dual, masses: Any, velocities: np.ndarray | None = None, *, whole: bool
    ) -> Any:
        """Velocities of `Dual` tokens, or outputs of attention if `whole`, with their changes."""
        x, masses = contiguous(x), contiguous(masses)
        (replicas, n, d), count = x.shape, len(x.changes)
        shape, vectors = (replicas, max(d, 3) + 1, n), np.empty((1 + count, *x.shape))
        with self._workspace.lent(shape, (count, *shape), (1 + count, *shape)) as (u, du, sums):
            columns, changes = columns_of(x.value, masses.value, u), changes_of(x, masses, du)
            denominators = self._add_along(columns, changes, sums, d, velocities)
            _divide(columns, changes, sums, denominators, whole, vectors)
        return Dual.of_stack(vectors)

    def _add_along(
        self, columns: np.ndarray, changes: np.ndarray, sums: np.ndarray, d: int,
        velocities: np.ndarray | None,
    ) -> np.ndarray:  # fmt: skip
        """Fill `sums`; return the denominators (1 + p, R, n), empty where Z = 1.

        The factor exp(|beta|) that weights and Z have in common is left out where it cancels.
        Known `velocities` save the computation of the tangential parts of the pulls.
        """
        replicas, _, n = columns.shape
        if self.drift.exponent is None:
            denominators = np.empty((len(sums) if self.drift.normalised else 0, replicas, n))
            self._add_rows(columns, changes, np.arange(n), sums, denominators, self.threads)
            return denominators
        betas = self._beta(replicas)
        rates = np.broadcast_to(self._rates, (len(changes), replicas))

        def pulls(r: int, denominators: np.ndarray) -> np.ndarray:
            """Tangential parts (d, n) of the pulls of system r, from its denominators (n,)."""
            factor = denominators if self.drift.normalised else np.exp(-abs(betas[r]))
            return velocities[r].T * factor  # type: ignore[index]

        for r, beta in enumerate(betas):
            if d > FEW_DIMENSIONS and n > FEW_TOKENS:
                weigh = partial(exponential_weights, beta, rates[:, r], columns[r, -1])
                system = columns[r], changes[:, r], weigh, np.exp(beta - abs(beta)), sums[:, r]
                fill_pulls = None if velocities is None else partial(pulls, r)
                with one_blas_thread():
                    gram_sums(*system, self.threads, self._workspace, fill_pulls)
            else:
                total = np.zeros((len(sums), *columns[r].shape))
                tangents = changes[:, r].copy(), beta, rates[:, r].copy()
                add_pairs(columns[r], *tangents, total, self.threads)
                sums[:, r] = total
        if self.drift.normalised:  # Z = W' up to a factor that cancels in the quotient
            self._replace_underflows(columns, changes, betas, rates, sums)
            return sums[:, :, -1].copy()
        if rates.any():
            sums[1:] += rates[..., None, None] * sums[0]
        sums *= np.exp(np.abs(betas))[:, None, None]
        return np.empty((0, 0, 0))

    def _potentials_along(self, x: Dual, masses: Dual) -> Any:
        """Potentials of `Dual` tokens, (R, n), with their changes, by blocks of whole rows."""
        columns, changes = columns_of(x.value, masses.value), changes_of(x, masses)
        potentials = np.empty((1 + len(changes), *masses.shape))
        n, size = columns.shape[2], max(1, ROW_ENTRIES // columns.shape[2])
        for r, begin in product(range(len(x)), range(0, n, size)):
            drift, rows = self.members[r % len(self.members)], slice(begin, begin + size)
            u, m, du, dm = columns[r, :-1], columns[r, -1], changes[:, r, :-1], changes[:, r, -1]
            t = within_one(u[:, rows].T @ u)
            W, slope = drift.potential_at(t), drift.slope(t)
            if drift.exponent is not None:  # `slope` has a factor in common with `weight`
                slope = np.exp(drift.exponent * t)
            potentials[0, r, rows] = W @ m
            for a, name in enumerate(self._names):
                change = slope * (du[a][:, rows].T @ u + u[:, rows].T @ du[a])
                if name is not None:

                    def of(drifts: Any, t: Any = t) -> np.ndarray:
                        return drifts.potential_at(np.broadcast_to(t, (*drifts.shape, *t.shape)))

                    change = change + derivative_by(drift, name, of)
                potentials[1 + a, r, rows] = change @ m + W @ dm[a]
        return Dual.of_stack(potentials)


def row_sums(
    columns: np.ndarray, changes: np.ndarray, kernel: Kernel, tokens: np.ndarray,
    sums: np.ndarray, denominators: np.ndarray, threads: ThreadPool,
) -> None:  # fmt: skip
    """Fill sums (1 + p, rows + 1, k) of k tokens of one system by whole rows of the Gram matrix.

    Denominators (1 + p, k) are filled too, unless they are empty. kernel(t) of inner products
    (rows, sources) returns W', W'', Z; with tangents also Z', and two lists with the derivatives of
    W' and of Z by the parameter of each tangent. Z and Z' are None where Z = 1, derivatives are
    None for tangents without a parameter. W' and Z may have a factor in common that differs between
    rows.
    """
    masses, by_masses = columns[-1], changes[:, -1]
    sources = np.flatnonzero(masses if masses.all() else masses + np.abs(by_masses).sum(axis=0))
    u, m, du, dm = columns[:-1], masses, changes[:, :-1], by_masses
    if sources.size < masses.size:
        u, m, du, dm = (array[..., sources] for array in (u, m, du, dm))
    pulling = np.concatenate([u * m, m[None]])
    moved = np.concatenate([du * m + u * dm[:, None], dm[:, None]], axis=1)
    size = max(1, ROW_ENTRIES // sources.size)

    takes_all = tokens.size == masses.size

    def block(block_range: slice) -> None:
        """Write sums of some rows over all sources, and their changes; no token pulls itself."""
        block_tokens = tokens[block_range]
        rows = block_range if takes_all else block_tokens  # slices give views
        row_u, row_du, row_m = columns[:-1, rows], changes[:, :, rows], masses[rows]
        column = np.minimum(np.searchsorted(sources, block_tokens), sources.size - 1)
        present = np.flatnonzero(sources[column] == block_tokens)
        diagonal = np.zeros(block_tokens.size)  # weights of the tokens with themselves
        pair = present, column[present]
        t = within_one(row_u.T @ u)
        w, w1, z, *along = kernel(t)
        diagonal[present], w[pair] = w[pair], 0.0
        pulls = pulling @ w.T
        sums[0, :-1, block_range] = pulls[:-1] - row_u * pulls[-1]
        sums[0, -1, block_range] = pulls[-1] + diagonal * row_m
        if len(denominators):
            denominators[0, block_range] = z @ m
        for a in range(len(changes)):
            z1, by_slope, by_weight = along[0], along[1][a], along[2][a]
            dt = row_du[a, :-1].T @ u + row_u.T @ du[a]
            dw = w1 * dt if by_slope is None else w1 * dt + by_slope
            diagonal_change = np.zeros(block_tokens.size)
            diagonal_change[present], dw[pair] = dw[pair], 0.0
            change = pulling @ dw.T + moved[a] @ w.T
            dD = change[:-1] - row_u * change[-1] - row_du[a, :-1] * pulls[-1]
            dS = change[-1] + diagonal_change * row_m + diagonal * row_du[a, -1]
            sums[1 + a, :-1, block_range], sums[1 + a, -1, block_range] = dD, dS
            if len(denominators):
                dz = z1 * dt if by_weight is None else z1 * dt + by_weight
                denominators[1 + a, block_range] = dz @ m + z @ dm[a]

    def work(first: int, last: int) -> None:
        for begin in range(first * size, min(last * size, tokens.size), size):
            block(slice(begin, begin + size))

    with one_blas_thread():
        threads.share(work, -(-tokens.size // size))


def projected(columns: np.ndarray, pulls: np.ndarray, d: int) -> np.ndarray:
    """Velocities (R, n, d): tangential parts P_i of the pulls (R, rows + 1, n).

    The pulls are projected in place.
    """
    _project(columns, pulls, d)
    return np.ascontiguousarray(pulls[:, :d].swapaxes(1, 2))  # faster than loops of ours


def whole_output(columns: np.ndarray, pulls: np.ndarray, d: int) -> np.ndarray:
    """Outputs D_i + u_i S_i, (R, n, d), from pulls D_i and sums of weights S_i, the last row."""
    output = columns[:, :-1] * pulls[:, -1:] + pulls[:, :-1]
    return np.ascontiguousarray(output[:, :d].swapaxes(1, 2))


@njit(cache=True, nogil=True)
def _project(columns: np.ndarray, pulls: np.ndarray, d: int) -> None:
    """Subtract from pulls (R, d, n), in place, the components along unit vectors `columns`."""
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


def changes_of(x: Dual, masses: Dual, into: np.ndarray | None = None) -> np.ndarray:
    """Changes (p, R, rows + 1, n) of the directions u = x/|x|, and of masses in the last row.

    Written to `into` where it is given.
    """
    (replicas, n, d), count = x.shape, len(x.changes)
    changes = np.empty((count, replicas, max(d, 3) + 1, n)) if into is None else into
    changes[:, :, d:-1] = 0.0
    _change(x.value, x.changes, masses.changes, changes)
    return changes


@njit(cache=True, nogil=True)
def _change(x: np.ndarray, dx: np.ndarray, dm: np.ndarray, changes: np.ndarray) -> None:
    """Write changes (p, R, d + 1, n) of x / |x| and of masses along dx (p, R, n, d) and dm."""
    replicas, n, d = x.shape
    lengths, along = np.empty(DIVIDED_STRIP), np.empty(DIVIDED_STRIP)
    for r in range(replicas):
        for begin in range(0, n, DIVIDED_STRIP):
            tokens = range(begin, min(n, begin + DIVIDED_STRIP))
            for i in tokens:
                square = 0.0
                for c in range(d):
                    square += x[r, i, c] * x[r, i, c]
                lengths[i - begin] = np.sqrt(square)
            for a in range(len(dx)):
                for i in tokens:
                    radial = 0.0
                    for c in range(d):
                        radial += x[r, i, c] * dx[a, r, i, c]
                    along[i - begin] = radial / lengths[i - begin] ** 2
                    changes[a, r, -1, i] = dm[a, r, i]
                for c in range(d):
                    for i in tokens:
                        change = dx[a, r, i, c] - along[i - begin] * x[r, i, c]
                        changes[a, r, c, i] = change / lengths[i - begin]


@njit(cache=True, nogil=True)
def _divide(
    columns: np.ndarray,
    changes: np.ndarray,
    sums: np.ndarray,
    denominators: np.ndarray,
    whole: bool,
    vectors: np.ndarray,
) -> None:
    """Fill `vectors` (1 + p, R, n, d) from sums: velocities and changes, or attention if `whole`.

    Sums are divided by their denominators, unless these are empty; `sums` is overwritten.
    """
    count, replicas, n, d = vectors.shape
    along, by_along = np.empty(DIVIDED_STRIP), np.empty(DIVIDED_STRIP)
    for r in range(replicas):
        for begin in range(0, n, DIVIDED_STRIP):
            end = min(n, begin + DIVIDED_STRIP)
            for a in range(count):
                _divide_strip(columns, changes, sums, denominators, whole, r, a, begin, end)
                along_of = along if a == 0 else by_along
                along_of[:] = 0.0
                for c in range(0 if whole else d):
                    u, D = columns[r, c, begin:end], sums[0, r, c, begin:end]
                    if a == 0:
                        for i in range(u.size):
                            along[i] += u[i] * D[i]
                    else:
                        du, dD = changes[a - 1, r, c, begin:end], sums[a, r, c, begin:end]
                        for i in range(u.size):
                            by_along[i] += du[i] * D[i] + u[i] * dD[i]
                for c in range(d):
                    u, values = columns[r, c, begin:end], sums[a, r, c, begin:end]
                    target = vectors[a, r, begin:end, c]
                    if whole:
                        for i in range(values.size):
                            target[i] = values[i]
                    elif a == 0:
                        for i in range(u.size):
                            target[i] = values[i] - along[i] * u[i]
                    else:
                        du = changes[a - 1, r, c, begin:end]
                        for i in range(u.size):
                            target[i] = values[i] - along[i] * du[i] - by_along[i] * u[i]


@njit(**WITHIN)
def _divide_strip(
    columns: np.ndarray, changes: np.ndarray, sums: np.ndarray, denominators: np.ndarray,
    whole: bool, r: int, a: int, begin: int, end: int,
) -> None:  # fmt: skip
    """Divide sums of the tokens begin, ..., end - 1 of system r by their denominators, in place.

    a = 0 stands for the values, a > 0 for the change along tangent a - 1, by the quotient rule from
    the values that are divided already. If `whole`, u_i S_i is added to the pull first.
    """
    for c in range(columns.shape[1] - 1):
        values, u = sums[a, r, c, begin:end], columns[r, c, begin:end]
        if whole:
            S, dS = sums[0, r, -1, begin:end], sums[a, r, -1, begin:end]
            for i in range(values.size):
                values[i] += u[i] * dS[i]
            if a > 0:
                du = changes[a - 1, r, c, begin:end]
                for i in range(values.size):
                    values[i] += du[i] * S[i]
        if denominators.size > 0:
            L, dL = denominators[0, r, begin:end], denominators[a, r, begin:end]
            D = sums[0, r, c, begin:end]
            if a > 0:
                for i in range(values.size):
                    values[i] -= D[i] * dL[i]
            for i in range(values.size):
                values[i] /= L[i]


# The constant kernel, by the mean ------------------------------------------------------------


class MeanDirection(ZonalEngine):
    """Velocities v_i = P_i M, M = sum_j m_j x_j, O(n d): Kuramoto, and USA and SA at beta = 0."""

    name = "mean"
    takes_any_members = True

    def velocity(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Tangential parts (R, n, d) of M = sum_j m_j u_j at the tokens."""
        if isinstance(x, Dual):
            return self._velocity_along(x, masses)
        velocity = np.empty(x.shape)
        _project_means(x, _means(x, masses), velocity)
        return velocity

    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        return 0.5 * (_means(x, masses) ** 2).sum(axis=1)

    def potential(self, x: np.ndarray, masses: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Potentials <u_i, M>, (R, n), with M = sum_j m_j u_j."""
        if not isinstance(x, Dual):
            return super().potential(x, masses, t)
        u, M = self._directions(x, masses)
        return (u * M).sum(axis=-1)

    def with_tangents(self, names: Sequence[str | None]) -> Any:
        """Tangents by means; by all pairs if the drift changes with a parameter of some tangent."""
        return super().with_tangents(names) if any(names) else self

    def _velocity_along(self, x: Dual, masses: Any) -> Any:
        """Tangential parts M - <u, M> u, with changes."""
        u, M = self._directions(x, masses)
        values = np.empty(x.shape)
        _project_means(x.value, M.value[:, 0], values)
        radial = (u.value * M.value).sum(axis=-1, keepdims=True)
        radial_changes = (u.changes * M.value + u.value * M.changes).sum(axis=-1, keepdims=True)
        return Dual(values, M.changes - radial * u.changes - radial_changes * u.value)

    @staticmethod
    def _directions(x: Dual, masses: Any) -> tuple[Dual, Dual]:
        """Directions u (R, n, d) and their mean M (R, 1, d)."""
        length = np.linalg.norm(x.value, axis=-1, keepdims=True)
        u, m = x.value / length, contiguous(masses).value
        du = (x.changes - (u * x.changes).sum(axis=-1, keepdims=True) * u) / length
        dM = np.einsum("prn,rnd->prd", masses.changes, u) + np.einsum("rn,prnd->prd", m, du)
        return Dual(u, du), Dual(_means(contiguous(x).value, m)[:, None], dM[:, :, None])


@njit(cache=True, nogil=True)
def _means(x: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """The mean directions (R, d), summed block by block."""
    replicas, n, d = x.shape
    means, block_sum = np.zeros((replicas, d)), np.empty(d)
    for r in range(replicas):
        for begin in range(0, n, MEAN_BLOCK):
            block_sum[:] = 0.0
            for i in range(begin, min(n, begin + MEAN_BLOCK)):
                square = 0.0
                for c in range(d):
                    square += x[r, i, c] * x[r, i, c]
                weight = masses[r, i] / np.sqrt(square)
                for c in range(d):
                    block_sum[c] += weight * x[r, i, c]
            means[r] += block_sum
    return means


@njit(cache=True, nogil=True)
def _project_means(x: np.ndarray, means: np.ndarray, velocity: np.ndarray) -> None:
    """Write the tangential parts of means (R, d) at tokens x (R, n, d) of any length."""
    replicas, n, d = x.shape
    for r in range(replicas):
        for i in range(n):
            square, radial = 0.0, 0.0
            for c in range(d):
                square += x[r, i, c] * x[r, i, c]
                radial += x[r, i, c] * means[r, c]
            for c in range(d):
                velocity[r, i, c] = means[r, c] - radial / square * x[r, i, c]
