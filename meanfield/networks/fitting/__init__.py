"""Flows fitted to the layers of a network: estimating equations, intervals, tests, predictions."""

from .fit import fit
from .fitted import Fit

__all__ = ["Fit", "fit"]
