"""Lengths of many short vectors."""

import numpy as np
from numba import njit

__all__ = ["lengths"]


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _length(vector):
    square = 0.0
    for c in range(vector.size):
        square += vector[c] * vector[c]
    return np.sqrt(square)


@njit(cache=True, nogil=True)
def lengths(x):
    """|x| of vectors (R, n, d), as (R, n)."""
    result = np.empty(x.shape[:2])
    for r in range(result.shape[0]):
        for i in range(result.shape[1]):
            result[r, i] = _length(x[r, i])
    return result
