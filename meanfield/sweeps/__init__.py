"""Many runs: a function, or a configuration, at all points of a grid of parameters."""

from .result import Sweep
from .sweep import sweep

__all__ = ["Sweep", "sweep"]
