"""A scheme applied to one equation du/dt = L u + N(u, t)."""

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from .advance import Rules, Task
from .attempt import JOURNAL, TRANSPORT_SPEED
from .clock import Clock, restored, started
from .dense_output import Interpolant, ParabolicInterpolant, interpolation_terms
from .rows import COUNTS, Nonlinear, Rows, as_taken
from .schemes import ParabolicOutput, Scheme

FIXED_STEP = Rules(0.0, 1.0, 0.0, np.inf, 0.0, np.inf, 0.0)  # accepts any error


class Stepper:
    """Steps of one scheme for du/dt = L u + N(u, t), u of shape (members, modes), L diagonal.

    Parameters
    ----------
    scheme : Scheme
    linear : ndarray, (1, modes) or (members, modes)
        The diagonal of L, real or complex, real part <= 0.
    nonlinear : Transport
        The function N, for instance that of a space.
    state : ndarray, (members, modes)
        The first state, which also sets shape and dtype.
    metric, parseval, degrees, start, basis
        Options, as for `Rows`.

    Attributes
    ----------
    elapsed : float
        Clock time of the present state; set it before a state at another time.
    before : Clock
        The clock at the beginning of the last step, whose length is `before.step`.
    made : ndarray, (n, 2)
        Beginning and length of the steps that the last `advance` accepted.
    """

    before: Clock
    made: np.ndarray

    def __init__(
        self,
        scheme: Scheme,
        linear: np.ndarray,
        nonlinear: Nonlinear,
        state: np.ndarray,
        **options: Any,
    ):
        """Stepper of a single equation u' = L u + N(u), at `state` (members, modes)."""
        state = np.asarray(state)
        rows = Rows(scheme, linear, (state.shape[0], state.shape[1]), state.dtype, **options)
        self._take(rows, 0, linear, nonlinear, 0)
        self.state = state

    @classmethod
    def of_row(
        cls, rows: Rows, row: int, linear: np.ndarray, nonlinear: Nonlinear, number: int
    ) -> Self:
        """The stepper of one of many rows, without a state; `number` is its first member in N."""
        stepper = cls.__new__(cls)
        stepper._take(rows, row, linear, nonlinear, number)
        return stepper

    def _take(
        self, rows: Rows, row: int, linear: np.ndarray, nonlinear: Nonlinear, number: int
    ) -> None:
        """Enter a row of `rows`, with its linear and nonlinear parts, as the memory used."""
        rows.enter(row, linear, nonlinear, number)
        self.rows, self.row, self.scheme, self.elapsed = rows, row, rows.scheme, 0.0
        self._nonlinear = nonlinear
        self._record, self._memory = rows.records[row], rows.memory_of(row)
        record = rows.records[row : row + 1]
        self._words = record.view(np.int64)
        self._linear = rows.linear[row]
        self._dtype = rows.dtype
        self._interpolant: Callable[[float], np.ndarray] | None = None

    def replace_linear(self, linear: np.ndarray) -> None:
        """Replace the diagonal of L; a state has to be set afterwards."""
        self.rows.linear[self.row] = self.rows.inside(linear)
        self._record["weighed_step"] = np.nan

    @property
    def state(self) -> np.ndarray:
        """A copy of the state u; set it to start from another state."""
        return self._memory.u[self._record["front"]].copy().view(self._dtype)

    @state.setter
    def state(self, u: np.ndarray) -> None:
        self.rows.begin(self._itself, np.asarray(u)[None], self.elapsed)
        self._interpolant = None
        self.check()

    @property
    def state_before(self) -> np.ndarray:
        """The state at the beginning of the last step, before any other step is tried."""
        return self._memory.u[1 - self._record["front"]].copy().view(self._dtype)

    def within(self, t: float) -> np.ndarray:
        """The state at a clock time within the last step, before any other step is tried.

        The step must have passed the `output` of `advance`: only then its slopes are stored.
        """
        if self._interpolant is None:
            self._interpolant = self._last_step()
        return self._interpolant((t - self.before.t) / self.before.step).view(self._dtype)

    def _last_step(self) -> Callable[[float], np.ndarray]:
        """Interpolant of the last step: the state as a function of the fraction of the step."""
        memory, dt, dense = self._memory, self.before.step, self.scheme.dense
        front, basis = self._record["front"], self.rows.basis
        u, new = memory.u[1 - front].copy(), memory.u[front].copy()
        if isinstance(dense, ParabolicOutput):
            ends = basis.into(u), basis.into(new)
            modal = ParabolicInterpolant(dense, self._linear, *ends, memory.slopes, dt)
            return lambda part: basis.out_of(modal(part))
        assert dense is not None
        speed = self.speed  # restored below: the speed of the last step
        real, dtype = np.float64, u.dtype

        def velocity(u: np.ndarray, t: float) -> np.ndarray:
            return self._slope(u.view(dtype), t).view(real)

        slopes = np.moveaxis(memory.slopes, 1, 0)
        slopes = slopes.reshape(len(slopes), -1).view(real)
        ends = u.view(real), new.view(real)
        terms = interpolation_terms(dense, velocity, *ends, slopes, self.before.t, dt)
        interpolant = Interpolant(ends[0], terms)
        self.speed = speed
        return lambda part: interpolant(part).view(dtype)

    @property
    def speed(self) -> float:
        """The largest speed in evaluations of N, in the last step and for states set since."""
        return float(self.rows.speeds[self.row])

    @speed.setter
    def speed(self, speed: float) -> None:
        self.rows.speeds[self.row] = speed

    @property
    def weighed_step(self) -> float:
        """Step size for which weights are stored, nan for none; setting it computes the weights."""
        return float(self._record["weighed_step"])

    @weighed_step.setter
    def weighed_step(self, dt: float) -> None:
        """Compute the weights of the scheme for the step dt; nan discards them."""
        u, elapsed, self._record["weighed_step"] = self.state, self.elapsed, np.nan
        if not np.isnan(dt):  # a step computes the weights; its result is discarded
            clock = Clock(elapsed, elapsed, dt, 1, 0, dt, 1.0)
            self.advance(clock, FIXED_STEP, elapsed + dt, 1)
        self.elapsed = elapsed
        self.state = u

    @property
    def counts(self) -> np.ndarray:
        """Numbers of steps accepted and rejected, and of weights computed, (3,): a view of memory.

        Assign through [:] to continue counts of an earlier run.
        """
        return self._words[COUNTS]

    def _in_loop(self, u: np.ndarray) -> np.ndarray:
        """A copy of a state with the dtype and shape of the compiled loop."""
        source = np.array(u, dtype=self._dtype, order="C").view(self._memory.u.dtype)
        return source.reshape(self._memory.u.shape[1:])

    def _slope(self, u: np.ndarray, elapsed: float) -> np.ndarray:
        """The function N (plus L u for an explicit scheme) of a state as the loop stores it."""
        slope = self.rows.slopes(self._itself, u.reshape(1, *self._memory.u.shape[1:]), elapsed)[0]
        self.check()
        return slope

    def check(self) -> None:
        """Raise the error of an evaluation of N, if there was one."""
        self._nonlinear.check()

    @property
    def _itself(self) -> np.ndarray:
        return np.array([self.row])

    @property
    def rate(self) -> float:
        """Largest L2 norm of du/dt over the members, at the present state."""
        rate = float(self._record["rate"])
        if np.isnan(rate):
            rate = float(self.rows.rates_of_change(self._itself, self.rows.parseval)[0])
        return rate

    def longest_step(self, scheme: Scheme, speed: float | None = None) -> float:
        """The longest stable step of a scheme at a speed, by default that of the last step."""
        speed = self.speed if speed is None else speed
        linear, added = as_taken(scheme, self._linear[None])
        degrees = self.rows.degrees[:: self.rows.degrees.size // self._memory.u.shape[2]]
        if scheme.explicit:
            rates = np.hypot(degrees * (TRANSPORT_SPEED * speed), np.abs(added[0]))
        else:
            rates = degrees * speed + linear[0].real
        return float(scheme.stability / max(np.max(rates), 1e-300))

    def expected_step(self, u: np.ndarray, dt: float, rtol: float) -> float:
        """Step size that error control would choose from u, by the error of a step of size dt."""
        _, error, self.speed = self._attempted(u, dt, self.elapsed)
        if not np.isfinite(error):
            return 0.1 * dt
        relative = max(error / rtol, 1e-10)
        step = 0.9 * dt * relative ** (-1 / (self.scheme.estimate_order + 1))
        return min(step, 10 * dt, self.longest_step(self.scheme))

    def step(self, u: np.ndarray, dt: float, elapsed: float = 0.0) -> tuple[np.ndarray, float]:
        """The state one step after u, and the relative error estimate. `state` does not change.

        The clock shows `elapsed` at u.
        """
        speed = self.speed  # restored below: the speed of the last step of `state`
        new, error, _ = self._attempted(u, dt, elapsed)
        self.speed = speed
        return new, error

    def speed_at(self, u: np.ndarray, elapsed: float = 0.0) -> float:
        """The largest speed at a state u. `state` and `speed` do not change."""
        before, self.speed = self.speed, 0.0
        self._slope(self._in_loop(u), elapsed)
        speed, self.speed = self.speed, before
        return speed

    def _attempted(
        self, u: np.ndarray, dt: float, elapsed: float
    ) -> tuple[np.ndarray, float, float]:
        """The state after a step, its error, and the largest speed."""
        rows, dt = self.rows.again(self.row), float(dt)
        memory, record = rows.memory_of(0), rows.records[0]
        memory.u[0] = self._in_loop(u)
        memory.slope[0] = self._slope(memory.u[0], elapsed)
        record["origin"] += elapsed
        rows.advance([0], [Task(started(dt), FIXED_STEP, dt, np.inf, 1)])
        self.check()
        return memory.u[1].view(self._dtype), float(record["error"]), float(rows.speeds[0])

    def advance(
        self, clock: Clock, rules: Rules, target: float, limit: int, output: float = np.inf
    ) -> tuple[int, Clock]:
        """Advance `state` towards the time `target`, with at most `limit` or JOURNAL attempts.

        The loop returns once a step has reached or passed the time `output`, which does not change
        the step sizes.

        Returns
        -------
        code, clock
            The reason to return (`advance.REACHED` and so on), and the new clock.
        """
        ((code, clock),) = advance_rows([self], [Task(clock, rules, target, output, limit)])
        self.check()
        return code, clock

    def _updated(self, count_before: int) -> tuple[int, Clock]:
        """Update attributes after the loop; return its code and the new clock.

        `count_before` is the number of accepted steps before it.
        """
        count, clock = int(self._record["accepted"]), restored(self._memory.clock)
        self.made = self._memory.journal[np.arange(count_before, count) % JOURNAL]
        self._interpolant, self.elapsed = None, clock.t
        if count > count_before:
            self.before = restored(self._memory.before)
        return int(self._record["code"]), clock


def advance_rows(steppers: Sequence[Stepper], tasks: Sequence[Task]) -> list[tuple[int, Clock]]:
    """Advance steppers in one call; return (code, clock) of each, as `Stepper.advance` does.

    Parameters
    ----------
    steppers : sequence of Stepper
        Steppers of the same `rows`.
    tasks : sequence of Task
        One for each stepper.
    """
    counts = [int(stepper.counts[0]) for stepper in steppers]
    steppers[0].rows.advance([stepper.row for stepper in steppers], tasks)
    return [stepper._updated(count) for stepper, count in zip(steppers, counts, strict=True)]
