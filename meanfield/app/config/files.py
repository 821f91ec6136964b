"""The files of a run: where they lie beside each other, and their checksums."""

import hashlib
from os import PathLike
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo

__all__ = ["ArrayName", "DataFile", "checkpoint_of", "checksum", "folder_of"]

DATA_FORMATS = (".npy", ".npz", ".csv")


def folder_of(source: Path | None) -> Path:
    """Where relative names of data files start: the folder of the configuration file.

    The working directory if the configuration does not come from a file (`source` is None).
    """
    return Path() if source is None else source.parent


def checkpoint_of(out: str | PathLike[str]) -> Path:
    """Where the checkpoint of a result file lies: beside it."""
    return Path(f"{out}.checkpoint")


def checksum(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _existing(file: str, info: ValidationInfo) -> str:
    path = folder_of((info.context or {}).get("source")) / file
    if path.suffix not in DATA_FORMATS:
        raise ValueError(f"expected a file named *.npy, *.npz or *.csv; got {file!r}")
    if not path.is_file():
        raise ValueError(f"there is no file {file!r}; looked for {path.absolute()}")
    return file


def _in_a_file_of_named_arrays(key: str | None, info: ValidationInfo) -> str | None:
    file = info.data.get("file", "*.npz")
    if key is not None and file is not None and not file.endswith(".npz"):
        raise ValueError(f"only .npz files hold named arrays; remove it for {file!r}")
    return key


DataFile = Annotated[str, AfterValidator(_existing)]
ArrayName = Annotated[str | None, AfterValidator(_in_a_file_of_named_arrays)]
