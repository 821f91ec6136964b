"""Threads that draw figures for pages, bounded in number and in time."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .frames import LONGEST_COMPUTING

MOST_DRAWINGS = 3  # figures that are drawn at the same time
FAIR_SECONDS = 10.0  # seconds after which a figure gives way to another one
STOPPING_SECONDS = 2.0  # longest wait for the end of a figure that was told to stop


class Drawing:
    """One figure that is being drawn.

    Parameters
    ----------
    pool : ThreadPoolExecutor
    draw : callable
        Draws the figure and returns its type and content, as `exported`. Its argument is a
        function that returns True if the drawing must stop.
    """

    def __init__(self, pool: ThreadPoolExecutor, draw: Callable[[Callable[[], bool]], Any]):
        self.began, self.given_up = time.monotonic(), False
        self.future = asyncio.get_running_loop().run_in_executor(pool, draw, self.stopped)

    @property
    def seconds(self) -> float:
        """Seconds since the drawing began."""
        return time.monotonic() - self.began

    def stopped(self) -> bool:
        """Return True if the figure is no longer wanted, or takes too long."""
        return self.given_up or self.seconds > LONGEST_COMPUTING


class Drawings(ThreadPoolExecutor):
    """The threads that draw figures; one that takes long is stopped when others wait."""

    def __init__(self) -> None:
        super().__init__(MOST_DRAWINGS, "figure")
        self.open: list[Drawing] = []

    async def begin(self, draw: Callable[[Callable[[], bool]], Any]) -> Drawing | None:
        """Begin to draw a figure; None while all threads are busy."""
        if len(self.open) >= MOST_DRAWINGS and (oldest := self.open[0]).seconds > FAIR_SECONDS:
            oldest.given_up = True
            await asyncio.wait([oldest.future], timeout=STOPPING_SECONDS)
        if len(self.open) >= MOST_DRAWINGS:
            return None
        drawing = Drawing(self, draw)
        self.open.append(drawing)
        drawing.future.add_done_callback(lambda _: self.open.remove(drawing))
        return drawing

    def end(self) -> None:
        """Stop all drawings."""
        for drawing in self.open:
            drawing.given_up = True
        self.shutdown(wait=False, cancel_futures=True)
