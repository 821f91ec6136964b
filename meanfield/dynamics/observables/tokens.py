"""What is measured of tokens: means, energies, rank, clusters."""

import numpy as np

from ...models import ZonalDrift
from ...models.transformer import Transformer
from ...states import Tokens
from .. import TokenMotion
from .linkage import MANY, cluster_labels
from .pairs import mean_cosine

__all__ = ["effective_rank", "measure"]


def measure(model: Transformer, tokens: Tokens, t: float = 0.0) -> dict[str, np.ndarray]:
    """Observables of tokens, or of replicas of them, under a model.

    Returns
    -------
    dict of ndarray, each of the shape of the replicas
        mass : sum of the masses
        order_parameter : |sum_i m_i x_i|
        mean_cosine : mean of <x_i, x_j> over pairs i != j; in R^d of the directions
        interaction_energy : E = (1/2) sum_ij m_i m_j W(<x_i, x_j>), for zonal drifts; else nan
        speed : (sum_i m_i |v_i|^2)^(1/2), without noise
        effective_rank : exp of the entropy of the eigenvalues of sum_i m_i x_i x_i^T
        cluster_count : by single linkage, gaps up to arccos 0.9999 (in R^d: that distance); nan
            for more than 20000 tokens in d > 3
        mean_radius : sum_i m_i r_i, where tokens have radii
        spread : in R^d, the root mean square distance from the mean

    Notes
    -----
    Cost: that of a velocity, and n d min(n, d) operations.
    """
    motion = TokenMotion(model, tokens)
    y = motion.coordinates(tokens)
    squares = (motion.velocity(y, t)[..., : tokens.dimension] ** 2).sum(axis=-1)
    mean = np.einsum("...i,...id->...d", tokens.masses, tokens.x)
    found = {
        "mass": tokens.masses.sum(axis=-1),
        "order_parameter": np.linalg.norm(mean, axis=-1),
        "mean_cosine": mean_cosine(tokens),
        "interaction_energy": _energy(motion, y, tokens),
        "speed": np.sqrt((motion.masses(y) * squares).sum(axis=-1)).reshape(tokens.shape),
        "effective_rank": effective_rank(tokens),
        "cluster_count": _cluster_counts(tokens),
    }
    if tokens.radii is not None:
        found["mean_radius"] = (tokens.masses * tokens.radii).sum(axis=-1)
    if not tokens.on_sphere:
        gaps = ((tokens.x - mean[..., None, :]) ** 2).sum(axis=-1)
        found["spread"] = np.sqrt((tokens.masses * gaps).sum(axis=-1))
    return found


def effective_rank(tokens: Tokens) -> np.ndarray:
    """exp(-sum_k p_k log p_k), p the eigenvalues of sum_i m_i x_i x_i^T over their sum."""
    weighted = np.sqrt(tokens.masses)[..., None] * tokens.x
    squares = np.linalg.svd(weighted, compute_uv=False) ** 2
    shares = squares / squares.sum(axis=-1, keepdims=True)
    logs = np.log(np.where(shares > 0, shares, 1.0))
    return np.exp(-(shares * logs).sum(axis=-1))


def _energy(motion: TokenMotion, y: np.ndarray, tokens: Tokens) -> np.ndarray:
    if not isinstance(motion.model.drift, ZonalDrift):
        return np.full(tokens.shape, np.nan)
    return motion.energy(y).reshape(tokens.shape)


def _cluster_counts(tokens: Tokens) -> np.ndarray:
    if len(tokens) > MANY and tokens.dimension > 3:
        return np.full(tokens.shape, np.nan)
    sets = [tokens] if not tokens.shape else [tokens[i] for i in np.ndindex(tokens.shape)]
    counts = [cluster_labels(one).max() + 1 for one in sets]
    return np.array(counts, dtype=float).reshape(tokens.shape)
