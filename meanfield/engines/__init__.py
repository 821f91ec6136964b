"""Engines: how the velocities of interacting tokens are computed."""

from .choice import Automatic, Direct, Modes, choose
from .circle import CircleModes
from .contract import Engine
from .direct import DirectSums
from .mean import MeanDirection
from .sphere import SphereModes

__all__ = [
    "Automatic",
    "CircleModes",
    "Direct",
    "DirectSums",
    "Engine",
    "MeanDirection",
    "Modes",
    "SphereModes",
    "choose",
]
