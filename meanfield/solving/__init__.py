"""`solve` and `extend`: any state under any model that supports it."""

from .extension import extend
from .solve import solve

__all__ = ["extend", "solve"]
