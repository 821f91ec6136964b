"""The journal of a search: answers by their questions, kept in a checkpoint.

A search for branches is deterministic, and has its state in many places. It is resumed by running
it again from its beginning, where what was computed before is looked up. So the result is that of
an unbroken search, bit for bit, and what the journal lacks is merely computed.
"""

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from ..core.identity import digest
from ..solving.checkpoint import Keeper


class AnswerJournal:
    """Answers to questions about curves; the end of the block, whatever ends it, saves them.

    Parameters
    ----------
    keeper : Keeper
        Of the checkpoint, if there is to be one; else nothing is kept.
    identity : dict
        What determines the result, for the checkpoint.

    Raises
    ------
    CheckpointError
        Where nothing can be written, or what is there does not belong to this search.
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
        """The journal; None where nothing is kept."""
        return None if self._keeper.path is None else self

    def __exit__(self, *_: object) -> None:
        self._keeper.save(self._arrays)

    def recall(self, question: tuple[Any, ...], find: Callable[[], Any]) -> np.ndarray:
        """The numbers that `find` gives, in one row; looked up if the question was asked before.

        Parameters
        ----------
        question : tuple
            Everything that the answer depends on and that changes during the search: see `digest`.
        find : callable
            () -> number or array.
        """
        key = digest(question)
        if key not in self._answers:
            self._answers[key] = np.array(find(), dtype=float).ravel()
            self._keeper.save_now_and_then(self._arrays)
        return self._answers[key].copy()

    def _arrays(self) -> dict[str, np.ndarray]:
        answers = list(self._answers.values())
        return {
            "questions": np.array(list(self._answers), dtype="S64"),
            "sizes": np.array([len(answer) for answer in answers], dtype=int),
            "answers": np.concatenate([np.zeros(0), *answers]),
        }


def recalled(
    journal: AnswerJournal | None, question: tuple[Any, ...], find: Callable[[], Any]
) -> np.ndarray:
    """The numbers that `find` gives, in one row; from the journal, if there is one."""
    return np.ravel(find()) if journal is None else journal.recall(question, find)
