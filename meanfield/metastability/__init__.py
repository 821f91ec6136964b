"""Metastability: barriers of the free energy, and how long tokens stay near a state."""

from .saddles import Saddle, Saddles, saddles
from .transition_paths import TransitionPath, transition_path

__all__ = ["Saddle", "Saddles", "TransitionPath", "saddles", "transition_path"]
