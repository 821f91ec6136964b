"""What is measured along a run, for each representation of a state."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...models.transformer import Transformer
from ...spaces.characteristics import Characteristics
from ...spaces.density import Density
from ...states import Equiangular, Gaussian, Gram, Tokens
from . import characteristics, density, equiangular, gaussian, gram, tokens
from .kernel_modes import KernelModes, kernel_modes
from .linkage import LINKED, cluster_labels, merge_events
from .pairs import inner_product_histogram, mean_cosine
from .tokens import effective_rank

__all__ = [
    "LINKED",
    "MOMENTS",
    "KernelModes",
    "cluster_labels",
    "effective_rank",
    "inner_product_histogram",
    "kernel_modes",
    "mean_cosine",
    "measure",
    "measure_all",
    "merge_events",
]

MOMENTS = density.MOMENTS


def measure(model: Transformer, state: Any, t: float = 0.0) -> dict[str, np.ndarray]:
    """Observables of a state under a model: see `measure` of the file for its representation."""
    match state:
        case Density():
            return density.measure(model, state)
        case Characteristics():
            return characteristics.measure(model, state)
        case Tokens():
            return tokens.measure(model, state, t)
        case Gram():
            return gram.measure(model, state)
        case Equiangular():
            return equiangular.measure(model, state, t)
        case Gaussian():
            return gaussian.measure(model, state, t)
    raise TypeError(f"Only states are measured; got {type(state).__name__}.")


def measure_all(
    model: Transformer, states: Sequence[Any], times: Sequence[float] | np.ndarray
) -> dict[str, np.ndarray]:
    """`measure` at every time, stacked on a first axis, short lists of clusters padded with nan.

    For densities also the degree of each.
    """
    rows = [measure(model, state, float(t)) for state, t in zip(states, times, strict=True)]
    for name in ("cluster_mass", "cluster_point"):
        if name in rows[0]:
            most = max(len(row[name]) for row in rows)
            for row in rows:
                missing = [(0, most - len(row[name]))] + [(0, 0)] * (row[name].ndim - 1)
                row[name] = np.pad(row[name], missing, constant_values=np.nan)
    table = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    if isinstance(states[0], Density):
        table["degree"] = np.array([state.geometry.degree for state in states])
    return table
