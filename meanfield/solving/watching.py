"""User functions of a run: events, callback and observables."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..core.annotations import MovedState
from ..core.checks import as_given, real_array, require
from ..results.files import GROUP
from ..results.solution import DATASET_AXES, Solution, State, axes_of, observable_arrays
from ..states.contract import Arrays
from .conditions import EventFunction
from .integration import Integration

Observables = dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]]


class EventWatch:
    """Detection of events, the sign changes of functions g(t, state) over each step.

    An event is located by repeating the step with shorter lengths, from its beginning or from the
    last output within it, until g is zero; the state there is as accurate as the steps and the
    outputs. `g.terminal` (default False) ends the run; `g.direction` > 0 selects rising zeros,
    < 0 falling zeros.
    """

    def __init__(self, functions: tuple[EventFunction, ...], run: Integration):
        self._functions, self._start = functions, run.t - run.elapsed
        self._before = run.elapsed, run.state
        self._values = [self._value(g, *self._before) for g in functions]

    def crossed(self, run: Integration) -> list[tuple[int, float, State, bool]]:
        """Events since the last call, by increasing time.

        Each is (index of the function, t, state, terminal).
        """
        end, end_state = run.elapsed, run.state
        values = [self._value(g, end, end_state) for g in self._functions]
        events = []
        for index, (g, last, value) in enumerate(
            zip(self._functions, self._values, values, strict=True)
        ):
            direction = getattr(g, "direction", 0)
            if (last < 0 <= value and direction >= 0) or (last > 0 >= value and direction <= 0):
                elapsed, state = self._locate(g, run, end, end_state)
                terminal = bool(getattr(g, "terminal", False))
                events.append((index, self._start + elapsed, state, terminal))
        self._before, self._values = (end, end_state), values
        return sorted(events, key=lambda event: event[1])

    def _value(self, g: EventFunction, elapsed: float, state: State) -> float:
        """Value of g; raises ValueError unless it is one finite number."""
        t = self._start + elapsed
        value = real_array("The value of an event function", answer := g(t, state))
        if value.shape != () or not np.isfinite(value) or isinstance(answer, bool | np.bool_):
            advice = (
                f" It sees all members of the state, of shape {state.shape}, at one time: for an "
                "event of each give events=[lambda t, state, i=i: g(t, state[i]) for i in "
                "np.ndindex(state.shape)]."
            )
            raise ValueError(
                "An event function must return one finite number, which changes its sign at the "
                f"event; {g!r} returned {answer!r} at t = {t:g}.{advice * bool(state.shape)}"
            )
        return float(value)

    def _locate(
        self, g: EventFunction, run: Integration, end: float, after: State
    ) -> tuple[float, State]:
        """Time and state at a zero of g since the last call of `crossed`, by Brent's method.

        Times are relative to the start. If steps cannot be repeated, it is the later state.
        """
        start, before = self._before
        if not run.continuous or end == start:
            return end, after
        from scipy.optimize import brentq

        def at(elapsed: float) -> State:
            if elapsed == start:
                return before
            return after if elapsed == end else run.step_from(before, start, elapsed - start)

        # If g jumps there is no zero: Brent's method then ends at the shortest interval.
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
    """True if the answer of a callback is True; None and False mean that the run goes on."""
    if answer is None or isinstance(answer, bool | np.bool_):
        return bool(answer)
    raise TypeError(
        f"A callback returns True to end the run, else None or False; got {as_given(answer)}."
    )


def checked_observables(observe: Any, start: Solution) -> Observables:
    """Functions of `observe` and the shapes of their values, evaluated on the initial state.

    Parameters
    ----------
    observe : mapping of str to function, or None
        The argument of `solve`.
    start : Solution
        Solution that consists of the initial state.

    Raises
    ------
    TypeError, ValueError
        If `observe` is no mapping of names to functions, a name is in use or is no identifier, or
        values are not real numbers.
    """
    if observe is None:
        return {}
    has_names = isinstance(observe, Mapping) and all(isinstance(name, str) for name in observe)
    fits = has_names and all(map(callable, observe.values()))
    require("observe", observe, "a mapping of names to functions of a state", fits, TypeError)
    shapes_known = {name: (f, _value(name, f, start.final).shape) for name, f in observe.items()}
    state: MovedState = start.final
    arrays = observable_arrays(start) | state.stacked(start.states)
    axes = [dims for dims, _ in arrays.values()]
    axes += [axes_of(name, shape, start.shape) for name, (_, shape) in shapes_known.items()]
    taken_names = {GROUP, *arrays, *DATASET_AXES, *start.parameters}.union(*axes)
    for name in observe:
        expected = "made of letters, digits and underscores, none of the digits first"
        require("a name in observe", name, expected, name.isidentifier())
        if name in taken_names:
            raise ValueError(
                f"observe: {name!r} is an observable, an array, a parameter or an axis of a run "
                f"already, as are {', '.join(sorted(taken_names - {name}))}. Choose another name."
            )
    return shapes_known


def observed(observe: Observables, run: Solution) -> Arrays:
    """Values of the functions on the states of a run, on a first axis "t".

    A function that fails gives nan and a warning, so that the run is not lost.
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
                stacklevel=5,
            )
        arrays[name] = axes_of(name, shape, run.shape), values
    return arrays


def _value(name: str, function: Callable[[Any], Any], state: MovedState) -> np.ndarray:
    """Value of a function of `observe` as a real array."""
    return real_array(f"observe[{name!r}]", function(state))
