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

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from ..models.weights import L2, Linear, Sinkhorn, Softmax, Weights

__all__ = ["AFFINE", "Head", "expected", "full", "length", "lengths", "most_exponential"]


def full(matrix: np.ndarray, dimension: int) -> np.ndarray:
    """A matrix, or the multiple of the identity that a number stands for."""
    return matrix if matrix.ndim else matrix * np.eye(dimension)


class Head(NamedTuple):
    """One head of attention, with its values taken back to R^d: V is (output) V, (d, d)."""

    V: np.ndarray
    Q: np.ndarray
    K: np.ndarray
    beta: np.ndarray

    @classmethod
    def of(cls, matrices: Mapping[str, np.ndarray], dimension: int, beta: np.ndarray) -> "Head":
        """Of arrays as `drifts.heads` gives them, where numbers are multiples of the identity."""
        every = {name: full(matrix, dimension) for name, matrix in matrices.items()}
        V = every["output"] @ every["V"] if "output" in every else every["V"]
        return cls(V, every["Q"], every["K"], beta)


def length(array: np.ndarray) -> float:
    """(sum of squares)^(1/2) of numbers whose squares may overflow or vanish."""
    largest = float(np.abs(array).max(initial=0.0))
    inside = 0 < largest < np.inf
    if not inside:
        return largest
    shares = (array / largest).ravel()
    return float(largest * np.sqrt(shares @ shares))


def lengths(array: np.ndarray) -> np.ndarray:
    """That of every column."""
    largest = np.abs(array).max(axis=0, initial=0.0)
    scale = np.where((largest > 0) & (largest < np.inf), largest, 1.0)
    shares = array / scale
    return scale * np.sqrt((shares * shares).sum(axis=0))


def expected(weights: Weights, y: np.ndarray, head: Head) -> np.ndarray:
    """R and m, (..., d, d + 1) like `y`, the root and the mean, under one head without its values.

    nan, for all of a stack, where the weights have no integral (L2, beta < 0) or numbers overflow.

    Raises
    ------
    KeyError
        For weights under which E[y | x] is not affine: those that are not in AFFINE.
    """
    return AFFINE[type(weights)](y, head)


def _softmax(y: np.ndarray, head: Head) -> np.ndarray:
    L = y[..., :-1]
    seen = L @ (head.beta * (head.K @ L).mT @ head.Q) @ y  # S A y
    seen[..., -1] += y[..., -1]
    return seen


def _l2(y: np.ndarray, head: Head) -> np.ndarray:
    L, keys, beta = y[..., :-1], head.K @ y, head.beta
    if not np.isfinite(keys).all():
        return np.full_like(y, np.nan)
    U, s, Wt = np.linalg.svd(keys[..., :-1], full_matrices=False)  # large S: P is not inverted
    shares = np.zeros_like(s)
    held = (s > 0) & (beta != 0)
    inverse = 0.5 / s[held] / beta + s[held]  # (1 + 2 beta s^2) / (2 beta s); s^2 may overflow
    shares[held] = 1 / np.where(inverse * beta > 0, inverse, np.nan)
    moved = head.Q @ y
    moved[..., -1] -= keys[..., -1]
    seen = L @ (Wt.mT * shares[..., None, :]) @ U.mT @ moved
    seen[..., -1] += y[..., -1]
    return seen


def _sinkhorn(y: np.ndarray, head: Head) -> np.ndarray:
    L = y[..., :-1]
    products = head.beta * (head.Q @ L).mT @ (head.K @ L)
    if not np.isfinite(products).all():
        return np.full_like(y, np.nan)
    U, s, Wt = np.linalg.svd(products)
    correlations = 2 * s / (1 + np.hypot(1.0, 2 * s))
    seen = y.copy()
    seen[..., :-1] = L @ (Wt.mT * correlations[..., None, :]) @ U.mT
    return seen


def _linear(y: np.ndarray, head: Head) -> np.ndarray:
    return head.beta * y @ (head.K @ y).mT @ head.Q @ y


def most_exponential(weights: Weights, head: Head) -> float:
    """The rate d/dt log of a variance, or of |a|^2, that one head without a blow-up may reach.

    Sinkhorn has D <= 1, and L2 weights s L W = K^+ U s^2 where K has no kernel: 2 |V| and
    2 |V| |K^+| |Q| for the root. Within the kernel of K, and under other weights, growth has no
    bound: 0, for any rate may be that of a blow-up.
    """
    V, Q, K, _ = head
    if isinstance(weights, Sinkhorn):
        return 2 * float(np.linalg.norm(V, 2))
    if not isinstance(weights, L2):
        return 0.0
    s = np.linalg.svd(K, compute_uv=False)
    least = s[s > len(K.T) * np.finfo(float).eps * s[0]].min(initial=np.inf)
    return 2 * float(np.linalg.norm(V, 2) * (1 + (np.linalg.norm(Q, 2) + s[0]) / least))


AFFINE: dict[type[Weights], Callable[[np.ndarray, Head], np.ndarray]] = {
    Softmax: _softmax,
    L2: _l2,
    Sinkhorn: _sinkhorn,
    Linear: _linear,
}
