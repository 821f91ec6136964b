"""Stationary states of the noisy equation, their stability, branches and phase diagrams."""

from .basins import Basins, basins
from .branches import branches, follow
from .diagram import Diagram, SpecialPoint, Transition
from .multistability import StationaryStates, stationary_states
from .noise_lines import Cusp
from .noise_phases import NoisePhaseDiagram
from .phase_diagram import PhaseDiagram, Tricritical, phase_diagram
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
