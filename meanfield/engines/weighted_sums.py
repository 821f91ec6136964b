"""Sums over pairs of tokens, sum_j k(l_ij) u_j with logits l_ij = <q_i, k_j> + b_j, in blocks.

The n x n logits are never held: a block of them is made by a matrix product, turned into weights
in place, and multiplied by the u of its columns. Blocks of rows are independent of each other,
and small n take many replicas at once; how the work is cut depends on n alone, so that a replica
comes out the same, bit for bit, whatever stands beside it and however many threads there are.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

__all__ = ["UNSEEN", "Pairs", "exponential_sums", "hardmax_sums", "sigmoid_sums"]

ENTRIES = 1 << 17  # of a block of logits: 1 MiB, within the cache of a core
COLUMNS = 512
UNSEEN = -1e300  # the bias of a token without mass: finite, so that 0 exp(0) is what it may cost

Each = Callable[..., Iterator]


@dataclass(frozen=True)
class Pairs:
    """Queries and keys of R replicas of n tokens, and which of the pairs count.

    Attributes
    ----------
    queries, keys : ndarray, shape (R, n, k)
        Logits are their inner products, and the bias.
    bias : ndarray, shape (R, n), or None
        Added to the logits of each key.
    causal : bool
        Whether only the pairs j <= i count.
    each : callable
        How to run a function on every block: `map`, or that of a pool of threads.
    """

    queries: np.ndarray
    keys: np.ndarray
    bias: np.ndarray | None = None
    causal: bool = False
    each: Each = map

    def logits(self, chunk: slice, rows: slice) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield (columns, their logits (chunk, rows, columns)); -inf where j > i and causal."""
        n = self.keys.shape[1]
        end = min(rows.stop, n) if self.causal else n
        for start in range(0, end, COLUMNS):
            columns = slice(start, min(start + COLUMNS, end))
            block = self.queries[chunk, rows] @ self.keys[chunk, columns].swapaxes(1, 2)
            if self.bias is not None:
                block += self.bias[chunk, None, columns]
            if self.causal and columns.stop - 1 > rows.start:
                i = np.arange(rows.start, rows.start + block.shape[1])
                later = np.arange(columns.start, columns.stop) > i[:, None]
                np.copyto(block, -np.inf, where=later)
            yield columns, block

    def for_each_block(self, work: Callable[[slice, slice], None]) -> None:
        """Call work(chunk of replicas, rows) for blocks that cover all rows of all replicas."""
        replicas, n = self.queries.shape[:2]
        rows = max(1, min(n, ENTRIES // min(n, COLUMNS)))
        chunk = max(1, ENTRIES // (rows * min(n, COLUMNS))) if rows == n else 1
        blocks = [
            (slice(c, min(c + chunk, replicas)), slice(r, min(r + rows, n)))
            for c in range(0, replicas, chunk)
            for r in range(0, n, rows)
        ]

        def quietly(block):
            with np.errstate(over="ignore", invalid="ignore"):  # results are checked as a whole
                work(*block)

        for _ in self.each(quietly, blocks):
            pass


def exponential_sums(pairs: Pairs, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """sum_j e^(l_ij) u_j = e^(top_i) sums_i, without overflow.

    Parameters
    ----------
    pairs : Pairs
    u : ndarray, shape (R, n, c)

    Returns
    -------
    top : ndarray, shape (R, n, 1)
        The largest logit of each row.
    sums : ndarray, shape (R, n, c)
    """
    shape = pairs.queries.shape[:2]
    top, sums = np.empty((*shape, 1)), np.empty((*shape, u.shape[-1]))

    def work(chunk, rows):
        highest, total = np.array(-np.inf), np.array(0.0)
        for columns, block in pairs.logits(chunk, rows):
            peak = np.maximum(block.max(axis=-1, keepdims=True), highest)
            block -= peak
            np.exp(block, out=block)
            total = block @ u[chunk, columns] + np.exp(highest - peak) * total
            highest = peak
        top[chunk, rows], sums[chunk, rows] = highest, total

    pairs.for_each_block(work)
    return top, sums


def sigmoid_sums(pairs: Pairs, u: np.ndarray) -> np.ndarray:
    """sum_j u_j / (1 + e^(-l_ij)), shape (R, n, c), for u of shape (R, n, c)."""
    from scipy.special import expit

    sums = np.empty((*pairs.queries.shape[:2], u.shape[-1]))

    def work(chunk, rows):
        sums[chunk, rows] = sum(
            expit(block, out=block) @ u[chunk, columns]
            for columns, block in pairs.logits(chunk, rows)
        )

    pairs.for_each_block(work)
    return sums


def hardmax_sums(pairs: Pairs, u: np.ndarray, ties: float) -> np.ndarray:
    """Sum of the u_j, j != i, for which l_ij is within `ties` of its maximum; (R, n, c).

    The logits are made twice: whether a pair is a tie is known when the maximum is.
    """
    sums = np.empty((*pairs.queries.shape[:2], u.shape[-1]))

    def others(chunk, rows):
        for columns, block in pairs.logits(chunk, rows):
            own = np.arange(max(rows.start, columns.start), min(rows.stop, columns.stop))
            block[:, own - rows.start, own - columns.start] = -np.inf
            yield columns, block

    def work(chunk, rows):
        peaks = (block.max(axis=-1, keepdims=True) for _, block in others(chunk, rows))
        threshold = np.maximum.reduce(list(peaks)) - ties
        sums[chunk, rows] = sum(
            (block >= threshold).astype(float) @ u[chunk, columns]
            for columns, block in others(chunk, rows)
        )

    pairs.for_each_block(work)
    return sums
