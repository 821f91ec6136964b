"""Configuration files: how they are read, run, and kept with what they lead to."""

from inspect import signature

import numpy as np
import pytest
from configurations import (
    FOURIER,
    GOE,
    NOISY,
    SA,
    SPAN,
    UNIFORM,
    attention,
    changed,
    density,
    equiangular,
    gaussian,
    solved,
    tokens,
)

import meanfield as mf
from meanfield.app.configuration import parse_config, read_config, run_config, schema
from meanfield.app.tasks import PROGRAM_ONLY, TASKS, ArgumentTable
from meanfield.core.identity import digest


def test_a_file_reads_like_its_data(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(
        'title = "inf"\n[model]\ndrift = "Kuramoto"\nkappa = inf\n[space]\nkind = "Circle"\n'
        'degree = 8\n[initial]\nkind = "Uniform"\n[solve]\nt_span = [0, 1]\n'
    )
    config = read_config(path)
    assert config.tables["model"].kappa == np.inf and config.tables["title"] == "inf"
    assert config.source == path and config.data["model"]["kappa"] == "inf"


def test_the_arguments_of_a_file_are_those_of_python():
    """All but those that only a program can give; what is left out is left to Python."""
    functions = {
        "solve": mf.solve,
        "sweep": mf.sweep,
        "chaos": mf.propagation_of_chaos,
        "bifurcation": mf.branches,
        "phase_diagram": mf.phase_diagram,
    }
    assert set(functions) == set(TASKS)
    for work, function in functions.items():
        table = TASKS[work].required()[work]
        assert isinstance(table, ArgumentTable)
        assert set(table.keys) == set(signature(function).parameters) - PROGRAM_ONLY
        assert set(schema(work)["properties"][work]["properties"]) == set(table.keys)
    given = {**SPAN, "rtol": 1e-6, "dt": 0.1, "until": "steady", "steady_tolerance": 1e-3}
    given |= {"min_degree": 8, "max_degree": 64, "max_steps": 9, "checkpoint_every": 7.0}
    given |= {"breaks": [0.02, 0.05]}
    found = parse_config(density(solve=given)).tables["solve"]
    assert found.keys() == given.keys() and found["rtol"] == 1e-6
    options = {
        "scheme": "Layers",
        "dt": 0.1,
        "merge": 1e-6,
        "engine": {"kind": "Direct", "threads": 2},
    }
    found = parse_config(tokens(solve=options)).tables["solve"]
    assert found["scheme"] is mf.steppers.Layers
    assert found["engine"] == mf.engines.Direct(threads=2)


def test_a_run_on_the_torus_is_that_of_python():
    data = {
        "model": {"kappa": 2.0, "drift": {"kind": "USA", "beta": 1.0}},
        "space": {"kind": "Torus", "degree": 10, "dimension": 2},
        "initial": {"kind": "VonMises", "concentration": 0.5, "mean": 0.3},
        "solve": {"t_span": [0.0, 0.1], "t_eval": [0.1]},
    }
    model, start = mf.Transformer(mf.USA(1.0), kappa=2.0), mf.Torus(10).von_mises(0.3, 0.5)
    expected = mf.solve(model, start, (0.0, 0.1), t_eval=[0.1]).final
    found = solved(data).final
    assert found.space == expected.space
    assert np.array_equal(found.coefficients, expected.coefficients)


def test_times_that_no_step_passes_are_listed():
    run = solved(density(solve={"t_span": [0.0, 0.1], "t_eval": [0.1], "breaks": [0.02, 0.05]}))
    assert run.options["breaks"] == [0.02, 0.05]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({"kind": "Linspace", "count": 5}, np.linspace(1, 3, 5)),
        ({"kind": "Geomspace", "count": 3, "first": 0.02}, [1.0, 1.02, 3.0]),
        ([1.0, 1.5], [1.0, 1.5]),
    ],
)
def test_output_times_are_listed_or_spaced(times, expected):
    given = density(solve={"t_span": [1.0, 3.0], "t_eval": times})
    np.testing.assert_allclose(solved(given).t, expected, rtol=1e-15)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[model]\ndrift = \nbeta = 1\n", r"run\.toml: not TOML: .*line 2, column 9"),
        (b"[model]\nbeta = [1,\n", r"run\.toml: not TOML: .*end of document"),
        (b"\x89HDF\r\n", r"run\.toml: expected a TOML file"),
    ],
)
def test_a_malformed_file_is_refused_by_line(tmp_path, content, message):
    path = tmp_path / "run.toml"
    path.write_bytes(content)
    with pytest.raises(mf.ConfigError, match=message):
        read_config(path)


def test_a_missing_file_is_named_with_the_place_where_it_was_sought(tmp_path):
    with pytest.raises(mf.ConfigError, match="no such configuration file") as caught:
        read_config(tmp_path / "gone.toml")
    assert str(tmp_path / "gone.toml") in str(caught.value)
    with pytest.raises(mf.ConfigError, match="cannot be read"):
        read_config(tmp_path)
    with pytest.raises(TypeError, match="path"):
        read_config(3)


def test_a_seed_that_is_not_read_is_accepted_as_in_python():
    given, start = tokens(solve={"rng": 7}), mf.Tokens.uniform(6, 3, rng=1)
    same = mf.solve(mf.Transformer(mf.SA(1.0)), start, **SPAN, rng=7)
    assert solved(given).final.x.tobytes() == same.final.x.tobytes()


def test_a_run_needs_a_configuration_and_a_file_to_resume():
    config = parse_config(density())
    with pytest.raises(TypeError, match="read_config"):
        run_config({"solve": {}})
    with pytest.raises(ValueError, match="resume"):
        run_config(config, resume=True)


def test_what_is_left_out_is_as_in_python():
    for name in ("Attention", "Hardmax", "Kuramoto"):
        model = parse_config(tokens({"drift": name})).tables["model"]
        assert model == mf.Transformer(getattr(mf, name)())
    with_default = parse_config(tokens({"drift": SA, "noise": "Isotropic"})).tables["model"]
    assert with_default == mf.Transformer(mf.SA(1.0)) and not with_default.noisy


KEPT = {
    "density": density(),
    "ensemble": changed("density", {"model.drift": SA, "model.kappa": [1.0, np.inf]}),
    "sphere": density(
        space={"kind": "Sphere", "degree": 8}, initial={"kind": "Legendre", "coefficients": [0.5]}
    ),
    "zonal": density(
        space={"kind": "Zonal", "dimension": 64, "degree": 8},
        initial={"kind": "VonMisesFisher", "concentration": 1.0},
    ),
    "characteristics": density(
        model={"drift": SA},
        initial={"kind": "AlongCharacteristics", "law": {**FOURIER, "cos": [0.5]}},
    ),
    "tokens": tokens(),
    "noise": tokens(NOISY, {**UNIFORM, "replicas": 2}, {"rng": 2, "dt": 0.05}),
    "layers": tokens(solve={"scheme": "Layers", "dt": 0.05}),
    "pre-LN": tokens({"drift": SA, "normalisation": "PreLN"}),
    "attention": attention(Q=GOE, weights="L2"),
    "gram": {**tokens(), "initial": {"kind": "Gram", "G": UNIFORM}},
    "gaussian": gaussian(),
    "equiangular": equiangular(),
}


@pytest.mark.bits
@pytest.mark.parametrize("data", KEPT.values(), ids=KEPT)
def test_a_run_can_be_repeated_from_its_result_alone(data, tmp_path):
    run_config(parse_config(data), tmp_path / "run.nc", progress=False)
    run = mf.load(tmp_path / "run.nc")
    again = solved(run.provenance["config"])
    assert np.array_equal(run.t, again.t) and run.model == again.model
    assert [digest(state) for state in run.states] == [digest(state) for state in again.states]
    assert not (tmp_path / "run.nc.checkpoint").exists()


def test_a_result_belongs_to_one_command_until_all_is_written(tmp_path, monkeypatch):
    """Another one would lose its checkpoint, which the first removes in the end."""
    config, out, refused = parse_config(density()), tmp_path / "run.nc", []
    save = mf.Solution.save

    def save_while_another_begins(run, path):
        with pytest.raises(mf.StorageError, match=r"run\.nc is in use by another run, of process"):
            run_config(config, out, progress=False)
        refused.append(path)
        return save(run, path)

    with monkeypatch.context() as patched:
        patched.setattr(mf.Solution, "save", save_while_another_begins)
        run_config(config, out, progress=False)
    run_config(config, out, progress=False)
    assert refused == [out] and [file.name for file in tmp_path.iterdir()] == ["run.nc"]
