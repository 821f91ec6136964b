"""Journals: the accepted steps of a run, along which its derivatives are taken."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from ..steppers import Scheme
from ..steppers.flow import Stages


class Stretch(NamedTuple):
    """Steps on the same modes, by the same scheme and between the same two jumps.

    Attributes
    ----------
    degree : int
    scheme : Scheme
    steps : ndarray, (n, 2)
        Start, as a time since the start of the run, and length of each step.
    ends : tuple of float
        The span of times to which parameters are restricted, see `Motion.enter`.
    """

    degree: int
    scheme: Scheme
    steps: np.ndarray
    ends: tuple[float, float] = (-np.inf, np.inf)


class DensityJournal:
    """All accepted steps of a run, one stretch after another."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, Scheme, tuple[float, float], list[np.ndarray]]] = []

    def add(
        self,
        degree: int,
        scheme: Scheme,
        steps: np.ndarray,
        ends: tuple[float, float] = (-np.inf, np.inf),
    ) -> None:
        """Append steps (n, 2)."""
        if not len(steps):
            return
        if not self._entries or self._entries[-1][:3] != (degree, scheme, ends):
            self._entries.append((degree, scheme, ends, []))
        self._entries[-1][3].append(steps)

    @property
    def stretches(self) -> list[Stretch]:
        return [
            Stretch(degree, scheme, np.concatenate(steps), ends)
            for degree, scheme, ends, steps in self._entries
        ]

    def __len__(self) -> int:
        return sum(len(stretch.steps) for stretch in self.stretches)

    def member(self, _index: tuple[int, ...]) -> "DensityJournal":
        """The journal of a member of an ensemble; itself for a single run."""
        return self


class EnsembleJournal:
    """The accepted steps of all members of an ensemble.

    Parameters
    ----------
    journals : sequence of DensityJournal
        The journals of the members, in C order.
    shape : tuple of int
        Ensemble shape.
    """

    def __init__(self, journals: Sequence[DensityJournal], shape: tuple[int, ...]):
        self._journals, self._shape = journals, shape

    @classmethod
    def of(cls, journals: Sequence[DensityJournal | None], shape: tuple[int, ...]) -> Self | None:
        """The journal of an ensemble; None if the journal of a member is missing."""
        known = [journal for journal in journals if journal is not None]
        return cls(known, shape) if len(known) == len(journals) else None

    def member(self, index: tuple[int, ...]) -> DensityJournal:
        """The journal of one member."""
        return self._journals[int(np.ravel_multi_index(index, self._shape))]


def end_of(run: Any, journal: Any, index: tuple[int, ...]) -> float:
    """The time at which a run, or a member of an ensemble, ended."""
    return float(run.stats["t_end"][index] if isinstance(journal, EnsembleJournal) else run.t[-1])


class FlowStretch(NamedTuple):
    """Steps of a flow by the same scheme, on the same rows and between the same two jumps.

    Attributes
    ----------
    scheme : Scheme or Splitting
    ends : tuple of float
        The span of times to which parameters are restricted, see `Motion.enter`.
    labels : ndarray of int, or None
        The row of each token after merges; None before the first merge.
    steps : ndarray, (n, 2)
        Start, as a time since the start of the run, and length of each step.
    stages : sequence of (Stages or None)
        The stages of each step, if they were stored.
    """

    scheme: Any
    ends: tuple[float, float]
    labels: np.ndarray | None
    steps: np.ndarray
    stages: Sequence[Stages | None]


class FlowJournal:
    """All accepted steps of a run of a flow, one stretch after another.

    Parameters
    ----------
    room : int
        The number of bytes of stages that may be stored in addition to the steps.
    """

    def __init__(self, room: int = 0):
        self._entries: list[tuple[Any, tuple[float, float], Any, list[Any], list[Any]]] = []
        self.room = room

    def add(
        self,
        scheme: Any,
        ends: tuple[float, float],
        labels: Any,
        step: tuple[Any, ...],
        stages: Stages | None = None,
    ) -> None:
        """Append a step, its start and length, and its stages if given."""
        self.open(scheme, ends, labels)
        self._entries[-1][3].append(step)
        self._entries[-1][4].append(stages)
        self.room -= 0 if stages is None else stages.nbytes

    def forget_stages(self) -> None:
        """Delete all stored stages."""
        self._entries = [(*entry[:4], [None] * len(entry[3])) for entry in self._entries]

    def open(self, scheme: Any, ends: tuple[float, float], labels: Any) -> None:
        """Begin a new stretch if scheme, span or rows differ; it may remain without steps."""
        last = self._entries[-1] if self._entries else None
        if last is None or last[0] is not scheme or last[1] != ends or last[2] is not labels:
            self._entries.append((scheme, ends, labels, [], []))

    @property
    def stretches(self) -> list[FlowStretch]:
        return [
            FlowStretch(scheme, ends, labels, np.reshape(steps, (-1, 2)), stages)
            for scheme, ends, labels, steps, stages in self._entries
        ]

    def __len__(self) -> int:
        return sum(len(steps) for *_, steps, _ in self._entries)
