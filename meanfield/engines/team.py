"""Threads that share out tasks."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

__all__ = ["Team"]


class Team:
    """A number of threads that work on shares of a list of tasks.

    Who does which task depends on the number of threads. Results do not, provided that tasks
    which run at the same time write to different places.
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
