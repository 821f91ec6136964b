"""The clock of a run and its step sizes: a plan of equal steps to the target time.

Fixed steps are equal up to the target. Steps with error control have the proposed size until the
target is at most two steps away; before that, they do not depend on the target.

The clock, with the counters of a run without progress, is the only memory of the step control, so
pauses of a run do not change its steps.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ..lowlevel.compilation import jitable, njit

MANY_STEPS = 2.0**53  # planned number of steps that stands for a plan without an end
NO_STEP = 2.0**-1022  # the smallest normal number: shorter steps are given up
MOST_REJECTIONS = 60  # in a row: each makes the step at least a quarter shorter
MOST_STALLED = 500  # steps in a row that neither become shorter nor double their total time
LAST_STEPS = 2  # number of last steps to the target that are equal with error control


class Clock(NamedTuple):
    """The time, and a plan of `planned` equal steps from `start`, of which `taken` are done.

    `proposal` is the step size that error control asks for, `previous_error` the relative error of
    the last accepted step, which it also uses.
    """

    t: float
    start: float
    step: float
    planned: int
    taken: int
    proposal: float
    previous_error: float


def started(proposal: float) -> Clock:
    """A clock at time 0 that is about to plan steps of the proposed size."""
    return Clock(0.0, 0.0, 0.0, 0, 0, proposal, 1.0)


@jitable
def clock_of(row: Any) -> Clock:
    """The clock with these numbers, in the order of its fields."""
    return Clock(row[0], row[1], row[2], int(row[3]), int(row[4]), row[5], row[6])


@jitable
def write_clock(clock: Clock, row: Any) -> None:
    """Write a clock to a row of numbers."""
    row[0], row[1], row[2], row[3] = clock.t, clock.start, clock.step, clock.planned
    row[4], row[5], row[6] = clock.taken, clock.proposal, clock.previous_error


def restored(values: np.ndarray) -> Clock:
    """The clock that an array holds."""
    return clock_of(values.tolist())


def first_steps(share: float, rates: Any, growths: Any, duration: float) -> Any:
    """Sizes of first steps, in which states change by at most `share` of their size.

    `rates` are relative rates of change of states, `growths` relative growth rates of these rates.
    The rate that counts is the larger of the rate and a tenth of the growth, since a state that is
    almost at rest may accelerate. For a state at rest the step is `share` of the duration.
    """
    fastest = np.maximum(rates, np.where(np.isfinite(growths), 0.1 * growths, 0.0))
    return np.where(rates > 0, share / np.where(rates > 0, fastest, 1.0), share * duration)


@jitable
def _steps_to(target: float, t: float, step: float, is_fixed: bool) -> int:
    """The number of equal steps, each at most `step` long, from t to the target.

    With error control it is MANY_STEPS if there are more than LAST_STEPS.
    """
    steps = (target - t) / step * (1 - 1e-12) if step > 0 else MANY_STEPS
    if steps >= MANY_STEPS or (steps > LAST_STEPS and not is_fixed):
        return int(MANY_STEPS)
    return math.ceil(steps) if steps > 1 else 1


@jitable
def planned_to(clock: Clock, target: float, fixed: bool) -> Clock:
    """The clock with a plan, a new one if the old plan is done; `fixed` means no error control."""
    if clock.taken < clock.planned:
        return clock
    planned = _steps_to(target, clock.t, clock.proposal, fixed)
    step = (target - clock.t) / planned if planned < MANY_STEPS else clock.proposal
    return Clock(clock.t, clock.t, step, planned, 0, clock.proposal, clock.previous_error)


@jitable
def replanned(clock: Clock, proposal: float) -> Clock:
    """The clock without a plan, about to make one with steps of the proposed size."""
    return Clock(clock.t, clock.t, clock.step, 0, 0, proposal, clock.previous_error)


def planless(clock: Clock, endings_only: bool) -> Clock:
    """Clock without a plan; with `endings_only` a plan without an end is kept."""
    kept = endings_only and clock.planned >= MANY_STEPS
    return clock if kept else replanned(clock, clock.proposal)


@jitable
def moves_clock(t: float, step: float) -> bool:
    """True if a step from t is at least half a unit in the last place of t."""
    return t + step / 2 > t


@jitable
def rejected(clock: Clock, relative: float, error_order: float) -> Clock:
    """The clock after a rejected step, with a shorter one; `relative` is the error over rtol."""
    factor = 0.25
    if math.isfinite(relative):
        factor = max(0.9 * relative ** (-1 / error_order), 0.2)
    return replanned(clock, clock.step * factor)


@jitable
def time_after(clock: Clock, target: float) -> float:
    """The time that the clock shows after a step of its plan."""
    count = clock.taken + 1
    return target if count == clock.planned else clock.start + count * clock.step


@jitable
def accepted(clock: Clock, relative: float, error_order: float, target: float) -> Clock:
    """The clock after an accepted step; `relative` as in `rejected`, or < 0 for fixed steps.

    The plan changes only if the size of its steps would change.
    """
    count, planned, t = clock.taken + 1, clock.planned, time_after(clock, target)
    proposal, previous = clock.proposal, clock.previous_error
    if relative >= 0:
        relative = max(relative, 1e-10)
        factor = 0.9 * relative ** (-0.7 / error_order) * previous ** (0.4 / error_order)
        factor, previous = min(factor, 3.0), max(relative, 1e-4)
        if factor > 1.2:
            proposal = max(factor * clock.step, proposal)
        elif factor < 0.9:
            proposal = max(factor, 0.2) * clock.step
    left = planned - count if planned < MANY_STEPS else planned
    is_same = left == _steps_to(target, t, proposal, relative < 0)
    if count < planned and not (is_same and (planned < MANY_STEPS or proposal == clock.step)):
        return Clock(t, t, clock.step, 0, 0, proposal, previous)
    return Clock(t, clock.start, clock.step, planned, count, proposal, previous)


class Stall(NamedTuple):
    """Counters of a run without progress: rejected steps, or steps below the clock's rounding.

    A collapse may take less time than the rounding of the clock, 1e-16 t: the clock does not move
    while steps become shorter by many orders of magnitude and then longer again. This counts as
    progress, however long it takes. Steps that remain equally short are no progress.

    Attributes
    ----------
    rejections : float
        Steps rejected in a row.
    waited : float
        Accepted steps without progress.
    shortest : float
        The shortest step since the clock stopped; 0 while the clock moves.
    total, mark : float
        The total time of the steps since the shortest one, now and at the last progress.
    """

    rejections: float = 0.0
    waited: float = 0.0
    shortest: float = 0.0
    total: float = 0.0
    mark: float = 0.0


@jitable
def stall_rejected(stall: Stall) -> Stall:
    """The counters after one more rejected step."""
    rejections = stall.rejections + 1
    return Stall(rejections, stall.waited, stall.shortest, stall.total, stall.mark)


@jitable
def stall_accepted(stall: Stall, step: float, has_moved: bool) -> Stall:
    """The counters after an accepted step; `has_moved` tells whether the clock moved."""
    total = stall.total + step
    if has_moved:
        return Stall(0.0, 0.0, 0.0, 0.0, 0.0)
    if step < NO_STEP:
        return Stall(0.0, np.inf, step, total, stall.mark)
    if stall.shortest == 0 or step < stall.shortest / 2:
        return Stall(0.0, 0.0, step, step, step)
    if total > 2 * stall.mark:
        return Stall(0.0, 0.0, stall.shortest, total, total)
    return Stall(0.0, stall.waited + 1, stall.shortest, total, stall.mark)


@jitable
def stalled_for_good(stall: Stall) -> bool:
    """True if a run has had too many rejections in a row, or steps without progress."""
    return stall.rejections > MOST_REJECTIONS or stall.waited > MOST_STALLED


@jitable
def stall_of(row: Any) -> Stall:
    """The counters with these numbers, in the order of their fields."""
    return Stall(row[0], row[1], row[2], row[3], row[4])


ACCEPTED, STUCK, REJECTED, GIVES_UP, LOST = range(1, 6)
"""Codes of attempted steps: accepted, also without progress for long, rejected, also for the last
time, and not finite."""


@jitable
def judged(
    clock: Clock,
    stall: Stall,
    error: float,
    is_finite: bool,
    rtol: float,
    error_order: float,
    target: float,
) -> tuple[Clock, Stall, int]:
    """The clock and the counters after an attempted step, and its code.

    Parameters
    ----------
    clock, stall
        Before the step.
    error : float
        Relative error of the step.
    is_finite : bool
        Whether the error and the positions after the step are finite.
    rtol : float
        Bound of the error; 0 for fixed steps.
    error_order : float
        Order of the error in the length of the step.
    target : float
        Clock time at which the plan ends.
    """
    relative = -1.0
    if rtol > 0:
        relative = error / rtol if is_finite else math.inf
    elif not is_finite:
        return clock, stall, LOST
    if relative <= 1:
        has_moved = moves_clock(clock.t, clock.step)
        step, clock = clock.step, accepted(clock, relative, error_order, target)
        stall = stall_accepted(stall, step, has_moved or clock.t == target)
        return clock, stall, STUCK if stalled_for_good(stall) else ACCEPTED
    stall, clock = stall_rejected(stall), rejected(clock, relative, error_order)
    return clock, stall, GIVES_UP if stalled_for_good(stall) else REJECTED


@jitable
def write_down(
    clock: Clock, stall: Stall, code: int, clocks: Any, stalls: Any, counts: Any
) -> None:
    """Write what `judged` returned to the rows of numbers of a group, and count the step."""
    write_clock(clock, clocks)
    stalls[0], stalls[1], stalls[2] = stall.rejections, stall.waited, stall.shortest
    stalls[3], stalls[4] = stall.total, stall.mark
    if code <= STUCK:
        counts[0] += 1
    elif code != LOST:
        counts[1] += 1


# A single group is planned and judged by Python; of many groups that would take too long.


@njit(cache=True)
def plan_steps(clocks: np.ndarray, groups: np.ndarray, target: float, is_fixed: bool) -> None:
    """Plan the next steps of some groups, given by indices, on their clocks (G, 7)."""
    for group in groups:
        write_clock(planned_to(clock_of(clocks[group]), target, is_fixed), clocks[group])


@njit(cache=True)
def judge_steps(
    clocks: np.ndarray,
    stalls: np.ndarray,
    counts: np.ndarray,
    groups: np.ndarray,
    new: np.ndarray,
    errors: np.ndarray,
    rtol: float,
    error_order: float,
    target: float,
    codes: np.ndarray,
) -> None:
    """Accept or reject the steps of some groups as `judged`, and fill `codes` (G',), int.

    Parameters
    ----------
    clocks, stalls, counts : ndarray, (G, 7), (G, 5) and (3, G)
        Numbers of the `Clock` and the `Stall` of each group, and counts of accepted and rejected
        steps; they are changed in place.
    groups : ndarray of int, (G',)
        Indices of the groups.
    new : ndarray, (G', N)
        Positions after the steps.
    errors : ndarray, (G',)
        Relative errors of the steps.
    rtol, error_order, target
        As for `judged`.
    """
    for r, group in enumerate(groups):
        is_finite = math.isfinite(errors[r])
        for i in range(new.shape[1]):
            is_finite = is_finite and math.isfinite(new[r, i])
        clock, stall, codes[r] = judged(
            clock_of(clocks[group]),
            stall_of(stalls[group]),
            errors[r],
            is_finite,
            rtol,
            error_order,
            target,
        )
        write_down(clock, stall, codes[r], clocks[group], stalls[group], counts[:, group])
