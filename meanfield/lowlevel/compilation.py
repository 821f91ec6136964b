"""Compilation of functions by numba: options, where the code is kept, who is told of it."""

import hashlib
import inspect
import os
import pickle
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import caching, config, event
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps

from ..core.errors import StorageError, StorageWarning
from ..core.files import write_whole

NOWHERE = (
    "Compiled code can be kept nowhere: not beside the sources, not at home, not among temporary "
    "files, and not in NUMBA_CACHE_DIR where that is given. Every process compiles what it uses, "
    "which takes from seconds to a minute. Set NUMBA_CACHE_DIR to a folder that can be written."
)

# Options of functions that only compiled code calls. They get no entry from Python: for arguments
# such as tuples of arrays, compiling one takes as long as the function itself.
INNER: dict[str, Any] = {"cache": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

# Options of functions with one caller among several that do the work: they become a part of it
# before it is compiled. Each level that is compiled on its own is optimised again with all below
# it, so that a chain of five takes twice the time of one function. Not for those with `fastmath`.
INLINED: dict[str, Any] = {**INNER, "inline": "always"}

# Options of functions with `fastmath` that compiled code calls: they become a part of the caller.
# Compiled on its own too, such a function may round differently, and which of the two a process
# runs depends on what it compiles and what it reads from the cache.
WITHIN: dict[str, Any] = {"cache": True, "nogil": True, "forceinline": True}

# What `fastmath` allows where sums may be taken in any order; nan and infinity keep their meaning.
# No powers there: numba compiles `x**2` once in a process, with the options of who asks first.
IN_ANY_ORDER = {"contract", "reassoc", "nsz"}


def njit(function: Callable | None = None, *, cache: bool = False, **options: Any) -> Any:
    """`numba.njit`, a decorator; with `cache` the compiled code is kept as `KeptCode` does."""

    def compiled(function: Callable) -> Any:
        dispatcher = numba.njit(**options)(function)
        if cache and hasattr(dispatcher, "_cache"):  # not where numba is switched off
            dispatcher._cache = KeptCode(function)
        return dispatcher

    return compiled if function is None else compiled(function)


# Compiled code on disk -------------------------------------------------------------------------


class KeptCode(caching.NullCache):
    """Compiled code of one function on disk: a sealed file for every signature and processor.

    numba's own cache has an index for each function. Processes that compile different signatures
    at the same time may leave an index that gives one of them the code of the other; files have no
    checksum; and code is kept although functions that became a part of it have changed. Here a file
    says what it is the code of, and is passed over unless all of that is still the same.

    Where no file can be written, a warning says so, once, and every process compiles.
    """

    told = False

    def __init__(self, function: Callable):
        self._function = function

    @property
    def cache_path(self) -> str | None:
        """The folder in which code is kept; None if there is none."""
        folder = folder_for(self._function)
        return None if folder is None else str(folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function, None if there is none: called by numba."""
        target_context.refresh()
        name, origin = self._entry(sig, target_context.codegen())
        for folder in _folders(self._function):
            kept = _read(folder / name)
            if kept is None or kept[0] != origin:
                continue
            with suppress(ImportError, AttributeError):  # of what it refers to
                return CompileResult._rebuild(target_context, *pickle.loads(kept[1]))
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function where that is possible: called by numba."""
        if data.library.has_dynamic_globals:
            raise TypeError(f"{self._function.__qualname__} cannot be kept: it knows an address.")
        name, origin = self._entry(sig, data.codegen)
        contents = pickle.dumps((origin, dumps(data._reduce())))
        contents = hashlib.sha256(contents).digest() + contents
        for folder in _folders(self._function, create=True):
            with suppress(OSError, StorageError):
                folder.mkdir(parents=True, exist_ok=True)
                write_whole(folder / name, contents)
                return
        if not KeptCode.told:
            KeptCode.told = True
            warnings.warn(NOWHERE, StorageWarning, stacklevel=2)

    def _entry(self, sig: Any, codegen: Any) -> tuple[str, tuple]:
        """The name of a file, and what it is the code of."""
        function, file = self._function, inspect.getfile(self._function)
        version = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
        variant = str(sig), codegen.magic_tuple(), _switches(), _constants(function)
        origin = numba.__version__, _sources(file), function.__code__.co_firstlineno, variant
        mark = hashlib.sha256(repr(variant).encode()).hexdigest()[:16]
        qualname = function.__qualname__.replace("<locals>.", "")
        return f"{Path(file).stem}.{qualname}.{version}-{mark}.nbc", origin


def _switches() -> tuple:
    """What decides how numba compiles, beside sources, options and the processor."""
    names = "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "USING_SVML", "BOUNDSCHECK"
    return llvmlite.__version__, *(repr(getattr(config, name, None)) for name in names)


def _constants(function: Callable, known: frozenset[Callable] = frozenset()) -> tuple:
    """Numbers and text that a function finds around it, which are a part of its compiled code.

    Those of its closure, of its module, and of the compiled functions that it calls.
    """
    known |= {function}
    around = inspect.getclosurevars(function)
    found: list[Any] = []
    for name, value in sorted({**around.globals, **around.nonlocals}.items()):
        called = getattr(value, "py_func", None)
        if called is not None and called not in known:
            found.append((name, _constants(called, known)))
        elif _is_plain(value):
            found.append((name, repr(value)))
        elif isinstance(value, np.ndarray):
            found.append((name, str(value.dtype), value.shape, value.tobytes()))
    return tuple(found)


def _is_plain(value: Any) -> bool:
    """Whether what it prints tells it from others."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return isinstance(value, bool | int | float | complex | str | bytes | np.generic)


def folder_for(function: Callable) -> Path | None:
    """The folder that keeps the compiled code of a function; None if none can be written."""
    for folder in _folders(function, create=True):
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            return folder
    return None


def _folders(function: Callable, *, create: bool = False) -> Iterator[Path]:
    """That of the user's choice alone; or beside the source, at home, among temporary files."""
    file = inspect.getfile(function)
    if config.CACHE_DIR:
        yield Path(caching.UserProvidedCacheLocator(function, file).get_cache_path())
        return
    yield Path(caching.InTreeCacheLocator(function, file).get_cache_path())
    at_home = Path(caching.UserWideCacheLocator(function, file).get_cache_path())
    if at_home.is_absolute():  # else there is no home
        yield at_home
    temporary = _private_folder(create)
    if temporary is not None:
        yield temporary / at_home.name


def _private_folder(create: bool) -> Path | None:
    """Among temporary files, that of this user; None if it is not there or others may write to it.

    What others write would be executed.
    """
    try:
        user = os.getuid() if hasattr(os, "getuid") else 0
        folder = Path(tempfile.gettempdir(), f"meanfield-{user}")
        if create:
            folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    if os.name == "nt":  # temporary files are each user's own
        return folder
    private = stat.S_ISDIR(found.st_mode) and not stat.S_IMODE(found.st_mode) & 0o077
    return folder if private and found.st_uid == user else None


@cache
def _sources(file: str) -> str:
    """A checksum of a source and of all with compiled code, which may become a part of that in it.

    Empty where there are no sources.
    """
    try:
        checksum = compiled_sources().copy()
        checksum.update(Path(file).read_bytes())
    except OSError:
        return ""
    return checksum.hexdigest()


@cache
def compiled_sources() -> Any:
    """The checksum of all sources of this package with compiled code: they are read once."""
    checksum = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        source = path.read_bytes()
        checksum.update(source if b"njit" in source else b"")
    return checksum


def _read(path: Path) -> tuple | None:
    """What was written; None if there is no such file, or it has changed."""
    try:
        contents = path.read_bytes()
    except OSError:
        return None
    seal, rest = contents[:32], contents[32:]
    return pickle.loads(rest) if hashlib.sha256(rest).digest() == seal else None


# Locks and forks -------------------------------------------------------------------------------

COMPILING: Any = global_compiler_lock  # by one thread at a time
LOCKS: list[Any] = [COMPILING]  # in the order in which they are taken


def hold_at_fork(lock: Any) -> None:
    """Have forks wait for a lock, which their children would else find taken for ever.

    Who has it must not wait for another one of these locks.
    """
    LOCKS.append(lock)


def _acquire() -> None:
    for lock in LOCKS:
        lock.acquire()


def _release() -> None:
    for lock in reversed(LOCKS):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_acquire, after_in_parent=_release, after_in_child=_release)


# Compilation that is announced -----------------------------------------------------------------


class _Listener(event.Listener):
    def __init__(self, callback: Callable[[str | None], None]):
        self._callback, self._depth = callback, 0

    def on_start(self, started):
        self._depth += 1
        if self._depth == 1:
            self._callback(started.data["dispatcher"].py_func.__name__)

    def on_end(self, _ended):
        if self._depth == 0:  # it began before anybody listened, in another thread
            return
        self._depth -= 1
        if self._depth == 0:
            self._callback(None)


@contextmanager
def listening(callback: Callable[[str | None], None]) -> Iterator[None]:
    """A context in which `callback` hears of compilation, as it begins and ends.

    Parameters
    ----------
    callback : callable
        Called with the name of a function when its compilation begins, and with None when it
        ends. Functions that are compiled as parts of another one, and those read from the cache
        on disk, are not announced.
    """
    with event.install_listener("numba:compile", _Listener(callback)):
        yield
