"""Periodic orbits of densities, and how they are found from a Hopf point or from a run."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..core.cached import cached_property
from ..core.calls import checked_call
from ..core.checks import finite, require, whole_number
from ..core.errors import MeanfieldError
from ..core.forms import Natural, Positive
from ..core.provided import FIGURES
from ..lowlevel.blas import one_blas_thread
from ..models import Transformer
from ..results.files import Contents, Result, check_functions
from ..results.solution import Solution
from ..solving.solve import solve
from ..spaces import Space, Zonal
from ..spaces.density import Density
from .bases import Array
from .continuation import CurvePoint, curve_of
from .cycle_collocation import Mesh
from .cycle_curve import CoefficientFlow, CycleCurve, Orbit
from .families import least_degree, symmetries_of
from .newton import Iteration
from .reflections import Reflected, Symmetries, reflected_on
from .stationary import STATIONARY, check_model

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

FIRST_MESH, FEWEST_INTERVALS, MOST_INTERVALS = 16, 6, 400
MOST_MESHES = 8  # meshes tried for one orbit
MARGIN = 0.3  # of the tolerance, at which a new mesh aims
TAIL = 0.1  # of the tolerance: largest last coefficient of a resolved orbit
LEAST_FACTOR, MOST_FACTOR = 1.15, 2.0  # by which the degree is raised
SHOWN = 1e-9  # smaller multipliers are not printed
INACCURATE = 1e-6  # error of the multiplier 1 of shifts in time that is reported
NEUTRAL_ROUNDING = 1e-7  # stable: no other multiplier exceeds 1 by more
RUN_RTOL, RUN_SAMPLES, RUN_STEPS = 1e-9, 400, 500_000  # of a run in which the period is sought
RUN_TIME, MOST_RUNS = 25.0, 14  # length of the first run; each is longer by a half
LEAST_PERIOD = 1e-100  # of a guess
RETURN_DISTANCE = 0.1  # relative to the largest distance
AMPLITUDE_AT_REST = 1e-6  # largest of an orbit that does not move
AS_ACCURATE = 10.0  # of the tolerance: difference of two passages of the same orbit
NOT_MOVING = (
    "Newton's method ended at one density that does not move, with the period {:.3g}: no cycle. "
    "Give another estimate of the period, or none: the model is then solved until a density comes "
    "back. Raise max_intervals if that is less than 10. A model may have no cycle at all."
)
NO_CYCLE = (
    "No cycle was found: Newton's method ended at the residual {residual:.1e} ({status}). Start "
    "nearer to it, for instance from the end of a longer run, or follow cycles from a Hopf point."
)


@dataclass(frozen=True, eq=False, repr=False)
class Cycle(Result):
    """A periodic orbit of densities, mu(t + T) = mu(t) with the least such T, and its stability.

    Attributes
    ----------
    data : xarray.Dataset
        end (on `edge`): phases at which the intervals of the mesh end, from 0 to 1; coefficients
        (on `interval`, `point` and `harmonic`): real orthonormal coefficients at the Radau points
        of each interval; multiplier (on `number` and `part`, real and imaginary), and whether each
        is `neutral`.
    model : Transformer
    space : Space
        Space of the densities.
    period : float
    speeds : list of float
        Angular velocities, one for each rotation under which the model is invariant: densities
        are those in a frame that rotates with these. 0 for standing waves.
    status : str
        "converged", or how Newton's method ended.
    residual : float
        Largest residual of the collocation equations.
    error : float
        Estimated error of the densities between collocation points, in L^2.
    tail : float
        Largest coefficient among the last eighth of the degrees.
    neutral_error : float
        |M f - f|/|f| for the monodromy matrix M and f = dmu/dt: 0 but for errors of the cycle.
    tolerance : float
        Asked bound of `error`.
    """

    made_by = "cycle"
    takes_model = True

    data: "xr.Dataset"
    model: Transformer
    space: Space
    period: float
    speeds: list[float]
    status: str
    residual: float
    error: float
    tail: float
    neutral_error: float
    tolerance: float

    @property
    def converged(self) -> bool:
        return self.status == "converged"

    @property
    def multipliers(self) -> Array:
        """Floquet multipliers, (N,), in decreasing absolute value; among them 1, of time."""
        real, imaginary = self.data.multiplier.values.T
        return real + 1j * imaginary

    @property
    def neutral(self) -> NDArray[np.bool_]:
        """Mask (N,) of the multipliers of shifts in time and of rotations."""
        return self.data.neutral.values

    @property
    def unstable(self) -> int:
        """Number of multipliers outside the unit circle."""
        return unstable_count(self.multipliers[~self.neutral])

    @property
    def stable(self) -> bool:
        """Whether perturbations decay, apart from shifts in time and rotations."""
        return self.converged and self.unstable == 0

    @property
    def warnings(self) -> list[str]:
        """Sentences that say where the cycle is not accurate."""
        sentences = []
        if not self.converged:
            sentences.append(NO_CYCLE.format(residual=self.residual, status=self.status))
        if self.error > self.tolerance:
            count = self.data.sizes["interval"]
            sentences.append(
                f"{count} intervals do not resolve the cycle in time: its error is about "
                f"{self.error:.1e}, asked {self.tolerance:g}; raise max_intervals."
            )
        if self.tail > TAIL * self.tolerance:
            sentences.append(
                f"Degree {self.space.degree} does not resolve the cycle: its last coefficients are "
                f"{self.tail:.1e}; raise max_degree."
            )
        if self.neutral_error > INACCURATE:
            sentences.append(
                f"The multiplier of shifts in time, 1, has the error {self.neutral_error:.1e}: "
                "the other ones are as inaccurate; take a smaller tolerance."
            )
        return sentences

    @cached_property
    def _basis(self) -> Reflected:
        kind = reflected_on(self.space)
        return kind(self.space, self.model.noise, Symmetries((0,)))

    @property
    def mesh(self) -> Mesh:
        """Intervals in phase."""
        return Mesh(self.data.end.values)

    def coefficients(self, phase: Any) -> Array:
        """Real orthonormal coefficients (..., N) at phases (...); 1 is a period."""
        return self.mesh.at(self.data.coefficients.values, np.asarray(phase, dtype=float))

    def at(self, phase: float) -> Density:
        """The density at a phase, of period 1: at the time `phase` times `period`."""
        coefficients = self.coefficients(finite("phase", phase))
        return self._basis.density(coefficients / self._basis.sizes)

    @checked_call("observable")
    def extremes(self, observable: Callable[[Any], float]) -> tuple[float, float]:
        """Least and largest value over the cycle of a function density -> number."""
        from scipy.optimize import minimize_scalar

        phases = np.linspace(0, 1, 16 * self.data.sizes["interval"], endpoint=False)
        values = np.array([observable(self.at(phase)) for phase in phases])
        ends = []
        for sign in (1.0, -1.0):

            def signed(phase: float, sign: float = sign) -> float:
                return sign * float(observable(self.at(phase)))

            best, step = phases[(sign * values).argmin()], phases[1]
            bounds, options = (best - step, best + step), {"xatol": 1e-7}
            lowest = minimize_scalar(signed, bounds=bounds, method="bounded", options=options)
            ends.append(sign * float(min((sign * values).min(), lowest.fun)))
        return ends[0], ends[1]

    def run(self, count: int = 101) -> Solution:
        """One period as a `Solution` with `count` states, for its figures and films."""
        t = np.linspace(0.0, self.period, whole_number("count", count, most=10**5))
        states = tuple(self.at(float(phase)) for phase in t / self.period)
        return Solution(t, states, self.model, "finished", "One period of a cycle.", {})

    def plot(self, kind: str | None = None, **options: Any) -> "Figure":
        """The cycle and its multipliers; with a kind, that figure of a run over one period."""
        if kind is not None:
            return self.run().plot(kind, **options)
        return FIGURES["cycle"](self, **options)

    def animate(self, path: str | Path, **options: Any) -> Path:
        """A film of one period: see `Solution.animate`."""
        return self.run().animate(path, **options)

    @classmethod
    def made_of(cls, contents: Contents) -> Self:
        """The cycle with the contents of a file."""
        found = super().made_of(contents)
        if contents.model is not None:
            found.check_functions()
        return found

    def check_functions(self) -> None:
        """Raise OtherModel unless the collocation equations hold under the model.

        The file does not say in which planes the frame turns with the speeds: the best ones count.
        """
        model, stages = self.model, self.data.coefficients.values
        flow = flow_of(model, self._basis)
        p, states = flow.states.coordinate(float(model.kappa)), stages.reshape(-1, stages.shape[-1])
        rates, residuals = np.array([flow.rate(c, p) for c in states]), []
        for generators in combinations(self._basis.all.rotations, len(self.speeds)):
            turned = [
                speed * (A @ states.T).T for speed, A in zip(self.speeds, generators, strict=True)
            ]
            in_frame = self.period * (rates - np.sum(turned, axis=0)).reshape(stages.shape)
            residuals.append(np.abs(self.mesh.residual(stages, in_frame)).max())
        quantity = "the residual of a cycle, to rounding,"
        check_functions(quantity, float(min(residuals)), 0.0, STATIONARY)

    def __repr__(self) -> str:
        kind = "stable" if self.stable else f"unstable in {self.unstable} directions"
        kind = kind if self.converged else "unknown"
        others = self.multipliers[~self.neutral][:3]
        others = others[np.abs(others) > SHOWN]
        shown = ", ".join(f"{value.real:.6g}" if abs(value.imag) < 1e-12 else f"{value:.6g}"
                          for value in others)  # fmt: skip
        lines = [
            f"Cycle of {self.model!r}",
            f"  period       {self.period:.12g}",
            f"  stability    {kind}",
            f"  multipliers  1, {shown}, ...",
            f"  mesh         {self.data.sizes['interval']} intervals, degree {self.space.degree}",
            f"  status       {self.status}, residual {self.residual:.1e}",
        ]
        if any(self.speeds):
            lines.insert(2, f"  speeds       {', '.join(f'{v:.10g}' for v in self.speeds)}")
        return "\n".join([*lines, *(f"  <-- {warning}" for warning in self.warnings)])


def unstable_count(multipliers: Array) -> int:
    """Number of multipliers outside the unit circle."""
    return int((np.abs(multipliers) > 1 + NEUTRAL_ROUNDING).sum())


@checked_call()
def cycle(
    model: Transformer,
    guess: Solution | Density | Any,
    period: Positive | None = None,
    *,
    tolerance: Positive = 1e-9,
    max_degree: Natural | None = None,
    max_intervals: Natural = MOST_INTERVALS,
) -> Cycle:
    """A periodic orbit of densities under a model, and its Floquet multipliers.

    Parameters
    ----------
    model : Transformer
        A single model that moves a `Density` or `Indexed`, with noise, and constant in time.
    guess : Solution, Density, SpecialPoint or CycleSpecial
        The end of a run, or a density: the model is solved from there until the density returns
        close to an earlier one. Or a Hopf point of `branches` or a period doubling of `cycles` in a
        parameter of the model: cycles are followed from there to the value in the model.
    period : float, optional
        Estimate of the period, instead of waiting for a return. The result has the least period
        of its orbit, also where this estimate is a multiple of it.
    tolerance : float
        Bound of the estimated error of the densities at all times, in L^2; the mesh in time and the
        degree of the densities are chosen for it.
    max_degree, max_intervals : int
        Highest degree of the densities, by default 256 on the circle and 40 on S^2, and largest
        number of intervals in time.

    Returns
    -------
    Cycle
        See `Cycle.warnings`: it need not have converged or be resolved.

    Raises
    ------
    TypeError, ValueError
        For wrong arguments, ensembles, and models without noise.
    MeanfieldError
        If the run comes to rest, or does not return to an earlier state; if Newton's method ends at
        a stationary density; if cycles from the special point do not reach the parameter value of
        the model; for models that change with time.

    Notes
    -----
    Orthogonal collocation at 10 Radau points in each interval, of order 19 at the ends of
    intervals, with equal estimated errors in all of them; Newton's method with exact derivatives.
    An orbit may close up to a rotation under which the model is invariant: see `Cycle.speeds`.
    A step of Newton's method costs about 0.2 s for 48 coefficients and 27 intervals, and grows like
    the third power of the number of coefficients.

    References
    ----------
    Ascher, Mattheij and Russell, Numerical Solution of Boundary Value Problems (1995); Fairgrieve
    and Jepson, SIAM J. Numer. Anal. 28 (1991).
    """
    if hasattr(guess, "kind") and hasattr(guess, "parameter"):
        from .cycle_branch import cycle_from

        return cycle_from(model, guess, tolerance, max_degree, max_intervals)
    density: Any = guess.final if isinstance(guess, Solution) else guess
    wanted = "a Solution, a Density or a special point"
    require("guess", guess, wanted, isinstance(density, Density))
    if period is not None:
        require("period", period, f"at least {LEAST_PERIOD:g}", period >= LEAST_PERIOD)
    check_model(model, density.space, density.shape)
    basis = basis_of_cycles([model], density.space)
    with one_blas_thread():
        curve, orbit = _from_run(flow_of(model, basis), density, period)
        resolution = Resolution(tolerance, basis.most_for(max_degree, basis.most), max_intervals)
        curve, point, iteration = resolution.found(curve, orbit)
        orbit, mesh = curve.orbit(iteration.x), curve.mesh
        passes = 1 if point is None else mesh.passes(orbit.stages, AS_ACCURATE * tolerance)
        if passes > 1:
            stages = mesh.at(orbit.stages, mesh.phases / passes)
            orbit = orbit._replace(stages=stages, period=orbit.period / passes)
            curve, point, iteration = resolution.found(
                CycleCurve(curve.motion, mesh, orbit, curve.max_step), orbit
            )
        return cycle_at(model, curve, point, iteration, tolerance)


def flow_of(model: Transformer, basis: Reflected) -> CoefficientFlow:
    """The flow of the coefficients of a density under a model, on its curve in kappa."""
    span = float(model.kappa) / 2, 2 * float(model.kappa)
    return CoefficientFlow(curve_of(model, basis, "kappa", span, None))


def basis_of_cycles(models: list[Transformer], space: Space) -> Reflected:
    """The basis of all harmonics on a space, with the rotations common to models."""
    expected = "Circle, Sphere or Torus, as cycles need all harmonics"
    require("space", space, expected, not isinstance(space, Zonal), MeanfieldError)
    kind = reflected_on(space)
    most = kind.bounds[space.dimension].most
    space = space.with_degree(least_degree(models, space, space.degree, most))
    each = [symmetries_of(model, space) for model in models]
    planes = set(each[0].planes).intersection(*(one.planes for one in each))
    return kind(space, models[0].noise, Symmetries((0,), tuple(sorted(planes))))


class Resolution(NamedTuple):
    """Choice of mesh and degree for a tolerance.

    Attributes
    ----------
    tolerance : float
    most : int
        Highest degree.
    intervals : int
        Largest number of intervals.
    """

    tolerance: float
    most: int
    intervals: int

    def improved(self, curve: CycleCurve, z: Array) -> tuple[CycleCurve, Orbit] | None:
        """A finer curve, or a coarser one, and the orbit interpolated there; None if it suits."""
        orbit, motion, mesh = curve.orbit(z), curve.motion, curve.mesh
        aim = MARGIN * self.tolerance
        adapted = mesh.adapted(orbit.stages, aim, FEWEST_INTERVALS, self.intervals)
        error, count = mesh.errors(orbit.stages).max(), len(mesh.ends)
        degree, limit = motion.basis.degree, TAIL * self.tolerance
        tail = motion.tail(orbit.stages, orbit.p, limit)
        if (error > self.tolerance and count <= self.intervals) or len(adapted.ends) < count / 2:
            mesh = adapted
        elif tail > limit and degree < self.most:  # as if moments decayed exponentially
            factor = np.log(limit) / np.log(min(tail, limit ** (1 / MOST_FACTOR)))
            finer = max(degree + 2, round(max(LEAST_FACTOR, factor) * degree))
            motion = CoefficientFlow(motion.states.finer(min(finer, self.most)))
        elif mesh is curve.mesh:
            return None
        stages = motion.padded(curve.mesh.at(orbit.stages, mesh.phases))
        orbit = orbit._replace(stages=stages)
        return CycleCurve(motion, mesh, orbit, curve.max_step), orbit

    def found(
        self, curve: CycleCurve, orbit: Orbit
    ) -> tuple[CycleCurve, CurvePoint | None, Iteration]:
        """The orbit at the parameter of a guess, on a mesh that resolves it.

        The point is None if Newton's method did not converge. Raises MeanfieldError if it comes
        to a density that does not move.
        """
        for finer_meshes in reversed(range(MOST_MESHES + 1)):
            row = np.append(np.zeros(len(orbit.z) - 1), 1.0)
            iteration = curve.iteration(orbit.z, row, orbit.p)
            if not iteration.converged:
                return curve, None, iteration
            reached = curve.orbit(iteration.x)
            if curve.mesh.amplitude(reached.stages) <= AMPLITUDE_AT_REST:
                raise MeanfieldError(NOT_MOVING.format(reached.period))
            better = self.improved(curve, iteration.x) if finer_meshes else None
            if better is None:
                break
            curve, orbit = better
        z = iteration.x
        curve = CycleCurve(curve.motion, curve.mesh, curve.orbit(z), curve.max_step)
        return curve, curve.point(z, row), iteration


def cycle_at(
    model: Transformer, curve: CycleCurve, point: CurvePoint | None, iteration: Iteration,
    tolerance: float,
) -> Cycle:  # fmt: skip
    """The cycle of a point of a curve."""
    import xarray as xr

    z = iteration.x if point is None else point.z
    orbit, basis = curve.orbit(z), curve.motion.basis
    multipliers, neutral, error = np.zeros(0, dtype=complex), np.zeros(0, dtype=bool), np.nan
    if point is not None:
        shifts, others, error = curve.multipliers(point)
        multipliers = np.concatenate([shifts, others])
        neutral = np.arange(len(multipliers)) < len(shifts)
        order = np.lexsort((~neutral, -np.round(np.abs(multipliers), 7)))
        multipliers, neutral = multipliers[order], neutral[order]
    arrays = {
        "end": ("edge", curve.mesh.ends),
        "coefficients": (("interval", "point", "harmonic"), orbit.stages),
        "multiplier": (("number", "part"), np.stack([multipliers.real, multipliers.imag], axis=1)),
        "neutral": ("number", neutral),
    }
    return Cycle(
        xr.Dataset(arrays), model, basis.space, orbit.period, list(map(float, orbit.speeds)),
        iteration.status, iteration.residuals[-1], float(curve.mesh.errors(orbit.stages).max()),
        curve.motion.tail(orbit.stages, orbit.p, TAIL * tolerance), error, tolerance,
    )  # fmt: skip


def _from_run(
    motion: CoefficientFlow, density: Any, period: float | None
) -> tuple[CycleCurve, Orbit]:
    """A curve and a guess of the orbit, from a run of the model of `motion`."""
    from scipy.interpolate import CubicSpline

    basis, states = motion.basis, motion.states
    model = states.drift

    def coefficients(state: Any) -> Array:
        return basis.moments(state)[0] * basis.sizes

    p = states.coordinate(float(model.kappa))
    length = RUN_TIME if period is None else period
    for _ in range(MOST_RUNS):
        times = np.linspace(0.0, length, RUN_SAMPLES)
        run = solve(
            *(model, density, (0.0, length)),
            t_eval=times,
            rtol=RUN_RTOL,
            max_steps=RUN_STEPS,
            progress=False,
        )
        if run.status == "max_steps":
            raise MeanfieldError(
                f"A run over a period of {length:.6g} takes more than {RUN_STEPS} steps, and "
                f"stopped at t = {run.t[-1]:.6g}: give another estimate of the period."
            )
        density, every = run.final, np.array([coefficients(state) for state in run.states])
        found = length if period is not None else _returned(run.t, every)
        if found is not None:
            break
        length *= 1.5
    else:
        raise MeanfieldError(
            f"The density came back to no earlier one within the time {run.t[-1]:.6g} at the end "
            "of the run: give an estimate of the period, or start from the end of a longer run."
        )
    mesh = Mesh(np.linspace(0, 1, FIRST_MESH + 1))
    stages = CubicSpline(run.t, every)(run.t[-1] - found * (1 - mesh.phases))
    orbit = Orbit(stages, found, np.zeros(len(motion.rotations)), p)
    return CycleCurve(motion, mesh, orbit, 1.0), orbit


def _returned(t: Array, c: Array) -> float | None:
    """The time since the states (m, N) were last near to the end; None if they were not.

    Raises MeanfieldError if they are at rest.
    """
    distances = np.linalg.norm(c - c[-1], axis=1)
    most = distances[len(t) // 2 :].max()
    if most <= AMPLITUDE_AT_REST:
        raise MeanfieldError(
            f"The run comes to rest: in its second half the density moves by {most:.1e} in L^2. "
            "See mf.stationary, or start elsewhere."
        )
    inner = distances[1:-1]
    lowest = (inner < distances[:-2]) & (inner <= distances[2:]) & (inner < RETURN_DISTANCE * most)
    places = np.flatnonzero(lowest) + 1
    return float(t[-1] - t[places[-1]]) if places.size else None
