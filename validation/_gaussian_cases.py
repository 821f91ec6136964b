"""The attention whose Gaussians Castin et al. draw: seeds, recipes, grids of starts.

Weights are those of their program: with d = 2, softmax attention has A = K^T Q / sqrt(2), each of
two heads has one row of Q, K, V and an axis as output, Sinkhorn weights have eps = 1. Theirs of L2
are exp(-|Qx - Ky|^2) with V / sqrt(2); here V is not divided, which changes the time alone.
"""

from collections.abc import Callable

import numpy as np

import meanfield as mf

__all__ = ["KINDS", "attention", "grid", "growing", "mixed", "rank_one", "to_zero", "two_lines"]

KINDS = ("softmax", "L2", "Sinkhorn", "two heads")
Matrices = tuple[np.ndarray, np.ndarray, np.ndarray]


def attention(kind: str, Q: np.ndarray, K: np.ndarray, V: np.ndarray) -> mf.Attention:
    """One of `KINDS`."""
    if kind == "two heads":
        rows = [np.zeros((2, 1, 2)), np.zeros((2, 1, 2))]
        rows[0][: len(Q), 0], rows[1][: len(K), 0] = Q, K  # a head without a row sees nothing
        return mf.Attention(*rows, V[:, None, :], output=np.eye(2)[:, :, None])
    if kind == "softmax":
        return mf.Attention(Q, K, V, beta=1 / np.sqrt(2))
    return mf.Attention(Q, K, V, weights={"L2": mf.L2(), "Sinkhorn": mf.Sinkhorn()}[kind])


def grid(count: int, half: float) -> list[np.ndarray]:
    """Covariances [[a, c], [c, b]] of trace 1, (a - b, 2c) on a grid in [-half, half]^2."""
    axis = np.linspace(-half, half, count)
    pairs = [(x, y) for x in axis for y in axis if x * x + y * y < 1]
    return [np.array([[1 + x, y], [y, 1 - x]]) / 2 for x, y in pairs]


def to_zero() -> Matrices:
    """Seed 35: Q uniform in [0, 1], K = -Q, V = G G^T."""
    rng = np.random.RandomState(35)
    Q, G = rng.rand(2, 2), rng.randn(2, 2)
    return Q, -Q, G @ G.T


def rank_one() -> Matrices:
    """Seed 36: Q a random unit row, K = -Q, V = 1."""
    q = np.random.RandomState(36).randn(1, 2)
    q /= np.linalg.norm(q)
    return q, -q, np.eye(2)


def two_lines() -> Matrices:
    """Q, K of seed 36, V of seed 32."""
    return *first(36, lambda least, largest: least * largest < 0), normal(32)


def growing() -> Matrices:
    """Q, K of seed 33, V = 1."""
    return *first(33, lambda least, largest: least > 0), np.eye(2)


def mixed() -> Matrices:
    """Q, K of seed 36, V of seed 35 after 56 numbers that are not used."""
    return *first(36, lambda least, largest: least * largest < 0), normal(35, unused=56)


def first(seed: int, wanted: Callable[[float, float], bool]) -> tuple[np.ndarray, np.ndarray]:
    """The first normal Q, K for which the eigenvalues of K^T Q + Q^T K are as wanted."""
    rng = np.random.RandomState(seed)
    while True:
        Q, K = rng.randn(2, 2), rng.randn(2, 2)
        if wanted(*np.linalg.eigvalsh(K.T @ Q + Q.T @ K)):
            return Q, K


def normal(seed: int, unused: int = 0) -> np.ndarray:
    rng = np.random.RandomState(seed)
    rng.randn(unused)
    return rng.randn(2, 2)
