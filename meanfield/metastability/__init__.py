"""Metastability: barriers of the free energy, and how long tokens stay near a state."""

from .escape_times import EscapeTime, escape_time
from .first_passages import first_passages
from .rare_events import FirstPassages, MeanEstimate, SplittingStudy
from .saddles import Saddle, Saddles, saddles
from .splitting import splitting
from .transition_paths import TransitionPath, transition_path

__all__ = [
    "EscapeTime",
    "FirstPassages",
    "MeanEstimate",
    "Saddle",
    "Saddles",
    "SplittingStudy",
    "TransitionPath",
    "escape_time",
    "first_passages",
    "saddles",
    "splitting",
    "transition_path",
]
