"""How commands end: a message and an exit code, whatever happens, and a traceback on demand."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import meanfield.app.configuration as configuration
from meanfield.app.cli import main

ROOT = Path(__file__).resolve().parents[2]
CONFIG = """
model = { drift = { kind = "USA", beta = 1.0 }, kappa = 3.0 }
space = { kind = "Circle", degree = 16 }
initial = { kind = "Fourier", cos = [0.2] }
solve = { t_span = [0, 0.1] }
"""
OWN = """
import meanfield as mf

class Brittle(mf.ZonalDrift):
    a: float = 1.0

    def slope(self, t):
        return {}[3]
"""


def called(*arguments, folder, config=CONFIG):
    file = folder / "run.toml"
    file.write_text(config)
    return CliRunner().invoke(main, [*arguments, "solve", str(file), "--out", str(folder / "r.nc")])


ENDS = {  # by what is raised: the exit code, and what is said
    "memory": (MemoryError("too much"), 2, "not enough memory: too much"),
    "full disk": (OSError(errno.ENOSPC, "No space left", "fig.png"), 2, "fig.png: No space left"),
    "interrupt": (KeyboardInterrupt(), 1, "interrupted"),
    "recursion": (RecursionError("too deep"), 70, "RecursionError: too deep"),
    "defect": (KeyError("x"), 70, "KeyError: 'x'"),
    "no pipe": (BrokenPipeError(errno.EPIPE, "Broken pipe"), 1, ""),
}


@pytest.mark.parametrize(("error", "code", "said"), ENDS.values(), ids=ENDS)
def test_what_ends_a_command_has_its_exit_code(error, code, said, tmp_path, monkeypatch):
    def fail(*_given, **_named):
        raise error

    monkeypatch.setattr(configuration, "run_config", fail)
    result = called(folder=tmp_path)
    assert (result.exit_code, "Traceback" in result.stderr) == (code, False)
    assert said in result.stderr
    assert ("defect of meanfield" in result.stderr) == (code == 70)


@pytest.mark.parametrize("how", ["option", "variable"])
def test_the_traceback_is_shown_on_demand(how, tmp_path, monkeypatch):
    def fail(*_given, **_named):
        raise KeyError("x")

    monkeypatch.setattr(configuration, "run_config", fail)
    if how == "variable":
        monkeypatch.setenv("MEANFIELD_TRACEBACK", "1")
    result = called(*(["--traceback"] if how == "option" else []), folder=tmp_path)
    assert result.exit_code == 70
    assert "Traceback" in result.stderr and "in fail" in result.stderr


def test_errors_of_code_that_was_imported_name_its_line(tmp_path, monkeypatch):
    (tmp_path / "brittle.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    config = CONFIG.replace('kind = "USA", beta = 1.0', 'kind = "Brittle"')
    result = called("--import", "brittle.py", folder=tmp_path, config=config)
    assert result.exit_code == 2
    assert "--import brittle.py, line 8: KeyError: 3" in result.stderr


def started(*arguments, **options):
    command = [sys.executable, "-m", "meanfield", *arguments]
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = os.environ | {"PYTHONPATH": paths}
    return subprocess.Popen(command, env=env, stderr=subprocess.PIPE, **options)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device here")
def test_a_full_disk_under_what_is_printed():
    with open("/dev/full", "w") as full, started("schema", stdout=full) as process:
        said = process.communicate(timeout=60)[1].decode()
    assert "Traceback" not in said
    assert "No space left" in said
    assert process.returncode == 2


def test_nobody_reads_what_is_printed():
    with started("schema", stdout=subprocess.PIPE) as process:
        process.stdout.close()
        said = process.stderr.read().decode()
        assert process.wait(timeout=60) == 1
    assert said == ""
