"""Quadrature of the uniform measure on S^(d-1) in the logarithm of the distance to a point.

With the polar angle theta = 2 arctan(e^s) the points near theta = 0 lie at s -> -infinity and
those near the antipode at s -> infinity, all with the relative accuracy of their distance, and
the uniform measure has the density

    rho(s) = Gamma(d/2) / (sqrt(pi) Gamma((d - 1)/2)) cosh(s)^-(d - 1).

The trapezoidal rule in a variable u with s + R tanh(s/b) = u converges exponentially: about half
of its nodes are in the bulk |s| < b, the others equally spaced in s. A flow that leaves the
antipode and gathers at theta = 0 shifts s, so that the rule resolves it however long it goes on.
"""

from math import lgamma, log, pi, sqrt

import numpy as np

__all__ = ["graded_rule"]

NEAR, FAR = 40.0, 55.0  # the rule leaves out the mass e^-40 at theta = 0, e^-55 at the antipode


def graded_rule(nodes: int, dimension: int, peak: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """s, increasing, and weights of sum 1, for densities with the maximum `peak`."""
    power = dimension - 1
    constant = lgamma(dimension / 2) - lgamma(power / 2) - log(pi) / 2
    near, far = (_beyond((amount + log(peak) + constant) / power) for amount in (NEAR, FAR))
    bulk, extra = 3 / sqrt(power), (near + far) / 2
    ends = [s + extra * np.tanh(s / bulk) for s in (-near, far)]
    spacing = (ends[1] - ends[0]) / nodes
    s = _solved(ends[0] + spacing * (np.arange(nodes) + 0.5), bulk, extra)
    slope = 1 / (1 + extra / bulk / np.cosh(s / bulk) ** 2)
    size = np.abs(s)
    log_cosh = size + np.log1p(np.exp(-2 * size)) - log(2)
    weights = slope * np.exp(-power * log_cosh)
    return s, weights / weights.sum()


def _beyond(y: float) -> float:
    """arccosh(e^y)."""
    return float(y + np.log1p(np.sqrt(-np.expm1(-2 * y))))


def _solved(u: np.ndarray, bulk: float, extra: float) -> np.ndarray:
    """s with s + extra tanh(s / bulk) = u, by bisection."""
    low, high = u - extra, u + extra
    for _ in range(64):
        s = (low + high) / 2
        above = s + extra * np.tanh(s / bulk) > u
        low, high = np.where(above, low, s), np.where(above, s, high)
    return (low + high) / 2
