"""Sinkhorn's iteration: the w(y) for which attention weights have both marginals equal to one."""

from collections.abc import Callable

import numpy as np

from ..core.errors import MeanfieldError

__all__ = ["log_scaling"]

DENSE = 512  # tokens up to which n x n weights are held, for Newton's method
BETWEEN = 10  # iterations before Newton's method is tried (again)


def log_scaling(
    queries: np.ndarray,
    keys: np.ndarray,
    masses: np.ndarray,
    log_sums: Callable[..., np.ndarray],
    tolerance: float,
    most_iterations: int,
) -> np.ndarray:
    """log w(x_j), shape (R, n), such that softmax of l_ij + log w_j has columns of sum one too.

        sum_i m_i k_ij = 1,    k_ij = e^(l_ij) w_j / sum_j m_j e^(l_ij) w_j,    l_ij = <q_i, k_j>

    Each iteration costs two sums over all pairs, and each replica has iterations of its own until
    its marginals are one. Where the kernel is narrow the iteration converges slowly; for n <= 512
    Newton's method, tried every tenth time, ends it.

    Parameters
    ----------
    queries, keys : ndarray, shape (R, n, k)
    masses : ndarray, shape (R, n)
        Tokens without mass have no marginals.
    log_sums : callable
        log_sums(queries, keys, potential, masses) is log sum_j m_j e^(l_ij + potential_j), (R, n),
        over the tokens that have mass.
    tolerance : float
        Largest error of a marginal.
    most_iterations : int

    Raises
    ------
    MeanfieldError
        If a replica misses the tolerance after `most_iterations`.
    """
    potential = np.zeros_like(masses)
    left, error = np.arange(len(masses)), np.empty(0)
    for iteration in range(most_iterations):
        q, k, m, old = queries[left], keys[left], masses[left], potential[left]
        new = -log_sums(k, q, -log_sums(q, k, old, m), m)
        errors = np.where(m > 0, np.abs(np.expm1(old - new)), 0.0)  # of the columns' sums
        error = errors.max(axis=1)
        unbalanced = ~(error <= tolerance)
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
        f"Sinkhorn weights are not balanced after {most_iterations} iterations: the error "
        f"of a marginal is {error.max():.2g}, expected {tolerance:.2g}. Raise "
        "most_iterations if it is large (narrow kernels need more), or tolerance if it is small "
        "(about 1e-16 times the range of beta <Qx, Ky> is rounding)."
    )


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
