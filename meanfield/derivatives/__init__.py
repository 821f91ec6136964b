"""Derivatives of runs: tangents, and gradients by the adjoint."""

from .adjoint import Functional, Gradient, gradient
from .journal import Journal
from .tangents import Tangents
from .variation import Variation

__all__ = ["Functional", "Gradient", "Journal", "Tangents", "Variation", "gradient"]
