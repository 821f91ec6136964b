"""Quantile functions of measures on an interval or on the circle, as piecewise polynomial curves.

A measure on the line is described by its distribution function, or by the inverse of that, its
quantile function. Both are one increasing curve (angle, mass below the angle). The curve is cut
into pieces, each with a parameter t from -1 to 1:

    angle = place + width t,   mass below = level + rise_0 + rise_1 t + ... + rise_14 t^14.

A point with mass is a piece of width 0, on which the mass rises to the level of the next piece. A
density has about four pieces for its shortest wave, and agrees with the polynomials to rounding.

A curve is an array with one row for each piece and a last row for the level 1. Its columns are
level, place, width, rise_0, rise_1, ...; curves of points end with the column `width`.
"""

from collections.abc import Callable

import numpy as np
from numba import njit
from numpy.polynomial import chebyshev

from ..core.errors import MeanfieldError

__all__ = [
    "LEVEL",
    "PLACE",
    "RISE",
    "WIDTH",
    "curves_of_densities",
    "curves_of_points",
    "levels_of",
]

NODES = 14  # Chebyshev nodes of the polynomial on one piece
ROUGH, NOISE = 1e-15, 1e-11  # relative size of its last coefficients: resolved; rounding error
MOST = 2**16  # pieces

LEVEL, PLACE, WIDTH, RISE = range(4)  # columns of a curve


def curves_of_points(angles: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Curves (members, n + 1, 3) of sum_j masses_j delta_{angles_j}.

    Angles and masses are (members, n); the angles may be in any order.
    """
    order = np.argsort(angles, axis=1)
    curves = np.zeros((len(angles), angles.shape[1] + 1, RISE))
    curves[:, :, LEVEL] = levels_of(np.take_along_axis(masses, order, axis=1))
    curves[:, :-1, PLACE] = np.take_along_axis(angles, order, axis=1)
    return curves


@njit(cache=True, nogil=True)
def levels_of(masses):
    """Cumulative sums (members, n + 1) of each row, divided by its total, to rounding.

    The sums are compensated (Neumaier), so that a measure has the same levels however its masses
    are split among points at one place.
    """
    levels = np.zeros((masses.shape[0], masses.shape[1] + 1))
    for row in range(len(masses)):
        total = lost = 0.0
        for j in range(masses.shape[1]):
            mass = masses[row, j]
            new = total + mass
            lost += (total - new) + mass if total >= mass else (mass - new) + total
            total = new
            levels[row, j + 1] = total + lost
        levels[row] /= levels[row, -1]
    return levels


def curves_of_densities(density: Callable[[np.ndarray], np.ndarray], length: float) -> np.ndarray:
    """Curves (members, pieces + 1, 18) of the measures density(angle) d angle on [0, length].

    The number of pieces is doubled until the polynomials resolve the densities.

    Parameters
    ----------
    density : callable
        Maps angles (n,) to the values (members, n) of nonnegative densities.
    length : float

    Raises
    ------
    MeanfieldError
        If polynomials of degree 13 on 65536 pieces do not resolve the densities.
    """
    pieces, series, tail = 32, _series(density, length, 32), np.inf
    while (finer := _tail(series)) > ROUGH and (finer < tail / 2 or finer > NOISE):
        if pieces == MOST:
            raise MeanfieldError(
                f"The quantile function of the density is not resolved: {MOST} polynomials of "
                f"degree {NODES - 1} differ from it by {finer:.1e}. Use a smoother density, or a "
                "lower degree."
            )
        pieces, tail = 2 * pieces, finer
        series = _series(density, length, pieces)
    half = length / pieces / 2
    curves = np.zeros((len(series), pieces + 1, RISE + NODES + 1))
    curves[:, :-1, PLACE], curves[:, :-1, WIDTH] = half * (2 * np.arange(pieces) + 1), half
    integrals = chebyshev.chebint(series, lbnd=-1, axis=2)
    curves[:, :-1, RISE:] = half * (integrals @ _powers(NODES + 1))
    np.cumsum(curves[:, :-1, RISE:].sum(axis=2), axis=1, out=curves[:, 1:, LEVEL])
    mass = curves[:, -1:, LEVEL, None]
    for columns in (slice(LEVEL, PLACE), slice(RISE, None)):
        curves[:, :, columns] /= mass
    return curves


def _series(density, length: float, pieces: int) -> np.ndarray:
    """Chebyshev coefficients on each piece, (members, pieces, NODES)."""
    t = chebyshev.chebpts1(NODES)
    angles = length / pieces * (np.arange(pieces)[:, None] + (1 + t) / 2)
    values = density(angles.ravel())
    inverse = np.linalg.inv(chebyshev.chebvander(t, NODES - 1))
    return values.reshape(len(values), pieces, NODES) @ inverse.T


def _tail(series: np.ndarray) -> float:
    """The last coefficients relative to the first ones."""
    return float(np.abs(series[..., -2:]).max() / np.abs(series[..., 0]).max())


def _powers(size: int) -> np.ndarray:
    """The coefficients of T_0, T_1, ... in powers of t, a row for each."""
    rows = [chebyshev.cheb2poly(row) for row in np.eye(size)]
    return np.stack([np.pad(row, (0, size - row.size)) for row in rows])
