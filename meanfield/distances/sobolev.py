"""Dual Sobolev distances, which are sums over harmonics."""

from typing import Any

import numpy as np

from ..core.checks import boolean, positive, whole_number
from ..spaces.density import Density
from .alignment import place_of_largest
from .bernoulli import BERNOULLI, energy_on_circle
from .coefficients import coefficients_of, common_space
from .curves import atoms_on_circle
from .distance import Distance
from .pairing import checked_states, dimension_of, on_sphere

__all__ = ["CANCELLED", "ROUNDED", "rooted", "sobolev_distance", "weighted_squares"]

MOST, LARGEST = {2: 10**7, 3: 2048}, 4096
RELATIVE = 1e-13  # of the transforms at scattered points
ROUNDED, CANCELLED = 1e-26, 1e-13  # squares of rounding errors; those of sums over pairs


def sobolev_distance(
    a: Any, b: Any, s: float = 1, *, degree: int | None = None, up_to_rotation: bool = False
) -> Distance:
    """|a - b| in H^-s: (sum_{l >= 1} (l (l + d - 2))^-s sum_m |a_lm - b_lm|^2)^(1/2).

    a_lm = int conj(Y_lm) da, with harmonics orthonormal for the uniform probability measure.

    Parameters
    ----------
    a, b : Density, Tokens, Characteristics or Dirac
        On the circle or S^2; axisymmetric ones in any dimension.
    s : float
        > 0.
    degree : int, optional
        Where the sum ends. By default it does not, which needs densities, or on the circle atoms
        with s = 1, 2, 3.
    up_to_rotation : bool
        On the circle: the least distance over all rotations of one of the two.

    Returns
    -------
    Distance
        Its error is that of rounding, and of the best rotation.

    Raises
    ------
    TypeError, ValueError
        For other states, and where a degree is needed.

    Notes
    -----
    The norm of atoms is infinite if s <= (d - 1)/2: 1/2 on the circle, 1 on S^2. For s = 1 it is
    comparable with W_2, W_2(a, b) <= 2 |a - b| in H^-1 with the weight a.

    Of n atoms O(n log n) on the circle, O(n + degree^3) on S^2.

    References
    ----------
    Peyre, Comparison between W_2 distance and H^-1 norm, ESAIM: COCV 24 (2018).
    """
    positive(s=s)
    shape, pairs = checked_states("sobolev_distance", a, b)
    smooth = [x for x in (a, b) if isinstance(x, Density)]
    closed = dimension_of(a) == 2 and s in BERNOULLI and degree is None and len(smooth) < 2
    rotated = boolean("up_to_rotation", up_to_rotation)
    last = _checked_degree(a, b, s, degree, closed or len(smooth) == 2)
    if rotated and (dimension_of(a) != 2 or (closed and not smooth)):
        raise ValueError(
            "sobolev_distance up to rotation is known on the circle, with a density or a degree; "
            f"got {type(a).__name__} and {type(b).__name__} in dimension {dimension_of(a)}."
        )
    space = common_space(a, b, dimension_of(a), last, "sobolev_distance")
    with np.errstate(divide="ignore"):
        weights = np.where(space.degrees > 0, (-space.laplacian) ** -float(s), 0.0)
    first, second = coefficients_of(a, space), coefficients_of(b, space)
    weights *= space.parseval
    if rotated:
        squares, doubt = _least_squares(first[pairs[:, 0]], second[pairs[:, 1]], weights)
    else:
        squares, doubt = weighted_squares(first, second, weights, pairs), np.zeros(len(pairs))
    if closed:
        squares += _beyond(a, b, (first, second), weights, pairs, int(s))
    rounding = doubt + (CANCELLED if closed else ROUNDED)
    return rooted(squares, shape, "harmonics", rounding.reshape(shape))


def _checked_degree(a: Any, b: Any, s: float, degree: int | None, known: bool) -> int:
    """Where the sum ends: `degree`, or that of the densities."""
    if not on_sphere(a):
        raise ValueError(
            f"sobolev_distance needs measures on a sphere; got tokens in R^{dimension_of(a)}."
        )
    if degree is None and not known:
        raise ValueError(
            f"Atoms on S^{dimension_of(a) - 1} have infinitely many harmonics: give "
            f"sobolev_distance a degree at which the sum for s = {s:g} ends, for instance "
            "degree = 128."
        )
    if degree is None:
        return max((x.geometry.degree for x in (a, b) if isinstance(x, Density)), default=1)
    degree = whole_number("sobolev_distance needs a degree", "degree", degree)
    if degree > MOST.get(dimension_of(a), LARGEST):
        most = MOST.get(dimension_of(a), LARGEST)
        raise ValueError(f"degree must be at most {most}; got {degree}.")
    return degree


def _least_squares(first, second, weights: np.ndarray):
    """sum weights |a_k e^{-ik angle} - b_k|^2 at the best angle, and how much less it may be."""
    angles, doubt = place_of_largest(weights * first * np.conj(second))
    turned = first * np.exp(-1j * np.arange(first.shape[1]) * angles[:, None])
    return np.abs(turned - second) ** 2 @ weights, 2 * doubt


def weighted_squares(first, second, weights: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """sum weights |a_lm - b_lm|^2 for the members (i, j), (pairs,)."""
    differences = first[pairs[:, 0]] - second[pairs[:, 1]]
    return np.abs(differences) ** 2 @ weights


def rooted(squares, shape: tuple[int, ...], method: str, rounding) -> Distance:
    """Square roots of sums that rounding may have made a little less than 0."""
    some = np.maximum(squares, 0.0).reshape(shape)
    value = np.sqrt(some)
    return Distance(value, np.sqrt(some + rounding) - value + RELATIVE * value, method)


def _beyond(a, b, series, weights: np.ndarray, pairs: np.ndarray, s: int) -> np.ndarray:
    """What atoms add beyond the degree of the series on the circle: all harmonics less those."""
    signed = [
        (*atoms, coefficients, sign, side)
        for state, coefficients, sign, side in zip((a, b), series, (1, -1), (0, 1), strict=True)
        if (atoms := atoms_on_circle(state)) is not None
    ]
    result = np.empty(len(pairs))
    for k, members in enumerate(pairs):
        angles = np.concatenate([places[members[side]] for places, _, _, _, side in signed])
        masses = np.concatenate([sign * m[members[side]] for _, m, _, sign, side in signed])
        known = np.sum([sign * c[members[side]] for _, _, c, sign, side in signed], axis=0)
        result[k] = energy_on_circle(angles, masses, s) - np.abs(known) ** 2 @ weights
    return result
