"""Functions of one symmetry on S^(d-1): an orthonormal basis of them, on a quadrature."""

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from ..spaces.contract import dimension_of_harmonics

__all__ = ["Basis"]


class Basis(ABC):
    """Orthonormal harmonics p_i with one behaviour under the symmetries of a state.

    The states that are looked for are those of order 0; what perturbs them is sorted by orders.

    Attributes
    ----------
    dimension, order, degree : int
    orders : int
        How many orders there are.
    turning : int
        The order to which the rotations of a state belong.
    least, most : int
        Degrees at which to begin, and which branches do not exceed.
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
        """sqrt(dim H_l) of each, (N,): the largest value of a unit function of degree l."""
        return np.sqrt([dimension_of_harmonics(int(l), self.dimension) for l in self.degrees])

    def tail(self, a: np.ndarray) -> float:
        """The largest of the last eighth of the Legendre moments: how well a state is resolved."""
        last = self.degrees > self.degree - max(self.degree // 8, 2)
        return float(np.abs(a[last] / self.sizes[last]).max(initial=0.0))

    @abstractmethod
    def of_order(self, order: int) -> "Basis":
        """What perturbs in another way, on the same nodes."""

    @abstractmethod
    def finer(self, degree: int) -> "Basis":
        """The same symmetry up to another degree."""
