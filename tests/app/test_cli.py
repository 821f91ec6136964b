"""The command line, from a configuration file to a result, its figure, and its resumption."""

import inspect
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from meanfield.app.config import parse_config, read_config, run_config, schema
from meanfield.app.config.build import build_density, build_model, solve_arguments
from meanfield.app.config.schema import KINDS
from meanfield.app.config.solve_table import FOR_TOKENS
from meanfield.app.environment import OPTIONAL, REQUIRED
from meanfield.results.storage import load

import meanfield as mf
from meanfield.app.cli import main

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "configuration.md"

CONFIG = """
title = "a small run"
[model]
drift = "USA"
beta = 1.0
kappa = 3.0
[geometry]
degree = 16
[initial]
kind = "fourier"
cos = [0.2]
[solve]
t_end = 0.5
outputs = 6
"""
# Without noise the density collapses: 16 modes hold it for a short time only.
COLLAPSE = CONFIG.replace("kappa = 3.0", "").replace("t_end = 0.5", "t_end = 9.0\nmax_degree = 16")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working directory with run.toml in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text(CONFIG)
    return tmp_path


def meanfield(*arguments, code=0):
    """Standard output and standard error of a command, which must exit with `code`."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    assert "Traceback" not in result.output
    return result.stdout, result.stderr


def same_bits(one, other):
    """Whether two solutions agree in every bit."""
    pairs = zip(one.states, other.states, strict=True)
    return np.array_equal(one.t, other.t) and all(
        np.array_equal(a.coefficients, b.coefficients) for a, b in pairs
    )


# Solving -----------------------------------------------------------------------------------


def test_the_command_gives_what_python_gives(folder):
    meanfield("solve", "run.toml")
    config = read_config("run.toml")
    by_hand = mf.solve(build_model(config), build_density(config), **solve_arguments(config))
    run = load(folder / "run.nc")
    assert same_bits(run, by_hand)
    assert run.status == "finished" and np.array_equal(run.t, np.linspace(0, 0.5, 6))


def test_a_run_can_be_repeated_from_its_result_alone(folder):
    run_config(read_config("run.toml"), "run.nc")
    run = load(folder / "run.nc")
    assert run.provenance["config_file"] == "run.toml"
    assert same_bits(run, run_config(parse_config(run.provenance["config"])))


def test_the_result_records_which_data_it_was_made_from(folder):
    angles = np.random.default_rng(0).vonmises(0.0, 1.0, 100)
    np.savetxt("angles.csv", angles)
    sample = 'kind = "sample"\nfile = "angles.csv"\nbandwidth = 0.6\n'
    text = CONFIG.replace('kind = "fourier"\ncos = [0.2]\n', sample)
    (folder / "run.toml").write_text(text.replace("degree = 16", "degree = 32"))
    before = run_config(read_config("run.toml")).provenance["data_files"]["angles.csv"]
    np.savetxt("angles.csv", angles[:-1])
    after = run_config(read_config("run.toml")).provenance["data_files"]["angles.csv"]
    assert len(before["sha256"]) == 64 and before != after


def test_the_summary_is_of_the_last_time(folder):
    out, err = meanfield("solve", "run.toml", "--out", "a.nc")
    assert "finished: " in out and "wrote a.nc (6 times" in out and err == ""
    names, values = [line.split() for line in out.splitlines()[-2:]]
    order = float(values[names.index("order_parameter")])
    assert order == pytest.approx(abs(load(folder / "a.nc").final.moment(1)), rel=1e-5)
    assert meanfield("solve", "run.toml", "--out", "b.nc", "--quiet") == ("", "")


def test_an_ensemble_is_a_table_with_a_row_for_each_member(folder):
    kappas = ", ".join(f"{3 + i}.0" for i in range(25))
    (folder / "run.toml").write_text(CONFIG.replace("kappa = 3.0", f"kappa = [{kappas}]"))
    out, _ = meanfield("solve", "run.toml")
    rows = out.splitlines()[-22:]
    assert rows[0].split()[0] == "kappa" and rows[1].split()[0] == "3"
    assert rows[-1] == "... and 5 more members in the file"


def test_the_checkpoint_goes_when_the_run_succeeds_and_stays_when_it_does_not(folder):
    meanfield("solve", "run.toml")
    assert not Path("run.nc.checkpoint").exists()
    (folder / "run.toml").write_text(COLLAPSE)
    meanfield("solve", "run.toml", "--force", code=1)
    assert Path("run.nc.checkpoint").exists() and load(folder / "run.nc").status == "unresolved"


def test_an_unresolved_run_says_so_once_and_exits_with_1(folder):
    (folder / "run.toml").write_text(COLLAPSE)
    out, err = meanfield("solve", "run.toml", code=1)
    assert "NOT COMPLETE" in out and "NOT RESOLVED" in out and err.count("Characteristics") == 1
    assert not load(folder / "run.nc").resolved


def test_a_killed_run_resumes_to_the_same_bits(folder):
    """SIGKILL leaves no time to tidy up; an ensemble on many modes takes seconds."""
    kappas = ", ".join(f"{2 + i / 10}" for i in range(40))
    text = CONFIG.replace("kappa = 3.0", f"kappa = [{kappas}]").replace("t_end = 0.5", "t_end = 20")
    end = "min_degree = 256\nrtol = 1e-10\n[checkpoint]\nevery = 0.1\n"
    (folder / "run.toml").write_text(text + end)
    command = [sys.executable, "-m", "meanfield", "solve", "run.toml", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment) as process:
        while not Path("run.nc.checkpoint").exists() and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL and not Path("run.nc").exists()
    meanfield("solve", "run.toml", "--resume", "--quiet")
    meanfield("solve", "run.toml", "--out", "unbroken.nc", "--quiet")
    resumed, unbroken = load(folder / "run.nc"), load(folder / "unbroken.nc")
    assert len(unbroken) == 6 and same_bits(resumed, unbroken)


# Refusing ----------------------------------------------------------------------------------


def test_an_existing_result_is_kept_unless_told(folder):
    meanfield("solve", "run.toml")
    before = Path("run.nc").read_bytes()
    assert "run.nc exists. Use --force" in meanfield("solve", "run.toml", code=2)[1]
    assert "nothing to resume" in meanfield("solve", "run.toml", "--resume", code=2)[1]
    assert Path("run.nc").read_bytes() == before
    meanfield("solve", "run.toml", "--force")


def test_resume_without_a_checkpoint_starts_and_says_so(folder):
    assert "starting from the beginning" in meanfield("solve", "run.toml", "--resume")[1]


def test_a_checkpoint_of_another_run_is_refused(folder):
    (folder / "run.toml").write_text(COLLAPSE)
    meanfield("solve", "run.toml", code=1)
    (folder / "run.toml").write_text(CONFIG.replace("beta = 1.0", "beta = 1.5"))
    with pytest.raises(mf.CheckpointError):
        run_config(read_config("run.toml"), "run.nc", resume=True)
    assert "checkpoint" in meanfield("solve", "run.toml", "--resume", code=2)[1]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["solve", "gone.toml"], r"gone.toml: there is no such configuration file"),
        (["solve", "bad.toml"], r"bad.toml: model.bta: unknown key; did you mean beta\?"),
        (["solve", "run.toml", "--out", "no/run.nc"], r"no/run.nc: there is no folder"),
        (["solve", "run.toml", "--out", "run.toml", "--force"], r"expected a new name"),
        (["solve", "run.toml", "--owt", "run.nc"], r"No such option.*--owt"),
        (["plot", "gone.nc", "-o", "fig.png"], r"gone.nc"),
        (["plot", "run.toml", "-o", "fig.png"], r"run.toml"),
        (["plot", "small.nc", "-o", "fig.xyz"], r"fig.xyz: .*not supported"),
        (["plot", "small.nc", "-o", "no/fig.png"], r"no/fig.png: there is no folder"),
        (["plot", "small.nc", "-o", "fig.png", "--kind", "pie"], r"'overview'.*got 'pie'"),
        (["plot", "small.nc", "-o", "fig.gif", "--kind", "polar"], r"--kind is for figures"),
    ],
    ids=str,
)
def test_bad_input_is_one_message_and_exit_code_2(folder, arguments, message):
    (folder / "bad.toml").write_text(CONFIG.replace("beta", "bta"))
    if "small.nc" in arguments:
        run_config(read_config("run.toml"), "small.nc")
    out, err = meanfield(*arguments, code=2)
    assert out == "" and re.search(message, err), err
    assert Path("run.toml").read_text() == CONFIG


# Looking -----------------------------------------------------------------------------------


def test_plot_writes_figures_and_movies(folder):
    meanfield("solve", "run.toml", "--quiet")
    begins = {"a.png": b"\x89PNG", "b.pdf": b"%PDF", "c.gif": b"GIF8"}
    for name, magic in begins.items():
        assert meanfield("plot", "run.nc", "-o", name)[0] == f"wrote {name}\n"
        assert Path(name).read_bytes().startswith(magic)
    meanfield("plot", "run.nc", "-o", "d.png", "--kind", "spacetime")
    assert Path("d.png").read_bytes() != Path("a.png").read_bytes()


def test_doctor_knows_every_dependency_and_names_what_is_missing(monkeypatch):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.match(r"[\w-]+", entry).group() for entry in project["dependencies"]}
    assert names | {"llvmlite"} == set(REQUIRED)
    assert set(OPTIONAL) == {"imageio-ffmpeg"}
    monkeypatch.setitem(REQUIRED, "no-such-package", "none")
    out, _ = meanfield("doctor", code=1)
    assert "no-such-package cannot be imported" in out.splitlines()[-1]
    for fact in ["fftw-3.", "GPL-2.0-or-later", "compiled code is kept in", sys.version.split()[0]]:
        assert fact in out
    json.dumps(mf.doctor())  # plain data


def test_version_and_schema_are_printed():
    assert meanfield("--version")[0].startswith("meanfield ")
    assert json.loads(meanfield("schema")[0]) == schema()


# Documentation -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_is_documented_with_its_default(kind):
    page, root = DOCS.read_text(encoding="utf-8"), schema(kind)
    for table in [root, *root["$defs"].values()]:
        for key, node in table["properties"].items():
            row = re.search(rf"^\| `\[?{key}\]?` \|.*$", page, re.M)
            assert row, f"{table['title']}: {key} is not in {DOCS.name}"
            if isinstance(node.get("default"), int | float | str):
                written = re.findall(rf"^\| `{key}` \|.*\| `([^`]+)` \|", page, re.M)
                assert node["default"] in [tomllib.loads(f"x = {w}")["x"] for w in written], key


def test_the_example_of_the_documentation_is_valid():
    (example,) = re.findall(r"```toml\n(title.*?)```", DOCS.read_text(encoding="utf-8"), re.S)
    config = parse_config(tomllib.loads(example))
    assert config.solve.t_end > 0 and build_density(config).geometry.degree == 128


def test_the_defaults_of_a_file_are_those_of_solve():
    parameters = inspect.signature(mf.solve).parameters
    data = {**tomllib.loads(CONFIG), "solve": {"t_end": 1.0}}
    arguments = solve_arguments(parse_config(data))
    assert np.array_equal(arguments.pop("t_eval"), np.linspace(0, 1, 101))
    assert arguments.pop("t_span") == (0.0, 1.0)
    for name, value in arguments.items():
        assert value == parameters[name].default, name


def test_every_key_of_solve_reaches_solve():
    given = {"t_start": 0.25, "t_end": 2.0, "t_eval": [0.5, 1.0], "rtol": 1e-6, "dt": 0.1}
    given |= {"until": "steady", "steady_tolerance": 1e-3, "max_steps": 9}
    given |= {"min_degree": 8, "max_degree": 64}
    config = parse_config({**tomllib.loads(CONFIG), "solve": given, "checkpoint": {"every": 7.0}})
    assert {*given, "outputs", *FOR_TOKENS} == set(type(config.solve).model_fields)
    arguments = solve_arguments(config)
    assert arguments.pop("t_eval").tolist() == given.pop("t_eval")
    span = (given.pop("t_start"), given.pop("t_end"))
    assert arguments == {"t_span": span, "checkpoint_every": 7.0, **given}


def test_a_checkpoint_is_kept_unless_told(folder):
    (folder / "long.toml").write_text(CONFIG.replace("t_end = 0.5", "t_end = 0.5\nmax_steps = 1"))
    meanfield("solve", "long.toml", code=1)
    (folder / "long.nc").unlink()
    before = (folder / "long.nc.checkpoint").read_bytes()
    err = meanfield("solve", "long.toml", code=2)[1]
    assert "long.nc.checkpoint exists" in err and "--resume to continue it" in err
    assert (folder / "long.nc.checkpoint").read_bytes() == before


def test_an_initial_density_that_is_negative_is_bad_input(folder):
    """16 modes do not hold a von Mises density this narrow: cut off, it is negative."""
    narrow = CONFIG.replace(
        'kind = "fourier"\ncos = [0.2]', 'kind = "von_mises"\nconcentration = 1e4'
    )
    (folder / "run.toml").write_text(narrow)
    err = meanfield("solve", "run.toml", code=2)[1]
    assert "run.toml: initial: A density must not be negative" in err
    assert not (folder / "run.nc").exists()
