"""A density on its way through time under common noise: fixed steps, split like those of tokens."""

from typing import Any

import numpy as np

from ..steppers.advance import COARSER, FINER, NOT_FINITE, PAUSED, REACHED
from ..steppers.clock import Clock, planned_to
from .arguments import Arguments
from .degree_adaptation import SpectralIntegration
from .streams import random_state, restore_random


class RandomFlow(SpectralIntegration):
    """Common noise for dt/2, the deterministic part for dt, common noise for dt/2.

    Steps end at outputs and where the model jumps, as those of tokens do: with the same generator
    and dt the increments are the same. A step whose last coefficients are too large is taken again
    on more modes, with the same increments.
    """

    continuous = False  # a step that is taken again, shorter, would need other increments

    def __init__(self, arguments: Arguments):
        self._rng: Any = arguments.common_rng
        super().__init__(arguments)

    def _advance(self, output: float, limit: int) -> tuple[int, Clock]:
        for _ in range(limit):
            code = self._step(output)
            if code != PAUSED:
                return code, self.clock
        return PAUSED, self.clock

    def _step(self, output: float) -> int:
        """One step, or none where it needs more modes or fails; what `Stepper.advance` returns."""
        self.follow_model()
        stepper, rules = self.stepper, self._rules
        u, counts, random = stepper.state, stepper.counts.copy(), random_state(self._rng)
        goal = self.goal(output, dense=False)
        dt = planned_to(self.clock, goal, True).step

        self._go_to(self.clock.t, first := self._carried(u, self.clock.t, dt / 2))
        plain = rules._replace(tail=0.0, coarse_tail=0.0)
        code, clock = stepper.advance(self.clock, plain, goal, 1, output)
        if code in (PAUSED, REACHED):
            last = self._carried(stepper.state, clock.t, dt / 2)
            tail = max(self._beyond(rules.tail_degree, moved) for moved in (first, last))
            if not np.isfinite(last).all():
                code = NOT_FINITE
            elif tail > rules.tail:
                code = FINER
            else:
                self.clock = clock
                self._go_to(clock.t, last)
                fewer = self._beyond(rules.coarse_degree, last) < rules.coarse_tail
                return COARSER if fewer else code
        restore_random(self._rng, random)
        stepper.counts[0] = counts[0]
        self._go_to(self.clock.t, u)
        return code

    def _go_to(self, elapsed: float, u: np.ndarray) -> None:
        self.stepper.elapsed, self.stepper.state = elapsed, u

    def _carried(self, u: np.ndarray, elapsed: float, dt: float) -> np.ndarray:
        """The coefficients after common noise for a time dt."""
        return self.motion.carried(self.space, u, self.start + elapsed, dt, self._rng)

    def _beyond(self, degree: float, u: np.ndarray) -> float:
        """The largest coefficient beyond a degree."""
        return float(np.abs(u[:, self.space.degrees > degree]).max(initial=0.0))

    def snapshot(self) -> dict[str, Any]:
        return super().snapshot() | {"common": random_state(self._rng)}

    def restore(self, snapshot: dict[str, Any]) -> None:
        super().restore(snapshot)
        restore_random(self._rng, snapshot["common"])
