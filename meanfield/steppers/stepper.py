"""A scheme applied to one equation du/dt = L u + N(u, t)."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from .advance import Rules, advance, rate_of_change
from .attempt import HIGHEST, JOURNAL, Problem, Work, fastest_rate, slope_of
from .clock import Clock, started
from .dense_output import Interpolant, ParabolicInterpolant
from .eigenbasis import NO_BASIS, Eigenbasis, scratch
from .schemes import ParabolicOutput, Scheme, Table

FIXED_STEP = Rules(0.0, 1.0, 0.0, np.inf, 0.0, np.inf, 0.0)  # whatever its error is


class _Nonlinear(Protocol):
    address: int
    context: int
    speed: np.ndarray
    time: np.ndarray

    def check(self) -> None: ...


class Stepper:
    """Steps of one scheme for du/dt = L u + N(u, t) of (members, modes), L diagonal in some basis.

    Parameters
    ----------
    scheme : Scheme
    linear : ndarray, (1, modes) or (members, modes)
        The diagonal of L, real or complex, real part <= 0.
    nonlinear : Transport
        N, as that of a geometry.
    state : ndarray, (members, modes)
        Shape and dtype of the states; its values are the first state.
    metric : ndarray, (modes,), optional
        Weights of the squared coefficients in the norm of errors; by default 1.
    parseval : ndarray, (modes,), optional
        Weights of the squared coefficients in the norm of the rate of change; by default 1.
    degrees : ndarray of int, (modes,), optional
        Degree of every coefficient, for the spectral tail; by default 0, 1, ....
    start : float
        The time at which the clock shows 0.
    basis : Eigenbasis, optional
        In which L is diagonal, of the states as real numbers: real and imaginary parts in turn
        where they are complex. A row of `linear` then has as many eigenvalues.

    Attributes
    ----------
    elapsed : float
        What the clock shows at the present state; set it before a state of another time.
    before : Clock
        At the beginning of the last step, which has the length `before.step`.
    made : ndarray, (n, 2)
        Beginning and length of the steps that the last `advance` accepted.
    """

    before: Clock
    made: np.ndarray

    def __init__(
        self,
        scheme: Scheme,
        linear: np.ndarray,
        nonlinear: _Nonlinear,
        state: np.ndarray,
        *,
        metric: np.ndarray | None = None,
        parseval: np.ndarray | None = None,
        degrees: np.ndarray | None = None,
        start: float = 0.0,
        basis: Eigenbasis | None = None,
    ):
        self.scheme, self._nonlinear = scheme, nonlinear  # lives as long as its address is used
        state = np.asarray(state)
        modes, self._dtype = state.shape[1], state.dtype
        inner = state.dtype if basis is None else np.dtype(float)
        parts = state.dtype.itemsize // inner.itemsize  # numbers that the loop has for one
        self._linear = np.array(linear)  # copies: read-only arrays are another type when compiled
        problem = Problem(
            nonlinear.address,
            nonlinear.context,
            self._linear,
            self._linear,
            np.repeat(np.ones(modes) if metric is None else metric, parts).astype(float),
            np.repeat(np.ones(modes) if parseval is None else parseval, parts).astype(float),
            np.repeat(np.arange(modes) if degrees is None else degrees, parts).astype(np.int64),
            nonlinear.speed,
            nonlinear.time,
            start,
            NO_BASIS if basis is None else basis,
        )
        self.elapsed = 0.0
        self._problem = _for_scheme(problem, scheme, self._linear)
        self._table = scheme.table
        shape = len(state), parts * modes
        self._work = _work(self._table, self._problem.linear, np.zeros(shape, dtype=inner))
        self.state = state

    @property
    def linear(self) -> np.ndarray:
        """The diagonal of L; set it to another one, before a state."""
        return self._linear

    @linear.setter
    def linear(self, linear: np.ndarray) -> None:
        self._linear[:] = linear
        self._work.weighed_step[0] = np.nan

    @property
    def state(self) -> np.ndarray:
        """The state u, a copy; set it to start from elsewhere."""
        return self._work.u[self._work.front[0]].copy().view(self._dtype)

    @state.setter
    def state(self, u: np.ndarray) -> None:
        front = self._work.front[0]
        self._work.u[front] = self._inside(u)
        self._work.slope[front] = self._slope(self._work.u[front], self.elapsed)
        self._interpolant: Callable[[float], np.ndarray] | None = None

    @property
    def state_before(self) -> np.ndarray:
        """That at the beginning of the last step, as long as no other step was tried."""
        return self._work.u[1 - self._work.front[0]].copy().view(self._dtype)

    def within(self, t: float) -> np.ndarray:
        """The state at a time within the last step, as long as no other step was tried.

        The step must have passed the `output` of `advance`.
        """
        if self._interpolant is None:
            self._interpolant = self._last_step()
        return self._interpolant((t - self.before.t) / self.before.step).view(self._dtype)

    def _last_step(self) -> Callable[[float], np.ndarray]:
        """The state within the last step, as a function of the part of it."""
        work, dt, dense = self._work, self.before.step, self.scheme.dense
        front, basis = work.front[0], self._problem.basis
        u, new = work.u[1 - front].copy(), work.u[front].copy()
        if isinstance(dense, ParabolicOutput):
            ends = basis.into(u), basis.into(new)
            modal = ParabolicInterpolant(dense, self._linear, *ends, work.slopes, dt)
            return lambda part: basis.out_of(modal(part))
        assert dense is not None
        speed = self._problem.speed.copy()  # that of the step, which the next review looks at
        real, dtype = np.float64, u.dtype

        def velocity(place: np.ndarray, t: float) -> np.ndarray:
            return self._slope(place.view(dtype), t).view(real)

        slopes = np.moveaxis(work.slopes, 1, 0).reshape(work.slopes.shape[1], -1).view(real)
        ends = u.view(real), new.view(real)
        interpolant = Interpolant(dense, velocity, *ends, slopes, self.before.t, dt)
        self._problem.speed[:] = speed
        return lambda part: interpolant(part).view(dtype)

    @property
    def weighed_step(self) -> float:
        """The size of the steps that there are weights for, nan for none; set it to have them."""
        return float(self._work.weighed_step[0])

    @weighed_step.setter
    def weighed_step(self, dt: float) -> None:
        u, elapsed, self._work.weighed_step[0] = self.state, self.elapsed, np.nan
        if not np.isnan(dt):  # weights come with a step, which is thrown away
            self.advance(started(dt), FIXED_STEP, dt, 1)
        self.elapsed = elapsed
        self.state = u

    @property
    def counts(self) -> np.ndarray:
        """Steps accepted, steps rejected, weights computed; assign through [:] to carry on."""
        return self._work.counts

    def nonlinear(self, u: np.ndarray, elapsed: float = 0.0) -> np.ndarray:
        """N(u) when the clock shows `elapsed`, with L u in it for an explicit scheme."""
        return self._slope(self._inside(u), elapsed).view(self._dtype)

    def _inside(self, u: np.ndarray) -> np.ndarray:
        """A state in the numbers of the loop, a copy."""
        source = np.array(u, dtype=self._dtype, order="C").view(self._work.u.dtype)
        return source.reshape(self._work.u.shape[1:])

    def _slope(self, u: np.ndarray, elapsed: float) -> np.ndarray:
        """N of a state in the numbers of the loop."""
        source, problem = u.reshape(self._work.u.shape[1:]), self._problem
        slope, modal = np.empty_like(source), np.empty_like(self._work.modal)
        part = np.empty_like(self._work.part)
        problem.time[0] = problem.start + elapsed
        for member in range(len(source)):
            slope_of(problem, member, source[member], slope[member], modal, part)
        self._nonlinear.check()
        return slope

    def _rates_of_change(self, u: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """L u + N(u), from N(u)."""
        basis = self._problem.basis
        return basis.out_of(self._problem.linear * basis.into(u)) + slope

    @property
    def rate(self) -> float:
        """Largest L2 norm of du/dt over the members, at the present state."""
        return self._rate(self._problem.parseval)

    @property
    def rate_in_metric(self) -> float:
        """The same in the norm of errors."""
        return self._rate(self._problem.metric)

    def _rate(self, weights: np.ndarray) -> float:
        work, front = self._work, self._work.front[0]
        return float(rate_of_change(self._problem, work.u[front], work.slope[front], work, weights))

    def growth(self, way: float) -> float:
        """How fast N changes along du/dt, relative: from the present state so far along, by norms.

        In the norm of errors; the largest over the members, which move by `way` at most.
        """
        work, front = self._work, self._work.front[0]
        u, slope = work.u[front], work.slope[front]
        moved = u + way / self.rate_in_metric * self._rates_of_change(u, slope)
        change = self._slope(moved, self.elapsed) - slope
        return float(np.sqrt((self._problem.metric * np.abs(change) ** 2).sum(axis=1).max())) / way

    def longest_step(self, scheme: Scheme) -> float:
        """The longest step of a scheme that is stable at the speed that the last step met."""
        problem = _for_scheme(self._problem, scheme, self._linear)
        speed = problem.speed[0]
        rate = fastest_rate(problem.linear, problem.added, problem.degrees, speed)
        return float(scheme.stability / max(rate, 1e-300))

    def expected_step(self, u: np.ndarray, dt: float, rtol: float) -> float:
        """The step that error control would take from u, by the error of one of size dt."""
        _, error = self._attempted(u, dt, self.elapsed)
        if not np.isfinite(error):
            return 0.1 * dt
        relative = max(error / rtol, 1e-10)
        step = 0.9 * dt * relative ** (-1 / (self.scheme.estimate_order + 1))
        return min(step, 10 * dt, self.longest_step(self.scheme))

    def step(self, u: np.ndarray, dt: float, elapsed: float = 0.0) -> tuple[np.ndarray, float]:
        """The state one step after u, and the relative error estimate. Leaves `state` alone.

        The clock shows `elapsed` at u.
        """
        speed = self._problem.speed.copy()  # that of the last step, which the next review looks at
        found = self._attempted(u, dt, elapsed)
        self._problem.speed[:] = speed
        return found

    def _attempted(self, u: np.ndarray, dt: float, elapsed: float) -> tuple[np.ndarray, float]:
        work = _work(self._table, self._problem.linear, self._work.u[0])
        work.u[0] = self._inside(u)
        work.slope[0] = self._slope(work.u[0], elapsed)
        clock, dt = started(float(dt)), float(dt)
        problem = self._problem._replace(start=self._problem.start + elapsed)
        advance(problem, self._table, work, clock, FIXED_STEP, dt, np.inf, 1)
        self._nonlinear.check()
        return work.u[1].view(self._dtype), float(work.error[0])

    def advance(
        self, clock: Clock, rules: Rules, target: float, limit: int, output: float = np.inf
    ) -> tuple[int, Clock]:
        """Move `state` towards the time `target`, at most `limit` attempts, or JOURNAL.

        The loop comes back once a step has reached or passed `output`, of which the steps
        themselves know nothing.

        Returns
        -------
        code, clock
            Why the loop came back (`advance.REACHED` and so on), and the new clock.
        """
        rules = Rules(*map(float, rules))
        problem, table, work, accepted = self._problem, self._table, self._work, self.counts[0]
        code, clock, before = advance(
            problem, table, work, clock, rules, float(target), float(output), min(limit, JOURNAL)
        )
        self.made = work.journal[np.arange(accepted, self.counts[0]) % JOURNAL]
        self._nonlinear.check()
        self._interpolant = None
        self.elapsed = float(clock[0])
        if self.counts[0] > accepted:
            self.before = Clock(*before)
        return code, Clock(*clock)


def _for_scheme(problem: Problem, scheme: Scheme, linear: np.ndarray) -> Problem:
    """L as the scheme takes it: added to N, or in the exponentials."""
    if scheme.explicit:
        return problem._replace(linear=np.zeros((1, 1), linear.dtype), added=linear)
    return problem._replace(linear=linear, added=np.zeros((0, linear.shape[1]), linear.dtype))


def _work(table: Table, linear: np.ndarray, state: np.ndarray) -> Work:
    rows, slots = table.columns.shape
    modes = state.shape[1]
    return Work(
        u=np.zeros((2, *state.shape), dtype=state.dtype),
        slope=np.zeros((2, *state.shape), dtype=state.dtype),
        front=np.zeros(1, dtype=np.int64),
        slopes=np.zeros((len(state), table.decay.size + 1, modes), dtype=state.dtype),
        stage=np.zeros(modes, dtype=state.dtype),
        modal=np.zeros((2, modes), dtype=state.dtype),
        part=scratch(modes, state.dtype),
        phi=np.zeros((table.nodes.size, HIGHEST + 1), dtype=linear.dtype),
        decay=np.zeros((rows, *linear.shape), dtype=linear.dtype),
        weights=np.zeros((rows, len(linear), slots, linear.shape[1]), dtype=linear.dtype),
        columns=table.columns,
        weighed_step=np.full(1, np.nan),
        counts=np.zeros(3, dtype=np.int64),
        error=np.zeros(1),
        journal=np.zeros((JOURNAL, 2)),
    )
