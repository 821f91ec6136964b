"""The compiled time loop: error control, step sizes, and the conditions to stop.

It returns to Python with a code whenever something other than another step has to be done.
"""

import math
from typing import NamedTuple

import numpy as np

from ..lowlevel.compilation import INNER, njit
from ..lowlevel.records import Layout, numbers_at
from .attempt import (
    EQUATION_FIELDS,
    JOURNAL,
    MEMORY_FIELDS,
    SCHEME_FIELDS,
    Number,
    Row,
    add_product,
    attempt,
    norm,
    slope_of,
    weigh,
)
from .clock import (
    NO_STEP,
    Clock,
    accepted,
    clock_of,
    moves_clock,
    planned_to,
    rejected,
    replanned,
    time_after,
    write_clock,
)

PAUSED, REACHED, STEADY, FINER, COARSER, TOO_SMALL, NOT_FINITE = range(7)
_REJECTED, _ACCEPTED = 7, 8
STEP_ROUNDING = 1e-15  # relative change of the state below which the error of a step is rounding
OUTPUT_MARGIN = 1 + 1e-6  # slopes are stored if `output` is within this many steps
TAIL_ERROR_PART = 0.5  # bound of the error of the last coefficients, relative to `tail`


class Rules(NamedTuple):
    """Bounds that the time loop checks after each step.

    rtol : relative error of a step; 0 for a fixed step
    error_order : order in the step size of the error estimate
    tail, tail_degree : coefficients beyond this degree must stay below `tail`
    coarse_tail, coarse_degree : if all coefficients beyond this degree are at most `coarse_tail`,
        fewer modes suffice; 0 switches this off
    steady : rate of change up to which a state counts as steady; 0 switches this off
    degree, fewer : degrees of truncation, the present one and one of fewer modes, of which as many
        must have small coefficients at the end as in any gap between larger ones
    """

    rtol: float
    error_order: float
    tail: float
    tail_degree: float
    coarse_tail: float
    coarse_degree: float
    steady: float
    degree: float = math.inf
    fewer: float = math.inf


class Task(NamedTuple):
    """The work of one call of the loop.

    clock : the clock at the beginning
    rules : the bounds to check
    target : the time to step towards
    output : return once this time is reached or passed
    limit : the largest number of attempts
    """

    clock: Clock
    rules: Rules
    target: float
    output: float
    limit: int


TASK_FIELDS = {
    "target": float,  # the time to step towards
    "output": float,  # return once this time is reached or passed
    "limit": float,  # the largest number of attempts
    "code": int,  # the reason for which the loop returned
    "rate": float,  # the largest norm of du/dt at the present state; nan if not known
    "elapsed": float,  # for SLOPES: the clock time
    "given": int,  # for SLOPES: address of states (members, modes); for RATES: of weights
    "result": int,  # for SLOPES: address of the slopes
}
EQUATION_ROW = Layout(
    "Row",
    {
        **EQUATION_FIELDS,
        **SCHEME_FIELDS,
        **MEMORY_FIELDS,
        **dict.fromkeys(Rules._fields, float),
        **TASK_FIELDS,
    },
)
"""The record of one equation and of its run for compiled code, with addresses of arrays."""
ROW_SIZE = EQUATION_ROW.dtype.itemsize
_row_at = EQUATION_ROW.at

ADVANCE, SLOPES, RATES = range(3)


@njit(cache=True, nogil=True, announced="the time loop, about 3 s")
def run(records: int, indices: np.ndarray, task: int, zero: Number) -> None:
    """Do a task for some rows: the records with `indices` in the array at address `records`.

    ADVANCE steps towards `target`, with at most `limit` attempts, until `output` is reached or
    passed; SLOPES evaluates N of the states at `given`; RATES computes the norm of du/dt with the
    weights at `given`. `zero` has the type of the numbers of the states.
    """
    for i in range(indices.size):
        row = _row_at(records + indices[i] * ROW_SIZE)
        speed, last_speed = numbers_at(row.speed, 0, 0.0), numbers_at(row.kept_speed, 0, 0.0)
        speed[0] = last_speed[0]  # rows may share N
        u, slope = front_of(row, row.u), front_of(row, row.slope)
        if task == ADVANCE:
            row.code, row.rate = _advance(row, zero), math.nan
            if row.members == 1:
                u, slope = front_of(row, row.u), front_of(row, row.slope)
                row.rate = rate_of_change(row, u, slope, row.parseval, zero)
        elif task == RATES:
            row.rate = rate_of_change(row, u, slope, row.given, zero)
        else:
            numbers_at(row.time, 0, 0.0)[0] = row.origin + row.elapsed
            for member in range(row.members):
                offset = member * row.size
                slope_of(row, member, row.given + offset, row.result + offset, zero)
        last_speed[0] = speed[0]


@njit(**INNER)
def front_of(row: Row, states: int) -> int:
    """The address of the present state or slope of the first member."""
    return states + row.front * row.members * row.size


@njit(**INNER)
def _advance(row: Row, zero: Number) -> int:
    """Step until something else has to be done; return its code."""
    clock, verdict = clock_of(numbers_at(row.clock, 0, 0.0)), PAUSED
    write_clock(clock, numbers_at(row.before, 0, 0.0))
    attempts = int(row.limit) if row.limit < JOURNAL else JOURNAL
    for _ in range(attempts):
        clock = planned_to(clock, row.target, not row.rtol > 0)
        if clock.step != row.weighed_step:
            weigh(row, clock.step, zero)
        is_output = clock.t + OUTPUT_MARGIN * clock.step >= row.output and row.output < row.target
        end = time_after(clock, row.target)
        error, rate, tail, coarse_tail, tail_error = attempt(row, clock.t, end, is_output, zero)
        if row.rtol > 0:
            excess = row.rtol * (rate * clock.step / row.stability) ** row.error_order
            error = excess if excess > error else error
            if row.tail > 0:
                unresolved = row.rtol * tail_error / (TAIL_ERROR_PART * row.tail)
                error = unresolved if unresolved > error else error
        verdict = _judge(row, error, tail)
        if verdict == _ACCEPTED:
            row.front = 1 - row.front
            journal = numbers_at(row.journal, 2 * (row.accepted % JOURNAL), 0.0)
            journal[0], journal[1] = clock.t, clock.step
            row.accepted += 1
            relative = error / row.rtol if row.rtol > 0 else -1.0
            write_clock(clock, numbers_at(row.before, 0, 0.0))
            has_moved = moves_clock(clock.t, clock.step)
            clock = accepted(clock, relative, row.error_order, row.target)
            verdict = _code_after(row, coarse_tail, clock.t == row.target, zero)
            if verdict == PAUSED and clock.t >= row.output:
                verdict = REACHED
            if not has_moved and clock.t != row.target:
                verdict = TOO_SMALL
            if verdict == COARSER:
                clock = replanned(clock, clock.proposal)
        elif verdict == FINER:
            clock = replanned(clock, clock.proposal)
        else:
            hopeless = _hopeless(row, clock.step, rate)
            clock = rejected(clock, error / row.rtol, row.error_order)
            row.rejected += 1
            if verdict == _REJECTED:
                verdict = TOO_SMALL if hopeless or clock.proposal < NO_STEP else PAUSED
        if verdict != PAUSED:
            break
    write_clock(clock, numbers_at(row.clock, 0, 0.0))
    return verdict


@njit(**INNER)
def _judge(row: Row, error: float, tail: float) -> int:
    """The verdict on an attempted step: accepted, rejected, not finite, or too few modes."""
    if not math.isfinite(error):
        return NOT_FINITE if row.rtol == 0 else _REJECTED
    if row.rtol > 0 and error > row.rtol:
        return _REJECTED
    if row.tail > 0 and tail > row.tail:
        return FINER
    return _ACCEPTED


@njit(**INNER)
def _hopeless(row: Row, step: float, rate: float) -> bool:
    """True if after a rejected step a shorter one would be rejected too.

    That is so if the step moves the state by no more than rounding, or if N is not finite.
    """
    top, degrees = 0, numbers_at(row.degrees, 0, 0)
    for k in range(row.floats):
        top = degrees[k] if degrees[k] > top else top
    fastest = numbers_at(row.speed, 0, 0.0)[0] * top
    if 0 < step * (fastest if fastest > rate else rate) < STEP_ROUNDING:
        return True
    slope = numbers_at(front_of(row, row.slope), 0, 0.0)
    for k in range(row.members * row.floats):
        if not math.isfinite(slope[k]):
            return True
    return False


@njit(**INNER)
def _code_after(row: Row, coarse_tail: float, at_target: bool, zero: Number) -> int:
    """The code after an accepted step: steady, target reached, fewer modes, or none (PAUSED)."""
    if row.steady > 0:
        u, slope = front_of(row, row.u), front_of(row, row.slope)
        if rate_of_change(row, u, slope, row.parseval, zero) <= row.steady:
            return STEADY
    if at_target:
        return REACHED
    if row.coarse_tail > 0 and coarse_tail <= row.coarse_tail:
        return COARSER
    return PAUSED


@njit(**INNER)
def rate_of_change(row: Row, u: int, slope: int, weights: int, zero: Number) -> float:
    """Largest norm of L u + N(u) over the members; `stage` and `modal` are overwritten.

    `u`, `slope` and `weights` are addresses; the slope of explicit schemes has L u in it.
    """
    largest, total = 0.0, numbers_at(row.stage, 0, zero)
    for member in range(row.members):
        slopes = numbers_at(slope, member * row.modes, zero)
        for k in range(row.modes):
            total[k] = slopes[k]
        if row.added_rows == 0:  # L u is in N for explicit schemes
            of_member = member if row.linear_rows > 1 else 0
            add_product(row, row.linear, of_member, u + member * row.size, row.stage, zero)
        size = norm(row, row.stage, weights)
        if math.isfinite(largest) and not size <= largest:
            largest = size
    return largest
