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

MOST_SOCKETS = 64  # of pages, or as many as half of the free file descriptors
MOST_OPEN = 64  # connections of other kinds, or a quarter of the file descriptors
UNREAD_BYTES = 65536  # bytes of a connection that wait to be read
RETRY_SECONDS = 1.0  # seconds until connections are taken again once there were no file descriptors
MOST_RECORDS = 20  # of the log, a minute
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
        self.pages: dict[WebSocketHandler, None] = {}  # those used last at the end
        self.others: dict[IOStream, None] = {}  # in the order of their beginning

    def admit(self, stream: IOStream) -> None:
        """Note a new connection."""
        self.others = {other: None for other in self.others if not other.closed()}
        self.others[stream] = None
        if len(self.others) > self._most_others:
            self.close_first(len(self.others) - self._most_others)

    def close_first(self, count: int) -> None:
        """Close the connections that were opened first."""
        for stream in list(self.others)[:count]:
            del self.others[stream]
            stream.close()

    def is_waiting(self, connection: Any) -> None:
        """Exempt a connection that waits for a figure, whose number is bounded, from closing."""
        self.others.pop(connection.stream, None)

    def became_a_page(self, stream: IOStream, page: WebSocketHandler) -> None:
        """Note that a page is open."""
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
    """The socket at which connections begin.

    tornado's own loop tries again at once where there are no file descriptors, and logs each
    failure; here half of the connections are closed, and that waits for `RETRY_SECONDS` seconds.
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
            return  # others: the connection was given up before it was taken
        stream = IOStream(connection, max_buffer_size=UNREAD_BYTES)
        self._doors.admit(stream)
        self._server.handle_stream(stream, address)

    def close(self) -> None:
        """Take no more connections."""
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
