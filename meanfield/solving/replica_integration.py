"""Replicas of tokens under an explicit scheme: each has separate steps and a separate end.

A replica takes the same steps, to the last bit, as in a run of its own. A replica whose last step
has passed an output waits until all others have passed it; the states at the output are
interpolated. A replica that is steady, or for which no step is short enough, keeps its last state.
"""

from typing import Any

import numpy as np

from ..derivatives.journal import Journal
from ..dynamics.motion import Failure
from ..steppers.advance import NOT_FINITE, PAUSED, REACHED, STEADY, TOO_SMALL
from ..steppers.flow import NO_FLOAT_WARNINGS, Stall
from ..steppers.replica_flow import ACCEPTED, GIVES_UP, LOST, RUNNING, ReplicaFlow
from .arguments import Arguments
from .integration import RESUMABLE, SteppedIntegration

END_OF_CODE = {GIVES_UP: TOO_SMALL, LOST: NOT_FINITE}
STATUS_OF_END = {
    RUNNING: "finished",
    STEADY: "steady",
    TOO_SMALL: "step_too_small",
    NOT_FINITE: "not_finite",
}


class ReplicaIntegration(SteppedIntegration):
    """Time integration of replicas by an explicit scheme, with error control or fixed steps.

    Attributes
    ----------
    flow : ReplicaFlow
        Stepper with the coordinates and the clock of each replica.
    ends : ndarray of int, shape (R,)
        Code of the reason why each replica has ended: `STEADY`, `TOO_SMALL` or `NOT_FINITE`;
        `RUNNING` if it has not.
    """

    def __init__(self, arguments: Arguments):
        super().__init__(arguments)
        motion, self._scheme = self.motion, arguments.scheme
        y = np.array(motion.coordinates(arguments.state), dtype=float)
        self.enter_piece(0.0)
        steps = np.full(len(y), self.dt or 0.0)
        if not self.dt:
            steps = self.first_steps(y, apart=True)
        motion.begin(y, self.start)
        rtol = 0.0 if self.dt else self.rtol
        self.flow = ReplicaFlow(self._scheme, motion, y, steps, rtol=rtol, start=self.start)
        self.ends = np.full(len(y), RUNNING)
        self.policies, self._output = {}, 0.0
        self._kept = y.copy()  # coordinates at the last output: between outputs the times differ
        self.journal = Journal()
        if self.steady:
            self._end_where_steady(np.arange(len(y)))

    # What the driver asks ------------------------------------------------------------------

    @property
    def state(self) -> Any:
        return self.motion.state_of(self._kept)

    def _array(self) -> np.ndarray:
        """Coordinates at the time `elapsed`, interpolated where the last step passed it."""
        y, within = self.flow.x.copy(), np.flatnonzero(self.flow.t > self.elapsed)
        if within.size:
            y[within] = self.flow.within(within, self.elapsed)
        return y

    @property
    def coordinates(self) -> np.ndarray:
        return self.flow.x

    @property
    @np.errstate(**NO_FLOAT_WARNINGS)
    def rate(self) -> float:
        return float(self.motion.rate(self.flow.x, self.flow.velocity))

    @property
    def size(self) -> str:
        left = np.count_nonzero(self.ends == RUNNING)
        return f"{left} of {len(self.ends)} replicas, {self.motion.size(self.flow.x)}"

    @property
    def within(self) -> bool:
        """True if all replicas that have not ended are at the next output or beyond."""
        moving, later = self.ends == RUNNING, self.outputs[self.outputs > self.elapsed]
        return bool(later.size and moving.any() and (self.flow.t[moving] >= later[0]).all())

    @np.errstate(**NO_FLOAT_WARNINGS)
    def advance(self, output: float, limit: int) -> int:
        """Attempt one step of each replica that is before the output; return a code.

        At most one attempt, whatever `limit` is.
        """
        code = self.take_steps(output, limit)
        if code == PAUSED:
            return code
        end = self.follow(code)
        return code if end is None else end

    def take_steps(self, output: float, limit: int) -> int:
        self._output = output
        before = np.flatnonzero((self.ends == RUNNING) & (self.flow.t < output))
        if before.size:
            self._attempt(before, output)
        behind = (self.ends == RUNNING) & (self.flow.t < output)
        return PAUSED if behind.any() else REACHED

    def follow(self, code: int) -> int | None:
        """Store the state at the output that all replicas have reached, or at the end of all.

        Returns the code of the reason why the run ends there, or None if it goes on.
        """
        moving, output = (self.ends == RUNNING).any(), self._output
        if moving or (self.flow.t > output).any():
            self.elapsed, end = output, self._failed if output == self.duration else None
        else:
            self.elapsed = max(self.elapsed, float(self.flow.t.max()))
            end = STEADY if self._failed is None else self._failed
        self._kept = self._array()
        return end

    @property
    def _failed(self) -> int | None:
        """Code of the failure of the first replica that has failed; None if none has."""
        failures = self.ends[np.isin(self.ends, list(END_OF_CODE.values()))]
        return int(failures[0]) if failures.size else None

    def _attempt(self, members: np.ndarray, output: float) -> None:
        """Attempt one step of those of the members that are before the next jump of the model.

        The next jump is that after the member with the smallest time.
        """
        jump = next((at for at in self.jumps if at > self.flow.t[members].min()), self.duration)
        members = members[self.flow.t[members] < jump]
        if self.enter_piece(float(self.flow.t[members].min())):
            self.flow.restart(members)
        goal = min(jump, self.duration if self.flow.dense else output)
        codes = self.flow.advance(members, goal)
        self._note(members, codes)
        for code, end in END_OF_CODE.items():
            self.ends[members[codes == code]] = end
        if self.steady:
            self._end_where_steady(members[codes == ACCEPTED])

    def _note(self, members: np.ndarray, codes: np.ndarray) -> None:
        """Add a step to the journal; once the steps of replicas differ, there is no journal."""
        steps = self.flow.step[members]
        whole = len(members) == len(self.ends) and (codes == ACCEPTED).all()
        if not (whole and (steps == steps[0]).all()):
            self.journal = None
        if self.journal is not None:
            self.journal.add(tuple(steps[0, :2].tolist()), self._scheme, self.motion.ends)

    def _end_where_steady(self, members: np.ndarray) -> None:
        """End those of the members, given by their indices, whose rate of change is small."""
        if members.size:
            part = self.motion.of_members(members)
            rates = part.rates(self.flow.x[members], self.flow.velocity[members])
            self.ends[members[rates <= self.steady]] = STEADY

    @np.errstate(**NO_FLOAT_WARNINGS)
    def step_from(self, state: Any, elapsed: float, dt: float) -> Any:
        y = np.array(self.motion.coordinates(state), dtype=float)
        steps, start = np.full(len(y), dt), self.start + elapsed
        flow = ReplicaFlow(self._scheme, self.motion, y, steps, rtol=0.0, start=start)
        flow.advance(np.arange(len(y)), dt)
        return self.motion.state_of(flow.x)

    # Counts --------------------------------------------------------------------------------

    @property
    def attempts(self) -> int:
        """Largest number of attempted steps of a replica."""
        return int(self.flow.counts[:2].sum(axis=0).max())

    @property
    def accepted(self) -> int:
        return int(self.flow.counts[0].max())

    def stats(self, state: Any, t: float) -> dict[str, Any]:
        """Counts, status and last time of every replica, and the entries of `Motion.stats`.

        Values of the replicas are nested lists of the shape of the ensemble.
        """
        shape, flow = self.motion.like.shape, self.flow
        ended = np.where(self.ends == RUNNING, self.elapsed, flow.t)
        names = "steps", "rejected", "evaluations"
        each: dict[str, Any] = dict(zip(names, flow.counts, strict=True))
        each["t_end"] = self.start + ended
        each["status"] = np.array([STATUS_OF_END[int(end)] for end in self.ends])
        stats: dict[str, Any] = {name: v.reshape(shape).tolist() for name, v in each.items()}
        stats["schemes"] = {flow.scheme.name: int(flow.counts[0].sum())}
        merges: dict[str, Any] = {"merges": []} if "merge" in self.motion.options else {}
        return merges | stats | self.motion.stats(state, t)

    def ending(self, cause: str, state: Any, t: float) -> dict[str, Any]:
        """Description of the end as plain data, see `Integration.ending`.

        If the run can be resumed, replicas that have not ended have its status.
        """
        end = super().ending(cause, state, t)
        shape = self.motion.like.shape
        of_each, moving = np.array(end["stats"]["status"]), self.ends.reshape(shape) == RUNNING
        if cause in RESUMABLE:
            end["stats"]["status"] = np.where(moving, cause, of_each).tolist()
        return end

    def situation(self, stats: dict[str, Any]) -> Failure:
        """Time, coordinates and step of the first replica that failed, for the message about it.

        If none failed they are those of the first replica.
        """
        failed = np.flatnonzero(np.isin(self.ends, list(END_OF_CODE.values())))
        r = int(failed[0]) if failed.size else 0
        index = tuple(map(int, np.unravel_index(r, self.motion.like.shape)))
        name = f" of replica {index[0] if len(index) == 1 else index}" if failed.size else ""
        flow, elapsed = self.flow, float(self.flow.t[r])
        stalled, step = bool(Stall(*flow.stalls[r]).shortest > 0), float(flow.clocks[r, 2])
        y = flow.x[r : r + 1]
        now = self.start + elapsed, elapsed, y, step, stalled, self.dt, self.rtol, stats
        return Failure(*now, member=name)

    # Kept in a checkpoint ------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        flow = self.flow
        return {
            "elapsed": self.elapsed,
            "coordinates": flow.x,
            "kept": self._kept,
            "clocks": flow.clocks,
            "before": flow.before,
            "step": flow.step,
            "times": flow.times,
            "counts": flow.counts,
            "stalls": flow.stalls,
            "ends": self.ends,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        flow, self.elapsed = self.flow, float(snapshot["elapsed"])
        self._kept = np.array(snapshot["kept"])
        self.journal = None  # a checkpoint does not store it
        self.ends = np.array(snapshot["ends"])
        flow.x, flow.clocks = np.array(snapshot["coordinates"]), np.array(snapshot["clocks"])
        flow.before, flow.step = np.array(snapshot["before"]), np.array(snapshot["step"])
        flow.counts, flow.stalls = np.array(snapshot["counts"]), np.array(snapshot["stalls"])
        begins = np.where(flow.t > self.elapsed, flow.step[:, 0], flow.t)
        moving = self.ends == RUNNING
        self.enter_piece(float(begins[moving].min() if moving.any() else self.elapsed))
        flow.repeat(np.flatnonzero(flow.t > self.elapsed))
        flow.restart(np.arange(len(flow.x)), np.array(snapshot["times"]))


def has_own_steps(arguments: Arguments) -> bool:
    """True if replicas take separate steps.

    They take common steps with events or a callback, which need all replicas at the same time
    after every step; with tangents, which are computed for common steps; and under a splitting,
    whose steps are fixed.
    """
    looked_at = bool(arguments.events or arguments.callback or arguments.tangents)
    explicit = bool(getattr(arguments.scheme, "explicit", False))
    return bool(arguments.motion.members) and explicit and not looked_at
