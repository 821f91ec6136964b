"""The integrator loop: clock, steps, policies, dense output, counts and snapshots.

States with a velocity are moved by `FlowIntegration`, whose policies are merging, the detection of
blow-ups and implicit steps. Expansions in modes are moved by
`spectral_integration.SpectralIntegration`, with policies for their degree and their scheme.
"""

import copy
import json
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ..core.checks import returned
from ..core.errors import MeanfieldError
from ..derivatives.journal import FlowJournal
from ..dynamics.motion import Failure, Motion
from ..steppers import Layers, Scheme, Splitting
from ..steppers.advance import NOT_FINITE, PAUSED, REACHED, STEADY, TOO_SMALL
from ..steppers.clock import Clock, first_steps, restored, started
from ..steppers.flow import NO_FLOAT_WARNINGS, ExplicitFlow, PointFlow, Stall, Step
from ..steppers.splitting import FixedSteps
from .arguments import Arguments, check_layers
from .merging import Merging, MergingHint, may_merge
from .policies import BLOWN_UP, CANCELLED_RATES, DEGREE_EXHAUSTED, BlowUp, Policy, Stiffness
from .streams import random_state, restore_random

KEPT_STAGES = 1 << 29  # bytes of stages that are kept for tangents
STALLED = 101  # a step was too short for the clock to show
FAILURES = {
    NOT_FINITE: "not_finite",
    TOO_SMALL: "step_too_small",
    DEGREE_EXHAUSTED: "unresolved",
    BLOWN_UP: "blow-up",
    CANCELLED_RATES: "cancelled",
}  # causes for which a run cannot go on, by the codes of `Integration.advance`
FEWEST_REJECTED = 50  # rejected steps that tell something of the drift
ROUGH_DRIFT = "More steps were rejected than accepted: the drift seems discontinuous. Give dt."
RESUMABLE = ("interrupted", "max_steps", "stopped")  # a run that goes on when it is resumed
STATUS_OF_CAUSE = {"cancelled": "step_too_small"}  # of a cause, where it has not the same name
JUMP_MARGIN = (
    32 * np.finfo(float).eps
)  # relative: times this far from a jump are before or after it


class Integration(ABC):
    """A state, or an ensemble of states, on its way through time, as the driver asks for it.

    The clock counts from the start: times far from zero lose no digits.

    Attributes
    ----------
    start : float
        The first time.
    outputs : ndarray
        Times of outputs since the start.
    elapsed : float
        The time since the start, of the state.
    steady : float
        The rate of change at which the run ends; 0 never.
    within : bool
        Whether the state is one within the last step.
    pause : int
        Steps after which the driver may look around without loss of speed.
    continuous : bool
        Whether a step can be taken again, shorter, as events need it: by `step_from`.
    """

    elapsed: float = 0.0
    within: Any = False
    pause: Any = 1
    continuous: Any = False
    journal: Any = None  # of accepted steps, for derivatives
    t_events: Any = None  # times of events, where an integration looks for them itself
    cause: Any = None  # of the end of an ensemble all of whose members have ended

    def __init__(self, arguments: Arguments):
        self._arguments = arguments
        self.start, self.steady = arguments.start, arguments.steady
        self.outputs = arguments.times - arguments.start
        self.duration = float(self.outputs[-1])

    @property
    def t(self) -> float:
        return self.start + self.elapsed

    @property
    @abstractmethod
    def state(self) -> Any: ...

    @property
    @abstractmethod
    def rate(self) -> float:
        """The rate of change that a steady state is known by."""

    @property
    @abstractmethod
    def size(self) -> str:
        """The size of the representation in words, for the progress bar."""

    @property
    @abstractmethod
    def progress(self) -> float:
        """The part of the way that lies behind."""

    @property
    @abstractmethod
    def attempts(self) -> int:
        """Steps tried so far, accepted or rejected; the most of a member."""

    @abstractmethod
    def advance(self, output: float, limit: int) -> int:
        """Move towards an output by at most `limit` attempts; return why it came back, a code."""

    def step_from(self, state: Any, elapsed: float, dt: float) -> Any:
        """The state one single step after another one, that at `elapsed` after the start."""
        raise NotImplementedError

    @abstractmethod
    def ending(self, cause: str, state: Any, t: float) -> dict[str, Any]:
        """The end with this state, as plain data: status, message, warning, and counts."""

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """Everything that the future of the run depends on, and its counts, as arrays."""

    @abstractmethod
    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go back to a snapshot."""


class SteppedIntegration(Integration):
    """One run, in steps that all parts of the state have in common.

    Steps do not depend on the outputs where the state within a step is known: they are planned to
    the end. The driver is taken through the outputs within a step, then to its end. Only there
    policies follow, so that a run that is resumed within a step consults them at the same place.

    Attributes
    ----------
    motion : Motion
        Of the state as a whole.
    clock : Clock
        The time since the start, at the end of the last step, and the plan of steps.
    tally : dict of ndarray
        For each scheme: steps accepted, steps rejected, evaluations.
    policies : dict of Policy
        They are consulted after every step, in this order.
    """

    clock: Clock
    policies: dict[str, Policy]
    continuous: Any = True
    stalled: bool = False

    def __init__(self, arguments: Arguments):
        super().__init__(arguments)
        self.rtol, self.dt = arguments.rtol, arguments.dt
        self.tally: dict[str, np.ndarray] = {}
        self._code = PAUSED  # with which the last steps came back
        self.jumps = arguments.jumps  # which no step passes
        self._piece: tuple[float, float] | None = None  # between two of them

    @property
    def motion(self) -> Any:
        return self._arguments.motion

    @property
    def progress(self) -> float:
        return self.elapsed / self.duration

    @property
    def within(self) -> bool:
        return self.elapsed < self.clock.t

    @property
    def coordinates(self) -> np.ndarray:
        """Coordinates at the end of the last step."""
        return self.motion.coordinates(self.state)

    @np.errstate(**NO_FLOAT_WARNINGS)
    def advance(self, output: float, limit: int) -> int:
        if not self.within:
            self._code = self.take_steps(output, limit)
        return self.arrive(output)

    def arrive(self, output: float) -> int:
        """Go to the output, or to the end of the steps, where policies follow; return why."""
        self.elapsed = min(self.clock.t, output)
        if self.within:
            return REACHED
        end = self.follow(self._code)
        return self._code if end is None else end

    @abstractmethod
    def take_steps(self, output: float, limit: int) -> int:
        """Move the clock until it is at the output or beyond; return why it stopped, a code."""

    @abstractmethod
    def follow(self, code: int) -> int | None:
        """React to steps that came back with a code; return why the run ends there, or None."""

    def goal(self, output: float, dense: bool) -> float:
        """The time to which steps are planned: the end, or an output; never past a jump."""
        goal = self.duration if dense else output
        return min([goal, *[jump for jump in self.jumps if jump > self.clock.t]])

    @property
    def motions(self) -> list[Motion]:
        """The motions that velocities are asked of."""
        return [self.motion]

    def enter_piece(self, elapsed: float) -> bool:
        """Tell motions between which jumps a time is; return whether these have changed."""
        if not self.jumps:
            return False
        edges = [0.0, *self.jumps, self.duration]
        i = int(np.searchsorted(self.jumps, elapsed, side="right"))
        start, end = self.start + edges[i], self.start + edges[i + 1]
        if (start, end) == self._piece:
            return False
        self._piece = start, end
        before, after = (
            min(JUMP_MARGIN * max(abs(self.start), abs(edge)), (end - start) / 4)
            for edge in (start, end)
        )
        for motion in self.motions:
            motion.enter(start + before, end - after)
        return True

    def consult(self, code: int = PAUSED, *, always_only: bool = False) -> int | None:
        """Let policies follow a step with this code; return why the run ends, or None."""
        for policy in self.policies.values():
            if policy.always or not always_only:
                end = policy.after_step(self, code)
                if end is not None:
                    return end
        return None

    def check_finite(self, velocity: np.ndarray, y: np.ndarray) -> None:
        """Raise MeanfieldError, with the reason, unless the first velocities are finite."""
        if not np.isfinite(velocity).all():
            reason = self.motion.why_not_finite(y, self.start)
            model = self.motion.model
            raise MeanfieldError(
                f"The velocities under {model!r} are not finite at the start: {reason}"
            )

    def first_steps(self, y: np.ndarray, *, apart: bool = False) -> np.ndarray:
        """The step, or those of replicas that move apart, in which y changes by rtol^(1/8) / 10.

        Raises
        ------
        MeanfieldError
            If the first velocities are not finite.
        TypeError, ValueError
            If they are not one real number for each coordinate.
        """
        motion, start, part = self.motion, self.start, 0.1 * self.rtol**0.125
        axes = tuple(range(1 if apart else 0, y.ndim))

        def errors(error: np.ndarray) -> np.ndarray:
            return motion.relative_errors(error, y) if apart else motion.relative_error(error, y)

        def along(values: np.ndarray) -> np.ndarray:
            return np.reshape(values, (-1, *(1,) * (y.ndim - 1)))

        with np.errstate(**NO_FLOAT_WARNINGS):
            who = f"{type(motion).__name__}.velocity"
            velocity = returned(who, motion.velocity(y, start), y.shape)
            self.check_finite(velocity, y)
            fastest = np.abs(velocity).max(axis=axes)
            direction = velocity / along(np.where(fastest > 0, fastest, 1.0))
            sizes = errors(direction)  # squares of velocities may overflow
            moved = y + along(part / np.where(sizes > 0, sizes, 1.0)) * direction
            growths = errors(motion.velocity(moved, start) - velocity) / part
            return first_steps(part, sizes * fastest, growths, self.duration)

    def count(self, scheme: str, accepted: int, rejected: int, evaluations: int) -> None:
        """Add steps, and what they cost, to the tally."""
        self.tally[scheme] = self.tally.get(scheme, 0) + np.array([accepted, rejected, evaluations])

    @property
    def accepted(self) -> int:
        """Steps so far."""
        return int(sum(counts[0] for counts in self.tally.values()))

    @property
    def attempts(self) -> int:
        return sum(int(counts[0]) + int(counts[1]) for counts in self.tally.values())

    def counts(self) -> dict[str, Any]:
        """Numbers of steps, and the counts of the policies."""
        names = "steps", "rejected", "evaluations"
        totals = [int(sum(column)) for column in zip(*self.tally.values(), strict=True)]
        counts: dict[str, Any] = dict(zip(names, totals, strict=True))
        counts["schemes"] = {scheme: int(steps[0]) for scheme, steps in self.tally.items()}
        for policy in self.policies.values():
            counts |= policy.stats(self.start)
        return counts

    @np.errstate(**NO_FLOAT_WARNINGS)
    def stats(self, state: Any, t: float) -> dict[str, Any]:
        """Counts for a result that ends with a state, and what the motion tells of it."""
        return self.counts() | self.motion.stats(state, t)

    def situation(self, stats: dict[str, Any]) -> Failure:
        """The point that the run has reached, for the message of its end."""
        now = self.t, self.elapsed, self.coordinates, self.clock.step, self.stalled
        return Failure(*now, self.dt, self.rtol, stats, "merging" in self.policies)

    def ending(self, cause: str, state: Any, t: float) -> dict[str, Any]:
        stats = self.stats(state, t)
        at = self.situation(stats)
        stuck = cause in FAILURES.values()
        text = self.motion.failure(cause, at) if stuck else self._message(cause)
        failed = stuck and cause != "blow-up"
        warning = None if failed else self.motion.warning(state, t, at)
        remark = self.motion.remark(state)
        most_rejected = stats["rejected"] > np.maximum(stats["steps"], FEWEST_REJECTED)
        rough = ROUGH_DRIFT if np.any(most_rejected) else ""  # of any replica
        return {
            "status": STATUS_OF_CAUSE.get(cause, cause),
            "message": " ".join(filter(None, (text, warning, remark, rough))),
            "warning": text if failed else warning,
            "stats": stats | {"rate_of_change": self.rate},
        }

    def plain_ending(self, cause: str) -> dict[str, Any]:
        """The end of a member of an ensemble, where there is no failure and no warning."""
        stats = self.counts() | {"rate_of_change": self.rate}
        return {"status": STATUS_OF_CAUSE.get(cause, cause), "warning": None, "stats": stats}

    def _message(self, status: str) -> str:
        """A status that is no failure in words."""
        t, rate, steady = self.t, self.rate, self.steady
        not_yet = f", not steady yet: rate of change {rate:.1e} > {steady:g}" if steady else ""
        return {
            "finished": f"Reached t = {t:g}{not_yet}.",
            "steady": f"Steady at t = {t:g}: rate of change {rate:.1e}.",
            "event": "A terminal event occurred.",
            "stopped": f"The callback ended the run at t = {t:g}.",
            "interrupted": f"Interrupted at t = {t:g}; the states so far are kept.",
            "max_steps": f"max_steps was reached at t = {t:g}; the states so far are kept.",
        }[status]

    def snapshot(self) -> dict[str, Any]:
        return {
            "clock": tuple(self.clock),
            "elapsed": self.elapsed,
            "schemes": list(self.tally),
            "tally": list(self.tally.values()),
            **{
                f"{name}.{key}": value
                for name, policy in self.policies.items()
                for key, value in policy.snapshot().items()
            },
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.clock, self.elapsed = restored(snapshot["clock"]), float(snapshot["elapsed"])
        self.tally = dict(zip(map(str, snapshot["schemes"]), snapshot["tally"], strict=True))
        for name, policy in self.policies.items():
            part = {k[len(name) + 1 :]: v for k, v in snapshot.items() if k.startswith(name + ".")}
            policy.restore(part, self)


class FlowIntegration(SteppedIntegration):
    """Steps of a flow: adaptive, or of a given length by a splitting.

    Attributes
    ----------
    first : object
        The initial state.
    rows : Motion
        That of the tokens that are left after merging; else `motion`.
    flow : PointFlow
    """

    def __init__(self, arguments: Arguments):
        super().__init__(arguments)
        motion = self.motion
        self.first, self.rows = arguments.state, motion
        self._scheme: Any = arguments.scheme
        self._rng: Any = arguments.rng
        self._common: Any = arguments.common_rng
        y = np.array(motion.coordinates(self.first), dtype=float)
        if self._scheme is Layers:
            check_layers(self.outputs, self.dt, "an output or the end")
            check_layers(self.jumps, self.dt, "a jump of the model, or one of breaks,")
        self.enter_piece(0.0)
        first_step = float(self.first_steps(y))
        motion.begin(y, self.start)
        self.flow: Any = self._steps(y)
        self.clock = started(self.dt or first_step)
        self.count(self._scheme.name, 0, 0, 0)
        self.policies = {}
        if arguments.merge is not None:
            self.policies["merging"] = Merging(y.shape[1], arguments.merge)
        elif may_merge(motion):
            self.policies["hint"] = MergingHint()
        if motion.detects_blow_up:
            self.policies["blow_up"] = BlowUp()
        if motion.implicit:
            self.policies["stiffness"] = Stiffness()
        self._stepped = False  # whether the last attempt was a step
        self.journal = (
            None if motion.random else FlowJournal(KEPT_STAGES if arguments.tangents else 0)
        )
        self.consult(always_only=True)

    def _steps(self, y: np.ndarray) -> PointFlow:
        scheme = self._scheme
        if isinstance(scheme, Splitting):
            streams = (self._rng,) if self._common is None else (self._rng, self._common)
            return FixedSteps(
                scheme, lambda y, t, dt: self.rows.step(scheme, y, t, dt, *streams), y, self.start
            )
        return ExplicitFlow(scheme, self.rows, y, **self.flow_options)

    @property
    def flow_options(self) -> dict[str, float]:
        """Options of the flow that control its steps."""
        return {
            "rtol": 0.0 if self.dt else self.rtol,
            "smallest_change": self.motion.smallest_change,
            "start": self.start,
        }

    # What the driver asks ------------------------------------------------------------------

    @property
    def state(self) -> Any:
        y, motion = self._array, self.rows
        merging: Any = self.policies.get("merging")
        if merging is None:
            return motion.state_of(y)
        if self.within:  # a step, after which tokens merge
            merging = copy.deepcopy(merging)
            rows = merging.merge(motion.state_of(y), self.t)
            y = y if rows is None else motion.coordinates(rows)
        return self.motion.state_of(merging.spread(y, bool(motion.model.reaction)))

    @property
    def motions(self) -> list[Motion]:
        return [self.motion, self.rows]

    @property
    def _array(self) -> np.ndarray:
        """Coordinates now, which may be within the last step."""
        return self.flow.within(self.elapsed) if self.within else self.flow.x

    @property
    @np.errstate(**NO_FLOAT_WARNINGS)
    def rate(self) -> float:
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
        return self.flow.stall.shortest > 0

    @property
    def continuous(self) -> bool:
        return isinstance(self._scheme, Scheme)

    def take_steps(self, output: float, limit: int) -> int:
        if self.enter_piece(self.clock.t):
            self.flow.restart(self.flow.x, self.start + self.clock.t)
        before, counts = self.clock.t, self.flow.counts.copy()
        code, self.clock = self.flow.advance(
            self.clock, self.goal(output, self.flow.dense), min(limit, 1)
        )
        made = self.flow.counts - counts
        self.count(self.flow.scheme.name, *made)
        self._stepped = bool(made[0])
        if self._stepped and self.journal is not None:
            self._note()
        stands = self._stepped and self.clock.t == before and code == PAUSED
        return STALLED if stands else code

    def _note(self) -> None:
        """Keep the last step in the journal."""
        step = self.flow.before.elapsed, self.flow.before.dt
        stages = self.flow.stages if self.journal.room > 0 else None
        self.journal.add(self.flow.scheme, self.rows.ends, self._labels, step, stages)

    @property
    def _labels(self) -> np.ndarray | None:
        """The row of each token, once some have merged."""
        merging = self.policies.get("merging")
        return getattr(merging, "labels", None) if getattr(merging, "times", ()) else None

    def follow(self, code: int) -> int | None:
        if not self._stepped or code not in (PAUSED, REACHED, STALLED):
            return None
        self.motion.after_step(self.flow.x, self.t)
        end = self.consult(always_only=bool(self.dt))
        if end is None and self.steady and self.rate <= self.steady:
            return STEADY
        return end

    def go_on(self, rows: Motion, y: np.ndarray) -> None:
        """With other rows, at these coordinates."""
        self.rows = rows
        if self.journal is not None:
            self.journal.open(self.flow.scheme, rows.ends, self._labels)
        self.flow.restart(y, self.start + self.clock.t, rows)

    @np.errstate(**NO_FLOAT_WARNINGS)
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
        step = self.flow.before if self.within else Step(np.zeros(0), 0.0, 0.0, 0.0)
        return super().snapshot() | {
            "flow_t": self.flow.t,
            "coordinates": self.flow.x,
            "stall": tuple(self.flow.stall),
            "random": random_state(self._rng),
            "common": random_state(self._common),
            "before": step.x,
            "step": step[1:],
            "motion": json.dumps(self.motion.snapshot()),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        t = float(snapshot["flow_t"])
        for name, rng in (("random", self._rng), ("common", self._common)):
            restore_random(rng, snapshot[name])
        self.motion.restore(json.loads(str(snapshot["motion"])))
        self.journal = None  # which a checkpoint does not keep
        step = Step(np.array(snapshot["before"]), *snapshot["step"])
        self._stepped = bool(snapshot["elapsed"] < snapshot["clock"][0])
        self.enter_piece(step.elapsed if self._stepped else float(snapshot["elapsed"]))
        super().restore(snapshot)
        self.flow.restart(np.array(snapshot["coordinates"]), t, self.rows)
        if self.within:
            self.flow.repeat(step)
        self.flow.stall = Stall(*snapshot["stall"].tolist())
