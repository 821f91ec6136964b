"""Runs that are killed at any moment and resumed are the unbroken runs, to the last bit.

As a program, ``python test_kills.py NAME FOLDER``, it is killed, or kills its own children,
while it writes. It prints a list of [outcome, what was tried]; those that must not be begin with
"FAILED".
"""

import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest
from specimens import BY_THE_CLOCK, CIRCLE, RESULTS, bump, contents, differences, resumed, run

import meanfield as mf

CALLS = {
    *("open", "write", "writelines", "flush", "close", "truncate", "fsync", "fdatasync"),
    *("replace", "rename", "link", "unlink", "remove", "flock", "lockf"),
}  # that change files
FILES = (types.ModuleType, io.FileIO, io.BufferedWriter, io.BufferedRandom, io.TextIOWrapper)
MOST = 400  # calls of one save, and then some

# Configurations that run for a second or two -----------------------------------------------------

SOLVE = "\n[solve]\ncheckpoint_every = 0\nt_eval = { kind = 'Linspace', count = 41 }\n"
USA = "[model]\ndrift = { kind = 'USA', beta = 2.0 }\n"
SA = "[model]\ndrift = { kind = 'SA', beta = 4.0 }\n"
NOISE = "kappa = 8.0\n"
UNIFORM = "[initial]\nkind = 'Tokens'\nx = { kind = 'Uniform', n = 200, d = 3, rng = 1 }\n"
POINTS = "[[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [0.8, -0.6]]"
ZONAL = "[space]\nkind = 'Zonal'\ndimension = 4\ndegree = 16\n"
FOURIER = "[initial]\nkind = 'Fourier'\ncos = [0.3, 0.1]\n"
CONFIGURATIONS = {
    "noisy tokens": f"{SA}{NOISE}{UNIFORM}{SOLVE}t_span = [0, 4]\ndt = 0.02\nrng = 2\n",
    "study": f"{USA}{NOISE}[space]\nkind = 'Circle'\ndegree = 16\n{FOURIER}"
    "[chaos]\nsizes = [32, 128]\ntimes = [0.5, 2.0]\nreplicas = 12\nrng = 3\ndt = 0.02\n",
    "circle": f"{SA}{NOISE}[space]\nkind = 'Circle'\ndegree = 128\n{FOURIER}"
    f"{SOLVE}t_span = [0, 2000]\nrtol = 1e-12\n",
    "sphere": f"{USA}{NOISE}[space]\nkind = 'Sphere'\ndegree = 16\n[initial]\nkind = 'Perturbed'\n"
    f"amplitude = 0.01\nrng = 1\n{SOLVE}t_span = [0, 8]\nrtol = 1e-11\n",
    "zonal": f"{USA}{NOISE}{ZONAL}[initial]\nkind = 'Legendre'\ncoefficients = [0.5]\n"
    f"{SOLVE}t_span = [0, 60]\nrtol = 1e-12\n",
    "characteristics": f"{USA}{ZONAL}[initial]\nkind = 'AlongCharacteristics'\n"
    "law = { kind = 'Legendre', coefficients = [0.5] }\n"
    f"{SOLVE}t_span = [0, 10]\nrtol = 1e-12\n",
    "tokens": f"{SA}{UNIFORM}{SOLVE}t_span = [0, 400]\nrtol = 1e-12\n",
    "layers": f"{SA}{UNIFORM}{SOLVE}t_span = [0, 20]\ndt = 0.1\nscheme = 'Layers'\n".replace(
        "t_eval = { kind = 'Linspace', count = 41 }\n", ""
    ),
    "merging": f"{SA}{UNIFORM}{SOLVE}t_span = [0, 400]\nrtol = 1e-10\nmerge = 1e-3\n",
    "gram": f"{SA}[initial]\nkind = 'Gram'\nG = {{ kind = 'Uniform', n = 64, d = 5, rng = 1 }}\n"
    f"{SOLVE}t_span = [0, 60]\nrtol = 1e-12\n",
    "gaussian": "[model.drift]\nkind = 'Attention'\nQ = [[0.6, 0.8]]\nK = [[-0.6, -0.8]]\n"
    "[initial]\nkind = 'Gaussian'\nmean = [0.5, 0.0]\ncov = [[1.0, 0.4], [0.4, 0.6]]\n"
    f"{SOLVE}t_span = [0, 60]\nrtol = 1e-12\n",
    "equiangular": f"{SA}[initial]\nkind = 'Equiangular'\nn = [8, 1e3, 1e9]\nrho = 0.0\n"
    f"{SOLVE}t_span = [0, 1e4]\nrtol = 1e-13\n",
}
IN_THE_SUITE = ("noisy tokens", "study")


class Command:
    """`meanfield solve` or `chaos` of a configuration, in a folder."""

    def __init__(self, name, folder):
        folder.mkdir()
        (folder / "run.toml").write_text(CONFIGURATIONS[name])
        self.work = "chaos" if name == "study" else "solve"
        self.folder, self.out = folder, folder / "run.nc"

    def start(self):
        command = [sys.executable, "-m", "meanfield", self.work, "run.toml", "-q", "--resume"]
        said = open(self.folder / "said.txt", "wb")
        with said:
            return subprocess.Popen(command, cwd=self.folder, stdout=said, stderr=said)

    def killed_after(self, seconds):
        """Whether it was killed; else it had ended by itself."""
        process = self.start()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
        return process.wait() == -signal.SIGKILL

    @property
    def over(self):
        return self.out.exists() and not self.out.with_name("run.nc.checkpoint").exists()

    def result(self):
        return contents(mf.load(self.out), BY_THE_CLOCK)


@pytest.mark.bits
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[pytest.mark.long] * (n in ("study", "noisy tokens")))
        for n in CONFIGURATIONS
    ],
)
def test_a_command_that_is_killed_and_resumed_gives_the_same_file(attack, name, tmp_path):
    if not (attack.long or name in IN_THE_SUITE):
        attack.skip("make attack")
    whole = Command(name, tmp_path / "whole")
    began = time.monotonic()
    assert whole.start().wait(120) == 0, (whole.folder / "said.txt").read_text()
    length, expected = time.monotonic() - began, whole.result()
    chance, kills, asked = random.Random(name), 0, attack.rounds(1, 9)
    for number in range(2 * asked):  # some end before they are killed
        broken = Command(name, tmp_path / f"broken{number}")
        while kills < asked and broken.killed_after(chance.uniform(0.2, 0.9) * length):
            kills += 1
            attack.saw("killed")
            if broken.over:
                break
        finished(attack, name, broken, expected)
        if kills >= asked:
            break


def finished(attack, name, broken, expected):
    """Resume a run that was killed, and compare it with the unbroken one."""
    if not broken.over:
        code = broken.start().wait(120)
        if code != 0:
            said = (broken.folder / "said.txt").read_text()
            return attack.failed("cannot be resumed", f"{name}: exit code {code}, {said}")
    found = broken.result()
    different = differences(expected, found)
    left = sorted(p.name for p in broken.folder.iterdir())
    if different:
        attack.failed("another result", f"{name}: {different}")
    elif set(left) - {"run.toml", "run.nc", "run.png", "said.txt"}:
        attack.failed("something is left", f"{name}: {left}")
    else:
        attack.saw("resumed to the same file")
    return None


# While something is written ----------------------------------------------------------------------


def program(*arguments, prefix=(), **options):
    """Start this file as a program."""
    command = [*prefix, sys.executable, __file__, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


def outcomes(attack, process):
    """Count what a program reports."""
    reported = process.communicate(timeout=300)[0]
    assert process.returncode == 0, reported
    attack.report(json.loads(reported.splitlines()[-1]))


@pytest.mark.repeats
@pytest.mark.parametrize(
    "name", ["kill", "full", *(pytest.param(n, marks=pytest.mark.long) for n in ("stop", "flush"))]
)
def test_a_process_that_dies_while_it_writes_leaves_a_whole_file(attack, name, tmp_path):
    """The old one or the new one; and the next write removes what a dead process left."""
    outcomes(attack, program(name, tmp_path, "long" if attack.long else "short"))


@pytest.mark.long
def test_a_process_with_the_same_number_writes_again(attack, tmp_path):
    """In a container every run has the process number 1, dead ones had it too."""
    inside = ["unshare", "--pid", "--fork", "--kill-child"]
    if shutil.which("unshare") is None or subprocess.run([*inside, "true"], check=False).returncode:
        attack.skip("namespaces of process numbers need unshare and the right to use it")
    for _ in range(2):
        killed = program("wait", tmp_path, prefix=inside)
        assert killed.stdout.readline() == "writing as 1\n"
        killed.kill()
        killed.communicate()
        attack.saw("killed while it wrote a checkpoint")
    outcomes(attack, program("resume", tmp_path, prefix=inside))


# What the programs do ----------------------------------------------------------------------------


def changes_files(function, names=CALLS):
    """Whether a function of C has one of the names, and is of a module or of a file on disk."""
    return function.__name__ in names and isinstance(getattr(function, "__self__", None), FILES)


class AtCall:
    """Do something before or after the k-th call that changes files."""

    def __init__(self, number, action, names=CALLS):
        self._left, self._action, self._names = number, action, names

    def __call__(self, _frame, event, function):
        if event in ("c_call", "c_return") and changes_files(function, self._names):
            self._left -= 1
            if self._left == 0:
                sys.setprofile(None)
                self._action()

    def __enter__(self):
        sys.setprofile(self)

    def __exit__(self, *_):
        sys.setprofile(None)


def child_that(work):
    """Do something in a child; how it ended, as of `os.waitpid`."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
    return child


def itself(number):
    return lambda: os.kill(os.getpid(), number)


class Written:
    """A file that is written again and again, with other numbers: a result, or a checkpoint."""

    def __init__(self, kind, folder):
        self.kind, self.folder = kind, folder / kind.replace(" ", "_")
        self.folder.mkdir()
        if kind == "checkpoint":
            self.path = self.folder / "run.checkpoint"
            resumed(self.path, max_steps=2)
        else:
            self.path = self.folder / "result.nc"
            self._old, self._new = RESULTS["circle"](), RESULTS[kind]()
            self._old.save(self.path)
        self.both = [self.content()]
        shutil.copy(self.path, folder / "old")
        self.old = folder / "old"
        self.write()
        self.both.append(self.content())

    def reset(self):
        """The old file."""
        shutil.copy(self.old, self.path)

    def write(self):
        """Write the new file."""
        resumed(self.path, max_steps=6) if self.kind == "checkpoint" else self._new.save(self.path)

    def content(self):
        """What is in the file; what a result is of, tells its loader."""
        if self.kind == "checkpoint":
            copy = shutil.copy(self.path, self.folder.parent / "copy")
            return contents(resumed(copy, max_steps=1), BY_THE_CLOCK)
        return contents(mf.load(self.path))

    def checked(self, what):
        """Whether the file is the old one or the new one."""
        try:
            found = self.content()
        except Exception as error:
            return f"FAILED {type(error).__name__}", f"{what}: {error}"
        if found not in self.both:
            return "FAILED neither the old file nor the new one", what
        return ("the old file" if found == self.both[0] else "the new file"), what

    def left_over(self):
        """What is in the folder besides."""
        return sorted(p.name for p in self.folder.iterdir() if p != self.path)

    def next_write(self):
        """Whether a write that nothing disturbs removes what is left over."""
        before = self.left_over()
        self.write()
        if self.left_over():
            return "FAILED left over", f"{self.kind}: {self.left_over()} of {before}"
        return f"{'nothing' if not before else 'files of dead processes'} cleaned up", ""


def killed_at_every_call(written, every):
    """SIGKILL before and after every call that changes files."""
    for number in range(1, MOST, every):
        written.reset()
        with_kill = AtCall(number, itself(signal.SIGKILL))

        def work(with_kill=with_kill):
            with with_kill:
                written.write()

        status = os.waitpid(child_that(work), 0)[1]
        if os.WIFEXITED(status):
            yield from [] if status == 0 else [("FAILED exception", f"{written.kind} {number}")]
            break
        yield written.checked(f"{written.kind}, killed at call {number}")
    assert number > 4, "no calls were seen"
    yield written.next_write()


def killed_at_a_size(written):
    """Killed by the system in the middle of a write, at some length of the file."""
    size = written.path.stat().st_size
    for part in (0.0, 0.5, 0.9):  # sizes differ by some bytes: they hold times

        def work(limit=int(part * size)):
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            written.write()

        written.reset()
        status = os.waitpid(child_that(work), 0)[1]
        if not os.WIFSIGNALED(status):
            yield "FAILED not killed", f"{written.kind}: {status}"
        yield written.checked(f"{written.kind}, killed at {part:g} of its length")
    yield written.next_write()


def stopped_at_every_call(written, every):
    """A process that is stopped while it writes, and goes on after another one has written."""
    for number in range(1, MOST, every):
        written.reset()
        stop = AtCall(number, itself(signal.SIGSTOP))

        def work(stop=stop):
            with stop:
                written.write()

        child = child_that(work)
        status = os.waitpid(child, os.WUNTRACED)[1]
        if os.WIFEXITED(status):
            break
        try:
            written.write()
            answer = "both wrote"
        except mf.CheckpointError:
            answer = "the second was refused"
        os.kill(child, signal.SIGCONT)
        if os.waitpid(child, 0)[1]:
            yield "FAILED a living process could not write", f"{written.kind}, call {number}"
        outcome, what = written.checked(f"{written.kind}, stopped at call {number}")
        yield (outcome, what) if outcome.startswith("FAILED") else (answer, what)
    yield written.next_write()


def flushed(written):
    """The file is flushed to the disk, then renamed, then its folder is flushed."""
    seen = []

    def note(_frame, event, function):
        if event == "c_call" and function.__name__ in ("fsync", "fdatasync", "replace", "rename"):
            seen.append(function.__name__)

    written.reset()
    sys.setprofile(note)
    try:
        written.write()
    finally:
        sys.setprofile(None)
    order = " ".join(seen).replace("fdatasync", "fsync").replace("rename", "replace")
    good = "fsync replace fsync" in order
    yield ("flushed to disk" if good else "FAILED not flushed to disk"), f"{written.kind}: {order}"


def main(name, folder, length="long"):
    folder = Path(folder)
    if name in ("wait", "resume"):
        return as_process_one(name, folder)
    kinds = ["checkpoint", "circle", *(["study", "diagram"] if length == "long" else [])]
    found = []
    for kind in kinds:
        written = Written(kind, folder)
        if name == "kill":
            found += killed_at_every_call(written, 1 if length == "long" else 5)
        elif name == "full":
            found += killed_at_a_size(written)
        elif name == "stop":
            found += stopped_at_every_call(written, 1 if length == "long" else 7)
        else:
            found += flushed(written)
    print(json.dumps(found))
    return None


def as_process_one(name, folder):
    """A run that stops while it writes a checkpoint, or one that goes on from there."""
    path = folder / "run.checkpoint"

    def tell():
        print(f"writing as {os.getpid()}", flush=True)
        time.sleep(60)

    if name == "wait":
        with AtCall(1, tell, ("replace", "rename")):
            resumed(path, checkpoint_every=0)
    else:
        same = contents(resumed(path), BY_THE_CLOCK) == contents(
            run(CIRCLE.density(bump), kappa=3.0), BY_THE_CLOCK
        )
        left = sorted(p.name for p in folder.iterdir())
        good = same and left == ["run.checkpoint"]
        print(json.dumps([["resumed" if good else "FAILED not the same, or left over", str(left)]]))


if __name__ == "__main__":
    main(*sys.argv[1:])
