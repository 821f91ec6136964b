"""Arrays that are used again.

Memory that a process asks for is cleared page by page when it is first touched. Of arrays of a
megabyte that are let go and asked for again at every evaluation, that takes as long as a product of
matrices; whether it happens depends on what else the process has let go.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


class Reused:
    """Arrays of floats that are lent, to one borrower at a time, in any thread."""

    def __init__(self) -> None:
        self._free: dict[tuple[int, ...], list[np.ndarray]] = {}

    @contextmanager
    def lent(self, *shapes: tuple[int, ...]) -> Iterator[list[np.ndarray]]:
        """Arrays of these shapes, with any numbers in them."""
        arrays = []
        for shape in shapes:
            try:
                arrays.append(self._free.setdefault(shape, []).pop())
            except IndexError:
                arrays.append(np.empty(shape))
        try:
            yield arrays
        finally:
            for array in arrays:
                self._free[array.shape].append(array)
