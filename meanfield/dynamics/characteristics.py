"""The motion of characteristics: x' = v[mu](x), v = grad (W * mu) / (Z * mu), by harmonics."""

from collections.abc import Sequence

import numpy as np

from ..models.decay import kernel_degree
from ..models.transformer import Transformer
from ..spaces.characteristics import Characteristics
from ..spaces.contract import dimension_of_harmonics

__all__ = ["CharacteristicsMotion"]

EPSILON = 2.0**-52
FINEST = 1e-5  # distances to which W2 keeps its relative accuracy, or coarser with rtol


class CharacteristicsMotion:
    """Velocities of the nodes of a quadrature under a deterministic model.

    Parameters
    ----------
    model : Transformer
        A single one, without noise.
    state : Characteristics
    rtol : float
        The error control will ask for this accuracy.

    Raises
    ------
    TypeError, ValueError
        For a model with noise, an ensemble.
    MeanfieldError
        If the kernel's harmonics do not decay.
    """

    def __init__(self, model: Transformer, state: Characteristics, rtol: float = 1e-8):
        if np.isfinite(model.kappa).any():
            raise ValueError(
                "Characteristics carries densities without noise, kappa = inf; got kappa = "
                f"{model.kappa.tolist()}. Solve for the density itself, or for Tokens."
            )
        if model.shape:
            raise ValueError(
                f"Characteristics expects a single model; got an ensemble {model.shape}. Solve "
                "its members one by one."
            )
        self.chart, self.masses = state.chart, state.masses
        dimension = state.geometry.dimension
        self.degree = kernel_degree(model.zonal, dimension)
        self.attraction = model.zonal.attraction(self.degree, dimension)
        self.normaliser = model.zonal.normaliser(self.degree, dimension)
        self._finest = max(FINEST, 1e-15 / rtol)

    def velocity(self, x: np.ndarray, _t: float = 0.0) -> np.ndarray:
        """Rates of change of the coordinates."""
        return self.chart.velocity(x, self.masses, self.attraction, self.normaliser)

    def halved_error(self, x: np.ndarray, halves: Sequence[np.ndarray]) -> float:
        """Change of the velocities if only every second node is used.

        Relative to W'(1) / Z(1), the rate at which points move towards a Dirac next to them.
        """
        l, d = np.arange(self.degree + 1), self.chart.geometry.dimension
        harmonics = np.array([dimension_of_harmonics(int(k), d) for k in l])
        scale = (np.abs(self.attraction) * harmonics * l * (l + d - 2) / (d - 1)).sum()
        if self.normaliser is not None:
            scale /= np.abs(self.normaliser * harmonics).sum()
        velocity, change = self.velocity(x), 0.0
        for half in halves:
            masses = np.where(half, 2 * self.masses, 0.0)
            other = self.chart.velocity(x, masses, self.attraction, self.normaliser)
            change = max(change, float(self.chart.lengths(x, other - velocity).max()))
        return change / scale if scale > 0 else 0.0

    def rounding(self, state: Characteristics) -> float:
        """Relative error of velocities by rounding, where there is least mass around.

        v = grad (W * mu) / (Z * mu): both have the absolute accuracy of their largest values.
        """
        if self.normaliser is None:
            return EPSILON
        fine = state.geometry.with_degree(self.degree)
        level = self.normaliser[fine.degrees] * state.coefficients(self.degree)
        values = fine.at(level, state.points)
        return float(EPSILON * values.max() / max(values.min(), np.finfo(float).tiny))

    def relative_error(self, error: np.ndarray, x: np.ndarray) -> float:
        """As `Chart.relative_error`."""
        return self.chart.relative_error(error, x, self.masses, self._finest)

    def projected(self, x: np.ndarray) -> np.ndarray:
        """As `Chart.projected`."""
        return self.chart.projected(x)

    def rate(self, x: np.ndarray, velocity: np.ndarray) -> float:
        """(int |v|^2 dmu)^(1/2), the speed in W2."""
        return float(np.sqrt(self.masses @ self.chart.lengths(x, velocity) ** 2))
