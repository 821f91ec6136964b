"""Conditions: functions of the time and the state that end a run once they are True."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ..core.annotations import MovedState
from ..core.checks import as_given, require, takes

EventFunction = Callable[[float, Any], Any]


class Condition:
    """Terminal event where a function (t, state) -> bool becomes True: the argument `until`."""

    terminal: ClassVar[bool] = True
    direction: ClassVar[int] = 1

    def __init__(self, function: Callable[[float, Any], Any]):
        takes_both = takes(function, 2) and not isinstance(function, type)
        self.function = require("until", function, "a function (t, state)", takes_both, TypeError)

    def __call__(self, t: float, state: MovedState) -> float:
        return 1.0 if self.holds(t, state) else -1.0

    def holds(self, t: float, state: MovedState) -> bool:
        """Whether the function is True; raises TypeError unless it is a bool."""
        answer = self.function(t, state)
        if isinstance(answer, bool | np.bool_):
            return bool(answer)
        raise TypeError(
            f"A function given as until returns True to end the run, else False; it returned "
            f"{as_given(answer)} at t = {t:g}."
        )


def in_words(events: tuple[EventFunction, ...], index: int, t: float, start: float) -> str:
    """Sentence about the event that ended a run at t, which began at `start`."""
    g = events[index]
    name = getattr(getattr(g, "function", g), "__name__", "<lambda>")
    named = "" if name == "<lambda>" else f" {name}"
    if isinstance(g, Condition):
        when = "holds at the start," if t == start else "became True at"
        return f"The condition{named} of until {when} t = {t:g}."
    return f"The terminal event{named} crossed zero at t = {t:g}, see t_events[{index}]."


def holding(events: tuple[EventFunction, ...], t: float, state: MovedState) -> list[int]:
    """Indices of the events that are conditions and hold."""
    numbered = enumerate(events)
    return [i for i, g in numbered if isinstance(g, Condition) and g.holds(t, state)]
