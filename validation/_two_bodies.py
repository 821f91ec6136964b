"""Two tokens of masses a and b at the angle phi: their speed and the time until they merge."""

from collections.abc import Callable

import numpy as np

__all__ = ["angle", "closing_time", "sa_speeds", "usa_speeds"]

PANELS = 4000
Speeds = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def angle(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The angle between unit vectors (..., d), accurate where it is small."""
    return 2 * np.arctan2(np.linalg.norm(x - y, axis=-1), np.linalg.norm(x + y, axis=-1))


def usa_speeds(beta: float, a: float, b: float, shift: float = 0.0) -> Speeds:
    """Speeds of both tokens towards each other: phi -> b k sin phi, a k sin phi.

    k = e^(beta (cos phi - shift)); shift = 1 is the clock of Geshkovski et al.
    """

    def speeds(phi):
        pull = np.exp(beta * (np.cos(phi) - shift)) * np.sin(phi)
        return b * pull, a * pull

    return speeds


def sa_speeds(beta: float, a: float, b: float) -> Speeds:
    """phi -> b k sin phi/(a + b k), a k sin phi/(b + a k), k = e^(beta (cos phi - 1))."""

    def speeds(phi):
        k = np.exp(-2 * beta * np.sin(phi / 2) ** 2)
        return b * k * np.sin(phi) / (a + b * k), a * k * np.sin(phi) / (b + a * k)

    return speeds


def closing_time(speeds: Speeds, phi: float, end: float) -> tuple[float, float]:
    """The time from the angle phi down to `end`, and the way of the first token meanwhile.

    By Gauss-Legendre quadrature of d phi/phi' on panels that are equally long in log phi.
    """
    nodes, weights = np.polynomial.legendre.leggauss(16)
    edges = np.log(np.geomspace(end, phi, PANELS + 1))
    half = np.diff(edges)[:, None] / 2
    at = np.exp(edges[:-1, None] + half * (1 + nodes))
    first, second = speeds(at)
    time = at * half * weights / (first + second)
    return float(time.sum()), float((first * time).sum())
