"""The server: what it answers, what it refuses, and the command that starts it."""

import asyncio
import json
import socket
import struct
import sys
import time
from contextlib import ExitStack, asynccontextmanager, suppress
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from meanfield.app.cli import main

pytest.importorskip("tornado", reason="the extra [explore] is not installed")

from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import WebSocketClosedError, websocket_connect

from meanfield.core.errors import MeanfieldError
from meanfield.explore import export as drawings
from meanfield.explore import server
from meanfield.explore.server import PAGE_FILES, hello, serving


@asynccontextmanager
async def connected(address):
    """The connection of a page that has been greeted; what it was told first."""
    connection = await websocket_connect(address.replace("http", "ws") + "socket")
    stream = connection.protocol.stream
    try:
        yield connection, json.loads(await connection.read_message())
    finally:
        connection.close()
        await asyncio.sleep(0.05)  # in which it closes
        stream.close()


CHEAP = {"duration": "1", "tokens": "8", "beta": "1.0", "kappa": "3.0"}


def served(visit, host="127.0.0.1", port=0):
    """What `visit(address)` returns while the page is served."""

    async def run():
        address = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(serving(None, host, port, address.set_result))
        await asyncio.wait([task, address], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        try:
            return await asyncio.wait_for(visit(address.result()), 240)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    return asyncio.run(run())


async def fetched(url, **headers):
    request = HTTPRequest(url, headers=headers, request_timeout=200)
    return await AsyncHTTPClient().fetch(request, raise_error=False)


def test_the_files_of_the_page_and_no_others():
    async def visit(address):
        for name in ("", *PAGE_FILES):
            answer = await fetched(address + name)
            assert answer.code == 200 and len(answer.body) > 500
            assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
        for name in ("scene.py", "../scene.py", "%2e%2e/scene.py", "page/index.html", "export/"):
            assert (await fetched(address + name)).code == 404
        assert address.startswith("http://127.0.0.1:")

    served(visit)


def test_other_names_of_the_machine_and_other_pages_are_refused():
    async def visit(address):
        assert (await fetched(address, Host="evil.example")).code == 404
        cross = await fetched(address + "export/density.toml", **{"Sec-Fetch-Site": "cross-site"})
        assert cross.code == 403
        url = address.replace("http", "ws") + "socket"
        with pytest.raises(Exception, match="403"):
            await websocket_connect(HTTPRequest(url, headers={"Origin": "http://evil.example"}))

    served(visit)


def test_exports_of_a_link():
    async def visit(address):
        answer = await fetched(address + "export/density.toml?beta=1.5&kappa=inf")
        assert answer.code == 200 and "beta = 1.5" in answer.body.decode()
        assert 'filename="density.toml"' in answer.headers["Content-Disposition"]
        bad = await fetched(address + "export/density.toml?beta=99")
        assert bad.code == 400 and "from 0.25 to 6" in bad.body.decode()
        assert bad.headers["Content-Type"].startswith("text/plain")

    served(visit)


def test_a_page_is_told_its_parameters_and_then_its_frames():
    async def visit(address):
        seen = set()
        async with connected(address) as (connection, first):
            assert first == json.loads(json.dumps(hello(None)))
            await connection.write_message(json.dumps({"version": 1, "scene": CHEAP}))
            while True:
                message = await connection.read_message()
                if isinstance(message, bytes):
                    (length,) = struct.unpack_from("<I", message)
                    seen |= set(json.loads(message[4 : 4 + length])["index"])
                elif json.loads(message)["type"] == "ended":
                    return seen

    assert 0 in served(visit)


@pytest.mark.parametrize(
    "message",
    ["", "[]", "{}", '{"version": -1, "scene": {}}', '{"version": 1, "scene": {"beta": 2}}',
     '{"version": 1, "scene": {"beta": "' + "9" * 300 + '"}}', "[" * 5000, "x" * 20000],
)  # fmt: skip
def test_what_is_no_message_ends_the_connection(message):
    async def visit(address):
        async with connected(address) as (connection, _):
            await connection.write_message(message)
            assert await connection.read_message() is None

    served(visit)


def test_two_pages_have_their_own_scenes():
    async def visit(address):
        async with connected(address) as (one, _), connected(address) as (other, _):
            for i, page in enumerate((one, other)):
                scene = CHEAP | {"kappa": f"{3 + i}.0"}
                await page.write_message(json.dumps({"version": i, "scene": scene}))
            for i, page in enumerate((one, other)):
                answer = json.loads(await page.read_message())
                assert answer["version"] == i
                assert answer["link"].get("kappa") == f"{3 + i}.0"

    served(visit)


# Connections and exports beyond what the server takes --------------------------------------------


def test_a_page_that_sends_too_many_scenes_is_closed(monkeypatch):
    monkeypatch.setattr(server, "SCENES_AT_ONCE", 20)

    async def visit(address):
        async with connected(address) as (flooding, _), connected(address) as (other, _):
            with suppress(WebSocketClosedError):
                for version in range(200):
                    await flooding.write_message(json.dumps({"version": version, "scene": CHEAP}))
            while await flooding.read_message() is not None:
                pass
            await other.write_message(json.dumps({"version": 0, "scene": CHEAP}))
            assert json.loads(await other.read_message())["type"] == "accepted"
            return flooding.close_code

    assert served(visit) == 1008


def test_the_page_used_longest_ago_is_closed_for_a_new_one(monkeypatch):
    monkeypatch.setattr(server, "MOST_SOCKETS", 2)

    async def visit(address):
        async with connected(address) as (one, _), connected(address) as (two, _):
            await one.write_message(json.dumps({"version": 0, "scene": CHEAP}))
            await one.read_message()
            async with connected(address) as _:
                assert await two.read_message() is None
                assert two.close_code == server.CLOSED_FOR_OTHERS
            while isinstance(message := await one.read_message(), bytes):
                pass
            assert json.loads(message)["version"] == 0

    served(visit)


HANDSHAKE = (
    "GET /socket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def raw(address, text=""):
    """A connection that says this and nothing more."""
    where = urlsplit(address)
    connection = socket.create_connection((where.hostname, where.port), timeout=20)
    connection.sendall(text.encode())
    return connection


def rest(connection):
    """What comes until the server closes the connection."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.repeats
@pytest.mark.parametrize("text", ["", "GET / HT", HANDSHAKE], ids=["silent", "half", "page"])
def test_connections_that_say_nothing_are_closed(monkeypatch, text):
    """A page that is gone without a word among them, as it does not answer to pings."""
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.3)

    async def visit(address):
        with raw(address, text) as connection:
            assert (b"101 " in await asyncio.to_thread(rest, connection)) == (text == HANDSHAKE)

    served(visit)


def test_connections_beyond_the_limit_cost_the_oldest_its_place(monkeypatch):
    monkeypatch.setattr(server, "MOST_OPEN", 5)

    async def visit(address):
        with ExitStack() as stack:
            held = [stack.enter_context(raw(address)) for _ in range(20)]
            assert (await fetched(address)).code == 200
            for connection in held[:15]:
                assert await asyncio.to_thread(rest, connection) == b""

    served(visit)


class Slow:
    """An export that lasts until it is stopped."""

    def __init__(self, monkeypatch):
        self.real, self.open, self.most, self.ends = server.exported, 0, 0, False
        monkeypatch.setattr(server, "exported", self)

    def __call__(self, scene, name, file, stopped=None):
        if stopped is None:
            return self.real(scene, name, file)
        self.open += 1
        self.most = max(self.most, self.open)
        while not (stopped() or self.ends):
            time.sleep(0.01)
        self.open -= 1
        raise MeanfieldError("stopped")


def test_slow_figures_block_nobody(monkeypatch):
    """Texts are written meanwhile; the figure begun first gives way, and who leaves does too."""
    monkeypatch.setattr(drawings, "FAIR_SECONDS", 0.5)
    slow = Slow(monkeypatch)

    async def visit(address):
        asked = [
            asyncio.create_task(fetched(address + f"export/density.png?rng={i}"))
            for i in range(drawings.MOST_DRAWINGS - 1)
        ]
        while slow.open < drawings.MOST_DRAWINGS - 1:
            await asyncio.sleep(0.01)
        with raw(address, "GET /export/tokens.svg HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            while slow.open < drawings.MOST_DRAWINGS:
                await asyncio.sleep(0.01)
            assert (await fetched(address + "export/density.png")).code == 503
            assert (await fetched(address + "export/density.toml")).code == 200
            assert (await fetched(address + "export/explored.py")).code == 200
            await asyncio.sleep(drawings.FAIR_SECONDS)
            asked.append(asyncio.create_task(fetched(address + "export/tokens.png")))
            done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            assert [task.result().code for task in done] == [400]
            while slow.open < drawings.MOST_DRAWINGS:
                await asyncio.sleep(0.01)
        while slow.open == drawings.MOST_DRAWINGS:  # who left frees a place
            await asyncio.sleep(0.01)
        slow.ends = True
        assert {(await answer).code for answer in asked} == {400}
        return slow.most

    assert served(visit) == drawings.MOST_DRAWINGS


def test_figures_are_given_up_after_a_while(monkeypatch):
    monkeypatch.setattr(drawings, "LONGEST_COMPUTING", 0.0)

    async def visit(address):
        answer = await fetched(address + "export/density.png?duration=60&kappa=0.5")
        assert answer.code == 400 and "meanfield solve density.toml" in answer.body.decode()

    served(visit)


# The command ------------------------------------------------------------------------------------


def command(*arguments):
    result = CliRunner().invoke(main, ["explore", *arguments])
    return result.exit_code, result.output


def test_an_address_that_is_in_use_is_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, text = command("--no-browser", "--port", str(taken.getsockname()[1]))
    assert code == 2 and "--port 0" in text
    assert command("--no-browser", "--host", "no.such.host.invalid")[0] == 2


def test_a_file_that_cannot_be_shown_is_refused(tmp_path):
    code, text = command(str(tmp_path / "missing.nc"), "--no-browser")
    assert code == 2 and "missing.nc" in text


def test_without_the_extra_the_command_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tornado", None)
    for name in [name for name in sys.modules if name.startswith("tornado.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "meanfield.explore.server")
    code, text = command("--no-browser")
    assert code == 2 and "pip install tornado" in text
