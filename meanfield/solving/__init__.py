"""`solve`: any state under any model that supports it."""

from .solve import solve

__all__ = ["solve"]
