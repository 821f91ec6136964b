"""Laws of one attention layer over n tokens, for `long_context.py`.

`answered` is for tokens with inner products rho, and `answered_at_random` for random ones of
dimension d. `keys` is for n independent uniform keys on S^(d-1) and a query q. With v = beta
(1 - <q, k>), the weights are e^{-v_j}/S, S = sum_j e^{-v_j}, and 1/S^2 = int_0^inf s e^{-sS} ds, so

    E sum_j w_j^2 = n int s E[e^{-2v} e^{-s e^{-v}}] (E e^{-s e^{-v}})^{n-1} ds
    E sum_j w_j v_j = n int E[v e^{-v} e^{-s e^{-v}}] (E e^{-s e^{-v}})^{n-1} ds

exactly. For beta = c n^{2/(d-1)} the v_j become a Poisson process as n grows, and both a limit.
"""

import numpy as np
from scipy.special import beta as beta_function

__all__ = ["answered", "answered_at_random", "keys", "limit_of_keys"]

PANEL = np.polynomial.legendre.leggauss(10)


def answered(n, beta, rho):
    """The inner product of two outputs: 1 - D^2 (1 - rho)/(D^2 + (1 - D^2) s)."""
    return _answered(n, rho, beta * (1 - rho), 0.0, 0.0)


def answered_at_random(n, beta, rho, d):
    """The same for inner products of mean rho and variance (1 - rho)^2/d, to first order in 1/d.

    Others weigh e^{lambda^2/2d} times as much, lambda = beta (1 - rho), and those nearer to the
    token more, which adds lambda/d of it to their mean.
    """
    pull = beta * (1 - rho)
    return _answered(n, rho, pull, pull**2 / (2 * d), pull / d)


def _answered(n, rho, pull, more, towards):
    w = 1 / (1 + (n - 1) * np.exp(more - pull))
    D = w - (1 - w) / (n - 1) + (1 - w) * towards
    s = (1 + (n - 1) * rho) / n
    return 1 - D**2 * (1 - rho) / (D**2 + (1 - D**2) * s)


def keys(n: float, beta: float, d: int) -> tuple[float, float]:
    """E sum_j w_j^2 and E sum_j w_j v_j of a query among n keys."""
    v, mass = _panels(np.log(1e-14 * min(beta, 1.0)), np.log(2 * beta), 150)
    v, mass = np.exp(v), mass * np.exp(v)
    u = v / beta
    mass *= (u * (2 - u)) ** ((d - 3) / 2) / (beta * beta_function((d - 1) / 2, 0.5))
    x, steps = _panels(-40.0, 600.0, 400)
    found = np.zeros(2)
    for level, step in zip(x, steps, strict=True):  # s = e^level
        y = level - v
        off = np.expm1(-np.exp(y)) @ mass
        left = np.exp((n - 1) * np.log1p(off)) if off > -0.5 else (1 + off) ** (n - 1)
        if left == 0:  # here and beyond
            break
        found[0] += step * left * (np.exp(2 * y - np.exp(y)) @ mass)
        found[1] += step * left * (v * np.exp(y - np.exp(y)) @ mass)
    return n * found[0], n * found[1]


def limit_of_keys(d: int) -> tuple[float, float]:
    """The limits of `keys` for beta = n^{2/(d-1)}, n -> inf.

    The v_j are a Poisson process: n P(v in dv) -> (2 v)^{(d-3)/2} dv/B((d-1)/2, 1/2) =: L(dv), so
    (E e^{-s e^{-v}})^{n-1} -> exp(-int (1 - e^{-s e^{-v}}) L(dv)).
    """
    v, mass = _panels(np.log(1e-14), np.log(800.0), 150)
    v, mass = np.exp(v), mass * np.exp(v)
    mass *= (2 * v) ** ((d - 3) / 2) / beta_function((d - 1) / 2, 0.5)
    x, steps = _panels(-40.0, 600.0, 400)
    found = np.zeros(2)
    for level, step in zip(x, steps, strict=True):  # s = e^level
        y = level - v
        left = np.exp(np.expm1(-np.exp(y)) @ mass)
        found[0] += step * left * (np.exp(2 * y - np.exp(y)) @ mass)
        found[1] += step * left * (v * np.exp(y - np.exp(y)) @ mass)
    return found[0], found[1]


def _panels(start: float, end: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss and Legendre on equal panels."""
    edges = np.linspace(start, end, count + 1)
    half = np.diff(edges)[:, None] / 2
    nodes = edges[:-1, None] + half * (1 + PANEL[0])
    return nodes.ravel(), (half * PANEL[1]).ravel()
