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

from ..core.annotations import JsonTable, MovedState, Snapshot
from ..core.checks import returned
from ..core.errors import MeanfieldError
from ..derivatives.journal import Journal
from ..dynamics.motion import Failure, Motion
from ..steppers import Layers, Scheme, Splitting
from ..steppers.advance import NOT_FINITE, PAUSED, REACHED, STEADY, TOO_SMALL
from ..steppers.clock import (
    GIVES_UP,
    LOST,
    STUCK,
    Clock,
    Stall,
    first_steps,
    planless,
    restored,
    write_clock,
)
from ..steppers.flow import NO_FLOAT_WARNINGS, ExplicitFlow, PointFlow, Step
from ..steppers.splitting import FixedSteps
from .arguments import Arguments, check_layers
from .merging import Merging, MergingHint, may_merge
from .policies import BLOWN_UP, CANCELLED_RATES, DEGREE_EXHAUSTED, BlowUp, Policy, Stiffness
from .streams import random_state, restore_random

KEPT_STAGES = 1 << 29  # bytes of Runge-Kutta stages that the journal may store for tangents
STEP_COUNTS = ("steps", "rejected", "evaluations")  # in `stats`, in the order of a tally
STALLED = 101  # code: an accepted step was too short to change the time of the clock
FAILURES = {
    NOT_FINITE: "not_finite",
    TOO_SMALL: "step_too_small",
    DEGREE_EXHAUSTED: "unresolved",
    BLOWN_UP: "blow-up",
    CANCELLED_RATES: "cancelled",
}  # names of the failures that end a run, by the codes that `Integration.advance` returns
FEWEST_REJECTED = 50  # so many rejected steps, or fewer, do not indicate a rough drift
ROUGH_DRIFT = "More steps were rejected than accepted: the drift seems discontinuous. Give dt."
END_OF_CODE = {STUCK: TOO_SMALL, GIVES_UP: TOO_SMALL, LOST: NOT_FINITE}
RESUMABLE = ("interrupted", "max_steps", "stopped")  # statuses after which a run can be resumed
STATUS_OF_CAUSE = {"cancelled": "step_too_small"}  # status of a cause whose name is no status
JUMP_MARGIN = 32 * np.finfo(float).eps  # relative distance from a jump without evaluations


class Integration(ABC):
    """Time integration of a state, or of an ensemble of states: the interface that `solve` uses.

    Times inside the integration are relative to `start`, so that a start far from zero costs no
    digits.

    Attributes
    ----------
    start : float
        First time of the run.
    outputs : ndarray
        Output times, relative to `start`.
    elapsed : float
        Time of `state`, relative to `start`.
    steady : float
        Rate of change at or below which the run ends as steady; 0 switches this off.
    within : bool
        Whether `state` is interpolated within the last step.
    pause : int
        Number of steps for one call of `advance` that costs no speed.
    continuous : bool
        Whether `step_from` can repeat a step with a shorter length, to locate events.
    """

    elapsed: float = 0.0
    within: Any = False
    pause: Any = 1
    continuous: Any = False
    journal: Any = None  # record of the accepted steps, for derivatives
    t_events: Any = None  # times of events, if the integration locates them itself
    cause: Any = None  # reason why an ensemble ended, once all its members have ended
    event: str = ""  # the event that ended the run, in words

    def __init__(self, arguments: Arguments):
        """Keep the arguments, with outputs relative to the start."""
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
        """Rate of change of the state, which is compared with `steady`."""

    @property
    @abstractmethod
    def size(self) -> str:
        """Size of the representation in words, for the progress bar."""

    @property
    @abstractmethod
    def progress(self) -> float:
        """Fraction of the time span that is done, from 0 to 1."""

    @property
    @abstractmethod
    def attempts(self) -> int:
        """Number of steps tried so far, accepted or rejected; of members the largest number."""

    @abstractmethod
    def advance(self, output: float, limit: int) -> int:
        """Integrate towards the time `output` by at most `limit` attempted steps.

        Returns
        -------
        int
            Code of the reason why the call returned: one of `steppers.advance`, such as REACHED,
            PAUSED or STEADY, STALLED, ALL_ENDED of an ensemble, or a key of FAILURES.
        """

    def step_from(self, state: MovedState, elapsed: float, dt: float) -> Any:
        """State after a single step of length `dt` from `state`, whose time is `elapsed`."""
        raise NotImplementedError

    @abstractmethod
    def ending(self, cause: str, state: MovedState, t: float) -> JsonTable:
        """Description of a run that ends with `state` at the time `t`, as plain data.

        `cause` is a status of `Solution` or a value of FAILURES. The entries are "status",
        "message", "warning", a text or None, and "stats", the counts.
        """

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """All data that are needed to continue the run, and its counts, as arrays by name."""

    @abstractmethod
    def restore(self, snapshot: Snapshot) -> None:
        """Continue from the data that `snapshot` returned."""

    def extend(self, snapshot: Snapshot, duration: float) -> None:
        """Continue from the snapshot of a run of another duration, which may have ended."""
        longer, self.duration = self.duration, duration
        self.restore(snapshot)
        self.duration = longer


class SteppedIntegration(Integration):
    """Time integration in steps that are the same for all parts of the state.

    Where a scheme has dense output, steps are planned to the end of the run and do not depend on
    the outputs. `advance` then stops at each output within a step, where the state is
    interpolated, and at the end of the step. Policies are consulted at the ends of steps only, so
    that a run that is resumed within a step consults them at the same times.

    Attributes
    ----------
    motion : Motion
        Motion of the whole state.
    clock : Clock
        Time at the end of the last step, relative to `start`, and the lengths of the next steps.
    tally : dict of ndarray
        By the name of each scheme: numbers of accepted steps, rejected steps and evaluations.
    policies : dict of Policy
        Policies, which are consulted after every step, in this order.
    """

    clock: Clock
    policies: dict[str, Policy]
    continuous: Any = True
    stalled: bool = False

    def __init__(self, arguments: Arguments):
        """Begin without steps, in no interval between jumps."""
        super().__init__(arguments)
        self.rtol, self.dt = arguments.rtol, arguments.dt
        self.tally: dict[str, np.ndarray] = {}
        self._code = PAUSED  # code that the last call of `take_steps` returned
        self.jumps = arguments.jumps  # times, relative to the start, that no step passes
        self._piece: tuple[float, float] | None = None  # times of the jumps before and after

    @property
    def motion(self) -> Any:
        return self._arguments.motion

    @property
    def progress(self) -> float:
        return self.elapsed / self.duration

    @property
    def clock_time(self) -> float:
        """Time of the clock at the end of the last step, relative to `start`."""
        return self.clock.t

    @property
    def within(self) -> bool:
        return self.elapsed < self.clock_time

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
        """Set `elapsed` to the output, or to the end of the last step if that is earlier.

        At the end of a step the policies are consulted. Returns a code as `advance` does.
        """
        self.elapsed = min(self.clock_time, output)
        if self.within:
            return REACHED
        end = self.follow(self._code)
        return self._code if end is None else end

    @abstractmethod
    def take_steps(self, output: float, limit: int) -> int:
        """Advance the clock to the output or beyond, by at most `limit` attempts; return a code."""

    def follow(self, code: int) -> int | None:
        """Apply the policies after `take_steps` returned `code`.

        Returns the code of the reason why the run ends there, or None if it goes on.
        """
        return self.consult(code)

    def goal(self, output: float, dense: bool) -> float:
        """Time to which steps are planned: the next jump at the latest.

        With dense output this is the end of the run, else the time `output`.
        """
        goal = self.duration if dense else output
        return min([goal, *[jump for jump in self.jumps if jump > self.clock_time]])

    @property
    def motions(self) -> list[Motion]:
        """Motions whose velocities are evaluated."""
        return [self.motion]

    def enter_piece(self, elapsed: float) -> bool:
        """Restrict the motions to the interval between the jumps around a time.

        Returns True if this is another interval than before.
        """
        if not self.jumps:
            return False
        edges = [0.0, *self.jumps, self.duration]
        i = int(np.searchsorted(self.jumps, elapsed, side="right"))
        start, end = self.start + edges[i], self.start + edges[i + 1]
        if (start, end) == self._piece:
            return False
        self._piece = start, end
        lead, lag = (
            min(JUMP_MARGIN * max(abs(self.start), abs(edge)), (end - start) / 4)
            for edge in (start, end)
        )
        for motion in self.motions:
            motion.enter(start + lead, end - lag)
        return True

    def consult(self, code: int = PAUSED, *, always_only: bool = False) -> int | None:
        """Call `after_step` of the policies, in order, until one of them ends the run.

        Returns its code, or None. With `always_only` policies with `always` = True are called only.
        """
        for policy in self.policies.values():
            if policy.always or not always_only:
                end = policy.after_step(self, code)
                if end is not None:
                    return end
        return None

    def first_steps(self, y: np.ndarray, *, apart: bool = False) -> np.ndarray:
        """Length of the first step, in which y changes by rtol^(1/8) / 10.

        Parameters
        ----------
        y : ndarray
            Coordinates at the start.
        apart : bool
            Whether the members on the first axis have separate steps; then one length for each.

        Raises
        ------
        MeanfieldError
            If the velocities at the start are not finite.
        TypeError, ValueError
            If the velocities are not one real number for each coordinate.
        """
        motion, start, share = self.motion, self.start, 0.1 * self.rtol**0.125
        axes = tuple(range(1 if apart else 0, y.ndim))

        def errors(error: np.ndarray) -> np.ndarray:
            return motion.relative_errors(error, y) if apart else motion.relative_error(error, y)

        def along(values: np.ndarray) -> np.ndarray:
            return np.reshape(values, (-1, *(1,) * (y.ndim - 1)))

        with np.errstate(**NO_FLOAT_WARNINGS):
            callee = f"{type(motion).__name__}.velocity"
            velocity = returned(callee, motion.velocity(y, start), y.shape)
            if not np.isfinite(velocity).all():
                reason = motion.why_not_finite(y, start)
                raise MeanfieldError(
                    f"The velocities under {motion.model!r} are not finite at the start: {reason}"
                )
            fastest = np.abs(velocity).max(axis=axes)
            direction = velocity / along(np.where(fastest > 0, fastest, 1.0))
            sizes = errors(direction)  # squares of velocities may overflow
            nearby = y + along(share / np.where(sizes > 0, sizes, 1.0)) * direction
            growths = errors(motion.velocity(nearby, start) - velocity) / share
            return first_steps(share, sizes * fastest, growths, self.duration)

    def count(self, scheme: str, accepted: int, rejected: int, evaluations: int) -> None:
        """Add numbers of steps and evaluations to the tally of a scheme."""
        self.tally[scheme] = self.tally.get(scheme, 0) + np.array([accepted, rejected, evaluations])

    @property
    def accepted(self) -> int:
        """Number of accepted steps so far."""
        return int(sum(counts[0] for counts in self.tally.values()))

    @property
    def attempts(self) -> int:
        return sum(int(counts[0]) + int(counts[1]) for counts in self.tally.values())

    def counts(self) -> JsonTable:
        """Numbers of steps and evaluations, steps of each scheme, and counts of the policies."""
        totals = [int(sum(column)) for column in zip(*self.tally.values(), strict=True)]
        counts: JsonTable = dict(zip(STEP_COUNTS, totals, strict=True))
        counts["schemes"] = {scheme: int(steps[0]) for scheme, steps in self.tally.items()}
        for policy in self.policies.values():
            counts |= policy.stats(self.start)
        return counts

    @np.errstate(**NO_FLOAT_WARNINGS)
    def stats(self, state: MovedState, t: float) -> JsonTable:
        """Counts of the run, with the entries of `Motion.stats` for its last state."""
        return self.counts() | self.motion.stats(state, t)

    def situation(self, stats: JsonTable) -> Failure:
        """Time, coordinates, step and counts at the end of the run, for the message about it."""
        now = self.t, self.elapsed, self.coordinates, self.clock.step, self.stalled
        return Failure(*now, self.dt, self.rtol, stats, "merging" in self.policies)

    def instability(self) -> str:
        """The reason why a fixed dt is unstable, as a sentence; empty where stable or unknown."""
        return ""

    def ending(self, cause: str, state: MovedState, t: float) -> JsonTable:
        """Status, message, warning and statistics of a run that ended in `state` at t."""
        stats = self.stats(state, t)
        situation = self.situation(stats)
        has_stopped = cause in FAILURES.values()
        if has_stopped:
            situation = situation._replace(instability=self.instability())
        text = self.motion.failure(cause, situation) if has_stopped else self._message(cause)
        has_failed = has_stopped and cause != "blow-up"
        warning = None if has_failed else self.motion.warning(state, t, situation)
        remark = self.motion.remark(state)
        most_rejected = stats["rejected"] > np.maximum(stats["steps"], FEWEST_REJECTED)
        roughness_text = ROUGH_DRIFT if np.any(most_rejected) else ""  # one replica is enough
        return {
            "status": STATUS_OF_CAUSE.get(cause, cause),
            "message": " ".join(filter(None, (text, warning, remark, roughness_text))),
            "warning": text if has_failed else warning,
            "stats": stats | {"rate_of_change": self.rate},
        }

    def plain_ending(self, cause: str) -> JsonTable:
        """Status, warning (None) and counts of a member that ended without failure or warning."""
        stats = self.counts() | {"rate_of_change": self.rate}
        return {"status": STATUS_OF_CAUSE.get(cause, cause), "warning": None, "stats": stats}

    def _message(self, status: str) -> str:
        """Message for a status that is not a failure."""
        t, rate, steady = self.t, self.rate, self.steady
        not_yet = f", not steady yet: rate of change {rate:.1e} > {steady:g}" if steady else ""
        return {
            "finished": f"Reached t = {t:g}{not_yet}.",
            "steady": f"Steady at t = {t:g}: rate of change {rate:.1e}.",
            "event": self.event,
            "stopped": f"The callback ended the run at t = {t:g}.",
            "interrupted": f"Interrupted at t = {t:g}; the states so far are kept.",
            "max_steps": f"max_steps was reached at t = {t:g}; the states so far are kept.",
        }[status]

    def snapshot(self) -> Snapshot:
        """Data of a checkpoint: time elapsed, steps by scheme, and the policies' data."""
        return {
            "elapsed": self.elapsed,
            "schemes": list(self.tally),
            "tally": list(self.tally.values()),
            **{
                f"{name}.{key}": value
                for name, policy in self.policies.items()
                for key, value in policy.snapshot().items()
            },
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Restore time, counts and policies from the data of a checkpoint."""
        self.elapsed = float(snapshot["elapsed"])
        self.tally = dict(zip(map(str, snapshot["schemes"]), snapshot["tally"], strict=True))
        for name, policy in self.policies.items():
            start, data = f"{name}.", snapshot.items()
            policy.restore({k.removeprefix(start): v for k, v in data if k.startswith(start)}, self)

    def extend(self, snapshot: Snapshot, duration: float) -> None:
        """Go on to a later end, over the jumps until then."""
        jumps, self.jumps = self.jumps, [jump for jump in self.jumps if jump <= duration]
        super().extend(snapshot, duration)
        self.jumps = jumps
        if self.duration != duration:
            self.plan_anew()

    def stop_at(self, output: float) -> None:
        """Plan steps anew if they end at outputs, of which this one was not planned."""
        if not self.has_dense_output and output < self.duration:
            self.plan_anew(endings_only=False)

    @property
    @abstractmethod
    def has_dense_output(self) -> bool:
        """Whether the state is known within a step, so that steps need not end at outputs."""

    @abstractmethod
    def plan_anew(self, endings_only: bool = True) -> None:
        """Give up plans of steps: of those alone that depend on the end of the run, or of all."""


class FlowIntegration(SteppedIntegration):
    """Time integration of a state with a velocity, by a Runge-Kutta scheme or a splitting.

    A Runge-Kutta scheme adapts its steps unless dt is given; a splitting has steps of length dt.

    Attributes
    ----------
    first : object
        Initial state.
    rows : Motion
        Motion of the tokens that are left after merging; without merging it is `motion`.
    flow : PointFlow
        Stepper with the coordinates and the clocks at the ends of the last steps.

    Notes
    -----
    The argument `groups` is the number of replicas with separate steps, if they have them.
    """

    def __init__(self, arguments: Arguments, groups: int | None = None):
        """Begin the flow of points, with a clock for each of `groups`, and its policies."""
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
        apart = groups is not None  # a replica whose velocities are not finite may end alone
        steps = self.dt if apart and self.dt else self.first_steps(y, apart=apart)
        motion.begin(y, self.start)
        self.flow: Any = self._steps(y, groups=groups or 1, steps=self.dt or steps)
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
        self._stepped = False  # whether the last attempt was accepted
        self.journal = None if motion.random else Journal(KEPT_STAGES if arguments.tangents else 0)
        self.consult(always_only=True)

    def _steps(self, y: np.ndarray, **options: Any) -> PointFlow:
        """Flow from y: fixed steps of a splitting with noise, else an explicit scheme."""
        scheme = self._scheme
        if isinstance(scheme, Splitting):
            streams = (self._rng,) if self._common is None else (self._rng, self._common)
            step = lambda y, t, dt: self.rows.step(scheme, y, t, dt, *streams)  # noqa: E731
            return FixedSteps(scheme, step, y, start=self.start, **options)
        return ExplicitFlow(scheme, self.rows, y, **self.flow_options, **options)

    @property
    def flow_options(self) -> dict[str, float]:
        """Tolerance, smallest change and start, as keyword arguments of flows."""
        return {
            "rtol": 0.0 if self.dt else self.rtol,
            "smallest_change": self.motion.smallest_change,
            "start": self.start,
        }

    # What the driver asks ------------------------------------------------------------------

    @property
    def state(self) -> Any:
        """State at the present time, with merged tokens at the place of their cluster."""
        y, motion = self._array, self.rows
        merging: Any = self.policies.get("merging")
        if merging is None:
            return motion.state_of(y)
        if self.within:  # the policy merges tokens at the end of a step only: merge a copy here
            merging = copy.deepcopy(merging)
            rows = merging.merge(motion.state_of(y), self.t)
            y = y if rows is None else motion.coordinates(rows)
        return self.motion.state_of(merging.spread(y, bool(motion.model.reaction)))

    @property
    def motions(self) -> list[Motion]:
        return [self.motion, self.rows]

    @property
    def _array(self) -> np.ndarray:
        """Coordinates at the time `elapsed`, interpolated if it is within the last step."""
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
    def clock(self) -> Clock:
        """Clock of the flow, or of its first group; setting it changes the plan of the steps."""
        return restored(self.flow.clocks[0])

    @clock.setter
    def clock(self, clock: Clock) -> None:
        write_clock(clock, self.flow.clocks[0])

    @property
    def clock_time(self) -> float:
        return float(self.flow.clocks.item(0))

    @property
    def size(self) -> str:
        return self.motion.size(self.flow.x)

    @property
    def stalled(self) -> bool:  # type: ignore[override]
        return Stall(*self.flow.stalls[0]).shortest > 0

    @property
    def continuous(self) -> bool:
        return isinstance(self._scheme, Scheme)

    def take_steps(self, output: float, limit: int) -> int:
        """Take up to `limit` steps towards `output`; return REACHED, PAUSED, STALLED or an end."""
        flow, start_time, counts = self.flow, self.clock_time, self.flow.counts.copy()
        if self.enter_piece(start_time):
            flow.renew()
        target = self.goal(output, self.has_dense_output)
        code = int(flow.advance(target)[0])
        self.count(flow.scheme.name, *(flow.counts - counts).ravel().tolist())
        self._stepped = code <= STUCK
        if self._stepped and self.journal is not None:
            self._note()
        if code in END_OF_CODE:
            return END_OF_CODE[code]
        if self.clock_time == target:
            return REACHED
        return STALLED if self._stepped and self.clock_time == start_time else PAUSED

    def _note(self) -> None:
        """Add the last step to the journal, with its stages while there is room for them."""
        step = self.flow.before.elapsed, self.flow.before.dt
        stages = self.flow.stages if self.journal.bytes_left > 0 else None
        stretch = self.flow.scheme, self.rows.ends, 0, self._labels
        self.journal.add(step, *stretch, stages=stages)

    @property
    def _labels(self) -> np.ndarray | None:
        """Row index of each token, (n,), once some tokens have merged; None before."""
        merging = self.policies.get("merging")
        return getattr(merging, "labels", None) if getattr(merging, "times", ()) else None

    def follow(self, code: int) -> int | None:
        """Consult motion and policies after steps; return the code of an end, or None."""
        if not self._stepped or code not in (PAUSED, REACHED, STALLED):
            return None
        self.motion.after_step(self.flow.x, self.t)
        end = self.consult(always_only=bool(self.dt))
        if end is None and self.steady and self.rate <= self.steady:
            return STEADY
        return end

    def go_on(self, rows: Motion, y: np.ndarray) -> None:
        """Continue with another motion, that of the rows left, from the coordinates `y`."""
        self.rows = rows
        if self.journal is not None:
            self.journal.open(self.flow.scheme, rows.ends, labels=self._labels)
        self.flow.restart(y, self.start + self.clock.t, rows)

    @np.errstate(**NO_FLOAT_WARNINGS)
    def step_from(self, state: MovedState, elapsed: float, dt: float) -> Any:
        """State after a single step of length dt from `state`, apart from the run."""
        merging: Any = self.policies.get("merging")
        rows = None
        if merging is not None and merging.times:
            merging = Merging(merging.labels.size, 0.0)
            rows = merging.merge(state, self.t)
        motion = self.motion if rows is None else self.motion.with_state(rows)
        y = np.array(motion.coordinates(state if rows is None else rows), dtype=float)
        flow = type(self.flow)(self.flow.scheme, motion, y, **self.flow_options)
        velocity = motion.velocity(y, self.start + elapsed)
        next_y, _, _ = flow.step(y, velocity, elapsed, dt)
        if merging is not None:
            next_y = merging.spread(next_y, bool(motion.model.reaction))
        return self.motion.state_of(next_y)

    def stats(self, state: MovedState, t: float) -> JsonTable:
        merges: JsonTable = {"merges": []} if "merge" in self.motion.options else {}
        return merges | super().stats(state, t)

    # Kept in a checkpoint ------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Data of a checkpoint: coordinates, clocks, generators, and the step under way."""
        flow = self.flow
        last_step = flow.before if self._ahead.size else ()
        return super().snapshot() | {
            "coordinates": flow.x,
            "clocks": flow.clocks,
            "stalls": flow.stalls,
            "counts": flow.counts,
            "times": flow.t,
            "before": last_step[:1],
            "step": last_step[1:],
            "random": random_state(self._rng),
            "common": random_state(self._common),
            "motion": json.dumps(self.motion.snapshot()),
        }

    @property
    def _moving(self) -> Any:
        """Index of the groups that have not ended."""
        return slice(None)

    @property
    def _ahead(self) -> np.ndarray:
        """Indices of the groups whose last step ends after the time `elapsed`."""
        return np.flatnonzero(self.flow.clocks[:, 0] > self.elapsed)

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from the data of a checkpoint; a step that was under way is repeated."""
        for name, rng in (("random", self._rng), ("common", self._common)):
            restore_random(rng, snapshot[name])
        self.motion.restore(json.loads(str(snapshot["motion"])))
        self.journal = None  # a checkpoint does not store it
        clocks, elapsed = np.array(snapshot["clocks"]), float(snapshot["elapsed"])
        steps = np.array(snapshot["step"])
        begins = clocks[:, 0]
        if steps.size:
            begins = np.where(begins > elapsed, steps[1], begins)
        self.enter_piece(float(min(begins[self._moving], default=elapsed)))
        super().restore(snapshot)
        flow = self.flow  # a policy may have replaced it
        flow.clocks, flow.stalls = clocks, np.array(snapshot["stalls"])
        flow.counts = np.array(snapshot["counts"])
        flow.restart(np.array(snapshot["coordinates"]), snapshot["times"][()], self.rows)
        if steps.size:
            flow.before = Step(*np.array(snapshot["before"]), *steps)
            flow.repeat(self._ahead)
        self._stepped = bool(self._ahead.size)

    @property
    def has_dense_output(self) -> bool:
        return bool(self.flow.dense)

    def plan_anew(self, endings_only: bool = True) -> None:
        for row in self.flow.clocks:
            write_clock(planless(restored(row), endings_only), row)
