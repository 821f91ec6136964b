"""Effective number of tokens that softmax attention attends to, and critical strengths of logits.

With weights w_j = e^{l_j}/S, S = sum_j e^{l_j}, over n tokens, this number is 1/sum_j w_j^2.
For independent logits 1/S^2 = int_0^inf s e^{-sS} ds gives, with v = l_max - l for any l_max,

    E sum_j w_j^2 = n int s E[e^{-2v} e^{-s e^{-v}}] (E e^{-s e^{-v}})^{n-1} ds

exactly at any n. The logits are critical if it is 1/4. For equiangular tokens this is the
transition of long contexts: a token attends to itself with the weight 1/2, and
beta (1 - rho) = log n, up to O(1/n).

References
----------
Chen, Lin, Polyanskiy and Rigollet, arXiv:2510.05554, for log n/(1 - rho); arXiv:2605.08505 for
n^{2/(d-1)}; Derrida, Phys. Rev. B 24 (1981), the random energy model, for Gaussian logits.
"""

from collections.abc import Callable

import numpy as np

CRITICAL_SQUARES = 0.25  # sum of squared weights at which a context counts as critical
# Step in logarithms of trapezoidal rules, whose errors are about e^(-pi^2/TRAPEZOID_STEP)
TRAPEZOID_STEP = 0.15
PANEL_RULE = np.polynomial.legendre.leggauss(8)


def squares(n: float, v: np.ndarray, mass: np.ndarray) -> float:
    """E sum_j w_j^2 of n independent logits -v, whose law has masses `mass` at the nodes `v`."""
    log = np.logaddexp.reduce(np.log(mass) - 2 * v)
    x = -(log + np.log(n)) / 2 - 18  # start of the integral over log s; below, less than e^-36
    total, peak = 0.0, 0.0
    while True:
        levels = x + TRAPEZOID_STEP * np.arange(64)
        y = levels[:, None] - v
        scaled = np.exp(np.minimum(y, 700.0))
        excess = np.expm1(-scaled) @ mass
        with np.errstate(divide="ignore"):
            left = np.exp((n - 1) * np.log1p(np.maximum(excess, -1.0)))
        parts = left * (np.exp(np.minimum(2 * y, 700.0) - scaled) @ mass)
        total, peak = total + parts.sum(), max(peak, parts.max())
        if peak > 0 and parts[-1] < 1e-17 * peak:
            return float(n * TRAPEZOID_STEP * total)
        x = levels[-1] + TRAPEZOID_STEP


def of_gaussian(n: float, deviation: float) -> float:
    """E sum_j w_j^2 of n independent Gaussian logits of standard deviation `deviation`."""
    if deviation == 0:
        return 1 / n
    h = min(0.1, TRAPEZOID_STEP / deviation)
    g = np.arange(-10.0, 10.0 + 2 * min(deviation, np.sqrt(2 * np.log(n))) + h, h)
    return squares(n, -deviation * g, h * np.exp(-(g**2) / 2) / np.sqrt(2 * np.pi))


def of_uniform_keys(n: float, beta: float, d: int) -> float:
    """E sum_j w_j^2 of a query among n independent uniform keys on S^(d-1), logits beta <q, k>."""
    from scipy.special import beta as beta_function
    from scipy.special import betainc, betaincinv

    half = (d - 1) / 2
    depth = 2 * beta * betaincinv(half, half, min(1.0, 60 / n))  # v of the nearest 60 keys
    top = min(2 * beta, depth + 60)
    low = np.log(beta) - 2 * (np.log(n) + 42) / (d - 1) - 1
    high = np.log(np.expm1(top)) if top < 700 else top
    edges = np.linspace(low, high, 2 + int((high - low) / 0.5))
    width = np.diff(edges)[:, None] / 2
    w = (edges[:-1, None] + width * (1 + PANEL_RULE[0])).ravel()
    v = np.logaddexp(0, w)  # log(1 + e^w): uniform in log v for small v, in v for large v
    u = v / beta
    mass = (width * PANEL_RULE[1]).ravel() * np.exp(w - v) / beta
    mass *= np.maximum(u * (2 - u), 0) ** ((d - 3) / 2) / beta_function(half, 0.5)
    mass *= betainc(half, half, min(1.0, top / (2 * beta))) / mass.sum()
    used = mass > 0
    return squares(n, v[used], mass[used])


def critical(squares_at: Callable[[float], float], start: float) -> float:
    """The root of `squares_at` = 1/4, an increasing function; the bracket starts from `start`."""
    from scipy.optimize import brentq

    low = high = start
    while squares_at(high) < CRITICAL_SQUARES:
        low, high = high, 1.5 * high
    while squares_at(low) > CRITICAL_SQUARES:
        low, high = low / 1.5, low
    return float(
        brentq(lambda strength: squares_at(strength) - CRITICAL_SQUARES, low, high, rtol=1e-6)
    )


def critical_equiangular(n: float, rho: float) -> float:
    """Critical beta of equiangular tokens: log(n)/(1 - rho) up to O(1/n)."""
    a, b, c = n / (n - 1), -2 / (n - 1), 1 / (n - 1) - CRITICAL_SQUARES
    w = (-b + np.sqrt(b * b - 4 * a * c)) / (2 * a)
    return float((np.log(n - 1) + np.log(w / (1 - w))) / (1 - rho))


def critical_uniform_keys(n: float, d: int) -> float:
    """Critical beta of uniform keys on S^(d-1), d >= 3: about c(d) n^{2/(d-1)} for large n."""
    return critical(lambda beta: of_uniform_keys(n, beta, d), n ** (2 / (d - 1)) * np.sqrt(d))


def critical_gaussian(n: float, rho: float) -> float:
    """Critical standard deviation of Gaussian logits of tokens with mean cosine rho.

    The common part of tokens y shifts the logits <x, M y>, M random, of a row alike: the standard
    deviation within a row is smaller by the factor (1 - rho)^(1/2). For large n the critical one is
    (4/3) (2 log n/(1 - rho))^(1/2).
    """
    spread_at_once = critical(lambda spread: of_gaussian(n, spread), np.sqrt(2 * np.log(n)))
    return spread_at_once / np.sqrt(1 - rho)
