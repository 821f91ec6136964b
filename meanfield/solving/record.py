"""What a run has produced so far; it goes into checkpoints and becomes the solution."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..results.solution import State
from .march import March

__all__ = ["Record"]


@dataclass
class Record:
    """States saved so far, events seen, wall time spent in earlier sessions; once over, the end."""

    events: int
    times: list[float] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    t_events: list[list[float]] = field(default_factory=list)
    seconds: float = 0.0
    end: dict[str, Any] | None = None

    def __post_init__(self):
        self.t_events = self.t_events or [[] for _ in range(self.events)]

    def save(self, t: float, state: State) -> None:
        """Keep a state; a second one at the same time is not kept."""
        if not self.times or self.times[-1] != t:
            self.times.append(float(t))
            self.states.append(state)

    def snapshot(self, march: March) -> dict[str, Any]:
        """Everything as numbers and arrays."""
        return {
            "times": np.array(self.times),
            "states": [march.array(state) for state in self.states],
            "t_events": [np.array(times) for times in self.t_events],
            "seconds": self.seconds,
            "end": self.end,
        }

    @classmethod
    def restored(cls, snapshot: dict[str, Any], march: March) -> "Record":
        """The record in a snapshot of a run on the same march."""
        states = [march.state_of(np.asarray(array)) for array in snapshot["states"]]
        t_events = [list(map(float, times)) for times in snapshot["t_events"]]
        times = list(map(float, snapshot["times"]))
        seconds, end = float(snapshot["seconds"]), snapshot["end"]
        return cls(len(t_events), times, states, t_events, seconds, end)
