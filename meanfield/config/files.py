"""The files of a run: where they lie beside each other, and their checksums."""

import hashlib
from os import PathLike
from pathlib import Path

__all__ = ["checkpoint_of", "checksum", "folder_of"]


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
