"""What is measured along a run, for each representation of a state."""

from collections.abc import Sequence

import numpy as np

from ..characteristics import Characteristics
from ..model import Transformer
from ..states import Density
from . import characteristics, density

__all__ = ["MOMENTS", "measure", "measure_all"]

MOMENTS = density.MOMENTS


def measure(model: Transformer, state: Density | Characteristics) -> dict[str, np.ndarray]:
    """Observables of a state under a model: see `density.measure`, `characteristics.measure`."""
    kind = characteristics if isinstance(state, Characteristics) else density
    return kind.measure(model, state)


def measure_all(
    model: Transformer, states: Sequence[Density | Characteristics]
) -> dict[str, np.ndarray]:
    """`measure` at every time, stacked on a first axis, short lists of clusters padded with nan.

    For densities also the degree of each.
    """
    rows = [measure(model, state) for state in states]
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
