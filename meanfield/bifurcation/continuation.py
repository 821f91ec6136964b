"""Pseudo-arclength continuation, and the curves of stationary states in kappa or a parameter.

Unknowns are z = (m, p), Legendre moments and parameters, one more than there are equations. From a
point z with the unit tangent t the next one solves F(z') = 0, <t, z' - z> = step, which is regular
at folds too, where p turns back. Steps are adapted to the angle between successive tangents and to
the convergence of Newton's method. The metric is ds^2 = 2 sum dm_l^2 + dp^2.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..core.cached import cached_property
from ..core.errors import MeanfieldError
from ..core.identity import digest
from .bases import Basis
from .families import EquationFamily, OutsideDomain, equation_of
from .journal import AnswerJournal, recalled
from .newton import Bordered, Coupled, Iteration, determinant, newton
from .newton import solved as linear_solution
from .normal_forms import TINY_NUMBER, Onset, normal_form, zeros

CURVE_TOLERANCE = 1e-12
SHORTEST_STEP = 1e-8
STRAIGHT, CURVED = 0.999, 0.98  # cosines between tangents: steps grow above, and are halved below
MOST_NEWTON_STEPS = 7  # of a step; with more it is halved
# A curve stops after so many steps shorter than this part of the longest one:
SHORT_STEPS, SHORT_STEP_PART = 100, 2e-3
GROWTH = 1.6  # factor by which steps grow
LARGEST_DETERMINANT = 1e300  # larger ones overflow, as with many frequencies; the sign counts
LOG_KAPPA_STEP = 1e-3  # difference for derivatives by log kappa
ONSET_GRID = 200  # values of a parameter; onsets are sign changes between neighbours
REACH_ABOVE_RANGE = 2.0  # times the end of a range of kappa: branches are followed up to it
STRONGEST_NOISE = 1e-3  # times a kappa: the only state there is without order


class CurvesCross(MeanfieldError):
    """A curve has no tangent at a point, where it crosses another one."""


class CurvePoint(NamedTuple):
    """One point of a curve.

    Attributes
    ----------
    z : ndarray, (N + k,)
        Moments and parameters.
    tangent : ndarray, (N + k,)
        Unit tangent in the metric of the curve.
    value : float
        Value of kappa or the parameter that the last entry p of z represents.
    tests : dict of str to float
        Values of test functions, which vanish at special points, by kind; empty if not computed.
    rates : sequence of ndarray
        Growth rates of perturbations, one decreasing array for each order; empty if not computed.
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
    journal : AnswerJournal, optional
        Journal in which computed results are saved.

    Attributes
    ----------
    lengths : ndarray, (N + k,)
        Weights of the squared entries of a change of z in the metric.
    """

    def __init__(
        self, size: int, parameters: int, max_step: float, journal: AnswerJournal | None = None
    ):
        self.max_step, self.journal = max_step, journal
        self.lengths = np.append(np.full(size, 2.0), np.ones(parameters))

    straight, curved = STRAIGHT, CURVED
    chords = 1  # iterations that count as one of Newton's method

    @abstractmethod
    def identity(self) -> tuple[Any, ...]:
        """Values that distinguish this curve from others of one search, in the journal."""

    @cached_property
    def _digest(self) -> str:
        """Digest of class and identity."""
        return digest((type(self), *self.identity()))

    def recalled(self, what: str, given: tuple[Any, ...], find: Callable[[], Any]) -> np.ndarray:
        """The result of find() as a flat array, from the journal if it was computed before.

        `what` and `given` name the computation and its arguments.
        """
        question = () if self.journal is None else (self._digest, what, *given)
        return recalled(self.journal, question, find)

    def value(self, p: float) -> float:
        """The value that a last parameter p represents: exp(p) for kappa, else p."""
        return float(p)

    def coordinate(self, value: float) -> float:
        """The last parameter p that represents a value: log(kappa), or the value itself."""
        return float(value)

    @abstractmethod
    def in_plane(self, z: np.ndarray, row: np.ndarray, value: float) -> tuple[np.ndarray, Any]:
        """F and <row, z> - value at z, and a function that computes their derivative.

        Raises
        ------
        OutsideDomain
            If there is no equation for the parameters.
        """

    def in_plane_or_inf(self, z: np.ndarray, row: np.ndarray, value: float) -> tuple[Any, Any]:
        """`in_plane`; infinite where there is no equation, as after too long a step."""
        try:
            with np.errstate(all="ignore"):  # too long a step may overflow
                return self.in_plane(z, row, value)
        except OutsideDomain:
            return np.full(len(z), np.inf), lambda: np.eye(len(z))

    @abstractmethod
    def iteration(self, start: np.ndarray, row: np.ndarray, value: float) -> Iteration:
        """Newton's method for F(z) = 0 and <row, z> = value from a start."""

    def solved(
        self, start: np.ndarray, row: np.ndarray, value: float, most: int | None = None
    ) -> np.ndarray | None:
        """The solution of F(z) = 0 and <row, z> = value near a start.

        None if Newton's method does not converge, or needs more than `most` steps.
        """

        def find() -> np.ndarray:
            iteration = self.iteration(start, row, value)
            slow = most is not None and len(iteration.residuals) > self.chords * most
            return iteration.x if iteration.converged and not slow else np.zeros(0)

        z = self.recalled("solved", (start, row, value, most), find)
        return z if z.size else None

    @abstractmethod
    def point(self, z: np.ndarray, direction: np.ndarray) -> CurvePoint:
        """The point z with its unit tangent t, <t, direction> > 0 in the metric of the curve."""

    def distance(self, point: CurvePoint, other: CurvePoint) -> float:
        """Distance from `point` to `other` along the tangent of `point`."""
        return float(self.lengths * point.tangent @ (other.z - point.z))

    def ahead(self, point: CurvePoint, step: float, most: int | None = None) -> CurvePoint | None:
        """The next point at a distance `step`; None if Newton's method fails in `most` steps."""
        start, row = point.z + step * point.tangent, self.lengths * point.tangent
        z = self.solved(start, row, float(row @ start), most)
        return None if z is None else self.point(z, point.tangent)

    def at_value(self, near: np.ndarray, value: float) -> np.ndarray | None:
        """The solution near z with the given value of the last parameter; None if there is none."""
        p = self.coordinate(value)
        row = np.append(np.zeros(len(near) - 1), 1.0)
        return self.solved(np.append(near[:-1], p), row, p)

    def stepped(self, point: CurvePoint, step: float) -> tuple[CurvePoint, float, float] | None:
        """The next point, the step used, which is at most `step`, and a proposal for the next step.

        The step is halved until it succeeds; None below 1e-8.
        """
        while (new := self._tried(point, step)) is None:
            step /= 2
            if step < SHORTEST_STEP:
                return None
        straight = self._cosine(new, point) > self.straight
        return new, step, min(step * GROWTH, self.max_step) if straight else step

    def shrinking(self, count: int, step: float) -> int:
        """Number of successive short steps with one more step; `count` without it."""
        return count + 1 if step < SHORT_STEP_PART * self.max_step else 0

    def kinks(self, z: np.ndarray) -> dict[str, float]:
        """Values of parameters near z at which the equation has no derivative, by name."""
        return {}

    def sentences_of_kinks(self, z: np.ndarray) -> list[str]:
        """Sentences about parameters by which the model has no derivative near z."""
        return [
            f"the model has no derivative by {name} at {name} = {kink:.4g}, where curves end: take "
            "a range on each side of it."
            for name, kink in self.kinks(z).items()
        ]

    def _tried(self, point: CurvePoint, step: float) -> CurvePoint | None:
        """The next point; None if Newton's method fails or the tangent turns too far."""
        new = self.ahead(point, step, MOST_NEWTON_STEPS)
        return new if new is not None and self._cosine(new, point) > self.curved else None

    def _cosine(self, new: CurvePoint, point: CurvePoint) -> float:
        """Cosine of the angle between the tangents of two points, in the metric of the curve."""
        return float(self.lengths * new.tangent @ point.tangent)


class DenseCurve(Curve):
    """Curve of equations whose Jacobian is one matrix.

    Attributes
    ----------
    basis : Basis
        Basis of the first N unknowns.
    """

    basis: Any

    @abstractmethod
    def system(
        self, z: np.ndarray, row: np.ndarray | None = None
    ) -> tuple[np.ndarray, Callable[[], Any]]:
        """F at z, (N + k - 1,), and a function that computes its Jacobian (N + k - 1, N + k).

        With a `row` (N + k,), the Jacobian has this row below it.

        Raises
        ------
        OutsideDomain
            If there is no equation for the parameters.
        """

    def jacobian(self, z: np.ndarray) -> np.ndarray:
        """dF/dz, (N + k - 1, N + k)."""
        return self.system(z)[1]()

    def in_plane(self, z: np.ndarray, row: np.ndarray, value: float) -> tuple[np.ndarray, Any]:
        residual, matrix = self.system(z, row)
        return np.append(residual, row @ z - value), matrix

    def iteration(self, start: np.ndarray, row: np.ndarray, value: float) -> Iteration:
        system = partial(self.in_plane_or_inf, row=row, value=value)
        return newton(system, start, CURVE_TOLERANCE)

    def point(self, z: np.ndarray, direction: np.ndarray) -> CurvePoint:
        def find() -> np.ndarray:
            matrix = self.system(z, self.lengths * direction)[1]()
            try:
                tangent = linear_solution(matrix, np.append(np.zeros(len(z) - 1), 1.0))
            except np.linalg.LinAlgError:
                raise CurvesCross(
                    f"Curves cross at the value {self.value(z[-1]):.6g} of their parameter, where "
                    "none has a direction of its own: leave it out of the range."
                ) from None
            return tangent / np.sqrt(self.lengths @ tangent**2)

        return CurvePoint(z, self.recalled("tangent", (z, direction), find), self.value(z[-1]))


class StationaryCurve(DenseCurve):
    """Stationary states (m, p) of one symmetry as kappa or a parameter of the model changes.

    A subclass maps p to (equation, kappa): p is log kappa, or a parameter of the drift or model.

    Parameters
    ----------
    drift : ZonalDrift, or type
    basis : Basis
    parameter : str
        Name of the parameter, "kappa" or another one.
    span : (float, float)
        Range of the parameter.
    kappa : float or None
        Constant kappa, if another parameter varies; None if each model has its own.
    max_step : float
        Longest step in (m, p).
    journal : AnswerJournal, optional
        Journal in which computed results are saved.

    Attributes
    ----------
    reach : (float, float)
        Range of the parameter in which branches are followed; contains `span`.
    """

    reach: tuple[float, float]

    def __init__(
        self, drift: Any, basis: Basis, parameter: str, span: tuple[float, float],
        kappa: float | None, max_step: float, journal: AnswerJournal | None,
    ):  # fmt: skip
        super().__init__(len(basis.degrees), 1, max_step, journal)
        self._latest: tuple[Any, Any] = (None, None)  # z and `_derivatives`
        self.drift, self.basis, self.parameter = drift, basis, parameter
        self.span, self.kappa = span, kappa
        self.lengths[:-1] *= basis.shares

    def at(self, p: float) -> tuple[Any, float]:
        """Equation and kappa at p; raises OutsideDomain if there is no equation."""
        return self.of_value(self.value(p))

    @abstractmethod
    def of_value(self, value: float) -> tuple[Any, float]:
        """Equation and kappa at a value of the parameter; raises OutsideDomain, as `at`."""

    @abstractmethod
    def along(self, p: float, equation: Any, m: np.ndarray, mean: Any) -> np.ndarray:
        """dR/dp, (N,)."""

    @abstractmethod
    def onsets(self, degrees: list[int], span: tuple[float, float]) -> list[Onset]:
        """Onsets of the uniform state for some degrees, with values in a range of the parameter."""

    @abstractmethod
    def rate(self, z: np.ndarray) -> float:
        """Change of p near z = (m, p) equivalent to a unit change of log kappa."""

    def finer(self, degree: int) -> "StationaryCurve":
        """The curve truncated at another degree."""
        return self.among(self.basis.finer(degree))

    def among(self, basis: Any) -> "StationaryCurve":
        """The curve in another basis."""
        if basis is self.basis:
            return self
        return curve_of(self.drift, basis, self.parameter, self.span, self.kappa, self.max_step,
                        self.journal)  # fmt: skip

    def identity(self) -> tuple[Any, ...]:
        basis = self.basis
        return self.drift, self.parameter, self.span, self.kappa, basis.degree, basis.kept

    def uniform(self, value: float) -> np.ndarray:
        """z = (0, p) of the uniform state at a value of the parameter."""
        return np.append(np.zeros(len(self.basis.degrees)), self.coordinate(value))

    def _derivatives(self, z: np.ndarray, equation: Any, mean: Any) -> tuple[Any, np.ndarray]:
        """dR/dm of `coupled` and dR/dp; kept for the latest z."""
        if not np.array_equal(self._latest[0], z):
            along = self.along(float(z[-1]), equation, z[:-1], mean)
            self._latest = z.copy(), (equation.coupled(mean), along)
        return self._latest[1]

    def resolved(self, z: np.ndarray, value: float) -> "tuple[StationaryCurve, np.ndarray] | None":
        """The state near z = (m, p) at a value, on the curve whose degree resolves it.

        On the finest curve if none does; None if Newton's method fails.
        """
        curve, (equation, kappa) = self, self.at(z[-1])
        while not equation.resolves(z[:-1], kappa, curve.basis.unresolved):
            degree = 3 * curve.basis.degree // 2
            if degree > curve.basis.most:
                break
            curve = curve.finer(degree)
            near = curve.at_value(curve.padded(z), value)
            if near is None:
                return None
            z, (equation, kappa) = near, curve.at(near[-1])
        return curve, z

    def system(
        self, z: np.ndarray, row: np.ndarray | None = None
    ) -> tuple[np.ndarray, Callable[[], Any]]:
        """Residual m - <m>(m, kappa) at z = (m, parameter), and its Jacobian (n, n + 1)."""
        equation, kappa = self.at(z[-1])
        mean = equation.mean(z[:-1], kappa)

        def matrix() -> Any:
            inner, along = self._derivatives(z, equation, mean)
            if isinstance(inner, Coupled) and row is not None:
                return Bordered(inner, along, row)
            inner = equation.jacobian(mean) if isinstance(inner, Coupled) else inner
            return np.vstack([np.column_stack([inner, along]), *([] if row is None else [row])])

        return z[:-1] - mean.moments, matrix

    def padded(self, z: np.ndarray) -> np.ndarray:
        """A point (m, p) of a coarser basis, padded with zeros for missing moments."""
        return np.append(self.basis.padded(z[:-1]), z[-1])

    def singular(self, z: np.ndarray, row: np.ndarray) -> float:
        """det of dR/dz with `row` appended, which vanishes where another curve crosses.

        `row` (N + 1,) must not be orthogonal to the tangent.
        """

        def find() -> float:
            with np.errstate(over="ignore"):
                value = determinant(self.system(z, row)[1]())
            return float(np.clip(value, -LARGEST_DETERMINANT, LARGEST_DETERMINANT))

        return self.recalled("singular", (z, row), find).item()

    def kernel(self, z: np.ndarray) -> tuple[np.ndarray, float]:
        """Right singular vector of the least singular value of dR/dz, and null vector: (2, N + 1).

        Also this singular value, which is 0 where curves cross.
        """

        def find() -> np.ndarray:
            _, sizes, rows = np.linalg.svd(self.jacobian(z))
            return np.append(rows[-2:], sizes[-1])

        *rows, size = np.split(self.recalled("kernel", (z,), find), [len(z), 2 * len(z)])
        return np.array(rows), size.item()

    def resolves(self, point: CurvePoint, tail: float) -> bool:
        """Whether the last moments are at most `tail` plus a bound of rounding errors."""

        def find() -> float:
            equation, kappa = self.at(point.p)
            return equation.resolves(point.m, kappa, tail)

        return bool(self.recalled("resolves", (point.z, tail), find).item())


class InKappa(StationaryCurve):
    """Curve of states of one drift or model in p = log kappa."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.equation = equation_of(self.drift, self.basis)
        low, high = self.span  # a branch to the uniform state ends there, with no lower bound
        lowest = 0.0 if self.basis.symmetric else STRONGEST_NOISE * low
        self.reach = lowest, REACH_ABOVE_RANGE * high

    def of_value(self, value: float) -> tuple[Any, float]:
        if not np.isfinite(value):
            raise OutsideDomain(f"kappa = {value}")
        return self.equation, value

    def along(self, p: float, equation: Any, m: np.ndarray, mean: Any) -> np.ndarray:
        return equation.by_log_kappa(mean)

    def rate(self, z: np.ndarray) -> float:
        return 1.0

    def value(self, p: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.exp(p))

    def coordinate(self, value: float) -> float:
        return float(np.log(value))

    def onsets(self, degrees: list[int], span: tuple[float, float]) -> list[Onset]:
        w, onsets = self.equation.multipliers(self.basis), []
        for degree in degrees:
            weight = w[self.basis.index(degree)]
            if span[0] * weight < 1 < span[1] * weight:
                form = normal_form(self.equation, degree)
                place, alike = float(np.log(form.kappa)), np.ones(len(w))
                onsets.append(Onset(float(form.kappa), form, place, 1.0, alike))
        return onsets


class InParameter(StationaryCurve):
    """Curve of states in a parameter p, at one kappa or that of each model."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.reach = self.span
        self.family = EquationFamily(self.drift, self.parameter, self.span, self.basis)

    def among(self, basis: Any) -> StationaryCurve:
        other: Any = super().among(basis)
        if other is not self:
            other.family = self.family.among(basis)
        return other

    def of_value(self, value: float) -> tuple[Any, float]:
        kappa = self.family.kappa(value) if self.kappa is None else self.kappa
        return self.family.at(value), kappa

    def along(self, p: float, equation: Any, m: np.ndarray, mean: Any) -> np.ndarray:
        change = equation.by_parameter(m, mean)
        if self.kappa is None:
            change = change + self.family.log_kappa_change(p) * equation.by_log_kappa(mean)
        return change

    def rate(self, z: np.ndarray) -> float:
        """The ratio of the changes of dR/dm by both, at most 1000 widths of the range.

        1 where dR/dm does not change with kappa.
        """

        def find() -> float:
            points, slopes = self.family.stencil(float(z[-1]))
            ends = [int(np.argmin(slopes)), int(np.argmax(slopes))]
            (here, kappa), *around = map(self.at, (z[-1], *points[ends]))
            pairs = *around, (here, kappa), (here, kappa * np.exp(LOG_KAPPA_STEP))
            inner = [one.jacobian(one.mean(z[:-1], k)) for one, k in pairs]
            by_log_kappa, change = np.abs(inner[3] - inner[2]), np.abs(inner[1] - inner[0])
            most = (self.span[1] - self.span[0]) / LOG_KAPPA_STEP
            way = abs(points[ends[1]] - points[ends[0]]) * by_log_kappa.max() / LOG_KAPPA_STEP
            rate = float(min(most, way / max(change.max(), TINY_NUMBER)))
            return rate or 1.0  # unknown where the linearisation does not change with kappa

        return self.recalled("rate", (z,), find).item()

    def kinks(self, z: np.ndarray) -> dict[str, float]:
        return self.family.kinks(float(z[-1]))

    def onsets(self, degrees: list[int], span: tuple[float, float]) -> list[Onset]:
        """Onsets in a span: zeros of kappa lambda_l - 1, found on a grid, for each degree."""

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
                points, slopes = self.family.stencil(value)
                kappas = np.array([[self.at(p)[1]] for p in points])
                growth = slopes @ (kappas * self.family.weights(points)[:, self.basis.degrees])
                form, own = normal_form(self.family.at(value), degree), float(growth[index])
                onsets.append(Onset(value, form, value, 1 / own, growth / own))
        return onsets


def curve_of(
    drift: Any, basis: Basis, parameter: str, span: tuple[float, float], kappa: float | None,
    max_step: float = 1.0, journal: AnswerJournal | None = None,
) -> StationaryCurve:  # fmt: skip
    """The curve of a drift or model in kappa, or in another parameter.

    In another parameter, kappa is constant, or that of each model if `kappa` is None.
    """
    kind = InKappa if parameter == "kappa" else InParameter
    return kind(drift, basis, parameter, span, kappa, max_step, journal)
