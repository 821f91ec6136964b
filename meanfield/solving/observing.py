"""Observables of the caller's own: functions of the state, kept with the result."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core.checks import real_array
from ..dynamics.observables import measure
from ..states.contract import Arrays, member_dims

__all__ = ["checked_observables", "observed"]

Observables = Mapping[str, Callable[[Any], Any]]


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
