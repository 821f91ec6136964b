"""A full disk, and folders and names to which nothing can be written: what was computed stays.

As a program, ``python test_full_disks.py NAME FOLDER``, it fills its disk, or has a limit on the
length of files, and goes on. It prints a list of [outcome, what was tried].
"""

import gc
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import warnings
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from specimens import BY_THE_CLOCK, CIRCLE, RESULTS, Loader, bump, contents, run

import meanfield as mf

TMPFS = "mount -t tmpfs -o size=2m none {folder} && exec {python} {file} {name} {folder} {length}"
READ_ONLY = "mount -t tmpfs -o ro none {folder} && exec {python} {file} {name} {folder} {length}"
ROOM = (0, 1, 4, 16)  # KiB left on the disk


# Programs ----------------------------------------------------------------------------------------


def outcomes(attack, command):
    """Count what a program reports, which must end well."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[-1:]
        return attack.failed("the interpreter died", f"exit code {done.returncode}, {said}")
    attack.report(json.loads(done.stdout.splitlines()[-1]))
    return None


def in_own_mounts(attack, script, name, folder, length=""):
    """The command of a program on a disk of its own; skips the test where that is not allowed."""
    unshare = ["unshare", "--mount", "sh", "-c"]
    trial = [*unshare, f"mount -t tmpfs none {folder}"]
    allowed = shutil.which("unshare") and subprocess.run(trial, capture_output=True, check=False)
    if not allowed or allowed.returncode:
        attack.skip("a disk of one's own needs unshare, mount and the right to use them")
    words = {"python": sys.executable, "file": __file__}
    return [*unshare, script.format(name=name, folder=folder, length=length, **words)]


@pytest.mark.long
@pytest.mark.parametrize("disk", ["tmpfs", pytest.param("limit", marks=pytest.mark.long)])
def test_a_result_survives_a_full_disk(attack, disk, tmp_path):
    """It can be used, and written elsewhere; the old file stays; the interpreter ends well."""
    length = "long" if attack.long else "short"
    if disk == "tmpfs":
        command = in_own_mounts(attack, TMPFS, "full", tmp_path, length)
    else:
        command = [sys.executable, __file__, "limited", str(tmp_path), length]
    outcomes(attack, command)


@pytest.mark.long
@pytest.mark.parametrize("disk", ["tmpfs", pytest.param("limit", marks=pytest.mark.long)])
def test_a_run_goes_on_without_its_checkpoint(attack, disk, tmp_path):
    """It says so at once, tries again, and writes one when there is room."""
    if disk == "tmpfs":
        command = in_own_mounts(attack, TMPFS, "checkpoint", tmp_path)
    else:
        command = [sys.executable, __file__, "checkpoint_limited", str(tmp_path)]
    outcomes(attack, command)


def test_a_read_only_disk_is_refused(attack, tmp_path):
    length = "long" if attack.long else "short"
    outcomes(attack, in_own_mounts(attack, READ_ONLY, "read_only", tmp_path, length))


# The same on a disk, and with a limit on files ---------------------------------------------------


class Disk:
    """A small disk that can be filled and emptied."""

    def __init__(self, folder):
        self.folder, self._ballast = folder, folder / "ballast"

    @contextmanager
    def full(self, room):
        """Nothing but `room` KiB is left."""
        with open(self._ballast, "wb") as file:
            free = os.statvfs(self.folder)
            file.write(bytes(free.f_bavail * free.f_frsize - 1024 * room))
        yield
        self._ballast.unlink()


class Limit:
    """Files in a folder are limited in their length, as by ``ulimit -f``."""

    def __init__(self, folder):
        self.folder = folder

    @contextmanager
    def full(self, room):
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * room, most))
        yield
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def saved_on_a_full_disk(disk, kinds, rooms):
    """Each result is saved where there is no room, then elsewhere."""
    elsewhere = disk.folder.parent / "elsewhere.nc"
    for kind in kinds:
        result, path = RESULTS[kind](), disk.folder / "result.nc"
        result.save(path)
        old, before = path.read_bytes(), contents(mf.load(path))
        for room in rooms:
            what = f"{kind}, {room} KiB"
            with disk.full(room):
                try:
                    result.save(path)
                    yield ("FAILED written without room", what)
                except mf.StorageError as error:
                    named = str(path) in str(error) and "\n" not in str(error)
                    yield ("refused" if named else "FAILED an unclear message", f"{what}: {error}")
                except Exception as error:
                    yield (f"FAILED {type(error).__name__}", f"{what}: {error}")
                gc.collect()
            if path.read_bytes() != old or sorted(disk.folder.iterdir()) != [path]:
                yield "FAILED the old file is lost, or something is left", what
            result.save(elsewhere)
            good = contents(mf.load(elsewhere)) == before
            yield "saved elsewhere" if good else "FAILED the result is lost", what
            elsewhere.unlink()
        path.unlink()


def run_on_a_full_disk(disk):
    """Checkpoints that cannot be written at first, or in the middle."""
    for begin, end in [(-1.0, 0.15), (0.05, 0.15), (0.05, 1.0)]:
        path, what, full = disk.folder / "run.checkpoint", f"full from {begin} to {end}", []

        def fills(t, _state, begin=begin, end=end, full=full):
            if begin <= t < end and not full:
                full.append(disk.full(0))
                full[0].__enter__()
            elif t >= end and len(full) == 1:
                full.pop().__exit__(None, None, None)
                full += [None, None]

        if begin < 0:
            fills(begin, None)
        options = {"kappa": 3.0, "checkpoint": path, "checkpoint_every": 0, "callback": fills}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = run(CIRCLE.density(bump), **options)
        if len(full) == 1:  # to the end
            full[0].__exit__(None, None, None)
        said = [str(w.message) for w in caught if issubclass(w.category, mf.StorageWarning)]
        yield "said so" if said else "FAILED silent", what
        same = contents(result, BY_THE_CLOCK) == contents(
            run(CIRCLE.density(bump), kappa=3.0), BY_THE_CLOCK
        )
        yield "the run went on" if same and result.success else "FAILED another result", what
        if end < 1:
            written = path.exists() and path.stat().st_size > 0
            yield ("written when there was room" if written else "FAILED no checkpoint"), what
        left = sorted(p.name for p in disk.folder.iterdir())
        if set(left) - {"run.checkpoint"}:
            yield "FAILED something is left", f"{what}: {left}"
        resumed = run(CIRCLE.density(bump), kappa=3.0, checkpoint=path, resume=True)
        same = contents(resumed, BY_THE_CLOCK) == contents(result, BY_THE_CLOCK)
        yield "the last checkpoint that fitted is good" if same else "FAILED resumed differs", what
        path.unlink()


def written_to_a_read_only_disk(folder, kinds):
    for kind in kinds:
        yield refused(lambda kind=kind: RESULTS[kind]().save(folder / "x.nc"), kind)
    yield refused(lambda: run(CIRCLE.density(bump), checkpoint=folder / "x"), "checkpoint")


def refused(work, what, good=()):
    """How a refusal came out, in one line; or what worked, if it may."""
    began = time.monotonic()
    try:
        work()
    except ValueError as error:  # of the package, or one that names the argument
        if not (isinstance(error, mf.StorageError) or " must be a path " in str(error)):
            return f"FAILED {type(error).__name__}", f"{what}: {error}"
        line = "\n" not in str(error)
        outcome = "refused" if line else "FAILED a message of several lines"
        return outcome, f"{what}: {error}"
    except Exception as error:
        return f"FAILED {type(error).__name__}", f"{what}: {error}"
    if time.monotonic() - began > 10:
        return "FAILED hang", what
    return ("written" if what in good else "FAILED not refused"), what


def main(name, folder, length="long"):
    folder = Path(folder)
    warnings.simplefilter("ignore")
    kinds = list(RESULTS) if length == "long" else ["circle", "study"]
    rooms = ROOM if length == "long" else (0, 4)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    disk = (Limit if "limited" in name else Disk)(folder / "disk" if "limited" in name else folder)
    disk.folder.mkdir(exist_ok=True)
    if name in ("full", "limited"):
        found = saved_on_a_full_disk(disk, kinds, rooms)
    elif name.startswith("checkpoint"):
        found = run_on_a_full_disk(disk)
    else:
        found = written_to_a_read_only_disk(folder, kinds)
    print(json.dumps(list(found)))


# Figures, movies and standard output -------------------------------------------------------------


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return RESULTS["circle"]().save(tmp_path_factory.mktemp("result") / "run.nc")


def limited(command, kibibytes, **options):
    """Run a command whose files must not be longer."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * kibibytes, 1024 * kibibytes))

    return subprocess.run(
        [sys.executable, "-m", "meanfield", *map(str, command)],
        preexec_fn=limit, capture_output=True, text=True, timeout=120, check=False, **options,
    )  # fmt: skip


def said(done):
    return f"exit code {done.returncode}, {done.stderr[-300:]}"


@pytest.mark.parametrize(
    "picture",
    ["movie.gif", *(pytest.param(n, marks=pytest.mark.long) for n in ("figure.png", "movie.mp4"))],
)
def test_a_figure_for_which_there_is_no_room_is_refused(attack, picture, result, tmp_path):
    if picture != "figure.png" and not attack.long:
        attack.skip("make attack")
    out = tmp_path / picture
    out.write_bytes(b"old")
    done = limited(["plot", result, "-o", out], 4)
    if done.returncode != 2 or "Traceback" in done.stderr or len(done.stderr.splitlines()) > 1:
        attack.failed("not refused in one line", f"{picture}: {said(done)}")
    elif out.read_bytes() != b"old" or len(list(tmp_path.iterdir())) > 1:
        attack.failed("half a figure", f"{picture}: {[p.name for p in tmp_path.iterdir()]}")
    else:
        attack.saw("refused, the old figure stays")


CONFIGURATION = """
[model]
drift = { kind = "USA", beta = 1.0 }
kappa = 3.0
[space]
kind = "Circle"
degree = 16
[initial]
kind = "Fourier"
cos = [0.2]
"""
WORK = {
    "solve": CONFIGURATION + "[solve]\nt_span = [0, 0.5]\ncheckpoint_every = 0\n",
    "chaos": CONFIGURATION + "[chaos]\nsizes = [4, 8]\ntimes = [0.2]\nreplicas = 3\nrng = 1\n",
}


@pytest.mark.parametrize("work", WORK)
def test_a_command_on_a_full_disk_says_so(attack, work, tmp_path):
    """The result cannot be written: one message and exit code 2, or 1; nothing is left."""
    if work != "solve" and not attack.long:
        attack.skip("make attack")
    (tmp_path / "run.toml").write_text(WORK[work])
    for room in (0, 8, 40) if attack.long else (8,):
        done = limited([work, "run.toml", "-q", "--force"], room, cwd=tmp_path)
        left = {p.name for p in tmp_path.iterdir()} - {"run.toml", "run.nc.checkpoint"}
        if "Traceback" in done.stderr or done.returncode not in (1, 2):
            attack.failed("not said in words", f"{room} KiB: {said(done)}")
        elif ".part" in done.stderr or not done.stderr.rstrip().endswith("."):
            attack.failed("an unclear message", f"{room} KiB: {said(done)}")
        elif left - {"run.nc"}:
            attack.failed("something is left", f"{room} KiB: {left}")
        else:
            attack.saw("said in one line")


@pytest.mark.long
@pytest.mark.parametrize("command", ["solve run.toml --force", "schema", "doctor", "--help"])
def test_standard_output_on_a_full_disk(attack, command, tmp_path):
    """What is printed is lost, and nothing else; there is no traceback."""
    if command != "solve run.toml --force" and not attack.long:
        attack.skip("make attack")
    (tmp_path / "run.toml").write_text(WORK["solve"])
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    for end in ("> /dev/full", ">&-", "| true") if attack.long else ("> /dev/full",):
        shell = f'"{sys.executable}" -m meanfield {command} {end}'
        options = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 120}
        done = subprocess.run(shell, shell=True, check=False, env=buffered, **options)
        if "Traceback" in done.stderr or "Exception ignored" in done.stderr or done.returncode < 0:
            attack.failed("traceback", f"{command} {end}: {said(done)}")
        elif "solve" in command and not mf.load(tmp_path / "run.nc").success:
            attack.failed("the result is lost", f"{command} {end}")
        else:
            attack.saw(f"exit code {done.returncode}")


# Names to which nothing can be written, or something other than a file ---------------------------


def a_folder(tmp_path):
    (tmp_path / "target").mkdir()
    return tmp_path / "target"


def a_fifo(tmp_path):
    os.mkfifo(tmp_path / "target")
    return tmp_path / "target"


def a_loop(tmp_path):
    (tmp_path / "target").symlink_to(tmp_path / "again")
    (tmp_path / "again").symlink_to(tmp_path / "target")
    return tmp_path / "target"


def a_link_into_nothing(tmp_path):
    (tmp_path / "target").symlink_to(tmp_path / "missing" / "x.nc")
    return tmp_path / "target"


def a_name_too_long(tmp_path):
    return tmp_path / ("x" * 300)


def a_path_too_long(tmp_path):
    return tmp_path / "/".join(["x" * 200] * 25)


def a_longest_name(tmp_path):
    """255 bytes are allowed, with nothing before or after them."""
    return tmp_path / ("x" * 252 + ".nc")


def a_zero_byte(tmp_path):
    return tmp_path / "tar\0get"


def no_folder(tmp_path):
    return tmp_path / "missing" / "x.nc"


def below_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "x.nc"


def the_full_device(_tmp_path):
    return Path("/dev/full")


def nothing(_tmp_path):
    return Path("")


def a_name_that_is_not_text(tmp_path):
    return tmp_path / os.fsdecode(b"\xff\xfe.nc")


def a_line_break(tmp_path):
    return tmp_path / "tar\nget.nc"


MAY_WORK = (a_longest_name, a_name_that_is_not_text, a_line_break)
BAD = [
    *(a_folder, a_fifo, a_loop, a_link_into_nothing, a_name_too_long, a_path_too_long, a_zero_byte),
    *(no_folder, below_a_file, the_full_device, nothing, *MAY_WORK),
]


@pytest.fixture(scope="module")
def loader():
    loader = Loader()
    yield loader
    loader.close()


@pytest.mark.parametrize("bad", BAD)
def test_what_cannot_be_written_is_refused(attack, bad, result, loader, tmp_path, monkeypatch):
    """By save, checkpoints and load, in one line; a fifo hangs none of them."""
    monkeypatch.chdir(tmp_path)
    found, name = mf.load(result), bad.__name__
    good = [f"save, {name}", f"checkpoint, {name}"] if bad in MAY_WORK else []
    path = bad(tmp_path)
    tried = [refused(lambda: found.save(path), f"save, {name}", good=good)]
    if bad in MAY_WORK:
        path.unlink(missing_ok=True)
    run_it = partial(run, CIRCLE.density(bump), checkpoint=path)
    tried.append(refused(run_it, f"checkpoint, {name}", good=good))
    if "written" not in tried[-1]:
        outcome, what = loader.load("circle", path)
        named = what.startswith("ValueError: path must be a path ")
        outcome = "refused" if outcome == "refused" or named else f"FAILED {outcome}"
        tried.append((outcome, f"load, {name}: {what}"))
    attack.report(tried)


def test_links_stay_and_what_they_point_to_is_written(result, tmp_path):
    found, file = mf.load(result), tmp_path / "file.nc"
    link, dangling, hard = tmp_path / "link.nc", tmp_path / "dangling.nc", tmp_path / "hard.nc"
    file.write_bytes(b"old")
    hard.hardlink_to(file)
    link.symlink_to("file.nc")
    dangling.symlink_to("new.nc")
    found.save(link)
    found.save(dangling)
    assert link.is_symlink() and dangling.is_symlink() and hard.read_bytes() == b"old"
    for path in (file, link, dangling, tmp_path / "new.nc"):
        assert contents(mf.load(path)) == contents(found)


@pytest.mark.parametrize("mends", [False, True])
def test_a_folder_that_is_removed_during_the_run(mends, tmp_path):
    """The run goes on; where the folder comes back there is a checkpoint again."""
    folder = tmp_path / "run"
    folder.mkdir()

    def removes(t, _state):
        if 0.05 < t < 0.15 and folder.exists():
            shutil.rmtree(folder)
        elif mends and t > 0.15:
            folder.mkdir(exist_ok=True)

    kept = {"checkpoint": folder / "x.checkpoint", "checkpoint_every": 0, "callback": removes}
    with pytest.warns(mf.StorageWarning):
        found = run(CIRCLE.density(bump), kappa=3.0, **kept)
    assert found.success and kept["checkpoint"].exists() == mends
    if not mends:
        with pytest.raises(mf.StorageError, match="folder"):
            found.save(folder / "x.nc")
    plain = run(CIRCLE.density(bump), kappa=3.0)
    assert contents(found, BY_THE_CLOCK) == contents(plain, BY_THE_CLOCK)


def test_a_checkpoint_that_something_else_has_replaced_is_not_lost(tmp_path):
    """Another program wrote to its name while the run went on: the run says so, or replaces it."""
    path = tmp_path / "x.checkpoint"

    def replaces(t, _state):
        if 0.05 < t and path.is_file():
            path.unlink()
            path.mkdir()

    kept = {"checkpoint": path, "checkpoint_every": 0, "callback": replaces}
    with pytest.warns(mf.StorageWarning):
        found = run(CIRCLE.density(bump), kappa=3.0, **kept)
    assert found.success and np.isfinite(found.t).all()


if __name__ == "__main__":
    main(*sys.argv[1:])
