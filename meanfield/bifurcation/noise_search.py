"""Search for the curves of a phase diagram under non-isotropic noise.

Curves start from the special points of bifurcation diagrams in kappa at a few values of beta.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..core.checks import range_of
from ..core.errors import MeanfieldError
from ..models.noise import Noise
from ..spaces import Space
from ..sweeps.execution import run_points
from ..sweeps.outcomes import Outcome
from ..sweeps.points import Grid, SweepPoint, Work
from .bases import AXISYMMETRIC
from .branches import Following, Search
from .continuation import curve_of
from .diagram import SpecialPoint
from .families import EquationFamily, basis_along
from .journal import AnswerJournal
from .noise_lines import LINE_KINDS, Cusp, NeutralLine, Range, reference
from .noise_phases import NoisePhaseDiagram
from .phase_diagram import ON_BRANCH, STEP_ON_BRANCH, between

BELOW, ABOVE = 0.4, 1.4  # default range of kappa, relative to the onset for isotropic noise
SAME_LINE = 1e-6  # relative tolerance on kappa for two equal curves


def phases_under(
    drift: Any, space: Space, span: tuple[float, float], noise: Noise, kappa: Any,
    places: int, max_step: float, following: Following, journal: AnswerJournal | None,
    executor: Any,
) -> NoisePhaseDiagram:  # fmt: skip
    """Phase diagram under a noise: curves in (beta, kappa) from special points.

    These are from one bifurcation diagram in kappa for each of `places` values of beta. An executor
    computes the diagrams first, each as a separate job, which does not use the journal of saved
    results.
    """
    basis = basis_along(drift, "beta", span, noise, space, AXISYMMETRIC)
    family = EquationFamily(drift, "beta", span, basis)
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
    place = DiagramsWork(drift, space, span, noise, kappas)
    if executor is None:
        for beta in betas:
            search.from_starts(beta, *place.starts(beta, journal))
    else:
        points = Grid.of({"beta": betas}, None).points(place.contents)
        outcomes, _ = run_points(place, points, executor=executor, progress=False)
        for beta, outcome in zip(betas, outcomes, strict=True):
            search.from_starts(beta, *place.read(outcome))
    return search.result(space, noise)


def _about(family: EquationFamily) -> Range:
    """Default range of kappa, relative to the onset under isotropic noise of the same strength."""
    basis: Any = family.basis
    first = basis.degrees == 1
    strength = -float(np.diag(basis.diffusion[0])[first].mean()) / (basis.dimension - 1)
    return Range(BELOW * strength, ABOVE * strength, True)


class LineStart(NamedTuple):
    """A special point of a diagram at one beta, from which a curve is followed.

    Attributes
    ----------
    kind : str
        One of `LINE_KINDS`; empty if no curve is followed from it.
    order : int
        Order of the neutral perturbation.
    basis : Basis
        Basis of the state.
    moments : ndarray, (N,)
    kappa : float
    """

    kind: str
    order: int
    basis: Any
    moments: np.ndarray
    kappa: float


@dataclass(frozen=True)
class DiagramsWork(Work):
    """Bifurcation diagrams in kappa, one for each value of beta, as the work of a sweep.

    Attributes
    ----------
    drift : type
    space : Space
    span : (float, float)
        Range of beta.
    noise : Noise
    kappas : Range
        Range of kappa at each beta.
    """

    drift: Any
    space: Space
    span: tuple[float, float]
    noise: Noise
    kappas: Range

    given: ClassVar[str] = "drift and noise"

    def starts(
        self, beta: float, journal: AnswerJournal | None = None
    ) -> tuple[list[LineStart], list[str], bool]:
        """Special points of the diagram at a beta, its warnings, and whether Ctrl-C stopped it."""
        family = EquationFamily(self.drift, "beta", self.span, self._basis)
        member, kappas = family.at(beta), self.kappas.at(family, beta)
        curve = curve_of(
            member.source, member.basis, "kappa", kappas, None, STEP_ON_BRANCH, journal
        )
        with Following("kappa", kappas, False) as on_branch:
            search = Search(self.space, AXISYMMETRIC, None, True, True, ON_BRANCH, on_branch)
            diagram = search.diagram(curve, {})
            stopped = on_branch.stopped
        found = [
            LineStart(*_neutral(special), special.state.legendre_moments, special.kappa)
            for special in diagram.special_points
        ]
        return found, diagram.warnings, stopped

    def values(self, points: Sequence[SweepPoint], seed: int | None) -> list[Any]:
        found = []
        for point in points:
            starts, warnings, _ = self.starts(point.parameters["beta"])
            arrays: dict[str, Any] = {"warnings": np.array(warnings, "U")}
            for i, (kind, order, basis, moments, kappa) in enumerate(starts):
                arrays[f"moments {i}"], arrays[f"kept {i}"] = moments, np.array(basis.kept, int)
                arrays |= {f"kind {i}": kind, f"numbers {i}": np.array([order, basis.degree])}
                arrays[f"kappa {i}"] = kappa
            found.append(arrays)
        return found

    def read(self, outcome: Outcome | None) -> tuple[list[LineStart], list[str], bool]:
        """Results of `starts` from an outcome of the sweep; None counts as stopped."""
        if outcome is None:
            return [], [], True
        arrays = {name: variable.values for name, variable in outcome.variables.items()}
        starts = []
        for i in range(len(arrays) // 5):
            order, degree = map(int, arrays[f"numbers {i}"])
            basis = self._basis.finer(degree).keeping(tuple(map(int, arrays[f"kept {i}"])))
            kind, kappa = str(arrays[f"kind {i}"]), float(arrays[f"kappa {i}"])
            starts.append(LineStart(kind, order, basis, arrays[f"moments {i}"], kappa))
        return starts, arrays["warnings"].tolist(), False

    @property
    def _basis(self) -> Any:
        return basis_along(self.drift, "beta", self.span, self.noise, self.space, AXISYMMETRIC)

    @property
    def takes_rng(self) -> bool:
        return False

    def check(self, point: SweepPoint) -> None:
        pass


@dataclass
class _Search:
    """Search for curves from special points, with the curves, cusps and warnings so far."""

    family: EquationFamily
    kappas: Range
    max_step: float
    following: Following
    journal: AnswerJournal | None

    def __post_init__(self) -> None:
        self.lines: list[tuple[NeutralLine, tuple[str, str]]] = []
        self.cusps: list[Cusp] = []
        self.missing: list[str] = []

    def from_starts(
        self, beta: float, starts: list[LineStart], warnings: list[str], stopped: bool
    ) -> None:
        """Follow curves from the special points at one beta that lie on no curve so far."""
        self.missing += [f"at beta = {beta:g}, {warning}" for warning in warnings]
        if stopped and not starts:
            self.missing.append(f"the search was interrupted at beta = {beta:g}.")
        for start in starts:
            if stopped or self.following.stopped:
                self.missing.append(f"the search was interrupted at beta = {beta:g}.")
                return
            if start.kind and not any(_through(line, beta, start) for line, _ in self.lines):
                self.from_start(beta, start)

    def from_start(self, beta: float, special: LineStart) -> None:
        """Follow the curve of a special point; the degree is raised until it is resolved."""
        kind, order, basis = special.kind, special.order, special.basis
        while True:
            m = basis.padded(special.moments)
            z = np.append(m, [np.log(special.kappa), beta])
            family = EquationFamily(self.family.drift, "beta", self.family.span, basis)
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

    def result(self, space: Space, noise: Noise) -> NoisePhaseDiagram:
        """The phase diagram with all curves, sorted by kind and by kappa at their first point."""
        import xarray as xr

        ordered = sorted(self.lines, key=lambda pair: (LINE_KINDS.index(pair[0].kind),
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
        data.attrs = {"drift": self.family.drift.__name__, "space": repr(space),
                      "beta": [low, high], "kappas": list(self.kappas)}  # fmt: skip
        if self.missing:
            data.attrs["missing"] = self.missing
        return NoisePhaseDiagram(data, corners, ends, self.family, lines, noise, cusps=self.cusps)


def _neutral(special: SpecialPoint) -> tuple[str, int, Any]:
    """Kind and order of a special point, and the basis of states with its reflections.

    A branch that ends on one with more reflections is a loss of symmetry of that one. The kind is
    empty if the state at a bifurcation has no more reflections than the branch.
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


def _through(line: NeutralLine, beta: float, special: LineStart) -> bool:
    """Whether a curve of the same kind and order passes through a special point."""
    first, last = line.points[0, -1], line.points[-1, -1]
    if (line.kind, line.order) != (special.kind, special.order) or not first <= beta <= last:
        return False
    z = line.at_value(between(line.points, beta), beta)
    return z is not None and bool(
        np.isclose(np.exp(z[-2]), special.kappa, rtol=SAME_LINE, atol=0.0)
    )


def _begun(
    family: EquationFamily,
    kind: str,
    order: int,
    z: np.ndarray,
    max_step: float,
    journal: AnswerJournal | None,
) -> tuple[NeutralLine, np.ndarray | None]:
    """A curve near z, with borders from null vectors of its matrix, and its point at the beta of z.

    The point is None if Newton's method fails.
    """
    part: Any = family.basis.of_order(order)
    size = len(family.basis.degrees)
    if kind == "Hopf":
        values = np.linalg.eigvals(
            family.at(z[-1]).linearised(z[:size], float(np.exp(z[-2])), part)
        )
        pair = values[values.imag > 0]
        z = np.insert(z, size, pair[np.abs(pair.real).argmin()].imag)
    line = NeutralLine(
        family, kind, order, np.zeros((2, len(part.members))), max_step, journal=journal
    )
    left, _, right = np.linalg.svd(line.matrix(z))
    line = NeutralLine(
        family, kind, order, np.array([left[:, -1], right[-1]]), max_step, journal=journal
    )
    return line, line.at_value(z, float(z[-1]))
