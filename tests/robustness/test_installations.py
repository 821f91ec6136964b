"""Installations that cannot be written, full disks and damaged caches: compiled code all the same.

Where the tests are run by root, children give up the privilege to write everywhere.
"""

import ctypes
import importlib
import os
import random
import resource
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from numba.core import config
from numba.core.errors import TypingError

from meanfield.core.errors import StorageWarning
from meanfield.core.system import private_folder
from meanfield.lowlevel import code_cache
from meanfield.lowlevel.code_cache import CodeCache
from meanfield.lowlevel.compilation import listening

ROOT = Path(__file__).parents[2]
CAPBSET_DROP, DAC_OVERRIDE = 24, 1

# What is computed by compiled code, how many functions were compiled, where code is kept.
CHILD = """
import warnings
warnings.simplefilter("always")
import meanfield
from meanfield.lowlevel.code_cache import cache_folder
from meanfield.lowlevel.compilation import listening
from meanfield.distances.metrics import arc
import numpy as np
compiled = []
with listening(compiled.append):
    print(arc(np.eye(2)[0], np.eye(2)[1], 2), compiled.count(None), cache_folder())
"""
DOCTOR = "from meanfield.app.cli import main; main(['doctor'])"


def without_privilege():
    """What root may do, but for writing where the permissions say no."""
    if os.getuid() == 0:
        ctypes.CDLL(None, use_errno=True).prctl(CAPBSET_DROP, DAC_OVERRIDE, 0, 0, 0)


def cannot_write(folder):
    """Whether a child cannot write to a folder that is read-only."""
    command = [sys.executable, "-c", "import os, sys; sys.exit(os.access(sys.argv[1], os.W_OK))"]
    return subprocess.run([*command, folder], preexec_fn=without_privilege).returncode == 0


@pytest.fixture
def installation(tmp_path):
    """A read-only copy of the package, a read-only home, and a folder for temporary files."""
    package, home, temporary = (tmp_path / name for name in ("site", "home", "tmp"))
    leave = shutil.ignore_patterns("*.nbc", "*.lock")  # bytecode goes along, as where pip installs
    shutil.copytree(ROOT / "meanfield", package / "meanfield", ignore=leave)
    home.mkdir()
    temporary.mkdir()
    folders = [package, home, *(path for path in package.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    if not cannot_write(home):
        pytest.skip("no folder is read-only here")
    yield Installation(package, home, temporary)
    for folder in folders:
        folder.chmod(0o755)


class Installation:
    """A copy of the package, and how children run it."""

    def __init__(self, package, home, temporary):
        self.package, self.home, self.temporary = package, home, temporary
        self.kept = temporary / f"meanfield-{os.getuid()}"

    def run(self, code=CHILD, prepare=without_privilege, status=0, **variables):
        """The words on the last line that a child printed, and what it said on stderr."""
        inherited = {n: v for n, v in os.environ.items() if not n.startswith(("NUMBA", "XDG"))}
        places = {"HOME": self.home, "TMPDIR": self.temporary, "PYTHONPATH": self.package}
        done = subprocess.run(
            [sys.executable, "-B", "-c", code],
            env={**inherited, **{n: str(v) for n, v in (places | variables).items()}},
            cwd=self.home,
            preexec_fn=prepare,
            capture_output=True,
            text=True,
        )
        assert done.returncode == status, done.stderr
        return done.stdout.splitlines()[-1].split(), done.stderr


def files_in(folder):
    """The files that keep code in a folder."""
    return list(folder.rglob("*.nbc"))


@pytest.mark.long
def test_where_nothing_can_be_written_code_is_kept_among_temporary_files(installation):
    (value, compiled, folder), said = installation.run()
    assert compiled == "1" and Path(folder).is_relative_to(installation.kept)
    assert installation.kept.stat().st_mode & 0o777 == 0o700 and "Warning" not in said
    assert installation.run()[0] == [value, "0", folder]


@pytest.mark.long
def test_where_code_can_be_kept_nowhere_it_is_said_once_and_by_doctor(installation):
    """The folder among temporary files is there, and others may write to it."""
    installation.kept.mkdir()
    installation.kept.chmod(0o777)
    (_, compiled, folder), said = installation.run()
    assert (compiled, folder) == ("1", "None") and not files_in(installation.temporary)
    assert said.count("StorageWarning: Compiled code cannot be kept") == 1
    assert "NUMBA_CACHE_DIR" in installation.run(DOCTOR, status=1)[0]


@pytest.mark.long
def test_code_that_was_compiled_before_is_used_where_nothing_can_be_written(installation):
    """As in a container whose image was built with `meanfield doctor --compile`."""
    for mode in (0o755, 0o555):
        for folder in [installation.package, *installation.package.rglob("*")]:
            folder.chmod(mode)
        (value, compiled, _), _ = installation.run()
        if mode == 0o755:
            expected = value
    assert (value, compiled) == (expected, "0") and files_in(installation.package)
    assert not files_in(installation.temporary)


@pytest.mark.long
def test_a_full_disk_stops_no_run_and_the_folder_that_was_chosen_is_the_only_one(installation):
    """Files longer than some bytes are refused, as the system does at a quota."""

    def limited():
        without_privilege()
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    chosen = installation.temporary / "chosen"
    (value, compiled, folder), said = installation.run(prepare=limited, NUMBA_CACHE_DIR=chosen)
    assert compiled == "1" and Path(folder).is_relative_to(chosen)
    assert said.count("StorageWarning: Compiled code cannot be kept") == 1
    assert not files_in(installation.temporary)
    assert installation.run(NUMBA_CACHE_DIR=chosen)[0] == [value, "1", folder]
    assert files_in(chosen) and not installation.kept.exists()


@pytest.mark.parametrize("others", ["may write to it", "chose it", "made it"])
def test_a_folder_of_others_is_not_used(tmp_path, monkeypatch, others):
    """Whoever can write there could have us execute anything."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = tmp_path / f"meanfield-{os.getuid()}"
    assert private_folder(create=False) is None
    assert private_folder(create=True) == private_folder(create=False) == folder
    if others == "may write to it":
        folder.chmod(0o770)
    elif others == "chose it":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        user = os.getuid() + 1
        monkeypatch.setattr(os, "getuid", lambda: user)
        folder.rename(tmp_path / f"meanfield-{user}")
    assert private_folder(create=True) is private_folder(create=False) is None


# Damaged files ---------------------------------------------------------------------------------

MODULE = """
from meanfield.lowlevel.compilation import njit

@njit(cache=True)
def part(x):
    return x * FACTOR

@njit(cache=True)
def whole(x):
    return part(x) + 1

FACTOR = 2
"""


def damaged(contents, rng):
    """The bytes of a file after an accident."""
    place = rng.randrange(len(contents))
    flipped = contents[:place] + bytes([contents[place] ^ 1 << rng.randrange(8)])
    return rng.choice(
        [
            b"",
            contents[:place],
            bytes(len(contents)),
            rng.randbytes(len(contents)),
            flipped + contents[place + 1 :],
            contents + b"more",
        ]
    )


def test_damaged_code_is_compiled_anew(tmp_path, monkeypatch, attack):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    path, rng = tmp_path / "module.py", random.Random(0)
    path.write_text(MODULE)

    def announced():
        heard = []
        with listening(heard.append):
            assert runpy.run_path(str(path))["whole"](3) == 7
        return heard.count(None)

    assert announced() == 1 and announced() == 0
    (file,) = (p for p in tmp_path.rglob("*.nbc") if "whole" in p.name)
    intact = file.read_bytes()
    for number in range(attack.rounds(10, 1000)):
        file.write_bytes(damaged(intact, rng))
        if announced() == 1:
            attack.saw("compiled anew")
        else:
            attack.failed("used", str(number))


def test_code_is_compiled_anew_when_its_source_has_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    assert runpy.run_path(str(path))["whole"](3) == 7
    code_cache._source.cache_clear()
    code_cache._CHECKSUMS.clear()
    path.write_text(MODULE.replace("x * FACTOR", "x + x + x"))
    assert runpy.run_path(str(path))["whole"](3) == 10


SHARED = """
import sys
from meanfield.lowlevel.compilation import listening
import module
compiled = []
with listening(compiled.append):
    module.whole(3)
print(compiled.count(None))
"""


def runs_at_once(folders, kept):
    """How many functions each of several processes compiled that import from these folders."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(kept)}
    children = [
        subprocess.Popen(
            [sys.executable, "-c", SHARED],
            env={**environment, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"},
            text=True,
            stdout=subprocess.PIPE,
        )
        for folder in folders
    ]
    return [int(child.communicate()[0]) for child in children]


@pytest.mark.long
def test_two_copies_of_the_sources_that_start_together_compile_once(tmp_path):
    """As a clone and an installation, or the workers of a sweep."""
    for copy in ("one", "two"):
        (tmp_path / copy).mkdir()
        (tmp_path / copy / "module.py").write_text(MODULE)
    folders = [tmp_path / "one", tmp_path / "two"]
    assert sorted(runs_at_once(folders, tmp_path)) == [0, 1]
    (folders[0] / "module.py").write_text("# moved down by a line" + MODULE)
    assert runs_at_once(folders, tmp_path) == [1, 0]


def test_a_function_that_does_not_compile_lets_the_others_have_their_turn(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    path = tmp_path / "module.py"
    path.write_text(MODULE.replace("part(x) + 1", "part(x).missing"))
    with pytest.raises(TypingError, match="missing"):
        runpy.run_path(str(path))["whole"](3)
    assert not code_cache._TURNS


def test_only_the_newest_entries_of_a_function_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(code_cache, "KEPT_ENTRIES", 3)
    for number in range(5):
        (tmp_path / f"module.f.py311-{number}.nbc").touch()
        os.utime(tmp_path / f"module.f.py311-{number}.nbc", (number, number))
    (tmp_path / "module.g.py311-0.nbc").touch()
    code_cache._remove_oldest(tmp_path, "module.f.py311")
    names = sorted(path.name for path in tmp_path.iterdir())
    expected = [f"module.f.py311-{number}.nbc" for number in (2, 3, 4)]
    assert names == [*expected, "module.g.py311-0.nbc"]


@pytest.mark.long
def test_code_of_several_processes_is_not_mixed_up(tmp_path, monkeypatch):
    """Processes that compile one function for different arguments, at the same time."""
    (tmp_path / "cold_start.py").write_text(MODULE)
    arguments = ["3", "3.5", "2j", "np.ones(2)"]
    code = "import sys, numpy as np, cold_start\nprint(repr(cold_start.whole(eval(sys.argv[1]))))"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    command, pipe = [sys.executable, "-c", code], subprocess.PIPE
    children = [
        subprocess.Popen([*command, x], env=environment, text=True, stdout=pipe) for x in arguments
    ]
    for child, x in zip(children, arguments, strict=True):
        assert child.communicate()[0].strip() == repr(eval(x) * 2 + 1), x
    monkeypatch.syspath_prepend(tmp_path)
    whole, heard = importlib.import_module("cold_start").whole, []
    with listening(heard.append):
        for x in arguments:
            np.testing.assert_array_equal(whole(eval(x)), eval(x) * 2 + 1)
    assert not heard


def test_a_cache_that_cannot_be_written_is_told_once(tmp_path, monkeypatch):
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    monkeypatch.setattr(code_cache, "folders", lambda **_: iter([]))
    monkeypatch.setattr(CodeCache, "warned", False)
    with pytest.warns(StorageWarning, match="NUMBA_CACHE_DIR"):
        assert runpy.run_path(str(path))["whole"](3) == 7
    np.testing.assert_equal(runpy.run_path(str(path))["whole"](3.5), 8.0)
