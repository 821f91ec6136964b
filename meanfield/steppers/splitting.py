"""Schemes of fixed steps for tokens: splittings of drift and noise, and layers of a Transformer.

The motion of tokens has a method (x, t, dt) -> x for one step of each scheme.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .flow import PointFlow


@dataclass(frozen=True)
class Splitting:
    """A scheme of fixed steps.

    Attributes
    ----------
    name : str
    order : int
        Order of the state at a fixed time for a model with all the parts that are split, in the
        weak sense where there is noise. Without the noise of `Strang`, or the feed-forward map of
        `LieTrotter`, nothing is split, and steps are those of Kutta's scheme, of order 4.
    evaluations : int
        Evaluations of attention per step.
    """

    known: ClassVar[dict[str, "Splitting"]] = {}  # all of them by their names

    estimate_order: ClassVar[int] = 0  # there is no estimate of the error

    name: str
    order: int
    evaluations: int

    def __post_init__(self) -> None:
        self.known.setdefault(self.name, self)


Strang = Splitting("Strang", order=2, evaluations=4)
"""Noise for dt/2, the drift for dt by Kutta's scheme of order 4, noise for dt/2."""

LieTrotter = Splitting("LieTrotter", order=1, evaluations=4)
"""Attention for dt, then the feed-forward map for dt, each by Kutta's scheme of order 4."""

Layers = Splitting("Layers", order=1, evaluations=1)
"""Layers of a Transformer: Euler's step of attention and of the feed-forward map, normalised."""


class FixedSteps(PointFlow):
    """Steps of a given length by any map: `field` is (x, t, dt) -> x at t + dt, a new array."""

    def restart(self, x: np.ndarray, t: float, field: object = None) -> None:
        """Continue from another state with the same map."""
        super().restart(x, t)

    def _velocities(self, field: Any, groups: Any = None) -> Callable[..., Any]:
        return lambda x, t: None

    def step(
        self, x: np.ndarray, velocity: None, elapsed: float, dt: float
    ) -> tuple[Any, Any, float]:
        """Positions one step after x, with no velocity and no error."""
        self.counts[2] += self.scheme.evaluations
        return self._field(x, self._start + elapsed, dt), velocity, 0.0


def kutta_step(
    velocity: Callable[[np.ndarray, float], np.ndarray], x: np.ndarray, t: float, dt: float
) -> np.ndarray:
    """x(t + dt) of dx/dt = velocity(x, t), from x at t: four evaluations, order 4."""
    first = velocity(x, t)
    second = velocity(x + dt / 2 * first, t + dt / 2)
    third = velocity(x + dt / 2 * second, t + dt / 2)
    fourth = velocity(x + dt * third, t + dt)
    return x + dt / 6 * (first + 2 * (second + third) + fourth)
