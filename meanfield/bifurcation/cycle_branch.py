"""Branches of periodic orbits as one parameter changes, their special points and their ends.

Orbits are followed by pseudo-arclength continuation in (U, T, Omega, p), as stationary states are.
Between two points, folds are zeros of dp along the branch; where another multiplier crosses the
unit circle, the zero of the logarithm of its absolute value is located: a period doubling at -1, a
torus for a complex pair, a branch point at +1.

At a period doubling begins a branch of orbits of twice the period. Its first orbit is the old one,
passed twice, plus a small multiple of the perturbation with the multiplier -1, which changes its
sign from one turn to the next. Where a branch comes back to a Hopf point or a period doubling, it
continues as the orbits shifted by half a period.

The period may become infinite: at a saddle-node on an invariant cycle (SNIC) and at a homoclinic
orbit. With d = |p - p_c|, T = a d^(-1/2) + b at the former, so that dT/dp behaves like d^(-3/2),
and T = -(log d)/s + b at the latter, with dT/dp like 1/d, where s is the unstable rate of its
stationary state; p_c is found from dT/dp at the last two points. The two are distinguished by s T,
where s is the largest real part of the linearised equation at the slowest state of the orbit.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from ..core.calls import checked_call
from ..core.checks import real, require
from ..core.descriptions import describe
from ..core.errors import MeanfieldError
from ..core.forms import Natural, Positive
from ..core.provided import FIGURES
from ..lowlevel.blas import one_blas_thread
from ..models import Transformer
from ..results.files import Contents, OtherModel, Result, dataset_of, stored_model
from ..solving.checkpoint import Keeper
from .bases import Array
from .branches import Following, stop_of, varied
from .continuation import CurvePoint, curve_of
from .cycle import (
    MOST_INTERVALS,
    Cycle,
    Resolution,
    basis_of_cycles,
    cycle_at,
    unstable_count,
)
from .cycle_collocation import Mesh
from .cycle_curve import CoefficientFlow, CycleCurve, Orbit
from .cycle_onset import neutral_pair
from .diagram import END_SENTENCES
from .families import parameters_of, value_of, with_parameter
from .journal import AnswerJournal
from .newton import Iteration
from .normal_forms import zeros

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

FIRST_AMPLITUDE = 0.02  # of the first orbit of a branch, root of the mean square in L^2
LAST_AMPLITUDE = 0.015  # below which a branch that shrinks has come to its origin
EQUAL_HALVES = 1e-6  # amplitude of the difference of both halves of an orbit that is passed twice
DOUBLING_ROUNDING = 1e-3  # distance from -1 of the multiplier of a period doubling
SHOWN_MULTIPLIERS = 8
FROZEN = 2e-3  # |dp/dlog T|, relative to the range, below which the period grows at a constant p
LONGER = 2.0  # factor by which such a period exceeds the least one
HYPERBOLIC = 4.0  # s T of a homoclinic orbit; below, a SNIC
LONGEST_FIRST_STEP = 1.0  # longer ones are halved many times before one is taken
COMPLEX_PAIR, LOCATED = 1e-5, 1e-12
BEHIND = 0.1  # part of a range that is added on the other side of a Hopf point
REACH_BACK = 1e-9  # relative to the range: tolerance at its ends


class CycleSpecial(NamedTuple):
    """A special point on a branch of cycles.

    Attributes
    ----------
    kind : str
        "fold", "period doubling", "torus" or "branch point".
    parameter : str
    value : float
    period : float
    multiplier : complex
        The one on the unit circle.
    cycle : Cycle
    """

    kind: str
    parameter: str
    value: float
    period: float
    multiplier: complex
    cycle: Cycle

    def __repr__(self) -> str:
        return (
            f"CycleSpecial({self.kind}, {self.parameter} = {self.value:.12g}, "
            f"period {self.period:.10g})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class CycleBranch(Result):
    """Periodic orbits along one parameter.

    Attributes
    ----------
    data : xarray.Dataset
        On `point`: the parameter by its name, period, amplitude (root of the mean square of mu
        minus its mean over the period, in L^2), order_parameter_min and order_parameter_max,
        unstable (number of multipliers outside the unit circle), multiplier (on `number` and
        `part`, real and imaginary: the 8 largest ones but for those of shifts), and neutral_error.
    cycles : list of Cycle
        The cycle of each point.
    special_points : list of CycleSpecial
    ends : (str, str)
        Why the branch ends, at its first and last point: "range", "Hopf" (its amplitude vanishes),
        "period doubling" (both halves of its orbits become equal), "SNIC" or "homoclinic" (its
        period becomes infinite), "stopped" (by `until`), "unresolved", "not continued",
        "max_points", "interrupted".
    limits : (float, float)
        Estimates of the parameter at ends that are "Hopf", "period doubling", "SNIC" or
        "homoclinic"; else nan.
    parameter : str
    span : (float, float)
        Range of the parameter.
    """

    made_by = "cycles"
    takes_model = True

    data: "xr.Dataset"
    cycles: list[Cycle]
    special_points: list[CycleSpecial]
    ends: tuple[str, str]
    limits: tuple[float, float]
    parameter: str
    span: tuple[float, float]

    @checked_call()
    def special(self, kind: str) -> list[CycleSpecial]:
        """Special points of a kind."""
        return [special for special in self.special_points if special.kind == kind]

    @property
    def warnings(self) -> list[str]:
        """Sentences that say what is missing or inaccurate."""
        sentences, values = [], self.data[self.parameter].values
        for end, value in zip(self.ends, values[[0, -1]], strict=True):
            if end in END_SENTENCES:
                place = f"{self.parameter} = {value:.8g}"
                sentences.append(f"the branch {END_SENTENCES[end].format(place=place)}.")
        worst = float(self.data.neutral_error.max())
        if worst > 1e-6:
            sentences.append(f"multipliers have errors up to {worst:.1e}: take a finer tolerance.")
        return sentences

    def cycles_at(self, value: float) -> list[Cycle]:
        """Cycles between the points of the branch on both sides of a value, nearest first.

        Interpolation is not exact: give one to `cycle` with the model there.
        """
        value, values = float(value), self.data[self.parameter].values
        inside = (values[:-1] - value) * (values[1:] - value) <= 0
        sides = [(i, i + 1) for i in np.flatnonzero(inside)]
        return [self.cycles[min(pair, key=lambda i: abs(values[i] - value))] for pair in sides]

    @classmethod
    def made_of(cls, contents: Contents) -> Self:
        """The branch with the contents of a file."""
        data, header = dataset_of(contents)
        branch = cls(data, **header)
        if contents.model is None:
            return branch
        values = data[branch.parameter].values.tolist()
        pairs = zip(branch.cycles, values, strict=True)
        cycles = [branch._given(contents, one, value) for one, value in pairs]
        special_points = [
            special._replace(cycle=branch._given(contents, special.cycle, special.value))
            for special in branch.special_points
        ]
        cycles[-1].check_functions()
        return replace(branch, cycles=cycles, special_points=special_points)

    def _given(self, contents: Contents, cycle: Cycle, value: float) -> Cycle:
        """A cycle of a file with the model that `load` got, at a value of the parameter."""
        given, name = contents.model, self.parameter
        single = isinstance(given, Transformer)
        wanted = f"a model with the parameter {name}, or a function of it, as cycles got it"
        fits = name in parameters_of(given) if single else callable(given)
        require("model", given, wanted, fits, OtherModel)
        long: dict[str, Any] = {}
        header = {"model": describe(cycle.model, long)}
        model = with_parameter(given, name, value)
        here, _ = stored_model(replace(contents, header=header, long=long, model=model))
        return replace(cycle, model=here)

    def plot(self, kind: str | None = None, **options: Any) -> "Figure":
        """The branch: extremes of the order parameter, the period and multipliers."""
        return FIGURES["cycle_branch"](self, **{"y": kind, **options})

    def __repr__(self) -> str:
        values, periods = self.data[self.parameter].values, self.data.period.values
        lines = [
            f"CycleBranch: {len(values)} cycles",
            f"  {self.parameter}  {values[0]:.10g} to {values[-1]:.10g}",
            f"  period  {periods[0]:.10g} to {periods[-1]:.10g}",
        ]
        for side, end, limit in zip(("begins", "ends"), self.ends, self.limits, strict=True):
            at = "" if np.isnan(limit) else f" at {self.parameter} = {limit:.12g}"
            lines.append(f"  {side}  {end}{at}")
        lines += [f"  {special!r}" for special in self.special_points]
        return "\n".join([*lines, *(f"  <-- {warning}" for warning in self.warnings)])


class _Point(NamedTuple):
    """A point of a branch with its curve."""

    curve: CycleCurve
    point: CurvePoint

    @property
    def orbit(self) -> Orbit:
        return self.curve.orbit(self.point.z)

    @property
    def amplitude(self) -> float:
        return self.curve.mesh.amplitude(self.orbit.stages)

    @property
    def odd(self) -> Array:
        """Half the difference from the states half a period later, at ends of intervals, (n, N)."""
        mesh, stages = self.curve.mesh, self.orbit.stages
        return (stages[:, -1] - mesh.at(stages, mesh.ends[1:] + 0.5)) / 2

    @property
    def odd_amplitude(self) -> float:
        return float(np.sqrt(self.curve.mesh.weights @ (self.odd**2).sum(1)))


class _Special(NamedTuple):
    """A special point of a branch: its kind, the multiplier on the unit circle, and the orbit."""

    kind: str
    multiplier: complex
    place: _Point


class _Follower:
    """Continuation of cycles from one point in one direction; `end` and `limit` after it.

    Attributes
    ----------
    last : _Point
        Last point of the branch.
    specials : list of _Special
    """

    last: _Point

    def __init__(
        self, span: tuple[float, float], resolution: Resolution, most: int,
        stopped: Callable[[_Point], bool] = lambda here: False,
        until: Callable[["_Follower"], bool] = lambda branch: False,
    ):  # fmt: skip
        self.span, self.resolution, self.most = span, resolution, most
        self.stopped, self.until = stopped, until
        self.end, self.limit = "max_points", float("nan")
        self.specials: list[_Special] = []

    def points(self, here: _Point, step: float) -> Iterator[_Point]:
        """Points of the branch after `here`."""
        least, last = here.orbit.period, here
        for _ in range(self.most):
            if self.stopped(here):
                self.end = "interrupted"
                return
            stepped = here.curve.stepped(here.point, step)
            if stepped is None:
                self.end = "not continued"
                return
            new, used, step = stepped
            value = new.value
            if not self._inside(value):
                yield from self._at_end(here, new)
                return
            there = _Point(here.curve, new)
            turned = float((here.odd * there.odd).sum()) < 0 and here.odd_amplitude > EQUAL_HALVES
            if turned and here.odd_amplitude > LAST_AMPLITUDE:  # beyond the origin
                step = used / 2
                continue
            if turned or there.amplitude < min(LAST_AMPLITUDE, here.amplitude):
                self._to_origin(*((last, here) if turned else (here, there)))
                return
            self._special(here, new, used)
            better = self._resolved(there)
            if better is None:
                self.end = "unresolved"
                return
            last, here = here, better
            self.last = here
            yield here
            if self.until(self):
                self.end = "stopped"
                return
            least = min(least, here.orbit.period)
            if self._infinite(last, here, least):
                return

    def _inside(self, value: float) -> bool:
        low, high = self.span
        edge = REACH_BACK * (high - low)
        return low - edge <= value <= high + edge

    def _at_end(self, here: _Point, new: CurvePoint) -> Iterator[_Point]:
        """The point at the end of the range."""
        low, high = self.span
        curve, value = here.curve, high if new.value > high else low
        z = curve.at_value(new.z, value)
        self.end = "range" if z is not None else "not continued"
        if z is not None:
            end = _Point(curve, curve.point(z, here.point.tangent))
            self._special(here, end.point, curve.distance(here.point, end.point))
            yield end

    def _resolved(self, here: _Point) -> _Point | None:
        """The point on a mesh that resolves it; None if there is none."""
        curve, point = here
        better = self.resolution.improved(curve, point.z)
        if better is not None:
            new, orbit = better
            tangent = curve.orbit(point.tangent)
            stages = new.motion.padded(curve.mesh.at(tangent.stages, new.mesh.phases))
            direction = tangent._replace(stages=stages).z
            row = new.lengths * direction
            z = new.solved(orbit.z, row, float(row @ orbit.z))
            if z is None:
                return None
            curve, point = new, new.point(z, direction)
        fresh = CycleCurve(curve.motion, curve.mesh, curve.orbit(point.z), curve.max_step)
        return _Point(fresh, point)

    def _to_origin(self, *pair: _Point) -> None:
        """End at the parameter where the squared amplitude, by two points, vanishes."""
        self.end = "Hopf" if pair[1].amplitude < 2 * LAST_AMPLITUDE else "period doubling"
        sizes = [one.amplitude if self.end == "Hopf" else one.odd_amplitude for one in pair]
        squares, values = np.square(sizes), [one.point.value for one in pair]
        slope = (values[1] - values[0]) / (squares[1] - squares[0])
        self.limit = float(values[1] - slope * squares[1])

    def _infinite(self, last: _Point, here: _Point, least: float) -> bool:
        """Whether the period grows at a parameter that hardly changes."""
        orbit, tangent = here.orbit, here.curve.orbit(here.point.tangent)
        growth = tangent.period / orbit.period
        if orbit.period < LONGER * least or growth <= 0:
            return False
        slope = tangent.p / growth
        coordinates = [here.curve.coordinate(value) for value in self.span]
        if abs(slope) > FROZEN * (coordinates[1] - coordinates[0]):
            return False
        motion, states = here.curve.motion, orbit.stages.reshape(-1, orbit.stages.shape[-1])
        speeds = [np.linalg.norm(motion.rate(c, orbit.p)) for c in states]
        slowest = states[int(np.argmin(speeds))]
        rate = float(np.linalg.eigvals(motion.jacobian(slowest, orbit.p)).real.max())
        homoclinic = rate * orbit.period > HYPERBOLIC
        before = last.curve.orbit(last.point.tangent)
        ratio = abs(before.period / before.p / (tangent.period / tangent.p))
        ratio = ratio if homoclinic else ratio ** (2 / 3)
        self.end = "homoclinic" if homoclinic else "SNIC"
        self.limit = here.curve.value(orbit.p + ratio / (1 - ratio) * (orbit.p - last.orbit.p))
        return True

    def _special(self, here: _Point, new: CurvePoint, used: float) -> None:
        """Add the special points between two points of one curve."""
        curve, point = here

        def located(test: Callable[[CurvePoint], float]) -> CurvePoint | None:
            def at(step: float) -> float:
                ahead = curve.ahead(point, step)
                return np.nan if ahead is None else test(ahead)

            ends, values = np.array([0.0, used]), np.array([test(point), test(new)])
            steps = zeros(at, ends, values, LOCATED)
            return next((curve.ahead(point, step) for step in steps), None)

        fold = point.tangent[-1] * new.tangent[-1] < 0
        if fold and (place := located(lambda one: float(one.tangent[-1]))) is not None:
            self.specials.append(_Special("fold", 1.0 + 0j, _Point(curve, place)))
        counts = [unstable_count(curve.multipliers(one)[1]) for one in (point, new)]
        if abs(counts[1] - counts[0]) <= int(fold):
            return
        index = min(counts)

        def excess(one: CurvePoint) -> float:
            return float(np.log(np.abs(curve.multipliers(one)[1][index])))

        if (place := located(excess)) is not None:
            multiplier = complex(curve.multipliers(place)[1][index])
            kind = "torus" if abs(multiplier.imag) > COMPLEX_PAIR else "branch point"
            kind = "period doubling" if kind != "torus" and multiplier.real < 0 else kind
            self.specials.append(_Special(kind, multiplier, _Point(curve, place)))


@checked_call("source", "start", "kappa", "vary", "until")
def cycles(
    source: Transformer | Callable[[float], Transformer],
    start: Any,
    kappa: tuple[float, float] | None = None,
    *,
    vary: Mapping[str, tuple[float, float]] | None = None,
    at: float | None = None,
    tolerance: Positive = 1e-9,
    max_degree: Natural | None = None,
    max_intervals: Natural = MOST_INTERVALS,
    max_step: Positive = 0.3,
    max_points: Natural = 200,
    until: Natural | Callable[[Cycle], bool] | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 60.0,
    resume: bool = False,
    progress: bool | None = None,
) -> CycleBranch:
    """Follow periodic orbits as one parameter changes, through folds.

    Parameters
    ----------
    source : Transformer or callable
        A model, or a function s -> `Transformer`, to follow s.
    start : Cycle, SpecialPoint or CycleSpecial
        A converged cycle; a Hopf point of `branches` in the same parameter; or a period doubling of
        `cycles` in it, from which cycles of twice the period are followed.
    kappa : (float, float), optional
        The range of kappa, or of s of a function.
    vary : mapping of str to (float, float), optional
        Name and range of another parameter of the model: see `branches`.
    at : float, optional
        Parameter value of `start`; by default that of its model, or of the special point. Required
        for a cycle of a function s -> model.
    tolerance, max_degree, max_intervals
        As for `cycle`.
    max_step : float
        Longest step: the norm of the changes of the density, in L^2 and averaged over the period,
        of log T, and of the parameter, which is log kappa for kappa.
    max_points : int
        Largest number of points in each direction.
    until : int or callable, optional
        Where the branch is not followed further, in each direction: after so many folds, or at the
        first point at which the function Cycle -> bool is true.
    checkpoint, checkpoint_every, resume, progress
        As for `branches`.

    Returns
    -------
    CycleBranch
        A branch from a cycle has both directions; a branch from a special point has the direction
        in which its orbits exist.

    Raises
    ------
    TypeError, ValueError
        For arguments out of their range, and starts that are no cycle, or no Hopf point, of the
        model.
    MeanfieldError
        If no cycle is found near the special point.
    CheckpointError
        If the checkpoint is damaged or belongs to another branch.
    """
    single = isinstance(source, Transformer)
    wanted = "a Transformer, or a function of one number that gives one"
    require("source", source, wanted, single or callable(source), TypeError)
    name, span = varied(source, vary, kappa=kappa)
    kind = "" if isinstance(start, Cycle) else str(getattr(start, "kind", None))
    wanted = "a Cycle, a Hopf point of `branches` or a period doubling of `cycles`"
    require("start", start, wanted, kind in ("", *ORIGINS), TypeError)
    if at is None and kind:
        at = start.value
    elif at is None and single:
        at = value_of(start.model, name)
    wanted = f"a value of {name} from {span[0]:g} to {span[1]:g}, that of the start"
    at = real("at", at, wanted, lambda number: span[0] <= number <= span[1])
    keeper = Keeper(checkpoint, checkpoint_every, resume)
    known = start.cycle if isinstance(start, CycleSpecial) else start
    state = (
        known.data.coefficients.values if isinstance(known, Cycle) else known.state.legendre_moments
    )
    identity = {
        **{"source": source, "parameter": name, "range": span, "at": at, "start": state},
        **{"tolerance": tolerance, "degree": max_degree, "intervals": max_intervals},
        **{"max_step": max_step},
    }
    with one_blas_thread(), keeper, AnswerJournal(keeper, identity) as journal:
        models = [with_parameter(source, name, value) for value in span]
        space = known.space if isinstance(known, Cycle) else known.state.density.space
        basis = basis_of_cycles(models, space)
        motion = CoefficientFlow(curve_of(source, basis, name, span, None, max_step, journal))
        resolution = Resolution(tolerance, basis.most_for(max_degree, basis.most), max_intervals)
        first = ORIGINS.get(kind, _near_cycle)(motion, start, at, resolution, max_step)
        with Following(name, span, progress) as following:

            def stopped(here: _Point) -> bool:
                return following.at(motion, "cycles", here.point.value)

            def cycle_of(row: _Point) -> Cycle:
                return _cycle_of(row, source, name, resolution)

            stop = stop_of(until, lambda branch: cycle_of(branch.last))
            follower = partial(_Follower, span, resolution, max_points, stopped, stop)
            return _followed(first, (kind, at) if kind else None, follower, cycle_of, name)


def _followed(
    first: _Point, origin: tuple[str, float] | None, followers: Callable[[], _Follower],
    cycle_of: Callable[[_Point], Cycle], name: str,
) -> CycleBranch:  # fmt: skip
    """The branch through a point; from an origin, (kind, value), in one direction only."""

    def one_way(sign: float) -> tuple[list[_Point], _Follower]:
        begin = _Point(first.curve, first.point._replace(tangent=sign * first.point.tangent))
        follower, step = followers(), min(first.curve.max_step, LONGEST_FIRST_STEP) / 4
        return list(follower.points(begin, step)), follower

    ahead, follower = one_way(1.0)
    rows, specials = [first, *ahead], follower.specials
    if origin is None:
        behind, other = one_way(-1.0)
        origin = other.end, other.limit
        rows = [*reversed(behind), *rows]
        specials = [*reversed(other.specials), *specials]
    made = [cycle_of(row) for row in rows]
    found = [
        CycleSpecial(kind, name, row.point.value, row.orbit.period, multiplier, cycle_of(row))
        for kind, multiplier, row in specials
    ]
    (first_end, first_limit), last_limit = origin, float(follower.limit)
    return CycleBranch(_table(rows, made, name), made, found, (first_end, follower.end),
                       (float(first_limit), last_limit), name, follower.span)  # fmt: skip


def _cycle_of(row: _Point, source: Any, name: str, resolution: Resolution) -> Cycle:
    """The cycle of a point of a branch."""
    model = with_parameter(source, name, row.point.value)
    row_of_p = np.append(np.zeros(len(row.point.z) - 1), 1.0)
    residual, _ = row.curve.in_plane(row.point.z, row_of_p, row.orbit.p)
    done = Iteration(row.point.z, "converged", [float(np.abs(residual).max())])
    return cycle_at(model, row.curve, row.point, done, resolution.tolerance)


def _table(rows: list[_Point], made: list[Cycle], name: str) -> "xr.Dataset":
    """Dataset of the points of a branch."""
    import xarray as xr

    least = min(SHOWN_MULTIPLIERS, *(int((~one.neutral).sum()) for one in made))
    shown = np.array([one.multipliers[~one.neutral][:least] for one in made])
    orders = []
    for row in rows:
        m = row.orbit.stages / row.curve.motion.basis.sizes
        values = [[float(row.curve.motion.basis.order_parameter(c)) for c in part] for part in m]
        orders.append((np.min(values), np.max(values)))
    lowest, highest = np.array(orders).T
    return xr.Dataset(
        {
            name: ("point", [row.point.value for row in rows]),
            "period": ("point", [row.orbit.period for row in rows]),
            "amplitude": ("point", [row.amplitude for row in rows]),
            "order_parameter_min": ("point", lowest),
            "order_parameter_max": ("point", highest),
            "unstable": ("point", [one.unstable for one in made]),
            "neutral_error": ("point", [one.neutral_error for one in made]),
            "multiplier": (("point", "number", "part"), np.stack([shown.real, shown.imag], -1)),
        }
    )


def _near_cycle(
    motion: CoefficientFlow, start: Cycle, at: float, resolution: Resolution, max_step: float
) -> _Point:
    """The point of a cycle."""
    stages = start.data.coefficients.values
    if stages.shape[-1] > len(motion.basis.degrees):
        motion = CoefficientFlow(motion.states.finer(start.space.degree))
    stages = motion.padded(stages)
    orbit = Orbit(stages, start.period, np.array(start.speeds), motion.states.coordinate(at))
    curve = CycleCurve(motion, Mesh(start.data.end.values), orbit, max_step)
    curve, point, iteration = resolution.found(curve, orbit)
    if point is None:
        raise ValueError(
            f"start is no cycle at {motion.states.parameter} = {at:.10g}: Newton's method ended at "
            f"the residual {iteration.residuals[-1]:.1e} ({iteration.status}); check `at`."
        )
    return _Point(curve, point)


def _near_hopf(
    motion: CoefficientFlow, start: Any, at: float, resolution: Resolution, max_step: float
) -> _Point:
    """The first point of the branch that leaves a Hopf point, with a small amplitude."""
    motion, c, p, rate, v = neutral_pair(motion, start, at)
    v = v * np.sqrt(2) / np.linalg.norm(v)
    mesh = Mesh(np.linspace(0, 1, 9))
    waves = (v * np.exp(2j * np.pi * mesh.phases)[..., None]).real
    none = np.zeros(len(motion.rotations))
    orbit = Orbit(np.broadcast_to(c, waves.shape), 2 * np.pi / rate.imag, none, p)
    return _departed(CycleCurve(motion, mesh, orbit, max_step), waves, resolution)


def _near_doubling(
    motion: CoefficientFlow, start: Any, at: float, resolution: Resolution, max_step: float
) -> _Point:
    """The first point of the branch of twice the period at a period doubling."""
    return _doubled(_near_cycle(motion, start.cycle, at, resolution, max_step), resolution)


def _doubled(here: _Point, resolution: Resolution) -> _Point:
    """The first orbit of twice the period at a period doubling."""
    curve, orbit, z = here.curve, here.orbit, here.point.z
    values, vectors = np.linalg.eig(here.point.rates[0])
    nearest = np.abs(values + 1).argmin()
    if abs(values[nearest] + 1) > DOUBLING_ROUNDING:
        raise MeanfieldError(
            f"At {here.point.value:.10g} no period doubles: the multiplier nearest to -1 is "
            f"{values[nearest]:.6g}; check `at`."
        )
    _, derivative = curve.in_plane(z, np.append(np.zeros(len(z) - 1), 1.0), orbit.p)
    waves = derivative().carried(vectors[:, nearest].real)
    ends, mesh = curve.mesh.ends / 2, curve.mesh
    waves = waves / np.sqrt(mesh.weights @ (waves[:, -1] ** 2).sum(axis=1))
    twice = orbit._replace(stages=np.tile(orbit.stages, (2, 1, 1)), period=2 * orbit.period)
    doubled = CycleCurve(curve.motion, Mesh(np.append(ends, 0.5 + ends[1:])), twice, curve.max_step)
    return _departed(doubled, np.concatenate([waves, -waves]), resolution)


def _departed(curve: CycleCurve, waves: Array, resolution: Resolution) -> _Point:
    """The first orbit of a branch that leaves the reference of a curve along waves (n, k, N)."""
    orbit = curve.reference
    near = orbit._replace(stages=orbit.stages + FIRST_AMPLITUDE * waves)
    curve = CycleCurve(curve.motion, curve.mesh, near, curve.max_step)
    direction = near._replace(stages=waves, period=0.0, speeds=0 * near.speeds, p=0.0).z
    row = curve.lengths * direction
    z = curve.solved(near.z, row, float(row @ near.z))
    begin = None if z is None else _Point(curve, curve.point(z, direction))
    better = begin and _Follower((near.p, near.p), resolution, 1)._resolved(begin)
    if better is None:
        name, value = curve.motion.states.parameter, curve.value(near.p)
        raise MeanfieldError(
            f"No cycle of the amplitude {FIRST_AMPLITUDE:g} was found at {name} = {value:.10g}"
            + ("." if begin is None else ", or it is not resolved: raise max_degree.")
        )
    return better


ORIGINS = {"Hopf": _near_hopf, "period doubling": _near_doubling}


def cycle_from(
    model: Transformer, start: Any, tolerance: float, degree: int | None, intervals: int
) -> Cycle:
    """The cycle of a model, followed from a special point in one of its parameters."""
    name = start.parameter
    wanted = (
        "a Hopf point of `branches`, or a period doubling of `cycles`, in a parameter of the model"
    )
    known = start.kind in ORIGINS and name in parameters_of(model)
    require("guess", start, wanted, known)
    value, at = value_of(model, name), start.value
    behind = at - BEHIND * (value - at)
    behind = behind if behind * at > 0 or at == 0 else at / 2  # parameters keep their sign
    span = (min(value, behind), max(value, behind))
    branch = cycles(model, start, vary={name: span}, tolerance=tolerance, max_degree=degree,
                    max_intervals=intervals)  # fmt: skip
    last = float(branch.data[name].values[-1])
    if branch.ends[1] != "range" or abs(last - value) > REACH_BACK * abs(value - at):
        raise MeanfieldError(
            f"Cycles from the {start.kind} {name} = {at:.8g} do not reach the model's {value:.8g}: "
            f"they end at {last:.8g} ({branch.ends[1]}). See mf.cycles."
        )
    return branch.cycles[-1]
