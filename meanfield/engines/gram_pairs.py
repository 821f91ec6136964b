"""Kernels and their derivatives summed over pairs of tokens, by blocks of their Gram matrix.

Systems, changes along tangents and sums are arrays of columns, as in `pairs`. Each block of inner
products is used for the tokens of its rows and for those of its columns. With

    D_i = sum_{j != i} m_j w_ij u_j - u_i sum_{j != i} m_j w_ij

a token does not act on itself. Tokens at the same point leave a rounding error of 1e-16 of their
weights, in which smaller forces are lost.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import prod

import numpy as np

from ..lowlevel.compilation import IN_ANY_ORDER, njit
from ..lowlevel.simd import exponential
from .contract import ThreadPool
from .pairs import PAIR_BLOCK, block_pair, rounds_of

TRANSPOSED_TILE = 16  # rows and columns that are transposed at a time

Weigh = Callable[[np.ndarray, int, int, np.ndarray], object]


class Workspace:
    """Pool of reusable float arrays; each is lent to one user at a time, in any thread.

    The system clears new memory page by page when it is first touched. For arrays of a megabyte,
    freed and allocated again at every evaluation, this can take as long as a product of matrices.
    """

    def __init__(self) -> None:
        self._free: dict[tuple[int, ...], list[np.ndarray]] = {}

    @contextmanager
    def lent(self, *shapes: tuple[int, ...]) -> Iterator[list[np.ndarray]]:
        """Context that yields arrays of these shapes, not initialised, and takes them back."""
        arrays = []
        for shape in shapes:
            try:
                arrays.append(self._free.setdefault(shape, []).pop())
            except IndexError:
                arrays.append(np.empty(shape))
        try:
            yield arrays
        finally:
            for array in arrays:
                self._free[array.shape].append(array)


def gram_sums(
    columns: np.ndarray,
    changes: np.ndarray,
    weigh: Weigh,
    self_weight: float,
    sums: np.ndarray,
    threads: ThreadPool,
    workspace: Workspace,
    tangential_pulls: Callable[[np.ndarray], np.ndarray] | None = None,
) -> None:
    """Fill the sums of one system and their changes, `sums` (1 + p, rows + 1, n).

    Parameters
    ----------
    columns : (rows + 1, n); changes : (p, rows + 1, n)
    weigh : callable
        weigh(block, first, second, denominators) turns inner products and their changes, a block
        (1 + p, rows, columns), into weights and their changes, in place: see `exponential_weights`.
    self_weight : float
        The weight w_ii of the token i in its denominator.
    tangential_pulls : callable, optional
        Returns the parts of the pulls (rows, n) orthogonal to u, from denominators (n,), where
        velocities are known. A tangent then takes seven matrix products for a pair of blocks
        instead of nine. The parts along u are <u_i, D_i> = sum_j m_j w_ij (t_ij - 1).
    """
    u, n, count = columns[:-1], columns.shape[1], len(changes)
    du, first, d = changes[:, :-1], 0 if tangential_pulls is None else 1, len(u)
    with workspace.lent((1 + count, *columns.shape), (count, 3 * d, n)) as (summands, both):
        m, dm = columns[-1], changes[:, -1]
        np.multiply(columns, m, out=summands[0])
        summands[0, -1] = m
        if count:
            np.multiply(changes, m, out=summands[1:])
            summands[1:] += dm[:, None] * columns
            summands[1:, -1] = dm
        pulling, stacked = summands[0], summands[first:].reshape(-1, n)
        both[:, :d], both[:, d : 2 * d], both[:, 2 * d :] = du, u, du
        left, right = both[:, : 2 * d], both[:, d:]
        blocks, summed, denominators = -(-n // PAIR_BLOCK), sums[first:], np.zeros((2, n))
        scratches = ((1 + count) * PAIR_BLOCK**2,), (len(stacked) * PAIR_BLOCK,)  # for each thread

        def block(number: int) -> slice:
            return slice(number * PAIR_BLOCK, min(n, (number + 1) * PAIR_BLOCK))

        def shaped(scratch: np.ndarray, rows: slice, others: slice) -> np.ndarray:
            """Scratch memory as an array (1 + p, rows, others) for a block of pairs."""
            shape = 1 + count, rows.stop - rows.start, others.stop - others.start
            return scratch[: prod(shape)].reshape(shape)

        def add(target: slice, others: slice, weights: np.ndarray, scratch: np.ndarray) -> None:
            """Add the terms of the tokens `others` to the sums of the tokens `target`.

            `weights` are (1 + p, others, target).
            """
            w, *weight_changes = weights
            width = target.stop - target.start
            product = scratch[: len(stacked) * width].reshape(len(stacked), width)
            np.matmul(stacked[:, others], w, out=product)
            summed[..., target] += product.reshape(-1, d + 1, width)
            for a, dw in enumerate(weight_changes):
                sums[1 + a][:, target] += np.matmul(pulling[:, others], dw, out=product[: d + 1])

        def within(begin: int, end: int) -> None:
            """Add the pairs within each of some blocks of tokens: symmetric matrices."""
            with workspace.lent(*scratches) as (scratch, room):
                for number in range(begin, end):
                    inside = block(number)
                    weights = shaped(scratch, inside, inside)
                    copy = u[:, inside].copy()  # numpy is slower for A.T @ A of one array
                    np.matmul(u[:, inside].T, copy, out=weights[0])
                    for a in range(count):
                        _add_transposed(np.matmul(du[a][:, inside].T, copy, out=weights[1 + a]))
                    weigh(weights, inside.start, inside.start, denominators)
                    add(inside, inside, weights, room)

        def between(round_index: int, begin: int, end: int) -> None:
            """Add the pairs of tokens of two different blocks, for some pairs of a round."""
            with workspace.lent(*scratches) as (scratch, room):
                for number in range(begin, end):
                    row_block, column_block = block_pair(blocks, round_index, number)
                    if row_block >= 0:
                        rows, others = block(row_block), block(column_block)
                        weights = shaped(scratch, rows, others)
                        np.matmul(u[:, rows].T, u[:, others], out=weights[0])
                        for a in range(count):
                            products = left[a][:, rows].T, right[a][:, others]
                            np.matmul(*products, out=weights[1 + a])
                        weigh(weights, rows.start, others.start, denominators)
                        add(rows, others, weights.swapaxes(1, 2), room)
                        add(others, rows, weights, room)

        sums[:] = 0.0
        threads.share(within, blocks)
        for round_index in range(rounds_of(blocks)):
            threads.share(partial(between, round_index), (blocks + 1) // 2)
        if tangential_pulls is not None:
            sums[0, -1] = denominators[0]
        # sums of w_ij u_j become sums of w_ij (u_j - u_i); denominators include the tokens i = j
        sums[first:, :-1] -= u * sums[first:, -1:]
        if count:
            sums[1:, :-1] -= du * sums[0, -1]
            sums[1:, -1] += self_weight * dm
        sums[0, -1] += self_weight * m
        if tangential_pulls is not None:
            sums[0, :-1] = tangential_pulls(sums[0, -1]) + u * denominators[1]


@njit(cache=True, nogil=True)
def _add_transposed(matrix: np.ndarray) -> None:
    """Replace a square matrix A by A + A^T, in place, by tiles that fit into the cache."""
    size = len(matrix)
    for first in range(0, size, TRANSPOSED_TILE):
        for second in range(first, size, TRANSPOSED_TILE):
            for i in range(first, min(first + TRANSPOSED_TILE, size)):
                for j in range(max(second, i), min(second + TRANSPOSED_TILE, size)):
                    total = matrix[i, j] + matrix[j, i]
                    matrix[i, j], matrix[j, i] = total, total


@njit(cache=True, nogil=True, fastmath=IN_ANY_ORDER)
def exponential_weights(
    beta: float,
    rates: np.ndarray,
    masses: np.ndarray,
    blocks: np.ndarray,
    first: int,
    second: int,
    denominators: np.ndarray,
) -> None:
    """Turn inner products t and their changes into weights exp(beta t - |beta|) and changes.

    `blocks` (1 + p, rows, columns) is changed in place; the factor exp(|beta|) counts as constant.
    `first` and `second` are the indices of the first tokens of rows and columns; if they are equal,
    the weights w_ii become 0. sum_j m_j w_ij and sum_j m_j w_ij (t_ij - 1) are added to the two
    rows of `denominators` (2, n).
    """
    size, (rows, width) = abs(beta), blocks.shape[1:]
    m, inward_pulls = masses[second : second + width], np.empty(width)
    columns = denominators[:, second : second + width]
    for i in range(rows):
        weights, mass, denominator, inwards = blocks[0, i], masses[first + i], 0.0, 0.0
        for a in range(rates.size):
            change, rate = blocks[1 + a, i], rates[a]
            for j in range(width):
                change[j] = beta * change[j] + rate * (weights[j] - 1)
        for j in range(width):
            exponent, inward_pulls[j] = beta * weights[j] - size, weights[j] - 1
            weights[j] = exponential(0.0 if exponent > 0.0 else exponent)
            inward_pulls[j] *= weights[j]
        if first == second:
            weights[i], inward_pulls[i] = 0.0, 0.0
        for a in range(rates.size):
            change = blocks[1 + a, i]
            for j in range(width):
                change[j] *= weights[j]
        for j in range(width):
            denominator += weights[j] * m[j]
            inwards += inward_pulls[j] * m[j]
        if first != second:
            for j in range(width):
                columns[0, j] += weights[j] * mass
                columns[1, j] += inward_pulls[j] * mass
        denominators[0, first + i] += denominator
        denominators[1, first + i] += inwards


# Weights without changes -----------------------------------------------------------------------


def weights_of(function: Callable[[np.ndarray], np.ndarray]) -> Weigh:
    """Argument `weigh` of `gram_sums` for a function of inner products, without tangents."""

    def weigh(blocks: np.ndarray, first: int, second: int, _denominators: np.ndarray) -> None:
        blocks[0] = function(within_one(blocks[0]))
        if first == second:
            np.fill_diagonal(blocks[0], 0.0)

    return weigh


def within_one(t: np.ndarray) -> np.ndarray:
    """Set inner products that exceed +-1 by rounding to +-1, in place."""
    return np.minimum(np.maximum(t, -1.0, out=t), 1.0, out=t)


@njit(cache=True, nogil=True, fastmath={"contract"})
def exponentials(
    beta: float, blocks: np.ndarray, first: int, second: int, _denominators: np.ndarray
) -> None:
    """Function for `weigh` of `gram_sums`: weights exp(beta t - |beta|), without tangents."""
    size, numbers = abs(beta), blocks.ravel()
    for j in range(numbers.size):
        exponent = beta * numbers[j] - size
        numbers[j] = exponential(0.0 if exponent > 0.0 else exponent)
    if first == second:
        for i in range(blocks.shape[1]):
            blocks[0, i, i] = 0.0
