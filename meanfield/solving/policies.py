"""Policies of a run: what follows its steps, may change how it goes on, and may end it."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from ..steppers.clock import replanned
from ..steppers.radau import Radau, StiffFlow, jacobian

DEGREE_EXHAUSTED = 100  # max_degree modes are too few
BLOWN_UP = 102  # the next step would pass a blow-up
NEAR_BLOW_UP = 1e-11  # of the time since the start: what is left when the blow-up is certain
SLOWEST_POWER = 0.02  # the least power of 1 / (T - t) that is told from a fast exponential
POWER_TOLERANCE = 0.02  # relative: powers that single steps show
AGREEING_STEPS, AGREEING_GROWTH = 4, 10.0  # how many have to, and the growth of the rate over them
FAR_GROWTH = 1000.0  # growth of the rate after which a power is not waited for any more

CANCELLED_RATES = 103  # rounding of what decays hides what grows
JACOBIAN_INTERVAL = 100  # explicit steps between two looks at the stiffness
STIFF_STEP = 3.0  # a step times the rate of what decays fastest: explicit steps bear about 6
CANCELLING_NOISE = 100.0  # times rtol: rounding that hides the growth of the law
IMPLICIT_COORDINATES = 600  # for implicit steps
NOISE_IN_STEPS = 0.01  # times rtol: rounding that counts in errors of steps
CRAWLING_STEPS = 500  # implicit steps in which a growing law then has to grow e-fold
OLD_GROWTH = 5.0  # growth times the time since the start, of a law that grows


class Policy(ABC):
    """A rule that follows the steps of a run and may change or end it; see `Integration`.

    Attributes
    ----------
    memory : tuple of str
        The attributes that a checkpoint keeps: numbers, arrays, and sequences of numbers.
    always : bool
        Whether it follows steps of a given length too, and looks at the beginning of a run.
    """

    memory: ClassVar[tuple[str, ...]]
    always: ClassVar[bool] = False

    @abstractmethod
    def after_step(self, run: Any, code: int) -> int | None:
        """React to a step that came back with this code; return why the run ends, or None."""

    def stats(self, start: float) -> dict[str, Any]:
        """Entries for `stats` of the result."""
        return {}

    def snapshot(self) -> dict[str, Any]:
        """The attributes in `memory`, as arrays."""
        return {name: np.array(getattr(self, name)) for name in self.memory}

    def restore(self, snapshot: dict[str, np.ndarray], run: Any = None) -> None:
        """Set the attributes in `memory` to those of a snapshot."""
        for name in self.memory:
            kind, value = type(getattr(self, name)), snapshot[name]
            setattr(self, name, value if kind is np.ndarray else kind(value.tolist()))


class BlowUp(Policy):
    """The time T of a blow-up like (T - t)^(-p), for any p.

    The rate r of growth is p / (T - t), so that 1/r falls linearly to 0 at T. Each step shows the
    slope -1/p, which is believed once several show the same while r grows tenfold. Where a law
    turns for ever as it grows, r swings about such a line: there is no p, and T is known once r has
    grown a thousandfold in a time like 1/r. Growth without blow-up has no such slope, or overflows
    long before r is so large.

    Attributes
    ----------
    elapsed : float or None
        T since the start, once it is known.
    power : float or None
        p, to about 2 %; None where steps do not agree on one, as where several parts blow up.
    """

    memory = ("alike", "close")

    def __init__(self) -> None:
        self.elapsed: float | None = None
        self.power: float | None = None
        self.alike = (np.inf, np.inf, np.inf, 0.0)  # 1/r; p, 1/r and steps since they agree on it
        self.close = (np.inf, 0.0)  # 1/r where it became small, and the time since

    def after_step(self, run: Any, code: int) -> int | None:
        """Return BLOWN_UP if the next step would pass the blow-up, as the last one shows."""
        growth = run.motion.growth(run.flow.x, run.flow.velocity, run.t)
        return BLOWN_UP if self.look(run.elapsed, run.flow.before.dt, growth) else None

    def stats(self, start: float) -> dict[str, Any]:
        """The time of a blow-up, and its power of 1 / (T - t)."""
        time = None if self.elapsed is None else start + self.elapsed
        return {"blow_up_time": time, "blow_up_power": self.power}

    def look(self, elapsed: float, step: float, growth: float) -> bool:
        """True if the blow-up is next, after a step of this length.

        Steps count, not differences of times, which close to T have few digits.
        """
        left = 1 / growth if 0 < growth < np.inf else np.inf
        power, slope = self._power(step, left), self._slope(step, left, NEAR_BLOW_UP * elapsed)
        if power * left <= NEAR_BLOW_UP * elapsed:
            self.elapsed, self.power = elapsed + power * left, power
        elif slope < np.inf:
            self.elapsed = elapsed + slope * left
        return self.elapsed is not None

    def _power(self, step: float, left: float) -> float:
        """p, if the last steps agree on it, else inf."""
        before, expected, since, steps = self.alike
        power = step / (before - left) if left < before < np.inf else np.inf
        if abs(power - expected) <= POWER_TOLERANCE * expected < np.inf:
            steps += 1
        else:
            expected, since, steps = power, left, 1
        self.alike = left, expected, since, steps
        agreed = steps >= AGREEING_STEPS and left * AGREEING_GROWTH <= since
        return power if agreed and SLOWEST_POWER < power < 1 / SLOWEST_POWER else np.inf

    def _slope(self, step: float, left: float, near: float) -> float:
        """The estimate of p from two rates far apart; inf without them."""
        first, time = self.close[0], self.close[1] + step
        if first == np.inf or time * SLOWEST_POWER > first:
            first, time = left if left <= near else np.inf, 0.0
        self.close = first, time
        slope = time / (first - left) if left * FAR_GROWTH <= first < np.inf else np.inf
        return slope if slope > SLOWEST_POWER else np.inf


class Stiffness(Policy):
    """The change to `Radau` in a stiff run, and the end of one whose steps rounding limits."""

    memory = ("implicit", "mark")

    def __init__(self) -> None:
        self.implicit = False
        self.mark = np.zeros(2)  # steps and time of the last look at progress

    def after_step(self, run: Any, code: int) -> int | None:
        """Look at the Jacobian now and then."""
        if (
            not self.implicit
            and run.clock.step * self._rates(run, JACOBIAN_INTERVAL)[0] > STIFF_STEP
        ):
            self.implicit, self.mark = True, np.array([run.accepted, run.elapsed])
            self._go_implicit(run)
            run.flow.restart(run.flow.x, run.start + run.clock.t)
            run.clock = replanned(run.clock, run.clock.proposal)  # its steps end at outputs
        return CANCELLED_RATES if self._cancelled(run) else None

    def _rates(self, run: Any, every: int) -> tuple[float, float]:
        """Rates of the fastest decay and growth near the state, once in `every` steps; else nan."""
        y = run.flow.x
        if run.accepted % every or y.size > IMPLICIT_COORDINATES:
            return np.nan, np.nan
        J = jacobian(run.motion, y, run.t)
        if not np.isfinite(J).all():
            return np.nan, np.nan
        values = np.linalg.eigvals(J).real
        return float(-values.min()), float(values.max())

    def _cancelled(self, run: Any) -> bool:
        """True if rounding of decaying parts hides growing ones, or makes steps too short.

        Where it is a few times rtol, errors of steps are rounding, and steps become ever shorter.
        """
        if not self.implicit:
            return False
        decay, growth = self._rates(run, JACOBIAN_INTERVAL // 5)
        noise = np.finfo(float).eps * decay / max(growth, 1 / run.elapsed) / run.rtol
        return bool(
            noise > CANCELLING_NOISE or (noise > NOISE_IN_STEPS and self._crawls(run, growth))
        )

    def _crawls(self, run: Any, growth: float) -> bool:
        """True if many implicit steps together are short for a law that grows at this rate."""
        steps, before = self.mark
        if not growth >= 0 or run.accepted < steps + CRAWLING_STEPS:
            return False
        self.mark = np.array([run.accepted, run.elapsed])
        return bool(growth * run.elapsed > OLD_GROWTH and growth * (run.elapsed - before) < 1)

    def _go_implicit(self, run: Any) -> None:
        run.flow = StiffFlow(Radau, run.rows, run.flow.x, **run.flow_options)

    def restore(self, snapshot: dict[str, np.ndarray], run: Any = None) -> None:
        """Remember what `snapshot` returned, and take the run to the steps that it had."""
        super().restore(snapshot)
        if self.implicit:
            self._go_implicit(run)
