"""A stationary state, and how it was found."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.checks import whole_number
from ..models.transformer import Transformer
from ..spaces import Geometry
from ..spaces.density import Density
from .equation import Equation
from .path import Path
from .placement import density_of
from .stability import Stability, stability_of

__all__ = ["StationaryState", "state_at"]


@dataclass(frozen=True, eq=False, repr=False)
class StationaryState:
    """mu = exp(kappa g[mu]) / Z.

    Attributes
    ----------
    model : Transformer
    density : Density
    status : str
        "converged", or why Newton's method ended: "stalled", "singular", "max_iterations",
        "unresolved", "known" (one of those to be apart from).
    message : str
    residual : float
        max_l |m_l - int P_l exp(kappa g) / Z| of the Legendre moments.
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
        first = self.equation.degrees[0] == 1
        return float(abs(self.moments[0]) / self.equation.dimension**0.5) if first else 0.0

    @property
    def legendre_moments(self) -> np.ndarray:
        """int P_l(<x, axis>) dmu for l = 1, 2, ...; int cos(l theta) dmu on the circle.

        For polyhedra, moments of the invariants over sqrt(2 l + 1).
        """
        return self.moments / self.equation.basis.sizes

    def stability(self, count: int = 6) -> Stability:
        """The leading eigenvalues of the linearised equation: `meanfield.stability`."""
        count = whole_number("stability needs a count", "count", count)
        return stability_of(self.equation, self.moments, self.kappa, count)

    def __repr__(self) -> str:
        return (
            f"StationaryState({self.model!r}, r = {self.order_parameter:.6g}, {self.status}, "
            f"residual {self.residual:.1e})"
        )


def state_at(path: Path, z: np.ndarray, geometry: Geometry, axis: Any) -> StationaryState:
    """A point (a, p) of a branch as a state; degrees that a has not got are 0."""
    equation, kappa = path.at(float(z[-1]))
    a = np.pad(z[:-1], (0, len(equation.degrees) + 1 - len(z)))
    residual = equation.residual(a, kappa)
    density = density_of(a, equation.basis, geometry, axis)
    model = Transformer(equation.drift, kappa)
    return StationaryState(
        model, density, "converged", "A point of a branch.", [residual], equation, a, axis
    )
