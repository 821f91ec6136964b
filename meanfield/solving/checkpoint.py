"""Checkpoints: one file with everything a run needs to go on, sealed with a checksum.

    MAGIC (16 bytes) | SHA-256 of the payload (32 bytes) | payload

The payload is a .npz archive of arrays and of the identity of the run: a digest of what is computed
with, functions by their code. A file that is cut short, altered, or written for another model,
initial state or options is refused.
"""

import functools
import hashlib
import io
import time
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..core.atomic import check_writable, write_atomically
from ..core.errors import CheckpointError, StorageWarning

__all__ = ["Keeper", "digest"]

MAGIC = b"meanfield ckpt 5"
OURS = ("meanfield.", "numpy.", "builtins")
PLAIN = (int, float, complex, str, np.ndarray, np.generic)


class Keeper:
    """Writes and reads the checkpoint of one run.

    Parameters
    ----------
    path : Path
    identity : dict
        What determines the result, see `digest`. It must agree on resuming.
    every : float
        Seconds of wall time between two checkpoints.
    resume : bool
        Whether the file, if it exists, is read first; else it must be a checkpoint, or empty.
    """

    def __init__(self, path: Path, identity: dict[str, Any], every: float, resume: bool):
        if not path.absolute().parent.is_dir() or (path.exists() and not path.is_file()):
            raise CheckpointError(
                f"No checkpoint can be written to {path}: expected a file in an existing folder."
            )
        if path.exists() and not resume and not _may_be_overwritten(path):
            raise CheckpointError(
                f"{path} exists and is not a checkpoint: it would be overwritten. Choose another "
                "name, or remove it."
            )
        check_writable(path)
        self._path, self._identity = path, digest(identity)
        self._every, self._last = every, time.monotonic()

    def save_now_and_then(self, arrays: Callable[[], dict[str, Any]]) -> None:
        """Save what `arrays` returns if the last checkpoint is old enough."""
        if time.monotonic() - self._last >= self._every:
            self.save(arrays())

    def save(self, arrays: dict[str, Any]) -> None:
        """Write the checkpoint, replacing the previous one atomically.

        Where that fails, on a full disk for instance, the run is worth more than its
        checkpoint: it goes on, with a warning.
        """
        buffer = io.BytesIO()
        np.savez(buffer, identity=np.array(self._identity), **arrays)
        payload = buffer.getvalue()
        sealed = MAGIC + hashlib.sha256(payload).digest() + payload
        try:
            write_atomically(self._path, lambda path: path.write_bytes(sealed))
        except OSError as error:
            warnings.warn(
                f"The checkpoint {self._path} could not be written "
                f"({error.strerror or error}); the run goes on without it.",
                StorageWarning,
                stacklevel=2,
            )
        self._last = time.monotonic()

    def load(self) -> dict[str, np.ndarray]:
        """The arrays that were saved; raises CheckpointError unless all is well."""
        sealed = self._path.read_bytes()
        payload = sealed[48:]
        if sealed[:16] != MAGIC or hashlib.sha256(payload).digest() != sealed[16:48]:
            raise CheckpointError(
                f"{self._path} is not an intact checkpoint: it was cut short or altered, or "
                "another program wrote it. Remove it and start the run again."
            )
        with np.load(io.BytesIO(payload), allow_pickle=False) as arrays:
            content = {name: arrays[name] for name in arrays.files}
        if str(content.pop("identity")) != self._identity:
            raise CheckpointError(
                f"{self._path} belongs to another run: its model, initial state, times "
                "or options differ. Resume with the same arguments, or use another file."
            )
        return content


def _may_be_overwritten(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) in (b"", MAGIC)


# Identity ------------------------------------------------------------------------------------


def digest(value: Any) -> str:
    """What tells a value from others that compute something else, as a hexadecimal number.

    Arrays by their numbers; functions by their code, constants, defaults, what they close over and
    the functions and numbers among the globals that they name; objects by their class and fields.

    Raises
    ------
    CheckpointError
        For what has no such identity, as a compiled function of another library.
    """
    found = hashlib.sha256()
    for part in _parts(value, {}):
        found.update(len(part).to_bytes(8, "little") + part)
    return found.hexdigest()


def _parts(value: Any, seen: dict[int, Any]) -> Iterator[bytes]:
    """The bytes that identify a value; functions and objects already `seen` are not told again."""
    if id(value) in seen:
        yield f"seen {list(seen).index(id(value))}".encode()
        return
    if isinstance(value, types.FunctionType) or hasattr(value, "__dict__"):
        seen[id(value)] = value
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        yield f"{type(value).__name__} {value!r}".encode()
    elif isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        yield f"array {array.shape} {array.dtype.str}".encode()
        if array.dtype.hasobject:
            yield from _many(array.ravel().tolist(), seen)
        else:
            yield np.ascontiguousarray(array).tobytes()
    elif isinstance(value, Mapping):
        yield b"mapping"
        yield from _many([part for item in sorted(value.items(), key=repr) for part in item], seen)
    elif isinstance(value, list | tuple):
        yield f"list {len(value)}".encode()
        yield from _many(value, seen)
    elif isinstance(value, set | frozenset):
        yield b"set"
        yield from _many(sorted(digest(part) for part in value), seen)
    elif isinstance(value, types.ModuleType | type):
        yield f"{getattr(value, '__module__', '')}.{value.__name__}".encode()
    elif isinstance(value, types.CodeType):
        yield value.co_code
        yield from _many([value.co_consts, value.co_names], seen)
    elif isinstance(value, types.FunctionType):
        yield b"function"
        yield from _many(_of_function(value), seen)
    elif isinstance(value, types.MethodType):
        yield from _many([value.__func__, value.__self__], seen)
    elif isinstance(value, functools.partial):
        yield from _many([value.func, value.args, value.keywords], seen)
    elif isinstance(value, np.ufunc):
        yield f"ufunc {value.__name__}".encode()
    elif hasattr(value, "py_func"):  # compiled by numba
        yield from _parts(value.py_func, seen)
    elif isinstance(value, types.BuiltinFunctionType) and isinstance(
        value.__self__, types.ModuleType | None
    ):
        yield f"{value.__module__}.{value.__qualname__}".encode()
    elif is_dataclass(value):
        yield from _of_object(value, {f.name: getattr(value, f.name) for f in fields(value)}, seen)
    elif hasattr(value, "__dict__"):
        lazy = {
            name
            for kind in type(value).__mro__
            for name, entry in vars(kind).items()
            if isinstance(entry, functools.cached_property)
        }
        kept = {name: part for name, part in vars(value).items() if name not in lazy}
        yield from _of_object(value, kept, seen)
    else:
        raise CheckpointError(
            f"{value!r} has no identity by which a run could be told from another one, so that no "
            "run with it can be resumed: leave checkpoint out, or write it as a Python function."
        )


def _of_object(value: Any, kept: dict[str, Any], seen: dict[int, Any]) -> Iterator[bytes]:
    kind = type(value)
    yield f"object {kind.__module__}.{kind.__qualname__}".encode()
    if not kind.__module__.startswith(
        OURS
    ):  # of which a class of the same name may do other things
        methods = {n: m for k in kind.__mro__ for n, m in vars(k).items() if _is_code(m)}
        yield from _parts(methods, seen)
    yield from _parts(kept, seen)


def _is_code(entry: Any) -> bool:
    return isinstance(entry, types.FunctionType) and not entry.__module__.startswith(OURS)


def _of_function(function: types.FunctionType) -> list[Any]:
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    named = {
        name: value
        for name in sorted(_names(function.__code__))
        if isinstance(value := function.__globals__.get(name), PLAIN)
        or getattr(value, "__module__", None) == function.__module__
    }
    defaults = [function.__defaults__, function.__kwdefaults__]
    return [function.__code__, cells, defaults, named, dict(vars(function))]


def _names(code: types.CodeType) -> set[str]:
    """Names of a function and of those within it."""
    inner = [part for part in code.co_consts if isinstance(part, types.CodeType)]
    return {*code.co_names}.union(*map(_names, inner))


def _many(values: Any, seen: dict[int, Any]) -> Iterator[bytes]:
    for value in values:
        yield from _parts(value, seen)
