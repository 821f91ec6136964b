"""Sinkhorn's iteration: the w(y) for which attention weights have both marginals equal to one."""

import numpy as np

from ..core.errors import MeanfieldError
from ..models.weights import Sinkhorn
from .weighted_sums import UNSEEN, Pairs, exponential_sums

__all__ = ["balance"]

DENSE = 512  # tokens up to which n x n weights are held, for Newton's method
BETWEEN = 10  # iterations before Newton's method is tried (again)


def balance(pairs: Pairs, masses: np.ndarray, weights: Sinkhorn) -> np.ndarray:
    """log w(x_j), shape (R, n), such that softmax of l_ij + log w_j has columns of sum one too.

        sum_i m_i k_ij = 1,    k_ij = e^(l_ij) w_j / sum_j m_j e^(l_ij) w_j

    to `weights.tolerance`, for the x_j that have mass. Each iteration costs two sums over all
    pairs, and each replica has iterations of its own until it is balanced. Where the kernel is
    narrow the iteration converges slowly; for n <= 512 Newton's method, tried every tenth time,
    ends it. Raises MeanfieldError for a replica that is not balanced after
    `weights.most_iterations`.
    """
    unseen = np.where(masses > 0, 0.0, UNSEEN)
    queries, keys, each = pairs.queries, pairs.keys, pairs.each
    potential = np.zeros_like(masses)
    left, error = np.arange(len(masses)), np.empty(0)
    for iteration in range(weights.most_iterations):
        q, k, m, old = queries[left], keys[left], masses[left], potential[left]
        rows = _log_sums(Pairs(q, k, old + unseen[left], each=each), m)
        new = -_log_sums(Pairs(k, q, unseen[left] - rows, each=each), m)
        errors = np.where(m > 0, np.abs(np.expm1(old - new)), 0.0)  # of the columns' sums
        error = errors.max(axis=1)
        unbalanced = ~(error <= weights.tolerance)
        left = left[unbalanced]
        if left.size == 0:
            return potential
        potential[left] = new[unbalanced]
        if masses.shape[1] <= DENSE and iteration % BETWEEN == BETWEEN - 1:
            for r in left:
                seen = masses[r] > 0
                dense = queries[r, seen] @ keys[r, seen].T
                potential[r, seen] = _newton(dense, potential[r, seen], masses[r, seen])
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


def _newton(logits: np.ndarray, potential: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Newton's method for the potential of one replica, for as long as it halves the error.

    The columns' sums c_j(potential) = 1 have the Jacobian c_j delta_jl - m_l sum_i m_i k_ij k_il;
    to which m_l is added, since a constant in the potential has no effect.
    """
    best, error = potential, np.inf
    while True:
        k = logits + potential
        k = np.exp(k - k.max(axis=1, keepdims=True))
        k /= (k @ masses)[:, None]
        excess = masses @ k - 1
        size = np.abs(excess).max()
        if not size < error / 2:
            return best
        best, error = potential, size
        jacobian = np.diag(excess + 1) + masses - (k.T * masses) @ (k * masses)
        try:
            potential = potential - np.linalg.solve(jacobian, excess)
        except np.linalg.LinAlgError:
            return best
