"""The progress bar of a run, and its interruption by Ctrl-C."""

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, Self

from ..core.checks import boolean
from .compilation import listening

_STOPPED: ContextVar[Callable[[], bool]] = ContextVar("stopped", default=lambda: False)
BAR_FORMAT = "{desc} {percentage:3.0f}%|{bar}| {elapsed}"
REMAINING_FORMAT = f"{BAR_FORMAT}<{{remaining}}"
SEARCH_FORMAT = "{desc} {elapsed}"  # of searches, whose length is not known
FORESEEN_PART = 0.02  # fraction that has to be done before the remaining time is shown
STEADY_RATIO = 1.5  # of the recent and the mean speed, up to which it is shown then,
UNSTEADY_PART = 0.25  # and the fraction from which on it is shown for any ratio
MEMORY = 0.25  # time in which past progress is forgotten, as a fraction of the time spent


class RemainingTime:
    """Estimate of the time left for a task, from the speed of its recent progress.

    Past progress is forgotten exponentially, so that a run whose first steps are short is judged by
    the later ones. There is no estimate before speeds are known: until 2% of the task are done and
    the recent speed is near the mean one, or until 25% are done.

    Parameters
    ----------
    fraction : float
        Fraction of the task, from 0 to 1, that is done at the beginning.
    time : float
        Time at the beginning, in seconds.
    """

    def __init__(self, fraction: float, time: float) -> None:
        self._begun, self._started = fraction, time
        self._fraction, self._time = fraction, time
        self._progress = self._duration = 0.0  # recent ones, with weights
        self._known = False

    def pause(self, seconds: float) -> None:
        """Leave out the seconds that have just passed."""
        self._started += seconds
        self._time += seconds

    def after(self, fraction: float, time: float) -> float | None:
        """Seconds left at a time at which a fraction is done; None without an estimate."""
        elapsed, step = time - self._started, time - self._time
        kept = math.exp(-step / (MEMORY * elapsed)) if elapsed > 0 else 0.0
        self._progress = kept * self._progress + max(fraction - self._fraction, 0.0)
        self._duration = kept * self._duration + step
        self._fraction, self._time = fraction, time
        done = fraction - self._begun
        if not (self._progress > 0 and self._duration > 0 and done > 0):
            return None
        ratio = self._progress / self._duration / (done / elapsed)
        steady = 1 / STEADY_RATIO <= ratio <= STEADY_RATIO
        part = done / (1 - self._begun)
        self._known |= part >= UNSTEADY_PART or (steady and part >= FORESEEN_PART)
        return (1 - fraction) * self._duration / self._progress if self._known else None


class Progress(ExitStack):
    """Context with a progress bar of tqdm, which also shows the functions that are compiled.

    The remaining time is estimated without the time of compilation, and shown once it is known: see
    `RemainingTime`.

    Parameters
    ----------
    title : str
        The first description of the work, a word.
    enabled : bool, optional
        None shows the bar on a terminal and in a notebook, after one second.
    done : float
        The fraction of the work, from 0 to 1, that was done before.
    form : str
        The format of the bar.
    stages : bool
        Whether the work consists of a few stages whose times are not known: the bar is then redrawn
        every second, without a remaining time.

    Raises
    ------
    TypeError
        If `enabled` is not a bool.
    """

    def __init__(
        self, title: str, enabled: bool | None, done: float = 0.0, form: str = REMAINING_FORMAT,
        *, stages: bool = False,
    ) -> None:  # fmt: skip
        """Show the bar if `enabled`; with None in a terminal, after a second."""
        super().__init__()
        self._what = title
        self._bar: Any = None
        self._form, self._compiles_since = BAR_FORMAT if stages else form, 0.0
        self._left = RemainingTime(done, time.time())
        shown = _is_watched() if enabled is None else boolean("progress", enabled)
        if shown:
            from tqdm import tqdm

            self._bar = self.enter_context(
                tqdm(
                    total=1.0,
                    initial=done,
                    delay=1 if enabled is None else 0,
                    miniters=0,
                    bar_format=form.replace(REMAINING_FORMAT, BAR_FORMAT),
                    desc=title,
                    **_assumed_size(),
                )
            )
            self.enter_context(listening(self._show_compilation))
            if stages:
                self.enter_context(_repeated(self._bar.refresh))

    def _show_compilation(self, function: str | None) -> None:
        """Show that a function is being compiled; None: the compilation has ended."""
        if function is None:
            spent = time.time() - self._compiles_since
            self._left.pause(spent)
            self._bar.start_t += spent
            self._bar.last_print_t += spent
            self._bar.clear()
            self._bar.set_description_str(self._what, refresh=False)
        else:
            self._compiles_since = time.time()
            self._bar.set_description_str(f"{self._what}: compiling {function} ...")

    def show(self, fraction: float, text: str) -> None:
        """Show that this fraction of the work is done, and a text."""
        if self._bar is not None:
            seconds = self._left.after(fraction, time.time())
            if seconds is not None:
                remaining = self._bar.format_interval(seconds)
                self._bar.bar_format = self._form.replace("{remaining}", remaining)
            self._bar.set_description_str(text, refresh=False)
            self._bar.update(fraction - self._bar.n)


def _assumed_size() -> dict[str, int]:
    """Columns and rows of a bar on a terminal that does not know its size; else nothing."""
    try:
        size = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError, AttributeError):  # no terminal
        return {}
    return {} if min(size) > 1 else {"ncols": 79, "nrows": 24}


@contextmanager
def _repeated(function: Callable[[], object], seconds: float = 1.0) -> Iterator[None]:
    """Context in which a thread calls a function again and again, first after `seconds`."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            function()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _is_watched() -> bool:
    """True on a terminal and in a notebook."""
    kernel = getattr(sys.modules.get("ipykernel.zmqshell"), "ZMQInteractiveShell", None)
    return sys.stderr.isatty() or (kernel is not None and kernel.initialized())


class Interruption:
    """Context in which Ctrl-C sets `requested`, and a second one raises KeyboardInterrupt.

    Enclosing contexts are notified too, as they may have to stop as well. Outside the main thread
    signals cannot be caught, and the context has no effect.
    """

    def __init__(self) -> None:
        self._requested = False
        self._previous: Any = None

    @property
    def requested(self) -> bool:
        """True once Ctrl-C was pressed, or the function passed to `stopped_when` returns True."""
        return self._requested or _STOPPED.get()()

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _handle(self, *_: object) -> None:
        if self._requested:
            raise KeyboardInterrupt
        self._request()

    def _request(self) -> None:
        """Request the end of this and of all enclosing blocks."""
        self._requested = True
        around = getattr(self._previous, "__self__", None)
        if isinstance(around, Interruption):
            around._request()


@contextmanager
def stopped_when(stopped: Callable[[], bool]) -> Iterator[None]:
    """Context in which runs and curves of this thread end, as by Ctrl-C, once `stopped()` is true.

    For threads whose work can be cancelled, since signals reach the main thread only.
    """
    token = _STOPPED.set(stopped)
    try:
        yield
    finally:
        _STOPPED.reset(token)
