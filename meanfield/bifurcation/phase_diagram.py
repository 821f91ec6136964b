"""The phase diagram in beta, or another parameter, and kappa, by continuation of special points.

A fold is a solution of

    R(m, kappa, beta) = 0,   sigma(m, kappa, beta) = 0,

with sigma from the bordered system (dR/dm, b; c, 0) (v, sigma) = (0, 1): it vanishes where dR/dm is
singular, and its gradient is -u . d(dR/dm) v with u from the transposed system (Govaerts). On the
line of first-order transitions sigma is kappa (F(mu) - F(uniform)), which is of size 1 for all
beta; its derivative by m vanishes at a solution. In both cases the solutions are curves in
(m, log kappa, beta). Each curve starts from a special point of one branch in kappa, computed at a
beta where the onset is discontinuous.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.cached import cached_property
from ..core.calls import checked_call
from ..core.checks import as_given, finite, fitting, range_of
from ..core.descriptions import describe
from ..core.errors import MeanfieldError
from ..core.forms import Natural, Positive
from ..core.provided import FIGURES
from ..lowlevel.blas import one_blas_thread
from ..models import Drift, ZonalDrift
from ..models.noise import Noise
from ..results.files import Contents, Result, contents_of, dataset_of
from ..solving.checkpoint import Keeper
from ..spaces import Space
from .bases import AXISYMMETRIC, ISOTROPIC, AxialHarmonics, basis_on
from .branch_switching import BranchSearch
from .branches import Following, Search, asked_degrees, varied
from .clustered_states import clustered_states
from .continuation import Curve, StationaryCurve, curve_of
from .diagram import END_SENTENCES, PRESENT_MOMENT, Transition
from .equation import Mean, MomentEquation
from .families import EquationFamily, drift_of
from .journal import AnswerJournal, recalled
from .normal_forms import VANISHES, normal_form, weak_transition, zeros

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

PHASE_DEGREE = 64
UNRESOLVED_TAIL = 1e-11
DOUBLINGS = 4
PARAMETER_GRID = (
    81  # values of beta on critical curves; sign changes are sought between neighbouring values
)
CLUSTERED_EVERY = 8  # clustered states are computed at every eighth value of the grid
PRESENT_AMPLITUDE = 0.1  # least amplitude in L^2 of a harmonic that a clustered state contains
CORNER_AMPLITUDE = 0.03  # amplitude in L^2 below which a curve has reached its tricritical point
SAME_SPECIAL_POINT = 1e-6  # tolerance on moments, log kappa and beta for two equal points
POLE_TERM = 1e-3  # relative to the median: largest quadratic term at a zero; at a pole it is larger
MOST_CURVE_POINTS = 2000  # largest number of points of a curve in one direction
ON_BRANCH = 500  # most points of a branch in kappa that provides special points
STEP_ON_BRANCH = 0.1  # longest step along that branch

Condition = tuple[float, Callable[[], np.ndarray]]  # value, and function for the gradient
Ends = dict[str, tuple[str, str]]


class Tricritical(NamedTuple):
    """A point at which the onset of degree l turns from continuous to discontinuous.

    Attributes
    ----------
    degree : int
    beta, kappa : float
        beta is the value of `parameter`, also if that is not beta.
    parameter : str
        Name of the parameter of the diagram.
    """

    degree: int
    beta: float
    kappa: float
    parameter: str = "beta"

    def __repr__(self) -> str:
        """Text with the fields, where `beta` is shown under the name of the parameter."""
        place = f"{self.parameter}={self.beta!r}, kappa={self.kappa!r}"
        return f"{type(self).__name__}(degree={self.degree}, {place})"


class EndPoint(NamedTuple):
    """A critical end point: a first-order line meets the onset of other harmonics.

    Beyond it the transition from the uniform state is continuous again.

    Attributes
    ----------
    beta, kappa : float
        beta is the value of `parameter`, also if that is not beta.
    parameter : str
        Name of the parameter of the diagram.
    """

    beta: float
    kappa: float
    parameter: str = "beta"

    def __repr__(self) -> str:
        """Text with the fields, where `beta` is shown under the name of the parameter."""
        return f"{type(self).__name__}({self.parameter}={self.beta!r}, kappa={self.kappa!r})"


@dataclass(frozen=True, eq=False, repr=False)
class PhaseDiagram(Result):
    """Curves of special points in the plane of beta, or another parameter, and kappa.

    Attributes
    ----------
    data : xarray.Dataset
        On `point`: curve ("critical", "fold" or "transition"; "fold 2" and so on where the onset
        is discontinuous in several ranges of beta), degree, beta (or the parameter by its name),
        kappa, and the order parameter there.
    tricritical : list of Tricritical
    ends : dict of str to (str, str)
        Reasons why each fold and transition curve ends at its first and at its last point. These
        have the lowest and the highest beta, unless the curve turns. "tricritical": at a
        tricritical point; "onset": the states lose their harmonics of this degree; "range": at an
        end of the range; "not continued": no further point converged; "max_points";
        "interrupted"; "not located": a curve was expected and none was found.
    family : EquationFamily
        Moment equations as functions of the parameter.
    loci : dict of str to Locus
        Fold and transition curves by name.
    noise : Noise
    degree : int
        Degree of the harmonics whose folds and transition are returned by default.
    """

    made_by = "phase_diagram"

    data: "xr.Dataset"
    tricritical: list[Tricritical]
    ends: Ends
    family: EquationFamily
    loci: dict[str, Any]
    noise: Noise = ISOTROPIC
    degree: int = 1

    @property
    def parameter(self) -> str:
        """Name of the parameter that varies with kappa: "beta" or another one."""
        return self.family.name

    def kappa(self, curve: str, beta: float, degree: int | None = None) -> float:
        """The kappa of a curve at one beta, accurate to rounding; nan where the curve has no point.

        `curve` is "critical", "fold", "transition" or a numbered name such as "fold 2". `beta` is a
        value of the parameter of the diagram. `degree` is `self.degree` by default. If several
        curves match, the first one that has a point at this beta counts.

        Raises
        ------
        ValueError
            If there is no curve of that name, or beta is outside the range.
        """
        beta = finite("beta", beta)
        degree = self.degree if degree is None else degree
        low, high = self.data.attrs[self.parameter]
        known = ["critical", *LOCI, *(name for name in self.loci if name not in LOCI)]
        fitting("curve", curve, ", ".join(known), curve in known)
        fitting("beta", beta, f"from {low:g} to {high:g}, as of this diagram", low <= beta <= high)
        if curve == "critical":
            return critical(self.family, beta, degree)
        kappas = (float(np.exp(z[-2])) for z in self._points(curve, beta, degree))
        return next(kappas, float("nan"))

    def _points(self, curve: str, beta: float, degree: int) -> Iterator[np.ndarray]:
        """Points (m, log kappa, beta) at one beta, of all curves of one kind or name and degree."""
        for name, locus in self.loci.items():
            if curve in (name, locus.name) and locus.degree == degree:
                z = self._on(name, beta)
                if z is not None:
                    yield z

    def _on(self, name: str, beta: float) -> np.ndarray | None:
        """The point at one beta on the curve `name`; None if the curve has no point there."""
        locus, points = self.loci[name], self.loci[name].points
        start: np.ndarray | None = between(points, beta)
        if not locus.reaches(beta):
            side = np.abs(points[:, -1] - beta).argmin()
            end = {0: self.ends[name][0], len(points) - 1: self.ends[name][1]}.get(side, "turn")
            start = self._towards_corner(points[side], beta, end)
        if start is None or (z := locus.at_value(start, beta)) is None:
            return None
        if abs(z[locus.index]) < abs(start[locus.index]) / 2:  # the uniform state
            return None
        return z

    def _towards_corner(self, last: np.ndarray, beta: float, end: str) -> np.ndarray | None:
        """A guess for the point at a beta between the end of a curve and its tricritical point.

        None if the curve has another end, or beta is not between the two.
        """
        corners = [one for one in self.tricritical if one.degree == self.degree]
        if end != "tricritical" or not corners:
            return None
        corner = min(corners, key=lambda one: abs(one.beta - last[-1]))
        part = (beta - corner.beta) / (last[-1] - corner.beta)
        return _near_corner(last, corner, part) if 0 < part < 1 else None

    def first_onset(self, beta: float) -> float:
        """The kappa above which the uniform state is unstable, the lowest of all degrees."""
        return first_onset(self.family, beta)

    def transition(self, beta: float) -> Transition:
        """The phase transition at a beta: above it the uniform state is not the ground state.

        It is discontinuous where a first-order line lies below the first onset, or where that onset
        is subcritical or transcritical by its normal form.

        Raises
        ------
        ValueError
            If beta is outside the range.
        """
        self.kappa("critical", beta)  # raises ValueError outside the range
        onset, member = self.first_onset(beta), self.family.at(beta)
        points_of = {kind: list(self._all_points(kind, beta)) for kind in LOCI}
        below = {
            kind: min(
                (z for z in points if np.exp(z[-2]) < onset), key=lambda z: z[-2], default=None
            )
            for kind, points in points_of.items()
        }
        fold, equal = (below[kind] for kind in LOCI)
        hysteresis = None if fold is None else (float(np.exp(fold[-2])), onset)
        if equal is not None:
            size = np.abs(equal[:-2])
            jump = float(size[size > PRESENT_MOMENT][0])
            return Transition("discontinuous", float(np.exp(equal[-2])), onset, jump, hysteresis)
        form = normal_form(member, member.most_attracted)
        if form.kind in ("subcritical", "transcritical"):
            kappa, amplitude = weak_transition(form)
            jump = amplitude / float(member.basis.sizes[member.basis.index(form.degree)])
            return Transition("discontinuous", kappa, onset, jump, hysteresis)
        decided = form.kind == "supercritical" or form.quartic > VANISHES
        return Transition("continuous" if decided else "degenerate", onset, onset, 0.0, hysteresis)

    def _all_points(self, kind: str, beta: float) -> Iterator[np.ndarray]:
        """Points (m, log kappa, beta) at one beta on all curves of one kind, of all degrees."""
        for degree in {locus.degree for locus in self.loci.values()}:
            yield from self._points(kind, beta, degree)

    @cached_property
    def end_points(self) -> list[EndPoint]:
        """Critical end points: the points at which first-order lines meet the first onset."""
        ends = []
        for locus in self.loci.values():
            if locus.name != Transitions.name:
                continue
            places = locus.points[:, -1]
            above = locus.points[:, -2] + np.log(self.family.weights(places)[:, 1:].max(axis=1))
            for i in np.flatnonzero(above[:-1] * above[1:] < 0):
                end = partial(self._above_onset, locus, locus.points[i], locus.points[i + 1])
                for part in zeros(end, np.array([0.0, 1.0]), above[i : i + 2]):
                    beta = float(places[i] + part * (places[i + 1] - places[i]))
                    ends.append(EndPoint(beta, self.first_onset(beta), self.parameter))
        return ends

    def _above_onset(
        self, locus: "Locus", one: np.ndarray, other: np.ndarray, part: float
    ) -> float:
        """log(kappa / first onset) on a curve, at the fraction `part` from `one` to `other`.

        nan where Newton's method finds no point.
        """
        start = one + part * (other - one)
        z = locus.at_value(start, start[-1])
        return np.nan if z is None else float(z[-2] - np.log(self.first_onset(z[-1])))

    def reference(self, beta: float) -> float:
        """Unit of kappa in relative figures: the onset of degree `self.degree`."""
        return self.kappa("critical", beta)

    @property
    def curves(self) -> list[tuple[str, str, int]]:
        """All curves, as (short name, curve, degree); the last two are arguments of `kappa`."""
        degrees = [int(l) for l in np.unique(self.data.degree.values)]
        critical = [(f"kappa_{l}", "critical", l) for l in degrees]
        return critical + [(name, name, self.degree) for name in self.loci]

    def __repr__(self) -> str:
        low, high = self.data.attrs[self.parameter]
        names = ", ".join(dict.fromkeys(curve for _, curve, _ in self.curves)) or "no lines"
        drift, name = self.data.attrs["drift"], self.parameter
        lines = [f"{type(self).__name__} of {drift}, {low:g} <= {name} <= {high:g}: {names}"]
        lines += [f"  {point!r}" for point in [*self.tricritical, *self.end_points]]
        return "\n".join([*lines, *(f"  <-- {warning}" for warning in self.warnings)])

    @property
    def warnings(self) -> list[str]:
        """Sentences that say what is missing: curves cut short or not located."""
        sentences = []
        for name, ends in self.ends.items():
            here = self.data[self.parameter].values[self.data.curve.values == name]
            places = here[[0, -1]] if len(here) else [float("nan")] * 2
            for end, value in dict(zip(ends, places, strict=True)).items():
                if end in END_SENTENCES:
                    place = f"{self.parameter} = {value:.6g}" if len(here) else "its start"
                    sentences.append(f"{name} {END_SENTENCES[end].format(place=place)}.")
        return sentences

    def contents(self) -> Contents:
        """Arrays and header of a file: points and curves, so that `kappa` works after `load`."""
        family = self.family
        header = {
            "drift": describe(family.drift),
            "parameter": family.name,
            "span": family.span,
            "dimension": family.basis.dimension,
            "degree": family.basis.degree,
            "tricritical": self.tricritical,
            "ends": self.ends,
            "of_degree": self.degree,
            "loci": {
                name: {
                    "max_step": locus.max_step,
                    "null": locus.null,
                    "points": locus.points,
                    "degree": locus.degree,
                }
                for name, locus in self.loci.items()
            },
        }
        return contents_of(self.data, header)

    @classmethod
    def made_of(cls, contents: Contents) -> "PhaseDiagram":
        """The phase diagram from the contents of a file, equal to the saved one to the last bit."""
        data, header = dataset_of(contents)
        low, high = header["span"]
        basis = AxialHarmonics(header["dimension"], 0, header["degree"])
        family = EquationFamily(drift_of(header["drift"]), header["parameter"], (low, high), basis)
        corners = [
            Tricritical(l, float(b), float(k), family.name) for l, b, k, *_ in header["tricritical"]
        ]
        ends = {name: (first, last) for name, (first, last) in header["ends"].items()}
        lead = header.get("of_degree", 1)
        loci = {
            name: LOCI[name.split()[0]](family, **({"degree": lead} | kept))
            for name, kept in header["loci"].items()
        }
        return cls(data, corners, ends, family, loci, degree=lead)

    def plot(self, kind: str | None = None, **options: Any) -> "Figure":
        """Draw the curves by `plotting.phases`; kind "relative" divides kappa by `reference`.

        Raises
        ------
        ValueError
            If `kind` is not None or "relative".
        """
        if kind not in (None, "relative"):
            raise ValueError(f"A phase diagram has the kind relative; got {as_given(kind)}.")
        return FIGURES["phases"](self, **{"relative": kind is not None, **options})


@checked_call("drift", "vary", "executor")
def phase_diagram(
    drift: ZonalDrift | type[ZonalDrift],
    space: Space,
    beta: tuple[float, float] | None = None,
    *,
    vary: Mapping[str, tuple[float, float]] | None = None,
    degrees: tuple[int, ...] | None = None,
    noise: Noise = ISOTROPIC,
    kappa: tuple[float, float] | None = None,
    places: Natural = 4,
    max_step: Positive = 0.2,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 60.0,
    resume: bool = False,
    executor: Any = None,
    progress: bool | None = None,
) -> PhaseDiagram:
    """Curves on which the uniform state becomes unstable, or stops being the ground state.

    critical
        kappa_l = 1/w_l, at which the uniform state becomes unstable to harmonics of degree l.
    tricritical
        beta at which the onset of degree l becomes subcritical, from its normal form.
    fold
        The curve of saddle-nodes at which the ordered states begin where the onset is
        discontinuous: of degree 1, or of the degree that the drift attracts most. If the onset is
        transcritical, for example of degree 2 on S^2, the curve has no tricritical point.
    transition
        The first-order line between fold and onset, where the ordered and the uniform state have
        the same free energy. SA has none, as it has no free energy.

    Folds and transitions end at the tricritical point, if there is one. They are followed as curves
    in the moments, kappa and beta, from special points of one branch. Each range of beta in which
    the onset is discontinuous has its own fold and transition.

    Parameters
    ----------
    drift : ZonalDrift, or type
        The class `USA` or `SA`, or any zonal drift or class of zonal drifts, user-defined ones
        included, that has the parameter that varies.
    space : Circle, Sphere or Zonal
        Sets the dimension, and a lower bound of the degree at which the search begins.
    beta : (float, float)
        0 < first < last: the range of beta.
    vary : mapping of str to (float, float)
        Name of one parameter of the drift, instead of beta, and its range, first < last:
        ``phase_diagram(X(b=1.0), circle, vary={"b": (-1, 3)})``.
    degrees : tuple of int
        Degrees l of the critical curves and tricritical points; 1, 2 and 3 by default. Folds and
        transitions are computed for those of these degrees that the drift attracts most somewhere
        in the range. Only for isotropic noise.
    noise : Noise
        Isotropic by default. Anisotropic or multiplicative noise is possible on the circle and S^2,
        in the plane of beta and kappa: see the Notes.
    kappa : (float, float), optional
        0 < first < last: range in which curves are sought and followed under non-isotropic noise.
        By default from 0.4 to 1.4 times the onset under isotropic noise of the same strength.
    places : int
        Number of values of beta at which a bifurcation diagram in kappa is computed under
        non-isotropic noise, both ends of the range included.
    max_step : float
        Longest step in sqrt(2) times the Legendre moments, log kappa and beta.
    checkpoint, checkpoint_every, resume
        File of intermediate results, how often it is written, and whether to continue from it: as
        for `branches`.
    executor : optional
        Executor as for `sweep`, which computes the diagrams at the values of beta counted by
        `places` under non-isotropic noise, before the curves. The checkpoint does not contain these
        diagrams. The result does not depend on the executor.
    progress : bool, optional
        Show a progress bar; by default on a terminal and in a notebook.

    Returns
    -------
    PhaseDiagram, or NoisePhaseDiagram
        NoisePhaseDiagram under non-isotropic noise. After Ctrl-C it contains the curves computed so
        far; `warnings` lists what is missing.

    Raises
    ------
    TypeError, ValueError
        If an argument has a wrong type or is out of its range.
    MeanfieldError
        If a curve cannot be followed, or needs too many moments.
    CheckpointError
        If the checkpoint is damaged or belongs to another diagram.

    Notes
    -----
    Under anisotropic and multiplicative noise the disordered state is not uniform. The curves are
    its onsets, one for each direction, folds, losses of symmetry and Hopf points. They start from
    the special points that `branches` finds at a few values of beta; curves that reach none of
    these values are missed. Curves meet in cusps. There is no free energy and no transition:
    `NoisePhaseDiagram.stable_counts` shows bistability, and ranges without stable states.

    References
    ----------
    Mun and Rosenzweig, arXiv:2604.16288 and 2606.05140, with K = kappa/2, for tricritical points;
    Govaerts, Numerical Methods for Bifurcations of Dynamical Equilibria (2000), for the curves.
    """
    import xarray as xr

    basis = basis_on(space)
    drift, name, span = _asked(drift, beta, vary)
    isotropic = noise.laplacian
    unused = f"left out under {noise!r}"
    fitting("vary", vary, unused, isotropic or vary is None)
    wanted = f"a kind of drift, such as USA, under {noise!r}"
    fitting("drift", drift, wanted, isotropic or isinstance(drift, type), TypeError)
    fitting("degrees", degrees, unused, isotropic or degrees is None)
    fitting("kappa", kappa, unused, not isotropic or kappa is None)
    fitting("executor", executor, unused, not isotropic or executor is None)
    chosen = asked_degrees((1, 2, 3) if degrees is None else degrees, PHASE_DEGREE // 2)
    keeper, grid = Keeper(checkpoint, checkpoint_every, resume), np.linspace(*span, PARAMETER_GRID)
    identity = {
        **{"drift": drift, "space": space, "parameter": name, "range": span, "degrees": chosen},
        **{"max_step": max_step, "noise": noise, "kappa": kappa, "places": places},
    }
    with (
        one_blas_thread(),
        keeper,
        AnswerJournal(keeper, identity) as journal,
        Following(name, span, progress) as following,
    ):
        if not isotropic:
            from .noise_search import phases_under  # here, as noise_search imports this module

            return phases_under(
                drift, space, span, noise, kappa, places, max_step, following, journal, executor
            )
        for degree in (max(PHASE_DEGREE, space.degree) << i for i in range(DOUBLINGS)):
            family = EquationFamily(drift, name, span, basis.finer(degree))
            onsets = [_onsets(family, l, grid, journal) for l in chosen]
            corners = [corner for _, points in onsets for corner in points]
            lines = FirstOrder(family, space, corners, max_step, following, journal)
            for lead in _leading_degrees(family, corners, chosen):
                lines.from_onsets(lead)
            lines.from_clusters(chosen)
            loci, ends = lines.loci, lines.ends
            resolved = {name: locus for name, locus in loci.items() if locus.resolved}
            if following.stopped or len(resolved) == len(loci):
                break
        else:
            raise MeanfieldError(
                f"The curves need more than {degree} moments. Take a smaller range of {name}."
            )
    rows: list[tuple[Any, ...]] = []
    for l, (values, _) in zip(chosen, onsets, strict=True):
        rows += [("critical", l, b, kappa, 0.0) for b, kappa in zip(grid, values, strict=True)]
    for curve, locus in resolved.items():
        at = locus.index
        rows += [(curve, locus.degree, z[-1], np.exp(z[-2]), abs(z[at])) for z in locus.points]
    names = ("curve", "degree", name, "kappa", "order_parameter")
    columns = zip(names, map(np.array, zip(*rows, strict=True)), strict=True)
    data = xr.Dataset({what: ("point", column) for what, column in columns})
    named = drift.__name__ if isinstance(drift, type) else repr(drift)
    data.attrs = {"drift": named, "space": repr(space), name: list(span)}
    leads = [locus.degree for locus in resolved.values()]
    leads += [*_leading_degrees(family, corners, chosen), 1]
    return PhaseDiagram(data, corners, ends, family, resolved, degree=leads[0])


def _asked(drift: Any, beta: Any, vary: Any) -> tuple[Any, str, tuple[float, float]]:
    """The drift, the name of its parameter and the range, after checks of the arguments."""
    drift = drift.as_zonal() if isinstance(drift, Drift) else drift  # raises if it is not zonal
    zonal = isinstance(drift, ZonalDrift) or (
        isinstance(drift, type) and issubclass(drift, ZonalDrift)
    )
    fitting("drift", drift, "a zonal drift, such as SA(beta=1.0), or a kind of one, such as USA",
            zonal, TypeError)  # fmt: skip
    if isinstance(drift, ZonalDrift) and drift.shape:
        raise ValueError(f"phase_diagram takes a single drift; got an ensemble {drift!r}.")
    if (beta is None) == (vary is None):
        raise TypeError("phase_diagram needs the range of either beta or of one parameter to vary.")
    asked = {"beta": range_of("beta", beta)} if vary is None else vary
    return drift, *varied(drift, asked)


def _leading_degrees(
    family: EquationFamily, corners: list[Tricritical], chosen: Sequence[int]
) -> list[int]:
    """Degrees of `chosen` with the largest multiplier at some value of the parameter.

    The first one is that just above the lowest tricritical beta of degree 1, if it is chosen.
    """
    places = [_first_place(family, corners, 1), *np.linspace(*family.span, PARAMETER_GRID)]
    attracted = 1 + family.weights(np.array(places))[:, 1:].argmax(axis=1)
    return [degree for degree in dict.fromkeys(attracted.tolist()) if degree in chosen]


def _first_place(family: EquationFamily, corners: list[Tricritical], degree: int) -> float:
    """A value above the lowest tricritical point of a degree, or above the start of the range."""
    low, high = family.span
    lowest = min((corner.beta for corner in corners if corner.degree == degree), default=low)
    return _inside(lowest, high)


def _inside(start: float, end: float) -> float:
    """A parameter value from `start` towards `end`: by 1, or half of the way if that is shorter."""
    return start + np.sign(end - start) * min(1.0, abs(end - start) / 2)


def _discontinuous(
    family: EquationFamily, corners: list[Tricritical], degree: int
) -> Iterator[float]:
    """One value in each parameter range in which the onset of a degree is discontinuous.

    A range ends at a tricritical point, or where another onset coincides. The value is near the
    tricritical point, if there is one.
    """
    grid = np.linspace(*family.span, PARAMETER_GRID)
    jumps = np.array([_jumps(family, beta, degree) for beta in grid], dtype=int)
    edges = np.flatnonzero(np.diff([0, *jumps, 0])).reshape(-1, 2)
    for first, last in edges - [0, 1]:

        def corner_in(i: int, j: int) -> list[float]:
            inside = (c.beta for c in corners if c.degree == degree)
            return [
                beta
                for beta in inside
                if grid[max(i, 0)] <= beta <= grid[min(j, PARAMETER_GRID - 1)]
            ]

        below, above = corner_in(first - 1, first), corner_in(last, last + 1)
        low, high = max(below, default=grid[first]), min(above, default=grid[last])
        yield _inside(high, low) if above and not below else _inside(low, high)


def _jumps(family: EquationFamily, beta: float, degree: int) -> bool:
    """Whether the onset of a degree is subcritical or transcritical at a beta."""
    if not critical(family, beta, degree) < np.inf:
        return False
    with np.errstate(all="ignore"):
        return normal_form(family.at(beta), degree).kind in ("subcritical", "transcritical")


def _near_corner(last: np.ndarray, corner: Tricritical, part: float) -> np.ndarray:
    """A point at the fraction `part` of the way from a tricritical point to the curve point `last`.

    The moments are scaled by part^(l / 2 degree): with amplitude ~ sqrt(part), harmonic l grows
    like amplitude^(l / degree). log kappa and beta are interpolated linearly.
    """
    l = np.arange(1, len(last) - 1) / corner.degree
    log = (1 - part) * np.log(corner.kappa) + part * last[-2]
    beta = (1 - part) * corner.beta + part * last[-1]
    return np.concatenate([last[:-2] * part ** (l / 2), [log, beta]])


def _onsets(
    family: EquationFamily, degree: int, grid: np.ndarray, journal: AnswerJournal | None
) -> tuple[np.ndarray, list[Tricritical]]:
    """kappa_l of one degree on a grid of beta, and the tricritical points; saved in the journal."""

    def find() -> list[float]:
        values = [critical(family, beta, degree) for beta in grid]
        corners = tricritical_points(family, degree)
        return values + [x for corner in corners for x in (corner.beta, corner.kappa)]

    numbers = recalled(journal, ("onsets", family.basis.degree, degree), find)
    corners = numbers[len(grid) :].reshape(-1, 2).tolist()
    return numbers[: len(grid)], [Tricritical(degree, b, k, family.name) for b, k in corners]


def critical(family: EquationFamily, beta: float, degree: int) -> float:
    """kappa_l = 1/w_l with the multiplier w_l; inf where w_l <= 0."""
    member = family.at(beta)
    weight = member.multipliers(member.basis)[member.basis.index(degree)]
    return float(1 / weight) if weight > 0 else float("inf")


def first_onset(family: EquationFamily, beta: float) -> float:
    """The kappa above which the uniform state is unstable, the lowest of all degrees."""
    return critical(family, beta, family.at(beta).most_attracted)


def tricritical_points(family: EquationFamily, degree: int) -> Iterator[Tricritical]:
    """Zeros in beta of the quadratic term of the normal form, where its linear term is zero.

    Raises
    ------
    MeanfieldError
        Where the normal form exceeds 1e308.
    """

    def quadratic(beta: float) -> float:
        if not critical(family, beta, degree) < np.inf:
            return np.nan
        with np.errstate(all="ignore"):
            term = float(normal_form(family.at(beta), degree).quadratic)
        if not np.isfinite(term) and _alone(family.at(beta), degree):
            raise MeanfieldError(
                f"Expected a range of beta in which normal forms are finite; at beta = {beta:.3g} "
                f"that of degree {degree} exceeds 1e308. Take another range."
            )
        return term

    grid = np.linspace(*family.span, PARAMETER_GRID)
    values = np.array([quadratic(b) for b in grid])
    attracted = grid[np.isfinite(values)]
    if not attracted.size or normal_form(family.at(attracted[0]), degree).kind == "transcritical":
        return
    usual = np.nanmedian(np.abs(values))
    for beta in zeros(quadratic, grid, values):
        if abs(quadratic(beta)) <= POLE_TERM * usual:  # skips poles, where two onsets coincide
            yield Tricritical(degree, beta, critical(family, beta, degree), family.name)


def _alone(member: MomentEquation, degree: int) -> bool:
    """Whether all other degrees have a different multiplier, beyond rounding."""
    weights = member.multipliers(member.basis)
    own = weights[member.basis.index(degree)]
    others = np.delete(weights, member.basis.index(degree))
    return bool((np.abs(others - own) > VANISHES * own).all())


class Locus(Curve):
    """A curve of special points z = (m, log kappa, beta).

    Parameters
    ----------
    family : EquationFamily
    max_step : float
        Longest step along the curve.
    null : ndarray, (N,)
        Approximate null vector of dR/dm at a fold, of length about 1: border of the system.
    points : ndarray, (n, N + 2)
        Points z along the curve; beta increases where it starts.
    journal : AnswerJournal, optional
        Journal in which computed points are saved.
    degree : int
        Degree of the onset; the moment of this degree is the order parameter.
    """

    name: str

    def __init__(
        self, family: EquationFamily, max_step: float, null: np.ndarray,
        points: np.ndarray | None = None, journal: AnswerJournal | None = None, degree: int = 1,
    ):  # fmt: skip
        super().__init__(len(family.basis.degrees), 2, max_step, journal)
        self.family, self.null = family, null
        self.degree, self.index = degree, family.basis.index(degree)
        self.points = np.zeros((0, len(family.basis.degrees) + 2)) if points is None else points

    def identity(self) -> tuple[Any, ...]:
        """Degree of truncation and border, by which the journal tells curves apart."""
        return self.family.basis.degree, self.null

    @property
    def resolved(self) -> bool:
        """Whether the last moments of all points are below `UNRESOLVED_TAIL`."""
        return max(self.family.basis.tail(z[:-2]) for z in self.points) <= UNRESOLVED_TAIL

    def reaches(self, beta: float) -> bool:
        """Whether a beta is between the lowest and the highest of the points."""
        places = self.points[:, -1]
        return bool(places.min() <= beta <= places.max())

    def holds(self, kind: str, place: np.ndarray) -> bool:
        """Whether the curve is of this kind and passes through the point z = `place`."""
        beta = place[-1]
        if kind != self.name or not self.reaches(beta):
            return False
        z = self.at_value(between(self.points, beta), beta)
        return z is not None and bool(np.allclose(z, place, rtol=0, atol=SAME_SPECIAL_POINT))

    def follow(self, start: np.ndarray, following: Following) -> tuple[str, str]:
        """Set `points` by following the curve both ways from `start`; returns both ends."""
        (down, first), (up, last) = (self._one_way(start, sign, following) for sign in (-1.0, 1.0))
        self.points = np.array([*down[::-1], start, *up])
        return first, last

    def _one_way(
        self, start: np.ndarray, sign: float, following: Following
    ) -> tuple[list[np.ndarray], str]:
        """Points after `start`, where beta rises or falls by `sign` at first, and why they end."""
        at = self.index
        (low, high), small = self.family.span, CORNER_AMPLITUDE / self.family.basis.sizes[at]
        here = self.point(start, np.append(np.zeros(len(start) - 1), sign))
        points, step = [start], self.max_step / 4
        while (stepped := self.stepped(here, step)) is not None:
            here, _, step = stepped
            z = here.z
            if abs(z[at]) < small or z[at] * start[at] < 0:
                amplitudes = np.abs(self.family.basis.sizes * points[-1][:-2])
                alone = amplitudes[at] >= np.delete(amplitudes, at).max(initial=0.0)
                return points[1:], "tricritical" if alone else "onset"
            if not low <= here.value <= high:
                last = high if here.value > high else low
                end = self.at_value(between(np.array([points[-1], z]), last), last)
                return [*points[1:], *([] if end is None else [end])], "range"
            points.append(z)
            if following.at(self, self.name, here.value):
                return points[1:], "interrupted"
            if len(points) > MOST_CURVE_POINTS:
                return points[1:], "max_points"
        return points[1:], "not continued"

    @abstractmethod
    def condition(self, member: MomentEquation, m: np.ndarray, mean: Mean) -> Condition:
        """sigma at a point, and a function that computes its gradient by (m, log kappa, beta)."""

    def system(self, z: np.ndarray) -> tuple[np.ndarray, Callable[[], np.ndarray]]:
        """(R, sigma) at z, (N + 1,), and a function that computes the Jacobian, (N + 1, N + 2)."""
        m, kappa, member = z[:-2], float(np.exp(z[-2])), self.family.at(z[-1])
        mean = member.mean(m, kappa)
        sigma, gradient = self.condition(member, m, mean)

        def jacobian() -> np.ndarray:
            by_kappa = member.along(mean, mean.potential)
            by_beta = member.along(mean, member.potential_change(m, mean))
            above = np.column_stack([member.jacobian(mean), by_kappa, by_beta])
            return np.vstack([above, gradient()])

        return np.append(m - mean.moments, sigma), jacobian


class Folds(Locus):
    """Curve of saddle-nodes, on which two stationary states meet."""

    name = "fold"

    def condition(self, member: MomentEquation, m: np.ndarray, mean: Mean) -> Condition:
        n = len(m)
        bordered = np.zeros((n + 1, n + 1))
        bordered[:n, :n] = member.jacobian(mean)
        bordered[:n, n] = bordered[n, :n] = self.null
        unit = np.append(np.zeros(n), 1.0)
        right = np.linalg.solve(bordered, unit)

        def gradient() -> np.ndarray:
            left = np.linalg.solve(bordered.T, unit)
            return -_slope(member, m, mean, left[:n], right[:n])

        return float(right[n]), gradient


class Transitions(Locus):
    """Curve on which an ordered state has the free energy of the uniform state."""

    name = "transition"

    def condition(self, member: MomentEquation, m: np.ndarray, mean: Mean) -> Condition:
        entropy = mean.weights @ (mean.kappa * mean.potential) - mean.log_mass
        half, squares = 0.5 * mean.kappa, mean.moments**2
        energy = half * (member.strengths @ squares)

        def gradient() -> np.ndarray:
            by_beta = -half * (member.strength_changes @ squares)
            return np.append(np.zeros(len(m)), [-energy, by_beta])

        return float(entropy - energy), gradient


LOCI: dict[str, type[Locus]] = {kind.name: kind for kind in (Folds, Transitions)}


def _slope(
    member: MomentEquation, m: np.ndarray, mean: Mean, left: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """Gradient by (m, log kappa, beta) of left . (dR/dm) right = left . right - kappa Cov(f, h).

    f = sum left_l P_l and h = gain sum W_l right_l P_l. The density is proportional to
    exp(kappa g), so that dE X = kappa Cov(X, dg) + E dX. `left`, `right`: (N,); returns (N + 2,).
    """
    kappa, p, w, mass = mean.kappa, member.functions, member.strengths, mean.weights
    f, s = left @ p, (w * right) @ p
    h = mean.gain * s
    f = f - mass @ f
    pairs = mass * f * (h - mass @ h)
    covariance = pairs.sum()
    bent = -member.ratio * mean.gain**2 * s  # derivative of h by the sum on which the gain depends
    by_moments = kappa * (p @ (pairs * mean.gain) - covariance * (p @ (mass * mean.gain)))
    by_moments = w * (by_moments + p @ (mass * f * bent))
    by_kappa = covariance + kappa * (pairs @ mean.potential - covariance * (mass @ mean.potential))
    change = member.potential_change(m, mean)
    moved = mean.gain * ((member.strength_changes * right) @ p) + s * member.gain_change(m, mean)
    by_beta = kappa * (pairs @ change - covariance * (mass @ change)) + (mass * f) @ moved
    return -kappa * np.concatenate([by_moments, [by_kappa, by_beta]])


class FirstOrder:
    """Search for fold and transition curves, and the reasons why each of them ends.

    Parameters
    ----------
    family, space, corners, max_step, following, journal
        Arguments and parts of the phase diagram; `corners` are its tricritical points.

    Attributes
    ----------
    loci : dict of str to Locus
        Curves by name.
    ends : dict of str to (str, str)
        Why each curve ends, at its first and its last point.
    """

    def __init__(
        self, family: EquationFamily, space: Space, corners: list[Tricritical],
        max_step: float, following: Following, journal: AnswerJournal | None,
    ):  # fmt: skip
        self.family, self._space, self._corners = family, space, corners
        self._max_step, self._following, self._journal = max_step, following, journal
        self.loci: dict[str, Locus] = {}
        self.ends: Ends = {}

    def from_onsets(self, degree: int) -> None:
        """Follow curves from special points of one branch per range with a discontinuous onset."""
        for beta in _discontinuous(self.family, self._corners, degree):
            onset = critical(self.family, beta, degree)
            curve = self._curve(beta, onset)
            with Following("kappa", curve.span, False) as on_branch:
                search = Search(self._space, AXISYMMETRIC, [degree], False, False, ON_BRANCH,
                                on_branch)  # fmt: skip
                diagram = search.diagram(curve, {})
            interrupted = self._following.stopped or on_branch.stopped
            specials = [
                (special.kind, special.state.legendre_moments, special.state.kappa)
                for special in ([] if interrupted else diagram.special_points)
            ]
            self._begin(beta, degree, specials, "interrupted" if interrupted else "not located")

    def from_clusters(self, degrees: Sequence[int]) -> None:
        """Follow curves from clustered states at the first onset, if no curve lies below it.

        The states have a lower free energy than the uniform state or, where there is no free
        energy, are stable. They are computed at every eighth value of the grid of beta.
        """
        for beta in np.linspace(*self.family.span, PARAMETER_GRID)[::CLUSTERED_EVERY]:
            if self._following.stopped:
                return
            beta = float(beta)
            onset = first_onset(self.family, beta)
            if not np.isfinite(onset) or self._ordered_below(beta, onset):
                continue
            curve = self._curve(beta, onset)
            for state in clustered_states(curve, onset):
                flow = self.family.at(beta).gradient_flow
                amplitudes = np.abs(state.z[:-1] * state.curve.basis.sizes)
                present = [l for l in sorted(degrees) if amplitudes[l - 1] > PRESENT_AMPLITUDE]
                if present and (state.lower if flow else state.stable):
                    growth = BranchSearch(state.curve, curve.span, ON_BRANCH)
                    for _ in growth.from_edge(state.curve, state.z, curve.span[1], present[0]):
                        pass
                    specials = [
                        (special.kind, special.point.m, special.point.value)
                        for branch in growth.branches for special in branch.specials
                    ]  # fmt: skip
                    self._begin(beta, present[0], specials, "not located")
                    break

    def _curve(self, beta: float, onset: float) -> StationaryCurve:
        """Stationary states at one beta as a curve in kappa, from onset / 20 to 1.2 onset."""
        basis, span = basis_on(self._space), (onset / 20, 1.2 * onset)
        drift = self.family.at(beta).source
        return curve_of(drift, basis, "kappa", span, None, STEP_ON_BRANCH, self._journal)

    def _ordered_below(self, beta: float, onset: float) -> bool:
        """Whether a curve followed so far has a point at this beta below the onset.

        Transitions count for gradient flows, folds otherwise.
        """
        kind = Transitions.name if self.family.at(beta).gradient_flow else Folds.name
        for locus in self.loci.values():
            if locus.name == kind and locus.reaches(beta):
                z = locus.at_value(between(locus.points, beta), beta)
                if z is not None and np.exp(z[-2]) < onset:
                    return True
        return False

    def _begin(
        self, beta: float, degree: int, specials: list[tuple[str, np.ndarray, float]], cut: str
    ) -> None:
        """Follow one curve of each kind through the first special point of that kind on a branch.

        A special point on a curve followed before is skipped. Where there is no special point,
        `ends` has the word `cut`. `specials` are triples (kind, moments, kappa).
        """
        member = self.family.at(beta)
        for kind in LOCI if member.gradient_flow else (Folds.name,):
            here = [(m, kappa) for name, m, kappa in specials if name == kind]
            start: np.ndarray | None = None
            if here:
                size = len(member.degrees)
                m = np.pad(here[0][0], (0, size))[:size]
                start = np.append(m, [np.log(here[0][1]), beta])
                if any(one.holds(kind, start) for one in self.loci.values()):
                    continue  # on a curve followed before: two ranges can share one
            number = 1 + sum(name.split()[0] == kind for name in self.ends)
            name = kind if number == 1 else f"{kind} {number}"
            self.ends[name] = cut, cut
            if start is None:
                continue
            mean = member.mean(start[:-2], float(np.exp(start[-2])))
            null = np.linalg.svd(member.jacobian(mean))[2][-1]
            locus = LOCI[kind](
                self.family, self._max_step, null, journal=self._journal, degree=degree
            )
            if (begin := locus.at_value(start, beta)) is None:
                raise MeanfieldError(
                    f"The special point at {self.family.name} = {beta:g} was not found again."
                )
            self.loci[name], self.ends[name] = locus, locus.follow(begin, self._following)


def between(points: np.ndarray, beta: float) -> np.ndarray:
    """Linear interpolation of curve points, (n, N + 2), at a beta: where they first cross it.

    The nearest point where they do not cross it.
    """
    places = points[:, -1]
    crossed = np.flatnonzero((places[:-1] - beta) * (places[1:] - beta) <= 0)
    if not crossed.size:
        return points[np.abs(places - beta).argmin()]
    start, end = points[crossed[0]], points[crossed[0] + 1]
    part = (beta - start[-1]) / (end[-1] - start[-1]) if end[-1] != start[-1] else 0.0
    return start + part * (end - start)
