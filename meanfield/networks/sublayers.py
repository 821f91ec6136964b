"""Attention and functions of rows in blocks, so that a long text needs little memory."""

import math
from collections.abc import Callable

import numpy as np

LOGITS_AT_ONCE = 1 << 20  # logits in memory at a time
ROWS_AT_ONCE = 1024  # tokens whose inner states are in memory at a time


def by_heads(x: np.ndarray, heads: int) -> np.ndarray:
    """Reshape (n, heads * d) to (heads, n, d)."""
    return x.reshape(len(x), heads, -1).swapaxes(0, 1)


def in_rows(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """Apply a function of rows to x (n, d) in blocks of `ROWS_AT_ONCE` rows."""
    if len(x) <= ROWS_AT_ONCE:
        return function(x)
    return np.concatenate(
        [function(x[start : start + ROWS_AT_ONCE]) for start in range(0, len(x), ROWS_AT_ONCE)]
    )


def attend(
    queries: np.ndarray, keys: np.ndarray, values: np.ndarray, *, causal: bool, keep: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Softmax attention by heads (heads, n, d), with logits <q, k>/sqrt(d).

    If there are fewer heads of keys and values than of queries, each is shared by consecutive heads
    of queries. At most 2^20 logits are in memory at a time, or one row of one head if it is longer.

    Returns
    -------
    ndarray, (n, heads * d), and ndarray, (heads, n, n), or None
        The output of attention, and its weights if `keep`.
    """
    heads, n, d = queries.shape
    group = heads // len(keys)
    queries = queries * (1 / math.sqrt(d))
    mixed = np.empty((n, heads, values.shape[-1]), queries.dtype)
    kept = np.zeros((heads, n, n), queries.dtype) if keep else None
    rows = max(1, min(n, LOGITS_AT_ONCE // n))
    together = max(1, LOGITS_AT_ONCE // (rows * n)) if rows == n else 1
    for first in range(0, heads, together):
        some = np.arange(first, min(first + together, heads))
        k, v = keys[some // group], values[some // group]
        for start in range(0, n, rows):
            block = slice(start, min(start + rows, n))
            end = block.stop if causal else n
            weights = queries[some, block] @ k[:, :end].swapaxes(1, 2)
            if causal:
                later = np.arange(end) > np.arange(block.start, block.stop)[:, None]
                np.copyto(weights, -np.inf, where=later)
            weights -= weights.max(axis=-1, keepdims=True)
            np.exp(weights, out=weights)
            weights /= weights.sum(axis=-1, keepdims=True)
            mixed[block, some[0] : some[-1] + 1] = (weights @ v[:, :end]).swapaxes(0, 1)
            if kept is not None:
                kept[some, block, :end] = weights
    return mixed.reshape(n, -1), kept
