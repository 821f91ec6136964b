"""How a run can end, and what to say about it."""

import numpy as np

from ..steppers.advance import NOT_FINITE, TOO_SMALL
from .density_march import UNRESOLVED
from .gaussian_march import BLOWN_UP
from .march import March

__all__ = ["ENDS", "FAILURES", "asks_to_stop", "message"]

FAILURES = {NOT_FINITE: "not_finite", TOO_SMALL: "step_too_small", UNRESOLVED: "unresolved"}
ENDS = {**FAILURES, BLOWN_UP: "blow-up"}  # whatever the driver does; the last is no failure


def asks_to_stop(answer) -> bool:
    """Whether a callback's answer ends the run: True does, None and False do not."""
    if answer is None or isinstance(answer, bool | np.bool_):
        return bool(answer)
    raise TypeError(f"A callback returns True to end the run, else None or False; got {answer!r}.")


def message(status: str, march: March, steady: float) -> str:
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
