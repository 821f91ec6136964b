"""Attention evaluated on tokens, with its derivatives along changes of them and of beta.

As in `attention`, blocks of logits are made into weights and multiplied by the values of the
columns; the changes of logits, weights and values make those of the sums, block by block.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.differences import derivative_at_zero
from ..core.dual import Dual, constant
from ..core.errors import MeanfieldError
from ..models.attention import Attention, heads
from .attention import LOGIT_ENTRIES, NO_MASS_BIAS, Head, of_head, times
from .contract import SINGLE_THREAD, ThreadPool

HIGHEST_LOGIT = 300.0  # of tokens without mass, relative to the largest of others


class AttentionTangents:
    """The attention A_i of `Attention` on the tokens of R replicas, and its changes.

    Parameters
    ----------
    drift : Attention
    names : sequence of (str or None)
        "beta" for a tangent along which it changes at the rate 1.
    threads : int
    """

    tangential = False

    def __init__(self, drift: Attention, names: Sequence[str | None], threads: int = 1) -> None:
        self.drift: Any = drift
        self._by_beta = np.array([float(name == "beta") for name in names]).reshape(-1, 1, 1, 1)
        self._threads = ThreadPool(threads)

    def attention(
        self, t: float, x: np.ndarray, masses: np.ndarray, dx: np.ndarray, dm: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A (R, n, d) at time t, and its changes (p, R, n, d) with those of points and masses."""
        matrices = self.drift.at(t, x.shape[2])
        positions = self.drift.positions
        beta = matrices.pop("beta", np.array(1.0))
        if beta.ndim:
            beta = np.broadcast_to(beta, (len(x),)).reshape(-1, 1, 1)
        total, change = np.zeros(x.shape), np.zeros(dx.shape)
        with np.errstate(over="ignore", invalid="ignore"):  # results are checked as a whole
            for number, matrix in enumerate(heads(matrices)):
                q, k, v = (of_head(matrix, name, x) for name in "QKV")
                dq, dk, dv = (times(dx, matrix[name]) for name in "QKV")
                if positions is not None:
                    q, k, dq, dk = (positions.turned(rows) for rows in (q, k, dq, dk))
                head = HeadTangents(
                    q, k, v, masses, beta, dq, dk, dv, dm, self._by_beta, self._threads,
                    causal=self.drift.causal,
                    terms=None if positions is None else positions.of_head(number),
                )  # fmt: skip
                pulled, by = self.drift.attend(head)
                if "output" in matrix:
                    pulled, by = times(pulled, matrix["output"]), times(by, matrix["output"])
                total += pulled
                change += by
            if "output_bias" in matrices:
                total += matrices["output_bias"][..., None, :]
        return total, change

    def potential(
        self, x: np.ndarray, masses: np.ndarray, dx: np.ndarray, dm: np.ndarray, t: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Not known: MeanfieldError."""
        raise MeanfieldError(
            "Derivatives of runs with a reaction are known for zonal drifts, not for Attention. "
            "Use USA(beta) or SA(beta) in its place, or reaction=0."
        )


@dataclass(frozen=True)
class HeadTangents:
    """One head of attention, see `Head`, and how its parts change: arrays with a leading axis (p,).

    Sums are those of `Head`, each a pair of the sums (R, n, k) and of their changes (p, R, n, k).

    Attributes
    ----------
    queries, keys, values : ndarray, (R, n, k)
    masses : ndarray, (R, n)
    beta : ndarray, () or (R, 1, 1)
    by_queries, by_keys, by_values : ndarray, (p, R, n, k)
    by_masses : ndarray, (p, R, n)
    by_beta : ndarray, (p, 1, 1, 1)
    threads : ThreadPool
    bias : ndarray, (R, n), or None
        Added to the logits of each key.
    by_bias : ndarray, (p, R, n), or None
    causal : bool
    terms : callable or None
        What is added to the logits of a block, terms(rows, columns) -> (rows, columns).
    """

    queries: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    masses: np.ndarray
    beta: np.ndarray
    by_queries: np.ndarray
    by_keys: np.ndarray
    by_values: np.ndarray
    by_masses: np.ndarray
    by_beta: np.ndarray
    threads: ThreadPool = SINGLE_THREAD
    bias: np.ndarray | None = None
    by_bias: np.ndarray | None = None
    causal: bool = False
    terms: Callable[[slice, slice], np.ndarray] | None = None

    # What weights ask for ------------------------------------------------------------------

    def weighted(
        self, kernel: Callable[..., Any], *, normalised: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """With the weights k = kernel(l, (beta |q|^2, beta |k|^2))."""
        squares = [self.beta * (v**2).sum(-1, keepdims=True) for v in (self.queries, self.keys)]
        changes = [
            2 * self.beta * (v * by).sum(-1, keepdims=True)
            + self.by_beta * (v**2).sum(-1, keepdims=True)
            for v, by in ((self.queries, self.by_queries), (self.keys, self.by_keys))
        ]

        def weigh(
            chunk: slice, rows: slice, logits: Dual, seen: np.ndarray | None
        ) -> tuple[Any, np.ndarray | None]:
            own = Dual(squares[0][chunk, rows], changes[0][:, chunk, rows])
            keys = Dual(squares[1][chunk].swapaxes(1, 2), changes[1][:, chunk].swapaxes(2, 3))
            k = weights_along(kernel, logits, (own, keys))
            return k if seen is None else np.where(seen, k, 0.0), None

        return self._means(weigh) if normalised else self._totals(weigh)

    def exponential(self, *, normalised: bool) -> tuple[np.ndarray, np.ndarray]:
        """With k = e^l, each row relative to its largest k."""
        unseen = None if self.masses.all() else self.masses <= 0

        def weigh(
            chunk: slice, rows: slice, logits: Dual, seen: np.ndarray | None
        ) -> tuple[Any, np.ndarray | None]:
            l = logits.value
            if seen is not None:
                np.copyto(l, -np.inf, where=~seen)
            among = l if unseen is None else np.where(unseen[chunk, None], NO_MASS_BIAS, l)
            top = np.maximum(among.max(axis=-1, keepdims=True), NO_MASS_BIAS)
            np.subtract(l, top, out=l)
            if unseen is not None:  # they may be more than those that count
                np.minimum(l, HIGHEST_LOGIT, out=l)
            np.exp(l, out=l)
            np.multiply(logits.changes, l, out=logits.changes)
            return logits, top

        return self._means(weigh) if normalised else self._totals(weigh)

    def by_distance(self) -> "HeadTangents":
        """The head with logits -beta |q - k|^2, up to a constant of each row."""
        origin = self.keys[:, :1]  # any, so that it does not change
        keys = self.keys - origin
        squares = (keys**2).sum(axis=-1)
        moved = (keys * self.by_keys).sum(axis=-1)
        return replace(
            self,
            queries=2 * (self.queries - origin),
            keys=keys,
            by_queries=2 * self.by_queries,
            bias=-(self.beta * squares[..., None])[..., 0],
            by_bias=-(2 * self.beta * moved[..., None] + self.by_beta * squares[..., None])[..., 0],
        )

    def linear(self) -> tuple[np.ndarray, np.ndarray]:
        """With k = l, not normalised, in O(n) operations unless causal."""
        if self.causal:
            return self._totals(lambda _chunk, _rows, logits, seen: (logits * seen, None))
        u, du = self._pulling
        u, du, keys = u[..., :-1], du[..., :-1], self.keys.swapaxes(-1, -2)
        moment = keys @ u
        moved = self.by_keys.swapaxes(-1, -2) @ u + keys @ du
        own = self.beta * self.queries
        by_own = self.beta * self.by_queries + self.by_beta * self.queries
        return own @ moment, by_own @ moment + own @ moved

    def doubly_stochastic(self, tolerance: float, most_iterations: int) -> "HeadTangents":
        """The head whose normalised exponential weights have columns of sum one too.

        The change of the bias solves the linear equations that the sums of columns do not change,
        n of them for each replica: O(n^3) operations and O(n^2) memory.
        """
        parts = self.queries, self.keys, self.values, self.masses, self.beta, self.threads
        bias: Any = Head(*parts).doubly_stochastic(tolerance, most_iterations).bias
        by_bias = np.empty(self.by_masses.shape)
        beta = np.broadcast_to(self.beta, (len(self.keys), 1, 1))
        for r, m in enumerate(self.masses):
            q, k = self.queries[r], self.keys[r]
            weights = beta[r] * q @ k.T + bias[r]
            weights = np.exp(weights - weights.max(axis=1, keepdims=True))
            weights /= (weights @ m)[:, None]
            columns = m @ weights
            jacobian = np.diag(columns) + m - (weights.T * m) @ (weights * m)
            for a, dm in enumerate(self.by_masses[:, r]):
                by = beta[r] * self.by_queries[a, r] + self.by_beta[a, 0] * q
                dl = by @ k.T + beta[r] * q @ self.by_keys[a, r].T
                dl -= ((weights * dl) @ m + weights @ dm)[:, None]
                moved = dm @ weights + m @ (weights * dl)
                by_bias[a, r] = np.linalg.solve(jacobian, -moved)
        return replace(self, bias=bias, by_bias=by_bias)

    # Blocks of pairs -----------------------------------------------------------------------

    @property
    def _pulling(self) -> tuple[np.ndarray, np.ndarray]:
        """(m v, m) (R, n, k + 1), and its changes."""
        m, dm = self.masses[..., None], self.by_masses[..., None]
        u = np.concatenate([m * self.values, m], axis=-1)
        return u, np.concatenate([dm * self.values + m * self.by_values, dm], axis=-1)

    def _means(self, weigh: Callable[..., Any]) -> tuple[np.ndarray, np.ndarray]:
        """Sums divided by those of the weights; 0 where there is no mass."""
        sums, changed, _ = self._sums(weigh)
        total = np.where(sums[..., -1:] == 0, 1.0, sums[..., -1:])
        found = sums[..., :-1] / total
        return found, (changed[..., :-1] - found * changed[..., -1:]) / total

    def _totals(self, weigh: Callable[..., Any]) -> tuple[np.ndarray, np.ndarray]:
        sums, changed, top = self._sums(weigh)
        size = np.exp(top)
        return size * sums[..., :-1], size * changed[..., :-1]

    def _sums(self, weigh: Callable[..., Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """sum_j k_ij (m v, m)_j, its changes, and the logarithm of what rows are relative to.

        weigh(chunk, rows, logits, seen) gives `Dual` weights, and this logarithm or None; `seen`
        tells which pairs count, None if all do.
        """
        u, du = self._pulling
        replicas, n = self.masses.shape
        sums, top = np.empty(u.shape), np.zeros((replicas, n, 1))
        changed = np.empty(du.shape)
        own = self.beta * self.queries
        # one product makes a change of logits: (beta dq + dbeta q, beta q) with (k, dk)
        by_own = self.beta * self.by_queries + self.by_beta * self.queries
        left = np.concatenate([by_own, np.broadcast_to(own, by_own.shape)], axis=-1)
        right = np.concatenate([np.broadcast_to(self.keys, by_own.shape), self.by_keys], axis=-1)

        def work(chunk: slice, rows: slice) -> None:
            logits = own[chunk, rows] @ self.keys[chunk].swapaxes(1, 2)
            if self.bias is not None:
                logits += self.bias[chunk, None]
            if self.terms is not None:
                logits += self.terms(rows, slice(0, n))
            moved = left[:, chunk, rows] @ right[:, chunk].swapaxes(2, 3)
            if self.by_bias is not None:
                moved += self.by_bias[:, chunk, None]
            seen = None
            if self.causal:
                seen = np.arange(n) <= np.arange(rows.start, rows.stop)[:, None]
            k, size = weigh(chunk, rows, Dual(logits, moved), seen)
            sums[chunk, rows] = k.value @ u[chunk]
            if size is not None:
                top[chunk, rows] = size
            changed[:, chunk, rows] = k.changes @ u[chunk] + k.value @ du[:, chunk]

        entries = LOGIT_ENTRIES // (1 + len(du))  # of weights and their changes together
        rows = max(1, min(n, entries // n))
        chunk = max(1, entries // (rows * n)) if rows == n else 1
        blocks = [
            (slice(c, min(c + chunk, replicas)), slice(r, min(r + rows, n)))
            for c in range(0, replicas, chunk)
            for r in range(0, n, rows)
        ]

        def some(first: int, last: int) -> None:
            with np.errstate(over="ignore", invalid="ignore"):  # threads have their own
                for block in blocks[first:last]:
                    work(*block)

        self.threads.share(some, len(blocks))
        return sums, changed, top


def weights_along(kernel: Callable[..., Any], logits: Dual, squares: tuple[Dual, Dual]) -> Dual:
    """Weights of logits and squares with tangents, of functions of NumPy; else by differences."""
    try:
        k = kernel(logits.copy(), squares)
        return k if isinstance(k, Dual) else constant(k, len(logits.changes))
    except (TypeError, AttributeError):  # they calculate with functions that have no rule
        arguments, total = (logits, *squares), np.zeros(logits.changes.shape)
    for number, each in enumerate(arguments):

        def moved(h: float, number: int = number) -> np.ndarray:
            l, *rest = (a.value + h * (k == number) for k, a in enumerate(arguments))
            return kernel(l, tuple(rest))

        total += derivative_at_zero(moved, kernel.__name__) * each.changes
    return Dual(kernel(logits.value.copy(), tuple(s.value for s in squares)), total)
