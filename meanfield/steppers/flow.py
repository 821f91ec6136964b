"""Steps of moving points, dx/dt = v(x, t): error control, explicit schemes, dense output."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..lowlevel.compilation import jitable
from .advance import NOT_FINITE, PAUSED, REACHED, TOO_SMALL
from .clock import NO_STEP, Clock, accepted, planned_to, rejected, shows
from .dense_output import ExplicitSteps, Interpolant, interpolation_terms
from .schemes import DenseOutput, Scheme

MOST_REJECTIONS = 60  # in a row: each makes the step at least a quarter shorter
NO_FLOAT_WARNINGS: Any = dict.fromkeys(("over", "invalid", "divide"), "ignore")
"""Options of `numpy.errstate`: numbers beyond 1e308 reject a step, and need no warning as well."""
MOST_STALLED = 500  # steps in a row that neither become shorter nor double their total time


class VelocityField(Protocol):
    """A velocity field of points, and a norm of errors of their positions."""

    def velocity(self, x: np.ndarray, t: float) -> np.ndarray:
        """Velocities dx/dt, of the shape of x."""

    def relative_error(self, error: np.ndarray, x: np.ndarray) -> float:
        """The size of an error of x, relative to the scale that is to be resolved."""

    def projected(self, x: np.ndarray) -> np.ndarray:
        """Projection to the space of points x that are off it by the error of a step."""

    # Optional attributes. `changes_coordinates` is True if `projected` may return other coordinates
    # of the same state, which are not close to its argument. `beside` is an intermediate array of
    # the last velocity, from which its tangents can be computed.


class Step(NamedTuple):
    """A step: positions x at its beginning, time t of the velocity there, clock, and length dt."""

    x: np.ndarray
    t: float
    elapsed: float
    dt: float


class Stages(NamedTuple):
    """Velocities at the stages of a step and at its end.

    Attributes
    ----------
    velocities : ndarray, (stages + 2, N)
    beside : list of (ndarray or None)
        The array `beside` of the field for each of these velocities, or None.
    """

    velocities: np.ndarray
    beside: list[np.ndarray | None]

    @property
    def nbytes(self) -> int:
        return self.velocities.nbytes + sum(each.nbytes for each in self.beside if each is not None)


class PointFlow(ABC):
    """Points that move in steps, with error control or in steps of a given length.

    Parameters
    ----------
    scheme : Scheme or Splitting
    field : VelocityField
    x : ndarray
        The first positions.
    rtol : float
        Bound of `relative_error` for a step; 0 for fixed steps.
    smallest_change : float
        Error control gives up after a rejected step whose change of positions is at most this,
        as measured by `relative_error`.
    start : float
        The time at which the clock starts.

    Attributes
    ----------
    x, velocity : ndarray
        Positions and velocities now.
    t : float
        The time of these velocities; it may differ from that of the clock by rounding.
    before : Step or None
        The last step, unless the flow has just been restarted.
    counts : ndarray of int
        Steps accepted and rejected, and evaluations of the velocity for them.
    stall : Stall
    dense : bool
        Whether the state is known within a step.
    """

    dense = False

    def __init__(
        self,
        scheme: Any,
        field: Any,
        x: np.ndarray,
        *,
        rtol: float = 0.0,
        smallest_change: float = 0.0,
        start: float = 0.0,
    ):
        self.scheme, self._field, self._rtol = scheme, field, rtol
        self._error_order = scheme.estimate_order + 1.0
        self._smallest_change, self._start = smallest_change, start
        self.stall = Stall()
        self.counts = np.zeros(3, dtype=np.int64)
        self.restart(x, start)

    def restart(self, x: np.ndarray, t: float, field: VelocityField | None = None) -> None:
        """Go on from other positions at the time t, or with another field."""
        self._field = field or self._field
        self.x, self.t, self.velocity = x, t, self._field.velocity(x, t)
        self.before: Step | None = None

    @abstractmethod
    def step(
        self, x: np.ndarray, velocity: Any, elapsed: float, dt: float
    ) -> tuple[Any, Any, float]:
        """Positions and velocities one step after x, and the relative error."""

    @np.errstate(**NO_FLOAT_WARNINGS)
    def advance(self, clock: Clock, target: float, limit: int) -> tuple[int, Clock]:
        """Step towards the time `target`, with at most `limit` attempts.

        Returns the code of the reason to stop (`advance.REACHED` and so on), and the new clock.
        """
        for _ in range(limit):
            clock = planned_to(clock, target, not self._rtol)
            new, velocity, error = self.step(self.x, self.velocity, clock.t, clock.step)
            lost = not (np.isfinite(error) and np.isfinite(new).all())
            if lost and not self._rtol:
                return NOT_FINITE, clock
            relative = np.inf if lost else error / self._rtol if self._rtol else -1.0
            if not relative <= 1:
                self.counts[1] += 1
                clock = rejected(clock, relative, self._error_order)
                self.stall = stall_rejected(self.stall)
                least = self._smallest_change  # the error of such a change is rounding
                small = least > 0 and self._field.relative_error(new - self.x, self.x) <= least
                if stalled_for_good(self.stall) or small:
                    return TOO_SMALL, clock
                continue
            before, step = clock.t, clock.step
            self.counts[0] += 1
            self.before = Step(self.x, self.t, before, step)
            self.x, self.velocity, self.t = new, velocity, self._start + before + step
            clock = accepted(clock, relative, self._error_order, target)
            moved = clock.t == target or shows(before, step)
            self.stall = stall_accepted(self.stall, step, moved)
            if stalled_for_good(self.stall):
                return TOO_SMALL, clock
            if clock.t == target:
                return REACHED, clock
        return PAUSED, clock

    @property
    def stages(self) -> Stages | None:
        """The stages of the last step; None if they are not stored."""
        return None

    def take(self, elapsed: float, dt: float, stages: Stages | None = None) -> None:
        """Take one step of length dt from the clock time `elapsed`, whatever its error.

        `stages` are the stages of the same step without tangents, where `x` has tangents: their
        velocities need not be computed again.
        """
        new, velocity = self._taken(elapsed, dt, stages)
        self.before = Step(self.x, self.t, elapsed, dt)
        self.x, self.velocity, self.t = new, velocity, self._start + elapsed + dt

    def _taken(self, elapsed: float, dt: float, stages: Stages | None) -> tuple[Any, Any]:
        new, velocity, _ = self.step(self.x, self.velocity, elapsed, dt)
        return new, velocity


class ExplicitFlow(PointFlow):
    """Steps of an explicit scheme, with dense output where the scheme has it.

    Parameters
    ----------
    scheme : Scheme
        An explicit scheme, such as `DormandPrince`.
    field, x, rtol, smallest_change, start
        As for `PointFlow`.
    """

    def __init__(self, scheme: Scheme, field: VelocityField, x: np.ndarray, **options: float):
        self._steps, self.dense = ExplicitSteps(scheme), isinstance(scheme.dense, DenseOutput)
        super().__init__(scheme, field, x, **options)

    def restart(self, x: np.ndarray, t: float, field: VelocityField | None = None) -> None:
        """Go on from other positions at the time t, or with another field."""
        super().restart(x, t, field)
        self._within: Interpolant | None = None
        stages = len(self.scheme.nodes) + 2
        self._slopes, self._lent = np.empty((stages, x.size)), False
        self._beside: list[np.ndarray | None] = [None] * len(self._slopes)

    @property
    def stages(self) -> Stages:
        """The stages of the last step, in memory that later steps do not overwrite."""
        self._lent = True
        return Stages(self._slopes, self._beside)

    def step(
        self, x: np.ndarray, velocity: np.ndarray, elapsed: float, dt: float
    ) -> tuple[Any, Any, float]:
        """Positions and velocities one step after x, and the relative error."""
        new, new_velocity = self._stepped(x, velocity, elapsed, dt, self._field.velocity)
        error = self._steps.error(self._field.relative_error, new, self._slopes, dt)
        return new, new_velocity, error

    def _stepped(
        self,
        x: np.ndarray,
        velocity: np.ndarray,
        elapsed: float,
        dt: float,
        of: Callable[[np.ndarray, float], np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities one step after x, with velocities of(x, t) at the stages."""
        if self._lent:
            self._slopes, self._lent = np.empty_like(self._slopes), False
        beside = self._beside = self._beside[:1]

        def velocity_of(y: np.ndarray, time: float) -> np.ndarray:
            rates = of(y, time)
            beside.append(getattr(self._field, "beside", None))
            return rates

        slopes, t = self._slopes, self._start + elapsed
        slopes[0], self._within = velocity.ravel(), None
        self.counts[2] += self.scheme.evaluations
        self._end = self._steps.end(x, slopes, velocity_of, t, dt)
        new = self._field.projected(self._end)
        new_velocity = velocity_of(new, t + dt)
        slopes[-1] = new_velocity.ravel()
        return new, new_velocity

    def _taken(self, elapsed: float, dt: float, stages: Stages | None) -> tuple[Any, Any]:
        of = self._field.velocity
        if stages is not None:
            rows = zip(stages.velocities[1:], stages.beside[1:], strict=True)
            of = lambda x, t: self._field.velocity_beside(x, t, *next(rows))  # noqa: E731
        return self._stepped(self.x, self.velocity, elapsed, dt, of)

    def within(self, elapsed: float) -> np.ndarray:
        """Positions at a clock time within the last step, before any other step is tried."""
        assert self.before is not None
        part = (elapsed - self.before.elapsed) / self.before.dt
        return self._field.projected(self.interpolant(part))

    @property
    def interpolant(self) -> Interpolant:
        """Interpolant of the last step, as in `within` but without projection."""
        dense = self.scheme.dense
        assert self.before is not None and isinstance(dense, DenseOutput)
        if self._within is None:
            x, _, elapsed, dt = self.before
            velocity, t = self._field.velocity, self._start + elapsed
            new, slopes = self.x, self._slopes
            if getattr(self._field, "changes_coordinates", False):
                new, slopes = self._end, slopes.copy()
                slopes[-1] = velocity(new, t + dt).ravel()
            terms = interpolation_terms(dense, velocity, x, new, slopes, t, dt)
            self._within = Interpolant(x, terms)
        return self._within

    def repeat(self, before: Step) -> None:
        """Take the step `before` again, from its beginning."""
        self.restart(before.x, before.t)
        new = self.step(before.x, self.velocity, before.elapsed, before.dt)
        self.x, self.velocity, _ = new
        self.t, self.before = self._start + before.elapsed + before.dt, before


class Stall(NamedTuple):
    """Counters of a run without progress: rejected steps, or steps below the clock's rounding.

    A collapse may take less time than the rounding of the clock, 1e-16 t: the clock does not move
    while steps become shorter by many orders of magnitude and then longer again. This counts as
    progress, however long it takes. Steps that remain equally short are no progress.

    Attributes
    ----------
    rejections : float
        Steps rejected in a row.
    waited : float
        Accepted steps without progress.
    shortest : float
        The shortest step since the clock stopped; 0 while the clock moves.
    total, mark : float
        The total time of the steps since the shortest one, now and at the last progress.
    """

    rejections: float = 0.0
    waited: float = 0.0
    shortest: float = 0.0
    total: float = 0.0
    mark: float = 0.0


@jitable
def stall_rejected(stall: Stall) -> Stall:
    """The counters after one more rejected step."""
    rejections = stall.rejections + 1
    return Stall(rejections, stall.waited, stall.shortest, stall.total, stall.mark)


@jitable
def stall_accepted(stall: Stall, step: float, moved: bool) -> Stall:
    """The counters after an accepted step; `moved` tells whether the clock moved."""
    total = stall.total + step
    if moved:
        return Stall(0.0, 0.0, 0.0, 0.0, 0.0)
    if step < NO_STEP:
        return Stall(0.0, np.inf, step, total, stall.mark)
    if stall.shortest == 0 or step < stall.shortest / 2:
        return Stall(0.0, 0.0, step, step, step)
    if total > 2 * stall.mark:
        return Stall(0.0, 0.0, stall.shortest, total, total)
    return Stall(0.0, stall.waited + 1, stall.shortest, total, stall.mark)


@jitable
def stalled_for_good(stall: Stall) -> bool:
    """True if a run has had too many rejections in a row, or steps without progress."""
    return stall.rejections > MOST_REJECTIONS or stall.waited > MOST_STALLED
