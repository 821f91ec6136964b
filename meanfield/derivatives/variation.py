"""A signed function on a space: a direction in which a density changes, or a gradient."""

from collections.abc import Callable
from typing import Self

import numpy as np

from ..core.annotations import UserValue
from ..core.checks import require
from ..spaces import Density, Space
from ..spaces.density import checked_degree


class Variation:
    """A real function on a space, by its coefficients in harmonics.

    The derivative of a density, with respect to the uniform law, has integral 0. The gradient of a
    scalar is the function g such that the scalar changes by int g dh if the density changes by h.

    Attributes
    ----------
    space : Space
    coefficients : ndarray, (*ensemble, modes)
    """

    def __init__(self, space: Space, coefficients: np.ndarray):
        self.space, self.coefficients = space, coefficients

    def __repr__(self) -> str:
        return f"Variation({self.space!r}, size {np.max(self.norm):.3g})"

    @property
    def shape(self) -> tuple[int, ...]:
        """Ensemble shape."""
        return self.coefficients.shape[:-1]

    @property
    def values(self) -> np.ndarray:
        """Values at `space.points`, (*ensemble, N)."""
        return self.space.to_values(self.coefficients)

    @property
    def mass(self) -> np.ndarray:
        """The integral, (*ensemble,)."""
        return self.coefficients[..., 0].real

    @property
    def norm(self) -> np.ndarray:
        """The norm in L^2, (*ensemble,)."""
        power = self.space.parseval * np.abs(self.coefficients) ** 2
        return np.sqrt(power.sum(axis=-1))

    def expect(self, f: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """The integral of f times this function, (*ensemble, ...); f as for `Density.expect`."""
        values = self.space.function_values(f, self.space.points)
        return np.tensordot(self.values * self.space.weights, values, axes=1)

    def moment(self, k: int) -> np.ndarray:
        """The moment of degree k, (*ensemble,)."""
        return self.space.moment(self.coefficients, checked_degree(k))

    def paired(self, other: UserValue) -> np.ndarray:
        """The integral of the product with another Variation or Density, (*ensemble,)."""
        fits = isinstance(other, Variation | Density) and comparable(other.space, self.space)
        expected = f"a Variation or Density on {self.space!r}, of any degree"
        require("other", other, expected, fits, TypeError)
        degree = min(self.space.degree, other.space.degree)
        a, b = (f.space.resample(f.coefficients, degree) for f in (self, other))
        parseval = self.space.with_degree(degree).parseval
        return (parseval * (a * np.conj(b)).real).sum(axis=-1)

    def resample(self, degree: int) -> Self:
        """This function with harmonics up to another degree, cut off or filled up with zeros."""
        space = self.space.with_degree(degree)
        return type(self)(space, self.space.resample(self.coefficients, degree))


def comparable(first: Space, second: Space) -> bool:
    """Whether two spaces are equal except for their degrees."""
    return type(first) is type(second) and first.with_degree(second.degree) == second
