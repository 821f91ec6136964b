"""Stationary states of the noisy equation: found, judged, and followed as the noise changes."""

from .branches import branches
from .diagram import Diagram, SpecialPoint
from .find import stability, stationary
from .stability import Stability
from .state import StationaryState

__all__ = [
    "Diagram",
    "SpecialPoint",
    "Stability",
    "StationaryState",
    "branches",
    "stability",
    "stationary",
]
