"""How far measures are from each other."""

from .conditional import conditional_wasserstein
from .distance import Distance
from .entropic import sinkhorn_divergence
from .mmd import mmd
from .sliced import sliced_wasserstein
from .sobolev import sobolev_distance
from .wasserstein import wasserstein

__all__ = [
    "Distance",
    "conditional_wasserstein",
    "mmd",
    "sinkhorn_divergence",
    "sliced_wasserstein",
    "sobolev_distance",
    "wasserstein",
]
