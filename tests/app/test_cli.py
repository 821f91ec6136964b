"""The command line: from files to results, figures and exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import meanfield as mf
from meanfield.app import doctor
from meanfield.app.cli import TASK_NAMES, main
from meanfield.app.configuration import parse_config, read_config, run_config, schema
from meanfield.app.doctor import OPTIONAL_PACKAGES, REQUIRED_PACKAGES
from meanfield.core.identity import digest
from meanfield.lowlevel.progress import stopped_when

ROOT = Path(__file__).resolve().parents[2]

DENSITY = """
title = "a small run"
[model]
drift = { kind = "USA", beta = 1.0 }
kappa = 3.0
[space]
kind = "Circle"
degree = 16
[initial]
kind = "Fourier"
cos = [0.2]
[solve]
t_span = [0, 0.5]
t_eval = { kind = "Linspace", count = 6 }
"""
# Without noise the density collapses: 16 modes hold it for a short time only.
COLLAPSE = DENSITY.replace("kappa = 3.0", "").replace("[0, 0.5]", "[0, 9]\nmax_degree = 16")
TOKENS = """
[model]
drift = { kind = "SA", beta = 4.0 }
[initial]
kind = "Tokens"
x = { kind = "Uniform", n = 32, d = 3, rng = 1 }
[solve]
t_span = [0, 1]
t_eval = { kind = "Linspace", count = 5 }
"""
NOISY = TOKENS.replace("beta = 4.0 }", "beta = [1.0, 4.0] }\nkappa = 10.0")
NOISY = NOISY.replace("rng = 1 }", "rng = 1, replicas = 3 }") + "rng = 2\ndt = 0.02\n"
STUDY = """
title = "a small study"
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
times = [0.0, 0.2]
replicas = 4
rng = 3
dt = 0.1
"""
BRANCHES = """
title = "a small diagram"
drift = "Kuramoto"
[space]
kind = "Circle"
degree = 16
[bifurcation]
kappa = [1.5, 3.0]
save_at = [2.5]
"""
PLANE = """
drifts = ["USA", "SA"]
[space]
kind = "Circle"
degree = 16
[phase_diagram]
beta = [2.0, 3.0]
degrees = [1]
"""
FILES = {"run": DENSITY, "tokens": TOKENS, "noisy": NOISY, "study": STUDY}
FILES |= {"diagram": BRANCHES, "plane": PLANE}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working directory with these files in it, run.toml and so on."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / f"{name}.toml").write_text(text)
    return tmp_path


def meanfield(*arguments, code=0):
    """Standard output and standard error of a command, which must exit with `code`."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    assert "Traceback" not in result.output
    return result.stdout, result.stderr


def write(name, text):
    Path(name).write_text(text)


def same_bits(one, other):
    """Whether two solutions agree in every bit."""
    states = zip(one.states, other.states, strict=True)
    return np.array_equal(one.t, other.t) and all(digest(a) == digest(b) for a, b in states)


# meanfield solve -------------------------------------------------------------------------------


def test_a_result_goes_on_to_a_later_time():
    meanfield("solve", "noisy.toml", "--out", "a.nc", "--quiet")
    whole = mf.load("a.nc").extend(2.0)
    out, _ = meanfield("solve", "--extend", "a.nc", "--until", 2, "--out", "b.nc")
    assert "finished: Reached t = 2." in out and "b.nc (9 times" in out
    assert same_bits(mf.load("b.nc"), whole)
    assert mf.load("b.nc").provenance["config"] == mf.load("a.nc").provenance["config"]
    again = ["solve", "--extend", "a.nc", "--until", 2, "--out", "b.nc"]
    assert "exists" in meanfield(*again, code=2)[1]
    meanfield("solve", "--extend", "a.nc", "--until", 2, "--quiet")
    assert same_bits(mf.load("a.nc"), whole)
    assert "never shortened" in meanfield("solve", "--extend", "a.nc", "--until", 1, code=2)[1]


def test_an_interrupted_run_is_told_what_continues_it():
    whole = meanfield("solve", "noisy.toml", "--out", "a.nc")[0]
    with stopped_when(lambda: True):
        said = meanfield("solve", "noisy.toml", "--out", "b.nc", code=1)[1]
        extended = meanfield("solve", "--extend", "a.nc", "--until", 2, code=1)[1]
    assert "states so far are kept. --resume continues the run." in said
    assert "kept. --extend a.nc --until 2 continues the run." in extended
    assert "finished" in whole + meanfield("solve", "noisy.toml", "--out", "b.nc", "--resume")[0]
    meanfield("solve", "--extend", "a.nc", "--until", 2)
    assert not (Path("b.nc.checkpoint").exists()) and mf.load("a.nc").t[-1] == 2
    assert same_bits(mf.load("b.nc").extend(2.0), mf.load("a.nc"))


def test_files_of_a_configuration_with_dense_are_evaluated_at_any_time():
    write("dense.toml", Path("run.toml").read_text().replace("[solve]", "[solve]\ndense = true"))
    meanfield("solve", "dense.toml", "--out", "a.nc")
    run = mf.solve(
        mf.Transformer(mf.USA(1.0), 3.0), mf.load("a.nc")[0], (0, 0.5), t_eval=[0.33, 0.5]
    )
    assert np.array_equal(mf.load("a.nc")(0.33).coefficients, run[0].coefficients)
    meanfield("solve", "--extend", "a.nc", "--until", 2, "--quiet")
    assert np.array_equal(mf.load("a.nc")(0.33).coefficients, run[0].coefficients)
    assert mf.load("a.nc")(1.7).space == mf.load("a.nc").final.space


@pytest.mark.parametrize(
    "words",
    [[], ["--extend", "a.nc"], ["--until", "2"], ["run.toml", "--extend", "a.nc", "--until", "2"]],
)
def test_solve_takes_a_configuration_or_a_result(words):
    assert "--extend RUN.nc --until T" in meanfield("solve", *words, code=2)[1]


def test_extend_says_what_it_takes():
    meanfield("solve", "run.toml", "--out", "a.nc", "--quiet")
    said = meanfield("solve", "run.toml", "--until", 9, code=2)[1]
    assert "--until belongs to --extend" in said and "t_span in run.toml" in said
    said = meanfield("solve", "run.toml", "--extend", "a.nc", code=2)[1]
    assert "run.toml or --extend, not both" in said
    meanfield("bifurcation", "diagram.toml", "--out", "d.nc", "--quiet")
    said = meanfield("solve", "--extend", "d.nc", "--until", 9, code=2)[1]
    assert "d.nc holds a Diagram: --extend takes a run" in said


@pytest.mark.filterwarnings("default")
def test_figures_of_a_file_with_kept_steps_are_of_the_times_asked_for():
    write("dense.toml", Path("run.toml").read_text().replace("[solve]", "[solve]\ndense = true"))
    for config in ("run.toml", "dense.toml"):
        meanfield("solve", config, "--out", "a.nc", "--quiet", "--force")
        said = meanfield("plot", "a.nc", "b.png", "--kind", "polar", "--times", 0.33)[1]
        assert ("no state at t = 0.33." in said) == (config == "run.toml")


def test_the_command_gives_what_python_gives():
    out, err = meanfield("solve", "run.toml", "--out", "a.nc")
    model = mf.Transformer(mf.USA(1.0), 3.0)
    start = mf.Circle(16).density(lambda theta: 1 + 0.2 * np.cos(theta))
    plain_class = mf.solve(model, start, (0, 0.5), t_eval=np.linspace(0, 0.5, 6))
    run = mf.load("a.nc")
    np.testing.assert_allclose(run.final.values, plain_class.final.values, atol=1e-12)
    assert run.status == "finished" and np.array_equal(run.t, np.linspace(0, 0.5, 6))
    assert run.provenance["config_file"] == "run.toml" and run.provenance["imports"] == {}
    assert same_bits(run, run_config(parse_config(run.provenance["config"])))
    assert "finished: " in out and "wrote a.nc (6 times" in out and err == ""
    names, values = [line.split() for line in out.splitlines()[-2:]]
    assert "at t = 0.5, degree 16:" in out
    order = float(values[names.index("order_parameter")])
    assert order == pytest.approx(abs(run.final.moment(1)), rel=1e-5)
    assert meanfield("solve", "run.toml", "--out", "b.nc", "--quiet") == ("", "")
    assert not Path("a.nc.checkpoint").exists()


def test_tokens_move_as_in_python():
    out, err = meanfield("solve", "tokens.toml")
    tokens = mf.Tokens.uniform(32, 3, rng=1)
    plain_class = mf.solve(mf.Transformer(mf.SA(4.0)), tokens, (0, 1), t_eval=np.linspace(0, 1, 5))
    assert same_bits(mf.load("tokens.nc"), plain_class)
    assert "at t = 1, 32 tokens:" in out and "effective_rank" in out and err == ""


def test_noise_is_that_of_the_seed():
    out, _ = meanfield("solve", "noisy.toml")
    run = mf.load("noisy.nc")
    model = mf.Transformer(mf.SA([1.0, 4.0]), 10.0)
    tokens = mf.Tokens(mf.Tokens.uniform(32, 3, rng=1, shape=(3,)).x[:, None])
    plain_class = mf.solve(model, tokens, (0, 1), t_eval=np.linspace(0, 1, 5), dt=0.02, rng=2)
    assert same_bits(run, plain_class) and run.shape == (3, 2)
    config = run.provenance["config"]
    config["initial"]["x"]["rng"] = 9
    assert not same_bits(run, run_config(parse_config(config)))
    # A row of the table for each replica of each member:
    head, *rows = [line.split() for line in out.splitlines()[-7:]]
    assert head[:2] == ["replica", "beta"]
    assert [row[:2] for row in rows] == [[str(i), b] for i in range(3) for b in ("1", "4")]
    order = [float(row[head.index("order_parameter")]) for row in rows]
    expected = run.observables.order_parameter.values[-1].ravel()
    np.testing.assert_allclose(order, expected, rtol=1e-5)


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("initial", "size"),
    [
        ('kind = "Equiangular"\nn = 1e12\nrho = 0.0', "equiangular tokens"),
        ('kind = "Gram"\nG = { kind = "Uniform", n = 8, d = 3, rng = 1 }', "8 tokens"),
        ('kind = "AlongCharacteristics"\nlaw = "Uniform"', "nodes"),
    ],
)
def test_the_table_says_how_large_the_state_is(initial, size):
    text = TOKENS.split("[initial]")[0] + f"[initial]\n{initial}\n[solve]\nt_span = [0, 0.1]\n"
    space = '[space]\nkind = "Circle"\ndegree = 4\n' if "law" in initial else ""
    write("run.toml", text + space)
    assert size in meanfield("solve", "run.toml")[0]


def test_an_ensemble_is_a_table_with_a_row_for_each_member():
    kappas = ", ".join(f"{3 + i}.0" for i in range(25))
    write("run.toml", DENSITY.replace("kappa = 3.0", f"kappa = [{kappas}]"))
    rows = meanfield("solve", "run.toml")[0].splitlines()[-22:]
    assert rows[0].split()[0] == "kappa" and rows[1].split()[0] == "3"
    assert rows[-1] == "... and 5 more members in the file"


def test_an_unresolved_run_says_so_once_keeps_its_checkpoint_and_exits_with_1():
    write("run.toml", COLLAPSE)
    out, err = meanfield("solve", "run.toml", code=1)
    assert "NOT COMPLETE" in out and "NOT RESOLVED" in out and err.count("Characteristics") == 1
    run = mf.load("run.nc")
    assert not run.resolved and run.status == "unresolved" and Path("run.nc.checkpoint").exists()
    write("run.toml", DENSITY.replace("beta = 1.0", "beta = 1.5"))
    with pytest.raises(mf.CheckpointError):
        run_config(read_config("run.toml"), "run.nc", resume=True)
    assert "checkpoint" in meanfield("solve", "run.toml", "--resume", code=2)[1]


@pytest.mark.bits
@pytest.mark.parametrize("name", ["run", "noisy"])
def test_a_run_that_ended_early_goes_on_to_the_same_bits(name):
    """The checkpoint holds the state of the generator: more steps are the unbroken run's."""
    write("cut.toml", FILES[name].replace("[solve]", "[solve]\nmax_steps = 3"))
    meanfield("solve", "cut.toml", "--quiet", code=1)
    before = Path("cut.nc.checkpoint").read_bytes()
    assert mf.load("cut.nc").status == "max_steps"
    Path("cut.nc").unlink()
    err = meanfield("solve", "cut.toml", code=2)[1]
    assert "cut.nc.checkpoint exists" in err and "--resume to continue it" in err
    assert Path("cut.nc.checkpoint").read_bytes() == before
    write("cut.toml", FILES[name])
    meanfield("solve", "cut.toml", "--resume", "--quiet")
    meanfield("solve", f"{name}.toml", "--quiet")
    assert same_bits(mf.load("cut.nc"), mf.load(f"{name}.nc"))
    assert not Path("cut.nc.checkpoint").exists()


def test_a_checkpoint_of_another_seed_is_refused():
    write("cut.toml", NOISY.replace("[solve]", "[solve]\nmax_steps = 3"))
    meanfield("solve", "cut.toml", "--quiet", code=1)
    write("cut.toml", NOISY.replace("rng = 2", "rng = 3"))
    assert "checkpoint" in meanfield("solve", "cut.toml", "--resume", code=2)[1]


@pytest.mark.bits
@pytest.mark.parametrize("name", ["run", pytest.param("noisy", marks=pytest.mark.long)])
def test_a_killed_run_resumes_to_the_same_bits(name):
    """SIGKILL leaves no time to tidy up; thousands of steps take seconds."""
    text = NOISY.replace("dt = 0.02", "dt = 0.0005").replace("n = 32", "n = 8")
    if name == "run":
        kappas = ", ".join(f"{2 + i / 10}" for i in range(20))
        text = DENSITY.replace("kappa = 3.0", f"kappa = [{kappas}]").replace("[0, 0.5]", "[0, 10]")
        text += "min_degree = 256\nrtol = 1e-10\n"
    write("long.toml", text.replace("[solve]", "[solve]\ncheckpoint_every = 0.01"))
    command = [sys.executable, "-m", "meanfield", "solve", "long.toml", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment) as process:
        while not Path("long.nc.checkpoint").exists() and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL and not Path("long.nc").exists()
    meanfield("solve", "long.toml", "--resume", "--quiet")
    meanfield("solve", "long.toml", "--out", "unbroken.nc", "--quiet")
    assert same_bits(mf.load("long.nc"), mf.load("unbroken.nc"))


def test_an_existing_result_is_kept_unless_told():
    meanfield("solve", "run.toml")
    before = Path("run.nc").read_bytes()
    assert "run.nc exists. Use --force" in meanfield("solve", "run.toml", code=2)[1]
    assert "nothing to resume" in meanfield("solve", "run.toml", "--resume", code=2)[1]
    assert Path("run.nc").read_bytes() == before
    meanfield("solve", "run.toml", "--force")
    Path("run.nc").unlink()
    assert "starting from the beginning" in meanfield("solve", "run.toml", "--resume")[1]


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "gone.toml"], r"gone.toml: there is no such configuration file"),
        (["solve", "bad.toml"], r"bad.toml: model.drift.bta: unknown key; did you mean beta\?"),
        (["solve", "negative.toml"], r"negative.toml: initial: A density must not be negative"),
        (
            ["solve", "run.toml", "--out", "no/run.nc"],
            r"folder .*no does not exist; create it first",
        ),
        (["solve", "run.toml", "--out", "run.toml", "--force"], r"expected a new name"),
        (["solve", "run.toml", "--out", "run.csv"], r"--out must be a file \*\.nc"),
        (["solve", "run.toml", "--owt", "run.nc"], r"No such option.*--owt"),
        (["plot", "gone.nc", "-o", "fig.png"], r"gone.nc does not exist"),
        (["plot", "gone.nc"], r"gone.nc does not exist"),
        (["plot", "run.toml", "-o", "fig.png"], r"run.toml"),
        (["plot", "small.nc", "-o", "fig.xyz"], r"fig.xyz: .*not supported"),
        (["plot", "small.nc", "-o", "no/fig.png"], r"folder .*no does not exist; create it first"),
        (["plot", "small.nc", "-o", "fig.png", "--kind", "pie"], r"overview.*'pie'"),
        (
            ["plot", "small.nc", "-o", "fig.gif", "--kind", "polar"],
            r"'kind' is no option of a movie",
        ),
    ],
    ids=str,
)
def test_bad_input_is_one_message_and_exit_code_2(arguments, message):
    write("bad.toml", DENSITY.replace("beta", "bta"))
    write("negative.toml", DENSITY.replace("[0.2]", "[1.2]"))
    if "small.nc" in arguments:
        run_config(read_config("run.toml"), "small.nc")
    out, err = meanfield(*arguments, code=2)
    assert out == "" and re.search(message, err), err
    assert Path("run.toml").read_text() == DENSITY
    assert not Path("bad.nc").exists() and not Path("negative.nc").exists()


def test_files_of_other_commands_are_sent_there():
    commands = {
        "run": "solve",
        "study": "chaos",
        "diagram": "bifurcation",
        "plane": "phase-diagram",
    }
    for name, right in commands.items():
        for wrong in set(commands.values()) - {right}:
            err = meanfield(wrong, f"{name}.toml", code=2)[1]
            assert f"use meanfield {right} {name}.toml" in err


# meanfield plot, doctor, schema ----------------------------------------------------------------


@pytest.mark.long
def test_plot_writes_figures_and_movies():
    meanfield("solve", "run.toml", "--quiet")
    begins = {"a.png": b"\x89PNG", "b.pdf": b"%PDF", "c.gif": b"GIF8"}
    for name, magic in begins.items():
        assert meanfield("plot", "run.nc", "-o", name)[0] == f"wrote {name}\n"
        assert Path(name).read_bytes().startswith(magic)
    meanfield("plot", "run.nc", "-o", "d.png", "--kind", "spacetime")
    assert Path("d.png").read_bytes() != Path("a.png").read_bytes()


@pytest.mark.long
def test_plot_takes_times_a_title_and_the_file_without_o():
    meanfield("solve", "run.toml", "--quiet")
    drawn = "plot", "run.nc", "e.png", "--kind", "snapshots"
    assert meanfield(*drawn, "--times", "0,0.5", "--title", "Two")[0] == "wrote e.png\n"
    pictures = [Path("e.png").read_bytes()]
    for more in (("--times", "0"), ("--title", "Two")):
        meanfield(*drawn, *more)
        pictures.append(Path("e.png").read_bytes())
    assert len(set(pictures)) == 3
    meanfield("plot", "run.nc", "-o", "e.gif", "--title", "Two")
    refused = {
        ("plot", "run.nc"): "expected one file to draw in; got none.*-o FIGURE.png",
        ("plot", "run.nc", "a.png", "-o", "b.png"): "got two",
        ("plot", "run.nc", "a.png", "--times", "0"): "'snapshots', 'polar'",
        ("plot", "run.nc", "a.gif", "--times", "0"): "'times' is no option of a movie",
        ("plot", "run.nc", "a.png", "--times", "soon"): "separated by commas.*'soon'",
    }
    for words, message in refused.items():
        assert re.search(message, meanfield(*words, code=2)[1].replace("\n", " ")), words


def test_doctor_knows_every_dependency_and_names_what_is_missing(monkeypatch):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.match(r"[\w-]+", entry).group() for entry in project["dependencies"]}
    assert names | {"llvmlite"} == set(REQUIRED_PACKAGES)
    assert set(OPTIONAL_PACKAGES) == {"imageio-ffmpeg"}
    monkeypatch.setitem(REQUIRED_PACKAGES, "no-such-package", "none")
    out, _ = meanfield("doctor", code=1)
    assert "no-such-package cannot be imported" in out.splitlines()[-1]
    for fact in [
        "fftw-3.",
        "GPL-2.0-or-later",
        "code is cached in",
        sys.version.split()[0],
    ]:
        assert fact in out
    json.dumps(mf.doctor())  # plain data


def test_doctor_compiles_when_told(monkeypatch):
    def compile_everything(report):
        report("tokens", 1.25)
        return 2.5

    monkeypatch.setattr("meanfield.app.doctor.compile_everything", compile_everything)
    lines = meanfield("doctor", "--compile")[0].splitlines()
    assert lines[0].split() == ["tokens", "1.2", "s"] and lines[1].split()[-2:] == ["2.5", "s"]
    assert not any("tokens  " in line for line in meanfield("doctor")[0].splitlines())


def test_the_list_of_commands_has_whole_sentences():
    listed = " ".join(meanfield("--help")[0].split())
    for name, command in main.commands.items():
        first = " ".join(command.help.split("\n\n")[0].split())
        assert f"{name} {first}" in listed and "..." not in first, name


def test_version_and_schemas_are_printed():
    assert meanfield("--version")[0].strip() == f"meanfield {mf.__version__}"
    assert json.loads(meanfield("schema")[0]) == schema()
    for kind in TASK_NAMES:
        assert json.loads(meanfield("schema", kind)[0]) == schema(kind)


@pytest.mark.long
def test_a_run_imports_nothing_of_studies_diagrams_and_figures(folder):
    write("run.toml", DENSITY)
    code = "import sys; from meanfield.app.cli import main; main(standalone_mode=False); "
    code += "print(*{name.rpartition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code, "solve", "run.toml", "-q"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert "meanfield.solving" in loaded
    late = {f"meanfield.{room}" for room in ("bifurcation", "chaos", "distances", "plotting")}
    assert not loaded & {*late, "matplotlib", "xarray", "pandas"}


# Kinds of one's own ----------------------------------------------------------------------------

LINEAR = """
import meanfield as mf


class Linear(mf.ZonalDrift):
    \"\"\"P_x int (1 + b <x, y>) y dmu(y).\"\"\"

    b: float

    def slope(self, t):
        return 1 + self.b * t
"""


@pytest.mark.long
def test_a_file_with_a_drift_of_ones_own_is_imported(folder):
    """The drift is known by its name in files; the checksum of its file goes into the result."""
    write("linear_drifts.py", LINEAR)
    write("run.toml", DENSITY.replace('kind = "USA", beta = 1.0', 'kind = "Linear", b = 2.0'))
    command = [sys.executable, "-m", "meanfield"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    without = subprocess.run(
        [*command, "solve", "run.toml"], env=environment, capture_output=True, text=True
    )
    assert without.returncode == 2 and "model.drift.kind" in without.stderr
    before, after = ("--import", "linear_drifts.py"), ("--import", "linear_drifts")
    for words in ((*before, "solve", "run.toml"), ("solve", "run.toml", *after)):
        module = words[words.index("--import") + 1]
        done = subprocess.run(
            [*command, *words, "--force"],
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        run = mf.load("run.nc")
        ((name, checksum),) = run.provenance["imports"].items()
        assert name == module and len(checksum) == 64
    assert '"Drift.Linear"' in meanfield("--import", "linear_drifts.py", "schema")[0]
    assert mf.load("run.nc").model.drift.b == 2.0
    del sys.modules["linear_drifts"], mf.ZonalDrift.kinds["Linear"]


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("no_such_module", "no_such_module"),
        ("gone.py", "gone.py"),
        ("broken.py", "SyntaxError"),
        ("json.py", "json"),
    ],
)
def test_what_cannot_be_imported_is_one_message(module, message):
    if module != "gone.py" and module.endswith(".py"):
        write(module, "x = = 1\n")
    for words in (
        ("--import", module, "solve", "run.toml"),
        ("solve", "--import", module, "run.toml"),
    ):
        err = meanfield(*words, code=2)[1]
        assert f"--import {module}: " in err and message in err
    assert not Path("run.nc").exists() and sys.modules["json"] is json


# meanfield chaos -------------------------------------------------------------------------------


@pytest.mark.long
def test_a_study_of_a_file_is_that_of_python(folder):
    out, _ = meanfield("chaos", "study.toml")
    start = mf.Circle(16).density(lambda t: 1 + 0.5 * np.cos(t))
    plain_class = mf.propagation_of_chaos(
        mf.Transformer(mf.Kuramoto(), 1.0), start, [8, 16], [0.0, 0.2], 4, rng=3, dt=0.1
    )
    study = mf.Study.load("study.nc")
    for name in plain_class.data:
        np.testing.assert_allclose(study.data[name], plain_class.data[name], rtol=1e-9, atol=1e-12)
    assert "W2" in out and "~ n^" in out and "|m_1|^2 - " in out and "coupling" in out
    assert (folder / "study.png").stat().st_size > 10_000
    assert not (folder / "study.nc.checkpoint").exists()
    provenance = json.loads(study.data.attrs["provenance"])
    assert parse_config(provenance["config"]).data == read_config("study.toml").data
    for kind in ([], ["--kind", "rates"], ["--kind", "spacetime"]):
        meanfield("plot", "study.nc", "-o", "again.png", *kind)
    mf.load("study.nc").law.save("law.nc")
    assert "rates" in meanfield("plot", "law.nc", "-o", "a.png", "--kind", "rates", code=2)[1]


@pytest.mark.long
def test_a_study_and_its_figure_are_not_overwritten(folder):
    (folder / "study.png").write_text("mine")
    assert "study.png exists" in meanfield("chaos", "study.toml", code=2)[1]
    (folder / "study.png").unlink()
    meanfield("chaos", "study.toml", "-q")
    assert "study.nc exists" in meanfield("chaos", "study.toml", code=2)[1]
    assert meanfield("chaos", "study.toml", "-q", "--force")[0] == ""
    err = meanfield("chaos", "study.toml", "--out", "other.png", code=2)[1]
    assert "*.nc" in err and not (folder / "other.png").exists()
    (folder / "folder.png").mkdir()
    meanfield("chaos", "study.toml", "--out", "folder.nc", code=2)


@pytest.mark.long
def test_without_distances_there_is_no_figure():
    write("study.toml", STUDY.replace("rng = 3", "rng = 3\ndistances = []\ncoupling = false"))
    assert "study.png" not in meanfield("chaos", "study.toml")[0]


@pytest.mark.long
def test_workers_of_a_command_change_nothing(folder, monkeypatch):
    (folder / "sweep.toml").write_text(
        (folder / "run.toml").read_text() + "\n[sweep.parameters]\nmodel.kappa = [1.0, 2.0]\n"
    )
    asked = []

    def threads(count):
        asked.append(count)
        return ThreadPoolExecutor(count)

    monkeypatch.setattr("meanfield.sweeps.executors.processes", threads)
    for name, command in (("study", "chaos"), ("sweep", "sweep")):
        meanfield(command, f"{name}.toml", "-q", "--workers", "2")
        meanfield(command, f"{name}.toml", "-q", "--out", "alone.nc", "--force")
        found, alone = mf.load(f"{name}.nc").data, mf.load("alone.nc").data
        assert found.equals(alone)
        err = meanfield(command, f"{name}.toml", "--force", "--scheduler", "nowhere://1", code=2)[1]
        assert "No scheduler answers at nowhere://1" in err
    assert asked == [2, 2]


@pytest.mark.long
@pytest.mark.bits
def test_an_interrupted_study_goes_on(folder, monkeypatch):
    config = read_config("study.toml")
    whole = run_config(config)

    def interrupted(*_):
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr("meanfield.chaos.experiment.Experiment._series", interrupted)
        assert run_config(config, "study.nc").status == "interrupted"
    assert (folder / "study.nc.checkpoint").exists()
    assert "--resume to continue" in meanfield("chaos", "study.toml", code=2)[1]
    meanfield("chaos", "study.toml", "--resume")
    np.testing.assert_array_equal(mf.Study.load("study.nc").data["W2"], whole.data["W2"])


# meanfield bifurcation, phase-diagram ----------------------------------------------------------


@pytest.mark.long
def test_branches_of_a_file_are_those_of_python(folder):
    out, err = meanfield("bifurcation", "diagram.toml")
    plain_class = mf.branches(mf.Kuramoto(), mf.Circle(16), (1.5, 3.0), save_at=[2.5])
    diagram = mf.load("diagram.nc")
    assert isinstance(diagram, mf.Diagram)
    provenance = json.loads(diagram.data.attrs.pop("provenance"))
    assert diagram.data.identical(plain_class.data) and diagram.ends == plain_class.ends
    assert parse_config(provenance["config"]).data == read_config("diagram.toml").data
    assert "supercritical bifurcation" in out and "exact" in out and "ends: range" in out
    assert "wrote diagram.nc and diagram.png" in out and err == ""
    assert (folder / "diagram.png").stat().st_size > 10_000
    for kind in ([], ["--kind", "free_energy"], ["--kind", "moment 2"]):
        meanfield("plot", "diagram.nc", "-o", "again.pdf", *kind)
    assert "moment l" in meanfield("plot", "diagram.nc", "-o", "a", "--kind", "polar", code=2)[1]


@pytest.mark.long
def test_branches_in_beta_are_of_a_drift_or_of_its_name_alone():
    text = BRANCHES.replace('"Kuramoto"', '"USA"').replace("[1.5, 3.0]", "1.0\nbeta = [1.5, 2.5]")
    write("beta.toml", text.replace("save_at = [2.5]", "stability = false"))
    meanfield("bifurcation", "beta.toml", "-q")
    write(
        "vary.toml",
        Path("beta.toml")
        .read_text()
        .replace("beta = [1.5, 2.5]", "vary = { beta = [1.5, 2.5] }")
        .replace('"USA"', '{ kind = "USA", beta = 2.0 }'),
    )
    meanfield("bifurcation", "vary.toml", "-q")
    plain_class = mf.branches(mf.USA, mf.Circle(16), 1.0, beta=(1.5, 2.5), stability=False)
    for name in ("beta.nc", "vary.nc"):
        found = mf.load(name)
        assert found.ends == plain_class.ends
        np.testing.assert_allclose(found.data.beta, plain_class.data.beta, rtol=1e-12)


@pytest.mark.long
def test_phase_diagrams_of_a_file_are_those_of_python(folder):
    out, err = meanfield("phase-diagram", "plane.toml")
    usa, sa = mf.load("plane_USA.nc"), mf.load("plane_SA.nc")
    plain_class = mf.phase_diagram(mf.USA, mf.Circle(16), (2.0, 3.0), degrees=(1,))
    for name in ("critical", "fold", "transition"):
        assert usa.kappa(name, 3.0) == plain_class.kappa(name, 3.0)
    assert usa.warnings == sa.warnings == [] and sa.loci == {} and err == ""
    assert "tricritical point of degree 1: beta = 2.446918311" in out
    assert "wrote plane_USA.nc, plane_SA.nc and plane.png" in out
    assert (folder / "plane.png").stat().st_size > 10_000
    for kind in ([], ["--kind", "relative"]):
        meanfield("plot", "plane_USA.nc", "-o", "again.png", *kind)
    assert "relative" in meanfield("plot", "plane_SA.nc", "-o", "a", "--kind", "polar", code=2)[1]
    assert "no movie" in meanfield("plot", "plane_SA.nc", "-o", "a.gif", code=2)[1]
    write("one.toml", PLANE.replace('["USA", "SA"]', '["SA"]'))
    assert meanfield("phase-diagram", "one.toml", "--out", "sa.nc", "-q")[0] == ""
    assert mf.load("sa.nc").kappa("critical", 2.0) == sa.kappa("critical", 2.0)


@pytest.mark.long
def test_what_is_missing_is_said_and_the_exit_code_is_1():
    write("cut.toml", BRANCHES + "max_points = 3\n")
    out, err = meanfield("bifurcation", "cut.toml", code=1)
    assert "ends: max_points" in out and "branch 1 ends at kappa" in err
    assert mf.load("cut.nc").ends == ["max_points"]
    assert "raise max_points" in meanfield("bifurcation", "cut.toml", "-q", "--force", code=1)[1]
    write("cut.toml", BRANCHES + "max_points = 100\n")
    meanfield("bifurcation", "cut.toml", "-q", "--resume")
    assert mf.load("cut.nc").ends == ["range"] and not Path("cut.nc.checkpoint").exists()


def after(number, monkeypatch):
    """Ctrl-C at the n-th new point."""
    from meanfield.bifurcation.branches import Following

    seen, at = [], Following.at

    def interrupted(self, *arguments):
        seen.append(arguments)
        if len(seen) == number:
            signal.raise_signal(signal.SIGINT)
        return at(self, *arguments)

    monkeypatch.setattr(Following, "at", interrupted)


@pytest.mark.long
def test_ctrl_c_keeps_the_branches_that_were_found(folder, monkeypatch):
    after(4, monkeypatch)
    out, err = meanfield("bifurcation", "diagram.toml", code=1)
    diagram = mf.load("diagram.nc")
    assert diagram.ends == ["interrupted"] and int((diagram.data.branch == 1).sum()) == 4
    assert "branch 1 was interrupted at kappa" in err and "wrote diagram.nc" in out
    assert "--resume to continue" in meanfield("bifurcation", "diagram.toml", code=2)[1]
    meanfield("bifurcation", "diagram.toml", "--resume", "-q")
    meanfield("bifurcation", "diagram.toml", "--out", "unbroken.nc", "-q")
    resumed, unbroken = mf.load("diagram.nc"), mf.load("unbroken.nc")
    assert resumed.data.equals(unbroken.data) and resumed.ends == unbroken.ends == ["range"]
    assert not (folder / "diagram.nc.checkpoint").exists()


@pytest.mark.long
@pytest.mark.parametrize("number", [2, 60])  # on the branch, and on a curve
def test_ctrl_c_keeps_the_curves_that_were_found(folder, monkeypatch, number):
    after(number, monkeypatch)
    _, err = meanfield("phase-diagram", "plane.toml", code=1)
    assert "USA: fold was interrupted" in err or "USA: transition was interrupted" in err
    assert not (folder / "plane_SA.nc").exists() and mf.load("plane_USA.nc").warnings
    meanfield("phase-diagram", "plane.toml", "--resume", "-q")
    assert not mf.load("plane_USA.nc").warnings and mf.load("plane_SA.nc").data.sizes["point"] > 80
    assert not list(folder.glob("*.checkpoint"))


@pytest.mark.long
def test_a_drift_whose_phase_diagram_is_finished_is_not_followed_again(folder, monkeypatch):
    """That of SA died at once; that of USA is taken from its checkpoint."""
    from meanfield.bifurcation.phase_diagram import tricritical_points

    def only_of(name):
        def checked(family, *where):
            assert family.drift.__name__ == name
            return tricritical_points(family, *where)

        monkeypatch.setattr(
            sys.modules[tricritical_points.__module__], "tricritical_points", checked
        )

    only_of("USA")
    with pytest.raises(AssertionError):
        meanfield("phase-diagram", "plane.toml", "-q")
    assert {file.name for file in folder.glob("plane_*")} == {
        "plane_USA.nc.checkpoint", "plane_SA.nc.checkpoint"
    }  # fmt: skip
    only_of("SA")
    meanfield("phase-diagram", "plane.toml", "--resume", "-q")
    assert not list(folder.glob("*.checkpoint")) and not mf.load("plane_USA.nc").warnings


@pytest.mark.long
def test_diagrams_are_not_overwritten(folder):
    (folder / "plane_SA.nc").write_text("mine")
    assert "plane_SA.nc exists" in meanfield("phase-diagram", "plane.toml", code=2)[1]
    (folder / "diagram.png").write_text("mine")
    assert "diagram.png exists" in meanfield("bifurcation", "diagram.toml", code=2)[1]
    assert meanfield("bifurcation", "diagram.toml", "-q", "--force")[0] == ""
    assert "diagram.nc exists" in meanfield("bifurcation", "diagram.toml", code=2)[1]
    assert "*.nc" in meanfield("bifurcation", "diagram.toml", "--out", "a.png", code=2)[1]


def test_the_doctor_is_silent_about_what_packages_warn_of(tmp_path, monkeypatch):
    """Warnings are errors in tests; a package that warns when it is imported is not broken."""
    text = "import warnings\nwarnings.warn('no widgets')\n"
    (tmp_path / "warns_when_imported.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert doctor._package("warns_when_imported", "")["broken"] is None
