"""The integrator loop: clock, steps, policies, dense output, counts and snapshots.

States with a velocity are moved by `FlowIntegration`, whose policies are merging, the detection of
blow-ups and implicit steps. Expansions in modes are moved by
`degree_adaptation.SpectralIntegration`, with policies for their degree and their scheme.
"""

import copy
import json
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ..core.checks import returned
from ..core.errors import MeanfieldError
from ..dynamics.motion import Failure, Motion
from ..steppers import Layers, Scheme, Splitting
from ..steppers.advance import PAUSED, REACHED, STEADY
from ..steppers.clock import Clock, restored, started
from ..steppers.flow import ExplicitFlow, Flow, Step
from ..steppers.splitting import FixedSteps
from .arguments import Arguments, check_layers
from .merging import Merging
from .policies import BlowUp, Policy, Stiffness

STALLED = 101  # a step was too short for the clock to show
ONE_TIME = 8 * np.finfo(float).eps


class Integration(ABC):
    """A state on its way through time, as the driver asks for it.

    The clock counts from the start: times far from zero lose no digits.

    Attributes
    ----------
    motion : Motion
        Of the state as a whole.
    start : float
        The first time.
    clock : Clock
        The time since the start, at the end of the last step, and the plan of steps.
    elapsed : float
        The time since the start; it may be within the last step.
    tally : dict of ndarray
        For each scheme: steps accepted, steps rejected, evaluations.
    policies : dict of Policy
        They are consulted after every step, in this order.
    continuous : bool
        Whether a step can be taken again, shorter, as events need it.
    pause : int
        Steps after which the driver may look around without loss of speed.
    """

    clock: Clock
    policies: dict[str, Policy]
    continuous: bool = True
    pause: int = 1
    stalled: bool = False

    def __init__(self, arguments: Arguments):
        self.motion: Any = arguments.motion
        self.start, self.rtol, self.dt = arguments.start, arguments.rtol, arguments.dt
        self.outputs = arguments.times - arguments.start
        self.duration = float(self.outputs[-1])
        self.steady = arguments.steady
        self.tally: dict[str, np.ndarray] = {}

    @property
    def t(self) -> float:
        return self.start + self.elapsed

    @property
    def elapsed(self) -> float:
        return self.clock.t

    @property
    @abstractmethod
    def state(self) -> Any: ...

    @property
    def coordinates(self) -> np.ndarray:
        """Those at the end of the last step."""
        return self.motion.coordinates(self.state)

    @property
    @abstractmethod
    def rate(self) -> float:
        """The rate of change that a steady state is known by."""

    @property
    @abstractmethod
    def size(self) -> str:
        """How fine the representation is, for the progress bar."""

    @abstractmethod
    def advance(self, target: float, limit: int) -> int:
        """Towards `target` after the start, at most `limit` attempts; why it came back."""

    @abstractmethod
    def step_from(self, state: Any, elapsed: float, dt: float) -> Any:
        """The state one single step after another one, that at `elapsed` after the start."""

    def consult(self, code: int = PAUSED, *, always_only: bool = False) -> int | None:
        """Let policies follow a step that came back with a code; why the run ends, or None."""
        for policy in self.policies.values():
            if policy.always or not always_only:
                end = policy.after_step(self, code)
                if end is not None:
                    return end
        return None

    def count(self, scheme: str, accepted: int, rejected: int, evaluations: int) -> None:
        """Add steps, and what they cost, to the tally."""
        self.tally[scheme] = self.tally.get(scheme, 0) + np.array([accepted, rejected, evaluations])

    @property
    def accepted(self) -> int:
        """Steps so far."""
        return int(sum(counts[0] for counts in self.tally.values()))

    @property
    def attempts(self) -> int:
        """Steps tried so far, accepted or rejected."""
        return int(sum(counts[:2].sum() for counts in self.tally.values()))

    def stats(self, state: Any, t: float) -> dict[str, Any]:
        """Counts for a result that ends with a state, and what policies and the motion tell it."""
        names = "steps", "rejected", "evaluations"
        totals = np.sum(list(self.tally.values()), axis=0).tolist()
        found: dict[str, Any] = dict(zip(names, totals, strict=True))
        found["schemes"] = {scheme: int(counts[0]) for scheme, counts in self.tally.items()}
        for policy in self.policies.values():
            found |= policy.stats(self.start)
        return found | self.motion.stats(state, t)

    def situation(self, stats: dict[str, Any]) -> Failure:
        """Where the run is, for the words in which it ends."""
        now = self.t, self.elapsed, self.coordinates, self.clock.step, self.stalled
        return Failure(*now, self.dt, self.rtol, stats, "merging" in self.policies)

    def snapshot(self) -> dict[str, Any]:
        """Everything that the future of the run depends on, and its counts, as arrays."""
        return {
            "clock": tuple(self.clock),
            "schemes": list(self.tally),
            "tally": list(self.tally.values()),
            **{
                f"{name}.{key}": value
                for name, policy in self.policies.items()
                for key, value in policy.snapshot().items()
            },
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self.clock = restored(snapshot["clock"])
        self.tally = dict(zip(map(str, snapshot["schemes"]), snapshot["tally"], strict=True))
        for name, policy in self.policies.items():
            own = {k[len(name) + 1 :]: v for k, v in snapshot.items() if k.startswith(name + ".")}
            policy.restore(own, self)


class FlowIntegration(Integration):
    """Steps of a flow: adaptive, or of a given length by a splitting.

    Attributes
    ----------
    first : object
        The initial state.
    rows : Motion
        That of the tokens that are left after merging; else `motion`.
    flow : Flow

    Steps are planned to the last output that a single step can reach: outputs within a step cost no
    steps where the scheme has dense output. Merging, the detection of blow-ups and implicit steps
    follow once the outputs within a step are through, so that a run that is resumed within a step
    sees them at the same place.
    """

    elapsed: float = 0.0

    def __init__(self, arguments: Arguments):
        super().__init__(arguments)
        motion = self.motion
        self.first, self.rows = arguments.state, motion
        self._scheme: Any = arguments.scheme
        self._rng: Any = arguments.rng
        self._jumps = _jumps(motion, self.start, self.outputs)  # which no step passes
        self._piece: tuple[float, float] | None = None  # between two of them
        y = np.array(motion.coordinates(self.first), dtype=float)
        if self._scheme is Layers:
            check_layers(self.outputs, self.dt, "an output or the end")
            check_layers(self._jumps, self.dt, "a jump of the model")
        self._enter(0.0)
        first_step = self._first_step(y)
        motion.begin(y, self.start)
        self.flow: Any = self._steps(y)
        self.clock, self._goal = started(self.dt or first_step), 0.0
        self.count(self._scheme.name, 0, 0, 0)
        self.policies = {}
        if arguments.merge is not None:
            self.policies["merging"] = Merging(y.shape[1], arguments.merge)
        if motion.detects_blow_up:
            self.policies["blow_up"] = BlowUp()
        if motion.implicit:
            self.policies["stiffness"] = Stiffness()
        self._stepped = True  # whether what a step brought about is still to be looked at
        self._follow()

    def _steps(self, y: np.ndarray) -> Flow:
        scheme = self._scheme
        if isinstance(scheme, Splitting):
            return FixedSteps(
                scheme, lambda y, t, dt: self.rows.step(scheme, y, t, dt, self._rng), y, self.start
            )
        return ExplicitFlow(scheme, self.rows, y, **self.flow_options)

    @property
    def flow_options(self) -> dict[str, float]:
        """How steps of a flow are controlled."""
        return {
            "rtol": 0.0 if self.dt else self.rtol,
            "smallest_step": self.motion.smallest_step * self.duration,
            "start": self.start,
        }

    # What the driver asks ------------------------------------------------------------------

    @property
    def state(self) -> Any:
        y, motion = self._array, self.rows
        merging: Any = self.policies.get("merging")
        if merging is None:
            return motion.state_of(y)
        if self._stepped:  # within a step, after which tokens merge
            merging = copy.deepcopy(merging)
            rows = merging.merge(motion.state_of(y), self.t)
            y = y if rows is None else motion.coordinates(rows)
        return self.motion.state_of(merging.spread(y, bool(motion.model.reaction)))

    @property
    def _array(self) -> np.ndarray:
        """Coordinates now, which may be within the last step."""
        return self.flow.x if self.elapsed == self.clock.t else self.flow.within(self.elapsed)

    @property
    def rate(self) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            y = self._array
            return self.rows.rate(y, self.rows.velocity(y, self.t))

    @property
    def coordinates(self) -> np.ndarray:
        return self.flow.x

    @property
    def size(self) -> str:
        return self.motion.size(self.flow.x)

    @property
    def stalled(self) -> bool:  # type: ignore[override]
        return self.flow.stalls.stalled

    @property
    def continuous(self) -> bool:  # type: ignore[override]
        return isinstance(self._scheme, Scheme)

    def advance(self, target: float, limit: int) -> int:
        if self.clock.t < target:
            if (code := self._follow()) is not None:
                return code
            if self.clock.t >= self._goal:
                self._goal = self._next_goal(target)
            code = self._step(limit)
            if code not in (REACHED, PAUSED):
                self.elapsed = self.clock.t
                return code
            if self.clock.t == self.elapsed and self._stepped:
                code = self._follow()
                return STALLED if code is None else code
        self.elapsed = min(self.clock.t, target)
        if self.elapsed == self.clock.t:
            if (code := self._follow()) is not None:
                return code
            if self.steady and self.rate <= self.steady:
                return STEADY
        return REACHED if self.elapsed == target else PAUSED

    def _next_goal(self, target: float) -> float:
        """Where to plan steps to: the last output that one step can reach; never past a jump."""
        if self.flow.dense:
            reach = self.clock.t + self.clock.proposal
            passed = int(np.searchsorted(self.outputs, reach, side="right"))
            target = max(target, self.outputs[passed - 1]) if passed else target
        return min([target, *[jump for jump in self._jumps if jump > self.clock.t]])

    def _enter(self, elapsed: float) -> bool:
        """Tell motions between which jumps a time is; whether they are other ones."""
        edges = [0.0, *self._jumps, self.duration]
        i = int(np.searchsorted(self._jumps, elapsed, side="right"))
        piece = self.start + edges[i], self.start + edges[i + 1]
        if not self._jumps or piece == self._piece:
            return False
        self._piece = piece
        for motion in (self.motion, self.rows):
            motion.enter(*piece)
        return True

    def _step(self, limit: int) -> int:
        if self._enter(self.clock.t):
            self.flow.restart(self.flow.x, self.start + self.clock.t)
        before = self.flow.counts.copy()
        code, self.clock = self.flow.advance(self.clock, self._goal, min(limit, 1))
        made = self.flow.counts - before
        self.count(self.flow.scheme.name, *made)
        self._stepped = bool(made[0])
        return code

    def _follow(self) -> int | None:
        """What comes after a step, once; why the run ends there, or None."""
        if not self._stepped:
            return None
        self._stepped, step = False, self.flow.before
        if step is not None:
            self.motion.after_step(self.flow.x, self.start + self.clock.t)
        return self.consult(always_only=step is None or bool(self.dt))

    def go_on(self, rows: Motion, y: np.ndarray) -> None:
        """With other rows, at these coordinates."""
        self.rows = rows
        self.flow.restart(y, self.start + self.clock.t, rows)

    def step_from(self, state: Any, elapsed: float, dt: float) -> Any:
        merging: Any = self.policies.get("merging")
        rows = None
        if merging is not None and merging.times:
            merging = Merging(merging.labels.size, 0.0)
            rows = merging.merge(state, self.t)
        motion = self.motion if rows is None else self.motion.with_state(rows)
        y = np.array(motion.coordinates(state if rows is None else rows), dtype=float)
        flow = type(self.flow)(self.flow.scheme, motion, y, **self.flow_options)
        velocity = motion.velocity(y, self.start + elapsed)
        new, _, _ = flow.step(y, velocity, elapsed, dt)
        if merging is not None:
            new = merging.spread(new, bool(motion.model.reaction))
        return self.motion.state_of(new)

    def stats(self, state: Any, t: float) -> dict[str, Any]:
        merges: dict[str, Any] = {"merges": []} if "merge" in self.motion.options else {}
        return merges | super().stats(state, t)

    # Kept in a checkpoint ------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        random = None if self._rng is None else self._rng.bit_generator.state
        within = self.elapsed < self.clock.t
        step = self.flow.before if within else Step(np.zeros(0), 0.0, 0.0, 0.0)
        return super().snapshot() | {
            "now": (self.elapsed, self._goal, self.flow.t),
            "coordinates": self.flow.x,
            "stalls": self.flow.stalls.numbers,
            "random": json.dumps(random, default=lambda array: array.tolist()),
            "before": step.x,
            "step": step[1:],
            "motion": json.dumps(self.motion.snapshot()),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.elapsed, self._goal, t = map(float, snapshot["now"])
        if self._rng is not None:
            self._rng.bit_generator.state = json.loads(str(snapshot["random"]))
        self.motion.restore(json.loads(str(snapshot["motion"])))
        step, end = Step(np.array(snapshot["before"]), *snapshot["step"]), snapshot["clock"][0]
        self._stepped = bool(self.elapsed < end)
        self._enter(step.elapsed if self._stepped else end)
        super().restore(snapshot)
        self.flow.restart(np.array(snapshot["coordinates"]), t, self.rows)
        if self._stepped:
            self.flow.repeat(step)
        self.flow.stalls.numbers[:] = snapshot["stalls"]

    def _first_step(self, y: np.ndarray) -> float:
        """A step in which the state changes by about rtol^(1/8) / 10, relative.

        Raises
        ------
        MeanfieldError
            If the first velocities are not finite.
        TypeError, ValueError
            If they are not one real number for each coordinate.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            who = f"{type(self.motion).__name__}.velocity"
            velocity = returned(who, self.motion.velocity(y, self.start), y.shape)
            if not np.isfinite(velocity).all():
                reason = self.motion.why_not_finite(y, self.start)
                model = self.motion.model
                raise MeanfieldError(
                    f"The velocities under {model!r} are not finite at the start: {reason}"
                )
        fastest = float(np.abs(velocity).max())  # squares of velocities may overflow
        rate = self.motion.relative_error(velocity / fastest, y) * fastest if fastest else 0.0
        return 0.1 * self.rtol**0.125 * min(self.duration, 1 / rate if rate else np.inf)


def _jumps(motion: Motion, start: float, outputs: np.ndarray) -> list[float]:
    """Times since the start at which a model jumps; one next to an output is that output."""
    duration = float(outputs[-1])
    end, jumps = start + duration, []
    for t in motion.breakpoints(start, float(np.nextafter(end, np.inf))):
        elapsed = min(t, end) - start
        nearest = float(outputs[np.abs(outputs - elapsed).argmin()])
        same = abs(nearest - elapsed) <= ONE_TIME * (abs(start) + duration)
        jumps.append(nearest if same else elapsed)
    return jumps
