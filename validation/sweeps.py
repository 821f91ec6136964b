"""Claim: a sweep that is killed at random moments and resumed loses no point and keeps all bits.

A sweep of 64 points, with random numbers and arrays, is begun again and again until it is complete.
Each time one process is killed by SIGKILL, a random while after the first point of that time is in
the store: the one that runs the sweep, by itself or with two processes of its own; one of its
processes; one of two dask workers; or the dask scheduler. Lost workers and schedulers are started
again. There are 60 kills in all.

After each kill the store is read. Asked: every point is there at most once, all points that were
there before still are, and with the same bytes. At the end: every point is there once, and the
dataset is that of a sweep that nobody killed, to the last bit.

    python validation/sweeps.py [--quick]  # 400 s, 60 s quick

--quick has 8 kills. Exit code 1 on failure.
"""

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from _report import Report

import meanfield as mf
from meanfield.sweeps.outcomes import of_bytes
from meanfield.sweeps.store import _records

POINTS, SECONDS = 64, 0.02
WAYS = ("alone", "with processes", "a process", "a worker", "the scheduler", "driver of workers")
FOLDER = str(Path(__file__).parent)


def point(i: int, rng: np.random.Generator) -> dict:
    """A number and an array that take a while."""
    time.sleep(SECONDS)
    return {"number": i * rng.random(), "array": rng.standard_normal(1000)}


def sweep(store: Path | None, executor: str | None = None):
    return mf.sweep(point, {"i": range(POINTS)}, rng=7, store=store, executor=executor)


class Dask:
    """A scheduler and two workers, each of which is started again when it is gone."""

    def __init__(self, environment: dict):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = one.getsockname()[1]
        self.address, self._environment = f"tcp://127.0.0.1:{self.port}", environment
        self.processes: dict[str, subprocess.Popen] = {}

    def start(self) -> None:
        """Start what is not there."""
        self._start("scheduler", "scheduler", "--host", "127.0.0.1", "--port", str(self.port))
        for name in ("first", "second"):
            self._start(name, "worker", self.address, "--nthreads", "1", "--no-nanny")

    def _start(self, name: str, *arguments: str) -> None:
        known = self.processes.get(name)
        if known is None or known.poll() is not None:
            command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
            self.processes[name] = subprocess.Popen(
                command, stderr=subprocess.DEVNULL, env=self._environment
            )

    def kill(self, *names: str) -> None:
        for name in names:
            self.processes[name].kill()
            self.processes[name].wait()

    @contextmanager
    def running(self):
        try:
            self.start()
            yield self
        finally:
            self.kill(*self.processes)


def records(store: Path) -> dict[int, list[bytes]]:
    """What the store has of every point, read as a process that died has left it."""
    found: dict[int, list[bytes]] = {}
    content = store.read_bytes() if store.exists() else b""
    for _, payload in list(_records(content))[1:]:
        found.setdefault(of_bytes(payload)[0], []).append(payload)
    return found


def children(process: int) -> list[int]:
    """Its worker processes: not the one that keeps account of shared memory."""
    own = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    named = {child: Path(f"/proc/{child}/cmdline").read_bytes() for child in own}
    return [int(child) for child, command in named.items() if b"spawn_main" in command]


def kill_once(way: str, store: Path, dask: Dask, wait: float, environment: dict) -> bool:
    """Begin the sweep, and kill what is to be killed; whether that was before its end."""
    executors = {"alone": "None", "with processes": "processes", "a process": "processes"}
    command = [sys.executable, __file__, "--store", str(store)]
    command += ["--executor", executors.get(way, dask.address)]
    dask.start()
    before = store.stat().st_size if store.exists() else 0
    said = subprocess.DEVNULL
    driver = subprocess.Popen(command, stderr=said, env=environment)
    try:
        while driver.poll() is None and not (store.exists() and store.stat().st_size > before):
            time.sleep(0.002)
        time.sleep(wait)
        if driver.poll() is not None:
            return False
        if way == "a process":
            os.kill(random.Random(wait).choice(children(driver.pid)), signal.SIGKILL)
        elif way == "a worker":
            dask.kill("first")
        elif way == "the scheduler":
            dask.kill("scheduler", "first", "second")
        else:
            driver.kill()
        driver.wait(60)
        return True
    finally:
        driver.kill()
        driver.wait()


def run(report: Report, kills: int, folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([FOLDER, *sys.path])}
    chance, expected, done = random.Random(11), sweep(None), Counter()
    failures, complete, number = Counter(), 0, 0
    with Dask(environment).running() as dask:
        while sum(done.values()) < kills:
            number += 1
            store, known = folder / f"store{number}", {}
            while len(known) < POINTS and sum(done.values()) < kills:
                way = WAYS[sum(done.values()) % len(WAYS)]
                wait = chance.uniform(0, 0.25 * POINTS * SECONDS)
                done[way] += kill_once(way, store, dask, wait, environment)
                now = records(store)
                failures["lost"] += sum(now.get(i) != held for i, held in known.items())
                failures["twice"] += sum(len(held) > 1 for held in now.values())
                known = now
            found = sweep(store)
            held = records(store)
            failures["lost"] += POINTS - len(held) + sum(held[i] != b for i, b in known.items())
            failures["twice"] += sum(len(payloads) > 1 for payloads in held.values())
            complete += found.identical(expected)
    for way in WAYS:
        print(f"killed, {way}: {done[way]} times")
    for what in ("lost", "twice"):
        label, numbers = f"{sum(done.values())} kills", {"measured": failures[what]}
        report.compare(f"points {what}", label, predicted=0, **numbers, tolerance=0)
    numbers = {"predicted": number, "measured": complete, "tolerance": 0}
    report.compare("equal to the last bit", f"{number} sweeps", **numbers)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="8 kills")
    parser.add_argument("--store", help=argparse.SUPPRESS)
    parser.add_argument("--executor", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.store:
        executor = None if arguments.executor == "None" else arguments.executor
        from sweeps import sweep as imported  # the name that workers know

        imported(Path(arguments.store), executor)
        return 0
    report = Report(["what", "case"], digits=1)
    with tempfile.TemporaryDirectory() as folder:
        run(report, 8 if arguments.quick else 60, Path(folder))
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
