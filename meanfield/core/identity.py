"""Digests of what is computed with: equal digests mean the same computation.

Names are not identity. Arrays count with every bit, functions with their code, constants, defaults,
closures and the global names that they read, classes with their attributes, objects with what they
hold. What belongs to this package or another library counts by its name: results record versions.
"""

import builtins
import functools
import hashlib
import inspect
import re
import sys
import types
from abc import ABC
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePath
from typing import Any, ClassVar

import numpy as np

PLAIN = (type(None), bool, int, float, complex, str, bytes, PurePath, type(...), range, slice)
DESCRIPTORS = (
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    type(inspect.FrameInfo.filename),  # of a named tuple
)
WRITTEN = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that is not built in
EMPTY_CELL = ("empty cell",)


def digest(value: Any) -> str:
    """SHA-256, in hexadecimal, of a value with all that it holds.

    Parameters
    ----------
    value : object
        Plain data, arrays, kinds, functions, and objects made of these. An object may say itself
        what counts, by a method ``identity()``.

    Raises
    ------
    TypeError
        For what has no contents that can be read, such as a compiled function of a library whose
        name is unknown, an open file or a lock.
    """
    reader = _Reader()
    reader.read(value)
    return reader.hash.hexdigest()


class _Reader:
    """Feeds a hash; what is being read already, as a function that calls itself, is named only."""

    def __init__(self):
        self.hash = hashlib.sha256()
        self._open: list[Any] = []

    def read(self, value: Any) -> None:
        if isinstance(value, PLAIN):
            self._write(type(value).__name__, repr(value))
        elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
            self._write("array", f"{value.shape}{value.dtype.str}")
            self.hash.update(np.ascontiguousarray(value).tobytes())
        elif isinstance(value, np.generic):
            self._write(value.dtype.str, repr(value.item()))
        elif any(value is other for other in self._open):
            self._write("again", str(len(self._open)))
        else:
            self._open.append(value)
            self._contents(value)
            self._open.pop()

    def _write(self, *words: str) -> None:
        for word in words:
            self.hash.update(f"{len(word)}:{word}".encode())

    def _listed(self, name: str, entries: Any) -> None:
        entries = list(entries)
        self._write(name, str(len(entries)))
        for entry in entries:
            self.read(entry)

    def _contents(self, value: Any) -> None:
        if isinstance(value, types.ModuleType):
            self._module(value)
        elif isinstance(value, type):
            self._class(value)
        elif (  # no class method, as numpy's polynomials have, that makes x -> x
            callable(identity := getattr(value, "identity", None))
            and getattr(identity, "__self__", value) is value
        ):
            self.read(type(value))
            self.read(identity())
        elif isinstance(value, Mapping):
            pairs = sorted(value.items(), key=lambda pair: repr(pair[0]))
            self._listed("mapping", (entry for pair in pairs for entry in pair))
        elif isinstance(value, set | frozenset):
            self._listed("set", sorted(value, key=repr))
        elif isinstance(value, Sequence | np.ndarray):
            self._listed("sequence", value)
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, functools.partial):
            self._listed("partial", (value.func, value.args, value.keywords))
        elif isinstance(value, types.MethodType):
            self._listed("method", (value.__func__, value.__self__))
        elif isinstance(value, types.BuiltinFunctionType | np.ufunc):
            self._write("builtin", getattr(value, "__module__", None) or "", value.__name__)
            self.read(getattr(value, "__self__", None))
        elif isinstance(value, DESCRIPTORS):
            self._write("descriptor", repr(value))
        elif isinstance(value, property):
            self._listed("property", (value.fget, value.fset, value.fdel))
        elif isinstance(value, staticmethod | classmethod):
            self._listed(type(value).__name__, (value.__func__,))
        elif isinstance(value, functools.cached_property):
            self._listed("cached property", (value.func,))
        elif isinstance(value, re.Pattern):
            self._listed("pattern", (value.pattern, value.flags))
        elif isinstance(value, np.random.Generator):
            self._listed("generator", [value.bit_generator.state])
        elif callable(python := getattr(value, "py_func", None)):  # compiled by numba
            self.read(python)
        elif hasattr(value, "__dict__"):
            self.read(type(value))
            own = vars(value).copy()  # to which another thread may add what it computes
            kept = {n: v for n, v in own.items() if not is_cached(type(value), n)}
            self.read(kept)
        else:
            raise TypeError(f"{value!r} has no contents that can be told from others")

    def _function(self, function: types.FunctionType) -> None:
        if of_library(function.__module__):
            self._write("library", function.__module__, function.__qualname__)
        else:
            self._code(function.__code__, function.__globals__)
        closure = map(_held, function.__closure__ or ())
        defaults = [function.__defaults__, function.__kwdefaults__]
        self._listed("given", [*defaults, *closure, vars(function)])

    def _code(self, code: types.CodeType, names: Mapping[str, Any]) -> None:
        """Instructions and constants, functions defined inside, and the globals that are read."""
        self._write("code", code.co_code.hex(), " ".join(code.co_names), " ".join(code.co_varnames))
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._code(constant, names)
            else:
                self.read(constant)
        self._globals(code.co_names, names)

    def _globals(self, wanted: Iterable[str], names: Mapping[str, Any]) -> bool:
        """Those of the wanted names that there are, in modules of one's own among them too."""
        found = [name for name in wanted if name in names]
        for name in found:
            self._write("global", name)
            value = names[name]
            if _is_own_module(value) and not any(value is other for other in self._open):
                self._open.append(value)
                if not self._globals(wanted, vars(value)):
                    self._module(value)
                self._open.pop()
            else:
                self.read(value)
        return bool(found)

    def _module(self, module: types.ModuleType) -> None:
        """Its name; the file of one of one's own too."""
        self._write("module", module.__name__)
        if _is_own_module(module):
            if not getattr(module, "__file__", None):
                raise TypeError(f"{module!r} has no contents that can be told from others")
            self.hash.update(Path(str(module.__file__)).read_bytes())

    def _class(self, cls: type) -> None:
        """Its name; where the class is not of this package or another library, all it defines."""
        self._write("class", cls.__module__, cls.__qualname__)
        for base in cls.__mro__[:-1]:
            if base.__flags__ & WRITTEN and not of_library(base.__module__):
                self.read({n: v for n, v in vars(base).items() if _is_defined(n, v)})


@dataclass
class _Plain(ABC):
    """A class that defines nothing."""

    nothing: ClassVar[None]


MADE = {  # by Python
    *vars(_Plain),
    *vars(Enum("_", [])),
    "__orig_bases__",
    "__parameters__",
    "__classdictcell__",
}
ANNOTATIONS = {"__annotate__", "__annotate_func__"}  # functions of Python 3.14 that compute them


def _is_defined(name: str, value: Any) -> bool:
    """Whether an attribute of a class is what somebody wrote, or a method Python made of it."""
    return name not in ANNOTATIONS and (name not in MADE or inspect.isfunction(value))


def _held(cell: types.CellType) -> Any:
    """What a variable of an enclosing function holds, which may not be set yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return EMPTY_CELL


def _is_own_module(value: Any) -> bool:
    if not isinstance(value, types.ModuleType) or value is builtins:
        return False
    return not of_library(value.__name__)


def is_cached(cls: type, name: str) -> bool:
    """Whether an attribute is what a property computed, and kept."""
    return isinstance(inspect.getattr_static(cls, name, None), functools.cached_property)


@functools.cache
def of_library(module: str | None) -> bool:
    """Whether a module is of this package, the standard library or another installed one.

    Results record their versions, so that names tell what they do.
    """
    root = (module or "").split(".")[0]
    if root == __name__.split(".")[0] or root in sys.stdlib_module_names - {"__main__", "builtins"}:
        return True
    return "site-packages" in (getattr(sys.modules.get(root), "__file__", None) or "")
