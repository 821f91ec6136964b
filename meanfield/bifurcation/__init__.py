"""Stationary states of the noisy equation, their stability, branches and phase diagrams."""

from .branches import branches, follow
from .diagram import Diagram, SpecialPoint, Transition
from .phase_diagram import phase_diagram
from .phases import NoisePhaseDiagram, PhaseDiagram
from .special_curves import Cusp, Tricritical
from .stability import Stability
from .stationary import StationaryState, stability, stationary, stationary_states, symmetrised

__all__ = [
    "Cusp",
    "Diagram",
    "NoisePhaseDiagram",
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
    "symmetrised",
]
