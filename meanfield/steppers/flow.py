"""A classical Runge-Kutta scheme for points that move: dx/dt = v(x, t), in plain numpy."""

from typing import Protocol

import numpy as np

from .advance import NOT_FINITE, PAUSED, REACHED, STEADY, TOO_SMALL
from .clock import Clock, accepted, planned_to, rejected
from .combination import combined
from .dense_output import Interpolant
from .patience import Patience
from .scheme import Scheme

__all__ = ["Flow", "Motion"]


class Motion(Protocol):
    """What moves the points, and how an error of their positions is measured."""

    def velocity(self, x: np.ndarray, t: float) -> np.ndarray:
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
    start : float
        The time at which the clock starts.
    """

    def __init__(
        self,
        scheme: Scheme,
        motion: Motion,
        x: np.ndarray,
        *,
        rtol: float,
        steady: float,
        smallest_step: float = 0.0,
        start: float = 0.0,
    ):
        self._motion, self._rtol, self._steady = motion, rtol, steady
        self._smallest_step, self._error_order = smallest_step, scheme.estimate_order + 1.0
        self._weights = [_row(weights, scheme.evaluations + 1) for weights in scheme.rows()]
        self._nodes, self._start = scheme.nodes, start
        self.patience = Patience()
        self.counts = np.zeros(2, dtype=np.int64)
        self.restart(x)

    def restart(self, x: np.ndarray, elapsed: float = 0.0, motion: Motion | None = None) -> None:
        """Go on from other positions, or with another motion, `elapsed` after the start."""
        self._motion = motion or self._motion
        self.x, self.velocity = x, self._motion.velocity(x, self._start + elapsed)
        self.before: tuple[np.ndarray, float, float] | None = None
        self._within: Interpolant | None = None
        self._slopes = np.empty((len(self._nodes) + 2, x.size))

    @property
    def rate(self) -> float:
        """The present rate of change."""
        return self._motion.rate(self.x, self.velocity)

    def step(
        self, x: np.ndarray, velocity: np.ndarray, elapsed: float, dt: float
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Positions and velocities one step after x, and the relative error."""
        slopes, stages, t = self._slopes, len(self._nodes), self._start + elapsed
        slopes[0] = velocity.ravel()

        def error_of(estimate: int) -> float:
            error = combined(self._weights[estimate], slopes, dt).reshape(x.shape)
            return self._motion.relative_error(error, new)

        for i, node in enumerate(self._nodes):
            place = combined(self._weights[i], slopes, dt, x)
            slopes[i + 1] = self._motion.velocity(place, t + node * dt).ravel()
        new = self._motion.projected(combined(self._weights[stages], slopes, dt, x))
        new_velocity = self._motion.velocity(new, t + dt)
        slopes[-1] = new_velocity.ravel()
        error = error_of(stages + 1)
        if error > 0 and len(self._weights) > stages + 2:
            error *= error / np.hypot(error, 0.1 * error_of(stages + 2))
        return new, new_velocity, error

    def within(self, elapsed: float) -> np.ndarray:
        """Positions at a time within the last step, `before` which they were (x, elapsed, dt).

        Only as long as no other step was tried.
        """
        return self._motion.projected(self.interpolant(self._start + elapsed))

    @property
    def interpolant(self) -> Interpolant:
        """The last step, as `within` has it but for projections."""
        assert self.before is not None
        x, start, dt = self.before
        if self._within is None:
            velocity, t = self._motion.velocity, self._start + start
            self._within = Interpolant(velocity, x, self.x, self._slopes, t, dt)
        return self._within

    def repeat(self, before: tuple[np.ndarray, float, float]) -> None:
        """Take the last step again, from where it began."""
        x, elapsed, dt = before
        self.restart(x, elapsed)
        self.x, self.velocity, _ = self.step(x, self.velocity, elapsed, dt)
        self.before = before

    def advance(self, clock: Clock, target: float, limit: int) -> tuple[int, Clock]:
        """Step towards the time `target`, at most `limit` attempts; why it came back."""
        with np.errstate(over="ignore", invalid="ignore"):  # steps that overflow are rejected
            return self._advance(clock, target, limit)

    def _advance(self, clock: Clock, target: float, limit: int) -> tuple[int, Clock]:
        for _ in range(limit):
            clock = Clock(*planned_to(clock, target))
            new, velocity, error = self.step(self.x, self.velocity, clock.t, clock.step)
            relative = error / self._rtol if self._rtol else -1.0
            if not np.isfinite(error) and not self._rtol:
                return NOT_FINITE, clock
            if not relative <= 1:
                self.counts[1] += 1
                clock = Clock(*rejected(clock, relative, self._error_order))
                if self.patience.rejected() or clock.proposal < self._smallest_step:
                    return TOO_SMALL, clock
                continue
            before, step = clock.t, clock.step
            self.counts[0] += 1
            self.before, self._within = (self.x, clock.t, clock.step), None
            self.x, self.velocity = new, velocity
            clock = Clock(*accepted(clock, relative, self._error_order, target))
            if self.patience.accepted(step, clock.t > before):
                return TOO_SMALL, clock
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
