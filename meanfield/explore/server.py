"""The web server of the page: its files, a socket for every open page, and exports.

Connections are bounded in number by kind. It needs tornado, which the extra ``[explore]`` brings.
"""

import asyncio
import contextlib
import errno
import json
import logging
import math
import os
import re
import socket
import sys
import threading
import time
import warnings
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tornado.web
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.iostream import IOStream
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from meanfield import MeanfieldError, UnresolvedWarning, describe
from meanfield.extending import (
    REFUSED,
    give_back_memory,
    parameters_of,
    process_limit,
    share_heaps,
)

from .export import FAIR_SECONDS, MOST_DRAWINGS, Drawing, Drawings, exported, is_figure
from .frames import DRAWN_DEGREES
from .scene import LONGEST_TEXT, PAGE_SPACES, Scene, UserFile
from .sessions import NO_SCENE, Outbox, Session, Studio

PAGE_FOLDER = Path(__file__).parent / "page"
PAGE_FILES = ("index.html", "explorer.js", "charts.js", "views.js", "style.css")
MOST_BYTES = 16384  # largest size of a message from a page, and of the headers of a request
# Scenes that a page may send, on average and in a burst; its sliders send 25 a second
SCENES_PER_SECOND, SCENES_AT_ONCE = 50, 500
IDLE_SECONDS = 30.0  # seconds without data after which a connection is closed
SEND_BUFFER = 2**18  # bytes of the system's send buffer for a page
ENDING_SECONDS = 1.0  # seconds for which threads may go on after Ctrl-C
MOST_SOCKETS = 64  # open pages, and at most half of the free file descriptors
MOST_OPEN = 64  # other connections, and at most a quarter of the free file descriptors
UNREAD_BYTES = 65536  # largest number of unread bytes of a connection
RETRY_SECONDS = 1.0  # seconds without new connections after file descriptors ran out
MOST_RECORDS = 20  # log records a minute
HEAPS = 2  # heaps of memory of all threads; each keeps the most that it ever held
LEAVING_SECONDS = 1.0  # seconds after which the memory of a page that left is given back
CLOSED_FOR_OTHERS = 4001  # a code of ours: the page waits until it is asked to connect again
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
log = logging.getLogger("tornado.general")
LOCAL_NAMES = ("127.0.0.1", "localhost", "::1")
PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def hello(file: UserFile | None) -> dict[str, Any]:
    """The first message to a page: the parameters of a scene, their ranges, and colours."""
    import matplotlib

    from meanfield.plotting.theme import DENSITY_MAP, PALETTE

    first = Scene() if file is None else file.scene
    table = matplotlib.colormaps[DENSITY_MAP](range(256), bytes=True)
    sphere: Any = PAGE_SPACES["Sphere"](DRAWN_DEGREES[3][1])
    return {
        "type": "hello",
        "parameters": {
            name: {"words": p.words, "default": str(describe(p.default)), "form": p.form.json({})}
            for name, p in parameters_of(Scene).items()
        },
        "first": first.link,
        "file": None if file is None else file.name,
        "palette": list(PALETTE),
        "colours": table[:, :3].ravel().tolist(),
        "latitudes": sphere.z.tolist(),
        "longitudes": len(sphere.longitudes),
    }


class Answer(tornado.web.RequestHandler):
    """Handler whose answers have the headers of the page."""

    def set_default_headers(self) -> None:
        for name, value in PAGE_HEADERS.items():
            self.set_header(name, value)


class Page(Answer, tornado.web.StaticFileHandler):
    """The files of the page, and no others."""


class Socket(WebSocketHandler):
    """The WebSocket of an open page; tornado refuses those of other origins."""

    session: Session | None = None
    outbox: Outbox | None = None

    def initialize(self, studio: Studio, connections: "Connections", greeting: str) -> None:
        self.studio, self.connections, self.greeting = studio, connections, greeting
        self.left, self.refilled = float(SCENES_AT_ONCE), time.monotonic()

    def open(self, *_: str, **__: str) -> None:
        """Begin a session, which sends its messages through an outbox in their order."""
        stream: Any = self.ws_connection.stream if self.ws_connection else None
        stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        self.connections.became_a_page(stream, self)
        self.outbox = outbox = Outbox(self._write)
        self.delivery = asyncio.create_task(outbox.deliver())

        def send(message: Any, version: int) -> None:
            text = message if isinstance(message, bytes) else json.dumps(message, allow_nan=False)
            outbox.put(text, lambda: version != NO_SCENE and session.is_past(version))

        outbox.put(self.greeting, lambda: False)
        self.session = session = self.studio.open(send, outbox.wait)

    async def _write(self, message: str | bytes) -> None:
        with contextlib.suppress(WebSocketClosedError):
            await self.write_message(message, binary=isinstance(message, bytes))

    def on_message(self, message: str | bytes) -> None:
        """Show the scene of a message; close the connection if malformed or sent too often."""
        now = time.monotonic()  # each scene uses up one of an allowance, refilled with time
        self.left = min(self.left + SCENES_PER_SECOND * (now - self.refilled), SCENES_AT_ONCE) - 1
        self.refilled = now
        if self.left < 0:
            return self.close(1008, f"more than {SCENES_PER_SECOND} scenes a second")
        try:
            content = json.loads(message)
            version, texts = content["version"], content["scene"]
            fits = type(version) is int and 0 <= version < 2**53 and isinstance(texts, dict)
            fits &= all(isinstance(t, str) and len(t) < LONGEST_TEXT for t in texts.values())
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            fits = False
        if not fits or self.session is None:
            return self.close(1003, "expected a version and a scene")
        self.connections.was_used(self)
        self.session.show(version, texts)

    def on_close(self) -> None:
        self.connections.left(self)
        if self.outbox is not None:
            self.outbox.close()
            self.delivery.cancel()
        if self.session is not None:
            self.session.close()


class Export(Answer):
    """Handler of exported files of a scene; texts are written at once, figures in threads."""

    drawing: Drawing | None = None

    def initialize(self, studio: Studio, connections: "Connections", drawings: Drawings) -> None:
        self.studio, self.connections, self.drawings = studio, connections, drawings

    async def get(self, name: str) -> None:
        """Answer with one export of the scene in the query; figures wait for their turn."""
        if self.request.headers.get("Sec-Fetch-Site", "same-origin") == "cross-site":
            return self.refuse(403, "Files are exported to this page only.")
        texts = {key: self.get_query_argument(key) for key in self.request.query_arguments}
        try:
            scene = Scene.of_texts(texts)
            if not is_figure(name):
                kind, content = exported(scene, name, self.studio.file)
            else:
                file = self.studio.file
                drawing = await self.drawings.begin(lambda stop: exported(scene, name, file, stop))
                if drawing is None:
                    self.set_header("Retry-After", str(int(FAIR_SECONDS)))
                    return self.refuse(503, f"{MOST_DRAWINGS} figures are being drawn: try again.")
                self.drawing = drawing
                self.connections.is_waiting(self.request.connection)
                kind, content = await drawing.future
        except REFUSED as error:
            return self.refuse(400, str(error))
        self.set_header("Content-Type", kind)
        self.set_header("Content-Disposition", f'attachment; filename="{name}"')
        self.finish(content)

    def on_connection_close(self) -> None:
        if self.drawing is not None:
            self.drawing.given_up = True

    def refuse(self, code: int, text: str) -> None:
        """Answer with a message."""
        self.set_status(code)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(text)


def application(
    studio: Studio, host: str, connections: "Connections", drawings: Drawings
) -> tornado.web.Application:
    """The tornado application; bound to the local host, it refuses other host names."""
    files = "|".join(map(re.escape, ("", *PAGE_FILES)))
    common = {"studio": studio, "connections": connections}
    folder = {"path": str(PAGE_FOLDER), "default_filename": "index.html"}
    handlers: list[Any] = [
        ("/socket", Socket, common | {"greeting": json.dumps(hello(studio.file), allow_nan=False)}),
        ("/export/([a-z]+[.][a-z]+)", Export, common | {"drawings": drawings}),
        (f"/({files})", Page, folder),
    ]
    names = "|".join(re.escape(name) for name in (*LOCAL_NAMES, "[::1]"))
    # a page that does not answer pings is closed
    pings: dict[str, Any] = {"websocket_ping_interval": IDLE_SECONDS}
    pings["websocket_ping_timeout"] = IDLE_SECONDS
    app = tornado.web.Application(websocket_max_message_size=MOST_BYTES, **pings)
    app.add_handlers(f"(?:{names})$" if host in LOCAL_NAMES else ".*", handlers)
    return app


async def serving(
    file: UserFile | None,
    host: str,
    port: int,
    announce: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve the page until the task is cancelled; `announce` is called with its address.

    Raises
    ------
    MeanfieldError
        If the address cannot be bound.
    """
    try:
        family, _, _, _, location = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(location[:2], family=family)
    except OSError as error:
        raise MeanfieldError(
            f"{host}, port {port}, cannot be served: {error.strerror}. Take another one: --port 0 "
            "finds a port."
        ) from error
    listening.setblocking(False)
    studio, connections, drawings = Studio(file), Connections(), Drawings()
    server = HTTPServer(application(studio, host, connections, drawings), max_body_size=MOST_BYTES,
                        max_header_size=MOST_BYTES, idle_connection_timeout=IDLE_SECONDS,
                        body_timeout=IDLE_SECONDS)  # fmt: skip
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}/"
    listener = Listening(listening, server, connections)
    try:
        announce(address)
        await asyncio.Event().wait()
    finally:
        listener.close()
        studio.close()
        drawings.end()
        connections.close()
        await asyncio.sleep(0.1)  # for the closing messages to pages


async def _serving_until_the_end(file: UserFile | None, host: str, port: int, ready: Any) -> None:
    """Serve; a timer ends the process if busy threads delay the shutdown."""
    task = asyncio.create_task(serving(file, host, port, ready))
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        timer = threading.Timer(2 * ENDING_SECONDS, _end)
        timer.daemon = True
        timer.start()
        task.cancel()
        await asyncio.wait([task])
        raise
    task.result()


def serve(
    file: UserFile | None, host: str, port: int, *, browser: bool, say: Callable[[str], None]
) -> None:
    """Serve the page until Ctrl-C, after which the process ends within seconds.

    Compilation and the steps of curves cannot be stopped from outside. Their threads have no
    results to save; threads that have not ended after `ENDING_SECONDS` end with the process.
    `say` prints the address, and `browser` opens it.
    """

    def ready(address: str) -> None:
        say(f"meanfield explorer: {address} (Ctrl-C ends it)")
        if browser:
            webbrowser.open(address)

    share_heaps(HEAPS)
    warnings.simplefilter("ignore", UnresolvedWarning)  # the page says how each run ended
    for name in ("tornado.access", "tornado.application", "tornado.general", "asyncio"):
        logging.getLogger(name).addFilter(FewRecords())
    logging.getLogger("tornado.access").setLevel(logging.CRITICAL)  # no refused requests
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serving_until_the_end(file, host, port, ready))
    deadline = time.monotonic() + ENDING_SECONDS
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(max(deadline - time.monotonic(), 0))
            if thread.is_alive():
                _end()


def _end() -> None:
    """Flush the output, and end the process without waiting for threads."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


# Connections -------------------------------------------------------------------------------------


def free_descriptors() -> int:
    """The number of file descriptors that this process can still open."""
    limit = process_limit("NOFILE")
    first = os.open(os.devnull, os.O_RDONLY)  # the least number that is free
    os.close(first)
    return 2**15 if math.isinf(limit) else max(int(limit) - first, 4)


class Connections:
    """The open connections, bounded in number by the file descriptors.

    A new connection is always accepted. At the bound it replaces the oldest connection of its kind,
    or the least recently used page.
    """

    def __init__(self) -> None:
        available = free_descriptors()
        self._most_pages = min(MOST_SOCKETS, available // 2)
        self._most_others = min(MOST_OPEN, available // 4)
        self.pages: dict[WebSocketHandler, None] = {}  # the most recently used at the end
        self.others: dict[IOStream, None] = {}  # in the order in which they were opened
        self._gives_back = False

    def admit(self, stream: IOStream) -> None:
        """Register a new connection; beyond the bound, close the oldest others."""
        self.others = {connection: None for connection in self.others if not connection.closed()}
        self.others[stream] = None
        if len(self.others) > self._most_others:
            self.close_first(len(self.others) - self._most_others)

    def close_first(self, count: int) -> None:
        """Close the `count` connections, other than pages, that were opened first."""
        for stream in list(self.others)[:count]:
            del self.others[stream]
            stream.close()

    def is_waiting(self, connection: Any) -> None:
        """Exempt a connection that waits for a figure from closing; figures are few."""
        self.others.pop(connection.stream, None)

    def became_a_page(self, stream: IOStream, page: WebSocketHandler) -> None:
        """Register a page in place of its connection; close the least recently used pages."""
        self.others.pop(stream, None)
        limit = self._most_pages
        while len(self.pages) >= limit:
            first = next(iter(self.pages))
            del self.pages[first]
            first.close(CLOSED_FOR_OTHERS, f"{limit} pages were opened or used after this one.")
        self.pages[page] = None

    def was_used(self, page: WebSocketHandler) -> None:
        """Mark a page as the most recently used one."""
        self.pages.pop(page, None)
        self.pages[page] = None

    def left(self, page: WebSocketHandler) -> None:
        """Forget a page that is closed; soon its memory is given back."""
        self.pages.pop(page, None)
        if not self._gives_back:
            self._gives_back = True
            IOLoop.current().call_later(LEAVING_SECONDS, self._give_back)

    def _give_back(self) -> None:
        self._gives_back = False
        give_back_memory()

    def close(self) -> None:
        """Close all connections."""
        for page in list(self.pages):
            page.close(1001, "the server has ended")
        for stream in list(self.others):
            stream.close()


class Listening:
    """The listening socket, which accepts connections.

    If file descriptors run out, tornado's own loop tries again at once and logs each failure. Here
    half of the other connections are closed, and the next try is after `RETRY_SECONDS`.
    """

    def __init__(self, listening: socket.socket, server: HTTPServer, connections: Connections):
        self._socket, self._server, self._connections = listening, server, connections
        self._loop = IOLoop.current()
        self._timer: object = None
        self._begin()

    def _begin(self) -> None:
        self._loop.add_handler(self._socket, lambda *_: self._accept(), IOLoop.READ)

    def _accept(self) -> None:
        """Admit a connection; without free descriptors close idle ones, and listen again later."""
        try:
            connection, address = self._socket.accept()
        except OSError as error:
            if error.errno in NO_DESCRIPTORS:
                self._loop.remove_handler(self._socket)
                self._connections.close_first((len(self._connections.others) + 1) // 2)
                self._timer = self._loop.call_later(RETRY_SECONDS, self._begin)
                log.warning("no connection can be taken: %s", error.strerror)
            return  # other errors: the client closed the connection before it was accepted
        stream = IOStream(connection, max_buffer_size=UNREAD_BYTES)
        self._connections.admit(stream)
        self._server.handle_stream(stream, address)

    def close(self) -> None:
        """Accept no more connections."""
        self._loop.remove_handler(self._socket)
        if self._timer is not None:
            self._loop.remove_timeout(self._timer)
        self._socket.close()


class FewRecords(logging.Filter):
    """A log filter that lets at most `MOST_RECORDS` records a minute pass."""

    def __init__(self) -> None:
        super().__init__()
        self._began, self._count = -60.0, 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True if a record is to be written."""
        if record.created - self._began > 60:
            self._began, self._count = record.created, 0
        self._count += 1
        return self._count <= MOST_RECORDS
