"""What a point of a normal law attends to: E[y | x] = m + R z for x = a + L z, z standard normal.

The attention weights make x and y a pair of which both have the law N(a, L L^T), before weighing.
With A = beta K^T Q, for each kind of weights:

    Softmax    m = a + S A a                                R = S A L,        S = L L^T
    L2         m = a + 2 beta L P L^T K^T (Q - K) a         R = 2 beta L P L^T K^T Q L,
                                                            P = (1 + 2 beta L^T K^T K L)^-1
    Sinkhorn   m = a                                        R = L W D U^T,    L^T A^T L = U s W^T,
                                                            D = 2 s / (1 + (1 + 4 s^2)^(1/2))
    Linear     m = (S + a a^T) A a                          R = (S + a a^T) A L

None of them divides by L, so that the covariance may be singular. The entropic plan of Sinkhorn's
weights couples the coordinates of L^T A^T L in pairs of correlation D, where s = D / (1 - D^2).
"""

from collections.abc import Callable

import numpy as np

from ..drifts.weights import L2, Linear, Sinkhorn, Softmax, Weights

__all__ = ["AFFINE", "expected", "full", "length", "lengths", "most_exponential"]

Affine = tuple[np.ndarray, np.ndarray]


def full(matrix: np.ndarray, dimension: int) -> np.ndarray:
    """A matrix, or the multiple of the identity that a number stands for."""
    return matrix if matrix.ndim else matrix * np.eye(dimension)


def length(array: np.ndarray) -> float:
    """(sum of squares)^(1/2) of numbers whose squares may overflow or vanish."""
    largest = float(np.abs(array).max(initial=0.0))
    inside = 0 < largest < np.inf
    return float(largest * np.linalg.norm(array / largest)) if inside else largest


def lengths(array: np.ndarray) -> np.ndarray:
    """That of every column."""
    largest = np.abs(array).max(axis=0, initial=0.0)
    scale = np.where((largest > 0) & (largest < np.inf), largest, 1.0)
    return scale * np.linalg.norm(array / scale, axis=0)


def expected(weights: Weights, a, L, Q, K, beta) -> Affine:
    """m (d,) and R (d, d) for one head; nan where the weights have no integral (L2, beta < 0).

    Raises
    ------
    KeyError
        For weights under which E[y | x] is not affine: those that are not in AFFINE.
    """
    return AFFINE[type(weights)](a, L, Q, K, beta)


def _softmax(a, L, Q, K, beta) -> Affine:
    pulled = L @ (beta * (K @ L).T @ Q)  # S A
    return a + pulled @ a, pulled @ L


def _l2(a, L, Q, K, beta) -> Affine:
    keys = K @ L
    if not np.isfinite(keys).all():
        return np.full_like(a, np.nan), np.full_like(L, np.nan)
    U, s, Wt = np.linalg.svd(keys, full_matrices=False)  # P is not inverted where S is large
    shares = np.zeros_like(s)
    seen = (s > 0) & (beta != 0)
    inverse = 0.5 / s[seen] / beta + s[seen]  # (1 + 2 beta s^2) / (2 beta s); s^2 may overflow
    shares[seen] = 1 / np.where(inverse * beta > 0, inverse, np.nan)
    pulled = L @ (Wt.T * shares) @ U.T
    return a + pulled @ ((Q - K) @ a), pulled @ (Q @ L)


def _sinkhorn(a, L, Q, K, beta) -> Affine:
    products = beta * (Q @ L).T @ (K @ L)
    if not np.isfinite(products).all():
        return np.full_like(a, np.nan), np.full_like(L, np.nan)
    U, s, Wt = np.linalg.svd(products)
    return a, L @ (Wt.T * (2 * s / (1 + np.hypot(1.0, 2 * s)))) @ U.T


def _linear(a, L, Q, K, beta) -> Affine:
    pulled = beta * (L @ (K @ L).T + np.outer(a, K @ a)) @ Q
    return pulled @ a, pulled @ L


def most_exponential(weights: Weights, V, Q, K) -> float:
    """The rate d/dt log of a variance, or of |a|^2, that one head without a blow-up may reach.

    Sinkhorn has D <= 1, and L2 weights s L W = K^+ U s^2 where K has no kernel: 2 |V| and
    2 |V| |K^+| |Q| for the root. Within the kernel of K, and under other weights, growth has no
    bound: 0, for any rate may be that of a blow-up.
    """
    if isinstance(weights, Sinkhorn):
        return 2 * float(np.linalg.norm(V, 2))
    if not isinstance(weights, L2):
        return 0.0
    s = np.linalg.svd(K, compute_uv=False)
    least = s[s > len(K.T) * np.finfo(float).eps * s[0]].min(initial=np.inf)
    return 2 * float(np.linalg.norm(V, 2) * (1 + (np.linalg.norm(Q, 2) + s[0]) / least))


AFFINE: dict[type[Weights], Callable[..., Affine]] = {
    Softmax: _softmax,
    L2: _l2,
    Sinkhorn: _sinkhorn,
    Linear: _linear,
}
