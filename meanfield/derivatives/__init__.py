"""Derivatives of runs: tangents, and gradients by the adjoint."""

from .adjoint import Functional, Gradient, gradient
from .flows import FlowTangents, StateChange
from .journal import DensityJournal
from .lyapunov import LyapunovExponents, lyapunov_exponents
from .tangents import Tangents
from .variation import Variation

__all__ = [
    "DensityJournal",
    "FlowTangents",
    "Functional",
    "Gradient",
    "LyapunovExponents",
    "StateChange",
    "Tangents",
    "Variation",
    "gradient",
    "lyapunov_exponents",
]
