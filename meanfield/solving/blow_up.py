"""Blow-up in finite time: when int |x|^2 dmu becomes infinite, seen from shortly before."""

import numpy as np

__all__ = ["BlowUp"]

NEAR = 1e-11  # of the time since the start: what is left when the blow-up is certain
SLOWEST = 0.02  # the least power of 1 / (T - t) that is told from a fast exponential


class BlowUp:
    """The time T of a blow-up like (T - t)^(-p), for any p.

    The rate r of growth is p / (T - t), so that 1/r falls linearly to 0 at T. Two steps show the
    slope -1/p. Growth without blow-up has no such slope, or overflows long before r is so large.

    Attributes
    ----------
    elapsed : float or None
        T since the start, once it is known.
    power : float or None
        p, of int |x|^2 dmu.
    """

    def __init__(self):
        self.elapsed: float | None = None
        self.power: float | None = None
        self._before: tuple[float, float] | None = None

    def look(self, elapsed: float, growth: float) -> bool:
        """After a step: whether the blow-up is next."""
        before, self._before = self._before, None
        if not 0 < growth < np.inf:
            return False
        self._before = elapsed, 1 / growth
        if before is None or 1 / growth > NEAR * elapsed or not elapsed > before[0]:
            return False
        power = (elapsed - before[0]) / max(before[1] - 1 / growth, np.finfo(float).tiny)
        if not SLOWEST < power < 1 / SLOWEST:
            return False
        self.elapsed, self.power = elapsed + power / growth, power
        return True

    def snapshot(self) -> np.ndarray:
        """What was seen last."""
        return np.array(self._before or ())

    def restore(self, snapshot) -> None:
        """Go back to a snapshot."""
        seen = tuple(float(value) for value in snapshot)
        self._before = (seen[0], seen[1]) if seen else None
