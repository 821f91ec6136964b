"""Times of outputs, as configuration files give them."""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from ..core.forms import Natural, Positive
from ..core.kinds import Kind

__all__ = ["Geomspace", "Linspace", "Times"]


class Times(Kind, family=True):
    """Times of outputs between the ends of a run, in place of a list of them."""

    leaves: ClassVar[dict[Any, Any]] = {}

    @abstractmethod
    def between(self, start: float, end: float) -> np.ndarray:
        """The times, increasing, from `start` to `end`."""


class Linspace(Times):
    """Equally spaced times.

    Parameters
    ----------
    count : int
        How many, both ends among them.
    """

    count: Natural

    def validate(self) -> None:
        _check_count(self.count)

    def between(self, start: float, end: float) -> np.ndarray:
        return np.linspace(start, end, self.count)


class Geomspace(Times):
    """The start, and times whose distances from it grow by a common factor.

    Parameters
    ----------
    count : int
        How many, both ends among them.
    first : float
        The first of them after the start, as a time since the start.
    """

    count: Natural
    first: Positive

    def validate(self) -> None:
        _check_count(self.count)

    def between(self, start: float, end: float) -> np.ndarray:
        if not self.first < end - start:
            raise ValueError(
                f"t_eval must lie within t_span, of length {end - start:g}; the first time after "
                f"the start is {self.first:g} later."
            )
        later = np.geomspace(self.first, end - start, self.count - 1)
        return start + np.concatenate([[0.0], later])


def _check_count(count: int) -> None:
    if count < 2:
        raise ValueError(f"count must be >= 2, as both ends are among them; got {count}.")
