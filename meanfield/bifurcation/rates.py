"""Growth rates along a curve: how many perturbations of each order grow."""

import numpy as np

from .curve import Point
from .path import Path
from .spectrum import linearised, rotation_among

__all__ = ["Rates"]


class Rates:
    """Real parts of the eigenvalues of the linearised equation, by order.

    Parameters
    ----------
    path : Path
    orders : int
        Orders 0, ..., `orders` - 1 are looked at.
    """

    def __init__(self, path: Path, orders: int):
        count = min(orders, path.basis.orders)
        self.path, self._bases = path, [path.basis.of_order(m) for m in range(count)]

    def of_order(self, point: Point, order: int) -> np.ndarray:
        """In decreasing order, without that of rotations, which is 0."""
        basis, (equation, kappa) = self._bases[order], self.path.at(point.p)
        values = np.linalg.eigvals(linearised(equation, point.a, kappa, basis))
        rotation = rotation_among(values, basis, point.a)
        kept = values if rotation is None else np.delete(values, rotation)
        return np.sort(kept.real)[::-1]

    def at(self, point: Point) -> list[np.ndarray]:
        """Those of all orders."""
        return [self.of_order(point, m) for m in range(len(self._bases))]
