"""Engines: how sums over all pairs of tokens are computed, their velocities for instance."""

from .attention import AttentionSums
from .choice import Automatic, Direct, Modes, Summation, choose
from .circle import CircleModes
from .contract import Engine
from .direct import DirectSums
from .field import FieldSums
from .mean import MeanDirection
from .sphere import SphereModes

ENGINES = (Automatic, Direct, Modes, Summation)

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
