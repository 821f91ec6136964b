"""Stationary states of the noisy equation: found, judged, and followed as the noise changes."""

from .branches import branches
from .diagram import Diagram
from .find import stability, stationary
from .follow import follow
from .ground import Transition
from .phase_diagram import PhaseDiagram, phase_diagram
from .searching import stationary_states
from .special_point import SpecialPoint
from .stability import Stability
from .state import StationaryState
from .tricritical import Tricritical

__all__ = [
    "Diagram",
    "PhaseDiagram",
    "SpecialPoint",
    "Stability",
    "StationaryState",
    "Transition",
    "Tricritical",
    "branches",
    "follow",
    "phase_diagram",
    "stability",
    "stationary",
    "stationary_states",
]
