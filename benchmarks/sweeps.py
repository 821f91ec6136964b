"""What a sweep costs beyond the function that it calls, and what more workers save.

    python benchmarks/sweeps.py [--repeats 5] [--small]

Overhead: seconds a point of a function that does nothing, of 500 points, with a store and without.
Workers: seconds of 40 points that compute for 0.1 s each, with one worker and with two, which need
two free cores; and of 40 points that wait for 0.1 s each, which do not. With dask there are a
scheduler and two workers on this machine, each a process of one thread. Workers have imported
everything before. The least of all repeats is shown. Takes about three minutes.
"""

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

from _small import parser, sized
from _timing import fastest

import meanfield as mf
from meanfield.sweeps.executors import processes

MANY, FEW, SECONDS = sized((500, 40, 0.1), (5, 4, 0.01))


def nothing(i: int) -> int:
    return i


def computes(i: int) -> int:
    end = time.thread_time() + SECONDS
    while time.thread_time() < end:
        pass
    return i


def waits(i: int) -> int:
    time.sleep(SECONDS)
    return i


def sweep(f: Callable, count: int, executor=None, store: Path | None = None) -> None:
    if store is not None:
        store.unlink(missing_ok=True)
    mf.sweep(f, {"i": range(count)}, executor=executor, store=store, progress=False)


@contextmanager
def dask_client(workers: int) -> Iterator:
    """A client of a scheduler with so many workers."""
    from distributed import Client

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    commands = [["scheduler", "--host", "127.0.0.1", "--port", str(port)]]
    commands += [["worker", address, "--nthreads", "1", "--no-nanny"]] * workers
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "dask", *command, "--no-dashboard"], stderr=subprocess.DEVNULL
        )
        for command in commands
    ]
    try:
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(workers)
            yield client
    finally:
        for process in started:
            process.kill()
            process.wait()


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=5)
    repeats = options.parse_args().repeats
    with (
        tempfile.TemporaryDirectory() as folder,
        processes(1) as one,
        processes(2) as two,
        dask_client(1) as dask_one,
        dask_client(2) as dask_two,
    ):
        store = Path(folder) / "store"
        for executor in (one, two, dask_one, dask_two):
            sweep(nothing, 20, executor)  # imports
        cases = {"serial": None, "two processes": two, "dask, two workers": dask_two}
        for name, executor in cases.items():
            runs = [
                lambda e=executor: sweep(nothing, MANY, e),
                lambda e=executor: sweep(nothing, MANY, e, store),
            ]
            without, kept = (1e3 * s / MANY for s in fastest(runs, repeats, budget=15.0))
            print(f"{name:20} {without:6.2f} ms a point, {kept:6.2f} ms with a store")
        pairs = {"processes": (one, two), "dask": (dask_one, dask_two)}
        for (name, executors), f in product(pairs.items(), (computes, waits)):
            runs = [lambda e=executor, f=f: sweep(f, FEW, e) for executor in executors]
            single, double = fastest(runs, repeats, budget=15.0)
            ideal = FEW * SECONDS
            print(
                f"{name + ', ' + f.__name__:20} one worker {single:.2f} s (points alone "
                f"{ideal:.2f} s), two {double:.2f} s: {single / double:.2f} times as fast"
            )


if __name__ == "__main__":
    main()
