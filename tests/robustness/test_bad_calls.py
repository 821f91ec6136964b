"""Calls with one bad argument: it is named, in one message, or taken for what it means.

The calls are made in a process of its own, with a limit of memory, so that a crash or a call that
never ends is seen: see `bad_calls`.
"""

import json
import os
import select
import subprocess
import sys
from pathlib import Path

import bad_calls
import pytest

WAIT = 60 * bad_calls.SECONDS  # seconds, for what does not even let a signal through

ROOT = Path(__file__).resolve().parents[2]


class Worker:
    """A process that makes calls by their numbers."""

    def __init__(self):
        paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.process = subprocess.Popen(
            [sys.executable, bad_calls.__file__],
            env=os.environ | {"PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def called(self, number):
        """The call in words and what came of it."""
        self.process.stdin.write(f"{number}\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], WAIT)[0]:
            return "", f"FAILED: no answer in {WAIT} s"
        line = self.process.stdout.readline()
        if not line:
            return "", f"FAILED: a crash, exit code {self.process.wait()}"
        return json.loads(line)[1:]

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def test_bad_calls(attack):
    worker = Worker()
    try:
        for number in range(attack.rounds(60, len(bad_calls.all_calls()))):
            call, came = worker.called(number)
            if came.startswith("FAILED: "):
                attack.failed(came.removeprefix("FAILED: ").split(":")[0], f"{call}: {came}")
                if not call:
                    worker.end()
                    worker = Worker()
            elif came:
                attack.saw(came)
    finally:
        worker.end()


@pytest.mark.long
def test_calls_are_right_but_for_the_one_bad_argument():
    worker = Worker()
    try:
        found = [worker.called(-number - 1) for number in range(len(bad_calls.calls()))]
    finally:
        worker.end()
    assert not [(call, came) for call, came in found if came]


def test_every_public_name_is_called():
    """Those that are not are classes of results, or what others build on."""
    import meanfield as mf

    called = bad_calls.named(bad_calls.calls())
    missing = {name for name in mf.__all__ if callable(getattr(mf, name))} - called
    assert missing == bad_calls.NOT_CALLED
