"""Functions of the caller's that look at a run: events, the callback, observables."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.checks import real_array
from ..dynamics.observables import measure
from ..results.solution import State
from ..states.contract import Arrays, member_dims
from .integration import Integration

Observables = Mapping[str, Callable[[Any], Any]]


class EventWatch:
    """Looks for sign changes of g(t, state) over every step and locates them.

    An event is located by taking the step again, shorter, until g is zero, from its beginning or
    from the last output within it: the located state is as accurate as the steps and the outputs.
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


def asks_to_stop(answer) -> bool:
    """Whether a callback's answer ends the run: True does, None and False do not."""
    if answer is None or isinstance(answer, bool | np.bool_):
        return bool(answer)
    raise TypeError(f"A callback returns True to end the run, else None or False; got {answer!r}.")


def checked_observables(observe: Observables | None, model: Any, state: Any) -> Observables:
    """The functions, tried on the initial state.

    Raises
    ------
    TypeError, ValueError
        For what is no mapping of names to functions; for names that are taken; for values that are
        no finite real numbers.
    """
    if observe is None:
        return {}
    named = isinstance(observe, Mapping) and all(isinstance(name, str) for name in observe)
    if not named or not all(map(callable, observe.values())):
        raise TypeError(f"observe is a mapping of names to functions of a state; got {observe!r}.")
    taken = {"t", *state.arrays(), *measure(model, state)}
    if clash := sorted(taken & set(observe)):
        raise ValueError(f"observe: {clash[0]!r} is an observable, or an array, of a run already.")
    for name, function in observe.items():
        _value(name, function, state)
    return dict(observe)


def observed(observe: Observables, states: Sequence[Any]) -> Arrays:
    """The values of every function on the states of a run, with an axis "t"."""
    found: Arrays = {}
    shape = states[0].shape
    for name, function in observe.items():
        values = np.stack([_value(name, function, state) for state in states])
        own = values.shape[1:]
        dims = member_dims(shape) if own[: len(shape)] == shape else ()
        rest = (f"{name}_{axis}" for axis in range(len(own) - len(dims)))
        found[name] = ("t", *dims, *rest), values
    return found


def _value(name: str, function: Callable[[Any], Any], state: Any) -> np.ndarray:
    return real_array(f"observe[{name!r}]", function(state))
