"""Forms: sets of values that parameters accept, with a check for Python and files, and JSON schema.

The annotation of a parameter determines its form: ``float``, ``int``, ``bool``, ``str``,
``np.ndarray`` and ``Callable`` have a form each, and so have the annotations that this module
defines, such as `Positive` and `Numbers`. The forms of ``tuple[X, ...]``, unions and ``Literal``
are composed of these.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from . import checks
from .annotations import AnyObject, Function, Json, UserValue
from .errors import MeanfieldError
from .files import NUMBER_FORMATS, RESULT_FORMATS

Plain = UserValue  # data of TOML or JSON: numbers, texts, arrays, tables
Schema = dict[str, UserValue]  # of JSON
REFUSED = (TypeError, ValueError, MeanfieldError)
MOST_OF_KEY = 200  # characters of a dotted key that messages show
INVALID: UserValue = type("Invalid", (), {})()  # result of reading invalid data
INFINITIES = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}  # numbers that JSON lacks


@dataclass
class Reading:
    """Context in which plain data are read: their source, and the problems found so far.

    Attributes
    ----------
    folder : Path
        Folder from which relative file names start.
    arrays : mapping
        Long arrays of a result file by their names.
    result : bool
        Whether the data are those of a result file, in which functions are missing and kinds may
        be unknown.
    problems : list of str
        Messages, each beginning with the dotted key.
    lost : list of str
        Names of functions, which files do not store, and of kinds that are not installed.
    files : dict of Path
        Paths of the data files that the data name, by dotted key.
    """

    in_python: ClassVar[bool] = False  # whether values are those of a call in Python

    folder: Path = field(default_factory=Path)
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    result: bool = False
    problems: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    files: dict[str, Path] = field(default_factory=dict)

    def refuse(self, where: str, text: object) -> UserValue:
        """Add a problem with the value at the dotted key `where`; returns INVALID."""
        where = where if len(where) < MOST_OF_KEY else f"{where[:MOST_OF_KEY]}..."
        self.problems.append(f"{where}: {text}" if where else str(text))
        return INVALID

    def expected(self, where: str, expected: str, data: Plain, names: UserValue = ()) -> UserValue:
        """Add the problem that `expected` was expected, with the nearest of the `names` names."""
        hint = nearest(data, names) if isinstance(data, str) else ""
        return self.refuse(where, f"expected {expected}; got {toml(data)}{hint}")


class Call(Reading):
    """Context of a call in Python: an unexpected value raises TypeError at once."""

    in_python = True

    def expected(self, where: str, expected: str, data: Plain, names: UserValue = ()) -> UserValue:
        """Raise TypeError at the argument `where`, with the nearest of `names`."""
        name = data.__name__ if isinstance(data, type) else data
        hint = nearest(name, names, "{}(...)") if isinstance(name, str) else ""
        raise TypeError(
            f"{where} must be {expected}; got {where} = {checks.as_given(data)}{hint or '.'}"
        )


class Form:
    """The set of values that a parameter accepts; `expected` describes it.

    Attributes
    ----------
    names : sequence of str
        Names of the kinds that it accepts.
    by_name : mapping
        Accepted values, by the names that files use for them.
    keys : sequence of str
        Keys that its table in a file may have.
    """

    names: UserValue = ()
    by_name: UserValue = {}  # noqa: RUF012
    keys: UserValue = ()
    none_is_default: bool = False  # whether None in a call means the default
    expected: str

    def __repr__(self) -> str:
        return f"<{self.expected}>"

    def check(self, name: str, value: UserValue) -> UserValue:
        """The value of parameter `name` in a call, converted; else TypeError or ValueError."""
        return self.read(value, name, Call())

    def read(self, data: Plain, where: str, reading: Reading) -> UserValue:
        """The value of plain data at the dotted key `where`; INVALID, with a problem, if none."""
        raise NotImplementedError

    def json(self, definitions: Schema) -> Schema:
        """The JSON schema; schemas of kinds are added to `definitions` and referenced."""
        return {}


@dataclass(frozen=True, eq=False, repr=False)
class Leaf(Form):
    """Form of a value that is not a kind: a number, an array, a name, a function.

    Parameters
    ----------
    expected : str
        Description for messages: "a finite number > 0".
    accept : callable
        (name, value) -> value, or raises TypeError or ValueError.
    schema : dict
        JSON schema.
    by_name : mapping
        Accepted values, by the names that files use for them.
    """

    expected: str
    accept: Callable[[str, UserValue], UserValue]
    schema: Schema
    by_name: Mapping[str, UserValue] = field(default_factory=dict)

    def read(self, data: Plain, where: str, reading: Reading) -> UserValue:
        """A value from Python, by name, from a configuration, or from a stored result."""
        if reading.in_python:
            is_name = isinstance(data, str) and data in self.by_name
            return self.accept(where, self.by_name[data] if is_name else data)
        is_reference = isinstance(data, Mapping) and set(data) in ({"array"}, {"function"})
        if self is ANYTHING and not is_reference:
            return data
        if isinstance(data, Mapping):
            return self._from_result(data, where, reading)
        if self.by_name:
            if isinstance(data, str) and data in self.by_name:
                return self.by_name[data]
            return reading.expected(where, self.expected, data, self.by_name)
        name = where.split(".")[-1]
        try:
            if "anyOf" in self.schema or self.schema.get("type") == "array":
                data = _numbers(name, data)
            elif isinstance(data, str) and self.schema.get("type") != "string":
                data = INFINITIES.get(data, data)
            return self.accept(name, data)
        except REFUSED as error:
            return reading.refuse(where, without_name(str(error), name))

    def _from_result(self, data: Mapping[str, Json], where: str, reading: Reading) -> UserValue:
        """The array, or the placeholder for a function, to which a result file refers."""
        if "array" in data and data["array"] in reading.arrays:
            return np.array(reading.arrays[data["array"]])
        if "function" in data and reading.result:
            reading.lost.append(str(data["function"]))
            return lost_function(str(data["function"]))
        return reading.expected(where, self.expected, data)

    def json(self, definitions: Schema) -> Schema:
        return {"enum": list(self.by_name)} if self.by_name else dict(self.schema)


GIVE_MODEL = (
    "give the model that has it, mf.load(path, model=model) for a result, or build it again."
)


def lost_function(name: str) -> Function:
    """A placeholder for a function that a file does not store: a call raises MeanfieldError."""

    def function(*_arguments: object) -> None:
        raise MeanfieldError(f"{name} is a function, which files do not hold: {GIVE_MODEL}")

    function.__qualname__ = name
    return function


def _numbers(name: str, data: Plain) -> Json:
    """Numbers of a file, with "inf", "-inf" and "nan" as floats; TypeError for other values."""
    if isinstance(data, list | tuple):
        return [_numbers(name, entry) for entry in data]
    number = INFINITIES.get(data, data) if isinstance(data, str) else data
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError(f"{name} must be real numbers; got {toml(data)}.")
    return number


def without_name(text: str, name: str) -> str:
    """A message without the name of the parameter, for a line that begins with its dotted key."""
    text = text.replace(f"; got {name} = ", "; got ")
    return text.removeprefix(f"{name} ") if text.startswith(f"{name} must ") else text


# Leaves ------------------------------------------------------------------------------------------

NUMBER = {"type": "number"}
NESTED = {"anyOf": [NUMBER, {"type": "array"}]}


def _real(expected: str, fits: Callable[[float], bool], **schema: float) -> Leaf:
    """Form of the real numbers that satisfy `fits`; `schema` are keywords of the JSON schema."""
    accept = partial(checks.real, expected=expected, fits=fits)
    return Leaf(expected, accept, {**NUMBER, **schema})


def _whole_number(expected: str, least: int, most: int = 2**63 - 1, **schema: int) -> Leaf:
    """Form of the whole numbers from `least` to `most`."""
    accept = partial(checks.whole_number, least=least, most=most)
    return Leaf(expected, accept, {"type": "integer", **schema})


def _ensemble(
    expected: str, words: str, fits: Callable[[UserValue], UserValue], schema: Schema
) -> Leaf:
    """Form of non-empty arrays whose entries satisfy `fits`, which `words` describes."""

    def accept(name: str, value: UserValue) -> np.ndarray:
        """A number or an array; ValueError unless all entries fit."""
        array = checks.real_array(name, value)
        entries_expected = f"{words} (a number, or an array of them)"
        checks.require(name, value, entries_expected, array.size > 0 and fits(array).all())
        return array

    return Leaf(f"{expected}, or an array of them", accept, schema)


def _of_type(expected: str, fits: Callable[[UserValue], bool], schema: Schema) -> Leaf:
    """Form of the values that satisfy `fits`, returned unchanged; TypeError for others."""
    return Leaf(
        expected,
        lambda n, value: checks.require(n, value, expected, fits(value), TypeError),
        schema,
    )


def choice(values: Mapping[str, UserValue]) -> Leaf:
    """Form of the values of `values`, whose keys are the names that files use for them."""
    expected = " or ".join(f'"{name}"' for name in values)

    def accept(name: str, value: UserValue) -> UserValue:
        """One of the values, by equality; ValueError with the nearest for others."""
        for known_value in values.values():
            if value is known_value or (isinstance(value, str) and value == known_value):
                return known_value
        hint = nearest(value, values) if isinstance(value, str) else ""
        got = f"got {name} = {checks.as_given(value)}"
        raise ValueError(f"{name} must be {expected}; {got}{hint or '.'}")

    return Leaf(expected, accept, {}, values)


FINITE = _real("a finite number", math.isfinite)
POSITIVE = _real("a finite number > 0", lambda x: 0 < x < math.inf, exclusiveMinimum=0)
NON_NEGATIVE = _real("a finite number >= 0", lambda x: 0 <= x < math.inf, minimum=0)
INTEGER = _whole_number("a whole number", -(2**63))
NATURAL = _whole_number("a whole number >= 1", 1, minimum=1)
INDEX = _whole_number("a whole number >= 0", 0, 2**128 - 1, minimum=0)  # seeds have 128 bits
FLAG = Leaf("true or false", checks.boolean, {"type": "boolean"})
TEXT = _of_type("a string", lambda value: isinstance(value, str), {"type": "string"})
ARRAY = Leaf("an array of finite numbers", checks.finite_array, NESTED)
NUMBERS = _ensemble("a finite number", "finite", np.isfinite, NESTED)
POSITIVE_NUMBERS = _ensemble(
    "a number > 0", "> 0", lambda x: x > 0, {"anyOf": [*NESTED["anyOf"], {"const": "inf"}]}
)
FUNCTION = _of_type("a function", callable, {"not": {}})
ANYTHING = Leaf("a value", lambda _name, value: value, {})


@dataclass(frozen=True, eq=False, repr=False)
class _FileOf(Leaf):
    """Form of file names with one of the suffixes `formats`; relative to the configuration file."""

    formats: tuple[str, ...] = ()

    def read(self, data: Plain, where: str, reading: Reading) -> UserValue:
        """Path of an existing file of these formats, relative to the configuration."""
        if reading.in_python:
            return self.accept(where, data)
        path = reading.folder / data if isinstance(data, str) else Path()
        if path.suffix not in self.formats:
            return reading.expected(where, self.expected, data)
        if not reading.result and not path.is_file():
            return reading.refuse(where, f'there is no file "{data}"; looked for {path.absolute()}')
        reading.files[where] = path
        return str(path)


DATA_FILE = _FileOf(
    "a file named *.npy, *.npz or *.csv", TEXT.accept, TEXT.schema, formats=NUMBER_FORMATS
)
RESULT_FILE = _FileOf("a result file named *.nc", TEXT.accept, TEXT.schema, formats=RESULT_FORMATS)

DataFile = Annotated[str, DATA_FILE]
ResultFile = Annotated[str, RESULT_FILE]
Positive = Annotated[float, POSITIVE]
NonNegative = Annotated[float, NON_NEGATIVE]
Natural = Annotated[int, NATURAL]
Index = Annotated[int, INDEX]
Array = Annotated[UserValue, ARRAY]
Numbers = Annotated[UserValue, NUMBERS]
PositiveNumbers = Annotated[UserValue, POSITIVE_NUMBERS]

LEAVES: dict[UserValue, Leaf] = {
    float: FINITE,
    int: INTEGER,
    bool: FLAG,
    str: TEXT,
    np.ndarray: ARRAY,
    Callable: FUNCTION,
    Any: ANYTHING,
}


@dataclass(frozen=True, eq=False, repr=False)
class Instance(Form):
    """Form of objects of the class `base`, or with `itself` of its subclasses; not in files."""

    base: type
    itself: bool = False

    @property
    def expected(self) -> str:  # type: ignore[override]
        """Words for the class: "a Sphere", or its kinds for a class itself."""
        name = self.base.__name__
        if self.itself:
            kinds = getattr(self.base, "kinds", {name: self.base})
            names = [name for name, kind in kinds.items() if issubclass(kind, self.base)]
            return f"a class itself: {', '.join(names)}"
        return f"a{'n' if name[0] in 'AEIOU' else ''} {name}"

    def read(self, data: Plain, where: str, reading: Reading) -> UserValue:
        fits = isinstance(data, type) and issubclass(data, self.base)
        fits = fits if self.itself else isinstance(data, self.base)
        return data if fits else reading.expected(where, self.expected, data)

    def json(self, definitions: Schema) -> Schema:
        return {"not": {}}


# Forms that are made of others -------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Many(Form):
    """Form of sequences whose entries have one form; `title` describes the sequence in messages."""

    form: Form
    title: str = ""

    @property
    def expected(self) -> str:  # type: ignore[override]
        return self.title or f"an array, each entry {self.form.expected}"

    def read(self, data: Plain, where: str, reading: Reading) -> UserValue:
        """Tuple of the entries, each read by the form; INVALID if one is."""
        a_sequence = hasattr(data, "__iter__") and getattr(data, "ndim", 1) > 0
        if isinstance(data, str | bytes | bytearray | Mapping) or not a_sequence:
            a_number = isinstance(data, int | float) and reading.in_python and not self.title
            advice = f" (for one of them, [{checks.as_given(data)}])" if a_number else ""
            return reading.expected(where, f"{self.expected}{advice}", data)
        entries = [self.form.read(entry, f"{where}[{i}]", reading) for i, entry in enumerate(data)]
        return INVALID if any(entry is INVALID for entry in entries) else tuple(entries)

    def json(self, definitions: Schema) -> Schema:
        return {"type": "array", "items": self.form.json(definitions)}


@dataclass(frozen=True, eq=False, repr=False)
class Named(Form):
    """Form of tables with arbitrary keys, whose values have one form."""

    form: Form

    @property
    def expected(self) -> str:  # type: ignore[override]
        return f"a table, each value {self.form.expected}"

    def read(self, data: Plain, where: str, reading: Reading) -> UserValue:
        """Dict of the entries, each read by the form; INVALID if one is."""
        if not isinstance(data, Mapping):
            return reading.expected(where, self.expected, data)
        entries = {
            key: self.form.read(entry, f"{where}.{key}", reading) for key, entry in data.items()
        }
        return INVALID if any(entry is INVALID for entry in entries.values()) else entries

    def json(self, definitions: Schema) -> Schema:
        return {"type": "object", "additionalProperties": self.form.json(definitions)}


@dataclass(frozen=True, eq=False, repr=False)
class Either(Form):
    """Form of values that one of several forms accepts; the first that does converts them."""

    forms: tuple[Form, ...]

    @property
    def expected(self) -> str:  # type: ignore[override]
        return ", or ".join(form.expected for form in self.forms)

    @property
    def by_name(self) -> UserValue:
        return {name: value for form in self.forms for name, value in form.by_name.items()}

    def read(self, data: Plain, where: str, reading: Reading) -> UserValue:
        """Value in the first form that reads it; else the problems of the likeliest form."""
        if reading.in_python:
            refusals = []
            for form in self.forms:
                try:
                    return form.read(data, where, reading)
                except TypeError as error:  # the next form may accept it
                    refusals.append(error)
                except ValueError as error:
                    if not form.by_name:
                        raise
                    words = str(error).replace(form.expected, self.expected, 1)
                    raise ValueError(words) from None
            raise refusals[0]
        trials: dict[Form, list[str]] = {}
        for form in self.forms:
            trial = replace(reading, problems=[])
            value = form.read(data, where, trial)
            if not trial.problems:
                return value
            trials[form] = trial.problems
        names = [form_name for form in self.forms for form_name in form.names]
        is_name = isinstance(data, str) and (data in names or bool(nearest(data, names)))
        a_kind = isinstance(data, Mapping) or is_name
        candidates = [form for form in self.forms if bool(form.names) == a_kind]
        candidates = [form for form in candidates if form is not FUNCTION] or [self.forms[0]]
        if len(candidates) == 1:
            reading.problems += trials[candidates[0]]
            return INVALID
        alternatives = Either(tuple(candidates))
        return reading.expected(where, alternatives.expected, data, alternatives.by_name)

    def json(self, definitions: Schema) -> Schema:
        in_files = (form for form in self.forms if form is not FUNCTION)
        return {"anyOf": [form.json(definitions) for form in in_files]}


TimeSpan = Annotated[Sequence[float], Many(FINITE, "two times (start, end)")]

# Words -------------------------------------------------------------------------------------------


SYNONYMS = {
    name: theirs
    for names, theirs in {
        # scipy
        "atol tol tolerance": "rtol",
        "step max_step first_step stepsize h": "dt",
        "method solver stepper integrator": "scheme",
        "dense_output ts saveat": "t_eval",
        "y0 x0 u0 initial": "state",
        "fun f": "model",
        "rk45 rk23 dopri5 dop853 lsoda": "DormandPrince",
        "etdrk4 etd": "Krogstad",
        "euler": "Layers",
        "observables callbacks": "observe",
        "stationary equilibrium": "steady",
        "sensitivity sensitivities": "tangents",
        "seed random_state generator random_seed": "rng",
        "workers n_jobs num_workers pool processes": "executor",
        "n_threads num_threads": "threads",
        # PyTorch
        "n_layers num_layers depth": "t_span",
        "temperature inverse_temperature scale sharpness": "beta",
        "is_causal mask": "causal",
        "w_q wq query": "Q",
        "w_k wk key": "K",
        "w_v wv value": "V",
        "w_o wo out_proj proj": "output",
        "num_heads n_heads heads": "Q",
        "norm layer_norm ln": "normalisation",
        "mlp ffn": "feedforward",
        "n n_tokens counts": "sizes",
        "d dim d_model embed_dim ndim": "dimension",
        "hidden_states embeddings points": "x",
        "weight mass": "masses",
        "norms lengths": "radii",
        "diffusion sigma inverse_noise": "kappa",
        "figsize": "width",
        "lmax l_max modes n_modes resolution size": "degree",
    }.items()
    for name in names.split()
}  # names in scipy, PyTorch and matplotlib: parameters and schemes of this package


def nearest(name: str, valid: Iterable[object], template: str = "{}") -> str:
    """A hint "; did you mean ...?"; empty if no known name is similar or a synonym."""
    from difflib import get_close_matches

    text = (name if isinstance(name, str) else checks.as_given(name)).lower()
    by_name = {str(n).lower(): str(n) for n in valid}
    synonym = text if text in by_name else SYNONYMS.get(text, "").lower()
    cutoff = {1: 0.7, 2: 0.5, 3: 0.5}.get(len(text), 0.6)  # one other letter, in short names
    close = [synonym] if synonym in by_name else get_close_matches(text, by_name, 1, cutoff)
    return f"; did you mean {template.format(by_name[close[0]])}?" if close else ""


def toml(value: AnyObject) -> str:
    """A value in the notation of TOML; long values and tables by a description."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False) if len(value) < 60 else "a long string"
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        is_short = len(value) < 60 and len(words := checks.as_given(list(value))) <= 60
        return words if is_short else f"an array of {len(value)}"
    if isinstance(value, int):
        return checks.as_given(value, 60)
    return str(value)[:200]


def shown(value: AnyObject) -> str:
    """A parameter in a `repr`: short arrays and numbers as they are, functions by their names."""
    if isinstance(value, np.ndarray):
        return repr(value.tolist()) if value.size <= 16 else f"<array {value.shape}>"
    if isinstance(value, tuple):
        return f"[{', '.join(map(shown, value))}]"
    if callable(value) and not isinstance(value, type) and not hasattr(value, "described"):
        return f"<{getattr(value, '__qualname__', type(value).__qualname__)}>"
    return repr(value)
