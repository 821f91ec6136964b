"""The compiled time loop: error control, step sizes, and when to stop and ask.

`advance` returns to Python with a code whenever something other than another step is due.
All it remembers is the clock and the state, so where it pauses has no influence on the steps.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from .attempt import attempt, norm, weigh

__all__ = ["PAUSED", "REACHED", "STEADY", "Clock", "Rules", "advance"]

PAUSED, REACHED, STEADY, FINER, COARSER, TOO_SMALL, NOT_FINITE = range(7)
_REJECTED, _ACCEPTED = 7, 8


class Clock(NamedTuple):
    """The time, and a plan of `planned` equal steps from `start`, of which `taken` are done.

    `proposal` is the step size that the error control asks for; `previous_error` its memory.
    """

    t: float
    start: float
    step: float
    planned: int
    taken: int
    proposal: float
    previous_error: float


class Rules(NamedTuple):
    """What the loop watches.

    rtol : relative error of a step; 0 for a fixed step
    error_order : order in the step size of the error estimate
    smallest_step : error control below it gives up
    tail, tail_degree : coefficients beyond this degree must stay below `tail`
    coarse_tail, coarse_degree : once all beyond this degree are below it, fewer modes will do
    steady : rate of change that counts as none; 0 never
    """

    rtol: float
    error_order: float
    smallest_step: float
    tail: float
    tail_degree: float
    coarse_tail: float
    coarse_degree: float
    steady: float


@njit(cache=True, error_model="numpy")
def advance(problem, table, work, clock, rules, target, limit):
    """Step towards `target`, at most `limit` attempts; returns (code, clock)."""
    for _ in range(limit):
        if clock.taken == clock.planned:
            clock = _plan(clock, target)
        if clock.step != work.weighed_step[0]:
            weigh(problem.linear, table, clock.step, work)
        error, rate, tail, coarse_tail = attempt(
            problem, work, rules.tail_degree, rules.coarse_degree
        )
        if rules.rtol > 0:
            excess = rate * clock.step / table.stability
            error = max(error, rules.rtol * excess**rules.error_order)
        verdict = _judge(rules, error, tail)
        if verdict == _ACCEPTED:
            clock = _accept(clock, work, rules, error, target)
            verdict = _look_around(problem, work, rules, coarse_tail, clock.t == target)
            if verdict == COARSER:
                clock = _replan(clock, clock.proposal)
        elif verdict == FINER:
            clock = _replan(clock, clock.proposal)
        else:
            clock = _replan(clock, clock.step * _shrinkage(error / rules.rtol, rules))
            work.counts[1] += 1
            if verdict == _REJECTED:
                verdict = TOO_SMALL if clock.proposal < rules.smallest_step else PAUSED
        if verdict != PAUSED:
            return verdict, clock
    return PAUSED, clock


@njit(cache=True, error_model="numpy")
def _steps_to(target, t, step):
    """The number of equal steps, each at most `step` long, from t to the target."""
    return max(1, int(np.ceil((target - t) / step * (1 - 1e-12))))


@njit(cache=True, error_model="numpy")
def _plan(clock, target):
    planned = _steps_to(target, clock.t, clock.proposal)
    step = (target - clock.t) / planned
    return Clock(clock.t, clock.t, step, planned, 0, clock.proposal, clock.previous_error)


@njit(cache=True, error_model="numpy")
def _replan(clock, proposal):
    return Clock(clock.t, clock.t, clock.step, 0, 0, proposal, clock.previous_error)


@njit(cache=True, error_model="numpy")
def _judge(rules, error, tail):
    if not np.isfinite(error):
        return NOT_FINITE if rules.rtol == 0 else _REJECTED
    if rules.rtol > 0 and error > rules.rtol:
        return _REJECTED
    if rules.tail > 0 and tail > rules.tail:
        return FINER
    return _ACCEPTED


@njit(cache=True, error_model="numpy")
def _shrinkage(error, rules):
    if not np.isfinite(error):
        return 0.25
    return max(0.2, 0.9 * error ** (-1 / rules.error_order))


@njit(cache=True, error_model="numpy")
def _accept(clock, work, rules, error, target):
    """Move on to the new state. The plan changes only if its number of steps would."""
    work.front[0] = 1 - work.front[0]
    work.counts[0] += 1
    taken, planned = clock.taken + 1, clock.planned
    t = target if taken == planned else clock.start + taken * clock.step
    proposal, previous = clock.proposal, clock.previous_error
    if rules.rtol > 0:
        relative = max(error / rules.rtol, 1e-10)
        factor = 0.9 * relative ** (-0.7 / rules.error_order)
        factor = min(3.0, factor * previous ** (0.4 / rules.error_order))
        previous = max(relative, 1e-4)
        if factor > 1.2:
            proposal = max(proposal, factor * clock.step)
        elif factor < 0.9:
            proposal = max(0.2, factor) * clock.step
    if taken < planned and _steps_to(target, t, proposal) != planned - taken:
        return Clock(t, t, clock.step, 0, 0, proposal, previous)
    return Clock(t, clock.start, clock.step, planned, taken, proposal, previous)


@njit(cache=True, error_model="numpy")
def _look_around(problem, work, rules, coarse_tail, arrived):
    if rules.steady > 0 and rate_of_change(problem, work, problem.parseval) <= rules.steady:
        return STEADY
    if arrived:
        return REACHED
    if rules.coarse_tail > 0 and coarse_tail <= rules.coarse_tail:
        return COARSER
    return PAUSED


@njit(cache=True, error_model="numpy")
def rate_of_change(problem, work, weights):
    """Largest norm of L u + N(u) over the members."""
    u, slope = work.u[work.front[0]], work.slope[work.front[0]]
    worst, rows = 0.0, problem.linear.shape[0]
    for member in range(len(u)):
        linear = problem.linear[member if rows > 1 else 0]
        worst = max(worst, norm(linear * u[member] + slope[member], weights))
    return worst
