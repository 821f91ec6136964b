"""Ctrl-C as a request to stop after the present step."""

import signal
import threading

__all__ = ["Interruption"]


class Interruption:
    """Within the block Ctrl-C sets `requested`; a second one raises KeyboardInterrupt.

    Outside the main thread signals cannot be caught, and the block changes nothing.
    """

    def __init__(self):
        self.requested = False
        self._previous = None

    def __enter__(self) -> "Interruption":
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
