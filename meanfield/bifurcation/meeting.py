"""Where a branch meets one of more symmetry, and would go on as its own mirror image.

The mirror image of a state a is (+-a_l). A branch whose odd part passes through zero has come to
states that are their own images, at a bifurcation of theirs. No curve is regular there, but that of
the more symmetric states is, so the point is located on it.
"""

import numpy as np

from .curve import Curve, Point
from .locating import Located, located
from .mirror import ROUNDING, image

__all__ = ["across", "meeting"]

NEAREST, FARTHEST = 1e-4, 0.2  # lengths of the more symmetric curve


def meeting(curve: Curve, first: Point, last: Point) -> Located | None:
    """The point between two where the curve meets one of more symmetry, if it does.

    Its tangent is that of the curve, which changes nothing but the odd part there.
    """
    signs = image(curve.path.basis, first.a)
    before, after = ((point.a - signs * point.a) / 2 for point in (first, last))
    if min(np.abs(before).max(), np.abs(after).max()) < ROUNDING or before @ after >= 0:
        return None
    nearer = first if np.abs(before).max() < np.abs(after).max() else last
    way = np.append(before / np.linalg.norm(before), 0.0)
    symmetric = np.append((nearer.a + signs * nearer.a) / 2, nearer.p)
    direction = across(curve.kernel(symmetric)[0], way)
    found = curve.solved(symmetric, direction, float(direction @ symmetric))
    if not found.converged:
        return Located(nearer, _range(first, last), "not located")

    def singular(point: Point) -> float:
        return curve.singular(point.z, direction)

    start, length = curve.point(found.x, direction), NEAREST
    at_start = singular(start)
    while length < FARTHEST:
        for step in (length, -length):
            end = curve.ahead(start, step)
            if end is not None and at_start * (at_end := singular(end)) <= 0:
                place = located(curve, start, step, singular, at_start, at_end)
                return place._replace(point=place.point._replace(tangent=way))
        length *= 2
    return Located(nearer, _range(first, last), "not located")


def across(kernel: np.ndarray, along: np.ndarray) -> np.ndarray:
    """The unit vector of a plane, with the orthonormal rows of `kernel`, orthogonal to another."""
    first, second = kernel @ along
    return (first * kernel[1] - second * kernel[0]) / np.hypot(first, second)


def _range(first: Point, last: Point) -> tuple[float, float]:
    return min(first.value, last.value), max(first.value, last.value)
