"""Files are written whole or not at all, and locked by one run at a time."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from meanfield import StorageError
from meanfield.core import system
from meanfield.core.files import Lock, check_writable, write_whole


def names(folder):
    """The names in a folder."""
    return sorted(path.name for path in folder.iterdir())


def test_pieces_are_written_one_after_the_other(tmp_path):
    path = tmp_path / "whole"
    for content in (b"a" * 10**6, b"b"):
        assert write_whole(path, content, memoryview(b"end")) == path
        assert path.read_bytes() == content + b"end"
    assert names(tmp_path) == ["whole"]


def test_threads_that_write_one_file_all_succeed(tmp_path):
    """The last one wins, and the file is whole at any time."""
    path, contents = tmp_path / "whole", [bytes([i]) * 10**5 for i in range(6)]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(5):
            list(pool.map(lambda content: write_whole(path, content), contents))
            assert path.read_bytes() in contents
    assert names(tmp_path) == ["whole"]


@pytest.mark.posix
def test_a_file_is_locked_while_it_is_removed_as_abandoned(tmp_path, monkeypatch):
    """So its writer, which may have just made it, cannot take the lock and lose the file."""
    part, unlink = tmp_path / ".whole.00000000000000ff.part", Path.unlink
    part.write_bytes(b"half")
    locked = []

    def watched(path, **options):
        if path == part:
            with open(path, "r+b") as file:
                locked.append(not system.lock(file.fileno()))
        unlink(path, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", watched)
        write_whole(tmp_path / "whole", b"content")
    assert locked == [True]


def test_what_dead_processes_left_is_removed_and_nothing_else(tmp_path):
    others = [".whole.mine", ".other.0123456789abcdef.part", "whole.part", ".whole.my.part"]
    for name in [*others, ".whole.00000000000000ff.part", ".whole.0123456789abcdef.part"]:
        (tmp_path / name).write_bytes(b"half")
        os.utime(tmp_path / name, (0, 0))
    write_whole(tmp_path / "whole", b"content")
    assert names(tmp_path) == sorted([*others, "whole"])


WRITER = """
import os, sys
from pathlib import Path
from meanfield.core import files
os.replace = lambda *_: (print("writing", flush=True), sys.stdin.read())
files.write_whole(Path(sys.argv[1]), b"content")
"""


@pytest.mark.posix
def test_what_a_living_process_writes_stays_until_it_is_killed(tmp_path):
    path = tmp_path / "whole"
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout.readline() == b"writing\n"
        write_whole(path, b"ours")
        assert len(names(tmp_path)) == 2
        writer.kill()
    assert len(names(tmp_path)) == 2
    check_writable(path)
    assert names(tmp_path) == ["whole"] and path.read_bytes() == b"ours"


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = write_whole(tmp_path / "whole", b"old")

    def full(*_arguments):
        raise OSError(28, "No space left on device")

    for name in ("write", "fsync", "replace"):
        with monkeypatch.context() as patched:
            patched.setattr(os, name, full)
            with pytest.raises(StorageError, match=r"whole could not be written: No space left"):
                write_whole(path, b"new")
    assert path.read_bytes() == b"old" and names(tmp_path) == ["whole"]


def test_places_where_nothing_can_be_written_are_refused(tmp_path):
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    os.mkfifo(tmp_path / "pipe")
    places = {
        "gone/file": "folder .*gone does not exist; create it first",
        ".": "is not a file: expected the name of a file to write",
        "pipe": "is not a file",
        "circle": "could not be written: it is a symlink in a loop",
        "x" * 5000: "could not be written: File name too long",
        "nul\0": "could not be written: .*null",
    }
    for name, words in places.items():
        for attempt in (check_writable, lambda path: write_whole(path, b"content")):
            with pytest.raises(StorageError, match=words):
                attempt(tmp_path / name)
    for name in ("x" * 255, "ü" * 127, "[*]?"):
        assert write_whole(tmp_path / name, b"content").read_bytes() == b"content"


def test_a_file_is_kept_by_one_at_a_time(tmp_path):
    path = tmp_path / "run.ckpt"
    lock = Lock(path)
    for _ in range(2):
        with pytest.raises(StorageError, match=rf"in use by .* process {os.getpid()} on .* Let it"):
            Lock(path)
    lock.release()
    Lock(path).release()
    assert names(tmp_path) == []


def test_a_file_and_a_link_to_it_have_one_lock(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "run.ckpt")
    lock = Lock(tmp_path / "link")
    with pytest.raises(StorageError, match="in use by another run"):
        Lock(tmp_path / "there" / "run.ckpt")
    lock.release()
    assert names(tmp_path / "there") == []


HOLDER = """
import sys, time
from pathlib import Path
from meanfield.core.files import Lock
Lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def test_a_lock_dies_with_its_process(tmp_path):
    path = tmp_path / "run.ckpt"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StorageError, match=f"process {holder.pid} on "):
            Lock(path)
        holder.kill()
    Lock(path).release()
    assert names(tmp_path) == []


def test_the_lock_of_a_run_that_ends_is_not_that_of_the_next(tmp_path):
    """Whoever waits for a lock file that is removed takes the one that replaces it."""
    path = tmp_path / "run.ckpt"

    def take_and_leave(_):
        try:
            lock = Lock(path)
        except StorageError:
            return 0
        with open(path, "xb"):
            pass
        path.unlink()
        lock.release()
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(take_and_leave, range(400))) > 0


def test_files_whose_long_names_begin_alike_have_locks_of_their_own(tmp_path):
    locks = [Lock(tmp_path / f"{'x' * 245}{i}") for i in range(3)]
    for lock in locks:
        lock.release()
    assert names(tmp_path) == []


FORK = """
import os, sys
from pathlib import Path
from meanfield.core.files import Lock
lock, (ready, begun) = Lock(Path(sys.argv[1])), os.pipe()
if os.fork() == 0:
    lock.release()
    os._exit(0)
os.wait()
try:
    Lock(Path(sys.argv[1]))
except Exception as error:
    print(error)
if os.fork() == 0:
    os.write(begun, b".")
    sys.stdin.read()
elif os.read(ready, 1):
    os.kill(os.getpid(), 9)
"""


@pytest.mark.posix
def test_a_fork_has_no_part_in_a_lock(tmp_path):
    """It neither lets others have the file, nor keeps it when the process that locked it ends."""
    path = tmp_path / "run.ckpt"
    command = [sys.executable, "-u", "-c", FORK, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.wait() == -9 and b"in use by another run" in process.stdout.readline()
        Lock(path).release()
    assert names(tmp_path) == []


def test_a_file_keeps_its_permissions(tmp_path):
    path = write_whole(tmp_path / "whole", b"old")
    path.chmod(0o600)
    write_whole(path, b"new")
    assert path.stat().st_mode & 0o777 == 0o600
