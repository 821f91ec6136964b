"""Stationary states of the noisy equation, their stability, branches and phase diagrams."""

from .basins import Basins, basins
from .branches import branches, follow
from .cycle import Cycle, cycle
from .cycle_branch import CycleBranch, CycleSpecial, cycles
from .cycle_onset import first_lyapunov
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
    "Cycle",
    "CycleBranch",
    "CycleSpecial",
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
    "cycle",
    "cycles",
    "first_lyapunov",
    "follow",
    "phase_diagram",
    "stability",
    "stationary",
    "stationary_states",
    "symmetrised",
]
