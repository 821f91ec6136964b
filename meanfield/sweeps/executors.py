"""Where points are run: here, in processes of this machine, or by the workers of a scheduler."""

import math
import multiprocessing
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
)
from contextlib import contextmanager, suppress
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from ..core.checks import as_given
from ..core.errors import MeanfieldError, SlowWarning

BLINK = 0.2  # seconds between looks at Ctrl-C
AT_ONCE = 1024  # jobs that an executor is given before one of them has ended
CLOSING = 5.0  # seconds to take leave of a scheduler
IDLE = 5.0  # seconds without a job that ended, after which it is asked whether there are workers
T = TypeVar("T")


class Here(Executor):
    """Runs a job in this thread, when it is given."""

    def submit(self, fn: Callable[..., T], /, *given: Any, **named: Any) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(fn(*given, **named))
        except (Exception, KeyboardInterrupt) as error:
            future.set_exception(error)
        return future


def processes(count: int | None = None) -> ProcessPoolExecutor:
    """As many processes of this machine as it has cores, or `count`.

    They are out of reach of Ctrl-C, which the process that started them handles, and end with that
    process, also if it is killed.
    """
    context = multiprocessing.get_context("spawn")  # threads do not survive a fork
    return ProcessPoolExecutor(count, context, _begin)


def _begin() -> None:
    """What a process does first."""
    os.setpgid(0, 0)  # of the terminal's signals: what runs here has handlers of its own
    threading.Thread(
        target=_end_with, args=(multiprocessing.parent_process(),), daemon=True
    ).start()


def _end_with(parent: Any) -> None:
    """End when the parent does: the queue on which a process waits has no end."""
    parent.join()
    os._exit(1)


@contextmanager
def opened(executor: Any) -> Iterator[Executor]:
    """The executor that an argument means; it is closed again unless it is the caller's own.

    Raises
    ------
    TypeError
        If it means none.
    MeanfieldError
        If no scheduler answers, or dask.distributed is not installed.
    """
    if executor is None:
        yield Here()
    elif isinstance(executor, Executor):
        yield executor
    elif isinstance(executor, str) and "://" in executor:
        client = _client(executor)
        try:
            with _of_client(client) as workers:
                yield workers
        finally:
            client.close(CLOSING)
    elif isinstance(executor, str) and executor == "processes":
        workers = processes()
        try:
            yield workers
        except KeyboardInterrupt:  # a second Ctrl-C: nothing is waited for
            _kill(workers)
            raise
        finally:
            workers.shutdown(cancel_futures=True)
    elif hasattr(executor, "get_executor"):
        with _of_client(executor) as workers:
            yield workers
    else:
        raise TypeError(
            'executor must be None, "processes", the address of a scheduler such as '
            '"tcp://127.0.0.1:8786", a dask.distributed.Client or an executor of '
            f"concurrent.futures; got executor = {as_given(executor)}."
        )


def _kill(workers: ProcessPoolExecutor) -> None:
    """End all processes at once, whatever they run."""
    for process in list((workers._processes or {}).values()):
        process.kill()


def workers_of(executor: Executor) -> int:
    """How many jobs it runs at the same time, as far as it says; else the number of cores."""
    if isinstance(executor, Here):
        return 1
    known = getattr(executor, "_max_workers", None)
    if (client := _client_of(executor)) is not None:
        known = _threads(client)
    return known or os.cpu_count() or 1


def _client_of(executor: Executor) -> Any:
    """The client of dask that is behind an executor, or None."""
    is_of_dask = type(executor).__module__.startswith("distributed.")
    return getattr(executor, "_client", None) if is_of_dask else None


def _threads(client: Any) -> int | None:
    """The threads of all workers together; None where the scheduler is gone."""
    if client.status == "running":  # else it would wait until it gives up
        with suppress(Exception):  # of several kinds, by what the client was doing
            return sum(client.nthreads().values())
    return None


def _is_gone(executor: Executor) -> bool:
    """Whether a scheduler is: its client forgets all jobs, though it looks for it for a while."""
    client = _client_of(executor)
    return client is not None and client.status != "running"


def _client(address: str) -> Any:
    try:
        from distributed import Client
        from distributed.comm.addressing import get_address_host
    except ImportError as error:
        raise MeanfieldError(
            "A scheduler needs dask.distributed, which is not installed: pip install distributed."
        ) from error
    try:
        get_address_host(address)  # knows its scheme: a client that does not, closes in a minute
        return Client(address, set_as_default=False)
    except (OSError, ValueError) as error:
        raise MeanfieldError(
            f"No scheduler answers at {address}: {error}. Start one by `dask scheduler`."
        ) from error


@contextmanager
def _of_client(client: Any) -> Iterator[Executor]:
    workers = client.get_executor(pure=False)
    try:
        yield workers
    finally:
        if not _is_gone(workers):
            workers.shutdown(wait=False)  # what is left is cancelled


def _submitted(executor: Executor, function: Callable, argument: Any) -> Future:
    """The future of a job; a failed one where the executor, which may be broken, takes no more."""
    try:
        return executor.submit(function, argument)
    except Exception as error:
        return _failed(error)


def _failed(error: BaseException) -> Future:
    """A future of which an error came."""
    future: Future = Future()
    future.set_exception(error)
    return future


LOST = (CancelledError, BrokenExecutor)  # what is raised where workers or a scheduler are gone


def error_of(future: Future) -> BaseException | None:
    """The error of a job that has ended; a `CancelledError` if its executor cancelled it."""
    if future.cancelled():
        return CancelledError("its executor cancelled it")
    return future.exception()


def was_lost(future: Future) -> bool:
    """Whether a job ended with those that ran it."""
    return isinstance(error_of(future), LOST)


def was_killed(error: BaseException) -> bool:
    """Whether a scheduler has given a job up, because several workers died that ran it."""
    return type(error).__module__.startswith("distributed.") and "KilledWorker" in repr(type(error))


def completed(
    executor: Executor, jobs: Iterable[tuple[Callable, Any]], stop: Callable[[], bool]
) -> Iterator[tuple[Any, Future]]:
    """Run jobs, and yield the argument and the future of each when it has ended, in any order.

    Parameters
    ----------
    executor : Executor
    jobs : iterable of (function, argument)
    stop : callable
        Whether to start no more of them; those that run already, and cannot be cancelled, are
        waited for.

    Warns
    -----
    SlowWarning
        If nothing ends as a scheduler has no workers; they may still come.
    """
    ended: SimpleQueue[Future] = SimpleQueue()
    running: dict[Future, Any] = {}
    most, left = (1 if isinstance(executor, Here) else AT_ONCE), iter(jobs)
    asks_at = time.monotonic() + IDLE
    try:
        while True:
            if stop():
                running = {job: given for job, given in running.items() if not job.cancel()}
            else:
                for function, argument in islice(left, most - len(running)):
                    future = _submitted(executor, function, argument)
                    running[future] = argument
                    future.add_done_callback(ended.put)
            if not running:
                return
            try:
                future = ended.get(timeout=BLINK)
            except Empty:
                if _is_gone(executor):
                    while running:
                        yield running.popitem()[1], _failed(CancelledError("scheduler lost"))
                elif time.monotonic() > asks_at and not stop():
                    asks_at = _ask_for_workers(executor)
                continue
            asks_at = time.monotonic() + IDLE
            if future in running:
                yield running.pop(future), future
    finally:
        for future in running:
            future.cancel()


def _ask_for_workers(executor: Executor) -> float:
    """Warn where a scheduler has no workers; when to ask again."""
    client = _client_of(executor)
    if client is None:
        return math.inf
    if _threads(client) != 0:
        return time.monotonic() + IDLE
    address = client.scheduler.address
    warnings.warn(
        f"The scheduler at {address} has no workers: the sweep waits for one. Start it by `dask "
        f"worker {address}`, where the function can be imported; Ctrl-C ends the sweep.",
        SlowWarning,
        stacklevel=2,
    )
    return math.inf
