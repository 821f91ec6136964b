"""What is measured of a Gram matrix: the same as of tokens, as far as it is known."""

import numpy as np

from ...models.transformer import Transformer
from ...states import Gram
from .. import GramMotion
from .linkage import cluster_labels
from .pairs import mean_cosine

__all__ = ["measure"]


def measure(model: Transformer, state: Gram) -> dict[str, np.ndarray]:
    """Observables of Gram matrices under a model.

    Returns
    -------
    dict of ndarray, each of the shape of the replicas
        mass, order_parameter, mean_cosine, interaction_energy, effective_rank, cluster_count :
            as of tokens
        least_cosine : the smallest inner product
    """
    masses, G = state.masses, state.G
    square = np.einsum("...i,...ij,...j->...", masses, G, masses)
    root = np.sqrt(masses)
    values = np.linalg.eigvalsh(root[..., :, None] * G * root[..., None, :])
    shares = np.maximum(values, 0) / np.maximum(values, 0).sum(axis=-1, keepdims=True)
    logs = np.log(np.where(shares > 0, shares, 1.0))
    sets = [state] if not state.shape else [state[i] for i in np.ndindex(state.shape)]
    counts = [cluster_labels(one).max() + 1 for one in sets]
    return {
        "mass": masses.sum(axis=-1),
        "order_parameter": np.sqrt(np.maximum(square, 0)),
        "mean_cosine": mean_cosine(state),
        "interaction_energy": _energy(GramMotion(model, state), state),
        "effective_rank": np.exp(-(shares * logs).sum(axis=-1)),
        "cluster_count": np.array(counts, dtype=float).reshape(state.shape),
        "least_cosine": G.min(axis=(-2, -1)),
    }


def _energy(motion: GramMotion, state: Gram) -> np.ndarray:
    return motion.energy(motion.coordinates(state)).reshape(state.shape)
