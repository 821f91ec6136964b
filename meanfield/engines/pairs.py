"""Exponential kernels, and their derivatives, summed over pairs of tokens.

With u = x / |x|, the weight of a pair and the two sums over tokens, pull and denominator, are

    w_ij = exp(beta <u_i, u_j> - |beta|) = exp(offset - (beta / 2) |u_i - u_j|^2)
    D_i = sum_j m_j w_ij (u_j - u_i),    L_i = sum_j m_j w_ij

so that P_i D_i = P_i sum_j m_j w_ij u_j. Neither token i nor tokens at the same point contribute to
the pull D_i. Terms from distant tokens are therefore not lost in rounding.

A tangent changes directions by tangential du, masses by dm, and beta at the rate `rate`. With

    dw_ij = w_ij (-beta <u_j - u_i, du_j - du_i> - (1/2) rate |u_j - u_i|^2)

pulls and denominators change by the sums of

    (dm_j w + m_j dw) (u_j - u_i) + m_j w (du_j - du_i),    dm_j w + m_j dw

The common factor exp(|beta|) of all weights, and its change, are left to the caller.

A system is an array `columns` (rows + 1, n): coordinates of u, and masses in the last row. Changes
along p tangents are (p, rows + 1, n), sums and their changes (1 + p, rows + 1, n): pulls, and
denominators in the last row. Up to d = 3 there are three rows of coordinates (the last is 0 on the
circle), and the loops are unrolled.

The functions are compiled for each combination of optional arguments: without tangents if `changes`
and `rates` are None, for three rows of coordinates if `more` is None, and for the sums of only one
token of each pair if `both` is None. numba leaves out the branches that are not taken.
"""

from functools import partial
from typing import Any

import numpy as np

from ..lowlevel.compilation import IN_ANY_ORDER, WITHIN, jitable, njit
from ..lowlevel.simd import exponential
from .contract import ThreadPool

PAIR_BLOCK = 256  # tokens of a block; sums are taken over pairs of blocks
FILL_STRIP = 32  # tokens whose components are transposed at a time
SCRATCH_ROWS = 6  # rows of numbers of the tokens of a block


def columns_of(x: np.ndarray, masses: np.ndarray, into: np.ndarray | None = None) -> np.ndarray:
    """Directions and masses (R, rows + 1, n) of tokens x (R, n, d), rows = max(d, 3).

    Written to `into` where it is given.
    """
    replicas, n, d = x.shape
    columns = np.empty((replicas, max(d, 3) + 1, n)) if into is None else into
    columns[:, d:-1] = 0.0
    _fill(x, masses, columns)
    return columns


@njit(cache=True, nogil=True)
def _fill(x: np.ndarray, masses: np.ndarray, columns: np.ndarray) -> None:
    """Write directions x / |x|, then masses, as rows of columns (R, d + 1, n)."""
    replicas, n, d = x.shape
    lengths = np.empty(FILL_STRIP)
    for r in range(replicas):
        for i in range(n):
            columns[r, -1, i] = masses[r, i]
        for begin in range(0, n, FILL_STRIP):
            end = min(n, begin + FILL_STRIP)
            for i in range(begin, end):
                square = 0.0
                for c in range(d):
                    square += x[r, i, c] * x[r, i, c]
                lengths[i - begin] = np.sqrt(square)
            for c in range(d):
                for i in range(begin, end):
                    columns[r, c, i] = x[r, i, c] / lengths[i - begin]


def more_than_three(columns: np.ndarray) -> bool | None:
    """Argument `more` for columns (..., rows + 1, n): None for three rows of coordinates."""
    return None if columns.shape[-2] == 4 else True


def add_pairs(
    columns: np.ndarray,
    changes: np.ndarray | None,
    beta: float,
    rates: np.ndarray | None,
    sums: np.ndarray,
    threads: ThreadPool,
) -> None:
    """Add all pairs of one system to its sums (1 + p, rows + 1, n), shared among threads.

    Parameters
    ----------
    columns : (rows + 1, n)
    changes : (p, rows + 1, n), or None without tangents
    rates : (p,), or None without tangents
        Changes of beta along the tangents.
    """
    system = columns, changes, beta, rates, sums, more_than_three(columns)
    blocks = -(-columns.shape[1] // PAIR_BLOCK)
    threads.share(partial(pairs_of_blocks, *system, -1), blocks)
    for turn in range(rounds_of(blocks)):
        threads.share(partial(pairs_of_blocks, *system, turn), (blocks + 1) // 2)


# Blocks of pairs -------------------------------------------------------------------------------


@njit(cache=True, nogil=True, announced="sums over pairs of tokens, about 2 s")
def sums_of(
    columns: np.ndarray,
    beta: np.ndarray,
    sums: np.ndarray,
    more: bool | None,
    first: int,
    last: int,
) -> None:
    """Add the sums over all pairs of the systems first, ..., last - 1 to `sums`; beta is (R,)."""
    blocks = -(-columns.shape[2] // PAIR_BLOCK)
    for r in range(first, last):
        for turn in range(-1, rounds_of(blocks)):
            number = blocks if turn < 0 else (blocks + 1) // 2
            _add_blocks(columns[r], None, beta[r], None, sums[r], more, turn, 0, number)


@njit(cache=True, nogil=True)
def pairs_of_blocks(
    columns: np.ndarray, changes: np.ndarray | None, beta: float, rates: Any, sums: np.ndarray,
    more: bool | None, turn: int, first: int, last: int,
) -> None:  # fmt: skip
    """Add the pairs within a block, or of tokens of two different blocks.

    turn = -1 stands for the blocks first, ..., last - 1 of a system themselves, turn >= 0 for the
    number of a round, whose pairs of blocks first, ..., last - 1 are added.
    """
    _add_blocks(columns, changes, beta, rates, sums, more, turn, first, last)


@njit(**WITHIN)
def _add_blocks(
    columns: np.ndarray, changes: np.ndarray | None, beta: float, rates: Any, sums: np.ndarray,
    more: bool | None, turn: int, first: int, last: int,
) -> None:  # fmt: skip
    """The sums of `pairs_of_blocks`, as a part of each caller: others would round differently."""
    n, scratch, offset = columns.shape[1], np.empty((SCRATCH_ROWS, PAIR_BLOCK)), min(0.0, 2 * beta)
    for number in range(first, last):
        block, other_block = number, number
        if turn >= 0:
            block, other_block = block_pair(-(-n // PAIR_BLOCK), turn, number)
        if block >= 0:
            rows = block * PAIR_BLOCK, min(n, (block + 1) * PAIR_BLOCK)
            begin, end = other_block * PAIR_BLOCK, min(n, (other_block + 1) * PAIR_BLOCK)
            if turn < 0:
                _add(
                    columns, changes, beta, rates, offset, rows, begin, end, sums, 0, None, more,
                    scratch,
                )  # fmt: skip
            else:
                _add(
                    columns, changes, beta, rates, offset, rows, begin, end, sums, 0, True, more,
                    scratch,
                )  # fmt: skip


@njit(cache=True, nogil=True)
def earlier_sums(
    columns: np.ndarray, beta: float, sums: np.ndarray, more: bool | None, first: int, last: int
) -> None:
    """Add the causal sums over tokens j <= i for the blocks first, ..., last - 1; beta is a number.

    Blocks are numbered through all systems. Later blocks take longer, so the numbers within a
    system alternate between its two ends: equal shares of the numbers take equal times.
    """
    n, scratch, offset = columns.shape[2], np.empty((SCRATCH_ROWS, PAIR_BLOCK)), min(0.0, 2 * beta)
    blocks = -(-n // PAIR_BLOCK)
    for task in range(first, last):
        r, number = task // blocks, task % blocks
        block = number // 2 if number % 2 == 0 else blocks - 1 - number // 2
        for other in range(block + 1):
            begin = other * PAIR_BLOCK
            for i in range(block * PAIR_BLOCK, min(n, (block + 1) * PAIR_BLOCK)):
                rows, end = (i, i + 1), min(begin + PAIR_BLOCK, i + 1)
                _add(
                    columns[r], None, beta, None, offset, rows, begin, end, sums[r], 0, None, more,
                    scratch,
                )  # fmt: skip


@njit(cache=True, nogil=True)
def single_sums(
    columns: np.ndarray, changes: np.ndarray | None, beta: float, rates: Any, tokens: np.ndarray,
    sums: np.ndarray, first: int, last: int,
) -> None:  # fmt: skip
    """Add the sums (1 + p, rows + 1, k) of k tokens, divided by the largest weight of each.

    `tokens` (k,) are their indices; those at positions first, ..., last - 1 are summed.
    Denominators are at least the mass of one token, and do not underflow.
    """
    n, scratch = columns.shape[1], np.empty((SCRATCH_ROWS, PAIR_BLOCK))
    for k in range(first, last):
        largest, i = -np.inf, tokens[k]
        for begin in range(0, n, PAIR_BLOCK):
            end = min(n, begin + PAIR_BLOCK)
            _squares(columns, i, begin, end, scratch[0])
            for j in range(end - begin):
                if columns[-1, begin + j] > 0:
                    largest = max(largest, -0.5 * beta * scratch[0, j])
        for begin in range(0, n, PAIR_BLOCK):
            end = min(n, begin + PAIR_BLOCK)
            _add_of_any(
                columns, changes, beta, rates, -largest, (i, i + 1), begin, end, sums, i - k, None,
                scratch,
            )  # fmt: skip


# Pairs of one token ----------------------------------------------------------------------------


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _add(
    columns: np.ndarray, changes: np.ndarray | None, beta: float, rates: Any, offset: float,
    rows: tuple[int, int], begin: int, end: int, sums: np.ndarray, shift: int, both: bool | None,
    more: bool | None, scratch: np.ndarray,
) -> None:  # fmt: skip
    """Add the pairs of tokens i = rows[0], ..., rows[1] - 1 and j = begin, ..., end - 1.

    They are added to column i - shift of `sums`, and to column j too unless `both` is None.
    """
    if more is None:
        _add_of_three(
            columns, changes, beta, rates, offset, rows, begin, end, sums, shift, both, scratch
        )
    else:
        _add_of_any(
            columns, changes, beta, rates, offset, rows, begin, end, sums, shift, both, scratch
        )


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _add_of_three(
    columns: np.ndarray, changes: np.ndarray | None, beta: float, rates: Any, offset: float,
    rows: tuple[int, int], begin: int, end: int, sums: np.ndarray, shift: int, both: bool | None,
    scratch: np.ndarray,
) -> None:  # fmt: skip
    """`_add` with three rows of coordinates."""
    x, y, z = columns[0, begin:end], columns[1, begin:end], columns[2, begin:end]
    masses, kernel, squares = columns[3, begin:end], scratch[0], scratch[1]
    if both is not None:
        back_x, back_y, back_z = sums[0, 0, begin:end], sums[0, 1, begin:end], sums[0, 2, begin:end]
        denominators = sums[0, 3, begin:end]
    for i in range(rows[0], rows[1]):
        k, mass = i - shift, columns[3, i]
        own_x, own_y, own_z = columns[0, i], columns[1, i], columns[2, i]
        dx, dy, dz, denominator = 0.0, 0.0, 0.0, 0.0
        for j in range(x.size):
            to_x, to_y, to_z = x[j] - own_x, y[j] - own_y, z[j] - own_z
            square = to_x * to_x + to_y * to_y + to_z * to_z
            w = exponential(offset - 0.5 * beta * square)
            if changes is not None:
                kernel[j], squares[j] = w, square
            weight = w * masses[j]
            dx, dy, dz = dx + weight * to_x, dy + weight * to_y, dz + weight * to_z
            denominator += weight
            if both is not None:
                back = w * mass
                back_x[j] -= back * to_x
                back_y[j] -= back * to_y
                back_z[j] -= back * to_z
                denominators[j] += back
        sums[0, 0, k] += dx
        sums[0, 1, k] += dy
        sums[0, 2, k] += dz
        sums[0, 3, k] += denominator
        if changes is not None:
            for a in range(changes.shape[0]):
                by_x, by_y, by_z = (
                    changes[a, 0, begin:end],
                    changes[a, 1, begin:end],
                    changes[a, 2, begin:end],
                )
                at_x, at_y, at_z = changes[a, 0, i], changes[a, 1, i], changes[a, 2, i]
                by_masses, by_mass, half = (
                    changes[a, 3, begin:end],
                    changes[a, 3, i],
                    0.5 * rates[a],
                )
                if both is not None:
                    moved_x, moved_y, moved_z = (
                        sums[1 + a, 0, begin:end],
                        sums[1 + a, 1, begin:end],
                        sums[1 + a, 2, begin:end],
                    )
                    by_denominators = sums[1 + a, 3, begin:end]
                dx, dy, dz, denominator = 0.0, 0.0, 0.0, 0.0
                for j in range(x.size):
                    to_x, to_y, to_z = x[j] - own_x, y[j] - own_y, z[j] - own_z
                    move_x, move_y, move_z = by_x[j] - at_x, by_y[j] - at_y, by_z[j] - at_z
                    along = half * squares[j] + beta * (
                        to_x * move_x + to_y * move_y + to_z * move_z
                    )
                    weight = kernel[j] * masses[j]
                    change = kernel[j] * by_masses[j] - weight * along
                    dx += change * to_x + weight * move_x
                    dy += change * to_y + weight * move_y
                    dz += change * to_z + weight * move_z
                    denominator += change
                    if both is not None:
                        back = kernel[j] * mass
                        change = kernel[j] * by_mass - back * along
                        moved_x[j] -= change * to_x + back * move_x
                        moved_y[j] -= change * to_y + back * move_y
                        moved_z[j] -= change * to_z + back * move_z
                        by_denominators[j] += change
                sums[1 + a, 0, k] += dx
                sums[1 + a, 1, k] += dy
                sums[1 + a, 2, k] += dz
                sums[1 + a, 3, k] += denominator


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _squares(columns: np.ndarray, i: int, begin: int, end: int, squares: np.ndarray) -> None:
    """Fill `squares` with |u_i - u_j|^2 for j = begin, ..., end - 1."""
    for j in range(end - begin):
        squares[j] = 0.0
    for c in range(columns.shape[0] - 1):
        row, coordinate = columns[c, begin:end], columns[c, i]
        for j in range(row.size):
            squares[j] += (row[j] - coordinate) * (row[j] - coordinate)


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _add_of_any(
    columns: np.ndarray, changes: np.ndarray | None, beta: float, rates: Any, offset: float,
    rows: tuple[int, int], begin: int, end: int, sums: np.ndarray, shift: int, both: bool | None,
    scratch: np.ndarray,
) -> None:  # fmt: skip
    """`_add` with any number of rows of coordinates."""
    masses, d = columns[-1, begin:end], columns.shape[0] - 1
    squares = kernel = weights = scratch[0]  # each overwrites the one before, unless needed later
    if both is not None:
        denominators, weights = sums[0, -1, begin:end], scratch[1]
    if changes is not None:
        kernel, weights = scratch[2], scratch[1]
    for i in range(rows[0], rows[1]):
        k, mass = i - shift, columns[-1, i]
        _squares(columns, i, begin, end, squares)
        denominator = 0.0
        for j in range(masses.size):
            exponent = offset - 0.5 * beta * squares[j]
            w = exponential(0.0 if exponent > 0.0 else exponent)  # > 0 only for tokens without mass
            if both is not None or changes is not None:
                kernel[j] = w
            if both is None or changes is not None:
                weights[j] = w * masses[j]
            denominator += w * masses[j]
            if both is not None:
                denominators[j] += w * mass
        sums[0, -1, k] += denominator
        for c in range(d):
            row, coordinate, pull = columns[c, begin:end], columns[c, i], 0.0
            if both is not None:
                back = sums[0, c, begin:end]
            for j in range(row.size):
                if both is None:
                    pull += (row[j] - coordinate) * weights[j]
                else:
                    step = (row[j] - coordinate) * kernel[j]
                    pull += step * masses[j]
                    back[j] -= step * mass
            sums[0, c, k] += pull
        if changes is not None:
            for a in range(changes.shape[0]):
                along, change, to_other = scratch[3], scratch[4], scratch[5]
                by_masses, by_mass = changes[a, -1, begin:end], changes[a, -1, i]
                half, denominator = 0.5 * rates[a], 0.0
                along[: masses.size] = 0.0
                for c in range(d):
                    row, coordinate = columns[c, begin:end], columns[c, i]
                    by_row, change_of_coordinate = changes[a, c, begin:end], changes[a, c, i]
                    for j in range(row.size):
                        along[j] += (row[j] - coordinate) * (by_row[j] - change_of_coordinate)
                if both is not None:
                    by_denominators = sums[1 + a, -1, begin:end]
                for j in range(masses.size):
                    fall = half * squares[j] + beta * along[j]
                    change[j] = kernel[j] * by_masses[j] - weights[j] * fall
                    denominator += change[j]
                    if both is not None:
                        to_other[j] = kernel[j] * (by_mass - mass * fall)
                        by_denominators[j] += to_other[j]
                sums[1 + a, -1, k] += denominator
                for c in range(d):
                    row, coordinate, pull = columns[c, begin:end], columns[c, i], 0.0
                    by_row, change_of_coordinate = changes[a, c, begin:end], changes[a, c, i]
                    if both is not None:
                        moved = sums[1 + a, c, begin:end]
                    for j in range(row.size):
                        step, move = row[j] - coordinate, by_row[j] - change_of_coordinate
                        pull += step * change[j] + move * weights[j]
                        if both is not None:
                            moved[j] -= step * to_other[j] + move * (kernel[j] * mass)
                    sums[1 + a, c, k] += pull


# Round-robin schedule: every block of tokens is paired once with every other. No block occurs
# twice in a round, so the pairs of a round can be computed at the same time, and the terms of a
# block are added in the order of the rounds, whichever threads compute them.


@jitable
def rounds_of(blocks: int) -> int:
    """The number of rounds for this number of blocks; each has up to blocks/2 pairs."""
    return blocks - 1 + blocks % 2


@jitable
def block_pair(blocks: int, turn: int, number: int) -> tuple[int, int]:
    """The two blocks of pair `number` of round `turn`, or (-1, -1) where a block has no partner.

    Round-robin by the circle method: one position is fixed, the others rotate every round.
    """
    circle = blocks - 1 + blocks % 2
    first, second = (turn + number) % circle, (turn - number) % circle
    if number == 0:
        second = circle
    if max(first, second) >= blocks:
        return -1, -1
    return min(first, second), max(first, second)
