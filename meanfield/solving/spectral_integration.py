"""Time integration of a density, with automatic choice of the number of modes and the scheme."""

import math
from typing import Any

import numpy as np

from ..core.annotations import JsonTable, Snapshot
from ..derivatives.journal import EVER, Journal
from ..dynamics.density import SMALLEST_TAIL, TAIL_TOLERANCE
from ..spaces import Space
from ..spaces.density import Density
from ..spaces.validity import HarmonicSizes, tail_start
from ..steppers import DormandPrince, Krogstad, Rules, Scheme, Stepper
from ..steppers.advance import COARSER, FINER, NOT_FINITE, PAUSED, REACHED, Task
from ..steppers.clock import Clock, planless, planned_to, replanned, restored, started
from ..steppers.flow import NO_FLOAT_WARNINGS
from ..steppers.stepper import advance_rows
from .arguments import Arguments
from .batch import DensityBatch
from .integration import SteppedIntegration
from .policies import DEGREE_EXHAUSTED, Policy
from .streams import random_state, restore_random

COARSE_TAIL_PART = 0.01
COEFFICIENTS_PER_PAUSE = 200_000

AUTOMATIC_SCHEMES = (Krogstad, DormandPrince)  # for stiff and for non-stiff equations
FIRST_REVIEW, REVIEW_INTERVAL, LONGEST_INTERVAL = 16, 64, 4096  # attempts between comparisons
SCHEME_GAIN = 1.2  # least factor by which another scheme must advance further per evaluation


class SpectralIntegration(SteppedIntegration):
    """Time integration of a density by exponential or explicit schemes, on adapted modes.

    If no scheme is given, the run chooses between AUTOMATIC_SCHEMES and may change its choice.
    If dt is given, steps are fixed.

    Parameters
    ----------
    arguments : Arguments
        Arguments of the run.
    batch : DensityBatch, optional
        Batch to which the run belongs. The caller then calls `DensityBatch.begin`.
    row : int
        Index of the run in the batch.

    Attributes
    ----------
    first : Density
        Initial density, on the modes with which the run begins.
    members : int
        Number of densities that share the steps of this run.
    """

    scheme: Any
    stepper: Stepper
    _rules: Rules

    def __init__(self, arguments: Arguments, batch: DensityBatch | None = None, row: int = 0):
        """Begin the integration of a density: policies, schemes, and its row of `batch`."""
        super().__init__(arguments)
        scheme, density = arguments.scheme, arguments.state
        self.batch, self.row = batch or DensityBatch(arguments), row
        self.schemes: tuple[Any, ...] = AUTOMATIC_SCHEMES if scheme is None else (scheme,)
        if not (self.dt or arguments.autonomous):  # steps are chosen by estimates of errors
            self.schemes = tuple(scheme.in_time for scheme in self.schemes)
        for scheme in self.schemes:
            self.count(scheme.name, 0, 0, 0)
        self.weights = 0  # number of computations of the weights of exponential schemes
        self.journal = Journal()
        self.degrees = DegreeAdaptation(density, arguments)
        self.selection = SchemeSelection()
        self.policies = {"degrees": self.degrees, "selection": self.selection}
        self._shape, self.members = density.shape, math.prod(density.shape)
        self._kappa_changes = not arguments.model.steady_noise
        self._kappa_moves = arguments.model.smooth_noise
        self._steppers: dict[tuple[int, str], Stepper] = {}
        self.clock = started(0.0)
        self.enter_piece(0.0)
        self.first = self.degrees.first(density)
        self._take(self.first, self.schemes[0])
        if batch is None:
            self.batch.begin([self])

    # The present ---------------------------------------------------------------------------

    @property
    def state(self) -> Density:
        return type(self.first).computed(self.coefficients, self.space)

    @property
    def coefficients(self) -> np.ndarray:
        """Coefficients (*ensemble, modes) of the state."""
        stepper = self.stepper
        u = stepper.within(self.elapsed) if self.within else stepper.state
        return u.reshape(*self._shape, -1)

    @property
    def rate(self) -> float:
        """Largest L2 norm of d mu/dt over the members, at the end of the last step."""
        return self.stepper.rate

    @property
    def pause(self) -> int:
        return max(1, min(1024, COEFFICIENTS_PER_PAUSE // self.stepper.state.size))

    @property
    def size(self) -> str:
        return f"degree {self.degrees.highest}"

    @np.errstate(**NO_FLOAT_WARNINGS)
    def instability(self) -> str:
        """The bound that a fixed dt exceeds, by damping or by transport of the initial density."""
        scheme, dt = self.scheme, self.dt
        if dt is None:
            return ""
        first = self.first.coefficients.reshape(self.members, -1)
        fastest = self.stepper_for(self.first, scheme).speed_at(first)
        for density, speed in ((self.first, fastest), (self.state, 0.0)):
            longest = self.stepper_for(density, scheme).longest_step(scheme, speed)
            if dt > longest:
                rate = "largest rate of transport and damping" if speed else "fastest damping"
                return (
                    f"dt = {dt:g} exceeds {longest:.3g}, the longest stable step of "
                    f"{scheme.name} at degree {density.space.degree}: {scheme.stability:g} over "
                    f"the {rate}, {scheme.stability / longest:.4g}."
                )
        return ""

    # Moving --------------------------------------------------------------------------------

    def take_steps(self, output: float, limit: int) -> int:
        self.batch.step({self: limit}, output)
        return self._code

    def until_review(self, limit: int) -> int:
        """Number of attempts until the next comparison of schemes, at most `limit`."""
        return min(limit, self.selection.at - self.attempts)

    def task(self, output: float, limit: int) -> Task:
        """Clock, rules and goal of the next steps towards an output, see `Rows.advance`."""
        self.follow_model()
        limit = 1 if self._kappa_moves else self.until_review(limit)
        goal = self.goal(output, self.has_dense_output)
        return Task(self.clock, self._rules, goal, output, limit)

    def stepped(self, code: int, clock: Clock, counts: list[int]) -> None:
        """Record the steps that the time loop has made.

        Parameters
        ----------
        code : int
            Code that the loop returned.
        clock : Clock
            Clock after the steps.
        counts : list of int
            `Stepper.counts` before the steps.
        """
        self._code, self.clock = code, clock
        if self.journal is not None:
            ends = self.motion.ends if self.jumps else EVER  # a member may have no motion yet
            self.journal.add(self.stepper.made, self.scheme, ends, self.space.degree)
        pairs = zip(self.stepper.counts.tolist(), counts, strict=True)
        accepted, rejected, weights = (after - before for after, before in pairs)
        evaluations = self.scheme.evaluations * (accepted + rejected)
        self.count(self.scheme.name, accepted, rejected, evaluations)
        self.weights += weights

    def follow_model(self) -> None:
        """Update the linear and nonlinear part of the equation after a jump, or if kappa varies."""
        if self.enter_piece(self.clock.t) or self._kappa_moves:
            self.stepper = self.stepper_for(self.state, self.scheme)
            self.stepper.state = self.stepper.state

    @np.errstate(**NO_FLOAT_WARNINGS)
    def step_from(self, state: Density, elapsed: float, dt: float) -> Density:
        """State after a single step of length dt from `state`, apart from the run."""
        fine = state.resample(self.space.degree)
        first = fine.coefficients.reshape(self.stepper.state.shape)
        coefficients, _ = self.stepper.step(first, dt, elapsed)
        return type(state)(self.space, coefficients.reshape(*self._shape, -1))

    def enter(self, density: Density, scheme: Scheme) -> None:
        """Continue from `density`, on its modes and with `scheme`."""
        self.stepper = self.stepper_for(density, scheme)
        self.stepper.elapsed = self.clock.t
        self.stepper.weighed_step = np.nan  # no old weights, so that a resumed run has equal bits
        self.stepper.state = density.coefficients.reshape(self.members, -1)
        self._take(density, scheme)

    def _take(self, density: Density, scheme: Scheme) -> None:
        """Use the stepper for the modes of `density` and a scheme; a new stepper has no state."""
        self.stepper, _ = self._stepper(density.space, scheme)
        self.space, self.scheme = density.space, scheme
        self.degrees.highest = max(self.degrees.highest, density.space.degree)
        self._rules = self.degrees.rules(self)

    def stepper_for(self, density: Density, scheme: Scheme) -> Stepper:
        """Stepper of a scheme on the modes of a density, which is the state of a new stepper."""
        stepper, is_new = self._stepper(density.space, scheme)
        if is_new:
            stepper.state = density.coefficients.reshape(self.members, -1)
        return stepper

    def _stepper(self, space: Space, scheme: Scheme) -> tuple[Stepper, bool]:
        """Stepper of a scheme on the modes of `space`, and True if it is new.

        If kappa changes with time, its linear part is that at the present time.
        """
        key = space.degree, scheme.name
        is_new = key not in self._steppers
        if is_new:
            self._steppers[key] = self.batch.stepper(self, space, scheme)
        stepper = self._steppers[key]
        if self._kappa_changes:
            evolution = self.batch.evolution(self, space)
            evolution.freeze(self.start + self.clock.t)
            stepper.replace_linear(evolution.linear)
        return stepper, is_new

    # The result, and a checkpoint ----------------------------------------------------------

    def counts(self) -> JsonTable:
        return super().counts() | {"weights": self.weights}

    def snapshot(self) -> Snapshot:
        """Snapshot with the coefficients at the end of the last step.

        If the state is within a step, they are those at its beginning: `restore` repeats the step.
        """
        stepper = self.stepper
        u = stepper.state_before if self.within else stepper.state
        return super().snapshot() | {
            "clock": tuple(self.clock),
            "before": tuple(stepper.before if self.within else self.clock),
            "coefficients": u.reshape(*self._shape, -1),
            "scheme": self.schemes.index(self.scheme),
            "weights": self.weights,
            "weighed_step": self.stepper.weighed_step,
        }

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from the data of a checkpoint; a step that was under way is repeated."""
        self.journal = None  # a checkpoint does not store it
        coefficients = snapshot["coefficients"]
        space = self.space.with_modes(coefficients.shape[-1])
        super().restore(snapshot)
        self.clock = restored(snapshot["clock"])
        had_pause, self.clock = self.within, restored(snapshot["before"])
        self.enter_piece(self.clock.t)
        self.enter(type(self.first)(space, coefficients), self.schemes[int(snapshot["scheme"])])
        self.stepper.weighed_step = float(snapshot["weighed_step"])
        if had_pause:
            task = self.task(self.elapsed, 1)._replace(limit=1)  # whatever comparison is due
            ((self._code, self.clock),) = advance_rows([self.stepper], [task])
        self.weights = int(snapshot["weights"])

    @property
    def has_dense_output(self) -> bool:
        return self.scheme.dense is not None

    def plan_anew(self, endings_only: bool = True) -> None:
        self.clock = planless(self.clock, endings_only)


class CommonNoiseIntegration(SpectralIntegration):
    """Time integration of a density under common noise, by Strang splitting.

    A step is common noise for dt/2, all other terms for dt, and common noise for dt/2. Steps end
    at outputs and at jumps of the model, as those of tokens do, so that tokens with the same
    generator and dt have the same increments. A step whose last coefficients are too large is
    repeated on more modes, with the same increments.
    """

    continuous = False  # a shorter step would need other increments

    def __init__(self, arguments: Arguments):
        self._rng: Any = arguments.common_rng
        super().__init__(arguments)

    def take_steps(self, output: float, limit: int) -> int:
        """Take up to `limit` steps towards `output`, one by one, with noise."""
        counts, code = self.stepper.counts.tolist(), PAUSED
        steps_left = self.until_review(limit)
        while code == PAUSED and steps_left > 0:
            code, steps_left = self._step(output), steps_left - 1
        self.stepped(code, self.clock, counts)
        return code

    def _step(self, output: float) -> int:
        """Take one step, and return its code.

        If the step fails or needs more modes, the state and the generator are as before.
        """
        self.follow_model()
        stepper, rules = self.stepper, self._rules
        u, counts, random = stepper.state, stepper.counts.copy(), random_state(self._rng)
        goal = self.goal(output, dense=False)
        dt = planned_to(self.clock, goal, True).step

        self._go_to(self.clock.t, first := self._after_noise(u, self.clock.t, dt / 2))
        unchecked_rules = rules._replace(tail=0.0, coarse_tail=0.0)
        code, clock = stepper.advance(self.clock, unchecked_rules, goal, 1, output)
        if code in (PAUSED, REACHED):
            last = self._after_noise(stepper.state, clock.t, dt / 2)
            tail = self._tail(np.concatenate([first, last]), self.space.degree, rules.tail)
            if not np.isfinite(last).all():
                code = NOT_FINITE
            elif tail > rules.tail:
                code = FINER
            else:
                self.clock = clock
                self._go_to(clock.t, last)
                bound = rules.coarse_tail
                return COARSER if self._tail(last, int(rules.fewer), bound) < bound else code
        restore_random(self._rng, random)
        stepper.counts[0] = counts[0]
        self._go_to(self.clock.t, u)
        return code

    def _tail(self, u: np.ndarray, degree: int, limit: float) -> float:
        """Largest tail of members u (members, modes) of a truncation, each with its own gaps."""
        return max(HarmonicSizes(self.space.degrees, row).tail(degree, limit) for row in u)

    def _go_to(self, elapsed: float, u: np.ndarray) -> None:
        self.stepper.elapsed, self.stepper.state = elapsed, u

    def _after_noise(self, u: np.ndarray, elapsed: float, dt: float) -> np.ndarray:
        """Coefficients (members, modes) after common noise for a time dt from `elapsed` on."""
        return self.motion.carried(self.space, u, self.start + elapsed, dt, self._rng)

    def snapshot(self) -> Snapshot:
        return super().snapshot() | {"common": random_state(self._rng)}

    def restore(self, snapshot: Snapshot) -> None:
        super().restore(snapshot)
        restore_random(self._rng, snapshot["common"])


class DegreeAdaptation(Policy):
    """Policy that adapts the degree of a density.

    If a coefficient in the last eighth of the degrees exceeds rtol / 10, the degree grows to the
    next 2^k, on S^2 also 3 * 2^k, and the step is repeated. The degree falls once all coefficients
    that would be dropped, and the last eighth of those that would remain, are below rtol / 1000.
    """

    memory = ("changes", "highest")

    def __init__(self, density: Density, arguments: Arguments):
        self._least, self._most = arguments.degrees
        self._rtol, self._space = arguments.rtol, density.space
        self.changes, self.highest = 0, 0

    def after_step(self, run: SpectralIntegration, code: int) -> int | None:
        """Change the degree if the code is FINER or COARSER.

        Returns DEGREE_EXHAUSTED if the density needs more than the highest degree, else None.
        """
        degree = run.space.degree
        if code == FINER and degree >= self._most:
            return DEGREE_EXHAUSTED
        if code == FINER:
            target = min(finer(degree, run.space.halfway), self._most)
        elif code == COARSER:
            target = self._coarser(degree)
        else:
            return None
        run.enter(run.state.resample(target), run.scheme)
        self.changes += 1
        selection = run.selection  # the next comparison of schemes comes soon
        selection.at = min(selection.at, run.attempts + FIRST_REVIEW)
        selection.interval = REVIEW_INTERVAL
        return None

    def rules(self, run: SpectralIntegration) -> Rules:
        """Bounds on errors and coefficients that the time loop checks, at the degree of a run."""
        degree = run.space.degree
        tail, fewer = self._tail(degree), self._coarser(degree)
        return Rules(
            rtol=0.0 if run.dt else run.rtol,
            error_order=run.scheme.estimate_order + 1.0,
            tail=tail,
            tail_degree=tail_start(degree),
            coarse_tail=COARSE_TAIL_PART * tail if fewer < degree else 0.0,
            coarse_degree=tail_start(fewer),
            steady=run.steady,
            degree=degree,
            fewer=fewer,
        )

    def first(self, density: Density) -> Density:
        """Initial density on the lowest degree that the bounds on its coefficients allow."""
        degree = max(density.space.degree, self._least)
        sizes = HarmonicSizes(density.space.degrees, density.coefficients)
        limit = COARSE_TAIL_PART * self._tail(density.space.degree)
        while (fewer := self._coarser(degree)) < degree and sizes.tail(fewer, limit) <= limit:
            degree = fewer
        return density.resample(degree)

    def _tail(self, degree: int) -> float:
        """Bound of the last coefficients, in proportion to `Space.dirac`."""
        return max(TAIL_TOLERANCE * self._rtol, SMALLEST_TAIL) * self._space.dirac(degree)

    def _coarser(self, degree: int) -> int:
        """Next lower degree that is allowed; `degree` itself if there is none."""
        return max(coarser(degree, self._space.halfway), min(self._least, degree))

    def stats(self, start: float) -> JsonTable:
        """Number of changes of the degree, and the highest degree so far."""
        return {"degree_changes": self.changes, "highest_degree": self.highest}


class SchemeSelection(Policy):
    """Policy that compares the scheme of a density with the others, and changes it.

    Schemes are compared by the time that they advance per evaluation of the right-hand side: first
    for the longest stable step, then for the step that a trial step suggests. Comparisons are due
    at numbers of attempts that do not depend on where a run pauses.

    Attributes
    ----------
    at : int
        Number of attempts at which the next comparison is due.
    interval : int
        Number of attempts from the last comparison to the next one.
    """

    memory = ("at", "interval")

    def __init__(self) -> None:
        self.at, self.interval = FIRST_REVIEW, REVIEW_INTERVAL

    def after_step(self, run: SpectralIntegration, code: int) -> None:
        """Compare the schemes if it is due; the interval doubles each time the scheme stays."""
        if self.at <= run.attempts:
            renewed = self._review(run)
            self.interval = REVIEW_INTERVAL if renewed else min(2 * self.interval, LONGEST_INTERVAL)
            self.at = run.attempts + self.interval

    def _review(self, run: SpectralIntegration) -> bool:
        """Change to another scheme if it advances further per evaluation; True if it changed."""
        density, state, time_left = run.state, run.stepper.state, run.duration - run.clock.t
        step = min(run.clock.proposal, time_left)
        least_reach = SCHEME_GAIN * _reach(run.scheme, step, time_left)
        for scheme in run.schemes:
            longest = run.stepper.longest_step(scheme)
            if scheme is run.scheme or not _reach(scheme, longest, time_left) >= least_reach > 0:
                continue
            run.count(scheme.name, 0, 0, scheme.evaluations + 1)
            other = run.stepper_for(density, scheme)
            expected = other.expected_step(state, step, run.rtol)
            if _reach(scheme, expected, time_left) >= least_reach:
                run.enter(density, scheme)
                run.clock = replanned(run.clock, expected)
                return True
        return False


def _reach(scheme: Scheme, step: float, time_left: float) -> float:
    """Time advanced per evaluation in a step of length `step`, or `time_left` if that is shorter.

    `time_left` is the time to the end of the run.
    """
    return min(step, time_left) / scheme.evaluations if step > 0 else 0.0


def finer(degree: int, halfway: bool) -> int:
    """Smallest number 2^k, or also 3 * 2^k if `halfway`, above a degree."""
    power = 1 << degree.bit_length()
    return power * 3 // 4 if halfway and degree < power * 3 // 4 else power


def coarser(degree: int, halfway: bool) -> int:
    """Largest number 2^k, or also 3 * 2^k if `halfway`, below a degree; 1 if there is none."""
    power = 1 << max(degree - 1, 1).bit_length() - 1
    return max(1, power * 3 // 2 if halfway and degree > power * 3 // 2 else power)
