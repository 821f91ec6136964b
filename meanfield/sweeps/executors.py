"""Executors: this thread, processes of this machine, or the workers of a scheduler."""

import math
import multiprocessing
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from ..core import system
from ..core.checks import as_given
from ..core.errors import MeanfieldError, SlowWarning

POLL_INTERVAL = 0.2  # seconds between looks at Ctrl-C
MAX_PENDING = 1024  # jobs submitted before one of them has ended
CLOSING_TIME = 5.0  # seconds for closing the connection to a scheduler
IDLE_TIME = 5.0  # seconds without a finished job before workers are counted
Result = TypeVar("Result")


class InThisThread(Executor):
    """An executor that runs each job in this thread, when it is submitted."""

    def submit(self, fn: Callable[..., Result], /, *arguments: Any, **named: Any) -> Future[Result]:
        """Run the function at once; its error is kept by the future."""
        future: Future[Result] = Future()
        try:
            future.set_result(fn(*arguments, **named))
        except (Exception, KeyboardInterrupt) as error:
            future.set_exception(error)
        return future


def processes(count: int | None = None) -> ProcessPoolExecutor:
    """A pool of `count` processes of this machine, by default one for each core.

    Ctrl-C does not reach them; the parent process handles it. They end with the parent, even if it
    is killed.
    """
    context = multiprocessing.get_context("spawn")  # threads do not survive a fork
    return ProcessPoolExecutor(count, context, _begin)


def _begin() -> None:
    """Initialise a worker process."""
    system.leave_terminal()  # runs handle signals themselves
    threading.Thread(
        target=_end_with, args=(multiprocessing.parent_process(),), daemon=True
    ).start()


def _end_with(parent: Any) -> None:
    """Exit when the parent does; a worker waits for jobs for ever."""
    parent.join()
    os._exit(1)


@contextmanager
def opened(executor: Any) -> Iterator[Executor]:
    """The executor that an argument denotes; closed afterwards unless the caller created it.

    Raises
    ------
    TypeError
        If it denotes none.
    MeanfieldError
        If no scheduler answers, or dask.distributed is not installed.
    """
    if executor is None:
        yield InThisThread()
    elif isinstance(executor, Executor):
        yield executor
    elif hasattr(executor, "get_executor") or (isinstance(executor, str) and "://" in executor):
        client = _client(executor) if isinstance(executor, str) else executor
        workers = client.get_executor(pure=False)
        try:
            yield workers
        finally:
            if not _is_gone(workers):
                workers.shutdown(wait=False)  # cancels pending jobs
            if client is not executor:
                client.close(CLOSING_TIME)
    elif isinstance(executor, str) and executor == "processes":
        workers = processes()
        try:
            yield workers
        except KeyboardInterrupt:  # a second Ctrl-C: do not wait
            for process in list((workers._processes or {}).values()):
                process.kill()
            raise
        finally:
            workers.shutdown(cancel_futures=True)
    else:
        raise TypeError(
            'executor must be None, "processes", the address of a scheduler such as '
            '"tcp://127.0.0.1:8786", a dask.distributed.Client or an executor of '
            f"concurrent.futures; got executor = {as_given(executor)}."
        )


def workers_of(executor: Executor) -> int:
    """The number of jobs that an executor runs at the same time; by default the number of cores."""
    if isinstance(executor, InThisThread):
        return 1
    client = _client_of(executor)
    count = _threads(client) if client else getattr(executor, "_max_workers", None)
    return count or os.cpu_count() or 1


def _client_of(executor: Executor) -> Any:
    """The dask client of an executor, or None."""
    is_of_dask = type(executor).__module__.startswith("distributed.")
    return getattr(executor, "_client", None) if is_of_dask else None


def _threads(client: Any) -> int | None:
    """The number of threads of all workers; None if the scheduler is gone."""
    if client.status == "running":  # otherwise it would wait for its timeout
        with suppress(Exception):  # of several types, depending on the client's activity
            return sum(client.nthreads().values())
    return None


def _is_gone(executor: Executor) -> bool:
    """Whether the scheduler is gone; its client then forgets all jobs."""
    client = _client_of(executor)
    return client is not None and client.status != "running"


def _client(address: str) -> Any:
    """Client of the scheduler at an address; MeanfieldError if none answers."""
    try:
        from distributed import Client
        from distributed.comm.addressing import get_address_host
    except ImportError as error:
        raise MeanfieldError(
            "A scheduler needs dask.distributed, which is not installed: pip install distributed."
        ) from error
    try:
        get_address_host(address)  # a client takes a minute to refuse an unknown scheme
        return Client(address, set_as_default=False)
    except (OSError, ValueError) as error:
        raise MeanfieldError(
            f"No scheduler answers at {address}: {error}. Start one by `dask scheduler`."
        ) from error


def _failed_future(error: BaseException) -> Future[Any]:
    """A future that failed with an error."""
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


WORKERS_LOST = (CancelledError, BrokenExecutor)  # errors after the loss of workers or scheduler


def error_of(future: Future[Any]) -> BaseException | None:
    """The error of a finished job; a `CancelledError` if its executor cancelled it."""
    if future.cancelled():
        return CancelledError("its executor cancelled it")
    return future.exception()


def was_killed(error: BaseException) -> bool:
    """Whether a scheduler gave up a job because several workers died running it."""
    return type(error).__module__.startswith("distributed.") and "KilledWorker" in repr(type(error))


def completed(
    executor: Executor, jobs: Iterable[tuple[Callable[..., Any], Any]], stop: Callable[[], bool]
) -> Iterator[tuple[Any, Future[Any]]]:
    """Run jobs, and yield the argument and future of each as it ends, in any order.

    Parameters
    ----------
    executor : Executor
    jobs : iterable of (function, argument)
    stop : callable
        Returns True to start no more jobs; running ones that cannot be cancelled are awaited.

    Warns
    -----
    SlowWarning
        If no job ends because a scheduler has no workers yet.
    """
    results: SimpleQueue[Future[Any]] = SimpleQueue()
    futures: dict[Future[Any], Any] = {}
    limit, waiting_jobs = (1 if isinstance(executor, InThisThread) else MAX_PENDING), iter(jobs)
    check_at = time.monotonic() + IDLE_TIME
    try:
        while True:
            if stop():
                futures = {job: arguments for job, arguments in futures.items() if not job.cancel()}
            else:
                for function, argument in islice(waiting_jobs, limit - len(futures)):
                    try:
                        future = executor.submit(function, argument)
                    except Exception as error:  # the executor is broken or closed
                        future = _failed_future(error)
                    futures[future] = argument
                    future.add_done_callback(results.put)
            if not futures:
                return
            try:
                future = results.get(timeout=POLL_INTERVAL)
            except Empty:
                if _is_gone(executor):
                    while futures:
                        yield futures.popitem()[1], _failed_future(CancelledError("scheduler lost"))
                elif time.monotonic() > check_at and not stop():
                    check_at = _warn_without_workers(executor)
                continue
            check_at = time.monotonic() + IDLE_TIME
            if future in futures:
                yield futures.pop(future), future
    finally:
        for future in futures:
            future.cancel()


def _warn_without_workers(executor: Executor) -> float:
    """Warn if a scheduler has no workers; return the time of the next check."""
    client = _client_of(executor)
    if client is None or _threads(client) != 0:
        return math.inf if client is None else time.monotonic() + IDLE_TIME
    address = client.scheduler.address
    warnings.warn(
        f"The scheduler at {address} has no workers; the sweep waits for one. Start one with `dask "
        f"worker {address}` where the function can be imported; Ctrl-C ends the sweep.",
        SlowWarning,
        stacklevel=2,
    )
    return math.inf
