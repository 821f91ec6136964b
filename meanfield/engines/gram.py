"""Any zonal kernel summed over pairs of tokens, by blocks of their Gram matrix.

Directions and sums are columns as in `differences`, and mean the same. Here the pull is

    D_i = sum_{j != i} m_j w_ij u_j - u_i sum_{j != i} m_j w_ij

so a token does not pull itself, but the rounding of tokens at the same place, 1e-16 of their
weight, hides forces that are smaller still.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numba import njit

from ..lowlevel.floating_point import exponential
from .team import Team
from .tournament import opponents, rounds_of

__all__ = ["BLOCK", "exponential_weights", "gram_sums"]

BLOCK = 256


def gram_sums(
    columns: np.ndarray,
    weigh: Callable[[np.ndarray], None],
    own: float,
    sums: np.ndarray,
    team: Team,
) -> None:
    """Fill the sums (rows + 1, n) of one system; weigh(gram) makes weights of inner products.

    It does so in place. `own` is the weight of a token for itself, with which it counts in its
    level.
    """
    system = _System(columns, weigh, sums)
    blocks = -(-columns.shape[1] // BLOCK)
    team.share(system.own, blocks)
    for turn in range(rounds_of(blocks)):
        team.share(partial(system.meet, turn), (blocks + 1) // 2)
    _complete(columns, own, sums)


class _System:
    def __init__(self, columns, weigh, sums):
        self.directions, self.pulling = columns[:-1], columns * columns[-1]
        self.pulling[-1] = columns[-1]
        self.sums, self._weigh = sums, weigh

    def own(self, first, last):
        scratch = np.empty(BLOCK**2)
        for block in range(first, last):
            inside = slice(block * BLOCK, (block + 1) * BLOCK)
            copy = self.directions[:, inside].copy()  # for the same one numpy takes slower paths
            weights = self._weights(self.directions[:, inside], copy, scratch)
            np.fill_diagonal(weights, 0.0)
            np.matmul(self.pulling[:, inside], weights, out=self.sums[:, inside])

    def meet(self, turn, first, last):
        blocks, scratch = -(-self.sums.shape[1] // BLOCK), np.empty(BLOCK**2)
        for meeting in range(first, last):
            one, other = opponents(blocks, turn, meeting)
            if one >= 0:
                rows = slice(one * BLOCK, (one + 1) * BLOCK)
                others = slice(other * BLOCK, (other + 1) * BLOCK)
                x, y = self.directions[:, rows], self.directions[:, others]
                weights = self._weights(x, y, scratch)
                self.sums[:, rows] += self.pulling[:, others] @ weights.T
                self.sums[:, others] += self.pulling[:, rows] @ weights

    def _weights(self, x, y, scratch):
        gram = scratch[: x.shape[1] * y.shape[1]].reshape(x.shape[1], y.shape[1])
        self._weigh(np.matmul(x.T, y, out=gram))
        return gram


@njit(cache=True, nogil=True)
def _complete(columns, own, sums):
    """Take u_i times the level of a token from its pull, and add its own weight to its level."""
    for c in range(len(sums) - 1):
        for i in range(sums.shape[1]):
            sums[c, i] -= columns[c, i] * sums[-1, i]
    for i in range(sums.shape[1]):
        sums[-1, i] += columns[-1, i] * own


def exponential_weights(beta: float) -> Callable[[np.ndarray], None]:
    """t -> exp(beta t - |beta|), in place."""
    return lambda gram: _exponentials(gram.ravel(), beta)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _exponentials(numbers, beta):
    size = abs(beta)
    for j in range(numbers.size):
        exponent = beta * numbers[j] - size
        numbers[j] = exponential(0.0 if exponent > 0.0 else exponent)
