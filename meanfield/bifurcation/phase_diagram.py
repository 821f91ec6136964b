"""The phase diagram in beta, or another parameter, and kappa, by continuation of special points.

A fold is a solution of

    R(m, kappa, beta) = 0,   sigma(m, kappa, beta) = 0,

with sigma from the bordered system (dR/dm, b; c, 0) (v, sigma) = (0, 1): it vanishes where dR/dm is
singular, and its gradient is -u . d(dR/dm) v with u from the transposed system (Govaerts). On the
line of first-order transitions sigma is kappa (F(mu) - F(uniform)), of size 1 for all beta, whose
derivative by m vanishes. Either way the solutions are curves in (m, log kappa, beta). Where the
onset is not continuous, on either side of a tricritical point, they are found from special points
on one branch.
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
    81  # values of beta on critical curves, between which changes of character are looked for
)
CLUSTERED_EVERY = 8  # every such value is one at which clustered states are looked for
PRESENT_AMPLITUDE = 0.1  # amplitude in L^2 of states that belong to no tricritical point
CORNER_AMPLITUDE = 0.03  # amplitude in L^2 at which a curve has come to its tricritical point
SAME_SPECIAL_POINT = 1e-6  # moments, log kappa and beta of a point found twice
POLE_TERM = 1e-3  # of the median: a quadratic term at what is a zero of it, not a pole
MOST_CURVE_POINTS = 2000  # points of a curve
ON_BRANCH = 500  # points of the branch on which curves begin, and its longest step
STEP_ON_BRANCH = 0.1

Condition = tuple[float, Callable[[], np.ndarray]]  # a function of z, and its gradient if needed
Ends = dict[str, tuple[str, str]]


class Tricritical(NamedTuple):
    """A point at which the onset of degree l turns from continuous to discontinuous.

    Attributes
    ----------
    degree : int
    beta, kappa : float
        beta stands for the parameter of the diagram, if that is another one.
    parameter : str
        The name of that parameter.
    """

    degree: int
    beta: float
    kappa: float
    parameter: str = "beta"

    def __repr__(self) -> str:
        """The point, with the parameter under its name."""
        place = f"{self.parameter}={self.beta!r}, kappa={self.kappa!r}"
        return f"{type(self).__name__}(degree={self.degree}, {place})"


class EndPoint(NamedTuple):
    """A critical end point: a first-order line meets the onset of other harmonics.

    Beyond it the transition from the uniform state is continuous again.

    Attributes
    ----------
    beta, kappa : float
        beta stands for the parameter of the diagram, if that is another one.
    parameter : str
        The name of that parameter.
    """

    beta: float
    kappa: float
    parameter: str = "beta"

    def __repr__(self) -> str:
        """The point, with the parameter under its name."""
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
        Why each fold and transition ends at its first and at its last point, which are those of the
        lowest and of the highest beta unless it turns: "tricritical", "onset" (of its states from
        those without harmonics of this degree), "range", "not continued", "max_points",
        "interrupted"; "not located" where a curve was expected and none was found.
    degree : int
        Of the folds and the transition.
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
        """The name of the parameter beside kappa."""
        return self.family.name

    def kappa(self, curve: str, beta: float, degree: int | None = None) -> float:
        """The kappa of a curve at a beta, to rounding; nan where it has no point.

        By default of the degree whose folds and transitions are known; of several folds the first
        one there. beta stands for the parameter, if that is another one.

        Raises
        ------
        ValueError
            For other curves, and for beta outside the range.
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
        """The points at a beta of folds or transitions of a degree, or of the one of that name."""
        for name, locus in self.loci.items():
            if curve in (name, locus.name) and locus.degree == degree:
                z = self._on(name, beta)
                if z is not None:
                    yield z

    def _on(self, name: str, beta: float) -> np.ndarray | None:
        """The point at a beta of one fold or transition; None beyond its ends."""
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
        """A guess for the point at a beta between the last of a curve and its tricritical point."""
        corners = [one for one in self.tricritical if one.degree == self.degree]
        if end != "tricritical" or not corners:
            return None
        corner = min(corners, key=lambda one: abs(one.beta - last[-1]))
        part = (beta - corner.beta) / (last[-1] - corner.beta)
        return _near_corner(last, corner, part) if 0 < part < 1 else None

    def first_onset(self, beta: float) -> float:
        """The kappa above which the uniform state is unstable, to harmonics of whatever degree."""
        return first_onset(self.family, beta)

    def transition(self, beta: float) -> Transition:
        """The phase transition at a beta: beyond it the uniform state is no ground state.

        Discontinuous where a first-order line lies below the first onset, or where that is
        subcritical or transcritical by its normal form.

        Raises
        ------
        ValueError
            For beta outside the range.
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
        for degree in {locus.degree for locus in self.loci.values()}:
            yield from self._points(kind, beta, degree)

    @cached_property
    def end_points(self) -> list[EndPoint]:
        """The points at which first-order lines meet the first onset, and end."""
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
        """log kappa on a line over the first onset, at a part of the way between two points."""
        start = one + part * (other - one)
        z = locus.at_value(start, start[-1])
        return np.nan if z is None else float(z[-2] - np.log(self.first_onset(z[-1])))

    def reference(self, beta: float) -> float:
        """The kappa by which others are divided in relative figures: the onset of one degree."""
        return self.kappa("critical", beta)

    @property
    def curves(self) -> list[tuple[str, str, int]]:
        """All curves: a short name, and the arguments of `kappa`, curve and degree."""
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
        """The phase diagram from what was kept, to the last bit."""
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
        """The curves, "relative" to the first critical one if that is the kind: `plotting.phases`.

        Raises
        ------
        ValueError
            For another kind.
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
    """The lines on which the uniform state becomes unstable, and stops being the ground state.

    critical
        kappa_l = 1/w_l, at which the uniform state becomes unstable to harmonics of degree l.
    tricritical
        beta at which the onset of degree l becomes subcritical, from its normal form.
    fold
        Where the ordered states begin, as long as the onset is discontinuous: the curve of
        saddle-nodes of degree 1, or of the degree that the drift attracts most. At a transcritical
        onset, as of degree 2 on S^2, it has no tricritical point.
    transition
        Between the two, where both states have the same free energy: the first-order line. SA has
        none, as it has no free energy.

    The last two end at the tricritical point, if there is one, and are followed as curves in the
    moments, kappa and beta, from points on one branch. Each range of beta in which the onset is
    discontinuous has its own.

    Parameters
    ----------
    drift : ZonalDrift, or type
        `USA` or `SA` itself, or any zonal drift or kind of one, a drift of one's own too, with the
        parameter that varies.
    space : Circle, Sphere or Zonal
        Its dimension, and a degree at which to begin.
    beta : (float, float)
        0 < first < last: the range of beta.
    vary : mapping of str to (float, float)
        Instead of beta, the name of one parameter of the drift, and its range, first < last:
        ``phase_diagram(X(b=1.0), circle, vary={"b": (-1, 3)})``.
    degrees : tuple of int
        Whose critical curves and tricritical points are wanted; with the one among them that the
        drift attracts most, folds and transitions of this one too. By default 1, 2 and 3. Under
        isotropic noise only.
    noise : Noise
        Anisotropic or multiplicative noise, on the circle and S^2: see the Notes. In beta only.
    kappa : (float, float), optional
        0 < first < last: where lines are sought and followed under such a noise. By default from
        0.4 to 1.4 times the onset under isotropic noise of the same strength.
    places : int
        At how many values of beta lines are sought under such a noise, the ends among them.
    max_step : float
        Longest step in sqrt(2) times the Legendre moments, log kappa and beta.
    checkpoint, checkpoint_every, resume
        As for `branches`: where to keep what was found, and to continue from.
    executor : optional
        As for `sweep`: where diagrams at `places` are found under such a noise, which is then done
        first, and is no part of the checkpoint. The result does not depend on it.
    progress : bool, optional
        Show a progress bar; by default on a terminal and in a notebook.

    Returns
    -------
    PhaseDiagram, or NoisePhaseDiagram
        After Ctrl-C with what was found; `warnings` says what is missing.

    Raises
    ------
    TypeError, ValueError
        For arguments out of their range.
    MeanfieldError
        If a curve cannot be followed, or needs too many moments.
    CheckpointError
        If the checkpoint is damaged or belongs to another diagram.

    Notes
    -----
    Under anisotropic and multiplicative noise the state without order is not uniform. Lines are
    those of its onsets, one for each direction, of folds, of losses of symmetry and of Hopf points.
    They begin at the special points that `branches` finds at a few values of beta; lines that come
    to none of these values are not found. They meet in cusps. There is no free energy, and there
    are no transitions: `NoisePhaseDiagram.stable_counts` gives ranges of bistability, and gaps
    without stable states.

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
    identity = {"phase diagram": (drift, space, name, span, chosen, max_step, noise, kappa, places)}
    with (
        one_blas_thread(),
        keeper,
        AnswerJournal(keeper, identity) as journal,
        Following(name, span, progress) as following,
    ):
        if not isotropic:
            from .noise_search import phases_under  # whose lines are drawn as phase diagrams

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
    """The drift, its parameter and the range, checked."""
    drift = drift.as_zonal() if isinstance(drift, Drift) else drift  # which says why there is none
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
    """The degrees attracted most somewhere, of those that are chosen.

    The first is that beyond the first tricritical point.
    """
    places = [_first_place(family, corners, 1), *np.linspace(*family.span, PARAMETER_GRID)]
    attracted = 1 + family.weights(np.array(places))[:, 1:].argmax(axis=1)
    return [degree for degree in dict.fromkeys(attracted.tolist()) if degree in chosen]


def _first_place(family: EquationFamily, corners: list[Tricritical], degree: int) -> float:
    """A value of the parameter beyond the tricritical point of a degree, if there is one."""
    low, high = family.span
    lowest = min((corner.beta for corner in corners if corner.degree == degree), default=low)
    return _inside(lowest, high)


def _inside(start: float, end: float) -> float:
    """A value between two of the parameter, not far beyond the first."""
    return start + np.sign(end - start) * min(1.0, abs(end - start) / 2)


def _discontinuous(
    family: EquationFamily, corners: list[Tricritical], degree: int
) -> Iterator[float]:
    """A value in each range of the parameter in which the onset of a degree is discontinuous.

    A range ends at a tricritical point, near which the value is; or where another onset coincides.
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
    """Whether the onset of a degree is discontinuous."""
    if not critical(family, beta, degree) < np.inf:
        return False
    with np.errstate(all="ignore"):
        return normal_form(family.at(beta), degree).kind in ("subcritical", "transcritical")


def _near_corner(last: np.ndarray, corner: Tricritical, part: float) -> np.ndarray:
    """At this part of the way from a corner to a point: a_l grows like amplitude^l there."""
    l = np.arange(1, len(last) - 1) / corner.degree
    log = (1 - part) * np.log(corner.kappa) + part * last[-2]
    beta = (1 - part) * corner.beta + part * last[-1]
    return np.concatenate([last[:-2] * part ** (l / 2), [log, beta]])


def _onsets(
    family: EquationFamily, degree: int, grid: np.ndarray, journal: AnswerJournal | None
) -> tuple[np.ndarray, list[Tricritical]]:
    """The critical curve of a degree on a grid of beta, and its tricritical points."""

    def find() -> list[float]:
        values = [critical(family, beta, degree) for beta in grid]
        corners = tricritical_points(family, degree)
        return values + [x for corner in corners for x in (corner.beta, corner.kappa)]

    numbers = recalled(journal, ("onsets", family.basis.degree, degree), find)
    corners = numbers[len(grid) :].reshape(-1, 2).tolist()
    return numbers[: len(grid)], [Tricritical(degree, b, k, family.name) for b, k in corners]


def critical(family: EquationFamily, beta: float, degree: int) -> float:
    """kappa_l = 1/w_l; inf where harmonics of this degree are not attracted."""
    member = family.at(beta)
    weight = member.multipliers(member.basis)[member.basis.index(degree)]
    return float(1 / weight) if weight > 0 else float("inf")


def first_onset(family: EquationFamily, beta: float) -> float:
    """The kappa above which the uniform state is unstable, to harmonics of whatever degree."""
    return critical(family, beta, family.at(beta).most_attracted)


def tricritical_points(family: EquationFamily, degree: int) -> Iterator[Tricritical]:
    """Zeros of the quadratic term of the normal form in a family's range, without linear one.

    Raises
    ------
    MeanfieldError
        Where numbers exceed 1e308.
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
        if abs(quadratic(beta)) <= POLE_TERM * usual:  # where another onset coincides it has a pole
            yield Tricritical(degree, beta, critical(family, beta, degree), family.name)


def _alone(member: MomentEquation, degree: int) -> bool:
    """Whether no other degree has the same multiplier, to rounding."""
    weights = member.multipliers(member.basis)
    own = weights[member.basis.index(degree)]
    others = np.delete(weights, member.basis.index(degree))
    return bool((np.abs(others - own) > VANISHES * own).all())


class Locus(Curve):
    """A curve of special points z = (m, log kappa, beta).

    Parameters
    ----------
    family : Family
    max_step : float
    null : ndarray, (N,)
        About the null vector of dR/dm at a fold, of length about 1.
    points : ndarray, (n, N + 2)
        Along it, from lower to higher beta where it starts.
    journal : Journal, optional
        Where answers are kept.
    degree : int
        Of the onset: which moment is the order parameter.
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
        return self.family.basis.degree, self.null

    @property
    def resolved(self) -> bool:
        """Whether the last moments of all points are small."""
        return max(self.family.basis.tail(z[:-2]) for z in self.points) <= UNRESOLVED_TAIL

    def reaches(self, beta: float) -> bool:
        """Whether it has points on both sides of a beta."""
        places = self.points[:, -1]
        return bool(places.min() <= beta <= places.max())

    def holds(self, kind: str, place: np.ndarray) -> bool:
        """Whether it is a curve of this kind that goes through about this place."""
        beta = place[-1]
        if kind != self.name or not self.reaches(beta):
            return False
        z = self.at_value(between(self.points, beta), beta)
        return z is not None and bool(np.allclose(z, place, rtol=0, atol=SAME_SPECIAL_POINT))

    def follow(self, start: np.ndarray, following: Following) -> tuple[str, str]:
        """Take the points below and above a start; why they end."""
        (down, first), (up, last) = (self._one_way(start, sign, following) for sign in (-1.0, 1.0))
        self.points = np.array([*down[::-1], start, *up])
        return first, last

    def _one_way(
        self, start: np.ndarray, sign: float, following: Following
    ) -> tuple[list[np.ndarray], str]:
        """The points after a start, and why they end."""
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
        """sigma, and a function that gives its gradient by (m, log kappa, beta)."""

    def system(self, z: np.ndarray) -> tuple[np.ndarray, Callable[[], np.ndarray]]:
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
    """The curve on which two stationary states meet."""

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
    """The curve on which the free energy is that of the uniform state; of gradient flows."""

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
    """The gradient of left . (dR/dm) right = left . right - kappa Cov(f, h).

    f = sum left_l P_l and h = gain sum W_l right_l P_l. The law changes like exp(kappa g), so that
    dE X = kappa Cov(X, dg) + E dX.
    """
    kappa, p, w, mass = mean.kappa, member.functions, member.strengths, mean.weights
    f, s = left @ p, (w * right) @ p
    h = mean.gain * s
    f = f - mass @ f
    pairs = mass * f * (h - mass @ h)
    covariance = pairs.sum()
    bent = -member.ratio * mean.gain**2 * s  # dh/dg' s
    by_moments = kappa * (p @ (pairs * mean.gain) - covariance * (p @ (mass * mean.gain)))
    by_moments = w * (by_moments + p @ (mass * f * bent))
    by_kappa = covariance + kappa * (pairs @ mean.potential - covariance * (mass @ mean.potential))
    change = member.potential_change(m, mean)
    moved = mean.gain * ((member.strength_changes * right) @ p) + s * member.gain_change(m, mean)
    by_beta = kappa * (pairs @ change - covariance * (mass @ change)) + (mass * f) @ moved
    return -kappa * np.concatenate([by_moments, [by_kappa, by_beta]])


class FirstOrder:
    """The folds and the first-order lines, and why they end, by name.

    Parameters
    ----------
    family, space, corners, max_step, following, journal
        Of the phase diagram; `corners` are its tricritical points.

    Attributes
    ----------
    loci : dict of str to Locus
    ends : dict of str to (str, str)
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
        """Follow lines from a branch in each range of beta in which an onset is discontinuous."""
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
        """Follow lines from states of lower free energy at the first onset, where none lies below.

        Where there is no free energy, from stable states. At every eighth value of the grid.
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
        """States at one beta as kappa changes."""
        basis, span = basis_on(self._space), (onset / 20, 1.2 * onset)
        drift = self.family.at(beta).source
        return curve_of(drift, basis, "kappa", span, None, STEP_ON_BRANCH, self._journal)

    def _ordered_below(self, beta: float, onset: float) -> bool:
        """Whether a line is known at a beta below an onset: of equal free energies if there is
        one."""
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
        """Lines through the first special points of each kind on a branch, unless they are known.

        Ends say `cut` where there is none.
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
                    continue  # as where onsets coincide, between two ranges
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
    """A point of the polygon through these at a beta, the first one along it; or the end nearby."""
    places = points[:, -1]
    crossed = np.flatnonzero((places[:-1] - beta) * (places[1:] - beta) <= 0)
    if not crossed.size:
        return points[np.abs(places - beta).argmin()]
    start, end = points[crossed[0]], points[crossed[0] + 1]
    part = (beta - start[-1]) / (end[-1] - start[-1]) if end[-1] != start[-1] else 0.0
    return start + part * (end - start)
