"""Continuation of stationary states in kappa or in a parameter of the drift.

`branches` follows all branches that are connected with the uniform state. In kappa they are
followed below the range until they turn back, and up to twice its upper end; parts above the range
that do not return are dropped. In another parameter, branches also start at both ends of its range,
from the states of a diagram in kappa computed there. `follow` follows the branch of one state.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.calls import checked_call
from ..core.checks import (
    as_given,
    is_variable_name,
    positive,
    range_of,
    real,
    real_array,
    require,
    whole_number,
)
from ..core.errors import MeanfieldError
from ..core.forms import NATURAL, Many, Natural, Positive
from ..derivatives.variation import comparable
from ..lowlevel.blas import one_blas_thread
from ..lowlevel.progress import Interruption, Progress
from ..models import Drift, Transformer, ZonalDrift
from ..models.noise import Noise
from ..solving.checkpoint import Keeper
from ..spaces import Density, Space
from ..spaces.validity import NEGATIVE_SHARE
from .bases import AXISYMMETRIC, ISOTROPIC
from .branch_matching import EQUAL_MOMENTS, Branch
from .branch_switching import INTERRUPTED, NEAR_UNIFORM, BranchSearch
from .clustered_states import clustered_states
from .continuation import STRONGEST_NOISE, CurvePoint, StationaryCurve, curve_of
from .detection import SAME_VALUE, Special
from .diagram import DIAGRAM_NAMES, END_SENTENCES, NO_COEFFICIENTS, Diagram, SpecialPoint, states_on
from .families import basis_along, checked_source, parameters_of, value_of, with_parameter
from .journal import AnswerJournal
from .normal_forms import Onset
from .stability import GROWING_RATE, is_stable
from .stationary import StationaryState, check_along, state_at, state_near

if TYPE_CHECKING:
    import xarray as xr

EDGE_DIAGRAM_REACH = 1.5  # factor by which diagrams in kappa reach beyond a given kappa
LARGEST_ONSET_DEGREE = 12  # highest degree followed by default
HIGHEST_ONSET = 1000.0  # in units of the upper end of the reach: onsets above are not computed
LONGEST_LOG_STEP = 0.5  # longest step in log kappa from there
LEAST_ORDERS = 4  # least number of orders of perturbations; the circle has two
UNIFORM_POINTS = 60
CLUSTERED_APART = (
    "at the onset, kappa = {onset:.6g}, a state that harmonics of degree {degree} lead to lies on "
    "no branch that was followed: have {degree} among degrees, and secondary=True."
)


@checked_call("drift", "kappa", "vary", "observables", "until")
def branches(
    drift: Drift | type[ZonalDrift] | Transformer | Callable[[float], Transformer],
    space: Space | Density,
    kappa: float | tuple[float, float] | None = None,
    *,
    beta: tuple[float, float] | None = None,
    vary: Mapping[str, tuple[float, float]] | None = None,
    noise: Noise = ISOTROPIC,
    symmetry: str | np.ndarray = AXISYMMETRIC,
    starts: Mapping[float, Any] | None = None,
    degrees: Sequence[int] | None = None,
    secondary: bool = True,
    stability: bool = True,
    save_at: Sequence[float] = (),
    observables: Mapping[str, Callable[[Any], Any]] | None = None,
    max_step: Positive = 0.1,
    max_points: Natural = 500,
    until: Natural | Callable[[StationaryState], bool] | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 60.0,
    resume: bool = False,
    progress: bool | None = None,
) -> Diagram:
    """Follow stationary states as one parameter changes: the bifurcation diagram of a model.

    The uniform state loses stability to harmonics of degree l at kappa_l = 1/w_l, the inverse of
    the multiplier of its potential. From every such point in the range, a branch is followed
    through its folds by pseudo-arclength continuation; so are branches that leave it.

    Parameters
    ----------
    drift : Drift, Transformer, type or callable
        A single drift, or a model with fields, matrices, a reaction or another noise; the class
        `USA` or `SA`, to follow beta; or a function s -> `Transformer`, to follow s.
    space : Circle, Sphere, Torus or Zonal; or Density or Indexed
        A density on such a space adds the branch of the state that Newton's method reaches from it,
        at the parameter value of the model if it is in the range, else at the first of the range.
    kappa : (float, float), or float
        0 < first < last: the range, in place of the kappa of a model. Branches are followed below
        it until they turn back, and above it up to 2 last; parts above the range that do not return
        are dropped. One value, by default that of the model, if another parameter is followed. The
        range of s for a function of s.
    beta : (float, float), optional
        0 < first < last: the range of beta of `USA` or `SA`, for one kappa.
    vary : mapping of str to (float, float), optional
        Name of one parameter of the drift, and its range, first < last, for one kappa:
        ``branches(X(b=1.0), circle, kappa=2.5, vary={"b": (-1, 3)})``. For a model also parameters
        of terms of a sum, "factors[1]" or "drifts[0].beta", of its noise and its frequencies,
        "frequency.width", and "reaction" and "kappa".
    noise : Noise
        Isotropic by default; anisotropic or multiplicative noise on the circle and S^2: see Notes.
    symmetry : str or array, (k, 3, 3)
        Symmetry of the states: "axisymmetric", about an axis, or on S^2 "tetrahedral", "octahedral"
        or "icosahedral", or any finite group, as for `stationary`. At an onset of degree l, 2l + 1
        harmonics become neutral at once. The branch with the symmetry of a group is found if just
        one of them is invariant, or one of the invariant ones is symmetric about the main axis;
        other branches bifurcate from these.
    starts : mapping of float to densities or StationaryStates, optional
        Values of the parameter, and one or more densities for each, from which Newton's method
        begins: branches of the states it reaches are followed too, in both directions. So are
        closed branches (isolas) through states that `stationary_states` found.
    degrees : sequence of int, optional
        Degrees l whose branches are followed; their onsets must be in the range or, in kappa, below
        it. By default all up to 12, and those with onsets above the range whose branches come down
        into it. Only degrees with a single function of the symmetry.
    secondary : bool
        Whether branches that bifurcate from other branches are followed too, with states even about
        an axis. On the circle, some that leave a k-fold branch are even about its other axis; they
        are found only with `stability`.
    stability : bool
        Whether growth rates are computed at every point and losses of symmetry located, for
        perturbations of orders 0 to 3, and of higher orders up to the degree that the drift
        attracts most.
    save_at : sequence of float
        Values of the parameter at which `Diagram.saved` has the states of every branch.
    observables : mapping of str to callable, optional
        Functions density -> number, evaluated at every point.
    max_step : float
        Longest step: the Euclidean norm of the changes of sqrt(2) times the Legendre moments and
        of log kappa, or of the parameter.
    max_points : int
        Largest number of points of one branch.
    until : int or callable, optional
        Where a branch is not followed further: after so many folds, or at the first point at which
        the function StationaryState -> bool is true; `value` of a state is that of the parameter.
        Branches stopped so are listed in `warnings`.
    checkpoint : path, optional
        File of intermediate results, rewritten every `checkpoint_every` seconds of wall time and at
        the end, after Ctrl-C too.
    resume : bool
        Continue from the checkpoint if it exists: the result equals that of an uninterrupted call
        to the last bit. `max_points` and `until` may differ.
    progress : bool, optional
        Show a progress bar; by default on a terminal and in a notebook.

    Returns
    -------
    Diagram
        A branch on which Newton's method finds no further point has the end "not continued"; after
        Ctrl-C the last one has the end "interrupted". `warnings` lists what is missing.

    Raises
    ------
    TypeError, ValueError
        For arguments out of their range.
    MeanfieldError
        For models that move no densities, or change with time.
    CheckpointError
        If the checkpoint is damaged or belongs to another diagram.

    Notes
    -----
    Under non-isotropic noise, and with fields or matrices, the disordered state is not uniform: it
    is branch 0, followed from strong noise on. `degrees` and stability=False are refused, because
    onsets are located by growth rates, in all directions. At a neutral perturbation whose sign a
    reflection of the state changes, a pair of branches bifurcates, of which one is followed: one
    pair for each axis for an even scale or a Sigma. If the model lacks a reflection, the
    corresponding onset is replaced by a disconnected branch, which is sought at the upper end of
    the range. Stability is computed for all orders. There is no free energy and no transition.

    If the model is invariant under rotations but under no reflection, as with a phase lag, rotating
    waves are followed from the Hopf points at which they begin: see `StationaryState.speed`.

    At a kink of a function of s, states and special points are exact: they solve equations without
    its derivative. Where a branch turns sharply there, it ends, and `warnings` names the value.

    Branches begin at smaller amplitudes where onsets are close together. At the first onset, states
    are computed from clustered densities; one that lies on no branch is followed too.

    A point costs about 0.5 ms for 32 moments, and its growth rates as much for each order; points
    with polyhedral symmetry, whose quadrature is two-dimensional, cost 20 ms and more. From 256
    moments only the largest growth rates are computed, at least one of them negative; points on the
    torus cost 10 ms with 783 moments, and their growth rates 40 ms for each order.

    References
    ----------
    Keller, in Applications of Bifurcation Theory (1977); Carrillo, Gvalani, Pavliotis and
    Schlichting, Arch. Ration. Mech. Anal. 235 (2020).
    """
    start, space = (space, space.space) if isinstance(space, Density) else (None, space)
    source, noise, family = checked_source("branches", drift, noise)
    name, span, at_kappa = _asked_range(drift, family, kappa, beta, vary)
    begun: list[tuple[float | None, Density]] = [] if start is None else [(None, start)]
    begun += _checked_starts(starts, span, space)
    drift = source
    if not isinstance(drift, Drift | type):
        check_along(drift, name, span, space)
    basis = basis_along(drift, name, span, noise, space, symmetry)
    if not basis.symmetric:
        where = "where the uniform density does not rest"
        wanted = f"left out {where}: branches begin in all directions"
        require("degrees", degrees, wanted, degrees is None)
        require(
            "stability", stability, f"True {where}: onsets are found by growth rates", stability
        )
    saved_values = _checked_places(save_at, span)
    measures = _checked_observables(observables, space, name)
    stop = stop_of(until, lambda branch: state_at(branch.curve, branch.points[-1].z))
    keeper = Keeper(checkpoint, checkpoint_every, resume)
    identity = {
        **{"drift": drift, "space": space, "symmetry": symmetry, "parameter": (name, at_kappa)},
        **{"range": span, "max_step": max_step, "noise": noise, "starts": begun},
        **{"degrees": degrees, "secondary": secondary, "stability": stability},
        **{"save_at": saved_values, "observables": measures},
    }
    with one_blas_thread(), keeper, AnswerJournal(keeper, identity) as journal:
        curve = curve_of(drift, basis, name, span, at_kappa, max_step, journal)
        with Following(name, span, progress) as following:
            search = DiagramSearch(space, symmetry, degrees, secondary, stability, max_points,
                                   following, begun, stop)  # fmt: skip
            diagram = search.diagram(curve, measures)
        diagram.special_points[:] = filter(_of_stable_states, diagram.special_points)
        finer = cache(curve.finer)
        for value in saved_values:
            diagram.saved.extend(states_on(diagram, float(value), finer))
    return diagram


def _of_stable_states(special: SpecialPoint) -> bool:
    """Whether a special point is not one of a free energy equal to that of an unstable state."""
    equation: Any = special.state.equation
    uniform = np.zeros(len(equation.basis.degrees))
    return special.kind != "transition" or is_stable(equation, uniform, special.kappa)


@checked_call("vary")
def follow(
    state: StationaryState,
    *,
    kappa: tuple[float, float] | None = None,
    beta: tuple[float, float] | None = None,
    vary: Mapping[str, tuple[float, float]] | None = None,
    decreasing: bool = False,
    max_step: Positive = 0.1,
    max_points: Natural = 500,
) -> Iterator[StationaryState]:
    """Follow the branch of one state, lazily, through its folds.

    Parameters
    ----------
    state : StationaryState
        A converged state.
    kappa, beta : (float, float)
        Range of the parameter to follow; give one of the two, the other keeps its value. beta needs
        a drift with this parameter.
    vary : mapping of str to (float, float)
        Name and range of another parameter of the drift or model, instead of kappa and beta: see
        `branches`.
    decreasing : bool
        Whether the parameter decreases at first.
    max_step : float
        Longest step: the Euclidean norm of the changes of sqrt(2) times the Legendre moments and
        of log kappa, or of the parameter.
    max_points : int
        Largest number of states.

    Returns
    -------
    iterator of StationaryState
        States along the branch, `state` first; the last one may lie just outside the range. The
        iteration ends at the end of the range, or where the branch ends, returns to the uniform
        state or to its start. If `state` is uniform and exactly at its onset, uniform states are
        followed; `branches` follows the bifurcating ones.

    Raises
    ------
    TypeError, ValueError
        For arguments out of their range.
    """
    if not isinstance(state, StationaryState) or not state.converged:
        raise TypeError(f"follow needs a converged StationaryState; got {as_given(state)}.")
    if sum(asked is not None for asked in (kappa, beta, vary)) != 1:
        raise TypeError("follow needs the range of either kappa or beta, or one to vary.")
    source, basis = state.equation.source, state.equation.basis
    if (
        isinstance(vary, Mapping)
        and isinstance(source, Drift)
        and not {*vary} & {*source.parameters}
    ):
        source = state.model
    name, span = varied(source, vary, beta, kappa)
    own = name == "kappa" or isinstance(source, Transformer)  # kappa is not that of the state
    start = state.kappa if name == "kappa" else value_of(source, name)
    if not span[0] <= start <= span[1]:
        raise ValueError(f"{name} is {start:g} at this state, outside the range {span}.")
    m = state.legendre_moments
    if not basis.symmetric:
        basis = basis_along(source, name, span, basis.noise, state.density.space, AXISYMMETRIC)
        basis, m = basis.finer(state.equation.degree).fitted(m)
    curve = curve_of(source, basis, name, span, None if own else state.kappa, max_step)
    z = np.append(m, curve.coordinate(start))
    begin = curve.point(z, np.append(np.zeros(len(z) - 1), -1.0 if decreasing else 1.0))
    return _states(state, BranchSearch(curve, span, max_points).followed(begin, curve))


def _states(state: StationaryState, branches: Iterator[Branch]) -> Iterator[StationaryState]:
    """Points of a branch as states; BLAS has one thread only while points are computed."""
    while True:
        with one_blas_thread():
            branch = next(branches, None)
        if branch is None:
            return
        yield state_at(branch.curve, branch.points[-1].z, state.axis)


def _asked_range(
    drift: Any, family: bool, kappa: Any, beta: Any, vary: Any
) -> tuple[str, tuple[float, float], float | None]:
    """Name and range of the parameter, and kappa, or None if kappa is not one constant."""
    kind = isinstance(drift, type)
    if beta is not None and (vary is not None or not kind):
        raise ValueError(
            "To follow beta, give the class mf.USA or mf.SA as the drift, without parameters, and "
            "one range of beta; to follow a parameter of a drift or model, give vary={name: range} "
            f"instead of beta; got {as_given(drift)}."
        )
    if kind and beta is None and vary is None:
        raise ValueError(
            f"{drift.__name__} itself is followed in beta, or in the parameter to vary: give "
            f"its range, and one kappa; or give {drift.__name__}(...)."
        )
    asked = varied(drift, vary, beta, kappa)
    if family or (beta is None and vary is None):
        return *asked, None
    if kappa is None and isinstance(drift, Transformer):
        kappa = drift.kappa if drift.steady_noise else None
    if asked[0] == "kappa" or (kappa is None and isinstance(drift, Transformer)):
        return *asked, None
    require("kappa", kappa, f"given, one number > 0, where {asked[0]} varies", kappa is not None)
    return *asked, positive("kappa", kappa)


def varied(
    drift: Any, vary: Any, beta: Any = None, kappa: Any = None
) -> tuple[str, tuple[float, float]]:
    """Name and range of the one parameter in `vary`, after checks.

    Without it `beta` is the range, and without both `kappa`, which is that of the number of a
    function. `drift` is a drift, a class of drifts, a model or a function.
    """
    if callable(drift) and not isinstance(drift, type | Drift | Transformer):
        require("vary", vary, "left out: a function of one number varies that", vary is None)
        return "s", range_of("the range of the family", kappa, -np.inf)
    if beta is None and vary is None:
        return "kappa", range_of("kappa", kappa)
    vary = {"beta": range_of("beta", beta)} if vary is None else vary
    one_range = isinstance(vary, Mapping) and len(vary) == 1
    require("vary", vary, 'one parameter and its range, {"b": (-1, 3)}', one_range, TypeError)
    ((name, span),) = vary.items()
    low, high = range_of(f"vary: {name}", span, 0.0 if name == "kappa" else -np.inf)
    try:
        one = with_parameter(drift, name, low) if isinstance(drift, type) else drift
    except TypeError as error:
        raise TypeError(f"{drift.__name__} is not made from {name} alone: {error}") from error
    known = parameters_of(one)
    if name not in known:
        if name in one.described:
            value = getattr(one, name)
            what = "a whole number" if isinstance(value, int) else "no real number"
            raise ValueError(
                f"{name} of {one!r} is {what} and cannot be followed continuously; parameters that "
                f"can: {', '.join(known) or 'none'}."
            )
        raise ValueError(
            f"{one!r} has no parameter {name!r}; its parameters: {', '.join(known) or 'none'}."
        )
    if name in DIAGRAM_NAMES and name not in ("beta", "kappa"):
        raise ValueError(f"{name!r} is a name that diagrams use: call the parameter otherwise.")
    for end in (low, high):
        with_parameter(drift, name, end)  # raises ValueError where there is no such drift
    return name, (low, high)


def _checked_places(save_at: Any, span: tuple[float, float]) -> np.ndarray:
    """`save_at` as a real array; raises ValueError for values outside `span`."""
    array = real_array("save_at", save_at)
    inside = array.ndim == 1 and bool(((span[0] <= array) & (array <= span[1])).all())
    wanted = f"a sequence of numbers from {span[0]:g} to {span[1]:g}"
    require("save_at", save_at, wanted, inside)
    return array


def stop_of(until: Any, state: Callable[[Any], Any]) -> Callable[[Any], bool]:
    """The function of a branch that says whether it is stopped at its last point.

    `state` gives the argument of a callable `until` for a branch.
    """
    if until is None:
        return lambda branch: False
    if callable(until):
        return lambda branch: bool(until(state(branch)))
    whole_number("until", until)
    return lambda branch: sum(special.kind == "fold" for special in branch.specials) >= until


def _checked_starts(
    starts: Any, span: tuple[float, float], space: Space
) -> Iterator[tuple[float, Density]]:
    """Pairs of a value of the parameter and a density, from `starts`."""
    given = {} if starts is None else starts
    wanted = "values of the parameter with densities, {0.5: density}"
    require("starts", given, wanted, isinstance(given, Mapping), TypeError)
    for value, densities in given.items():
        value = real("starts", value, f"values from {span[0]:g} to {span[1]:g}",
                     lambda number: span[0] <= number <= span[1])  # fmt: skip
        several = not isinstance(densities, Density) and isinstance(densities, Iterable)
        for density in densities if several else [densities]:
            density = getattr(density, "density", density)
            fits = isinstance(density, Density) and comparable(density.space, space)
            require("starts", density, f"densities on {space!r}", fits, TypeError)
            yield value, density


def _checked_observables(
    observables: Any, space: Space, parameter: str
) -> dict[str, Callable[..., Any]]:
    """`observables` as a dict, after checks of names and of values on the uniform density."""
    own = {} if observables is None else observables
    functions = isinstance(own, Mapping) and all(map(callable, own.values()))
    require("observables", own, "names with functions of a density", functions, TypeError)
    for name in own:
        wanted = f"printable text without / and none of {', '.join(DIAGRAM_NAMES)}"
        free = isinstance(name, str) and name not in (*DIAGRAM_NAMES, parameter)
        require("a name of observables", name, wanted, free and is_variable_name(name))
        value = own[name](space.uniform())
        if np.shape(value) or np.asarray(value).dtype.kind not in "fiub":
            raise TypeError(
                f"An observable gives one real number for a density; {name!r} gave {value!r}."
            )
    return dict(own)


class DiagramSearch(NamedTuple):
    """Search for all branches of a diagram; the fields are arguments of `branches`."""

    space: Space
    symmetry: str | np.ndarray
    degrees: Any
    secondary: bool
    stability: bool
    max_points: int
    following: "Following"
    starts: Sequence[tuple[float | None, Density]] = ()
    until: Callable[[Branch], bool] = lambda branch: False

    def diagram(
        self, curve: StationaryCurve, observables: Mapping[str, Callable[..., Any]]
    ) -> Diagram:
        """The diagram of all branches of a curve; what was followed so far after Ctrl-C."""
        (low, high), symmetric = curve.span, curve.basis.symmetric
        onsets: list[Onset] = []
        missing: list[str] = []
        orders = curve.basis.orders if self.stability else 0
        if symmetric:
            curve, onsets, missing = chosen_onsets(curve, self.degrees)
            attracted = curve.at(curve.coordinate(low))[0].most_attracted
            orders = max(LEAST_ORDERS, curve.basis.damped_from(attracted) + 1) if orders else 0
        search = BranchSearch(curve, curve.reach, self.max_points, orders, high,
                        lambda: self.following.stopped, self.until, missing=missing)  # fmt: skip
        interrupted = False
        for branch in self._all(search, onsets):
            what = f"degree {branch.degree}" if branch.degree else "the state without order"
            value = branch.points[-1].value
            if self.following.at(branch, what, value) and not branch.end:
                branch.end, interrupted = "interrupted", True
                break
        if symmetric:
            search.branches.unify()
        if curve.parameter == "kappa":
            search.cut(high)
        branches = search.branches
        if interrupted and all(branch.end != "interrupted" for branch in branches):
            search.missing.append(INTERRUPTED.format(what="a branch above the range"))
        shown = [_uniform(curve), *branches] if symmetric else branches
        if shown[0].end not in ("", "range"):
            place = f"{curve.parameter} = {shown[0].points[-1].value:.6g}"
            why = END_SENTENCES.get(shown[0].end, f"has the end {shown[0].end!r} at {{place}}")
            search.missing.append(f"branch 0 {why.format(place=place)}.")
        data, drift = _table(shown, observables), curve.drift
        named = getattr(drift, "__name__", None) or repr(drift)
        data.attrs = {curve.parameter: list(curve.span), "drift": named}
        group = self.symmetry if isinstance(self.symmetry, str) else "a group by its generators"
        data.attrs |= {"space": repr(self.space), "symmetry": group}
        if search.missing:
            data.attrs["missing"] = search.missing
        if lower := [energy for energy in search.lower if energy < 0]:
            data.attrs["lower"] = lower
        here = [o for o in onsets if o.value < high or any(_begins(b, o) for b in branches)]
        ends = [branch.end for branch in shown[1:]]
        return Diagram(data, _special_points(curve, here, shown), ends, [], drift, self.space,
                       self.symmetry, curve.parameter, curve.kappa, curve.basis.noise,
                       curve.basis.symmetries)  # fmt: skip

    def _all(self, search: BranchSearch, onsets: list[Onset]) -> Iterator[Branch]:
        """Every branch, yielded after each new point.

        If the uniform density is not stationary, branch 0 is that of the disordered state.
        """
        curve, done = search.curve, 0
        low, high = curve.span
        symmetric, in_kappa = curve.basis.symmetric, curve.parameter == "kappa"
        for onset in onsets:
            yield from search.from_uniform(onset)
        if not symmetric:
            start = np.append(disordered_state(curve, low), curve.coordinate(low))
            upwards = np.append(np.zeros(len(start) - 1), 1.0)
            yield from search.followed(curve.point(start, upwards), curve)
            yield from search.from_branches(0, np.inf if self.secondary else 1)
            done = len(search.branches)
        for one, z in self._started(curve):
            if not search.branches.passes(one, z):
                yield from search.through(one, z, int(one.basis.degrees[np.abs(z[:-1]).argmax()]))
        if not symmetric:
            for one, z in states_apart(search, high):
                yield from search.from_edge(one, z, high, 1)
        elif self.degrees is None and in_kappa:
            degrees = [l for l in curve.basis.single if l <= LARGEST_ONSET_DEGREE]
            top = curve.reach[1]
            for onset in curve.onsets(degrees, (top, HIGHEST_ONSET * top)):
                yield from search.from_above(onset)  # its branches may come down into the range
        elif self.degrees is None:
            for value in curve.span:
                yield from self._from_edge(search, value)
        if self.secondary:
            yield from search.from_branches(done)
        if symmetric and in_kappa:
            yield from self._apart(search)

    def _started(self, curve: StationaryCurve) -> Iterator[tuple[StationaryCurve, np.ndarray]]:
        """Curve and z = (m, p) of the state reached from each of `starts`."""
        (low, high), family = curve.span, callable(curve.drift)
        for value, start in self.starts:
            if value is None:
                value = low if family else value_of(curve.drift, curve.parameter)
                value = value if low <= value <= high else low
            equation, kappa = curve.at(curve.coordinate(value))
            model = equation.model_at(kappa)
            state = state_near(model, start, self.symmetry, max_degree=curve.basis.most)
            if not state.converged:
                raise MeanfieldError(
                    f"The start leads to no stationary density at {curve.parameter} = {value:.6g}: "
                    f"{state.message}"
                )
            m = state.legendre_moments
            one = curve.finer(state.equation.degree) if len(m) > len(curve.basis.degrees) else curve
            fitted, m = one.basis.fitted(one.basis.padded(m))
            yield one.among(fitted), np.append(m, curve.coordinate(value))

    def _apart(self, search: BranchSearch) -> Iterator[Branch]:
        """Branches of clustered states at the first onset that lie on no branch so far."""
        curve = search.curve
        equation, _ = curve.at(0.0)
        strongest = equation.multipliers(curve.basis).max(initial=0.0)
        (low, high), onset = curve.span, 1 / strongest if strongest > 0 else np.inf
        if self.following.stopped or not low <= onset <= high:
            return
        done = len(search.branches)
        for state in clustered_states(curve, onset):
            if search.branches.passes(state.curve, state.z) or not (state.lower or state.stable):
                continue
            if self.degrees is None and self.secondary:
                yield from search.through(state.curve, state.z, state.degree)
            elif state.lower or np.isnan(state.free_energy):
                search.missing.append(CLUSTERED_APART.format(onset=onset, degree=state.degree))
                search.lower.append(state.free_energy)
        if self.secondary:
            yield from search.from_branches(done)

    def _from_edge(self, search: BranchSearch, value: float) -> Iterator[Branch]:
        """Branches that start at one end of a range, from the states of a diagram in kappa."""
        equation, kappa = search.curve.at(value)
        span = kappa / EDGE_DIAGRAM_REACH, EDGE_DIAGRAM_REACH * kappa
        curve = curve_of(equation.source, search.curve.basis, "kappa", span, None,
                         search.curve.max_step, search.curve.journal)  # fmt: skip
        across = self.diagram(curve, {})
        warnings = across.data.attrs.get("missing", []) + across.cut_short(kappa)
        place = f"at {search.curve.parameter} = {value:.6g}"
        search.missing += [f"{place}, {warning}" for warning in warnings]
        for _, state in states_on(across, kappa, curve.finer)[1:]:
            curve, m = search.curve.finer(state.equation.degree), state.legendre_moments
            degree = int(state.equation.degrees[np.abs(m).argmax()])
            yield from search.from_edge(curve, np.append(m, value), value, degree)


def _turned(branch: Branch, special: Special, branches: list[Branch]) -> bool:
    """Whether a special point is that of a perturbation turned by a rotation of the model."""
    origins = {id(other.origin) for other in branches}
    begun = [s for s in branch.specials if s.kind == "bifurcation" or id(s) in origins]
    values = [one.point.value for one in begun]
    return bool(branch.curve.basis.rotations) and bool(
        np.isclose(values, special.point.value, rtol=SAME_VALUE, atol=0.0).any()
    )


def _special_points(
    curve: StationaryCurve, onsets: list[Onset], branches: list[Branch]
) -> list[SpecialPoint]:
    """Special points: onsets of the uniform state, then those of every branch.

    Losses of symmetry of the disordered state, branch 0, are bifurcations.
    """
    name, specials = curve.parameter, []
    for value, form, *_ in onsets:
        begun = any(b.parent < 0 and b.degree == form.degree for b in branches[1:])
        status, coefficients = "exact" if begun else "not followed", (form.linear, form.quadratic)
        state = state_at(curve, curve.uniform(value), value=value)
        specials.append(SpecialPoint("bifurcation", name, value, (value, value), status, 0,
                                     form.degree, 0, form.kind, coefficients, state))  # fmt: skip
    for number, branch in enumerate(branches):
        for special in sorted(branch.specials, key=lambda s: (s.place, s.point.value)):
            point, interval, status, kind, order, _ = special
            degree, character = branch.degree, ""
            if number == 0 and kind == "symmetry breaking":
                child = next((b for b in branches if b.origin is special), None)
                if child is None and _turned(branch, special, branches):
                    continue
                kind, status = "bifurcation", "not followed" if child is None else status
                if child is not None:
                    later = child.points[0].value > point.value
                    degree, character = child.degree, "supercritical" if later else "subcritical"
            specials.append(SpecialPoint(kind, name, point.value, interval, status, number, degree,
                                         order, character, NO_COEFFICIENTS,
                                         state_at(branch.curve, point.z)))  # fmt: skip
    return specials


def disordered_state(along: StationaryCurve, value: float) -> np.ndarray:
    """Moments (N,) of the disordered state at a value of the parameter, not uniform.

    It is followed in kappa from strong noise, where it is the only state and the drift is
    negligible.
    """
    basis: Any = along.basis
    equation, kappa = along.at(along.coordinate(value))
    first = STRONGEST_NOISE * kappa
    curve = curve_of(equation.source, basis, "kappa", (first, kappa), None, LONGEST_LOG_STEP)
    z = curve.at_value(np.append(basis.without_drift, 0.0), first)
    last = curve.coordinate(kappa)
    if z is not None:
        point, step = curve.point(z, np.append(np.zeros(len(z) - 1), 1.0)), LONGEST_LOG_STEP
        while point.p < last and (stepped := curve.stepped(point, step)) is not None:
            old, (point, _, step) = point, stepped
        if point.p >= last:
            part = (last - old.p) / (point.p - old.p)
            z = curve.at_value(old.z + part * (point.z - old.z), kappa)
            if z is not None:
                return z[:-1]
    raise MeanfieldError(
        f"The state without order was not found at {along.parameter} = {value:g}: its "
        "branch could not be followed from strong noise. Take a range that begins lower."
    )


def states_apart(
    search: BranchSearch, value: float
) -> Iterator[tuple[StationaryCurve, np.ndarray]]:
    """States that Newton's method reaches from guesses at a value, as (curve, (m, p)).

    Among the guesses are images of states under reflections that the model lacks. States are
    compared with each other, and with those of the branches, before they are resolved.
    """
    basis: Any = search.curve.basis
    p, curves = search.curve.coordinate(value), {basis.kept: search.curve}
    missing = set(range(2**basis.dimension)) - set(basis.symmetries.reflections)
    here = [basis.padded(z[:-1]) for branch in search.branches for z in branch.across(p)]
    guesses = [*here, *basis.guesses(2 * basis.dimension)]
    for branch in search.branches:
        m = basis.padded(branch.points[-1].m)
        guesses += [np.where(basis.all.odd(r), -m, m) for r in sorted(missing)]
    seen: list[np.ndarray] = []
    for number, guess in enumerate(guesses):
        fitted, m = basis.fitted(guess)
        if fitted.kept not in curves:
            curves[fitted.kept] = search.curve.among(fitted)
        curve = curves[fitted.kept]
        z = curve.at_value(np.append(m, p), value)
        if z is None:
            continue
        images = [basis.fingerprint(m) for m in (z[:-1], *basis.equivalents(z[:-1]))]
        if any(np.abs(one - other).max() < EQUAL_MOMENTS for one in images for other in seen):
            continue
        seen.append(images[0])
        equation, kappa = curve.at(p)
        positive = equation.negativity(equation.mean(z[:-1], kappa)) <= NEGATIVE_SHARE
        if number >= len(here) and positive:
            resolved = curve.resolved(z, value)
            if resolved is not None:
                yield resolved


def _uniform(curve: StationaryCurve) -> Branch:
    """Branch of the uniform state over the range, with its growth rates by order."""
    low, high = map(curve.coordinate, curve.span)
    equation, _ = curve.at(low)
    highest = curve.basis.damped_from(equation.most_attracted)
    orders = min(curve.basis.orders, max(LEAST_ORDERS, highest + 1))
    bases = [curve.basis.of_order(order) for order in range(orders)]
    m, branch = np.zeros(len(curve.basis.degrees)), Branch(curve, -1, 0)
    tests = {"transition": equation.free_energy(equation.mean(m, 1.0))}
    for p in np.linspace(low, high, UNIFORM_POINTS):
        equation, kappa = curve.at(p)
        each = [b.eigenvalues * (equation.multipliers(b) - 1 / kappa) for b in bases]
        rates = [np.sort(values)[::-1] for values in each]
        point = CurvePoint(np.append(m, p), np.append(m, 1.0), curve.value(p), tests, rates)
        branch.points.append(point)
    return branch


def _table(branches: list[Branch], observables: Mapping[str, Callable[..., Any]]) -> "xr.Dataset":
    """Dataset of the points of all branches, in order, with the values of observables."""
    import xarray as xr

    rows = [(i, b.curve, point) for i, b in enumerate(branches) for point in b.points]
    finest = max((branch.curve.basis for branch in branches), key=lambda basis: basis.degree)
    moments = np.stack([finest.padded(point.m) for _, _, point in rows])
    counts = np.full((len(rows), max(len(point.rates) for _, _, point in rows)), -1)
    for row, (_, _, point) in zip(counts, rows, strict=True):
        row[: len(point.rates)] = [(values > GROWING_RATE).sum() for values in point.rates]
    first = finest.order_parameter(moments)
    growth = [max((r[0] for r in point.rates if r.size), default=np.nan) for _, _, point in rows]
    arrays: dict[str, Any] = {
        "branch": ("point", [number for number, _, _ in rows]),
        branches[0].curve.parameter: ("point", [point.value for _, _, point in rows]),
        "order_parameter": ("point", first),
        "moments": (("point", "degree"), moments),
        "resolution": ("point", [curve.basis.degree for _, curve, _ in rows]),
        "free_energy": ("point", [point.tests["transition"] for _, _, point in rows]),
        "growth": ("point", growth),
        "unstable": (("point", "order"), counts),
    }
    for name, f in observables.items():
        values = []
        for _, curve, point in rows:
            density = partial(curve.basis.density, curve.basis.padded(point.m), curve.basis.axis)
            find = lambda f=f, density=density: float(f(density()))  # noqa: E731
            values.append(curve.recalled(f"observable {name}", (point.m,), find).item())
        arrays[name] = ("point", values)
    return xr.Dataset(arrays, {"degree": finest.degrees, "order": np.arange(counts.shape[1])})


def _begins(branch: Branch, onset: Onset) -> bool:
    """Whether a branch starts near the uniform state with the degree of an onset."""
    first, sizes = branch.points[0].m, branch.curve.basis.sizes
    near = np.abs(first * sizes[: len(first)]).max() < NEAR_UNIFORM
    return branch.parent < 0 and branch.degree == onset.form.degree and bool(near)


def chosen_onsets(
    curve: StationaryCurve, asked: Any
) -> tuple[StationaryCurve, list[Onset], list[str]]:
    """Curve, onsets in the order of the parameter, and sentences about degrees left out.

    Only degrees with a single function of the symmetry. By default all onsets within the reach of
    the curve, up to degree 12; degrees in `asked` must have an onset below the end of the range.
    For these, the curve is truncated at no less than twice the highest, as normal forms need.
    """
    (low, high), left_out = curve.reach, []
    if asked is not None:
        wanted, high = asked_degrees(asked, curve.basis.most // 2), curve.span[1]
        curve = curve.finer(max(curve.basis.degree, 2 * curve.basis.truncation_of(wanted[-1])))
    onsets = sorted(curve.onsets(curve.basis.single, (low, high)), key=lambda onset: onset.value)
    there = sorted({onset.form.degree for onset in onsets})
    if asked is None:
        wanted = [l for l in there if l <= LARGEST_ONSET_DEGREE]
        here = {onset.form.degree for onset in onsets if onset.value < curve.span[1]}
        higher = sorted(here - set(wanted))
        left_out = [] if not higher else [
            f"degrees above {LARGEST_ONSET_DEGREE} have onsets in the range, {higher[0]} for one, "
            "which are not followed: give the degrees that you want."
        ]  # fmt: skip
    for l in wanted:
        if l not in there:
            below = f"{low:g} < " if low else ""
            raise ValueError(
                f"degrees: the uniform state has no bifurcation of degree {l} for {below}"
                f"{curve.parameter} < {high:g}; those of degree {there} are there."
            )
    return curve, [onset for onset in onsets if onset.form.degree in wanted], left_out


def asked_degrees(asked: Any, most: int) -> list[int]:
    """The degrees in order; raises unless they are different whole numbers from 1 to `most`."""
    wanted = sorted(Many(NATURAL).check("degrees", asked))
    fits = bool(wanted) and wanted[-1] <= most and len(set(wanted)) == len(wanted)
    require("degrees", asked, f"different whole numbers from 1 to {most}, one at least", fits)
    return wanted


class Following(Progress):
    """Progress bar of continuation that shows the parameter value of the last point.

    A context manager; within it, Ctrl-C sets `stopped` instead of raising.

    Parameters
    ----------
    name : str
        Name of the parameter.
    span : (float, float)
        Range of the parameter, shown by the bar; on a logarithmic scale if it is positive.
    enabled : bool, optional
        None shows the bar on a terminal and in a notebook, after one second.
    """

    def __init__(self, name: str, span: tuple[float, float], enabled: bool | None):
        form = f"{{desc}} {span[0]:g} |{{bar}}| {span[1]:g} {{elapsed}}"
        super().__init__("curves", enabled, form=form)
        self._name, self._span, self._number = name, span, 0
        self._curve: Any = None
        self._interruption = self.enter_context(Interruption())

    @property
    def stopped(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._interruption.requested

    def at(self, curve: Any, what: str, value: float) -> bool:
        """Show the description and parameter value of a curve; returns whether to stop."""
        if curve is not self._curve:
            self._curve, self._number = curve, self._number + 1
        low, high = self._span
        places = np.array([low, value, high])
        first, place, last = np.log(np.maximum(places, low)) if low > 0 else places
        text = f"curve {self._number}, {what}, {self._name} = {value:.4g}"
        self.show(float(np.interp(place, (first, last), (0, 1))), text)
        return self.stopped
