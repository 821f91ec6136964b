"""From a file of numbers to points of the circle or the sphere."""

from pathlib import Path

import numpy as np

from ...core.number_files import read_numbers
from ...spaces.projection import principal_circle, principal_sphere
from .initial import Sample

__all__ = ["read_sample"]


def read_sample(sample: Sample, path: Path, dimension: int = 2) -> np.ndarray:
    """Angles (n,) or unit vectors (n, dimension) from the file of a `sample` table.

    For the circle, dimension 2, an array (n,) holds angles in radians and one of shape (n, 2)
    unit vectors; for the sphere, dimension 3, unit vectors have shape (n, 3). They are returned
    as they are. Hidden states (n, d), or one layer of (layers, n, d), of larger d are projected
    on their leading principal directions, as many as `dimension`, and then normalised.

    Raises
    ------
    ValueError
        If the file does not hold real numbers, or not in one of these shapes.
    """
    tokens = _one_layer(_load(path, sample.key), sample.layer)
    if not np.isfinite(tokens).all():
        count = np.count_nonzero(~np.isfinite(tokens))
        raise ValueError(f"expected finite numbers in {path.name}; {count} are nan or infinite")
    if tokens.ndim == 1 or tokens.shape[1] <= dimension:
        return tokens
    return principal_circle(tokens) if dimension == 2 else principal_sphere(tokens)


def _one_layer(array: np.ndarray, layer: int | None) -> np.ndarray:
    if array.ndim not in (1, 2, 3) or 0 in array.shape:
        raise ValueError(
            "expected angles (n,), unit vectors (n, 2) or hidden states (n, d) or "
            f"(layers, n, d), none of them empty; got shape {array.shape}"
        )
    if array.ndim < 3:
        if layer is not None:
            raise ValueError(f"layer = {layer} needs an array (layers, n, d); got {array.shape}")
        return array
    if layer is None or layer >= len(array):
        raise ValueError(
            f"the array has {len(array)} layers: expected layer = 0 to {len(array) - 1}; "
            f"got {'none' if layer is None else layer}"
        )
    return array[layer]


def _load(path: Path, key: str | None) -> np.ndarray:
    array = read_numbers(path, key)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"expected real numbers in {path.name}; got an array of {array.dtype}")
    return array.astype(float)
