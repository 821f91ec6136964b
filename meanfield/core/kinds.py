"""One description of everything that is chosen by an object: drifts, noises, states, spaces, ...

A kind is a class below `Kind`. Its signature and docstring are the only place where its parameters
are written down; the table in a configuration file, the entry in a result file, the identity in a
checkpoint, the JSON schema, the `repr` and the messages of errors are derived from them:

    describe(Sigmoid(-3.0))                             {"kind": "Sigmoid", "bias": -3.0}
    build(Weights, {"kind": "Sigmoid", "bias": -3.0})   Sigmoid(bias=-3.0)
    schema(Weights)                                     JSON schema of all weights known now

Kinds belong to a family, a class below `Kind` with ``family=True``, in which they are registered by
being defined. A table names its kind by the key `kind`; a bare string is a kind without parameters.
"""

import functools
import inspect
import math
import types
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import (
    Any,
    ClassVar,
    Literal,
    Self,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from .errors import ConfigError, MeanfieldError
from .forms import (
    INVALID,
    LEAVES,
    REFUSED,
    Choice,
    Either,
    Form,
    Many,
    Named,
    OrNone,
    Reading,
    Registered,
    nearest,
    shown,
    toml,
    without_name,
)
from .identity import digest

__all__ = [
    "Kind",
    "KindOf",
    "Parameter",
    "build",
    "call_json",
    "describe",
    "located",
    "parameters_of",
    "read_arguments",
    "schema",
]

ENTRY_POINTS = "meanfield.kinds"
SHORT = 16  # entries of an array that stands among other words


@dataclass_transform(eq_default=False)
class Kind(ABC):
    """Base of all kinds.

    A subclass is a frozen dataclass of its annotations. One that has an ``__init__`` of its own
    keeps it, and sets its attributes by `_set`. Either way the parameters of ``__init__`` are those
    of the kind, checked as their annotations say: see `forms`.

    A class that is defined again in the same module, as in a notebook, replaces the one before.
    Names that begin with an underscore, and abstract classes, are not registered.

    Raises
    ------
    TypeError
        If another module has defined a kind of this name in the family.
    """

    family: ClassVar[type["Kind"]]
    kinds: ClassVar[dict[str, type["Kind"]]]
    leaves: ClassVar[dict[Any, Form]] = {}  # annotations that mean something else in a family
    default_kind: ClassVar[str | None] = None  # that of a table which does not name its kind
    kept: ClassVar[bool] = True  # whether tables describe it; else they hold its repr
    by_hand: ClassVar[bool] = False  # whether it is an ordinary class, not a frozen dataclass

    def __init_subclass__(cls, family: bool = False, **options: Any) -> None:
        super().__init_subclass__(**options)
        if _needs_init(cls):
            dataclass(frozen=True, eq=False, repr=False)(cls)
            del cls.__setattr__, cls.__delattr__  # those of Kind will do
        if family:
            cls.family, cls.kinds = cls, {}
            if cls.default_kind != cls.__name__:
                return
        if hasattr(cls, "family") and cls.__name__[0] != "_" and not inspect.isabstract(cls):
            known = cls.kinds.get(cls.__name__, cls)
            if known.__module__ != cls.__module__:
                raise TypeError(
                    f"{known.__module__} defines a {cls.family.__name__} of the name "
                    f"{cls.__name__} already: {cls.__module__} has to choose another name."
                )
            cls.kinds[cls.__name__] = cls

    def __setattr__(self, name: str, value: Any) -> None:
        if not self.by_hand:
            raise AttributeError(f"{type(self).__name__} is frozen; use replace({name}=...).")
        object.__setattr__(self, name, value)

    def __post_init__(self) -> None:
        for name, parameter in parameters_of(type(self)).items():
            value = getattr(self, name)
            if value is None and isinstance(parameter.form, KindOf) and not parameter.required:
                value = parameter.default  # for which None stands
            self._set(**{name: parameter.form.check(name, value)})
        self.validate()

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    def validate(self) -> None:  # noqa: B027
        """Raise ValueError or TypeError where parameters do not fit together; by default never."""

    @property
    def described(self) -> dict[str, Any]:
        """The parameters by their names."""
        return {name: getattr(self, name) for name in parameters_of(type(self))}

    def replace(self, **changes: Any) -> Self:
        """The same kind with other values of some parameters."""
        return type(self)(**{**self.described, **changes})

    def ready(self) -> None:  # noqa: B027
        """Raise MeanfieldError where it cannot be evaluated, as it was not kept in a file."""

    def in_file(self) -> "Kind":
        """The kind that files hold in its place: itself, unless functions stand in it."""
        return self

    def fingerprint(self) -> Any:
        """What code of the kind computes at fixed places: part of its identity."""
        return None

    def identity(self) -> Any:
        """What `digest` reads of it: parameters, and what is computed with them."""
        return [self.described, self.fingerprint()]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and digest(self) == digest(other)

    def __hash__(self) -> int:
        return hash(digest(self))

    def __repr__(self) -> str:
        given = [
            f"{name}={shown(value)}"
            for name, value in self.described.items()
            if not parameters_of(type(self))[name].is_default(value)
        ]
        return f"{type(self).__name__}({', '.join(given)})"


def _needs_init(cls: type[Kind]) -> bool:
    """Whether a dataclass makes the constructor: it has annotations, or none was written so far."""
    if cls.by_hand or "__init__" in cls.__dict__:
        return False
    hints = inspect.get_annotations(cls).values()
    if any("ClassVar" not in str(hint) for hint in hints):
        return True
    return next(base for base in cls.__mro__[1:] if "__init__" in base.__dict__) is object


# Parameters ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kind or of a function.

    Attributes
    ----------
    form : Form
        What it may be.
    default : object
        ``inspect.Parameter.empty`` where it is required.
    words : str
        What the docstring says of it.
    """

    form: Form
    default: Any
    words: str

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty

    def is_default(self, value: Any) -> bool:
        """Whether a value is what stands there if it is left out."""
        if self.required or self.default is None or value is None:
            return value is None and self.default is None
        try:
            kept = self.form.check("default", self.default)
            return type(kept) is type(value) and digest(kept) == digest(value)
        except REFUSED:
            return False


@functools.cache
def parameters_of(target: Any) -> dict[str, Parameter]:
    """The parameters of a kind, or of a function, that have an annotation."""
    function: Any = getattr(target, "__init__") if isinstance(target, type) else target  # noqa: B009
    hints = get_type_hints(function, include_extras=True)
    places = reversed(target.__mro__) if isinstance(target, type) else [target]
    words = {name: text for place in places for name, text in _words(place).items() if text}
    special = getattr(target, "leaves", {})
    given = inspect.signature(target).parameters
    return {
        name: Parameter(form_of(hints[name], special), given[name].default, words.get(name, ""))
        for name in given
        if name in hints
    }


def form_of(hint: Any, special: Mapping[Any, Form]) -> Form:
    """The form that an annotation means; `special` are those of a family of its own."""
    inner = get_args(hint)
    for other in getattr(hint, "__metadata__", ()):
        if isinstance(other, Form):
            return other
    if get_origin(hint) is Literal:
        return Choice(inner)
    if get_origin(hint) in (Union, types.UnionType):
        forms = tuple(form_of(one, special) for one in inner if one is not types.NoneType)
        form = forms[0] if len(forms) == 1 else Either(forms)
        return OrNone(form) if types.NoneType in inner else form
    if get_origin(hint) in (tuple, list, Sequence) and inner:
        return Many(form_of(inner[0], special))
    if get_origin(hint) in (dict, Mapping) and inner:
        return Named(form_of(inner[1], special))
    if isinstance(hint, type) and hasattr(hint, "known"):
        return Registered(hint)
    if isinstance(hint, type) and issubclass(hint, Kind):
        return KindOf(hint)
    plain = get_origin(hint) or hint
    for known in (special, LEAVES):
        if plain in known:
            return known[plain]
    return LEAVES[Any]


def _words(place: Any) -> dict[str, str]:
    """What the section Parameters of a docstring in numpydoc's form says of each of them."""
    lines = inspect.cleandoc(place.__doc__ or "").splitlines()
    found: dict[str, list[str]] = {}
    inside = False
    names: list[str] = []
    for line, following in zip(lines, [*lines[1:], ""], strict=False):
        if following.startswith("---"):
            inside = line.strip() in ("Parameters", "Attributes")
        elif inside and line.strip() and not line.startswith("---"):
            if line[0].isspace():
                for name in names:
                    found[name].append(line.strip())
            else:
                given = [name.strip(" *") for name in line.split(":")[0].split(",")]
                names = [name for name in given if name not in found]  # else an attribute
                found |= {name: [] for name in names}
    return {name: " ".join(text) for name, text in found.items()}


# Plain data ------------------------------------------------------------------------------------


def describe(value: Any, arrays: dict[str, np.ndarray] | None = None, at: str = "") -> Any:
    """A value as plain data that JSON can write; `build` makes it again, bit for bit.

    Parameters
    ----------
    value : object
        A kind, or what its parameters may be.
    arrays : dict, optional
        Takes arrays of more than 16 entries, by the dotted keys at which they stand; what is
        returned names them. Without it they are written out.
    at : str
        The dotted key of the value.

    Notes
    -----
    A function is described by its name, and `build` gives back one that raises MeanfieldError.
    """
    if isinstance(value, Kind):
        value = value.in_file()
        tree: dict[str, Any] = {"kind": type(value).__name__}
        if not value.kept:
            return {**tree, "shown": repr(value)}
        kind: Any = type(value)
        known = parameters_of(kind)
        for name, entry in value.described.items():
            if not known[name].is_default(entry):
                said = known[name].form.name_of(entry)
                tree[name] = said or describe(entry, arrays, f"{at}.{name}" if at else name)
        return tree
    if isinstance(value, np.ndarray):
        if arrays is not None and value.size > SHORT:
            arrays[at] = value
            return {"array": at}
        return describe(value.tolist(), arrays, at)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | tuple):
        return [describe(entry, arrays, f"{at}[{i}]") for i, entry in enumerate(value)]
    if isinstance(value, Mapping):
        return {key: describe(entry, arrays, f"{at}.{key}") for key, entry in value.items()}
    if isinstance(value, np.generic):
        return describe(value.item(), arrays, at)
    if isinstance(value, Path):
        return str(value)
    if callable(value):
        return {"function": getattr(value, "__qualname__", type(value).__qualname__)}
    return value


def build(family: type[Kind], data: Any, reading: Reading | None = None, at: str = "") -> Any:
    """The kind that plain data describe.

    Parameters
    ----------
    family : class
        A family, such as Drift.
    data : dict or str
        What `describe` returned, or a table of a file.
    reading : Reading, optional
        Where the data come from.
    at : str
        Their dotted key.

    Raises
    ------
    ConfigError
        One line for each problem: the dotted key, what was expected, what came, and the nearest
        valid name.
    """
    reading = Reading() if reading is None else reading
    value = KindOf(family).read(data, at, reading)
    if reading.problems:
        raise ConfigError("\n".join(reading.problems))
    return value


def schema(family: type[Kind]) -> dict[str, Any]:
    """The JSON schema of all kinds of a family that are known now, installed packages included."""
    _read_entry_points()
    definitions: dict[str, Any] = {}
    root = KindOf(family).json(definitions)
    return {**root, "$defs": definitions}


@dataclass(frozen=True, eq=False)
class KindOf(Form):
    """An object of a family, or of a class below it."""

    base: type[Kind]

    @property
    def names(self) -> list[str]:
        """The names of the kinds that fit."""
        kinds = self.base.family.kinds.items()
        return sorted(n for n, kind in kinds if issubclass(kind, self.base) and kind.kept)

    @property
    def keys(self) -> set[str]:
        kinds = self.base.family.kinds
        return {key for name in self.names for key in parameters_of(kinds[name])}

    @property
    def expected(self) -> str:  # type: ignore[override]
        return f"one of {', '.join(f'{name}(...)' for name in self.names)}"

    def check(self, name: str, value: Any) -> Any:
        if not isinstance(value, self.base):
            raise TypeError(f"{name} must be {self.expected}; got {name} = {value!r}.")
        return value

    def read(self, data: Any, at: str, reading: Reading) -> Any:
        data = {"kind": data} if isinstance(data, str) else data
        if not isinstance(data, Mapping):
            example = f'{{ kind = "{self.names[0]}", ... }}' if self.names else "{ ... }"
            return reading.refuse(at, f"expected a table, such as {example}; got {toml(data)}")
        name = data.get("kind", self.base.family.default_kind)
        key = f"{at}.kind" if at else "kind"
        if name is None:
            return reading.refuse(key, f"expected one of {', '.join(self.names)}; it is missing")
        kind = self.base.family.kinds.get(name) if isinstance(name, str) else None
        if kind is None:
            _read_entry_points()
            kind = self.base.family.kinds.get(str(name))
        if kind is None or not (issubclass(kind, self.base) and kind.kept):
            if reading.result and isinstance(name, str):
                reading.lost.append(name)
                return absent(self.base.family, name, data)
            known = ", ".join(self.names)
            hint = nearest(str(name), self.names)
            return reading.refuse(key, f"expected one of {known}; got {toml(name)}{hint}")
        return read_call(kind, {k: v for k, v in data.items() if k != "kind"}, at, reading)

    def json(self, definitions: dict[str, Any]) -> dict[str, Any]:
        choices = []
        for name in self.names:
            key = f"{self.base.family.__name__}.{name}"
            kind = self.base.family.kinds[name]
            if key not in definitions:
                definitions[key] = {}  # kinds may hold kinds of their own family
                definitions[key] = call_json(kind, definitions, name)
                if name == self.base.family.default_kind:
                    definitions[key]["required"].remove("kind")
            choices.append({"$ref": f"#/$defs/{key}"})
            if not any(parameter.required for parameter in parameters_of(kind).values()):
                choices.append({"const": name})
        return {"anyOf": choices}


def read_call(target: Callable, table: Mapping[str, Any], at: str, reading: Reading) -> Any:
    """target(**table), of a class or a function, with every problem noted."""
    values = read_arguments(target, table, at, reading)
    if values is INVALID:
        return INVALID
    try:
        return target(**values)
    except REFUSED as error:
        return reading.refuse(*located(str(error), at, parameters_of(target)))


def located(text: str, at: str, names) -> tuple[str, str]:
    """The key that a message is about, and what it says: it may begin with one of `names`."""
    first = text.split(" ")[0]
    if first not in names:
        return at, text
    return (f"{at}.{first}" if at else first), without_name(text, first)


def read_arguments(
    target: Callable, table: Mapping[str, Any], at: str, reading: Reading, names=None
) -> Any:
    """The arguments of a class or a function that a table gives; INVALID, and noted, if wrong.

    Parameters
    ----------
    names : collection of str, optional
        The parameters that a table may give; by default all that have an annotation.
    """
    known = parameters_of(target)
    names = [name for name in known if names is None or name in names]
    before, values = len(reading.problems), {}
    for name in table:
        key = f"{at}.{name}" if at else str(name)
        if name in names:
            values[name] = known[name].form.read(table[name], key, reading)
        else:
            hint, valid = nearest(str(name), names), ", ".join(names) or "none"
            reading.refuse(key, f"unknown key{hint} (valid here: {valid})")
    for name in names:
        if known[name].required and name not in table:
            key = f"{at}.{name}" if at else name
            words = known[name].words.split(". ")[0].rstrip(".").replace("`", "")
            meaning = f" ({words})" if words else ""
            reading.refuse(key, f"this key is required{meaning} and is missing")
    return INVALID if len(reading.problems) > before else values


def call_json(
    target: Callable, definitions: dict[str, Any], kind: str | None = None, names=None
) -> dict[str, Any]:
    """The JSON schema of a table that `read_call` reads, with the key `kind` if it is named."""
    properties: dict[str, Any] = {} if kind is None else {"kind": {"const": kind}}
    required = [] if kind is None else ["kind"]
    for name, parameter in parameters_of(target).items():
        if names is None or name in names:
            properties[name] = parameter.form.json(definitions)
            if parameter.words:
                properties[name]["description"] = parameter.words
            if parameter.required:
                required.append(name)
            elif parameter.default is not None:
                properties[name]["default"] = describe(parameter.default)
    first = (inspect.getdoc(target) or "").split("\n")[0]
    return {
        "type": "object",
        "description": first,
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def absent(family: type[Kind], name: str, data: Mapping[str, Any]) -> Any:
    """A kind that a file does not hold, or that is not installed: it prints, and refuses the rest.

    Raises
    ------
    MeanfieldError
        By all that the family asks of its kinds.
    """

    def refuse(self, *_arguments, **_named):
        raise MeanfieldError(
            f"{name} is a {family.__name__} that files do not hold, or that is not installed here: "
            "import the module that defines it, or build the model again."
        )

    missing = {method: refuse for method in getattr(family, "__abstractmethods__", ())}
    body = {
        **missing,
        "ready": refuse,
        "__init__": lambda self: None,
        "__repr__": lambda self: data.get("shown", f"<{name}, not installed here>"),
        "described": property(lambda self: {k: v for k, v in data.items() if k != "kind"}),
    }
    cls = type(f"_{name}", (family,), body)
    cls.__name__ = name
    return cls()


@functools.cache
def _read_entry_points() -> None:
    """Import what other packages register in the group "meanfield.kinds", once."""
    from importlib.metadata import entry_points

    for point in entry_points(group=ENTRY_POINTS):
        point.load()
