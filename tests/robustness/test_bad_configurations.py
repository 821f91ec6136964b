"""Configurations that are wrong in every way: one message, an exit code, and never a traceback.

Values, keys, bytes and names of files are changed, one thing at a time, and the command line is
called with what comes of it.
"""

import json
import os
import signal
import subprocess
import sys
import tomllib
from functools import reduce
from operator import getitem
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from meanfield.app.cli import main
from meanfield.app.tasks import TASKS

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 10
RUN = """
[model]
kappa = 3.0
[model.drift]
kind = "USA"
beta = 1.0
[space]
kind = "Circle"
degree = 16
[initial]
kind = "Fourier"
cos = [0.3, 0.1]
[solve]
t_span = [0.0, 0.05]
rtol = 1e-6
[solve.t_eval]
kind = "Linspace"
count = 3
"""
TOKENS = """
[model]
kappa = 3.0
[model.drift]
kind = "Attention"
beta = 1.0
[model.drift.V]
kind = "GOE"
rng = 3
[initial]
kind = "Tokens"
masses = [0.5, 0.25, 0.25]
[initial.x]
kind = "Uniform"
n = 3
d = 3
rng = 1
[solve]
t_span = [0.0, 0.05]
dt = 0.01
rng = 2
"""
STUDY = """
[model]
drift = "Kuramoto"
kappa = 1.0
[space]
kind = "Circle"
degree = 16
[initial]
kind = "Fourier"
cos = [0.5]
[chaos]
sizes = [8, 16]
times = [0.0, 0.1]
replicas = 4
rng = 3
dt = 0.05
coupling = false
"""
BRANCHES = """
drift = "Kuramoto"
[space]
kind = "Circle"
degree = 16
[bifurcation]
kappa = [1.5, 2.5]
max_step = 0.5
save_at = [2.2]
"""
PLANE = """
drifts = ["USA"]
[space]
kind = "Circle"
degree = 16
[phase_diagram]
beta = [1.0, 1.3]
degrees = [1]
"""
BASES = {"run": RUN, "tokens": TOKENS, "study": STUDY, "branches": BRANCHES, "plane": PLANE}
VALUES = [
    *("0", "-1", "1", "0.5", "-0.0", "1e300", "1e-300", "1e999", "inf", "-inf", "nan", "true"),
    *("9" * 400, "9" * 5000, "1" + "0" * 18, "0xff", '""', '"x"', f'"{"x" * 5000}"', '"é"'),
    *(r'"\u0000"', r'"a/b"', '"USA"', "1979-05-27T07:32:00Z", "1979-05-27", "07:32:00"),
    *("[]", "{}", "[0.0]", '["a"]', "[1, [2, 3]]", "[true]", "[inf, nan]", "[[1.0, 2.0], [3.0]]"),
    *("[" * 70 + "]" * 70, "[" * 900 + "]" * 900, '{ kind = "Uniform" }', "{ kind = 3 }"),
    *('{ kind = "FromFile", file = "nowhere.npy" }', "{ array = 1 }", '{ function = "f" }'),
    *(f"[{', '.join(['1.0'] * 100)}]", '[{ kind = "GOE", rng = 1 }]', "[1979-05-27]"),
]


def in_toml(data):
    """Plain data in one line of TOML."""
    if isinstance(data, dict):
        return f"{{ {', '.join(f'{json.dumps(k)} = {in_toml(v)}' for k, v in data.items())} }}"
    if isinstance(data, list):
        return f"[{', '.join(map(in_toml, data))}]"
    return data.text if isinstance(data, Raw) else json.dumps(data)


class Raw:
    """Text that stands in the file as it is."""

    def __init__(self, text):
        self.text = text


def places(data, at=()):
    """All keys, as paths."""
    for key, value in data.items():
        yield (*at, key)
        if isinstance(value, dict):
            yield from places(value, (*at, key))


def with_value(base, place, text):
    """A configuration in which something else stands at one key."""
    data = tomllib.loads(BASES[base])
    *above, last = place
    reduce(getitem, above, data)[last] = Raw(text)
    return "\n".join(f"{key} = {in_toml(value)}" for key, value in data.items())


def with_key(base, place, key):
    """A configuration in which one key has another name, or none."""
    data = tomllib.loads(BASES[base])
    *above, last = place
    table = reduce(getitem, above, data)
    value = table.pop(last)
    if key is not None:
        table[key] = value
    return "\n".join(f"{json.dumps(key)} = {in_toml(value)}" for key, value in data.items())


def with_bytes(base, rng):
    """A configuration with some bytes changed, left out, or put in."""
    text = bytearray(BASES[base].encode())
    for _ in range(int(rng.integers(1, 4))):
        at, how = int(rng.integers(len(text))), int(rng.integers(3))
        if how == 0:
            text[at] = int(rng.integers(256))
        elif how == 1:
            del text[at : at + int(rng.integers(1, 20))]
        else:
            text[at:at] = bytes(rng.integers(256, size=int(rng.integers(1, 5)), dtype=np.uint8))
    return bytes(text)


def trials():
    """(base, what was done, the file) of everything that is tried."""
    keys = [None, "", "é", "kapa", "x" * 5000, "__class__", "a.b", "kind"]
    for base in BASES:
        for place in places(tomllib.loads(BASES[base])):
            name = ".".join(place)
            for text in VALUES:
                yield base, f"{name} = {text[:40]}", with_value(base, place, text).encode()
            for key in keys:
                yield base, f"{name} -> {str(key)[:40]!r}", with_key(base, place, key).encode()
        for seed in range(60):
            yield base, f"bytes {seed}", with_bytes(base, np.random.default_rng(seed))
        text = BASES[base]
        yield base, "BOM", text.encode("utf-8-sig")
        yield base, "UTF-16", text.encode("utf-16")
        yield base, "Latin-1", f'title = "é"\n{text}'.encode("latin-1")
        yield base, "CRLF", text.replace("\n", "\r\n").encode()
        yield base, "twice", (text + text).encode()
        yield base, "empty", b""
        yield base, "zeros", bytes(1000)
        yield base, "900 tables", text.encode() + f"[{'.'.join('a' * 900)}]".encode()


def command_of(base):
    works = [work for work in TASKS if f"[{work}]" in BASES[base]]
    return works[0].replace("_", "-")


class TooSlow(BaseException):
    """What nothing catches."""


def too_slow(*_):
    raise TooSlow


def judged(base, content, folder, seconds=SECONDS):
    """What comes of a file; a failure begins with FAILED."""

    config = folder / "bad.toml"
    config.write_bytes(content)
    before = signal.signal(signal.SIGPROF, too_slow)
    signal.setitimer(signal.ITIMER_PROF, seconds)  # of the processor
    try:
        out = ["--out", str(folder / "out.nc"), "--force", "--quiet"]
        result = CliRunner().invoke(main, [command_of(base), str(config), *out])
    except TooSlow:
        return f"FAILED: more than {seconds} s"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return outcome(result.exit_code, result.stderr, result.exception)


def outcome(code, said, error=None):
    if "Traceback" in said or not isinstance(error, SystemExit | None):
        return f"FAILED: a traceback: {error!r} {said[-500:]}"
    if code not in (0, 1, 2):
        return f"FAILED: exit code {code}: {said[-500:]}"
    if code and not said.strip():
        return f"FAILED: exit code {code} without a word"
    if len(said) > 5000 or "\0" in said:
        return f"FAILED: a message of {len(said)} characters: {said[:200]}"
    return ("accepted", "ended early", "refused")[code]


@pytest.mark.parametrize("base", BASES)
def test_what_is_changed_was_right(base, tmp_path):
    """So that what is refused is refused for what was changed."""
    content = BASES[base].encode("utf-8-sig")
    assert judged(base, content, tmp_path, seconds=100) == "accepted"


def test_bad_configurations(attack, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = list(trials())
    chosen = np.random.default_rng(0).permutation(len(found))[: attack.rounds(60, len(found))]
    for base, what, content in (found[i] for i in chosen):
        came = judged(base, content, tmp_path)
        if came.startswith("FAILED: "):
            attack.failed(came.removeprefix("FAILED: "), f"{base}: {what}")
        else:
            attack.saw(came)


# Files that are none -----------------------------------------------------------------------------


def started(arguments, folder, **environment):
    """Exit code and stderr of the command in a process of its own."""
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "meanfield", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths} | environment,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr.decode(errors="backslashreplace")


def make_pipe(path):
    os.mkfifo(path)


def make_loop(path):
    path.symlink_to(path)


@pytest.mark.parametrize("make", [Path.mkdir, make_pipe, make_loop], ids=lambda f: f.__name__)
def test_what_is_no_file_is_refused(make, tmp_path):
    make(tmp_path / "run.toml")
    result = CliRunner().invoke(main, ["solve", str(tmp_path / "run.toml")])
    assert outcome(result.exit_code, result.stderr, result.exception) == "refused"
    assert "run.toml" in result.stderr


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null", "x" * 5000, "x/" * 2500 + "x", ""])
def test_names_that_are_no_files_are_refused(name):
    result = CliRunner().invoke(main, ["solve", name])
    assert outcome(result.exit_code, result.stderr, result.exception) == "refused"
    result = CliRunner().invoke(main, ["plot", name, "-o", "x.png"])
    assert outcome(result.exit_code, result.stderr, result.exception) == "refused"


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize("there", [True, False], ids=["there", "not there"])
def test_names_that_are_no_utf_8(there, tmp_path):
    """The name is not to be written on this terminal: it is escaped."""
    name = os.fsdecode(b"r\xff\xe9n.toml")
    if there:
        (tmp_path / name).write_text(f'title = "é"\n{RUN}', encoding="utf-8")
    code, said = started(["solve", name], tmp_path, **ASCII)
    assert outcome(code, said) == ("accepted" if there else "refused"), said
