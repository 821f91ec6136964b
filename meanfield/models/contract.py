"""What a drift is: a velocity field v[mu] of attention."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

__all__ = ["Drift", "ZonalDrift"]


class Drift(ABC):
    """A velocity field v[mu] that a measure exerts on its points.

    Attributes
    ----------
    shape : tuple of int
        Ensemble shape of the parameters; () for a single drift.
    gradient_flow : bool
        Whether mu follows the Wasserstein gradient of an interaction energy.
    """

    gradient_flow = False

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """The numbers that may differ between the members of an ensemble."""
        return {}

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The drift as plain data: its name and parameters."""

    @abstractmethod
    def rate(self, t: float = 0.0) -> np.ndarray:
        """About the largest rate at which tokens attract each other, for the choice of steps."""

    def broadcast(self, shape: tuple[int, ...]) -> Self:
        """The drift with an ensemble of parameters flattened, one for each entry of `shape`."""
        return self


class ZonalDrift(Drift):
    """v[mu] = grad (W * mu) / (Z * mu) on the unit sphere of R^d, W and Z functions of <x, y>.

    It follows the gradient of (1/2) int int W dmu dmu if Z = 1. Densities are moved by the
    Funk-Hecke multipliers of W and Z; tokens by W' and Z,

        v(x) = P_x sum_j m_j W'(<x, x_j>) x_j / sum_j m_j Z(<x, x_j>)

    Attributes
    ----------
    exponent : ndarray of shape `shape`, or None
        beta if W' is exp(beta t), and Z is 1 or exp(beta t): sums over tokens are then compiled.
        None for other functions.
    polynomial_degree : int or None
        The degree of W and Z, if they are polynomials of known degree.
    multiplier_error : float
        Error of the multipliers relative to the largest; 0 for closed forms, which are exact to
        rounding of each.
    """

    gradient_flow = True
    multiplier_error: ClassVar[float] = 3e-14  # of quadrature

    @property
    def exponent(self) -> np.ndarray | None:
        return None

    @property
    def polynomial_degree(self) -> int | None:
        return None

    @property
    def normalised(self) -> bool:
        """Whether the sums are divided by Z * mu: whether `weight` is overridden."""
        return type(self).weight is not ZonalDrift.weight

    def member(self, number: int) -> Self:
        """One drift of an ensemble that `broadcast` has flattened; itself if it is a single one."""
        if not self.shape:
            return self
        arrays = {name: values for name, values in self.parameters.items() if values.ndim}
        return replace(self, **{name: values[number] for name, values in arrays.items()})  # type: ignore[type-var]

    @abstractmethod
    def attraction(self, degree: int, dimension: int) -> np.ndarray:
        """Multipliers of W, shape (*shape, degree + 1); entry 0 has no effect on v."""

    def normaliser(self, degree: int, dimension: int) -> np.ndarray | None:
        """Multipliers of Z, shape (*shape, degree + 1), or None where Z = 1."""
        return None

    def interaction(self, degree: int, dimension: int) -> np.ndarray:
        """Multipliers of W in the interaction energy, its additive constant included."""
        return self.attraction(degree, dimension)

    @abstractmethod
    def slope(self, t: np.ndarray) -> np.ndarray:
        """W' at inner products t (*shape, ...), times a factor that it has in common with Z.

        The factor is 1 where Z is. Else it may differ between rows, t[..., :], so that neither
        overflows; `weight` at the same t has the same factor.
        """

    @abstractmethod
    def contrast(self, log_gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """W'(1)/W'(1 - gap) - 1 as its sign and its logarithm, both (*shape, ...).

        The gap > 0 is given by its logarithm: it may be below the least number of the machine.
        """

    @abstractmethod
    def potential_at(self, t: np.ndarray) -> np.ndarray:
        """W at inner products t (*shape, ...), its additive constant included."""

    def weight(self, t: np.ndarray) -> np.ndarray:
        """Z, times that factor: 1, unless it is overridden."""
        return np.ones_like(t)

    def describe(self) -> dict[str, Any]:
        parameters = {name: values.tolist() for name, values in self.parameters.items()}
        return {"drift": type(self).__name__, **parameters}
