"""The server of the page: a few files, a socket for every open page, and what is exported.

It needs tornado, which the extra ``[explore]`` brings.
"""

import asyncio
import contextlib
import json
import re
import socket
import warnings
import webbrowser
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import tornado.httpserver
import tornado.ioloop
import tornado.web
import tornado.websocket

from ..core.errors import MeanfieldError, UnresolvedWarning
from ..core.forms import REFUSED
from ..core.kinds import describe, parameters_of
from .export import exported
from .frames import DRAWN
from .scene import SPACES, Own, Scene
from .sessions import NONE, Session, Studio

PAGE = Path(__file__).parent / "page"
FILES = ("index.html", "explorer.js", "charts.js", "views.js", "style.css")
MOST_SOCKETS = 64
MOST_BYTES = 16384  # of a message from a page
LONGEST = 200  # characters of a parameter
MOST_WAITING = 4  # exports at the same time
LOCAL = ("127.0.0.1", "localhost", "::1")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def hello(own: Own | None) -> dict[str, Any]:
    """What a page is told first: the parameters of a scene, their ranges, and colours."""
    import matplotlib

    from ..plotting.theme import DENSITY_MAP, PALETTE

    known = parameters_of(Scene)
    first = Scene() if own is None else own.scene
    table = matplotlib.colormaps[DENSITY_MAP](range(256), bytes=True)
    sphere: Any = SPACES["Sphere"](DRAWN[3][1])
    return {
        "type": "hello",
        "parameters": {
            name: {
                "words": parameter.words,
                "default": str(describe(parameter.default)),
                "form": parameter.form.json({}),
            }
            for name, parameter in known.items()
        },
        "first": first.link,
        "own": None if own is None else own.name,
        "palette": list(PALETTE),
        "colours": table[:, :3].ravel().tolist(),
        "latitudes": sphere.z.tolist(),
        "longitudes": len(sphere.longitudes),
    }


class Page(tornado.web.StaticFileHandler):
    """The files of the page, and no others."""

    def set_default_headers(self) -> None:
        for name, value in HEADERS.items():
            self.set_header(name, value)


class Socket(tornado.websocket.WebSocketHandler):
    """The connection of an open page; those of pages from elsewhere are refused by tornado."""

    session: Session | None = None

    def initialize(self, studio: Studio, sockets: "set[Socket]") -> None:
        self.studio, self.sockets = studio, sockets

    def open(self, *_: str, **__: str) -> None:
        if len(self.sockets) >= MOST_SOCKETS:
            self.close(1013, f"{MOST_SOCKETS} pages are open already")
            return
        self.sockets.add(self)
        loop = tornado.ioloop.IOLoop.current()

        def send(message: Any, version: int) -> None:
            loop.add_callback(self._write, message, version)

        self._write(hello(self.studio.own), NONE)
        self.session = self.studio.open(send)

    def _write(self, message: Any, version: int) -> None:
        """Write what is not of an earlier scene by now."""
        past = self.session is not None and version != NONE and self.session.is_past(version)
        if past or self.ws_connection is None:
            return
        binary = isinstance(message, bytes)
        with contextlib.suppress(tornado.websocket.WebSocketClosedError):
            self.write_message(message if binary else _json(message), binary=binary)

    def on_message(self, message: str | bytes) -> None:
        try:
            told = json.loads(message)
            version, texts = told["version"], told["scene"]
            fits = type(version) is int and version >= 0 and isinstance(texts, dict)
            fits = fits and all(isinstance(t, str) and len(t) < LONGEST for t in texts.values())
        except (ValueError, KeyError, TypeError, RecursionError):
            fits = False
        if not fits or self.session is None:
            self.close(1003, "expected a version and a scene")
            return
        self.session.show(version, texts)

    def on_close(self) -> None:
        self.sockets.discard(self)
        if self.session is not None:
            self.session.close()


class Export(tornado.web.RequestHandler):
    """Files of a scene, which the link gives."""

    def initialize(self, studio: Studio, pool: ThreadPoolExecutor, waiting: list[str]) -> None:
        self.studio, self.pool, self.waiting = studio, pool, waiting

    def set_default_headers(self) -> None:
        for name, value in HEADERS.items():
            self.set_header(name, value)

    async def get(self, name: str) -> None:
        if self.request.headers.get("Sec-Fetch-Site", "same-origin") == "cross-site":
            self.refuse(403, "Files are exported to this page only.")
            return
        if len(self.waiting) >= MOST_WAITING:
            self.refuse(503, f"{MOST_WAITING} files are being written: try again.")
            return
        texts = {key: self.get_query_argument(key) for key in self.request.query_arguments}
        self.waiting.append(name)
        try:
            kind, content = await asyncio.get_running_loop().run_in_executor(
                self.pool, self.written, name, texts
            )
        except REFUSED as error:
            self.refuse(400, str(error))
            return
        finally:
            self.waiting.remove(name)
        self.set_header("Content-Type", kind)
        self.set_header("Content-Disposition", f'attachment; filename="{name}"')
        self.finish(content)

    def written(self, name: str, texts: dict[str, str]) -> tuple[str, bytes]:
        """The type and the content, in a thread."""
        return exported(Scene.of_texts(texts), name, self.studio.own)

    def refuse(self, code: int, text: str) -> None:
        """Answer with a message."""
        self.set_status(code)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(text)


def _json(message: dict[str, Any]) -> str:
    return json.dumps(message, allow_nan=False)


def application(studio: Studio, host: str) -> tornado.web.Application:
    """The application; bound to this machine, it answers to its own names only."""
    sockets: set[Socket] = set()
    files = "|".join(map(re.escape, FILES))
    shared = {"path": str(PAGE), "default_filename": "index.html"}
    exports = {"studio": studio, "pool": ThreadPoolExecutor(1, "export"), "waiting": []}
    handlers: list[Any] = [
        ("/socket", Socket, {"studio": studio, "sockets": sockets}),
        ("/export/([a-z]+[.][a-z]+)", Export, exports),
        ("/()", Page, shared),
        (f"/({files})", Page, shared),
    ]
    names = "|".join(re.escape(name) for name in (*LOCAL, "[::1]"))
    pattern = f"(?:{names})$" if host in LOCAL else ".*"
    made = tornado.web.Application(websocket_max_message_size=MOST_BYTES)
    made.add_handlers(pattern, handlers)
    return made


async def serving(
    own: Own | None, host: str, port: int, ready: Callable[[str], None] = lambda address: None
) -> None:
    """Serve the page until the task is cancelled; `ready` is told its address.

    Raises
    ------
    MeanfieldError
        If the address cannot be bound.
    """
    studio = Studio(own)
    try:
        family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(where[:2], family=family)
    except OSError as error:
        raise MeanfieldError(
            f"{host}, port {port}, cannot be served: {error.strerror}. Take another one: --port 0 "
            "finds a port."
        ) from error
    listening.setblocking(False)
    server = tornado.httpserver.HTTPServer(application(studio, host), max_body_size=MOST_BYTES)
    server.add_socket(listening)
    shown = f"[{host}]" if ":" in host else host
    try:
        ready(f"http://{shown}:{listening.getsockname()[1]}/")
        await asyncio.Event().wait()
    finally:
        server.stop()
        studio.close()
        await server.close_all_connections()


def serve(
    own: Own | None, host: str, port: int, *, browser: bool, say: Callable[[str], None]
) -> None:
    """Serve the page until Ctrl-C."""

    def ready(address: str) -> None:
        say(f"meanfield explorer: {address} (Ctrl-C ends it)")
        if browser:
            webbrowser.open(address)

    warnings.simplefilter("ignore", UnresolvedWarning)  # the page says how each run ended
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serving(own, host, port, ready))
