"""Equiangular tokens from a file: the table [equiangular]."""

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from meanfield.app.config import parse_config, plain
from meanfield.app.config.build import build_model

import meanfield as mf
from meanfield.app.cli import main


def table(**changes):
    """A file as plain data, changed in places that a dotted key names."""
    data = {
        "model": {"drift": "SA", "beta": 1.0},
        "equiangular": {"n": 32, "rho": 0.0},
        "solve": {"t_end": 10.0, "t_eval": [10.0], "rtol": 1e-12},
    }
    for key, value in changes.items():
        place, _, name = key.partition("__")
        if name:
            data.setdefault(place, {})[name] = value
        else:
            data[place] = value
    return data


@pytest.mark.parametrize(
    ("kind", "gap"), [("post_ln", 7.8028862e-8), ("pre_ln", 1.590707e-2), ("ngpt", 6.4724415e-9)]
)
def test_a_file_gives_the_known_gap(kind, gap):
    run = mf.run_config(parse_config(table(model__normalisation={"kind": kind})), progress=False)
    np.testing.assert_allclose(run.final.gap, gap, rtol=4e-7)


def test_arrays_make_an_ensemble_and_layers_are_taken():
    given = table(
        model__beta=[[0.0], [1.0]],
        equiangular={"n": [4.0, 1e12, 8.5], "gap": 1e-3},
        solve={"t_end": 2.0, "scheme": "Layers", "dt": 0.5},
    )
    run = mf.run_config(parse_config(given), progress=False)
    assert run.shape == (2, 3) and len(run) == 5
    assert run.stats["schemes"] == {"Layers": 4}


@pytest.mark.parametrize(
    ("beta", "expected"),
    [
        ({"scaling": "logarithmic", "gamma": 2.0}, 2 * np.log([32, 1e12])),
        ({"scaling": "logarithmic", "gamma": [1.0, 2.0], "offset": 1}, None),
        ({"scaling": "power", "dimension": 5, "factor": 0.5}, np.sqrt([32, 1e12]) / 2),
    ],
)
def test_beta_may_grow_with_the_number_of_tokens(beta, expected):
    config = parse_config(table(model__beta=beta, equiangular__n=[32.0, 1e12]))
    assert parse_config(plain(config)) == config
    expected = [1 + np.log(32), 1 + 2 * np.log(1e12)] if expected is None else expected
    np.testing.assert_allclose(build_model(config).drift.beta, expected, rtol=1e-15)


@pytest.mark.parametrize("drift", ["SA", "Attention"])
def test_beta_of_tokens_knows_their_number(drift):
    given = {
        "model": {"drift": drift, "beta": {"scaling": "logarithmic", "gamma": [1.0, 2.0]}},
        "tokens": {"angles": [0.0, 1.0, 2.0]},
        "solve": {"t_end": 1.0, "outputs": 2},
    }
    run = mf.run_config(parse_config(given), progress=False)
    np.testing.assert_allclose(run.observables["beta"], np.log(3) * np.array([1, 2]), rtol=1e-15)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"equiangular": {"n": 32}}, "equiangular: expected rho, or gap = 1 - rho instead"),
        ({"equiangular__gap": 0.5}, "equiangular: expected rho, or gap"),
        ({"equiangular__n": -3}, "equiangular.n: expected a finite number > 0"),
        ({"tokens": {"initial": "orthonormal", "n": 3}}, "[equiangular] and [tokens] exclude"),
        ({"geometry": {"degree": 8}}, "[equiangular] and [geometry] exclude"),
        ({"model__kappa": 2.0}, "model.kappa: noise does not keep tokens equiangular"),
        ({"model": {"drift": "Hardmax"}}, 'model.drift: "Hardmax" does not keep'),
        ({"model__feedforward": {"inner": 1.0, "outer": 1.0}}, "model.feedforward does not keep"),
        ({"solve__seed": 1}, "solve.seed: equiangular tokens have no use"),
        ({"solve__scheme": "Strang"}, 'solve.scheme: expected "DormandPrince" or "Layers"'),
        ({"solve__scheme": "Layers"}, "solve.dt: this key is required"),
        ({"model__beta": {"scaling": "log"}}, "model.beta: expected a number, an array, { scaling"),
        ({"model__beta": {"scaling": "power"}}, "model.beta.dimension: this key is required"),
        (
            {"model__beta": {"scaling": "power", "dimension": 1}},
            "dimension: expected a number >= 2",
        ),
        ({"solve__max_degree": 8}, "solve.max_degree: equiangular tokens have no use"),
        ({"model__beta": [1.0, 2.0], "equiangular__n": [3.0, 4.0, 5.0]}, "equiangular.n has shape"),
    ],
)
def test_what_does_not_fit_is_refused(changes, message):
    with pytest.raises(mf.ConfigError, match=re.escape(message)):
        parse_config(table(**changes))


def test_the_command_line_solves_and_draws_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("run.toml").write_text(
        '[model]\ndrift = "SA"\nbeta = 1.0\nnormalisation = { kind = "pre_ln" }\n'
        "[equiangular]\nn = 1e12\nrho = 0.0\n[solve]\nt_end = 40.0\n"
    )
    solved = CliRunner().invoke(main, ["solve", "run.toml", "--out", "run.nc"])
    assert solved.exit_code == 0 and "rho           gap        radius" in solved.output
    drawn = CliRunner().invoke(main, ["plot", "run.nc", "-o", "run.png"])
    assert drawn.exit_code == 0 and Path("run.png").stat().st_size > 10_000
    refused = CliRunner().invoke(main, ["plot", "run.nc", "-o", "a.png", "--kind", "polar"])
    assert refused.exit_code == 2 and "for equiangular tokens; got" in refused.output


def test_values_out_of_range_are_blamed_on_the_table():
    config = parse_config(table(equiangular__rho=1.0))
    with pytest.raises(mf.ConfigError, match=r"equiangular: .*rho < 1"):
        mf.run_config(config, progress=False)
