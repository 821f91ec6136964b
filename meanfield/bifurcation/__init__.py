"""Stationary states of the noisy equation, their stability, branches and phase diagrams."""

from .branches import branches, follow
from .diagram import Diagram, SpecialPoint, Transition
from .noise_lines import Cusp
from .noise_phases import NoisePhaseDiagram
from .phase_diagram import PhaseDiagram, Tricritical, phase_diagram
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
