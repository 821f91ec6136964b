"""Engines: how sums over all pairs of tokens are computed, their velocities for instance."""

from .attention import AttentionSums
from .choice import ENGINES, Automatic, Direct, Modes, Summation, choose
from .circle import CircleModes
from .contract import Engine
from .direct import DirectSums, MeanDirection
from .field import FieldSums
from .sphere import SphereModes

__all__ = [
    "ENGINES",
    "AttentionSums",
    "Automatic",
    "CircleModes",
    "Direct",
    "DirectSums",
    "Engine",
    "FieldSums",
    "MeanDirection",
    "Modes",
    "SphereModes",
    "Summation",
    "choose",
]
