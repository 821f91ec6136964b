"""Limit of the number of threads of BLAS."""

import sys
import threading
from contextlib import ExitStack
from functools import cache
from typing import Any

from .compilation import hold_at_fork


@cache
def _libraries(_with_scipy: bool) -> Any:
    """Controller of the BLAS libraries that are loaded, cached; scipy has its own library."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # its search for libraries takes milliseconds


class _OneThread:
    """Limit for the whole process, from the entry of the first context to the exit of the last."""

    def __init__(self) -> None:
        self._lock, self._blocks, self._limit = threading.Lock(), 0, ExitStack()
        hold_at_fork(self._lock)

    def __enter__(self) -> None:
        with self._lock:
            if self._blocks == 0:
                libraries = _libraries("scipy.linalg" in sys.modules)
                self._limit.enter_context(libraries.limit(limits=1, user_api="blas"))
            self._blocks += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._blocks -= 1
            if self._blocks == 0:
                self._limit.close()


_one_thread = _OneThread()


def one_blas_thread() -> _OneThread:
    """Context in which BLAS uses one thread, in the whole process.

    For work that the package itself shares among threads, and for small matrices, for which BLAS is
    slower with more threads. Contexts may overlap, in one thread or in several.
    """
    return _one_thread
