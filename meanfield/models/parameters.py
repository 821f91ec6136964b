"""Parameters of attention: an array for all times, a sequence of layers, or a function of time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.checks import positive, real_array
from ..core.errors import MeanfieldError
from .plain import packed, unpacked

__all__ = [
    "FunctionOfTime",
    "Parameter",
    "PerLayer",
    "breakpoints",
    "description",
    "from_description",
    "inverse_temperature",
    "matrix",
    "shown",
    "values_at",
]


@dataclass(frozen=True, eq=False, repr=False)
class PerLayer:
    """A parameter that is constant within each layer of a Transformer and jumps between them.

    Its value at time t is that of layer floor(t / duration); the first layer's before t = 0, and
    the last one's for ever after. At a jump the later layer's value holds.

    Parameters
    ----------
    values : array, shape (layers, ...)
        The value in each layer: numbers, matrices, or heads stacked.
    duration : float
        Time that a layer lasts, > 0.

    Raises
    ------
    ValueError
        Without layers, or for values or a duration that are not finite.
    TypeError
        If the values are not real numbers of one shape.
    """

    values: np.ndarray
    duration: float

    def __init__(self, values, duration: float = 1.0):
        what = "The values of PerLayer (one for each layer, all of one shape)"
        array = _finite(what, real_array(what, values))
        if array.ndim == 0 or array.size == 0:
            raise ValueError(
                f"PerLayer expects a sequence of values, one for each layer; got {values!r}. "
                "A parameter that never changes needs no PerLayer."
            )
        positive(duration=duration)
        object.__setattr__(self, "values", array)
        object.__setattr__(self, "duration", float(duration))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value in each layer."""
        return self.values.shape[1:]

    @property
    def jumps(self) -> np.ndarray:
        """Times at which a layer follows another, shape (layers - 1,)."""
        return np.arange(1, len(self.values)) * self.duration

    def at(self, t: float) -> np.ndarray:
        """The value at time t."""
        return self.values[np.searchsorted(self.jumps, t, side="right")]

    def breakpoints(self, start: float, end: float) -> np.ndarray:
        """Times of the jumps strictly between `start` and `end`, in increasing order."""
        jumps = self.jumps
        return jumps[(jumps > start) & (jumps < end)]

    def __repr__(self) -> str:
        return f"PerLayer({len(self.values)} of {self.shape}, duration={self.duration})"


class FunctionOfTime:
    """A parameter that a function of t gives; its shape is that of the first value it gave.

    Parameters
    ----------
    check : callable
        Turns what the function returns into an array, or raises ValueError or TypeError.
    function : callable
        t -> array.
    """

    def __init__(self, check: Callable[[Any], np.ndarray], function: Callable[[float], Any]):
        self._check, self.function = check, function
        self.shape: tuple[int, ...] | None = None
        self.name = getattr(function, "__qualname__", type(function).__qualname__)

    def at(self, t: float) -> np.ndarray:
        """The value at time t, checked; raises ValueError if its shape is another than before."""
        returned = self.function(t)
        try:
            value = self._check(returned)
        except (TypeError, ValueError) as error:
            advice = " Does it lack a return?" if returned is None else ""
            raise type(error)(f"{self.name}(t = {t!r}): {error}{advice}") from error
        if self.shape is None:
            self.shape = value.shape
        if value.shape != self.shape:
            raise ValueError(
                f"{self.name}(t = {t!r}) returned shape {value.shape} after {self.shape}: "
                "a parameter keeps its shape. Pad with zeros where heads come and go."
            )
        return value

    def __repr__(self) -> str:
        return f"<{self.name}>"


Parameter = np.ndarray | PerLayer | FunctionOfTime


def _finite(what: str, array: np.ndarray) -> np.ndarray:
    if not np.isfinite(array).all():
        raise ValueError(f"{what} must be finite; got {np.sum(~np.isfinite(array))} nan or inf.")
    array.setflags(write=False)
    return array


def _parameter(check: Callable[[Any], np.ndarray], value) -> Parameter:
    if isinstance(value, PerLayer):
        for layer in value.values:
            check(layer)
        return value
    return FunctionOfTime(check, value) if callable(value) else check(value)


def matrix(name: str, value) -> Parameter:
    """A matrix, heads of matrices (H, rows, columns), or a number: that multiple of the identity.

    None instead of any of these is the identity. Also a `PerLayer` of them, or a function of t.
    Raises ValueError and TypeError, which name the parameter, for others.
    """

    def check(value) -> np.ndarray:
        array = real_array(name, value)
        if array.ndim not in (0, 2, 3) or array.size == 0:
            raise ValueError(
                f"{name} must be None (the identity), a number (that multiple of the identity), a "
                f"matrix, or heads stacked (H, rows, columns); got shape {array.shape}. What "
                "changes with time is a PerLayer(values) or a function of t."
            )
        return _finite(name, array)

    return _parameter(check, 1.0 if value is None else value)


def inverse_temperature(value) -> Parameter:
    """beta: a finite number or an ensemble of them; a `PerLayer` or function of t of numbers."""

    changing = isinstance(value, PerLayer) or callable(value)

    def check(value) -> np.ndarray:
        array = real_array("beta", value)
        if array.size == 0 or not np.isfinite(array).all():
            raise ValueError(f"beta must be finite (a number, or an array of them); got {value!r}.")
        if changing and array.ndim:
            raise ValueError(
                f"beta must be a number at each time; got shape {array.shape}. An ensemble of "
                "betas has to be constant in time."
            )
        array.setflags(write=False)
        return array

    return _parameter(check, value)


def values_at(parameters: Mapping[str, Parameter], t: float) -> dict[str, np.ndarray]:
    """The arrays that parameters are at time t."""
    return {
        name: value if isinstance(value, np.ndarray) else value.at(t)
        for name, value in parameters.items()
    }


def breakpoints(parameters: Mapping[str, Parameter], start: float, end: float) -> np.ndarray:
    """Times strictly between `start` and `end` at which one of the parameters jumps."""
    layered = [value for value in parameters.values() if isinstance(value, PerLayer)]
    jumps = [value.breakpoints(start, end) for value in layered]
    return np.unique(np.concatenate([np.empty(0), *jumps]))


def shown(parameter: Parameter) -> str:
    """A parameter in a repr: a number, or the shape of an array."""
    if isinstance(parameter, np.ndarray):
        return repr(parameter.item() if parameter.ndim == 0 else parameter.shape)
    return repr(parameter)


def description(parameter: Parameter) -> Any:
    """A parameter as plain data: a number, or the bytes of an array, or a function's name."""
    if isinstance(parameter, FunctionOfTime):
        return {"callable": parameter.name}
    if isinstance(parameter, PerLayer):
        return {"per_layer": packed(parameter.values), "duration": parameter.duration}
    return parameter.item() if parameter.ndim == 0 else packed(parameter)


def from_description(name: str, data: Any) -> Any:
    """What `description` described, bit for bit; a function raises MeanfieldError when called."""
    if not isinstance(data, Mapping):
        return data
    try:
        if "callable" in data:
            return _absent(name, str(data["callable"]))
        if "per_layer" in data:
            return PerLayer(unpacked(data["per_layer"]), data["duration"])
        return unpacked(data)
    except (KeyError, TypeError, ValueError) as error:
        raise MeanfieldError(f"{name} is not described as a parameter is: {error!r}.") from error


def _absent(name: str, function_name: str) -> Callable[[float], Any]:
    def function(t):
        raise MeanfieldError(
            f"{name} is a function of t, which files do not hold: {function_name}. Build the "
            "drift again with that function to evaluate it."
        )

    function.__qualname__ = function_name
    return function
