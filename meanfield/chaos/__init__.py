"""Propagation of chaos: n tokens against the mean field."""

from .rates import Rate, rate_of
from .result import Study
from .study import propagation_of_chaos

__all__ = ["Rate", "Study", "propagation_of_chaos", "rate_of"]
