"""Compilation of functions by numba: options, locks, and listeners that hear of it."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock

from .code_cache import CodeCache

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
    """`numba.njit`, a decorator; with `cache` the compiled code is kept by `CodeCache`."""

    def compiled(function: Callable) -> Any:
        dispatcher = numba.njit(**options)(function)
        if cache and hasattr(dispatcher, "_cache"):  # not where numba is switched off
            dispatcher._cache = CodeCache(function)
        return dispatcher

    return compiled if function is None else compiled(function)


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
