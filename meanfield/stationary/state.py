"""A stationary state, and how it was found."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..model import Transformer
from ..states import Density
from .equation import Equation
from .harmonics import harmonic_sizes
from .stability import Stability, stability_of

__all__ = ["StationaryState"]


@dataclass(frozen=True, eq=False, repr=False)
class StationaryState:
    """mu = exp(kappa g[mu]) / Z.

    Attributes
    ----------
    model : Transformer
    density : Density
    status : str
        "converged", or why Newton's method ended: "stalled", "singular", "max_iterations",
        "unresolved".
    message : str
    residual : float
        max_l |a_l - int p_l exp(kappa g[a]) / Z| of the moments a.
    residuals : list of float
        Before every step of Newton's method.
    free_energy : float
        F(mu) - F(uniform); nan for SA, which has none.
    """

    model: Transformer
    density: Density
    status: str
    message: str
    residuals: list[float]
    equation: Equation = field(repr=False)
    moments: np.ndarray = field(repr=False)
    axis: Any = field(repr=False)

    @property
    def converged(self) -> bool:
        return self.status == "converged"

    @property
    def residual(self) -> float:
        return self.residuals[-1]

    @property
    def kappa(self) -> float:
        return float(self.model.kappa)

    @property
    def free_energy(self) -> float:
        return self.equation.free_energy(self.moments, self.kappa)

    @property
    def order_parameter(self) -> float:
        """|int x dmu|."""
        return float(abs(self.moments[0]) / self.equation.dimension**0.5)

    @property
    def legendre_moments(self) -> np.ndarray:
        """int P_l(<x, axis>) dmu for l = 1, 2, ...; int cos(l theta) dmu on the circle."""
        return self.moments / harmonic_sizes(self.equation.dimension, len(self.moments))

    def stability(self, count: int = 6) -> Stability:
        """The leading eigenvalues of the linearised equation: `meanfield.stability`."""
        return stability_of(self.equation, self.moments, self.kappa, count)

    def __repr__(self) -> str:
        return (
            f"StationaryState({self.model!r}, r = {self.order_parameter:.6g}, {self.status}, "
            f"residual {self.residual:.1e})"
        )
