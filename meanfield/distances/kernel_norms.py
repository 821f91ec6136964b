"""Norms of a difference of measures: dual Sobolev norms, and the maximum mean discrepancy.

Both are weighted sums of squares over harmonics. On the circle the dual Sobolev norms of points
have all harmonics in closed form, by Bernoulli polynomials,

    sum_{k >= 1} 2 cos(k theta) / k^(2s) = (-1)^(s+1) (2 pi)^(2s) / (2s)! B_2s(theta / 2 pi),

0 <= theta <= 2 pi (DLMF 24.8.1); their sums over all pairs of n points take O(n log n).
"""

from math import factorial, pi
from typing import Any

import numpy as np

from ..core.calls import checked_call
from ..core.checks import require, whole_number
from ..core.forms import Positive
from ..lowlevel.compilation import njit
from ..spaces import Space, Torus, Zonal
from ..spaces.kernels import exponential_multipliers
from .distance import Distance
from .linear_programs import WeightedPoints
from .measures import Measure, PointMeasure, checked_pair
from .metrics import Metric

MAX_DEGREES = {Metric(2, 2): 10**7, Metric(3, 3): 2048, Metric(4, 2): 512, Metric(6, 2): 64}
MAX_DEGREE = 4096  # on other spheres
NUFFT_ERROR = 1e-13  # of the transforms at scattered points
SQUARE_ROUNDING, PAIR_SUM_ROUNDING = 1e-26, 1e-13  # of squared distances
NEGLIGIBLE_MULTIPLIER = 1e-17  # multiplier relative to the largest
ROWS_PER_BLOCK = 512
POINTS_PER_WAVE = 64  # grid points per shortest wave of a series
REFINED_MAXIMA = 4
NEWTON_STEPS = 5
PRODUCT_ROUNDING = 1e-14  # relative, of a product of series
BERNOULLI = {  # coefficients of B_2s, the lowest first
    1: (1 / 6, -1.0, 1.0),
    2: (-1 / 30, 0.0, 1.0, -2.0, 1.0),
    3: (1 / 42, 0.0, -0.5, 0.0, 2.5, -3.0, 1.0),
}


@checked_call("degree")
def sobolev_distance(
    a: Any, b: Any, s: Positive = 1, *, degree: int | None = None, up_to_rotation: bool = False
) -> Distance:
    """|a - b| in H^-s: (sum_{l >= 1} (l (l + d - 2))^-s sum_m |a_lm - b_lm|^2)^(1/2).

    a_lm = int conj(Y_lm) da, with harmonics orthonormal for the uniform probability measure. On a
    torus it is (sum_{k != 0} |k|^(-2s) |a_k - b_k|^2)^(1/2) over waves |k_i| <= degree.

    Parameters
    ----------
    a, b : Density, Tokens, Characteristics or Dirac
        On the circle or S^2, or TorusTokens and densities on a torus; axisymmetric ones in any
        dimension.
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
        The error accounts for rounding and for the best rotation.

    Raises
    ------
    TypeError, ValueError
        For other states, and where a degree is needed.

    Notes
    -----
    The norm of points is infinite if s <= (d - 1)/2: 1/2 on the circle, 1 on S^2; on a torus if
    s <= m/2. For s = 1 it is
    comparable with W_2: W_2(a, b) <= 2 |a - b| in H^-1 with the weight a.

    The cost for n points is O(n log n) on the circle, O(n + degree^3) on S^2.

    References
    ----------
    Peyre, Comparison between W_2 distance and H^-1 norm, ESAIM: COCV 24 (2018).
    """
    a, b, shape, pairs = checked_pair("sobolev_distance", a, b)
    densities = a.is_density + b.is_density
    exact = a.dimension == 2 and s in BERNOULLI and degree is None and densities < 2
    last = _checked_degree(a, b, s, degree, exact or densities == 2)
    expected = f"False for {a} and {b}: it is known on the circle, with a density or a degree"
    fits = not up_to_rotation or (a.dimension == 2 and (densities or not exact))
    require("up_to_rotation", up_to_rotation, expected, fits)
    space, first, second = _in_harmonics(a, b, last, "sobolev_distance")
    with np.errstate(divide="ignore"):
        weights = np.where(space.degrees > 0, (-space.laplacian) ** -float(s), 0.0)
    weights *= space.parseval
    rotated_a, rotation_error = first[pairs[:, 0]], np.zeros(len(pairs))
    if up_to_rotation:
        angles, rotation_error = aligning_angles(weights * rotated_a * np.conj(second[pairs[:, 1]]))
        rotated_a = rotated_a * np.exp(-1j * np.arange(rotated_a.shape[1]) * angles[:, None])
    squares = np.abs(rotated_a - second[pairs[:, 1]]) ** 2 @ weights
    if exact:
        squares += _beyond_the_degree((a, b), (first, second), weights, pairs, int(s))
    rounding = 2 * rotation_error + (PAIR_SUM_ROUNDING if exact else SQUARE_ROUNDING)
    return _rooted(squares, shape, "harmonics", rounding.reshape(shape))


def _checked_degree(a: Measure, b: Measure, s: float, degree: int | None, optional: bool) -> int:
    """Highest degree of harmonics that are summed: `degree`, or by default that of densities."""
    if not a.metric.factor:
        raise ValueError(f"sobolev_distance is on a sphere or a torus; got {a}.")
    reason = f"points {a.metric} have infinitely many harmonics for s = {s:g}"
    require("degree", degree, f"a number such as 128, as {reason}", optional or degree is not None)
    if degree is None:
        return max((x.state.space.degree for x in (a, b) if x.is_density), default=1)
    return whole_number("degree", degree, most=MAX_DEGREES.get(a.metric, MAX_DEGREE))


@checked_call()
def mmd(a: Any, b: Any, beta: Positive = 1.0) -> Distance:
    """The maximum mean discrepancy of K(x, y) = exp(-beta |x - y|^2 / 2).

    (int int K d(a - b) d(a - b))^(1/2). On the sphere K is the attention kernel exp(beta <x, y>)
    divided by its maximum e^beta, and on the torus by e^(m beta).

    Parameters
    ----------
    a, b : Density, Tokens, Characteristics or Dirac
        In one space.
    beta : float
        > 0.

    Returns
    -------
    Distance
        The error accounts for rounding.

    Notes
    -----
    On the circle and S^2, and of densities on a torus, the sum is over harmonics, of which K has
    about 6 sqrt(beta) + 20 in each direction, in O(n); otherwise over all pairs, in O(n^2 d) for
    n points.

    References
    ----------
    Gretton, Borgwardt, Rasch, Scholkopf and Smola, J. Mach. Learn. Res. 13 (2012).
    """
    a, b, shape, pairs = checked_pair("mmd", a, b)
    d = a.dimension
    pointwise = a.pointwise and b.pointwise
    curved = a.metric.factor > 0
    multipliers = _multipliers(beta, a.metric.factor) if curved else np.empty(0)
    resolved = curved and multipliers[-1] <= NEGLIGIBLE_MULTIPLIER * multipliers[0]
    if not curved or (pointwise and (d > 3 or not resolved)):
        energies = [_sum_over_pairs(a.points(i, 0), b.points(j, 0), beta) for i, j in pairs]
        return _rooted(np.array(energies), shape, "all pairs", PAIR_SUM_ROUNDING)
    wanted = f"<= about 1e5, as mmd of densities is summed over {MAX_DEGREE} harmonics at most"
    require("beta", beta, wanted, resolved)
    space, first, second = _in_harmonics(a, b, len(multipliers) - 1, "mmd")
    waves = np.abs(space.waves) if isinstance(space, Torus) else space.degrees[:, None]
    weights = multipliers[waves].prod(axis=1) * (space.degrees > 0) * space.parseval
    squares = np.abs(first[pairs[:, 0]] - second[pairs[:, 1]]) ** 2 @ weights
    return _rooted(squares, shape, "harmonics", SQUARE_ROUNDING)


def _multipliers(beta: float, dimension: int) -> np.ndarray:
    """The multipliers of K that are not negligible."""
    degree = 16
    while True:
        multipliers = exponential_multipliers(beta, degree, dimension)
        if multipliers[-1] <= NEGLIGIBLE_MULTIPLIER * multipliers[0] or degree == MAX_DEGREE:
            return multipliers
        degree *= 2


def _sum_over_pairs(a: WeightedPoints, b: WeightedPoints, beta: float) -> float:
    """int int K d(a - b) d(a - b) for points."""
    x = np.concatenate([a.x, b.x])
    masses = np.concatenate([a.masses, -b.masses])
    total = 0.0
    for begin in range(0, len(x), ROWS_PER_BLOCK):
        rows = slice(begin, begin + ROWS_PER_BLOCK)
        squares = Metric(x.shape[1], 0).pairwise(x[rows], x, 2)
        total += masses[rows] @ np.exp(-beta / 2 * squares) @ masses
    return float(total)


# Sums over harmonics ------------------------------------------------------------------------


def _in_harmonics(
    a: Measure, b: Measure, degree: int, name: str
) -> tuple[Space, np.ndarray, np.ndarray]:
    """A space and the coefficients of both, (members, modes): axisymmetric or full harmonics."""
    d = a.dimension
    if d > 2 and a.axisymmetric and b.axisymmetric:
        return Zonal(d, degree), a.axial_coefficients(degree), b.axial_coefficients(degree)
    space = a.metric.harmonics(name, degree)
    return space, a.coefficients(space), b.coefficients(space)


def _rooted(
    squares: np.ndarray, shape: tuple[int, ...], method: str, rounding: np.ndarray | float
) -> Distance:
    """The distance from its squares, which rounding may have made slightly negative."""
    nonnegative = np.maximum(squares, 0.0).reshape(shape)
    value = np.sqrt(nonnegative)
    return Distance(value, np.sqrt(nonnegative + rounding) - value + NUFFT_ERROR * value, method)


def _beyond_the_degree(
    states: tuple[Measure, Measure], series: tuple[np.ndarray, np.ndarray], weights: np.ndarray,
    pairs: np.ndarray, s: int,
) -> np.ndarray:  # fmt: skip
    """The contribution of harmonics beyond the degree of the series, for points, (pairs,)."""
    signed = [
        (*state.angles_on_circle(), coefficients, sign, members)
        for state, coefficients, sign, members in zip(states, series, (1, -1), pairs.T, strict=True)
        if isinstance(state, PointMeasure)
    ]
    result = np.empty(len(pairs))
    for k in range(len(pairs)):
        angles = np.concatenate([positions[i[k]] for positions, _, _, _, i in signed]) / (2 * pi)
        masses = np.concatenate([sign * m[i[k]] for _, m, _, sign, i in signed])
        truncated = np.sum([sign * c[i[k]] for _, _, c, sign, i in signed], axis=0)
        order = np.argsort(angles)
        energy = _energy_of_pairs(angles[order], masses[order], np.array(BERNOULLI[s]))
        scale = (-1) ** (s + 1) * (2 * pi) ** (2 * s) / factorial(2 * s)
        result[k] = scale * energy - np.abs(truncated) ** 2 @ weights
    return result


@njit(cache=True, nogil=True)
def _energy_of_pairs(x: np.ndarray, masses: np.ndarray, kernel: np.ndarray) -> float:
    """sum_ij masses_i masses_j kernel(|x_i - x_j|) for increasing x.

    moments_q = sum of masses_j (x - x_j)^q over the points x_j before x, updated from x to x.
    """
    size = kernel.size
    moments, shifted = np.zeros(size), np.zeros(size)
    total = last = 0.0
    for i in range(x.size):
        step, last = x[i] - last, x[i]
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


# Up to rotation -----------------------------------------------------------------------------


def aligning_angles(series: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The angle at which f = Re sum_k g_k e^{-ik angle} is largest, and an error bound of that f.

    g is (members, K + 1), the results are (members,).

    On a grid of spacing h the largest value is below the maximum by at most (K h)^2/8 sum |g_k|,
    since |f''| <= K^2 sum |g_k|. The 4 largest local maxima are refined by Newton steps. The fifth
    plus that bound is an upper bound of all others.
    """
    series, period = _over_a_period(series)
    degree = series.shape[1] - 1
    if degree == 0:
        return np.zeros(len(series)), np.zeros(len(series))
    points = POINTS_PER_WAVE * degree
    values = np.fft.fft(series, points, axis=1).real
    peaks = (values >= np.roll(values, 1, axis=1)) & (values >= np.roll(values, -1, axis=1))
    ranked = np.where(peaks, values, -np.inf)
    best = np.argpartition(-ranked, REFINED_MAXIMA, axis=1)[:, : REFINED_MAXIMA + 1]
    best = np.take_along_axis(best, np.argsort(-np.take_along_axis(ranked, best, 1), axis=1), 1)
    heights = np.take_along_axis(ranked, best, axis=1)
    angles = _refined(series, 2 * np.pi / points * best[:, :REFINED_MAXIMA])
    refined = _value(series, angles)
    rows, top = np.arange(len(series)), refined.argmax(axis=1)
    slack = (2 * np.pi / POINTS_PER_WAVE) ** 2 / 8 * np.abs(series).sum(axis=1)
    return angles[rows, top] / period, np.maximum(
        heights[:, REFINED_MAXIMA] + slack - refined[rows, top], 0.0
    )


def _over_a_period(series: np.ndarray) -> tuple[np.ndarray, int]:
    """The series over one period of f, and the number of periods: the divisor of all degrees."""
    sizes = np.abs(series)
    present = np.flatnonzero(np.any(sizes[:, 1:] > PRODUCT_ROUNDING * sizes.max(), axis=0)) + 1
    period = int(np.gcd.reduce(present)) if present.size else 0
    return (series[:, ::period], period) if period else (series[:, :1], 1)


def _value(series: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """f at angles (members, angles)."""
    k = np.arange(series.shape[1])
    return (series[:, None] * np.exp(-1j * k * angles[..., None])).sum(axis=2).real


def _refined(series: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """The angles after Newton steps for f' = 0."""
    k = np.arange(series.shape[1])
    for _ in range(NEWTON_STEPS):
        waves = series[:, None] * np.exp(-1j * k * angles[..., None])
        first, second = (waves * -1j * k).sum(axis=2).real, -(waves * k**2).sum(axis=2).real
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(second < 0, -first / second, 0.0)
        bound = np.pi / k[-1] / POINTS_PER_WAVE
        angles = angles + np.clip(step, -bound, bound)
    return angles
