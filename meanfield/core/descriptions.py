"""Kinds as plain data: tables of configuration files, entries of result files, JSON schemas."""

import functools
import inspect
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from . import checks
from .annotations import AnyObject, Function, Json, JsonTable, UserValue
from .checks import require
from .errors import ConfigError, MeanfieldError
from .forms import (
    GIVE_MODEL,
    INVALID,
    REFUSED,
    Form,
    Plain,
    Reading,
    Schema,
    nearest,
    toml,
    without_name,
)
from .kinds import Kind
from .parameters import parameters_of

ENTRY_POINTS = "meanfield.kinds"
DEEPEST = 100  # depth of nested tables and lists
SHORT = 16  # entries of an array; longer ones are stored separately


def describe(
    value: AnyObject, arrays: dict[str, np.ndarray] | None = None, where: str = ""
) -> Json:
    """A value as plain data that JSON can write; `build` restores it bit for bit.

    Parameters
    ----------
    value : object
        A kind, or a value that a parameter of a kind may have.
    arrays : dict, optional
        Filled with the arrays of more than 16 entries, by dotted key; the plain data refer to them
        by these keys. Without it they are written out.
    where : str
        The dotted key of the value.

    Notes
    -----
    A function is described by its name, and another value that JSON cannot write by its repr. From
    a result, `build` returns for both a function that raises MeanfieldError.
    """
    if isinstance(value, Kind):
        value = value.stored_kind()
        if value.is_absent:
            return describe(value.table, arrays, where)
        tree: JsonTable = {"kind": type(value).__name__}
        if not value.has_table:
            return {**tree, "shown": repr(value)}
        kind: AnyObject = type(value)
        parameters = parameters_of(kind)
        for name, entry in value.described.items():
            if not parameters[name].is_default(entry):
                names = [n for n, value in parameters[name].form.by_name.items() if value is entry]
                key = f"{where}.{name}" if where else name
                tree[name] = names[0] if names else describe(entry, arrays, key)
        return tree
    if isinstance(value, np.ndarray | np.generic):
        if arrays is not None and value.size > SHORT:
            arrays[where] = np.asarray(value)
            return {"array": where}
        number = float(value) if isinstance(value, np.longdouble) else value.tolist()
        return describe(number, arrays, where)
    if isinstance(value, Path) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    if where.count("[") + where.count(".") > DEEPEST:
        raise ValueError(f"value is nested more than {DEEPEST} deep, at {where[:40]}...")
    if isinstance(value, list | tuple):
        return [describe(entry, arrays, f"{where}[{i}]") for i, entry in enumerate(value)]
    if isinstance(value, Mapping):
        prefix = f"{where}." if where else ""
        return {key: describe(entry, arrays, f"{prefix}{key}") for key, entry in value.items()}
    if callable(value):
        return {"function": getattr(value, "__qualname__", type(value).__qualname__)}
    if isinstance(value, str | int | float | None):
        return value
    return {"function": repr(value)}


def check_described(
    value: AnyObject, described: Json, arrays: Mapping[str, np.ndarray], where: str
) -> None:
    """Raise ValueError unless `value` agrees with a description; functions are not compared.

    Parameters
    ----------
    value : object
        A kind or a function.
    described : dict
        What `describe` returned for a value.
    arrays : mapping of str to ndarray
        Arrays to which `described` refers. Numbers of arrays may differ by 1e-12, relative to the
        largest, as series that were computed on another machine.
    where : str
        Dotted key of the value, for messages.
    """
    long: dict[str, np.ndarray] = {}
    here = with_arrays(describe(value, long), long)
    for key, given, wanted in _differences(here, with_arrays(described, arrays), where):
        raise ValueError(
            f"{key} must be {_in_words(wanted)}, as in the file; got {_in_words(given)}."
        )


def _differences(one: Json, other: Json, where: str) -> Iterator[tuple[str, Json, Json]]:
    """Dotted keys at which plain data differ, with both values; functions are equal."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        functions = ["function" in data for data in (one, other)]
        if any(functions) or one.get("kind") != other.get("kind"):
            yield from [] if all(functions) else [(where, one, other)]
            return
        for key in dict.fromkeys([*one, *other]):
            if key != "shown":  # the repr of a kind without a table
                yield from _differences(one.get(key), other.get(key), f"{where}.{key}")
    elif isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        first, second = np.asarray(one), np.asarray(other)
        if first.shape != second.shape:
            yield where, one, other
            return
        size = np.abs(second).max(initial=0.0)
        alike = np.isclose(first, second, rtol=0, atol=1e-12 * size, equal_nan=True)
        for index in np.argwhere(~alike)[:1].tolist():
            key = ", ".join(map(str, index))
            yield f"{where}[{key}]", first[*index].item(), second[*index].item()
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for i, (first, second) in enumerate(zip(one, other, strict=True)):
            yield from _differences(first, second, f"{where}[{i}]")
    elif isinstance(one, float) and isinstance(other, float):
        if not math.isclose(one, other, rel_tol=1e-12, abs_tol=0.0):
            yield where, one, other
    elif one != other:
        yield where, one, other


def _in_words(data: Json) -> str:
    """Plain data of a description, for messages."""
    if isinstance(data, Mapping):
        return "a function" if "function" in data else f"{data.get('kind', 'a table')}(...)"
    if isinstance(data, np.ndarray):
        return f"an array of shape {data.shape}"
    return "left out" if data is None else toml(data)


def build(
    family: type[Kind], data: Plain, reading: Reading | None = None, where: str = ""
) -> UserValue:
    """The kind that plain data describe.

    Parameters
    ----------
    family : class
        A family, such as Drift.
    data : dict or str
        What `describe` returned, or a table of a file.
    reading : Reading, optional
        Context of the data: folder, long arrays, problems.
    where : str
        Dotted key of the data.

    Raises
    ------
    ConfigError
        One line for each problem: the dotted key, the expected value, the given value, and the
        nearest valid name.
    """
    form, reading = _form_of(family), Reading() if reading is None else reading
    value = form.read(data, where, reading)
    if reading.problems:
        raise ConfigError("\n".join(reading.problems))
    return value


def schema(family: type[Kind]) -> Schema:
    """The JSON schema of all registered kinds of a family, installed packages included."""
    form, definitions = _form_of(family), dict[str, Any]()
    _read_entry_points()
    return {**form.json(definitions), "$defs": definitions}


def _form_of(family: AnyObject) -> "KindOf":
    """The form of the kinds of a family; TypeError for other classes."""
    fits = isinstance(family, type) and issubclass(family, Kind) and hasattr(family, "family")
    expected = "a family or a kind, as meanfield.Drift"
    return KindOf(require("family", family, expected, fits, TypeError))


@dataclass(frozen=True, eq=False, repr=False)
class KindOf(Form):
    """Form of the kinds that are objects of `base`, a family or a class derived from it."""

    base: type[Kind]
    none_is_default = True

    @property
    def names(self) -> list[str]:
        """The names of the kinds that fit."""
        kinds = self.base.family.kinds.items()
        return sorted(n for n, kind in kinds if issubclass(kind, self.base) and kind.has_table)

    @property
    def in_files(self) -> list[str]:
        """The names of the kinds that files can describe: none of their functions is required."""
        kinds = self.base.family.kinds
        parameters = {name: parameters_of(kinds[name]).values() for name in self.names}
        return [name for name, ps in parameters.items() if not any(p.needs_function for p in ps)]

    @property
    def keys(self) -> set[str]:
        kinds = self.base.family.kinds
        return {key for name in self.in_files for key in parameters_of(kinds[name])}

    @property
    def expected(self) -> str:  # type: ignore[override]
        calls = ", ".join(f"{name}(...)" for name in self.names)
        return f"one of {calls}" if "," in calls else calls or f"a {self.base.__name__}"

    def read(self, data: Plain, where: str, reading: Reading) -> UserValue:
        """A kind of the family from an object, a name, or a table {kind, parameters}."""
        if reading.in_python:
            fits = isinstance(data, self.base)
            if fits:
                return data
            if self.base.function_advice and callable(data) and not isinstance(data, type):
                value_text = f"got {where} = {checks.as_given(data)}, a function"
                raise TypeError(
                    f"{where} must be {self.expected}; {value_text}. {self.base.function_advice}"
                )
            return reading.expected(where, self.expected, data, self.names)
        data = {"kind": data} if isinstance(data, str) else data
        if not isinstance(data, Mapping):
            names = self.in_files
            example = f'{{ kind = "{names[0]}", ... }}' if names else "{ ... }"
            return reading.expected(where, f"a table, such as {example}", data)
        name = data.get("kind", self.base.default_kind)
        key = f"{where}.kind" if where else "kind"
        if name is None:
            return reading.refuse(key, f"expected one of {', '.join(self.in_files)}; it is missing")
        if str(name) not in self.base.family.kinds:
            _read_entry_points()
        kind: AnyObject = self.base.family.kinds.get(str(name))
        if kind is None or not (issubclass(kind, self.base) and kind.has_table):
            if reading.result and isinstance(name, str):
                reading.lost.append(name)
                return absent(self.base.family, name, with_arrays(data, reading.arrays))
            kind_names = ", ".join(self.in_files)
            expected = f"one of {kind_names}, or a kind of your own (meanfield --import FILE)"
            return reading.expected(key, expected, name, self.in_files)
        table = {name: value for name, value in data.items() if name != "kind"}
        values = read_arguments(kind, table, where, reading)
        try:
            return values if values is INVALID else kind(**values)
        except REFUSED as error:
            return reading.refuse(*located(str(error), where, parameters_of(kind), reading.files))

    def json(self, definitions: Schema) -> Schema:
        """JSON schema: any kind of the family, each defined once in `definitions`."""
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


def located(
    text: str, where: str, names: Iterable[str], files: Mapping[str, Path]
) -> tuple[str, str]:
    """The dotted key and the text of a problem, from the message `text` of an error.

    If the message begins with one of the parameters `names`, the key is that of the parameter, and
    else `where`. A message without the path of any data file gets those of the keys below `where`.
    """
    prefix, word = f"{where}." if where else "", text.split(" ")[0]
    paths = {key: path for key, path in files.items() if key.startswith(prefix)}
    if paths and not any(str(path) in text for path in paths.values()):
        text += f" ({', '.join(f'{key} is {path}' for key, path in paths.items())})"
    return (f"{prefix}{word}", without_name(text, word)) if word in names else (where, text)


def read_arguments(
    target: Function,
    table: Mapping[str, Json],
    where: str,
    reading: Reading,
    names: Collection[str] | None = None,
) -> UserValue:
    """The arguments of `target` from a table, by name; INVALID, with problems noted, if wrong.

    Parameters
    ----------
    names : collection of str, optional
        The parameters that a table may give; by default all that have an annotation.
    """
    parameters = parameters_of(target)
    names = [name for name in parameters if names is None or name in names]
    problem_count, values = len(reading.problems), {}
    for name in table:
        key = f"{where}.{name}" if where else str(name)
        if name in names:
            values[name] = parameters[name].read(table[name], key, reading)
        else:
            hint, valid = nearest(str(name), names), ", ".join(names) or "none"
            reading.refuse(key, f"unknown key{hint} (valid here: {valid})")
    for name in names:
        if parameters[name].required and name not in table:
            key = f"{where}.{name}" if where else name
            words = parameters[name].words.split(". ")[0].rstrip(".").replace("`", "")
            meaning = f" ({words})" if words else ""
            reading.refuse(key, f"this key is required{meaning} and is missing")
    return INVALID if len(reading.problems) > problem_count else values


def call_json(
    target: Function,
    definitions: Schema,
    kind: str | None = None,
    names: Collection[str] | None = None,
) -> Schema:
    """The JSON schema of the table of a class or function; the key `kind` is required if given."""
    properties: JsonTable = {} if kind is None else {"kind": {"const": kind}}
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
    """Access to an absent kind beyond the contents of its table."""


def absent(family: type[Kind], name: str, table: Mapping[str, Json]) -> AnyObject:
    """A placeholder, with the table of the file, for a kind that it lacks or no module defines.

    Raises
    ------
    MeanfieldError
        From all methods that the family defines or requires.
    """
    kind = object.__new__(_absent_class(family, name))
    kind.__dict__["table"] = dict(table)
    return kind


@functools.cache
def _absent_class(family: type[Kind], name: str) -> type[AnyObject]:
    """The class of the placeholders for kinds of this name."""

    def refuse(self: AnyObject, *_arguments: object, **_keywords: object) -> NoReturn:
        if "shown" in self.table:
            raise NotKnown(f"{name} is a {family.__name__} that files do not hold: {GIVE_MODEL}")
        raise NotKnown(f"{name} is not known here: import the module that defines it.")

    def entry_of(self: AnyObject, key: str) -> AnyObject:
        if key[0] == "_" or key == "table":  # pickle reads them before `table` is set
            raise AttributeError(key)
        return self.table[key] if key in self.table else refuse(self)

    methods = [key for key, entry in vars(family).items() if inspect.isfunction(entry)]
    methods = [key for key in (*methods, "resolve") if key[0] != "_" and key != "validate"]
    body = {
        **dict.fromkeys((*getattr(family, "__abstractmethods__", ()), *methods), refuse),
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


def with_arrays(data: Plain, arrays: Mapping[str, np.ndarray]) -> Json:
    """Plain data of a result file, with references replaced by its long arrays."""
    if isinstance(data, Mapping):
        if set(data) == {"array"} and data["array"] in arrays:
            return arrays[data["array"]]
        return {key: with_arrays(entry, arrays) for key, entry in data.items()}
    return [with_arrays(entry, arrays) for entry in data] if isinstance(data, list) else data


@functools.cache
def _read_entry_points() -> None:
    """Import, once, the kinds that other packages register as entry points "meanfield.kinds"."""
    from importlib.metadata import entry_points

    for point in entry_points(group=ENTRY_POINTS):
        point.load()
