"""Open pages and their work: each has one scene, and nothing of an earlier one is ever sent.

A page numbers its scenes. What is computed for one is sent with its number, and is dropped when the
page has gone on. There are few pages and few threads, whatever comes in: of what a page asks for
while the threads are busy, only the last is kept.
"""

import json
import struct
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from ..app.tasks import Configuration
from ..core.errors import MeanfieldError
from ..core.forms import REFUSED
from ..solving.progress import stopped_when
from .diagrams import branches_of, plane_of
from .frames import Frame, play
from .scene import Own, Scene

MOST_SESSIONS = 8
RUNS, DIAGRAMS = 2 * MOST_SESSIONS, 1  # threads: no page waits for the runs of another
SCENES = 2  # threads that read scenes
FLUSH = 0.05  # seconds between messages with frames
SETTLED = 0.3  # seconds for which a scene stays before its diagrams are computed
KEPT = 64  # diagrams
NONE = -1  # the number of no scene
LAYERS = ("density", "tokens")

Message = dict[str, Any] | bytes


class Latest:
    """A place for one job in a pool of threads: a job that has not begun gives way to the next."""

    def __init__(self, pool: ThreadPoolExecutor):
        self._pool = pool
        self._lock = threading.Lock()
        self._job: Callable[[], None] | None = None
        self._busy = False

    def put(self, job: Callable[[], None] | None) -> None:
        """Do this job after the one that is being done, in place of any other; None: no other."""
        with self._lock:
            self._job = job
            begins, self._busy = job is not None and not self._busy, self._busy or job is not None
        if begins:
            self._submit()

    def _submit(self) -> None:
        with suppress(RuntimeError):  # the studio has closed
            self._pool.submit(self._work)

    def _work(self) -> None:
        """Do one job; another one goes to the end of the queue of the pool, behind other places."""
        with self._lock:
            job, self._job = self._job, None
        if job is not None:
            job()
        with self._lock:
            self._busy = again = self._job is not None
        if again:
            self._submit()


class Session:
    """One open page.

    Parameters
    ----------
    studio : Studio
    send : callable
        Takes a message, a dict or bytes, and the number of its scene, from any thread.
    wait : callable
        Returns when the page has room for frames, or when what it is given says that they are not
        wanted any more.
    """

    def __init__(
        self,
        studio: "Studio",
        send: Callable[[Message, int], None],
        wait: Callable[[Callable[[], bool]], None],
    ):
        self._studio, self._send, self._wait = studio, send, wait
        self._lock = threading.Lock()
        self._version = NONE
        self._scenes, self._diagrams = Latest(studio.scenes), Latest(studio.diagrams)
        self._runs = {layer: Latest(studio.runs) for layer in LAYERS}
        self._curves: tuple = ()  # whose diagrams the page shows
        self.paused = False

    def show(self, version: int, texts: Mapping[str, str]) -> None:
        """Go on to another scene, which the page has given this number; returns at once."""
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
            configurations = scene.configurations(self._studio.own)
        except REFUSED as error:
            self.tell(version, {"type": "refused", "message": str(error)})
            return
        except Exception as error:  # a defect, which must not be silent in a thread
            self.tell(version, {"type": "refused", "message": f"{type(error).__name__}: {error}"})
            return
        told = {
            "type": "accepted",
            "link": scene.link,
            "onset": scene.onset,
            "t_end": scene.t_end,
            "layers": list(configurations),
            "frames": {n: c.tables["solve"]["t_eval"].count for n, c in configurations.items()},
        }
        self.tell(version, told)
        for layer, config in configurations.items():
            coded = layer == "density" and scene.space == "Sphere"
            self._runs[layer].put(partial(self._run, version, layer, config, coded))
        self._draw(version, scene)

    def pause(self) -> None:
        """Stop all work, as another page needs the place."""
        with self._lock:
            version, self._version = self._version, NONE
            self.paused = True
        text = f"{MOST_SESSIONS} other pages are in use, and this one was used longest ago."
        self._send({"type": "paused", "version": version, "message": text}, NONE)

    def close(self) -> None:
        """The page is gone."""
        with self._lock:
            self._version = NONE
        self._studio.leave(self)

    def is_past(self, version: int) -> bool:
        """Whether the page shows another scene than this one."""
        return version != self._version

    def tell(self, version: int, message: dict[str, Any]) -> None:
        """Send what belongs to a scene, unless the page has gone on."""
        with self._lock:
            if version == self._version:
                self._send({"version": version, **message}, version)

    def _run(self, version: int, layer: str, config: Configuration, coded: bool) -> None:
        """Play a run, in a thread of the studio."""
        if self.is_past(version):
            return
        waiting: list[Frame] = []
        sent = 0.0

        def flush() -> None:
            message = packed(version, layer, waiting, coded)
            self._wait(lambda: self.is_past(version))
            with self._lock:
                if version == self._version:
                    self._send(message, version)
            waiting.clear()

        def show(frame: Frame) -> None:
            nonlocal sent
            waiting.append(frame)
            if time.monotonic() - sent > FLUSH:
                flush()
                sent = time.monotonic()

        ending = {"type": "ended", "layer": layer, "complete": False, "status": "refused"}
        try:
            found = play(config, show, lambda: self.is_past(version))
            ending |= vars(found)
        except REFUSED as error:
            ending["message"] = str(error)
        except Exception as error:  # a defect, which must not be silent in a thread
            ending |= {"status": "defect", "message": f"{type(error).__name__}: {error}"}
        if waiting:
            flush()
        self.tell(version, ending)

    # Diagrams ------------------------------------------------------------------------------

    def _draw(self, version: int, scene: Scene) -> None:
        """Send the diagrams of a scene: those that are known at once, others when it stays."""
        beta = 0.0 if scene.drift == "Kuramoto" else scene.beta
        wanted = {
            ("plane", scene.space, scene.drift): plane_of,
            ("branches", scene.space, scene.drift, beta): branches_of,
        }
        self._curves = tuple(wanted)
        missing = {}
        for key, compute in wanted.items():
            found = self._studio.kept(key)
            if found is None:
                missing[key] = compute
            else:
                self.tell(version, {"type": "diagram", "name": key[0], "data": found})
        if not missing:
            self._diagrams.put(None)
            return

        settled = time.monotonic() + SETTLED

        def work() -> None:
            time.sleep(max(settled - time.monotonic(), 0))
            for key, compute in missing.items():
                if not self.is_past(version):
                    self._compute(version, scene, key, compute)

        self._diagrams.put(work)

    def _compute(self, version: int, scene: Scene, key: tuple, compute: Callable) -> None:
        """Compute a diagram, unless the page is closed or goes on to others meanwhile."""

        def stopped() -> bool:
            return self._version == NONE or key not in self._curves

        began = time.monotonic()
        told = {"type": "diagram", "name": key[0]}
        try:
            with stopped_when(stopped):
                found = self._studio.kept(key) or compute(scene)
        except (*REFUSED, MeanfieldError) as error:
            self.tell(version, told | {"message": str(error)})
            return
        except Exception as error:  # a defect, which must not be silent in a thread
            self.tell(version, told | {"message": f"{type(error).__name__}: {error}"})
            return
        if not stopped():
            self._studio.keep(key, found)
            self.tell(version, told | {"data": found, "seconds": time.monotonic() - began})


class Studio:
    """The open pages, and the threads that work for them.

    Parameters
    ----------
    own : Own or None
        The file of the user's.
    """

    def __init__(self, own: Own | None = None):
        self.own = own
        self.scenes = ThreadPoolExecutor(SCENES, "scene")
        self.runs = ThreadPoolExecutor(RUNS, "run")
        self.diagrams = ThreadPoolExecutor(DIAGRAMS, "diagram")
        self._sessions: OrderedDict[Session, None] = OrderedDict()  # those used last at the end
        self._kept: OrderedDict[tuple, dict[str, Any]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def sessions(self) -> list[Session]:
        """The pages that are not paused."""
        with self._lock:
            return list(self._sessions)

    def open(
        self,
        send: Callable[[Message, int], None],
        wait: Callable[[Callable[[], bool]], None] = lambda past: None,
    ) -> Session:
        """A session for a page."""
        session = Session(self, send, wait)
        self.wake(session)
        return session

    def wake(self, session: Session) -> None:
        """Note that a page is in use; beyond `MOST_SESSIONS` that used longest ago is paused."""
        with self._lock:
            self._sessions[session] = None
            self._sessions.move_to_end(session)
            session.paused = False
            over = len(self._sessions) - MOST_SESSIONS
            others = [self._sessions.popitem(last=False)[0] for _ in range(over)]
        for other in others:
            other.pause()

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

    def kept(self, key: tuple) -> dict[str, Any] | None:
        """A diagram that was computed before."""
        with self._lock:
            return self._kept.get(key)

    def keep(self, key: tuple, found: dict[str, Any]) -> None:
        """Keep a diagram; beyond `KEPT` the oldest is forgotten."""
        with self._lock:
            self._kept[key] = found
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)


def packed(version: int, layer: str, frames: list[Frame], coded: bool) -> bytes:
    """Frames as one message: the length of its header, the header as JSON, and values.

    Values are numbers of 32 bits; those that are `coded` are whole numbers from 0 to 255 between
    the least and the largest one of their frame, as many as there are colours.
    """
    header: dict[str, Any] = {
        "version": version,
        "layer": layer,
        "index": [frame.index for frame in frames],
        "t": [frame.t for frame in frames],
        "order": [frame.order for frame in frames],
        "energy": [frame.energy if np.isfinite(frame.energy) else None for frame in frames],
        "sizes": [frame.values.size for frame in frames],
        "low": [float(frame.values.min()) for frame in frames],
        "high": [float(frame.values.max()) for frame in frames],
        "coded": coded,
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4)  # so that numbers begin at a multiple of 4
    values = [_coded(frame.values) if coded else frame.values for frame in frames]
    return struct.pack("<I", len(text)) + text + b"".join(v.tobytes() for v in values)


def _coded(values: np.ndarray) -> np.ndarray:
    low, high = float(values.min()), float(values.max())
    return np.round((values - low) * (255 / (high - low or 1.0))).astype(np.uint8)
