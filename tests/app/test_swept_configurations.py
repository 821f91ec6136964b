"""Sweeps of configurations: what runs at a point, seeds, batches, the command line, refusals."""

import numpy as np
import pytest
from click.testing import CliRunner
from configurations import NOISY, SPAN, UNIFORM, density, refusal, solved, tokens

import meanfield as mf
from meanfield.app.cli import main
from meanfield.app.configuration import parse_config

KAPPAS = {"model.kappa": [2.0, 4.0]}
SWEEP = """
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
t_span = [0, 0.1]
t_eval = [0.0, 0.1]
[sweep.parameters]
model.kappa = { first = 1.0, last = 4.0, count = 3, spacing = "log" }
model.drift.beta = [0.5, 1.0]
"""


def swept(parameters, base=None, **keys):
    base = density() if base is None else base
    return solved({**base, "sweep": {"parameters": parameters, **keys}}).data


def test_a_point_is_the_run_of_the_configuration_with_these_values():
    found = swept(KAPPAS | {"initial.cos.0": [0.1, 0.2]})
    model = {"drift": {"kind": "USA", "beta": 1.0}, "kappa": 4.0}
    start = {"kind": "Fourier", "cos": [0.1, 0.1], "sin": [0.0, 0.0, 0.05]}
    alone = solved(density(model=model, initial=start)).observables
    there = found.sel({"model.kappa": 4.0, "initial.cos.0": 0.1})
    for name in alone:
        np.testing.assert_array_equal(there[name], alone[name])
    plain_class = mf.sweep(density(), KAPPAS | {"initial.cos.0": [0.1, 0.2]})
    assert plain_class.equals(found)


def test_every_replica_has_a_start_and_noise_of_its_own():
    base = tokens(NOISY, {**UNIFORM, "rng": 1}, {"dt": 0.05, "rng": 2})
    found = swept(KAPPAS, base, rng=4, replicas=3)
    assert len(np.unique(found["order_parameter"].isel(t=0))) == 6
    assert swept(KAPPAS, base, rng=4, replicas=2).equals(found.isel(replica=[0, 1]))
    quiet = tokens(x={**UNIFORM, "rng": 1})
    same = swept({"solve.rtol": [1e-8, 1e-9], "initial.x.rng": [7]}, quiet, rng=4)
    first, second = same["order_parameter"].isel(t=0).values  # of the same start
    assert first == second


def test_points_in_a_batch_are_members_of_an_ensemble():
    parameters = {"model.kappa": [1.0, 2.0, 4.0], "model.drift.beta": [0.5, 1.0]}
    parameters["initial.cos"] = [[0.1], [0.2]]
    alone, together = swept(parameters), swept(parameters, batch=4)
    assert set(alone) == set(together) and alone.sizes == together.sizes
    assert together.equals(alone)


def test_a_point_of_a_batch_that_fails_leaves_the_others_alone():
    parameters = {"model.kappa": [2.0, -1.0, 4.0]}
    found, alone = (swept(parameters, batch=b, errors="keep") for b in (3, 1))
    assert found.equals(alone) and found["error"].values[1] and not found["error"].values[2]


@pytest.mark.bits
def test_points_of_a_batch_that_end_early_are_those_alone():
    """Tokens that run out of steps, before others of their batch."""
    short = {"t_span": [0, 0.5], "t_eval": [0.0, 0.1, 0.5], "max_steps": 3}
    base = tokens(x={"kind": "Uniform", "n": 6, "d": 3, "rng": 1}, solve=short)
    parameters = {"model.drift.beta": [1.0, 5.0, 30.0]}
    alone, together = (mf.sweep(base, parameters, batch=batch) for batch in (1, 3))
    assert together.equals(alone) and len(set(alone["status"].values)) == 2


def test_a_data_file_counts_by_what_it_holds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = mf.Tokens.uniform(5, 3, rng=1).x
    base, at = tokens(x={"kind": "File", "file": "a.npy"}), {"initial.x.file": ["a.npy", "b.npy"]}
    np.save("a.npy", x), np.save("b.npy", x[:4])
    before = mf.sweep(base, at, store="store")["mean_cosine"]
    np.save("b.npy", -x[1:])
    after = mf.sweep(base, at, store="store")["mean_cosine"]
    np.testing.assert_array_equal((before == after).all("t"), [True, False])


def test_the_command_writes_a_file_and_a_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweep.toml").write_text(SWEEP)
    said = CliRunner().invoke(main, ["sweep", "sweep.toml"], catch_exceptions=False)
    assert said.exit_code == 0 and "wrote sweep.nc (6 runs)" in said.output
    found = mf.load("sweep.nc").data["order_parameter"]
    heads = said.output.splitlines()[3].split()
    assert heads[:3] == ["model.kappa", "model.drift.beta", "order_parameter"]
    np.testing.assert_allclose(found["model.kappa"], [1.0, 2.0, 4.0])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["sweep.nc", "sweep.toml"]
    assert CliRunner().invoke(main, ["sweep", "sweep.toml"]).exit_code == 2
    drawn = CliRunner().invoke(main, ["plot", "sweep.nc", "-o", "sweep.png", "--kind", "entropy"])
    assert drawn.exit_code == 0, drawn.output
    drawn = CliRunner().invoke(main, ["plot", "sweep.nc", "-o", "sweep.png", "--kind", "status"])
    assert drawn.exit_code == 2 and "kind must be a variable: one of" in drawn.output
    assert "meanfield sweep" in CliRunner().invoke(main, ["solve", "sweep.toml"]).output


def test_an_interrupted_command_is_resumed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one_by_one = SWEEP.replace("[sweep.parameters]", "[sweep]\nbatch = 1\n[sweep.parameters]")
    (tmp_path / "sweep.toml").write_text(one_by_one)
    run, calls = mf.Transformer.resolve, []

    def fails_at_last(self, place):
        calls.append(self)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return run(self, place)

    with monkeypatch.context() as patched:
        patched.setattr(mf.Transformer, "resolve", fails_at_last)
        said = CliRunner().invoke(main, ["sweep", "sweep.toml", "-q"])
    assert said.exit_code == 1 and "--resume continues the sweep" in said.output
    assert np.isnan(mf.load("sweep.nc").data["mass"]).any()
    assert CliRunner().invoke(main, ["sweep", "sweep.toml", "-q"]).exit_code == 2
    assert CliRunner().invoke(main, ["sweep", "sweep.toml", "-q", "--resume"]).exit_code == 0
    data = mf.load("sweep.nc").data
    assert data.attrs["status"] == "finished" and not np.isnan(data["mass"]).any()
    assert not (tmp_path / "sweep.nc.checkpoint").exists()


def test_points_that_fail_are_problems_of_the_result():
    data = {**density(), "sweep": {"parameters": {"model.kappa": [2.0, -1.0]}, "errors": "keep"}}
    config = parse_config(data)
    found = config.run(out=None, resume=False, progress=False)
    assert "1 of 2 points failed" in config.problems(found)[0]
    assert "ConfigError: model.kappa" in config.report(found, "wrote it")
    stops = {**SPAN, "max_steps": 1}
    data = {**density(solve=stops), "sweep": {"parameters": {"model.kappa": [2.0]}}}
    found = (config := parse_config(data)).run(out=None, resume=False, progress=False)
    assert config.problems(found) == ["1 of 1 runs ended early: the variable status says why"]


@pytest.mark.parametrize(
    ("sweep", "words"),
    {
        "key": ({"parameters": {"model.kapa": [1.0]}}, "unknown key; did you mean kappa"),
        "table": ({"parameters": {"modell.kappa": [1.0]}}, "there is no table modell"),
        "place": ({"parameters": {"initial.cos.9": [1.0]}}, "index below 2; got 9"),
        "number": ({"parameters": {"model.kappa": 1.0}}, "expected an array of values, or a range"),
        "range": (
            {
                "parameters": {
                    "model.kappa": {"first": 0.0, "last": 1, "count": 3, "spacing": "log"}
                }
            },
            "first must be above 0",
        ),
        "replicas": ({"parameters": KAPPAS, "replicas": 2}, "sweep.replicas: must be left out"),
        "errors": ({"parameters": KAPPAS, "errors": "drop"}, "sweep.errors"),
        "rng": ({"parameters": KAPPAS, "rng": -1}, "sweep.rng"),
        "batch": ({"parameters": KAPPAS, "batch": 0}, "sweep.batch"),
        "none": ({}, "sweep.parameters: this key is required"),
    }.values(),
)
def test_what_is_wrong_is_named(sweep, words):
    assert words.split(";")[0] in refusal({**density(), "sweep": sweep})


def test_a_configuration_of_something_else_is_refused():
    with pytest.raises(mf.ConfigError):
        mf.sweep({"drift": "Kuramoto", "bifurcation": {"kappa": [1.0, 2.0]}}, {"drift": ["SA"]})
