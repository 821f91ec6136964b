"""Digests of Python values: values with equal digests lead to the same computation.

A digest depends on every bit of an array; on the code, constants, defaults and closure of a
function (not on its name), the global names that it reads and the modules that it imports; on the
attributes of a class; and on the contents of an object. Code of this package and of other libraries
is identified by its name, see `libraries`. Data that a function reads from files or from the
network do not count.

Only values that can be read completely have a digest, see `contents`. Others raise an error that
names them: objects of an extension module with memory of its own, and code that finds other code
by a computed name.
"""

import builtins
import dis
import functools
import hashlib
import importlib
import inspect
import sys
import types
from abc import ABC
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from importlib.util import resolve_name
from typing import ClassVar

import numpy as np

from .annotations import AnyObject
from .contents import (
    ATOMS,
    Bits,
    Pair,
    Part,
    Unordered,
    Unreadable,
    contents_of,
    full_name,
    is_listed,
    unordered,
    words,
)
from .libraries import PACKAGE, file_of_extension, name_in_library, of_library

NOT_READ = "has no contents that can be told from others"
COMMON = (tuple, dict, list, np.ndarray)
EMPTY_CELL = ("empty cell",)
PICKLING = ("__reduce_ex__", "__reduce__", "__getstate__", "__getnewargs__", "__getnewargs_ex__")
Import = tuple[int, str, tuple[str, ...]]  # level, name of the module, imported names
IGNORED = ("CACHE", "EXTENDED_ARG")  # instructions that only belong to others
GLOBALS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}  # they read globals
FINDERS = (eval, exec, globals, __import__, importlib.import_module)  # by computed names
FINDING = {"import_module", "exec_module", "load_module", "run_module", "run_path"}  # their names
WRITE_IMPORTS = "expected names, and import statements"


def digest(value: AnyObject) -> str:
    """SHA-256, in hexadecimal, of a value and all its contents.

    Parameters
    ----------
    value : object
        Plain data, arrays, kinds, functions, and objects made of these. Classes of this package,
        and those derived from them, may say what counts by a method ``identity()``.

    Raises
    ------
    TypeError
        For values that cannot be read completely, such as an open file, a lock, or a compiled
        function that no library defines. The message describes the value and the path to it.
    """
    return hashlib.sha256(_Reader().read(value)).hexdigest()


def digests(value: AnyObject, name: str = "", reader: "_Reader | None" = None) -> dict[str, str]:
    """Digests by dotted name: of a value, entries of dictionaries, and parameters of kinds."""
    reader = reader or _Reader()
    by_name = {name: hashlib.sha256(reader.read(value)).hexdigest()}
    parts = value if isinstance(value, dict) else getattr(value, "described", None)
    is_in_package = type(value).__module__.split(".")[0] == PACKAGE and not isinstance(value, type)
    if parts is None and is_in_package and hasattr(value, "identity"):
        parts = value.identity()
    for key, part in parts.items() if isinstance(parts, dict) else ():
        by_name |= digests(part, f"{name}.{key}".lstrip("."), reader)
    return by_name


def differing(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """The innermost names at which two results of `digests` differ."""
    changes = [name for name in {**after, **before} if before.get(name) != after.get(name)]
    return [n for n in changes if n and not any(m.startswith(f"{n}.") for m in changes)]


def same(first: AnyObject, other: AnyObject) -> bool:
    """Whether two values are one object, or have equal digests."""
    if first is other:
        return True
    try:
        return digest(first) == digest(other)
    except TypeError:
        return False


class _Reader:
    """Digests of nested values, computed from the digests of their parts.

    A reference to a value that is still being read, such as a function that calls itself, is
    encoded by the number of nesting levels in between, so that a digest does not depend on the
    value at which reading began. Digests without references to enclosing values are cached.
    """

    def __init__(self) -> None:
        """Begin outside any value."""
        self._levels: dict[int, int] = {}  # by id of the values being read
        self._path: list[str] = []
        self._outermost = 0  # the smallest level to which a part refers
        self._digests: dict[int, tuple[AnyObject, bytes]] = {}

    def read(self, value: AnyObject, label: str = "") -> bytes:
        """The digest of a value; `label` is the path to it from its parent, for messages."""
        cls, key, level = type(value), id(value), len(self._levels)
        if atom := ATOMS.get(cls):
            return cls.__name__.encode() + b":" + atom(value)
        if cls is Bits:
            return value
        if key in self._digests:
            return self._digests[key][1]
        if key in self._levels:
            self._outermost = min(self._outermost, self._levels[key])
            return b"again:%d" % (level - self._levels[key])
        outermost, self._outermost = self._outermost, level
        self._levels[key] = level
        self._path.append(label)
        result = b"#" + self._digest(value)
        self._path.pop()
        del self._levels[key]
        if self._outermost >= level and cls not in (Unordered, Pair):
            self._digests[key] = value, result
        self._outermost = min(outermost, self._outermost)
        return result

    def _digest(self, value: AnyObject) -> bytes:
        """SHA-256 of the type and the parts of a value; TypeError if a part cannot be read."""
        try:
            digests = [self.read(part, label) for label, part in _parts(value)]
        except Unreadable as error:
            path = "".join(self._path).lstrip(".")
            title = _title(value)
            reason = str(error) or NOT_READ
            raise TypeError(f"{f'{path}, {title},' if path else title} {reason}") from None
        except RecursionError:
            raise TypeError(f"{_title(value)} {NOT_READ}: it is nested too deeply") from None
        if isinstance(value, Unordered):
            digests.sort()
        combined = hashlib.sha256(full_name(type(value)).encode())
        for part in digests:
            combined.update(b"%d:" % len(part))
            combined.update(part)
        return combined.digest()


def _title(value: AnyObject) -> str:
    """A description of a value for messages, made without calling its methods."""
    if isinstance(value, types.FunctionType | type):
        return full_name(value)
    if isinstance(value, types.BuiltinFunctionType):
        return f"the built-in {value.__qualname__}"
    name = full_name(type(value)).removeprefix("builtins.")
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _parts(value: AnyObject) -> Iterable[Part]:
    """The parts of which a value consists."""
    cls = type(value)
    if cls is Unordered:
        return (("", part) for part in value)
    if cls is Pair:
        key, entry = value
        return ("", key), (f".{key}" if isinstance(key, str) else f"[{_title(key)}]", entry)
    if cls in COMMON:
        return contents_of(value)
    if cls is types.CodeType:
        return _code(value)
    if any(value is function for function in FINDERS):
        raise Unreadable(f"finds what no code names; {WRITE_IMPORTS}")
    if library := name_in_library(value):
        return words("library", *library)
    if extension := file_of_extension(value):
        name, file = extension
        return *words("extension", name), ("", Bits(hashlib.sha256(file.read_bytes()).digest()))
    if isinstance(value, types.ModuleType):
        entries = {n: entry for n, entry in vars(value).items() if n not in OF_MODULES}
        return *words("module", value.__name__), ("", unordered(entries))
    if isinstance(value, type):
        return _class(value)
    if cls is types.FunctionType:
        return _function(value)
    if cls is types.BuiltinFunctionType:
        if value.__self__ is None or isinstance(value.__self__, types.ModuleType):
            raise Unreadable  # a function of an extension module
        return *words("method", value.__name__), ("", value.__self__)
    attributes = (vars(c) for c in cls.__mro__ if c.__module__.split(".")[0] == PACKAGE)
    if any(callable(entries.get("identity")) for entries in attributes):
        return ("", cls), ("", value.identity())
    return _object(value)


# Objects ---------------------------------------------------------------------------------------


def _object(value: AnyObject) -> Iterator[Part]:
    """The parts of an object: its class, contents, and attributes without cached properties.

    An object of a library that defines its pickling in Python has the parts of its pickle.
    """
    cls = type(value)
    if not is_listed(cls) and of_library(cls.__module__):
        methods = (getattr(cls, name, None) for name in PICKLING)
        if any(isinstance(method, types.FunctionType) for method in methods):
            yield from _pickle_parts(value)
            return
    yield "", cls
    yield from contents_of(value)
    if not is_listed(cls) and hasattr(value, "__dict__"):
        entries = vars(value).copy()  # a copy: another thread may add cached properties
        cached = {n for n in entries if is_cached(cls, n) and _is_computed(value, n)}
        yield "", unordered({n: entry for n, entry in entries.items() if n not in cached})


def _pickle_parts(value: AnyObject) -> Iterator[Part]:
    """The parts of ``value.__reduce_ex__(4)``; Unreadable if the call fails."""
    try:
        reduced = value.__reduce_ex__(4)
    except Exception:
        raise Unreadable from None
    if isinstance(reduced, str):
        if getattr(sys.modules.get(type(value).__module__), reduced, None) is not value:
            raise Unreadable
        reduced = type(value).__module__, reduced
    yield from words("pickled")
    yield from (("", list(part) if isinstance(part, Iterator) else part) for part in reduced)


def is_cached(cls: type, name: str) -> bool:
    """Whether an attribute of this name is a cached property of the class."""
    return isinstance(inspect.getattr_static(cls, name, None), functools.cached_property)


def _is_computed(value: AnyObject, name: str) -> bool:
    """Whether the stored value of a cached property is what the property computes.

    The stored value may have been assigned instead. Properties of libraries are not checked.
    """
    function = inspect.getattr_static(type(value), name).func
    if _is_of_library(function):
        return True
    try:
        return digest(function(value)) == digest(vars(value)[name])
    except Exception as error:
        raise Unreadable(f"keeps what its property {name} computes, but {error}") from error


# Functions -------------------------------------------------------------------------------------


def _function(function: types.FunctionType) -> Iterator[Part]:
    """The parts of a function: code, globals, imports, closure, defaults and attributes."""
    code = function.__code__
    yield "", code
    if not _is_of_library(function):
        chains, imports = _reads(code)
        for chain in sorted(chains):
            yield from _global(chain, function.__globals__)
        package = function.__globals__.get("__package__") or ""
        for level, name, names in sorted(imports):
            yield from _imported("." * level + name, names, package)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f".{name}", cell.cell_contents
        except ValueError:  # not set yet
            yield f".{name}", EMPTY_CELL
    yield "", (function.__defaults__, function.__kwdefaults__)
    yield "", unordered(vars(function))


def _is_of_library(function: AnyObject) -> bool:
    """Whether a library defines a function, by the module of its globals.

    Its ``__module__`` is not used, as a wrapper has that of the wrapped function.
    """
    return of_library(getattr(function, "__globals__", {}).get("__name__"))


def _code(code: types.CodeType) -> Iterator[Part]:
    """The parts of a code object: instructions, names and constants, nested functions included."""
    yield "", (code.co_code, code.co_exceptiontable, code.co_flags)
    yield "", (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
    yield "", (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    yield from (("", constant) for constant in code.co_consts)


def _with_inner(code: types.CodeType) -> list[types.CodeType]:
    """A code object, and those of the functions and classes nested in it."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return [code, *(descendant for code_object in inner for descendant in _with_inner(code_object))]


@functools.lru_cache(maxsize=1000)
def _reads(code: types.CodeType) -> tuple[frozenset[tuple[str, ...]], frozenset[Import]]:
    """Chains (global name, attribute, attribute, ...) and imports that a code object reads."""
    chains: set[tuple[str, ...]] = set()
    imports: set[Import] = set()
    for part in _with_inner(code):
        chain: list[str] = []
        instructions = [op for op in dis.get_instructions(part) if op.opname not in IGNORED]
        for i, instruction in enumerate(instructions):
            name = instruction.argval
            if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                if name in FINDING:
                    raise Unreadable(f"imports by {name}; {WRITE_IMPORTS}")
                if chain:
                    chain.append(name)
                continue
            if chain:
                chains.add(tuple(chain))
            chain = [name] if instruction.opname in GLOBALS else []
            if instruction.opname == "IMPORT_NAME":
                level, names = (load.argval for load in instructions[i - 2 : i])
                imports.add((level, name, tuple(names or ())))
    return frozenset(chains), frozenset(imports)


def _global(chain: tuple[str, ...], names: Mapping[str, AnyObject]) -> Iterator[Part]:
    """The name and the object of a chain of `_reads`, looked up in `names`.

    From a module of the user the chain is followed to the object that the code reads.
    """
    name, *attributes = chain
    if name not in names and getattr(builtins, name, None) not in FINDERS:
        return
    value = names[name] if name in names else getattr(builtins, name)
    while attributes and _is_module_of_user(value) and attributes[0] in vars(value):
        name = f"{name}.{attributes[0]}"
        value = vars(value)[attributes.pop(0)]
    yield from words(name)
    yield f".{name}", value


def _imported(name: str, names: tuple[str, ...], package: str = "") -> Iterator[Part]:
    """The parts of an import: the module, or the objects `names` from it; none for libraries."""
    yield from words("import", name)
    if finders := FINDING.intersection(names):
        raise Unreadable(f"imports by {', '.join(finders)}; {WRITE_IMPORTS}")
    try:
        name = resolve_name(name, package)
        if of_library(name):
            return
        module = importlib.import_module(name)
    except ImportError:
        yield from words("missing")
        return
    except Exception as error:
        raise Unreadable(f"imports {name}, which raises {error!r}") from error
    for attribute in names:
        if hasattr(module, attribute):
            yield f".{attribute}", getattr(module, attribute)
        else:
            yield from _imported(f"{name}.{attribute}", ())
    if not names:
        yield f".{name}", (sys.modules[name.split(".")[0]], module)


# Classes and modules ---------------------------------------------------------------------------


@dataclass
class _Plain(ABC):
    """A class that defines nothing."""

    nothing: ClassVar[None]


MADE = {  # attributes that Python sets
    *vars(_Plain),
    *vars(Enum("_", [])),
    "__slots__",
    "__orig_bases__",
    "__parameters__",
    "__type_params__",
    "__classdictcell__",
}
ANNOTATIONS = {"__annotate__", "__annotate_func__"}  # functions of Python 3.14 that compute them
OF_MODULES = {*vars(types.ModuleType("_")), "__builtins__", "__cached__", "__file__", "__path__"}


def _class(cls: type) -> Iterator[Part]:
    """The parts of a user's class: name, metaclass, members of an Enum, bases and attributes."""
    yield from words("class", cls.__module__, cls.__qualname__)
    if type(cls) is not type:
        yield "", type(cls)
    if issubclass(cls, Enum):
        yield ("", unordered({name: member._value_ for name, member in cls.__members__.items()}))
    for base in cls.__mro__[1:-1]:
        yield "", base
    entries = {name: e for name, e in vars(cls).items() if name not in ANNOTATIONS}
    # Python sets attributes, but for the generated methods of a dataclass.
    attributes = {n: e for n, e in entries.items() if n not in MADE or inspect.isfunction(e)}
    yield "", unordered(attributes)


def _is_module_of_user(value: AnyObject) -> bool:
    """Whether a value is a module of the user, not of a library."""
    return isinstance(value, types.ModuleType) and not of_library(value.__name__)
