"""Times between two jumps of a model, at which it is taken as it is in between."""

import numpy as np

__all__ = ["Piece"]

INSIDE = 1e-13  # of the time between two breakpoints
ROUNDED = 32 * np.finfo(float).eps  # of that time, where it is long after 0


class Piece:
    """The time between two breakpoints of a model; all times until one is entered."""

    def __init__(self):
        self._span = -np.inf, np.inf

    def enter(self, start: float, end: float) -> None:
        """Between two breakpoints."""
        self._span = start, end

    def inside(self, t: float) -> float:
        """The time t, or the nearest that is between the breakpoints and not at one."""
        start, end = self._span
        margin = max(INSIDE * (end - start), ROUNDED * max(abs(start), abs(end)))
        return t if np.isinf(margin) else min(max(t, start + margin), end - margin)
