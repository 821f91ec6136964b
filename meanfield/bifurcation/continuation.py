"""Pseudo-arclength continuation, and the curves of stationary states in kappa or a parameter.

Unknowns are z = (m, p), Legendre moments and parameters, one more than there are equations. From a
point z with the unit tangent t the next one solves F(z') = 0, <t, z' - z> = step: that is regular
at folds too, where p turns back. Steps grow and shrink with the angle that the curve turns by and
with the work of Newton's method. Lengths are ds^2 = 2 sum dm_l^2 + dp^2.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..core.cached import cached_property
from ..core.identity import digest
from .bases import Basis
from .families import EquationFamily, OutsideDomain, equation_of
from .journal import AnswerJournal
from .newton import newton
from .normal_forms import Onset, normal_form, zeros

CURVE_TOLERANCE = 1e-12
SHORTEST_STEP = 1e-8
STRAIGHT, CURVED = 0.999, 0.98  # cosines of the angle between tangents: longer, shorter steps
MOST_NEWTON_STEPS = 7  # Newton steps
GROWTH = 1.6
ONSET_GRID = 200  # values of a parameter between which onsets are looked for
REACH_ABOVE_RANGE = 2.0  # times a range of kappa: how far above it branches are followed


class CurvePoint(NamedTuple):
    """One point of a curve.

    Attributes
    ----------
    z : ndarray, (N + k,)
        Moments and parameters.
    tangent : ndarray, (N + k,)
        Of length 1.
    value : float
        That the last parameter stands for.
    tests : dict of str to float
        Values of the functions that vanish at special points, by their kind; if they are known.
    rates : sequence of ndarray
        BranchSearch rates of perturbations by order, in decreasing order; empty if not asked for.
    """

    z: np.ndarray
    tangent: np.ndarray
    value: float
    tests: Mapping[str, float] = MappingProxyType({})
    rates: Sequence[np.ndarray] = ()

    @property
    def m(self) -> np.ndarray:
        """The moments of a point with one parameter."""
        return self.z[:-1]

    @property
    def p(self) -> float:
        """The last parameter."""
        return float(self.z[-1])


class Curve(ABC):
    """The solutions z = (m, p_1, ..., p_k) of N + k - 1 equations F(z) = 0.

    Parameters
    ----------
    size, parameters : int
        N and k.
    max_step : float
        Longest step in z.
    journal : Journal, optional
        Where answers are kept.
    """

    def __init__(
        self, size: int, parameters: int, max_step: float, journal: AnswerJournal | None = None
    ):
        self.max_step, self.journal = max_step, journal
        self._lengths = np.append(np.full(size, 2.0), np.ones(parameters))

    @abstractmethod
    def identity(self) -> tuple[Any, ...]:
        """Values that tell this curve from others of one search."""

    @cached_property
    def _digest(self) -> str:
        return digest((type(self), *self.identity()))

    def recalled(self, what: str, given: tuple[Any, ...], find: Callable[[], Any]) -> np.ndarray:
        """The numbers that `find` gives, in one row, unless the journal has them."""
        if self.journal is None:
            return np.ravel(find())
        return self.journal.recall((self._digest, what, *given), find)

    @abstractmethod
    def system(self, z: np.ndarray) -> tuple[np.ndarray, Callable[[], np.ndarray]]:
        """F, and a function that gives its Jacobian (N + k - 1, N + k).

        Raises
        ------
        OutsideDomain
            For parameters that have no equation.
        """

    def value(self, p: float) -> float:
        """The value that the last parameter stands for."""
        return float(p)

    def coordinate(self, value: float) -> float:
        """The last parameter that stands for a value."""
        return float(value)

    def jacobian(self, z: np.ndarray) -> np.ndarray:
        """dF/dz, (N + k - 1, N + k)."""
        return self.system(z)[1]()

    def solved(
        self, start: np.ndarray, row: np.ndarray, value: float, most: int | None = None
    ) -> np.ndarray | None:
        """The solution of F(z) = 0 and <row, z> = value near a start.

        None where Newton's method finds none in `most` steps.
        """

        def bordered(z: np.ndarray) -> Any:
            try:
                with np.errstate(all="ignore"):  # a step too far gives no number
                    residual, jacobian = self.system(z)
            except OutsideDomain:  # a step too far; the next is shorter
                return np.full(len(z), np.inf), lambda: np.eye(len(z))
            return np.append(residual, row @ z - value), lambda: np.vstack([jacobian(), row])

        def find() -> np.ndarray:
            iteration = newton(bordered, start, CURVE_TOLERANCE)
            good = iteration.converged and not (most and len(iteration.residuals) > most)
            return iteration.x if good else np.zeros(0)

        z = self.recalled("solved", (start, row, value, most), find)
        return z if z.size else None

    def point(self, z: np.ndarray, direction: np.ndarray) -> CurvePoint:
        """The point with its tangent, which does not go against `direction`."""

        def find() -> np.ndarray:
            matrix = np.vstack([self.jacobian(z), self._lengths * direction])
            tangent = np.linalg.solve(matrix, np.append(np.zeros(len(z) - 1), 1.0))
            return tangent / np.sqrt(self._lengths @ tangent**2)

        return CurvePoint(z, self.recalled("tangent", (z, direction), find), self.value(z[-1]))

    def distance(self, point: CurvePoint, other: CurvePoint) -> float:
        """The distance by which another point lies ahead of one, along its tangent."""
        return float(self._lengths * point.tangent @ (other.z - point.z))

    def ahead(self, point: CurvePoint, step: float, most: int | None = None) -> CurvePoint | None:
        """The point a step further, or None where Newton's method finds none in `most` steps."""
        start, row = point.z + step * point.tangent, self._lengths * point.tangent
        z = self.solved(start, row, float(row @ start), most)
        return None if z is None else self.point(z, point.tangent)

    def at_value(self, near: np.ndarray, value: float) -> np.ndarray | None:
        """The solution near z at which the last parameter stands for this value, or None."""
        p = self.coordinate(value)
        row = np.append(np.zeros(len(near) - 1), 1.0)
        return self.solved(np.append(near[:-1], p), row, p)

    def stepped(self, point: CurvePoint, step: float) -> tuple[CurvePoint, float, float] | None:
        """The next point, the step that led to it, at most `step`, and a proposal for the next one.

        None where none is found.
        """
        while (new := self._tried(point, step)) is None:
            step /= 2
            if step < SHORTEST_STEP:
                return None
        straight = self._cosine(new, point) > STRAIGHT
        return new, step, min(step * GROWTH, self.max_step) if straight else step

    def _tried(self, point: CurvePoint, step: float) -> CurvePoint | None:
        new = self.ahead(point, step, MOST_NEWTON_STEPS)
        return new if new is not None and self._cosine(new, point) > CURVED else None

    def _cosine(self, new: CurvePoint, point: CurvePoint) -> float:
        return float(self._lengths * new.tangent @ point.tangent)


class StationaryCurve(Curve):
    """The stationary states (m, p) of one symmetry as kappa or a parameter of the drift changes.

    A curve p -> (equation, kappa) says what p stands for: log kappa, or a parameter of the drift.

    Parameters
    ----------
    drift : ZonalDrift, or type
    basis : Basis
    parameter : str
        The name of what p stands for.
    span : (float, float)
        The range of the parameter.
    kappa : float or None
        Where it is the same everywhere.
    max_step : float
        Longest step in (m, p).
    journal : Journal, optional
        Where answers are kept.

    Attributes
    ----------
    reach : (float, float)
        Where branches are followed for the sake of the range.
    """

    reach: tuple[float, float]

    def __init__(
        self, drift: Any, basis: Basis, parameter: str, span: tuple[float, float],
        kappa: float | None, max_step: float, journal: AnswerJournal | None,
    ):  # fmt: skip
        super().__init__(len(basis.degrees), 1, max_step, journal)
        self.drift, self.basis, self.parameter = drift, basis, parameter
        self.span, self.kappa = span, kappa

    @abstractmethod
    def at(self, p: float) -> tuple[Any, float]:
        """Equation and kappa; raises OutsideDomain where there are none."""

    @abstractmethod
    def along(self, p: float, equation: Any, m: np.ndarray, mean: Any) -> np.ndarray:
        """dR/dp, (N,)."""

    @abstractmethod
    def onsets(self, degrees: list[int], span: tuple[float, float]) -> list[Onset]:
        """The onsets in a range of harmonics of some degrees."""

    def finer(self, degree: int) -> "StationaryCurve":
        """This curve in more functions."""
        return self.among(self.basis.finer(degree))

    def among(self, basis: Any) -> "StationaryCurve":
        """This curve in other functions."""
        if basis is self.basis:
            return self
        return curve_of(self.drift, basis, self.parameter, self.span, self.kappa, self.max_step,
                        self.journal)  # fmt: skip

    def identity(self) -> tuple[Any, ...]:
        basis = self.basis
        return self.drift, self.parameter, self.span, self.kappa, basis.degree, basis.kept

    def uniform(self, value: float) -> np.ndarray:
        """The uniform state at a value of the parameter, (m, p)."""
        return np.append(np.zeros(len(self.basis.degrees)), self.coordinate(value))

    def system(self, z: np.ndarray) -> tuple[np.ndarray, Callable[[], np.ndarray]]:
        equation, kappa = self.at(z[-1])
        mean = equation.mean(z[:-1], kappa)

        def jacobian() -> np.ndarray:
            along = self.along(float(z[-1]), equation, z[:-1], mean)
            return np.column_stack([equation.jacobian(mean), along])

        return z[:-1] - mean.moments, jacobian

    def padded(self, z: np.ndarray) -> np.ndarray:
        """A point in fewer functions as one of this curve."""
        return np.append(self.basis.padded(z[:-1]), z[-1])

    def singular(self, z: np.ndarray, row: np.ndarray) -> float:
        """det (dR/dz, row), zero where another curve crosses, for any row along the tangent."""

        def find() -> float:
            return float(np.linalg.det(np.vstack([self.jacobian(z), row])))

        return self.recalled("singular", (z, row), find).item()

    def kernel(self, z: np.ndarray) -> tuple[np.ndarray, float]:
        """Two orthonormal directions (2, N + 1) that change R least, and by how much at most."""

        def find() -> np.ndarray:
            _, sizes, rows = np.linalg.svd(self.jacobian(z))
            return np.append(rows[-2:], sizes[-1])

        *rows, size = np.split(self.recalled("kernel", (z,), find), [len(z), 2 * len(z)])
        return np.array(rows), size.item()

    def resolves(self, point: CurvePoint, tail: float) -> bool:
        """Whether the last moments are below `tail` and rounding."""

        def find() -> float:
            equation, kappa = self.at(point.p)
            return equation.resolves(point.m, kappa, tail)

        return bool(self.recalled("resolves", (point.z, tail), find).item())


class InKappa(StationaryCurve):
    """One drift, p = log kappa."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.equation = equation_of(self.drift, self.basis)
        # Where noise is strong, only the uniform state is left.
        self.reach = 0.0, REACH_ABOVE_RANGE * self.span[1]

    def at(self, p: float) -> tuple[Any, float]:
        kappa = self.value(p)
        if not np.isfinite(kappa):
            raise OutsideDomain(f"kappa = {kappa}")
        return self.equation, kappa

    def along(self, p: float, equation: Any, m: np.ndarray, mean: Any) -> np.ndarray:
        return equation.by_log_kappa(mean)

    def value(self, p: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.exp(p))

    def coordinate(self, value: float) -> float:
        return float(np.log(value))

    def onsets(self, degrees: list[int], span: tuple[float, float]) -> list[Onset]:
        w, onsets = self.equation.multipliers(self.basis), []
        for degree in degrees:
            weight = w[self.basis.index(degree)]
            if weight > 0 and span[0] < 1 / weight < span[1]:
                form = normal_form(self.equation, degree)
                onsets.append(Onset(float(form.kappa), form, float(np.log(form.kappa)), 1.0))
        return onsets


class InParameter(StationaryCurve):
    """A drift of which one parameter p changes, at one kappa."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.reach = self.span
        self.family = EquationFamily(self.drift, self.parameter, self.span, self.basis)

    def at(self, p: float) -> tuple[Any, float]:
        kappa = self.family.kappa(p) if self.kappa is None else self.kappa
        return self.family.at(p), kappa

    def along(self, p: float, equation: Any, m: np.ndarray, mean: Any) -> np.ndarray:
        change = equation.by_parameter(m, mean)
        if self.kappa is None:
            change = change + self.family.log_kappa_change(p) * equation.by_log_kappa(mean)
        return change

    def onsets(self, degrees: list[int], span: tuple[float, float]) -> list[Onset]:
        def excess(value: float) -> float:
            equation, kappa = self.at(value)
            return float(kappa * equation.multipliers(self.basis)[index] - 1)

        onsets, grid = [], np.linspace(*span, ONSET_GRID)
        kappas = (
            np.array([self.at(value)[1] for value in grid]) if self.kappa is None else self.kappa
        )
        excesses = np.reshape(kappas, (-1, 1)) * self.family.weights(grid) - 1
        for degree in degrees:
            index, row = self.basis.index(degree), excesses[:, degree]
            for value in zeros(excess, grid, row):
                form = normal_form(self.family.at(value), degree)
                onsets.append(Onset(value, form, value, 1 / self._growth(value, degree)))
        return onsets

    def _growth(self, value: float, degree: int) -> float:
        """d log(kappa w)/dp of the multiplier of a degree."""
        points, slopes = self.family.stencil(value)
        kappas = [self.at(point)[1] for point in points]
        return float(slopes @ np.log(kappas * self.family.weights(points)[:, degree]))


def curve_of(
    drift: Any, basis: Basis, parameter: str, span: tuple[float, float], kappa: float | None,
    max_step: float = 1.0, journal: AnswerJournal | None = None,
) -> StationaryCurve:  # fmt: skip
    """The curve of a drift or model in kappa, or in another parameter.

    That is at one kappa, or at the kappa of each model if there is none.
    """
    kind = InKappa if parameter == "kappa" else InParameter
    return kind(drift, basis, parameter, span, kappa, max_step, journal)
