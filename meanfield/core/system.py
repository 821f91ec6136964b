"""Differences between operating systems: locks and flags of files, limits and heaps of a process.

All else in the package is the same on Linux, macOS and Windows.
"""

import ctypes
import math
import os
import sys
import time
from collections.abc import Callable
from io import FileIO
from pathlib import Path

OPEN_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
RENAMES_OPEN_FILES = sys.platform != "win32"  # and removes them
SECONDS_OF_OTHERS = 2.0  # for which other processes may have a file open on Windows
LOCKED_BYTE = 2**30  # beyond the content: on Windows a locked byte cannot be read
M_ARENA_MAX = -8  # the option of glibc's `mallopt` that bounds the number of heaps

if sys.platform == "win32":
    import msvcrt

    def lock(file: int) -> bool:
        return lock_byte(file, LOCKED_BYTE)

    def lock_byte(file: int, position: int) -> bool:
        try:
            _locking(file, msvcrt.LK_NBLCK, position)
        except PermissionError:
            return False
        return True

    def unlock_byte(file: int, position: int) -> None:
        _locking(file, msvcrt.LK_UNLCK, position)

    def _locking(file: int, mode: int, position: int) -> None:
        """Lock or unlock a byte; the file stays at its position, which the lock is taken from."""
        before = os.lseek(file, 0, os.SEEK_CUR)
        os.lseek(file, position, os.SEEK_SET)
        try:
            msvcrt.locking(file, mode, 1)
        finally:
            os.lseek(file, before, os.SEEK_SET)

else:
    import fcntl

    def lock(file: int) -> bool:
        """Try to lock an opened file, without waiting; False if it is opened and locked elsewhere.

        The lock ends when the file is closed. Raises OSError on a file system without locks.
        """
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def lock_byte(file: int, position: int) -> bool:
        """Try to lock a byte, without waiting; False if another process holds the lock."""
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, position)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def unlock_byte(file: int, position: int) -> None:
        """End the lock of a byte."""
        fcntl.lockf(file, fcntl.LOCK_UN, 1, position)


def replace(file: FileIO, source: Path, target: Path) -> None:
    """Rename an opened file; on Windows it is closed first, and others may read it meanwhile."""
    end = time.monotonic() + SECONDS_OF_OTHERS
    while True:
        if not RENAMES_OPEN_FILES:
            file.close()
        try:
            return os.replace(source, target)
        except PermissionError:
            if RENAMES_OPEN_FILES or time.monotonic() > end:
                raise
            time.sleep(0.01)


def at_fork(**functions: Callable[[], object]) -> None:
    """Call `before`, `after_in_parent`, `after_in_child` at each fork, where there are forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**functions)


def limit(name: str) -> float:
    """The limit of this process that `ulimit` sets, "AS", "DATA" or "NOFILE"; inf without one."""
    try:
        import resource
    except ImportError:  # Windows has none
        return math.inf
    soft_limit = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0]
    return math.inf if soft_limit == resource.RLIM_INFINITY else soft_limit


def share_heaps(count: int) -> None:
    """Let threads that start later share so many heaps of memory, where the C library is glibc.

    By default there are up to eight a core, and each one keeps what its threads have freed.
    """
    _call_of_glibc("mallopt", M_ARENA_MAX, count)


def give_back_memory() -> None:
    """Give the free memory of all heaps to the system, where the C library is glibc."""
    _call_of_glibc("malloc_trim", 0)


def _call_of_glibc(name: str, *numbers: int) -> None:
    if sys.platform == "linux":
        function = getattr(ctypes.CDLL(None), name, None)  # other C libraries have none
        if function is not None:
            function(*numbers)


def usable_cores() -> int:
    """Number of cores on which this process may run."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
