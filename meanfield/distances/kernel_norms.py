"""Norms of a difference of measures: dual Sobolev norms, and the maximum mean discrepancy.

Both are weighted sums of squares over harmonics. On the circle the dual Sobolev norms of points
have all harmonics in closed form, by Bernoulli polynomials,

    sum_{k >= 1} 2 cos(k theta) / k^(2s) = (-1)^(s+1) (2 pi)^(2s) / (2s)! B_2s(theta / 2 pi),

0 <= theta <= 2 pi (DLMF 24.8.1); their sums over all pairs of n points take O(n log n).
"""

from math import factorial, pi
from typing import Any

import numpy as np
from numba import njit

from ..core.checks import boolean, positive, whole_number
from ..spaces import Circle, Geometry, Sphere, Zonal
from ..spaces.kernels import exponential_multipliers
from .distance import Distance
from .linear_programs import Points, pairwise_distances
from .measures import Measure, checked_pair
from .rotations import aligning_angles

__all__ = ["mmd", "sobolev_distance"]

MOST, LARGEST = {2: 10**7, 3: 2048}, 4096  # degrees, by dimension and beyond
RELATIVE = 1e-13  # of the transforms at scattered points
ROUNDED, CANCELLED = 1e-26, 1e-13  # squares of rounding errors; those of sums over pairs
NEGLIGIBLE = 1e-17  # multiplier relative to the largest
ROWS = 512
BERNOULLI = {  # coefficients of B_2s, the lowest first
    1: (1 / 6, -1.0, 1.0),
    2: (-1 / 30, 0.0, 1.0, -2.0, 1.0),
    3: (1 / 42, 0.0, -0.5, 0.0, 2.5, -3.0, 1.0),
}


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
        The highest degree of the sum. By default the sum is infinite, which is possible for two
        densities and, if s is 1, 2 or 3, for points on the circle.
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
    The norm of points is infinite if s <= (d - 1)/2: 1/2 on the circle, 1 on S^2. For s = 1 it is
    comparable with W_2: W_2(a, b) <= 2 |a - b| in H^-1 with the weight a.

    The cost for n points is O(n log n) on the circle, O(n + degree^3) on S^2.

    References
    ----------
    Peyre, Comparison between W_2 distance and H^-1 norm, ESAIM: COCV 24 (2018).
    """
    positive(s=s)
    a, b, shape, pairs = checked_pair("sobolev_distance", a, b)
    rotated = boolean("up_to_rotation", up_to_rotation)
    smooth = a.smooth + b.smooth
    closed = a.dimension == 2 and s in BERNOULLI and degree is None and smooth < 2
    last = _checked_degree(a, b, s, degree, closed or smooth == 2)
    if rotated and (a.dimension != 2 or (closed and not smooth)):
        raise ValueError(
            "sobolev_distance up to rotation is known on the circle, with a density or a degree; "
            f"got {a} and {b}."
        )
    space = _common_space(a, b, last, "sobolev_distance")
    with np.errstate(divide="ignore"):
        weights = np.where(space.degrees > 0, (-space.laplacian) ** -float(s), 0.0)
    weights *= space.parseval
    first, second = a.coefficients(space), b.coefficients(space)
    if rotated:
        squares, doubt = _least_squares(first[pairs[:, 0]], second[pairs[:, 1]], weights)
    else:
        squares, doubt = _weighted_squares(first, second, weights, pairs), np.zeros(len(pairs))
    if closed:
        squares += _beyond_the_degree((a, b), (first, second), weights, pairs, int(s))
    rounding = doubt + (CANCELLED if closed else ROUNDED)
    return _rooted(squares, shape, "harmonics", rounding.reshape(shape))


def _checked_degree(a: Measure, b: Measure, s: float, degree: int | None, known: bool) -> int:
    """The highest degree of the sum: `degree`, or that of the densities."""
    if not a.on_sphere:
        raise ValueError(
            f"sobolev_distance needs measures on a sphere; got tokens in R^{a.dimension}."
        )
    if degree is None and not known:
        raise ValueError(
            f"Points on S^{a.dimension - 1} have infinitely many harmonics: give sobolev_distance "
            f"a degree at which the sum for s = {s:g} ends, for instance degree = 128."
        )
    if degree is None:
        return max((x.state.geometry.degree for x in (a, b) if x.smooth), default=1)
    degree = whole_number("sobolev_distance needs a degree", "degree", degree)
    most = MOST.get(a.dimension, LARGEST)
    if degree > most:
        raise ValueError(f"degree must be at most {most}; got {degree}.")
    return degree


def _least_squares(first, second, weights: np.ndarray):
    """The least of sum weights |a_k e^{-ik angle} - b_k|^2, and by how much it may be less."""
    angles, doubt = aligning_angles(weights * first * np.conj(second))
    turned = first * np.exp(-1j * np.arange(first.shape[1]) * angles[:, None])
    return np.abs(turned - second) ** 2 @ weights, 2 * doubt


def mmd(a: Any, b: Any, beta: float = 1.0) -> Distance:
    """The maximum mean discrepancy of K(x, y) = exp(-beta |x - y|^2 / 2).

    (int int K d(a - b) d(a - b))^(1/2). On the sphere K is the attention kernel exp(beta <x, y>)
    divided by its maximum e^beta.

    Parameters
    ----------
    a, b : Density, Tokens, Characteristics or Dirac
        In one space.
    beta : float
        > 0.

    Returns
    -------
    Distance
        Its error is that of rounding.

    Notes
    -----
    On the circle and S^2 the sum is over harmonics, of which K has about 6 sqrt(beta) + 20, in
    O(n); otherwise over all pairs, in O(n^2 d) for n points.

    References
    ----------
    Gretton, Borgwardt, Rasch, Scholkopf and Smola, J. Mach. Learn. Res. 13 (2012).
    """
    positive(beta=beta)
    a, b, shape, pairs = checked_pair("mmd", a, b)
    d = a.dimension
    pointwise = a.pointwise and b.pointwise
    multipliers = _multipliers(beta, d) if a.on_sphere else np.empty(0)
    resolved = a.on_sphere and multipliers[-1] <= NEGLIGIBLE * multipliers[0]
    if not a.on_sphere or (pointwise and (d > 3 or not resolved)):
        energies = [_sum_over_pairs(a.points(i, 0), b.points(j, 0), beta) for i, j in pairs]
        return _rooted(np.array(energies), shape, "all pairs", CANCELLED)
    if not resolved:
        raise ValueError(
            f"mmd of densities is summed over at most {LARGEST} harmonics, too few for beta = "
            f"{beta:g}: expected beta <= about 1e5."
        )
    space = _common_space(a, b, len(multipliers) - 1, "mmd")
    weights = multipliers[space.degrees] * (space.degrees > 0) * space.parseval
    squares = _weighted_squares(a.coefficients(space), b.coefficients(space), weights, pairs)
    return _rooted(squares, shape, "harmonics", ROUNDED)


def _multipliers(beta: float, dimension: int) -> np.ndarray:
    """Those of K that are not negligible."""
    degree = 16
    while True:
        multipliers = exponential_multipliers(beta, degree, dimension)
        if multipliers[-1] <= NEGLIGIBLE * multipliers[0] or degree == LARGEST:
            return multipliers
        degree *= 2


def _sum_over_pairs(a: Points, b: Points, beta: float) -> float:
    """int int K d(a - b) d(a - b) of points."""
    x = np.concatenate([a.x, b.x])
    masses = np.concatenate([a.masses, -b.masses])
    total = 0.0
    for begin in range(0, len(x), ROWS):
        rows = slice(begin, begin + ROWS)
        squares = pairwise_distances(x[rows], x, 2, False)
        total += masses[rows] @ np.exp(-beta / 2 * squares) @ masses
    return float(total)


# Sums over harmonics ------------------------------------------------------------------------


def _common_space(a: Measure, b: Measure, degree: int, name: str) -> Geometry:
    """The space whose harmonics both have: axisymmetric ones, or all of the circle or S^2."""
    d = a.dimension
    if d > 2 and a.axisymmetric and b.axisymmetric:
        return Zonal(d, degree)
    if d not in (2, 3):
        raise ValueError(
            f"{name} is summed over harmonics on the circle, on S^2, or of axisymmetric measures; "
            f"got measures on S^{d - 1}."
        )
    return Circle(degree) if d == 2 else Sphere(degree)


def _weighted_squares(first, second, weights: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """sum weights |a_lm - b_lm|^2 for the members (i, j), (pairs,)."""
    differences = first[pairs[:, 0]] - second[pairs[:, 1]]
    return np.abs(differences) ** 2 @ weights


def _rooted(squares, shape: tuple[int, ...], method: str, rounding) -> Distance:
    """Square roots of sums that rounding may have made slightly negative."""
    some = np.maximum(squares, 0.0).reshape(shape)
    value = np.sqrt(some)
    return Distance(value, np.sqrt(some + rounding) - value + RELATIVE * value, method)


def _beyond_the_degree(states, series, weights: np.ndarray, pairs: np.ndarray, s: int):
    """What the harmonics of points on the circle add beyond the degree of the series, (pairs,)."""
    signed = [
        (*state.angles_on_circle(), coefficients, sign, side)
        for state, coefficients, sign, side in zip(states, series, (1, -1), (0, 1), strict=True)
        if not state.smooth
    ]
    result = np.empty(len(pairs))
    for k, members in enumerate(pairs):
        angles = np.concatenate([places[members[side]] for places, _, _, _, side in signed])
        masses = np.concatenate([sign * m[members[side]] for _, m, _, sign, side in signed])
        known = np.sum([sign * c[members[side]] for _, _, c, sign, side in signed], axis=0)
        result[k] = _energy_on_circle(angles, masses, s) - np.abs(known) ** 2 @ weights
    return result


def _energy_on_circle(angles: np.ndarray, masses: np.ndarray, s: int) -> float:
    """sum_ij masses_i masses_j sum_{k >= 1} 2 cos(k (angle_i - angle_j)) / k^(2s), s = 1, 2, 3."""
    order = np.argsort(angles)
    sign = -1.0 if s % 2 == 0 else 1.0
    scale = sign * (2 * pi) ** (2 * s) / factorial(2 * s)
    return scale * _energy_of_pairs(angles[order] / (2 * pi), masses[order], np.array(BERNOULLI[s]))


@njit(cache=True, nogil=True)
def _energy_of_pairs(x, masses, kernel):
    """sum_ij masses_i masses_j kernel(|x_i - x_j|) for increasing x.

    moments_q = sum of masses_j (x - x_j)^q over the points x_j before x, updated from x to x.
    """
    size = kernel.size
    moments, shifted = np.zeros(size), np.zeros(size)
    total = place = 0.0
    for i in range(x.size):
        step, place = x[i] - place, x[i]
        for q in range(size):  # Horner's scheme for sum_r binomial(q, r) step^(q - r) moments_r
            shifted[q] = moments[q]
        for q in range(1, size):
            for r in range(size - 1, q - 1, -1):
                shifted[r] += step * shifted[r - 1]
        for q in range(size):
            moments[q] = shifted[q]
        field = 0.0
        for q in range(size):
            field += kernel[q] * moments[q]
        total += masses[i] * (2 * field + masses[i] * kernel[0])
        moments[0] += masses[i]
    return total
