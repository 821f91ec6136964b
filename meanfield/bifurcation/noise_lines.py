"""Lines in the plane of beta and kappa on which a stationary state is neutral to a perturbation.

They are onsets, losses of symmetry, folds and Hopf points under anisotropic and multiplicative
noise. With B the block of the Jacobian of the order of the perturbation, they are solutions of

    R(m, kappa, beta) = 0,   sigma(m, kappa, beta) = 0,   (B, b; c, 0) (v, sigma) = (0, 1),

in which B - i omega E has the place of B for oscillations, E = diag(kappa/(l (l + d - 2))), and
omega is one more unknown. The gradient of sigma is -u . dB v, u from the transposed system. Where
beta turns back on a line, it ends at a cusp, from which another one goes on.
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

ONSET_ODD_PART = 0.03  # the odd part of a state, in L^2, at which its line has come to its onset
EXTRAPOLATED_ODD_PART = 0.3  # the odd part from which the place of the onset is extrapolated
CHANGE_HALVINGS = 4
CUSP_SLOPE = 1e-4  # d log kappa along a curve where beta turns back: at a cusp
NEXT_KAPPA = 1e-6  # of kappa, relative: what is before a line and beyond it
LINE_ENDS = ("cusp", "turn", "onset")
LINE_KINDS = ("onset", "fold", "symmetry breaking", "Hopf")


class Cusp(NamedTuple):
    """Where two lines of folds meet and end.

    Attributes
    ----------
    beta, kappa : float
    """

    beta: float
    kappa: float


class Range(NamedTuple):
    """Where lines are sought and followed: in kappa, or over the reference at a beta."""

    low: float
    high: float
    relative: bool

    def at(self, family: EquationFamily, beta: float) -> tuple[float, float]:
        """The range of kappa at a beta."""
        unit = reference(family, beta) if self.relative else 1.0
        return self.low * unit, self.high * unit


class NeutralLine(Curve):
    """A curve of states that are neutral to perturbations of one order, z = (m, log kappa, beta).

    Parameters
    ----------
    family : Family
    kind : str
        One of `KINDS`; with "Hopf" z = (m, omega, log kappa, beta).
    order : int
        Of the perturbations.
    borders : ndarray, (2, n)
        b and c: about the null vectors of the block and of its transpose.
    max_step : float
    points : ndarray, (k, N + 2), or (k, N + 3) for Hopf
        In the order of beta.
    changes : ndarray of int, (k,)
        How many stable states there are more above than below.
    journal : Journal, optional
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
        """Equation, moments and kappa of a point."""
        return self.family.at(z[-1]), z[: self.size], float(np.exp(z[-2]))

    @property
    def resolved(self) -> bool:
        """Whether the last moments of all points are small."""
        return all(self._resolves(z) for z in self.points)

    def _resolves(self, z: np.ndarray) -> bool:
        member, m, kappa = self.state(z)
        return member.resolves(m, kappa, self.basis.unresolved)

    def matrix(self, z: np.ndarray) -> np.ndarray:
        """B, or B - i omega E."""
        member, m, kappa = self.state(z)
        block = member.block(member.mean(m, kappa), self._part)
        return block + 1j * z[-3] * kappa * self._inverse if self.oscillates else block

    @property
    def _inverse(self) -> np.ndarray:
        return np.diag(1 / self.basis.eigenvalues[self._part.members])

    def bordered(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, complex]:
        """u, v and sigma."""
        block, (b, c) = self.matrix(z), self.borders
        n = len(block)
        whole = np.zeros((n + 1, n + 1), dtype=block.dtype)
        whole[:n, :n], whole[:n, n], whole[n, :n] = block, b, c
        unit = np.append(np.zeros(n), 1.0)
        right, left = np.linalg.solve(whole, unit), np.linalg.solve(whole.T, unit)
        return left[:n], right[:n], right[n]

    def slope(self, z: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The gradient of sigma."""
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
        """The line through these points, in the order of beta, with what it changes."""
        line = NeutralLine(self.family, self.kind, self.order, self.borders, self.max_step,
                    sorted(points, key=lambda z: z[-1]), (), self.journal)  # fmt: skip
        changes = [line.change(z) for z in line.points]
        turned = [i for i, (one, other) in enumerate(pairwise(changes)) if one != other]
        for i in reversed(turned):  # to where it is another
            more = line._between_changes(line.points[i], line.points[i + 1], changes[i])
            line.points = np.insert(line.points, i + 1, more, axis=0)
            changes[i + 1 : i + 1] = [line.change(z) for z in more]
        line.changes = np.array(changes)
        for end, inner, why in ((0, 1, ends[0]), (-1, -2, ends[1])):
            if why in LINE_ENDS:  # where two lines meet
                line.changes[end] = line.changes[inner]
        return line

    def _between_changes(self, one: np.ndarray, other: np.ndarray, change: int) -> list[np.ndarray]:
        """Points nearer to where a line has no longer this change, in the order of beta."""
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
        """The lines that a curve consists of between turns of beta, why they end, and the turns."""
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
        """The points after a start, and why they end; those beyond a turn of beta once more."""
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
        """The name of the range that a point has left; empty if it is within all."""
        low, high = self.family.span
        if not low <= point.value <= high:
            return "range"
        first, last = kappas.at(self.family, point.value)
        if not first <= np.exp(point.z[-2]) <= last:
            return "range of kappa"
        return "unresolved" if not self._resolves(point.z) else ""

    def _odd(self, z: np.ndarray, like: np.ndarray) -> np.ndarray:
        """The part of a state that the reflections change which its curve does not keep."""
        m = z[: self.size]
        images = self.basis.images(like[: self.size])
        return (m - images[0] * m) / 2 if images else np.zeros(0)

    def _at_onset(self, here: CurvePoint, last: CurvePoint, start: np.ndarray) -> bool:
        """Whether a line has come to the onset of its states, where it meets its mirror image."""
        odd, before = self._odd(here.z, start), self._odd(last.z, start)
        small = np.linalg.norm(self.basis.sizes * odd) < ONSET_ODD_PART if odd.size else False
        return bool(odd.size and (small or odd @ before < 0))

    def _met(self, points: list[np.ndarray], start: np.ndarray) -> list[np.ndarray]:
        """The place where the odd part vanishes, linear in its square in the last two points."""
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
        """How many stable states there are more above than below: -1, 0 or 1."""

        def find() -> int:
            member, m, kappa = self.state(z)
            if self._unstable(member, m, kappa, 1 + self.oscillates):
                return 0
            return {"fold": self._by_fold, "Hopf": self._gain}.get(self.kind, self._by_pair)(z)

        return int(self.recalled("change", (z,), find).item())

    def _unstable(self, member: Any, m: np.ndarray, kappa: float, neutral: int = 0) -> int:
        """How many perturbations grow, but for those that are neutral on the line."""
        count = 0
        for order in range(self.basis.orders):
            rates = growth_rates(member, m, kappa, self.basis.of_order(order))  # type: ignore[arg-type]
            if neutral and order == self.order:
                rates = np.delete(rates, np.argsort(np.abs(rates))[:neutral])
            count += int((rates > GROWING_RATE).sum())
        return count

    def _by_fold(self, z: np.ndarray) -> int:
        member, m, kappa = self.state(z)
        left, right, _ = self.bordered(z)
        bend = self.slope(z, left, right)[: self.size][self._part.members] @ right
        force = left @ member.by_log_kappa(member.mean(m, kappa))[self._part.members]
        return 1 if bend * force > 0 else -1

    def _gain(self, z: np.ndarray) -> int:
        """Whether the state becomes stable as kappa rises."""
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
        gain, above = self._gain(z), self.character(z) > 0
        if gain == (1 if above else -1):
            return gain  # the pair that comes in, or goes, is unstable
        return 0

    def tricritical(self) -> list[Tricritical]:
        """Where a pitchfork turns over, by extrapolation of `character` to the amplitude 0."""
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
        """d log kappa/d amplitude^2 of the pair of states that begins at an onset; or nan."""
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
    """1/w_1, the first onset under isotropic noise; inf where nothing attracts degree 1."""
    weight = float(family.at(beta).weights[1])
    return 1 / weight if weight > 0 else float("inf")
