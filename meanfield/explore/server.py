"""The web server of the page: its files, a socket for every open page, and exports.

It needs tornado, which the extra ``[explore]`` brings.
"""

import asyncio
import contextlib
import json
import logging
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

import tornado.httpserver
import tornado.web
import tornado.websocket

from meanfield import MeanfieldError, UnresolvedWarning, describe
from meanfield.extending import REFUSED, parameters_of

from .connections import Doors, Listening, Sparing
from .drawings import FAIR_SECONDS, MOST_DRAWINGS, Drawing, Drawings
from .export import exported, is_figure
from .frames import DRAWN_DEGREES
from .outbox import Outbox
from .scene import LONGEST_TEXT, PAGE_SPACES, Scene, UserFile
from .sessions import NO_SCENE, Session, Studio

PAGE_FOLDER = Path(__file__).parent / "page"
PAGE_FILES = ("index.html", "explorer.js", "charts.js", "views.js", "style.css")
MOST_BYTES = 16384  # largest size of a message from a page, and of the headers of a request
# Scenes that a page may send, on average and in a burst; its sliders send 25 a second
SCENES_PER_SECOND, SCENES_AT_ONCE = 50, 500
IDLE_SECONDS = 30.0  # seconds without data after which a connection is closed
SEND_BUFFER = 2**18  # bytes of the system's send buffer for a page
ENDING_SECONDS = 1.0  # seconds for which threads may go on after Ctrl-C
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

    parameters = parameters_of(Scene)
    first = Scene() if file is None else file.scene
    table = matplotlib.colormaps[DENSITY_MAP](range(256), bytes=True)
    sphere: Any = PAGE_SPACES["Sphere"](DRAWN_DEGREES[3][1])
    return {
        "type": "hello",
        "parameters": {
            name: {
                "words": parameter.words,
                "default": str(describe(parameter.default)),
                "form": parameter.form.json({}),
            }
            for name, parameter in parameters.items()
        },
        "first": first.link,
        "file": None if file is None else file.name,
        "palette": list(PALETTE),
        "colours": table[:, :3].ravel().tolist(),
        "latitudes": sphere.z.tolist(),
        "longitudes": len(sphere.longitudes),
    }


class Page(tornado.web.StaticFileHandler):
    """The files of the page, and no others."""

    def set_default_headers(self) -> None:
        for name, value in PAGE_HEADERS.items():
            self.set_header(name, value)


class Socket(tornado.websocket.WebSocketHandler):
    """The WebSocket of an open page; tornado refuses those of other origins."""

    session: Session | None = None
    outbox: Outbox | None = None

    def initialize(self, studio: Studio, doors: Doors, greeting: str) -> None:
        self.studio, self.doors, self.greeting = studio, doors, greeting
        self.left, self.refilled = float(SCENES_AT_ONCE), time.monotonic()

    def open(self, *_: str, **__: str) -> None:
        stream: Any = self.ws_connection.stream if self.ws_connection else None
        stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        self.doors.became_a_page(stream, self)
        self.outbox = outbox = Outbox(self._write)
        self.delivery = asyncio.create_task(outbox.deliver())

        def send(message: Any, version: int) -> None:
            text = message if isinstance(message, bytes) else _json(message)
            outbox.put(text, lambda: version != NO_SCENE and session.is_past(version))

        outbox.put(self.greeting, lambda: False)
        self.session = session = self.studio.open(send, outbox.wait)

    async def _write(self, message: str | bytes) -> None:
        with contextlib.suppress(tornado.websocket.WebSocketClosedError):
            await self.write_message(message, binary=isinstance(message, bytes))

    def on_message(self, message: str | bytes) -> None:
        if not self._may_send():
            self.close(1008, f"more than {SCENES_PER_SECOND} scenes a second")
            return
        try:
            content = json.loads(message)
            version, texts = content["version"], content["scene"]
            fits = type(version) is int and 0 <= version < 2**53 and isinstance(texts, dict)
            texts_fit = all(isinstance(t, str) and len(t) < LONGEST_TEXT for t in texts.values())
            fits = fits and texts_fit
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            fits = False
        if not fits or self.session is None:
            self.close(1003, "expected a version and a scene")
            return
        self.doors.was_used(self)
        self.session.show(version, texts)

    def _may_send(self) -> bool:
        """Use up one scene of the allowance, which is refilled with time; False if it is empty."""
        now = time.monotonic()
        self.left = min(self.left + SCENES_PER_SECOND * (now - self.refilled), SCENES_AT_ONCE) - 1
        self.refilled = now
        return self.left >= 0

    def on_close(self) -> None:
        self.doors.left(self)
        if self.outbox is not None:
            self.outbox.close()
            self.delivery.cancel()
        if self.session is not None:
            self.session.close()


class Export(tornado.web.RequestHandler):
    """Handler of exported files of a scene; texts are written at once, figures in threads."""

    drawing: Drawing | None = None

    def initialize(self, studio: Studio, doors: Doors, drawings: Drawings) -> None:
        self.studio, self.doors, self.drawings = studio, doors, drawings

    def set_default_headers(self) -> None:
        for name, value in PAGE_HEADERS.items():
            self.set_header(name, value)

    async def get(self, name: str) -> None:
        if self.request.headers.get("Sec-Fetch-Site", "same-origin") == "cross-site":
            self.refuse(403, "Files are exported to this page only.")
            return
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
                    self.refuse(503, f"{MOST_DRAWINGS} figures are being drawn: try again.")
                    return
                self.drawing = drawing
                self.doors.is_waiting(self.request.connection)
                kind, content = await drawing.future
        except REFUSED as error:
            self.refuse(400, str(error))
            return
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


def _json(message: dict[str, Any]) -> str:
    return json.dumps(message, allow_nan=False)


def application(
    studio: Studio, host: str, doors: Doors, drawings: Drawings
) -> tornado.web.Application:
    """The tornado application; bound to the local host, it refuses other host names."""
    files = "|".join(map(re.escape, PAGE_FILES))
    shared = {"path": str(PAGE_FOLDER), "default_filename": "index.html"}
    shared_state = {"studio": studio, "doors": doors}
    handlers: list[Any] = [
        ("/socket", Socket, shared_state | {"greeting": _json(hello(studio.file))}),
        ("/export/([a-z]+[.][a-z]+)", Export, shared_state | {"drawings": drawings}),
        ("/()", Page, shared),
        (f"/({files})", Page, shared),
    ]
    names = "|".join(re.escape(name) for name in (*LOCAL_NAMES, "[::1]"))
    pattern = f"(?:{names})$" if host in LOCAL_NAMES else ".*"
    made = tornado.web.Application(
        websocket_max_message_size=MOST_BYTES,
        websocket_ping_interval=IDLE_SECONDS,  # a page that does not answer pings is closed
        websocket_ping_timeout=IDLE_SECONDS,
    )
    made.add_handlers(pattern, handlers)
    return made


async def serving(
    file: UserFile | None, host: str, port: int, ready: Callable[[str], None] = lambda address: None
) -> None:
    """Serve the page until the task is cancelled; `ready` is called with its address.

    Raises
    ------
    MeanfieldError
        If the address cannot be bound.
    """
    try:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(where[:2], family=family)
    except OSError as error:
        raise MeanfieldError(
            f"{host}, port {port}, cannot be served: {error.strerror}. Take another one: --port 0 "
            "finds a port."
        ) from error
    listening.setblocking(False)
    studio, doors, drawings = Studio(file), Doors(), Drawings()
    server = tornado.httpserver.HTTPServer(
        application(studio, host, doors, drawings),
        max_body_size=MOST_BYTES,
        max_header_size=MOST_BYTES,
        idle_connection_timeout=IDLE_SECONDS,
        body_timeout=IDLE_SECONDS,
    )
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}/"
    taking = Listening(listening, server, doors)
    try:
        ready(address)
        await asyncio.Event().wait()
    finally:
        taking.close()
        studio.close()
        drawings.end()
        doors.close()
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

    warnings.simplefilter("ignore", UnresolvedWarning)  # the page says how each run ended
    for name in ("tornado.access", "tornado.application", "tornado.general", "asyncio"):
        logging.getLogger(name).addFilter(Sparing())
    logging.getLogger("tornado.access").setLevel(logging.CRITICAL)  # no refused requests
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serving_until_the_end(file, host, port, ready))
    ended = time.monotonic() + ENDING_SECONDS
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(max(ended - time.monotonic(), 0))
            if thread.is_alive():
                _end()


def _end() -> None:
    """Flush the output, and end the process without waiting for threads."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
