"""Open pages and their work in threads; a page has one scene at a time.

A page numbers its scenes. Results are sent with the number of their scene, and dropped when the
page shows a later one. Pages and threads are bounded in number: while the threads are busy, only
the last request of a page is kept. Runs are computed faster than a page may read: messages wait in
a bounded queue, and a run waits while it is full, so that a page that reads slowly costs no memory.
"""

import asyncio
import json
import struct
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from meanfield import Configuration
from meanfield.extending import REFUSED, stopped_when

from .diagrams import branches_of, plane_of
from .frames import Frame, play
from .scene import Scene, UserFile

MOST_SESSIONS = 8
# Numbers of threads; there are enough that no page waits for the runs of another
RUN_THREADS, DIAGRAM_THREADS = 2 * MOST_SESSIONS, 1
SCENE_THREADS = 2  # threads that read scenes
FLUSH_SECONDS = 0.05  # seconds between messages with frames
SETTLED_SECONDS = 0.3  # seconds for which a scene must be shown before its diagrams are computed
CACHED_DIAGRAMS = 64  # largest number of diagrams in the cache
NO_SCENE = -1  # number for messages without a scene, and of a page that shows none
PAGE_LAYERS = ("density", "tokens")
MOST_UNSENT = 2 * 2**20  # bytes; runs wait while more are unsent
CHECK_SECONDS = 0.2  # seconds between checks of a waiting run whether its scene is still shown

Past = Callable[[], bool]
Message = dict[str, Any] | bytes
Send = Callable[[Message, int], None]
Wait = Callable[[Past], None]
DiagramKey = tuple[str | float, ...]
Compute = Callable[[Scene], dict[str, Any]]


def message_of(error: Exception) -> str:
    """The message of an error, with its type if it is a defect, which must not be silent."""
    return str(error) if isinstance(error, REFUSED) else f"{type(error).__name__}: {error}"


class Latest:
    """A queue of length one before a pool of threads: a new job replaces a waiting one."""

    def __init__(self, pool: ThreadPoolExecutor):
        self._pool = pool
        self._lock = threading.Lock()
        self._job: Callable[[], None] | None = None
        self._busy = False

    def put(self, job: Callable[[], None] | None) -> None:
        """Set the job that follows the running one, in place of a waiting job; None removes it."""
        with self._lock:
            self._job = job
            begins = job is not None and not self._busy
            self._busy = self._busy or begins
        if begins:
            self._submit()

    def _submit(self) -> None:
        with suppress(RuntimeError):  # the studio has closed
            self._pool.submit(self._work)

    def _work(self) -> None:
        """Run the waiting job; a job that is put meanwhile goes to the end of the pool's queue."""
        with self._lock:
            job, self._job = self._job, None
        if job is not None:
            job()
        with self._lock:
            self._busy = has_job = self._job is not None
        if has_job:
            self._submit()


class Session:
    """One open page.

    Parameters
    ----------
    studio : Studio
    send : callable
        Takes a message, a dict or bytes, and the number of its scene, from any thread.
    wait : callable
        Called with a function; returns when the page has room for frames, or when the function
        returns True.
    """

    def __init__(self, studio: "Studio", send: Send, wait: Wait):
        self._studio, self._send, self._wait = studio, send, wait
        self._lock = threading.Lock()
        self._version = NO_SCENE
        self._scenes, self._diagrams = Latest(studio.scenes), Latest(studio.diagrams)
        self._runs = {layer: Latest(studio.runs) for layer in PAGE_LAYERS}
        self._curves: tuple[DiagramKey, ...] = ()  # of the diagrams that the page shows
        self.paused = False

    def show(self, version: int, texts: Mapping[str, str]) -> None:
        """Begin another scene, numbered by the page; return at once."""
        with self._lock:
            self._version = version
        self._studio.wake(self)
        self._scenes.put(partial(self._present, version, texts))

    def _present(self, version: int, texts: Mapping[str, str]) -> None:
        """Read a scene, and begin its runs, in a thread of the studio."""
        if self.is_past(version):
            return
        try:
            scene = Scene.of_texts(texts)
            configurations = scene.configurations(self._studio.file)
        except Exception as error:
            self.tell(version, {"type": "refused", "message": message_of(error)})
            return
        message = {name: getattr(scene, name) for name in ("link", "onset", "t_end")}
        frames = {name: c.tables["solve"]["t_eval"].count for name, c in configurations.items()}
        message |= {"type": "accepted", "layers": list(configurations), "frames": frames}
        self.tell(version, message)
        for layer, config in configurations.items():
            coded = layer == "density" and scene.space != "Circle"
            self._runs[layer].put(partial(self._run, version, layer, config, coded))
        self._draw(version, scene)

    def pause(self) -> None:
        """Stop all work of this page in favour of another one."""
        with self._lock:
            version, self._version = self._version, NO_SCENE
            self.paused = True
        text = f"{MOST_SESSIONS} other pages are in use, and this one was used longest ago."
        self._send({"type": "paused", "version": version, "message": text}, NO_SCENE)

    def close(self) -> None:
        """End the session of a page that was closed."""
        with self._lock:
            self._version = NO_SCENE
        self._studio.leave(self)

    def is_past(self, version: int) -> bool:
        """Return True if the page shows another scene than this one."""
        return version != self._version

    def tell(self, version: int, message: Message) -> None:
        """Send a message of a scene, unless the page shows another one."""
        if isinstance(message, dict):
            message = {"version": version, **message}
        with self._lock:
            if version == self._version:
                self._send(message, version)

    def _run(self, version: int, layer: str, config: Configuration, coded: bool) -> None:
        """Solve for a layer in a thread of the studio, and send its frames and how it ended.

        `coded` says whether values are sent as positions of colours: see `packed`.
        """
        if self.is_past(version):
            return
        frames: list[Frame] = []
        sent_at = 0.0

        def flush() -> None:
            message = packed(version, layer, frames, coded)
            self._wait(lambda: self.is_past(version))
            self.tell(version, message)
            frames.clear()

        def show(frame: Frame) -> None:
            nonlocal sent_at
            frames.append(frame)
            if time.monotonic() - sent_at > FLUSH_SECONDS:
                flush()
                sent_at = time.monotonic()

        ending = {"type": "ended", "layer": layer, "complete": False}
        try:
            ending |= play(config, show, lambda: self.is_past(version))
        except Exception as error:
            ending["message"] = message_of(error)
            ending["status"] = "refused" if isinstance(error, REFUSED) else "defect"
        if frames:
            flush()
        self.tell(version, ending)

    # Diagrams ------------------------------------------------------------------------------

    def _draw(self, version: int, scene: Scene) -> None:
        """Send the diagrams of a scene.

        Cached ones are sent at once, others are computed once the scene was shown for
        `SETTLED_SECONDS`.
        """
        beta = 0.0 if scene.drift == "Kuramoto" else scene.beta
        diagrams = {
            ("plane", scene.space, scene.drift): plane_of,
            ("branches", scene.space, scene.drift, beta): branches_of,
        }
        self._curves = tuple(diagrams)
        jobs = {}
        for key, compute in diagrams.items():
            if diagram := self._studio.cached(key):
                self.tell(version, {"type": "diagram", "name": key[0], "data": diagram})
            else:
                jobs[key] = compute
        if not jobs:
            self._diagrams.put(None)
            return
        start = time.monotonic() + SETTLED_SECONDS

        def work() -> None:
            time.sleep(max(start - time.monotonic(), 0))
            for key, compute in jobs.items():
                if not self.is_past(version):
                    self._compute(version, scene, key, compute)

        self._diagrams.put(work)

    def _compute(self, version: int, scene: Scene, key: DiagramKey, compute: Compute) -> None:
        """Compute a diagram; stop when the page is closed or shows other diagrams."""

        def stopped() -> bool:
            return self._version == NO_SCENE or key not in self._curves

        began = time.monotonic()
        header = {"type": "diagram", "name": key[0]}
        try:
            with stopped_when(stopped):
                diagram = self._studio.cached(key) or compute(scene)
        except Exception as error:
            self.tell(version, header | {"message": message_of(error)})
            return
        if not stopped():
            self._studio.cache(key, diagram)
            self.tell(version, header | {"data": diagram, "seconds": time.monotonic() - began})


class Studio:
    """The open pages, and the threads that work for them.

    Parameters
    ----------
    file : UserFile or None
    """

    def __init__(self, file: UserFile | None = None):
        self.file = file
        self.scenes = ThreadPoolExecutor(SCENE_THREADS, "scene")
        self.runs = ThreadPoolExecutor(RUN_THREADS, "run")
        self.diagrams = ThreadPoolExecutor(DIAGRAM_THREADS, "diagram")
        self._sessions: OrderedDict[Session, None] = OrderedDict()  # those used last at the end
        self._cache: OrderedDict[DiagramKey, dict[str, Any]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def sessions(self) -> list[Session]:
        """The pages that are not paused."""
        with self._lock:
            return list(self._sessions)

    def open(self, send: Send, wait: Wait = lambda past: None) -> Session:
        """A session for a page."""
        session = Session(self, send, wait)
        self.wake(session)
        return session

    def wake(self, session: Session) -> None:
        """Mark a page as used; pause the least recently used ones beyond `MOST_SESSIONS`."""
        with self._lock:
            self._sessions[session] = None
            self._sessions.move_to_end(session)
            session.paused = False
            excess = len(self._sessions) - MOST_SESSIONS
            idle = [self._sessions.popitem(last=False)[0] for _ in range(excess)]
        for old in idle:
            old.pause()

    def leave(self, session: Session) -> None:
        """Forget a page."""
        with self._lock:
            self._sessions.pop(session, None)

    def close(self) -> None:
        """Stop the work of all pages."""
        for session in self.sessions:
            session.close()
        for pool in (self.scenes, self.runs, self.diagrams):
            pool.shutdown(wait=False, cancel_futures=True)

    def cached(self, key: DiagramKey) -> dict[str, Any] | None:
        """The diagram of a key in the cache, or None."""
        with self._lock:
            return self._cache.get(key)

    def cache(self, key: DiagramKey, diagram: dict[str, Any]) -> None:
        """Add a diagram to the cache, which keeps the last `CACHED_DIAGRAMS`."""
        with self._lock:
            self._cache[key] = diagram
            while len(self._cache) > CACHED_DIAGRAMS:
                self._cache.popitem(last=False)


def packed(version: int, layer: str, frames: list[Frame], coded: bool) -> bytes:
    """Frames as one message: the length of its header (4 bytes), the header as JSON, the values.

    Values are float32. If `coded`, they are integers of 8 bits, the positions of colours: 0 for the
    least value of the frame, 255 for its largest.
    """
    values = [frame.values for frame in frames]
    header: dict[str, Any] = {
        **{"version": version, "layer": layer, "coded": coded},
        **{name: [getattr(f, name) for f in frames] for name in ("index", "t", "order")},
        "energy": [frame.energy if np.isfinite(frame.energy) else None for frame in frames],
        "sizes": [v.size for v in values],
        "low": [float(v.min()) for v in values],
        "high": [float(v.max()) for v in values],
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4)  # so that numbers begin at a multiple of 4
    if coded:
        ends = zip(values, header["low"], header["high"], strict=True)
        values = [np.round((v - v.min()) * (255 / (high - low or 1.0))).astype(np.uint8)
                  for v, low, high in ends]  # fmt: skip
    return struct.pack("<I", len(text)) + text + b"".join(v.tobytes() for v in values)


class Outbox:
    """A bounded queue of messages to one page.

    Parameters
    ----------
    write : callable
        Sends a message, str or bytes; awaited until the page has taken it.

    Attributes
    ----------
    unsent : int
        Bytes of messages that the page has not taken yet.
    """

    def __init__(self, write: Callable[[str | bytes], Awaitable[None]]):
        self._write = write
        self._waiting: deque[tuple[str | bytes, Past]] = deque()
        self.unsent, self._closed = 0, False
        self._room = threading.Condition()
        self._loop = asyncio.get_running_loop()
        self._mail = asyncio.Event()

    def put(self, message: str | bytes, past: Past) -> None:
        """Add a message, from any thread; it is dropped if `past()` is true before it is sent."""
        with self._room:
            if self._closed:
                return
            self._drop()
            self._waiting.append((message, past))
            self.unsent += len(message)
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._mail.set)

    def wait(self, past: Past) -> None:
        """Wait until the queue has room or `past()` is true; not in the thread of the loop."""
        with self._room:
            while self.unsent > MOST_UNSENT and not self._closed and not past():
                self._room.wait(CHECK_SECONDS)

    async def deliver(self) -> None:
        """Write the messages one after the other, until the outbox is closed."""
        while not self._closed:
            await self._mail.wait()
            self._mail.clear()
            while True:
                with self._room:
                    self._drop()
                    if not self._waiting:
                        break
                    message, _ = self._waiting.popleft()
                await self._write(message)
                with self._room:  # the page has taken it: waiting runs go on
                    self.unsent = max(self.unsent - len(message), 0)
                    self._room.notify_all()

    def close(self) -> None:
        """Drop all messages, and all that are added later."""
        with self._room:
            self._closed = True
            self._waiting.clear()
            self.unsent = 0
            self._room.notify_all()
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._mail.set)

    def _drop(self) -> None:
        """Drop the messages of earlier scenes."""
        current = [(message, past) for message, past in self._waiting if not past()]
        if len(current) < len(self._waiting):
            self.unsent -= sum(len(m) for m, _ in self._waiting) - sum(len(m) for m, _ in current)
            self._waiting = deque(current)
            self._room.notify_all()
