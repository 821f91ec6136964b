"""Exponential kernels and their derivatives, summed over pairs of tokens.

Systems are columns as in `exponential_pairs`, and so are tangents: the changes du of the
directions, which are tangential, and dm of the masses. With

    w_ij = exp(beta <u_i, u_j> - |beta|),    dw_ij = w_ij (-beta <u_j - u_i, du_j - du_i>
                                                           - (1/2) dbeta |u_j - u_i|^2)

the sums over j != i are those of m w (u_j - u_i) and m w, and of their changes

    (dm_j w + m_j dw) (u_j - u_i) + m_j w (du_j - du_i),    dm_j w + m_j dw

What the kernel changes by a factor that all its values have in common is left to the caller.
"""

import numpy as np

from ..lowlevel.compilation import IN_ANY_ORDER, WITHIN, njit
from ..lowlevel.simd import exponential
from .exponential_pairs import BLOCK, block_pair


@njit(cache=True, nogil=True)
def tangent_sums(columns, changes, beta, by_beta, offsets, tokens, found):
    """Fill the sums of single tokens with these numbers, and their changes.

    Parameters
    ----------
    columns : (rows + 1, n); changes : (p, rows + 1, n)
    beta, by_beta : float, (p,)
        And by how much it changes.
    offsets : (tokens,)
        The logarithms of what kernels are at distance 0, for each token in its sums.
    found : (1 + p, rows + 1, n)
        Written at the places of these tokens.
    """
    n, scratch = columns.shape[1], np.empty((5 + changes.shape[0], BLOCK))
    for number in range(tokens.size):
        i, offset = tokens[number], offsets[number]
        found[:, :, i] = 0.0
        for begin in range(0, n, BLOCK):
            end = min(n, begin + BLOCK)
            _row(columns, changes, beta, by_beta, offset, i, begin, end, scratch, found)


@njit(cache=True, nogil=True)
def tangents_in_blocks(columns, changes, beta, by_beta, found, first, last):
    """Add the pairs within a block, for some blocks of a system; `tangent_sums` with one offset."""
    n, scratch = columns.shape[1], np.empty((5 + changes.shape[0], BLOCK))
    offset = min(0.0, 2 * beta)
    for block in range(first, last):
        begin, end = block * BLOCK, min(n, (block + 1) * BLOCK)
        for i in range(begin, end):
            _row(columns, changes, beta, by_beta, offset, i, begin, end, scratch, found)


@njit(cache=True, nogil=True)
def tangents_of_blocks(columns, changes, beta, by_beta, found, turn, first, last):
    """Add the pairs of one token in each of two blocks, for some pairs of blocks of a round."""
    n, scratch = columns.shape[1], np.empty((5 + changes.shape[0], BLOCK))
    offset = min(0.0, 2 * beta)
    for number in range(first, last):
        one, other = block_pair(-(-n // BLOCK), turn, number)
        if one >= 0:
            begin, end = other * BLOCK, min(n, (other + 1) * BLOCK)
            for i in range(one * BLOCK, (one + 1) * BLOCK):
                _pairs(columns, changes, beta, by_beta, offset, i, begin, end, scratch, found)


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _row(columns, changes, beta, by_beta, offset, i, begin, end, scratch, found):
    """Add the terms of the tokens begin, ..., end - 1 in the sums of token i."""
    if columns.shape[0] == 4:
        _row_3d(columns, changes, beta, by_beta, offset, i, begin, end, scratch, found)
    else:
        _row_of_any(columns, changes, beta, by_beta, offset, i, begin, end, scratch, found)


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _weights(columns, changes, beta, by_beta, offset, i, begin, end, scratch):
    """w_ij into scratch[0], and -dw_ij / w_ij of every tangent into scratch[5], ...."""
    kernel, size = scratch[0, : end - begin], end - begin
    kernel[:] = 0.0
    scratch[5:, :size] = 0.0
    for c in range(columns.shape[0] - 1):
        row, own = columns[c, begin:end], columns[c, i]
        for a in range(changes.shape[0]):
            moved, at, along = changes[a, c, begin:end], changes[a, c, i], scratch[5 + a]
            if a == 0:  # in one loop with the squares, whose differences it has too
                for j in range(size):
                    step = row[j] - own
                    kernel[j] += step * step
                    along[j] += step * (moved[j] - at)
            else:
                for j in range(size):
                    along[j] += (row[j] - own) * (moved[j] - at)
    for a in range(changes.shape[0]):
        along, half = scratch[5 + a], 0.5 * by_beta[a]
        for j in range(size):
            along[j] = half * kernel[j] + beta * along[j]
    for j in range(size):
        exponent = offset - 0.5 * beta * kernel[j]
        kernel[j] = exponential(0.0 if exponent > 0.0 else exponent)


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _row_of_any(columns, changes, beta, by_beta, offset, i, begin, end, scratch, found):
    """As `_row`, in any dimension."""
    _weights(columns, changes, beta, by_beta, offset, i, begin, end, scratch)
    kernel, weights, change = scratch[0], scratch[1], scratch[2]
    masses, size, level = columns[-1, begin:end], end - begin, 0.0
    for j in range(size):
        weights[j] = kernel[j] * masses[j]
        level += weights[j]
    found[0, -1, i] += level
    for a in range(changes.shape[0]):
        of_masses, along, level = changes[a, -1, begin:end], scratch[5 + a], 0.0
        for j in range(size):
            change[j] = kernel[j] * of_masses[j] - weights[j] * along[j]
            level += change[j]
        found[1 + a, -1, i] += level
        for c in range(columns.shape[0] - 1):
            row, own, pull, by = columns[c, begin:end], columns[c, i], 0.0, 0.0
            moved, at = changes[a, c, begin:end], changes[a, c, i]
            if a == 0:
                for j in range(size):
                    pull += (row[j] - own) * weights[j]
                    by += (row[j] - own) * change[j] + (moved[j] - at) * weights[j]
            else:
                for j in range(size):
                    by += (row[j] - own) * change[j] + (moved[j] - at) * weights[j]
            found[0, c, i] += pull
            found[1 + a, c, i] += by


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _pairs(columns, changes, beta, by_beta, offset, i, begin, end, scratch, found):
    """Add the pairs of token i and of begin, ..., end - 1 in the sums of both."""
    if columns.shape[0] == 4:
        _pairs_3d(columns, changes, beta, by_beta, offset, i, begin, end, scratch, found)
    else:
        _pairs_of_any(columns, changes, beta, by_beta, offset, i, begin, end, scratch, found)


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _pairs_of_any(columns, changes, beta, by_beta, offset, i, begin, end, scratch, found):
    """As `_pairs`, in any dimension."""
    _weights(columns, changes, beta, by_beta, offset, i, begin, end, scratch)
    kernel, weights, change, backs, back = (
        scratch[0],
        scratch[1],
        scratch[2],
        scratch[3],
        scratch[4],
    )
    masses, mass, size, level = columns[-1, begin:end], columns[-1, i], end - begin, 0.0
    levels = found[0, -1, begin:end]
    for j in range(size):
        weights[j], backs[j] = kernel[j] * masses[j], kernel[j] * mass
        level += weights[j]
        levels[j] += backs[j]
    found[0, -1, i] += level
    for a in range(changes.shape[0]):
        of_masses, of_mass, along = changes[a, -1, begin:end], changes[a, -1, i], scratch[5 + a]
        levels, level = found[1 + a, -1, begin:end], 0.0
        for j in range(size):
            change[j] = kernel[j] * of_masses[j] - weights[j] * along[j]
            back[j] = kernel[j] * of_mass - backs[j] * along[j]
            level += change[j]
            levels[j] += back[j]
        found[1 + a, -1, i] += level
        for c in range(columns.shape[0] - 1):
            row, own, pull, by = columns[c, begin:end], columns[c, i], 0.0, 0.0
            moved, at = changes[a, c, begin:end], changes[a, c, i]
            sums, changed = found[0, c, begin:end], found[1 + a, c, begin:end]
            if a == 0:
                for j in range(size):
                    step, move = row[j] - own, moved[j] - at
                    pull += step * weights[j]
                    by += step * change[j] + move * weights[j]
                    sums[j] -= step * backs[j]
                    changed[j] -= step * back[j] + move * backs[j]
            else:
                for j in range(size):
                    step, move = row[j] - own, moved[j] - at
                    by += step * change[j] + move * weights[j]
                    changed[j] -= step * back[j] + move * backs[j]
            found[0, c, i] += pull
            found[1 + a, c, i] += by


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _row_3d(columns, changes, beta, by_beta, offset, i, begin, end, scratch, found):
    """As `_row`, with three rows of coordinates."""
    kernel, weights, squares = scratch[0], scratch[1], scratch[2]
    x, y, z = columns[0, begin:end], columns[1, begin:end], columns[2, begin:end]
    own_x, own_y, own_z = columns[0, i], columns[1, i], columns[2, i]
    masses = columns[3, begin:end]
    dx, dy, dz, level = 0.0, 0.0, 0.0, 0.0
    for j in range(x.size):
        to_x, to_y, to_z = x[j] - own_x, y[j] - own_y, z[j] - own_z
        square = to_x * to_x + to_y * to_y + to_z * to_z
        exponent = offset - 0.5 * beta * square
        exponent = 0.0 if exponent > 0.0 else exponent
        kernel[j], squares[j] = exponential(exponent), square
        weight = kernel[j] * masses[j]
        weights[j] = weight
        dx, dy, dz = dx + weight * to_x, dy + weight * to_y, dz + weight * to_z
        level += weight
    found[0, 0, i] += dx
    found[0, 1, i] += dy
    found[0, 2, i] += dz
    found[0, 3, i] += level
    for a in range(changes.shape[0]):
        move_x, move_y, move_z = (
            changes[a, 0, begin:end],
            changes[a, 1, begin:end],
            changes[a, 2, begin:end],
        )
        at_x, at_y, at_z = changes[a, 0, i], changes[a, 1, i], changes[a, 2, i]
        of_masses, half = changes[a, 3, begin:end], 0.5 * by_beta[a]
        dx, dy, dz, level = 0.0, 0.0, 0.0, 0.0
        for j in range(x.size):
            to_x, to_y, to_z = x[j] - own_x, y[j] - own_y, z[j] - own_z
            by_x, by_y, by_z = move_x[j] - at_x, move_y[j] - at_y, move_z[j] - at_z
            along = half * squares[j] + beta * (to_x * by_x + to_y * by_y + to_z * by_z)
            weight, change = weights[j], kernel[j] * of_masses[j] - weights[j] * along
            dx += change * to_x + weight * by_x
            dy += change * to_y + weight * by_y
            dz += change * to_z + weight * by_z
            level += change
        found[1 + a, 0, i] += dx
        found[1 + a, 1, i] += dy
        found[1 + a, 2, i] += dz
        found[1 + a, 3, i] += level


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _pairs_3d(columns, changes, beta, by_beta, offset, i, begin, end, scratch, found):
    """As `_pairs`, with three rows of coordinates."""
    kernel, squares, mass = scratch[0], scratch[2], columns[3, i]
    x, y, z = columns[0, begin:end], columns[1, begin:end], columns[2, begin:end]
    own_x, own_y, own_z = columns[0, i], columns[1, i], columns[2, i]
    sums_x, sums_y, sums_z = found[0, 0, begin:end], found[0, 1, begin:end], found[0, 2, begin:end]
    masses, levels = columns[3, begin:end], found[0, 3, begin:end]
    dx, dy, dz, level = 0.0, 0.0, 0.0, 0.0
    for j in range(x.size):
        to_x, to_y, to_z = x[j] - own_x, y[j] - own_y, z[j] - own_z
        square = to_x * to_x + to_y * to_y + to_z * to_z
        exponent = offset - 0.5 * beta * square
        exponent = 0.0 if exponent > 0.0 else exponent
        kernel[j], squares[j] = exponential(exponent), square
        weight, back = kernel[j] * masses[j], kernel[j] * mass
        dx, dy, dz = dx + weight * to_x, dy + weight * to_y, dz + weight * to_z
        level += weight
        sums_x[j] -= back * to_x
        sums_y[j] -= back * to_y
        sums_z[j] -= back * to_z
        levels[j] += back
    found[0, 0, i] += dx
    found[0, 1, i] += dy
    found[0, 2, i] += dz
    found[0, 3, i] += level
    for a in range(changes.shape[0]):
        move_x, move_y, move_z = (
            changes[a, 0, begin:end],
            changes[a, 1, begin:end],
            changes[a, 2, begin:end],
        )
        sums_x, sums_y, sums_z = (
            found[1 + a, 0, begin:end],
            found[1 + a, 1, begin:end],
            found[1 + a, 2, begin:end],
        )
        levels, of_mass = found[1 + a, 3, begin:end], changes[a, 3, i]
        at_x, at_y, at_z = changes[a, 0, i], changes[a, 1, i], changes[a, 2, i]
        of_masses, half = changes[a, 3, begin:end], 0.5 * by_beta[a]
        dx, dy, dz, level = 0.0, 0.0, 0.0, 0.0
        for j in range(x.size):
            to_x, to_y, to_z = x[j] - own_x, y[j] - own_y, z[j] - own_z
            by_x, by_y, by_z = move_x[j] - at_x, move_y[j] - at_y, move_z[j] - at_z
            along = half * squares[j] + beta * (to_x * by_x + to_y * by_y + to_z * by_z)
            weight, back = kernel[j] * masses[j], kernel[j] * mass
            change = kernel[j] * of_masses[j] - weight * along
            to_other = kernel[j] * of_mass - back * along
            dx += change * to_x + weight * by_x
            dy += change * to_y + weight * by_y
            dz += change * to_z + weight * by_z
            level += change
            sums_x[j] -= to_other * to_x + back * by_x
            sums_y[j] -= to_other * to_y + back * by_y
            sums_z[j] -= to_other * to_z + back * by_z
            levels[j] += to_other
        found[1 + a, 0, i] += dx
        found[1 + a, 1, i] += dy
        found[1 + a, 2, i] += dz
        found[1 + a, 3, i] += level
