"""Stationary states of the noisy equation, and their stability."""

from .find import stability, stationary
from .stability import Stability
from .state import StationaryState

__all__ = ["Stability", "StationaryState", "stability", "stationary"]
