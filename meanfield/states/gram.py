"""Gram matrices: tokens of the sphere known by their inner products, whatever the dimension."""

from typing import Annotated

import numpy as np

from ..core.checks import check_memory, finite_array, positive, require
from .contract import StatePart
from .points import UNIT, Points, unit
from .tokens import Tokens, TokenSet, checked_masses


class Gram(TokenSet):
    """The inner products G_ij = <x_i, x_j> of n tokens on a sphere.

    Parameters
    ----------
    G : array, shape (*replicas, n, n)
        Symmetric, positive semidefinite, with ones on the diagonal (to 1e-9).
    masses : array, shape (*replicas, n) or (n,), optional
        Masses >= 0 of sum 1; by default 1/n each.

    Raises
    ------
    TypeError, ValueError
        For another shape, values that are not finite, a matrix that is not that of inner
        products of unit vectors, or masses that are not a probability.
    """

    inner_product: Annotated[
        np.ndarray, StatePart("inner product of two tokens", ("token", "other"))
    ]

    def __init__(self, G: np.ndarray | Points, masses: np.ndarray | None = None):
        """Check that G is symmetric with unit diagonal, and without negative eigenvalues."""
        if isinstance(G, Points):
            x = G.draw()
            check_memory("G, inner products", (*x.shape[:-1], 3 * x.shape[-2]), "n")
            G = x @ np.swapaxes(x, -1, -2)
        G = finite_array("The inner products of Gram", G)
        square = G.ndim >= 2 and G.shape[-1] == G.shape[-2] and min(G.shape) > 0
        require("G.shape", G.shape, "(n, n) or (*replicas, n, n)", square)
        asymmetry = np.abs(G - np.swapaxes(G, -1, -2)).max()
        diagonal = np.abs(np.diagonal(G, axis1=-2, axis2=-1) - 1).max()
        lowest = np.linalg.eigvalsh(G).min()
        if asymmetry > UNIT or diagonal > UNIT or lowest < -UNIT * G.shape[-1]:
            raise ValueError(
                "Gram expects inner products of unit vectors: a symmetric matrix (the asymmetry "
                f"is {asymmetry:.2g}) with ones on the diagonal (off by {diagonal:.2g}) and no "
                f"negative eigenvalue (the lowest is {lowest:.2g}). For tokens: tokens.gram()."
            )
        self._set(inner_product=G, masses=checked_masses(masses, G.shape[:-1]))

    @property
    def G(self) -> np.ndarray:
        """The inner products (*replicas, n, n); after a run, eigenvalues may be < 0."""
        return self.inner_product

    def __repr__(self) -> str:
        replicas = f", replicas={self.shape}" if self.shape else ""
        return f"Gram(n={len(self)}{replicas})"

    def inner_products(self, rows: slice) -> np.ndarray:
        return self.G[..., rows, :]

    @property
    def sum_of_inner_products(self) -> np.ndarray:
        off_diagonal = self.G * (1 - np.eye(len(self)))
        return sum_of_pairs(off_diagonal, self.masses)

    def cluster_labels(self, angle: float) -> np.ndarray:
        """Labels (*replicas, n) of clusters linked by angles up to `angle`."""
        angle = positive("angle", angle)
        from .clusters import labels_of_inner_products

        return labels_of_inner_products(self.G, angle)

    def to_tokens(self) -> Tokens:
        """Tokens of R^n with these inner products, unique up to rotation and reflection."""
        values, vectors = np.linalg.eigh(self.G)
        x = vectors * np.sqrt(np.maximum(values, 0))[..., None, :]  # those below 0 are rounding
        if len(self) == 1:
            x = np.concatenate([x, np.zeros_like(x)], axis=-1)
        return Tokens(unit(x), self.masses)


def sum_of_pairs(values: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """sum_ij m_i m_j v_ij of values (*replicas, n, n), (*replicas,).

    Replicas are summed one by one: numpy may sum a batch in another order than a single replica.
    """
    n = masses.shape[-1]
    systems = zip(values.reshape(-1, n, n), masses.reshape(-1, n), strict=True)
    sums = [np.einsum("i,ij,j->", m, v, m) for v, m in systems]
    return np.reshape(sums, masses.shape[:-1])
