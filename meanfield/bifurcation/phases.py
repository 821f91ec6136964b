"""Phase diagrams: curves of special points in the plane of two parameters, as results.

Under non-isotropic noise, fields or matrices the disordered state is not uniform, and there is no
free energy. A state and its images under reflections are counted once. Under strong noise there is
one state, which is stable. As kappa grows through a curve, the number of stable states changes by
at most one:

    fold        +-1 towards the side with two states, if one of them is stable,
    pitchfork   0 if a stable pair replaces the state, +-1 if the pair is unstable,
    Hopf        +-1, as the state becomes stable or unstable.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..core.cached import cached_property
from ..core.checks import as_given, finite, require
from ..core.errors import MeanfieldError
from ..core.provided import FIGURES
from ..models.noise import Noise
from ..results.files import Contents, Result, check_functions, dataset_of
from ..spaces import Space
from .diagram import (
    END_SENTENCES,
    PRESENT_MOMENT,
    Transition,
    stored_source,
    transition_at,
)
from .families import EquationFamily, saved_basis
from .normal_forms import normal_form, order_of, zeros
from .planes import KappaPlane, ParameterPlane
from .special_curves import (
    PLANE_POINTS,
    Cusp,
    KappaRange,
    SpecialCurve,
    Tricritical,
    between,
    critical,
)
from .stationary import STATIONARY

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


class EndPoint(Cusp):
    """A critical end point: a first-order line meets the onset of other harmonics.

    Beyond it the transition from the uniform state is continuous again.
    """


def first_onset(family: EquationFamily, value: float) -> float:
    """The kappa above which the uniform state is unstable, the lowest of all degrees."""
    return critical(family, value, family.at(value).most_attracted)


@dataclass(frozen=True, eq=False, repr=False)
class PhaseDiagram(Result):
    """Curves of special points in the plane of beta, or another parameter, and kappa.

    Attributes
    ----------
    data : xarray.Dataset
        On `point`: curve (its name: "critical", "fold" or "transition"; "fold 2" and so on if there
        are several), kind, degree, order, beta (or the parameter by its name), kappa, and the order
        parameter there.
    tricritical : list of Tricritical
    ends : dict of str to (str, str)
        Reasons why each curve ends at its first and at its last point, of the lowest and the
        highest beta. "tricritical": at a tricritical point; "onset": the states lose their
        harmonics of this degree; "turn": beta turns back there, and another curve begins; "cusp":
        two folds meet; "range": at an end of the range; "not continued": no further point
        converged; "short steps" without end; "unresolved"; "max_points"; "interrupted"; "not
        located": a curve was expected and none was found.
    family : KappaPlane
        Stationary equations as functions of the two parameters.
    loci : dict of str to SpecialCurve
        Curves by name, except the critical ones.
    space : Space
    degree : int
        Degree of the harmonics whose folds and transition are returned by default.
    cusps : list of Cusp
        Points at which two lines of folds meet.
    bogdanov_takens : list of BogdanovTakens
        Points at which curves of Hopf points begin on lines of folds.
    generalised_hopf : list of GeneralisedHopf
        Points of curves of Hopf points at which cycles change from stable to unstable.
    hopf_folds : list of HopfFold
        Points at which curves of Hopf points touch lines of folds of the same symmetry.
    """

    made_by = "phase_diagram"
    takes_model = True
    general_names: ClassVar[tuple[str, ...]] = ("critical", "fold", "transition")

    data: "xr.Dataset"
    tricritical: list[Tricritical]
    ends: dict[str, tuple[str, str]]
    family: KappaPlane
    loci: dict[str, SpecialCurve]
    space: Space
    degree: int = 1
    cusps: list[Cusp] = field(default_factory=list)
    bogdanov_takens: list[Cusp] = field(default_factory=list)
    generalised_hopf: list[Cusp] = field(default_factory=list)
    hopf_folds: list[Cusp] = field(default_factory=list)

    @property
    def parameter(self) -> str:
        """Name of the parameter that varies with kappa: "beta" or another one."""
        return self.family.name

    @property
    def second(self) -> str:
        """Name of the second parameter: "kappa" or another one."""
        return self.family.second

    @property
    def noise(self) -> Noise:
        return self.family.basis.noise

    def kappa(self, curve: str, beta: float, degree: int | None = None) -> float:
        """The kappa of a curve at one beta, accurate to rounding; nan where the curve has no point.

        In a plane without kappa, or with kappa as the first, the value of the second parameter.
        `curve` is the name of a curve, or a kind such as "critical", "fold" or "Hopf". `beta` is a
        value of the first parameter. `degree` is `self.degree` by default. If several curves match,
        the first one that has a point at this beta counts.

        Raises
        ------
        ValueError
            If there is no curve of that name, or beta is outside the range.
        MeanfieldError
            For a loaded diagram of a function, which files do not hold.
        """
        kinds = [locus.kind for locus in self.loci.values()]
        beta, names = self._inside(beta), dict.fromkeys([*self.general_names, *kinds, *self.loci])
        require("curve", curve, ", ".join(names) or "none", curve in names)
        degree = self.degree if degree is None else degree
        if curve == "critical":
            return critical(self.family, beta, degree)
        kappas = (self.family.second_value(z[-2]) for z in self._points(curve, beta, degree))
        return next(kappas, float("nan"))

    def _inside(self, beta: float) -> float:
        """`beta` as a float.

        Raises ValueError outside the range, and MeanfieldError if the function or class of the
        models of a loaded diagram is not known.
        """
        drift = self.family.drift
        if getattr(drift, "is_absent", False) and "function" in drift.table:
            name = drift.table["function"]
            raise MeanfieldError(
                f"The file holds no functions, here {name}: pass it again, mf.load(path, "
                "model=function), or import the module that defines it if it is a class of drifts. "
                "Points of curves that the diagram has are in `data`."
            )
        beta, (low, high) = finite(self.parameter, beta), self.data.attrs[self.parameter]
        wanted = f"from {low:g} to {high:g}, as of this diagram"
        require(self.parameter, beta, wanted, low <= beta <= high)
        return beta

    def _points(self, curve: str, beta: float, degree: int | None = None) -> Iterator[np.ndarray]:
        """Points (m, log kappa, p) at one beta on all curves of one kind or name, and degree."""
        for name, locus in self.loci.items():
            if curve in (name, locus.kind) and degree in (locus.degree, None):
                z = self._on(name, beta)
                if z is not None:
                    yield z

    def _on(self, name: str, beta: float) -> np.ndarray | None:
        """The point at one beta on the curve `name`; None if the curve has no point there."""
        locus, points = self.loci[name], self.loci[name].points
        start: np.ndarray | None = between(points, beta)
        if not locus.reaches(beta):
            after = bool(beta > points[-1, -1])
            start = self._towards_corner(points[-after], beta, self.ends[name][after])
        if start is None or (z := locus.at_value(start, beta)) is None:
            return None
        sizes = [np.linalg.norm(locus.amplitudes(one, start)) for one in (z, start)]
        return None if locus.basis.symmetric and sizes[0] < sizes[1] / 2 else z  # the uniform state

    def _towards_corner(self, last: np.ndarray, beta: float, end: str) -> np.ndarray | None:
        """A guess for the point at a beta between the end of a curve and its tricritical point.

        None if the curve has another end, or beta is not between the two. The moments are scaled by
        part^(l / 2 degree), where `part` is the fraction of the way from the tricritical point:
        with amplitude ~ sqrt(part), harmonic l grows like amplitude^(l / degree). log kappa and
        beta are interpolated linearly.
        """
        corners = [one for one in self.tricritical if one.degree == self.degree]
        if end != "tricritical" or not corners:
            return None
        corner = min(corners, key=lambda one: abs(one.beta - last[-1]))
        part = (beta - corner.beta) / (last[-1] - corner.beta)
        if not 0 < part < 1:
            return None
        powers = np.arange(1, len(last) - 1) / (2 * corner.degree)
        plane = np.array([np.log(corner.kappa), corner.beta])
        return np.append(last[:-2] * part**powers, (1 - part) * plane + part * last[-2:])

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
        MeanfieldError
            For a loaded diagram of a function or class that is not known.
        """
        beta = self._inside(beta)
        onset, equation = self.first_onset(beta), self.family.at(beta)
        fold, equal = (
            min(
                (z for z in self._points(kind, beta) if np.exp(z[-2]) < onset),
                key=lambda z: z[-2],
                default=None,
            )
            for kind in ("fold", "transition")
        )
        hysteresis = None if fold is None else (float(np.exp(fold[-2])), onset)
        if equal is not None:
            size = np.abs(equal[:-2])
            jump = float(size[size > PRESENT_MOMENT][0])
            return Transition("discontinuous", float(np.exp(equal[-2])), onset, jump, hysteresis)
        form = normal_form(equation, equation.most_attracted)
        return transition_at(onset, order_of(equation, form), equation, form, hysteresis)

    @cached_property
    def end_points(self) -> list[EndPoint]:
        """Critical end points: the points at which first-order lines meet the first onset."""
        ends = []
        for locus in (one for one in self.loci.values() if one.kind == "transition"):
            places = locus.points[:, -1]
            above = locus.points[:, -2] + np.log(self.family.weights(places)[:, 1:].max(axis=1))
            for i in np.flatnonzero(above[:-1] * above[1:] < 0):
                end = partial(self._above_onset, locus, locus.points[i], locus.points[i + 1])
                for part in zeros(end, np.array([0.0, 1.0]), above[i : i + 2]):
                    beta = float(places[i] + part * (places[i + 1] - places[i]))
                    ends.append(EndPoint(beta, self.first_onset(beta), self.parameter))
        return ends

    def _above_onset(
        self, locus: SpecialCurve, one: np.ndarray, other: np.ndarray, part: float
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
        critical = self.data.degree.values[self.data.curve.values == "critical"]
        names = [(f"kappa_{l}", "critical", int(l)) for l in np.unique(critical)]
        return names + [(name, name, self.degree) for name in self.loci]

    def __repr__(self) -> str:
        low, high = self.data.attrs[self.parameter]
        names = ", ".join(dict.fromkeys(curve for _, curve, _ in self.curves)) or "no lines"
        drift, name = self.data.attrs["drift"], self.parameter
        lines = [f"{type(self).__name__} of {drift}, {low:g} <= {name} <= {high:g}: {names}"]
        points = [*self.tricritical, *self.end_points]
        points += [point for each in PLANE_POINTS for point in getattr(self, each)]
        lines += [f"  {point!r}" for point in points]
        return "\n".join([*lines, *(f"  <-- {warning}" for warning in self.warnings)])

    @property
    def warnings(self) -> list[str]:
        """Sentences that say what is missing: curves cut short or not located."""
        sentences = [*map(str, np.atleast_1d(self.data.attrs.get("missing", [])))]
        for name, ends in self.ends.items():
            here = self.data[self.parameter].values[self.data.curve.values == name]
            places = here[[0, -1]] if len(here) else [float("nan")] * 2
            for end, value in dict(zip(ends, places, strict=True)).items():
                if end in END_SENTENCES:
                    place = f"{self.parameter} = {value:.6g}" if len(here) else "its start"
                    sentences.append(f"{name} {END_SENTENCES[end].format(place=place)}.")
        return sentences

    @classmethod
    def made_of(cls, contents: Contents) -> "PhaseDiagram":
        """The phase diagram from the contents of a file, equal to the saved one to the last bit."""
        data, header = dataset_of(contents)
        plane, space = header["family"], header["space"]
        drift, noise = stored_source(contents, plane)
        basis = saved_basis(space, noise, plane["symmetries"])
        axes = drift, plane["name"], plane["span"], basis
        family = KappaPlane(*axes)
        if plane["second_span"] is not None:
            family = ParameterPlane(*axes, plane["second"], plane["second_span"])
        header["family"] = family.among(basis.finer(plane["truncation"]))
        for name, curve in header["loci"].items():
            here = basis_of_states(basis, curve.pop("truncation"), curve.pop("kept"))
            header["loci"][name] = SpecialCurve(family.among(here), **curve)
        for points, kind in PLANE_POINTS.items():
            header[points] = [kind(*one) for one in header[points]]
        diagram = cls(data, **header)
        if contents.model is not None:
            diagram._check_functions()
        return diagram

    def _check_functions(self) -> None:
        """Raise OtherModel unless points of all curves are such points under its models."""
        for name, locus in self.loci.items():
            residual = float(np.abs(locus.system(locus.points[len(locus.points) // 2])[0]).max())
            check_functions(f"the residual of {name}, to rounding,", residual, 0.0, STATIONARY)
        onsets = self.data.isel(point=np.flatnonzero(self.data.curve.values == "critical")[:1])
        for value, stored in zip(onsets[self.parameter].values, onsets.kappa.values, strict=True):
            onset = critical(self.family, float(value), int(onsets.degree[0]))
            check_functions("the kappa of an onset", onset, float(stored), STATIONARY * stored)

    def plot(self, kind: str | None = None, **options: Any) -> "Figure":
        """Draw the curves by `plotting.phases`; kind "relative" divides kappa by `reference`.

        Raises
        ------
        ValueError
            If `kind` is not None or "relative", or "relative" in a plane without kappa.
        """
        if kind not in (None, "relative"):
            raise ValueError(f"A phase diagram has the kind relative; got {as_given(kind)}.")
        if kind and self.second != "kappa":
            raise ValueError(f"Relative figures divide kappa; the plane has {self.second} instead.")
        return FIGURES["phases"](self, **{"relative": kind is not None, **options})


@dataclass(frozen=True, eq=False, repr=False)
class NoisePhaseDiagram(PhaseDiagram):
    """Curves of special points in a plane with kappa, where the uniform density is not stationary.

    Attributes
    ----------
    data : xarray.Dataset
        On `point`: curve (its name, such as "onset 1" or "fold 2"), kind ("onset", "fold",
        "symmetry breaking", "Hopf"), degree, order, beta (or the parameter by its name), kappa,
        order_parameter, and change: the number of stable states just above the curve minus that
        just below; 0 if only unstable states change. A plane without kappa has its second parameter
        instead.
    tricritical : list of Tricritical
        Points at which an onset turns from continuous to discontinuous.
    cusps : list of Cusp
        Points at which two lines of folds meet.
    ends : dict of str to (str, str)
        Why each curve ends at its lowest and at its highest beta: "range", "range of kappa",
        "cusp", "turn" (beta turns back there, not at a cusp), "onset" (its states reach their
        onset), "Bogdanov-Takens" (the frequency of a Hopf point vanishes), "unresolved",
        "not continued", "max_points", "interrupted".
    """

    general_names: ClassVar[tuple[str, ...]] = ()

    def reference(self, beta: float) -> float:
        """The onset of degree 1 under isotropic noise of strength 1, unit of relative figures."""
        return critical(self.family, beta)

    def stable_counts(self, beta: float) -> list[tuple[int, float, float]]:
        """Numbers of stable states at a beta, as (number, first kappa, last kappa).

        Mirror images are counted once. 0: no density converges to a stationary state; 2 or more:
        bistability. Computed from the changes of the curves, upwards from one stable state.

        Raises
        ------
        MeanfieldError
            For a plane without kappa, on no side of which the number of states is known.
        """
        if self.second != "kappa":
            raise MeanfieldError(
                f"Stable states are counted upwards from strong noise, and {self.second} of this "
                "plane is not kappa: count them at single points by stationary_states."
            )
        beta = self._inside(beta)
        return self._counts(beta, lambda name: self.kappa(name, beta))

    def drawn_counts(self, beta: float) -> list[tuple[int, float, float]]:
        """`stable_counts` with kappa interpolated between points of the curves, for figures.

        Empty for a plane without kappa.
        """
        if self.second != "kappa":
            return []
        return self._counts(
            beta, lambda name: float(np.exp(between(self.loci[name].points, beta)[-2]))
        )

    def _counts(
        self, beta: float, kappa_of: Callable[[str], float]
    ) -> list[tuple[int, float, float]]:
        """Numbers of stable states; `kappa_of` returns the kappa of a curve by its name."""
        crossings = []
        for name, curve in self.loci.items():
            change = int(curve.changes[np.abs(curve.points[:, -1] - beta).argmin()])
            if change and curve.reaches(beta):
                crossings.append((kappa_of(name), change))
        low, high = KappaRange(*self.data.attrs["kappas"]).at(self.family, beta)
        ranges, count, first = [], 1, float(low)
        for kappa, change in sorted(crossings):
            ranges.append((count, first, kappa))
            count, first = count + change, kappa
        return [*ranges, (count, first, float(high))]


def basis_of_states(basis: Any, truncation: int, kept: Any) -> Any:
    """A basis of another degree of truncation, for states with the reflections `kept`.

    For rotation-invariant models `kept` is empty.
    """
    finer = basis.finer(truncation)
    return finer.keeping(tuple(map(int, kept))) if len(kept) else finer
