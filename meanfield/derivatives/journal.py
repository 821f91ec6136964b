"""The steps of a run of densities that were accepted: what its derivatives are taken along."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from ..steppers import Scheme


class Stretch(NamedTuple):
    """Steps on the same modes and by the same scheme.

    Attributes
    ----------
    degree : int
    scheme : Scheme
    steps : ndarray, (n, 2)
        Beginning, as a time since the start, and length of each.
    """

    degree: int
    scheme: Scheme
    steps: np.ndarray


class Journal:
    """All accepted steps of a run, one stretch after another."""

    def __init__(self):
        self._entries: list[tuple[int, Scheme, list[np.ndarray]]] = []

    def add(self, degree: int, scheme: Scheme, steps: np.ndarray) -> None:
        """Keep steps (n, 2) that were made after all others."""
        if not len(steps):
            return
        if not self._entries or self._entries[-1][:2] != (degree, scheme):
            self._entries.append((degree, scheme, []))
        self._entries[-1][2].append(steps)

    @property
    def stretches(self) -> list[Stretch]:
        return [Stretch(degree, by, np.concatenate(all_)) for degree, by, all_ in self._entries]

    def __len__(self) -> int:
        return sum(len(stretch.steps) for stretch in self.stretches)

    def member(self, _index: tuple[int, ...]) -> "Journal":
        """That of a member of an ensemble: of a single run the only one."""
        return self


class EnsembleJournal:
    """The accepted steps of all members of an ensemble.

    Parameters
    ----------
    journals : sequence of Journal
        In C order.
    shape : tuple of int
        Of the ensemble.
    """

    def __init__(self, journals: Sequence[Journal], shape: tuple[int, ...]):
        self._journals, self._shape = journals, shape

    @classmethod
    def of(cls, journals: Sequence[Journal | None], shape: tuple[int, ...]) -> Self | None:
        """Those of the members, or None where one is not known."""
        known = [journal for journal in journals if journal is not None]
        return cls(known, shape) if len(known) == len(journals) else None

    def member(self, index: tuple[int, ...]) -> Journal:
        """That of one member."""
        return self._journals[int(np.ravel_multi_index(index, self._shape))]
