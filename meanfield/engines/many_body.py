"""Sums over tokens, and velocities of densities, under `HigherOrder` interactions: by moments."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from ..core.annotations import Values
from ..core.cached import cached_property
from ..models import HigherOrder
from .contract import Engine
from .density_heads import GridDensity, NotSmooth, Quotient
from .fields import FIELDS, DensityField


class MomentSums(Engine):
    """Velocities of tokens (R, n, 2) by products of their moments, O(n).

    Parameters
    ----------
    drift : HigherOrder
    """

    name = "moments"
    tangential = False

    def attention(self, t: float, x: Values, masses: Values) -> Values:
        """The velocities (R, n, 2); there is no radial part."""
        return self.drift.at_points(x, self.drift.moments(x, masses))

    def with_tangents(self, names: Sequence[str | None]) -> Self:
        return self


class MomentPoints:
    """Velocities of points in the field of a density with given coefficients."""

    def __init__(self, drift: HigherOrder) -> None:
        self.drift = drift

    def attention(self, t: float, x: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """The velocities (R, n, 2)."""
        return self.drift.at_points(x, _moments(self.drift, coefficients))


class MomentField(DensityField):
    """Velocity of densities on the circle by products of their moments."""

    drift: HigherOrder

    @cached_property
    def _multiples(self) -> tuple[Values, Values]:
        return self.drift.multiples(self.space.points)

    def velocity(self, t: float, density: GridDensity) -> np.ndarray:
        return self.drift.speed(self._multiples, _moments(self.drift, density.coefficients))[None]

    def attention(self, t: float, density: GridDensity) -> np.ndarray:
        return self.drift.at_points(self.space.points, _moments(self.drift, density.coefficients))

    def quotients(
        self, functions: GridDensity, names: Sequence[str] = (), rows: int = 1
    ) -> list[Quotient]:
        """Raise NotSmooth: products of moments are not quotients."""
        raise NotSmooth(
            f"{self.drift!r} is a product of moments, and no quotient of linear functions."
        )


def _moments(drift: HigherOrder, c: np.ndarray) -> dict[int, tuple[Values, Values]]:
    """The moments z_k of a density with coefficients c, by |k|; 0 beyond its degree."""
    by_mode = {}
    for k in {abs(k) for k in drift.modes}:
        z = np.conj(c[k]) if k < len(c) else 0j
        by_mode[k] = z.real, z.imag
    return by_mode


FIELDS[HigherOrder] = MomentField
