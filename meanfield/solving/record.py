"""What a run has produced so far; it goes into checkpoints and becomes the solution."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..states import Density

__all__ = ["Record"]


@dataclass
class Record:
    """States saved so far, events seen, wall time spent in earlier sessions."""

    events: int
    times: list[float] = field(default_factory=list)
    states: list[Density] = field(default_factory=list)
    t_events: list[list[float]] = field(default_factory=list)
    seconds: float = 0.0

    def __post_init__(self):
        self.t_events = self.t_events or [[] for _ in range(self.events)]

    def save(self, t: float, density: Density) -> None:
        """Keep a state; a second one at the same time is not kept."""
        if not self.times or self.times[-1] != t:
            self.times.append(float(t))
            self.states.append(density)

    def snapshot(self) -> dict[str, Any]:
        """Everything as numbers and arrays."""
        return {
            "times": np.array(self.times),
            "coefficients": [state.coefficients for state in self.states],
            "t_events": [np.array(times) for times in self.t_events],
            "seconds": self.seconds,
        }

    @classmethod
    def restored(cls, snapshot: dict[str, Any], geometry) -> "Record":
        """The record in a snapshot; `geometry` is that of the run, at any degree."""
        coefficients = [np.asarray(c) for c in snapshot["coefficients"]]
        states = [Density(geometry.with_modes(c.shape[-1]), c) for c in coefficients]
        t_events = [list(map(float, times)) for times in snapshot["t_events"]]
        times = list(map(float, snapshot["times"]))
        return cls(len(t_events), times, states, t_events, float(snapshot["seconds"]))
