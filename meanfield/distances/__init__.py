"""Distances between measures."""

from .distance import Distance
from .entropic import sinkhorn_divergence
from .kernel_norms import mmd, sobolev_distance
from .wasserstein import conditional_wasserstein, sliced_wasserstein, wasserstein

__all__ = [
    "Distance", "conditional_wasserstein", "mmd", "sinkhorn_divergence", "sliced_wasserstein",
    "sobolev_distance", "wasserstein",
]  # fmt: skip
