"""Tokens on the torus (R / 2 pi)^m, by their angles."""

from collections.abc import Callable
from typing import Annotated, ClassVar

import numpy as np

from ..core.annotations import Values
from ..core.checks import finite_array, require, whole_number
from .contract import StatePart
from .points import function_values, on_circles
from .tokens import WeightedTokens, checked_masses


class TorusTokens(WeightedTokens):
    """n points of the torus with masses, or many independent sets of them.

    Parameters
    ----------
    angles : array, (*replicas, n, m)
        In radians, m = 1, 2, ...
    masses : array, (*replicas, n) or (n,), optional
        Masses >= 0 of sum 1; by default 1/n each.

    Raises
    ------
    TypeError, ValueError
        For another shape, angles that are not finite, or masses that are negative or do not sum
        to 1 (to 1e-9).
    """

    angles: Annotated[np.ndarray, StatePart("angles of a token", ("token", "circle"))]
    """Angles in radians, (*replicas, n, m)."""
    takes_noise = True
    words: ClassVar = {"circle": "number of the angle"}

    def __init__(self, angles: np.ndarray, masses: np.ndarray | None = None):
        """Check angles (*replicas, n, m) and masses."""
        angles = finite_array("angles", angles)
        wanted = "(n, m) or (*replicas, n, m), the m angles of n tokens"
        require("angles.shape", angles.shape, wanted, angles.ndim >= 2 and min(angles.shape) >= 1)
        self._set(angles=angles, masses=checked_masses(masses, angles.shape[:-1]))

    def __repr__(self) -> str:
        replicas = f", replicas={self.shape}" if self.shape else ""
        return f"TorusTokens(n={len(self)}, m={self.angles.shape[-1]}{replicas})"

    @property
    def dimension(self) -> int:
        """The dimension 2m of the points `x`."""
        return 2 * self.angles.shape[-1]

    @property
    def x(self) -> np.ndarray:
        """Cartesian coordinates, m pairs (cos, sin), (*replicas, n, 2m)."""
        return on_circles(self.angles)

    def expect(self, f: Callable[[np.ndarray], np.ndarray]) -> Values:
        """sum_i masses_i f(x_i); f takes points (*replicas, n, 2m), returns (*replicas, n, ...).

        A float, or an array of shape (*replicas, ...).
        """
        values = function_values(f, self.x)
        weights = self.masses.reshape(self.masses.shape + (1,) * (values.ndim - self.masses.ndim))
        total = (weights * values).sum(axis=len(self.shape))
        return total.item() if total.ndim == 0 else total

    def moment(self, k: int) -> np.ndarray:
        """int e^{ik x_i} dmu in each direction i, (*replicas, m)."""
        k = whole_number("k", k, least=-(2**63))
        return (self.masses[..., None] * np.exp(1j * k * self.angles)).sum(axis=-2)
