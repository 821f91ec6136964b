"""Hidden states of a Transformer: inner products, and densities on a circle, layer by layer."""

from pathlib import Path

import numpy as np
from alignment import distance

import meanfield as mf

__all__ = ["densities", "inner_products", "read", "sampling_floor"]

CIRCLE = mf.Circle(degree=256)


def read(path: Path, key: str = "hidden") -> np.ndarray:
    """Hidden states (layers, n, d) as double precision numbers."""
    with np.load(path) as arrays:
        return arrays[key].astype(float)


def inner_products(tokens: np.ndarray) -> np.ndarray:
    """<x_i, x_j> of all pairs i < j of the normalised tokens (n, d)."""
    unit = tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
    return (unit @ unit.T)[np.triu_indices(len(unit), k=1)]


def densities(layers: np.ndarray) -> list[mf.Density]:
    """Density of every layer on the circle of its own two leading principal directions."""
    return [CIRCLE.estimate(mf.principal_circle(tokens)) for tokens in layers]


def sampling_floor(tokens: np.ndarray, *, rng, repeats: int = 10) -> float:
    """Mean distance between the densities of two halves of the same tokens.

    Two samples of one law are not at distance 0: nothing below this can be told apart.
    """
    rng = np.random.default_rng(rng)
    points = mf.principal_circle(tokens)
    found = []
    for _ in range(repeats):
        first, second = np.array_split(rng.permutation(points), 2)
        found.append(distance(CIRCLE.estimate(first), CIRCLE.estimate(second))[0])
    return float(np.mean(found))
