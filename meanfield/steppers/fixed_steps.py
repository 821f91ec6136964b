"""Steps of a given length by any map (x, t, dt) -> x: splittings, noise, layers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .advance import NOT_FINITE, PAUSED, REACHED
from .clock import Clock, accepted, planned_to
from .patience import Patience

__all__ = ["FixedSteps"]


class FixedSteps:
    """The state of a run in steps that no error control changes.

    Parameters
    ----------
    step : callable
        (x, t, dt) -> x at t + dt, a new array.
    x : ndarray
    start : float
        The time at which the clock starts.
    """

    def __init__(self, step: Callable, x: np.ndarray, start: float):
        self._step, self._start = step, start
        self.x, self.patience = x, Patience()
        self.counts = np.zeros(2, dtype=np.int64)

    def restart(self, x: np.ndarray, _elapsed: float = 0.0, _motion: Any = None) -> None:
        """Go on from another state."""
        self.x = x

    def advance(self, clock: Clock, target: float, limit: int) -> tuple[int, Clock]:
        """Step towards the time `target`, at most `limit` steps; why it came back."""
        for _ in range(limit):
            clock = Clock(*planned_to(clock, target))
            with np.errstate(over="ignore", invalid="ignore"):
                new = self._step(self.x, self._start + clock.t, clock.step)
            if not np.isfinite(new).all():
                return NOT_FINITE, clock
            self.counts[0] += 1
            self.x = new
            clock = Clock(*accepted(clock, -1.0, 1.0, target))
            if clock.t == target:
                return REACHED, clock
        return PAUSED, clock
