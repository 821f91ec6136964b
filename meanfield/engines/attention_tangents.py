"""Attention evaluated on tokens, with its derivatives along changes of tokens and of beta.

As in `attention`, blocks of logits are turned into weights and multiplied by the values of their
columns. The changes of the sums follow, block by block, from those of logits, weights and values.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.differences import derivative_at_zero
from ..core.dual import Dual, constant
from ..core.errors import MeanfieldError
from ..models.attention import Attention
from .attention import NO_MASS_BIAS, AttentionSums, Head

HIGHEST_LOGIT = 300.0  # of tokens without mass, relative to the largest of others


class AttentionTangents(AttentionSums):
    """The attention A_i of `Attention` on `Dual` tokens of R replicas.

    Parameters
    ----------
    drift : Attention
    names : sequence of (str or None)
        "beta" for a tangent along which beta changes at the rate 1.
    threads : int
    """

    def __init__(self, drift: Attention, names: Sequence[str | None], threads: int = 1) -> None:
        super().__init__(drift, threads)
        self._by_beta = np.array([float(name == "beta") for name in names]).reshape(-1, 1, 1, 1)

    @property
    def head_type(self) -> type[Head]:
        return DualHead

    def _beta(self, beta: np.ndarray) -> Dual:
        beta = beta.reshape(-1, 1, 1)
        return Dual(beta, np.broadcast_to(self._by_beta, (len(self._by_beta), *beta.shape)))

    def potential(self, x: np.ndarray, masses: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Raise MeanfieldError: derivatives of potentials are not known."""
        raise MeanfieldError(
            "Derivatives of runs with a reaction are known for zonal drifts, not for Attention. "
            "Use USA(beta) or SA(beta) in its place, or reaction=0."
        )


class DualHead(Head):
    """One head of attention whose queries, keys, values, masses, beta and bias are `Dual`."""

    queries: Dual
    keys: Dual
    values: Dual
    masses: Dual
    beta: Dual
    bias: Dual | None

    def weighted(self, kernel: Callable[..., Any], *, normalised: bool) -> Any:
        """Sums (R, n, k) with the weights k = kernel(l, (beta |q|^2, beta |k|^2)), `Dual`."""
        squares = [self.beta * (v**2).sum(-1, keepdims=True) for v in (self.queries, self.keys)]

        def weigh(
            chunk: slice, rows: slice, logits: Dual, visible: np.ndarray | None
        ) -> tuple[Any, None]:
            """Weights of a block of logits, with changes; 0 where not `visible`."""
            key_squares: Any = np.swapaxes(squares[1][chunk], 1, 2)
            k = weights_along(kernel, logits, (squares[0][chunk, rows], key_squares))
            return k if visible is None else np.where(visible, k, 0.0), None

        return self._means(weigh) if normalised else self._totals(weigh)

    def exponential(self, *, normalised: bool) -> Any:
        """Sums (R, n, k) with k = e^l, `Dual`; computed relative to the largest k of each row."""
        massless = None if self.masses.value.all() else self.masses.value <= 0

        def weigh(
            chunk: slice, rows: slice, logits: Dual, visible: np.ndarray | None
        ) -> tuple[Dual, np.ndarray]:
            """Weights exp(l - top), with changes; top is the largest logit with a mass."""
            l = logits.value
            if visible is not None:
                np.copyto(l, -np.inf, where=~visible)
            among = l if massless is None else np.where(massless[chunk, None], NO_MASS_BIAS, l)
            top = np.maximum(among.max(axis=-1, keepdims=True), NO_MASS_BIAS)
            np.subtract(l, top, out=l)
            if massless is not None:  # logits of tokens without mass may exceed the others
                np.minimum(l, HIGHEST_LOGIT, out=l)
            np.exp(l, out=l)
            np.multiply(logits.changes, l, out=logits.changes)
            return logits, top

        return self._means(weigh) if normalised else self._totals(weigh)

    def linear(self) -> Any:
        """Sums with k = l, not normalised, in O(n) operations unless causal."""
        if self.causal:
            return self._totals(lambda _chunk, _rows, logits, visible: (logits * visible, None))
        u, q, keys = self._with_masses(self.values)[..., :-1], self._scaled, self.keys
        moment = keys.value.swapaxes(-1, -2) @ u.value
        moved = keys.changes.swapaxes(-1, -2) @ u.value + keys.value.swapaxes(-1, -2) @ u.changes
        return Dual(q.value @ moment, q.changes @ moment + q.value @ moved)

    def doubly_stochastic(self, tolerance: float, most_iterations: int) -> "DualHead":
        """The head whose normalised exponential weights have columns of sum one too.

        The change of the bias keeps the sums of columns constant: n linear equations for each
        replica, O(n^3) operations and O(n^2) memory.
        """
        q, k, v, m, beta = (
            array.value for array in (self.queries, self.keys, self.values, self.masses, self.beta)
        )
        head = Head(q, k, v, m, beta, self.threads)
        bias: Any = head.doubly_stochastic(tolerance, most_iterations).bias
        changes = np.empty(self.masses.changes.shape)
        scaled = self._scaled
        for r, m in enumerate(self.masses.value):
            q, k = scaled[r], self.keys[r]
            weights = q.value @ k.value.T + bias[r]
            weights = np.exp(weights - weights.max(axis=1, keepdims=True))
            weights /= (weights @ m)[:, None]
            jacobian = np.diag(m @ weights) + m - (weights.T * m) @ (weights * m)
            for a, dm in enumerate(self.masses.changes[:, r]):
                dl = q.changes[a] @ k.value.T + q.value @ k.changes[a].T
                dl -= ((weights * dl) @ m + weights @ dm)[:, None]
                sum_changes = dm @ weights + m @ (weights * dl)
                changes[a, r] = np.linalg.solve(jacobian, -sum_changes)
        return replace(self, bias=Dual(bias, changes))

    # Blocks of pairs -----------------------------------------------------------------------

    @property
    def _scaled(self) -> Dual:
        """Scaled queries beta q, `Dual`."""
        beta, q = self.beta, self.queries
        return Dual(beta.value * q.value, beta.value * q.changes + beta.changes * q.value)

    def _with_masses(self, values: Any) -> Any:
        """Values m_j y_j with the masses m_j as last column, with changes."""
        m, dm = self.masses.value[..., None], self.masses.changes[..., None]
        changes = dm * values.value + m * values.changes
        pairs = ((m * values.value, m), (changes, dm))  # by hand: a fifth of a small system's time
        return Dual(*(np.concatenate(pair, axis=-1) for pair in pairs))

    def _means(self, weigh: Callable[..., Any]) -> Any:
        """Means of the values under the weights, with changes by the quotient rule."""
        dual_sums = self._sums(weigh)[0]
        sums, sum_changes = dual_sums.value, dual_sums.changes
        total = np.where(sums[..., -1:] == 0, 1.0, sums[..., -1:])
        mean = sums[..., :-1] / total
        return Dual(mean, (sum_changes[..., :-1] - mean * sum_changes[..., -1:]) / total)

    def _totals(self, weigh: Callable[..., Any]) -> Any:
        sums, top = self._sums(weigh)
        return np.exp(top) * sums[..., :-1]

    def _sums(self, weigh: Callable[..., Any]) -> tuple[Dual, np.ndarray]:
        """Sums sum_j k_ij (m v, m)_j, `Dual`, and the logarithm (R, n, 1) of the scale of each row.

        weigh(chunk, rows, logits, visible) returns `Dual` weights divided by the scale, and its
        logarithm, or None for 0; `visible` is the mask of the pairs to sum, None for all pairs.
        """
        u, q, k = self._with_masses(self.values), self._scaled, self.keys
        n, count = self.masses.shape[1], len(self.masses.changes)
        sums, top = Dual(np.empty(u.shape), np.empty(u.changes.shape)), np.zeros((*u.shape[:2], 1))
        # one matrix product for the change of logits: (d(beta q), beta q) times (k, dk)
        left = np.concatenate([q.changes, np.broadcast_to(q.value, q.changes.shape)], axis=-1)
        right = np.concatenate([np.broadcast_to(k.value, k.changes.shape), k.changes], axis=-1)

        def work(chunk: slice, rows: slice) -> None:
            """Write sums of weights times u, and changes, for `rows` of systems `chunk`."""
            logits = q.value[chunk, rows] @ k.value[chunk].swapaxes(1, 2)
            logit_changes = left[:, chunk, rows] @ right[:, chunk].swapaxes(2, 3)
            if self.bias is not None:
                logits += self.bias.value[chunk, None]
                logit_changes += self.bias.changes[:, chunk, None]
            if self.terms is not None:
                logits += self.terms(rows, slice(0, n))
            visible = None
            if self.causal:
                visible = np.arange(n) <= np.arange(rows.start, rows.stop)[:, None]
            weights, size = weigh(chunk, rows, Dual(logits, logit_changes), visible)
            sums.value[chunk, rows] = weights.value @ u.value[chunk]
            changed = weights.changes @ u.value[chunk] + weights.value @ u.changes[:, chunk]
            sums.changes[:, chunk, rows] = changed
            if size is not None:
                top[chunk, rows] = size

        self._for_each_block(work, n, 1 + count)
        return sums, top


def weights_along(kernel: Callable[..., Any], logits: Dual, squares: tuple[Dual, Dual]) -> Dual:
    """Weights with tangents: kernel(logits, squares) of `Dual` arrays, else by differences.

    Differences are used where the kernel calls functions without a rule for `Dual`.
    """
    try:
        k = kernel(logits.copy(), squares)
        return k if isinstance(k, Dual) else constant(k, len(logits.changes))
    except (TypeError, AttributeError):  # the kernel calls functions without a rule for `Dual`
        arguments, total = (logits, *squares), np.zeros(logits.changes.shape)
    for number, argument in enumerate(arguments):

        def moved(h: float, number: int = number) -> np.ndarray:
            l, *parameters = (a.value + h * (k == number) for k, a in enumerate(arguments))
            return kernel(l, tuple(parameters))

        total += derivative_at_zero(moved, kernel.__name__) * argument.changes
    return Dual(kernel(logits.value.copy(), tuple(s.value for s in squares)), total)
