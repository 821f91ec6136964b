"""Files of networks, which are not trusted: JSON, texts, and tensors in the format safetensors."""

import json
import math
from collections import Counter
from math import prod
from pathlib import Path

import numpy as np

from meanfield import StorageError
from meanfield.extending import Json, JsonTable, as_given, regular_file, require, shown

DTYPE_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}
FLOAT_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}
LARGEST_HEADER = 8_000_000  # bytes; a tensor takes about 100
MOST_AXES, LARGEST_NUMBER = 8, 2**63  # axes of a tensor; strict bound of numbers in a header


def bytes_of(path: Path, largest: float = math.inf, start: int = 0, count: int = -1) -> bytes:
    """`count` bytes of a file of at most `largest` bytes, by default all; or StorageError."""
    regular_file(path, largest)
    try:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(count)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}.") from None


def text_of(path: Path, largest: int) -> str:
    """The text of a file of at most `largest` bytes; raise StorageError unless it is UTF-8."""
    try:
        return bytes_of(path, largest).decode("utf-8")
    except UnicodeDecodeError as error:
        raise StorageError(f"{path} must be a text in UTF-8; {error}.") from None


def json_of(path: Path, largest: int) -> JsonTable:
    """The object in a JSON file of at most `largest` bytes; raise StorageError for others."""
    return object_of(bytes_of(path, largest), path.name)


def object_of(content: bytes, label: str) -> JsonTable:
    """The object in JSON; raise StorageError, which begins with `label`, for others."""
    try:
        value = json.loads(content, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{label} is no JSON: {error!s:.200}.") from None
    if not isinstance(value, dict):
        raise StorageError(f"{label} must hold an object, found {as_given(value, 60)}.")
    return value


def _without_repeats(pairs: list[tuple[str, Json]]) -> JsonTable:
    """A dict of pairs; raise ValueError for a repeated key, which readers resolve differently."""
    result = dict(pairs)
    if len(result) < len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {shown(twice)} is there twice")
    return result


def header_of(path: Path) -> tuple[dict[str, Json], int]:
    """The checked entries of a file's header by tensor, and the offset of the data in bytes."""
    size = regular_file(path)
    length = int.from_bytes(bytes_of(path, count=8), "little")
    if size < 8 or length > min(size - 8, LARGEST_HEADER):
        raise StorageError(
            f"{path.name} is truncated or no safetensors file: its header should have "
            f"{length} bytes, the file has {size}, and a header at most {LARGEST_HEADER}."
        )
    entries = object_of(bytes_of(path, start=8, count=length), f"{path.name}: the header")
    entries.pop("__metadata__", None)
    checked_layout(path, entries, size - 8 - length)
    return entries, 8 + length


def checked_layout(path: Path, entries: JsonTable, available: int) -> None:
    """Raise StorageError unless the tensors fill the file without gap or overlap."""
    for name, entry in entries.items():
        label = f"{path.name}, tensor {shown(name)}"
        try:
            kind, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
            numbers = [*shape, start, end]
            is_valid = all(type(k) is int and 0 <= k < LARGEST_NUMBER for k in numbers)
        except (KeyError, TypeError, ValueError):
            is_valid = False
        expected = f"dtype, shape of at most {MOST_AXES} axes and data_offsets, whole numbers >= 0 "
        is_valid = is_valid and len(shape) <= MOST_AXES
        require(f"{label}: its entry", entry, f"{expected}and below 2^63", is_valid, StorageError)
        is_known = isinstance(kind, str) and kind in DTYPE_BYTES
        require(f"{label}: dtype", kind, f"one of {', '.join(DTYPE_BYTES)}", is_known, StorageError)
        if end - start != (size := DTYPE_BYTES[kind] * prod(shape)):
            raise StorageError(
                f"{label}: {kind} of shape {tuple(shape)} needs {size} bytes, its offsets {start} "
                f"to {end} hold {end - start}."
            )
    position = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        start, end = entry["data_offsets"]
        if start != position:
            fault = "overlaps another tensor" if start < position else "leaves a gap"
            raise StorageError(
                f"{path.name}, tensor {shown(name)} {fault}: expected to start at byte {position}, "
                f"found {start}."
            )
        position = end
    if position != available:
        raise StorageError(
            f"{path.name} is truncated or too long: its tensors need {position} bytes, "
            f"found {available}."
        )


def tensor_of(path: Path, name: str, entry: JsonTable, begin: int, dtype: np.dtype) -> np.ndarray:
    """One tensor as an array of floats; bfloat16 and float16 are converted exactly."""
    kind, start, shape = entry["dtype"], entry["data_offsets"][0], entry["shape"]
    label = f"{path.name}, tensor {shown(name)}"
    if kind != "BF16" and kind not in FLOAT_DTYPES:
        raise StorageError(f"{label}: expected floats, found dtype {kind}.")
    try:
        values = np.fromfile(path, FLOAT_DTYPES.get(kind, "<u2"), prod(shape), offset=begin + start)
        values = values.reshape(shape)
    except (OSError, ValueError) as error:  # the file changed after its header was read
        raise StorageError(f"{label} cannot be read: {error}.") from None
    if kind == "BF16":
        values = (values.astype("<u4") << 16).view("<f4")
    with np.errstate(over="ignore"):
        array = values.astype(dtype)
    if not np.isfinite(array).all():
        fault = "not finite" if not np.isfinite(values).all() else f"beyond {np.dtype(dtype)}"
        raise StorageError(f"{label} has entries that are {fault}.")
    return array


def write(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """Write float32 or float64 arrays to a file."""
    entries, position = {}, 0
    for name, array in tensors.items():
        kind, end = {"float32": "F32", "float64": "F64"}[array.dtype.name], position + array.nbytes
        entries[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [position, end]}
        position = end
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for array in tensors.values():
            file.write(np.ascontiguousarray(array).tobytes())
