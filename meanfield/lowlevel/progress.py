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
FORESEEN_PART = 0.02  # the part of the whole from which on the time left is more than a guess


class Progress(ExitStack):
    """A bar of tqdm; within the block it says what is compiled, which may take seconds.

    The time that is left is estimated without the time of compilation, and shown once a part of
    the whole is done.

    Parameters
    ----------
    what : str
        What is done, in a word, before there is anything to say about it.
    enabled : bool, optional
        None shows the bar on a terminal and in a notebook, after one second.
    begun : float
        The part of the whole, from 0 to 1, that was done before.
    form : str
        The format of the bar.

    Raises
    ------
    TypeError
        If `enabled` is not a bool.
    """

    def __init__(
        self, what: str, enabled: bool | None, begun: float = 0.0, form: str = REMAINING_FORMAT
    ) -> None:
        super().__init__()
        self._what = what
        self._bar: Any = None
        self._form, self._begun, self._compiles_since = form, begun, 0.0
        shown = _is_watched() if enabled is None else boolean("progress", enabled)
        if shown:
            from tqdm import tqdm

            self._bar = self.enter_context(
                tqdm(
                    total=1.0,
                    initial=begun,
                    delay=1 if enabled is None else 0,
                    miniters=0,
                    bar_format=form.replace(REMAINING_FORMAT, BAR_FORMAT),
                    desc=what,
                )
            )
            self.enter_context(listening(self._show_compilation))

    def _show_compilation(self, function: str | None) -> None:
        """Called when a compilation begins, with its name, and when it ends, with None."""
        if function is None:
            spent = time.time() - self._compiles_since
            self._bar.start_t += spent
            self._bar.last_print_t += spent
            self._bar.clear()
            self._bar.set_description_str(self._what, refresh=False)
        else:
            self._compiles_since = time.time()
            self._bar.set_description_str(f"{self._what}: compiling {function} ...")

    def show(self, part: float, text: str) -> None:
        """Show that a part of the whole is done, and a few words about it."""
        if self._bar is not None:
            if part - self._begun >= FORESEEN_PART:
                self._bar.bar_format = self._form
            self._bar.set_description_str(text, refresh=False)
            self._bar.update(part - self._bar.n)


def _is_watched() -> bool:
    """True on a terminal and in a notebook."""
    kernel = getattr(sys.modules.get("ipykernel.zmqshell"), "ZMQInteractiveShell", None)
    return sys.stderr.isatty() or (kernel is not None and kernel.initialized())


class Interruption:
    """Within the block Ctrl-C sets `requested`; a second one raises KeyboardInterrupt.

    Blocks around this one are notified too, as they may have to stop as well. Outside the
    main thread signals cannot be caught, and the block changes nothing.
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
        self._requested = True
        around = getattr(self._previous, "__self__", None)
        if isinstance(around, Interruption):
            around._request()


@contextmanager
def stopped_when(stopped: Callable[[], bool]) -> Iterator[None]:
    """Runs and curves of this thread end as after Ctrl-C once `stopped()` is true.

    Signals reach the main thread only; this is for threads that work for somebody who may leave.
    """
    token = _STOPPED.set(stopped)
    try:
        yield
    finally:
        _STOPPED.reset(token)
