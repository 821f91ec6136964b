"""Ensembles of densities, whose members have separate steps, modes, schemes and ends."""

import json
import math
import time
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..core.annotations import JsonTable, MovedState, Snapshot
from ..derivatives.journal import EnsembleJournal
from ..spaces.density import Density
from ..steppers.advance import PAUSED, REACHED, STEADY
from .arguments import Arguments
from .batch import LARGEST_BATCH, DensityBatch
from .conditions import holding
from .integration import FAILURES, RESUMABLE, STALLED, Integration
from .spectral_integration import SpectralIntegration
from .watching import EventWatch

ALL_ENDED = 104  # all members have ended before the output
BATCHES_PER_THREAD = 8  # number of batches for each of several threads, if members suffice
ADVANCE_SECONDS = 0.5  # wall time of a call of `advance`, checked after the steps of a batch


class EnsembleIntegration(Integration):
    """Time integration of an ensemble; each member has the same bits as in a run of its own.

    Between outputs the members are at different times; at an output all have its time. A member
    ends if it is steady, at a terminal event, or by a failure. It keeps its last state, and the
    others go on.

    Parameters
    ----------
    arguments : Arguments
        Arguments of the ensemble.

    Attributes
    ----------
    members : list of Integration
        Integration of each member, in C order.
    ends : list of str or None
        Reason why each member has ended; None while it goes on.
    elapsed : float
        Time, relative to the start, of the last output that all members have reached; if all have
        ended, the latest of their times.
    state : Density
        Ensemble at the time `elapsed`.
    t_events : list of list of list of float
        Times of events, by event function and member.
    """

    state: MovedState = None

    def __init__(self, arguments: Arguments):
        """Put members into batches of equal equations; end those that begin at rest."""
        super().__init__(arguments)
        self._shape = arguments.state.shape
        self.members: list[SpectralIntegration] = []
        self._batches: list[range] = []  # indices of the members of each batch
        self._gather(arguments)
        self.ends: list[str | None] = [None] * len(self.members)
        self._last: dict[int, tuple[float, Any]] = {}  # (t, state) of the events that ended members
        self.t_events: list[Any] = [[[] for _ in self.members] for _ in arguments.events]
        self._watches = [EventWatch(arguments.events, m) for m in self.members if arguments.events]
        self._arrive(0.0)
        for i, member in enumerate(self.members):
            if arguments.steady and member.rate <= arguments.steady:
                self.ends[i] = "steady"
            for index in holding(arguments.events, member.t, member.state):
                self.t_events[index][i].append(member.t)
                self._last[i], self.ends[i] = (member.t, member.state), "event"

    def _gather(self, arguments: Arguments) -> None:
        """Create the members in batches, and set their initial states and first steps."""
        count, size = math.prod(self._shape), LARGEST_BATCH
        if arguments.threads > 1:
            size = min(LARGEST_BATCH, max(1, count // (BATCHES_PER_THREAD * arguments.threads)))
        members = arguments.members()
        for start in range(0, count, size):
            numbers = range(start, min(start + size, count))
            batch = DensityBatch(arguments, np.array(numbers))
            runs = [SpectralIntegration(next(members), batch, row) for row in range(len(numbers))]
            batch.begin(runs)
            self.members += runs
            self._batches.append(numbers)

    # The present ---------------------------------------------------------------------------

    @property
    def rate(self) -> float:
        """Largest rate of change of a member, each at the end of its last step."""
        return max(member.rate for member in self.members)

    @property
    def size(self) -> str:
        """Number of members that have not ended, in words, for the progress bar."""
        moving_count = sum(member.elapsed < self.duration for member in self._moving)
        return f"{moving_count} of {len(self.members)} members on their way"

    @property
    def progress(self) -> float:
        """Fraction of the time span that is done, as a mean over the members; 1 for ended ones."""
        done = [1.0 if end else m.progress for m, end in zip(self.members, self.ends, strict=True)]
        return float(np.mean(done))

    @property
    def attempts(self) -> int:
        """Largest number of attempted steps among the members that have not ended."""
        return max((m.attempts for m in self._moving if m.elapsed < self.duration), default=0)

    @property
    def _moving(self) -> list[Integration]:
        return [m for m, end in zip(self.members, self.ends, strict=True) if end is None]

    @property
    def journal(self) -> EnsembleJournal | None:
        """Record of the accepted steps of every member; None if not all are known."""
        return EnsembleJournal.of([member.journal for member in self.members], self._shape)

    # Moving --------------------------------------------------------------------------------

    def advance(self, output: float, _limit: int) -> int:
        """Integrate the members towards an output for about ADVANCE_SECONDS; return a code.

        REACHED: all members that go on are at the output. PAUSED: some are not yet. ALL_ENDED:
        there are none.
        """
        queue = deque(self._batches)
        until = time.monotonic() + ADVANCE_SECONDS
        threads = min(self._arguments.threads, len(queue))
        if threads > 1:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(lambda _: self._move(queue, output, until), range(threads)))
        else:
            self._move(queue, output, until)
        if all(self.ends):
            self._arrive(max(map(self._time, range(len(self.members)))) - self.start)
            return ALL_ENDED
        if any(member.elapsed < output for member in self._moving):
            return PAUSED
        self._arrive(output)
        return REACHED

    def _move(self, queue: deque[range], output: float, until: float) -> None:
        """Take batches from the queue and integrate each to the output, until the time `until`."""
        while queue and time.monotonic() < until:
            try:
                numbers = queue.popleft()
            except IndexError:  # taken by another thread
                return
            while moving := [i for i in numbers if self._goes_on(i, output)]:
                self._step(moving, output)
                if time.monotonic() >= until:
                    break

    def _goes_on(self, i: int, output: float) -> bool:
        """True if member i has not ended, is before the output, and may take more steps."""
        member = self.members[i]
        if self.ends[i] is not None or member.elapsed >= output:
            return False
        return member.within or member.attempts < self._arguments.max_steps

    def _step(self, moving: list[int], output: float) -> None:
        """Advance members of one batch by some steps, and record which of them end."""
        members, max_steps = [self.members[i] for i in moving], self._arguments.max_steps
        starts = [member.elapsed for member in members]
        pauses = [1 if self._watches else max(1, m.pause // len(members)) for m in members]
        limits = {m: min(max_steps - m.attempts, n) for m, n in zip(members, pauses, strict=True)}
        codes = members[0].batch.advance(limits, output)
        for i, elapsed, code in zip(moving, starts, codes, strict=True):
            self.ends[i] = self._end_of(i, elapsed, code)

    def _end_of(self, i: int, step_start: float, code: int) -> str | None:
        """Reason why member i ends after steps from `step_start` that returned `code`, or None.

        Records the events of these steps.
        """
        member = self.members[i]
        if code in FAILURES:
            return FAILURES[code]
        if self._watches and (member.elapsed > step_start or code == STALLED):
            for index, t, state, terminal in self._watches[i].crossed(member):
                self.t_events[index][i].append(t)
                if terminal:
                    self._last[i] = t, state
                    return "event"
        return "steady" if code == STEADY else None

    def _time(self, i: int) -> float:
        """Time of member i, or of the event that ended it."""
        return self._last[i][0] if i in self._last else self.members[i].t

    def _states(self) -> Density:
        """Ensemble (n,) of the states of all members, each at its time `_time`."""
        rows = [
            self._last[i][1].coefficients if i in self._last else member.coefficients
            for i, member in enumerate(self.members)
        ]
        return type(self._arguments.state).of_rows(self.members[0].space, rows)

    def _arrive(self, elapsed: float) -> None:
        """Set `elapsed`, and `state` to the present states of the members."""
        self.elapsed, self.state = elapsed, self._states().reshape(self._shape)

    # The end -------------------------------------------------------------------------------

    @property
    def cause(self) -> str:
        """Reason for the end of an ensemble whose members have all ended.

        It is the first failure of a member, else "steady" if all members are steady, else "event".
        """
        failures = [end for end in self.ends if end and end in FAILURES.values()]
        return failures[0] if failures else "steady" if set(self.ends) == {"steady"} else "event"

    def ending(self, cause: str, _state: MovedState, _t: float) -> JsonTable:
        """Description of the end as plain data, see `Integration.ending`.

        The counts, "status" and "t_end" in "stats" are nested lists of the shape of the ensemble.
        """
        states, times = self._states(), [self._time(i) for i in range(len(self.members))]
        rtol = self._arguments.rtol
        certain = self._arguments.motion.without_warning(states, self.t, rtol)
        causes = [end or cause for end in self.ends]
        endings = [
            member.plain_ending(cause_of_end)
            if certain[i] and cause_of_end not in FAILURES.values()
            else member.ending(cause_of_end, states[i], times[i])
            for i, (member, cause_of_end) in enumerate(zip(self.members, causes, strict=True))
        ]
        statuses = [ending_of["status"] for ending_of in endings]
        failures = [i for i, end in enumerate(self.ends) if end in FAILURES.values()]
        for ending_of, t in zip(endings, times, strict=True):
            ending_of["stats"] |= {"status": ending_of["status"], "t_end": t}
        counts = ", ".join(f"{n} {status}" for status, n in Counter(statuses).items())
        warned, warning = [i for i, ending_of in enumerate(endings) if ending_of["warning"]], None
        if warned:
            index = tuple(int(k) for k in np.unravel_index(warned[0], self._shape))
            more = f" The same or the like holds of {len(warned) - 1} more." if warned[1:] else ""
            warning = f"Member {index}: {endings[warned[0]]['warning']}{more}"
        message = f"Of {len(endings)} members {counts}, at t = {self.t:g}."
        return {
            "status": statuses[failures[0]] if failures and cause not in RESUMABLE else cause,
            "message": f"{message} {warning}" if warning else message,
            "warning": warning,
            "stats": nested([ending_of["stats"] for ending_of in endings], self._shape),
        }

    # Kept in a checkpoint ------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Arrays of the ensemble, and the snapshots of all members joined array by array."""
        motion = self._arguments.motion
        last = {i: t for i, (t, _) in self._last.items()}
        shared = {
            "elapsed": self.elapsed,
            "ends": self.ends,
            "t_events": self.t_events,
            "last": last,
        }
        return {
            "ensemble": json.dumps(shared),
            "state": motion.packed(self.state),
            **{f"last.{i}": motion.packed(state) for i, (_, state) in self._last.items()},
            **_packed([member.snapshot() for member in self.members]),
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from the data that `snapshot` returned."""
        motion = self._arguments.motion
        shared = json.loads(str(snapshot["ensemble"]))
        self.elapsed, self.ends = shared["elapsed"], shared["ends"]
        self.t_events = shared["t_events"]
        self.state = motion.unpacked(snapshot["state"])
        for member, member_data in zip(self.members, _unpacked(snapshot), strict=True):
            member.extend(member_data, self.duration)
        self._last = {
            int(i): (t, motion.unpacked(snapshot[f"last.{i}"])) for i, t in shared["last"].items()
        }
        events = self._arguments.events  # watches begin at the present states
        self._watches = [EventWatch(events, m) for m in self.members if events]


def _packed(snapshots: list[Snapshot]) -> dict[str, np.ndarray]:
    """Snapshots of all members in one dict: for each array name two entries.

    "member.NAME" is the flattened arrays one after the other, "shapes.NAME" (members, axes) their
    shapes. The numbers of axes must agree.
    """
    packed = {}
    for name in snapshots[0]:
        arrays = [np.asarray(snapshot[name]) for snapshot in snapshots]
        packed[f"member.{name}"] = np.concatenate([array.ravel() for array in arrays])
        packed[f"shapes.{name}"] = np.array([array.shape for array in arrays], dtype=np.int64)
    return packed


def _unpacked(content: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    """Snapshots of the members from the dict that `_packed` returned."""
    names = [key[7:] for key in content if key.startswith("member.")]
    members: list[dict[str, np.ndarray]] = [{} for _ in content[f"shapes.{names[0]}"]]
    for name in names:
        shapes = content[f"shapes.{name}"]
        ends = np.cumsum(shapes.prod(axis=1))
        parts = np.split(content[f"member.{name}"], ends[:-1])
        for member, values, shape in zip(members, parts, shapes, strict=True):
            member[name] = values.reshape(shape)
    return members


def nested(tables: list[Any], shape: tuple[int, ...]) -> Any:
    """Values of all members as nested lists of the shape of the ensemble.

    If the values are dictionaries with common keys, the result is one dictionary of such lists.
    """
    if isinstance(tables[0], dict):
        return {name: nested([row[name] for row in tables], shape) for name in tables[0]}
    values = np.empty(len(tables), dtype=object)
    values[:] = tables
    return values.reshape(shape).tolist()


def padded(times: list[list[float]], shape: tuple[int, ...]) -> np.ndarray:
    """Times of each member as an array (*shape, largest number of times), padded with nan."""
    rows = np.full((len(times), max(map(len, times), default=0)), np.nan)
    for row, of_member in zip(rows, times, strict=True):
        row[: len(of_member)] = of_member
    return rows.reshape(*shape, -1)
