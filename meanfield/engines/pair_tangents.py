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
from .exponential_pairs import BLOCK


@njit(cache=True, nogil=True)
def tangent_sums(columns, changes, beta, by_beta, offsets, tokens, sums, changed, first, last):
    """Fill the sums of the tokens with numbers tokens[first], ..., tokens[last - 1].

    Parameters
    ----------
    columns : (rows + 1, n); changes : (p, rows + 1, n)
    beta, by_beta : float, (p,)
        And by how much it changes.
    offsets : (tokens,)
        The logarithms of what kernels are at distance 0, for each token in its sums.
    sums, changed : (rows + 1, n), (p, rows + 1, n)
        Written at the places of these tokens.
    """
    scratch = np.empty((4, BLOCK))
    for number in range(first, last):
        i = tokens[number]
        sums[:, i] = 0.0
        changed[:, :, i] = 0.0
        for begin in range(0, columns.shape[1], BLOCK):
            end = min(columns.shape[1], begin + BLOCK)
            offset = offsets[number]
            if columns.shape[0] == 4:
                _block_3d(
                    columns, changes, beta, by_beta, offset, i, begin, end, scratch, sums, changed
                )
            else:
                _block(
                    columns, changes, beta, by_beta, offset, i, begin, end, scratch, sums, changed
                )


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _block(columns, changes, beta, by_beta, offset, i, begin, end, scratch, sums, changed):
    """Add the terms of the tokens begin, ..., end - 1 in the sums of token i."""
    squares, kernel, weights, along = scratch[0], scratch[1], scratch[2], scratch[3]
    masses, size, level = columns[-1, begin:end], end - begin, 0.0
    for j in range(size):
        squares[j] = 0.0
    for c in range(columns.shape[0] - 1):
        row, own = columns[c, begin:end], columns[c, i]
        for j in range(size):
            squares[j] += (row[j] - own) * (row[j] - own)
    for j in range(size):
        exponent = offset - 0.5 * beta * squares[j]
        kernel[j] = exponential(0.0 if exponent > 0.0 else exponent)
        weights[j] = kernel[j] * masses[j]
        level += weights[j]
    sums[-1, i] += level
    for c in range(columns.shape[0] - 1):
        row, own, pull = columns[c, begin:end], columns[c, i], 0.0
        for j in range(size):
            pull += (row[j] - own) * weights[j]
        sums[c, i] += pull
    for a in range(changes.shape[0]):
        of_masses, half = changes[a, -1, begin:end], 0.5 * by_beta[a]
        for j in range(size):
            along[j] = half * squares[j]
        for c in range(columns.shape[0] - 1):
            row, own = columns[c, begin:end], columns[c, i]
            moved, at = changes[a, c, begin:end], changes[a, c, i]
            for j in range(size):
                along[j] += beta * (row[j] - own) * (moved[j] - at)
        level = 0.0
        for j in range(size):
            along[j] = kernel[j] * of_masses[j] - weights[j] * along[j]
            level += along[j]
        changed[a, -1, i] += level
        for c in range(columns.shape[0] - 1):
            row, own, pull = columns[c, begin:end], columns[c, i], 0.0
            moved, at = changes[a, c, begin:end], changes[a, c, i]
            for j in range(size):
                pull += (row[j] - own) * along[j] + (moved[j] - at) * weights[j]
            changed[a, c, i] += pull


@njit(**WITHIN, fastmath=IN_ANY_ORDER)
def _block_3d(columns, changes, beta, by_beta, offset, i, begin, end, scratch, sums, changed):
    """As `_block`, with three rows of coordinates."""
    kernel, weights, squares = scratch[1], scratch[2], scratch[0]
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
    sums[0, i] += dx
    sums[1, i] += dy
    sums[2, i] += dz
    sums[3, i] += level
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
        changed[a, 0, i] += dx
        changed[a, 1, i] += dy
        changed[a, 2, i] += dz
        changed[a, 3, i] += level
