"""Arrays of numbers read from .npy, .npz and .csv files."""

import os
import zipfile
from pathlib import Path

import numpy as np

from .errors import StorageError

__all__ = ["read_numbers"]

FORMATS = (".npy", ".npz", ".csv")


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
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"Numbers are read from a file given by its path; got {path!r}.")
    path = Path(path)
    if not path.is_file():
        raise StorageError(f"The file {path} does not exist (looked in {Path.cwd()}).")
    if path.suffix not in FORMATS:
        raise StorageError(f"Numbers are read from {', '.join(FORMATS)}; got {path}.")
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
    if rows and not _is_numeric(rows[0]):
        del rows[0]
    if not rows:
        raise ValueError("it has no numbers")
    numbers = np.array([[float(entry) for entry in row] for row in rows])
    return numbers[:, 0] if numbers.shape[1] == 1 else numbers


def _is_numeric(row: list[str]) -> bool:
    try:
        [float(entry) for entry in row]
    except ValueError:
        return False
    return True
