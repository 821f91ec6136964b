"""Times at which a model jumps; no step passes one."""

from typing import Any

import numpy as np

__all__ = ["Pieces"]

ONE_TIME = 8 * np.finfo(float).eps


class Pieces:
    """The jumps of a model in a run, and the piece between two of them where it is.

    Parameters
    ----------
    motion : object
        With `breakpoints(start, end)`, the times of the jumps, and `enter(start, end)`.
    start : float
        The first time.
    outputs : ndarray
        Output times since the start; the last is the end.

    Attributes
    ----------
    jumps : list of float
        Times since the start; one next to an output is that output.
    """

    def __init__(self, motion: Any, start: float, outputs: np.ndarray):
        self._start, self._outputs = start, outputs
        self._duration = float(outputs[-1])
        end = start + self._duration
        jumps = motion.breakpoints(start, float(np.nextafter(end, np.inf)))
        self.jumps = [self._at_output(min(t, end) - start) for t in jumps]
        self._piece: tuple[float, float] | None = None

    def _at_output(self, elapsed: float) -> float:
        """A time after the start, or the output that it is but for rounding."""
        nearest = float(self._outputs[np.abs(self._outputs - elapsed).argmin()])
        same = abs(nearest - elapsed) <= ONE_TIME * (abs(self._start) + self._duration)
        return nearest if same else elapsed

    def goal(self, elapsed: float, target: float) -> float:
        """`target`, or the first jump on the way to it."""
        return min([target, *[jump for jump in self.jumps if jump > elapsed]])

    def enter(self, motion: Any, elapsed: float) -> bool:
        """Take the motion to the piece around this time; whether that is another one."""
        edges = [0.0, *self.jumps, self._duration]
        i = int(np.searchsorted(self.jumps, elapsed, side="right"))
        piece = self._start + edges[i], self._start + edges[i + 1]
        if not self.jumps or piece == self._piece:
            return False
        self._piece = piece
        motion.enter(*piece)
        return True

    def join(self, motion: Any) -> None:
        """Take another motion to the present piece."""
        if self._piece:
            motion.enter(*self._piece)
