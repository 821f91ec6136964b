"""Velocities of tokens under zonal drifts, and their derivatives, by sums over all pairs.

For every token i, with directions u = x/|x| and weights w_ij = W'(<u_i, u_j>), the sums

    D_i = sum_j m_j w_ij (u_j - u_i),    S_i = sum_j m_j w_ij,    L_i = sum_j m_j Z_ij

(pull, sum of weights, normaliser) give the velocity P_i D_i / L_i and the output of attention
(D_i + u_i S_i) / L_i. A tangent changes points, masses and parameters of the drift. The changes
along p tangents are stacked on a leading axis of length p.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..core.dual import Dual, contiguous
from ..core.errors import MeanfieldError
from ..lowlevel.blas import one_blas_thread
from ..lowlevel.compilation import WITHIN, njit
from ..models import ZonalDrift
from ..models.changes import derivative_by
from ..models.zonal import INTERPOLANT_SIZES, ROUNDED_COEFFICIENT, SLOPE_ACCURACY
from .contract import DualEngine, ThreadPool
from .direct import FEW_DIMENSIONS, FEW_TOKENS, LOWEST_LEVEL, ROW_ENTRIES
from .gram_pairs import Workspace, exponential_weights, gram_sums
from .pairs import add_pairs, columns_of, single_sums

DIVIDED_STRIP = 256  # tokens whose sums are divided at a time


class Sums(NamedTuple):
    """Sums of R systems of n tokens, and their changes along p tangents.

    Attributes
    ----------
    columns : (R, rows + 1, n)
        Coordinates of the directions u, and masses in the last row.
    changes : (p, R, rows + 1, n)
        Changes of directions and masses.
    sums : (1 + p, R, rows + 1, n)
        Pulls D, and in the last row the sums S of weights including the token itself; then their
        changes.
    levels : (1 + p, R, n), or None where Z = 1
        Normalisers L and their changes.
    """

    columns: np.ndarray
    changes: np.ndarray
    sums: np.ndarray
    levels: np.ndarray | None


class DirectTangents(DualEngine):
    """Velocities and their derivatives under a zonal drift, by sums over all pairs.

    Parameters
    ----------
    drift : ZonalDrift
        Its parameters are numbers, or have shape (R,).
    names : sequence of (str or None)
        For each tangent the parameter of the drift that changes along it at the rate 1, or None.
    threads : int

    Notes
    -----
    With an exponential kernel, in up to eight dimensions or for up to 64 tokens, changes have the
    relative accuracy of the forces, see `DirectSums`; else an error of the rounding of the weights.
    Kernels of drifts without exponent are interpolated in the inner product to 1e-12.

    Points may be off the sphere by the error of a step: only their directions matter, and
    velocities are tangent to the sphere there.
    """

    takes_velocities = True

    def __init__(self, drift: ZonalDrift, names: Sequence[str | None], threads: int = 1) -> None:
        self.drift, self.names, self.threads = drift, tuple(names), ThreadPool(threads)
        self._workspace = Workspace()
        count = int(np.prod(drift.shape))
        self.members = [drift.member(r) for r in range(count)]
        if drift.exponent is None:
            self._kernels = [KernelSeries(member, self.names) for member in self.members]
        else:
            self._by_beta = np.array([self._exponent_by(name) for name in self.names])
            self._by_beta = self._by_beta.reshape(len(self.names), count)

    def _exponent_by(self, name: str | None) -> np.ndarray:
        """Derivative of the exponent by a parameter for every member, (members,); 0 for None."""
        if name is None:
            return np.zeros(len(self.members))

        def exponents(many: Any) -> np.ndarray:
            return np.broadcast_to(many.exponent, many.shape)

        return np.array([derivative_by(member, name, exponents) for member in self.members])

    def velocity(self, x: Dual, masses: Dual, *known: Any) -> Dual:
        with self._sums(x, masses, *known[:1]) as sums:
            return self._vectors(sums, x.shape, whole=False)

    def attention(self, t: float, x: Dual, masses: Dual) -> Dual:
        """Output of attention sum_j m_j W'(t_ij) u_j / sum_j m_j Z(t_ij), (R, n, d)."""
        with self._sums(x, masses) as sums:
            return self._vectors(sums, x.shape, whole=True)

    @staticmethod
    def _vectors(s: Sums, shape: tuple[int, ...], *, whole: bool) -> Dual:
        vectors = np.empty((len(s.sums), *shape))
        levels = np.empty((0, 0, 0)) if s.levels is None else s.levels
        _divide(s.columns, s.changes, s.sums, levels, whole, vectors)
        return Dual.of_stack(vectors)

    def potential(self, x: Dual, masses: Dual, t: float = 0.0) -> Dual:
        """Potentials sum_j m_j W(t_ij), (R, n)."""
        x, masses = contiguous(x), contiguous(masses)
        columns = columns_of(x.value, masses.value)
        changes, potentials = changes_of(x, masses), np.empty((1 + len(self.names), *masses.shape))
        for r in range(len(x)):
            member = self.members[r % len(self.members)]
            given = columns[r], changes[:, r], potentials[0, r], potentials[1:, r]
            _potentials(member, self.names, *given)
        return Dual.of_stack(potentials)

    # Sums over pairs -----------------------------------------------------------------------

    @contextmanager
    def _sums(self, x: Dual, masses: Dual, velocities: np.ndarray | None = None) -> Iterator[Sums]:
        """Context that yields the `Sums`, whose arrays are reused by the workspace afterwards.

        `velocities` are the values of the velocities (R, n, d), where they are known.
        """
        x, masses = contiguous(x), contiguous(masses)
        (replicas, n, d), count = x.shape, len(x.changes)
        shape = replicas, max(d, 3) + 1, n
        with self._workspace.lent(shape, (count, *shape), (1 + count, *shape)) as (u, du, sums):
            columns, changes = columns_of(x.value, masses.value, u), changes_of(x, masses, du)
            yield Sums(columns, changes, sums, self._summed(columns, changes, sums, d, velocities))

    def _summed(
        self,
        columns: np.ndarray,
        changes: np.ndarray,
        sums: np.ndarray,
        d: int,
        velocities: np.ndarray | None,
    ) -> np.ndarray | None:
        """Fill `sums`; return the levels, or None where Z = 1.

        The factor exp(|beta|) that weights and Z have in common is left out where it cancels.
        """
        if self.drift.exponent is None:
            return self._by_blocks(columns, changes, sums)
        replicas, _, n = columns.shape
        betas = np.broadcast_to(self.drift.exponent, replicas).astype(float)
        rates = np.broadcast_to(self._by_beta, (len(self.names), replicas))
        if d > FEW_DIMENSIONS and n > FEW_TOKENS:
            self._by_gram(columns, changes, betas, rates, sums, velocities)
        else:
            self._by_pairs(columns, changes, betas, rates, sums)
        if self.drift.normalised:  # Z = W' up to a factor that cancels in the quotient
            return sums[:, :, -1].copy()
        if rates.any():
            sums[1:] += rates[..., None, None] * sums[0]
        sums *= np.exp(np.abs(betas))[:, None, None]
        return None

    def _by_pairs(
        self,
        columns: np.ndarray,
        changes: np.ndarray,
        betas: np.ndarray,
        rates: np.ndarray,
        sums: np.ndarray,
    ) -> None:
        """Fill `sums` by pairs, with weights exp(beta t - |beta|); exp(|beta|) counts as constant.

        betas (R,) are the exponents, rates (p, R) their changes.
        """
        for r, beta in enumerate(betas):
            system = columns[r], changes[:, r].copy(), beta, rates[:, r].copy()
            total = np.zeros((len(sums), *columns[r].shape))
            add_pairs(*system, total, self.threads)
            if self.drift.normalised:
                # tokens whose weights all underflow are summed again, relative to their largest
                faint = np.flatnonzero(total[0, -1] < LOWEST_LEVEL)
                fresh = np.zeros((*total.shape[:2], faint.size))
                single_sums(*system, faint, fresh, 0, faint.size)
                total[:, :, faint] = fresh
            sums[:, r] = total

    def _by_gram(
        self,
        columns: np.ndarray,
        changes: np.ndarray,
        betas: np.ndarray,
        rates: np.ndarray,
        sums: np.ndarray,
        velocities: np.ndarray | None,
    ) -> None:
        """Fill `sums` as `_by_pairs` does, by blocks of Gram matrices.

        Known `velocities` (R, n, d) save the computation of the tangential parts of the pulls.
        """

        def pulls(velocity: np.ndarray, beta: float, levels: np.ndarray) -> np.ndarray:
            """Tangential parts (d, n) of the pulls, from velocities (n, d) and normalisers (n,)."""
            return velocity.T * (levels if self.drift.normalised else np.exp(-abs(beta)))

        with one_blas_thread():
            for r, beta in enumerate(betas):
                weigh = partial(exponential_weights, beta, rates[:, r], columns[r, -1])
                system = columns[r], changes[:, r], weigh, np.exp(beta - abs(beta)), sums[:, r]
                before = None if velocities is None else partial(pulls, velocities[r], beta)
                gram_sums(*system, self.threads, self._workspace, before)

    def _by_blocks(
        self, columns: np.ndarray, changes: np.ndarray, sums: np.ndarray
    ) -> np.ndarray | None:
        """Fill `sums` for any kernel, by blocks of whole rows of Gram matrices; return the levels.

        Levels have shape (1 + p, R, n); None where Z = 1.
        """
        levels = None
        if self.drift.normalised:
            levels = np.empty((len(sums), *columns[:, -1].shape))
        for r in range(len(columns)):
            level = None if levels is None else levels[:, r]
            kernel = self._kernels[r % len(self._kernels)].at
            block_sums(columns[r], changes[:, r], kernel, sums[:, r], level, self.threads)
        return levels


def changes_of(x: Dual, masses: Dual, into: np.ndarray | None = None) -> np.ndarray:
    """Changes (p, R, rows + 1, n) of the directions u = x/|x|, and of masses in the last row.

    Written to `into` where it is given.
    """
    (replicas, n, d), count = x.shape, len(x.changes)
    changes = np.empty((count, replicas, max(d, 3) + 1, n)) if into is None else into
    changes[:, :, d:-1] = 0.0
    _change(x.value, x.changes, masses.changes, changes)
    return changes


@njit(cache=True, nogil=True, error_model="numpy")
def _change(x: np.ndarray, dx: np.ndarray, dm: np.ndarray, changes: np.ndarray) -> None:
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


@njit(cache=True, nogil=True, error_model="numpy")
def _divide(
    columns: np.ndarray,
    changes: np.ndarray,
    sums: np.ndarray,
    levels: np.ndarray,
    whole: bool,
    vectors: np.ndarray,
) -> None:
    """Fill `vectors` (1 + p, R, n, d) from sums: velocities and changes, or attention if `whole`.

    Sums are divided by their levels, unless these are empty; `sums` is overwritten.
    """
    count, replicas, n, d = vectors.shape
    along, by_along = np.empty(DIVIDED_STRIP), np.empty(DIVIDED_STRIP)
    for r in range(replicas):
        for begin in range(0, n, DIVIDED_STRIP):
            end = min(n, begin + DIVIDED_STRIP)
            for a in range(count):
                _divide_strip(columns, changes, sums, levels, whole, r, a, begin, end)
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
                    u, part = columns[r, c, begin:end], sums[a, r, c, begin:end]
                    target = vectors[a, r, begin:end, c]
                    if whole:
                        for i in range(part.size):
                            target[i] = part[i]
                    elif a == 0:
                        for i in range(u.size):
                            target[i] = part[i] - along[i] * u[i]
                    else:
                        du = changes[a - 1, r, c, begin:end]
                        for i in range(u.size):
                            target[i] = part[i] - along[i] * du[i] - by_along[i] * u[i]


@njit(**WITHIN, error_model="numpy")
def _divide_strip(
    columns: np.ndarray, changes: np.ndarray, sums: np.ndarray, levels: np.ndarray, whole: bool,
    r: int, a: int, begin: int, end: int,
) -> None:  # fmt: skip
    """Divide sums of the tokens begin, ..., end - 1 of system r by their levels, in place.

    a = 0 stands for the values, a > 0 for the change along tangent a - 1, by the quotient rule from
    the values that are divided already. If `whole`, u_i S_i is added to the pull first.
    """
    for c in range(columns.shape[1] - 1):
        part, u = sums[a, r, c, begin:end], columns[r, c, begin:end]
        if whole:
            S, dS = sums[0, r, -1, begin:end], sums[a, r, -1, begin:end]
            for i in range(part.size):
                part[i] += u[i] * dS[i]
            if a > 0:
                du = changes[a - 1, r, c, begin:end]
                for i in range(part.size):
                    part[i] += du[i] * S[i]
        if levels.size > 0:
            L, dL, D = levels[0, r, begin:end], levels[a, r, begin:end], sums[0, r, c, begin:end]
            if a > 0:
                for i in range(part.size):
                    part[i] -= D[i] * dL[i]
            for i in range(part.size):
                part[i] /= L[i]


# Any kernel, by blocks of rows of the Gram matrix ------------------------------------------------


def block_sums(
    columns: np.ndarray,
    changes: np.ndarray,
    kernel: Callable[..., Any],
    sums: np.ndarray,
    levels: np.ndarray | None,
    threads: ThreadPool,
) -> None:
    """Fill sums and their changes (1 + p, rows + 1, n), and levels (1 + p, n) unless None.

    kernel(t) of inner products (rows, n) returns W', W'', Z, Z', and two lists with the derivatives
    of W' and of Z by the parameter of each tangent. Z and Z' are None where Z = 1, derivatives are
    None for tangents without a parameter.
    """
    total, changed = sums[0], sums[1:]
    u, m, n = columns[:-1], columns[-1], columns.shape[1]
    du, dm = changes[:, :-1], changes[:, -1]
    pulling = np.concatenate([u * m, m[None]])
    moved = np.concatenate([du * m + u * dm[:, None], dm[:, None]], axis=1)  # (p, rows + 1, n)
    size = max(1, ROW_ENTRIES // n)

    def work(first: int, last: int) -> None:
        for begin in range(first * size, min(last * size, n), size):
            rows = np.arange(begin, min(begin + size, n))
            here = slice(begin, rows[-1] + 1)
            t = np.clip(u[:, here].T @ u, -1.0, 1.0)
            w, w1, z, z1, wp, zp = kernel(t)
            itself = w[rows - begin, rows].copy()
            w[rows - begin, rows] = 0.0
            pulls = pulling @ w.T
            total[:-1, here] = pulls[:-1] - u[:, here] * pulls[-1]
            total[-1, here] = pulls[-1] + itself * m[here]
            if levels is not None:
                levels[0, here] = z @ m
            for a in range(len(changes)):
                dt = du[a][:, here].T @ u + u[:, here].T @ du[a]
                dw = w1 * dt
                if wp[a] is not None:
                    dw += wp[a]
                by_own = dw[rows - begin, rows].copy()
                dw[rows - begin, rows] = 0.0
                by = pulling @ dw.T + moved[a] @ w.T
                changed[a, :-1, here] = by[:-1] - u[:, here] * by[-1] - du[a][:, here] * pulls[-1]
                changed[a, -1, here] = by[-1] + by_own * m[here] + itself * dm[a, here]
                if levels is not None:
                    dz = z1 * dt
                    if zp[a] is not None:
                        dz += zp[a]
                    levels[1 + a, here] = dz @ m + z @ dm[a]

    with one_blas_thread():
        threads.share(work, -(-n // size))


class KernelSeries:
    """Chebyshev series, in the inner product t, of W' and Z of a zonal drift and derivatives.

    Parameters
    ----------
    drift : ZonalDrift
        A single one.
    names : sequence of (str or None)
        The parameter of each tangent.

    Raises
    ------
    MeanfieldError
        If the series do not converge to 1e-12, or the drift is not smooth in a parameter.
    """

    def __init__(self, drift: ZonalDrift, names: Sequence[str | None]) -> None:
        self.normalised, self._names = drift.normalised, names
        asked = sorted({name for name in names if name is not None})
        count = 2 if self.normalised else 1

        def both(many: Any, nodes: np.ndarray) -> np.ndarray:
            t = np.broadcast_to(nodes, (*many.shape, nodes.size))
            parts = [many.slope(t), many.weight(t)][:count]
            return np.stack(np.broadcast_arrays(*parts), axis=-2)

        def values(nodes: np.ndarray) -> np.ndarray:
            by = [derivative_by(drift, name, lambda many: both(many, nodes)) for name in asked]
            return np.concatenate([both(drift, nodes), *by])

        series = converged(values, count, drift)
        self._series = np.concatenate([series, derivatives_of(series[:, :count])], axis=1)
        rows = {name: count * (1 + i) for i, name in enumerate(asked)}
        self._rows = [rows.get(name) if name is not None else None for name in names]

    def at(self, t: np.ndarray) -> tuple[Any, ...]:
        """Values at t of W', W'', Z, Z', and of the derivatives of W' and Z: see `block_sums`."""
        values = np.polynomial.chebyshev.chebval(t, self._series)
        by: list[Any] = [None if at is None else values[at] for at in self._rows]
        if not self.normalised:
            return values[0], values[-1], None, None, by, by
        by_weight: list[Any] = [None if at is None else values[at + 1] for at in self._rows]
        return values[0], values[-2], values[1], values[-1], by, by_weight


def converged(values: Callable[..., Any], differentiated: int, drift: ZonalDrift) -> np.ndarray:
    """Chebyshev coefficients (terms, k) of k functions, to SLOPE_ACCURACY.

    values(nodes) are their values (k, nodes). The error of the first `differentiated` functions is
    that of their derivatives. The drift is for the error message.

    Raises
    ------
    MeanfieldError
        If the largest of INTERPOLANT_SIZES does not resolve them.
    """
    from scipy.fft import dct

    points = np.cos(np.linspace(0, np.pi, INTERPOLANT_SIZES[-1]))
    coarser = None
    for size in INTERPOLANT_SIZES:
        nodes = np.cos((np.arange(size) + 0.5) * np.pi / size)
        series = dct(values(nodes), axis=-1).T / size
        series[0] /= 2
        kept = np.abs(series) > ROUNDED_COEFFICIENT * np.abs(series).max(axis=0)
        series = series[: max(2, int(np.nonzero(kept.any(axis=1))[0].max(initial=0)) + 1)]
        slopes = derivatives_of(series[:, :differentiated])
        finer = np.polynomial.chebyshev.chebval(
            points, np.concatenate([series[:, differentiated:], slopes], axis=1)
        )
        if coarser is not None:
            scale = np.abs(finer).max(axis=1, keepdims=True)
            if (np.abs(finer - coarser) <= SLOPE_ACCURACY * scale).all():
                return series
        coarser = finer
    raise MeanfieldError(
        f"Tangents need the derivatives of the slope of {drift!r}, and interpolants in the inner "
        f"product do not give them to {SLOPE_ACCURACY:g} with up to {INTERPOLANT_SIZES[-1]} terms: "
        "it must be smooth."
    )


def derivatives_of(series: np.ndarray) -> np.ndarray:
    """Chebyshev coefficients (terms, k) of the derivatives of series (terms, k); the last are 0."""
    slopes = np.zeros_like(series)
    slopes[:-1] = np.polynomial.chebyshev.chebder(series)
    return slopes


def _potentials(
    drift: ZonalDrift,
    names: Sequence[str | None],
    columns: np.ndarray,
    changes: np.ndarray,
    potential: np.ndarray,
    changed: np.ndarray,
) -> None:
    """Fill potentials (n,) and their changes (p, n) of one system."""
    u, m, n = columns[:-1], columns[-1], columns.shape[1]
    du, dm = changes[:, :-1], changes[:, -1]
    size = max(1, ROW_ENTRIES // n)
    for begin in range(0, n, size):
        here = slice(begin, begin + size)
        t = np.clip(u[:, here].T @ u, -1.0, 1.0)
        W = drift.potential_at(t)
        slope = potential_slope(drift, t)
        potential[here] = W @ m
        for a, name in enumerate(names):
            dt = du[a][:, here].T @ u + u[:, here].T @ du[a]
            change = slope * dt
            if name is not None:

                def of(many: Any, t: Any = t) -> np.ndarray:
                    return many.potential_at(np.broadcast_to(t, (*many.shape, *t.shape)))

                change = change + derivative_by(drift, name, of)
            changed[a, here] = change @ m + W @ dm[a]


def potential_slope(drift: ZonalDrift, t: np.ndarray) -> np.ndarray:
    """Derivative dW/dt of the potential W itself.

    `slope` may differ from it by a factor that it has in common with `weight`.
    """
    if drift.exponent is not None:
        return np.exp(drift.exponent * t)
    return drift.slope(t)
