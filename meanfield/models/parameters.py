"""Parameters of attention: constant numbers, layers, functions of time, or placeholders.

A value that depends on the state, such as a random matrix of its dimension, is a kind of `Given`,
a placeholder that `resolve` replaces by an array.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np

from ..core.annotations import Function, Json, Parameters, UserValue, Values
from ..core.arrays import read_numbers
from ..core.checks import finite_array, real_array, require, takes
from ..core.descriptions import KindOf
from ..core.dual import Dual
from ..core.errors import MeanfieldError
from ..core.forms import (
    ARRAY,
    NESTED,
    NUMBERS,
    POSITIVE_NUMBERS,
    DataFile,
    Either,
    Leaf,
    Many,
    Positive,
    Reading,
)
from ..core.kinds import Kind


class StateSizes(NamedTuple):
    """Sizes of the state of a run, on which values of `Given` depend.

    Attributes
    ----------
    d : int
        Dimension of the points.
    n : float, array or None
        Number of tokens; None where there are none.
    shape : tuple of int
        Shape of the replicas, or of the ensemble of densities.
    """

    d: int | None
    n: UserValue = None
    shape: tuple[int, ...] = ()


class Given(Kind, family=True):
    """A table in place of numbers: what it stands for is known once the state is."""

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape of the value at each time; None if it is not known yet."""
        return None

    def at(self, t: float) -> np.ndarray:
        """The value at time t; raises MeanfieldError if it is not known yet."""
        raise MeanfieldError(f"{self!r} is known once the state is: use model.resolve(sizes).")

    def breakpoints(self, start: float, end: float) -> np.ndarray:
        """Times strictly between `start` and `end` at which the value jumps, increasing."""
        return np.empty(0)

    @abstractmethod
    def resolve(self, sizes: StateSizes) -> Values:
        """The array for a state of these sizes; ValueError or StorageError if there is none."""


class MatrixInTime(Given):
    """A table in place of a matrix, which may change with time."""


class GivenMatrix(MatrixInTime):
    """A table in place of a matrix."""


class BetaInTime(Given):
    """A table in place of an inverse temperature, which may change with time."""


class GivenNumber(BetaInTime):
    """A table in place of a number, or of an ensemble of them."""


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

    def resolve(self, sizes: StateSizes) -> np.ndarray:
        return read_numbers(Path(self.file), self.key)


# Layers and functions of time --------------------------------------------------------------------


def _layers(name: str, value: UserValue) -> np.ndarray:
    """Array (layers, ...) of PerLayer values; ValueError if empty, a number, or with nan."""
    array = real_array(f"The {name} of PerLayer (one for each layer, all of one shape)", value)
    numbers = bool((array == array).all())
    require(f"The {name} of PerLayer", value, "numbers, without nan", numbers)
    expected = "a sequence with an entry for each layer"
    advice = "A parameter that never changes is given without PerLayer."
    require(f"The {name} of PerLayer", value, expected, array.ndim and array.size, advice=advice)
    return array


class _Layers(Leaf):
    """Form of a list with one entry for each layer: numbers of one shape, or tables."""

    def read(self, data: Json, where: str, reading: Reading) -> UserValue:
        if isinstance(data, list | tuple) and any(isinstance(e, Mapping | Given) for e in data):
            return Many(Either((ARRAY, KindOf(Given)))).read(data, where, reading)
        return super().read(data, where, reading)


LAYER_LIST = _Layers("an array, one entry for each layer", _layers, {"type": "array"})


class PerLayer(MatrixInTime, BetaInTime):
    """A parameter that is constant within each layer of a Transformer and jumps between them.

    The value at time t is that of layer floor(t / duration); before t = 0 it is that of the first
    layer, and after the last layer that of the last one. The `message` of a longer run says so. At
    a jump it is the value of the later layer.

    Parameters
    ----------
    values : array, shape (layers, ...)
        The value in each layer: numbers, matrices, or heads stacked.
    duration : float
        Duration of a layer, > 0.

    Raises
    ------
    ValueError
        Without layers, for nan, or a duration that is not finite. Parameters that have to be
        finite refuse inf; kappa = inf is a layer without noise.
    TypeError
        If the values are not real numbers of one shape.
    """

    piecewise_constant = True

    values: Annotated[UserValue, LAYER_LIST]
    duration: Positive = 1.0

    @property
    def known(self) -> bool:
        """Whether the values of all layers are numbers, without placeholders."""
        return isinstance(self.values, np.ndarray)

    def resolve(self, sizes: StateSizes) -> "PerLayer":
        """Layers resolved for `sizes` and stacked; ValueError if their shapes differ."""
        if self.known:
            return self
        layers = [v.resolve(sizes) if isinstance(v, Given) else v for v in self.values]
        shapes = {np.shape(layer) for layer in layers}
        if len(shapes) > 1:
            raise ValueError(
                f"PerLayer expects one shape in all layers; got {sorted(shapes)}. A multiple of "
                "the identity is written as a matrix beside matrices."
            )
        return self.replace(values=np.stack(layers))

    @property
    def shape(self) -> tuple[int, ...] | None:
        return self.values.shape[1:] if self.known else None

    @property
    def jumps(self) -> np.ndarray:
        """Times at which a layer begins, without the first, shape (layers - 1,)."""
        return np.arange(1, len(self.values)) * self.duration

    def at(self, t: float) -> np.ndarray:
        """The value at time t."""
        return self.values[np.searchsorted(self.jumps, t, side="right")]

    def breakpoints(self, start: float, end: float) -> np.ndarray:
        jumps = self.jumps
        return jumps[(jumps > start) & (jumps < end)]


def end_of_layers(part: object) -> float:
    """Time at which the last layer of the shortest `PerLayer` of a model ends; inf without one."""
    if isinstance(part, PerLayer):
        return len(part.values) * part.duration
    if isinstance(part, Kind):
        part = tuple(vars(part).values())
    return min(map(end_of_layers, part), default=np.inf) if isinstance(part, tuple) else np.inf


class FunctionOfTime:
    """A parameter given by a function of t; its shape is that of the first value.

    Parameters
    ----------
    check : callable
        (name, value) -> the checked array; raises ValueError or TypeError.
    name : str
        The name of the parameter.
    function : callable
        t -> array.
    """

    piecewise_constant = False

    def __init__(self, check: Function, name: str, function: Callable[[float], UserValue]):
        self._check, self._name, self.function = check, name, function
        self.shape: tuple[int, ...] | None = None
        self.__qualname__ = getattr(function, "__qualname__", type(function).__qualname__)

    def identity(self) -> object:
        """The function, for `digest`."""
        return self.function

    def __call__(self, t: float) -> np.ndarray:
        return self.at(t)

    def breakpoints(self, start: float, end: float) -> np.ndarray:
        """An empty array: jumps of a function are not known."""
        return np.empty(0)

    def at(self, t: float) -> np.ndarray:
        """The checked value at time t; raises ValueError if its shape has changed."""
        answer, call = self.function(t), f"{self.__qualname__}(t = {t!r})"
        try:
            value = self._check(self._name, answer)
        except (TypeError, ValueError) as error:
            advice = " Does it lack a return?" if answer is None else ""
            raise type(error)(f"{call}: {error}{advice}") from error
        if self.shape is None:
            self.shape = value.shape
        if value.shape != self.shape:
            raise ValueError(
                f"{call} returned shape {value.shape} after {self.shape}: a parameter keeps its "
                "shape. Pad with zeros where heads come and go."
            )
        return value


Parameter = np.ndarray | PerLayer | FunctionOfTime | Given


def in_every_layer(value: UserValue, change: Callable[[np.ndarray], np.ndarray]) -> UserValue:
    """The parameter with `change` applied to its array, or in every layer of a `PerLayer`."""
    if isinstance(value, PerLayer):
        return value.replace(values=np.stack([change(layer) for layer in value.values]))
    return change(value)


def at(value: UserValue, t: float) -> np.ndarray:
    """The value of a parameter at time t."""
    return value if isinstance(value, np.ndarray | Dual) else value.at(t)


def changing(parameters: Mapping[str, Parameter]) -> Parameters:
    """The parameters that are not arrays: their values depend on time, or are not known yet."""
    arrays = np.ndarray | Dual
    return {name: value for name, value in parameters.items() if not isinstance(value, arrays)}


def jumps_of(parameters: Mapping[str, Parameter], start: float, end: float) -> np.ndarray:
    """Times strictly between `start` and `end` at which a parameter jumps, increasing."""
    jumps = [value.breakpoints(start, end) for value in changing(parameters).values()]
    return np.unique(np.concatenate([np.empty(0), *jumps]))


def sizes_of(
    axes: Mapping[str, str], shapes: Mapping[str, tuple[int, ...] | None], advice: str = ""
) -> dict[str, int]:
    """The sizes of the axes of arrays, by letter; ValueError unless equal letters have one size.

    `axes` has the letters of the last axes of each array, as "Hkd"; an array may have fewer axes.
    """
    by_letter: dict[str, dict[int, dict[str, str]]] = {}
    for name, shape in shapes.items():
        for letter, size in zip(axes[name][::-1], (shape or ())[::-1], strict=False):
            letters = ", ".join(axes[name][-len(shape or ()) :])
            by_letter.setdefault(letter, {}).setdefault(size, {})[name] = f"{name} ({letters})"
    for letter, sizes in by_letter.items():
        if len(sizes) > 1:
            texts = {name: text for names in sizes.values() for name, text in names.items()}
            raise ValueError(
                f"{' and '.join(texts.values())} must have one {letter}; got "
                f"{', '.join(f'{name} {shapes[name]}' for name in texts)}. {advice}".rstrip()
            )
    return {letter: next(iter(sizes)) for letter, sizes in by_letter.items()}


# Matrices and inverse temperatures ---------------------------------------------------------------


def _matrix(name: str, value: UserValue) -> np.ndarray:
    """Finite array of a parameter: a number, a matrix, or matrices of heads and of replicas."""
    array = finite_array(name, value)
    if array.ndim == 1 or array.size == 0:
        raise ValueError(
            f"{name} must be None (the identity), a number (that multiple of the identity), a "
            "matrix, heads stacked (H, rows, columns), or those of each replica (R, H, rows, "
            f"columns); got shape {array.shape}. What changes with time is a PerLayer(values) or a "
            "function of t."
        )
    return array


def _bias(name: str, value: UserValue) -> np.ndarray:
    array = finite_array(name, value)
    if array.ndim == 0 or array.size == 0:
        raise ValueError(
            f"{name} must be None or an array, a number for each coordinate; got shape "
            f"{array.shape}."
        )
    return array


def _matrix_of_time(name: str, value: UserValue) -> np.ndarray:
    array = _matrix(name, value)
    if array.ndim > 3:
        raise ValueError(
            f"{name} as a function of t is one matrix, or heads of them (H, rows, columns), for "
            f"all replicas; got shape {array.shape}. Matrices that differ between replicas are "
            "constant, or a PerLayer."
        )
    return array


def _single(form: Leaf, plural: str) -> Callable[[str, UserValue], np.ndarray]:
    """The check of a parameter that must be a single number at each time."""

    def check(name: str, value: UserValue) -> np.ndarray:
        array = form.check(name, value)
        if array.ndim:
            raise ValueError(
                f"{name} must be a number at each time; got shape {array.shape}. An ensemble of "
                f"{plural} has to be constant in time."
            )
        return array

    return check


def _form_in_time(
    expected: str, constant: Function, changing: Function, layered: Function | None = None
) -> Leaf:
    """The form of a parameter that is checked by `constant`, or `changing` as a function of time.

    Values of a `PerLayer` are checked by `layered`, by default by `changing`.
    """

    def checked(name: str, value: UserValue) -> Parameter:
        if isinstance(value, PerLayer) and value.known:
            for layer in value.values:
                (layered or changing)(name, layer)
        if isinstance(value, PerLayer | FunctionOfTime):
            return value
        if callable(value):
            wanted = "an array or a function of time"
            advice = "Of a layer of a network it is an array such as layer.weight.detach().numpy()."
            fits = takes(value, 1) and not hasattr(value, "state_dict")
            require(name, value, wanted, fits, TypeError, advice)
            return FunctionOfTime(changing, name, value)
        return constant(name, value)

    return Leaf(expected, checked, NESTED)


MATRIX_FORM = _form_in_time(
    "a number, a matrix [[...], ...], heads of them, or a table",
    constant=lambda name, value: _matrix(name, 1.0 if value is None else value),
    changing=_matrix_of_time,
    layered=_matrix,
)
BIAS_FORM = _form_in_time("an array, that of each head, or a table", _bias, _bias)
BETA_FORM = _form_in_time(
    "a finite number, an array of them, or a table", NUMBERS.check, _single(NUMBERS, "betas")
)
KAPPA_FORM = _form_in_time(
    "a number > 0, inf included, an array of them, or a table",
    POSITIVE_NUMBERS.check,
    _single(POSITIVE_NUMBERS, "kappas"),
)
NoiseParameter = Annotated[UserValue, Either((KAPPA_FORM, KindOf(BetaInTime)))]
Matrix = Annotated[UserValue, Either((MATRIX_FORM, KindOf(MatrixInTime)))]
Bias = Annotated[UserValue, Either((BIAS_FORM, KindOf(MatrixInTime)))]
InverseTemperature = Annotated[UserValue, Either((BETA_FORM, KindOf(BetaInTime)))]
