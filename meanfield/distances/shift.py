"""The cost of moving one curve of quantiles onto another that is shifted: compiled.

    C(shift) = int_0^1 |X(s) - Y(s - shift)|^p ds

with the quantile functions X and Y, on the circle continued by X(s + 1) = X(s) + 2 pi. C is convex.
Between the levels at which a piece of either curve begins, the integrand is smooth but where the
difference changes its sign: there the interval is cut, and Gauss-Jacobi rules take the power.
"""

import numpy as np
from numba import njit

from .quantiles import LEVEL, PLACE, RISE, WIDTH

__all__ = ["displacement", "rules_for", "slope_from_atoms"]

SLIVER = 1e-15  # of mass: rounding errors of levels
CONVERGED = 1e-11  # a step of Newton so small leaves an error of its square
COST, SLOPE = 0, 1  # integrands: the power p, and p - 1
SMOOTH, LEFT, RIGHT, BRIEF = 0, 1, 2, 4  # zeros at neither end, left, right, both; a short interval
NEGLIGIBLE = 1e-12  # distance of a zero from an interval, relative to its length
SHORT, FEW = 0.01, 4  # in t: on what is shorter this number of nodes is enough
NODES, WEIGHTS = 0, 1


def rules_for(p: float, size: int) -> np.ndarray:
    """Nodes on [-1, 1] and weights for all integrands, ends and lengths: (2, 5, 2, size)."""
    from scipy.special import roots_jacobi

    rules = np.zeros((2, 5, 2, size))
    for power, kind in zip((p, p - 1), rules, strict=True):
        for rule, (left, right) in zip(kind, ((0, 0), (1, 0), (0, 1), (1, 1)), strict=False):
            x, w = roots_jacobi(size, right * power, left * power)
            rule[:] = x, w / ((1 + x) ** left * (1 - x) ** right) ** power
        kind[BRIEF, :, :FEW] = roots_jacobi(FEW, 0, 0)
    return rules


@njit(cache=True, nogil=True, error_model="numpy")
def slope_from_atoms(X, Y, shift, p, period):
    """C'(shift) of a density X and atoms Y, in a third of the time of `displacement`.

    sum over atoms of |X - y|^p where the mass of an atom ends less that where it begins.
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
def displacement(X, Y, shift, p, period, rules):
    """C(shift) and its derivative; X has smooth pieces if Y has."""
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
def _level(X, i, t):
    """The mass below the point t of piece i."""
    rise = 0.0
    for k in range(X.shape[1] - 1, RISE - 1, -1):
        rise = rise * t + X[i, k]
    return X[i, LEVEL] + rise


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
    other = _inverse(Y, j, _level(X, i, t) - ahead, guess)
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
    size = 0 if Y.shape[1] == RISE else rules.shape[3]  # from an atom the distance is monotone
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
    """The same from an atom, for a power that is not smooth at its place, in t `zero`.

    Away from it each interval is no longer than three times its distance from it.
    """
    zero = (turned + Y[j, PLACE] - X[i, PLACE]) / X[i, WIDTH]
    value = slope = 0.0
    for side in (-1.0, 1.0):
        near = max(begin - zero if side > 0 else zero - end, 0.0)
        far = end - zero if side > 0 else zero - begin
        ends = LEFT if side > 0 else RIGHT
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
    """Where the difference, of the sign of `below` at low, changes it."""
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
