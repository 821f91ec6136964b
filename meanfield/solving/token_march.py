"""Tokens, or what is known of them, on their way through time."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.errors import MeanfieldError
from ..dynamics import EquiangularMotion, GramMotion, TokenMotion
from ..dynamics.overflow import reason_not_finite
from ..dynamics.token_steps import layer, lie_trotter, strang
from ..states import Gram, SomeTokens, Tokens
from ..steppers import DormandPrince, Layers, LieTrotter, Strang
from ..steppers.advance import PAUSED, REACHED, STEADY
from ..steppers.clock import restored, started
from ..steppers.fixed_steps import FixedSteps
from ..steppers.flow import Flow
from .arguments import Accuracy, Problem
from .fusion import Fusion
from .moving import Moving, check_layers
from .pieces import Pieces
from .standstill import why_too_small

__all__ = ["STALLED", "TokenMarch"]

STALLED = 101  # a step was too short for the clock to show


class TokenMarch:
    """See `March`. Adaptive steps of order 8 without noise; else, or if asked, fixed steps."""

    pause: int = 1

    def __init__(self, problem: Problem, accuracy: Accuracy, steady: float, moving: Moving):
        self._start, self._first = problem.start, problem.state
        self._duration = float(problem.times[-1] - problem.start)
        self._outputs = problem.times - problem.start
        self._model, self._engine = problem.model, moving.engine
        self._steady, self._rtol = steady, accuracy.rtol
        self._rng: Any = moving.rng
        self._scheme = accuracy.scheme
        self._whole = self._motion = self._motion_of(self._first)
        self._pieces = Pieces(self._whole, self._start, self._outputs)
        y = self._motion.coordinates(self._first)
        self._fusion = Fusion(y.shape[1], moving.merge)
        self.elapsed = self._goal = 0.0
        if self._scheme is Layers:
            check_layers(self._outputs, accuracy.dt, "an output or the end")
            check_layers(self._pieces.jumps, accuracy.dt, "a jump of the model")
        self._clock = started(1.0)
        self._pieces.enter(self._motion, 0.0)
        first_step = self._first_step(y)
        self._flow = self._steps(y, accuracy.dt)
        self._clock = started(accuracy.dt or first_step)
        self._stepped = True  # whether what a step brought together is still to be merged
        self._merge()

    def _motion_of(self, state: SomeTokens) -> Any:
        if isinstance(state, Tokens):
            layers = self._scheme is Layers
            return TokenMotion(self._model, state, self._engine, layers=layers)
        motion: Any = GramMotion if isinstance(state, Gram) else EquiangularMotion
        return motion(self._model, state, self._engine)

    def _steps(self, y: np.ndarray, dt: float | None) -> Any:
        if self._scheme is DormandPrince:
            rtol = 0.0 if dt else self._rtol
            options = {"rtol": rtol, "steady": self._steady, "start": self._start}
            return Flow(DormandPrince, self._motion, y, **options)
        reduced = isinstance(self._motion, EquiangularMotion)
        take_layer = EquiangularMotion.layer if reduced else layer
        maps = {
            Layers: lambda y, t, dt: take_layer(self._motion, y, t, dt),
            LieTrotter: lambda y, t, dt: lie_trotter(self._motion, y, t, dt),
            Strang: lambda y, t, dt: strang(self._motion, y, t, dt, self._rng),
        }
        return FixedSteps(maps[self._scheme], y, self._start)

    # What the driver asks ------------------------------------------------------------------

    @property
    def t(self) -> float:
        return self._start + self.elapsed

    @property
    def state(self) -> SomeTokens:
        y, fusion = self._array, self._fusion
        if self._stepped and fusion.distance is not None:  # within a step, after which they merge
            fusion = fusion.copy()
            rows = fusion.merge(self._motion.state_of(y), self.t)
            y = y if rows is None else self._motion.coordinates(rows)
        return self._whole.state_of(fusion.spread(y, self._has_masses))

    @property
    def _array(self) -> np.ndarray:
        """Coordinates now, which may be within the last step."""
        return self._flow.x if self.elapsed == self._clock.t else self._flow.within(self.elapsed)

    @property
    def _has_masses(self) -> bool:
        return bool(self._model.reaction)

    @property
    def attempts(self) -> int:
        return int(self._flow.counts.sum())

    @property
    def rate(self) -> float:
        """(int |v|^2 dmu)^(1/2); of inner products the fastest change of one."""
        with np.errstate(over="ignore", invalid="ignore"):
            y = self._array
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
        if self._clock.t < target:
            self._merge()
            if self._clock.t >= self._goal:
                self._goal = self._next_goal(target)
            code = self._step(limit)
            if code not in (REACHED, PAUSED, STEADY):
                self.elapsed = self._clock.t
                return code
            if self._clock.t == self.elapsed and self._stepped:
                self._merge()
                return STALLED
        self.elapsed = min(self._clock.t, target)
        if self.elapsed == self._clock.t:
            self._merge()
            if self._steady and self.rate <= self._steady:
                return STEADY
        return REACHED if self.elapsed == target else PAUSED

    def _next_goal(self, target: float) -> float:
        """Where to plan steps to: the next output, or the last that a single step can reach.

        Outputs that it passes are within the step. A jump of the model is never passed.
        """
        if self.continuous:
            reach = self._clock.t + self._clock.proposal
            passed = int(np.searchsorted(self._outputs, reach, side="right"))
            target = max(target, self._outputs[passed - 1]) if passed else target
        return self._pieces.goal(self._clock.t, target)

    def _step(self, limit: int) -> int:
        if self._pieces.enter(self._motion, self._clock.t):
            self._flow.restart(self._flow.x, self._clock.t)
        before = self._flow.counts[0]
        code, self._clock = self._flow.advance(self._clock, self._goal, min(limit, 1))
        self._stepped = bool(self._flow.counts[0] > before)
        return code

    def _merge(self) -> None:
        """Merge what has collapsed in the last step, and go on with fewer tokens."""
        if self._stepped and self._fusion.distance is not None:
            step = None
            if self.continuous and self._flow.before is not None:
                step = self._start + self._flow.before[1], self._flow.before[2], self._gaps
            tokens: Any = self._motion.state_of(self._flow.x)
            rows = self._fusion.merge(tokens, self._start + self._clock.t, step)
            if rows is not None:
                self._go_on(rows, self._motion_of(rows).coordinates(rows))
        self._stepped = False

    def _gaps(self, one: np.ndarray, two: np.ndarray) -> Callable:
        """Distances between rows, as a function of parts of the last step; see `Fusion`."""
        step, d = self._flow.interpolant, self._motion.dimension
        apart = step.of(lambda y: y[0, one, :d] - y[0, two, :d])
        if not self._motion.has_radii:
            return lambda s: np.linalg.norm(apart(s), axis=1)
        longer = step.of(lambda y: y[0, one, d, None] - y[0, two, d, None])
        radii = step.of(lambda y: y[0, two, d, None])
        return lambda s: np.linalg.norm(
            np.concatenate([apart(s), np.log1p(longer(s) / radii(s))], axis=1), axis=1
        )

    def _go_on(self, rows: Tokens, y: np.ndarray) -> None:
        """With other rows, at these coordinates."""
        self._motion = self._motion_of(rows)
        self._pieces.join(self._motion)
        self._flow.restart(y, self._clock.t, self._motion)

    def step_from(self, state: Any, elapsed: float, dt: float) -> SomeTokens:
        """The state one single step after another one, that at `elapsed` after the start."""
        fusion = Fusion(self._fusion.labels.size, self._fusion.distance and 0.0)
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
        if status == "step_too_small":
            stalled, merging = self._flow.patience.stalled, self._fusion.distance is not None
            now = self.elapsed, self._clock.step, stalled, merging
            return f"No step size meets rtol at t = {self.t:g}: " + why_too_small(
                self._model, self._first, *now
            )
        return (
            f"After t = {self.t:g} the state was not finite, a radius was not > 0, or tokens "
            "were far off the sphere: use a smaller dt."
        )

    def doubt(self, _state: Any, _t: float) -> str | None:
        """None: steps are controlled, and sums keep their stated tolerance."""
        return None

    def array(self, state: SomeTokens) -> np.ndarray:
        """The coordinates."""
        return self._whole.coordinates(state)

    def fixed(self) -> dict[str, np.ndarray]:
        """What does not move."""
        return self._whole.fixed()

    def state_of(self, array: np.ndarray) -> SomeTokens:
        """The state with these coordinates."""
        return self._whole.state_of(array)

    def snapshot(self) -> dict[str, Any]:
        """Everything that the future of the run depends on, and its counts."""
        random = None if self._rng is None else self._rng.bit_generator.state
        within = self.elapsed < self._clock.t
        x, *step = self._flow.before if within else (np.zeros(0), 0.0, 0.0)
        return {
            "clock": tuple(self._clock),
            "now": (self.elapsed, self._goal),
            "coordinates": self._flow.x,
            "counts": self._flow.counts,
            "patience": self._flow.patience.numbers,
            "random": json.dumps(random, default=lambda array: array.tolist()),
            "before": x,
            "step": step,
            **self._fusion.snapshot(),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self._clock = restored(snapshot["clock"])
        self.elapsed, self._goal = map(float, snapshot["now"])
        if self._rng is not None:
            self._rng.bit_generator.state = json.loads(str(snapshot["random"]))
        self._fusion.restore(snapshot)
        rows = self._fusion.rows_of(self._first) if self._fusion.times else self._first
        began, dt = map(float, snapshot["step"])
        within = self.elapsed < self._clock.t
        self._pieces.enter(self._motion, began if within else self._clock.t)
        self._go_on(rows, np.array(snapshot["coordinates"]))
        self._stepped = within
        if within:
            self._flow.repeat((np.array(snapshot["before"]), began, dt))
        self._flow.counts[:] = snapshot["counts"]
        self._flow.patience.numbers[:] = snapshot["patience"]

    def _first_step(self, y: np.ndarray) -> float:
        """A step in which the state changes by about rtol^(1/8) / 10, relative.

        Raises
        ------
        MeanfieldError
            If the first velocities are not finite.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            velocity = self._motion.velocity(y, self._start)
            if not np.isfinite(velocity).all():
                reason = reason_not_finite(self._model, self._motion, y, self._start)
                raise MeanfieldError(
                    f"The velocities under {self._model!r} are not finite at the start: {reason}"
                )
        fastest = float(np.abs(velocity).max())  # squares of velocities may overflow
        rate = self._motion.relative_error(velocity / fastest, y) * fastest if fastest else 0.0
        return 0.1 * self._rtol**0.125 * min(self._duration, 1 / rate if rate else np.inf)
