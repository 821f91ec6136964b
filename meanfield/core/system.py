"""Differences between operating systems: files and their locks, processes, memory, folders.

All else in the package is the same on Linux, macOS and Windows, but for `networks.tokenizing`, a
program that limits itself.
"""

import ctypes
import math
import mmap
import os
import platform
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path

OPEN_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
RENAMES_OPEN_FILES = sys.platform != "win32"  # and removes them
SECONDS_OF_OTHERS = 2.0  # for which other processes may have a file open on Windows
LOCKED_BYTE = 2**30  # beyond the content: on Windows a locked byte cannot be read
M_ARENA_MAX = -8  # the option of glibc's `mallopt` that bounds the number of heaps
FFTW_FILES = ("pyfftw.*", "*fftw3-3*.dll")  # of pyfftw: linked to FFTW; on Windows FFTW itself
FREE = ("MemAvailable", "SwapFree")
CGROUPS = {  # by controller, "" for version 2: mount, files of limit and usage,
    # and the key of memory.stat for the cache that can be reclaimed
    "": ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    "memory": (
        *("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
        "total_inactive_file",
    ),
}

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

    def leave_terminal() -> None:
        ctypes.windll.kernel32.SetConsoleCtrlHandler(None, True)

    def limit(_name: str) -> float:
        return math.inf

    def _of_machine(_root: Path) -> float:
        """Bytes that this process may still commit, of memory and page files."""
        fields = (ctypes.c_uint64 * 8)(64)  # MEMORYSTATUSEX, which begins with its length
        ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(fields))
        return fields[4] or math.inf

else:
    import fcntl
    import resource

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

    def leave_terminal() -> None:
        """Keep Ctrl-C in the terminal from this process."""
        os.setpgid(0, 0)

    def limit(name: str) -> float:
        """The limit of this process that `ulimit` sets, "AS", "DATA" or "NOFILE"; inf if none."""
        soft_limit = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0]
        return math.inf if soft_limit == resource.RLIM_INFINITY else soft_limit

    def _of_machine(root: Path) -> float:
        """Available memory and swap in bytes; all memory if /proc/meminfo does not tell."""
        meminfo = dict(line.split(":", 1) for line in _lines(root / "proc/meminfo") if ":" in line)
        if "MemAvailable" in meminfo:
            return 1024 * sum(int(meminfo.get(name, "0").split()[0]) for name in FREE)
        try:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (ValueError, OSError):  # the system does not know these names
            return math.inf


# Files -------------------------------------------------------------------------------------------


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


def user_caches() -> Path | None:
    """The cache folder of this user by the conventions of the system; None without a home."""
    if sys.platform == "win32":
        setting, default = os.environ.get("LOCALAPPDATA"), "~/AppData/Local"
    elif sys.platform == "darwin":
        setting, default = None, "~/Library/Caches"
    else:
        setting, default = os.environ.get("XDG_CACHE_HOME"), "~/.cache"
    folder = Path(setting or default)
    with suppress(RuntimeError):  # there is no home
        folder = folder.expanduser()
    return folder if folder.is_absolute() else None


def private_folder(create: bool) -> Path | None:
    """The temporary folder of this user; None if it is missing or open to other users.

    Code that others write there would be executed. `create` makes the folder.
    """
    try:
        user = os.getuid() if hasattr(os, "getuid") else 0
        folder = Path(tempfile.gettempdir(), f"meanfield-{user}")
        if create:
            folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return None
    if not hasattr(os, "getuid"):  # Windows, where temporary files are each user's own
        return folder
    private = stat.S_ISDIR(status.st_mode) and not stat.S_IMODE(status.st_mode) & 0o077
    return folder if private and status.st_uid == user else None


# Processes ---------------------------------------------------------------------------------------


def at_fork(**functions: Callable[[], object]) -> None:
    """Call `before`, `after_in_parent`, `after_in_child` at each fork, where there are forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**functions)


def share_heaps(count: int) -> None:
    """Let threads that start later share so many heaps of memory, where the C library is glibc.

    By default there are up to eight a core, and each one keeps what its threads have freed.
    """
    _call_of_glibc("mallopt", M_ARENA_MAX, count)


def give_back_memory() -> None:
    """Give the free memory of all heaps to the system, where the C library is glibc."""
    _call_of_glibc("malloc_trim", 0)


def _call_of_glibc(name: str, *numbers: int) -> None:
    """Call a function of glibc; nothing happens without glibc."""
    if sys.platform == "linux":
        function = getattr(ctypes.CDLL(None), name, None)  # other C libraries have none
        if function is not None:
            function(*numbers)


def usable_cores() -> int:
    """Number of cores on which this process may run."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def pyshtools_has_wheel() -> bool:
    """Whether pip installs pyshtools here, by the condition in pyproject.toml."""
    version = sys.version_info[:2]
    if version < (3, 13):
        return True
    return sys.platform != "darwin" and (version < (3, 14) or platform.machine() != "aarch64")


# Memory ------------------------------------------------------------------------------------------


def available_memory(root: Path = Path("/")) -> int:
    """Bytes that this process can still allocate: the least of machine, container and ulimits.

    `root` is the folder that contains proc and sys.
    """
    limits = [_of_machine(root), *_of_containers(root), *_of_process(root)]
    return int(max(min(*limits, sys.maxsize), 0))


def _of_containers(root: Path) -> Iterator[float]:
    """Bytes left in each control group of this process and its parents, in versions 1 and 2."""
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, group_path = line.split(":", 2)
        names = CGROUPS.get("memory" if "memory" in controllers.split(",") else controllers)
        if names is None:
            continue
        mount, limit_file, usage_file, cache_entry = names
        group = root / mount / group_path.lstrip("/")
        for folder in (group, *group.parents):
            if not folder.is_relative_to(root / mount):
                break
            limit, usage = _lines(folder / limit_file), _lines(folder / usage_file)
            if limit and usage and limit[0].isdigit():
                counts = dict(entry.split() for entry in _lines(folder / "memory.stat"))
                yield int(limit[0]) - int(usage[0]) + int(counts.get(cache_entry, "0"))


def _of_process(root: Path) -> Iterator[float]:
    """Bytes left under the limits of `ulimit -v` and `ulimit -d`."""
    pages = [int(count) for line in _lines(root / "proc/self/statm") for count in line.split()]
    for name, column in (("AS", 0), ("DATA", 5)):
        byte_limit = limit(name)
        yield byte_limit - (pages[column] * mmap.PAGESIZE if pages else 0)


def _lines(path: Path) -> list[str]:
    """The lines of a system file; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
