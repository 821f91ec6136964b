"""Attention evaluated on tokens: sums over all pairs, in memory of the size of the tokens."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from ..core.checks import whole_number
from ..models.attention import Attention
from ..models.hardmax import Hardmax
from ..models.heads import dimension, heads
from ..models.weights import L2, Linear, Sigmoid, Sinkhorn, Unnormalised, Weights
from .balance import balance
from .weighted_sums import (
    UNSEEN,
    Pairs,
    exponential_sums,
    hardmax_sums,
    sigmoid_sums,
)

__all__ = ["AttentionSums"]


class AttentionSums:
    """The attention A_i of `Attention` or `Hardmax` on the tokens of R replicas.

    Parameters
    ----------
    drift : Attention or Hardmax
    threads : int
        Threads that share the blocks of rows; results are the same, bit for bit. BLAS may have
        threads of its own: more than one here helps where it has one (OPENBLAS_NUM_THREADS=1).
    shape : tuple of int, optional
        Ensemble shape of the replicas, of R entries, with which an array of betas broadcasts;
        (R,) by default.

    Notes
    -----
    Costs O(R n^2 H (k + d)) operations, with linear weights O(R n H k d), and O(R n d) memory. A
    token that sees no mass at all has A = 0.
    """

    name = "attention"

    def __init__(
        self,
        drift: Attention | Hardmax,
        threads: int = 1,
        shape: tuple[int, ...] | None = None,
    ):
        self.drift, self.shape = drift, shape
        self.threads = whole_number("AttentionSums expects threads", "threads", threads)

    def attention(self, t: float, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """A (R, n, d) at time t, of tokens x (R, n, d) with masses >= 0 (R, n).

        Where exp(beta <Qx, Ky>) or the result overflows it is infinite or nan.

        Raises
        ------
        ValueError
            If the drift's matrices are for another dimension, its betas are not one for each
            replica, Hardmax has fewer than two tokens, or a callable returned no valid value.
        MeanfieldError
            If Sinkhorn weights are not balanced, or a parameter is a function that a file did
            not hold.
        """
        matrices = self.drift.at(t)
        self._check_tokens(matrices, x)
        with np.errstate(over="ignore", invalid="ignore"):  # of which a run is told by its result
            if self.threads == 1:
                result = self._sum_of_heads(matrices, x, masses, map)
            else:
                with ThreadPoolExecutor(self.threads) as pool:
                    result = self._sum_of_heads(matrices, x, masses, pool.map)
        return result

    def _check_tokens(self, matrices: Mapping[str, np.ndarray], x: np.ndarray) -> None:
        n, d = x.shape[1:]
        expected = dimension({name: m.shape for name, m in matrices.items() if name != "beta"})
        if expected not in (None, d):
            raise ValueError(
                f"{self.drift!r} is for tokens of dimension {expected}; got tokens of "
                f"dimension {d}."
            )
        if isinstance(self.drift, Hardmax) and n < 2:
            raise ValueError("Hardmax expects n >= 2 tokens, since none attends to itself; got 1.")

    def _sum_of_heads(self, matrices, x, masses, each) -> np.ndarray:
        total = np.zeros_like(x)
        beta = self._betas(matrices.get("beta", np.array(1.0)), len(x))
        parts = {name: value for name, value in matrices.items() if name != "beta"}
        for head in heads(parts):
            values = times(x, head["V"])
            queries, keys = times(x, head["Q"]), times(x, head["K"])
            pulled = self._pull(queries, keys, values, beta, masses, each)
            total += times(pulled, head["output"]) if "output" in head else pulled
        return total

    def _betas(self, beta: np.ndarray, replicas: int) -> np.ndarray:
        """beta () or (R, 1, 1)."""
        if beta.ndim == 0:
            return beta
        shape = (replicas,) if self.shape is None else self.shape
        try:
            return np.broadcast_to(beta, shape).reshape(replicas, 1, 1)
        except ValueError:
            raise ValueError(
                f"beta of shape {beta.shape} is not one for each of {replicas} replicas of shape "
                f"{shape}."
            ) from None

    def _pull(self, queries, keys, values, beta, masses, each) -> np.ndarray:
        """sum_j m_j k_ij v_j / Z_i of one head, shape (R, n, k)."""
        u = np.concatenate([masses[..., None] * values, masses[..., None]], axis=-1)
        unseen = None if masses.all() else np.where(masses > 0, 0.0, UNSEEN)
        if isinstance(self.drift, Hardmax):
            pairs = Pairs(queries, keys, unseen, each=each)
            return means(hardmax_sums(pairs, u, self.drift.ties))
        weights = self.drift.weights
        if isinstance(weights, Linear):
            return linear_sums(beta * queries, keys, u[..., :-1], self.drift.causal)
        pairs = logits(weights, queries, keys, beta, self.drift.causal, each)
        if isinstance(weights, Sigmoid):
            return sigmoid_sums(pairs, u[..., :-1])
        if isinstance(weights, Sinkhorn):
            pairs = replace(pairs, bias=balance(pairs, masses, weights))
        if unseen is not None:
            pairs = replace(pairs, bias=unseen if pairs.bias is None else pairs.bias + unseen)
        top, sums = exponential_sums(pairs, u)
        return np.exp(top) * sums[..., :-1] if isinstance(weights, Unnormalised) else means(sums)


def logits(weights: Weights, queries, keys, beta, causal: bool, each) -> Pairs:
    """The pairs whose logits are log k_ij, up to what rows have in common; those of Sigmoid's k."""
    bias = None
    if isinstance(weights, L2):  # -|q - k|^2 = 2 <q, k> - |k|^2 - |q|^2
        origin = keys[:, :1]  # which does not matter, but near the tokens fewer digits cancel
        queries, keys = 2 * (queries - origin), keys - origin
        bias = (-beta * (keys**2).sum(axis=-1, keepdims=True))[..., 0]
    elif isinstance(weights, Sigmoid) and weights.bias:
        bias = np.full(keys.shape[:2], weights.bias)
    return Pairs(beta * queries, keys, bias, causal, each)


def linear_sums(queries, keys, u, causal: bool) -> np.ndarray:
    """sum_j <q_i, k_j> u_j over all j, or over j <= i, shape (R, n, k)."""
    if not causal:
        return queries @ (np.swapaxes(keys, 1, 2) @ u)
    moment, result = np.zeros((len(u), keys.shape[2], u.shape[2])), np.empty_like(u)
    for i in range(u.shape[1]):
        moment += keys[:, i, :, None] * u[:, i, None, :]
        result[:, i] = np.einsum("rq,rqk->rk", queries[:, i], moment)
    return result


def means(sums: np.ndarray) -> np.ndarray:
    """Sums of (m v, m), shape (R, n, k + 1), as means of v; 0 where there is no mass."""
    total = sums[..., -1:]
    return sums[..., :-1] / np.where(total == 0, 1.0, total)


def times(x: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """M x for every token, (R, n, d) -> (R, n, k); a number M is that multiple of x."""
    return x @ matrix.T if matrix.ndim else matrix * x
