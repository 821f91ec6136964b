"""A signed function on a space: a direction in which a density changes, or a gradient."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from ..core.checks import fitting
from ..spaces import Density, Geometry
from ..spaces.density import checked_degree


class Variation:
    """A real function on a space, by its harmonic coefficients, with respect to the uniform law.

    As the derivative of a density it has the mass 0; as a gradient it is the function g for which
    a scalar changes by int g dh where the density changes by h.

    Attributes
    ----------
    geometry : Geometry
    coefficients : ndarray, (*ensemble, modes)
    """

    def __init__(self, geometry: Geometry, coefficients: np.ndarray):
        self.geometry, self.coefficients = geometry, coefficients

    def __repr__(self) -> str:
        return f"Variation({self.geometry!r}, size {np.max(self.norm):.3g})"

    @property
    def shape(self) -> tuple[int, ...]:
        """Ensemble shape."""
        return self.coefficients.shape[:-1]

    @property
    def values(self) -> np.ndarray:
        """Values at `geometry.points`, (*ensemble, N)."""
        return self.geometry.to_values(self.coefficients)

    @property
    def mass(self) -> np.ndarray:
        """The integral, (*ensemble,)."""
        return self.coefficients[..., 0].real

    @property
    def norm(self) -> np.ndarray:
        """The norm in L^2, (*ensemble,)."""
        power = self.geometry.parseval * np.abs(self.coefficients) ** 2
        return np.sqrt(power.sum(axis=-1))

    def expect(self, f: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """The integral of f against it, (*ensemble, ...), f as for `Density.expect`."""
        values = self.geometry.function_values(f, self.geometry.points)
        return np.tensordot(self.values * self.geometry.weights, values, axes=1)

    def moment(self, k: int) -> Any:
        """The moment of degree k, (*ensemble,)."""
        return self.geometry.moment(self.coefficients, checked_degree(k))

    def paired(self, other: Any) -> np.ndarray:
        """The integral of its product with another function, or with a density, (*ensemble,)."""
        known = isinstance(other, Variation | Density) and alike(other.geometry, self.geometry)
        wanted = f"a Variation or Density on {self.geometry!r}, of any degree"
        fitting("other", other, wanted, known, TypeError)
        degree = min(self.geometry.degree, other.geometry.degree)
        a, b = (f.geometry.resample(f.coefficients, degree) for f in (self, other))
        parseval = self.geometry.with_degree(degree).parseval
        return (parseval * (a * np.conj(b)).real).sum(axis=-1)

    def resample(self, degree: int) -> Self:
        """This function with harmonics up to another degree, cut off or filled up with zeros."""
        geometry = self.geometry.with_degree(degree)
        return type(self)(geometry, self.geometry.resample(self.coefficients, degree))


def alike(one: Geometry, other: Geometry) -> bool:
    """Whether two spaces are one, but for their degrees."""
    return type(one) is type(other) and one.with_degree(other.degree) == other
