"""The phase diagram in beta and kappa under anisotropic and multiplicative noise.

The state without order is not uniform, and there is no free energy. What bounds the phases are the
lines on which a stationary state becomes neutral to a perturbation of some order: onsets, losses of
symmetry, folds and Hopf points. With B the block of the Jacobian of that order, they are solutions
of

    R(m, kappa, beta) = 0,   sigma(m, kappa, beta) = 0,   (B, b; c, 0) (v, sigma) = (0, 1),

in which B - i omega E has the place of B for oscillations, E = diag(kappa/(l (l + d - 2))), and
omega is one more unknown. The gradient of sigma is -u . dB v, u from the transposed system. Lines
begin at the special points of diagrams in kappa at a few values of beta. Where beta turns back on
one, it ends at a cusp, from which another one goes on.

States of one kind and their images under reflections are counted once. From strong noise on, where
there is one state and that is stable, lines add or remove a stable state:

    fold        one more on the side on which there are two states, if one of them is stable,
    pitchfork   none where a stable pair takes over, one where an unstable pair comes in,
    Hopf        one that becomes unstable.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..core.checks import fitting, range_of, real
from ..core.errors import MeanfieldError
from ..core.kinds import build, describe
from ..models.noise import Noise
from ..results.files import Contents, contents_of, dataset_of
from ..spaces import Geometry
from ..sweeps.execution import run_points
from ..sweeps.outcomes import Outcome
from ..sweeps.points import Grid, Work
from ..sweeps.points import Point as Place
from .bases import AXISYMMETRIC
from .branch_switching import AMPLITUDE
from .branches import Following, Search
from .continuation import TOLERANCE, Curve, Point, curve_of
from .detection import located
from .diagram import SpecialPoint, noise_of
from .equation import Family, drift_of
from .fokker_planck import multipliers
from .journal import Journal
from .newton import newton
from .normal_forms import zeros
from .phase_diagram import (
    MOST,
    ON_BRANCH,
    STEP_ON_BRANCH,
    PhaseDiagram,
    Tricritical,
    between,
)
from .reflections import Reflected, basis_under
from .stability import growth_rates

BELOW, ABOVE = 0.4, 1.4  # the range of kappa, times the onset under as strong an isotropic noise
SAME = 1e-6  # of kappa, relative: the same line
SMALL = 0.03  # the odd part of a state, in L^2, at which its line has come to its onset
NEAR = 0.3  # the odd part from which the place of the onset is extrapolated
HALVINGS = 4
FLAT = 1e-4  # d log kappa along a curve where beta turns back: at a cusp
NEXT = 1e-6  # of kappa, relative: what is before a line and beyond it
GROWING = 1e-9
ENDS = ("cusp", "turn", "onset")
KINDS = ("onset", "fold", "symmetry breaking", "Hopf")


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

    def at(self, family: Family, beta: float) -> tuple[float, float]:
        """The range of kappa at a beta."""
        unit = reference(family, beta) if self.relative else 1.0
        return self.low * unit, self.high * unit


class Line(Curve):
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
        self, family: Family, kind: str, order: int, borders: np.ndarray, max_step: float,
        points: Any = (), changes: Any = (), journal: Journal | None = None,
    ):  # fmt: skip
        self.basis: Reflected = family.basis  # type: ignore[assignment]
        self.kind, self.order, self.oscillates = kind, order, kind == "Hopf"
        self.size = len(self.basis.degrees)
        super().__init__(self.size, 2 + self.oscillates, max_step, journal)
        self.family, self.borders = family, np.asarray(borders)
        self.points, self.changes = np.asarray(points), np.asarray(changes, dtype=int)
        self._part = self.basis.of_order(order)

    def identity(self) -> tuple:
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

    def among(self, points: Iterable[np.ndarray], ends: tuple[str, str]) -> "Line":
        """The line through these points, in the order of beta, with what it changes."""
        line = Line(self.family, self.kind, self.order, self.borders, self.max_step,
                    sorted(points, key=lambda z: z[-1]), (), self.journal)  # fmt: skip
        changes = [line.change(z) for z in line.points]
        turned = [i for i, (one, other) in enumerate(pairwise(changes)) if one != other]
        for i in reversed(turned):  # to where it is another
            more = line._between_changes(line.points[i], line.points[i + 1], changes[i])
            line.points = np.insert(line.points, i + 1, more, axis=0)
            changes[i + 1 : i + 1] = [line.change(z) for z in more]
        line.changes = np.array(changes)
        for end, inner, why in ((0, 1, ends[0]), (-1, -2, ends[1])):
            if why in ENDS:  # where two lines meet
                line.changes[end] = line.changes[inner]
        return line

    def _between_changes(self, one: np.ndarray, other: np.ndarray, change: int) -> list[np.ndarray]:
        """Points nearer to where a line has no longer this change, in the order of beta."""
        before: list[np.ndarray] = []
        after: list[np.ndarray] = []
        for _ in range(HALVINGS):
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
    ) -> Iterator[tuple["Line", tuple[str, str], list[Cusp]]]:
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
                    ([*points, turn.z], "cusp" if abs(turn.tangent[-2]) < FLAT else "turn")
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
            if following.at(self, self.kind, here.value) or count > MOST:
                return [*found, (points, "interrupted" if following.stopped else "max_points")]
        return [*found, (points, "not continued")]

    def _left(self, point: Point, kappas: "Range") -> str:
        """Which range a point has left; empty for none."""
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

    def _at_onset(self, here: Point, last: Point, start: np.ndarray) -> bool:
        """Whether a line has come to the onset of its states, where it meets its mirror image."""
        odd, before = self._odd(here.z, start), self._odd(last.z, start)
        small = np.linalg.norm(self.basis.sizes * odd) < SMALL if odd.size else False
        return bool(odd.size and (small or odd @ before < 0))

    def _met(self, points: list[np.ndarray], start: np.ndarray) -> list[np.ndarray]:
        """The place where the odd part vanishes, linear in its square in the last two points."""
        if len(points) < 2:
            return []
        one, other = points[-2:]
        odds = [self._odd(z, start) for z in (one, other)]
        first, last = (float(((self.basis.sizes * odd) ** 2).sum()) for odd in odds)
        if not last < min(first, NEAR**2):
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
            count += int((rates > GROWING).sum())
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
        for value in (kappa * (1 - NEXT), kappa * (1 + NEXT)):
            mean = cache(lambda m, value=value: member.mean(np.frombuffer(m), value))

            def system(m: np.ndarray, mean=mean):
                flow = mean(m.tobytes())
                return m - flow.moments, lambda: member.jacobian(flow)

            counts.append(self._unstable(member, newton(system, m, TOLERANCE).x, value))
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
        curve = curve_of(member.drift, self.basis.without(self.order), "kappa", span, None)
        _, vector, _ = self.bordered(z)
        row = np.zeros(self.size + 1)
        row[self._part.members] = vector / np.linalg.norm(
            self.basis.sizes[self._part.members] * vector
        )
        start = np.append(m, np.log(kappa))
        norm = float(row @ row)
        found = curve.solved(start + amplitude * row, row, amplitude * norm)
        return float("nan") if found is None else (found[-1] - start[-1]) / amplitude**2


def _forwards(point: Point) -> float:
    return float(point.tangent[-1])


def _cusp(z: np.ndarray) -> Cusp:
    return Cusp(float(z[-1]), float(np.exp(z[-2])))


@dataclass(frozen=True, eq=False, repr=False)
class NoisePhaseDiagram(PhaseDiagram):
    """Lines of special points in the plane of beta and kappa, under another noise.

    Attributes
    ----------
    data : xarray.Dataset
        On `point`: curve (the name of the line, such as "onset 1" or "fold 2"), kind ("onset",
        "fold", "symmetry breaking", "Hopf"), order, beta, kappa, order_parameter, and change: how
        many stable states there are more above the line than below, 0 where it bounds unstable
        states only.
    tricritical : list of Tricritical
        Where an onset turns from continuous to discontinuous.
    cusps : list of Cusp
        Where two lines of folds meet.
    ends : dict of str to (str, str)
        Why each line ends at its lowest and at its highest beta: "range", "range of kappa",
        "cusp", "turn" (of beta, at which states appear), "onset" (of its states), "unresolved",
        "not continued", "max_points", "interrupted".
    """

    cusps: list[Cusp] = field(default_factory=list)

    @property
    def doubts(self) -> list[str]:
        return [*map(str, np.atleast_1d(self.data.attrs.get("missing", []))), *super().doubts]

    def reference(self, beta: float) -> float:
        """The first onset under isotropic noise of strength 1."""
        return reference(self.family, beta)

    def kappa(self, curve: str, beta: float, degree: int | None = None) -> float:
        """The kappa of a line at a beta, to rounding; nan where it has no point.

        Raises
        ------
        ValueError
            For other lines, and for beta outside the range.
        """
        beta = self._beta(beta)
        fitting("curve", curve, ", ".join(self.loci) or "none", curve in self.loci)
        line = self.loci[curve]
        points = line.points
        if not points[0, -1] <= beta <= points[-1, -1]:
            return float("nan")
        found = line.at_value(between(points, beta), beta)
        return float("nan") if found is None else float(np.exp(found[-2]))

    def _beta(self, beta: float) -> float:
        low, high = self.data.attrs["beta"]
        wanted = f"from {low:g} to {high:g}, as of this diagram"
        return real("beta", beta, wanted, lambda number: low <= number <= high)

    def stable_counts(self, beta: float) -> list[tuple[int, float, float]]:
        """How many stable states there are at a beta: the number, from which kappa, to which one.

        States that reflections turn into each other are counted once. 0 is a gap, in which
        densities do not come to rest; more than 1 bistability. From what lines add and remove.
        """
        return self._counts(self._beta(beta), lambda name: self.kappa(name, beta))

    def drawn_counts(self, beta: float) -> list[tuple[int, float, float]]:
        """The same between the points of lines, as they are drawn: without Newton's method."""
        return self._counts(
            beta, lambda name: float(np.exp(between(self.loci[name].points, beta)[-2]))
        )

    def _counts(
        self, beta: float, kappa_of: Callable[[str], float]
    ) -> list[tuple[int, float, float]]:
        """As `stable_counts`, with the kappa of lines, by name, from a function."""
        crossings = []
        for name, line in self.loci.items():
            places = line.points[:, -1]
            if places[0] <= beta <= places[-1]:
                change = int(line.changes[np.abs(places - beta).argmin()])
                if change:
                    crossings.append((kappa_of(name), change))
        low, high = Range(*self.data.attrs["kappas"]).at(self.family, beta)
        found, count, first = [], 1, float(low)
        for kappa, change in sorted(crossings):
            found.append((count, first, kappa))
            count, first = count + change, kappa
        return [*found, (count, first, float(high))]

    @property
    def curves(self) -> list[tuple[str, str, int]]:
        return [(name, name, 1) for name in self.loci]

    def __repr__(self) -> str:
        lines = [super().__repr__()] + [f"  {cusp!r}" for cusp in self.cusps]
        return "\n".join(lines)

    def contents(self) -> Contents:
        header = {
            "drift": describe(self.family.drift),
            "noise": describe(self.noise),
            "space": self.family.basis.space,  # type: ignore[attr-defined]
            "span": self.family.span,
            "tricritical": self.tricritical,
            "cusps": self.cusps,
            "ends": self.ends,
            "lines": {
                name: {
                    "kind": line.kind, "order": line.order, "max_step": line.max_step,
                    "borders": [line.borders.real, line.borders.imag], "points": line.points,
                    "changes": line.changes, "kept": line.basis.kept, "degree": line.basis.degree,
                }
                for name, line in self.loci.items()
            },
        }  # fmt: skip
        return contents_of(self.data, header)

    @classmethod
    def made_of(cls, contents: Contents) -> "NoisePhaseDiagram":
        data, header = dataset_of(contents)
        noise, drift = noise_of(header["noise"]), drift_of(header["drift"])
        low, high = header["span"]
        basis = basis_under(build(Geometry, header["space"]), AXISYMMETRIC, noise)
        corners = [Tricritical(int(l), float(b), float(k)) for l, b, k, *_ in header["tricritical"]]
        cusps = [Cusp(float(b), float(k)) for b, k in header["cusps"]]
        ends = {name: (first, last) for name, (first, last) in header["ends"].items()}
        lines: dict[str, Any] = {}
        for name, kept in header["lines"].items():
            here = basis.finer(kept.pop("degree")).keeping(tuple(map(int, kept.pop("kept"))))
            real, imaginary = kept.pop("borders")
            borders = real + 1j * imaginary if kept["kind"] == "Hopf" else real
            lines[name] = Line(Family(drift, "beta", (low, high), here), borders=borders, **kept)
        family = Family(drift, "beta", (low, high), basis)
        return cls(data, corners, ends, family, lines, noise, cusps=cusps)


def phases_under(
    drift: Any, geometry: Geometry, span: tuple[float, float], noise: Noise, kappa: Any,
    places: int, max_step: float, following: Following, journal: Journal | None, executor: Any,
) -> NoisePhaseDiagram:  # fmt: skip
    """The phase diagram: lines from the special points of diagrams in kappa.

    With an executor the diagrams are found first, each by a job of its own, without the journal.
    """
    family = Family(drift, "beta", span, basis_under(geometry, AXISYMMETRIC, noise))
    betas = [float(beta) for beta in np.linspace(*span, places)]
    if kappa is not None:
        kappas = Range(*range_of("kappa", kappa), False)
    else:
        without = [beta for beta in betas if not np.isfinite(reference(family, beta))]
        if without:
            raise MeanfieldError(
                f"At beta = {without[0]:g} nothing attracts harmonics of degree 1, whose onset "
                "says where to look for lines. Give the range kappa=(first, last)."
            )
        kappas = _about(family)
    search = _Search(family, kappas, max_step, following, journal)
    place = Places(drift, geometry, span, noise, kappas)
    if executor is None:
        for beta in betas:
            search.from_starts(beta, *place.starts(beta, journal))
    else:
        points = Grid.of({"beta": betas}, None).points(place.contents)
        outcomes, _ = run_points(place, points, executor=executor, progress=False)
        for beta, outcome in zip(betas, outcomes, strict=True):
            search.from_starts(beta, *place.read(outcome))
    return search.result(geometry, noise)


def reference(family: Family, beta: float) -> float:
    """1/w_1, the first onset under isotropic noise; inf where nothing attracts degree 1."""
    (found,) = multipliers(family.at(beta).drift, family.basis)
    weight = float(found.weights[1])
    return 1 / weight if weight > 0 else float("inf")


def _about(family: Family) -> Range:
    """About the onset under an isotropic noise of the same mean strength."""
    basis: Any = family.basis
    first = basis.degrees == 1
    strength = -float(np.diag(basis.all.diffusion[0])[first].mean()) / (basis.dimension - 1)
    return Range(BELOW * strength, ABOVE * strength, True)


class Start(NamedTuple):
    """A special point at one beta, from which a line begins.

    Attributes
    ----------
    kind : str
        One of `KINDS`; empty where no line begins.
    order : int
    basis : Basis
        The functions of its states.
    moments : ndarray
    kappa : float
    """

    kind: str
    order: int
    basis: Any
    moments: np.ndarray
    kappa: float


@dataclass(frozen=True)
class Places(Work):
    """Diagrams in kappa at values of beta: the work of a sweep.

    Attributes
    ----------
    drift : type
    geometry : Geometry
    span : (float, float)
        Of beta.
    noise : Noise
    kappas : Range
    """

    drift: Any
    geometry: Geometry
    span: tuple[float, float]
    noise: Noise
    kappas: Range

    given: ClassVar[str] = "drift and noise"

    def starts(
        self, beta: float, journal: Journal | None = None
    ) -> tuple[list[Start], list[str], bool]:
        """Where lines begin, what is missing from the diagram, and whether Ctrl-C ended it."""
        family = Family(self.drift, "beta", self.span, self._basis)
        member, kappas = family.at(beta), self.kappas.at(family, beta)
        curve = curve_of(member.drift, member.basis, "kappa", kappas, None, STEP_ON_BRANCH, journal)
        with Following("kappa", kappas, False) as on_branch:
            search = Search(self.geometry, AXISYMMETRIC, None, True, True, ON_BRANCH, on_branch)
            diagram = search.under_noise(curve, {})
            stopped = on_branch.stopped
        found = [
            Start(*_neutral(special), special.state.legendre_moments, special.kappa)
            for special in diagram.special_points
        ]
        return found, diagram.doubts, stopped

    def values(self, points: Sequence[Place], seed: int | None) -> list[Any]:
        found = []
        for point in points:
            starts, doubts, _ = self.starts(point.parameters["beta"])
            arrays: dict[str, Any] = {"doubts": np.array(doubts, "U")}
            for i, (kind, order, basis, moments, kappa) in enumerate(starts):
                arrays[f"moments {i}"], arrays[f"kept {i}"] = moments, np.array(basis.kept, int)
                arrays |= {f"kind {i}": kind, f"numbers {i}": np.array([order, basis.degree])}
                arrays[f"kappa {i}"] = kappa
            found.append(arrays)
        return found

    def read(self, outcome: Outcome | None) -> tuple[list[Start], list[str], bool]:
        """What `starts` found, from what `values` made of it; None is a diagram not begun."""
        if outcome is None:
            return [], [], True
        arrays = {name: variable.values for name, variable in outcome.variables.items()}
        starts = []
        for i in range(len(arrays) // 5):
            order, degree = map(int, arrays[f"numbers {i}"])
            basis = self._basis.finer(degree).keeping(tuple(map(int, arrays[f"kept {i}"])))
            kind, kappa = str(arrays[f"kind {i}"]), float(arrays[f"kappa {i}"])
            starts.append(Start(kind, order, basis, arrays[f"moments {i}"], kappa))
        return starts, arrays["doubts"].tolist(), False

    @property
    def _basis(self) -> Any:
        return basis_under(self.geometry, AXISYMMETRIC, self.noise)

    @property
    def takes_rng(self) -> bool:
        return False

    def check(self, point: Place) -> None:
        pass


@dataclass
class _Search:
    """The lines that were found, and what is needed to find more."""

    family: Family
    kappas: Range
    max_step: float
    following: Following
    journal: Journal | None

    def __post_init__(self):
        self.lines: list[tuple[Line, tuple[str, str]]] = []
        self.cusps: list[Cusp] = []
        self.missing: list[str] = []

    def from_starts(
        self, beta: float, starts: list[Start], doubts: list[str], stopped: bool
    ) -> None:
        """All lines through the special points at one beta that are not known."""
        self.missing += [f"at beta = {beta:g}, {doubt}" for doubt in doubts]
        if stopped and not starts:
            self.missing.append(f"the search was interrupted at beta = {beta:g}.")
        for start in starts:
            if stopped or self.following.stopped:
                self.missing.append(f"the search was interrupted at beta = {beta:g}.")
                return
            if start.kind and not any(_through(line, beta, start) for line, _ in self.lines):
                self.from_start(beta, start)

    def from_start(self, beta: float, special: Start) -> None:
        """The lines of one curve, in as many functions as they need."""
        kind, order, basis = special.kind, special.order, special.basis
        while True:
            m = basis.padded(special.moments)
            z = np.append(m, [np.log(special.kappa), beta])
            family = Family(self.family.drift, "beta", self.family.span, basis)
            line, start = _begun(family, kind, order, z, self.max_step, self.journal)
            if start is None:
                self.missing.append(
                    f"the {kind} at beta = {beta:g}, kappa = {special.kappa:.6g} was not found "
                    "again: no line begins there."
                )
                return
            pieces = list(line.pieces(start, self.kappas, self.following))
            unresolved = any("unresolved" in ends for _, ends, _ in pieces)
            if not unresolved or basis.next_degree > basis.most:
                break
            basis = basis.finer(basis.next_degree)
        for one, ends, cusps in pieces:
            self.lines.append((one, ends))
            self.cusps += cusps

    def result(self, geometry: Geometry, noise: Noise) -> NoisePhaseDiagram:
        """Everything, in the order of kinds and kappa."""
        import xarray as xr

        ordered = sorted(self.lines, key=lambda pair: (KINDS.index(pair[0].kind),
                                                       pair[0].points[0][-2]))  # fmt: skip
        lines: dict[str, Any] = {}
        ends, rows, corners = {}, [], []
        for line, why in ordered:
            number = 1 + sum(other.kind == line.kind for other in lines.values())
            name = f"{line.kind} {number}"
            lines[name], ends[name] = line, why
            corners += line.tricritical()
            first = line.basis.degrees == 1
            for z, change in zip(line.points, line.changes, strict=True):
                r = np.linalg.norm(z[: line.size][first])
                rows.append((name, line.kind, line.order, z[-1], np.exp(z[-2]), r, change))
        names = ("curve", "kind", "order", "beta", "kappa", "order_parameter", "change")
        columns = map(np.array, zip(*rows, strict=True)) if rows else [np.zeros(0)] * len(names)
        data = xr.Dataset({n: ("point", column) for n, column in zip(names, columns, strict=True)})
        low, high = self.family.span
        data.attrs = {"drift": self.family.drift.__name__, "geometry": repr(geometry),
                      "beta": [low, high], "kappas": list(self.kappas)}  # fmt: skip
        if self.missing:
            data.attrs["missing"] = self.missing
        return NoisePhaseDiagram(data, corners, ends, self.family, lines, noise, cusps=self.cusps)


def _neutral(special: SpecialPoint) -> tuple[str, int, Any]:
    """Kind and order of a special point, and the functions of states with its reflections.

    Where a branch ends on one of more symmetry, that one loses a reflection. The kind is empty if
    none is lost.
    """
    basis: Any = special.state.equation.basis
    if special.kind != "bifurcation":
        return special.kind, special.order, basis
    if not special.branch:
        return "onset", special.order, basis
    fitted, m = basis.fitted(special.state.legendre_moments)
    if len(fitted.kept) == len(basis.kept):
        return "", 0, basis
    equation = special.state.equation.among(fitted)
    found = []
    for order in range(1, fitted.orders):
        values = np.linalg.eigvals(equation.linearised(m, special.kappa, fitted.of_order(order)))
        found.append(np.abs(values).min())
    return "symmetry breaking", 1 + int(np.argmin(found)), fitted


def _through(line: Line, beta: float, special: Start) -> bool:
    """Whether a line goes through a special point."""
    places = line.points[:, -1]
    if (line.kind, line.order) != (special.kind, special.order) or not places[0] <= beta <= places[
        -1
    ]:
        return False
    z = line.at_value(between(line.points, beta), beta)
    return z is not None and bool(np.isclose(np.exp(z[-2]), special.kappa, rtol=SAME, atol=0.0))


def _begun(
    family: Family, kind: str, order: int, z: np.ndarray, max_step: float, journal: Journal | None
) -> tuple[Line, np.ndarray | None]:
    """A line, and its point at the beta of z."""
    part: Any = family.basis.of_order(order)
    size = len(family.basis.degrees)
    if kind == "Hopf":
        values = np.linalg.eigvals(
            family.at(z[-1]).linearised(z[:size], float(np.exp(z[-2])), part)
        )
        pair = values[values.imag > 0]
        z = np.insert(z, size, pair[np.abs(pair.real).argmin()].imag)
    line = Line(family, kind, order, np.zeros((2, len(part.members))), max_step, journal=journal)
    left, _, right = np.linalg.svd(line.matrix(z))
    line = Line(family, kind, order, np.array([left[:, -1], right[-1]]), max_step, journal=journal)
    return line, line.at_value(z, float(z[-1]))
