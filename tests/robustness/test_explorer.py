"""The explorer under attack by pages: it answers the others, keeps its memory, and ends on Ctrl-C.

The server is a process of its own. Everything goes to this machine only, all counts are bounded.
"""

import asyncio
import base64
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import asynccontextmanager, contextmanager
from urllib.parse import urlsplit

import numpy as np
import pytest

pytest.importorskip("tornado", reason="the extra [explore] is not installed")

from tornado.httpclient import AsyncHTTPClient
from tornado.websocket import WebSocketClosedError, websocket_connect

COMMAND = "from meanfield.app.cli import main; main(['explore', '--no-browser', '--port', '0'])"
CHEAP = {"duration": "1", "tokens": "8", "beta": "1.0", "kappa": "3.0"}
SPHERE = {"space": "Sphere", "duration": "60", "tokens": "1000", "kappa": "2.0"}
AT_ONCE = 3.0  # seconds within which the others are answered; the machine may be busy
MOST_SECONDS = 10.0  # until the process has ended after Ctrl-C
MOST_LOG = 4000  # characters on the terminal


class Server:
    """A process with the explorer.

    Parameters
    ----------
    folder : Path
        Of its standard error.
    descriptors : int, optional
        The limit of open files.
    """

    def __init__(self, folder, descriptors=None):
        self._log = folder / "stderr.txt"

        def prepare():
            signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
            if descriptors:
                resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", COMMAND], stdout=subprocess.PIPE, stderr=log, text=True,
                preexec_fn=prepare,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )  # fmt: skip
        self.address = self.process.stdout.readline().split()[2]

    @property
    def log(self):
        """What is on the terminal."""
        return self._log.read_text()

    @property
    def memory(self):
        """Megabytes."""
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    def interrupted(self):
        """Seconds until it has ended after Ctrl-C; inf if it has not."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(2 * MOST_SECONDS)
        except subprocess.TimeoutExpired:
            return float("inf")
        return time.monotonic() - began


@contextmanager
def serving(folder, **options):
    server = Server(folder, **options)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()
        server.process.stdout.close()


@asynccontextmanager
async def page(server, scene=None, says_goodbye=True):
    """A page that has been greeted, and perhaps shows a scene."""
    connection = await websocket_connect(server.address.replace("http", "ws") + "socket")
    stream = connection.protocol.stream
    try:
        await connection.read_message()
        if scene is not None:
            await connection.write_message(json.dumps({"version": 0, "scene": scene}))
        yield connection
    finally:
        if not says_goodbye:
            stream.close()
        connection.close()
        await asyncio.sleep(0.05)
        stream.close()


async def check_answer(attack, server, most):
    """Count whether the page is there within so many seconds."""
    began = time.monotonic()
    client = AsyncHTTPClient(force_instance=True)
    try:
        answer = await client.fetch(server.address, raise_error=False, request_timeout=4 * most)
    finally:
        client.close()
    seconds = time.monotonic() - began
    if answer.code != 200 or seconds > most:
        attack.failed("answered", f"code {answer.code} after {seconds:.1f} s")
    attack.saw("answered")


def ends_well(attack, server):
    """Count how it ends on Ctrl-C, and what it has said."""
    seconds, code = server.interrupted(), server.process.poll()
    if seconds > MOST_SECONDS or code != 0:
        attack.failed("Ctrl-C", f"{seconds:.1f} s, exit code {code}")
    if len(server.log) > MOST_LOG or "Traceback" in server.log:
        attack.failed("log", f"{len(server.log)} characters: {server.log[-500:]}")
    attack.saw("ended on Ctrl-C")


@pytest.mark.long
def test_a_flood_of_scenes_by_one_page(attack, tmp_path):
    """Others are answered meanwhile; the page is closed."""
    count = attack.rounds(2000, 35_000)

    async def flood(server):
        async with page(server) as connection:
            for version in range(count):
                message = {"version": version, "scene": CHEAP | {"kappa": f"{2 + version % 7}"}}
                try:
                    await connection.write_message(json.dumps(message))
                except WebSocketClosedError:
                    break
            while await connection.read_message() is not None:
                pass
            return connection.close_code

    async def visit(server):
        flooding = asyncio.create_task(flood(server))
        for _ in range(attack.rounds(10, 100)):
            await check_answer(attack, server, AT_ONCE)
            await asyncio.sleep(0.1)
        closed = await asyncio.wait_for(flooding, 60)
        if closed != 1008:
            attack.failed("the page was not closed", f"code {closed}")
        attack.saw("closed")

    with serving(tmp_path) as server:
        asyncio.run(visit(server))
        ends_well(attack, server)


@pytest.mark.long
@pytest.mark.parametrize("scene", [CHEAP, SPHERE], ids=["circle", "sphere"])
def test_pages_that_close_in_the_middle_and_an_end_while_diagrams_are_computed(
    attack, tmp_path, scene
):
    """No traceback, and Ctrl-C takes seconds whatever is computed."""

    async def visit(server):
        for i in range(attack.rounds(4, 60)):
            async with page(server, scene, says_goodbye=bool(i % 2)) as connection:
                for _ in range(i % 4):
                    await connection.read_message()
            attack.saw("closed")
        async with page(server, scene):
            await asyncio.sleep(1.5)  # until its diagrams are being computed
            await asyncio.to_thread(ends_well, attack, server)

    with serving(tmp_path) as server:
        asyncio.run(visit(server))


@pytest.mark.long
def test_connections_beyond_the_file_descriptors(attack, tmp_path):
    """The log stays short, and whoever comes is served, while they are held and afterwards."""

    async def visit(server):
        where = urlsplit(server.address)
        held = []
        for _ in range(attack.rounds(100, 400)):
            held.append(socket.create_connection((where.hostname, where.port), timeout=5))
            attack.saw("held open")
        await asyncio.sleep(attack.rounds(2, 15))
        await check_answer(attack, server, MOST_SECONDS)  # the queue of the system is before it
        for connection in held:
            connection.close()
        await check_answer(attack, server, MOST_SECONDS)

    with serving(tmp_path, descriptors=40) as server:
        asyncio.run(visit(server))
        ends_well(attack, server)


def deaf(server, scene):
    """A page that shows a scene and reads nothing."""
    where = urlsplit(server.address)
    connection = socket.create_connection((where.hostname, where.port))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    key = base64.b64encode(bytes(16)).decode()
    head = [
        "GET /socket HTTP/1.1", "Host: localhost", "Connection: Upgrade", "Upgrade: websocket",
        f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", "",
    ]  # fmt: skip
    text = json.dumps({"version": 0, "scene": scene}).encode()
    mask = bytes(4)  # which leaves the text as it is
    connection.sendall("\r\n".join(head).encode())
    time.sleep(0.3)  # one message each
    connection.sendall(struct.pack("!BBH", 0x81, 0x80 | 126, len(text)) + mask + text)
    return connection


def settled(server):
    """Megabytes once they have stopped to grow, for 2 s and by less than 1 MB."""
    last = []
    while len(last) < 180 and (len(last) < 16 or max(last[-8:]) - min(last[-8:]) > 1):
        time.sleep(0.25)
        last.append(server.memory)
    return last[-1]


@pytest.mark.long
def test_pages_that_do_not_read(attack, tmp_path):
    """Memory grows by what may wait for each of them; all later ones use it again.

    The first ones load compiled code too. With heaps of threads that keep what they ever held,
    later ones added 12 MB each time. Python collects cycles of objects every ten rounds or so, and
    memory falls by 30 MB then: the least of the last rounds counts.
    """
    count, grown = 8, []
    with serving(tmp_path) as server:
        first = server.memory
        for _ in range(16):
            held = [deaf(server, SPHERE) for _ in range(count)]
            grown.append(settled(server))
            for connection in held:
                connection.close()
                attack.saw("did not read")
            time.sleep(1)
        later = min(grown[-5:]) - np.mean(grown[1:4])  # 10 rounds; 120 if each leaks 12 MB
        if later > 6 * count or grown[1] - first > 17 * count:
            attack.failed("memory", f"{first:.0f} MB, and then {np.round(grown)}")
        ends_well(attack, server)
