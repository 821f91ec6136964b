"""Events: times at which a function of the state crosses zero."""

from collections.abc import Callable

import numpy as np

from ..core.checks import real_array
from ..results.solution import State
from .integration import Integration

__all__ = ["EventWatch"]


class EventWatch:
    """Looks for sign changes of g(t, state) over every step and locates them.

    An event is located by taking the step from its beginning again, shorter, until g is zero:
    the located state is as accurate as the steps themselves, no interpolation is involved.
    `g.terminal` (default False) ends the run; `g.direction` > 0 counts rising zeros only,
    < 0 falling ones.
    """

    def __init__(self, functions: tuple[Callable, ...], run: Integration):
        self._functions, self._start = functions, run.t - run.elapsed
        self._before = run.elapsed, run.state
        self._values = [self._value(g, *self._before) for g in functions]

    def crossed(self, run: Integration) -> list[tuple[int, float, State, bool]]:
        """Events of the step just taken, in the order of time: (index, t, state, terminal)."""
        (start, before), (end, after) = self._before, (run.elapsed, run.state)
        values = [self._value(g, end, after) for g in self._functions]
        found = []
        for index, (g, old, new) in enumerate(
            zip(self._functions, self._values, values, strict=True)
        ):
            direction = getattr(g, "direction", 0)
            if (old < 0 <= new and direction >= 0) or (old > 0 >= new and direction <= 0):
                elapsed, state = self._locate(g, run, start, before, end, after)
                terminal = bool(getattr(g, "terminal", False))
                found.append((index, self._start + elapsed, state, terminal))
        self._before, self._values = (end, after), values
        return sorted(found, key=lambda event: event[1])

    def _value(self, g: Callable, elapsed: float, state: State) -> float:
        t = self._start + elapsed
        value = real_array("The value of an event function", answer := g(t, state))
        if value.shape != () or not np.isfinite(value) or isinstance(answer, bool | np.bool_):
            raise ValueError(
                "An event function must return one finite number, which changes its sign at the "
                f"event; {g!r} returned {answer!r} at t = {t:g}."
            )
        return float(value)

    def _locate(self, g, run, start, before, end, after) -> tuple[float, State]:
        if not run.continuous or end == start:
            return end, after
        from scipy.optimize import brentq

        def at(elapsed: float) -> State:
            if elapsed == start:
                return before
            return after if elapsed == end else run.step_from(before, start, elapsed - start)

        # A function with a jump there has no zero: then the shortest interval found will do.
        elapsed = brentq(
            lambda elapsed: self._value(g, elapsed, at(elapsed)),
            start,
            end,
            xtol=2 * np.spacing(end),
            maxiter=1000,
            disp=False,
        )
        return elapsed, at(elapsed)
