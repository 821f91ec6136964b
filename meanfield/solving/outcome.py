"""How a run can end, and what to say about it."""

import warnings
from typing import Any

import numpy as np

from ..core.errors import UnresolvedWarning
from ..results.solution import Solution
from ..steppers.advance import NOT_FINITE, TOO_SMALL
from .arguments import Arguments
from .density_march import UNRESOLVED
from .gaussian_march import BLOWN_UP
from .march import March
from .record import Record

__all__ = ["ENDS", "GOES_ON", "asks_to_stop", "ending", "solution"]

FAILURES = {NOT_FINITE: "not_finite", TOO_SMALL: "step_too_small", UNRESOLVED: "unresolved"}
ENDS = {**FAILURES, BLOWN_UP: "blow-up"}  # whatever the driver does; the last is no failure
GOES_ON = ("interrupted", "max_steps", "stopped")  # when it is resumed; else the end is the end


def asks_to_stop(answer) -> bool:
    """Whether a callback's answer ends the run: True does, None and False do not."""
    if answer is None or isinstance(answer, bool | np.bool_):
        return bool(answer)
    raise TypeError(f"A callback returns True to end the run, else None or False; got {answer!r}.")


def ending(status: str, march: March, record: Record, steady: float) -> dict[str, Any]:
    """The end of a run as plain data: status, message, what to warn of, and counts."""
    text, failed = _message(status, march, steady), status in FAILURES.values()
    doubt = None if failed else march.doubt(record.states[-1], record.times[-1])
    return {
        "status": status,
        "message": f"{text} {doubt}" if doubt else text,
        "warning": text if failed else doubt,
        "stats": {**march.stats(), "rate_of_change": march.rate},
    }


def _message(status: str, march: March, steady: float) -> str:
    """The status in words, and what to do where it is not a success."""
    if status in ENDS.values():
        return march.failure(status)
    t, rate = march.t, march.rate
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
        warnings.warn(end["warning"], UnresolvedWarning, stacklevel=4)
    return Solution(
        t=np.array(record.times),
        states=tuple(record.states),
        model=arguments.problem.model,
        status=end["status"],
        message=end["message"],
        stats=end["stats"],
        t_events=[np.array(times) for times in record.t_events],
        options=arguments.options(),
        rtol=arguments.accuracy.rtol,
        stored={"extra": arguments.provenance},
    )
