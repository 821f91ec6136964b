"""A bounded queue of messages to a page, which drops messages of earlier scenes.

Runs are computed in threads, faster than a page may read. A run waits while the queue is full, so
that a page that reads slowly costs no memory.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

MOST_UNSENT = 2 * 2**20  # bytes; runs wait while more are unsent
CHECK_SECONDS = 0.2  # seconds between checks of a waiting run whether its scene is still shown

Past = Callable[[], bool]


class Outbox:
    """A bounded queue of messages to one page.

    Parameters
    ----------
    write : callable
        Sends a message, str or bytes; awaited until the page has taken it.
    """

    def __init__(self, write: Callable[[str | bytes], Awaitable[None]]):
        self._write = write
        self._waiting: deque[tuple[str | bytes, Past]] = deque()
        self._unsent, self._closed = 0, False
        self._room = threading.Condition()
        self._loop = asyncio.get_running_loop()
        self._mail = asyncio.Event()

    @property
    def unsent(self) -> int:
        """Bytes of messages that the page has not taken yet."""
        with self._room:
            return self._unsent

    def put(self, message: str | bytes, past: Past) -> None:
        """Add a message, from any thread; it is dropped if `past()` is true before it is sent."""
        with self._room:
            if self._closed:
                return
            self._drop()
            self._waiting.append((message, past))
            self._unsent += len(message)
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._mail.set)

    def wait(self, past: Past) -> None:
        """Wait until the queue has room or `past()` is true; not in the thread of the loop."""
        with self._room:
            while self._unsent > MOST_UNSENT and not self._closed and not past():
                self._room.wait(CHECK_SECONDS)

    async def deliver(self) -> None:
        """Write the messages one after the other, until the outbox is closed."""
        while not self._closed:
            await self._mail.wait()
            self._mail.clear()
            while (message := self._next()) is not None:
                await self._write(message)
                self._took(len(message))

    def close(self) -> None:
        """Drop all messages, and all that are added later."""
        with self._room:
            self._closed = True
            self._waiting.clear()
            self._unsent = 0
            self._room.notify_all()
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._mail.set)

    def _next(self) -> str | bytes | None:
        """Take the next message of a current scene from the queue; None if there is none."""
        with self._room:
            self._drop()
            return self._waiting.popleft()[0] if self._waiting else None

    def _drop(self) -> None:
        """Drop the messages of earlier scenes."""
        wanted = [(message, past) for message, past in self._waiting if not past()]
        if len(wanted) < len(self._waiting):
            self._unsent -= sum(len(m) for m, _ in self._waiting) - sum(len(m) for m, _ in wanted)
            self._waiting = deque(wanted)
            self._room.notify_all()

    def _took(self, size: int) -> None:
        """Note that the page has taken a message of this size, and wake waiting runs."""
        with self._room:
            self._unsent = max(self._unsent - size, 0)
            self._room.notify_all()
