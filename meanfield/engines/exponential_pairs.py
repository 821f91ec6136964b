"""Exponential kernels summed over pairs of tokens, by differences of positions.

With u = x / |x| the weight of a pair, and the two sums over the other tokens, are

    w_ij = exp(beta <u_i, u_j> - |beta|) = exp(offset - (beta / 2) |u_i - u_j|^2)
    D_i = sum_j m_j w_ij (u_j - u_i),    L_i = sum_j m_j w_ij      (pull and level)

so that P_i D_i = P_i sum_j m_j w_ij u_j. Neither a token nor others at its place contribute to its
pull, whose terms from distant tokens are therefore not lost in rounding.

A system is an array of columns (rows + 1, n): the coordinates of u, and the masses. Its sums are
laid out likewise, D and L. Up to d = 3 there are three rows of coordinates, the last 0 on the
circle, and the loops are unrolled.
"""

import numpy as np

from ..lowlevel.compilation import IN_ANY_ORDER, WITHIN, jitable, njit
from ..lowlevel.simd import exponential

BLOCK = 256
STRIP = 32  # tokens whose components are transposed at a time


def columns_of(x: np.ndarray, masses: np.ndarray, into: np.ndarray | None = None) -> np.ndarray:
    """The columns (R, rows + 1, n) of tokens x (R, n, d)."""
    replicas, n, d = x.shape
    columns = np.empty((replicas, max(d, 3) + 1, n)) if into is None else into
    columns[:, d:-1] = 0.0
    _fill(x, masses, columns)
    return columns


@njit(cache=True, nogil=True, error_model="numpy")
def _fill(x, masses, columns):
    replicas, n, d = x.shape
    lengths = np.empty(STRIP)
    for r in range(replicas):
        for i in range(n):
            columns[r, -1, i] = masses[r, i]
        for begin in range(0, n, STRIP):
            end = min(n, begin + STRIP)
            for i in range(begin, end):
                square = 0.0
                for c in range(d):
                    square += x[r, i, c] * x[r, i, c]
                lengths[i - begin] = np.sqrt(square)
            for c in range(d):
                for i in range(begin, end):
                    columns[r, c, i] = x[r, i, c] / lengths[i - begin]


# The loops that follow are compiled for three rows of coordinates, where `more` is None, or for any
# number of them, where it is True: numba leaves out the branch that is not taken.


def more_than_three(columns: np.ndarray) -> bool | None:
    """`more` for columns (..., rows + 1, n)."""
    return None if columns.shape[-2] == 4 else True


@njit(cache=True, nogil=True, announced="sums over pairs of tokens, about 2 s")
def sums_of(columns, beta, sums, more, first, last):
    """Add the sums of whole systems, number first, ..., last - 1, to `sums`; beta (R,)."""
    blocks = -(-columns.shape[2] // BLOCK)
    for r in range(first, last):
        _add_inside(columns[r], beta[r], sums[r], more, 0, blocks)
        for turn in range(rounds_of(blocks)):
            _add_between(columns[r], beta[r], sums[r], turn, more, 0, (blocks + 1) // 2)


@njit(cache=True, nogil=True)
def pairs_in_blocks(columns, beta, sums, more, first, last):
    """Add the pairs within a block, for some blocks of a system."""
    _add_inside(columns, beta, sums, more, first, last)


@njit(cache=True, nogil=True)
def pairs_of_blocks(columns, beta, sums, turn, more, first, last):
    """Add the pairs of one token in each of two blocks, for some pairs of blocks of a round."""
    _add_between(columns, beta, sums, turn, more, first, last)


@njit(**WITHIN)
def _add_inside(columns, beta, sums, more, first, last):
    n, scratch, offset = columns.shape[1], np.empty(BLOCK), min(0.0, 2 * beta)
    for block in range(first, last):
        begin, end = block * BLOCK, min(n, (block + 1) * BLOCK)
        if more is None:
            _pairs_inside_3d(columns, beta, offset, sums, begin, end)
        else:
            for i in range(begin, end):
                _pull(columns, beta, offset, i, begin, end, sums, i, scratch)


@njit(**WITHIN)
def _add_between(columns, beta, sums, turn, more, first, last):
    n, scratch, offset = columns.shape[1], np.empty(BLOCK), min(0.0, 2 * beta)
    for number in range(first, last):
        one, other = block_pair(-(-n // BLOCK), turn, number)
        if one < 0:
            continue
        rows = (one * BLOCK, (one + 1) * BLOCK)
        begin, end = other * BLOCK, min(n, (other + 1) * BLOCK)
        if more is None:
            _pairs_between_3d(columns, beta, offset, sums, rows, begin, end)
        else:
            _pairs_between(columns, beta, offset, sums, rows, begin, end, scratch)


@njit(cache=True, nogil=True)
def single_sums(columns, beta, tokens, sums, first, last):
    """Sums of single tokens divided by their largest weight, for some of `tokens`.

    The levels are then at least a mass, and do not underflow.
    """
    n, scratch = columns.shape[1], np.empty(BLOCK)
    for k in range(first, last):
        largest = -np.inf
        for begin in range(0, n, BLOCK):
            end = min(n, begin + BLOCK)
            _squares(columns, tokens[k], begin, end, scratch)
            for j in range(end - begin):
                if columns[-1, begin + j] > 0:
                    largest = max(largest, -0.5 * beta * scratch[j])
        for begin in range(0, n, BLOCK):
            end = min(n, begin + BLOCK)
            _pull(columns, beta, -largest, tokens[k], begin, end, sums, k, scratch)


@njit(cache=True, nogil=True)
def seen_sums(columns, beta, sums, more, first, last):
    """Add the sums over the tokens j <= i, for some blocks of systems; beta is one number.

    Blocks are numbered through all systems, from both ends of each in turn, as later ones take
    longer: equal shares of them take equal times.
    """
    n, scratch, offset = columns.shape[2], np.empty(BLOCK), min(0.0, 2 * beta)
    blocks = -(-n // BLOCK)
    for task in range(first, last):
        r, number = task // blocks, task % blocks
        block = number // 2 if number % 2 == 0 else blocks - 1 - number // 2
        for other in range(block + 1):
            begin = other * BLOCK
            for i in range(block * BLOCK, min(n, (block + 1) * BLOCK)):
                end = min(begin + BLOCK, i + 1)
                if more is None:
                    _seen_3d(columns[r], beta, offset, sums[r], i, begin, end)
                else:
                    _pull(columns[r], beta, offset, i, begin, end, sums[r], i, scratch)


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _seen_3d(columns, beta, offset, sums, i, begin, end):
    """Add the terms of the tokens begin, ..., end - 1 to the sums of token i."""
    x, y, z = columns[0, begin:end], columns[1, begin:end], columns[2, begin:end]
    own_x, own_y, own_z, masses = columns[0, i], columns[1, i], columns[2, i], columns[3, begin:end]
    dx, dy, dz, level = 0.0, 0.0, 0.0, 0.0
    for j in range(x.size):
        to_x, to_y, to_z = x[j] - own_x, y[j] - own_y, z[j] - own_z
        square = to_x * to_x + to_y * to_y + to_z * to_z
        weight = exponential(offset - 0.5 * beta * square) * masses[j]
        dx, dy, dz = dx + weight * to_x, dy + weight * to_y, dz + weight * to_z
        level += weight
    sums[0, i] += dx
    sums[1, i] += dy
    sums[2, i] += dz
    sums[3, i] += level


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _pairs_inside_3d(columns, beta, offset, sums, begin, end):
    x, y, z = columns[0, begin:end], columns[1, begin:end], columns[2, begin:end]
    masses = columns[3, begin:end]
    for i in range(x.size):
        dx, dy, dz, level = 0.0, 0.0, 0.0, 0.0
        for j in range(x.size):
            to_x, to_y, to_z = x[j] - x[i], y[j] - y[i], z[j] - z[i]
            square = to_x * to_x + to_y * to_y + to_z * to_z
            weight = exponential(offset - 0.5 * beta * square) * masses[j]
            dx, dy, dz = dx + weight * to_x, dy + weight * to_y, dz + weight * to_z
            level += weight
        sums[0, begin + i] += dx
        sums[1, begin + i] += dy
        sums[2, begin + i] += dz
        sums[3, begin + i] += level


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _pairs_between_3d(columns, beta, offset, sums, rows, begin, end):
    x, y, z = columns[0, begin:end], columns[1, begin:end], columns[2, begin:end]
    sums_x, sums_y, sums_z = sums[0, begin:end], sums[1, begin:end], sums[2, begin:end]
    masses, levels = columns[3, begin:end], sums[3, begin:end]
    for i in range(rows[0], rows[1]):
        own_x, own_y, own_z, mass = columns[0, i], columns[1, i], columns[2, i], columns[3, i]
        dx, dy, dz, level = 0.0, 0.0, 0.0, 0.0
        for j in range(x.size):
            to_x, to_y, to_z = x[j] - own_x, y[j] - own_y, z[j] - own_z
            square = to_x * to_x + to_y * to_y + to_z * to_z
            kernel = exponential(offset - 0.5 * beta * square)
            weight, back = kernel * masses[j], kernel * mass
            dx, dy, dz = dx + weight * to_x, dy + weight * to_y, dz + weight * to_z
            level += weight
            sums_x[j] -= back * to_x
            sums_y[j] -= back * to_y
            sums_z[j] -= back * to_z
            levels[j] += back
        sums[0, i] += dx
        sums[1, i] += dy
        sums[2, i] += dz
        sums[3, i] += level


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _squares(columns, i, begin, end, squares):
    """|u_i - u_j|^2 for j = begin, ..., end - 1."""
    for j in range(end - begin):
        squares[j] = 0.0
    for c in range(columns.shape[0] - 1):
        row, own = columns[c, begin:end], columns[c, i]
        for j in range(row.size):
            squares[j] += (row[j] - own) * (row[j] - own)


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _pull(columns, beta, offset, i, begin, end, sums, k, scratch):
    """Add to sums[:, k] the terms of the tokens begin, ..., end - 1 in the sums of token i."""
    masses = columns[-1, begin:end]
    _squares(columns, i, begin, end, scratch)
    level = 0.0
    for j in range(masses.size):
        exponent = offset - 0.5 * beta * scratch[j]
        exponent = 0.0 if exponent > 0.0 else exponent  # beyond the nearest mass: mass 0
        scratch[j] = exponential(exponent) * masses[j]
        level += scratch[j]
    sums[-1, k] += level
    for c in range(columns.shape[0] - 1):
        row, own, pull = columns[c, begin:end], columns[c, i], 0.0
        for j in range(row.size):
            pull += (row[j] - own) * scratch[j]
        sums[c, k] += pull


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _pairs_between(columns, beta, offset, sums, rows, begin, end, kernel):
    masses, levels = columns[-1, begin:end], sums[-1, begin:end]
    for i in range(rows[0], rows[1]):
        _squares(columns, i, begin, end, kernel)
        mass, level = columns[-1, i], 0.0
        for j in range(masses.size):
            kernel[j] = exponential(offset - 0.5 * beta * kernel[j])
            level += kernel[j] * masses[j]
            levels[j] += kernel[j] * mass
        sums[-1, i] += level
        for c in range(columns.shape[0] - 1):
            row, own, pull, back = columns[c, begin:end], columns[c, i], 0.0, sums[c, begin:end]
            for j in range(row.size):
                step = (row[j] - own) * kernel[j]
                pull += step * masses[j]
                back[j] -= step * mass
            sums[c, i] += pull


# Round-robin schedule: every block of tokens is paired once with every other. No block occurs
# twice in a round, so the pairs of a round can be computed at the same time, and what a block
# collects is summed in the order of the rounds, whichever thread computes it.


@jitable
def rounds_of(blocks):
    """The number of rounds for so many blocks; each has up to blocks/2 pairs."""
    return blocks - 1 + blocks % 2


@jitable
def block_pair(blocks, turn, number):
    """The two blocks of a pair of a round, or (-1, -1) where a block is left over.

    All but the last block sit in a circle that turns by one place every round.
    """
    circle = blocks - 1 + blocks % 2
    first, second = (turn + number) % circle, (turn - number) % circle
    if number == 0:
        second = circle
    if max(first, second) >= blocks:
        return -1, -1
    return min(first, second), max(first, second)
