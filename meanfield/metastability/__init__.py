"""Metastability: barriers of the free energy, and how long tokens stay near a state."""

from .saddles import Saddle, Saddles, saddles

__all__ = ["Saddle", "Saddles", "saddles"]
