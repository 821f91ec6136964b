"""Bifurcation diagrams: arrays of points, special points, states and phase transitions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple
from warnings import warn

import numpy as np

from ..core.calls import checked_call
from ..core.checks import check_memory, real, require, whole_number
from ..core.descriptions import absent, build
from ..core.errors import MeanfieldError
from ..core.forms import Reading
from ..core.provided import FIGURES
from ..models import Transformer, ZonalDrift
from ..models.noise import Noise
from ..results.files import (
    GROUP,
    Contents,
    Result,
    check_functions,
    check_given,
    contents_of,
    dataset_of,
)
from ..spaces import Space
from .bases import AXISYMMETRIC, ISOTROPIC, Basis, basis_on
from .branch_switching import NEAR_UNIFORM
from .clustered_states import LOWER_ENERGY
from .continuation import StationaryCurve, curve_of
from .derivatives import point_derivative
from .families import checked_source, equation_of, is_isotropic, saved_basis, source_of
from .normal_forms import NormalForm, normal_form, order_of, weak_transition
from .stability import GROWING_RATE
from .stationary import StationaryState, check_stationary, state_at, state_on_branch

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

DIAGRAM_NAMES = (GROUP, "branch", "kappa", "beta", "order_parameter", "moments", "resolution",
            "free_energy", "growth", "unstable", "degree", "order", "point")  # fmt: skip
NO_COEFFICIENTS = (float("nan"), float("nan"))
EDGE_OF_RANGE = 1e-9  # relative to the range: tolerance for values at its ends
ONSET, NEXT, DETOUR = 0.05, 0.02, 1.2  # tolerances for special points near a step: see `_change`
UNIFORM_PART = 0.5  # of the guess: smaller solutions are on the parent branch
CROSSED = "bifurcation", "Hopf", "symmetry breaking"  # kinds of points at which branches begin
SPECIAL_KINDS = "bifurcation", "fold", "symmetry breaking", "transition", "Hopf"
SAME_GROWTH = 1e-7  # relative to 1 + |rate|: largest error of a growth rate by rounding
PRESENT_MOMENT = 1e-10  # smaller moments count as zero
END_SENTENCES = {  # sentences for ends of branches and curves that were cut short
    "not continued": "was not continued beyond {place}: take a smaller max_step",
    "stopped": "was stopped by until at {place}; what lies beyond it is left out",
    "negative": "ends at {place}, beyond which its solutions have negative values",
    "max_points": "ends at {place}, after its largest number of points: raise max_points",
    "unresolved": "needs too many moments beyond {place}: take a smaller range",
    "short steps": "was not continued beyond {place}, as its steps become shorter without end",
    "interrupted": "was interrupted at {place}; what would have come after it is missing",
    "not located": "was not found on the branch from which it is followed: take another range",
}


@dataclass(frozen=True, eq=False)
class SpecialPoint:
    """A bifurcation, fold, change of stability or point of equal free energies on a branch.

    Attributes
    ----------
    kind : str
        "bifurcation", "fold", "symmetry breaking", "transition" (the free energy is that of the
        uniform state, which is stable there), "Hopf" (perturbations begin to oscillate; periodic
        states are not followed).
    parameter : str
        "kappa", or the name of a parameter of the drift.
    value : float
        Value of the parameter at the point.
    interval : (float, float)
        Bracket of the value.
    status : str
        On the uniform state "exact", or "not followed" if no branch was found; on other branches
        "converged" or "not located".
    branch : int
        Number of the branch; 0 is the uniform state.
    degree : int
        Degree of the harmonic with which the branch begins, or a new branch begins here.
    order : int
        Order of the perturbation that becomes neutral: see `Stability`.
    character : str
        For bifurcations of the uniform state: "supercritical", "subcritical", "transcritical", or
        "degenerate" where c_1 = c_2 = 0 to rounding, as at a tricritical point. Where several
        degrees have one onset, that of a branch of this degree alone.
    coefficients : (float, float)
        For bifurcations of the uniform state: c_1 and c_2 of the normal form kappa = kappa_c (1 +
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
        """The beta of the drift; nan for drifts without beta."""
        return float(getattr(self.state.model.drift, "beta", np.nan))

    def derivative(self, parameter: str) -> float:
        """Derivative of `value` by another parameter of the model.

        At a fold in kappa, d kappa_fold/dp = -<psi, F_p>/<psi, F_kappa> with psi F_m = 0; at a
        bifurcation from the derivatives of the eigenvalue that vanishes, at a transition from those
        of the free energy.

        Parameters
        ----------
        parameter : str
            "kappa" or a field of the drift, not `self.parameter`.

        Raises
        ------
        ValueError
            For another parameter.
        MeanfieldError
            At a crossing of branches, away from the uniform state, where states have no derivative.
        """
        return point_derivative(self, parameter)

    def __repr__(self) -> str:
        word = f"{self.character} {self.kind}" if self.character else self.kind
        return (
            f"SpecialPoint({word}, {self.parameter} = {self.value:.12g}, branch {self.branch}, "
            f"degree {self.degree}, {self.status})"
        )


class Transition(NamedTuple):
    """A phase transition: above its kappa the uniform state is not the ground state.

    Attributes
    ----------
    order : str
        "continuous", "discontinuous", or "degenerate" if the normal form of the onset vanishes up
        to the computed order.
    kappa : float
        Value at which the free energies are equal; from the normal form if they differ by rounding
        only. nan for a discontinuous transition of SA, which has no free energy, and where it was
        not located. At a continuous transition, the onset.
    onset : float
        kappa_c, at which the uniform state loses its stability.
    jump : float
        Order parameter of the new state at `kappa`; for polyhedra and even degrees, the size of its
        first nonzero moment.
    hysteresis : (float, float) or None
        At a discontinuous transition, from the fold at which the new state begins to kappa_c. Both
        states are stable there, unless a special point shows that the new one loses its symmetry.
        At a continuous transition, from the least kappa of a stable state that is not uniform, if
        it is below kappa_c, to kappa_c.
    """

    order: str
    kappa: float
    onset: float
    jump: float
    hysteresis: tuple[float, float] | None


@dataclass(frozen=True, eq=False, repr=False)
class Diagram(Result):
    """Bifurcation diagram: branches of stationary states.

    Attributes
    ----------
    data : xarray.Dataset
        On `point`: branch (0 the uniform state), the parameter by its name, order_parameter,
        moments (of Legendre polynomials, cos(l theta) on the circle, of invariants for polyhedra,
        on `degree`), resolution (degree of truncation), free_energy, growth (largest growth rate,
        rotations excluded), unstable (number of positive rates by order, -1 where not computed),
        and observables.
    special_points : list of SpecialPoint
    ends : list of str
        Why each branch ends: "range", "uniform", "bifurcation" (on a branch of more symmetry),
        "closed", "stopped" (by `until`), "negative" (beyond it solutions are no probability
        densities), "max_points", "unresolved", "short steps" without end, "not continued",
        "interrupted".
    saved : list of (int, StationaryState)
        Branch and state, at the values `save_at`.
    drift : ZonalDrift, or type
    space : Space
    symmetry : str
    parameter : str
        Parameter that varies along the branches: "kappa", or the name of one of the drift.
    kappa : float or None
        Constant kappa, if another parameter varies.
    noise : Noise
        Under non-isotropic noise, branch 0 is the disordered state, which is not uniform, and the
        moments are those of all harmonics: see `reflections`.
    symmetries : Symmetries or None
        Reflections and rotations under which the model is invariant; None for rotation-invariant
        models.
    """

    made_by = "branches"
    takes_model = True

    data: "xr.Dataset"
    special_points: list[SpecialPoint]
    ends: list[str]
    saved: list[tuple[int, StationaryState]]
    drift: ZonalDrift | type[ZonalDrift]
    space: Space
    symmetry: str | np.ndarray
    parameter: str
    kappa: float | None
    noise: Noise = ISOTROPIC
    symmetries: Any = None

    @property
    def span(self) -> tuple[float, float]:
        """The range of the parameter."""
        low, high = self.data.attrs[self.parameter]
        return float(low), float(high)

    @checked_call()
    def special(self, kind: str, branch: int | None = None) -> list[SpecialPoint]:
        """Special points of a kind of `SpecialPoint`, on all branches or on one.

        Raises
        ------
        ValueError
            For an unknown kind.
        """
        require("kind", kind, f"one of {', '.join(SPECIAL_KINDS)}", kind in SPECIAL_KINDS)
        here = [s for s in self.special_points if s.kind == kind]
        return [s for s in here if branch in (None, s.branch)]

    @property
    def warnings(self) -> list[str]:
        """Sentences that say what is missing: branches cut short, special points not located."""
        sentences = [
            str(sentence) for sentence in np.atleast_1d(self.data.attrs.get("missing", []))
        ]
        sentences += self.cut_short()
        for special in self.special_points:
            if special.status == "not located":
                low, high = sorted(special.interval)
                sentences.append(
                    f"{special.kind} of branch {special.branch} was not located between "
                    f"{self.parameter} = {low:.10g} and {high:.10g}: take a smaller max_step."
                )
        return sentences

    def cut_short(self, value: float = np.inf) -> list[str]:
        """Sentences about branches that were cut short at or below a value of the parameter."""
        sentences = []
        for number, end in enumerate(self.ends, start=1):
            last = float(self.data[self.parameter].values[self.data.branch.values == number][-1])
            if end in END_SENTENCES and last <= value:
                place = f"{self.parameter} = {last:.6g}"
                sentences.append(f"branch {number} {END_SENTENCES[end].format(place=place)}.")
        return sentences

    def states_at(self, value: float) -> list[tuple[int, StationaryState]]:
        """States of all branches at a value of the parameter, as (branch, state).

        Computed by Newton's method from neighbouring points.

        Raises
        ------
        ValueError
            If the value is outside the range.
        """
        low, high = self.span
        wanted = f"from {low:g} to {high:g}, where this diagram has {self.parameter}"
        value = real("value", value, wanted, lambda number: low <= number <= high)
        if self.symmetries is not None and self._lost:
            raise MeanfieldError(
                "The model of this diagram has a function that its file does not hold, so no state "
                f"can be computed at {self.parameter} = {value:g}: see `saved` and "
                "`special_points`, or give it, mf.load(path, model=model)."
            )
        return states_on(self, value, self.curve)

    def ground_state(self, value: float) -> StationaryState:
        """The state of least free energy among the uniform state and those on the branches.

        Parameters
        ----------
        value : float
            Value of the parameter.

        Raises
        ------
        MeanfieldError
            If there is no free energy, as for SA.
        ValueError
            If the value is outside the range.
        """
        states = [state for _, state in self.states_at(value)]
        if np.isnan(states[0].free_energy):
            under = "" if self.noise.laplacian else f" under {self.noise!r}"
            raise MeanfieldError(
                f"{self.data.attrs['drift']} has no free energy{under}, so no state of it is the "
                "ground state; see which ones are stable: [s.stability().stable for _, s in "
                "diagram.states_at(...)]."
            )
        return min(states, key=lambda state: state.free_energy)

    def transition(self) -> Transition:
        """The phase transition: the kappa above which the uniform state is not the ground state.

        "continuous" means that no state of lower free energy was found at the onset, on a branch or
        from clustered densities; `warnings` lists what was not followed.
        Without a free energy the order is that of the normal form at the onset, and `hysteresis`
        says where another state is stable too.

        Raises
        ------
        ValueError
            If kappa is not the parameter, or the range lacks the first onset.
        MeanfieldError
            Under noise whose generator is not a multiple of the Laplacian: without a free energy.
        """
        if self.parameter != "kappa":
            raise ValueError(
                f"transition is about a diagram in kappa; this one has {self.parameter} as its "
                "parameter: give branches a single drift and a range of kappa, or see "
                "special_points."
            )
        equation, strength = self._isotropic()
        if np.isnan(strength):
            raise MeanfieldError(
                f"There is no free energy under {self.noise!r}, and so no first-order transition: "
                "see the onsets, special('bifurcation', 0), the folds, special('fold'), and "
                "stable_ranges()."
            )
        onset = self._first_onset(equation, strength)
        equal = (s for s in self.special("transition") if s.status == "converged")
        first = min(
            (s for s in equal if s.value < onset.value), key=lambda s: s.value, default=None
        )
        if first is not None:
            return Transition("discontinuous", first.value, onset.value, _jump(first.state),
                              self._hysteresis(onset.value, first.branch))  # fmt: skip
        form = normal_form(equation, onset.degree)
        order, hysteresis = self._order(onset.value, equation, form), self._hysteresis(onset.value)
        if order != "discontinuous":
            stable = (begin for number, begin, _ in self.stable_ranges() if number)
            others = [begin for begin in stable if begin < onset.value * (1 - EDGE_OF_RANGE)]
            hysteresis = (min(others), onset.value) if others else None
        return transition_at(onset.value, order, equation, form, hysteresis, strength)

    def _first_onset(self, equation: Any, strength: float) -> SpecialPoint:
        """The lowest onset of the uniform state.

        Raises ValueError without one, or if it is not the first onset of the model.
        """
        onset = min(self.special("bifurcation", 0), key=lambda s: s.value, default=None)
        if onset is None:
            low, high = self.span
            raise ValueError(
                f"The uniform state has no onset for {low:g} < kappa < {high:g}: take a range "
                "with it."
            )
        if equation.multipliers(equation.basis).max() * onset.value > strength * (1 + 1e-9):
            raise ValueError(
                f"The uniform state is unstable before kappa = {onset.value:.6g}, the first onset "
                "of this diagram: take a range, and degrees, with its first one."
            )
        return onset

    def _isotropic(self) -> tuple[Any, float]:
        """The equation under isotropic noise, and the c of noise that is c times the Laplacian.

        States at kappa are then those of isotropic noise at kappa/c; c is nan for other noise.
        """
        equation: Any = self.curve().at(0.0)[0]
        if self.noise.laplacian:
            return equation, 1.0
        model = equation.model.replace(noise=ISOTROPIC)
        if not is_isotropic(model) or np.isnan(equation.noise_strength):
            return equation, float("nan")
        isotropic = equation_of(model, basis_on(self.space, AXISYMMETRIC))
        return isotropic, equation.noise_strength

    def _order(self, onset: float, equation: Any, form: NormalForm) -> str:
        """Order of a transition if no point of equal free energies was located.

        From states of lower free energy at the onset, else from its normal form.
        """
        here = (self.data.branch.values > 0) & (self.data[self.parameter].values <= onset)
        others = np.atleast_1d(self.data.attrs.get("lower", []))  # of states that lie on no branch
        lowest = min([*self.data.free_energy.values[here], *others], default=0.0)
        if lowest < LOWER_ENERGY:
            return "discontinuous"
        return order_of(equation, form)

    def _hysteresis(self, onset: float, branch: int | None = None) -> tuple[float, float] | None:
        """Range of kappa from the lowest fold below the onset to the onset; or None."""
        folds = [s.value for s in self.special("fold", branch) if s.value < onset]
        return (min(folds), onset) if folds else None

    def stable_ranges(self) -> list[tuple[int, float, float]]:
        """Ranges of stable states: branch, first and last value of the parameter of each.

        A range ends at a special point, if there is one, else in the middle between two points of
        the branch. Where ranges overlap there are several stable states, not counting mirror
        images; where there is no range, densities do not converge to a stationary state.
        """
        ranges, (low, high) = [], self.span
        for number in range(len(self.ends) + 1):
            here = self.data.branch.values == number
            stable = self.data.growth.values[here] <= GROWING_RATE
            cuts = [0, *(np.flatnonzero(stable[1:] != stable[:-1]) + 1), len(stable)]
            for begin, end in pairwise(cuts):
                if stable[begin]:
                    ends = self._change(number, begin - 1), self._change(number, end - 1)
                    first, last = sorted(np.clip(ends, low, high))
                    ranges.append((number, float(first), float(last)))
        return ranges

    def _change(self, number: int, i: int) -> float:
        """Parameter value at which stability changes between points i and i + 1 of a branch.

        At an end of the branch, i is -1 or the last point.
        """
        here = self.data.branch.values == number
        moments, values = self.data.moments.values[here], self.data[self.parameter].values[here]
        inside = 0 <= i < len(values) - 1
        one, other = (i, i + 1) if inside else (max(i, 0), max(i, 0))
        low, high = self.span
        edge = EDGE_OF_RANGE * (high - low)
        if not inside and not low + edge < values[one] < high - edge:
            return float(values[one])
        step = np.linalg.norm(moments[other] - moments[one]) if inside else ONSET
        stable, unstable = sorted((one, other), key=lambda j: self.data.growth.values[here][j])
        between = np.append(moments[unstable] - moments[stable], values[unstable] - values[stable])
        most = DETOUR * step + ONSET * (not inside)
        ahead, detours = {}, {}
        for s in self.special_points:
            m = np.pad(s.state.legendre_moments, (0, moments.shape[1]))[: moments.shape[1]]
            detour = float(np.linalg.norm(moments[one] - m) + np.linalg.norm(m - moments[other]))
            near = max(abs(values[other] - values[one]), NEXT * s.value)
            if detour <= most and abs(s.value - values[one]) <= near:
                detours[detour] = s.value
                ahead[float(np.append(m - moments[stable], s.value - values[stable]) @ between)] = s
        passed = [place for place in ahead if place > 0]
        if passed:  # the special point next to the stable state
            return ahead[min(passed)].value
        if detours:
            return detours[min(detours)]
        return float((values[one] + values[other]) / 2)

    def curve(self, degree: int | None = None) -> StationaryCurve:
        """The curve of states, truncated at `degree` or at that with which branches begin."""
        basis = saved_basis(self.space, self.noise, self.symmetries, self.symmetry)
        if degree is not None:
            degree = whole_number("degree", degree)
            check_memory(f"degree = {degree}: a square matrix", (2, degree, degree), "degree")
            basis = basis.finer(degree)
        return curve_of(self.drift, basis, self.parameter, self.span, self.kappa)

    def contents(self) -> Contents:
        """Arrays and header of a file: the points, and states by their moments."""
        header = vars(self) | {
            "special_points": [
                vars(s) | {"state": self._described(s.state)} for s in self.special_points
            ],
            "saved": [(number, self._described(state)) for number, state in self.saved],
        }
        del header["data"]
        return contents_of(self.data, header)

    @classmethod
    def made_of(cls, contents: Contents) -> "Diagram":
        """The diagram from the contents of a file."""
        data, header = dataset_of(contents)
        specials, saved = header.pop("special_points"), header.pop("saved")
        header["drift"], header["noise"] = stored_source(contents, header)
        diagram = cls(data, [], saved=[], **header)
        for row in specials:
            state = diagram._state(*row["state"])
            diagram.special_points.append(SpecialPoint(**(row | {"state": state})))
        diagram.saved.extend((number, diagram._state(*state)) for number, state in saved)
        if contents.model is not None:
            diagram._check_functions(contents)
        return diagram

    def _check_functions(self, contents: Contents) -> None:
        """Raise OtherModel unless the last state of each branch is stationary under its model.

        The uniform state is stationary under all models: its growth rate tells them apart.
        """
        for number in range(len(self.ends) + 1):
            row = self.data.isel(point=np.flatnonzero(self.data.branch.values == number)[-1])
            degree = int(row.resolution)
            moments = row.moments.values[: len(self.curve(degree).basis.degrees)]
            state = self._state(float(row[self.parameter]), degree, moments.tolist(), np.nan)
            check_stationary(contents, state)
            if not number:
                growth, stored = -state.stability(1).gap, float(row.growth)
                error = SAME_GROWTH * (1 + abs(growth))
                check_functions("the growth rate of a state", growth, stored, error)

    @property
    def _lost(self) -> bool:
        """Whether the model has a function that the file of the diagram does not hold."""
        return bool(getattr(getattr(self.drift, "drift", self.drift), "is_absent", False))

    def _described(self, state: StationaryState) -> tuple[float, int, list[float], float]:
        """Parameter value, degree of truncation, moments and kappa of a state, for a file."""
        moments = state.legendre_moments.tolist()
        return state.value, state.equation.degree, moments, state.kappa

    def _state(
        self, value: float, degree: int, moments: list[float], kappa: float
    ) -> StationaryState:
        """The state from what `_described` returned."""
        if self._lost:
            basis = saved_basis(self.space, self.noise, self.symmetries, self.symmetry)
            basis = basis.finer(degree)
            basis, m = basis.fitted(basis.padded(np.array(moments)))
            return state_on_branch(equation_of(self.drift, basis), kappa, m, value)
        curve = self.curve(degree)
        basis, m = curve.basis.fitted(curve.basis.padded(np.array(moments)))
        z = np.append(m, curve.coordinate(value))
        return state_at(curve.among(basis), z, value=value)

    def plot(self, kind: str | None = None, **options: Any) -> "Figure":
        """Plot the quantity `kind`, or several, `y`, by `plotting.bifurcation`."""
        return FIGURES["bifurcation"](self, **{"y": kind, **options})

    def __repr__(self) -> str:
        lines = [f"Diagram of {self.data.attrs['drift']}: {len(self.ends) + 1} branches, "
                 f"{self.data.sizes['point']} points"]  # fmt: skip
        lines += [f"  {special!r}" for special in self.special_points]
        return "\n".join([*lines, *(f"  <-- {warning}" for warning in self.warnings)])


def _jump(state: StationaryState) -> float:
    """Size of the first moment of a state that is not 0, of all harmonics of one degree."""
    moments, basis = np.abs(state.legendre_moments), state.equation.basis
    if not basis.symmetric:
        moments = np.sqrt(np.bincount(basis.degrees, moments**2))[1:]
    return float(moments[moments > PRESENT_MOMENT][0])


def transition_at(
    onset: float, order: str, equation: Any, form: NormalForm,
    hysteresis: tuple[float, float] | None, strength: float = 1.0,
) -> Transition:  # fmt: skip
    """The transition at an onset below which no equal free energies were located.

    If it is discontinuous, by the normal form, under noise `strength` times the isotropic one.
    """
    if order != "discontinuous":
        return Transition(order, onset, onset, 0.0, hysteresis)
    kappa, amplitude = weak_transition(form)
    jump = amplitude / float(equation.basis.sizes[equation.basis.index(form.degree)])
    return Transition(order, strength * kappa, onset, jump, hysteresis)


def noise_of(described: Any) -> Any:
    """The noise from its description; an absent noise if one of its functions was not saved."""
    reading = Reading(result=True)
    noise = build(Noise, described, reading)
    return absent(Noise, described["kind"], described) if reading.lost else noise


def stored_source(contents: Contents, header: dict[str, Any]) -> tuple[Any, Noise]:
    """Drift, class, model or family, and noise, of a diagram, from its file.

    They are those of the model given to `load`, if there is one: OtherModel if it differs from the
    `header`, whose arrays are in their places.
    """
    described, noise = header["drift"], header.get("noise", {"kind": "Isotropic"})
    given = contents.model
    if given is None:
        return source_of(described), noise_of(noise)
    of_drift = described.get("kind") not in (None, Transformer.__name__)
    if of_drift and isinstance(given, Transformer):  # a drift and a noise, given together
        source, own = given.drift.as_zonal(), given.noise
    else:
        source, own, _ = checked_source("load", given, noise_of(noise) if of_drift else ISOTROPIC)
    check_given(source, described, contents)
    check_given(own, noise, contents)
    return source, own


def states_on(
    diagram: Diagram, value: float, curve_of_degree: Callable[[int], StationaryCurve]
) -> list[tuple[int, StationaryState]]:
    """States of a diagram at a value of the parameter, as (branch, state).

    `curve_of_degree(degree)` returns the curve truncated at a degree.
    """
    places = list(_crossings(diagram, value, curve_of_degree))
    if diagram.symmetries is None:  # branch 0 is the uniform state
        curve = curve_of_degree(_resolution(diagram, 0))
        places.insert(0, (0, curve, curve.uniform(value)))
    return [(number, state_at(curve, z, value=value)) for number, curve, z in places]


def _resolution(diagram: "Diagram", number: int) -> int:
    """Highest degree of truncation on a branch."""
    data = diagram.data
    return int(data.resolution.values[data.branch.values == number].max())


class _Node(NamedTuple):
    """A point of a branch; near it, moments change like this power of the parameter change."""

    value: float
    m: np.ndarray
    power: float
    parent: bool = False


def _crossings(
    diagram: "Diagram", value: float, curve_of_degree: Callable[[int], StationaryCurve]
) -> Iterator[tuple[int, StationaryCurve, np.ndarray]]:
    """States of all branches at a value, as (branch, curve, (m, p)), by Newton's method.

    Guesses are interpolated between neighbouring points, onsets and folds included. Near these,
    moments change like the square root of the parameter, or linearly at a transcritical onset.
    """
    for number in range(int(diagram.symmetries is None), len(diagram.ends) + 1):
        curve = curve_of_degree(_resolution(diagram, number))
        nodes = _nodes(diagram, number, curve.basis)
        curve = curve.among(curve.basis.fitted(nodes[-1].m)[0])
        for one, other in pairwise(nodes):
            inside = min(one.value, other.value) <= value <= max(one.value, other.value)
            if not inside or value == other.value:
                continue
            first, last = sorted((one, other), key=lambda node: node.power)
            part = (value - first.value) / (last.value - first.value)
            near = first.m + part**first.power * (last.m - first.m)
            z = curve.at_value(np.append(near, curve.coordinate(value)), value)
            middle = first.m if first.parent else curve.basis.symmetrised(near)  # on the parent
            if z is None:
                warn(
                    f"Branch {number} passes {diagram.parameter} = {value:g}, but its state there "
                    "was not found: follow it with a smaller max_step.",
                    stacklevel=4,
                )
            elif np.abs(z[:-1] - middle).max() >= UNIFORM_PART * np.abs(near - middle).max():
                yield number, curve, z


def _nodes(diagram: "Diagram", number: int, basis: Basis) -> list[_Node]:
    """Points of a branch in order, with its folds and its onset, for interpolation."""
    here = diagram.data.branch.values == number
    moments = diagram.data.moments.values[here, : len(basis.degrees)]
    values = diagram.data[diagram.parameter].values[here]
    nodes = [_Node(float(value), m, 1.0) for value, m in zip(values, moments, strict=True)]
    for fold in diagram.special("fold", number):
        m = basis.padded(fold.state.legendre_moments)
        ways = np.array([node.m for node in nodes])
        there = np.linalg.norm(ways - m, axis=1)
        detours = there[:-1] + there[1:] - np.linalg.norm(np.diff(ways, axis=0), axis=1)
        if detours.size:
            nodes.insert(int(detours.argmin()) + 1, _Node(fold.value, m, 0.5))
    if number and diagram.ends[number - 1] == "bifurcation":
        nodes[-1] = nodes[-1]._replace(power=0.5)
    first = np.abs(nodes[0].m) * basis.sizes
    degree = basis.degrees[first.argmax()]
    onsets = [onset for onset in diagram.special("bifurcation", 0) if onset.degree == degree]
    if basis.symmetric and onsets and first.max() < NEAR_UNIFORM:
        onset = min(onsets, key=lambda special: abs(special.value - nodes[0].value))
        power = 1.0 if onset.character == "transcritical" else 0.5
        nodes.insert(0, _Node(onset.value, np.zeros(len(basis.degrees)), power))
    if number and not basis.symmetric:
        begun = [s for s in diagram.special_points if s.branch != number and s.kind in CROSSED]
        others = [basis.padded(special.state.legendre_moments) for special in begun]
        apart = np.array([np.linalg.norm(basis.sizes * (m - nodes[0].m)) for m in others])
        if apart.min(initial=np.inf) < NEAR_UNIFORM:
            origin = begun[int(apart.argmin())]
            nodes.insert(0, _Node(origin.value, others[int(apart.argmin())], 0.5, True))
    return nodes
