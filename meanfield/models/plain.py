"""Arrays as plain data that JSON can write, exact to the last bit."""

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["packed", "unpacked"]


def packed(array: np.ndarray) -> dict[str, Any]:
    """An array of floats as its shape and its bytes, little-endian, in base 64."""
    data = np.ascontiguousarray(array, dtype="<f8").tobytes()
    return {"shape": list(array.shape), "float64": base64.b64encode(data).decode()}


def unpacked(described: Mapping[str, Any]) -> np.ndarray:
    """The array that `packed` described."""
    data = base64.b64decode(described["float64"], validate=True)
    return np.frombuffer(data, "<f8").reshape(described["shape"]).astype(float)
