"""Where something happens on a branch."""

from dataclasses import dataclass

import numpy as np

from .state import StationaryState

__all__ = ["SpecialPoint"]


@dataclass(frozen=True, eq=False)
class SpecialPoint:
    """Where something happens on a branch.

    Attributes
    ----------
    kind : str
        "bifurcation", "fold", "symmetry breaking", "transition" (the free energy is that of the
        uniform state).
    parameter : str
        "kappa" or "beta".
    value : float
        Of the parameter.
    interval : (float, float)
        In which it was found to lie.
    status : str
        "exact" on the uniform state, "not followed" there if no branch was found; "converged", or
        "not located".
    branch : int
        0 for the uniform state.
    degree : int
        Of the harmonic with which the branch began, or begins here.
    order : int
        Of the perturbation that becomes neutral: see `Stability`.
    character : str
        Of bifurcations of the uniform state: "supercritical", "subcritical", "transcritical".
    coefficients : (float, float)
        Of bifurcations of the uniform state: c_1 and c_2 of the normal form kappa = kappa_c (1 +
        c_1 a + c_2 a^2 + ...), a the moment of the harmonic; nan for other points.
    state : StationaryState
    """

    kind: str
    parameter: str
    value: float
    interval: tuple[float, float]
    status: str
    branch: int
    degree: int
    order: int
    character: str
    coefficients: tuple[float, float]
    state: StationaryState

    @property
    def kappa(self) -> float:
        return self.state.kappa

    @property
    def beta(self) -> float:
        """Of USA and SA; nan for other drifts."""
        return float(getattr(self.state.model.drift, "beta", np.nan))

    def __repr__(self) -> str:
        word = f"{self.character} {self.kind}" if self.character else self.kind
        return (
            f"SpecialPoint({word}, {self.parameter} = {self.value:.12g}, branch {self.branch}, "
            f"degree {self.degree}, {self.status})"
        )
