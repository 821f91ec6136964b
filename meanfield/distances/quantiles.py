"""Optimal transport by quantile functions: on an interval, and around the circle.

A measure on the line is described by its distribution function, or by its inverse, the quantile
function. Both are the same increasing curve (angle, mass below the angle). The curve is divided
into pieces, each with a parameter t from -1 to 1:

    angle = centre + width t,   mass below = level + rise_0 + rise_1 t + ... + rise_14 t^14.

A point with mass is a piece of width 0, on which the mass rises to the level of the next piece. A
density has about four pieces for its shortest wave, and agrees with the polynomials to rounding.

A curve is an array with one row for each piece and a last row for the level 1. Its columns are
level, centre, width, rise_0, rise_1, ...; curves of points end with the column `width`.

On an interval the optimal plan keeps the order, and W_p^p = int_0^1 |X(s) - Y(s)|^p ds with the
quantile functions X and Y. Around the circle they are continued by X(s + 1) = X(s) + 2 pi, and one
number is left, the shift of least cost:

    W_p^p = min over shifts of C(shift) = int_0^1 |X(s) - Y(s - shift)|^p ds.

C is convex, so two tangents give a lower bound, which certifies the result. Between the
levels at which a piece of either curve begins, the integrand is smooth except where the difference
changes its sign; the interval is cut there, and Gauss-Jacobi rules take the power.

References
----------
Delon, Salomon and Sobolevski, SIAM J. Appl. Math. 70 (2010).
"""

from collections.abc import Callable
from math import pi

import numpy as np
from numpy.polynomial import chebyshev

from ..core.checks import require
from ..core.errors import MeanfieldError
from ..lowlevel.compilation import njit

LEVEL, CENTRE, WIDTH, RISE = range(4)  # columns of a curve
CHEBYSHEV_NODES = 14  # nodes of the polynomial on one piece
RESOLVED_SERIES, ROUNDING_TAIL = 1e-15, 1e-11  # relative size of the last coefficients
MAX_PIECES = 2**16  # of a density
QUADRATURE_NODES = 12  # nodes of a quadrature rule
LEVEL_ROUNDING, DISTANCE_ROUNDING = 1e-15, 1e-15  # the latter relative
NEGLIGIBLE_MASS = 1e-15  # rounding error of a level
INVERSE_TOLERANCE = 1e-11  # of a Newton step, which leaves an error of its square
COST, SLOPE = 0, 1  # integrands: the power p, and p - 1
SMOOTH, LEFT, RIGHT, SHORT_RULE = 0, 1, 2, 4  # rules: zeros at no end, left, right (3: both); short
NEGLIGIBLE_GAP = 1e-12  # distance of a zero from an interval, relative to its length
SHORT_INTERVAL, SHORT_NODES = 0.01, 4  # on intervals of t this short, 4 nodes suffice
NODES_ROW, WEIGHTS_ROW = 0, 1
MAX_SHIFTS = 200  # evaluations in the search for the best shift
COST_TOLERANCE = 1e-15  # relative gap between the cost and its lower bound
SHIFT_TOLERANCE = 4e-16
SIDE_STEP = 1e-9  # distance from a zero of the slope at which its other side is evaluated


# Curves -------------------------------------------------------------------------------------


def curves_of_points(angles: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Curves (members, n + 1, 3) of sum_j masses_j delta_{angles_j}.

    Angles and masses are (members, n); the angles may be in any order.
    """
    order = np.argsort(angles, axis=1)
    curves = np.zeros((len(angles), angles.shape[1] + 1, RISE))
    curves[:, :, LEVEL] = levels_of(np.take_along_axis(masses, order, axis=1))
    curves[:, :-1, CENTRE] = np.take_along_axis(angles, order, axis=1)
    return curves


@njit(cache=True, nogil=True)
def levels_of(masses: np.ndarray) -> np.ndarray:
    """Cumulative sums (members, n + 1) of each row, divided by its total, to rounding.

    The sums are compensated (Neumaier), so that the levels of a measure do not depend on how mass
    is split among coincident points.
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
    while (finer := _tail(series)) > RESOLVED_SERIES and (
        finer < tail / 2 or finer > ROUNDING_TAIL
    ):
        expected = f"resolved by {MAX_PIECES} polynomials of degree {CHEBYSHEV_NODES - 1}"
        fits, advice = pieces < MAX_PIECES, "Use a smoother density, or a lower degree."
        require("The error of quantiles", finer, expected, fits, MeanfieldError, advice)
        pieces, tail = 2 * pieces, finer
        series = _series(density, length, pieces)
    half = length / pieces / 2
    curves = np.zeros((len(series), pieces + 1, RISE + CHEBYSHEV_NODES + 1))
    curves[:, :-1, CENTRE], curves[:, :-1, WIDTH] = half * (2 * np.arange(pieces) + 1), half
    integrals = chebyshev.chebint(series, lbnd=-1, axis=2)
    curves[:, :-1, RISE:] = half * (integrals @ _powers(CHEBYSHEV_NODES + 1))
    np.cumsum(curves[:, :-1, RISE:].sum(axis=2), axis=1, out=curves[:, 1:, LEVEL])
    mass = curves[:, -1:, LEVEL, None]
    for columns in (slice(LEVEL, CENTRE), slice(RISE, None)):
        curves[:, :, columns] /= mass
    return curves


def _series(density: Callable[[np.ndarray], np.ndarray], length: float, pieces: int) -> np.ndarray:
    """Chebyshev coefficients on each piece, (members, pieces, CHEBYSHEV_NODES)."""
    t = chebyshev.chebpts1(CHEBYSHEV_NODES)
    angles = length / pieces * (np.arange(pieces)[:, None] + (1 + t) / 2)
    values = density(angles.ravel())
    inverse = np.linalg.inv(chebyshev.chebvander(t, CHEBYSHEV_NODES - 1))
    return values.reshape(len(values), pieces, CHEBYSHEV_NODES) @ inverse.T


def _tail(series: np.ndarray) -> float:
    """The size of the last coefficients relative to the first."""
    return float(np.abs(series[..., -2:]).max() / np.abs(series[..., 0]).max())


def _powers(size: int) -> np.ndarray:
    """The Chebyshev polynomials T_0, T_1, ... in powers of t, one row each."""
    rows = [chebyshev.cheb2poly(row) for row in np.eye(size)]
    return np.stack([np.pad(row, (0, size - row.size)) for row in rows])


# Transport ----------------------------------------------------------------------------------


def _rules(p: float, size: int) -> np.ndarray:
    """Quadrature rules on [-1, 1] by integrand and kind of interval: (2, 5, 2, size).

    The first axis is COST or SLOPE, the second SMOOTH, LEFT, RIGHT, LEFT + RIGHT or SHORT_RULE, the
    third nodes or weights.
    """
    from scipy.special import roots_jacobi

    rules = np.zeros((2, 5, 2, size))
    for power, kind in zip((p, p - 1), rules, strict=True):
        for rule, (left, right) in zip(kind, ((0, 0), (1, 0), (0, 1), (1, 1)), strict=False):
            x, w = roots_jacobi(size, right * power, left * power)
            rule[:] = x, w / ((1 + x) ** left * (1 - x) ** right) ** power
        kind[SHORT_RULE, :, :SHORT_NODES] = roots_jacobi(SHORT_NODES, 0, 0)
    return rules


def transport_around_circle(
    X: np.ndarray, Y: np.ndarray, p: float, pairs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """W_p and its error, (pairs,) each, between curves around the circle.

    Pair k consists of the curves X[i] and Y[j] with (i, j) = pairs[k].
    """
    costs, bounds = transport_costs_around_circle(X, Y, p, pairs)
    return _rooted(costs, bounds, p, pi, X.shape[1] + Y.shape[1])


def transport_costs_around_circle(
    X: np.ndarray, Y: np.ndarray, p: float, pairs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """W_p^p and a lower bound, (pairs,) each, between curves around the circle."""
    X, Y, pairs = _by_accuracy(X, Y, pairs)
    shifts, costs, bounds = _best_shifts(X, Y, pairs, p, 2 * pi, _rules(p, QUADRATURE_NODES))
    if Y.shape[2] > RISE:  # a finer rule estimates the error where quantiles are not smooth
        finer = _costs(X, Y, pairs, shifts, p, 2 * pi, _rules(p, 2 * QUADRATURE_NODES))
        return finer, bounds - np.abs(finer - costs)
    return costs, bounds


def transport_on_interval(
    X: np.ndarray, Y: np.ndarray, p: float, pairs: np.ndarray, length: float
) -> tuple[np.ndarray, np.ndarray]:
    """W_p and its error, (pairs,) each, between curves on the interval [0, length]."""
    X, Y, pairs = _by_accuracy(X, Y, pairs)
    costs = _costs(X, Y, pairs, np.zeros(len(pairs)), p, 0.0, _rules(p, QUADRATURE_NODES))
    return _rooted(costs, costs, p, length, X.shape[1] + Y.shape[1])


def _rooted(
    costs: np.ndarray, bounds: np.ndarray, p: float, longest: float, pieces: int
) -> tuple[np.ndarray, np.ndarray]:
    """Distances and their errors: rounding moves a little mass by at most `longest`.

    That mass is 1e-15 times the root of the number of pieces, since errors of levels have either
    sign.
    """
    rounding = LEVEL_ROUNDING * pieces**0.5
    costs = np.minimum(np.maximum(costs / longest**p, 0.0), 1.0)
    bounds = np.minimum(bounds / longest**p, costs)
    distance = costs ** (1 / p)
    low, high = np.maximum(bounds - rounding, 0.0) ** (1 / p), (costs + rounding) ** (1 / p)
    error = np.maximum(distance - low, high - distance) + DISTANCE_ROUNDING * distance
    return longest * distance, longest * error


def _by_accuracy(
    X: np.ndarray, Y: np.ndarray, pairs: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The curves, in the order in which they are integrated accurately.

    A density precedes points, and of two densities the one with the smaller minimum comes first:
    the quantile function of the second is integrated, and is not smooth where its density is small.
    """
    first = X.shape[2] >= Y.shape[2]
    if X.shape[2] == Y.shape[2] > RISE:
        minima = [(np.diff(C[:, :, LEVEL]) / C[:, :-1, WIDTH]).min() for C in (X, Y)]
        first = minima[0] <= minima[1]
    return (X, Y, pairs) if first else (Y, X, np.ascontiguousarray(pairs[:, ::-1]))


@njit(cache=True, nogil=True)
def _best_shift(
    X: np.ndarray, Y: np.ndarray, p: float, period: float, rules: np.ndarray
) -> tuple[float, float, float]:
    """The shift of least cost, its cost, and a lower bound: the intersection of two tangents.

    Two steps of three look for the zero of the slope (Chandrupatla, Adv. Eng. Softw. 28 (1997)).
    The third goes to the intersection of the tangents, which is the minimum of a cost with corners.
    """
    new, end = _near_minimum(X, Y, p, period)
    old = end
    cost_other, slope_other = _cost(X, Y, end, p, period, rules)
    cost_new, slope_new = _cost(X, Y, new, p, period, rules)
    slope_old = slope_other
    best, least, lower = new, cost_new, 0.0
    if cost_other < least:
        best, least = end, cost_other
    for step in range(MAX_SHIFTS):
        rise = slope_new - slope_other
        crossing = (cost_other - cost_new + slope_new * new - slope_other * end) / rise
        lower = max(cost_new + slope_new * (crossing - new), 0.0)
        if least - lower <= COST_TOLERANCE * least or abs(end - new) <= SHIFT_TOLERANCE:
            break
        shift = crossing
        if step % 3 < 2:
            shift = _trial(old, new, end, slope_old, slope_new, slope_other)
        if not min(new, end) < shift < max(new, end):
            shift = (new + end) / 2
        cost, slope = _cost(X, Y, shift, p, period, rules)
        if cost < least:
            best, least = shift, cost
        if slope == 0:
            return shift, cost, cost
        old, slope_old = new, slope_new
        if slope * slope_new < 0:
            old, slope_old = end, slope_other
            end, cost_other, slope_other = new, cost_new, slope_new
        new, cost_new, slope_new = shift, cost, slope
    return best, least, min(lower, least)


@njit(cache=True, nogil=True)
def _near_minimum(X: np.ndarray, Y: np.ndarray, p: float, period: float) -> tuple[float, float]:
    """An interval of shifts that contains the best one; it is narrow for a density and points."""
    new, end = -1.0, 1.0
    if X.shape[1] == RISE or Y.shape[1] > RISE:
        return new, end
    f_new = _slope_from_points(X, Y, new, p, period)
    f_other = _slope_from_points(X, Y, end, p, period)
    old, f_old = end, f_other
    for _ in range(MAX_SHIFTS):
        if abs(end - new) <= 4 * SIDE_STEP or f_new == 0:
            break
        shift = _trial(old, new, end, f_old, f_new, f_other)
        slope = _slope_from_points(X, Y, shift, p, period)
        old, f_old = new, f_new
        if slope * f_new < 0:
            old, f_old = end, f_other
            end, f_other = new, f_new
        new, f_new = shift, slope
    return new, end


@njit(cache=True, nogil=True)
def _trial(old: float, new: float, end: float, f_old: float, f_new: float, f_other: float) -> float:
    """The next trial for a zero of f, by inverse quadratic interpolation or bisection."""
    x = (new - end) / (old - end)
    f = (f_new - f_other) / (f_old - f_other)
    part = 0.5
    if f * f < x and (1 - f) ** 2 < 1 - x:
        part = f_new / (f_other - f_new) * f_old / (f_other - f_old)
        ratio = (old - new) / (end - new)
        part += ratio * f_new / (f_old - f_new) * f_other / (f_old - f_other)
    margin = min(SIDE_STEP / abs(end - new), 0.5)
    return new + min(max(part, margin), 1 - margin) * (end - new)


@njit(cache=True, nogil=True)
def _best_shifts(
    X: np.ndarray, Y: np.ndarray, pairs: np.ndarray, p: float, period: float, rules: np.ndarray
) -> np.ndarray:
    """`_best_shift` of X[i], Y[j] for each (i, j) = pairs[k]: shifts, costs, bounds."""
    results = np.empty((3, len(pairs)))
    for k in range(len(pairs)):
        i, j = pairs[k]
        results[0, k], results[1, k], results[2, k] = _best_shift(X[i], Y[j], p, period, rules)
    return results


@njit(cache=True, nogil=True)
def _costs(
    X: np.ndarray, Y: np.ndarray, pairs: np.ndarray, shifts: np.ndarray, p: float, period: float,
    rules: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """The costs (pairs,) at these shifts; on an interval the shift is 0."""
    results = np.empty(len(pairs))
    for k in range(len(pairs)):
        results[k] = _cost(X[pairs[k, 0]], Y[pairs[k, 1]], shifts[k], p, period, rules)[0]
    return results


@njit(cache=True, nogil=True)
def _slope_from_points(
    X: np.ndarray, Y: np.ndarray, shift: float, p: float, period: float
) -> float:
    """C'(shift) of a density X and points Y, in a third of the time of `_cost`.

    It is the sum over the points y of |X - y|^p at the upper end of their levels minus |X - y|^p at
    the lower end.
    """
    count = len(Y) - 1
    turns = np.floor(-shift)
    j = min(np.searchsorted(Y[:, LEVEL], -shift - turns, side="right") - 1, count - 1)
    y, start = Y[j, CENTRE] + turns * period, X[0, CENTRE] - X[0, WIDTH]
    slope, i, s, t = -_power(start - y, p), 0, 0.0, -1.0
    for _ in range(count):
        stop = Y[j + 1, LEVEL] + turns + shift
        if stop > 1:
            break
        while stop > X[i + 1, LEVEL] and i + 2 < len(X):
            i, t = i + 1, -1.0
            s = X[i, LEVEL]
        guess = t + (stop - s) / _density(X, i, t)
        t = _inverse(X, i, stop, guess if -1 <= guess <= 1 else t)
        s, x = stop, X[i, CENTRE] + X[i, WIDTH] * t
        slope += _power(x - y, p)
        j += 1
        if j == count:
            j, turns = 0, turns + 1
        y = Y[j, CENTRE] + turns * period
        slope -= _power(x - y, p)
    return slope + _power(start + period - y, p)


@njit(cache=True, nogil=True)
def _cost(
    X: np.ndarray, Y: np.ndarray, shift: float, p: float, period: float, rules: np.ndarray
) -> tuple[float, float]:
    """C(shift) and its derivative; X is a density if Y is."""
    is_density = X.shape[1] > RISE
    pieces, count = len(X) - 1, len(Y) - 1
    turns = np.floor(-shift)
    j = min(np.searchsorted(Y[:, LEVEL], -shift - turns, side="right") - 1, count - 1)
    value = slope = 0.0
    for i in range(pieces):
        s, end, t = X[i, LEVEL], X[i + 1, LEVEL], -1.0
        while True:
            stop = Y[j + 1, LEVEL] + turns + shift
            last = stop > end
            until = end if last else stop
            if is_density:
                t_until = 1.0
                if not last:
                    guess = t + (stop - s) / _density(X, i, t)
                    t_until = _inverse(X, i, stop, guess if -1 <= guess <= 1 else t)
                if t_until > t:
                    part = _stretch(X, Y, i, j, turns + shift, turns * period, t, t_until, p, rules)
                    value += part[0]
                    slope += part[1]
                    t = t_until
            elif until - s > NEGLIGIBLE_MASS:
                value += (until - s) * _power(X[i, CENTRE] - Y[j, CENTRE] - turns * period, p)
            s = max(s, until)
            if last:
                break
            j += 1
            if j == count:
                j, turns = 0, turns + 1
        if not is_density:
            y = Y[j, CENTRE] + turns * period
            next_end = X[i + 1, CENTRE] if i + 1 < pieces else X[0, CENTRE] + period
            slope += _power(next_end - y, p) - _power(X[i, CENTRE] - y, p)
    return value, slope


@njit(cache=True, nogil=True)
def _power(x: float, p: float) -> float:
    """|x|^p."""
    if p == 2:
        return x * x
    if p == 1:
        return abs(x)
    return abs(x) ** p


@njit(cache=True, nogil=True)
def _density(X: np.ndarray, i: int, t: float) -> float:
    """Mass per unit of t."""
    total = 0.0
    for k in range(X.shape[1] - 1, RISE, -1):
        total = total * t + (k - RISE) * X[i, k]
    return total


@njit(cache=True, nogil=True)
def _inverse(X: np.ndarray, i: int, level: float, t: float) -> float:
    """The t of piece i at which the mass below is `level`, by Newton's method from t."""
    level -= X[i, LEVEL]
    low, high = -1.0, 1.0
    for _ in range(100):
        excess, slope = 0.0, 0.0
        for k in range(X.shape[1] - 1, RISE - 1, -1):
            slope = slope * t + excess
            excess = excess * t + X[i, k]
        excess -= level
        if excess > 0:
            high = t
        else:
            low = t
        new = t - excess / slope
        if not low <= new <= high:
            new = (low + high) / 2
        if abs(new - t) <= INVERSE_TOLERANCE:
            return new
        t = new
    return t


@njit(cache=True, nogil=True)
def _difference(
    X: np.ndarray, Y: np.ndarray, i: int, j: int, ahead: float, turned: float, t: float,
    guess: float,
) -> tuple[float, float]:  # fmt: skip
    """X - Y at t on piece i of X, and the t of piece j of Y; levels of Y are shifted by `ahead`."""
    x = X[i, CENTRE] + X[i, WIDTH] * t - turned - Y[j, CENTRE]
    if Y.shape[1] == RISE:
        return x, 0.0
    rise = 0.0
    for k in range(X.shape[1] - 1, RISE - 1, -1):
        rise = rise * t + X[i, k]
    t_of_Y = _inverse(Y, j, X[i, LEVEL] + rise - ahead, guess)
    return x - Y[j, WIDTH] * t_of_Y, t_of_Y


@njit(cache=True, nogil=True)
def _stretch(
    X: np.ndarray, Y: np.ndarray, i: int, j: int, ahead: float, turned: float, begin: float,
    end: float, p: float, rules: np.ndarray,
) -> tuple[float, float]:  # fmt: skip
    """Cost and slope of an interval of t within one piece of each curve."""
    if p % 2 == 0:
        return _sum(X, Y, i, j, ahead, turned, begin, end, p, rules, SMOOTH)
    if Y.shape[1] == RISE and p % 1 != 0:
        return _graded(X, Y, i, j, ahead, turned, begin, end, p, rules)
    value = slope = 0.0
    ends, start, t_last = SMOOTH, begin, begin
    sign, guess = _difference(X, Y, i, j, ahead, turned, begin, 0.0)
    size = 0 if Y.shape[1] == RISE else rules.shape[3]  # for a point Y the difference is monotone
    for q in range(size + 1):
        node = 1.0 if q == size else rules[COST, SMOOTH, NODES_ROW, q]
        t = begin + (end - begin) * (1 + node) / 2
        d, guess = _difference(X, Y, i, j, ahead, turned, t, guess)
        if d * sign < 0:
            zero = _zero(X, Y, i, j, ahead, turned, t_last, t, sign)
            part = _sum(X, Y, i, j, ahead, turned, start, zero, p, rules, ends + RIGHT)
            value += part[0]
            slope += part[1]
            ends, start = LEFT, zero
        t_last, sign = t, d if d != 0 else sign
    part = _sum(X, Y, i, j, ahead, turned, start, end, p, rules, ends)
    return value + part[0], slope + part[1]


@njit(cache=True, nogil=True)
def _graded(
    X: np.ndarray, Y: np.ndarray, i: int, j: int, ahead: float, turned: float, begin: float,
    end: float, p: float, rules: np.ndarray,
) -> tuple[float, float]:  # fmt: skip
    """Cost and slope for a point Y and a power that is not smooth where X = Y, at t = `zero`.

    Away from the zero each interval is at most three times as long as its distance from it.
    """
    zero = _zero(X, Y, i, j, ahead, turned, begin, end, 0.0)
    value = slope = 0.0
    for side, ends in ((-1.0, RIGHT), (1.0, LEFT)):
        distance = max(begin - zero if side > 0 else zero - end, 0.0)
        longest = end - zero if side > 0 else zero - begin
        if distance > NEGLIGIBLE_GAP * longest:
            ends = SMOOTH
        while distance < longest:
            until = longest if ends != SMOOTH else min(4 * distance, longest)
            low, high = zero + side * distance, zero + side * until
            part = _sum(X, Y, i, j, ahead, turned, min(low, high), max(low, high), p, rules, ends)
            value += part[0]
            slope += part[1]
            distance = until
    return value, slope


@njit(cache=True, nogil=True)
def _zero(
    X: np.ndarray, Y: np.ndarray, i: int, j: int, ahead: float, turned: float, low: float,
    high: float, sign: float,
) -> float:  # fmt: skip
    """The zero between `low`, where the difference has the sign of `sign`, and `high`."""
    if Y.shape[1] == RISE:
        return (turned + Y[j, CENTRE] - X[i, CENTRE]) / X[i, WIDTH]
    guess = 0.0
    for _ in range(60):
        t = (low + high) / 2
        d, guess = _difference(X, Y, i, j, ahead, turned, t, guess)
        if d * sign > 0:
            low = t
        else:
            high = t
    return (low + high) / 2


@njit(cache=True, nogil=True)
def _sum(
    X: np.ndarray, Y: np.ndarray, i: int, j: int, ahead: float, turned: float, begin: float,
    end: float, p: float, rules: np.ndarray, ends: int,
) -> tuple[float, float]:  # fmt: skip
    """Cost and slope of an interval on which X - Y does not change sign."""
    middle, half = (begin + end) / 2, (end - begin) / 2
    size = rules.shape[3]
    if ends == SMOOTH and half < SHORT_INTERVAL:
        ends, size = SHORT_RULE, SHORT_NODES
    value = guess = 0.0
    for q in range(size):
        t = middle + half * rules[COST, ends, NODES_ROW, q]
        d, guess = _difference(X, Y, i, j, ahead, turned, t, guess)
        value += rules[COST, ends, WEIGHTS_ROW, q] * _power(d, p) * _density(X, i, t)
    if Y.shape[1] == RISE:
        first, guess = _difference(X, Y, i, j, ahead, turned, begin, guess)
        last, guess = _difference(X, Y, i, j, ahead, turned, end, guess)
        return half * value, _power(last, p) - _power(first, p)
    slope = 0.0
    for q in range(size):
        t = middle + half * rules[SLOPE, ends, NODES_ROW, q]
        d, guess = _difference(X, Y, i, j, ahead, turned, t, guess)
        slope += rules[SLOPE, ends, WEIGHTS_ROW, q] * np.copysign(_power(d, p - 1), d)
    return half * value, half * slope * p * X[i, WIDTH]
