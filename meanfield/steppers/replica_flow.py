"""Steps of independent replicas, each with its own clock, step size and error control.

Velocities of all replicas that take a step are evaluated in one call. Every replica takes the steps
that it takes alone, to the last bit.
"""

from typing import Any, Protocol

import numpy as np

from ..lowlevel.compilation import jitable, njit
from .clock import Clock, accepted, clock_of, keep, planned_to, rejected, shows
from .dense_output import ExplicitSteps, interpolation_terms, polynomial
from .flow import (
    NO_FLOAT_WARNINGS,
    Stall,
    stall_accepted,
    stall_rejected,
    stalled_for_good,
)
from .schemes import DenseOutput, Scheme

NUMBERS_AT_ONCE = 1 << 15  # floats of replicas that are advanced together: they fit into a cache
RUNNING, ACCEPTED, REJECTED, GIVES_UP, LOST = range(5)  # codes of the result of an attempted step


class Members(Protocol):
    """A velocity field of replicas, and a norm of errors of their positions.

    `autonomous` is True if the velocity does not depend on t.
    """

    autonomous: bool

    def of_members(self, members: np.ndarray) -> Any:
        """The field of some of the replicas."""

    def velocity(self, x: np.ndarray, t: float) -> np.ndarray:
        """Velocities dx/dt at positions x (R, ...)."""

    def relative_errors(self, error: np.ndarray, x: np.ndarray) -> np.ndarray:
        """The size of an error of each replica, (R,)."""

    def projected(self, x: np.ndarray) -> np.ndarray:
        """Projection of points x near the space to the space."""


class ReplicaFlow:
    """R replicas, each with its own steps, with error control or of a given length.

    Parameters
    ----------
    scheme : Scheme
        Explicit.
    field : Members
    x : ndarray, shape (R, ...)
        The first positions.
    steps : ndarray, shape (R,)
        The first steps.
    rtol : float
        Bound of `relative_errors` for a step; 0 for fixed steps.
    start : float
        The time at which the clocks start.

    Attributes
    ----------
    x, velocity : ndarray, shape (R, ...)
        Positions and velocities at the ends of the last steps.
    clocks : ndarray, shape (R, 7)
        The numbers of the `Clock` of each replica.
    times : ndarray, shape (R,)
        The times of `velocity`; they may differ from those of the clocks by rounding.
    before, step : ndarray, shapes (R, ...) and (R, 3)
        Positions at the beginning of the last step; its clock time, its length, and the time of
        its first velocity.
    counts : ndarray of int, shape (3, R)
        Steps accepted and rejected, and evaluations of the velocity for them.
    stalls : ndarray, shape (R, 5)
        The numbers of the `Stall` of each replica.
    dense : bool
        Whether states within a step can be interpolated.
    """

    def __init__(
        self,
        scheme: Scheme,
        field: Any,
        x: np.ndarray,
        steps: np.ndarray,
        *,
        rtol: float,
        start: float,
    ):
        self.scheme, self._field, self._rtol, self._start = scheme, field, rtol, start
        self._steps, self._order = ExplicitSteps(scheme), scheme.estimate_order + 1.0
        self.dense = isinstance(scheme.dense, DenseOutput)
        self.x, members = x, len(x)
        self.clocks = np.zeros((members, len(Clock._fields)))
        self.clocks[:, Clock._fields.index("proposal")] = steps
        self.clocks[:, Clock._fields.index("previous_error")] = 1.0
        self.counts = np.zeros((3, members), dtype=np.int64)
        self.stalls = np.zeros((members, len(Stall._fields)))
        self.before, self.step = x.copy(), np.zeros((members, 3))
        size = x[0].size
        self._slopes = np.empty((members, len(scheme.nodes) + 2, size))
        self._terms = np.empty((members, 0, size))
        self._known = np.zeros(members, dtype=bool)  # whether terms belong to the last step
        every, self.times = np.arange(members), np.full(members, start)
        self.velocity = self._velocities(field, every, x, self.times)

    @property
    def t(self) -> np.ndarray:
        """The times on the clocks, (R,)."""
        return self.clocks[:, 0]

    def _part(self, members: np.ndarray) -> Any:
        """The field of the replicas with these indices, in increasing order."""
        every = len(members) == len(self.x)
        return self._field if every else self._field.of_members(members)

    def restart(self, members: np.ndarray, times: np.ndarray | None = None) -> None:
        """Evaluate the velocities of some replicas again, for instance after a jump of the model.

        At the times of their clocks, or at the given times.
        """
        part = self._part(members)
        self.times[members] = self._start + self.t[members] if times is None else times
        x, t = self.x[members], self.times[members]
        self.velocity[members] = self._velocities(part, members, x, t)

    @np.errstate(**NO_FLOAT_WARNINGS)
    def advance(self, members: np.ndarray, target: float) -> np.ndarray:
        """Try one step of each of these replicas towards the time `target`; return codes, (R',)."""
        size = max(1, NUMBERS_AT_ONCE // self._slopes.shape[2])
        parts = [members[first : first + size] for first in range(0, len(members), size)]
        return np.concatenate([self._advance(part, target) for part in parts])

    def _advance(self, members: np.ndarray, target: float) -> np.ndarray:
        x, clocks = self.x[members], self.clocks[members]
        _plan(clocks, target, not self._rtol)
        elapsed, dt = clocks[:, 0].copy(), clocks[:, 2].copy()
        new, velocity, errors = self._attempt(members, x, self.velocity[members], elapsed, dt)
        finite = np.isfinite(new).reshape(len(new), -1).all(axis=1) & np.isfinite(errors)
        relative = np.full(len(members), -1.0)
        if self._rtol:
            relative = np.where(finite, errors / self._rtol, np.inf)
        codes = np.empty(len(members), dtype=np.int64)
        stalls = self.stalls[members]
        _account(clocks, stalls, relative, finite, self._order, target, codes)
        self.clocks[members], self.stalls[members] = clocks, stalls
        done = codes == ACCEPTED
        done |= (codes == GIVES_UP) & (relative <= 1)
        self.counts[0, members] += done
        self.counts[1, members] += (codes != LOST) & ~done
        ahead = members[done]
        self.before[ahead], self.x[ahead], self.velocity[ahead] = x[done], new[done], velocity[done]
        self.step[ahead] = np.stack([elapsed[done], dt[done], self.times[ahead]], axis=1)
        self.times[ahead] = self._start + elapsed[done] + dt[done]
        return codes

    def _attempt(
        self,
        members: np.ndarray,
        x: np.ndarray,
        velocity: np.ndarray,
        elapsed: np.ndarray,
        dt: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Positions and velocities one step after x for R' replicas, and relative errors (R',)."""
        slopes, part, t = self._slopes, self._part(members), self._start + elapsed
        slopes[members, 0], self._known[members] = velocity.reshape(len(x), -1), False
        self.counts[2, members] += self.scheme.evaluations

        def velocity_of(y: np.ndarray, times: np.ndarray) -> np.ndarray:
            return self._velocities(part, members, y, times)

        new = part.projected(self._steps.end(x, slopes, velocity_of, t, dt, members))
        new_velocity = velocity_of(new, t + dt)
        slopes[members, -1] = new_velocity.reshape(len(x), -1)
        errors = self._steps.error(part.relative_errors, new, slopes, dt, members)
        return new, new_velocity, errors

    def _velocities(
        self, part: Any, members: np.ndarray, x: np.ndarray, t: np.ndarray
    ) -> np.ndarray:
        """Velocities of some replicas, each at its own time."""
        if self._field.autonomous:
            return part.velocity(x, float(t[0]))
        velocities = np.empty_like(x)
        for r, member in enumerate(members):
            one = self._field.of_members(np.array([member]))
            velocities[r] = one.velocity(x[r : r + 1], float(t[r]))[0]
        return velocities

    # Within the last steps -----------------------------------------------------------------

    @np.errstate(**NO_FLOAT_WARNINGS)
    def within(self, members: np.ndarray, elapsed: float) -> np.ndarray:
        """Positions of some replicas at a time within their last steps."""
        new = members[~self._known[members]]
        if new.size:
            self._interpolate(new)
        start, dt, _ = self.step[members].T
        s = ((elapsed - start) / dt)[:, None]
        change = polynomial(list(self._terms[members].swapaxes(0, 1)), s)
        y = self.before[members] + change.reshape(self.x[members].shape)
        return self._part(members).projected(y)

    def _interpolate(self, members: np.ndarray) -> None:
        """Compute and store the interpolation terms of the last steps of some replicas."""
        table: Any = self.scheme.dense
        part, (elapsed, dt, _) = self._part(members), self.step[members].T

        def velocity(y: np.ndarray, times: np.ndarray) -> np.ndarray:
            return self._velocities(part, members, y, times)

        ends, slopes = (self.before[members], self.x[members]), self._slopes[members]
        terms = interpolation_terms(table, velocity, *ends, slopes, self._start + elapsed, dt)
        if not self._terms.shape[1]:
            self._terms = np.empty((len(self.x), len(terms), slopes.shape[2]))
        self._terms[members] = np.stack(terms, axis=1)
        self._known[members] = True

    def repeat(self, members: np.ndarray) -> None:
        """Take the last steps of some replicas again, from their beginnings; counts do not change.

        This restores the slopes of their stages, which `within` needs.
        """
        if members.size:
            x, (elapsed, dt, first) = self.before[members], self.step[members].T.copy()
            part, counts = self._part(members), self.counts.copy()
            velocity = self._velocities(part, members, x, first)
            self._attempt(members, x, velocity, elapsed, dt)
            self.counts[:] = counts


@jitable
def _stall_of(row: np.ndarray) -> Stall:
    return Stall(row[0], row[1], row[2], row[3], row[4])


@jitable
def _keep_stall(stall: Stall, row: np.ndarray) -> None:
    row[0], row[1], row[2] = stall.rejections, stall.waited, stall.shortest
    row[3], row[4] = stall.total, stall.mark


@njit(cache=True, error_model="numpy")
def _plan(clocks: np.ndarray, target: float, fixed: bool) -> None:
    """Plan the steps of every clock, in place."""
    for r in range(len(clocks)):
        keep(planned_to(clock_of(clocks[r]), target, fixed), clocks[r])


@njit(cache=True, error_model="numpy")
def _account(
    clocks: np.ndarray,
    stalls: np.ndarray,
    relative: np.ndarray,
    finite: np.ndarray,
    order: float,
    target: float,
    codes: np.ndarray,
) -> None:
    """Update clocks, stalls and codes, in place, after steps were tried.

    `relative` (R',) are the errors over rtol, -1 without error control; `finite` (R',) tells
    whether the new positions are finite; `order` is that of the error estimate.
    """
    for r in range(len(clocks)):
        clock = clock_of(clocks[r])
        if relative[r] < 0 and not finite[r]:
            codes[r] = LOST
        elif not relative[r] <= 1:
            stall = stall_rejected(_stall_of(stalls[r]))
            codes[r] = GIVES_UP if stalled_for_good(stall) else REJECTED
            _keep_stall(stall, stalls[r])
            keep(rejected(clock, relative[r], order), clocks[r])
        else:
            before, step = clock.t, clock.step
            clock = accepted(clock, relative[r], order, target)
            moved = clock.t == target or shows(before, step)
            stall = stall_accepted(_stall_of(stalls[r]), step, moved)
            codes[r] = GIVES_UP if stalled_for_good(stall) else ACCEPTED
            _keep_stall(stall, stalls[r])
            keep(clock, clocks[r])
