"""Gram matrices: tokens of the sphere known by their inner products, whatever the dimension."""

from typing import Any, ClassVar

import numpy as np

from ..core.checks import real_array
from .contract import Arrays, State, member_dims
from .points import Points
from .tokens import Tokens, checked_masses, chosen_replicas

__all__ = ["Gram"]

UNIT = 1e-9


class Gram(State):
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

    words: ClassVar[dict[str, str]] = {
        "inner_product": "inner product of two tokens",
        "masses": "masses of the tokens",
    }
    fixed = ("masses",)
    replicated = True

    def __init__(self, G: np.ndarray | Points, masses: np.ndarray | None = None):
        if isinstance(G, Points):
            x = G.draw()
            G = x @ np.swapaxes(x, -1, -2)
        G = real_array("G", G)
        if G.ndim < 2 or G.shape[-1] != G.shape[-2] or min(G.shape) < 1:
            raise ValueError(f"Gram expects G of shape (n, n) or (*replicas, n, n); got {G.shape}.")
        if not np.isfinite(G).all():
            raise ValueError(
                f"Gram expects finite inner products; {np.sum(~np.isfinite(G))} are not."
            )
        asymmetry = np.abs(G - np.swapaxes(G, -1, -2)).max()
        diagonal = np.abs(np.diagonal(G, axis1=-2, axis2=-1) - 1).max()
        lowest = np.linalg.eigvalsh(G).min()
        if asymmetry > UNIT or diagonal > UNIT or lowest < -UNIT * G.shape[-1]:
            raise ValueError(
                "Gram expects inner products of unit vectors: a symmetric matrix (the asymmetry "
                f"is {asymmetry:.2g}) with ones on the diagonal (off by {diagonal:.2g}) and no "
                f"negative eigenvalue (the lowest is {lowest:.2g}). For tokens: tokens.gram()."
            )
        self.G, self.masses = G, checked_masses(masses, G.shape[:-1])
        self.G.setflags(write=False)
        self.masses.setflags(write=False)

    @classmethod
    def computed(cls, G: np.ndarray, masses: np.ndarray) -> "Gram":
        """Inner products from a run: eigenvalues may be below 0 by its errors, unchecked."""
        state = cls.__new__(cls)
        state.G, state.masses = np.array(G, dtype=float), np.array(masses, dtype=float)
        state.G.setflags(write=False)
        state.masses.setflags(write=False)
        return state

    def arrays(self) -> Arrays:
        dims = member_dims(self.shape)
        return {
            "inner_product": ((*dims, "token", "other"), self.G),
            "masses": ((*dims, "token"), self.masses),
        }

    @classmethod
    def of_arrays(cls, inner_product: Any, masses: Any) -> "Gram":
        return cls.computed(inner_product, masses)

    @property
    def size_in_words(self) -> str:
        return f"{len(self)} tokens"

    def with_members(self, axes: int) -> "Gram":
        if not (axes and self.shape):
            return self
        shape = (*self.shape, *(1,) * axes)
        masses = self.masses.reshape(*shape, len(self))
        return Gram.computed(self.G.reshape(*shape, *self.G.shape[-2:]), masses)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the replicas; () for a single set of tokens."""
        return self.G.shape[:-2]

    def __len__(self) -> int:
        return self.G.shape[-1]

    @property
    def tokens(self) -> int:
        return len(self)

    def __getitem__(self, replica) -> "Gram":
        """One of the replicas, or some of them; raises IndexError for those that are not there."""
        if not self.shape:
            raise TypeError("This is a single Gram matrix; G and masses are its arrays.")
        chosen = chosen_replicas(self.shape, replica, "Choose inner products in gram.G[...].")
        return Gram.computed(self.G[chosen], self.masses[chosen])

    def __repr__(self) -> str:
        replicas = f", replicas={self.shape}" if self.shape else ""
        return f"Gram(n={len(self)}{replicas})"

    def broadcast(self, shape: tuple[int, ...]) -> "Gram":
        """The same matrix in every replica of this shape, to which its own broadcasts."""
        G = np.broadcast_to(self.G, (*shape, *self.G.shape[-2:]))
        return Gram.computed(G, np.broadcast_to(self.masses, (*shape, len(self))))

    def to_tokens(self) -> Tokens:
        """Tokens of R^n with these inner products, unique up to rotation."""
        values, vectors = np.linalg.eigh(self.G)
        x = vectors * np.sqrt(np.maximum(values, 0))[..., None, :]  # those below 0 are rounding
        if len(self) == 1:
            x = np.concatenate([x, np.zeros_like(x)], axis=-1)
        return Tokens(x / np.linalg.norm(x, axis=-1, keepdims=True), self.masses)
