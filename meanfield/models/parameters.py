"""Parameters of attention: numbers for all times, layers, functions of time, or what gives them.

What cannot be known before the state is, such as a random matrix of its dimension, is a kind of
`Given`: it stays as it was written until `resolved` puts an array in its place.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np

from ..core.checks import real_array
from ..core.errors import MeanfieldError
from ..core.files import read_numbers
from ..core.forms import ARRAY, NESTED, DataFile, Either, Form, Leaf, Many, Positive, Reading
from ..core.kinds import Kind, KindOf

__all__ = [
    "FromFile",
    "FunctionOfTime",
    "Given",
    "GivenBeta",
    "GivenMatrix",
    "GivenNumber",
    "InverseTemperature",
    "Matrix",
    "Parameter",
    "PerLayer",
    "Place",
    "breakpoints",
    "inverse_temperature",
    "known",
    "matrix",
    "values_at",
]


class Place(NamedTuple):
    """What `Given` may ask of the state that a model is to move.

    Attributes
    ----------
    d : int
        Dimension of the points.
    n : float, array or None
        Number of tokens; None where there are none.
    """

    d: int | None
    n: Any = None


class Given(Kind, family=True):
    """A table in place of numbers: what it stands for is known once the state is."""

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape of the value at each time; None while it is not known."""
        return None

    def at(self, t: float) -> np.ndarray:
        """The value at time t; raises MeanfieldError while it is not known."""
        raise MeanfieldError(f"{self!r} is known once the state is: use model.resolve(place).")

    @abstractmethod
    def resolve(self, place: Place) -> Any:
        """The numbers; raises ValueError or StorageError where there are none."""


class GivenMatrix(Given):
    """A table in place of a matrix."""


class GivenBeta(Given):
    """A table in place of an inverse temperature, which may change with time."""


class GivenNumber(GivenBeta):
    """A table in place of a number, or of an ensemble of them, which does not change with time."""


class FromFile(GivenMatrix, GivenNumber):
    """Numbers that are read from a file.

    Parameters
    ----------
    file : str
        *.npy, *.npz or *.csv; relative names start from the folder of the configuration file.
    key : str, optional
        Name of the array in an .npz file.
    """

    file: DataFile
    key: str | None = None

    def resolve(self, place: Place) -> np.ndarray:
        return read_numbers(Path(self.file), self.key)


class _Layers(Form):
    """The values of `PerLayer`: numbers, or an array of them in which tables may stand."""

    expected = "an array, one entry for each layer"

    def check(self, name: str, value: Any) -> Any:
        if isinstance(value, tuple | list) and any(isinstance(entry, Given) for entry in value):
            return tuple(value)
        what = f"The {name} of PerLayer (one for each layer, all of one shape)"
        array = _finite(what, real_array(what, value))
        if array.ndim == 0 or array.size == 0:
            raise ValueError(
                f"PerLayer expects a sequence of values, one for each layer; got {value!r}. "
                "A parameter that never changes needs no PerLayer."
            )
        return array

    def read(self, data: Any, at: str, reading: Reading) -> Any:
        tables = isinstance(data, list) and any(isinstance(entry, dict) for entry in data)
        form = Many(Either((ARRAY, KindOf(Given)))) if tables else Leaf("", self.check, NESTED)
        return form.read(data, at, reading)

    def json(self, definitions: dict[str, Any]) -> dict[str, Any]:
        return {"type": "array"}


class PerLayer(GivenMatrix, GivenBeta):
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

    values: Annotated[Any, _Layers()]
    duration: Positive = 1.0

    def resolve(self, place: Place) -> "PerLayer":
        if known(self.values):
            return self
        layers = [np.asarray(_numbers_of(value, place), dtype=float) for value in self.values]
        shapes = {layer.shape for layer in layers}
        if len(shapes) > 1:
            raise ValueError(
                f"PerLayer expects one shape in all layers; got {sorted(shapes)}. A multiple of "
                "the identity is written as a matrix beside matrices."
            )
        return self.replace(values=np.stack(layers))

    @property
    def shape(self) -> tuple[int, ...] | None:
        return self.values.shape[1:] if known(self.values) else None

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


def _numbers_of(value: Any, place: Place) -> Any:
    return value.resolve(place) if isinstance(value, Given) else value


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
        self.__qualname__ = self.name

    def identity(self) -> Any:
        """What `digest` reads of it: the function."""
        return self.function

    def __call__(self, t: float) -> np.ndarray:
        return self.at(t)

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


Parameter = np.ndarray | PerLayer | FunctionOfTime | Given


def _finite(what: str, array: np.ndarray) -> np.ndarray:
    if not np.isfinite(array).all():
        raise ValueError(f"{what} must be finite; got {np.sum(~np.isfinite(array))} nan or inf.")
    array.setflags(write=False)
    return array


def _parameter(check: Callable[[Any], np.ndarray], value) -> Parameter:
    if isinstance(value, PerLayer) and known(value.values):
        for layer in value.values:
            check(layer)
    if isinstance(value, Given | FunctionOfTime):
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

    changing = isinstance(value, PerLayer | FunctionOfTime) or callable(value)

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


def known(value: Any) -> bool:
    """Whether a parameter holds its numbers, and not what gives them."""
    return not isinstance(value, Given | tuple) or (
        isinstance(value, PerLayer) and known(value.values)
    )


MATRIX = Leaf(
    "a number, a matrix [[...], ...], heads of them, or a table",
    lambda name, value: matrix(name, value),
    NESTED,
)
BETA = Leaf(
    "a finite number, an array of them, or a table",
    lambda _name, value: inverse_temperature(value),
    NESTED,
)
Matrix = Annotated[Any, Either((MATRIX, KindOf(GivenMatrix)))]
InverseTemperature = Annotated[Any, Either((BETA, KindOf(GivenBeta)))]
