"""Bifurcation diagrams: labelled arrays, special points, states, and transitions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path as File
from typing import TYPE_CHECKING, Any, NamedTuple
from warnings import warn

import numpy as np

from ..core.checks import finite
from ..core.checks import path_of as file_of
from ..core.errors import MeanfieldError
from ..models import ZonalDrift
from ..spaces import Geometry
from .branch_switching import NEAR_UNIFORM, Branch, Growth
from .continuation import Path, Point, StationaryCurve, path_of
from .normal_forms import Onset
from .stationary import StationaryState, state_at
from .symmetries import Symmetry, symmetry_on

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

__all__ = ["CUT_SHORT", "RESERVED", "Diagram", "SpecialPoint", "Transition"]

UNIFORM_POINTS = 60
GROWING = 1e-9
RESERVED = ("branch", "kappa", "beta", "order_parameter", "moments", "resolution", "free_energy",
            "growth", "unstable", "degree", "order", "point")  # fmt: skip
UNKNOWN = (float("nan"), float("nan"))
CLOSE = 0.5  # of the guess: a smaller solution is the uniform state
PRESENT = 1e-10  # of a moment
CUT_SHORT = {  # ends of branches and curves for want of points, in words
    "not continued": "was not continued beyond {place}: take a smaller max_step",
    "max_points": "ends at {place}, after its largest number of points: raise max_points",
    "unresolved": "needs too many moments beyond {place}: take a smaller range",
    "interrupted": "was interrupted at {place}; what would have come after it is missing",
    "not located": "was not found on the branch from which it is followed: take another range",
}


@dataclass(frozen=True, eq=False)
class SpecialPoint:
    """Where something happens on a branch.

    Attributes
    ----------
    kind : str
        "bifurcation", "fold", "symmetry breaking", "transition" (the free energy is that of the
        uniform state).
    parameter : str
        "kappa", or the name of a parameter of the drift.
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
        c_1 t + c_2 t^2 + ...), t the amplitude of the harmonic in L^2; nan for other points.
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
        """The beta of the drift; nan for drifts without."""
        return float(getattr(self.state.model.drift, "beta", np.nan))

    def __repr__(self) -> str:
        word = f"{self.character} {self.kind}" if self.character else self.kind
        return (
            f"SpecialPoint({word}, {self.parameter} = {self.value:.12g}, branch {self.branch}, "
            f"degree {self.degree}, {self.status})"
        )


class Transition(NamedTuple):
    """Where the uniform state ceases to be the best.

    Attributes
    ----------
    order : str
        "continuous", or "discontinuous".
    kappa : float
        At which the free energies are equal; nan for SA if it is discontinuous, since there is
        none.
    onset : float
        kappa_c, at which the uniform state loses its stability.
    jump : float
        The order parameter of the new state at `kappa`; for polyhedra and even degrees, the
        size of its first moment that does not vanish.
    hysteresis : (float, float) or None
        From the fold at which the new state begins to kappa_c: both are stable there, unless the
        new one loses its symmetry before, which is among the special points.
    """

    order: str
    kappa: float
    onset: float
    jump: float
    hysteresis: tuple[float, float] | None


@dataclass(frozen=True, eq=False, repr=False)
class Diagram:
    """Branches of stationary states.

    Attributes
    ----------
    data : xarray.Dataset
        On `point`: branch (0 the uniform state), the parameter by its name, order_parameter,
        moments (of Legendre polynomials, cos(l theta) on the circle, of invariants for polyhedra,
        on `degree`), free_energy, growth (largest rate but for rotations), unstable (how many rates
        are positive, by order `order`), and observables.
    special_points : list of SpecialPoint
    ends : list of str
        Why each branch ends: "range", "uniform", "bifurcation" (on a branch of more symmetry),
        "closed", "max_points", "unresolved", "not continued", "interrupted".
    saved : list of (int, StationaryState)
        Branch and state, at the values that were asked for.
    drift : ZonalDrift, or type
    geometry : Geometry
    symmetry : str
    parameter : str
        What changes along the branches: "kappa", or the name of a parameter of the drift.
    kappa : float or None
        The one kappa, where the drift changes.
    """

    data: "xr.Dataset"
    special_points: list[SpecialPoint]
    ends: list[str]
    saved: list[tuple[int, StationaryState]]
    drift: ZonalDrift | type[ZonalDrift]
    geometry: Geometry
    symmetry: str
    parameter: str
    kappa: float | None

    @classmethod
    def of(
        cls,
        drift: ZonalDrift | type[ZonalDrift],
        symmetry: Symmetry,
        path: Path,
        span: tuple[float, float],
        onsets: list[Onset],
        growth: Growth,
        at: np.ndarray,
        observables: dict[str, Callable],
    ) -> "Diagram":
        """The diagram of branches that were followed, with states at some values."""
        data = _table(path, span, growth.found, symmetry, observables)
        named = drift.__name__ if isinstance(drift, type) else repr(drift)
        data.attrs |= {"drift": named, "geometry": repr(symmetry.geometry)}
        data.attrs |= {"symmetry": symmetry.name}
        if growth.missing:
            data.attrs["missing"] = growth.missing
        specials = _special_points(path, onsets, growth.found, symmetry)
        ends = [branch.end for branch in growth.found]
        diagram = cls(data, specials, ends, [], drift, symmetry.geometry, symmetry.name,
                      path.parameter, path.kappa)  # fmt: skip
        for value in at:
            diagram.saved.extend(diagram.states_at(float(value)))
        return diagram

    @property
    def span(self) -> tuple[float, float]:
        """The range of the parameter."""
        low, high = self.data.attrs[self.parameter]
        return float(low), float(high)

    def special(self, kind: str, branch: int | None = None) -> list[SpecialPoint]:
        """The special points of a kind, on one branch if it is given."""
        return [
            s for s in self.special_points
            if s.kind == kind and branch in (None, s.branch)
        ]  # fmt: skip

    @property
    def doubts(self) -> list[str]:
        """What is missing, in words: branches cut short, special points not located."""
        found = [str(sentence) for sentence in np.atleast_1d(self.data.attrs.get("missing", []))]
        found += self.cut_short()
        for special in self.special_points:
            if special.status == "not located":
                low, high = sorted(special.interval)
                found.append(
                    f"{special.kind} of branch {special.branch} was not located between "
                    f"{self.parameter} = {low:.10g} and {high:.10g}: take a smaller max_step."
                )
        return found

    def cut_short(self, value: float = np.inf) -> list[str]:
        """The branches that end for want of points at or below a value of the parameter."""
        found = []
        for number, end in enumerate(self.ends, start=1):
            last = float(self.data[self.parameter].values[self.data.branch.values == number][-1])
            if end in CUT_SHORT and last <= value:
                place = f"{self.parameter} = {last:.6g}"
                found.append(f"branch {number} {CUT_SHORT[end].format(place=place)}.")
        return found

    def states_at(self, value: float) -> list[tuple[int, StationaryState]]:
        """The states of all branches at a value of the parameter, with their branch.

        Found by Newton's method from the points next to them.

        Raises
        ------
        ValueError
            For values outside the range.
        """
        finite(**{self.parameter: value})
        low, high = self.span
        if not low <= value <= high:
            raise ValueError(
                f"This diagram has {low:g} <= {self.parameter} <= {high:g}; got {value!r}."
            )
        uniform = self.path()
        z = np.append(np.zeros(len(uniform.basis.degrees)), uniform.coordinate(value))
        found = [(0, self.state(uniform, z))]
        for number, path, z in _crossings(self, float(value)):
            found.append((number, self.state(path, z)))
        return found

    def ground_state(self, value: float) -> StationaryState:
        """The state of least free energy among those on the branches and the uniform one.

        Parameters
        ----------
        value : float
            Of the parameter.

        Raises
        ------
        MeanfieldError
            Where there is no free energy, as for SA.
        ValueError
            For values outside the range.
        """
        states = [state for _, state in self.states_at(value)]
        if np.isnan(states[0].free_energy):
            raise MeanfieldError(
                f"{self.data.attrs['drift']} has no free energy, so no state of it is the ground "
                "state; see which ones are stable: [s.stability().stable for _, s in "
                "diagram.states_at(...)]."
            )
        return min(states, key=lambda state: state.free_energy)

    def transition(self) -> Transition:
        """Where the uniform state ceases to be the ground state as kappa grows, and how.

        Raises
        ------
        ValueError
            If kappa is not the parameter, or the range has no onset.
        """
        onsets = self.special("bifurcation", 0)
        if self.parameter != "kappa":
            raise ValueError(
                f"transition is about a diagram in kappa; this one has {self.parameter} as its "
                "parameter: give branches a single drift and a range of kappa, or see "
                "special_points."
            )
        if not onsets:
            low, high = self.span
            raise ValueError(
                f"The uniform state has no onset for {low:g} < kappa < {high:g}: take a range "
                "with it."
            )
        onset = min(onsets, key=lambda special: special.value)
        equation, _ = self.path().at(0.0)
        if equation.multipliers(equation.basis).max() * onset.value > 1 + 1e-9:
            raise ValueError(
                f"The uniform state is unstable before kappa = {onset.value:.6g}, the first onset "
                "of this diagram: take a range, and degrees, with its first one."
            )
        if onset.character == "supercritical":
            earlier = [s for s in self.special("transition") if s.value < onset.value]
            if not earlier:
                return Transition("continuous", onset.value, onset.value, 0.0, None)
        equal = [
            s for s in self.special("transition")
            if s.value <= onset.value and s.status == "converged"
        ]  # fmt: skip
        first = min(equal, key=lambda special: special.value, default=None)
        branch = None if first is None else first.branch
        folds = [s.value for s in self.special("fold", branch) if s.value < onset.value]
        hysteresis = (min(folds), onset.value) if folds else None
        if first is None:
            return Transition("discontinuous", np.nan, onset.value, np.nan, hysteresis)
        moments = np.abs(first.state.legendre_moments)
        jump = moments[np.flatnonzero(moments > PRESENT)[0]]
        return Transition("discontinuous", first.value, onset.value, float(jump), hysteresis)

    def path(self, degree: int | None = None) -> Path:
        """The path of the parameter, in harmonics up to a degree, by default as for branches."""
        basis = symmetry_on(self.geometry, self.symmetry).basis(degree)
        return path_of(self.drift, basis, self.parameter, self.span, self.kappa)

    def state(self, path: Path, z: np.ndarray) -> StationaryState:
        """A point (m, p) of a path of this diagram as a state."""
        return state_at(path, z, symmetry_on(self.geometry, self.symmetry))

    def save(self, path: str | File) -> File:
        """Write everything to a NetCDF file, atomically."""
        from .files import write_diagram

        return write_diagram(self, file_of("path", path))

    @classmethod
    def load(cls, path: str | File) -> "Diagram":
        """A diagram from its file."""
        from .files import read_diagram

        return read_diagram(file_of("path", path))

    def plot(self, **options) -> "Figure":
        """Order parameter against the parameter: `plotting.bifurcation`."""
        from ..plotting import bifurcation

        return bifurcation(self, **options)

    def __repr__(self) -> str:
        lines = [f"Diagram of {self.data.attrs['drift']}: {len(self.ends) + 1} branches, "
                 f"{self.data.sizes['point']} points"]  # fmt: skip
        lines += [f"  {special!r}" for special in self.special_points]
        return "\n".join([*lines, *(f"  <-- {doubt}" for doubt in self.doubts)])


def _special_points(
    path: Path, onsets: list[Onset], found: list[Branch], symmetry: Symmetry
) -> list[SpecialPoint]:
    """Those of the uniform state, and those of every branch."""
    name, specials = path.parameter, []
    for onset in onsets:
        form, place = onset.form, (onset.value, onset.value)
        begun = any(b.parent < 0 and b.degree == form.degree for b in found)
        z = np.append(np.zeros(len(path.basis.degrees)), path.coordinate(onset.value))
        specials.append(SpecialPoint("bifurcation", name, onset.value, place,
                                     "exact" if begun else "not followed", 0, form.degree, 0,
                                     form.kind, (float(form.linear), float(form.quadratic)),
                                     state_at(path, z, symmetry)))  # fmt: skip
    for number, branch in enumerate(found, start=1):
        for special in branch.specials:
            point, interval, status = special.found
            state = state_at(branch.curve.path, point.z, symmetry)
            specials.append(SpecialPoint(special.kind, name, point.value, interval, status,
                                         number, branch.degree, special.order, "", UNKNOWN,
                                         state))  # fmt: skip
    return specials


def _table(
    path: Path,
    span: tuple[float, float],
    found: list[Branch],
    symmetry: Symmetry,
    observables: dict[str, Callable],
) -> "xr.Dataset":
    """The points of all branches, the uniform one first."""
    import xarray as xr

    uniform = _uniform(path, span)
    energy = path.at(uniform[0].p)[0].free_energy(uniform[0].m, 1.0)
    points = [(0, path, point) for point in uniform]
    energies = [energy] * len(uniform)
    rates = _rates_of_uniform(path, uniform)
    for number, branch in enumerate(found, start=1):
        points += [(number, branch.curve.path, point) for point in branch.points]
        energies += branch.energies
        rates += branch.rates
    finest = max((path for _, path, _ in points), key=lambda path: path.basis.degree).basis
    moments = np.stack([finest.padded(point.m) for _, _, point in points])
    counts, growth = _growing(rates)
    first = moments[:, 0] if finest.degrees[0] == 1 else np.zeros(len(points))
    arrays: dict[str, Any] = {
        "branch": ("point", [number for number, _, _ in points]),
        path.parameter: ("point", [point.value for _, _, point in points]),
        "order_parameter": ("point", np.abs(first)),
        "moments": (("point", "degree"), moments),
        "resolution": ("point", [path.basis.degree for _, path, _ in points]),
        "free_energy": ("point", energies),
        "growth": ("point", growth),
        "unstable": (("point", "order"), counts),
    }
    for name, f in observables.items():
        states = [
            symmetry.density(path.basis.padded(point.m), path.basis, symmetry.axis)
            for _, path, point in points
        ]
        arrays[name] = ("point", [float(f(density)) for density in states])
    coordinates = {"degree": finest.degrees, "order": np.arange(counts.shape[1])}
    return xr.Dataset(arrays, coordinates, attrs={path.parameter: list(span)})


def _uniform(path: Path, span: tuple[float, float]) -> list[Point]:
    low, high = map(path.coordinate, span)
    direction = np.append(np.zeros(len(path.basis.degrees)), 1.0)
    return [
        Point(p * direction, direction, path.value(p))
        for p in np.linspace(low, high, UNIFORM_POINTS)
    ]


def _rates_of_uniform(path: Path, uniform: list[Point]) -> list[list[np.ndarray]]:
    orders = max(4, path.at(uniform[0].p)[0].most_attracted + 1)
    bases = [path.basis.of_order(order) for order in range(min(path.basis.orders, orders))]
    found = []
    for point in uniform:
        equation, kappa = path.at(point.p)
        rates = [b.eigenvalues * (equation.multipliers(b) - 1 / kappa) for b in bases]
        found.append([np.sort(values)[::-1] for values in rates])
    return found


def _growing(rates: list[list[np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """How many grow, by order (-1 where that is not known), and the largest rate."""
    counts = np.full((len(rates), max(map(len, rates))), -1)
    growth = np.full(len(rates), np.nan)
    for i, found in enumerate(rates):
        for order, values in enumerate(found):
            counts[i, order] = (values > GROWING).sum()
        growth[i] = max((values[0] for values in found if values.size), default=np.nan)
    return counts, growth


class _Node(NamedTuple):
    """A point of a branch; moments leave it as this power of the change of the parameter."""

    value: float
    m: np.ndarray
    power: float


def _crossings(diagram: "Diagram", value: float) -> Iterator[tuple[int, Path, np.ndarray]]:
    """Branch, path and (m, p) of every state on a branch, by Newton's method from near points.

    Onsets and folds are among the points: next to them moments change like the square root of the
    parameter, or linearly where the onset is transcritical.
    """
    for number in range(1, len(diagram.ends) + 1):
        path = diagram.path(int(diagram.data.resolution[diagram.data.branch == number].max()))
        curve = StationaryCurve(path, 1.0)
        for first, last in pairwise(_nodes(diagram, number, path)):
            inside = min(first.value, last.value) <= value <= max(first.value, last.value)
            if not inside or value == last.value:
                continue
            near = _between(first, last, value)
            z = curve.at_value(np.append(near, path.coordinate(value)), value)
            if z is None:
                warn(
                    f"Branch {number} passes {diagram.parameter} = {value:g}, but its state there "
                    "was not found: follow it with a smaller max_step.",
                    stacklevel=4,
                )
            elif np.abs(z[:-1]).max() > CLOSE * np.abs(near).max():
                yield number, path, z


def _nodes(diagram: "Diagram", number: int, path: Path) -> list[_Node]:
    here, basis = diagram.data.branch.values == number, path.basis
    moments = diagram.data.moments.values[here, : len(basis.degrees)]
    values = diagram.data[diagram.parameter].values[here]
    nodes = [_Node(float(value), m, 1.0) for value, m in zip(values, moments, strict=True)]
    for fold in diagram.special("fold", number):
        m = basis.padded(fold.state.legendre_moments)
        detours = [
            np.linalg.norm(m - one.m) + np.linalg.norm(m - two.m) - np.linalg.norm(one.m - two.m)
            for one, two in pairwise(nodes)
        ]
        if detours:
            nodes.insert(int(np.argmin(detours)) + 1, _Node(fold.value, m, 0.5))
    if diagram.ends[number - 1] == "bifurcation":
        nodes[-1] = nodes[-1]._replace(power=0.5)
    first = np.abs(nodes[0].m) * basis.sizes
    degree = basis.degrees[first.argmax()]
    onsets = [onset for onset in diagram.special("bifurcation", 0) if onset.degree == degree]
    if onsets and first.max() < NEAR_UNIFORM:
        onset = min(onsets, key=lambda special: abs(special.value - nodes[0].value))
        power = 1.0 if onset.character == "transcritical" else 0.5
        nodes.insert(0, _Node(onset.value, np.zeros(len(basis.degrees)), power))
    return nodes


def _between(first: _Node, last: _Node, value: float) -> np.ndarray:
    """Moments at a value between two nodes."""
    if last.power < first.power:
        first, last = last, first
    part = (value - first.value) / (last.value - first.value)
    return first.m + part**first.power * (last.m - first.m)
