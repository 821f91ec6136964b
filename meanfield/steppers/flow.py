"""Steps of moving points, dx/dt = v(x, t): error control, explicit schemes, dense output.

Points move in groups, each with its own clock, steps and error control. A single state is one
group; replicas with separate steps are several groups on the first axis of the positions.
"""

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol

import numpy as np

from .attempt import embedded_error
from .clock import (
    GIVES_UP,
    LOST,
    STUCK,
    Clock,
    Stall,
    judge_steps,
    judged,
    plan_steps,
    planned_to,
    restored,
    stall_of,
    started,
    write_down,
)
from .dense_output import (
    Interpolant,
    Velocity,
    combine,
    combined,
    interpolation_terms,
    polynomial,
    rows_of,
)
from .schemes import DenseOutput, Scheme

NUMBERS_AT_ONCE = 1 << 15  # floats of groups that are advanced together: they fit into a cache
NO_FLOAT_WARNINGS: Any = dict.fromkeys(("over", "invalid", "divide"), "ignore")
"""Options of `numpy.errstate`: numbers beyond 1e308 reject a step, and need no warning as well."""


def all_finite(x: np.ndarray) -> bool:
    """True if all numbers are finite; the sum of their squares tells it at once, as a rule."""
    return math.isfinite(np.vdot(x, x)) or bool(np.isfinite(x).all())


class VelocityField(Protocol):
    """A velocity field of points, and a norm of errors of their positions.

    Fields of several groups also have `autonomous`, True if the velocity does not depend on t;
    `relative_errors`, the errors (G,) of all groups; and of_members(groups), the field of some.
    """

    def velocity(self, x: np.ndarray, t: float) -> np.ndarray:
        """Velocities dx/dt, of the shape of x."""

    def relative_error(self, error: np.ndarray, x: np.ndarray) -> float:
        """The size of an error of x, relative to the scale that is to be resolved."""

    def projected(self, x: np.ndarray) -> np.ndarray:
        """Projection to the space of points x that are off it by the error of a step."""

    # Optional attributes. `changes_coordinates` is True if `projected` may return other coordinates
    # of the same state, which are not close to its argument. `intermediate` is an array of the last
    # velocity, from which its tangents can be computed.


class Step(NamedTuple):
    """A step: positions x at its beginning, time t of the velocity there, clock, and length dt.

    For several groups these are arrays, with the groups on the first axis.
    """

    x: np.ndarray
    t: Any
    elapsed: Any
    dt: Any


class Stages(NamedTuple):
    """Velocities at the stages of a step and at its end.

    Attributes
    ----------
    velocities : ndarray, (stages + 2, N)
    intermediates : list of (ndarray or None)
        The array `intermediate` of the field for each of these velocities, or None.
    """

    velocities: np.ndarray
    intermediates: list[np.ndarray | None]

    @property
    def nbytes(self) -> int:
        arrays = self.velocities, *self.intermediates
        return sum(array.nbytes for array in arrays if array is not None)


class PointFlow(ABC):
    """Points that move in steps, with error control or in steps of a given length.

    Parameters
    ----------
    scheme : Scheme or Splitting
    field : VelocityField
    x : ndarray
        The first positions, of several groups with the groups on the first axis.
    steps : float or ndarray, (groups,)
        Lengths of the first steps, and of all steps without error control.
    groups : int
        Number of groups; of explicit schemes only more than 1.
    rtol : float
        Bound of `relative_error` for a step; 0 for fixed steps.
    smallest_change : float
        Error control gives up after a rejected step whose change of positions is at most this,
        as measured by `relative_error`.
    start : float
        The time at which the clocks start.

    Attributes
    ----------
    x, velocity : ndarray
        Positions and velocities at the ends of the last steps.
    t : float or ndarray, (groups,)
        The times of these velocities; they may differ from those of the clocks by rounding.
    clocks : ndarray, (groups, 7)
        The numbers of the `Clock` of each group.
    stalls : ndarray, (groups, 5)
        The numbers of the `Stall` of each group.
    before : Step or None
        The last steps; None for a single group that has just been restarted.
    counts : ndarray of int, (3, groups)
        Steps accepted and rejected, and evaluations of the velocity for them.
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
        steps: Any = 0.0,
        groups: int = 1,
        rtol: float = 0.0,
        smallest_change: float = 0.0,
        start: float = 0.0,
    ):
        """Begin at x, with a clock and a first step for each of `groups` of points."""
        self.scheme, self._field, self._rtol = scheme, field, rtol
        self._error_order = scheme.estimate_order + 1.0
        self._smallest_change, self._start = smallest_change, start
        self.groups, self._all = groups, np.arange(groups)
        self.clocks = np.tile(started(0.0), (groups, 1))
        self.clocks[:, Clock._fields.index("proposal")] = steps
        self.stalls = np.zeros((groups, len(Stall._fields)))
        self.counts = np.zeros((3, groups), dtype=np.int64)
        self.restart(x, start if groups == 1 else np.full(groups, start))

    def restart(self, x: np.ndarray, t: Any, field: VelocityField | None = None) -> None:
        """Go on from other positions at the time t, or with another field."""
        self._field = field or self._field
        self.x, self.t, self.velocity = x, t, self._velocities(self._field)(x, t)
        several = self.groups > 1
        self.before = Step(x.copy(), *np.zeros((3, self.groups))) if several else None

    def renew(self, groups: np.ndarray | None = None) -> None:
        """Evaluate velocities again, of all groups or some, at the times of their clocks.

        Needed after a jump of the model, for instance.
        """
        if self.groups == 1:
            self.t = self._start + float(self.clocks[0, 0])
            self.velocity = self._velocities(self._field)(self.x, self.t)
            return
        groups = self._all if groups is None else groups
        self.t[groups] = self._start + self.clocks[groups, 0]
        self.velocity[groups] = self._velocities(self._part(groups), groups)(
            self.x[groups], self.t[groups]
        )

    def _part(self, groups: np.ndarray | None) -> Any:
        """The field of the groups with these indices, in increasing order; None for all."""
        if groups is None or len(groups) == self.groups:
            return self._field
        return self._field.of_members(groups)

    def _velocities(self, field: Any, groups: np.ndarray | None = None) -> Velocity:
        """Velocities by the field of all groups, or some, as a function of positions and times."""
        if self.groups == 1:
            return field.velocity
        if field.autonomous:
            return lambda x, t: field.velocity(x, float(t[0]))
        members = self._all if groups is None else groups
        fields = [self._field.of_members(np.array([group])) for group in members]

        def velocities(x: np.ndarray, t: np.ndarray) -> np.ndarray:
            rows = enumerate(zip(fields, t.tolist(), strict=True))
            return np.concatenate([f.velocity(x[r : r + 1], time) for r, (f, time) in rows])

        return velocities

    @abstractmethod
    def step(self, x: np.ndarray, velocity: Any, elapsed: Any, dt: Any) -> tuple[Any, Any, Any]:
        """Positions and velocities one step after x, and the relative error.

        Of several groups these are arrays, and a last argument has the indices of the groups.
        """

    @np.errstate(**NO_FLOAT_WARNINGS)
    def advance(self, target: float, groups: np.ndarray | None = None) -> np.ndarray:
        """Try one step towards the clock time `target`, of all groups or of some; return codes.

        The codes are those of `judged`, one for each group.
        """
        if self.groups == 1:
            return np.array([self._advance_alone(target)])
        groups = self._all if groups is None else groups
        size = max(1, NUMBERS_AT_ONCE // self.x[0].size)
        parts = [groups[first : first + size] for first in range(0, len(groups), size)]
        return np.concatenate([self._advance(indices, target) for indices in parts])

    def _advance_alone(self, target: float) -> int:
        """Take and judge a step of the only group towards `target`; return a code of `judged`."""
        rtol, numbers, stalls = self._rtol, self.clocks[0], self.stalls[0]
        clock, x = planned_to(restored(numbers), target, not rtol), self.x
        elapsed, dt = clock.t, clock.step
        new, velocity, error = self.step(x, self.velocity, elapsed, dt)
        error = float(error)
        is_finite = math.isfinite(error) and all_finite(new)
        stall = stall_of(stalls.tolist())
        clock, stall, code = judged(clock, stall, error, is_finite, rtol, self._error_order, target)
        write_down(clock, stall, code, numbers, stalls, self.counts[:, 0])
        if code <= STUCK:
            self.before = Step(x, self.t, elapsed, dt)
            self.x, self.velocity, self.t = new, velocity, self._start + elapsed + dt
            return code
        small = self._smallest_change  # the error of such a change is rounding
        if small > 0 and code != LOST and self._field.relative_error(new - x, x) <= small:
            return GIVES_UP
        return code

    def _advance(self, groups: np.ndarray, target: float) -> np.ndarray:
        """Take and judge a step of groups towards `target`; return codes of `judged`."""
        plan_steps(self.clocks, groups, target, not self._rtol)
        x, clocks = self.x[groups], self.clocks
        elapsed, dt = clocks[groups, 0], clocks[groups, 2]
        rows: tuple[np.ndarray, ...] = (groups,)  # an argument of explicit schemes only
        new, velocity, errors = self.step(x, self.velocity[groups], elapsed, dt, *rows)
        codes = np.empty(len(groups), dtype=np.int64)
        judge_steps(
            clocks,
            self.stalls,
            self.counts,
            groups,
            np.ascontiguousarray(new).reshape(len(groups), -1),
            errors,
            self._rtol,
            self._error_order,
            target,
            codes,
        )
        assert self.before is not None
        is_done = codes <= STUCK
        ahead = groups[is_done]
        last = x[is_done], self.t[ahead], elapsed[is_done], dt[is_done]
        for array, values in zip(self.before, last, strict=True):
            array[ahead] = values
        self.x[ahead], self.velocity[ahead] = new[is_done], velocity[is_done]
        self.t[ahead] = self._start + elapsed[is_done] + dt[is_done]
        return codes

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

    Velocities of all groups that take a step are evaluated in one call. Every group takes the steps
    that it takes alone, to the last bit.

    Parameters
    ----------
    scheme : Scheme
        An explicit scheme, such as `DormandPrince`.
    field, x, steps, groups, rtol, smallest_change, start
        As for `PointFlow`.
    """

    def __init__(self, scheme: Scheme, field: VelocityField, x: np.ndarray, **options: Any):
        self.dense = isinstance(scheme.dense, DenseOutput)
        super().__init__(scheme, field, x, **options)

    def restart(self, x: np.ndarray, t: Any, field: VelocityField | None = None) -> None:
        """Go on from other positions at the time t, or with another field."""
        super().restart(x, t, field)
        groups, stages = self.groups, len(self.scheme.nodes) + 2
        axes = () if groups == 1 else (groups,)
        self._slopes, self._lent = np.empty((*axes, stages, x.size // groups)), False
        self._intermediates: list[np.ndarray | None] = [None] * stages
        self._within: Interpolant | None = None
        self._terms = np.empty((groups, 0, x.size // groups))  # of interpolants of several groups
        self._has_terms = np.zeros(groups, dtype=bool)

    @property
    def stages(self) -> Stages:
        """The stages of the last step, in memory that later steps do not overwrite."""
        self._lent = True
        return Stages(self._slopes, self._intermediates)

    def step(
        self, x: np.ndarray, velocity: Any, elapsed: Any, dt: Any, groups: np.ndarray | None = None
    ) -> tuple[Any, Any, Any]:
        """Positions and velocities one step after x, and the relative error: see `PointFlow`."""
        field = self._part(groups)
        norm = field.relative_error if groups is None else field.relative_errors
        new, new_velocity = self._stepped(x, velocity, elapsed, dt, field, groups)
        weights = self.scheme.explicit_weights[self.scheme.evaluations :]
        sums = (combined(row, self._slopes, dt, None, groups) for row in weights)
        first, *second = (norm(error.reshape(new.shape), new) for error in sums)
        return new, new_velocity, embedded_error(first, second[0] if second else 0.0)

    def _stepped(
        self,
        x: np.ndarray,
        velocity: np.ndarray,
        elapsed: Any,
        dt: Any,
        field: Any,
        groups: np.ndarray | None = None,
        stage_velocities: Velocity | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities one step after x, by `stage_velocities` (x, t) at the stages.

        By default these are the velocities of the field.
        """
        velocities, t = stage_velocities or self._velocities(field, groups), self._start + elapsed
        index: Any = 0
        if groups is None:
            self._within, velocities = None, self._recorded(velocities)
        else:
            self._has_terms[groups], index = False, groups
        scheme, axes, weights = self.scheme, self._slopes.shape, self.scheme.explicit_weights
        self.counts[2, index] += scheme.evaluations
        start, slopes, rows, steps = rows_of(x, self._slopes, groups, dt)
        flat = axes[-1:] if groups is None else (len(groups), axes[-1])
        slopes[index, 0] = velocity.reshape(flat)
        for i, node in enumerate((*scheme.nodes, 1.0)):
            self._end = y = np.empty(x.shape)
            combine(start, weights[i], slopes, rows, steps, y.reshape(len(rows), -1))
            if i < len(scheme.nodes):
                slopes[index, i + 1] = velocities(y, t + node * dt).reshape(flat)
        new = field.projected(self._end)
        new_velocity = velocities(new, t + dt)
        slopes[index, -1] = new_velocity.reshape(flat)
        return new, new_velocity

    def _recorded(self, velocities: Velocity) -> Velocity:
        """Velocities of the next step, with memory for them and for intermediate arrays."""
        if self._lent:
            self._slopes, self._lent = np.empty_like(self._slopes), False
        field, intermediates = self._field, self._intermediates[:1]
        self._intermediates = intermediates

        def velocity_of(y: np.ndarray, time: float) -> np.ndarray:
            rates = velocities(y, time)
            intermediates.append(getattr(field, "intermediate", None))
            return rates

        return velocity_of

    def _taken(self, elapsed: float, dt: float, stages: Stages | None) -> tuple[Any, Any]:
        """Step of length dt, with the velocities of recorded stages where there are any."""
        stage_velocities = None
        if stages is not None:
            rows = zip(stages.velocities[1:], stages.intermediates[1:], strict=True)
            stage_velocities = lambda x, t: self._field.velocity_from(x, t, *next(rows))  # noqa: E731
        return self._stepped(
            self.x, self.velocity, elapsed, dt, self._field, None, stage_velocities
        )

    def repeat(self, groups: np.ndarray) -> None:
        """Take the last steps of some groups again, from their beginnings; counts do not change.

        This restores the slopes of their stages, which `within` needs.
        """
        if groups.size and self.before is not None:
            counts, step = self.counts.copy(), self.before
            rows: tuple[np.ndarray, ...] = ()
            if self.groups > 1:
                step, rows = Step(*(array[groups] for array in step)), (groups,)
            velocity = self._velocities(self._part(groups), groups)(step.x, step.t)
            self.step(step.x, velocity, step.elapsed, step.dt, *rows)
            self.counts[:] = counts

    # Within the last step ------------------------------------------------------------------

    def within(self, elapsed: float, groups: Any = None) -> np.ndarray:
        """Positions at a clock time within the last step, before any other step is tried.

        Of the only group, or of those with these indices.
        """
        assert self.before is not None
        if self.groups == 1:
            fraction = (elapsed - self.before.elapsed) / self.before.dt
            return self._field.projected(self.interpolant(fraction))
        missing = groups[~self._has_terms[groups]]
        if missing.size:
            terms = self._interpolation(missing, *(array[missing] for array in self.before))
            if not self._terms.shape[1]:
                self._terms = np.empty((self.groups, len(terms), terms[0].shape[1]))
            self._terms[missing], self._has_terms[missing] = np.stack(terms, axis=1), True
        x, _, begin, dt = (array[groups] for array in self.before)
        terms, fraction = list(self._terms[groups].swapaxes(0, 1)), (elapsed - begin) / dt
        change = polynomial(terms, fraction[:, None])
        return self._part(groups).projected(x + change.reshape(x.shape))

    @property
    def interpolant(self) -> Interpolant:
        """Interpolant of the last step of a single group, as in `within` but without projection."""
        assert self.before is not None
        if self._within is None:
            self._within = Interpolant(self.before.x, self._interpolation(None, *self.before))
        return self._within

    def _interpolation(
        self, groups: np.ndarray | None, x: np.ndarray, _t: Any, elapsed: Any, dt: Any
    ) -> list[np.ndarray]:
        """Terms of the interpolation within the last steps."""
        velocities, t = self._velocities(self._part(groups), groups), self._start + elapsed
        new, slopes = (
            array if groups is None else array[groups] for array in (self.x, self._slopes)
        )
        if getattr(self._field, "changes_coordinates", False):
            new, slopes = self._end, slopes.copy()
            slopes[-1] = velocities(new, t + dt).ravel()
        return interpolation_terms(self.scheme.dense, velocities, x, new, slopes, t, dt)
