"""Where points are run makes no difference: processes, and a scheduler with two workers."""

import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Timer

import numpy as np
import pytest
from swept import drawn, fails_at_two, slow

import meanfield as mf
from meanfield.sweeps import executors
from meanfield.sweeps.executors import InThisThread, error_of, processes, workers_of
from meanfield.sweeps.points import Work

HERE = Path(__file__).parent
AT = {"beta": [1.0, 2.0, 3.0]}


def test_processes_give_the_same_numbers_and_failures_of_pickling_are_told():
    with processes(1) as pool:
        found = mf.sweep(drawn, AT, replicas=2, rng=1, executor=pool)
        assert found.identical(mf.sweep(drawn, AT, replicas=2, rng=1))
        kept = mf.sweep(fails_at_two, {"i": [1, 2, 3]}, errors="keep", executor=pool)
        assert kept.identical(mf.sweep(fails_at_two, {"i": [1, 2, 3]}, errors="keep"))
        with pytest.raises(mf.MeanfieldError, match=r"beta = 1 was not run: .*pickle"):
            mf.sweep(lambda beta: beta, {"beta": [1, 2]}, executor=pool)
        (process,) = pool._processes.values()
        assert os.getpgid(process.pid) != os.getpgid(0)  # no Ctrl-C of the terminal
        Timer(0.1, process.kill).start()
        with pytest.raises(mf.MeanfieldError, match="A worker or the scheduler was lost"):
            mf.sweep(slow, {"i": range(1000)}, rng=1, executor=pool)


class Batches(Work):
    """Points in one batch, which kills the worker that runs one of them."""

    takes_rng = False

    def check(self, point):
        pass

    def batches(self, points, size, seed, workers):
        return [points]

    def values(self, points, seed):
        return [point.parameters["i"] for point in points]


def test_of_a_batch_that_kills_workers_the_point_that_does_so_fails_alone():
    class Killing(ThreadPoolExecutor):
        def submit(self, job, number):
            if any(point.parameters["i"] == 2 for point in job.points):
                job = killed
            return super().submit(job, number)

    def killed(_number):
        raise KilledWorker("killed")

    class KilledWorker(Exception):
        __module__ = "distributed.scheduler"

    with Killing(1) as pool:
        found = mf.sweep(Batches(), {"i": [1, 2, 3]}, executor=pool, errors="keep")
    np.testing.assert_array_equal(found["value"], [1.0, np.nan, 3.0])
    assert [text.split(":")[0] for text in found["error"].values] == ["", "KilledWorker", ""]


def test_executors_tell_how_much_they_run_at_once():
    with ThreadPoolExecutor(3) as pool:
        assert workers_of(pool) == 3
    assert workers_of(InThisThread()) == 1


@pytest.fixture
def dask(monkeypatch):
    """The command `dask`, whose processes are killed at the end, and which finds `swept`."""
    pytest.importorskip("distributed")
    monkeypatch.setenv("PYTHONPATH", f"{HERE}:{':'.join(sys.path)}")
    started = []

    def start(*arguments):
        command = [sys.executable, "-m", "dask", *map(str, arguments), "--no-dashboard"]
        started.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.mark.long
def test_a_scheduler_and_two_workers_give_the_same_numbers_though_they_are_killed(dask, tmp_path):
    address, at = f"tcp://127.0.0.1:{(port := free_port())}", {"i": range(40)}
    scheduler = dask("scheduler", "--host", "127.0.0.1", "--port", port)
    workers = [dask("worker", address, "--nthreads", 1, "--no-nanny") for _ in range(2)]
    expected, path = mf.sweep(slow, at, rng=3), tmp_path / "store"
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(2)
        assert mf.sweep(slow, at, rng=3, executor=client).identical(expected)
        assert len(client.run(str)) == 2
        Timer(0.1, workers[0].kill).start()
        assert mf.sweep(slow, at, rng=3, executor=client).identical(expected)
        Timer(0.15, scheduler.kill).start()
        with suppress(mf.MeanfieldError):  # unless it was over already
            mf.sweep(slow, at, rng=3, executor=client, store=path)
    assert mf.sweep(slow, at, rng=3, store=path).identical(expected)
    np.testing.assert_array_equal(expected["value"][:, 0], range(40))


class Cancelling(ThreadPoolExecutor):
    """Cancels a job by its number, as dask does with all of them where the scheduler is killed."""

    def __init__(self, number):
        super().__init__(1)
        self.left = number

    def submit(self, job, number):
        self.left -= 1
        if self.left >= 0:
            return super().submit(job, number)
        future = Future()
        future.cancel()
        future.set_running_or_notify_cancel()
        return future


@pytest.mark.parametrize("number", [0, 1, 3])
def test_jobs_that_an_executor_cancels_end_the_sweep_with_what_is_kept(number, tmp_path):
    with pytest.raises(mf.MeanfieldError, match=r"scheduler was lost"):
        mf.sweep(
            slow, {"i": range(5)}, rng=3, executor=Cancelling(number), store=tmp_path / "store"
        )


class Gone:
    """A client of dask whose scheduler is lost, or has no workers."""

    def __init__(self, status):
        self.status, self.scheduler = status, self
        self.address = "tcp://nowhere:1"

    def nthreads(self):
        assert self.status == "running"  # else it would wait for half a minute
        return {}


class Limbo(Executor):
    """An executor of dask from which nothing comes back."""

    __module__ = "distributed.cfexecutor"

    def __init__(self, status):
        self._client = Gone(status)

    def submit(self, job, number):
        return Future()


@pytest.mark.parametrize("status", ["connecting", "closing", "closed"])
def test_a_client_that_has_lost_its_scheduler_is_not_waited_for(status):
    with pytest.raises(mf.MeanfieldError, match="worker or the scheduler was lost"):
        mf.sweep(slow, {"i": range(5)}, rng=3, executor=Limbo(status))


def test_a_scheduler_without_workers_is_told_of_and_ctrl_c_ends_the_wait(monkeypatch):
    monkeypatch.setattr(executors, "IDLE_TIME", 0.0)
    timer = Timer(0.5, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT])
    timer.start()
    with pytest.warns(mf.SlowWarning, match="at tcp://nowhere:1 has no workers") as told:
        found = mf.sweep(slow, {"i": range(5)}, rng=3, executor=Limbo("running"))
    assert found.attrs["status"] == "interrupted" and len(told) == 1


def test_what_a_job_raised_is_known_of_cancelled_ones_too():
    cancelled, failed = Future(), Future()
    cancelled.cancel()
    failed.set_exception(KeyError("x"))
    assert isinstance(error_of(cancelled), CancelledError)
    assert isinstance(error_of(failed), KeyError)


class Forgetful(ThreadPoolExecutor):
    """Loses what came of some points, so many times."""

    def __init__(self, times):
        super().__init__(1)
        self.left = times

    def submit(self, job, number):
        if job.points and job.points[0].label() == "i = 2" and self.left:
            self.left -= 1
            future = Future()
            future.set_exception(ValueError("too many values to unpack (expected 3)"))
            return future
        return super().submit(job, number)


def test_what_an_executor_fails_to_hand_on_is_run_once_more():
    at = {"i": range(4)}
    expected = mf.sweep(slow, at, rng=3)
    assert mf.sweep(slow, at, rng=3, executor=Forgetful(1), batch=1).identical(expected)
    with pytest.raises(mf.MeanfieldError, match="i = 2 was not run: ValueError: too many values"):
        mf.sweep(slow, at, rng=3, executor=Forgetful(2), batch=1)


class Lethal(ThreadPoolExecutor):
    """A scheduler all of whose workers die at the second point."""

    def submit(self, job, number):
        from distributed.scheduler import KilledWorker

        if number == 1:
            future = Future()
            future.set_exception(KilledWorker("points-1", None, 3))
            return future
        return super().submit(job, number)


def test_a_point_that_kills_its_workers_is_one_that_fails():
    pytest.importorskip("distributed")
    with Lethal(1) as workers:
        found = mf.sweep(lambda i: i, {"i": [1, 2, 3]}, errors="keep", executor=workers)
        np.testing.assert_array_equal(found["value"], [1, np.nan, 3])
        assert found["error"].values[1].startswith("KilledWorker")
        with pytest.raises(mf.MeanfieldError, match="point i = 2 failed: KilledWorker"):
            mf.sweep(lambda i: i, {"i": [1, 2, 3]}, executor=workers)
    with pytest.raises(mf.MeanfieldError, match="executor must still"):
        mf.sweep(lambda i: i, {"i": [1, 2, 3]}, executor=workers)


def test_where_no_scheduler_answers_is_an_error(dask):
    import dask as configured

    address = f"tcp://127.0.0.1:{free_port()}"
    with (
        configured.config.set({"distributed.comm.timeouts.connect": "100ms"}),
        pytest.raises(mf.MeanfieldError, match=f"No scheduler answers at {address}"),
    ):
        mf.sweep(slow, {"i": [1]}, rng=3, executor=address)
    with pytest.raises(mf.MeanfieldError, match="No scheduler answers at nowhere://"):
        mf.sweep(slow, {"i": [1]}, rng=3, executor="nowhere://1")
