"""What an engine is, and how its sums over pairs are shared among threads."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numba import njit

from ..models import ZonalDrift

__all__ = ["Engine", "ThreadPool", "block_pair", "rounds_of"]


class Engine(ABC):
    """Velocities of interacting tokens under a zonal drift,

        v_i = P_i sum_j m_j W'(t_ij) x_j / sum_j m_j Z(t_ij),    t_ij = <x_i, x_j>

    of R independent systems of n tokens each. Only the directions x_i / |x_i| count: between the
    stages of a Runge-Kutta step tokens may leave the sphere a little. Velocities are tangent at
    the directions. Arrays are C-contiguous, of float64.

    Parameters
    ----------
    drift : ZonalDrift
        Its parameters are numbers, or have shape (R,).

    Attributes
    ----------
    name : str
        How the sums are computed: "direct", "circle", "sphere", "mean".
    """

    name: ClassVar[str]

    def __init__(self, drift: ZonalDrift):
        self.drift = drift

    @abstractmethod
    def velocity(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Velocities (R, n, d) of tokens x (R, n, d) with masses (R, n), >= 0, of sum 1."""

    @abstractmethod
    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """(1/2) sum_ij m_i m_j W(t_ij), (R,); W = exp(beta t) / beta for USA and SA.

        At beta = 0, as for Kuramoto, W = t. Infinite where exp(|beta|) overflows.
        """


class ThreadPool:
    """A number of threads, each of which takes a share of a list of tasks.

    Which thread does which task depends on the number of threads. Results do not, provided that
    tasks write to different places.
    """

    def __init__(self, threads: int = 1):
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def share(self, work: Callable[[int, int], object], count: int) -> None:
        """Call work(first, last) on consecutive shares of range(count), all at once.

        `work` has to release Python's lock to gain from it, as compiled code and BLAS do.
        """
        if self._pool is None or count < 2:
            work(0, count)
            return
        ends = [count * thread // self.threads for thread in range(self.threads + 1)]
        shares = [pair for pair in pairwise(ends) if pair[0] < pair[1]]
        for done in [self._pool.submit(work, *pair) for pair in shares]:
            done.result()


# Round-robin schedule: every block of tokens is paired once with every other. No block occurs
# twice in a round, so the pairs of a round can be computed at the same time, and what a block
# collects is summed in the order of the rounds, whichever thread computes it.


@njit(cache=True, nogil=True)
def rounds_of(blocks):
    """The number of rounds for so many blocks; each has up to blocks/2 pairs."""
    return blocks - 1 + blocks % 2


@njit(cache=True, nogil=True)
def block_pair(blocks, turn, number):
    """The two blocks of a pair of a round, or (-1, -1) where a block is left over.

    All but the last block sit in a circle that turns by one place every round.
    """
    circle = blocks - 1 + blocks % 2
    first, second = (turn + number) % circle, (turn - number) % circle
    if number == 0:
        second = circle
    if max(first, second) >= blocks:
        return -1, -1
    return min(first, second), max(first, second)
