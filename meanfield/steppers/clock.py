"""The clock of a run and its step sizes: a plan of equal steps to the next time that is due.

Nothing but the clock is remembered, so where a run pauses has no influence on its steps.
"""

from typing import NamedTuple

import numpy as np

from ..lowlevel.compilation import njit

MANY = 2.0**53  # steps: a plan for as many is never carried out to its end


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


def started(proposal: float) -> Clock:
    """A clock at time 0 that is about to plan steps of the proposed size."""
    return Clock(0.0, 0.0, 0.0, 0, 0, proposal, 1.0)


def restored(values: np.ndarray) -> Clock:
    """The clock whose numbers are these."""
    t, start, step, planned, taken, proposal, previous = map(float, values)
    return Clock(t, start, step, int(planned), int(taken), proposal, previous)


@njit(cache=True, error_model="numpy")
def _steps_to(target, t, step):
    """The number of equal steps, each at most `step` long, from t to the target."""
    count = np.ceil((target - t) / step * (1 - 1e-12))
    return int(min(max(1.0, count), MANY))


@njit(cache=True, error_model="numpy")
def planned_to(clock, target):
    """The clock with a plan: a new one if the old one is done."""
    if clock.taken < clock.planned:
        return clock
    planned = _steps_to(target, clock.t, clock.proposal)
    step = (target - clock.t) / planned if planned < MANY else clock.proposal
    return Clock(clock.t, clock.t, step, planned, 0, clock.proposal, clock.previous_error)


@njit(cache=True, error_model="numpy")
def replanned(clock, proposal):
    """The clock without a plan, about to make one with steps of the proposed size."""
    return Clock(clock.t, clock.t, clock.step, 0, 0, proposal, clock.previous_error)


@njit(cache=True, error_model="numpy")
def rejected(clock, relative, error_order):
    """After a step whose error was `relative` times the one allowed: a shorter one."""
    factor = 0.25
    if np.isfinite(relative):
        factor = max(0.2, 0.9 * relative ** (-1 / error_order))
    return replanned(clock, clock.step * factor)


@njit(cache=True, error_model="numpy")
def accepted(clock, relative, error_order, target):
    """One step on; `relative` error as for `rejected`, or < 0 where steps are fixed.

    The plan changes only if its number of steps would.
    """
    taken, planned = clock.taken + 1, clock.planned
    t = target if taken == planned else clock.start + taken * clock.step
    proposal, previous = clock.proposal, clock.previous_error
    if relative >= 0:
        relative = max(relative, 1e-10)
        factor = 0.9 * relative ** (-0.7 / error_order)
        factor = min(3.0, factor * previous ** (0.4 / error_order))
        previous = max(relative, 1e-4)
        if factor > 1.2:
            proposal = max(proposal, factor * clock.step)
        elif factor < 0.9:
            proposal = max(0.2, factor) * clock.step
    if taken < planned and _steps_to(target, t, proposal) != planned - taken:
        return Clock(t, t, clock.step, 0, 0, proposal, previous)
    return Clock(t, clock.start, clock.step, planned, taken, proposal, previous)
