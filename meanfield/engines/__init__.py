"""Engines: how sums over all pairs of tokens are computed, their velocities for instance."""

from ..core.public_names import with_hint
from .attention import AttentionSums
from .attention_modes import AttentionModes
from .causal import CausalAttention, CausalMean, CausalSums
from .causal_modes import CausalModes
from .choice import Automatic, Direct, Modes, Summation, engine_for
from .circle import CircleModes
from .combined import CombinedSums, PointValues
from .contract import Engine
from .direct import DirectSums, MeanDirection
from .field_sums import FieldSums
from .many_body import MomentSums
from .pair_kernels import PairSums
from .sphere import SphereModes

__all__ = [
    "AttentionModes",
    "AttentionSums",
    "Automatic",
    "CausalAttention",
    "CausalMean",
    "CausalModes",
    "CausalSums",
    "CircleModes",
    "CombinedSums",
    "Direct",
    "DirectSums",
    "Engine",
    "FieldSums",
    "MeanDirection",
    "Modes",
    "MomentSums",
    "PairSums",
    "PointValues",
    "SphereModes",
    "Summation",
    "engine_for",
]

__getattr__ = with_hint(__name__, __all__)
