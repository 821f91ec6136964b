"""Densities followed along characteristics: nodes of a quadrature that the flow carries."""

from .clusters import Cluster
from .state import Characteristics

__all__ = ["Characteristics", "Cluster"]
