"""Stationary states of the noisy equation: found, judged, and followed as the noise changes."""

from .branches import branches
from .diagram import Diagram, SpecialPoint
from .find import stability, stationary
from .phase_diagram import PhaseDiagram, phase_diagram
from .stability import Stability
from .state import StationaryState
from .tricritical import Tricritical

__all__ = [
    "Diagram",
    "PhaseDiagram",
    "SpecialPoint",
    "Stability",
    "StationaryState",
    "Tricritical",
    "branches",
    "phase_diagram",
    "stability",
    "stationary",
]
