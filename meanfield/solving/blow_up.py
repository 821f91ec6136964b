"""Blow-up in finite time: when a law becomes infinite, seen from shortly before."""

from typing import Any

import numpy as np

__all__ = ["BLOWN_UP", "BlowUp"]

BLOWN_UP = 102  # the next step would pass a blow-up
NEAR = 1e-11  # of the time since the start: what is left when the blow-up is certain
SLOWEST = 0.02  # the least power of 1 / (T - t) that is told from a fast exponential
ALIKE = 0.02  # relative: powers that single steps show
STEPS, TENFOLD = 4, 10.0  # how many have to, and the growth of the rate over them
FAR = 1000.0  # growth of the rate after which a power is not waited for any more


class BlowUp:
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

    def __init__(self):
        self.elapsed: float | None = None
        self.power: float | None = None
        self._alike = (np.inf, np.inf, np.inf, 0.0)  # 1/r; p, 1/r and steps since they agree on it
        self._close = (np.inf, 0.0)  # 1/r where it became small, and the time since

    def after_step(self, run: Any) -> int | None:
        """Whether the next step would pass the blow-up, as the last one shows."""
        growth = run.motion.growth(run.flow.x, run.flow.velocity, run.t)
        return BLOWN_UP if self.look(run.elapsed, run.flow.before.dt, growth) else None

    def stats(self, start: float) -> dict[str, Any]:
        """The time of a blow-up, and its power of 1 / (T - t)."""
        time = None if self.elapsed is None else start + self.elapsed
        return {"blow_up_time": time, "blow_up_power": self.power}

    def look(self, elapsed: float, step: float, growth: float) -> bool:
        """After a step, of this length: whether the blow-up is next.

        Steps count, not differences of times, which close to T have few digits.
        """
        left = 1 / growth if 0 < growth < np.inf else np.inf
        power, slope = self._power(step, left), self._slope(step, left, NEAR * elapsed)
        if power * left <= NEAR * elapsed:
            self.elapsed, self.power = elapsed + power * left, power
        elif slope < np.inf:
            self.elapsed = elapsed + slope * left
        return self.elapsed is not None

    def _power(self, step: float, left: float) -> float:
        """p, if the last steps agree on it, else inf."""
        before, expected, since, steps = self._alike
        power = step / (before - left) if left < before < np.inf else np.inf
        if abs(power - expected) <= ALIKE * expected < np.inf:
            steps += 1
        else:
            expected, since, steps = power, left, 1
        self._alike = left, expected, since, steps
        agreed = steps >= STEPS and left * TENFOLD <= since
        return power if agreed and SLOWEST < power < 1 / SLOWEST else np.inf

    def _slope(self, step: float, left: float, near: float) -> float:
        """What p would be between two rates far apart, else inf."""
        first, time = self._close[0], self._close[1] + step
        if first == np.inf or time * SLOWEST > first:
            first, time = left if left <= near else np.inf, 0.0
        self._close = first, time
        slope = time / (first - left) if left * FAR <= first < np.inf else np.inf
        return slope if slope > SLOWEST else np.inf

    def snapshot(self) -> dict[str, Any]:
        """What was seen last."""
        return {"seen": np.array(self._alike + self._close)}

    def restore(self, snapshot: dict[str, Any], run: Any = None) -> None:
        """Go back to a snapshot."""
        left, power, since, steps, first, time = (float(value) for value in snapshot["seen"])
        self._alike, self._close = (left, power, since, steps), (first, time)
