"""What the batches of a study have found so far, put in its place."""

from typing import Any

import numpy as np

from .batches import Batch, batches_of

__all__ = ["Ledger"]


class Ledger:
    """Tables (sizes, times, replicas) by name, nan where a batch is missing.

    Parameters
    ----------
    sizes : list of int
    times, replicas : int
        Their numbers.
    """

    def __init__(self, sizes: list[int], times: int, replicas: int):
        self.batches = batches_of(sizes, replicas)
        self.tables: dict[str, np.ndarray] = {}
        self.done = np.zeros(len(self.batches), dtype=bool)
        self._sizes, self._shape = sizes, (len(sizes), times, replicas)

    def enter(self, number: int, found: dict[str, np.ndarray]) -> None:
        """Take the numbers (times, replicas) of a batch."""
        batch: Batch = self.batches[number]
        for name, values in found.items():
            table = self.tables.setdefault(name, np.full(self._shape, np.nan))
            table[self._sizes.index(batch.n), :, batch.replicas] = values
        self.done[number] = True

    def left(self) -> dict[int, Batch]:
        """The batches that are not done, by number."""
        return {int(i): self.batches[i] for i in np.nonzero(~self.done)[0]}

    def snapshot(self) -> dict[str, Any]:
        """Everything as arrays, for a checkpoint."""
        return {"done": self.done} | {f"table {name}": t for name, t in self.tables.items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take up what `snapshot` gave."""
        self.done = arrays["done"]
        self.tables = {name[6:]: t for name, t in arrays.items() if name.startswith("table ")}
