"""The shift of least cost, with a certificate: the cost is convex."""

from numba import njit

from .quantiles import RISE
from .shift import displacement, slope_from_atoms

__all__ = ["best_shift", "best_shifts", "costs"]

MOST = 200
CLOSE = 1e-15  # relative, of the cost and its lower bound
NARROW = 4e-16  # of the interval of shifts
BOTH_SIDES = 1e-9  # how far from a zero of the slope the other side is looked for


@njit(cache=True, nogil=True, error_model="numpy")
def best_shift(X, Y, p, period, rules):
    """The shift of least cost, that cost, and a lower bound: where two tangents meet.

    Two steps of three look for the zero of the slope (Chandrupatla, Adv. Eng. Softw. 28 (1997));
    the third goes where the tangents meet, which is the minimum of a cost with corners.
    """
    new, other = _near_minimum(X, Y, p, period)
    old = other
    cost_other, slope_other = displacement(X, Y, other, p, period, rules)
    cost_new, slope_new = displacement(X, Y, new, p, period, rules)
    slope_old = slope_other
    best, least, bound = new, cost_new, 0.0
    if cost_other < least:
        best, least = other, cost_other
    for step in range(MOST):
        falling = slope_new - slope_other
        meeting = (cost_other - cost_new + slope_new * new - slope_other * other) / falling
        bound = max(cost_new + slope_new * (meeting - new), 0.0)
        if least - bound <= CLOSE * least or abs(other - new) <= NARROW:
            break
        if step % 3 == 2:
            shift = meeting
        else:
            part = _part(old, new, other, slope_old, slope_new, slope_other)
            margin = min(BOTH_SIDES / abs(other - new), 0.5)
            shift = new + min(max(part, margin), 1 - margin) * (other - new)
        if not min(new, other) < shift < max(new, other):
            shift = (new + other) / 2
        cost, slope = displacement(X, Y, shift, p, period, rules)
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
    """An interval of shifts around the best, and a narrow one of a density and atoms."""
    new, other = -1.0, 1.0
    if X.shape[1] == RISE or Y.shape[1] > RISE:
        return new, other
    f_new, f_other = (
        slope_from_atoms(X, Y, new, p, period),
        slope_from_atoms(X, Y, other, p, period),
    )
    old, f_old = other, f_other
    for _ in range(MOST):
        width = abs(other - new)
        if width <= 4 * BOTH_SIDES or f_new == 0:
            break
        part = _part(old, new, other, f_old, f_new, f_other)
        margin = min(BOTH_SIDES / width, 0.5)
        shift = new + min(max(part, margin), 1 - margin) * (other - new)
        slope = slope_from_atoms(X, Y, shift, p, period)
        old, f_old = new, f_new
        if slope * f_new < 0:
            old, f_old = other, f_other
            other, f_other = new, f_new
        new, f_new = shift, slope
    return new, other


@njit(cache=True, nogil=True, error_model="numpy")
def _part(old, new, other, f_old, f_new, f_other):
    """Where between new and other the zero is: by inverse quadratic interpolation, or half way."""
    x = (new - other) / (old - other)
    f = (f_new - f_other) / (f_old - f_other)
    if not (f * f < x and (1 - f) ** 2 < 1 - x):
        return 0.5
    first = f_new / (f_other - f_new) * f_old / (f_other - f_old)
    return first + (old - new) / (other - new) * f_new / (f_old - f_new) * f_other / (
        f_old - f_other
    )


@njit(cache=True, nogil=True, error_model="numpy")
def best_shifts(X, Y, members, p, period, rules, found):
    """`best_shift` for curves X[i], Y[j] with (i, j) the rows of members; (pairs, 3) into found."""
    for pair in range(len(members)):
        i, j = members[pair]
        shift, cost, bound = best_shift(X[i], Y[j], p, period, rules)
        found[pair, 0], found[pair, 1], found[pair, 2] = shift, cost, bound


@njit(cache=True, nogil=True, error_model="numpy")
def costs(X, Y, members, shifts, p, period, rules, found):
    """Costs at given shifts, those on a line at 0."""
    for pair in range(len(members)):
        i, j = members[pair]
        found[pair] = displacement(X[i], Y[j], shifts[pair], p, period, rules)[0]
