"""Figures that are being drawn for pages: few at a time, none for ever."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .frames import LONGEST

DRAWINGS = 3  # figures that are drawn at the same time
FAIR = 10.0  # seconds after which a figure gives way to another one
GIVES_WAY = 2.0  # seconds for which a figure that has been given up is waited for


class Drawing:
    """A figure that is being drawn.

    Parameters
    ----------
    pool : ThreadPoolExecutor
    draw : callable
        Given whether it is to stop, returns what `exported` does.
    """

    def __init__(self, pool: ThreadPoolExecutor, draw: Callable[[Callable[[], bool]], Any]):
        self.began, self.given_up = time.monotonic(), False
        self.future = asyncio.get_running_loop().run_in_executor(pool, draw, self.stopped)

    @property
    def seconds(self) -> float:
        """How long it has been drawn."""
        return time.monotonic() - self.began

    def stopped(self) -> bool:
        """Whether nobody waits for it, or it takes too long."""
        return self.given_up or self.seconds > LONGEST


class Drawings(ThreadPoolExecutor):
    """The figures that are being drawn; one that takes long gives way to others."""

    def __init__(self) -> None:
        super().__init__(DRAWINGS, "figure")
        self.open: list[Drawing] = []

    async def begin(self, draw: Callable[[Callable[[], bool]], Any]) -> Drawing | None:
        """Draw a figure, or None: there is no room yet."""
        if len(self.open) >= DRAWINGS and (oldest := self.open[0]).seconds > FAIR:
            oldest.given_up = True
            await asyncio.wait([oldest.future], timeout=GIVES_WAY)
        if len(self.open) >= DRAWINGS:
            return None
        drawing = Drawing(self, draw)
        self.open.append(drawing)
        drawing.future.add_done_callback(lambda _: self.open.remove(drawing))
        return drawing

    def end(self) -> None:
        """Stop them all."""
        for drawing in self.open:
            drawing.given_up = True
        self.shutdown(wait=False, cancel_futures=True)
