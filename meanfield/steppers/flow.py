"""A classical Runge-Kutta scheme for points that move: dx/dt = v(x), in plain numpy."""

from typing import Protocol

import numpy as np

from .advance import NOT_FINITE, PAUSED, REACHED, STEADY, TOO_SMALL
from .clock import Clock, accepted, planned_to, rejected
from .scheme import Scheme

__all__ = ["Flow", "Motion"]


class Motion(Protocol):
    """What moves the points, and how an error of their positions is measured."""

    def velocity(self, x: np.ndarray) -> np.ndarray:
        """dx/dt, of the shape of x."""

    def relative_error(self, error: np.ndarray, x: np.ndarray) -> float:
        """The size of an error of x, relative to what is to be resolved."""

    def projected(self, x: np.ndarray) -> np.ndarray:
        """The points of the space next to x, which is off it by the error of a step."""

    def rate(self, x: np.ndarray, velocity: np.ndarray) -> float:
        """The rate of change that is compared with the tolerance of a steady state."""


class Flow:
    """Steps of an explicit scheme.

    Parameters
    ----------
    scheme : Scheme
        Explicit, as `DormandPrince`.
    motion : Motion
    x : ndarray
        The first positions.
    rtol : float
        Bound of `relative_error` for a step; 0 for fixed steps.
    steady : float
        Rate at which to stop; 0 never.
    smallest_step : float
        Error control below it gives up.
    """

    def __init__(
        self,
        scheme: Scheme,
        motion: Motion,
        x: np.ndarray,
        *,
        rtol: float,
        steady: float,
        smallest_step: float,
    ):
        self._motion, self._rtol, self._steady = motion, rtol, steady
        self._smallest_step, self._error_order = smallest_step, scheme.estimate_order + 1.0
        self._weights = [_row(weights, scheme.evaluations + 1) for weights in scheme.rows()]
        self._slopes = np.empty((scheme.evaluations + 1, x.size))
        self.counts = np.zeros(2, dtype=np.int64)
        self.restart(x)

    def restart(self, x: np.ndarray) -> None:
        """Go on from other positions."""
        self.x, self.velocity = x, self._motion.velocity(x)

    @property
    def rate(self) -> float:
        """The present rate of change."""
        return self._motion.rate(self.x, self.velocity)

    def step(
        self, x: np.ndarray, velocity: np.ndarray, dt: float
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Positions and velocities one step after x, and the relative error."""
        slopes, stages = self._slopes, len(self._slopes) - 2
        slopes[0] = velocity.ravel()

        def combined(row: int) -> np.ndarray:
            used = min(row + 1, len(slopes))
            return dt * (self._weights[row][:used] @ slopes[:used]).reshape(x.shape)

        for i in range(stages):
            slopes[i + 1] = self._motion.velocity(x + combined(i)).ravel()
        new = self._motion.projected(x + combined(stages))
        new_velocity = self._motion.velocity(new)
        slopes[-1] = new_velocity.ravel()
        error = self._motion.relative_error(combined(stages + 1), new)
        if error > 0 and len(self._weights) > stages + 2:
            second = self._motion.relative_error(combined(stages + 2), new)
            error *= error / np.hypot(error, 0.1 * second)
        return new, new_velocity, error

    def advance(self, clock: Clock, target: float, limit: int) -> tuple[int, Clock]:
        """Step towards the time `target`, at most `limit` attempts; why it came back."""
        for _ in range(limit):
            clock = Clock(*planned_to(clock, target))
            new, velocity, error = self.step(self.x, self.velocity, clock.step)
            relative = error / self._rtol if self._rtol else -1.0
            if not np.isfinite(error) and not self._rtol:
                return NOT_FINITE, clock
            if not relative <= 1:
                self.counts[1] += 1
                clock = Clock(*rejected(clock, relative, self._error_order))
                if clock.proposal < self._smallest_step:
                    return TOO_SMALL, clock
                continue
            self.counts[0] += 1
            self.x, self.velocity = new, velocity
            clock = Clock(*accepted(clock, relative, self._error_order, target))
            if self._steady and self.rate <= self._steady:
                return STEADY, clock
            if clock.t == target:
                return REACHED, clock
        return PAUSED, clock


def _row(weights: dict, size: int) -> np.ndarray:
    row = np.zeros(size)
    for stage, terms in weights.items():
        row[stage] = sum(term.factor for term in terms)
    return row
