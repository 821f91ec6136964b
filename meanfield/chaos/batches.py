"""Seeds and batches: which replicas are run together, and from which random numbers.

Replicas of n tokens come in batches of a size that depends on n alone, each with seeds of its own:
SeedSequence(seed, spawn_key=(n, batch)). A study of fewer sizes or replicas thus has the same
numbers as the part of a larger one. The last batch is run whole and cut.
"""

from typing import NamedTuple

import numpy as np

from ..states import Tokens

__all__ = ["Batch", "batches_of"]

TOGETHER = 2**14  # tokens in a batch, about
MOST = 64


class Batch(NamedTuple):
    """Replicas of n tokens that are run in one array.

    Attributes
    ----------
    n : int
    number : int
        Which of the batches of this n it is.
    size : int
        Replicas that are run.
    kept : int
        Replicas that count.
    """

    n: int
    number: int
    size: int
    kept: int

    @property
    def replicas(self) -> slice:
        """Where its replicas are among all."""
        begin = self.number * self.size
        return slice(begin, begin + self.kept)

    def cut(self, tokens: Tokens) -> Tokens:
        """The replicas that count of all that were run."""
        return Tokens(tokens.x[: self.kept])

    def seeds(self, seed: int, count: int) -> list[np.random.Generator]:
        """Independent generators: of the initial tokens, of the noise, and so on."""
        root = np.random.SeedSequence(seed, spawn_key=(self.n, self.number))
        return [np.random.default_rng(child) for child in root.spawn(count)]


def batches_of(sizes: list[int], replicas: int) -> list[Batch]:
    """All batches of a study, small sizes first."""
    found = []
    for n in sizes:
        size = min(max(TOGETHER // n, 1), MOST)
        for number in range(-(-replicas // size)):
            found.append(Batch(n, number, size, min(size, replicas - number * size)))
    return found
