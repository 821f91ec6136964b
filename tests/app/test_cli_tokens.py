"""The command line with tokens, from a configuration file to a result and its resumption."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from meanfield.app.config import parse_config, read_config, run_config

import meanfield as mf
from meanfield.app.cli import main

ROOT = Path(__file__).resolve().parents[2]
QUIET = """
[model]
drift = "SA"
beta = 4.0
[tokens]
n = 32
dimension = 3
initial = "uniform"
seed = 1
[solve]
t_end = 1.0
outputs = 5
"""
NOISY = QUIET.replace("beta = 4.0", "beta = [1.0, 4.0]\nkappa = 10.0").replace(
    "seed = 1", "seed = 1\nreplicas = 3"
)
NOISY += "seed = 2\ndt = 0.02\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def solve(text, *options, code=0):
    """Standard output and error of `meanfield solve` on a file with this text."""
    Path("run.toml").write_text(text)
    result = CliRunner().invoke(main, ["solve", "run.toml", *options])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    assert "Traceback" not in result.output
    return result.stdout, result.stderr


def numbers(state):
    """What two states are compared by."""
    return state.G if isinstance(state, mf.Gram) else state.x


def same_bits(one, other):
    """Whether two solutions agree in every bit."""
    return np.array_equal(one.t, other.t) and all(
        np.array_equal(numbers(a), numbers(b)) and np.array_equal(a.masses, b.masses)
        for a, b in zip(one, other, strict=True)
    )


# Solving -----------------------------------------------------------------------------------


def test_the_command_gives_what_python_gives():
    out, err = solve(QUIET)
    model, tokens = mf.Transformer(mf.SA(4.0)), mf.Tokens.uniform(32, 3, rng=1)
    by_hand = mf.solve(model, tokens, (0, 1), t_eval=np.linspace(0, 1, 5))
    assert same_bits(mf.load("run.nc"), by_hand)
    assert "at t = 1, 32 tokens:" in out and "effective_rank" in out and err == ""


def test_noise_is_that_of_the_seed_and_a_run_repeats_from_its_result_alone():
    solve(NOISY)
    run = mf.load("run.nc")
    model = mf.Transformer(mf.SA([1.0, 4.0]), 10.0)
    tokens = mf.Tokens(mf.Tokens.uniform(32, 3, rng=1, shape=(3,)).x[:, None])
    by_hand = mf.solve(model, tokens, (0, 1), t_eval=np.linspace(0, 1, 5), dt=0.02, rng=2)
    assert same_bits(run, by_hand) and run.shape == (3, 2)
    assert same_bits(run, run_config(parse_config(run.provenance["config"])))
    other = run_config(parse_config({**run.provenance["config"], "tokens": UNLIKE}))
    assert not same_bits(run, other)


UNLIKE = {"n": 32, "dimension": 3, "initial": "uniform", "seed": 9, "replicas": 3}


def test_the_table_has_a_row_for_each_replica_of_each_member():
    out, _ = solve(NOISY)
    head, *rows = [line.split() for line in out.splitlines()[-7:]]
    assert head[:2] == ["replica", "beta"]
    assert [row[:2] for row in rows] == [[str(i), b] for i in range(3) for b in ("1", "4")]
    run = mf.load("run.nc")
    order = [float(row[head.index("order_parameter")]) for row in rows]
    expected = run.observables.order_parameter.values[-1].ravel()
    np.testing.assert_allclose(order, expected, rtol=1e-5)


@pytest.mark.parametrize(
    "text",
    [
        QUIET.replace("seed = 1", "seed = 1\ngram = true"),
        QUIET.replace("beta = 4.0", 'beta = 4.0\nnormalisation = { kind = "pre_ln" }'),
        QUIET + 'scheme = "Layers"\ndt = 0.125\n',
        QUIET.replace('drift = "SA"', 'drift = "Attention"\nQ = { ensemble = "goe", seed = 3 }'),
    ],
    ids=["gram", "pre_ln", "layers", "attention"],
)
def test_kinds_of_models_and_states_come_back_from_the_file(text):
    out, _ = solve(text)
    assert "finished" in out
    run = mf.load("run.nc")
    again = run_config(parse_config(run.provenance["config"]))
    assert same_bits(run, again)
    assert run.model.describe() == again.model.describe()


def test_tokens_sampled_from_a_density_start_at_its_moments():
    density = '[geometry]\ndegree = 16\n[initial]\nkind = "fourier"\ncos = [0.8]\n'
    text = QUIET.replace('dimension = 3\ninitial = "uniform"\n', "").replace("n = 32", "n = 500")
    solve(density + text.replace("t_end = 1.0", "t_end = 0.01"))
    start = mf.load("run.nc")[0]
    mean = start.expect(lambda x: x)
    assert np.abs(mean - [0.4, 0.0]).max() < 4 * np.sqrt(0.5 / 500)


def test_the_result_records_which_data_it_was_made_from():
    np.save("x.npy", mf.Tokens.uniform(8, 3, rng=0).x)
    np.save("q.npy", np.eye(3))
    text = QUIET.replace('n = 32\ndimension = 3\ninitial = "uniform"\nseed = 1', 'file = "x.npy"')
    text = text.replace('drift = "SA"', 'drift = "Attention"\nQ = { file = "q.npy" }')
    solve(text)
    files = mf.load("run.nc").provenance["data_files"]
    assert list(files) == ["q.npy", "x.npy"]
    assert all(len(entry["sha256"]) == 64 for entry in files.values())


# Resuming ----------------------------------------------------------------------------------


def test_a_run_that_ended_early_goes_on_with_the_same_random_numbers():
    """The checkpoint holds the state of the generator: more steps are the unbroken run's."""
    solve(NOISY + "max_steps = 17\n", "--quiet", code=1)
    assert mf.load("run.nc").status == "max_steps" and Path("run.nc.checkpoint").exists()
    solve(NOISY, "--resume", "--quiet")
    resumed = mf.load("run.nc")
    assert resumed.status == "finished" and not Path("run.nc.checkpoint").exists()
    solve(NOISY, "--out", "unbroken.nc", "--quiet")
    assert same_bits(resumed, mf.load("unbroken.nc"))


def test_a_checkpoint_of_another_seed_is_refused():
    solve(NOISY + "max_steps = 17\n", "--quiet", code=1)
    other = NOISY.replace("seed = 2", "seed = 3")
    assert "checkpoint" in solve(other, "--resume", code=2)[1]


def test_a_killed_noisy_run_resumes_to_the_same_bits():
    """SIGKILL leaves no time to tidy up; thousands of steps take seconds."""
    long = NOISY.replace("dt = 0.02", "dt = 0.0005").replace("n = 32", "n = 8")
    Path("run.toml").write_text(long + "[checkpoint]\nevery = 0.01\n")
    command = [sys.executable, "-m", "meanfield", "solve", "run.toml", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment) as process:
        while not Path("run.nc.checkpoint").exists() and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL and not Path("run.nc").exists()
    resumed = run_config(read_config("run.toml"), "run.nc", resume=True, progress=False)
    unbroken = run_config(read_config("run.toml"), progress=False)
    assert same_bits(resumed, unbroken) and resumed.stats["steps"] == 2000


# Refusing ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, message",
    [
        (QUIET.replace("seed = 1", "sed = 1"), "run.toml: tokens.sed: unknown key; did you mean"),
        (QUIET.replace("seed = 1\n", ""), "run.toml: tokens.seed: this key is required"),
        (NOISY.replace("seed = 2\n", ""), "run.toml: solve.seed: this key is required"),
        (QUIET + "max_degree = 64\n", "run.toml: solve.max_degree bounds the modes"),
        (QUIET + 'engine = "modes"\n[characteristics]\n', "run.toml: [characteristics] follow"),
    ],
    ids=["misspelt", "positions", "noise", "degrees", "characteristics"],
)
def test_bad_input_is_one_message_and_exit_code_2(text, message):
    out, err = solve(text, code=2)
    assert out == "" and message in err, err
    assert not Path("run.nc").exists()
