"""One step of Kutta's classical scheme of order 4, for the parts of a splitting."""

from collections.abc import Callable

import numpy as np

__all__ = ["kutta_step"]


def kutta_step(
    velocity: Callable[[np.ndarray, float], np.ndarray], x: np.ndarray, t: float, dt: float
) -> np.ndarray:
    """x(t + dt) of dx/dt = velocity(x, t), from x at t: four evaluations, order 4."""
    first = velocity(x, t)
    second = velocity(x + dt / 2 * first, t + dt / 2)
    third = velocity(x + dt / 2 * second, t + dt / 2)
    fourth = velocity(x + dt * third, t + dt)
    return x + dt / 6 * (first + 2 * (second + third) + fourth)
