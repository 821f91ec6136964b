"""Sinkhorn's iteration: the w(y) for which attention weights have both marginals equal to one."""

import numpy as np

from ..drifts.weights import Sinkhorn
from ..errors import MeanfieldError
from .weighted_sums import UNSEEN, Pairs, exponential_sums

__all__ = ["balance"]


def balance(pairs: Pairs, masses: np.ndarray, weights: Sinkhorn) -> np.ndarray:
    """log w(x_j), shape (R, n), such that softmax of l_ij + log w_j has columns of sum one too.

        sum_i m_i k_ij = 1,    k_ij = e^(l_ij) w_j / sum_j m_j e^(l_ij) w_j

    to `weights.tolerance`. Each iteration costs two sums over all pairs, and each replica has
    iterations of its own until it is balanced. Raises MeanfieldError for one that is not after
    `weights.most_iterations`.
    """
    unseen = np.where(masses > 0, 0.0, UNSEEN)
    queries, keys, each = pairs.queries, pairs.keys, pairs.each
    potential = np.zeros_like(masses)
    left, error = np.arange(len(masses)), np.empty(0)
    for _ in range(weights.most_iterations):
        q, k, m, old = queries[left], keys[left], masses[left], potential[left]
        rows = _log_sums(Pairs(q, k, old + unseen[left], each=each), m)
        new = -_log_sums(Pairs(k, q, unseen[left] - rows, each=each), m)
        error = np.abs(np.expm1(old - new)).max(axis=1)  # of the columns' sums under old
        unbalanced = ~(error <= weights.tolerance)
        left = left[unbalanced]
        if left.size == 0:
            return potential
        potential[left] = new[unbalanced]
    raise MeanfieldError(
        f"Sinkhorn weights are not balanced after {weights.most_iterations} iterations: the error "
        f"of a marginal is {error.max():.2g}, expected {weights.tolerance:.2g}. Raise "
        "most_iterations if it is large (narrow kernels need more), or tolerance if it is small "
        "(about 1e-16 times the range of beta <Qx, Ky> is rounding)."
    )


def _log_sums(pairs: Pairs, masses: np.ndarray) -> np.ndarray:
    """log sum_j m_j e^(l_ij), shape (R, n)."""
    top, sums = exponential_sums(pairs, masses[..., None])
    return (top + np.log(sums))[..., 0]
