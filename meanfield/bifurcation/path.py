"""Ways through the plane of beta and kappa along which stationary states are followed."""

from abc import ABC, abstractmethod
from itertools import pairwise

import numpy as np

from ..models import SA, USA, ZonalDrift
from .basis import Basis
from .equation import Equation, Mean
from .family import Family
from .normal_form import NormalForm, normal_form

__all__ = ["Coupling", "Noise", "Onset", "Path", "path_of"]

GRID = 200  # values of beta between which onsets are looked for
EXACT = 1e-14
ABOVE = 2.0  # times a range: how far above it branches are followed


class Onset:
    """A point of the uniform state from which a branch leaves.

    Parameters
    ----------
    value : float
        Of the parameter.
    form : NormalForm
    rate : float
        d(coordinate)/dlog kappa_c, the shift of the coordinate that does what log kappa does.
    coordinate : float
    """

    def __init__(self, value: float, form: NormalForm, coordinate: float, rate: float):
        self.value, self.form, self._coordinate, self._rate = value, form, coordinate, rate

    def ahead(self, amplitude: float) -> float:
        """The coordinate of the state with a small amplitude."""
        if amplitude == 0:
            return self._coordinate
        change = self.form.linear * amplitude + self.form.quadratic * amplitude**2
        return self._coordinate + self._rate * float(np.log1p(change)) if change > -1 else np.nan


class Path(ABC):
    """A curve p -> (equation, kappa).

    Attributes
    ----------
    parameter : str
        "kappa" or "beta": what p stands for.
    basis : Basis
    """

    parameter: str
    basis: Basis

    @abstractmethod
    def at(self, p: float) -> tuple[Equation, float]:
        """Equation and kappa."""

    @abstractmethod
    def along(self, equation: Equation, a: np.ndarray, mean: Mean, kappa: float) -> np.ndarray:
        """dR/dp, (N,)."""

    @abstractmethod
    def value(self, p: float) -> float:
        """kappa or beta; a coordinate that stands for none of them gives nan."""

    @abstractmethod
    def coordinate(self, value: float) -> float:
        """p of a kappa or beta."""

    @abstractmethod
    def finer(self, degree: int) -> "Path":
        """The same path in more functions."""

    @abstractmethod
    def reach(self, span: tuple[float, float]) -> tuple[float, float]:
        """Where branches are followed for the sake of a range."""

    @abstractmethod
    def onsets(self, degree: int, span: tuple[float, float]) -> list[Onset]:
        """Where in a range the uniform state changes its stability to harmonics of a degree."""


class Noise(Path):
    """One drift, p = log kappa."""

    parameter = "kappa"

    def __init__(self, equation: Equation):
        self.equation, self.basis = equation, equation.basis

    def at(self, p: float) -> tuple[Equation, float]:
        return self.equation, float(np.exp(p))

    def along(self, equation: Equation, a: np.ndarray, mean: Mean, kappa: float) -> np.ndarray:
        return kappa * equation.along_kappa(mean)

    def value(self, p: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.exp(p))

    def coordinate(self, value: float) -> float:
        return float(np.log(value))

    def finer(self, degree: int) -> "Noise":
        return Noise(self.equation.finer(degree))

    def reach(self, span: tuple[float, float]) -> tuple[float, float]:
        return 0.0, ABOVE * span[1]  # where noise is strong nothing but the uniform state is left

    def onsets(self, degree: int, span: tuple[float, float]) -> list[Onset]:
        w = self.equation.weights[_index(self.basis, degree)]
        if w <= 0 or not span[0] < 1 / w < span[1]:
            return []
        form = normal_form(self.equation, degree)
        return [Onset(float(form.kappa), form, float(np.log(form.kappa)), 1.0)]


class Coupling(Path):
    """USA or SA at one kappa, p = beta."""

    parameter = "beta"

    def __init__(self, family: Family, kappa: float):
        self.family, self.kappa, self.basis = family, kappa, family.basis

    def at(self, p: float) -> tuple[Equation, float]:
        return self.family.at(p), self.kappa

    def along(self, equation: Equation, a: np.ndarray, mean: Mean, kappa: float) -> np.ndarray:
        return equation.along_beta(a, mean, kappa)  # type: ignore[attr-defined]

    def value(self, p: float) -> float:
        return float(p) if p > 0 else float("nan")

    def coordinate(self, value: float) -> float:
        return float(value)

    def finer(self, degree: int) -> "Coupling":
        return Coupling(self.family.finer(degree), self.kappa)

    def reach(self, span: tuple[float, float]) -> tuple[float, float]:
        return span

    def onsets(self, degree: int, span: tuple[float, float]) -> list[Onset]:
        from scipy.optimize import brentq

        index = _index(self.basis, degree)

        def excess(betas: np.ndarray | float) -> np.ndarray:
            return self.kappa * self.family.weights(betas)[..., index] - 1

        grid = np.linspace(*span, GRID)
        values = excess(grid)
        found = []
        for (low, first), (high, last) in pairwise(zip(grid, values, strict=True)):
            if first * last < 0:
                beta = float(brentq(excess, low, high, xtol=EXACT, rtol=4 * EXACT))
                member = self.family.at(beta)
                rate = member.weights[index] / member.weight_changes[index]
                found.append(Onset(beta, normal_form(member, degree), beta, float(rate)))
        return found


def path_of(drift: ZonalDrift | type[USA] | type[SA], basis: Basis, kappa: float | None) -> Path:
    """Through all kappa for a drift, through all beta for a kind of drift at one kappa."""
    if isinstance(drift, ZonalDrift):
        return Noise(Equation(drift, basis))
    assert kappa is not None
    return Coupling(Family(drift, basis), kappa)


def _index(basis: Basis, degree: int) -> int:
    return int(np.flatnonzero(basis.degrees == degree)[0])
