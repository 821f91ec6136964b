"""Policies of a run: rules that are consulted after its steps and may change or end it."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from ..core.annotations import JsonTable, Snapshot
from ..steppers.clock import replanned
from ..steppers.radau import Radau, StiffFlow, jacobian

DEGREE_EXHAUSTED = 100  # max_degree modes are too few
BLOWN_UP = 102  # the next step would pass a blow-up
NEAR_BLOW_UP = 1e-11  # largest T - t, relative to the time since the start, to report a blow-up
SLOWEST_POWER = 0.02  # least power of 1 / (T - t) that differs from a fast exponential
POWER_TOLERANCE = 0.02  # relative difference up to which the powers of single steps agree
AGREEING_STEPS, AGREEING_GROWTH = 4, 10.0  # steps that must agree, and growth of the rate in them
FAR_GROWTH = 1000.0  # growth of the rate after which no common power is needed

CANCELLED_RATES = 103  # rounding errors of decaying parts hide growing parts
JACOBIAN_INTERVAL = 100  # explicit steps between two estimates of the stiffness
STIFF_STEP = 3.0  # step times fastest rate of decay: larger is stiff; explicit schemes allow 6
CANCELLING_NOISE = 100.0  # rounding error, relative to rtol, that hides the growth of the law
IMPLICIT_COORDINATES = 600  # largest number of coordinates for implicit steps
NOISE_IN_STEPS = 0.01  # rounding error, relative to rtol, that matters in error estimates
CRAWLING_STEPS = 500  # implicit steps within which a growing law must grow e-fold
OLD_GROWTH = 5.0  # least growth rate times the time since the start of a law that grows


class Policy(ABC):
    """Rule that is consulted after the steps of a run and may change or end it; see `Integration`.

    Attributes
    ----------
    memory : tuple of str
        Names of the attributes that checkpoints store: numbers, arrays, sequences of numbers.
    always : bool
        Whether it is also consulted after fixed steps, and at the start of a run.
    """

    memory: ClassVar[tuple[str, ...]]
    always: ClassVar[bool] = False

    @abstractmethod
    def after_step(self, run: Any, code: int) -> int | None:
        """Consult the policy after steps that returned `code`.

        Returns the code of the reason why the run ends, or None if it goes on.
        """

    def stats(self, start: float) -> JsonTable:
        """Entries for `stats` of the result."""
        return {}

    def snapshot(self) -> Snapshot:
        """The attributes in `memory`, as arrays."""
        return {name: np.array(getattr(self, name)) for name in self.memory}

    def restore(self, snapshot: dict[str, np.ndarray], run: Any = None) -> None:
        """Set the attributes in `memory` from a snapshot."""
        for name in self.memory:
            kind, value = type(getattr(self, name)), snapshot[name]
            setattr(self, name, value if kind is np.ndarray else kind(value.tolist()))


class BlowUp(Policy):
    """Policy that finds the time T of a blow-up like (T - t)^(-p), for any p.

    The growth rate r is p / (T - t), so that 1/r falls linearly to 0 at T. Each step gives an
    estimate of the slope -1/p, which is accepted once several steps agree while r grows tenfold.
    If a law rotates for ever as it grows, 1/r oscillates about a line: there is no p, and T is
    accepted once r has grown a thousandfold within a time of the order of 1/r. Growth without
    blow-up has no such slope, or overflows long before r is so large.

    Attributes
    ----------
    elapsed : float or None
        T, relative to the start, once it is known.
    power : float or None
        p, to about 2 %; None if the steps do not agree, for instance if several parts blow up.
    """

    memory = ("alike", "close")

    def __init__(self) -> None:
        """Begin without any sign of a blow-up."""
        self.elapsed: float | None = None
        self.power: float | None = None
        # Last 1/r; p of the steps that agree, 1/r at the first of them, and their number.
        self.alike = (np.inf, np.inf, np.inf, 0.0)
        self.close = (np.inf, 0.0)  # 1/r when it became small, and the time since then

    def after_step(self, run: Any, code: int) -> int | None:
        """Return BLOWN_UP once the time of the blow-up is known, else None."""
        growth = run.motion.growth(run.flow.x, run.flow.velocity, run.t)
        return BLOWN_UP if self.look(run.elapsed, run.flow.before.dt, growth) else None

    def stats(self, start: float) -> JsonTable:
        """Time T of the blow-up and its power p; None where they are not known."""
        time = None if self.elapsed is None else start + self.elapsed
        return {"blow_up_time": time, "blow_up_power": self.power}

    def look(self, elapsed: float, step: float, growth: float) -> bool:
        """Estimate T and p after a step; return True once T is known.

        Parameters
        ----------
        elapsed : float
            Time at the end of the step, relative to the start.
        step : float
            Length of the step, which is more accurate than a difference of times close to T.
        growth : float
            Growth rate r at the end of the step.
        """
        tau = 1 / growth if 0 < growth < np.inf else np.inf
        power, slope = self._power(step, tau), self._slope(step, tau, NEAR_BLOW_UP * elapsed)
        if power * tau <= NEAR_BLOW_UP * elapsed:
            self.elapsed, self.power = elapsed + power * tau, power
        elif slope < np.inf:
            self.elapsed = elapsed + slope * tau
        return self.elapsed is not None

    def _power(self, step: float, tau: float) -> float:
        """Estimate of p, if the last steps agree, else inf; `tau` is 1/r after the step."""
        last_tau, expected, since, steps = self.alike
        power = step / (last_tau - tau) if tau < last_tau < np.inf else np.inf
        if abs(power - expected) <= POWER_TOLERANCE * expected < np.inf:
            steps += 1
        else:
            expected, since, steps = power, tau, 1
        self.alike = tau, expected, since, steps
        agreed = steps >= AGREEING_STEPS and tau * AGREEING_GROWTH <= since
        return power if agreed and SLOWEST_POWER < power < 1 / SLOWEST_POWER else np.inf

    def _slope(self, step: float, tau: float, limit: float) -> float:
        """Estimate of p from two values of 1/r whose ratio is FAR_GROWTH or more; inf without them.

        `tau` is 1/r after the step; the first value is the first one that is at most `limit`.
        """
        first, time = self.close[0], self.close[1] + step
        if first == np.inf or time * SLOWEST_POWER > first:
            first, time = tau if tau <= limit else np.inf, 0.0
        self.close = first, time
        slope = time / (first - tau) if tau * FAR_GROWTH <= first < np.inf else np.inf
        return slope if slope > SLOWEST_POWER else np.inf


class Stiffness(Policy):
    """Policy that changes to the implicit scheme `Radau` if a run is stiff.

    It ends a run with implicit steps if rounding errors limit its steps or hide its growth.

    Attributes
    ----------
    implicit : bool
        Whether the run has implicit steps.
    mark : ndarray, (2,)
        Number of steps and time at the last check of the progress.
    """

    memory = ("implicit", "mark")

    def __init__(self) -> None:
        self.implicit = False
        self.mark = np.zeros(2)

    def after_step(self, run: Any, code: int) -> int | None:
        """Change to implicit steps if the run is stiff; return CANCELLED_RATES to end the run."""
        if (
            not self.implicit
            and run.clock.step * self._rates(run, JACOBIAN_INTERVAL)[0] > STIFF_STEP
        ):
            self.implicit, self.mark = True, np.array([run.accepted, run.elapsed])
            clock = replanned(run.clock, run.clock.proposal)  # implicit steps end at outputs
            self._go_implicit(run)
            run.clock = clock
            run.flow.renew()
        return CANCELLED_RATES if self._cancelled(run) else None

    def _rates(self, run: Any, interval: int) -> tuple[float, float]:
        """Largest rates of decay and of growth, from the eigenvalues of the Jacobian.

        They are computed once in `interval` accepted steps; nan at other steps, for more than
        IMPLICIT_COORDINATES coordinates, and for a Jacobian that is not finite.
        """
        y = run.flow.x
        if run.accepted % interval or y.size > IMPLICIT_COORDINATES:
            return np.nan, np.nan
        J = jacobian(run.motion, y, run.t)
        if not np.isfinite(J).all():
            return np.nan, np.nan
        values = np.linalg.eigvals(J).real
        return float(-values.min()), float(values.max())

    def _cancelled(self, run: Any) -> bool:
        """True if rounding errors of decaying parts hide growing parts, or make steps too short.

        If they are comparable with rtol, error estimates are rounding errors, and steps become
        shorter and shorter.
        """
        if not self.implicit:
            return False
        decay, growth = self._rates(run, JACOBIAN_INTERVAL // 5)
        noise = np.finfo(float).eps * decay / max(growth, 1 / run.elapsed) / run.rtol
        if noise > CANCELLING_NOISE:
            return True
        steps, marked_time = self.mark
        is_due = growth >= 0 and run.accepted >= steps + CRAWLING_STEPS
        if not (noise > NOISE_IN_STEPS and is_due):
            return False
        self.mark = np.array([run.accepted, run.elapsed])  # growth by less than e since the last
        return bool(growth * run.elapsed > OLD_GROWTH and growth * (run.elapsed - marked_time) < 1)

    def _go_implicit(self, run: Any) -> None:
        run.flow = StiffFlow(Radau, run.rows, run.flow.x, **run.flow_options)

    def restore(self, snapshot: dict[str, np.ndarray], run: Any = None) -> None:
        """Set the attributes from a snapshot, and change to implicit steps if the run had them."""
        super().restore(snapshot)
        if self.implicit:
            self._go_implicit(run)
