"""Functions on S^(d-1) with one behaviour under the symmetries of a state, on a quadrature.

`Harmonics` are those of one order about an axis. A function of order m is f(x) Y(xi), x = <point,
axis>, with Y a harmonic of degree m of the directions xi in S^(d-2). The f of order m have the
orthonormal basis p_l, l = m, m + 1, ..., which is (1 - x^2)^(m/2) times a polynomial, and

    x p_l = e_{l+1} p_{l+1} + e_l p_{l-1},
    (1 - x^2) p_l' = (l + d - 2) e_l p_{l-1} - l e_{l+1} p_{l+1}.

Axisymmetric functions have order 0. On the circle, d = 2, those are sqrt(2) cos(k theta), and those
of order 1 are sqrt(2) sin(k theta).
"""

from abc import ABC, abstractmethod
from functools import cached_property
from math import exp, lgamma

import numpy as np

from ..lowlevel.legendre import gauss, recurrence
from ..spaces.contract import dimension_of_harmonics

__all__ = ["Basis", "Harmonics", "fold_of", "image", "latitudinal", "symmetric_part"]

ROUNDING = 1e-8  # smaller moments count as zero where the symmetry of a state is asked for


class Basis(ABC):
    """Orthonormal harmonics p_i with one behaviour under the symmetries of a state.

    Stationary states are sought among functions of order 0; their perturbations are sorted by
    order.

    Attributes
    ----------
    dimension, order, degree : int
    orders : int
        How many orders there are.
    turning : int
        The order to which the rotations of a state belong.
    least, most : int
        The degree at which Newton's method begins, and the highest one on branches.
    degrees : ndarray of int, (N,)
        The degree of each p_i, not decreasing; the constant is left out. A basis of a higher degree
        begins with the functions of this one.
    weights : ndarray, (M,)
        Of the nodes, of sum 1; exact for products of two of the p_i, and beyond.
    values : ndarray, (N, M)
    gradients : ndarray, (C, N, M)
        Components of grad p_i in an orthonormal frame of the tangent space. Those of order 0 have
        as many as they need, the others may have more.
    """

    dimension: int
    order: int
    degree: int
    orders: int
    turning: int
    least: int
    most: int
    degrees: np.ndarray
    weights: np.ndarray
    values: np.ndarray
    gradients: np.ndarray

    @property
    def eigenvalues(self) -> np.ndarray:
        """l (l + d - 2) of each, (N,)."""
        return self.degrees * (self.degrees + self.dimension - 2.0)

    @cached_property
    def sizes(self) -> np.ndarray:
        """sqrt(dim H_l) of each, (N,): p_i is `sizes` times a Legendre function P_i, |P_i| <= 1."""
        return np.sqrt([dimension_of_harmonics(int(l), self.dimension) for l in self.degrees])

    @cached_property
    def legendre(self) -> np.ndarray:
        """The Legendre functions P_i on the nodes, (N, M)."""
        return self.values / self.sizes[:, None]

    def tail(self, m: np.ndarray) -> float:
        """The largest of the last eighth of the Legendre moments: how well a state is resolved."""
        last = self.degrees > self.degree - max(self.degree // 8, 2)
        return float(np.abs(m[last]).max(initial=0.0))

    def index(self, degree: int) -> int:
        """The position of the first function of a degree."""
        return int(np.flatnonzero(self.degrees == degree)[0])

    def padded(self, m: np.ndarray) -> np.ndarray:
        """Moments in this basis of a state in fewer functions: those it lacks are 0."""
        return np.pad(m, (0, len(self.degrees) - len(m)))

    @abstractmethod
    def of_order(self, order: int) -> "Basis":
        """The functions of another order, on the same nodes."""

    @abstractmethod
    def finer(self, degree: int) -> "Basis":
        """The functions of the same order up to another degree."""


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
    """The harmonics of one order about an axis up to a degree, at Gauss nodes.

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


def fold_of(basis: Basis, m: np.ndarray) -> int:
    """k of a k-fold state on the circle; 1 in other spaces and for the uniform state."""
    present = basis.degrees[: len(m)][np.abs(m) > ROUNDING]
    return int(np.gcd.reduce(present)) if basis.dimension == 2 and present.size else 1


def image(basis: Basis, m: np.ndarray) -> np.ndarray:
    """The signs (N,) by which the moments of a state and of its mirror image differ.

    The mirror image is that by x -> -x on S^(d-1); on the circle a k-fold state is turned by pi/k.
    """
    return np.where(basis.degrees // fold_of(basis, m) % 2, -1.0, 1.0)


def symmetric_part(basis: Basis, like: np.ndarray, m: np.ndarray) -> np.ndarray:
    """The moments of a state without those that the symmetries of another state exclude.

    Where branches cross, Newton's method determines these moments badly, although they vanish.
    """
    kept = basis.degrees % fold_of(basis, like) == 0
    if np.abs(like[basis.degrees % 2 == 1]).max(initial=0.0) < ROUNDING:
        kept &= basis.degrees % 2 == 0
    return np.where(kept, m, 0.0)
