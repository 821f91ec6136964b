"""The time between two jumps of a model's parameters."""

from collections.abc import Iterable

import numpy as np

__all__ = ["Piece", "distinct"]

INSIDE = 1e-13  # of the time between two jumps
ROUNDED = 32 * np.finfo(float).eps  # of that time, where it is long after 0
ONE_JUMP = 8 * np.finfo(float).eps  # times that differ by it, relative, are the same


class Piece:
    """Between two jumps, at either of which the model is taken as it is in between."""

    def __init__(self):
        self._ends = -np.inf, np.inf

    def enter(self, start: float, end: float) -> None:
        """Be between these two times."""
        self._ends = start, end

    def inside(self, t: float) -> float:
        """The time t, or one next to it that is certainly between the two."""
        start, end = self._ends
        margin = max(INSIDE * (end - start), ROUNDED * max(abs(start), abs(end)))
        return t if np.isinf(margin) else min(max(t, start + margin), end - margin)


def distinct(times: Iterable[float]) -> list[float]:
    """Times in order, one for those that are equal but for rounding."""
    found: list[float] = []
    for t in sorted(times):
        if not found or t - found[-1] > ONE_JUMP * abs(t):
            found.append(t)
    return found
