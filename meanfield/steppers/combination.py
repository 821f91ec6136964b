"""Combinations of slopes, of which every stage of a Runge-Kutta scheme is one."""

import numpy as np
from numba import njit

__all__ = ["combined"]

BLOCK = 2048  # floats of a sum: they stay in the cache next to the processor
NOTHING = np.empty(0)


def combined(
    weights: np.ndarray, slopes: np.ndarray, dt: float, x: np.ndarray | None = None
) -> np.ndarray:
    """x + dt sum_j weights_j slopes_j, of the shape of x; without x the sum alone, (N,).

    Slopes (s, N) of weight 0 are not read, nor those beyond the weights.
    """
    result = np.empty(slopes.shape[1] if x is None else x.shape)
    start = NOTHING if x is None else np.require(x.ravel(), requirements="W")  # one type only
    _combine(start, weights, slopes, dt, result.ravel())
    return result


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _combine(x, weights, slopes, dt, result):
    for begin in range(0, result.size, BLOCK):
        part = result[begin : begin + BLOCK]
        for i in range(part.size):
            part[i] = 0.0
        for j in range(weights.size):
            weight, slope = dt * weights[j], slopes[j, begin : begin + BLOCK]
            if weight != 0.0:
                for i in range(part.size):
                    part[i] += weight * slope[i]
        if x.size > 0:
            for i in range(part.size):
                part[i] += x[begin + i]
