"""The compiled time loop: error control, step sizes, and when to stop and ask.

It returns to Python with a code whenever something other than another step is due.
"""

import math
from typing import NamedTuple

import numpy as np

from ..lowlevel.compilation import njit
from ..lowlevel.records import Layout, numbers_at
from .attempt import (
    EQUATION_FIELDS,
    IN_STEP,
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
    after,
    clock_of,
    keep,
    planned_to,
    rejected,
    replanned,
    shows,
)

PAUSED, REACHED, STEADY, FINER, COARSER, TOO_SMALL, NOT_FINITE = range(7)
_REJECTED, _ACCEPTED = 7, 8
STEP_ROUNDING = 1e-15  # a step in which nothing moves by more has no error but that of rounding
OUTPUT_MARGIN = 1 + 1e-6  # parts of a step within which an output may turn out to be
TAIL_ERROR_PART = 0.5  # how much of the last coefficients allowed may be the error of a step


class Rules(NamedTuple):
    """Bounds that the time loop checks after each step.

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


class Task(NamedTuple):
    """The work of one call of the loop.

    target : the time to step towards
    output : come back once this time is reached or passed
    limit : attempts
    """

    clock: Clock
    rules: Rules
    target: float
    output: float
    limit: int


TASK_FIELDS = {
    "target": float,  # the time to step towards
    "output": float,  # come back once this time is reached or passed
    "limit": float,  # attempts
    "code": int,  # why the loop came back
    "rate": float,  # the largest norm of du/dt at the present state, where it is known; else nan
    "elapsed": float,  # for SLOPES: what the clock shows
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


@njit(cache=True, error_model="numpy", nogil=True, announced="the time loop, about 3 s")
def run(records: int, which: np.ndarray, task: int, zero: Number) -> None:
    """Do something for some of the records from an address on, whose states have such numbers.

    ADVANCE steps towards `target`, at most `limit` attempts, until `output` is reached or passed;
    SLOPES evaluates N of the states at `given`; RATES the norm of du/dt with the weights `given`.
    """
    for i in range(which.size):
        row = _row_at(records + which[i] * ROW_SIZE)
        speed, kept = numbers_at(row.speed, 0, 0.0), numbers_at(row.kept_speed, 0, 0.0)
        speed[0] = kept[0]  # rows may share N
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
                at = member * row.size
                slope_of(row, member, row.given + at, row.result + at, zero)
        kept[0] = speed[0]


@njit(**IN_STEP)
def front_of(row: Row, states: int) -> int:
    """The address of the present state or slope of the first member."""
    return states + row.front * row.members * row.size


@njit(**IN_STEP)
def _advance(row: Row, zero: Number) -> int:
    """Step until something else is due; the code says what."""
    clock, verdict = clock_of(numbers_at(row.clock, 0, 0.0)), PAUSED
    keep(clock, numbers_at(row.before, 0, 0.0))
    attempts = int(row.limit) if row.limit < JOURNAL else JOURNAL
    for _ in range(attempts):
        clock = planned_to(clock, row.target, not row.rtol > 0)
        if clock.step != row.weighed_step:
            weigh(row, clock.step, zero)
        kept = clock.t + OUTPUT_MARGIN * clock.step >= row.output and row.output < row.target
        end = after(clock, row.target)
        error, rate, tail, coarse_tail, tail_error = attempt(
            row, clock.t, end, row.tail_degree, row.coarse_degree, kept, zero
        )
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
            keep(clock, numbers_at(row.before, 0, 0.0))
            is_shown = shows(clock.t, clock.step)
            clock = accepted(clock, relative, row.error_order, row.target)
            verdict = _look_around(row, coarse_tail, clock.t == row.target, zero)
            if verdict == PAUSED and clock.t >= row.output:
                verdict = REACHED
            if not is_shown and clock.t != row.target:
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
    keep(clock, numbers_at(row.clock, 0, 0.0))
    return verdict


@njit(**IN_STEP)
def _judge(row: Row, error: float, tail: float) -> int:
    if not math.isfinite(error):
        return NOT_FINITE if row.rtol == 0 else _REJECTED
    if row.rtol > 0 and error > row.rtol:
        return _REJECTED
    if row.tail > 0 and tail > row.tail:
        return FINER
    return _ACCEPTED


@njit(**IN_STEP)
def _hopeless(row: Row, step: float, rate: float) -> bool:
    """After a step that was rejected: whether a shorter one would be too.

    It is if nothing moved but for rounding, or if the state has no rate of change.
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


@njit(**IN_STEP)
def _look_around(row: Row, coarse_tail: float, arrived: bool, zero: Number) -> int:
    if row.steady > 0:
        u, slope = front_of(row, row.u), front_of(row, row.slope)
        if rate_of_change(row, u, slope, row.parseval, zero) <= row.steady:
            return STEADY
    if arrived:
        return REACHED
    if row.coarse_tail > 0 and coarse_tail <= row.coarse_tail:
        return COARSER
    return PAUSED


@njit(**IN_STEP)
def rate_of_change(row: Row, u: int, slope: int, weights: int, zero: Number) -> float:
    """Largest norm of L u + N(u) over the members; `stage` and `modal` are overwritten."""
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
