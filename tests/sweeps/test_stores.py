"""Stores of sweeps: resumed, cut short, damaged, of others; and processes that are killed."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from swept import drawn, slow

import meanfield as mf
from meanfield.sweeps.store import RECORD_HEAD, RECORD_MARK, STORE_MAGIC, Store, _records

HERE = Path(__file__).parent
AT = {"beta": [1.0, 2.0, 3.0]}


def swept(path, **options):
    return mf.sweep(drawn, AT, replicas=2, rng=1, store=path, **options)


WHOLE = mf.sweep(drawn, AT, replicas=2, rng=1)


def places(content):
    """Where records begin."""
    return [i for i in range(len(content)) if content.startswith(RECORD_MARK, i)]


@pytest.mark.bits
def test_a_store_cut_short_anywhere_gives_the_same_numbers(tmp_path):
    path = tmp_path / "store"
    swept(path)
    content = path.read_bytes()
    first, second = places(content)[:2]
    whole = content.startswith(STORE_MAGIC) and first == len(STORE_MAGIC)
    assert whole and len(places(content)) == 7
    for size in random.Random(1).sample(range(second, len(content)), 12):
        path.write_bytes(content[:size])
        assert swept(path).identical(WHOLE)
        assert sorted(path.read_bytes()) == sorted(content)


def test_damage_costs_the_record_it_hit(tmp_path):
    path = tmp_path / "store"
    swept(path)
    content = bytearray(path.read_bytes())
    third = places(content)[3]
    for at in (third, third + len(RECORD_MARK), third + RECORD_HEAD - 1, third + RECORD_HEAD + 9):
        damaged = content.copy()
        damaged[at] ^= 0x40
        path.write_bytes(damaged)
        assert len(list(_records(bytes(damaged)))) == 6
        path.write_bytes(damaged)
        with pytest.warns(mf.StorageWarning, match="damaged at 1"):
            assert swept(path).identical(WHOLE)
        assert swept(path).identical(WHOLE)


def test_a_store_of_something_else_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "store"
    swept(path)
    content = path.read_bytes()
    with pytest.raises(mf.CheckpointError, match=r"belongs to another sweep.*differ: rng"):
        mf.sweep(drawn, AT, replicas=2, rng=2, store=path)
    with pytest.raises(mf.CheckpointError, match=r"belongs to another sweep.*differ: f\."):
        mf.sweep(lambda beta, rng: beta, AT, replicas=2, rng=1, store=path)
    assert path.read_bytes() == content
    path.write_bytes(content.replace(STORE_MAGIC, b"something else!!"))
    with pytest.raises(mf.CheckpointError, match="not the store of a sweep"):
        swept(path)
    path.write_bytes(content[: len(STORE_MAGIC) + 20])
    with pytest.raises(mf.CheckpointError, match="beginning is damaged"):
        swept(path)


@pytest.mark.bits
def test_a_larger_grid_runs_what_is_missing_and_keeps_all_bits(tmp_path):
    path, calls = tmp_path / "store", tmp_path / "calls"

    def counted(beta, kappa, rng):
        with calls.open("a") as file:
            file.write(".")
        return beta * kappa + rng.random()

    steps = [
        ({"beta": [1.0, 2.0], "kappa": [3.0]}, 2, 4),
        ({"beta": [1.0, 2.0], "kappa": [3.0]}, 2, 4),
        ({"beta": [0.5, 2.0, 1.0], "kappa": [4.0, 3.0]}, 2, 12),  # more values, in another order
        ({"kappa": [3.0, 4.0], "beta": [2.0]}, 3, 14),  # replicas, and parameters exchanged
        ({"beta": [2.0], "kappa": [4.0]}, 1, 14),  # a part
    ]
    for grid, replicas, total in steps:
        found = mf.sweep(counted, grid, replicas=replicas, rng=1, store=path)
        assert calls.read_text() == "." * total
        others = calls.with_name("others")
        calls.rename(others)
        assert found.identical(mf.sweep(counted, grid, replicas=replicas, rng=1))
        others.replace(calls)


def test_one_sweep_at_a_time_has_a_store(tmp_path):
    with Store(tmp_path / "store", {}), pytest.raises(mf.CheckpointError, match="in use"):
        Store(tmp_path / "store", {}).__enter__()
    with pytest.raises(mf.CheckpointError, match="does not exist"):
        swept(tmp_path / "nowhere" / "store")


def test_a_function_that_has_no_identity_needs_a_sweep_without_store(tmp_path):
    lock = threading.Lock()

    def f(i):
        with lock:
            return i

    assert mf.sweep(f, {"i": [1]})["value"] == 1
    with pytest.raises(mf.CheckpointError, match="Omit store"):
        mf.sweep(f, {"i": [1]}, store=tmp_path / "store")


def test_a_full_disk_is_warned_of_and_records_are_written_later(tmp_path, monkeypatch):
    path, write, full = tmp_path / "store", os.write, []

    def some(file, data):
        if len(full) < 2:
            full.append(write(file, data[:10]))
            if len(full) == 2:
                raise OSError(28, "No space left on device")
            return 10
        return write(file, data)

    with Store(path, {}) as store:
        monkeypatch.setattr("meanfield.sweeps.store.os.write", some)
        with pytest.warns(mf.StorageWarning, match="No space left"):
            store.add(b"one")
        store.add(b"two")
    with Store(path, {}) as store:
        assert store.payloads == [b"one", b"two"]


def cut(path):
    path.write_bytes(path.read_bytes()[:-20])


def emptied(path):
    path.write_bytes(b"")


@pytest.mark.posix
@pytest.mark.parametrize("harm", [Path.unlink, cut, emptied])
@pytest.mark.parametrize("last", [False, True])
def test_a_store_that_is_removed_or_cut_while_the_sweep_runs_is_written_anew(tmp_path, harm, last):
    path = tmp_path / "store"
    with pytest.warns(mf.StorageWarning, match="rewritten with all results"):
        with Store(path, {}) as store:
            store.add(b"one")
            harm(path)
            if not last:
                store.add(b"two")
    with Store(path, {}) as store:
        assert store.payloads == ([b"one"] if last else [b"one", b"two"])


@pytest.mark.posix
def test_a_store_that_cannot_be_written_anew_ends_with_a_warning(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.warns(mf.StorageWarning, match="no longer stored"):
        with Store(folder / "store", {}) as store:
            for name in os.listdir(folder):
                (folder / name).unlink()
            folder.rmdir()
            store.add(b"one")
            store.add(b"two")
    assert not folder.exists()


def test_a_file_that_replaced_the_store_while_the_sweep_ran_is_left_alone(tmp_path):
    path, other = tmp_path / "store", tmp_path / "other"
    other.write_text("something else")
    with pytest.warns(mf.StorageWarning, match="replaced by another file") as told:
        with Store(path, {}) as store:
            store.add(b"one")
            other.replace(path)
            store.add(b"two")
            store.add(b"three")
    assert len(told) == 1 and path.read_text() == "something else"


def test_stores_appended_to_each_other_serve_the_sweep_of_the_first(tmp_path):
    stores = {}
    for seed in (1, 2):
        path = tmp_path / f"{seed}"
        mf.sweep(drawn, AT, replicas=2, rng=seed, store=path)
        stores[seed] = path.read_bytes()
    path = tmp_path / "both"
    path.write_bytes(stores[1] + stores[1])
    assert swept(path).identical(WHOLE)
    path.write_bytes(stores[1][: places(stores[1])[3]] + stores[2])
    with pytest.warns(mf.StorageWarning, match="6 records of another sweep"):
        assert swept(path).identical(WHOLE)
    assert swept(path).identical(WHOLE)  # as they were removed
    damaged = bytearray(stores[2])
    damaged[places(stores[2])[0] + RECORD_HEAD + 3] ^= 0x40  # whose the second is, is not known
    path.write_bytes(stores[1][: places(stores[1])[3]] + damaged)
    with pytest.warns(mf.StorageWarning, match="6 records of another sweep|damaged"):
        assert swept(path).identical(WHOLE)


# Killed ------------------------------------------------------------------------------------------

PROGRAM = """
import sys
import meanfield as mf
from swept import slow

if __name__ == "__main__":
    mf.sweep(slow, {"i": range(60)}, rng=3, store=sys.argv[1])
"""


@pytest.mark.bits
def test_a_sweep_that_is_killed_goes_on_where_it_was(tmp_path):
    program, path, chance = tmp_path / "program.py", tmp_path / "store", random.Random(2)
    program.write_text(PROGRAM)
    folders = os.pathsep.join([str(HERE), *sys.path])
    environment = {**os.environ, "PYTHONPATH": folders}
    process = subprocess.Popen([sys.executable, program, path], env=environment)
    while not path.exists() or path.stat().st_size < 5000:
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(chance.uniform(0, 0.1))
    process.kill()
    assert process.wait() == -signal.SIGKILL
    before = len(list(_records(path.read_bytes()))) - 1
    assert 0 < before < 60
    whole = mf.sweep(slow, {"i": range(60)}, rng=3)
    began = time.perf_counter()
    assert mf.sweep(slow, {"i": range(60)}, rng=3, store=path).identical(whole)
    assert time.perf_counter() - began > 0.01 * (60 - before)
    np.testing.assert_array_equal(whole["value"][:, 0], range(60))
