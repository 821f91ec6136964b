"""A quadrature on its way through time, carried by the flow."""

import json
from typing import Any

import numpy as np

from ..characteristics import Characteristics
from ..evolution import CharacteristicsMotion
from ..steppers import DormandPrince
from ..steppers.clock import restored, started
from ..steppers.flow import Flow
from .arguments import Accuracy, Problem
from .doubts import Doubts

__all__ = ["CharacteristicsMarch"]


class CharacteristicsMarch:
    """See `March`. Steps keep the error of W2 to a Dirac below rtol, relative."""

    pause: int = 1
    continuous: bool = True

    def __init__(self, problem: Problem, accuracy: Accuracy, steady: float):
        self._start, self._first = problem.start, problem.state
        self._rtol, self._dt = accuracy.rtol, accuracy.dt
        duration = float(problem.times[-1] - problem.start)
        self._motion = CharacteristicsMotion(problem.model, problem.state, accuracy.rtol)
        self._scheme = accuracy.scheme or DormandPrince
        self._flow = Flow(
            self._scheme,
            self._motion,
            problem.state.coordinates,
            rtol=0.0 if self._dt else self._rtol,
            steady=steady,
            smallest_step=1e-15 * duration,
        )
        self.clock = started(self._dt or self._first_step(duration))
        self._doubts = Doubts(problem.state, self._motion)

    @property
    def t(self) -> float:
        return self._start + self.clock.t

    @property
    def elapsed(self) -> float:
        return self.clock.t

    @property
    def state(self) -> Characteristics:
        return self._first.moved(self._flow.x)

    @property
    def attempts(self) -> int:
        return int(self._flow.counts.sum())

    @property
    def rate(self) -> float:
        """The speed (int |v|^2 dmu)^(1/2)."""
        return self._flow.rate

    @property
    def size(self) -> str:
        return f"{len(self._first)} nodes"

    def advance(self, target: float, limit: int) -> int:
        """Towards `target` after the start, at most `limit` attempts; why it came back."""
        before = self.elapsed
        code, self.clock = self._flow.advance(self.clock, target, limit)
        if self.elapsed > before:
            self._doubts.look(self.t, self.state)
        return code

    def step_from(self, state: Characteristics, elapsed: float, dt: float) -> Characteristics:
        """The state one single step after another one."""
        x = state.coordinates
        new, _, _ = self._flow.step(x, self._motion.velocity(x), elapsed, dt)
        return self._first.moved(new)

    def stats(self) -> dict[str, Any]:
        """Counts for the result."""
        accepted, rejected = (int(n) for n in self._flow.counts)
        return {
            "steps": accepted,
            "rejected": rejected,
            "evaluations": self._scheme.evaluations * (accepted + rejected),
            "schemes": {self._scheme.name: accepted},
            "nodes": len(self._first),
            "kernel_degree": self._motion.degree,
            "quadrature_error": self.state.quadrature_error,
            "unresolved_since": self._doubts.since,
            "last_to_arrive": self._doubts.last_to_arrive,
        }

    def failure(self, status: str) -> str:
        """Why the run could not go on, and what to do."""
        return {
            "step_too_small": (
                f"No step size meets rtol at t = {self.t:g}: rounding errors are larger. Use a "
                "larger rtol."
            ),
            "not_finite": f"The state was not finite after t = {self.t:g}: use a smaller dt.",
        }[status]

    def doubt(self, _state: Characteristics, t: float) -> str | None:
        """Whether the nodes resolved the density all the way."""
        self._doubts.forget_after(t)
        return self._doubts.text

    def array(self, state: Characteristics) -> np.ndarray:
        """The coordinates."""
        return state.coordinates

    def fixed(self) -> dict[str, np.ndarray]:
        """Masses and limit."""
        return {"masses": self._first.masses, "limit": self._first.limit}

    def state_of(self, array: np.ndarray) -> Characteristics:
        """The state with these coordinates."""
        return self._first.moved(array)

    def snapshot(self) -> dict[str, Any]:
        """Everything that the future of the run depends on, and its counts."""
        return {
            "clock": tuple(self.clock),
            "coordinates": self._flow.x,
            "counts": self._flow.counts,
            "doubts": json.dumps(self._doubts.snapshot()),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self._flow.restart(np.array(snapshot["coordinates"]))
        self._flow.counts[:] = snapshot["counts"]
        self.clock = restored(snapshot["clock"])
        self._doubts.restore(json.loads(str(snapshot["doubts"])))

    def _first_step(self, duration: float) -> float:
        """A step in which the state changes by about rtol^(1/8) / 10, relative."""
        changes = self._motion.relative_error(duration * self._flow.velocity, self._flow.x)
        return duration * min(1.0, 0.1 * self._rtol**0.125 / max(1.0, changes))
