"""What a run has produced, how it can end, and what to say about it."""

import json
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.errors import UnresolvedWarning
from ..dynamics.motion import Motion
from ..results.solution import Solution, State
from ..steppers.advance import NOT_FINITE, TOO_SMALL
from .arguments import Arguments
from .degree_adaptation import UNRESOLVED
from .integration import Integration
from .policies import BLOWN_UP, CANCELLED

__all__ = ["ENDS", "GOES_ON", "Record", "ending", "solution"]

ENDS = {
    NOT_FINITE: "not_finite",
    TOO_SMALL: "step_too_small",
    UNRESOLVED: "unresolved",
    BLOWN_UP: "blow-up",
    CANCELLED: "cancelled",
}  # causes for which a run cannot go on, by the codes of `Integration.advance`
STATUS = {"cancelled": "step_too_small"}  # of a cause, where it has not the same name
GOES_ON = ("interrupted", "max_steps", "stopped")  # when it is resumed; else the end is the end


@dataclass
class Record:
    """States saved so far, events seen, wall time spent in earlier sessions; once over, the end."""

    t_events: list[list[float]]
    times: list[float] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    seconds: float = 0.0
    end: dict[str, Any] | None = None

    def save(self, t: float, state: State) -> None:
        """Keep a state; a second one at the same time is not kept."""
        if not self.times or self.times[-1] != t:
            self.times.append(float(t))
            self.states.append(state)

    def arrays(self, motion: Motion, seconds: float) -> dict[str, np.ndarray]:
        """Everything as named arrays, which a checkpoint keeps."""
        told = {"t_events": self.t_events, "times": self.times, "seconds": seconds, "end": self.end}
        states = enumerate(map(motion.packed, self.states))
        return {"record": np.array(json.dumps(told))} | {f"record.{i:09d}": y for i, y in states}

    @classmethod
    def of_arrays(cls, content: dict[str, np.ndarray], motion: Motion) -> "Record":
        """The record that `arrays` described, of a run of the same motion."""
        kept = sorted(key for key in content if key.startswith("record."))
        states = [motion.unpacked(content[key]) for key in kept]
        return cls(states=states, **json.loads(str(content["record"])))


def ending(cause: str, run: Integration, record: Record, steady: float) -> dict[str, Any]:
    """The end of a run as plain data: status, message, what to warn of, and counts."""
    stats = run.stats()
    at = run.situation(stats)
    stuck = cause in ENDS.values()
    text = run.motion.failure(cause, at) if stuck else _message(cause, run, steady)
    failed = stuck and cause != "blow-up"
    doubt = None if failed else run.motion.doubt(record.states[-1], record.times[-1], at)
    return {
        "status": STATUS.get(cause, cause),
        "message": f"{text} {doubt}" if doubt else text,
        "warning": text if failed else doubt,
        "stats": stats | {"rate_of_change": run.rate},
    }


def _message(status: str, run: Integration, steady: float) -> str:
    """A status that is no failure in words."""
    t, rate = run.t, run.rate
    not_yet = f", not steady yet: rate of change {rate:.1e} > {steady:g}" if steady else ""
    return {
        "finished": f"Reached t = {t:g}{not_yet}.",
        "steady": f"Steady at t = {t:g}: rate of change {rate:.1e}.",
        "event": "A terminal event occurred.",
        "stopped": f"The callback ended the run at t = {t:g}.",
        "interrupted": f"Interrupted at t = {t:g}; the states so far are kept.",
        "max_steps": f"max_steps was reached at t = {t:g}; the states so far are kept.",
    }[status]


def solution(arguments: Arguments, record: Record) -> Solution:
    """What a run that has ended returns; it warns if there is need to."""
    end: Any = record.end
    if end["warning"]:
        warnings.warn(end["warning"], UnresolvedWarning, stacklevel=3)
    return Solution(
        t=np.array(record.times),
        states=tuple(record.states),
        model=arguments.model,
        status=end["status"],
        message=end["message"],
        stats=end["stats"],
        t_events=[np.array(times) for times in record.t_events],
        options=arguments.described(),
        rtol=arguments.rtol,
        stored={"extra": arguments.provenance},
    )
