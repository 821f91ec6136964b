"""Search for the curves of a phase diagram, in beta or another parameter and kappa.

Every curve starts from a special point of a bifurcation diagram in kappa at one value of the
parameter. The onsets of a rotation-invariant model are 1/w_l, and their normal forms determine
where such diagrams are computed: once for each range in which an onset is discontinuous. For other
models diagrams of all branches are computed at a few values.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..core.calls import checked_call
from ..core.checks import as_given, range_of, require
from ..core.errors import MeanfieldError
from ..core.forms import Natural, Positive
from ..lowlevel.blas import one_blas_thread
from ..models import Drift, Transformer, ZonalDrift
from ..models.noise import Noise
from ..solving.checkpoint import Keeper
from ..spaces import Space
from ..spaces.indexed import Indexed
from ..sweeps.execution import run_points
from ..sweeps.points import Function, Grid
from .bases import AXISYMMETRIC, ISOTROPIC
from .branch_switching import BranchSearch
from .branches import DiagramSearch, Following, asked_degrees, varied
from .clustered_states import clustered_states
from .continuation import CurvesCross, StationaryCurve
from .diagram import Diagram, SpecialPoint
from .families import EquationFamily, checked_source
from .journal import AnswerJournal, recalled
from .normal_forms import VANISHES, NormalForm, normal_form, zeros
from .phases import NoisePhaseDiagram, PhaseDiagram, basis_of_states, first_onset
from .planes import KappaPlane, plane_of
from .special_curves import (
    CURVE_KINDS,
    PLANE_POINTS,
    SAME_CURVE,
    BogdanovTakens,
    Cusp,
    HopfFold,
    KappaRange,
    SpecialCurve,
    Tricritical,
    between,
    critical,
    curve_through,
    hopf_curve_at,
)
from .stationary import check_along

PHASE_DEGREE = 64
PARAMETER_GRID = 81  # values on critical curves; sign changes are sought between neighbours
CLUSTERED_EVERY = 8  # clustered states are computed at every eighth value of the grid
PRESENT_AMPLITUDE = 0.1  # least amplitude in L^2 of a harmonic that a clustered state contains
DISCONTINUOUS = ("subcritical", "transcritical")  # kinds of onsets
POLE_TERM = 1e-3  # relative to the median: largest quadratic term at a zero; at a pole it is larger
ON_BRANCH = 500  # most points of a branch in kappa that provides special points
STEP_ON_BRANCH = 0.1  # longest step along that branch
BESIDE_CROSSING = 1 / 64  # of the range of the parameter: next value to one at which curves cross
BELOW, ABOVE = 0.4, 1.4  # default range of kappa, relative to the onset for isotropic noise
INTERRUPTED_AT = "the search was interrupted at {name} = {value:g}."


@checked_call("drift", "vary", "executor")
def phase_diagram(
    drift: Drift | type[ZonalDrift] | Transformer | Callable[[float], Transformer],
    space: Space | Indexed,
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
    the onset is discontinuous has its own fold and transition. Where beta turns back along a curve,
    another one begins.

    Parameters
    ----------
    drift : Drift, Transformer, type or callable
        The class `USA` or `SA`, or any drift or class of zonal drifts, user-defined ones included,
        that has the parameter that varies; a model with fields, matrices, frequencies or another
        noise, whose kappa is replaced; or a function s -> `Transformer`, to vary s.
    space : Circle, Sphere, Torus or Zonal; or Indexed
        Sets the dimension, and a lower bound of the degree at which the search begins. Of indexed
        densities space and index count, the densities do not.
    beta : (float, float)
        0 < first < last: the range of beta; of s for a function of s.
    vary : mapping of str to (float, float)
        Name of one parameter of the drift, instead of beta, and its range, first < last:
        ``phase_diagram(X(b=1.0), circle, vary={"b": (-1, 3)})``. For a model as for `branches`. Two
        names with ranges give the plane of these two, without kappa or with kappa as the first, of
        a model that is not rotation-invariant, or of a function of two numbers, under any names.
    degrees : tuple of int
        Degrees l of the critical curves and tricritical points; 1, 2 and 3 by default. Folds and
        transitions are computed for those of these degrees that the drift attracts most somewhere
        in the range. Only for rotation-invariant models.
    noise : Noise
        Isotropic by default. Anisotropic or multiplicative noise is possible on the circle and S^2:
        see the Notes.
    kappa : (float, float), optional
        0 < first < last: range in which curves are sought and followed if the model is not
        rotation-invariant. By default from 0.4 to 1.4 times the onset under isotropic noise of the
        same strength.
    places : int
        Number of values of beta at which a bifurcation diagram in kappa is computed if the model is
        not rotation-invariant, both ends of the range included.
    max_step : float
        Longest step in sqrt(2) times the Legendre moments, log kappa and beta.
    checkpoint, checkpoint_every, resume
        File of intermediate results, how often it is written, and whether to continue from it: as
        for `branches`.
    executor : optional
        Executor as for `sweep`, which computes the diagrams at the values of beta counted by
        `places`, before the curves. The checkpoint does not contain these diagrams. The result does
        not depend on the executor.
    progress : bool, optional
        Show a progress bar; by default on a terminal and in a notebook.

    Returns
    -------
    PhaseDiagram, or NoisePhaseDiagram
        NoisePhaseDiagram under non-isotropic noise, with fields or matrices. After Ctrl-C it
        contains the curves computed so far; `warnings` lists what is missing.

    Raises
    ------
    TypeError, ValueError
        If an argument has a wrong type or is out of its range.
    MeanfieldError
        For models that move no densities, or change with time, and without the range of kappa where
        nothing attracts harmonics of degree 1.
    CheckpointError
        If the checkpoint is damaged or belongs to another diagram.

    Notes
    -----
    Under anisotropic and multiplicative noise, with fields or matrices, the disordered state is not
    uniform. The curves are its onsets, one for each direction, folds, losses of symmetry and Hopf
    points. They start from the special points that `branches` finds at a few values of beta; curves
    that reach none of these values are missed. If kappa is the first of two parameters, these are
    for instance onsets at one kappa, for all values of the other: ``vary={"b": ...}, kappa=...``
    finds them. Curves meet in cusps. There is no free energy and no transition:
    `NoisePhaseDiagram.stable_counts` shows bistability, and ranges without stable states. Cusps and
    Bogdanov-Takens points are located on curves of folds, generalised Hopf points on curves of Hopf
    points, Hopf-fold points on both; the other curve through a Bogdanov-Takens or Hopf-fold point
    is followed too.

    References
    ----------
    Mun and Rosenzweig, arXiv:2604.16288 and 2606.05140, with K = kappa/2, for tricritical points;
    Govaerts, Numerical Methods for Bifurcations of Dynamical Equilibria (2000), for the curves.
    """
    space = space.space if isinstance(space, Indexed) else space
    drift, noise, ranges = _asked(drift, noise, beta, vary, kappa)
    name, span = next(iter(ranges.items()))
    if not isinstance(drift, Drift | type) and len(ranges) == 1:
        check_along(drift, name, span, space, kappa=1.0)
    plane = plane_of(drift, ranges, noise, space)
    basis = plane.basis
    unused = f"left out under {noise!r}"
    if not basis.symmetric and noise.laplacian:
        unused = "left out where the uniform density does not rest"
    require("degrees", degrees, unused, basis.symmetric or degrees is None)
    require("kappa", kappa, unused, not basis.symmetric or kappa is None)
    require("executor", executor, unused, not basis.symmetric or executor is None)
    chosen = asked_degrees((1, 2, 3) if degrees is None else degrees, PHASE_DEGREE // 2)
    keeper = Keeper(checkpoint, checkpoint_every, resume)
    identity = {
        **{"drift": drift, "space": space, "ranges": ranges, "degrees": chosen},
        **{"max_step": max_step, "noise": noise, "kappa": kappa, "places": places},
    }
    with (
        one_blas_thread(),
        keeper,
        AnswerJournal(keeper, identity) as journal,
        Following(name, span, progress) as following,
    ):
        search = CurveSearch(plane, space, max_step, following, journal)
        if basis.symmetric:
            return search.of_uniform(chosen)
        values = [float(value) for value in np.linspace(*span, places)]
        return search.at_values(values, kappa, executor)


def _asked(
    drift: Any, noise: Noise, beta: Any, vary: Any, kappa: Any
) -> tuple[Any, Noise, dict[str, tuple[float, float]]]:
    """Drift, model or family, its noise, and ranges of one parameter or of two, after checks."""
    model = drift
    drift, noise, family = checked_source("phase_diagram", drift, noise)
    if (beta is None) == (vary is None):
        one = "of s, as third argument, or two ranges, " if family else "beta=(first, last), or "
        raise TypeError(
            f"phase_diagram needs one range, {one}vary={{name: (first, last)}}; got beta = "
            f"{as_given(beta)} and vary = {as_given(vary)}."
        )
    if isinstance(vary, Mapping) and len(vary) == 2:
        wanted = "a Transformer, or a function of two numbers that gives one, with its kappa"
        require("drift", model, wanted, family or isinstance(model, Transformer), TypeError)
        require("kappa", kappa, "left out where two other parameters vary", kappa is None)
        each = [{name: span} for name, span in vary.items()]
        if family:
            ranges = {name: range_of(f"vary: {name}", vary[name], -np.inf) for name in vary}
        else:
            ranges = dict(varied(drift, one) for one in each)
        *_, last = ranges
        require("vary", vary, "kappa as the first of two", last != "kappa")
        return drift, noise, ranges
    name, span = varied(drift, vary, beta, beta)
    require("vary", vary, "another parameter than kappa, the second one", name != "kappa")
    return drift, noise, {name: span}


class CurveStart(NamedTuple):
    """A special point in kappa at one value of the parameter, from which a curve is followed.

    Attributes
    ----------
    kind : str
        One of `CURVE_KINDS`; empty if no curve is followed from it.
    order : int
        Order of the neutral perturbation.
    truncation : int
        Degree of truncation.
    kept : tuple of int
        Reflections of the state: see `Basis`.
    moments : ndarray, (N,)
    second : float
        Value of kappa, or of the second parameter.
    degree : int
        Degree of the onset of the states of a rotation-invariant model.
    """

    kind: str
    order: int
    truncation: int
    kept: tuple[int, ...]
    moments: np.ndarray
    second: float
    degree: int = 1


class Starts(NamedTuple):
    """Special points of a diagram at one value of the parameter.

    Attributes
    ----------
    value : float
    points : list of CurveStart
    warnings : list of str
        Warnings of the diagram.
    stopped : bool
        Whether Ctrl-C stopped the search for it.
    """

    value: float
    points: list[CurveStart]
    warnings: list[str]
    stopped: bool


class CurveSearch:
    """Search for curves of special points.

    Parameters
    ----------
    plane : KappaPlane
        In the basis in which branches begin.
    space, max_step
        Arguments of `phase_diagram`.
    following : Following
    journal : AnswerJournal or None

    Attributes
    ----------
    curves : list of (str, SpecialCurve or None, (str, str))
        Kind, curve and ends of each; None for a curve that was not found.
    missing : list of str
        Sentences that say what is missing.
    """

    def __init__(
        self, plane: KappaPlane, space: Space, max_step: float, following: Following,
        journal: AnswerJournal | None,
    ):  # fmt: skip
        self.space, self.basis, self.max_step = space, plane.basis, max_step
        self.following, self.journal, self.kappas = following, journal, KappaRange()
        self.family = plane
        if self.basis.symmetric:
            degree = min(max(PHASE_DEGREE, space.degree), self.basis.most)
            self.family = plane.among(self.basis.finer(degree))
        self.curves: list[tuple[str, SpecialCurve | None, tuple[str, str]]] = []
        self.singular: list[Cusp] = []
        self.missing: list[str] = []

    def diagram(
        self, value: float, kappas: tuple[float, float], degrees: list[int] | None = None
    ) -> tuple[Diagram, bool]:
        """The diagram at a value of the parameter, and whether Ctrl-C stopped it.

        With `degrees` only primary branches of these, without growth rates.
        """
        everything = degrees is None
        with Following(self.family.second, kappas, False) as on_branch:
            search = DiagramSearch(self.space, AXISYMMETRIC, degrees, everything, everything,
                                   ON_BRANCH, on_branch)  # fmt: skip
            return search.diagram(self.line(value, kappas), {}), on_branch.stopped

    def line(self, value: float, kappas: tuple[float, float]) -> StationaryCurve:
        """Stationary states at one value of the parameter as a curve in the second one."""
        return self.family.line(value, kappas, self.basis, STEP_ON_BRANCH, self.journal)

    def begin(self, value: float, start: CurveStart) -> None:
        """Follow the curve of a special point, unless it was followed before.

        The degree of truncation is raised until it resolves the curve.
        """
        if self._followed(start.kind, start.order, value, start.second):
            return
        basis = basis_of_states(self.basis, start.truncation, start.kept)
        while True:
            z = np.append(basis.padded(start.moments[: len(basis.degrees)]),
                          [self.family.coordinate(start.second), value])  # fmt: skip
            curve, first = curve_through(self.family.among(basis), start.kind, start.order, z,
                                 self.max_step, self.journal, start.degree)  # fmt: skip
            if first is None:
                self.missing.append(
                    f"the {start.kind} at {self.family.name} = {value:g}, {self.family.second} = "
                    f"{start.second:.6g} was not found again: no line begins there."
                )
                return
            pieces = list(curve.pieces(first, self.kappas, self.following))
            unresolved = any("unresolved" in ends for _, ends in pieces)
            if not unresolved or basis.next_degree > basis.most:
                break
            basis = basis.finer(basis.next_degree)
        for piece, ends in pieces:
            middle = (piece.points[0, -1] + piece.points[-1, -1]) / 2
            there = piece.at_value(between(piece.points, middle), middle)
            q = None if there is None else piece.second_value(there)
            if q is not None and self._followed(start.kind, start.order, middle, q):
                continue  # rotated states, beyond a point at which the states are uniform
            self.curves.append((start.kind, piece, ends))
            for z, end in zip(piece.points[[0, -1]], ends, strict=True):
                said = piece.sentences_of_kinks(z) if end == "short steps" else []
                self.missing += [sentence for sentence in said if sentence not in self.missing]
        self._begin_from_singular(curve)

    def _begin_from_singular(self, curve: SpecialCurve) -> None:
        """Keep the special points on a curve, and follow the other curve through each."""
        for point, z in curve.singular:
            same = (one for one in self.singular if type(one) is type(point))
            if any(np.allclose(one[:2], point[:2], SAME_CURVE, SAME_CURVE) for one in same):
                continue
            self.singular.append(point)
            if isinstance(point, BogdanovTakens) and curve.kind == "fold":
                hopf, first = hopf_curve_at(curve, z)
                if first is None:
                    self.missing.append(
                        f"the Hopf points at {self.family.name} = {z[-1]:.6g}, "
                        f"{self.family.second} = {point.kappa:.6g} were not found, where a "
                        "Bogdanov-Takens point is."
                    )
                elif not self._followed("Hopf", hopf.order, first[-1], hopf.second_value(first)):
                    pieces = list(hopf.pieces(first, self.kappas, self.following))
                    self.curves += [("Hopf", piece, ends) for piece, ends in pieces]
                    self._begin_from_singular(hopf)
            elif isinstance(point, BogdanovTakens | HopfFold):
                other = "Hopf" if curve.kind == "fold" else "fold"
                moments, basis = z[: curve.size], curve.basis
                self.begin(point.beta, CurveStart(other, curve.order, basis.degree, basis.kept,
                                                  moments, point.kappa))  # fmt: skip

    def _followed(self, *place: Any) -> bool:
        """Whether a curve followed so far passes through a place: see `SpecialCurve.passes`."""
        return any(curve is not None and curve.passes(*place) for _, curve, _ in self.curves)

    def result(
        self, kind: type[PhaseDiagram], rows: list[tuple[Any, ...]], corners: list[Tricritical],
        degree: int, attributes: Mapping[str, Any] = MappingProxyType({}),
    ) -> PhaseDiagram:  # fmt: skip
        """The phase diagram with all curves; `rows` of `data` come before these."""
        import xarray as xr

        loci: dict[str, SpecialCurve] = {}
        ends: dict[str, tuple[str, str]] = {}
        for what, curve, why in self.curves:
            number = 1 + sum(name.startswith(what) for name in ends)
            name = what if number == 1 and self.basis.symmetric else f"{what} {number}"
            ends[name] = why
            if curve is None:
                continue
            loci[name], first = curve, curve.basis.degrees == curve.degree
            for z, change in zip(curve.points, curve.changes, strict=True):
                r = np.linalg.norm(z[: curve.size][first])
                rows.append(
                    (name, what, curve.degree, curve.order, z[-1], curve.second_value(z), r, change)
                )
        drift, name, second = self.family.drift, self.family.name, self.family.second
        names = ("curve", "kind", "degree", "order", name, second, "order_parameter", "change")
        columns = map(np.array, zip(*rows, strict=True)) if rows else [np.zeros(0)] * len(names)
        data = xr.Dataset({n: ("point", column) for n, column in zip(names, columns, strict=True)})
        named = getattr(drift, "__name__", None) or repr(drift)
        data.attrs = {"drift": named, "space": repr(self.space), name: list(self.family.span)}
        data.attrs |= attributes
        if self.missing:
            data.attrs["missing"] = self.missing
        points = {
            name: [point for point in self.singular if type(point) is what]
            for name, what in PLANE_POINTS.items()
        }
        return kind(data, corners, ends, self.family, loci, self.space, degree, **points)

    # Models that are not rotation-invariant -----------------------------------------------------

    def at_values(self, values: list[float], kappas: Any, executor: Any) -> NoisePhaseDiagram:
        """Curves from one bifurcation diagram at each value of the parameter.

        An executor computes the diagrams first, each as a separate job, which does not use the
        journal of saved results.
        """
        where, self.kappas = self.family.name, self._range_of_kappa(values, kappas)
        starts_at: Callable[[float], Starts] = self._starts
        if executor is not None:
            starts_at = self._starts_by(executor, values).__getitem__
        for value in values:
            value, starts, warnings, stopped = starts_at(value)
            self.missing += [f"at {where} = {value:g}, {warning}" for warning in warnings]
            for start in starts if not stopped else [None]:
                if start is None or self.following.stopped:
                    self.missing.append(INTERRUPTED_AT.format(name=where, value=value))
                    break
                if start.kind:
                    self.begin(value, start)
        self.curves.sort(key=lambda entry: (CURVE_KINDS.index(entry[0]), entry[1].points[0][-2]))  # type: ignore[union-attr]
        corners = [corner for _, curve, _ in self.curves for corner in curve.tricritical()]  # type: ignore[union-attr]
        kappas = {"kappas": list(self.kappas)}
        return self.result(NoisePhaseDiagram, [], corners, 1, kappas)  # type: ignore[return-value]

    def _range_of_kappa(self, values: list[float], kappas: Any) -> KappaRange:
        """Range of the second parameter, by default around the onset under isotropic noise."""
        family: Any = self.family
        basis = family.basis
        if family.second_span is not None:
            return KappaRange(*family.second_span)
        if kappas is not None:
            return KappaRange(*range_of("kappa", kappas))
        without = [value for value in values if not np.isfinite(critical(family, value))]
        if without:
            raise MeanfieldError(
                f"At {family.name} = {without[0]:g} nothing attracts harmonics of degree 1, whose "
                "onset says where to look for lines. Give the range kappa=(first, last)."
            )
        diffusion = -float(np.diag(basis.diffusion[0])[basis.degrees == 1].mean())
        strength = diffusion / (basis.dimension - 1)
        return KappaRange(BELOW * strength, ABOVE * strength, True)

    def _starts_by(self, executor: Any, values: list[float]) -> dict[float, Starts]:
        """Results of `_starts` at values of the parameter, each computed as a separate job."""
        family = self.family
        ranges = {family.name: family.span}
        if family.second_span is not None:
            ranges[family.second] = family.second_span
        given = family.drift, ranges, self.basis.noise, self.space, self.kappas
        work = Function(partial(_packed_starts, *given))
        points = Grid.of({"value": values}, None).points(work.contents)
        outcomes, _ = run_points(work, points, executor=executor, progress=False)
        return dict(zip(values, map(_unpacked, values, outcomes), strict=True))

    def _starts(self, value: float) -> Starts:
        """Special points of the diagram at a value, or next to it where curves cross there."""
        try:
            diagram, stopped = self.diagram(value, self.kappas.at(self.family, value))
        except CurvesCross:
            low, high = self.family.span
            value += BESIDE_CROSSING * (high - low) * (1 if value < high else -1)
            diagram, stopped = self.diagram(value, self.kappas.at(self.family, value))
        return Starts(value, [*map(_neutral, diagram.special_points)], diagram.warnings, stopped)

    # Rotation-invariant models ------------------------------------------------------------------

    def of_uniform(self, degrees: Sequence[int]) -> PhaseDiagram:
        """Onsets of the uniform state, and curves from branches where these are discontinuous."""
        grid = np.linspace(*self.family.span, PARAMETER_GRID)
        onsets = {degree: self._onsets(degree, grid) for degree in degrees}
        corners = [corner for _, points, _ in onsets.values() for corner in points]
        lead = _leading_degrees(self.family, corners, degrees)
        for degree in lead:
            for value in _discontinuous(grid, *onsets[degree][1:]):
                self._from_onset(value, degree)
        self._from_clusters(degrees)
        rows = [
            ("critical", "critical", degree, 0, value, kappa, 0.0, 0)
            for degree, (kappas, *_) in onsets.items()
            for value, kappa in zip(grid, kappas, strict=True)
        ]
        leads = [curve.degree for _, curve, _ in self.curves if curve is not None]
        return self.result(PhaseDiagram, rows, corners, [*leads, *lead, 1][0])

    def _onsets(
        self, degree: int, grid: np.ndarray
    ) -> tuple[np.ndarray, list[Tricritical], np.ndarray]:
        """kappa_l of a degree on a grid, tricritical points, and where its onset is discontinuous.

        All three are saved in the journal.
        """
        family, size = self.family, len(grid)

        def find() -> list[float]:
            values = [critical(family, value, degree) for value in grid]
            forms = list(forms_on(family, degree, grid))
            jumps = [form is not None and form.kind in DISCONTINUOUS for form in forms]
            corners = tricritical_points(family, degree, forms)
            return [*values, *jumps, *(x for one in corners for x in (one.beta, one.kappa))]

        numbers = recalled(self.journal, ("onsets", family.basis.degree, degree), find)
        corners = numbers[2 * size :].reshape(-1, 2).tolist()
        points = [Tricritical(degree, b, k, family.name) for b, k in corners]
        return numbers[:size], points, numbers[size : 2 * size] > 0

    def _from_onset(self, value: float, degree: int) -> None:
        """Follow curves from the branch of one degree at a value where its onset jumps."""
        onset = critical(self.family, value, degree)
        diagram, stopped = self.diagram(value, (onset / 20, 1.2 * onset), [degree])
        stopped |= self.following.stopped
        specials = [
            (special.kind, special.state.legendre_moments, special.state.kappa)
            for special in ([] if stopped else diagram.special_points)
        ]
        self._begin_each(value, degree, specials, "interrupted" if stopped else "not located")

    def _from_clusters(self, degrees: Sequence[int]) -> None:
        """Follow curves from clustered states at the first onset, if no curve lies below it.

        The states have a lower free energy than the uniform state or, where there is no free
        energy, are stable. They are computed at every eighth value of the grid.
        """
        for value in np.linspace(*self.family.span, PARAMETER_GRID)[::CLUSTERED_EVERY].tolist():
            if self.following.stopped:
                return
            onset = first_onset(self.family, value)
            if not np.isfinite(onset) or self._ordered_below(value, onset):
                continue
            flow = self.family.at(value).gradient_flow
            for state in clustered_states(self.line(value, (onset / 20, 1.2 * onset)), onset):
                amplitudes = np.abs(state.z[:-1] * state.curve.basis.sizes)
                present = [l for l in sorted(degrees) if amplitudes[l - 1] > PRESENT_AMPLITUDE]
                if present and (state.lower if flow else state.stable):
                    growth = BranchSearch(state.curve, state.curve.span, ON_BRANCH)
                    for _ in growth.from_edge(state.curve, state.z, 1.2 * onset, present[0]):
                        pass
                    specials = [
                        (special.kind, special.point.m, special.point.value)
                        for branch in growth.branches for special in branch.specials
                    ]  # fmt: skip
                    self._begin_each(value, present[0], specials, "not located")
                    break

    def _ordered_below(self, value: float, onset: float) -> bool:
        """Whether a curve followed so far has a point at this value below the onset.

        Transitions count for gradient flows, folds otherwise.
        """
        kind = "transition" if self.family.at(value).gradient_flow else "fold"
        for curve in (one for what, one, _ in self.curves if what == kind and one is not None):
            if curve.reaches(value):
                z = curve.at_value(between(curve.points, value), value)
                if z is not None and np.exp(z[-2]) < onset:
                    return True
        return False

    def _begin_each(
        self, value: float, degree: int, specials: list[tuple[str, np.ndarray, float]], cut: str
    ) -> None:
        """Follow one curve of each kind through the first special point of that kind on a branch.

        Where there is none, the ends of the curve are the word `cut`. `specials` are triples
        (kind, moments, kappa).
        """
        flow = self.family.at(value).gradient_flow
        for kind in ("fold", "transition") if flow else ("fold",):
            here = [(m, kappa) for what, m, kappa in specials if what == kind]
            if here:
                truncation = self.family.basis.degree
                self.begin(value, CurveStart(kind, 0, truncation, (), *here[0], degree))
            else:
                self.curves.append((kind, None, (cut, cut)))


def _packed_starts(
    drift: Any, ranges: dict[str, tuple[float, float]], noise: Noise, space: Space,
    kappas: KappaRange, value: float,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Results of `CurveSearch._starts` in another process, as an array of bytes."""
    plane = plane_of(drift, ranges, noise, space)
    with Following(plane.name, plane.span, False) as following:
        search = CurveSearch(plane, space, 1.0, following, None)
        search.kappas = kappas
        return {"starts": np.frombuffer(pickle.dumps(search._starts(value)), np.uint8)}


def _unpacked(value: float, outcome: Any) -> Starts:
    """Results of `CurveSearch._starts` from an outcome of `_packed_starts`; None: stopped."""
    if outcome is None:
        return Starts(value, [], [], True)
    return pickle.loads(outcome.variables["starts"].values.tobytes())


def _neutral(special: SpecialPoint) -> CurveStart:
    """The start of a curve at a special point, with the reflections of the state.

    A branch that ends on one with more reflections is a loss of symmetry of that one. The kind is
    empty if the state at a bifurcation has no more reflections than the branch, and for equal free
    energies.
    """
    basis: Any = special.state.equation.basis
    m, kind, order = special.state.legendre_moments, special.kind, special.order
    if kind == "bifurcation" and not special.branch:
        kind = "onset"
    elif kind == "transition":
        kind = ""
    elif kind == "bifurcation":
        fitted, state = basis.fitted(m)
        kind, order = "", 0
        if len(fitted.kept) > len(basis.kept):
            equation, smallest = special.state.equation.among(fitted), []
            for odd in range(1, fitted.orders):
                operator = equation.linearised(state, special.kappa, fitted.of_order(odd))
                smallest.append(np.abs(np.linalg.eigvals(operator)).min())
            kind, order, basis = "symmetry breaking", 1 + int(np.argmin(smallest)), fitted
    return CurveStart(kind, order, basis.degree, basis.kept, m, special.value)


def _leading_degrees(
    family: EquationFamily, corners: list[Tricritical], chosen: Sequence[int]
) -> list[int]:
    """Degrees of `chosen` with the largest multiplier at some value of the parameter.

    The first of them has the largest multiplier just above the lowest tricritical beta of degree
    1, if it is in `chosen`.
    """
    low, high = family.span
    lowest = min((corner.beta for corner in corners if corner.degree == 1), default=low)
    places = [_inside(lowest, high), *np.linspace(low, high, PARAMETER_GRID)]
    attracted = 1 + family.weights(np.array(places))[:, 1:].argmax(axis=1)
    return [degree for degree in dict.fromkeys(attracted.tolist()) if degree in chosen]


def _inside(start: float, end: float) -> float:
    """A parameter value from `start` towards `end`: by 1, or half of the way if that is shorter."""
    return start + np.sign(end - start) * min(1.0, abs(end - start) / 2)


def _discontinuous(
    grid: np.ndarray, corners: list[Tricritical], jumps: np.ndarray
) -> Iterator[float]:
    """One value in each parameter range in which the onset of a degree is discontinuous.

    A range ends at a tricritical point, or where another onset coincides. The value is near the
    tricritical point, if there is one. `jumps` says where on the grid the onset is discontinuous.
    """
    edges = np.flatnonzero(np.diff([0, *jumps.astype(int), 0])).reshape(-1, 2)
    for first, last in edges - [0, 1]:

        def corner_in(i: int, j: int) -> list[float]:
            start, end = grid[max(i, 0)], grid[min(j, len(grid) - 1)]
            return [corner.beta for corner in corners if start <= corner.beta <= end]

        below, above = corner_in(first - 1, first), corner_in(last, last + 1)
        low, high = max(below, default=grid[first]), min(above, default=grid[last])
        yield _inside(high, low) if above and not below else _inside(low, high)


def forms_on(
    family: EquationFamily, degree: int, grid: Iterable[float]
) -> Iterator[NormalForm | None]:
    """The normal form of a degree at each value of a grid; None without an onset."""
    for beta in grid:
        with np.errstate(all="ignore"):
            onset = critical(family, beta, degree) < np.inf
            yield normal_form(family.at(beta), degree) if onset else None


def tricritical_points(
    family: EquationFamily, degree: int, forms: Iterable[NormalForm | None] | None = None
) -> Iterator[Tricritical]:
    """Zeros in beta of the quadratic term of the normal form, where its linear term is zero.

    Between values of a grid, at which `forms` are the normal forms if they are known.

    Raises
    ------
    MeanfieldError
        Where the normal form exceeds 1e308.
    """

    def quadratic(beta: float, form: NormalForm | None) -> float:
        """Quadratic coefficient of the normal form at beta; nan without an onset."""
        if form is None:
            return np.nan
        weights = family.at(beta).weights
        apart = np.abs(np.delete(weights, [0, degree]) - weights[degree])
        if not np.isfinite(form.quadratic) and (apart > VANISHES * weights[degree]).all():
            raise MeanfieldError(
                f"Expected a range of {family.name} in which normal forms are finite; at "
                f"{family.name} = {beta:.3g} that of degree {degree} exceeds 1e308. Take another "
                "range."
            )
        return float(form.quadratic)

    def term(beta: float) -> float:
        return quadratic(beta, *forms_on(family, degree, [beta]))

    grid = np.linspace(*family.span, PARAMETER_GRID)
    known = list(forms_on(family, degree, grid) if forms is None else forms)
    values = np.array([quadratic(*pair) for pair in zip(grid, known, strict=True)])
    attracted = [form for form in known if form is not None and np.isfinite(form.quadratic)]
    if not attracted or attracted[0].kind == "transcritical":
        return
    usual = np.nanmedian(np.abs(values))
    for beta in zeros(term, grid, values):
        if abs(term(beta)) <= POLE_TERM * usual:  # skips poles, where two onsets coincide
            yield Tricritical(degree, beta, critical(family, beta, degree), family.name)
