"""Reader of untrusted JSON files: bounded in size, without repeated keys."""

import json
from pathlib import Path
from typing import Any

from meanfield import StorageError
from meanfield.extending import as_given, regular_file, shown


def json_of(path: Path, largest: int) -> dict[str, Any]:
    """The object in a JSON file of at most `largest` bytes; raise StorageError for others."""
    regular_file(path, largest)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}.") from None
    return object_of(content, path.name)


def object_of(content: bytes, where: str) -> dict[str, Any]:
    """The object in JSON; raise StorageError, which begins with `where`, for others."""
    try:
        value = json.loads(content, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{where} is no JSON: {error!s:.200}.") from None
    if not isinstance(value, dict):
        raise StorageError(f"{where} must hold an object, found {as_given(value, 60)}.")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A dict of pairs; raise ValueError for a repeated key, which readers resolve differently."""
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = set()
        for key, _ in pairs:
            if key in keys:
                raise ValueError(f"the key {shown(key)} is there twice")
            keys.add(key)
    return result
