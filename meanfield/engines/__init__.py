"""Engines: how sums over all pairs of tokens are computed, their velocities for instance."""

from .attention import AttentionSums
from .choice import Automatic, Direct, FieldSums, Modes, Summation, engine_for
from .circle import CircleModes
from .contract import Engine
from .direct import DirectSums, MeanDirection
from .sphere import SphereModes

__all__ = [
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
    "engine_for",
]
