"""Zeros of a function along one step of a curve, in a bracket."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .curve import Curve, Point
from .mirror import symmetric_part

__all__ = ["Located", "located"]

MOST = 60
CLOSE = 1e-13  # of the bracket, in parts of the step
NEAR = 1e-10  # of the bracket, relative, where points between are not found
ROUNDING = 1e-14
SMALL = 1e-6  # of a function at its zero, relative: at a pole it is large


class Located(NamedTuple):
    """Where a function vanishes on a curve.

    Attributes
    ----------
    point : Point
        Its tangent is the secant of the step: where another curve crosses, the curve has none that
        could be computed from the point alone.
    interval : (float, float)
        Values of the parameter at the ends of the last bracket.
    status : str
        "converged", or "not located" where no zero was found, or points between were not, so that
        the interval is wider than 1e-10 of the parameter.
    """

    point: Point
    interval: tuple[float, float]
    status: str


def located(
    curve: Curve, first: Point, step: float, f: Callable[[Point], float], f_first: float, last
) -> Located:
    """The zero of f between `first` and the point a step ahead, where it has the value `last`.

    By false position with halved weights (Illinois), and bisection where that is slow.
    """
    low, high, f_low, f_high = 0.0, 1.0, f_first, last
    at_low, end = first, curve.ahead(first, step)
    if end is None:
        return Located(first, (first.value, first.value), "not located")
    at_high = end
    best, size, side = first, np.inf, 0
    for count in range(MOST):
        part = (low * f_high - high * f_low) / (f_high - f_low)
        if count % 4 == 3 or not low < part < high:
            part = (low + high) / 2
        new = _ahead(curve, first, part * step)
        if new is None:  # too near another curve that crosses
            part = (low + high) / 2
            new = _ahead(curve, first, part * step)
        if new is None:
            if abs(at_high.value - at_low.value) > NEAR * abs(at_low.value):
                return Located(best, _ends(at_low, at_high, best), "not located")
            break
        value = f(new)
        if abs(value) < size:
            best, size = new, abs(value)
        if value == 0:
            return Located(_on(new, first, end), _ends(new), "converged")
        if value * f_low > 0:
            low, f_low, at_low = part, value, new
            f_high, side = f_high / 2 if side < 0 else f_high, -1
        else:
            high, f_high, at_high = part, value, new
            f_low, side = f_low / 2 if side > 0 else f_low, 1
        if high - low <= CLOSE:
            break
    vanishes = size <= SMALL * max(abs(f_first), abs(last))
    status = "converged" if vanishes else "not located"
    return Located(_on(best, first, end), _ends(at_low, at_high, best), status)


def _ahead(curve: Curve, first: Point, step: float) -> Point | None:
    """The point a step ahead, with the symmetries of the first."""
    point = curve.ahead(first, step)
    if point is None:
        return None
    a = symmetric_part(curve.path.basis, first.a, point.a)
    return point._replace(z=np.append(a, point.p))


def _on(point: Point, first: Point, last: Point) -> Point:
    """The point with the secant of its step as tangent."""
    secant = last.z - first.z
    return point._replace(tangent=secant / np.linalg.norm(secant))


def _ends(*points: Point) -> tuple[float, float]:
    """The range of the parameter at points, and what rounding adds."""
    values = [point.value for point in points]
    return min(values) * (1 - ROUNDING), max(values) * (1 + ROUNDING)
