"""The compiled time loop: error control, step sizes, and when to stop and ask.

`advance` returns to Python with a code whenever something other than another step is due.
"""

from typing import NamedTuple

import numpy as np

from ..lowlevel.compilation import njit
from .attempt import JOURNAL, LEVEL, attempt, norm, weigh
from .clock import NO_STEP, accepted, after, planned_to, rejected, replanned, shows
from .eigenbasis import change

PAUSED, REACHED, STEADY, FINER, COARSER, TOO_SMALL, NOT_FINITE = range(7)
_REJECTED, _ACCEPTED = 7, 8
ROUNDING = 1e-15  # a step in which nothing moves by more has no error but that of rounding
CLOSE = 1 + 1e-6  # parts of a step within which an output may turn out to be
TAIL_ERROR = 0.5  # how much of the last coefficients allowed may be the error of a step


class Rules(NamedTuple):
    """What the loop watches.

    rtol : relative error of a step; 0 for a fixed step
    error_order : order in the step size of the error estimate
    tail, tail_degree : coefficients beyond this degree must stay below `tail`
    coarse_tail, coarse_degree : once all beyond this degree are below it, fewer modes will do
    steady : rate of change that counts as none; 0 never
    """

    rtol: float
    error_order: float
    tail: float
    tail_degree: float
    coarse_tail: float
    coarse_degree: float
    steady: float


@njit(**LEVEL)
def advance(problem, table, work, clock, rules, target, output, limit):
    """Step towards `target`, at most `limit` attempts, until `output` is reached or passed.

    Returns (code, clock, before), with `before` the clock at the beginning of the last step.
    """
    before = clock
    for _ in range(limit):
        clock = planned_to(clock, target, not rules.rtol > 0)
        if clock.step != work.weighed_step[0]:
            weigh(problem.linear, table, clock.step, work)
        keep = clock.t + CLOSE * clock.step >= output and output < target
        times = clock.t, after(clock, target)
        error, rate, tail, coarse_tail, tail_error = attempt(
            problem, table, work, times, rules.tail_degree, rules.coarse_degree, keep
        )
        if rules.rtol > 0:
            excess = rate * clock.step / table.stability
            error = max(error, rules.rtol * excess**rules.error_order)
            if rules.tail > 0:
                error = max(error, rules.rtol * tail_error / (TAIL_ERROR * rules.tail))
        verdict = _judge(rules, error, tail)
        if verdict == _ACCEPTED:
            work.front[0] = 1 - work.front[0]
            row = work.journal[work.counts[0] % JOURNAL]
            row[0], row[1] = clock.t, clock.step
            work.counts[0] += 1
            relative = error / rules.rtol if rules.rtol > 0 else -1.0
            before, clock = clock, accepted(clock, relative, rules.error_order, target)
            verdict = _look_around(problem, work, rules, coarse_tail, clock.t == target)
            if verdict == PAUSED and clock.t >= output:
                verdict = REACHED
            if not shows(before.t, before.step) and clock.t != target:
                verdict = TOO_SMALL
            if verdict == COARSER:
                clock = replanned(clock, clock.proposal)
        elif verdict == FINER:
            clock = replanned(clock, clock.proposal)
        else:
            hopeless = _hopeless(problem, work, clock.step, rate)
            clock = rejected(clock, error / rules.rtol, rules.error_order)
            work.counts[1] += 1
            if verdict == _REJECTED:
                verdict = TOO_SMALL if hopeless or clock.proposal < NO_STEP else PAUSED
        if verdict != PAUSED:
            return verdict, clock, before
    return PAUSED, clock, before


@njit(**LEVEL)
def _judge(rules, error, tail):
    if not np.isfinite(error):
        return NOT_FINITE if rules.rtol == 0 else _REJECTED
    if rules.rtol > 0 and error > rules.rtol:
        return _REJECTED
    if rules.tail > 0 and tail > rules.tail:
        return FINER
    return _ACCEPTED


@njit(**LEVEL)
def _hopeless(problem, work, step, rate):
    """After a step that was rejected: whether a shorter one would be too.

    It is if nothing moved but for rounding, or if the state has no rate of change.
    """
    top = 0
    for degree in problem.degrees:
        top = max(top, degree)
    if 0 < step * max(rate, problem.speed[0] * top) < ROUNDING:
        return True
    slope = work.slope[work.front[0]]
    for member in range(len(slope)):
        for k in range(slope.shape[1]):
            if not np.isfinite(slope[member, k]):
                return True
    return False


@njit(**LEVEL)
def _look_around(problem, work, rules, coarse_tail, arrived):
    if rules.steady > 0:
        u, slope = work.u[work.front[0]], work.slope[work.front[0]]
        rate = rate_of_change(problem, u, slope, work, problem.parseval)
        if rate <= rules.steady:
            return STEADY
    if arrived:
        return REACHED
    if rules.coarse_tail > 0 and coarse_tail <= rules.coarse_tail:
        return COARSER
    return PAUSED


@njit(cache=True, error_model="numpy")
def rate_of_change(problem, u, slope, work, weights):
    """Largest norm of L u + N(u) over the members; scratch memory of the work is overwritten."""
    linear, basis, total, modal = problem.linear, problem.basis, work.stage, work.modal
    worst, rows, columns = 0.0, linear.shape[0], linear.shape[1]
    diagonal = basis.order.size == 0 or columns < total.size  # L u is in N for explicit schemes
    for member in range(len(u)):
        row = member if rows > 1 else 0
        if diagonal:
            for k in range(total.size):
                total[k] = linear[row, k if columns > 1 else 0] * u[member, k] + slope[member, k]
        else:
            change(basis, basis.forth, u[member], modal[0], work.part)
            for k in range(total.size):
                modal[0, k] *= linear[row, k]
            change(basis, basis.back, modal[0], total, work.part)
            for k in range(total.size):
                total[k] += slope[member, k]
        found = norm(total, weights)
        if np.isfinite(worst) and not found <= worst:
            worst = found
    return worst
