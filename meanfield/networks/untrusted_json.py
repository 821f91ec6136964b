"""JSON of a model folder, which is not trusted: bounded in size, each key once."""

import json
from pathlib import Path
from typing import Any

from ..core.arrays import shown
from ..core.checks import as_given
from ..core.errors import StorageError
from ..core.files import regular_file


def json_of(path: Path, largest: int) -> dict[str, Any]:
    """The object in a JSON file of at most `largest` bytes; StorageError for anything else."""
    regular_file(path, largest)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}.") from None
    return object_of(content, path.name)


def object_of(content: bytes, where: str) -> dict[str, Any]:
    """The object that stands in JSON; StorageError, which begins with `where`, for others."""
    try:
        found = json.loads(content, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{where} is no JSON: {error!s:.200}.") from None
    if not isinstance(found, dict):
        raise StorageError(f"{where} must hold an object, found {as_given(found, 60)}.")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object each of whose keys stands there once; readers differ about which of two counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = set()
        for key, _ in pairs:
            if key in keys:
                raise ValueError(f"the key {shown(key)} is there twice")
            keys.add(key)
    return found
