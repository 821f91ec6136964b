"""How long to go on with steps that are rejected, or too short for the clock to show."""

import numpy as np

__all__ = ["Patience"]

MOST_REJECTIONS = 60  # in a row: each makes the step at least a quarter shorter
MOST_STALLED = 2000  # steps in a row that neither become shorter nor add up to a longer time
NO_STEP = np.finfo(float).tiny


class Patience:
    """What happened since the last step that moved the clock.

    A collapse may take less time than the clock can show at t, one part in 1e16 of it: while the
    clock stands still, steps become shorter by many orders of magnitude and then longer again. That
    is progress however long it takes. Steps that stay as short as they are will never end.

    Attributes
    ----------
    numbers : ndarray, (5,)
        Rejections in a row; steps without progress; the shortest step; the time of the steps since
        it, and what that was at the last progress.
    """

    def __init__(self):
        self.numbers = np.zeros(5)

    @property
    def stalled(self) -> bool:
        """Whether the clock stands still."""
        return bool(self.numbers[2] > 0)

    def rejected(self) -> bool:
        """After a step that was rejected: whether that is enough."""
        self.numbers[0] += 1
        return bool(self.numbers[0] > MOST_REJECTIONS)

    def accepted(self, step: float, moved: bool) -> bool:
        """After a step that was accepted, and moved the clock or not: whether that is enough."""
        self.numbers[0] = 0
        _, waited, shortest, total, mark = self.numbers
        if moved:
            self.numbers[:] = 0
        elif shortest == 0 or step < shortest / 2:
            self.numbers[1:] = 0, step, step, step
        elif total + step > 2 * mark:
            self.numbers[1:] = 0, shortest, total + step, total + step
        else:
            self.numbers[1:] = waited + 1, shortest, total + step, mark
        return bool(self.numbers[1] > MOST_STALLED or (step < NO_STEP and not moved))
