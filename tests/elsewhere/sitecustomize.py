"""Python as on a system without what only Linux and macOS have, for `make test-elsewhere`.

It is imported at the start of each process of the tests, and changes Python when meanfield is
imported: files are locked as on Windows, by a module msvcrt of a few lines; opened files cannot be
renamed or removed; there is no fork, no group or limit of processes, no timer of processor time;
the memory is what two functions of Windows tell, as there is no /proc.
"""

import ctypes
import errno
import importlib.abc
import importlib.machinery
import os
import struct
import sys
import threading
import types
from pathlib import Path

MODULE = "meanfield.core.system"
POSIX_ONLY = ("fork", "forkpty", "register_at_fork", "pread", "pwrite", "fchmod", "sysconf")
POSIX_ONLY += ("sched_getaffinity", "O_CLOEXEC", "setpgid", "setsid")
MEMORY = 2**34  # bytes that a process may commit


def locking(file, mode, count):
    """Lock or unlock bytes at the position of a file; they belong to who opened it."""
    import fcntl

    kind = fcntl.F_UNLCK if mode == windows.LK_UNLCK else fcntl.F_WRLCK
    begin = os.lseek(file, 0, os.SEEK_CUR)
    try:
        wanted = struct.pack("hhqqi4x", kind, os.SEEK_SET, begin, count, 0)
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, wanted)
    except OSError:
        raise PermissionError(errno.EACCES, "Permission denied") from None


windows = types.SimpleNamespace(LK_NBLCK=2, LK_UNLCK=0, locking=locking)


class Kernel:
    """Functions of Windows that `meanfield.core.system` calls."""

    leave_group = staticmethod(os.setpgid)

    def SetConsoleCtrlHandler(self, handler, ignores):
        """Keep Ctrl-C from this process."""
        assert handler is None and ignores
        self.leave_group(0, 0)
        return 1

    def GlobalMemoryStatusEx(self, status):
        """Fill a structure MEMORYSTATUSEX, which tells its own length."""
        assert status._obj[0] == ctypes.sizeof(status._obj) == 64
        status._obj[4] = MEMORY
        return 1


in_turn = threading.RLock()  # no file is opened between the check of a call and the call


def refused_while_open(function):
    """A call that renames or removes a file, refused while this process has it open."""

    def call(path, *others, **options):
        with in_turn:
            for file in os.listdir("/proc/self/fd"):
                try:
                    opened = os.readlink(f"/proc/self/fd/{file}")
                except OSError:
                    continue
                if opened == os.path.realpath(path):
                    raise PermissionError(errno.EACCES, "It is used by a process", str(path))
            return function(path, *others, **options)

    return call


def opened_in_turn(*given, open_file=os.open, **options):
    with in_turn:
        return open_file(*given, **options)


class Elsewhere(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finder and loader of `meanfield.core.system`, which changes Python first."""

    def find_spec(self, name, path=None, target=None):
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        self.spec = importlib.machinery.PathFinder.find_spec(name, path)
        return importlib.machinery.ModuleSpec(name, self, origin=self.spec.origin)

    def exec_module(self, module):
        import numba  # noqa: F401  what it imports stays as it is

        module.__file__ = self.spec.origin
        before, sys.platform = sys.platform, "win32"
        sys.modules["msvcrt"], sys.modules["resource"] = windows, None
        ctypes.windll = types.SimpleNamespace(kernel32=Kernel())
        for name in POSIX_ONLY:
            vars(os).pop(name, None)
        try:
            exec(self.spec.loader.get_code(MODULE), vars(module))
        finally:
            sys.platform = before
        module.available_memory.__defaults__ = (Path("no proc"),)
        os.replace, os.unlink = refused_while_open(os.replace), refused_while_open(os.unlink)
        os.open = opened_in_turn


sys.meta_path.insert(0, Elsewhere())
