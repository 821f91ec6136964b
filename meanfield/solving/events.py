"""Events: times at which a function of the state crosses zero."""

from collections.abc import Callable

import numpy as np

from ..states import Density
from .march import March

__all__ = ["EventWatch"]


class EventWatch:
    """Looks for sign changes of g(t, density) over every step and locates them.

    An event is located by taking the step from its beginning again, shorter, until g is zero:
    the located state is as accurate as the steps themselves, no interpolation is involved.
    `g.terminal` (default False) ends the run; `g.direction` > 0 counts rising zeros only,
    < 0 falling ones.
    """

    def __init__(self, functions: tuple[Callable, ...], t: float, density: Density):
        self._functions = functions
        self._before = t, density
        self._values = [self._value(g, t, density) for g in functions]

    def crossed(self, march: March) -> list[tuple[int, float, Density, bool]]:
        """Events of the step just taken, in the order of time: (index, t, density, terminal)."""
        (start, density), (end, after) = self._before, (march.t, march.density)
        values = [self._value(g, end, after) for g in self._functions]
        found = []
        for index, (g, old, new) in enumerate(
            zip(self._functions, self._values, values, strict=True)
        ):
            direction = getattr(g, "direction", 0)
            if (old < 0 <= new and direction >= 0) or (old > 0 >= new and direction <= 0):
                t, state = self._locate(g, march, start, density, end, after)
                found.append((index, t, state, bool(getattr(g, "terminal", False))))
        self._before, self._values = (end, after), values
        return sorted(found, key=lambda event: event[1])

    @staticmethod
    def _value(g: Callable, t: float, density: Density) -> float:
        value = np.asarray(g(t, density), dtype=float)
        if value.shape != () or not np.isfinite(value):
            raise ValueError(
                f"An event function must return one finite number; {g!r} returned {value!r} at "
                f"t = {t:g}."
            )
        return float(value)

    def _locate(self, g, march, start, density, end, after) -> tuple[float, Density]:
        from scipy.optimize import brentq

        def at(t: float) -> Density:
            if t == start:
                return density
            return after if t == end else march.step_from(density, t - start)

        t = brentq(lambda t: self._value(g, t, at(t)), start, end, xtol=1e-14 * max(1, abs(end)))
        return t, at(t)
