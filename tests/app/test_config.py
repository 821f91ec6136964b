"""Configuration files: what is valid, what the errors say, what is built from them."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from meanfield.app.config import parse_config, plain, read_config
from meanfield.app.config.build import build_density, build_model

import meanfield as mf


def valid(**tables):
    """A small valid configuration as plain data, with some tables changed."""
    data = {
        "model": {"drift": "USA", "beta": 1.0, "kappa": 3.0},
        "geometry": {"degree": 16},
        "initial": {"kind": "fourier", "cos": [0.3, 0.1], "sin": [0.0, 0.0, 0.05]},
        "solve": {"t_end": 0.1, "outputs": 3},
    }
    return {**data, **tables}


def refusal(data, source=None):
    """The message with which a configuration is refused."""
    with pytest.raises(mf.ConfigError) as caught:
        parse_config(data, source=source)
    return str(caught.value)


# Reading -----------------------------------------------------------------------------------


numbers = st.floats(-50, 50)
arrays = st.lists(st.floats(1e-3, 1e3) | st.just(np.inf), min_size=1, max_size=3)
states = st.one_of(
    st.fixed_dictionaries({"kind": st.just("uniform")}),
    st.fixed_dictionaries({"kind": st.just("fourier")}, optional={"cos": st.lists(numbers)}),
    st.fixed_dictionaries(
        {"kind": st.just("von_mises"), "concentration": st.floats(0, 9)},
        optional={"mean": numbers},
    ),
    st.fixed_dictionaries(
        {"kind": st.just("perturbed"), "amplitude": st.floats(1e-9, 1), "seed": st.integers(0)}
    ),
)
parts = st.builds(lambda state, w: {**state, "weight": w}, states, st.floats(1e-3, 9))
mixtures = st.builds(
    lambda components: {"kind": "mixture", "components": components}, st.lists(parts, min_size=1)
)


@given(
    beta=numbers | st.lists(numbers, min_size=1, max_size=1),
    kappa=arrays,
    initial=states | mixtures,
    times=st.sampled_from([{}, {"outputs": 7}, {"t_eval": [0, 1]}, {"until": "steady"}]),
)
def test_a_configuration_survives_its_own_json(beta, kappa, initial, times):
    """Provenance must be enough to run again: inf, arrays and defaults included."""
    model = {"drift": "SA", "beta": beta, "kappa": kappa}
    config = parse_config(valid(model=model, initial=initial, solve={"t_end": 1, **times}))
    assert parse_config(json.loads(json.dumps(plain(config), allow_nan=False))) == config


def test_a_file_reads_like_its_data(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(
        '[model]\ndrift = "Kuramoto"\nkappa = inf\n[geometry]\ndegree = 8\n'
        '[initial]\nkind = "uniform"\n[solve]\nt_end = 1\n'
    )
    config = read_config(path)
    assert config.model.kappa == np.inf and config.solve.t_end == 1.0
    assert config.source == path


# Refusing ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "table, key",
    [(t, k) for t, table in valid(checkpoint={"every": 1}).items() for k in table if k != "kind"],
)
def test_a_misspelt_key_is_named_with_the_right_one(table, key):
    misspelt = key[:-1] + "x" if len(key) < 5 else key[:2] + key[3:]
    data = valid(checkpoint={"every": 1})
    data[table] = {**data[table], misspelt: data[table][key]}
    if key == "drift":
        assert "unknown key" in refusal(data)
    else:
        assert f"{table}.{misspelt}: unknown key; did you mean {key}?" in refusal(data)


def test_a_key_of_another_table_is_sent_home():
    assert "did you mean rtol in [solve]?" in refusal(valid(rtol=1e-3))
    assert "did you mean beta in [model]?" in refusal(valid(geometry={"degree": 4, "beta": 1}))


@pytest.mark.parametrize(
    "table, key", [("model", "beta"), ("geometry", "degree"), ("solve", "t_end")]
)
def test_a_missing_key_is_named(table, key):
    data = valid()
    data[table] = {name: value for name, value in data[table].items() if name != key}
    assert refusal(data).startswith(f"{table}.{key}: this key is required")
    assert refusal({k: v for k, v in valid().items() if k != table}).startswith(f"{table}: this")


FOURIER, SAMPLE = {"kind": "fourier"}, {"kind": "sample", "file": "x.npy"}
IMPOSSIBLE = [
    (
        "model",
        {"drift": "Usa", "beta": 1},
        'model.drift: expected .* got "Usa"; did you mean "USA"',
    ),
    ("model", {"beta": 1}, "model.drift: expected one of .*Kuramoto"),
    ("model", {"drift": "USA", "beta": "4"}, "model.beta: expected a finite number.* got '4'"),
    ("model", {"drift": "USA", "beta": np.nan}, "model.beta: expected a finite number.* got nan"),
    ("model", {"drift": "USA", "beta": True}, "model.beta: expected a finite number.* got True"),
    ("model", {"drift": "USA", "beta": []}, "model.beta: expected an array with at least one"),
    ("model", {"drift": "USA", "beta": [[1], [1, 2]]}, "model.beta: .*rows of equal length"),
    ("model", {"drift": "SA", "beta": 1, "kappa": 0}, "model.kappa: expected a number > 0.* got 0"),
    ("model", {"drift": "SA", "beta": 1, "kappa": [1, -2]}, "model.kappa: .* > 0.* got -2"),
    ("model", {"drift": "SA", "beta": 1, "kappa": np.nan}, "model.kappa: .* > 0.* got nan"),
    ("model", {"drift": "SA", "beta": [1, 2], "kappa": [1, 2, 3]}, r"kappa has shape \(3,\)"),
    ("model", {"drift": "Kuramoto", "beta": 1}, r"model.beta: unknown key; .*drift, kappa"),
    ("model", {"drift": "Interaction", "cosines": [1.0]}, "model.cosines: .*at least 2 entries"),
    ("geometry", {"degree": 0}, "geometry.degree: expected a number >= 1; got 0"),
    ("geometry", {"degree": 8.0}, "geometry.degree: expected a whole number; got 8.0"),
    (
        "solve",
        {"t_end": 1.0, "min_degree": 8, "max_degree": 8},
        "geometry.degree <= solve.max_degree; got",
    ),
    (
        "geometry",
        {"kind": "torus", "degree": 8},
        'geometry.kind: expected "circle" or "sphere" or "zonal"; got "torus"',
    ),
    ("geometry", 8, "geometry: expected a table; got 8"),
    ("initial", {"kind": "vonmises"}, 'initial.kind: .* did you mean "von_mises"'),
    ("initial", {**FOURIER, "cos": [0, "a"]}, r'initial.cos\[1\]: expected a number; got "a"'),
    ("initial", {**FOURIER, "sin": 1}, "initial.sin: expected an array; got 1"),
    ("initial", {**FOURIER, "cos": [np.inf]}, r"initial.cos\[0\]: expected a finite number"),
    ("initial", {"kind": "von_mises", "concentration": -1}, "initial.concentration: .*>= 0"),
    ("initial", {"kind": "mixture", "components": []}, "initial.components: .*at least 1 entries"),
    ("initial", {"kind": "mixture", "components": [FOURIER]}, r"components\[0\].weight: this key"),
    ("initial", {"kind": "ensemble", "members": [{"kind": "x"}]}, r"initial.members\[0\].kind: "),
    ("initial", {"kind": "sample", "file": "x.txt"}, r"initial.file: expected .*\.npz"),
    ("initial", {**SAMPLE, "file": "gone.npy"}, r"initial.file: there is no file 'gone.npy'"),
    ("solve", {"t_end": 0}, "solve.t_end: expected a time after t_start = 0; got 0"),
    ("solve", {"t_end": "1"}, 'solve.t_end: expected a number; got "1"'),
    ("solve", {"t_end": 1, "rtol": 0}, "solve.rtol: expected a number >= 1e-13; got 0"),
    ("solve", {"t_end": 1, "dt": -1}, "solve.dt: expected a number > 0; got -1"),
    ("solve", {"t_end": 1, "outputs": 1}, "solve.outputs: expected a number >= 2; got 1"),
    ("solve", {"t_end": 1, "t_eval": [0, 2]}, "solve.t_eval: expected times within .* got 0 to 2"),
    ("solve", {"t_end": 1, "t_eval": [0.5, 0.5]}, "solve.t_eval: expected increasing times"),
    ("solve", {"t_end": 1, "t_eval": [1], "outputs": 3}, "outputs and t_eval exclude each other"),
    ("solve", {"t_end": 1, "until": "Steady"}, 'solve.until: .*did you mean "steady"'),
    ("solve", {"t_end": 1, "steady_tolerance": 1e-3}, "steady_tolerance has an effect only"),
    ("solve", {"t_end": 1, "min_degree": 64, "max_degree": 32}, "min_degree <= max_degree"),
    ("checkpoint", {"every": 0}, "checkpoint.every: expected a number > 0; got 0"),
]


@pytest.mark.parametrize("table, content, message", IMPOSSIBLE)
def test_impossible_values_are_refused_by_key(table, content, message):
    text = refusal(valid(**{table: content}))
    assert "\n" not in text and re.search(message, text), text


def test_all_problems_are_reported_at_once_each_with_the_file():
    data = valid(title=3, geometry={"degre": 8}, solve={"t_end": -1, "rtol": "x"})
    lines = refusal(data, source="folder/run.toml").splitlines()
    assert all(line.startswith("folder/run.toml: ") for line in lines)
    keys = [line.split(": ")[1] for line in lines]
    assert keys == ["title", "geometry.degree", "geometry.degre", "solve.t_end", "solve.rtol"]


@pytest.mark.parametrize(
    "content, message",
    [
        (b"[model]\ndrift = \nbeta = 1\n", r"run\.toml: line 2, column 9: not TOML: "),
        (b"[model]\nbeta = [1,\n", r"run\.toml: line 2, the end of the file: not TOML: "),
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


# Building ----------------------------------------------------------------------------------


def density_of(initial, source=None):
    """The density, of degree 16, that a table [initial] describes."""
    return build_density(parse_config(valid(initial=initial), source=source))


@given(a=st.floats(-0.3, 0.3), b=st.floats(-0.3, 0.3))
def test_fourier_is_the_series_it_says(a, b):
    density = density_of({"kind": "fourier", "cos": [a, 0.1], "sin": [b]})
    theta = density.geometry.angles
    expected = 1 + a * np.cos(theta) + 0.1 * np.cos(2 * theta) + b * np.sin(theta)
    np.testing.assert_allclose(density.values, expected, atol=1e-14)


def test_a_mixture_is_the_weighted_mean_of_its_components():
    peak = {"kind": "von_mises", "mean": 1.0, "concentration": 2.0}
    parts = [{**peak, "weight": 3.0}, {"kind": "uniform", "weight": 1.0}]
    mixed = density_of({"kind": "mixture", "components": parts})
    expected = 0.75 * density_of(peak).values + 0.25
    np.testing.assert_allclose(mixed.values, expected, atol=1e-15)


def test_an_ensemble_has_the_members_it_lists():
    members = [{"kind": "perturbed", "amplitude": 0.01, "seed": seed} for seed in (1, 2, 1)]
    density = density_of({"kind": "ensemble", "members": members})
    assert density.shape == (3,)
    one, two, again = density.coefficients
    assert np.array_equal(one, again) and not np.allclose(one, two)


def test_cosines_are_the_potential_over_the_angle():
    """W = cos(theta) is Kuramoto, whatever its constant."""
    config = parse_config(valid(model={"drift": "Interaction", "cosines": [7.0, 1.0]}))
    weights = build_model(config).drift.attraction(8, 2)
    np.testing.assert_allclose(weights[1:], mf.Kuramoto().attraction(8, 2)[1:], atol=1e-15)


def test_angles_vectors_and_hidden_states_in_a_plane_give_the_same_density(tmp_path):
    """The projection keeps the plane of planar tokens, up to a rotation or reflection of it."""
    rng = np.random.default_rng(0)
    angles = rng.vonmises(0.5, 2.0, 200)
    vectors = mf.Circle.embed(angles)
    hidden = np.stack([rng.standard_normal((200, 2)), 3 * vectors]) @ np.eye(2, 5)
    np.save(tmp_path / "angles.npy", angles)
    np.savetxt(tmp_path / "vectors.csv", vectors, delimiter=",")
    np.savez(tmp_path / "hidden.npz", hidden=hidden, names=np.array(["a"]))
    sample = {"kind": "sample", "bandwidth": 0.5}
    source = tmp_path / "run.toml"
    one = density_of({**sample, "file": "angles.npy"}, source)
    two = density_of({**sample, "file": "vectors.csv"}, source)
    three = density_of({**sample, "file": "hidden.npz", "key": "hidden", "layer": 1}, source)
    np.testing.assert_allclose(two.coefficients, one.coefficients, atol=1e-14)
    np.testing.assert_allclose(abs(three.coefficients), abs(one.coefficients), atol=1e-13)


BAD_FILES = [
    ("x.npy", b"", {}, "could not be read as numbers"),
    ("x.npz", b"PK\x03\x04broken", {}, "could not be read as numbers"),
    ("x.csv", b"1,2\n3,x\n", {}, "could not be read as numbers"),
    ("x.npz", {"a": np.ones(3), "b": np.ones(3)}, {}, "expected key to name one of .* a, b"),
    ("x.npz", {"a": np.ones(3)}, {"key": "c"}, "expected key to name .* got 'c'"),
    ("x.npz", {"a": np.array(["x"])}, {}, "expected real numbers"),
    ("x.npz", {"a": np.ones((2, 3, 4))}, {}, "2 layers: expected layer = 0 to 1; got none"),
    ("x.npz", {"a": np.ones((2, 3, 4))}, {"layer": 2}, "expected layer = 0 to 1; got 2"),
    ("x.npz", {"a": np.ones(3)}, {"layer": 0}, r"layer = 0 needs an array \(layers, n, d\)"),
    ("x.npz", {"a": np.full((3, 4), np.nan)}, {}, "12 are nan or infinite"),
    ("x.npz", {"a": np.ones((3, 0))}, {}, r"none of them empty; got shape \(3, 0\)"),
    ("x.npz", {"a": np.ones((3, 2))}, {}, "must have length 1"),
]


@pytest.mark.parametrize("name, content, keys, message", BAD_FILES)
def test_a_bad_sample_file_is_refused_by_key(tmp_path, name, content, keys, message):
    path = tmp_path / name
    np.savez(path, **content) if isinstance(content, dict) else path.write_bytes(content)
    with pytest.raises(mf.ConfigError, match=f"run.toml: initial: .*{message}"):
        density_of({"kind": "sample", "file": name, **keys}, tmp_path / "run.toml")


def test_what_is_no_density_is_refused_by_table():
    for initial, key in [
        ({"kind": "fourier", "cos": [1.5]}, "initial: .*negative"),
        ({"kind": "fourier", "cos": [0.0] * 17}, "initial: .*17"),
        ({"kind": "ensemble", "members": [{"kind": "fourier", "sin": [2]}]}, r"members\[0\]: "),
    ]:
        with pytest.raises(mf.ConfigError, match=key):
            density_of(initial)
