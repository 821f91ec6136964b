"""Compilation of functions by numba: options, and who is told of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from numba.core import caching, event

# Options of functions that only compiled code calls. They get no entry from Python: for arguments
# such as tuples of arrays, compiling one takes as long as the function itself.
INNER = {"cache": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

# Options of functions with `fastmath` that compiled code calls: they become a part of the caller.
# Compiled on its own too, such a function may round differently, and which of the two a process
# runs depends on what it compiles and what it reads from the cache.
WITHIN = {"cache": True, "nogil": True, "forceinline": True}

# What `fastmath` allows where sums may be taken in any order; nan and infinity keep their meaning.
IN_ANY_ORDER = {"contract", "reassoc", "nsz"}


def _load_index(cache, load=caching.IndexDataCacheFile._load_index):
    try:
        return load(cache)
    except (ImportError, AttributeError):
        return {}


# numba reads the index of a cache before it sees that the source has changed. After an update in
# place the index may name modules and classes that have moved: such a cache counts as none.
caching.IndexDataCacheFile._load_index = _load_index


class _Listener(event.Listener):
    def __init__(self, callback: Callable[[str | None], None]):
        self._callback, self._depth = callback, 0

    def on_start(self, started):
        self._depth += 1
        if self._depth == 1:
            self._callback(started.data["dispatcher"].py_func.__name__)

    def on_end(self, _ended):
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
