"""Curves in the plane of beta and kappa on which a stationary state has a neutral perturbation.

The states are onsets, losses of symmetry, folds and Hopf points under anisotropic and
multiplicative noise. With B the block of the Jacobian for the order of the perturbation, they are
solutions of

    R(m, kappa, beta) = 0,   sigma(m, kappa, beta) = 0,   (B, b; c, 0) (v, sigma) = (0, 1).

For oscillations B is replaced by B + i omega E, E = diag(kappa/(l (l + d - 2))), with the
additional unknown omega. The gradient of sigma is -u . dB v, with u from the transposed system. A
curve is cut into lines where beta turns back, for example at a cusp.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .branch_switching import AMPLITUDE
from .branches import Following
from .continuation import CURVE_TOLERANCE, Curve, CurvePoint, curve_of
from .detection import located
from .families import EquationFamily
from .journal import AnswerJournal
from .newton import newton
from .normal_forms import zeros
from .phase_diagram import MOST_CURVE_POINTS, Tricritical, between
from .reflections import Reflected
from .stability import GROWING_RATE, growth_rates

ONSET_ODD_PART = 0.03  # L^2 norm of the odd part below which a line has reached its onset
EXTRAPOLATED_ODD_PART = 0.3  # largest odd part from which the onset is extrapolated
CHANGE_HALVINGS = 4  # bisections of an interval in which the change of a line changes
CUSP_SLOPE = 1e-4  # a turn of beta is a cusp if |d log kappa| along the curve is smaller
NEXT_KAPPA = 1e-6  # relative distance in kappa at which states on both sides of a line are compared
LINE_ENDS = ("cusp", "turn", "onset")
LINE_KINDS = ("onset", "fold", "symmetry breaking", "Hopf")


class Cusp(NamedTuple):
    """A cusp: the point at which two lines of folds meet and end.

    Attributes
    ----------
    beta, kappa : float
    """

    beta: float
    kappa: float


class Range(NamedTuple):
    """Range of kappa, in units of `reference` at each beta if `relative`."""

    low: float
    high: float
    relative: bool

    def at(self, family: EquationFamily, beta: float) -> tuple[float, float]:
        """Lower and upper end in kappa at a beta."""
        unit = reference(family, beta) if self.relative else 1.0
        return self.low * unit, self.high * unit


class NeutralLine(Curve):
    """Curve of states z = (m, log kappa, beta) with a neutral perturbation of one order.

    Parameters
    ----------
    family : EquationFamily
    kind : str
        One of `LINE_KINDS`; with "Hopf" z = (m, omega, log kappa, beta).
    order : int
        Order of the perturbations.
    borders : ndarray, (2, n)
        b and c, approximate null vectors of the transpose of the block and of the block.
    max_step : float
        Longest step along the curve.
    points : ndarray, (k, N + 2), or (k, N + 3) for Hopf
        Points in increasing order of beta.
    changes : ndarray of int, (k,)
        Number of stable states just above the line in kappa minus that just below.
    journal : AnswerJournal, optional
        Journal in which computed results are saved.
    """

    def __init__(
        self, family: EquationFamily, kind: str, order: int, borders: np.ndarray, max_step: float,
        points: Any = (), changes: Any = (), journal: AnswerJournal | None = None,
    ):  # fmt: skip
        self.basis: Reflected = family.basis  # type: ignore[assignment]
        self.kind, self.order, self.oscillates = kind, order, kind == "Hopf"
        self.size = len(self.basis.degrees)
        super().__init__(self.size, 2 + self.oscillates, max_step, journal)
        self.family, self.borders = family, np.asarray(borders)
        self.points, self.changes = np.asarray(points), np.asarray(changes, dtype=int)
        self._part = self.basis.of_order(order)

    def identity(self) -> tuple[Any, ...]:
        basis, borders = self.basis, (self.borders.real, self.borders.imag)
        return self.kind, self.order, basis.degree, basis.kept, *borders

    def state(self, z: np.ndarray) -> tuple[Any, np.ndarray, float]:
        """Equation, moments (N,) and kappa of a point z."""
        return self.family.at(z[-1]), z[: self.size], float(np.exp(z[-2]))

    @property
    def resolved(self) -> bool:
        """Whether the degree of truncation resolves all points."""
        return all(self._resolves(z) for z in self.points)

    def _resolves(self, z: np.ndarray) -> bool:
        member, m, kappa = self.state(z)
        return member.resolves(m, kappa, self.basis.unresolved)

    def matrix(self, z: np.ndarray) -> np.ndarray:
        """B at z, (n, n); for Hopf B + i omega kappa diag(1/(l (l + d - 2)))."""
        member, m, kappa = self.state(z)
        block = member.block(member.mean(m, kappa), self._part)
        return block + 1j * z[-3] * kappa * self._inverse if self.oscillates else block

    @property
    def _inverse(self) -> np.ndarray:
        return np.diag(1 / self.basis.eigenvalues[self._part.members])

    def bordered(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, complex]:
        """u (n,), v (n,) and sigma of the bordered system at z."""
        block, (b, c) = self.matrix(z), self.borders
        n = len(block)
        whole = np.zeros((n + 1, n + 1), dtype=block.dtype)
        whole[:n, :n], whole[:n, n], whole[n, :n] = block, b, c
        unit = np.append(np.zeros(n), 1.0)
        right, left = np.linalg.solve(whole, unit), np.linalg.solve(whole.T, unit)
        return left[:n], right[:n], right[n]

    def slope(self, z: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Gradient of sigma by z, from `left` = u and `right` = v."""
        member, m, kappa = self.state(z)
        change = -member.block_change(member.mean(m, kappa), m, self._part, left, right)
        if not self.oscillates:
            return change
        turning = 1j * kappa * (left @ self._inverse @ right)
        change[-2] -= z[-3] * turning
        return np.insert(change, self.size, -turning)

    def system(self, z: np.ndarray) -> tuple[np.ndarray, Callable[[], np.ndarray]]:
        member, m, kappa = self.state(z)
        mean = member.mean(m, kappa)
        left, right, sigma = self.bordered(z)
        parts = [sigma.real, sigma.imag] if self.oscillates else [sigma]

        def jacobian() -> np.ndarray:
            above = np.zeros((self.size, len(z)))
            above[:, : self.size] = member.jacobian(mean)
            above[:, -2] = member.by_log_kappa(mean)
            above[:, -1] = member.by_parameter(m, mean)
            row = self.slope(z, left, right)
            return np.vstack([above, row.real, row.imag] if self.oscillates else [above, row])

        return np.append(m - mean.moments, parts), jacobian

    # Along the line -----------------------------------------------------------------------------

    def among(self, points: Iterable[np.ndarray], ends: tuple[str, str]) -> "NeutralLine":
        """The line through points, sorted by beta, with points added where its change changes."""
        line = NeutralLine(self.family, self.kind, self.order, self.borders, self.max_step,
                    sorted(points, key=lambda z: z[-1]), (), self.journal)  # fmt: skip
        changes = [line.change(z) for z in line.points]
        turned = [i for i, (one, other) in enumerate(pairwise(changes)) if one != other]
        for i in reversed(turned):  # from the last, so that indices stay valid
            more = line._between_changes(line.points[i], line.points[i + 1], changes[i])
            line.points = np.insert(line.points, i + 1, more, axis=0)
            changes[i + 1 : i + 1] = [line.change(z) for z in more]
        line.changes = np.array(changes)
        for end, inner, why in ((0, 1, ends[0]), (-1, -2, ends[1])):
            if why in LINE_ENDS:  # lines meet here: take the change of the inner point
                line.changes[end] = line.changes[inner]
        return line

    def _between_changes(self, one: np.ndarray, other: np.ndarray, change: int) -> list[np.ndarray]:
        """Points that bracket where a line no longer has this change, by bisection; at most two."""
        before: list[np.ndarray] = []
        after: list[np.ndarray] = []
        for _ in range(CHANGE_HALVINGS):
            middle = (one + other) / 2
            z = self.at_value(middle, float(middle[-1]))
            if z is None:
                break
            if self.change(z) == change:
                one = z
                before.append(z)
            else:
                other = z
                after.insert(0, z)
        return before[-1:] + after[:1]

    def pieces(
        self, start: np.ndarray, kappas: "Range", following: Following
    ) -> Iterator[tuple["NeutralLine", tuple[str, str], list[Cusp]]]:
        """Follow a curve both ways from z = `start`; yields its lines between turns of beta.

        Each as the line, why it ends at its lowest and highest beta, and its cusps.
        """
        ways = [self._one_way(start, sign, kappas, following) for sign in (-1.0, 1.0)]
        (down, first), (up, last) = (way[0] for way in ways)
        ends = [(down, first), (up, last)]
        turns = [_cusp(points[-1]) for points, end in ends if end == "cusp"]
        yield self.among([*down[::-1], start, *up], (first, last)), (first, last), turns
        for way in ways:
            before = way[0][1]
            for points, end in way[1:]:
                if len(points) > 1:
                    both = (before, end) if points[1][-1] > points[0][-1] else (end, before)
                    turns = [_cusp(points[-1])] if end == "cusp" else []
                    yield self.among(points, both), both, turns
                before = end

    def _one_way(
        self, start: np.ndarray, sign: float, kappas: "Range", following: Following
    ) -> list[tuple[list[np.ndarray], str]]:
        """Points after `start` in one direction, as (points, end) between turns of beta."""
        low, high = self.family.span
        here = self.point(start, np.append(np.zeros(len(start) - 1), sign))
        found: list[tuple[list[np.ndarray], str]] = []
        points: list[np.ndarray] = []
        step, count = self.max_step / 4, 0
        while (new := self.stepped(here, step)) is not None:
            last, (here, taken, step), count = here, new, count + 1
            if self._at_onset(here, last, start):
                return [*found, ([*points, *self._met([start, *points], start)], "onset")]
            first, second = float(last.tangent[-1]), float(here.tangent[-1])
            if first * second < 0:
                curve: Any = self
                place = located(curve, last, taken, _forwards, first, second).point
                turn = self.point(place.z, last.tangent)
                found.append(
                    ([*points, turn.z], "cusp" if abs(turn.tangent[-2]) < CUSP_SLOPE else "turn")
                )
                points = [turn.z]
            end = self._left(here, kappas)
            if end == "range":
                edge = high if here.value > high else low
                z = self.at_value(between(np.array([last.z, here.z]), edge), edge)
                return [*found, ([*points, *([] if z is None else [z])], end)]
            if end:
                return [*found, (points, end)]
            points.append(here.z)
            if following.at(self, self.kind, here.value) or count > MOST_CURVE_POINTS:
                return [*found, (points, "interrupted" if following.stopped else "max_points")]
        return [*found, (points, "not continued")]

    def _left(self, point: CurvePoint, kappas: "Range") -> str:
        """Why a curve ends at a point: outside a range or unresolved; empty if it does not end."""
        low, high = self.family.span
        if not low <= point.value <= high:
            return "range"
        first, last = kappas.at(self.family, point.value)
        if not first <= np.exp(point.z[-2]) <= last:
            return "range of kappa"
        return "unresolved" if not self._resolves(point.z) else ""

    def _odd(self, z: np.ndarray, like: np.ndarray) -> np.ndarray:
        """Part of a state that is odd under the first reflection that changes the state `like`."""
        m = z[: self.size]
        images = self.basis.images(like[: self.size])
        return (m - images[0] * m) / 2 if images else np.zeros(0)

    def _at_onset(self, here: CurvePoint, last: CurvePoint, start: np.ndarray) -> bool:
        """Whether a line has reached the onset of its states, where it meets its mirror image."""
        odd, before = self._odd(here.z, start), self._odd(last.z, start)
        small = np.linalg.norm(self.basis.sizes * odd) < ONSET_ODD_PART if odd.size else False
        return bool(odd.size and (small or odd @ before < 0))

    def _met(self, points: list[np.ndarray], start: np.ndarray) -> list[np.ndarray]:
        """The point at which the odd part vanishes, in a list; empty if it is not near.

        By extrapolation from the last two points, linear in the square of the odd part.
        """
        if len(points) < 2:
            return []
        one, other = points[-2:]
        odds = [self._odd(z, start) for z in (one, other)]
        first, last = (float(((self.basis.sizes * odd) ** 2).sum()) for odd in odds)
        if not last < min(first, EXTRAPOLATED_ODD_PART**2):
            return []
        met = other + last / (first - last) * (other - one)
        met[: self.size] -= self._odd(met, start)
        low, high = self.family.span
        return [met] if low <= met[-1] <= high else []

    # What a line changes ------------------------------------------------------------------------

    def change(self, z: np.ndarray) -> int:
        """Number of stable states above the line in kappa minus that below: -1, 0 or 1."""

        def find() -> int:
            member, m, kappa = self.state(z)
            if self._unstable(member, m, kappa, 1 + self.oscillates):
                return 0
            return {"fold": self._by_fold, "Hopf": self._gain}.get(self.kind, self._by_pair)(z)

        return int(self.recalled("change", (z,), find).item())

    def _unstable(self, member: Any, m: np.ndarray, kappa: float, neutral: int = 0) -> int:
        """Number of positive rates, without the `neutral` least ones of the line's order."""
        count = 0
        for order in range(self.basis.orders):
            rates = growth_rates(member, m, kappa, self.basis.of_order(order))  # type: ignore[arg-type]
            if neutral and order == self.order:
                rates = np.delete(rates, np.argsort(np.abs(rates))[:neutral])
            count += int((rates > GROWING_RATE).sum())
        return count

    def _by_fold(self, z: np.ndarray) -> int:
        """1 if the two states of a fold exist above it in kappa, -1 if below."""
        member, m, kappa = self.state(z)
        left, right, _ = self.bordered(z)
        bend = self.slope(z, left, right)[: self.size][self._part.members] @ right
        force = left @ member.by_log_kappa(member.mean(m, kappa))[self._part.members]
        return 1 if bend * force > 0 else -1

    def _gain(self, z: np.ndarray) -> int:
        """1 if the state becomes more stable as kappa rises, -1 if less, 0 otherwise."""
        member, m, kappa = self.state(z)
        counts = []
        for value in (kappa * (1 - NEXT_KAPPA), kappa * (1 + NEXT_KAPPA)):
            mean = cache(lambda m, value=value: member.mean(np.frombuffer(m), value))

            def system(m: np.ndarray, mean: Any = mean) -> Any:
                flow = mean(m.tobytes())
                return m - flow.moments, lambda: member.jacobian(flow)

            counts.append(self._unstable(member, newton(system, m, CURVE_TOLERANCE).x, value))
        return int(np.sign(counts[0] - counts[1]))

    def _by_pair(self, z: np.ndarray) -> int:
        """Change at a pitchfork, from the stability of the state and the side of the pair."""
        gain, above = self._gain(z), self.character(z) > 0
        if gain == (1 if above else -1):
            return gain  # the pair is unstable
        return 0

    def tricritical(self) -> list[Tricritical]:
        """Points at which a pitchfork changes from super- to subcritical, or back.

        Zeros of `character`, extrapolated to the amplitude 0 from three amplitudes.
        """
        if self.kind not in ("onset", "symmetry breaking"):
            return []

        def place(beta: float) -> np.ndarray:
            z = self.at_value(between(self.points, beta), beta)
            return between(self.points, beta) if z is None else z

        def limit(beta: float) -> float:
            sizes = AMPLITUDE * np.sqrt([1.0, 2.0, 4.0])
            found = [self.character(place(beta), size) for size in sizes]
            return float(np.array([8 / 3, -2.0, 1 / 3]) @ found)

        values = np.array([self.character(z) for z in self.points])
        found = []
        for (one, other), (first, second) in zip(
            pairwise(self.points[:, -1]), pairwise(values), strict=True
        ):
            ends = np.array([one, other])
            if first * second < 0 and (inside := np.array([limit(b) for b in ends])).prod() < 0:
                for beta in zeros(limit, ends, inside):
                    z = place(beta)
                    vector = self.basis.sizes[self._part.members] * self.bordered(z)[1]
                    degree = self._part.degrees[np.abs(vector).argmax()]
                    found.append(Tricritical(int(degree), beta, float(np.exp(z[-2]))))
        return found

    def character(self, z: np.ndarray, amplitude: float = AMPLITUDE) -> float:
        """d log kappa/d amplitude^2 of the pair of states that bifurcates at z, or nan."""
        member, m, kappa = self.state(z)
        span = (kappa / 2, 2 * kappa)
        curve = curve_of(member.source, self.basis.without(self.order), "kappa", span, None)
        _, vector, _ = self.bordered(z)
        row = np.zeros(self.size + 1)
        row[self._part.members] = vector / np.linalg.norm(
            self.basis.sizes[self._part.members] * vector
        )
        start = np.append(m, np.log(kappa))
        norm = float(row @ row)
        found = curve.solved(start + amplitude * row, row, amplitude * norm)
        return float("nan") if found is None else (found[-1] - start[-1]) / amplitude**2


def _forwards(point: CurvePoint) -> float:
    return float(point.tangent[-1])


def _cusp(z: np.ndarray) -> Cusp:
    return Cusp(float(z[-1]), float(np.exp(z[-2])))


def reference(family: EquationFamily, beta: float) -> float:
    """1/w_1, the onset of degree 1 under isotropic noise of strength 1; inf if w_1 <= 0."""
    weight = float(family.at(beta).weights[1])
    return 1 / weight if weight > 0 else float("inf")
