"""The command line on spheres of every dimension."""

import re

import numpy as np
import pytest
from click.testing import CliRunner
from meanfield.app.config import parse_config, read_config, run_config
from meanfield.results.storage import load

import meanfield as mf
from meanfield.app.cli import main

CONFIG = """
[model]
drift = "USA"
beta = 1.0
kappa = 3.0
[geometry]
%s
degree = 16
[initial]
%s
[solve]
t_end = 0.5
outputs = 6
"""
LEGENDRE = 'kind = "legendre"\ncoefficients = [0.5]\naxis = [0.0, 0.6, 0.8]'
FISHER = 'kind = "von_mises_fisher"\nconcentration = 3.0'
RANDOM = 'kind = "perturbed"\namplitude = 0.01\nseed = 3'
SPHERE = 'kind = "sphere"'


def solve(folder, space, initial, code=0):
    """Standard output and error of `meanfield solve` on such a file."""
    (folder / "run.toml").write_text(CONFIG % (space, initial))
    result = CliRunner().invoke(main, ["solve", "run.toml"])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result.stdout, result.stderr


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("space", "initial"),
    [
        (SPHERE, LEGENDRE),
        (SPHERE, FISHER),
        (SPHERE, RANDOM),
        ('kind = "zonal"\ndimension = 64', FISHER),
        ('kind = "zonal"\ndimension = 3', RANDOM),
    ],
)
def test_the_command_gives_what_python_gives(folder, space, initial):
    out, _ = solve(folder, space, initial)
    assert "finished" in out and "order_parameter" in out
    run = load(folder / "run.nc")
    again = run_config(parse_config(run.provenance["config"]))
    for one, two in zip(run, again, strict=True):
        np.testing.assert_array_equal(one.coefficients, two.coefficients)


def test_hidden_states_go_to_the_sphere_by_their_principal_directions(folder):
    np.save("states.npy", np.random.default_rng(0).standard_normal((300, 20)) + 0.5)
    solve(folder, SPHERE, 'kind = "sample"\nfile = "states.npy"\nbandwidth = 0.6')
    expected = mf.Sphere(16).estimate(mf.principal_sphere(np.load("states.npy")), bandwidth=0.6)
    found = load(folder / "run.nc")[0]
    np.testing.assert_array_equal(found.coefficients, expected.coefficients)


def test_a_density_of_another_space_is_refused_by_name(folder):
    err = solve(folder, SPHERE, 'kind = "fourier"\ncos = [0.2]', code=2)[1]
    assert "initial: kind 'fourier' is not for geometry kind 'sphere'; expected uniform" in err
    err = solve(folder, 'kind = "zonal"\ndimension = 4', LEGENDRE, code=2)[1]
    assert "the axis of geometry kind zonal is fixed" in err
    assert read_config("run.toml").geometry.dimension == 4


COLLAPSE = """
[model]
drift = "USA"
beta = 0.5
[geometry]
kind = "sphere"
degree = 8
[initial]
kind = "legendre"
coefficients = [0.5]
[characteristics]
nodes = 4096
limit = [0.0, 0, 1]
[solve]
t_end = 1.0
outputs = 3
"""


def test_characteristics_from_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text(COLLAPSE)
    done = CliRunner().invoke(main, ["solve", "run.toml"])
    assert done.exit_code == 0, done.output
    run = mf.load("run.nc")
    assert run.final.limit.tolist() == [0, 0, 1] and "w2_to_dirac" in done.output
    assert run.stats["nodes"] == len(run.final) <= 4096


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("nodes = 4096", "node = 4096", "did you mean nodes?"),
        ("nodes = 4096", "nodes = 0", "characteristics.nodes: expected"),
        ("nodes = 4096", "nodes = 4", "characteristics: .* do not integrate this density"),
        ("[0.0, 0, 1]", "[0.0, 1]", "characteristics: Expected a point as a unit vector"),
        ("[0.0, 0, 1]", "1", "characteristics.limit: expected"),
        ("t_end = 1.0", "t_end = 1.0\nmax_degree = 64", "solve.max_degree bounds the modes"),
        ("beta = 0.5", "beta = 0.5\nkappa = 3.0", "without noise, kappa = inf"),
    ],
)
def test_what_is_wrong_with_characteristics_is_named(tmp_path, monkeypatch, old, new, match):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text(COLLAPSE.replace(old, new))
    done = CliRunner().invoke(main, ["solve", "run.toml"])
    assert done.exit_code == 2 and re.search(match, done.output), done.output
