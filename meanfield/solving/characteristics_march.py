"""A quadrature on its way through time, carried by the flow."""

import json
from typing import Any

import numpy as np

from ..dynamics import CharacteristicsMotion
from ..spaces.characteristics import Characteristics
from .arguments import Accuracy, Problem
from .doubts import Doubts
from .flow_march import FlowMarch

__all__ = ["CharacteristicsMarch"]


class CharacteristicsMarch(FlowMarch):
    """See `March`. Steps keep the error of W2 to a Dirac below rtol, relative."""

    def __init__(self, problem: Problem, accuracy: Accuracy, steady: float):
        motion = CharacteristicsMotion(problem.model, problem.state, accuracy.rtol)
        smallest = 1e-15 * float(problem.times[-1] - problem.start)
        options = {"steady": steady, "smallest_step": smallest}
        super().__init__(problem, accuracy, motion, problem.state.coordinates, **options)
        self._doubts = Doubts(problem.state, motion)

    @property
    def state(self) -> Characteristics:
        return self._first.moved(self._flow.x)

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
        """Counts, and how the nodes resolve the density."""
        return super().stats() | {
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
        return super().snapshot() | {"doubts": json.dumps(self._doubts.snapshot())}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        super().restore(snapshot)
        self._doubts.restore(json.loads(str(snapshot["doubts"])))
