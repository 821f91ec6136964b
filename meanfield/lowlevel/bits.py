"""Floats as integers, for maxima: compilers vectorise those of integers, not those of floats."""

import numpy as np
from numba import njit

__all__ = ["as_bits", "from_bits"]


@njit(inline="always")
def as_bits(x):
    """The bits of a float as an int64.

    Floats >= 0 are ordered like their bits, with inf and nan at the end and the bits of 0 first.
    Negative ones have negative bits: an integer maximum that starts from 0 passes them over.
    """
    return np.float64(x).view(np.int64)


@njit(inline="always")
def from_bits(bits):
    """The float with these bits."""
    return np.int64(bits).view(np.float64)
