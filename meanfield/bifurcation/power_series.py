"""Power series in one variable, as rows of coefficients: products and functions."""

import numpy as np

from .bases import Array


def product(f: Array, g: Array) -> Array:
    """Coefficients of f g."""
    return np.stack([sum(f[i] * g[k - i] for i in range(k + 1)) for k in range(len(f))])


def exponential(f: Array) -> Array:
    """Coefficients of h = exp(f), from h' = f' h."""
    h = np.zeros_like(f)
    h[0] = np.exp(f[0])
    for k in range(1, len(f)):
        h[k] = sum(i * f[i] * h[k - i] for i in range(1, k + 1)) / k
    return h


def logarithm(f: Array) -> Array:
    """Coefficients of h = log(1 + f), from (1 + f) h' = f'."""
    h = np.zeros_like(f)
    h[0] = np.log1p(f[0])
    for k in range(1, len(f)):
        inner = sum(i * h[i] * f[k - i] for i in range(1, k)) / k
        h[k] = (f[k] - inner) / (1 + f[0])
    return h
