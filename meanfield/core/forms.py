"""What a parameter may be: one check for Python and for files, and its JSON schema.

A form is found from the annotation of a parameter: ``float``, ``int``, ``bool``, ``str``,
``np.ndarray``, ``Callable`` and ``Path`` have forms of their own, and so have the annotations that
this module defines, such as `Positive` and `Numbers`. ``X | None``, ``tuple[X, ...]``, unions and
``Literal`` are made of others.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from . import checks
from .errors import MeanfieldError

__all__ = [
    "INVALID",
    "REFUSED",
    "Array",
    "DataFile",
    "Form",
    "Index",
    "Leaf",
    "Named",
    "Natural",
    "NonNegative",
    "Numbers",
    "Positive",
    "PositiveNumbers",
    "Reading",
    "Registered",
    "nearest",
    "shown",
    "toml",
    "without_name",
]

REFUSED = (TypeError, ValueError, MeanfieldError)
INVALID: Any = type("Invalid", (), {})()  # what is read where something was wrong
INFINITIES = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}  # of which JSON has none


@dataclass
class Reading:
    """Plain data that are being read: where from, and what was wrong so far.

    Attributes
    ----------
    folder : Path
        Where relative names of files start.
    arrays : mapping
        Long arrays of a result file by their names.
    result : bool
        Whether it is a result that is read: functions are lost then, and kinds may be unknown.
    problems : list of str
        What is wrong, each beginning with the dotted key.
    lost : list of str
        What the file does not hold: functions, and kinds that are not installed.
    files : list of Path
        The files that are named.
    """

    folder: Path = field(default_factory=Path)
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    result: bool = False
    problems: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)

    def refuse(self, at: str, text: object) -> Any:
        """Note a problem with the value of a key."""
        self.problems.append(f"{at}: {text}" if at else str(text))
        return INVALID


class Form:
    """What a value may be; `expected` says so in words.

    Attributes
    ----------
    names : sequence of str
        The names of the kinds that it may be.
    """

    names: Any = ()
    expected: str

    @property
    def choices(self) -> Any:
        """The strings that it may be."""
        return ()

    @property
    def keys(self) -> Any:
        """The keys that a table may have."""
        return ()

    def name_of(self, value: Any) -> str | None:
        """The name by which files know a value, where they do."""
        return None

    def check(self, name: str, value: Any) -> Any:
        """The value as it is kept; raises TypeError or ValueError, which name the parameter."""
        return value

    def read(self, data: Any, at: str, reading: Reading) -> Any:
        """The value that plain data at a dotted key describe; INVALID, and noted, if none."""
        raise NotImplementedError

    def json(self, definitions: dict[str, Any]) -> dict[str, Any]:
        """The JSON schema; that of a kind goes into the definitions."""
        return {}


@dataclass(frozen=True, eq=False)
class Leaf(Form):
    """A value that is no kind: a number, an array, a name, a function.

    Parameters
    ----------
    expected : str
        What it may be, in words: "a finite number > 0".
    accept : callable
        (name, value) -> value, or raises TypeError or ValueError.
    schema : dict
        JSON schema.
    functions : dict
        Functions that files may name.
    """

    expected: str
    accept: Callable[[str, Any], Any]
    schema: dict[str, Any]
    functions: Mapping[str, Callable] = field(default_factory=dict)

    def name_of(self, value: Any) -> str | None:
        return next((name for name, known in self.functions.items() if known is value), None)

    def check(self, name: str, value: Any) -> Any:
        return self.accept(name, value)

    def read(self, data: Any, at: str, reading: Reading) -> Any:
        if isinstance(data, Mapping) and self is not ANYTHING:
            return self._stored(data, at, reading)
        if isinstance(data, str) and data in self.functions:
            return self.functions[data]
        name = at.split(".")[-1]
        try:
            value = data if self.is_text else _numbers(data)
            if "anyOf" in self.schema:
                _check_entries(name, value)
            return self.check(name, value)
        except REFUSED as error:
            return reading.refuse(at, without_name(str(error), name))

    @property
    def is_text(self) -> bool:
        """Whether strings mean themselves; else "inf" and "nan" are numbers."""
        return self.schema.get("type") == "string"

    def _stored(self, data: Mapping, at: str, reading: Reading) -> Any:
        if "array" in data and data["array"] in reading.arrays:
            return np.array(reading.arrays[data["array"]])
        if "function" in data and reading.result:
            reading.lost.append(str(data["function"]))
            return lost_function(str(data["function"]))
        return reading.refuse(at, f"expected {self.expected}; got a table")

    def json(self, definitions: dict[str, Any]) -> dict[str, Any]:
        return dict(self.schema)


def lost_function(name: str) -> Callable:
    """A function that a file does not hold: it raises MeanfieldError when it is called."""

    def function(*_arguments):
        raise MeanfieldError(
            f"{name} is a function, which files do not hold: build the model again with it."
        )

    function.__qualname__ = name
    return function


def _numbers(data: Any) -> Any:
    """Plain data with the words for infinite numbers as numbers."""
    if isinstance(data, list | tuple):
        return [_numbers(entry) for entry in data]
    return INFINITIES.get(data, data) if isinstance(data, str) else data


def _check_entries(name: str, data: Any) -> None:
    """Raise TypeError for what NumPy would take for numbers, or for an array of text."""
    if isinstance(data, list | tuple):
        for entry in data:
            _check_entries(name, entry)
    elif isinstance(data, bool) or not isinstance(data, int | float):
        raise TypeError(f"{name} must be real numbers; got {toml(data)}.")


def without_name(text: str, name: str) -> str:
    """A message that begins with the name of a parameter, for a line that begins with its key."""
    text = text.replace(f"; got {name} = ", "; got ")
    return text.removeprefix(f"{name} ") if text.startswith(f"{name} must ") else text


# Leaves ------------------------------------------------------------------------------------------


def _named(check: Callable) -> Callable[[str, Any], float]:
    def accept(name: str, value: Any) -> float:
        check(**{name: value})
        return float(value)

    return accept


def _array(name: str, value: Any) -> np.ndarray:
    array = checks.real_array(name, value)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite; got {np.sum(~np.isfinite(array))} nan or inf.")
    return array


def _ensemble(name: str, value: Any) -> np.ndarray:
    array = checks.real_array(name, value)
    if array.size == 0 or not np.isfinite(array).all():
        raise ValueError(
            f"{name} must be finite (a number, or an array of them); got {name} = {value!r}."
        )
    return array


def _positive_ensemble(name: str, value: Any) -> np.ndarray:
    array = checks.real_array(name, value)
    if array.size == 0 or not (array > 0).all():
        raise ValueError(
            f"{name} must be > 0 (a number, or an array of them); got {name} = {value!r}."
        )
    return array


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string; got {name} = {value!r}.")
    return value


def _function(name: str, value: Any) -> Callable:
    if not callable(value):
        raise TypeError(f"{name} must be a function; got {name} = {value!r}.")
    return value


def _whole(least: int) -> Callable[[str, Any], int]:
    def accept(name: str, value: Any) -> int:
        return checks.whole_number(f"{name} must be a whole number", name, value, least=least)

    return accept


def _non_negative(name: str, value: Any) -> float:
    checks.finite(**{name: value})
    if value < 0:
        raise ValueError(f"{name} must be a finite number >= 0; got {name} = {value!r}.")
    return float(value)


NUMBER = {"type": "number"}
NESTED = {"anyOf": [NUMBER, {"type": "array"}]}
FINITE = Leaf("a finite number", _named(checks.finite), NUMBER)
POSITIVE = Leaf("a finite number > 0", _named(checks.positive), {**NUMBER, "exclusiveMinimum": 0})
NON_NEGATIVE = Leaf("a finite number >= 0", _non_negative, {**NUMBER, "minimum": 0})
NATURAL = Leaf("a whole number >= 1", _whole(1), {"type": "integer", "minimum": 1})
INDEX = Leaf("a whole number >= 0", _whole(0), {"type": "integer", "minimum": 0})
FLAG = Leaf("true or false", checks.boolean, {"type": "boolean"})
TEXT = Leaf("a string", _text, {"type": "string"})
ARRAY = Leaf("an array of finite numbers", _array, NESTED)
NUMBERS = Leaf("a finite number, or an array of them", _ensemble, NESTED)
POSITIVE_NUMBERS = Leaf(
    "a number > 0, or an array of them",
    _positive_ensemble,
    {"anyOf": [NUMBER, {"type": "array"}, {"const": "inf"}]},
)
FUNCTION = Leaf("a function, which a file cannot hold", _function, {"not": {}})
ANYTHING = Leaf("a value", lambda _name, value: value, {})


@dataclass(frozen=True, eq=False)
class _DataFile(Leaf):
    """The name of a file of numbers; in a configuration it starts from the folder of that."""

    def read(self, data: Any, at: str, reading: Reading) -> Any:
        if not isinstance(data, str):
            return reading.refuse(at, f"expected {self.expected}; got {toml(data)}")
        path = reading.folder / data
        if path.suffix not in DATA_FORMATS:
            return reading.refuse(at, f"expected {self.expected}; got {toml(data)}")
        if not reading.result and not path.is_file():
            return reading.refuse(at, f'there is no file "{data}"; looked for {path.absolute()}')
        reading.files.append(path)
        return str(path)


DATA_FORMATS = (".npy", ".npz", ".csv")
DATA_FILE = _DataFile("a file named *.npy, *.npz or *.csv", _text, {"type": "string"})

DataFile = Annotated[str, DATA_FILE]
Positive = Annotated[float, POSITIVE]
NonNegative = Annotated[float, NON_NEGATIVE]
Natural = Annotated[int, NATURAL]
Index = Annotated[int, INDEX]
Array = Annotated[Any, ARRAY]
Numbers = Annotated[Any, NUMBERS]
PositiveNumbers = Annotated[Any, POSITIVE_NUMBERS]

LEAVES: dict[Any, Leaf] = {
    float: FINITE,
    int: Leaf("a whole number", _whole(-(2**63)), {"type": "integer"}),
    bool: FLAG,
    str: TEXT,
    np.ndarray: ARRAY,
    Callable: FUNCTION,
    Any: ANYTHING,
}


# Forms that are made of others -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OrNone(Form):
    """A value, or None, which a file says by leaving the key out."""

    form: Form

    @property
    def expected(self) -> str:  # type: ignore[override]
        return self.form.expected

    def check(self, name: str, value: Any) -> Any:
        return None if value is None else self.form.check(name, value)

    def read(self, data: Any, at: str, reading: Reading) -> Any:
        return None if data is None else self.form.read(data, at, reading)

    def json(self, definitions: dict[str, Any]) -> dict[str, Any]:
        return self.form.json(definitions)


@dataclass(frozen=True, eq=False)
class Choice(Form):
    """One of some strings."""

    values: tuple[str, ...]

    @property
    def expected(self) -> str:  # type: ignore[override]
        return " or ".join(f'"{value}"' for value in self.values)

    @property
    def choices(self) -> Any:
        return self.values

    def check(self, name: str, value: Any) -> Any:
        if value not in self.values:
            hint = nearest(value, self.values) if isinstance(value, str) else ""
            raise ValueError(f"{name} must be {self.expected}; got {name} = {value!r}{hint}.")
        return value

    def read(self, data: Any, at: str, reading: Reading) -> Any:
        if data in self.values:
            return data
        hint = nearest(data, self.values) if isinstance(data, str) else ""
        return reading.refuse(at, f"expected {self.expected}; got {toml(data)}{hint}")

    def json(self, definitions: dict[str, Any]) -> dict[str, Any]:
        return {"enum": list(self.values)}


@dataclass(frozen=True, eq=False)
class Many(Form):
    """Any number of values of one form."""

    form: Form

    @property
    def expected(self) -> str:  # type: ignore[override]
        return f"an array, each entry {self.form.expected}"

    def check(self, name: str, value: Any) -> tuple:
        if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
            raise TypeError(f"{name} must be {self.expected}; got {name} = {value!r}.")
        return tuple(self.form.check(f"{name}[{i}]", entry) for i, entry in enumerate(value))

    def read(self, data: Any, at: str, reading: Reading) -> Any:
        if not isinstance(data, list | tuple):
            return reading.refuse(at, f"expected {self.expected}; got {toml(data)}")
        found = [self.form.read(entry, f"{at}[{i}]", reading) for i, entry in enumerate(data)]
        return INVALID if any(entry is INVALID for entry in found) else tuple(found)

    def json(self, definitions: dict[str, Any]) -> dict[str, Any]:
        return {"type": "array", "items": self.form.json(definitions)}


@dataclass(frozen=True, eq=False)
class Named(Form):
    """Values of one form by names of one's own."""

    form: Form

    @property
    def expected(self) -> str:  # type: ignore[override]
        return f"a table, each value {self.form.expected}"

    def check(self, name: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise TypeError(f"{name} must be {self.expected}; got {name} = {value!r}.")
        return {key: self.form.check(f"{name}.{key}", entry) for key, entry in value.items()}

    def read(self, data: Any, at: str, reading: Reading) -> Any:
        if not isinstance(data, Mapping):
            return reading.refuse(at, f"expected {self.expected}; got {toml(data)}")
        found = {key: self.form.read(entry, f"{at}.{key}", reading) for key, entry in data.items()}
        return INVALID if any(entry is INVALID for entry in found.values()) else found

    def json(self, definitions: dict[str, Any]) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.form.json(definitions)}


@dataclass(frozen=True, eq=False)
class Either(Form):
    """A value of one of several forms: of the first that takes it."""

    forms: tuple[Form, ...]

    @property
    def expected(self) -> str:  # type: ignore[override]
        return ", or ".join(form.expected for form in self.forms)

    def check(self, name: str, value: Any) -> Any:
        refusals = []
        for form in self.forms:
            try:
                return form.check(name, value)
            except TypeError as error:  # of another form, perhaps
                refusals.append(error)
        raise refusals[0]

    def read(self, data: Any, at: str, reading: Reading) -> Any:
        trials = [replace(reading, problems=[]) for _ in self.forms]
        for form, trial in zip(self.forms, trials, strict=True):
            value = form.read(data, at, trial)
            if not trial.problems:
                return value
        named = [bool(form.names) for form in self.forms]
        a_kind = isinstance(data, Mapping) or (isinstance(data, str) and self._may_be_a_kind(data))
        fitting = [i for i, kinds in enumerate(named) if kinds == a_kind] or [0]
        if len(fitting) == 1:
            reading.problems += trials[fitting[0]].problems
            return INVALID
        expected = ", or ".join(self.forms[i].expected for i in fitting)
        known = [name for i in fitting for name in self.forms[i].choices]
        hint = nearest(data, known) if isinstance(data, str) else ""
        return reading.refuse(at, f"expected {expected}; got {toml(data)}{hint}")

    def _may_be_a_kind(self, name: str) -> bool:
        names = [known for form in self.forms for known in form.names]
        return bool(names) and (name in names or bool(nearest(name, names)))

    def json(self, definitions: dict[str, Any]) -> dict[str, Any]:
        return {"anyOf": [form.json(definitions) for form in self.forms]}


@dataclass(frozen=True, eq=False)
class Registered(Form):
    """An object that a class knows by its name, such as a scheme."""

    base: Any

    @property
    def expected(self) -> str:  # type: ignore[override]
        return " or ".join(f'"{name}"' for name in self.base.known)

    @property
    def choices(self) -> Any:
        return self.base.known

    def check(self, name: str, value: Any) -> Any:
        if not isinstance(value, self.base):
            known = ", ".join(self.base.known)
            raise TypeError(f"{name} must be one of {known}; got {name} = {value!r}.")
        return value

    def read(self, data: Any, at: str, reading: Reading) -> Any:
        if data in self.base.known:
            return self.base.known[data]
        hint = nearest(str(data), self.base.known)
        return reading.refuse(at, f"expected {self.expected}; got {toml(data)}{hint}")

    def json(self, definitions: dict[str, Any]) -> dict[str, Any]:
        return {"enum": list(self.base.known)}


# Words -------------------------------------------------------------------------------------------


def nearest(name: str, known) -> str:
    """ "; did you mean ...?", or nothing where no known name is near."""
    by_name = {str(other).lower(): str(other) for other in known}
    near = get_close_matches(str(name).lower(), by_name, n=1, cutoff=0.5)
    return f"; did you mean {by_name[near[0]]}?" if near else ""


def toml(value: Any) -> str:
    """A value as a file would write it; what is long, by its kind."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"' if len(value) < 60 else "a long string"
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return f"an array of {len(value)}" if len(str(value)) > 60 else str(list(value))
    return str(value)


def shown(value: Any) -> str:
    """A parameter in a `repr`: short arrays and numbers as they are, functions by their names."""
    if isinstance(value, np.ndarray):
        return repr(value.tolist()) if value.size <= 16 else f"<array {value.shape}>"
    if callable(value) and not isinstance(value, type) and not hasattr(value, "described"):
        return f"<{getattr(value, '__qualname__', type(value).__qualname__)}>"
    return repr(value)
