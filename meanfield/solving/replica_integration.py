"""Replicas of tokens under an explicit scheme: each has separate steps and a separate end.

A replica takes the same steps, to the last bit, as in a run of its own. A replica whose last step
has passed an output waits until all others have passed it; the states at the output are
interpolated. A replica that is steady, or for which no step is short enough, keeps its last state.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.annotations import JsonTable, MovedState, Snapshot
from ..dynamics.motion import Failure
from ..steppers.advance import PAUSED, REACHED, STEADY
from ..steppers.clock import ACCEPTED, Stall
from ..steppers.flow import NO_FLOAT_WARNINGS
from .arguments import Arguments
from .integration import END_OF_CODE, FAILURES, RESUMABLE, STEP_COUNTS, FlowIntegration

RUNNING = 0  # code of a replica that has not ended
STATUS_OF_END = {RUNNING: "finished", STEADY: "steady"} | FAILURES


class ReplicaIntegration(FlowIntegration):
    """Time integration of replicas by an explicit scheme, with error control or fixed steps.

    Attributes
    ----------
    ends : ndarray of int, shape (R,)
        Code of the reason why each replica has ended: `STEADY`, `TOO_SMALL` or `NOT_FINITE`;
        `RUNNING` if it has not.
    """

    def __init__(self, arguments: Arguments):
        """Integration with a clock for each replica; those at rest end at once."""
        replicas = arguments.motion.members
        super().__init__(arguments, replicas)
        self.ends = np.full(replicas, RUNNING)
        self._kept = self.flow.x.copy()  # coordinates at the last output, where the times are equal
        if self.steady:
            self._end_where_steady(np.arange(replicas))

    # What the driver asks ------------------------------------------------------------------

    @property
    def state(self) -> Any:
        return self.motion.state_of(self._kept)

    @property
    def _array(self) -> np.ndarray:
        """Coordinates at the time `elapsed`, interpolated where the last step passed it."""
        y, ahead = self.flow.x.copy(), self._ahead
        if ahead.size:
            y[ahead] = self.flow.within(self.elapsed, ahead)
        return y

    @property
    def _moving(self) -> np.ndarray:
        """Mask (R,) of the replicas that have not ended."""
        return self.ends == RUNNING

    @property
    def _times(self) -> np.ndarray:
        """Times on the clocks of the replicas, (R,)."""
        return self.flow.clocks[:, 0]

    @property
    @np.errstate(**NO_FLOAT_WARNINGS)
    def rate(self) -> float:
        return float(self.motion.rate(self.flow.x, self.flow.velocity))

    @property
    def size(self) -> str:
        moving_count = np.count_nonzero(self._moving)
        return f"{moving_count} of {len(self.ends)} replicas, {self.motion.size(self.flow.x)}"

    @property
    def within(self) -> bool:
        """True if all replicas that have not ended are at the next output or beyond."""
        moving, later = self._moving, self.outputs[self.outputs > self.elapsed]
        return bool(later.size and moving.any() and (self._times[moving] >= later[0]).all())

    def take_steps(self, output: float, limit: int) -> int:
        """Attempt one step of each replica that is before the output, whatever `limit` is."""
        indices = np.flatnonzero(self._moving & (self._times < output))
        if indices.size:
            self._attempt(indices, output)
        return PAUSED

    def arrive(self, output: float) -> int:
        """Store the state at the output, once all replicas have reached it, or at the end of all.

        Returns PAUSED if some replicas are before the output.
        """
        if (self._moving & (self._times < output)).any():
            return PAUSED
        failed = self._failed
        end = int(self.ends[failed[0]]) if failed.size else None
        if self._moving.any() or (self._times > output).any():
            self.elapsed, end = output, end if output == self.duration else REACHED
        else:
            self.elapsed = max(self.elapsed, float(self._times.max()))
            end = STEADY if end is None else end
        self._kept = self._array
        return REACHED if end is None else end

    @property
    def _failed(self) -> np.ndarray:
        """Indices of the replicas that have failed."""
        return np.flatnonzero(np.isin(self.ends, list(END_OF_CODE.values())))

    def _attempt(self, members: np.ndarray, output: float) -> None:
        """Attempt one step of those of the members that are before the next jump of the model.

        The next jump is that after the member with the smallest time.
        """
        jump = next((t for t in self.jumps if t > self._times[members].min()), self.duration)
        members = members[self._times[members] < jump]
        if self.enter_piece(float(self._times[members].min())):
            self.flow.renew(members)
        goal = min(jump, self.duration if self.flow.dense else output)
        codes = self.flow.advance(goal, members)
        self._note_common(members, codes)
        for code, end in END_OF_CODE.items():
            self.ends[members[codes == code]] = end
        if self.steady:
            self._end_where_steady(members[codes == ACCEPTED])

    def _note_common(self, members: np.ndarray, codes: np.ndarray) -> None:
        """Add a step to the journal; once the steps of replicas differ, there is no journal."""
        steps = None
        if len(members) == len(self.ends) and (codes == ACCEPTED).all():
            steps = np.reshape(self.flow.before[2:], (2, -1)).T
        if steps is None or (steps != steps[0]).any():
            self.journal = None
        elif self.journal is not None:
            self.journal.add(steps[0], self._scheme, self.motion.ends)

    def _end_where_steady(self, members: np.ndarray) -> None:
        """End those of the members, given by their indices, whose rate of change is small."""
        if members.size:
            chosen = self.motion.of_members(members)
            rates = chosen.rates(self.flow.x[members], self.flow.velocity[members])
            self.ends[members[rates <= self.steady]] = STEADY

    # Counts --------------------------------------------------------------------------------

    @property
    def attempts(self) -> int:
        """Largest number of attempted steps of a replica."""
        return int(self.flow.counts[:2].sum(axis=0).max())

    @property
    def accepted(self) -> int:
        return int(self.flow.counts[0].max())

    def counts(self) -> JsonTable:
        """Counts, status and last time of every replica, as nested lists of the ensemble shape."""
        flow, end_times = self.flow, np.where(self._moving, self.elapsed, self._times)
        columns: JsonTable = dict(zip(STEP_COUNTS, flow.counts, strict=True))
        columns["t_end"] = self.start + end_times
        columns["status"] = np.array([STATUS_OF_END[int(end)] for end in self.ends])
        shape = self.motion.like.shape
        counts: JsonTable = {name: v.reshape(shape).tolist() for name, v in columns.items()}
        return counts | {"schemes": {flow.scheme.name: int(flow.counts[0].sum())}}

    def ending(self, cause: str, state: MovedState, t: float) -> JsonTable:
        """Description of the end as plain data, see `Integration.ending`.

        If the run can be resumed, replicas that have not ended have its status.
        """
        end = super().ending(cause, state, t)
        shape = self.motion.like.shape
        of_each, moving = np.array(end["stats"]["status"]), self._moving.reshape(shape)
        if cause in RESUMABLE:
            end["stats"]["status"] = np.where(moving, cause, of_each).tolist()
        return end

    def situation(self, stats: JsonTable) -> Failure:
        """Time, coordinates and step of the first replica that failed, for the message about it.

        If none failed they are those of the first replica.
        """
        failed = self._failed
        r = int(failed[0]) if failed.size else 0
        index = tuple(map(int, np.unravel_index(r, self.motion.like.shape)))
        name = f" of replica {index[0] if len(index) == 1 else index}" if failed.size else ""
        flow, elapsed = self.flow, float(self._times[r])
        stalled, step = bool(Stall(*flow.stalls[r]).shortest > 0), float(flow.clocks[r, 2])
        y = flow.x[r : r + 1]
        now = self.start + elapsed, elapsed, y, step, stalled, self.dt, self.rtol, stats
        return Failure(*now, member=name)

    # Kept in a checkpoint ------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        return super().snapshot() | {"kept": self._kept, "ends": self.ends}

    def restore(self, snapshot: Snapshot) -> None:
        self._kept, self.ends = np.array(snapshot["kept"]), np.array(snapshot["ends"])
        super().restore(snapshot)


def has_own_steps(arguments: Arguments) -> bool:
    """True if replicas take separate steps.

    They take common steps with events or a callback, which need all replicas at the same time
    after every step; with tangents, which are computed for common steps; and under a splitting,
    whose steps are fixed.
    """
    looked_at = bool(arguments.events or arguments.callback or arguments.tangents)
    explicit = bool(getattr(arguments.scheme, "explicit", False))
    return bool(arguments.motion.members) and explicit and not looked_at


def separate_steps(snapshot: Mapping[str, Any]) -> bool:
    """True for a snapshot of replicas that take separate steps."""
    return "kept" in snapshot
