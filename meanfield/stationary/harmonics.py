"""Functions on S^(d-1) of one symmetry about an axis, on a Gauss rule: values, slopes, degrees.

A function of order m is f(x) Y(xi), x = <point, axis>, with Y a harmonic of degree m of the
directions xi in S^(d-2). The f of order m have the orthonormal basis p_l, l = m, m + 1, ..., which
is (1 - x^2)^(m/2) times a polynomial, and

    x p_l = e_{l+1} p_{l+1} + e_l p_{l-1},
    (1 - x^2) p_l' = (l + d - 2) e_l p_{l-1} - l e_{l+1} p_{l+1}.

Axisymmetric functions have order 0. On the circle, d = 2, those are sqrt(2) cos(k theta), and those
of order 1 are sqrt(2) sin(k theta).
"""

from functools import cached_property
from math import exp, lgamma

import numpy as np

from ..geometry.contract import dimension_of_harmonics
from ..legendre import gauss, recurrence

__all__ = ["Harmonics", "harmonic_sizes"]


def harmonic_sizes(dimension: int, degree: int) -> np.ndarray:
    """p_l(1) = sqrt(dim H_l) for l = 1, ..., `degree`: a_l over it is int P_l dmu."""
    return np.sqrt([dimension_of_harmonics(l, dimension) for l in range(1, degree + 1)])


class Harmonics:
    """The basis of one order up to a degree, at Gauss nodes.

    Parameters
    ----------
    dimension, order, degree : int
    nodes : int, optional
        By default twice the degree and a few: exact for products of four of the basis.

    Attributes
    ----------
    degrees : ndarray of int, (N,)
        l of each function; the constant is left out.
    eigenvalues : ndarray, (N,)
        l (l + d - 2).
    x, weights : ndarray, (M,)
    values, slopes : ndarray, (N, M)
        p_l and (1 - x^2) p_l'.
    """

    def __init__(self, dimension: int, order: int, degree: int, nodes: int | None = None):
        self.dimension, self.order, self.degree = dimension, order, degree
        self.x, self.weights = gauss(nodes or 2 * degree + 8, dimension)
        e = recurrence(degree + 2, order, dimension)
        p = self._values(e)
        l = np.arange(max(order, 1), degree + 1)
        self.degrees, self.eigenvalues = l, l * (l + dimension - 2.0)
        below = np.where((l > order)[:, None], p[l - order - 1], 0.0)
        lower = (l + dimension - 2) * e[l]
        self.values = p[l - order]
        self.slopes = lower[:, None] * below - (l * e[l + 1])[:, None] * p[l - order + 1]

    def _values(self, e: np.ndarray) -> np.ndarray:
        """p_l for l = order, ..., degree + 1."""
        m, d = self.order, self.dimension
        mean = lgamma(d / 2) + lgamma(m + (d - 1) / 2) - lgamma((d - 1) / 2) - lgamma(m + d / 2)
        p = np.zeros((self.degree + 2 - m, self.x.size))
        p[0] = ((1 - self.x) * (1 + self.x)) ** (m / 2) * exp(-mean / 2)
        for i in range(len(p) - 1):
            l = m + i
            before = e[l] * p[i - 1] if i else 0.0
            p[i + 1] = (self.x * p[i] - before) / e[l + 1]
        return p

    @cached_property
    def sines(self) -> np.ndarray:
        """1 - x^2, (M,)."""
        return (1 - self.x) * (1 + self.x)

    def stiffness(self, density: np.ndarray, other: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """int density <grad p_i, grad f_j>, (N, count), for f_j of the same order.

        Parameters
        ----------
        density : ndarray, (M,)
        other, slopes : ndarray, (count, M)
            f_j and (1 - x^2) f_j'.
        """
        weighted = self.weights * density / self.sines
        total = (self.slopes * weighted) @ slopes.T
        if self.order:
            turning = self.order * (self.order + self.dimension - 3)
            total += turning * (self.values * weighted) @ other.T
        return total
