"""Files: atomic writes, locks for one run at a time, and checks that a path is a regular file."""

import hashlib
import math
import os
import re
import secrets
import socket
import stat
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Self

from . import system
from .errors import StorageError, StorageWarning

NUMBER_FORMATS = (".npy", ".npz", ".csv")
RESULT_FORMATS = (".nc",)
PART = ".part"  # suffix of temporary files
ABANDONED_AFTER = 3600.0  # seconds, where opened files can not be renamed
LONG_NAME = 230  # bytes of a name; file systems have 255
NEW = os.O_RDWR | os.O_CREAT | system.OPEN_FLAGS


def write_whole(path: Path, *pieces: bytes | memoryview) -> Path:
    """Write bytes to a file atomically, and flush it to disk.

    They go to a temporary file in the same folder, which is then renamed. If anything fails, such
    as on a full disk, the old file stays. Temporary files of killed processes are removed.

    Raises
    ------
    StorageError
        If there is no such folder, or the file cannot be written.
    """
    with _write_target(path) as target:
        with _temporary(target) as (temporary, file):
            if target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            for piece in pieces:
                left = memoryview(piece).cast("B")
                while left:
                    left = left[os.write(file.fileno(), left) :]
            os.fsync(file)
            system.replace(file, temporary, target)
        with suppress(OSError):  # not every system can flush a folder
            folder = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    return target


def check_writable(path: Path) -> None:
    """Raise StorageError, with the reason, if `write_whole` could not write `path`."""
    with _write_target(path) as target, _temporary(target):
        pass


@contextmanager
def _write_target(path: Path) -> Iterator[Path]:
    """Context with the file to write, `path` without symlinks; errors become a StorageError."""
    try:
        target = Path(os.path.realpath(path))  # the target of a link is written
        if target.is_symlink():
            raise StorageError(f"{path} could not be written: it is a symlink in a loop.")
        if not target.parent.is_dir():
            raise StorageError(
                f"{path}: the folder {target.parent} does not exist; create it first."
            )
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(target.stat().st_mode):
                raise StorageError(f"{path} is not a file: expected the name of a file to write.")
            if not os.access(target, os.W_OK):
                raise StorageError(f"{path} is write-protected: choose another name, or unlock it.")
        yield target
    except (OSError, ValueError) as error:  # a name with a NUL
        if isinstance(error, StorageError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise StorageError(f"{path} could not be written: {reason}.") from error


@contextmanager
def _temporary(target: Path) -> Iterator[tuple[Path, FileIO]]:
    """Context with a locked temporary file, in the folder of `target`, and its path."""
    begin = f".{_file_name(target.name)}."
    _remove_abandoned(target.parent, begin)
    while True:
        path = target.with_name(f"{begin}{secrets.token_hex(8)}{PART}")
        with FileIO(os.open(path, NEW | os.O_EXCL, 0o666), "r+") as file:
            with suppress(OSError):  # a file system without locks
                if not system.lock(file.fileno()):  # taken for abandoned before it was locked
                    continue
            if os.fstat(file.fileno()).st_nlink == 0:  # abandoned, and removed
                continue
            try:
                yield path, file
            finally:
                if not system.RENAMES_OPEN_FILES:
                    file.close()
                path.unlink(missing_ok=True)
            return


def _remove_abandoned(folder: Path, prefix: str) -> None:
    """Remove temporary files whose processes have ended: without lock, on Windows an hour old."""
    name_pattern = re.compile(re.escape(prefix) + rf"[0-9a-f]{{16}}\{PART}")
    with suppress(OSError):  # what cannot be removed stays
        for name in os.listdir(folder):
            if name_pattern.fullmatch(name):
                with suppress(OSError):
                    if not system.RENAMES_OPEN_FILES:  # its process could not rename it now
                        if time.time() - (folder / name).stat().st_mtime > ABANDONED_AFTER:
                            (folder / name).unlink()
                        continue
                    with open(folder / name, "r+b") as file:
                        if system.lock(file.fileno()):  # held until it is removed
                            (folder / name).unlink()


def _file_name(name: str) -> str:
    """The name, or its SHA-256 if a suffix would make it too long."""
    return (
        name
        if len(os.fsencode(name)) < LONG_NAME
        else hashlib.sha256(os.fsencode(name)).hexdigest()
    )


class Lock:
    """Lock of a file for one run at a time, of this process or another.

    A separate file in the same folder is locked. The lock ends with its process.

    Parameters
    ----------
    path : Path
        The file to lock, which may be replaced meanwhile.

    Raises
    ------
    StorageError
        If another run has the lock; the message names its process.

    Warns
    -----
    StorageWarning
        On a file system without locks, where two runs on one file are not noticed.
    """

    def __init__(self, path: Path) -> None:
        """Create and lock `.NAME.lock` next to the file, anew if it was removed before that."""
        with _write_target(path) as target:
            self._path = target.with_name(f".{_file_name(target.name)}.lock")
            while True:
                self._file = os.open(self._path, NEW, 0o666)
                self._take(path)
                if self._is_there():
                    break
                os.close(self._file)  # removed by the run that had it before
        HELD_LOCKS.add(self)
        with suppress(OSError):  # a full disk
            os.ftruncate(self._file, 0)
            os.write(self._file, f"process {os.getpid()} on {socket.gethostname()}".encode())

    def _take(self, path: Path) -> None:
        """Lock without waiting; StorageError if another process has the lock."""
        try:
            locked = system.lock(self._file)
        except OSError:
            words = "cannot be locked on this file system: let one run only write to it."
            warnings.warn(f"{path} {words}", StorageWarning, stacklevel=6)
            return
        os.lseek(self._file, 0, os.SEEK_SET)
        if not locked:
            holder = os.read(self._file, 200).decode(errors="replace") or "another process"
            os.close(self._file)
            raise StorageError(
                f"{path} is in use by another run, of {holder}. Let it end, or use another file."
            )

    def _is_there(self) -> bool:
        """Whether the path of the lock still leads to the opened file."""
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self._file), os.stat(self._path))
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.release()

    def release(self) -> None:
        """Remove the lock file and end the lock."""
        is_held = self in HELD_LOCKS and self._is_there()
        if not system.RENAMES_OPEN_FILES:
            self.forget()
        if is_held:
            with suppress(PermissionError, FileNotFoundError):  # another run opened or removed it
                self._path.unlink()
        self.forget()

    def forget(self) -> None:
        """Close the lock file without removing it, as in a forked process."""
        if self in HELD_LOCKS:
            HELD_LOCKS.remove(self)
            os.close(self._file)


HELD_LOCKS: set[Lock] = set()  # of this process


def _forget_all() -> None:
    for lock in list(HELD_LOCKS):
        lock.forget()


system.at_fork(after_in_child=_forget_all)


def checksum(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def regular_file(path: Path, largest: float = math.inf) -> int:
    """The size of a file in bytes; nothing of it is read.

    Raises
    ------
    StorageError
        If there is no such file, if it is not a regular file (a pipe or a device may have no end),
        or if it has more bytes than `largest`.
    """
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StorageError(f"{path} cannot be read: {reason}.") from None
    if not stat.S_ISREG(status.st_mode):
        raise StorageError(f"{path} must be a file; it is {_kind_of(status.st_mode)}.")
    if status.st_size > largest:
        raise StorageError(
            f"{path} must have at most {largest:.0f} bytes; it has {status.st_size}."
        )
    return status.st_size


def _kind_of(mode: int) -> str:
    """A description, from its mode, of a path that is not a regular file."""
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")
