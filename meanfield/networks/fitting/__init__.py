"""Flows fitted to the layers of a network: estimating equations, intervals, tests, predictions."""

from .fit import Fit, fit

__all__ = ["Fit", "fit"]
