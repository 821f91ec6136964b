"""What all states that a single flow carries have in common on their way through time."""

from typing import Any

import numpy as np

from ..steppers import DormandPrince
from ..steppers.clock import restored, started
from ..steppers.flow import Flow
from .arguments import Accuracy, Problem

__all__ = ["FlowMarch"]


class FlowMarch:
    """The clock, the flow and its counts, for a `March`.

    Parameters
    ----------
    problem, accuracy
    motion : steppers.Motion
    y : ndarray
        Coordinates at the start.
    **options
        Of the flow.
    """

    pause: int = 1
    continuous: bool = True

    def __init__(
        self, problem: Problem, accuracy: Accuracy, motion: Any, y: np.ndarray, **options: Any
    ):
        self._start, self._first = problem.start, problem.state
        self._dt, self._motion = accuracy.dt, motion
        self._scheme = accuracy.scheme or DormandPrince
        rtol = 0.0 if self._dt else accuracy.rtol
        self._flow = Flow(self._scheme, motion, y, rtol=rtol, **options)
        duration = float(problem.times[-1] - problem.start)
        self.clock = started(self._dt or self._first_step(accuracy.rtol, duration))

    @property
    def t(self) -> float:
        return self._start + self.clock.t

    @property
    def elapsed(self) -> float:
        return self.clock.t

    @property
    def attempts(self) -> int:
        return int(self._flow.counts.sum())

    @property
    def rate(self) -> float:
        """The speed of the law."""
        return self._flow.rate

    def stats(self) -> dict[str, Any]:
        """Counts for the result."""
        accepted, rejected = (int(n) for n in self._flow.counts)
        return {
            "steps": accepted,
            "rejected": rejected,
            "evaluations": self._scheme.evaluations * (accepted + rejected),
            "schemes": {self._scheme.name: accepted},
        }

    def snapshot(self) -> dict[str, Any]:
        """Everything that the future of the run depends on, and its counts."""
        return {
            "clock": tuple(self.clock),
            "coordinates": self._flow.x,
            "counts": self._flow.counts,
            "patience": self._flow.patience.numbers,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self.clock = restored(snapshot["clock"])
        self._flow.restart(np.array(snapshot["coordinates"]), self.elapsed)
        self._flow.counts[:] = snapshot["counts"]
        self._flow.patience.numbers[:] = snapshot["patience"]

    def _first_step(self, rtol: float, duration: float) -> float:
        """A step in which the state changes by about rtol^(1/8) / 10, relative."""
        changes = self._motion.relative_error(self._flow.velocity, self._flow.x)
        return 0.1 * rtol**0.125 * min(duration, 1 / changes if changes else np.inf)
