"""Cache of compiled code on disk: one folder for all installations of a user.

numba's own cache has an index for each source file. If processes compile different signatures at
the same time, the index may assign the code of one signature to the other; files have no checksum;
code stays valid although functions inlined in it have changed; and a clone and an installation of
the same version compile everything twice. Here the name of an entry is a checksum of everything
that determines the code, whatever process compiled it and wherever the package is installed.
"""

import hashlib
import inspect
import os
import pickle
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import caching, config, event
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from ..core import system
from ..core.errors import StorageError, StorageWarning
from ..core.files import write_whole

NO_FOLDER = (
    "Compiled code cannot be kept: not in the cache folder of this user, not beside the sources, "
    "not among temporary files, and not in NUMBA_CACHE_DIR where that is set. Every process "
    "compiles what it uses, which takes from seconds to a minute. Set NUMBA_CACHE_DIR to a folder "
    "that can be written."
)
KEPT_ENTRIES = 24  # most entries of one function: its signatures, in several versions
COMPILATION_WAIT = 120.0  # seconds to wait for a process that compiles the same function
PACKAGE_FOLDER = Path(__file__).parents[1]


class CodeCache(caching.NullCache):
    """Cache on disk for one function: a file with a checksum for every signature and processor.

    The name of an entry depends on the signature, on the sources of the function and of the modules
    from which it takes compiled functions, on the constants that it uses, on the processor, and on
    the versions and switches of numba and LLVM. A process that finds no entry waits if another one
    is compiling it.

    If no file can be written, there is one warning, and every process compiles.
    """

    warned = False

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        _source(function.__code__.co_filename)  # cached now, as the file may change during the run
        self._turns: dict[Any, Turn] = {}

    @property
    def cache_path(self) -> str | None:
        """The folder of the cache; None if no folder can be written."""
        folder = cache_folder()
        return None if folder is None else str(folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function from the cache, or None; called by numba."""
        target_context.refresh()
        name = self._entry(sig, target_context.codegen())
        code = self._read(name, target_context)
        if code is None:
            turn = Turn(name)
            if turn.waited:  # another process may have compiled it
                code = self._read(name, target_context)
            if code is None:
                self._turns[sig] = turn
            else:
                turn.end()
        return code

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled function to the cache if possible; called by numba."""
        try:
            if data.library.has_dynamic_globals:
                name = self._function.__qualname__
                raise TypeError(f"{name} cannot be kept: it refers to a fixed address.")
            contents = dumps(data._reduce())
            contents = hashlib.sha256(contents).digest() + contents
            _keep(self._entry(sig, data.codegen), contents)
        finally:
            turn = self._turns.pop(sig, None)
            if turn is not None:
                turn.end()

    def _read(self, name: str, target_context: Any) -> Any:
        """Compiled code from the first folder that has it intact; None without."""
        for folder in folders():
            code = _unsealed(folder / name)
            if code is not None:
                with suppress(ImportError, AttributeError):  # code may refer to missing objects
                    return CompileResult._rebuild(target_context, *pickle.loads(code))
        return None

    def _entry(self, sig: Any, codegen: Any) -> str:
        """The name of the cache file for a signature."""
        function = self._function
        version = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
        qualname = function.__qualname__.replace("<locals>.", "")
        name = f"{Path(inspect.getfile(function)).stem}.{qualname}.{version}"
        contents = (
            (name, function.__code__.co_firstlineno, sources(function.__globals__)),
            (str(sig), _fields(sig), codegen.magic_tuple(), _switches(), _constants(function)),
        )
        return f"{name}-{hashlib.sha256(repr(contents).encode()).hexdigest()[:32]}.nbc"


def _keep(name: str, contents: bytes) -> None:
    """Write an entry to the first folder that can be written; else warn, once."""
    for folder in folders(create=True):
        with suppress(OSError, StorageError):
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / name, contents)
            _remove_oldest(folder, name.rpartition("-")[0])
            return
    if not CodeCache.warned:
        CodeCache.warned = True
        warnings.warn(NO_FOLDER, StorageWarning, stacklevel=2)


def _remove_oldest(folder: Path, function: str) -> None:
    """Remove all but the newest KEPT_ENTRIES entries of a function."""
    with suppress(OSError):
        entries = sorted(folder.glob(f"{function}-*.nbc"), key=lambda path: path.stat().st_mtime)
        for entry in entries[:-KEPT_ENTRIES]:
            entry.unlink()


def _unsealed(path: Path) -> bytes | None:
    """The contents of an entry; None if the file is missing or its checksum is wrong."""
    try:
        contents = path.read_bytes()
    except OSError:
        return None
    seal, code = contents[:32], contents[32:]
    return code if hashlib.sha256(code).digest() == seal else None


# What code depends on --------------------------------------------------------------------------


def _switches() -> tuple[Any, ...]:
    """Versions of numba and LLVM, and global switches of numba on which compiled code depends."""
    names = "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "USING_SVML", "BOUNDSCHECK"
    versions = numba.__version__, llvmlite.__version__
    return *versions, *(repr(getattr(config, name, None)) for name in names)


def _fields(types: Any) -> tuple[Any, ...]:
    """Field names of all named tuples in a signature, as str(signature) does not have them."""
    if not isinstance(types, tuple):
        types = getattr(types, "args", ())
    names = ((getattr(t, "fields", ()), _fields(getattr(t, "types", ()))) for t in types)
    return tuple(pair for pair in names if pair != ((), ()))


def _constants(
    function: Callable[..., Any], visited: frozenset[Callable[..., Any]] = frozenset()
) -> tuple[Any, ...]:
    """Constants that become a part of the compiled code of a function.

    Numbers, text and arrays from its closure, from its module, and from the compiled functions that
    it calls. `visited` are functions that were already examined.
    """
    visited |= {function}
    variables = inspect.getclosurevars(function)
    constants: list[Any] = []
    for name, value in sorted({**variables.globals, **variables.nonlocals}.items()):
        callee = getattr(value, "py_func", None)
        if callee is not None and callee not in visited:
            position = (callee.__module__, callee.__qualname__, callee.__code__.co_firstlineno)
            constants.append((name, position, _constants(callee, visited)))
        elif _is_plain(value):
            constants.append((name, repr(value)))
        elif isinstance(value, np.ndarray):
            constants.append((name, str(value.dtype), value.shape, value.tobytes()))
    return tuple(constants)


def _is_plain(value: Any) -> bool:
    """True if repr(value) identifies the value."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return isinstance(value, bool | int | float | complex | str | bytes | np.generic)


def sources(module: dict[str, Any]) -> tuple[str, ...]:
    """Checksums of a module and of all modules from which its compiled functions may take code.

    A module is given by its dictionary of globals, as a script cannot be found by a name.
    """
    root = module.get("__file__") or ""
    if root not in _CHECKSUMS:
        _CHECKSUMS[root] = _reached_from(module)
    return _CHECKSUMS[root]


_CHECKSUMS: dict[str, tuple[str, ...]] = {}  # by the file of the module


def _reached_from(module: dict[str, Any]) -> tuple[str, ...]:
    """Checksums of a module and of all compiled modules that it imports, directly or not."""
    checksums: dict[str, str] = {}
    modules = [module]
    while modules:
        entries = modules.pop()
        file = entries.get("__file__") or ""
        if file not in checksums:
            checksum, is_compiled = _source(file)
            if is_compiled or entries is module:
                checksums[file] = checksum
                modules += _imported(entries)
    return tuple(sorted(checksums.values()))


def _imported(module: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Dictionaries of the modules that a module imports, or whose functions or classes it uses."""
    for value in list(module.values()):
        if isinstance(value, ModuleType):
            yield vars(value)
        elif isinstance(value, type):
            yield vars(sys.modules.get(value.__module__, ModuleType("")))
        else:
            function = getattr(value, "py_func", None) or getattr(value, "_defn", value)
            if isinstance(function, FunctionType):
                yield function.__globals__


@cache
def _source(file: str) -> tuple[str, bool]:
    """The checksum of a source file, and whether it has functions compiled by numba."""
    try:
        source = Path(file).read_bytes()
    except OSError:
        return "", False
    is_library = "site-packages" in file and not Path(file).is_relative_to(PACKAGE_FOLDER)
    return hashlib.sha256(source).hexdigest(), b"njit" in source and not is_library


# Folders of the cache --------------------------------------------------------------------------


def cache_folder() -> Path | None:
    """The folder into which compiled code is written; None if no folder can be written."""
    for folder in folders(create=True):
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            return folder
    return None


def folders(*, create: bool = False) -> Iterator[Path]:
    """Folders of the cache, in the order in which they are tried.

    Only the folder in NUMBA_CACHE_DIR, if it is set; else one in the user's cache folder, one with
    the sources, and a private temporary folder, which `create` makes.
    """
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR) / "meanfield"
        return
    at_home = system.user_caches()
    if at_home is not None:
        yield at_home / "meanfield"
    yield PACKAGE_FOLDER / "__pycache__"
    temporary = system.private_folder(create)
    if temporary is not None:
        yield temporary


# Processes that start together -----------------------------------------------------------------


class Turn:
    """Lock for the compilation of an entry, held by one process at a time.

    One byte of the file `compiling.lock` is locked, at a position computed from the name: the
    system releases the lock when a process ends for any reason. There is no deadlock, as functions
    do not call each other in a cycle. Where locks do not work, or after two minutes, every process
    compiles.

    Attributes
    ----------
    waited : bool
        Whether another process held the lock before.
    """

    _file: int | None = None  # stays open: closing it would release all locks of the process

    def __init__(self, name: str) -> None:
        """Wait for the lock on the byte of this name, up to COMPILATION_WAIT seconds."""
        self._position = int(hashlib.sha256(name.encode()).hexdigest()[:12], 16)
        self.waited = self._holds = False
        end = time.monotonic() + COMPILATION_WAIT
        file = self._opened()
        while file is not None and not self._holds and time.monotonic() < end:
            try:
                self._holds = system.lock_byte(file, self._position)
            except OSError:  # a file system without locks
                return
            if not self._holds:
                self.waited = True
                time.sleep(0.02)
        if self._holds:
            _TURNS.append(self)

    def end(self) -> None:
        """Release the lock."""
        if self._holds and self._file is not None:
            self._holds = False
            _TURNS.remove(self)
            with suppress(OSError):
                system.unlock_byte(self._file, self._position)

    @classmethod
    def _opened(cls) -> int | None:
        """The lock file in the first folder that can be written; None without."""
        if cls._file is None:
            for folder in folders(create=True):
                with suppress(OSError):
                    folder.mkdir(parents=True, exist_ok=True)
                    flags = os.O_RDWR | os.O_CREAT | system.OPEN_FLAGS
                    cls._file = os.open(folder / "compiling.lock", flags, 0o600)
                    break
        return cls._file


_TURNS: list[Turn] = []


class _FailedCompilations(event.Listener):
    """Listener that releases the locks after a failed compilation, as nothing is saved then."""

    def on_start(self, started: Any) -> None:
        pass

    def on_end(self, ended: Any) -> None:
        if ended._exc_details is not None:  # `is_failed` of numba says the opposite
            for turn in list(_TURNS):
                turn.end()


event.register("numba:compile", _FailedCompilations())
