"""What a drift is: a velocity field v[mu] of attention."""

from abc import ABC, abstractmethod
from typing import Any, Self

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
    constant : bool
        Whether no parameter depends on time.
    parts_tokens : bool
        Whether tokens at the same place may part.
    on_sphere_only : bool
        Whether it is defined on the sphere alone, not in R^d.
    """

    gradient_flow = False
    constant = True
    parts_tokens = False
    on_sphere_only = False

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

    def known_rate(self, on_sphere: bool) -> bool:
        """Whether `rate` bounds how fast tokens move, at all times: steps may be chosen by it."""
        return True

    def output_size(self, t: float) -> float:
        """About the length of the output of attention where nothing cancels."""
        return float(np.max(self.rate(t)))

    def breakpoints(self, start: float, end: float) -> np.ndarray:
        """Times strictly between `start` and `end` at which a parameter jumps, increasing."""
        return np.zeros(0)

    def interaction_energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """E of tokens (..., n, d) with masses (..., n), (...); nan where nothing is known of it."""
        return np.full(x.shape[:-2], np.nan)

    def why_not_finite(self, largest: float) -> str:
        """Why velocities of tokens overflow whose components are up to `largest`."""
        return (
            "numbers such as beta <Qx, Ky> and V x exceed 1.8e308, the largest there is; "
            f"components of the tokens are up to {largest:.3g}. Rescale the tokens, or the "
            "parameters."
        )

    def broadcast(self, shape: tuple[int, ...]) -> Self:
        """The drift with an ensemble of parameters flattened, one for each entry of `shape`."""
        return self


class ZonalDrift(Drift):
    """v[mu] = grad (W * mu) / (Z * mu) on the unit sphere of R^d, W and Z functions of <x, y>.

    It follows the gradient of (1/2) int int W dmu dmu if Z = 1. Densities are moved by the
    Funk-Hecke multipliers of W and Z; tokens by W' and Z,

        v(x) = P_x sum_j m_j W'(<x, x_j>) x_j / sum_j m_j Z(<x, x_j>)
    """

    gradient_flow = True
    on_sphere_only = True

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
        """W' at inner products t (*shape, ...), times a factor that it has in common with Z."""

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
