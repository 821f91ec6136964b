"""Stationary states of the noisy equation, their stability, branches and phase diagrams."""

from .basins import Basins, basins
from .branches import branches, follow
from .diagram import Diagram, SpecialPoint, Transition
from .multistability import StationaryStates, stationary_states
from .phase_diagram import phase_diagram
from .phases import NoisePhaseDiagram, PhaseDiagram
from .special_curves import Cusp, Tricritical
from .stability import Stability
from .stationary import StationaryState, stability, stationary, symmetrised

__all__ = [
    "Basins",
    "Cusp",
    "Diagram",
    "NoisePhaseDiagram",
    "PhaseDiagram",
    "SpecialPoint",
    "Stability",
    "StationaryState",
    "StationaryStates",
    "Transition",
    "Tricritical",
    "basins",
    "branches",
    "follow",
    "phase_diagram",
    "stability",
    "stationary",
    "stationary_states",
    "symmetrised",
]
