"""Gram matrices and tangents of them: what `gram` computes, differentiated."""

from typing import Any

import numpy as np

from ..core.checks import as_given, fitting
from ..engines.direct_tangents import kernels_of
from .linearised import OFF_TANGENT, LinearisedMotion
from .token_tangents import stacked


class LinearisedGram(LinearisedMotion):
    """The velocities of `GramMotion`, and their derivatives."""

    arrays = ("G",)

    def setup(self) -> None:
        """W' and Z with their derivatives, of every replica."""
        self._kernels = kernels_of(self.motion._drift, self.names)

    @property
    def members(self) -> tuple[int, ...]:
        return self.motion.like.shape

    def first(self, state: Any) -> np.ndarray:
        y = self.motion.coordinates(state)
        Y = np.zeros((1 + len(self.names), *y.shape))
        Y[0] = y
        for a, direction in enumerate(self.directions):
            if direction is not None:
                Y[1 + a] = direction["G"].reshape(y.shape)
        return Y

    def changes(self, Y: np.ndarray) -> list[dict[str, np.ndarray]]:
        return [{"G": dG.reshape(self.motion.like.G.shape).copy()} for dG in Y[1:]]

    def velocity(self, Y: np.ndarray, t: float) -> np.ndarray:
        G, masses, rates = Y[0], self.motion._masses, np.empty_like(Y)
        for r in range(len(G)):
            w, bend, z, tilt, by, by_z = self._kernels[r % len(self._kernels)](G[r])
            m = masses[r]
            weights = m * w
            level = None if z is None else (m * z).sum(axis=1, keepdims=True)
            if level is not None:
                weights = weights / level
            rates[0, r] = _followed(weights @ G[r], G[r])
            along = np.diagonal(weights @ G[r])
            for a, dG in enumerate(Y[1:, r]):
                dw = m * (bend * dG if by[a] is None else bend * dG + by[a])
                if level is not None:
                    dz = tilt * dG if by_z[a] is None else tilt * dG + by_z[a]
                    dw = (dw - weights * (m * dz).sum(axis=1, keepdims=True)) / level
                change = dw @ G[r] + weights @ dG
                one = change - np.diagonal(change)[:, None] * G[r] - along[:, None] * dG
                rates[1 + a, r] = one + one.T
        return rates

    def projected(self, Y: np.ndarray) -> np.ndarray:
        """G_ij / (G_ii G_jj)^(1/2), symmetric, and its changes."""
        G, dG = Y[0], Y[1:]
        squares = np.einsum("rii->ri", G)
        share = np.einsum("prii->pri", dG) / squares
        lengths = np.sqrt(squares)
        size = lengths[:, :, None] * lengths[:, None, :]
        new = G / size
        moved = dG / size - new * (share[..., :, None] + share[..., None, :]) / 2
        both = stacked(new, moved)
        return (both + both.swapaxes(-1, -2)) / 2


def _followed(pulled: np.ndarray, G: np.ndarray) -> np.ndarray:
    change = pulled - np.diagonal(pulled)[:, None] * G
    return change + change.T


def gram_direction(given: Any, state: Any) -> dict[str, np.ndarray]:
    """A change of inner products, an array like G: symmetric, with zeros on the diagonal.

    Raises
    ------
    TypeError, ValueError
        For anything else.
    """
    array = np.asarray(given["G"] if isinstance(given, dict) and set(given) == {"G"} else given)
    fits = array.dtype.kind in "fiu" and array.shape == state.G.shape and np.isfinite(array).all()
    if not fits:
        raise TypeError(
            "tangents must have names of parameters, or changes of the inner products, "
            f"{state.G.shape}; got {as_given(given)}."
        )
    off = np.abs(array - array.swapaxes(-1, -2)).max()
    off = max(off, np.abs(np.einsum("...ii->...i", array)).max())
    largest = np.abs(array).max()
    wanted = "changes of inner products that are symmetric, with zeros on the diagonal"
    fitting("tangents", float(off), wanted, bool(off <= OFF_TANGENT * largest))
    return {"G": array.astype(float)}
