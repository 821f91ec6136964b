"""Where the derivative of a kernel density estimate falls through zero: compiled.

A token at the gap g from x has, on the circle and on the line,

    q = m exp(-2 beta sin^2(g/2)), s = sin g, c = cos g;    q = m exp(-beta g^2/2), s = g, c = 1

and with x the sums change as q' = beta q s, s' = -c: f = sum q, f'/beta = F = sum q s,
F' = sum q (beta s^2 - c), |F''| <= sum q |s| (beta^2 s^2 + 3 beta + |c'/s|). Within h of
the place of the sums |s| grows by at most h, and q by at most the factor exp(beta h (|s| + h/2)).
"""

import numpy as np
from numba import njit

__all__ = ["FLAT", "falling", "sums_at"]

NEGLIGIBLE = 1e-20  # of a sum
EPSILON = float(np.finfo(float).eps)
FAR = 50.0  # an exponent's error, in rounding errors of one
PIECES = 400  # waiting: each halving adds one
STEPS = 200
FLAT = 1e-3  # bandwidths: where F and F' vanish to rounding, halving goes on to here
NO_ZERO, ONE_ZERO, HALVE, UNDECIDED = 0, 1, 2, 3


@njit(cache=True, nogil=True)
def falling(cells, x, masses, beta, circle):
    """Places where f' falls through zero in cells (k, 2) in rising order; undecided regions."""
    places, undecided = [cells[0, 0] for _ in range(0)], 0
    waiting = np.empty((PIECES, 2))
    begun = np.nan  # the left end of a region that is undecided
    for k in range(len(cells)):
        if not np.isnan(begun) and cells[k, 0] != cells[k - 1, 1]:
            _crossing(begun, cells[k - 1, 1], places, x, masses, beta, circle)
            begun = np.nan
        waiting[0], top = cells[k], 1
        while top > 0:
            low, high = waiting[top - 1]
            top -= 1
            verdict = _examined(low, high, x, masses, beta, circle)
            if verdict == HALVE:
                middle = 0.5 * (low + high)
                waiting[top] = middle, high
                waiting[top + 1] = low, middle
                top += 2
            elif verdict == UNDECIDED:
                if np.isnan(begun):
                    begun = low
                    undecided += 1
            else:
                if not np.isnan(begun):
                    _crossing(begun, low, places, x, masses, beta, circle)
                    begun = np.nan
                if verdict == ONE_ZERO:
                    _crossing(low, high, places, x, masses, beta, circle)
    if not np.isnan(begun):
        _crossing(begun, cells[-1, 1], places, x, masses, beta, circle)
    return np.array(places), undecided


@njit(cache=True, nogil=True)
def _examined(low, high, x, masses, beta, circle):
    """What Taylor's formula about the middle says of zeros of F."""
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    _, F, slope, bound, error, slope_error = sums_at(middle, half, x, masses, beta, circle)
    change = half * (abs(slope) + 0.5 * half * bound)
    if abs(F) > change + 2 * error:
        return NO_ZERO
    if abs(slope) > half * bound + 2 * slope_error:
        return ONE_ZERO
    flat = abs(F) <= error and abs(slope) <= slope_error and half * np.sqrt(beta) < FLAT
    if flat or change <= error or not low < middle < high:
        return UNDECIDED
    return HALVE


@njit(cache=True, nogil=True)
def _crossing(low, high, places, x, masses, beta, circle):
    """Append the zero between two places, if F falls from one to the other."""
    if not sums_at(low, 0.0, x, masses, beta, circle)[1] >= 0:
        return
    if not sums_at(high, 0.0, x, masses, beta, circle)[1] < 0:
        return
    place = 0.5 * (low + high)
    for _ in range(STEPS):
        _, F, slope, _, error, _ = sums_at(place, 0.0, x, masses, beta, circle)
        if F >= 0:
            low = place
        else:
            high = place
        step = -F / slope if slope < 0 else np.inf
        after = place + step if low < place + step < high else 0.5 * (low + high)
        if abs(F) <= error or after in (low, high) or after == place:
            break
        place = after
    places.append(place)


@njit(cache=True, nogil=True)
def sums_at(place, half, x, masses, beta, circle):
    """f, F, F', a bound of |F''| within `half`, and of the rounding errors of F and F'.

    x is in rising order; on the circle with a whole turn before and after.
    """
    first, last = 0, len(x)
    if circle:
        last = np.searchsorted(x, place + np.pi)
        first = last - len(x) // 3
    start = min(max(np.searchsorted(x, place), first), last)
    sums = np.zeros(6)  # f, F, F', bound, sum of |terms| of F and of F'
    steps, sides = (1, -1), (start, start - 1)
    stops, count = (last, first - 1), 0
    nearer = int(start == last or (start > first and place - x[start - 1] < x[start] - place))
    for side in (nearer, 1 - nearer):  # the nearest first, so that others are negligible to it
        count += _sweep(
            sides[side], stops[side], steps[side], sums, place, half, x, masses, beta, circle
        )
    rounding = EPSILON * (count + FAR)
    return sums[0], sums[1], sums[2], sums[3], rounding * sums[4], rounding * sums[5]


@njit(cache=True, nogil=True, error_model="numpy")
def _sweep(start, stop, step, sums, place, half, x, masses, beta, circle):
    """Add tokens from `start` outwards until they are negligible; how many there were."""
    count, turning = 0, 1 / beta if circle else 0.0
    for i in range(start, stop, step):
        gap = x[i] - place
        s, c = (np.sin(gap), np.cos(gap)) if circle else (gap, 1.0)
        exponent = 2 * np.sin(0.5 * gap) ** 2 if circle else 0.5 * gap * gap
        weight = np.exp(-beta * exponent)
        if weight < NEGLIGIBLE * sums[0] and abs(s) > half:
            break
        q, size = masses[i] * weight, abs(s) + half
        square = beta * s * s
        sums[0] += q
        sums[1] += q * s
        sums[2] += q * (square - c)
        grown = masses[i] * np.exp(-beta * (exponent - half * (abs(s) + 0.5 * half)))
        sums[3] += grown * size * beta * (beta * size * size + 3 + turning)
        sums[4] += q * abs(s)
        sums[5] += q * (square + 1)
        count += 1
    return count
