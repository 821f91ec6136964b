"""The progress bar of a run, and its interruption by Ctrl-C."""

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
FORESEEN_PART = 0.02  # fraction that has to be done before the remaining time is shown


class Progress(ExitStack):
    """Context with a progress bar of tqdm, which also shows the functions that are compiled.

    The remaining time is estimated without the time of compilation, and shown once a fraction of
    the work is done.

    Parameters
    ----------
    what : str
        The first description of the work, a word.
    enabled : bool, optional
        None shows the bar on a terminal and in a notebook, after one second.
    begun : float
        The fraction of the work, from 0 to 1, that was done before.
    form : str
        The format of the bar.

    Raises
    ------
    TypeError
        If `enabled` is not a bool.
    """

    def __init__(
        self, title: str, enabled: bool | None, done: float = 0.0, form: str = REMAINING_FORMAT
    ) -> None:
        """Show the bar if `enabled`; with None in a terminal, after a second."""
        super().__init__()
        self._what = title
        self._bar: Any = None
        self._form, self._begun, self._compiles_since = form, done, 0.0
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
                )
            )
            self.enter_context(listening(self._show_compilation))

    def _show_compilation(self, function: str | None) -> None:
        """Show that a function is being compiled; None: the compilation has ended."""
        if function is None:
            spent = time.time() - self._compiles_since
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
            if fraction - self._begun >= FORESEEN_PART:
                self._bar.bar_format = self._form
            self._bar.set_description_str(text, refresh=False)
            self._bar.update(fraction - self._bar.n)


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
