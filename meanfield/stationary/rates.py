"""Growth rates along a curve: how many perturbations of each order grow."""

import numpy as np

from .curve import Point
from .equation import Equation
from .harmonics import Harmonics
from .spectrum import linearised, rotation_among

__all__ = ["Rates"]


class Rates:
    """Real parts of the eigenvalues of the linearised equation, by order about the axis.

    Parameters
    ----------
    equation : Equation
    orders : int
        Orders 0, ..., `orders` - 1 are looked at.
    """

    def __init__(self, equation: Equation, orders: int):
        self.equation = equation
        count = min(orders, 2) if equation.dimension == 2 else orders
        self._harmonics = [Harmonics(equation.dimension, m, equation.degree) for m in range(count)]

    def of_order(self, point: Point, order: int) -> np.ndarray:
        """In decreasing order, without that of rotations, which is 0."""
        harmonics = self._harmonics[order]
        matrix = linearised(self.equation, point.a, point.kappa, harmonics)
        values = np.linalg.eigvals(matrix)
        rotation = rotation_among(values, order, point.a)
        kept = values if rotation is None else np.delete(values, rotation)
        return np.sort(kept.real)[::-1]

    def at(self, point: Point) -> list[np.ndarray]:
        """Those of all orders."""
        return [self.of_order(point, m) for m in range(len(self._harmonics))]
