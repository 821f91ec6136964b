"""Claim: a sweep that is killed at random moments and resumed loses no point and keeps all bits.

A sweep of 64 points, with random numbers and arrays, is begun again and again until it is complete.
Each time one process is killed by SIGKILL, a random while after the first point of that time is in
the store: the driver, which runs the sweep, by itself, with two processes of its own, or with two
dask workers; one of the processes or workers; or the dask scheduler. What was lost is started
again. There are 45 kills in all, 15 each of drivers, workers and schedulers; `--kills` takes more.

After each kill the store is read. Asked: every point is there at most once, all points that were
there before still are, with the same bytes, and none of them was run again (points note when they
begin); processes end with their driver. At the end: every point is there once, and the dataset is
that of a sweep that nobody killed, to the last bit.

    python validation/sweeps.py [--quick] [--kills N]  # 460 s, 12 s quick

--quick has 4 kills. Exit code 1 on failure.
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
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from _report import Report

import meanfield as mf
from meanfield.sweeps.outcomes import of_bytes
from meanfield.sweeps.points import Grid
from meanfield.sweeps.store import _records

POINTS, SECONDS = 64, 0.02
DRIVERS = ("driver alone", "driver of processes", "driver of workers")
WORKERS = ("a process", "a worker", "a worker")
WAYS = tuple(way for pair in zip(DRIVERS, WORKERS, strict=True) for way in (*pair, "scheduler"))
LOG = "SWEEP_LOG"  # variable of the environment: the file in which points note when they begin
FOLDER = str(Path(__file__).parent)


def point(i: int, rng: np.random.Generator) -> dict:
    """A number and an array that take a while."""
    if LOG in os.environ:
        with open(os.environ[LOG], "a") as file:
            file.write(f"{i} ")
    time.sleep(SECONDS)
    return {"number": i * rng.random(), "array": rng.standard_normal(1000)}


def sweep(store: Path | None, executor: str | None = None):
    return mf.sweep(point, {"i": range(POINTS)}, rng=7, store=store, executor=executor)


NUMBERS = {
    point.key: point.parameters["i"]
    for point in Grid.of({"i": range(POINTS)}, None).points(lambda value: value)
}


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
            yield self
        finally:
            self.kill(*self.processes)


def records(store: Path) -> dict[int, list[bytes]]:
    """What the store has of every point, read as a process that died has left it."""
    found: dict[int, list[bytes]] = {}
    content = store.read_bytes() if store.exists() else b""
    for _, payload in list(_records(content))[1:]:
        for key in of_bytes(payload):
            found.setdefault(NUMBERS[key], []).append(payload)
    return found


def children(process: int) -> list[int]:
    """Its worker processes: not the one that keeps account of shared memory."""
    own = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    named = {child: Path(f"/proc/{child}/cmdline").read_bytes() for child in own}
    return [int(child) for child, command in named.items() if b"spawn_main" in command]


def kill_once(way: str, store: Path, dask: Dask, wait: float, environment: dict) -> bool:
    """Begin the sweep, and kill what is to be killed; whether that was before its end."""
    executors = {"driver alone": "None"}
    executors |= dict.fromkeys(("driver of processes", "a process"), "processes")
    command = [sys.executable, __file__, "--store", str(store)]
    command += ["--executor", executors.get(way, dask.address)]
    if executors.get(way, dask.address) == dask.address:
        dask.start()
    before = store.stat().st_size if store.exists() else 0
    said = subprocess.DEVNULL
    driver = subprocess.Popen(command, stdout=said, stderr=said, env=environment)
    own: list[int] = []
    try:
        while driver.poll() is None and not (store.exists() and store.stat().st_size > before):
            time.sleep(0.002)
        time.sleep(wait)
        if driver.poll() is not None:
            return False
        own = children(driver.pid)
        if way == "a process":
            os.kill(random.Random(wait).choice(own), signal.SIGKILL)
        elif way == "a worker":
            dask.kill("first")
        elif way == "scheduler":
            dask.kill("scheduler")
        else:
            driver.kill()
        driver.wait(60)
        gone_by = time.monotonic() + 30
        while any(Path(f"/proc/{process}").exists() for process in own):
            if time.monotonic() > gone_by:
                raise RuntimeError("Processes outlive the driver that started them.")
            time.sleep(0.01)
        return True
    finally:
        driver.kill()
        driver.wait()
        if way == "scheduler":
            dask.kill("first", "second")  # they end by themselves, some time


class Killed(NamedTuple):
    """What came of a number of kills."""

    kills: Counter  # by what was killed
    sweeps: int
    complete: int  # sweeps that ended with the expected dataset
    lost: int
    twice: int
    again: int  # points that were run although the store had them


def killed(kills: int, folder: Path, ways: Sequence[str] = WAYS, seed: int = 11) -> Killed:
    """Run sweeps, kill them in these ways, one after the other, and resume them."""
    log = folder / "log"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([FOLDER, *sys.path])}
    environment[LOG] = str(log)
    chance, expected, done = random.Random(seed), sweep(None), Counter()
    failures, complete, number = Counter(), 0, 0
    with Dask(environment).running() as dask:
        while done.total() < kills:
            number += 1
            store, known = folder / f"store{number}", {}
            while len(known) < POINTS and done.total() < kills:
                way = ways[done.total() % len(ways)]
                wait = chance.uniform(0, 0.25 * POINTS * SECONDS)
                log.write_text("")
                done[way] += kill_once(way, store, dask, wait, environment)
                now = records(store)
                failures["again"] += sum(int(i) in known for i in log.read_text().split())
                failures["lost"] += sum(now.get(i) != held for i, held in known.items())
                failures["twice"] += sum(len(held) > 1 for held in now.values())
                known = now
            found = sweep(store)
            held = records(store)
            failures["lost"] += POINTS - len(held) + sum(held[i] != b for i, b in known.items())
            failures["twice"] += sum(len(payloads) > 1 for payloads in held.values())
            complete += found.identical(expected)
    return Killed(done, number, complete, **{name: failures[name] for name in Killed._fields[3:]})


def run(report: Report, kills: int, folder: Path) -> None:
    found = killed(kills, folder)
    for way, count in found.kills.items():
        print(f"killed, {way}: {count} times")
    for what in ("lost", "twice", "again"):
        numbers = {"predicted": 0, "measured": getattr(found, what), "tolerance": 0}
        words = {"lost": "points lost", "twice": "points twice", "again": "stored points run again"}
        report.compare(words[what], f"{found.kills.total()} kills", **numbers)
    numbers = {"predicted": found.sweeps, "measured": found.complete, "tolerance": 0}
    report.compare("equal to the last bit", f"{found.sweeps} sweeps", **numbers)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="4 kills")
    parser.add_argument("--kills", type=int, default=45, metavar="N")
    parser.add_argument("--store", help=argparse.SUPPRESS)
    parser.add_argument("--executor", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.store:
        executor = None if arguments.executor == "None" else arguments.executor
        from sweeps import sweep as imported  # the name that workers and stores know

        imported(Path(arguments.store), executor)
        return 0
    report = Report(["what", "case"], digits=1)
    with tempfile.TemporaryDirectory() as folder:
        run(report, 4 if arguments.quick else arguments.kills, Path(folder))
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
