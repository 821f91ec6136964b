"""Journal of a search: results of computations by a digest of their arguments, in a checkpoint.

A search for branches is deterministic. It is resumed by running it again from the beginning, with
earlier results looked up in the journal. So the result equals that of an uninterrupted search, bit
for bit; results missing from the journal are computed.
"""

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from ..core.identity import digest
from ..solving.checkpoint import Keeper


class AnswerJournal:
    """Saved results of computations on curves; a context manager that writes them on exit.

    Parameters
    ----------
    keeper : Keeper
        Checkpoint file. If it has no path, nothing is saved.
    identity : dict
        Arguments that determine the result of the search, by which the checkpoint is recognised.

    Raises
    ------
    CheckpointError
        If the file cannot be written, or belongs to another search.
    """

    def __init__(self, keeper: Keeper, identity: Mapping[str, Any]):
        self._keeper = keeper
        self._answers: dict[str, np.ndarray] = {}
        if kept := keeper.opened(dict(identity)):
            rows = zip(kept["sizes"], np.cumsum(kept["sizes"]), strict=True)
            answers = [kept["answers"][end - size : end] for size, end in rows]
            questions = kept["questions"].astype(str).tolist()
            self._answers = dict(zip(questions, answers, strict=True))

    def __enter__(self) -> Self | None:
        """The journal; None if the keeper has no path."""
        return None if self._keeper.path is None else self

    def __exit__(self, *_: object) -> None:
        self._keeper.save(self._arrays)

    def recall(self, question: tuple[Any, ...], find: Callable[[], Any]) -> np.ndarray:
        """The result of find() as a flat array; looked up if it was computed before.

        Parameters
        ----------
        question : tuple
            All arguments of the result that vary during the search: see `digest`.
        find : callable
            () -> number or array, the computation.
        """
        key = digest(question)
        if key not in self._answers:
            self._answers[key] = np.array(find(), dtype=float).ravel()
            self._keeper.save_now_and_then(self._arrays)
        return self._answers[key].copy()

    def _arrays(self) -> dict[str, np.ndarray]:
        """Arrays of the checkpoint: digests, sizes of the results, and all results in one array."""
        answers = list(self._answers.values())
        return {
            "questions": np.array(list(self._answers), dtype="S64"),
            "sizes": np.array([len(answer) for answer in answers], dtype=int),
            "answers": np.concatenate([np.zeros(0), *answers]),
        }


def recalled(
    journal: AnswerJournal | None, question: tuple[Any, ...], find: Callable[[], Any]
) -> np.ndarray:
    """The result of find() as a flat array; by `journal.recall` if there is a journal."""
    return np.ravel(find()) if journal is None else journal.recall(question, find)
