"""User functions of a run: events, the callback, observables."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..core.checks import as_given, fitting, real_array
from ..results.files import GROUP
from ..results.solution import DATASET_AXES, Solution, State, axes_of, observable_arrays
from ..states.contract import Arrays
from .integration import Integration

EventFunction = Callable[[float, Any], Any]
Observables = dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]]


class EventWatch:
    """Looks for sign changes of g(t, state) over every step and locates them.

    An event is located by taking the step again, shorter, until g is zero, from its beginning or
    from the last output within it: the located state is as accurate as the steps and the outputs.
    `g.terminal` (default False) ends the run; `g.direction` > 0 counts rising zeros only,
    < 0 falling ones.
    """

    def __init__(self, functions: tuple[EventFunction, ...], run: Integration):
        self._functions, self._start = functions, run.t - run.elapsed
        self._before = run.elapsed, run.state
        self._values = [self._value(g, *self._before) for g in functions]

    def crossed(self, run: Integration) -> list[tuple[int, float, State, bool]]:
        """Events of the step just taken, in the order of time: (index, t, state, terminal)."""
        (start, before), (end, after) = self._before, (run.elapsed, run.state)
        values = [self._value(g, end, after) for g in self._functions]
        events = []
        for index, (g, old, new) in enumerate(
            zip(self._functions, self._values, values, strict=True)
        ):
            direction = getattr(g, "direction", 0)
            if (old < 0 <= new and direction >= 0) or (old > 0 >= new and direction <= 0):
                elapsed, state = self._locate(g, run, start, before, end, after)
                terminal = bool(getattr(g, "terminal", False))
                events.append((index, self._start + elapsed, state, terminal))
        self._before, self._values = (end, after), values
        return sorted(events, key=lambda event: event[1])

    def _value(self, g: EventFunction, elapsed: float, state: State) -> float:
        t = self._start + elapsed
        value = real_array("The value of an event function", answer := g(t, state))
        if value.shape != () or not np.isfinite(value) or isinstance(answer, bool | np.bool_):
            apart = (
                f" It sees all members of the state, of shape {state.shape}, at one time: for an "
                "event of each give events=[lambda t, state, i=i: g(t, state[i]) for i in "
                "np.ndindex(state.shape)]."
            )
            raise ValueError(
                "An event function must return one finite number, which changes its sign at the "
                f"event; {g!r} returned {answer!r} at t = {t:g}.{apart * bool(state.shape)}"
            )
        return float(value)

    def _locate(
        self,
        g: EventFunction,
        run: Integration,
        start: float,
        before: State,
        end: float,
        after: State,
    ) -> tuple[float, State]:
        if not run.continuous or end == start:
            return end, after
        from scipy.optimize import brentq

        def at(elapsed: float) -> State:
            if elapsed == start:
                return before
            return after if elapsed == end else run.step_from(before, start, elapsed - start)

        # A function with a jump there has no zero: then the shortest interval will do.
        elapsed = brentq(
            lambda elapsed: self._value(g, elapsed, at(elapsed)),
            start,
            end,
            xtol=2 * np.spacing(end),
            maxiter=1000,
            disp=False,
        )
        return elapsed, at(elapsed)


def asks_to_stop(answer: Any) -> bool:
    """True if a callback's answer ends the run: True does, None and False do not."""
    if answer is None or isinstance(answer, bool | np.bool_):
        return bool(answer)
    raise TypeError(
        f"A callback returns True to end the run, else None or False; got {as_given(answer)}."
    )


def checked_observables(observe: Any, start: Solution) -> Observables:
    """The functions, tried on the initial state, with the shapes of their values.

    Raises
    ------
    TypeError, ValueError
        For what is no mapping of names to functions; for names that are taken, or that files cannot
        hold; for values that are no real numbers.
    """
    if observe is None:
        return {}
    named = isinstance(observe, Mapping) and all(isinstance(name, str) for name in observe)
    fits = named and all(map(callable, observe.values()))
    fitting("observe", observe, "a mapping of names to functions of a state", fits, TypeError)
    tried = {name: (f, _value(name, f, start.final).shape) for name, f in observe.items()}
    state: Any = start.final
    arrays = observable_arrays(start) | state.stacked(start.states)
    axes = [dims for dims, _ in arrays.values()]
    axes += [axes_of(name, shape, start.shape) for name, (_, shape) in tried.items()]
    taken = {GROUP, *arrays, *DATASET_AXES, *start.parameters}.union(*axes)
    for name in observe:
        wanted = "made of letters, digits and underscores, none of the digits first"
        fitting("a name in observe", name, wanted, name.isidentifier())
        if name in taken:
            raise ValueError(
                f"observe: {name!r} is an observable, an array, a parameter or an axis of a run "
                f"already, as are {', '.join(sorted(taken - {name}))}. Choose another name."
            )
    return tried


def observed(observe: Observables, run: Solution) -> Arrays:
    """The values of every function on the states of a run, with an axis "t"; nan where it fails.

    A run is worth more than what is observed on it.
    """
    arrays: Arrays = {}
    for name, (function, shape) in observe.items():
        values, failures = np.full((len(run), *shape), np.nan), []
        for i, (t, state) in enumerate(zip(run.t, run, strict=True)):
            try:
                value = _value(name, function, state)
                if value.shape != shape:
                    raise ValueError(f"its shape is {value.shape}, and {shape} at the start")
                values[i] = value
            except Exception as error:
                failures.append(f"at t = {t:g}: {error!r}")
        if failures:
            warnings.warn(
                f"observe[{name!r}] failed at {len(failures)} of {len(run)} times, where its "
                f"values are nan; first {failures[0]}.",
                RuntimeWarning,
                stacklevel=4,
            )
        arrays[name] = axes_of(name, shape, run.shape), values
    return arrays


def _value(name: str, function: Callable[[Any], Any], state: Any) -> np.ndarray:
    return real_array(f"observe[{name!r}]", function(state))
