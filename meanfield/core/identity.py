"""Digests of what is computed with: equal digests mean the same computation.

Names are not identity. Arrays count with every bit, functions with their code, constants, defaults,
closures and the global names that they read, objects with what they hold.
"""

import functools
import hashlib
import inspect
import sys
import types
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

PLAIN = (type(None), bool, int, float, complex, str, bytes, PurePath, type(...), range, slice)


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
        if isinstance(value, Mapping):
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
        elif isinstance(value, types.ModuleType):
            self._write("module", value.__name__)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, types.BuiltinFunctionType | np.ufunc):
            self._write("builtin", getattr(value, "__module__", None) or "", value.__name__)
        elif isinstance(value, np.random.Generator):
            self._listed("generator", [value.bit_generator.state])
        elif callable(identity := getattr(value, "identity", None)):
            self._class(type(value))
            self.read(identity())
        elif callable(python := getattr(value, "py_func", None)):  # compiled by numba
            self.read(python)
        elif hasattr(value, "__dict__"):
            self._class(type(value))
            kept = {n: v for n, v in vars(value).items() if not _is_cached(type(value), n)}
            self.read(kept)
        else:
            raise TypeError(f"{value!r} has no contents that can be told from others")

    def _function(self, function: types.FunctionType) -> None:
        if _of_library(function.__module__):
            self._write("library", function.__module__, function.__qualname__)
        else:
            self._code(function.__code__, function.__globals__)
        closure = [cell.cell_contents for cell in function.__closure__ or ()]
        defaults = [function.__defaults__, function.__kwdefaults__]
        self._listed("given", [*defaults, closure, vars(function)])

    def _code(self, code: types.CodeType, names: Mapping[str, Any]) -> None:
        """Instructions and constants, functions defined inside, and the globals that are read."""
        self._write("code", code.co_code.hex(), " ".join(code.co_names), " ".join(code.co_varnames))
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._code(constant, names)
            else:
                self.read(constant)
        for name in code.co_names:
            if name in names:
                self._write("global", name)
                self.read(names[name])

    def _class(self, cls: type) -> None:
        """Its name; where the class is not of this package or another library, its code too."""
        self._write("class", cls.__module__, cls.__qualname__)
        for base in cls.__mro__[:-1]:
            if not _of_library(base.__module__):
                own = vars(base).items()
                self._listed("methods", (f for _, f in sorted(own) if inspect.isfunction(f)))


def _is_cached(cls: type, name: str) -> bool:
    """Whether an attribute is what a property computed, and kept."""
    return isinstance(inspect.getattr_static(cls, name, None), functools.cached_property)


@functools.cache
def _of_library(module: str | None) -> bool:
    """Whether a module is of this package, the standard library or another installed one.

    Results record their versions, so that names tell what they do.
    """
    root = (module or "").split(".")[0]
    if root == __name__.split(".")[0] or root in sys.stdlib_module_names - {"__main__", "builtins"}:
        return True
    return "site-packages" in (getattr(sys.modules.get(root), "__file__", None) or "")
