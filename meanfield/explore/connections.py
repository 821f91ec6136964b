"""Connections to the server, bounded in number by kind, and a filter that keeps the log short."""

import errno
import logging
import os
import socket
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.iostream import IOStream
from tornado.websocket import WebSocketHandler

MOST_SOCKETS = 64  # open pages, and at most half of the free file descriptors
MOST_OPEN = 64  # other connections, and at most a quarter of the free file descriptors
UNREAD_BYTES = 65536  # largest number of unread bytes of a connection
RETRY_SECONDS = 1.0  # seconds without new connections after file descriptors ran out
MOST_RECORDS = 20  # log records a minute
CLOSED_FOR_OTHERS = 4001  # a code of ours: the page waits until it is asked to connect again
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
log = logging.getLogger("tornado.general")


def free_descriptors() -> int:
    """The number of file descriptors that this process can still open."""
    try:
        import resource
    except ImportError:  # on Windows, which has no such limit
        return 2**15
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    first = os.open(os.devnull, os.O_RDONLY)  # the least number that is free
    os.close(first)
    return 2**15 if most == resource.RLIM_INFINITY else max(most - first, 4)


class Doors:
    """The open connections, bounded in number by the file descriptors.

    A new connection is always accepted. At the bound it replaces the oldest connection of its kind,
    or the least recently used page.
    """

    def __init__(self) -> None:
        free = free_descriptors()
        self._most_pages = min(MOST_SOCKETS, free // 2)
        self._most_others = min(MOST_OPEN, free // 4)
        self.pages: dict[WebSocketHandler, None] = {}  # the most recently used at the end
        self.others: dict[IOStream, None] = {}  # in the order in which they were opened

    def admit(self, stream: IOStream) -> None:
        """Register a new connection; beyond the bound, close the oldest others."""
        self.others = {other: None for other in self.others if not other.closed()}
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
        most = self._most_pages
        while len(self.pages) >= most:
            first = next(iter(self.pages))
            del self.pages[first]
            first.close(CLOSED_FOR_OTHERS, f"{most} pages were opened or used after this one.")
        self.pages[page] = None

    def was_used(self, page: WebSocketHandler) -> None:
        """Mark a page as the most recently used one."""
        self.pages.pop(page, None)
        self.pages[page] = None

    def left(self, page: WebSocketHandler) -> None:
        """Forget a page that is closed."""
        self.pages.pop(page, None)

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

    def __init__(self, listening: socket.socket, server: HTTPServer, doors: Doors):
        self._socket, self._server, self._doors = listening, server, doors
        self._loop = IOLoop.current()
        self._timer: object = None
        self._begin()

    def _begin(self) -> None:
        self._loop.add_handler(self._socket, lambda *_: self._accept(), IOLoop.READ)

    def _accept(self) -> None:
        try:
            connection, address = self._socket.accept()
        except OSError as error:
            if error.errno in NO_DESCRIPTORS:
                self._loop.remove_handler(self._socket)
                self._doors.close_first((len(self._doors.others) + 1) // 2)
                self._timer = self._loop.call_later(RETRY_SECONDS, self._begin)
                log.warning("no connection can be taken: %s", error.strerror)
            return  # other errors: the client closed the connection before it was accepted
        stream = IOStream(connection, max_buffer_size=UNREAD_BYTES)
        self._doors.admit(stream)
        self._server.handle_stream(stream, address)

    def close(self) -> None:
        """Accept no more connections."""
        self._loop.remove_handler(self._socket)
        if self._timer is not None:
            self._loop.remove_timeout(self._timer)
        self._socket.close()


class Sparing(logging.Filter):
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
