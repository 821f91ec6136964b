"""Tensors of a file in the format safetensors, whose header is not trusted."""

import json
from math import prod
from pathlib import Path

import numpy as np

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}
FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}
LARGEST_HEADER = 100_000_000


def header_of(path: Path) -> tuple[dict, int]:
    """Entries of a file by tensor, all checked, and where its numbers begin."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, LARGEST_HEADER):
            raise ValueError(
                f"{path.name} is truncated or no safetensors file: its header should have "
                f"{length} bytes, the file has {size}."
            )
        try:
            entries = json.loads(file.read(length))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path.name}: the header is no JSON ({error}).") from None
    if not isinstance(entries, dict):
        raise ValueError(f"{path.name}: the header must be an object, got {entries!r:.60}.")
    entries.pop("__metadata__", None)
    checked_layout(path, entries, size - 8 - length)
    return entries, 8 + length


def checked_layout(path: Path, entries: dict, available: int) -> None:
    """ValueError unless the tensors fill the numbers of the file without gap or overlap."""
    for name, entry in entries.items():
        where = f"{path.name}, tensor {name}"
        try:
            kind, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
            whole = all(type(k) is int and k >= 0 for k in [*shape, start, end])
        except (KeyError, TypeError, ValueError):
            whole = False
        if not whole:
            raise ValueError(
                f"{where}: expected dtype, shape and data_offsets of whole numbers >= 0, "
                f"found {entry!r:.100}."
            )
        if not isinstance(kind, str) or kind not in SIZES:
            raise ValueError(f"{where}: dtype must be one of {', '.join(SIZES)}, found {kind!r}.")
        if end - start != SIZES[kind] * prod(shape):
            raise ValueError(
                f"{where}: {kind} of shape {tuple(shape)} needs {SIZES[kind] * prod(shape)} bytes, "
                f"its offsets {start} to {end} hold {end - start}."
            )
    position = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        start, end = entry["data_offsets"]
        if start != position:
            fault = "overlaps another tensor" if start < position else "leaves a gap"
            raise ValueError(
                f"{path.name}, tensor {name} {fault}: expected to start at byte {position}, "
                f"found {start}."
            )
        position = end
    if position != available:
        raise ValueError(
            f"{path.name} is truncated or too long: its tensors need {position} bytes, "
            f"found {available}."
        )


def tensor_of(path: Path, name: str, entry: dict, begin: int, dtype) -> np.ndarray:
    """One tensor as an array of floats; bfloat16 and float16 are converted exactly."""
    kind, start = entry["dtype"], entry["data_offsets"][0]
    if kind != "BF16" and kind not in FLOATS:
        raise ValueError(f"{path.name}, tensor {name}: expected floats, found dtype {kind}.")
    raw = np.fromfile(
        path, FLOATS.get(kind, "<u2"), prod(entry["shape"]), offset=begin + start
    ).reshape(entry["shape"])
    if kind == "BF16":
        raw = (raw.astype("<u4") << 16).view("<f4")
    if not np.isfinite(raw).all():
        raise ValueError(f"{path.name}, tensor {name} has entries that are not finite.")
    return raw.astype(dtype)


def write(path: Path, tensors: dict[str, np.ndarray]) -> None:
    """Write float32 or float64 arrays to a file."""
    kinds = {"float32": "F32", "float64": "F64"}
    entries, position = {}, 0
    for name, array in tensors.items():
        entries[name] = {
            "dtype": kinds[array.dtype.name],
            "shape": array.shape,
            "data_offsets": [position, position + array.nbytes],
        }
        position += array.nbytes
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for array in tensors.values():
            file.write(np.ascontiguousarray(array).tobytes())
