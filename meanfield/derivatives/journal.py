"""Journals: the accepted steps of a run, along which its derivatives are taken."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from ..core.annotations import FromAbove, Narrowed, PassedOn, Values
from ..core.dual import Array
from ..steppers import Scheme, Splitting
from ..steppers.flow import Stages

EVER = -np.inf, np.inf


class Stretch(NamedTuple):
    """Steps by the same scheme, on the same modes or rows and between the same two jumps.

    Attributes
    ----------
    scheme : Scheme or Splitting
    ends : tuple of float
        The span of times to which parameters are restricted, see `Motion.enter`.
    steps : ndarray, (n, 2)
        Start, as a time since the start of the run, and length of each step.
    degree : int
        The degree of a density; 0 for other states.
    labels : ndarray of int, or None
        The row of each token after merges; None before the first merge.
    stages : sequence of (Stages or None)
        The stages of each step of a flow, if they were stored.
    """

    scheme: Narrowed
    ends: tuple[float, float]
    steps: Values
    degree: int = 0
    labels: np.ndarray | None = None
    stages: Values = ()


class Journal:
    """All accepted steps of a run, one stretch after another.

    Parameters
    ----------
    bytes_left : int
        The number of bytes of stages that may be stored in addition to the steps.
    """

    def __init__(self, bytes_left: int = 0):
        self._stretches: list[Stretch] = []  # stretches with lists of steps
        self.bytes_left = bytes_left

    def open(
        self,
        scheme: Scheme | Splitting,
        ends: tuple[float, float] = EVER,
        degree: int = 0,
        labels: np.ndarray | None = None,
    ) -> list[Array]:
        """The list of steps of the last stretch, or of a new one if an argument differs."""
        last = self._stretches[-1] if self._stretches else Stretch(None, ends, [])
        continues = (last.scheme, last.ends, last.degree) == (scheme, ends, degree)
        if not continues or last.labels is not labels:
            self._stretches.append(Stretch(scheme, ends, [], degree, labels, []))
        return self._stretches[-1].steps

    def add(self, steps: Values, *stretch: PassedOn, stages: Stages | None = None) -> None:
        """Append steps (n, 2), or a step of a flow with its stages; `stretch` as for `open`."""
        if len(steps):
            self.open(*stretch).append(steps)
            self._stretches[-1].stages.append(stages)
            self.bytes_left -= 0 if stages is None else stages.nbytes

    def forget_stages(self) -> None:
        """Delete all stored stages."""
        for stretch in self._stretches:
            stretch.stages[:] = [None] * len(stretch.stages)

    @property
    def stretches(self) -> list[Stretch]:
        steps = [np.concatenate(s.steps or [()]).reshape(-1, 2) for s in self._stretches]
        return [s._replace(steps=rows) for s, rows in zip(self._stretches, steps, strict=True)]

    def __len__(self) -> int:
        return sum(len(stretch.steps) for stretch in self.stretches)

    def member(self, _index: tuple[int, ...]) -> "Journal":
        """The journal of a member of an ensemble; itself for a single run."""
        return self


class EnsembleJournal:
    """The accepted steps of all members of an ensemble.

    Parameters
    ----------
    journals : sequence of Journal
        The journals of the members, in C order.
    shape : tuple of int
        Ensemble shape.
    """

    def __init__(self, journals: Sequence[Journal], shape: tuple[int, ...]):
        self._journals, self._shape = journals, shape

    @classmethod
    def of(cls, journals: Sequence[Journal | None], shape: tuple[int, ...]) -> Self | None:
        """The journal of an ensemble; None if the journal of a member is missing."""
        complete = [journal for journal in journals if journal is not None]
        return cls(complete, shape) if len(complete) == len(journals) else None

    def member(self, index: tuple[int, ...]) -> Journal:
        """The journal of one member."""
        return self._journals[int(np.ravel_multi_index(index, self._shape))]


def end_of(run: FromAbove, journal: Journal | EnsembleJournal, index: tuple[int, ...]) -> float:
    """The time at which a run, or a member of an ensemble, ended."""
    return float(run.stats["t_end"][index] if isinstance(journal, EnsembleJournal) else run.t[-1])
