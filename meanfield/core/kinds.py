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
import re
import types
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import (
    Any,
    ClassVar,
    Literal,
    Self,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from . import checks
from .checks import fitting
from .errors import ConfigError, MeanfieldError
from .forms import (
    ANYTHING,
    FUNCTION,
    INVALID,
    LEAVES,
    REFUSED,
    Call,
    Either,
    Form,
    Instance,
    Many,
    Named,
    Reading,
    choice,
    nearest,
    shown,
    without_name,
)
from .identity import digest, is_cached, same
from .libraries import of_library

SEVERAL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
F = TypeVar("F", bound=Callable)
ENTRY_POINTS = "meanfield.kinds"
DEEPEST = 100  # tables and lists in each other, as plain data
SHORT = 16  # entries of an array that stands among other words
SECTION = re.compile(r"^(?:Parameters|Attributes)\n-+\n((?:(?!.*\n---).*\n?)*)", re.MULTILINE)
ENTRY = re.compile(r"^(\S[^:\n]*).*\n?((?: .*\n?|\n)*)", re.MULTILINE)  # names, indented words


class Registry(dict[str, Any]):
    """The kinds of a family by their names, which say nothing of what one of them computes."""

    def identity(self) -> None:
        """What `digest` reads of it."""


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
        If another module has defined a kind of this name in the family, or if a parameter has the
        name of something else that the class inherits: ``hides`` names those that may.
    """

    family: ClassVar[type["Kind"]]
    kinds: ClassVar[dict[str, type["Kind"]]]
    leaves: ClassVar[dict[Any, Form]] = {}  # annotations that mean something else in a family
    default_kind: ClassVar[str | None] = None  # that of a table which does not name its kind
    of_functions: ClassVar[str] = ""  # which kinds take functions, where one is given by itself
    to_derive_from: ClassVar[str] = ""  # which classes, where one derives from an abstract class
    kept: ClassVar[bool] = True  # whether tables describe it; else they hold its repr
    is_absent: ClassVar[bool] = False  # whether it stands for one that is not known here
    by_hand: ClassVar[bool] = False  # whether it is an ordinary class, not a frozen dataclass
    # names that only the package and authors of kinds need, which completion leaves out
    _internal: ClassVar[str] = (
        "by_hand default_kind described family identity in_file is_absent kept kinds leaves "
        "of_functions resolve to_derive_from validate"
    )

    def __init_subclass__(
        cls, family: bool = False, hides: tuple[str, ...] = (), **options: Any
    ) -> None:
        super().__init_subclass__(**options)
        if _needs_init(cls):
            for name in _fields(cls):
                if name not in hides and (hidden := _hidden(cls, name)):
                    raise TypeError(
                        f"{cls.__name__} has a parameter {name}, which would hide {hidden}: choose "
                        f"another name, such as {name}_."
                    )
            dataclass(frozen=True, eq=False, repr=False)(cls)
            del cls.__setattr__, cls.__delattr__  # those of Kind will do
        if family:
            cls.family, cls.kinds = cls, Registry()
            if cls.default_kind != cls.__name__:
                return
        if hasattr(cls, "family") and cls.__name__[0] != "_" and not inspect.isabstract(cls):
            known = cls.kinds.get(cls.__name__, cls)
            if known.__module__ != cls.__module__:
                raise TypeError(
                    f"{known.__module__} defines a {cls.family.__name__} of the name "
                    f"{cls.__name__} already: {cls.__module__} has to choose another name."
                )
            try:
                parameters_of(cls)
            except (NameError, TypeError) as error:
                raise TypeError(f"{cls.__name__} cannot be read: {error}") from error
            cls.kinds[cls.__name__] = cls

    def __new__(cls, *_given: Any, **named: Any) -> Self:
        for name in named:
            value = vars(cls).get(name)
            if isinstance(value, bool | int | float | str) and name not in parameters_of(cls):
                hint = f"{name}: {type(value).__name__} = {value!r}"
                raise TypeError(f"{cls.__name__} has no parameter {name}: write `{hint}` in it.")
        refuse_abstract(cls)
        refuse_unknown(cls, _given, named)
        refuse_missing(cls, _given, named)
        return super().__new__(cls)

    def __reduce__(self) -> Any:
        return object.__new__, (type(self),), self.__getstate__()

    def __setattr__(self, name: str, value: Any) -> None:
        if not self.by_hand:
            cls = type(self)
            if name in parameters_of(cls):
                advice = f"; use replace({name}=...)."
            elif hasattr(self, name) or of_library(cls.__module__):
                advice = f" and has no parameter {name}{nearest(name, parameters_of(cls))}."
            else:
                advice = f"; declare `{name}: float` in the class, without __init__, and it is set."
            raise AttributeError(f"{cls.__name__} is frozen{advice}")
        object.__setattr__(self, name, value)

    def __post_init__(self) -> None:
        for name, parameter in parameters_of(type(self)).items():
            self._set(**{name: parameter.read(getattr(self, name), name, Call())})
        self.validate()

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        """What it was made of, not what it has computed: another thread may be at that."""
        held = vars(self).copy()
        return {name: value for name, value in held.items() if not is_cached(type(self), name)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._set(**state)

    def validate(self) -> None:  # noqa: B027
        """Raise ValueError or TypeError where parameters do not fit together; by default never."""

    @property
    def described(self) -> dict[str, Any]:
        """The parameters by their names."""
        return {name: getattr(self, name) for name in parameters_of(type(self))}

    def replace(self, **changes: Any) -> Self:
        """The same kind with other values of some parameters."""
        return type(self)(**{**self.described, **changes})

    def resolve(self, sizes: Any) -> Any:
        """The kind with numbers in place of all that a state or files give.

        Parameters
        ----------
        sizes : StateSizes
            What is known of the state; see `models.parameters`.

        Raises
        ------
        MeanfieldError
            If it cannot be evaluated, as a file did not hold it.
        ValueError, StorageError
            Where there are no such numbers, or they do not fit together.
        """
        if not self.kept:  # what it was made of may not be an attribute
            return self
        kinds = {name: kind for name, kind in self.described.items() if isinstance(kind, Kind)}
        found = {name: kind.resolve(sizes) for name, kind in kinds.items()}
        changed = {name: new for name, new in found.items() if new is not kinds[name]}
        return self.replace(**changed) if changed else self

    def in_file(self) -> "Kind":
        """The kind that files hold in its place: itself, unless functions stand in it."""
        return self

    def identity(self) -> Any:
        """What `digest` reads of it: the parameters, and what else tells what it computes."""
        own = not of_library(type(self).__module__)  # whose attributes may say more
        return {**self.__getstate__(), **self.described} if own else self.described

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and same(self, other)

    def __hash__(self) -> int:
        try:
            return hash(digest(self))
        except TypeError:  # for what it holds: then it equals itself only
            return id(self)

    def __dir__(self) -> list[str]:
        """Names that completion offers: without those that only the package needs."""
        classes = [vars(cls) for cls in type(self).__mro__]
        internal = {n for entries in classes for n in entries.get("_internal", "").split()}
        return [name for name in object.__dir__(self) if name not in internal]

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
    if _fields(cls):
        return True
    return next(base for base in cls.__mro__[1:] if "__init__" in base.__dict__) is object


def _fields(cls: type[Kind]) -> list[str]:
    """The parameters that a class adds by annotations."""
    hints = inspect.get_annotations(cls).items()
    return [name for name, hint in hints if "ClassVar" not in str(hint)]


def _hidden(cls: type[Kind], name: str) -> str:
    """What else a parameter of this name would stand for; empty if nothing."""
    if name in ("kind", "self"):
        return f"the word {name} of tables and methods"
    for base in cls.__mro__[1:]:
        if is_dataclass(base) and name in (field.name for field in fields(base)):
            return ""
        if name in vars(base):
            return f"{base.__name__}.{name}"
    return ""


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
    optional : bool
        Whether it may be None, which a file says by leaving the key out.
    words : str
        What the docstring says of it.
    """

    form: Form
    default: Any
    optional: bool
    words: str

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty

    @property
    def needs_function(self) -> bool:
        """Whether only Python can give it."""
        return self.required and self.form is FUNCTION

    def read(self, data: Any, at: str, reading: Reading) -> Any:
        """What a call or a file gives; None stands for nothing, and for a kind by default."""
        if data is None and self.optional:
            return None
        if data is None and isinstance(self.form, KindOf) and not self.required:
            return self.default
        return self.form.read(data, at, reading)

    def is_default(self, value: Any) -> bool:
        """Whether a value is what stands there if it is left out."""
        if self.required or self.default is None or value is None:
            return value is None and self.default is None
        kept = self.form.check("default", self.default)
        return type(kept) is type(value) and same(kept, value)


def signature_of(target: Any) -> inspect.Signature:
    """That of a function, or of the constructor of a class.

    `inspect.signature` of a class reads `Kind.__new__` instead, in Python before 3.11.4.
    """
    if not isinstance(target, type):
        return inspect.signature(target)
    constructor = inspect.signature(getattr(target, "__init__"))  # noqa: B009
    return constructor.replace(parameters=list(constructor.parameters.values())[1:])


@functools.cache
def parameters_of(target: Any) -> dict[str, Parameter]:
    """The parameters of a kind, or of a function, that have an annotation."""
    function: Any = getattr(target, "__init__") if isinstance(target, type) else target  # noqa: B009
    itself = {target.__name__: target} if isinstance(target, type) else {}
    hints = get_type_hints(function, localns=itself, include_extras=True)
    checked = isinstance(target, type) and issubclass(target, Kind) and not target.by_hand
    places = reversed(target.__mro__) if isinstance(target, type) else [target]
    words = {name: text for place in places for name, text in _words(place).items() if text}
    special = getattr(target, "leaves", {})
    given = signature_of(target).parameters
    return {
        name: Parameter(
            form_of(hints[name], special, None if checked else ANYTHING),
            given[name].default,
            types.NoneType in get_args(hints[name]),
            words.get(name, ""),
        )
        for name in given
        if name in hints
    }


def form_of(hint: Any, special: Mapping[Any, Form], otherwise: Form | None = ANYTHING) -> Form:
    """The form that an annotation means; `special` are those of a family of its own.

    Raises
    ------
    TypeError
        If it means none, and there is no form `otherwise`.
    """
    origin, inner = get_origin(hint), get_args(hint)
    for other in getattr(hint, "__metadata__", ()):
        if isinstance(other, Form):
            return other
    if origin is Literal:
        return choice({name: name for name in inner})
    of_part = functools.partial(form_of, special=special, otherwise=otherwise)
    if origin in (Union, types.UnionType):
        forms = [of_part(one) for one in inner if one is not types.NoneType]
        return forms[0] if len(forms) == 1 else Either(tuple(forms))
    if origin in (tuple, list, Sequence) and inner:
        return Many(of_part(inner[0]))
    if origin in (dict, Mapping) and inner:
        return Named(of_part(inner[1]))
    if hasattr(hint, "known"):  # a class that knows its objects by their names, such as Scheme
        return choice(hint.known)
    if isinstance(hint, type) and issubclass(hint, Kind):
        return KindOf(hint)
    form = {**LEAVES, **special}.get(origin or hint, otherwise)
    if form is ANYTHING and origin is type and isinstance(inner[0], type):
        return Instance(inner[0], itself=True)
    if form is ANYTHING and isinstance(hint, type) and hint not in (object, Any):
        return Instance(hint)
    if form is None:
        raise TypeError(
            f"{getattr(hint, '__name__', hint)!r} is no annotation of a parameter: expected float, "
            "int, bool, str, np.ndarray, Callable, a kind, or Any, whose values are not checked."
        )
    return form


def _words(place: Any) -> dict[str, str]:
    """What the section Parameters of a docstring in numpydoc's form says of each of them."""
    found: dict[str, str] = {}
    for section in SECTION.findall(inspect.cleandoc(place.__doc__ or "")):
        for names, text in ENTRY.findall(section):
            for name in names.split(","):
                found.setdefault(name.strip(" *"), " ".join(text.split()))
    return found


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
    A function is described by its name, what else JSON has no words for by its repr; in their place
    `build` gives back a function that raises MeanfieldError.
    """
    if isinstance(value, Kind):
        value = value.in_file()
        if value.is_absent:
            return describe(value.table, arrays, at)
        tree: dict[str, Any] = {"kind": type(value).__name__}
        if not value.kept:
            return {**tree, "shown": repr(value)}
        kind: Any = type(value)
        known = parameters_of(kind)
        for name, entry in value.described.items():
            if not known[name].is_default(entry):
                names = [n for n, value in known[name].form.known.items() if value is entry]
                key = f"{at}.{name}" if at else name
                tree[name] = names[0] if names else describe(entry, arrays, key)
        return tree
    if isinstance(value, np.ndarray | np.generic):
        if arrays is not None and value.size > SHORT:
            arrays[at] = np.asarray(value)
            return {"array": at}
        plain = float(value) if isinstance(value, np.longdouble) else value.tolist()
        return describe(plain, arrays, at)
    if isinstance(value, Path) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    if at.count("[") + at.count(".") > DEEPEST:
        raise ValueError(f"value is nested more than {DEEPEST} deep, at {at[:40]}...")
    if isinstance(value, list | tuple):
        return [describe(entry, arrays, f"{at}[{i}]") for i, entry in enumerate(value)]
    if isinstance(value, Mapping):
        below = f"{at}." if at else ""
        return {key: describe(entry, arrays, f"{below}{key}") for key, entry in value.items()}
    if callable(value):
        return {"function": getattr(value, "__qualname__", type(value).__qualname__)}
    if isinstance(value, str | int | float | None):
        return value
    return {"function": repr(value)}


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
    _check_family(family)
    reading = Reading() if reading is None else reading
    value = KindOf(family).read(data, at, reading)
    if reading.problems:
        raise ConfigError("\n".join(reading.problems))
    return value


def schema(family: type[Kind]) -> dict[str, Any]:
    """The JSON schema of all kinds of a family that are known now, installed packages included."""
    _check_family(family)
    _read_entry_points()
    definitions: dict[str, Any] = {}
    root = KindOf(family).json(definitions)
    return {**root, "$defs": definitions}


def _check_family(family: Any) -> None:
    fits = isinstance(family, type) and issubclass(family, Kind) and hasattr(family, "family")
    fitting("family", family, "a family or a kind, as meanfield.Drift", fits, TypeError)


@dataclass(frozen=True, eq=False, repr=False)
class KindOf(Form):
    """An object of a family, or of a class below it."""

    base: type[Kind]

    @property
    def names(self) -> list[str]:
        """The names of the kinds that fit."""
        kinds = self.base.family.kinds.items()
        return sorted(n for n, kind in kinds if issubclass(kind, self.base) and kind.kept)

    @property
    def in_files(self) -> list[str]:
        """Those of the names that a file can give: they need no function."""
        found = {name: parameters_of(self.base.family.kinds[name]).values() for name in self.names}
        return [n for n, all_of in found.items() if not any(p.needs_function for p in all_of)]

    @property
    def keys(self) -> set[str]:
        kinds = self.base.family.kinds
        return {key for name in self.in_files for key in parameters_of(kinds[name])}

    @property
    def expected(self) -> str:  # type: ignore[override]
        some = ", ".join(f"{name}(...)" for name in self.names)
        return f"one of {some}" if "," in some else some or f"a {self.base.__name__}"

    def read(self, data: Any, at: str, reading: Reading) -> Any:
        if reading.in_python:
            fits = isinstance(data, self.base)
            if fits:
                return data
            if self.base.of_functions and callable(data) and not isinstance(data, type):
                given = f"got {at} = {checks.as_given(data)}, a function"
                raise TypeError(f"{at} must be {self.expected}; {given}. {self.base.of_functions}")
            return reading.expected(at, self.expected, data, self.names)
        data = {"kind": data} if isinstance(data, str) else data
        if not isinstance(data, Mapping):
            names = self.in_files
            example = f'{{ kind = "{names[0]}", ... }}' if names else "{ ... }"
            return reading.expected(at, f"a table, such as {example}", data)
        name = data.get("kind", self.base.default_kind)
        key = f"{at}.kind" if at else "kind"
        if name is None:
            return reading.refuse(key, f"expected one of {', '.join(self.in_files)}; it is missing")
        if str(name) not in self.base.family.kinds:
            _read_entry_points()
        kind: Any = self.base.family.kinds.get(str(name))
        if kind is None or not (issubclass(kind, self.base) and kind.kept):
            if reading.result and isinstance(name, str):
                reading.lost.append(name)
                return absent(self.base.family, name, _with_arrays(data, reading.arrays))
            known = ", ".join(self.in_files)
            what = f"one of {known}, or a kind of your own (meanfield --import FILE)"
            return reading.expected(key, what, name, self.in_files)
        table = {name: value for name, value in data.items() if name != "kind"}
        values = read_arguments(kind, table, at, reading)
        try:
            return values if values is INVALID else kind(**values)
        except REFUSED as error:
            return reading.refuse(*located(str(error), at, parameters_of(kind), reading.files))

    def json(self, definitions: dict[str, Any]) -> dict[str, Any]:
        choices, default = [], self.base.default_kind
        owner = self.base if default else self.base.family
        for name in self.in_files:
            key = f"{owner.__name__}.{name}"
            kind = self.base.family.kinds[name]
            if key not in definitions:
                definitions[key] = {}  # kinds may hold kinds of their own family
                definitions[key] = call_json(kind, definitions, name)
                if name == default:
                    definitions[key]["required"].remove("kind")
            choices.append({"$ref": f"#/$defs/{key}"})
            if not any(parameter.required for parameter in parameters_of(kind).values()):
                choices.append({"const": name})
        return {"anyOf": choices}


def located(text: str, at: str, names, files: Mapping[str, Path]) -> tuple[str, str]:
    """The key that a message is about, and what it says: it may begin with one of `names`.

    What does not name the data files whose keys are below `at` is told them.
    """
    below, first = f"{at}." if at else "", text.split(" ")[0]
    named = {key: path for key, path in files.items() if key.startswith(below)}
    if named and not any(str(path) in text for path in named.values()):
        text += f" ({', '.join(f'{key} is {path}' for key, path in named.items())})"
    return (f"{below}{first}", without_name(text, first)) if first in names else (at, text)


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
            values[name] = known[name].read(table[name], key, reading)
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


def checked(function: Callable, given: Mapping[str, Any], *without: str) -> dict[str, Any]:
    """The arguments of a call in Python, each as its annotation says, `without` some as they are.

    Raises
    ------
    TypeError, ValueError
        For the first that is something else; the message begins with its name.
    """
    known = parameters_of(function)
    return {
        name: value if name in without else known[name].read(value, name, Call())
        for name, value in given.items()
    }


@functools.cache
def _names_of(target: Any) -> tuple[str, ...] | None:
    """The names that a call may give; None if any."""
    given = signature_of(target).parameters.values()
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in given):
        return None
    return tuple(one.name for one in given if one.kind is not inspect.Parameter.POSITIONAL_ONLY)


def refuse_unknown(target: Callable, given: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Raise TypeError for a name that is no parameter of a function or class, with what it is."""
    names = _names_of(target)
    unknown = [] if names is None else [name for name in named if name not in names]
    if names is None or not unknown:
        return
    name, title = unknown[0], target.__name__
    names = tuple(other for other in names if other not in ("self", "cls"))
    kinds = (type(one) if isinstance(one, Kind) else one for one in (*given, *named.values()))
    kinds = (one for one in kinds if isinstance(one, type) and issubclass(one, Kind))
    owner = next((kind.__name__ for kind in kinds if name in parameters_of(kind)), "")
    if owner and "vary" in names:
        hint = f'; to vary that of {owner}, write vary={{"{name}": (start, end)}}.'
    else:
        hint = f"; it is one of {owner}." if owner else nearest(name, names) or "."
    listed = f" It takes {', '.join(names)}." if names else " It takes none."
    raise TypeError(f"{title} has no parameter {name}{hint}{listed}")


@functools.cache
def _places_of(target: Any) -> tuple[list[str], list[str], bool]:
    """Names that may be given by their place, those that have no default; whether more may be."""
    given = signature_of(target).parameters.values()
    by_name = (*SEVERAL, inspect.Parameter.KEYWORD_ONLY)
    places = [one.name for one in given if one.kind not in by_name]
    required = [one.name for one in given if one.default is one.empty and one.kind not in SEVERAL]
    return places, required, any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in given)


def refuse_missing(target: Callable, given: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Raise TypeError for a call with too few arguments, or too many without a name."""
    places, required, more = _places_of(target)
    missing = [name for name in required if name not in (*places[: len(given)], *named)]
    own = [name for name in signature_of(target).parameters if name not in ("self", "cls")]
    title = target.__qualname__
    if missing:
        listed = "" if own == missing else f" It takes {', '.join(own)}."
        raise TypeError(f"{title} needs {' and '.join(missing)}.{listed}")
    if len(given) > len(places) and not more:
        by_place = [name for name in places if name in own]  # without self
        got = len(given) - len(places) + len(by_place)
        raise TypeError(
            f"{title} takes only {', '.join(by_place) or 'nothing'} without a name; got {got} "
            f"values. It takes {', '.join(own) or 'nothing'}."
        )


def refuse_abstract(cls: Any) -> None:
    """Raise TypeError for a class that lacks methods, with those, or with better ones to derive."""
    if not inspect.isabstract(cls):
        return
    name, lacking = cls.__name__, " and ".join(sorted(cls.__abstractmethods__))
    family = getattr(cls, "family", None)
    if family and family.to_derive_from and cls.__abstractmethods__ & family.__abstractmethods__:
        raise TypeError(f"{name} is abstract, as it lacks {lacking}. {family.to_derive_from}")
    known = f" Those that are there: {', '.join(KindOf(cls).names)}." if family else ""
    raise TypeError(f"{name} is abstract: derive a class from it that defines {lacking}.{known}")


def with_hints(function: F) -> F:
    """A function that says which parameter may be meant where a name is none of its own."""

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        refuse_unknown(function, given, named)
        refuse_missing(function, given, named)
        with np.errstate(under="ignore"):  # as by default: a small number that is 0 is no error
            return function(*given, **named)

    return cast(F, call)


def checked_call(*without: str) -> Callable[[F], F]:
    """A function whose arguments are `checked` when it is called, `without` some of these names."""

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        several = [n for n, one in signature.parameters.items() if one.kind in SEVERAL]

        @functools.wraps(function)
        def call(*given: Any, **named: Any) -> Any:
            refuse_unknown(function, given, named)
            refuse_missing(function, given, named)
            bound = signature.bind(*given, **named)
            bound.arguments |= checked(function, bound.arguments, "self", *several, *without)
            with np.errstate(under="ignore"):  # as by default: a small number that is 0 is no error
                return function(*bound.args, **bound.kwargs)

        return cast(F, call)

    return decorate


def call_json(
    target: Callable, definitions: dict[str, Any], kind: str | None = None, names=None
) -> dict[str, Any]:
    """The JSON schema of the table of a class or a function, with the key `kind` if it is named."""
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


class NotKnown(MeanfieldError, AttributeError):
    """A kind that is absent is asked for more than its file holds."""


def absent(family: type[Kind], name: str, table: Mapping[str, Any]) -> Any:
    """A kind that a file does not hold, or that is not known here: it prints its table.

    Raises
    ------
    MeanfieldError
        By all that the family asks of its kinds.
    """
    kind = object.__new__(_absent_class(family, name))
    kind.__dict__["table"] = dict(table)
    return kind


@functools.cache
def _absent_class(family: type[Kind], name: str) -> type[Any]:
    """The class of the kinds of one name that are absent."""

    def refuse(self, *_arguments, **_named):
        if "shown" in self.table:
            raise NotKnown(f"{name} is a {family.__name__} that files do not hold: build it again.")
        raise NotKnown(f"{name} is not known here: import the module that defines it.")

    def entry_of(self, key):
        if key[0] == "_" or key == "table":  # which pickle asks for before there is one
            raise AttributeError(key)
        return self.table[key] if key in self.table else refuse(self)

    asked = [key for key, entry in vars(family).items() if inspect.isfunction(entry)]
    asked = [key for key in (*asked, "resolve") if key[0] != "_" and key != "validate"]
    body = {
        **dict.fromkeys((*getattr(family, "__abstractmethods__", ()), *asked), refuse),
        "is_absent": True,
        "described": property(lambda self: {k: v for k, v in self.table.items() if k != "kind"}),
        "replace": lambda self, **changes: absent(family, name, {**self.table, **changes}),
        "__getattr__": entry_of,
        "__repr__": lambda self: self.table.get("shown", f"<{name}, not known here>"),
        "__reduce__": lambda self: (absent, (family, name, self.table)),
    }
    cls = type(f"_{name}", (family,), body)
    cls.__name__ = name
    return cls


def _with_arrays(data: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Plain data of a result file with its long arrays where it names them."""
    if isinstance(data, Mapping):
        if set(data) == {"array"} and data["array"] in arrays:
            return arrays[data["array"]]
        return {key: _with_arrays(entry, arrays) for key, entry in data.items()}
    return [_with_arrays(entry, arrays) for entry in data] if isinstance(data, list) else data


@functools.cache
def _read_entry_points() -> None:
    """Import what other packages register in the group "meanfield.kinds", once."""
    from importlib.metadata import entry_points

    for point in entry_points(group=ENTRY_POINTS):
        point.load()


def ancestor(kind: type, known: Any) -> Any:
    """The class itself, or the first of those it derives from, that is known; None if none is."""
    return next((each for each in kind.__mro__ if each in known), None)
