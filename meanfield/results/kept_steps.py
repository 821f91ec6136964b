"""Snapshots of an integration at the beginnings of its steps, of a bounded size.

A run with them can be evaluated at any time: the steps after a snapshot are repeated.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from ..core.annotations import Snapshot
from ..core.system import available_memory

KEPT_BYTES = 1 << 29  # of all snapshots of a run
OVERHEAD = 160  # bytes of an array without its numbers
PART_OF_MEMORY = 0.25  # of the available memory, which snapshots may take
AT, END = "kept.at", "kept.end"  # entries of a snapshot: its time, and the end of its run


class KeptSteps:
    """Snapshots of an integration in the order of their times.

    Once they exceed KEPT_BYTES, or PART_OF_MEMORY, every second one is dropped, and so is every
    second one from then on: an evaluation repeats twice as many steps.

    Attributes
    ----------
    snapshots : list of dict
        Snapshots with the entries AT, the time relative to the start, and END, the last output.
    every : int
        One of so many beginnings of steps is kept.
    nbytes : int
        Bytes that the snapshots take.
    """

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []
        self.every, self._seen, self.nbytes = 1, 0, 0
        self._most = min(KEPT_BYTES, PART_OF_MEMORY * available_memory())

    def keep(self, elapsed: float, end: float, snapshot: Callable[[], Snapshot]) -> None:
        """Keep what `snapshot()` returns at the time `elapsed` of a run to `end`, if it is due."""
        self._seen += 1
        if (self._seen - 1) % self.every:
            return
        step = {name: np.array(values) for name, values in snapshot().items()}
        self._add({**step, AT: np.array(elapsed), END: np.array(end)})
        if self.nbytes > self._most and len(self.snapshots) > 2:
            self.every *= 2
            kept, self.snapshots, self.nbytes = self.snapshots[::2], [], 0
            for snapshot_kept in kept:
                self._add(snapshot_kept)

    def _add(self, snapshot: Snapshot) -> None:
        self.snapshots.append(snapshot)
        self.nbytes += sum(array.nbytes + OVERHEAD for array in snapshot.values())

    def before(self, elapsed: float) -> Snapshot | None:
        """Last snapshot at or before a time; None if there is none."""
        i = bisect_right(self.snapshots, elapsed, key=lambda step: float(step[AT]))
        return self.snapshots[i - 1] if i else None

    def copied(self) -> "KeptSteps":
        """Snapshots to which more can be added."""
        return KeptSteps.of_arrays(self.arrays())

    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays of all snapshots by the number of the snapshot and the name of the array."""
        numbered = enumerate(self.snapshots)
        return {f"dense.{i:09d}.{name}": v for i, step in numbered for name, v in step.items()}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """Snapshots from the arrays that `arrays` returned, among others."""
        kept, by_number = cls(), dict[str, Snapshot]()
        for key in sorted(name for name in arrays if name.startswith("dense.")):
            _, number, name = key.split(".", 2)
            by_number.setdefault(number, {})[name] = arrays[key]
        for step in by_number.values():
            kept._add(step)
        return kept
