"""Derivatives of runs: tangents, and gradients by the adjoint."""

from .adjoint import Functional, Gradient, gradient
from .flows import FlowTangents, StateChange
from .journal import Journal
from .lyapunov import LyapunovExponents, lyapunov_exponents
from .tangents import Tangents
from .variation import Variation

__all__ = [
    "FlowTangents",
    "Functional",
    "Gradient",
    "Journal",
    "LyapunovExponents",
    "StateChange",
    "Tangents",
    "Variation",
    "gradient",
    "lyapunov_exponents",
]
