"""Files that are either the old one or the new one, never half of one."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from .errors import StorageError

__all__ = ["check_writable", "checksum", "write_atomically", "write_result"]


def write_result(path: Path, write: Callable[[Path], object]) -> Path:
    """`write_atomically` into a folder that exists; raises StorageError where that fails."""
    if not path.absolute().parent.is_dir():
        raise StorageError(f"The folder {path.parent} does not exist; create it first.")
    check_writable(path)
    try:
        return write_atomically(path, write)
    except OSError as error:
        raise StorageError(f"{path} could not be written: {error.strerror or error}.") from error


def write_atomically(path: Path, write: Callable[[Path], object]) -> Path:
    """Let `write` fill a temporary file beside `path`, flush it to disk, then rename it.

    If anything fails, a full disk for instance, the old file stays and the temporary one goes.
    """
    path = path.resolve()  # what a link points to is written, the link stays
    temporary = _beside(path)
    try:
        write(temporary)
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def check_writable(path: Path) -> None:
    """Raise StorageError, with the reason, if `write_atomically` could not write `path`."""
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise StorageError(f"{path} is not a file: expected the name of a file to write.")
    try:
        with open(_beside(path), "xb"):
            pass
        _beside(path).unlink()
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}.") from error


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def checksum(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
