"""Tokens, or their inner products, on their way through time."""

import json
from typing import Any

import numpy as np

from ..evolution import GramMotion, TokenMotion
from ..evolution.token_steps import layer, lie_trotter, strang
from ..states import Gram, Tokens
from ..steppers import DormandPrince, Layers, LieTrotter, Strang
from ..steppers.advance import STEADY
from ..steppers.clock import restored, started
from ..steppers.fixed_steps import FixedSteps
from ..steppers.flow import Flow
from .arguments import Accuracy, Problem
from .fusion import Fusion
from .moving import Moving

__all__ = ["TokenMarch"]


class TokenMarch:
    """See `March`. Adaptive steps of order 8 without noise; else, or if asked, fixed steps."""

    pause: int = 1

    def __init__(self, problem: Problem, accuracy: Accuracy, steady: float, moving: Moving):
        self._start, self._first = problem.start, problem.state
        self._duration = float(problem.times[-1] - problem.start)
        self._model, self._engine = problem.model, moving.engine
        self._steady, self._rtol = steady, accuracy.rtol
        self._rng: Any = moving.rng
        self._scheme = accuracy.scheme
        self._fusion = Fusion(len(self._first), moving.merge)
        self._whole = self._motion = self._motion_of(self._first)
        ends = self._whole.breakpoints(self._start, self._start + self._duration)
        self._breaks = [t - self._start for t in ends]
        self.clock = started(1.0)
        self._enter_piece()
        self._flow = self._steps(self._motion.coordinates(self._first), accuracy.dt)
        self.clock = started(accuracy.dt or self._first_step())

    def _motion_of(self, state: Tokens | Gram) -> Any:
        if isinstance(state, Gram):
            return GramMotion(self._model, state, self._engine)
        return TokenMotion(self._model, state, self._engine)

    def _steps(self, y: np.ndarray, dt: float | None) -> Any:
        if self._scheme is DormandPrince:
            rtol = 0.0 if dt else self._rtol
            options = {"rtol": rtol, "steady": self._steady, "start": self._start}
            return Flow(DormandPrince, self._motion, y, **options)
        maps = {
            Layers: lambda y, t, dt: layer(self._motion, y, t, dt),
            LieTrotter: lambda y, t, dt: lie_trotter(self._motion, y, t, dt),
            Strang: lambda y, t, dt: strang(self._motion, y, t, dt, self._rng),
        }
        return FixedSteps(maps[self._scheme], y, self._start)

    # What the driver asks ------------------------------------------------------------------

    @property
    def t(self) -> float:
        return self._start + self.clock.t

    @property
    def elapsed(self) -> float:
        return self.clock.t

    @property
    def state(self) -> Tokens | Gram:
        return self._whole.state_of(self._fusion.spread(self._flow.x, self._has_masses))

    @property
    def _has_masses(self) -> bool:
        return bool(self._model.reaction)

    @property
    def attempts(self) -> int:
        return int(self._flow.counts.sum())

    @property
    def rate(self) -> float:
        """(int |v|^2 dmu)^(1/2); of inner products the fastest change of one."""
        y = self._flow.x
        return self._motion.rate(y, self._motion.velocity(y, self.t))

    @property
    def size(self) -> str:
        return f"{self._flow.x.shape[1]} tokens"

    @property
    def continuous(self) -> bool:
        """Whether a step can be taken again, shorter, as events need it."""
        return self._scheme is DormandPrince

    def advance(self, target: float, limit: int) -> int:
        """Towards `target` after the start, at most `limit` attempts; why it came back."""
        stop = min([target, *[b for b in self._breaks if b > self.elapsed]])
        watched = self._fusion.distance is not None or (self._steady and not self.continuous)
        before = self._flow.counts[0]
        code, self.clock = self._flow.advance(self.clock, stop, 1 if watched else limit)
        if self._flow.counts[0] > before and self._fusion.distance is not None:
            self._merge()
        if self.elapsed == stop != target:
            self._enter_piece()
            self._flow.restart(self._flow.x, self.elapsed)
        if self._steady and not self.continuous and self.rate <= self._steady:
            return STEADY
        return code

    def _enter_piece(self) -> None:
        """Go on to the next breakpoint of the model, if it has any."""
        if self._breaks:
            edges = [0.0, *self._breaks, self._duration]
            i = int(np.searchsorted(self._breaks, self.elapsed, side="right"))
            self._motion.enter(self._start + edges[i], self._start + edges[i + 1])

    def _merge(self) -> None:
        """Merge what has collapsed, and go on with fewer tokens."""
        tokens: Any = self._motion.state_of(self._flow.x)
        rows = self._fusion.merge(tokens, self.t)
        if rows is not None:
            self._go_on(rows, self._motion_of(rows).coordinates(rows))

    def _go_on(self, rows: Tokens, y: np.ndarray) -> None:
        """With other rows, at these coordinates."""
        self._motion = self._motion_of(rows)
        self._enter_piece()
        self._flow.restart(y, self.elapsed, self._motion)

    def step_from(self, state: Any, elapsed: float, dt: float) -> Tokens | Gram:
        """The state one single step after another one, that at `elapsed` after the start."""
        fusion = Fusion(len(state), self._fusion.distance and 0.0)
        rows = (self._fusion.times and fusion.merge(state, self.t)) or state
        motion = self._motion_of(rows)
        flow = Flow(DormandPrince, motion, motion.coordinates(rows), rtol=0.0, steady=0.0)
        new, _, _ = flow.step(flow.x, flow.velocity, self._start + elapsed, dt)
        return self._whole.state_of(fusion.spread(new, self._has_masses))

    # The result ----------------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """Counts for the result."""
        accepted, rejected = (int(n) for n in self._flow.counts)
        return {
            "steps": accepted,
            "rejected": rejected,
            "evaluations": self._scheme.evaluations * (accepted + rejected),
            "schemes": {self._scheme.name: accepted},
            "engine": self._whole.engine,
            "merges": [list(entry) for entry in self._fusion.times],
        }

    def failure(self, status: str) -> str:
        """Why the run could not go on, and what to do."""
        return {
            "step_too_small": (
                f"No step size meets rtol at t = {self.t:g}: the velocity is not smooth there, or "
                "not finite. Use a larger rtol, or dt= for fixed steps."
            ),
            "not_finite": f"The state was not finite after t = {self.t:g}: use a smaller dt.",
        }[status]

    def doubt(self, _state: Any, _t: float) -> str | None:
        """None: steps are controlled, and sums keep their stated tolerance."""
        return None

    def array(self, state: Tokens | Gram) -> np.ndarray:
        """The coordinates."""
        return self._whole.coordinates(state)

    def fixed(self) -> dict[str, np.ndarray]:
        """The masses."""
        return {"masses": self._first.masses}

    def state_of(self, array: np.ndarray) -> Tokens | Gram:
        """The state with these coordinates."""
        return self._whole.state_of(array)

    def snapshot(self) -> dict[str, Any]:
        """Everything that the future of the run depends on, and its counts."""
        random = None if self._rng is None else self._rng.bit_generator.state
        return {
            "clock": tuple(self.clock),
            "coordinates": self._flow.x,
            "counts": self._flow.counts,
            "random": json.dumps(random, default=lambda array: array.tolist()),
            **self._fusion.snapshot(),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self.clock = restored(snapshot["clock"])
        if self._rng is not None:
            self._rng.bit_generator.state = json.loads(str(snapshot["random"]))
        self._fusion.restore(snapshot)
        rows = self._fusion.rows_of(self._first) if self._fusion.times else self._first
        self._go_on(rows, np.array(snapshot["coordinates"]))
        self._flow.counts[:] = snapshot["counts"]

    def _first_step(self) -> float:
        """A step in which the state changes by about rtol^(1/8) / 10, relative."""
        y = self._flow.x
        velocity = self._motion.velocity(y, self._start)
        changes = self._motion.relative_error(self._duration * velocity, y)
        return self._duration * min(1.0, 0.1 * self._rtol**0.125 / max(1.0, changes))
