"""Sessions: nothing of an earlier scene is sent, and work is bounded."""

import json
import struct
import threading
import time

import numpy as np
import pytest

from meanfield.explore import sessions as module
from meanfield.explore.frames import Frame
from meanfield.explore.scene import FRAME_COUNTS
from meanfield.explore.sessions import MOST_SESSIONS, Studio, packed

CHEAP = {"duration": "1", "tokens": "8", "beta": "1.0", "kappa": "3.0"}


class Mailbox:
    """What a page has been sent, as (version, header)."""

    def __init__(self):
        self.messages, self.lock = [], threading.Condition()

    def __call__(self, message, version):
        if isinstance(message, bytes):
            (length,) = struct.unpack_from("<I", message)
            message = {"type": "frames", **json.loads(message[4 : 4 + length])}
        assert version in (message["version"], -1)
        with self.lock:
            self.messages.append(message)
            self.lock.notify_all()

    def of(self, kind):
        return [m for m in list(self.messages) if m["type"] == kind]

    def wait(self, fits, seconds=120):
        with self.lock:
            assert self.lock.wait_for(lambda: fits(self), seconds), self.messages[-3:]

    def wait_for_the_end(self, layers=2):
        self.wait(lambda box: len(box.of("ended")) == layers)


@pytest.fixture
def studio():
    studio = Studio()
    yield studio
    studio.close()


def test_a_scene_is_accepted_played_and_drawn(studio):
    box = Mailbox()
    studio.open(box).show(3, CHEAP)
    box.wait_for_the_end()
    (accepted,) = box.of("accepted")
    assert (
        accepted["layers"] == ["density", "tokens"]
        and accepted["frames"]["density"] == FRAME_COUNTS["Circle"]
    )
    assert {m["version"] for m in box.messages} == {3}
    for layer in accepted["layers"]:
        index = [i for m in box.of("frames") if m["layer"] == layer for i in m["index"]]
        assert index == list(range(FRAME_COUNTS["Circle"]))
    assert all(m["complete"] for m in box.of("ended"))
    box.wait(lambda box: len(box.of("diagram")) == 2)
    assert {m["name"] for m in box.of("diagram")} == {"plane", "branches"}


@pytest.mark.long
def test_diagrams_that_are_known_are_sent_at_once(studio):
    box, session = Mailbox(), None
    session = studio.open(box)
    session.show(0, CHEAP)
    box.wait(lambda box: len(box.of("diagram")) == 2)
    before = len(box.messages)
    session.show(1, CHEAP | {"kappa": "4.0"})
    box.wait(lambda box: sum(m["version"] == 1 for m in box.messages) >= 3)
    later = [m for m in box.messages[before:] if m["version"] == 1]
    assert [m["type"] for m in later][:3] == ["accepted", "diagram", "diagram"]


def test_nothing_of_an_earlier_scene_is_sent(studio):
    box = Mailbox()
    session = studio.open(box)
    for version in range(20):
        session.show(version, CHEAP | {"kappa": f"{1 + version / 10}"})
        assert all(m["version"] <= version for m in box.messages)
        before = len(box.messages)
        time.sleep(0.01)
        assert {m["version"] for m in box.messages[before:]} <= {version}
    box.wait(lambda box: sum(m["version"] == 19 for m in box.of("ended")) == 2)
    versions = [m["version"] for m in box.messages]
    assert versions == sorted(versions)


def test_a_refused_scene_stops_the_one_before(studio):
    box = Mailbox()
    session = studio.open(box)
    session.show(0, CHEAP | {"duration": "60"})
    session.show(1, CHEAP | {"kappa": "-1"})
    box.wait(lambda box: box.of("refused"))
    (refused,) = box.of("refused")
    assert refused["version"] == 1 and refused["message"].startswith("kappa: ")
    before = len(box.messages)
    time.sleep(0.3)
    assert len(box.messages) == before


@pytest.mark.filterwarnings("ignore::meanfield.UnresolvedWarning")
def test_what_a_state_refuses_is_the_ending_of_its_layer(studio):
    box = Mailbox()
    studio.open(box).show(0, CHEAP | {"space": "Sphere", "concentration": "50", "kappa": "inf"})
    box.wait_for_the_end()
    endings = {m["layer"]: m for m in box.of("ended")}
    assert endings["tokens"]["complete"] and not endings["density"]["complete"]
    assert "max_degree" in endings["density"]["message"]


def test_a_defect_in_a_thread_is_told(studio, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("broken")

    monkeypatch.setattr(module, "play", broken)
    box = Mailbox()
    studio.open(box).show(0, CHEAP)
    box.wait_for_the_end()
    assert {m["status"] for m in box.of("ended")} == {"defect"}


def test_no_page_waits_for_the_runs_of_another(studio, monkeypatch):
    """All runs of all pages meet, which they cannot if one is begun when another has ended."""
    together = threading.Barrier(2 * MOST_SESSIONS)

    def meet(*_):
        together.wait(60)
        return {"complete": True, "status": "finished", "message": "", "seconds": 0.0}

    monkeypatch.setattr(module, "play", meet)
    boxes = [Mailbox() for _ in range(MOST_SESSIONS)]
    for box in boxes:
        studio.open(box).show(0, CHEAP)
    for box in boxes:
        box.wait_for_the_end()
        assert all(m["complete"] for m in box.of("ended"))


def test_pages_beyond_the_limit_pause_that_used_longest_ago(studio):
    boxes = [Mailbox() for _ in range(MOST_SESSIONS)]
    opened = [studio.open(box) for box in boxes]
    opened[0].show(0, CHEAP | {"duration": "60"})
    opened[0].show(1, CHEAP | {"duration": "60"})
    studio.open(Mailbox())
    assert opened[1].paused and not opened[0].paused
    assert [m["type"] for m in boxes[1].messages] == ["paused"]
    assert len(studio.sessions) == MOST_SESSIONS
    opened[1].show(0, CHEAP)
    assert opened[2].paused and not opened[1].paused


def test_a_closed_page_gets_nothing(studio):
    box = Mailbox()
    session = studio.open(box)
    session.show(0, CHEAP | {"duration": "60"})
    session.close()
    before = len(box.messages)
    time.sleep(0.3)
    assert len(box.messages) == before and studio.sessions == []


def test_packed_frames():
    values = np.linspace(-1, 3, 7, dtype=np.float32)
    frames = [Frame(i, 0.5 * i, 0.25, float("nan"), values + i) for i in range(3)]
    for coded in (False, True):
        message = packed(5, "density", frames, coded)
        (length,) = struct.unpack_from("<I", message)
        assert length % 4 == 0
        header = json.loads(message[4 : 4 + length])
        assert header["version"] == 5 and header["energy"] == [None] * 3
        rest = np.frombuffer(message[4 + length :], np.uint8 if coded else np.float32)
        for i, row in enumerate(rest.reshape(3, 7)):
            low, high = header["low"][i], header["high"][i]
            found = low + row * (high - low) / 255 if coded else row
            np.testing.assert_allclose(found, values + i, atol=4 / 255 / 2 if coded else 0)
