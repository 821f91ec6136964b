"""What a run shows while it lasts, a progress bar, and its interruption by Ctrl-C."""

import signal
import sys
import threading
from contextlib import ExitStack
from typing import Any, Self

from ..lowlevel.compilation import listening


class Progress(ExitStack):
    """tqdm over a duration; `enabled` None shows it on a terminal only, after one second.

    Within the block it tells of compilation at once: the first solve of a kind may take seconds
    before its first step.
    """

    def __init__(self, duration: float, enabled: bool | None):
        super().__init__()
        self._duration = duration
        self._bar: Any = None
        if enabled or (enabled is None and sys.stderr.isatty()):
            from tqdm.auto import tqdm

            self._bar = self.enter_context(
                tqdm(
                    total=1.0,
                    delay=0 if enabled else 1,
                    bar_format="{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}",
                    desc="solve",
                )
            )
            self.enter_context(listening(self._tell_of_compilation))

    def _tell_of_compilation(self, function: str | None) -> None:
        """At its beginning, with the name of what is compiled, and at its end, with None."""
        if function is None:
            self._bar.clear()
            self._bar.set_description_str("solve", refresh=False)
        else:
            self._bar.set_description_str("solve: compiling ...")

    def update(self, t: float, elapsed: float, size: str) -> None:
        """Show that the run has reached t, `elapsed` after its start."""
        if self._bar is None:
            return
        self._bar.set_description_str(f"solve t = {t:.4g}, {size}", refresh=False)
        self._bar.update(elapsed / self._duration - self._bar.n)


class Interruption:
    """Within the block Ctrl-C sets `requested`; a second one raises KeyboardInterrupt.

    Outside the main thread signals cannot be caught, and the block changes nothing.
    """

    def __init__(self):
        self.requested = False
        self._previous = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _handle(self, *_) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
