"""The result of `branches`: labelled arrays, special points, saved states."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..checks import path_of
from ..drifts import ZonalDrift
from ..geometry import Circle, Geometry, Sphere
from ..model import Transformer
from .curve import Point
from .equation import Equation
from .harmonics import harmonic_sizes
from .normal_form import NormalForm
from .placement import density_about
from .state import StationaryState
from .tracing import Branch

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

__all__ = ["Diagram", "SpecialPoint"]

UNIFORM_POINTS = 60
GROWING = 1e-9


@dataclass(frozen=True, eq=False)
class SpecialPoint:
    """Where something happens on a branch.

    Attributes
    ----------
    kind : str
        "bifurcation", "fold", "symmetry breaking", "transition" (the free energy is that of the
        uniform state).
    kappa : float
    interval : (float, float)
        In which kappa was found to lie.
    status : str
        "exact" on the uniform state, "converged", or "not located".
    branch : int
        0 for the uniform state.
    degree : int
        Of the harmonic with which the branch began, or begins here.
    order : int
        Of the perturbation that becomes neutral, about the axis of the state.
    character : str
        Of bifurcations of the uniform state: "supercritical", "subcritical", "transcritical".
    state : StationaryState
    """

    kind: str
    kappa: float
    interval: tuple[float, float]
    status: str
    branch: int
    degree: int
    order: int
    character: str
    state: StationaryState

    def __repr__(self) -> str:
        word = f"{self.character} {self.kind}" if self.character else self.kind
        return (
            f"SpecialPoint({word}, kappa = {self.kappa:.12g}, branch {self.branch}, degree "
            f"{self.degree}, {self.status})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Diagram:
    """Branches of stationary states.

    Attributes
    ----------
    data : xarray.Dataset
        On `point`: branch (0 the uniform state), kappa, order_parameter, moments (of Legendre
        polynomials, cos(l theta) on the circle, on `degree`), free_energy, growth (largest rate but
        for rotations), unstable (how many rates are positive, by order `order`), and observables.
    special_points : list of SpecialPoint
    ends : list of str
        Why each branch ends: "range", "uniform", "closed", "max_points", "unresolved",
        "not continued", "interrupted".
    saved : list of (int, StationaryState)
        Branch and state, at the kappa that were asked for.
    drift : ZonalDrift
    geometry : Geometry
    """

    data: "xr.Dataset"
    special_points: list[SpecialPoint]
    ends: list[str]
    saved: list[tuple[int, StationaryState]]
    drift: ZonalDrift
    geometry: Geometry

    @classmethod
    def of(cls, drift, geometry: Geometry, span, equation: Equation, forms: list[NormalForm],
           found: list[Branch], at: np.ndarray, observables: dict[str, Callable]):  # fmt: skip
        """From what was followed."""
        maker = _Maker(drift, geometry)
        uniform = maker.uniform(equation, span)
        points = [(0, equation, p) for p in uniform]
        rates = [maker.uniform_rates(equation, p.kappa) for p in uniform]
        energies = [0.0 if drift.gradient_flow else np.nan] * len(uniform)
        specials = [maker.onset(equation, form) for form in forms]
        saved = [(0, maker.state(equation, 0 * uniform[0].a, kappa)) for kappa in at]
        for number, branch in enumerate(found, start=1):
            points += [(number, branch.curve.equation, p) for p in branch.points]
            rates += branch.rates
            energies += branch.energies
            specials += [maker.special(number, branch, s) for s in branch.specials]
            saved += [(number, state) for state in maker.crossings(branch, at)]
        data = maker.table(points, rates, energies, observables)
        data.attrs |= {"drift": repr(drift), "geometry": repr(geometry), "kappa": list(span)}
        return cls(data, specials, [b.end for b in found], saved, drift, geometry)

    def __repr__(self) -> str:
        lines = [f"Diagram of {self.data.attrs['drift']}: {len(self.ends) + 1} branches, "
                 f"{self.data.sizes['point']} points"]  # fmt: skip
        lines += [f"  {special!r}" for special in self.special_points]
        return "\n".join([*lines, *(f"  <-- {doubt}" for doubt in self.doubts)])

    def special(self, kind: str, branch: int | None = None) -> list[SpecialPoint]:
        """The special points of a kind, on one branch if it is given."""
        return [
            s for s in self.special_points
            if s.kind == kind and branch in (None, s.branch)
        ]  # fmt: skip

    @property
    def doubts(self) -> list[str]:
        """What is missing, in words: branches cut short, points not located."""
        from .doubts import of_branches

        return of_branches(self)

    def save(self, path: str | Path) -> Path:
        """Write everything to a NetCDF file, atomically."""
        from .files import write

        return write(self, path_of("path", path))

    @classmethod
    def load(cls, path: str | Path) -> "Diagram":
        """A diagram from its file."""
        from .files import read

        data, header, specials, saved = read(path_of("path", path))
        maker = _Maker(header["drift"], header["geometry"])
        points = [maker.special_of(row) for row in specials]
        states = [(int(row["branch"]), maker.state_of(row)) for row in saved]
        return cls(data, points, header["ends"], states, header["drift"], header["geometry"])

    def plot(self, **options) -> "Figure":
        """Order parameter against kappa: `plotting.bifurcation`."""
        from ..plotting import bifurcation

        return bifurcation(self, **options)


class _Maker:
    """Makes states and tables for one drift and geometry."""

    def __init__(self, drift, geometry: Geometry):
        self._drift, self._geometry = drift, geometry
        self._axis: Any = None
        if isinstance(geometry, Circle):
            self._axis = 0.0
        elif isinstance(geometry, Sphere):
            self._axis = np.array([0.0, 0.0, 1.0])

    def state(self, equation: Equation, a: np.ndarray, kappa: float) -> StationaryState:
        a = np.pad(a, (0, len(equation.degrees) - len(a)))
        residual = float(np.abs(a - equation.mean(a, kappa).moments).max())
        return StationaryState(
            Transformer(self._drift, kappa),
            density_about(a, self._geometry, self._axis),
            "converged",
            "A point of a branch.",
            [residual],
            equation,
            a,
            self._axis,
        )

    def state_of(self, row: dict[str, Any]) -> StationaryState:
        """From a row of a file."""
        equation = Equation(self._drift, self._geometry.dimension, len(row["a"]))
        return self.state(equation, row["a"], float(row["kappa"]))

    def special_of(self, row: dict[str, Any]) -> SpecialPoint:
        """From a row of a file."""
        branch, degree, order = (int(row[name]) for name in ("branch", "degree", "order"))
        interval = float(row["low"]), float(row["high"])
        kind, status, character = (str(row[name]) for name in ("kind", "status", "character"))
        state = self.state_of(row)
        return SpecialPoint(
            kind, state.kappa, interval, status, branch, degree, order, character, state
        )

    def uniform(self, equation: Equation, span) -> list[Point]:
        size = len(equation.degrees) + 1
        direction = np.append(np.zeros(size - 1), 1.0)
        logs = np.linspace(np.log(span[0]), np.log(span[1]), UNIFORM_POINTS)
        return [Point(log * direction, direction) for log in logs]

    def uniform_rates(self, equation: Equation, kappa: float) -> list[np.ndarray]:
        rates = equation.harmonics.eigenvalues * (equation.weights - 1 / kappa)
        orders = 2 if equation.dimension == 2 else 4
        return [
            np.sort(rates[equation.degrees >= m])[::-1] for m in range(orders)
        ]  # fmt: skip

    def onset(self, equation: Equation, form: NormalForm) -> SpecialPoint:
        state = self.state(equation, np.zeros(len(equation.degrees)), form.kappa)
        place = form.kappa, form.kappa
        return SpecialPoint("bifurcation", float(form.kappa), place, "exact", 0, form.degree, 0,
                            form.kind, state)  # fmt: skip

    def special(self, number: int, branch: Branch, special) -> SpecialPoint:
        point = special.found.point
        state = self.state(branch.curve.equation, point.a, point.kappa)
        return SpecialPoint(special.kind, point.kappa, special.found.interval, special.found.status,
                            number, branch.degree, special.order, "", state)  # fmt: skip

    def crossings(self, branch: Branch, at: np.ndarray) -> list[StationaryState]:
        """The states of a branch at given values of kappa."""
        states = []
        curve, size = branch.curve, len(branch.curve.equation.degrees) + 1
        for first, last in pairwise(branch.points):
            for kappa in at:
                if (first.kappa - kappa) * (last.kappa - kappa) <= 0 and last.kappa != kappa:
                    near = np.concatenate(
                        [first.z[:-1], np.zeros(size - len(first.z)), first.z[-1:]]
                    )
                    z = curve.at_kappa(near, kappa)
                    if z is not None:
                        states.append(self.state(curve.equation, z[:-1], float(kappa)))
        return states

    def table(self, points, rates, energies, observables: dict[str, Callable]) -> "xr.Dataset":
        import xarray as xr

        degree = max(len(p.a) for _, _, p in points)
        moments = np.zeros((len(points), degree))
        for row, (_, _, p) in zip(moments, points, strict=True):
            row[: len(p.a)] = p.a
        moments /= harmonic_sizes(self._geometry.dimension, degree)
        orders = max(map(len, rates))
        counts = np.full((len(points), orders), -1)
        growth = np.full(len(points), np.nan)
        for i, found in enumerate(rates):
            for m, values in enumerate(found):
                counts[i, m] = (values > GROWING).sum()
            growth[i] = max((values[0] for values in found if values.size), default=np.nan)
        arrays: dict[str, Any] = {
            "branch": ("point", [number for number, _, _ in points]),
            "kappa": ("point", [p.kappa for _, _, p in points]),
            "order_parameter": ("point", np.abs(moments[:, 0])),
            "moments": (("point", "degree"), moments),
            "free_energy": ("point", energies),
            "growth": ("point", growth),
            "unstable": (("point", "order"), counts),
        }
        for name, f in observables.items():
            states = (density_about(p.a, self._geometry, self._axis) for _, _, p in points)
            arrays[name] = ("point", [float(f(state)) for state in states])
        return xr.Dataset(arrays, {"degree": np.arange(1, degree + 1), "order": np.arange(orders)})
