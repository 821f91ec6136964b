"""Curves of special points of stationary states in the plane of a parameter and kappa.

For planes without kappa, the second parameter replaces log kappa: see `planes`.

A state with a neutral perturbation is a fold, an onset, a loss of symmetry or a Hopf point. With B
the block of the Jacobian for the order of the perturbation, these are solutions of

    R(m, kappa, p) = 0,   sigma(m, kappa, p) = 0,   (B, b; c, 0) (v, sigma) = (0, 1),

as sigma vanishes where B is singular; its gradient is -u . dB v, with u from the transposed system
(Govaerts). For oscillations B is replaced by B + i omega E, E = diag(kappa/(l (l + d - 2))), with
the additional unknown omega. On a line of first-order transitions sigma is kappa (F(mu) -
F(uniform)), which is of size 1 for all p; its derivative by m vanishes at a solution.

Solutions are curves in (m, log kappa, p). A curve is cut into pieces where p turns back, for
example at a cusp.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .branch_matching import AMPLITUDE
from .branches import Following
from .continuation import CURVE_TOLERANCE, SHORT_STEPS, CurvePoint, DenseCurve
from .cycle_onset import LEAST_FREQUENCY, lyapunov_coefficient
from .detection import located, zero_near
from .families import EquationFamily
from .journal import AnswerJournal
from .newton import newton
from .normal_forms import zeros
from .planes import KappaPlane
from .stability import GROWING_RATE, growth_rates, neutral_among

MOST_CURVE_POINTS = 2000  # largest number of points of a curve in one direction
UNRESOLVED_TAIL = 1e-11  # largest last moment of a resolved state of a rotation-invariant model
ONSET_AMPLITUDE = 0.03  # L^2 norm of the order below which a curve has reached its onset
EXTRAPOLATED_AMPLITUDE = 0.3  # largest norm of the order from which an onset is extrapolated
CHANGE_HALVINGS = 4  # bisections of an interval in which the change of a curve changes
CUSP_SLOPE = 1e-4  # a turn of p is a cusp if |d log kappa| along the curve is smaller
SIDE_DISTANCE = 1e-6  # distance in log kappa at which states on both sides are compared
RING_OF_STATES = 1e-6  # largest |d log kappa/d amplitude^2| where rotated states are all stationary
SAME_CURVE = 1e-6  # tolerance on log kappa for two equal curves
FIRST_FREQUENCY = (
    0.1  # relative to the slowest diffusion: of Hopf points near a Bogdanov-Takens point
)
CURVE_KINDS = ("onset", "fold", "transition", "symmetry breaking", "Hopf")
MEETING_ENDS = ("cusp", "turn", "onset", "Bogdanov-Takens")  # ends at which curves meet


def _by_name(point: Any) -> str:
    """Text with the fields of a point, where `beta` and `kappa` have the names of parameters."""
    fields = point._asdict()
    names = {"beta": fields.pop("parameter"), "kappa": fields.pop("second")}
    shown = ", ".join(f"{names.get(f, f)}={fields[f]!r}" for f in fields)
    return f"{type(point).__name__}({shown})"


class Tricritical(NamedTuple):
    """A point at which the onset of degree l turns from continuous to discontinuous.

    Attributes
    ----------
    degree : int
    beta, kappa : float
        Values of `parameter` and of `second`, also if these are not beta and kappa.
    parameter, second : str
        Names of the parameters of the diagram.
    """

    degree: int
    beta: float
    kappa: float
    parameter: str = "beta"
    second: str = "kappa"

    def __repr__(self) -> str:
        return _by_name(self)


class Cusp(NamedTuple):
    """A cusp: the point at which two lines of folds meet and end.

    Attributes
    ----------
    beta, kappa : float
        Values of `parameter` and of `second`, also if these are not beta and kappa.
    parameter, second : str
        Names of the parameters of the diagram.
    """

    beta: float
    kappa: float
    parameter: str = "beta"
    second: str = "kappa"

    def __repr__(self) -> str:
        return _by_name(self)


class BogdanovTakens(Cusp):
    """A Bogdanov-Takens point: a curve of Hopf points begins on a line of folds."""


class GeneralisedHopf(Cusp):
    """A generalised Hopf (Bautin) point: the first Lyapunov coefficient of Hopf points is 0.

    A curve of folds of cycles begins there.
    """


class HopfFold(Cusp):
    """A Hopf-fold (zero-Hopf) point: a curve of Hopf points touches a line of folds."""


PLANE_POINTS = {
    "cusps": Cusp,
    "bogdanov_takens": BogdanovTakens,
    "generalised_hopf": GeneralisedHopf,
    "hopf_folds": HopfFold,
}  # by the name of their list in a phase diagram


class KappaRange(NamedTuple):
    """Range of kappa, in units of the onset of degree 1 at each parameter value if `relative`."""

    low: float = 0.0
    high: float = np.inf
    relative: bool = False

    def at(self, family: KappaPlane, value: float) -> tuple[float, float]:
        """Lower and upper end in kappa at a value of the parameter."""
        unit = critical(family, value) if self.relative else 1.0
        return self.low * unit, self.high * unit


class SpecialCurve(DenseCurve):
    """Curve of special points z = (m, log kappa, p) of one kind, or a piece of it.

    Parameters
    ----------
    family : KappaPlane
    kind : str
        One of `CURVE_KINDS`; with "Hopf" z = (m, omega, log kappa, p).
    order : int
        Order of the neutral perturbations.
    borders : ndarray, (2, n)
        b and c, approximate null vectors of the transpose of the block and of the block.
    max_step : float
        Longest step along the curve.
    points : ndarray, (k, N + 2), or (k, N + 3) for Hopf
        Points; p increases.
    changes : ndarray of int, (k,)
        Number of stable states just above the curve in kappa minus that just below. Not computed,
        and 0, for rotation-invariant models.
    journal : AnswerJournal, optional
        Journal in which computed results are saved.
    degree : int
        Degree of the onset of the states of a rotation-invariant model.

    Attributes
    ----------
    singular : list of (Cusp, ndarray)
        Special points of codimension two found by `pieces`, one of `PLANE_POINTS` each, and the
        point z (N + 2,) of each, without its frequency.
    """

    def __init__(
        self, family: KappaPlane, kind: str, order: int, borders: Any, max_step: float,
        points: Any = (), changes: Any = (), journal: AnswerJournal | None = None, degree: int = 1,
    ):  # fmt: skip
        self.basis = family.basis
        self.kind, self.order, self.degree, self.oscillates = kind, order, degree, kind == "Hopf"
        self.size = len(self.basis.degrees)
        super().__init__(self.size, 2 + self.oscillates, max_step, journal)
        self.family, self.borders = family, np.asarray(borders)
        self.points, self.changes = np.asarray(points), np.asarray(changes, dtype=int)
        self._part = self.basis.of_order(order) if order else self.basis.even
        self._recent: tuple[bytes, Any] = b"", None
        self.singular: list[tuple[Cusp, np.ndarray]] = []

    def identity(self) -> tuple[Any, ...]:
        basis, borders = self.basis, (self.borders.real, self.borders.imag)
        return self.kind, self.order, basis.degree, basis.kept, *borders

    def for_file(self) -> dict[str, Any]:
        """The curve without its family, from which `PhaseDiagram.made_of` makes it."""
        names = ("kind", "order", "borders", "max_step", "points", "changes", "degree")
        basis = {"kept": self.basis.kept, "truncation": self.basis.degree}
        return {name: getattr(self, name) for name in names} | basis

    def state(self, z: np.ndarray) -> tuple[Any, np.ndarray, Any]:
        """Equation and moments (N,) of a point z, and its evaluated density; the last is cached."""
        key = z.tobytes()
        if self._recent[0] != key:
            equation, kappa = self.family.equation(z[-1], z[-2])
            m = z[: self.size].copy()
            self._recent = key, (equation, m, equation.mean(m, kappa))
        return self._recent[1]

    def matrix(self, z: np.ndarray) -> np.ndarray:
        """B at z, (n, n); for Hopf B + i omega kappa diag(1/(l (l + d - 2)))."""
        equation, _, mean = self.state(z)
        block = equation.block(mean, self._part)
        return block + 1j * z[-3] * mean.kappa * self._inverse if self.oscillates else block

    def null_vectors(self, z: np.ndarray) -> np.ndarray:
        """Approximate null vectors of the transpose of B and of B at z, (2, n)."""
        left, _, right = np.linalg.svd(self.matrix(z))
        return np.array([left[:, -1], right[-1]])

    @property
    def _inverse(self) -> np.ndarray:
        return np.diag(1 / self._part.eigenvalues)

    def bordered(self, z: np.ndarray) -> tuple[np.ndarray, complex, Callable[[], np.ndarray]]:
        """v (n,) and sigma of the bordered system at z, and a function that computes u (n,)."""
        block, (b, c) = self.matrix(z), self.borders
        n = len(block)
        whole = np.zeros((n + 1, n + 1), dtype=block.dtype)
        whole[:n, :n], whole[:n, n], whole[n, :n] = block, b, c
        unit = np.append(np.zeros(n), 1.0)
        right = np.linalg.solve(whole, unit)
        return right[:n], right[n], lambda: np.linalg.solve(whole.T, unit)[:n]

    def slope(self, z: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Gradient of sigma by z, from `left` = u and `right` = v."""
        (equation, m, mean), at = self.state(z), (z[-1], z[-2])
        change = -self.family.block_change(*at, equation, mean, m, self._part, left, right)
        if not self.oscillates:
            return change
        turning = 1j * mean.kappa * (left @ self._inverse @ right)
        change[-2:] -= z[-3] * turning * self.family.kappa_slopes(*at)
        return np.insert(change, self.size, -turning)

    def condition(self, z: np.ndarray) -> tuple[Any, Callable[[], np.ndarray]]:
        """sigma at z, one number or two, and a function that computes its gradient by z."""
        if self.kind == "transition":
            equation, _, mean = self.state(z)
            energy = equation.free_energy(mean)

            def by_energy() -> np.ndarray:
                by_kappa = energy + equation.free_energy_by_log_kappa(mean)
                by_parameter = equation.free_energy_by_parameter(mean)
                return mean.kappa * np.append(np.zeros(self.size), [by_kappa, by_parameter])

            return mean.kappa * energy, by_energy
        right, sigma, left = self.bordered(z)

        def gradient() -> np.ndarray:
            row = self.slope(z, left(), right)
            return np.array([row.real, row.imag]) if self.oscillates else row

        return ([sigma.real, sigma.imag] if self.oscillates else sigma), gradient

    def system(
        self, z: np.ndarray, row: np.ndarray | None = None
    ) -> tuple[np.ndarray, Callable[[], Any]]:
        """Residuals m - <m> and sigma of the condition at z, and their Jacobian."""
        equation, m, mean = self.state(z)
        sigma, gradient = self.condition(z)

        def jacobian() -> np.ndarray:
            above = np.zeros((self.size, len(z)))
            above[:, : self.size] = equation.jacobian(mean)
            above[:, -2:] = self.family.slopes(z[-1], z[-2], equation, m, mean)
            return np.vstack([above, gradient(), *([] if row is None else [row])])

        return np.append(m - mean.moments, sigma), jacobian

    def kinks(self, z: np.ndarray) -> dict[str, float]:
        return self.family.kinks_at(z[-1], z[-2])

    def reaches(self, value: float) -> bool:
        """Whether a value of the parameter is between those of the first and the last point."""
        return bool(self.points[0, -1] <= value <= self.points[-1, -1])

    def second_value(self, z: np.ndarray) -> float:
        """Kappa, or the value of the second parameter, at a point."""
        return self.family.second_value(z[-2])

    def passes(self, kind: str, order: int, value: float, second: float) -> bool:
        """Whether the curve is of this kind and order and passes through this place."""
        if (self.kind, self.order) != (kind, order) or not self.reaches(value):
            return False
        z = self.at_value(between(self.points, value), value)
        return z is not None and bool(abs(z[-2] - self.family.coordinate(second)) < SAME_CURVE)

    # Following ----------------------------------------------------------------------------------

    def pieces(
        self, start: np.ndarray, kappas: KappaRange, following: Following
    ) -> Iterator[tuple["SpecialCurve", tuple[str, str]]]:
        """Follow the curve both ways from z = `start`; yields its pieces between turns of p.

        Each with the reasons why it ends at its lowest and highest p. Fills `singular`.
        """
        ways = [self._one_way(start, sign, kappas, following) for sign in (-1.0, 1.0)]
        (down, first), (up, last) = (way[0] for way in ways)
        yield self._piece([*down[::-1], start, *up], (first, last))
        for way in ways:
            for (_, before), (points, end) in pairwise(way):
                if len(points) > 1:
                    both = (before, end) if points[1][-1] > points[0][-1] else (end, before)
                    yield self._piece(points, both)

    def _piece(
        self, points: Iterable[np.ndarray], ends: tuple[str, str]
    ) -> tuple["SpecialCurve", tuple[str, str]]:
        """The curve through points, and its ends; points are added where `change` changes."""
        piece = SpecialCurve(
            self.family, self.kind, self.order, self.borders, self.max_step,
            sorted(points, key=lambda z: z[-1]), (), self.journal, self.degree,
        )  # fmt: skip
        changes = [piece.change(z) for z in piece.points]
        for end, inner, why in ((0, 1, ends[0]), (-1, -2, ends[1])):
            if why in MEETING_ENDS and len(changes) > 1:  # take the change of the inner point
                changes[end] = changes[inner]
        turned = [i for i, (one, other) in enumerate(pairwise(changes)) if one != other]
        for i in reversed(turned):  # from the last, so that indices stay valid
            more = piece._between_changes(piece.points[i], piece.points[i + 1], changes[i])
            piece.points = np.insert(piece.points, i + 1, more, axis=0)
            changes[i + 1 : i + 1] = [piece.change(z) for z in more]
        piece.changes = np.array(changes)
        return piece, ends

    def folding(self, z: np.ndarray) -> np.ndarray:
        """u . d^2R (v, v) and u . E v of a fold, which vanish at cusps and Bogdanov-Takens points.

        E = diag(1/(l (l + d - 2))), as -E^-1 B/kappa has the eigenvalues of the linearised
        operator: 0 is a double one where its left and right null vectors are orthogonal.
        """
        right, _, left = self.bordered(z)
        u = left()
        bend = self.slope(z, u, right)[: self.size][self._part.members] @ right
        return np.array([bend, u @ self._inverse @ right])

    def lyapunov(self, z: np.ndarray) -> float:
        """First Lyapunov coefficient of a Hopf point: see `cycle_onset`."""
        (equation, m, mean), basis = self.state(z), self.basis.without(self.order)
        equation, even = equation.among(basis), basis.even

        def jacobian(c: np.ndarray) -> np.ndarray:
            every = np.zeros(self.size)
            every[even.members] = c / even.sizes
            return equation.linearised(every, mean.kappa, even)

        return lyapunov_coefficient(jacobian, even.sizes * m[even.members], abs(z[-3]))

    def other_eigenvalues(self, z: np.ndarray) -> np.ndarray:
        """Eigenvalues of the curve's order by decreasing real part, without its neutral ones."""
        (equation, m, mean), part = self.state(z), self._part
        values = np.linalg.eigvals(equation.linearised(m, mean.kappa, part))
        values = np.delete(values, neutral_among(values, part, m))
        for neutral in (1j * z[-3], -1j * z[-3]) if self.oscillates else (0.0,):
            values = np.delete(values, np.abs(values - neutral).argmin())
        return values[np.argsort(-values.real)]

    def _tests(self, last: np.ndarray, here: np.ndarray) -> Iterator[Any]:
        """Functions of z with different signs at two points, as (kind, f, value, value)."""

        def known(what: str, find: Callable[[np.ndarray], Any]) -> list[np.ndarray]:
            return [self.recalled(what, (z,), partial(find, z)) for z in (last, here)]

        if self.kind == "fold":
            folding = [(Cusp, 0), (BogdanovTakens, 1)]
            values = known("folding", self.folding)
            tests: Any = [(kind, lambda z, i=i: self.folding(z)[i], i) for kind, i in folding]
        elif self.state(here)[2].tangents.size:  # of waves, which a rotation makes neutral
            values, tests = [], []
        else:
            values = known("lyapunov", self.lyapunov)
            tests = [(GeneralisedHopf, self.lyapunov, 0)]
        for kind, f, i in tests:
            yield kind, f, values[0][i], values[1][i]
        if self.basis.symmetric:
            return
        rates = known("other rates", lambda z: self.other_eigenvalues(z).real)
        for i in np.flatnonzero(rates[0] * rates[1] < 0):
            f = lambda z, i=i: self.other_eigenvalues(z)[i].real  # noqa: E731
            yield HopfFold, f, rates[0][i], rates[1][i]

    def _singular_points(self, last: CurvePoint, step: float, here: CurvePoint) -> None:
        """Locate special points of codimension two between two points of folds or Hopf points.

        Where folds pass the uniform state, at a tricritical point, their cubic term vanishes by
        symmetry: this is no cusp.
        """
        if self.basis.symmetric and last.z[: self.size] @ here.z[: self.size] < 0:
            return
        for kind, f, first, second in self._tests(last.z, here.z):
            if first * second >= 0:
                continue
            value = lambda point, f=f: float(f(point.z))  # noqa: E731
            special = located(self, last, step, value, float(first), float(second))
            if special.status != "converged":  # at a pole, as where c . v = 0
                continue
            if kind is HopfFold:
                other = min(self.other_eigenvalues(special.point.z), key=lambda v: abs(v.real))
                if (abs(other.imag) > LEAST_FREQUENCY) == self.oscillates:
                    continue  # two pairs, or a double eigenvalue 0
            self._add(kind, special.point.z)

    def _add(self, kind: type[Cusp], z: np.ndarray) -> None:
        """Add a special point of codimension two."""
        point = kind(float(z[-1]), self.second_value(z), self.family.name, self.family.second)
        self.singular.append((point, np.append(z[: self.size], z[-2:])))

    def _to_bogdanov_takens(self, last: np.ndarray, here: np.ndarray) -> list[np.ndarray]:
        """The Bogdanov-Takens point between two points of opposite omega; empty if not located.

        It is located on the curve of folds through it, as equations of Hopf points are singular at
        omega = 0.
        """
        met = last + last[-3] / (last[-3] - here[-3]) * (here - last)
        near = np.append(met[: self.size], met[-2:])
        fold, z = curve_through(self.family, "fold", self.order, near, self.max_step, self.journal)
        if z is None:
            return []
        start = fold.point(z, np.append(np.zeros(len(z) - 1), 1.0))
        special = zero_near(fold, start, lambda point: float(fold.folding(point.z)[1]))
        if special is None or special.status != "converged":
            return []
        self._add(BogdanovTakens, special.point.z)
        return [np.insert(special.point.z, self.size, 0.0)]

    def _between_changes(self, one: np.ndarray, other: np.ndarray, change: int) -> list[np.ndarray]:
        """Points on both sides of where the change of a curve ends, by bisection; at most two."""
        before: list[np.ndarray] = []
        after: list[np.ndarray] = []
        for _ in range(CHANGE_HALVINGS):
            middle = (one + other) / 2
            z = self.at_value(middle, float(middle[-1]))
            if z is None:
                break
            if self.change(z) == change:
                one, before = z, [z]
            else:
                other, after = z, [z]
        return before + after

    def _one_way(
        self, start: np.ndarray, sign: float, kappas: KappaRange, following: Following
    ) -> list[tuple[list[np.ndarray], str]]:
        """Points after `start` in one direction, as (points, end) between turns of p."""
        low, high = self.family.span
        here = self.point(start, np.append(np.zeros(len(start) - 1), sign))
        pieces: list[tuple[list[np.ndarray], str]] = []
        points: list[np.ndarray] = []
        step, count, short = self.max_step / 4, 0, 0
        while (new := self.stepped(here, step)) is not None:
            last, (here, taken, step), count = here, new, count + 1
            short = self.shrinking(short, taken)
            if short > SHORT_STEPS:
                return [*pieces, (points, "short steps")]
            if self.oscillates and here.z[-3] * last.z[-3] <= 0:
                points += self._to_bogdanov_takens(last.z, here.z)
                return [*pieces, (points, "Bogdanov-Takens")]
            if self.kind in ("fold", "Hopf"):
                self._singular_points(last, taken, here)
            if end := self._at_onset(here, last, start):
                points += self._extrapolated_onset([start, *points], start)
                return [*pieces, (points, end)]
            first, second = float(last.tangent[-1]), float(here.tangent[-1])
            if first * second < 0:
                forwards = lambda point: float(point.tangent[-1])  # noqa: E731
                place = located(self, last, taken, forwards, first, second).point
                turn = self.point(place.z, last.tangent)
                end = "cusp" if abs(turn.tangent[-2]) < CUSP_SLOPE else "turn"
                pieces.append(([*points, turn.z], end))
                points = [turn.z]
            if not low <= here.value <= high:
                edge = high if here.value > high else low
                z = self.at_value(between(np.array([last.z, here.z]), edge), edge)
                points += [] if z is None else [z]
                return [*pieces, (points, "range")]
            beyond = partial(self._beyond_range, kappas)
            if (past := beyond(here)) > 0:
                if (inside := beyond(last)) < 0:
                    end_point = located(self, last, taken, beyond, inside, past)
                    points += [end_point.point.z] if end_point.status == "converged" else []
                return [*pieces, (points, f"range of {self.family.second}")]
            if not self._resolved(here):
                return [*pieces, (points, "unresolved")]
            points.append(here.z)
            if following.at(self, self.kind, here.value) or count > MOST_CURVE_POINTS:
                return [*pieces, (points, "interrupted" if following.stopped else "max_points")]
        return [*pieces, (points, "not continued")]

    def _beyond_range(self, kappas: KappaRange, point: CurvePoint) -> float:
        """Distance of the second parameter from its range; negative inside."""
        low, high = kappas.at(self.family, point.value)
        value = self.second_value(point.z)
        return max(low - value, value - high)

    def _resolved(self, point: CurvePoint) -> bool:
        """Whether the degree of truncation resolves the state at a point."""
        equation, m, mean = self.state(point.z)
        tail = UNRESOLVED_TAIL if self.basis.symmetric else self.basis.unresolved
        return bool(equation.resolves(m, mean.kappa, tail))

    def amplitudes(self, z: np.ndarray, like: np.ndarray) -> np.ndarray:
        """Amplitudes in L^2 of the order of a state, which vanishes at an onset.

        The harmonics of `degree` for a rotation-invariant model, else the part that is odd under
        the first reflection that changes the state `like`.
        """
        m = self.basis.sizes * z[: self.size]
        if self.basis.symmetric:
            return m[self.basis.degrees == self.degree]
        images = self.basis.images(like[: self.size])
        return (m - images[0] * m) / 2 if images else np.zeros(0)

    def _at_onset(self, here: CurvePoint, last: CurvePoint, start: np.ndarray) -> str:
        """Why a curve ends where it has reached the onset of its states; empty elsewhere.

        Beyond it the curve continues as its own mirror image. "tricritical" if the harmonics of
        `degree` are the largest there, which only an onset of these harmonics explains.
        """
        order, before = self.amplitudes(here.z, start), self.amplitudes(last.z, start)
        if not order.size or (np.linalg.norm(order) >= ONSET_AMPLITUDE and order @ before >= 0):
            return ""
        if not self.basis.symmetric:
            return "onset"
        all_amplitudes = np.abs(self.basis.sizes * last.z[: self.size])
        return "tricritical" if np.abs(before).max() >= all_amplitudes.max() else "onset"

    def _extrapolated_onset(self, points: list[np.ndarray], start: np.ndarray) -> list[np.ndarray]:
        """The point at which the odd part vanishes, in a list; empty if it is not near.

        By extrapolation from the last two points, linear in the square of the odd part.
        """
        if len(points) < 2 or self.basis.symmetric:
            return []
        one, other = points[-2:]
        first, last = (float((self.amplitudes(z, start) ** 2).sum()) for z in (one, other))
        if not last < min(first, EXTRAPOLATED_AMPLITUDE**2):
            return []
        met = other + last / (first - last) * (other - one)
        met[: self.size] -= self.amplitudes(met, start) / self.basis.sizes
        low, high = self.family.span
        return [met] if low <= met[-1] <= high else []

    # Stable states on both sides ----------------------------------------------------------------

    def change(self, z: np.ndarray) -> int:
        """Number of stable states above the curve in kappa minus that below: -1, 0 or 1."""
        if self.basis.symmetric:
            return 0

        def find() -> int:
            equation, m, mean = self.state(z)
            if self._unstable(equation, m, mean.kappa, 1 + self.oscillates):
                return 0
            if self.kind == "fold":  # 1 if both states exist above it in kappa
                by_second = self.family.slopes(z[-1], z[-2], equation, m, mean)[:, 0]
                force = self.bordered(z)[2]() @ by_second[self._part.members]
                return 1 if self.folding(z)[0] * force > 0 else -1
            gain = self._gain(z)
            if self.kind == "Hopf" or abs(character := self.character(z)) < RING_OF_STATES:
                return gain
            return gain if gain == (1 if character > 0 else -1) else 0

        return int(self.recalled("change", (z,), find).item())

    def _unstable(self, equation: Any, m: np.ndarray, kappa: float, neutral: int = 0) -> int:
        """Number of positive rates, without the `neutral` least ones of the curve's order."""
        count = 0
        for order in range(self.basis.orders):
            rates = growth_rates(equation, m, kappa, self.basis.of_order(order))
            if neutral and order == self.order:
                rates = np.delete(rates, np.argsort(np.abs(rates))[:neutral])
            count += int((rates > GROWING_RATE).sum())
        return count

    def _gain(self, z: np.ndarray) -> int:
        """1 if the state becomes more stable as kappa rises, -1 if less, 0 otherwise."""
        m, counts = z[: self.size], []
        for q in (z[-2] - SIDE_DISTANCE, z[-2] + SIDE_DISTANCE):
            equation, kappa = self.family.equation(z[-1], q)
            state = newton(partial(equation.system, kappa=kappa), m, CURVE_TOLERANCE).x
            counts.append(self._unstable(equation, state, kappa))
        return int(np.sign(counts[0] - counts[1]))

    def tricritical(self) -> Iterator[Tricritical]:
        """Points at which a pitchfork changes from super- to subcritical, or back.

        Zeros of `character`, extrapolated to the amplitude 0 from three amplitudes.
        """
        if self.kind not in ("onset", "symmetry breaking"):
            return

        def place(value: float) -> np.ndarray:
            z = self.at_value(between(self.points, value), value)
            return between(self.points, value) if z is None else z

        def limit(value: float) -> float:
            sizes = AMPLITUDE * np.sqrt([1.0, 2.0, 4.0])
            measured = [self.character(place(value), size) for size in sizes]
            return float(np.dot([8 / 3, -2.0, 1 / 3], measured))

        values = [self.character(z) for z in self.points]
        if np.nanmax(np.abs(values), initial=0.0) < RING_OF_STATES:
            return
        for i in np.flatnonzero(np.multiply(values[1:], values[:-1]) < 0):
            ends = self.points[i : i + 2, -1]
            for value in zeros(limit, ends, np.array([limit(end) for end in ends])):
                z = place(value)
                vector = self.basis.sizes[self._part.members] * self.bordered(z)[0]
                degree = int(self._part.degrees[np.abs(vector).argmax()])
                yield Tricritical(degree, value, self.second_value(z), self.family.name,
                                  self.family.second)  # fmt: skip

    def character(self, z: np.ndarray, amplitude: float = AMPLITUDE) -> float:
        """d log kappa/d amplitude^2 of the pair of states that bifurcates at z, or nan."""
        curve = self.family.line(z[-1], self.family.near(z[-2]), self.basis.without(self.order))
        vector, members = self.bordered(z)[0], self._part.members
        row = np.zeros(self.size + 1)
        row[members] = vector / np.linalg.norm(self.basis.sizes[members] * vector)
        start, norm = np.append(z[: self.size], z[-2]), float(row @ row)
        pair = curve.solved(start + amplitude * row, row, amplitude * norm)
        return float("nan") if pair is None else (pair[-1] - start[-1]) / amplitude**2


def between(points: np.ndarray, value: float) -> np.ndarray:
    """Linear interpolation of curve points (n, N + 2) at a value of the parameter.

    The nearest point if the value is outside.
    """
    places = points[:, -1]
    crossed = np.flatnonzero((places[:-1] - value) * (places[1:] - value) <= 0)
    if not crossed.size:
        return points[np.abs(places - value).argmin()]
    start, end = points[crossed[0]], points[crossed[0] + 1]
    part = (value - start[-1]) / (end[-1] - start[-1]) if end[-1] != start[-1] else 0.0
    return start + part * (end - start)


def critical(family: EquationFamily, value: float, degree: int = 1) -> float:
    """kappa_l = 1/w_l, the onset under isotropic noise of strength 1; inf where w_l <= 0."""
    weight = float(family.at(value).weights[degree])
    return 1 / weight if weight > 0 else float("inf")


def curve_through(
    family: KappaPlane, kind: str, order: int, z: np.ndarray, max_step: float,
    journal: AnswerJournal | None, degree: int = 1,
) -> tuple[SpecialCurve, np.ndarray | None]:  # fmt: skip
    """A curve near z = (m, log kappa, p), with borders from null vectors, and its point at p.

    The point is None if Newton's method fails.
    """
    size = len(family.basis.degrees)
    if kind == "Hopf":
        part: Any = family.basis.of_order(order)
        equation, kappa = family.equation(z[-1], z[-2])
        values = np.linalg.eigvals(equation.linearised(z[:size], kappa, part))
        pair = values[values.imag > 0]
        z = np.insert(z, size, pair[np.abs(pair.real).argmin()].imag)
    curve = SpecialCurve(family, kind, order, (), max_step, journal=journal, degree=degree)
    if kind != "transition":
        curve.borders = curve.null_vectors(z)
    return curve, curve.at_value(z, float(z[-1]))


def hopf_curve_at(fold: SpecialCurve, z: np.ndarray) -> tuple[SpecialCurve, np.ndarray | None]:
    """The curve of Hopf points that begins at the Bogdanov-Takens point z of a curve of folds.

    Also its point at a small frequency; None if Newton's method fails.
    """
    curve = SpecialCurve(fold.family, "Hopf", fold.order, (), fold.max_step, journal=fold.journal)
    _, kappa = fold.family.equation(z[-1], z[-2])
    frequency = FIRST_FREQUENCY * (fold.basis.dimension - 1) / kappa
    start = np.insert(z, fold.size, frequency)
    curve.borders = curve.null_vectors(start)
    row = np.zeros(len(start))
    row[fold.size] = 1.0
    return curve, curve.solved(start, row, frequency)
