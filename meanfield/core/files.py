"""Files: results that are written whole or not at all, and arrays of numbers that are read."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from .checks import path_of
from .errors import StorageError

NUMBER_FORMATS = (".npy", ".npz", ".csv")


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


# Arrays of numbers -------------------------------------------------------------------------------


def read_numbers(path: str | Path, key: str | None = None) -> np.ndarray:
    """The array in a .npy file, one of a .npz file, or the numbers of a .csv file.

    Parameters
    ----------
    path : path
    key : str, optional
        Name of the array in a .npz file, which may be left out if it holds one only.

    Raises
    ------
    StorageError
        If there is no such file or array, or the file cannot be read as numbers.

    Notes
    -----
    One header line is allowed in .csv, which is separated by commas.
    """
    import zipfile

    path = path_of("path", path)
    if not path.is_file():
        raise StorageError(f"The file {path} does not exist (looked in {Path.cwd()}).")
    if path.suffix not in NUMBER_FORMATS:
        raise StorageError(f"Numbers are read from {', '.join(NUMBER_FORMATS)}; got {path}.")
    if key is not None and path.suffix != ".npz":
        raise StorageError(f"Only .npz files hold named arrays; leave key out for {path}.")
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        if path.suffix == ".npz":
            return _named(path, key)
        return _numbers(path.read_text(encoding="utf-8-sig"))
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise StorageError(f"{path} could not be read as numbers: {error}") from error


def _named(path: Path, key: str | None) -> np.ndarray:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        if key is None and len(arrays.files) == 1:
            (key,) = arrays.files
        if key not in arrays.files:
            raise ValueError(
                f"expected key to name one of the arrays in {path.name}: "
                f"{', '.join(arrays.files)}; got {'no key' if key is None else repr(key)}"
            )
        return arrays[key]


def _numbers(text: str) -> np.ndarray:
    """The rows of a comma separated table, without its header if there is one."""
    rows = [line.split(",") for line in text.splitlines() if line.strip()]
    try:
        [float(entry) for row in rows[:1] for entry in row]
    except ValueError:
        del rows[0]
    if not rows:
        raise ValueError("it has no numbers")
    numbers = np.array([[float(entry) for entry in row] for row in rows])
    return numbers[:, 0] if numbers.shape[1] == 1 else numbers
