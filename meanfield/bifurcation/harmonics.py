"""Functions on S^(d-1) of one order about an axis, on a Gauss rule.

A function of order m is f(x) Y(xi), x = <point, axis>, with Y a harmonic of degree m of the
directions xi in S^(d-2). The f of order m have the orthonormal basis p_l, l = m, m + 1, ..., which
is (1 - x^2)^(m/2) times a polynomial, and

    x p_l = e_{l+1} p_{l+1} + e_l p_{l-1},
    (1 - x^2) p_l' = (l + d - 2) e_l p_{l-1} - l e_{l+1} p_{l+1}.

Axisymmetric functions have order 0. On the circle, d = 2, those are sqrt(2) cos(k theta), and those
of order 1 are sqrt(2) sin(k theta).
"""

from math import exp, lgamma

import numpy as np

from ..lowlevel.legendre import gauss, recurrence
from .basis import Basis

__all__ = ["Harmonics", "latitudinal"]


def latitudinal(
    x: np.ndarray, dimension: int, order: int, degree: int
) -> tuple[np.ndarray, np.ndarray]:
    """p_l and sqrt(1 - x^2) p_l' for l = order, ..., degree: (degree + 1 - order, M) each."""
    m, d = order, dimension
    e = recurrence(degree + 2, m, d)
    mean = lgamma(d / 2) + lgamma(m + (d - 1) / 2) - lgamma((d - 1) / 2) - lgamma(m + d / 2)
    sines = (1 - x) * (1 + x)
    p = np.zeros((degree + 3 - m, x.size))  # the first is p_{m-1} = 0
    p[1] = sines ** (m / 2) * exp(-mean / 2)
    for l in range(m, degree + 1):
        p[l - m + 2] = (x * p[l - m + 1] - e[l] * p[l - m]) / e[l + 1]
    ls = np.arange(m, degree + 1)
    slopes = ((ls + d - 2) * e[ls])[:, None] * p[:-2] - (ls * e[ls + 1])[:, None] * p[2:]
    return p[1:-1], slopes / np.sqrt(sines)


class Harmonics(Basis):
    """The basis of one order up to a degree, at Gauss nodes.

    Parameters
    ----------
    dimension, order, degree : int
    nodes : int, optional
        By default twice the degree and a few.

    Attributes
    ----------
    x : ndarray, (M,)
    """

    turning = 1
    least, most = 32, 512

    def __init__(self, dimension: int, order: int, degree: int, nodes: int | None = None):
        self.dimension, self.order, self.degree = dimension, order, degree
        self.orders = 2 if dimension == 2 else degree + 1
        self.x, self.weights = gauss(nodes or 2 * degree + 8, dimension)
        values, slopes = latitudinal(self.x, dimension, order, degree)
        first = 0 if order else 1  # without the constant
        self.degrees = np.arange(max(order, 1), degree + 1)
        self.values = values[first:]
        self.gradients = slopes[None, first:]
        if order:
            turning = order * (order + dimension - 3) / ((1 - self.x) * (1 + self.x))
            self.gradients = np.stack([slopes, np.sqrt(turning) * values])

    def of_order(self, order: int) -> "Harmonics":
        return Harmonics(self.dimension, order, self.degree, self.x.size)

    def finer(self, degree: int) -> "Harmonics":
        return Harmonics(self.dimension, self.order, degree)
