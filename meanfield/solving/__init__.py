"""`solve` and `extend`: any state under any model that supports it; results at any time."""

from .evaluation import evaluated
from .extension import extend
from .solve import solve

__all__ = ["evaluated", "extend", "solve"]
