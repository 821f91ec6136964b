"""Propagation of chaos: n tokens against the mean field."""

from .result import Rate, Study, rate_of
from .study import propagation_of_chaos

__all__ = ["Rate", "Study", "propagation_of_chaos", "rate_of"]
