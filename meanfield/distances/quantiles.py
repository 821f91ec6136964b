"""Optimal transport by quantile functions: on an interval, and around the circle.

A measure on the line is described by its distribution function, or by the inverse of that, its
quantile function. Both are one increasing curve (angle, mass below the angle). The curve is cut
into pieces, each with a parameter t from -1 to 1:

    angle = place + width t,   mass below = level + rise_0 + rise_1 t + ... + rise_14 t^14.

A point with mass is a piece of width 0, on which the mass rises to the level of the next piece. A
density has about four pieces for its shortest wave, and agrees with the polynomials to rounding.

A curve is an array with one row for each piece and a last row for the level 1. Its columns are
level, place, width, rise_0, rise_1, ...; curves of points end with the column `width`.

On an interval the optimal plan keeps the order, and W_p^p = int_0^1 |X(s) - Y(s)|^p ds with the
quantile functions X and Y. Around the circle they are continued by X(s + 1) = X(s) + 2 pi, and one
number is left to be found, the shift of least cost:

    W_p^p = min over shifts of C(shift) = int_0^1 |X(s) - Y(s - shift)|^p ds.

C is convex: two tangents give a lower bound, which is the certificate of the result. Between the
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

from ..core.errors import MeanfieldError
from ..lowlevel.compilation import njit

LEVEL, PLACE, WIDTH, RISE = range(4)  # columns of a curve
CHEBYSHEV = 14  # nodes of the polynomial on one piece
ROUGH, NOISE = 1e-15, 1e-11  # relative size of its last coefficients: resolved; rounding error
MOST = 2**16  # pieces
SIZE = 12  # nodes of a quadrature rule
ROUNDING, RELATIVE = 1e-15, 1e-15  # of levels, and of distances
SLIVER = 1e-15  # of mass: rounding errors of levels
CONVERGED = 1e-11  # a step of Newton's method this small leaves an error of its square
COST, SLOPE = 0, 1  # integrands: the power p, and p - 1
SMOOTH, LEFT, RIGHT, BRIEF = 0, 1, 2, 4  # zeros at neither end, left, right, both; a short interval
NEGLIGIBLE = 1e-12  # distance of a zero from an interval, relative to its length
SHORT, FEW = 0.01, 4  # on intervals of t this short, this number of nodes is enough
NODES, WEIGHTS = 0, 1
STEPS = 200  # of the search for the best shift
CLOSE = 1e-15  # relative gap between the cost and its lower bound
NARROW = 4e-16  # length of an interval of shifts
BOTH_SIDES = 1e-9  # distance from a zero of the slope at which its other side is evaluated


# Curves -------------------------------------------------------------------------------------


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
                f"degree {CHEBYSHEV - 1} differ from it by {finer:.1e}. Use a smoother density, or "
                "a lower degree."
            )
        pieces, tail = 2 * pieces, finer
        series = _series(density, length, pieces)
    half = length / pieces / 2
    curves = np.zeros((len(series), pieces + 1, RISE + CHEBYSHEV + 1))
    curves[:, :-1, PLACE], curves[:, :-1, WIDTH] = half * (2 * np.arange(pieces) + 1), half
    integrals = chebyshev.chebint(series, lbnd=-1, axis=2)
    curves[:, :-1, RISE:] = half * (integrals @ _powers(CHEBYSHEV + 1))
    np.cumsum(curves[:, :-1, RISE:].sum(axis=2), axis=1, out=curves[:, 1:, LEVEL])
    mass = curves[:, -1:, LEVEL, None]
    for columns in (slice(LEVEL, PLACE), slice(RISE, None)):
        curves[:, :, columns] /= mass
    return curves


def _series(density, length: float, pieces: int) -> np.ndarray:
    """Chebyshev coefficients on each piece, (members, pieces, CHEBYSHEV)."""
    t = chebyshev.chebpts1(CHEBYSHEV)
    angles = length / pieces * (np.arange(pieces)[:, None] + (1 + t) / 2)
    values = density(angles.ravel())
    inverse = np.linalg.inv(chebyshev.chebvander(t, CHEBYSHEV - 1))
    return values.reshape(len(values), pieces, CHEBYSHEV) @ inverse.T


def _tail(series: np.ndarray) -> float:
    """The last coefficients relative to the first ones."""
    return float(np.abs(series[..., -2:]).max() / np.abs(series[..., 0]).max())


def _powers(size: int) -> np.ndarray:
    """The coefficients of T_0, T_1, ... in powers of t, a row for each."""
    rows = [chebyshev.cheb2poly(row) for row in np.eye(size)]
    return np.stack([np.pad(row, (0, size - row.size)) for row in rows])


# Transport ----------------------------------------------------------------------------------


def _rules(p: float, size: int) -> np.ndarray:
    """Nodes on [-1, 1] and weights for all integrands, ends and lengths: (2, 5, 2, size)."""
    from scipy.special import roots_jacobi

    rules = np.zeros((2, 5, 2, size))
    for power, kind in zip((p, p - 1), rules, strict=True):
        for rule, (left, right) in zip(kind, ((0, 0), (1, 0), (0, 1), (1, 1)), strict=False):
            x, w = roots_jacobi(size, right * power, left * power)
            rule[:] = x, w / ((1 + x) ** left * (1 - x) ** right) ** power
        kind[BRIEF, :, :FEW] = roots_jacobi(FEW, 0, 0)
    return rules


def transport_around_circle(X, Y, p: float, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """W_p and its error, (pairs,) each, between curves around the circle.

    Pair k is of the curves X[i] and Y[j] with (i, j) = pairs[k].
    """
    least, bounds = transport_costs_around_circle(X, Y, p, pairs)
    return _rooted(least, bounds, p, pi, X.shape[1] + Y.shape[1])


def transport_costs_around_circle(
    X, Y, p: float, pairs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """W_p^p and a lower bound, (pairs,) each, between curves around the circle."""
    X, Y, pairs = _ordered(X, Y, pairs)
    shifts, costs, bounds = _best_shifts(X, Y, pairs, p, 2 * pi, _rules(p, SIZE))
    if Y.shape[2] > RISE:  # where quantiles are not smooth a finer rule shows it
        finer = _costs(X, Y, pairs, shifts, p, 2 * pi, _rules(p, 2 * SIZE))
        return finer, bounds - np.abs(finer - costs)
    return costs, bounds


def transport_on_interval(
    X, Y, p: float, pairs: np.ndarray, length: float
) -> tuple[np.ndarray, np.ndarray]:
    """W_p and its error, (pairs,) each, between curves on the interval [0, length]."""
    X, Y, pairs = _ordered(X, Y, pairs)
    costs = _costs(X, Y, pairs, np.zeros(len(pairs)), p, 0.0, _rules(p, SIZE))
    return _rooted(costs, costs, p, length, X.shape[1] + Y.shape[1])


def _rooted(costs: np.ndarray, bounds: np.ndarray, p: float, longest: float, pieces: int):
    """Distances and their errors: rounding misplaces a little mass, by `longest` at most.

    That mass is 1e-15 times the root of the number of pieces, since the errors of their levels have
    either sign.
    """
    rounding = ROUNDING * pieces**0.5
    costs = np.minimum(np.maximum(costs / longest**p, 0.0), 1.0)
    bounds = np.minimum(bounds / longest**p, costs)
    distance = costs ** (1 / p)
    least, most = np.maximum(bounds - rounding, 0.0) ** (1 / p), (costs + rounding) ** (1 / p)
    error = np.maximum(distance - least, most - distance) + RELATIVE * distance
    return longest * distance, longest * error


def _ordered(X, Y, pairs):
    """The curves, in the order in which they are integrated accurately.

    A density comes before points, and of two densities the one with the smaller minimum: the
    quantile function of the second is integrated, and is not smooth where its density is small.
    """
    first = X.shape[2] >= Y.shape[2]
    if X.shape[2] == Y.shape[2] > RISE:
        least = [(np.diff(C[:, :, LEVEL]) / C[:, :-1, WIDTH]).min() for C in (X, Y)]
        first = least[0] <= least[1]
    return (X, Y, pairs) if first else (Y, X, np.ascontiguousarray(pairs[:, ::-1]))


@njit(cache=True, nogil=True, error_model="numpy")
def _best_shift(X, Y, p, period, rules):
    """The shift of least cost, that cost, and a lower bound: where two tangents meet.

    Two steps of three look for the zero of the slope (Chandrupatla, Adv. Eng. Softw. 28 (1997)).
    The third goes to the intersection of the tangents, which is the minimum of a cost with corners.
    """
    new, other = _near_minimum(X, Y, p, period)
    old = other
    cost_other, slope_other = _cost(X, Y, other, p, period, rules)
    cost_new, slope_new = _cost(X, Y, new, p, period, rules)
    slope_old = slope_other
    best, least, bound = new, cost_new, 0.0
    if cost_other < least:
        best, least = other, cost_other
    for step in range(STEPS):
        falling = slope_new - slope_other
        meeting = (cost_other - cost_new + slope_new * new - slope_other * other) / falling
        bound = max(cost_new + slope_new * (meeting - new), 0.0)
        if least - bound <= CLOSE * least or abs(other - new) <= NARROW:
            break
        shift = meeting
        if step % 3 < 2:
            shift = _trial(old, new, other, slope_old, slope_new, slope_other)
        if not min(new, other) < shift < max(new, other):
            shift = (new + other) / 2
        cost, slope = _cost(X, Y, shift, p, period, rules)
        if cost < least:
            best, least = shift, cost
        if slope == 0:
            return shift, cost, cost
        old, slope_old = new, slope_new
        if slope * slope_new < 0:
            old, slope_old = other, slope_other
            other, cost_other, slope_other = new, cost_new, slope_new
        new, cost_new, slope_new = shift, cost, slope
    return best, least, min(bound, least)


@njit(cache=True, nogil=True, error_model="numpy")
def _near_minimum(X, Y, p, period):
    """An interval of shifts around the best one, which is narrow for a density and points."""
    new, other = -1.0, 1.0
    if X.shape[1] == RISE or Y.shape[1] > RISE:
        return new, other
    f_new = _slope_from_points(X, Y, new, p, period)
    f_other = _slope_from_points(X, Y, other, p, period)
    old, f_old = other, f_other
    for _ in range(STEPS):
        if abs(other - new) <= 4 * BOTH_SIDES or f_new == 0:
            break
        shift = _trial(old, new, other, f_old, f_new, f_other)
        slope = _slope_from_points(X, Y, shift, p, period)
        old, f_old = new, f_new
        if slope * f_new < 0:
            old, f_old = other, f_other
            other, f_other = new, f_new
        new, f_new = shift, slope
    return new, other


@njit(cache=True, nogil=True, error_model="numpy")
def _trial(old, new, other, f_old, f_new, f_other):
    """Where the zero of f may be: inverse quadratic interpolation, or bisection."""
    x = (new - other) / (old - other)
    f = (f_new - f_other) / (f_old - f_other)
    part = 0.5
    if f * f < x and (1 - f) ** 2 < 1 - x:
        part = f_new / (f_other - f_new) * f_old / (f_other - f_old)
        away = (old - new) / (other - new)
        part += away * f_new / (f_old - f_new) * f_other / (f_old - f_other)
    margin = min(BOTH_SIDES / abs(other - new), 0.5)
    return new + min(max(part, margin), 1 - margin) * (other - new)


@njit(cache=True, nogil=True, error_model="numpy")
def _best_shifts(X, Y, members, p, period, rules):
    """The results of `_best_shift`, (pairs,) each, for X[i], Y[j], (i, j) = members[pair]."""
    found = np.empty((3, len(members)))
    for pair in range(len(members)):
        i, j = members[pair]
        shift, cost, bound = _best_shift(X[i], Y[j], p, period, rules)
        found[0, pair], found[1, pair], found[2, pair] = shift, cost, bound
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def _costs(X, Y, members, shifts, p, period, rules):
    """The costs (pairs,) at given shifts; on an interval the shift is 0."""
    found = np.empty(len(members))
    for pair in range(len(members)):
        i, j = members[pair]
        found[pair] = _cost(X[i], Y[j], shifts[pair], p, period, rules)[0]
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def _slope_from_points(X, Y, shift, p, period):
    """C'(shift) of a density X and points Y, in a third of the time of `_cost`.

    It is the sum over the points y of |X - y|^p at the upper end of their levels, less the same at
    the lower end.
    """
    count = len(Y) - 1
    turns = np.floor(-shift)
    j = min(np.searchsorted(Y[:, LEVEL], -shift - turns, side="right") - 1, count - 1)
    y, start = Y[j, PLACE] + turns * period, X[0, PLACE] - X[0, WIDTH]
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
        s, x = stop, X[i, PLACE] + X[i, WIDTH] * t
        slope += _power(x - y, p)
        j += 1
        if j == count:
            j, turns = 0, turns + 1
        y = Y[j, PLACE] + turns * period
        slope -= _power(x - y, p)
    return slope + _power(start + period - y, p)


@njit(cache=True, nogil=True, error_model="numpy")
def _cost(X, Y, shift, p, period, rules):
    """C(shift) and its derivative; X is a density if Y is."""
    smooth = X.shape[1] > RISE
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
            if smooth:
                t_until = 1.0
                if not last:
                    guess = t + (stop - s) / _density(X, i, t)
                    t_until = _inverse(X, i, stop, guess if -1 <= guess <= 1 else t)
                if t_until > t:
                    part = _stretch(X, Y, i, j, turns + shift, turns * period, t, t_until, p, rules)
                    value += part[0]
                    slope += part[1]
                    t = t_until
            elif until - s > SLIVER:
                value += (until - s) * _power(X[i, PLACE] - Y[j, PLACE] - turns * period, p)
            s = max(s, until)
            if last:
                break
            j += 1
            if j == count:
                j, turns = 0, turns + 1
        if not smooth:
            y = Y[j, PLACE] + turns * period
            after = X[i + 1, PLACE] if i + 1 < pieces else X[0, PLACE] + period
            slope += _power(after - y, p) - _power(X[i, PLACE] - y, p)
    return value, slope


@njit(cache=True, nogil=True, error_model="numpy")
def _power(x, p):
    """|x|^p."""
    if p == 2:
        return x * x
    if p == 1:
        return abs(x)
    return abs(x) ** p


@njit(cache=True, nogil=True, error_model="numpy")
def _density(X, i, t):
    """Mass per unit of t."""
    total = 0.0
    for k in range(X.shape[1] - 1, RISE, -1):
        total = total * t + (k - RISE) * X[i, k]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _inverse(X, i, level, t):
    """The point of piece i with this mass below it, by Newton's method from t."""
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
        if abs(new - t) <= CONVERGED:
            return new
        t = new
    return t


@njit(cache=True, nogil=True, error_model="numpy")
def _difference(X, Y, i, j, ahead, turned, t, guess):
    """X - Y at t of piece i of X, and the point of piece j of Y; Y is `ahead` by a mass."""
    x = X[i, PLACE] + X[i, WIDTH] * t - turned - Y[j, PLACE]
    if Y.shape[1] == RISE:
        return x, 0.0
    rise = 0.0
    for k in range(X.shape[1] - 1, RISE - 1, -1):
        rise = rise * t + X[i, k]
    other = _inverse(Y, j, X[i, LEVEL] + rise - ahead, guess)
    return x - Y[j, WIDTH] * other, other


@njit(cache=True, nogil=True, error_model="numpy")
def _stretch(X, Y, i, j, ahead, turned, begin, end, p, rules):
    """Cost and slope of an interval of t in which both curves stay on their pieces."""
    if p % 2 == 0:
        return _sum(X, Y, i, j, ahead, turned, begin, end, p, rules, SMOOTH)
    if Y.shape[1] == RISE and p % 1 != 0:
        return _graded(X, Y, i, j, ahead, turned, begin, end, p, rules)
    value = slope = 0.0
    ends, start, last = SMOOTH, begin, begin
    before, guess = _difference(X, Y, i, j, ahead, turned, begin, 0.0)
    size = 0 if Y.shape[1] == RISE else rules.shape[3]  # for a point Y the difference is monotone
    for q in range(size + 1):
        place = 1.0 if q == size else rules[COST, SMOOTH, NODES, q]
        t = begin + (end - begin) * (1 + place) / 2
        d, guess = _difference(X, Y, i, j, ahead, turned, t, guess)
        if d * before < 0:
            zero = _zero(X, Y, i, j, ahead, turned, last, t, before)
            part = _sum(X, Y, i, j, ahead, turned, start, zero, p, rules, ends + RIGHT)
            value += part[0]
            slope += part[1]
            ends, start = LEFT, zero
        last, before = t, d if d != 0 else before
    part = _sum(X, Y, i, j, ahead, turned, start, end, p, rules, ends)
    return value + part[0], slope + part[1]


@njit(cache=True, nogil=True, error_model="numpy")
def _graded(X, Y, i, j, ahead, turned, begin, end, p, rules):
    """The same for a point Y and a power that is not smooth at its place, `zero` in t.

    Away from the zero each interval is no longer than three times its distance from the zero.
    """
    zero = _zero(X, Y, i, j, ahead, turned, begin, end, 0.0)
    value = slope = 0.0
    for side, ends in ((-1.0, RIGHT), (1.0, LEFT)):
        near = max(begin - zero if side > 0 else zero - end, 0.0)
        far = end - zero if side > 0 else zero - begin
        if near > NEGLIGIBLE * far:
            ends = SMOOTH
        while near < far:
            until = far if ends != SMOOTH else min(4 * near, far)
            low, high = zero + side * near, zero + side * until
            part = _sum(X, Y, i, j, ahead, turned, min(low, high), max(low, high), p, rules, ends)
            value += part[0]
            slope += part[1]
            near = until
    return value, slope


@njit(cache=True, nogil=True, error_model="numpy")
def _zero(X, Y, i, j, ahead, turned, low, high, below):
    """The zero of the difference, which has the sign of `below` at low and not at high."""
    if Y.shape[1] == RISE:
        return (turned + Y[j, PLACE] - X[i, PLACE]) / X[i, WIDTH]
    guess = 0.0
    for _ in range(60):
        t = (low + high) / 2
        d, guess = _difference(X, Y, i, j, ahead, turned, t, guess)
        if d * below > 0:
            low = t
        else:
            high = t
    return (low + high) / 2


@njit(cache=True, nogil=True, error_model="numpy")
def _sum(X, Y, i, j, ahead, turned, begin, end, p, rules, ends):
    """Cost and slope of an interval without a change of sign."""
    middle, half = (begin + end) / 2, (end - begin) / 2
    size = rules.shape[3]
    if ends == SMOOTH and half < SHORT:
        ends, size = BRIEF, FEW
    value = guess = 0.0
    for q in range(size):
        t = middle + half * rules[COST, ends, NODES, q]
        d, guess = _difference(X, Y, i, j, ahead, turned, t, guess)
        value += rules[COST, ends, WEIGHTS, q] * _power(d, p) * _density(X, i, t)
    if Y.shape[1] == RISE:
        first, guess = _difference(X, Y, i, j, ahead, turned, begin, guess)
        last, guess = _difference(X, Y, i, j, ahead, turned, end, guess)
        return half * value, _power(last, p) - _power(first, p)
    slope = 0.0
    for q in range(size):
        t = middle + half * rules[SLOPE, ends, NODES, q]
        d, guess = _difference(X, Y, i, j, ahead, turned, t, guess)
        slope += rules[SLOPE, ends, WEIGHTS, q] * np.copysign(_power(d, p - 1), d)
    return half * value, half * slope * p * X[i, WIDTH]
