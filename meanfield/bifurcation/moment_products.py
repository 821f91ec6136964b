"""Velocities that are products of moments of the density, in the stationary equation.

    v(theta) = Im(z_k1 ... z_kp e^(-i m theta)) = (prod_j z_kj e^(-i m theta) - c.c.)/2i

and the z_k are linear in the coefficients c of a density, so that derivatives are sums of products.
In z and its conjugate, both linear, v is a polynomial in complex c too.
"""

from typing import Any, NamedTuple, Self

import numpy as np

from ..models import HigherOrder
from .bases import Array


class MomentProduct(NamedTuple):
    """The velocity of a `HigherOrder` drift at the nodes.

    Attributes
    ----------
    rows : ndarray, (2, p, N)
        z_kj, and its conjugate, of each function of the basis.
    waves : ndarray, (2, M)
        Factors of both products at the nodes.
    """

    rows: Array
    waves: Array

    @classmethod
    def of(cls, factor: float, drift: HigherOrder, basis: Any) -> Self:
        """The product in a basis of functions on the circle, times a factor."""
        series = basis.all.series(np.eye(len(basis.degrees)), 0.0)
        rows = np.zeros((len(drift.modes), len(series)), complex)
        for row, k in zip(rows, drift.modes, strict=True):
            if abs(k) < series.shape[1]:
                row += series[:, abs(k)] if k < 0 else np.conj(series[:, k])
        cosine, sine = drift.multiples(basis.space.points[basis.nodes])
        wave = factor * (cosine - 1j * sine) / 2j
        return cls(np.stack([rows, np.conj(rows)]), np.stack([wave, np.conj(wave)]))

    def moments(self, c: Array, part: Any) -> Array:
        """z_kj, and conjugates, (2, p), for the coefficients c of functions of one order."""
        return self.rows[..., part.members] @ c

    def velocity(self, z: Array, c: Array) -> Array:
        """v, (1, M), for the moments z of the coefficients c."""
        return self._like(c, np.prod(z, axis=1) @ self.waves)[None]

    def changes(self, z: Array, part: Any) -> Array:
        """Changes (1, n, M) of v by each function of one order."""
        return self._at_nodes(self._others(z, self.rows[..., part.members]))[None].real

    def change(self, z: Array, c: Array, part: Any) -> Array:
        """Change (1, M) of v by sum_i c_i p_i."""
        moved = self.moments(c, part)[..., None]
        return self._like(c, self._at_nodes(self._others(z, moved))[0])[None]

    def second(self, z: Array, c: Array, part: Any, even: Any) -> Array:
        """Change (1, n, M) of `change` by each function of order 0."""
        moved, rows = self.moments(c, part), self.rows[..., even.members]
        total = np.zeros((2, rows.shape[2]), complex)
        for j in range(z.shape[1]):
            rest = np.delete(z, j, axis=1)
            total += moved[:, j, None] * self._others(rest, np.delete(rows, j, axis=1))
        return self._like(c, self._at_nodes(total))[None]

    @staticmethod
    def _others(z: Array, rows: Array) -> Array:
        """sum_j rows_j prod_(i != j) z_i, (2, n)."""
        total = np.zeros((2, rows.shape[2]), complex)
        for j in range(z.shape[1]):
            total += np.prod(np.delete(z, j, axis=1), axis=1)[:, None] * rows[:, j]
        return total

    def _at_nodes(self, products: Array) -> Array:
        """Values (n, M) at the nodes, for products (2, n)."""
        return products.T @ self.waves

    @staticmethod
    def _like(c: Array, values: Array) -> Array:
        """Values without their imaginary part, which is rounding, for real coefficients c."""
        return values if np.iscomplexobj(c) else values.real
