"""`meanfield chaos`: from a configuration to a study, its figure, and its resumption."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from meanfield.app.config import parse_config, plain, read_config, run_config, schema

import meanfield as mf
from meanfield.app.cli import main

CONFIG = """
title = "a small study"
[model]
drift = "Kuramoto"
kappa = 1.0
[geometry]
degree = 16
[initial]
kind = "fourier"
cos = [0.5]
[chaos]
sizes = [8, 16]
times = [0.0, 0.2]
replicas = 4
seed = 3
dt = 0.1
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(CONFIG)
    return tmp_path


def meanfield(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    assert "Traceback" not in result.output
    return result.stdout, result.stderr


def test_the_command_gives_what_python_gives(folder):
    out, _ = meanfield("chaos", "study.toml")
    start = mf.Circle(16).density(lambda t: 1 + 0.5 * np.cos(t))
    by_hand = mf.propagation_of_chaos(
        mf.Transformer(mf.Kuramoto(), 1.0), start, [8, 16], [0.0, 0.2], 4, rng=3, dt=0.1
    )
    study = mf.Study.load("study.nc")
    for name in by_hand.data:
        np.testing.assert_allclose(study.data[name], by_hand.data[name], rtol=1e-9, atol=1e-12)
    assert "W2" in out and "~ n^" in out and "|m_1|^2 - " in out and "coupling" in out
    assert (folder / "study.png").stat().st_size > 10_000
    assert not (folder / "study.nc.checkpoint").exists()
    provenance = json.loads(study.data.attrs["provenance"])
    assert parse_config(provenance["config"]) == parse_config(plain(read_config("study.toml")))


def test_figures_of_a_study_and_of_its_densities(folder):
    meanfield("chaos", "study.toml", "-q")
    for kind in ([], ["--kind", "rates"], ["--kind", "spacetime"]):
        meanfield("plot", "study.nc", "-o", "again.png", *kind)
    mf.load("study.nc").save("law.nc")
    err = meanfield("plot", "law.nc", "-o", "again.png", "--kind", "rates", code=2)[1]
    assert "rates" in err


def test_nothing_is_overwritten(folder):
    (folder / "study.png").write_text("mine")
    assert "study.png exists" in meanfield("chaos", "study.toml", code=2)[1]
    (folder / "study.png").unlink()
    meanfield("chaos", "study.toml", "-q")
    assert "study.nc exists" in meanfield("chaos", "study.toml", code=2)[1]
    assert meanfield("chaos", "study.toml", "-q", "--force")[0] == ""


def test_the_figure_has_another_name_than_the_study(folder):
    err = meanfield("chaos", "study.toml", "--out", "study.png", code=2)[1]
    assert "use --out STUDY.nc" in err and not (folder / "study.png").exists()
    (folder / "other.png").mkdir()
    meanfield("chaos", "study.toml", "--out", "other.nc", code=2)


def test_without_distances_there_is_no_figure(folder):
    config = CONFIG.replace("seed = 3", "seed = 3\ndistances = []\ncoupling = false")
    (folder / "study.toml").write_text(config)
    assert "study.png" not in meanfield("chaos", "study.toml")[0]


def test_an_interrupted_study_goes_on(folder, monkeypatch):
    config = read_config("study.toml")
    whole = run_config(config)

    def fails(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("meanfield.chaos.experiment.Experiment._each", fails)
        with pytest.raises(KeyboardInterrupt):
            run_config(config, "study.nc")
    assert (folder / "study.nc.checkpoint").exists()
    assert "--resume to continue" in meanfield("chaos", "study.toml", code=2)[1]
    meanfield("chaos", "study.toml", "--resume")
    again = mf.Study.load("study.nc")
    np.testing.assert_array_equal(again.data["W2"], whole.data["W2"])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("sizes = [8, 16]", "sizes = [16, 8]", "chaos.sizes: expected increasing"),
        ("sizes = [8, 16]", "sizes = [1, 8]", "chaos.sizes: expected increasing"),
        ("sizes = [8, 16]", "sizes = []", "chaos.sizes: expected an array with at least 1"),
        ("times = [0.0, 0.2]", "times = [0.0]", "chaos.times: expected increasing"),
        ("times = [0.0, 0.2]", "times = [-1, 2.0]", "chaos.times[0]: expected a number >= 0"),
        ("seed = 3", "", "chaos.seed: this key is required"),
        ("seed = 3", "seeds = 3", "did you mean seed?"),
        ("replicas = 4", "replicas = 1", "chaos.replicas: expected a number >= 2"),
        ("dt = 0.1", 'distances = ["W3"]', "chaos: Known distances here are W1, W2"),
        ("dt = 0.1", "floor = 1", "chaos.floor: expected true or false; got 1"),
        ("seed = 3", "seed = 99999999999999999999", "rng < 2^63"),
        ("dt = 0.1", "dt = 0.0", "chaos.dt: expected a number > 0"),
        ("kappa = 1.0", "kappa = [1.0, 2.0]", "model.kappa: a study has a single model"),
        ("kappa = 1.0", "reaction = 1.0", "model.reaction: densities have none"),
        ('"Kuramoto"', '"Attention"', 'model.drift: "Attention" moves tokens'),
        ("degree = 16", 'kind = "zonal"\ndimension = 3\ndegree = 9', "geometry.kind: a study"),
        ("[chaos]", "[solve]\nt_end = 1.0\n[chaos]", "solve: unknown key"),
        ("cos = [0.5]", "cos = [3.0]", "initial: A density must not be negative"),
    ],
)
def test_bad_files(folder, old, new, expected):
    (folder / "study.toml").write_text(CONFIG.replace(old, new))
    err = meanfield("chaos", "study.toml", code=2)[1]
    assert f"study.toml: {expected}" in err or expected in err
    assert not (folder / "study.nc").exists()


def test_files_of_other_commands(folder):
    assert "use meanfield chaos study.toml" in meanfield("solve", "study.toml", code=2)[1]
    (folder / "run.toml").write_text(CONFIG.split("[chaos]")[0] + "[solve]\nt_end = 1.0\n")
    assert "use meanfield solve run.toml" in meanfield("chaos", "run.toml", code=2)[1]


def test_the_schema_of_a_study():
    assert json.loads(meanfield("schema", "chaos")[0]) == schema("chaos")
    assert "Chaos" in schema("chaos")["$defs"] and "Solve" not in schema("chaos")["$defs"]
    with pytest.raises(ValueError, match="of kind run, chaos"):
        schema("stud")
