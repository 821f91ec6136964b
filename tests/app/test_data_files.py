"""Data files that a configuration names: what is read from them, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from configurations import (
    FAMILIES,
    SA,
    attention,
    begun,
    density,
    of_files,
    refusal,
    solved,
    tokens,
)

import meanfield as mf
from meanfield.core.forms import DATA_FILE
from meanfield.core.parameters import parameters_of


def test_angles_vectors_and_hidden_states_in_a_plane_give_the_same_density(tmp_path):
    """The projection keeps the plane of planar tokens, up to a rotation or reflection of it."""
    rng = np.random.default_rng(0)
    angles = rng.vonmises(0.5, 2.0, 200)
    vectors = mf.Circle.embed(angles)
    hidden = np.stack([rng.standard_normal((200, 2)), 3 * vectors]) @ np.eye(2, 5)
    np.save(tmp_path / "angles.npy", angles)
    np.savetxt(tmp_path / "vectors.csv", vectors, delimiter=",")
    np.savez(tmp_path / "hidden.npz", hidden=hidden, names=np.array(["a"]))
    sample, source = {"kind": "Sample", "bandwidth": 0.5}, tmp_path / "run.toml"
    one = begun({**sample, "file": "angles.npy"}, source)
    two = begun({**sample, "file": "vectors.csv"}, source)
    three = begun({**sample, "file": "hidden.npz", "key": "hidden", "layer": 1}, source)
    np.testing.assert_allclose(two.coefficients, one.coefficients, atol=1e-14)
    np.testing.assert_allclose(abs(three.coefficients), abs(one.coefficients), atol=1e-13)
    states = rng.standard_normal((300, 20)) + 0.5
    np.save(tmp_path / "states.npy", states)
    on_sphere = begun({**sample, "file": "states.npy"}, source, kind="Sphere")
    expected = mf.Sphere(16).estimate(mf.principal_sphere(states), bandwidth=0.5)
    np.testing.assert_array_equal(on_sphere.coefficients, expected.coefficients)


POINTS, MATRIX, SAMPLE = ({"kind": k, "file": "x.npy"} for k in ("File", "FromFile", "Sample"))
BAD_FILES = [
    ("x.npy", b"", {}, "numbers"),
    ("x.npz", b"PK\x03\x04broken", {}, "numbers"),
    ("x.csv", b"1,2\n3,x\n", {}, "numbers"),
    ("x.npz", {"a": np.ones(3), "b": np.ones(3)}, {}, "key.* a, b"),
    ("x.npz", {"a": np.ones(3)}, {"key": "c"}, "key.*'c'"),
    ("x.npz", {"a": np.array(["x"])}, {}, "real numbers"),
    ("x.npz", {"a": np.ones((2, 3, 4))}, {}, "must be 0 to 1, .*got None"),
    ("x.npz", {"a": np.ones((2, 3, 4))}, {"layer": 2}, "must be 0 to 1, .*got 2"),
    ("x.npz", {"a": np.ones(3)}, {"layer": 0}, r"left out for an array \(3,\); got 0"),
    ("x.npz", {"a": np.full((3, 4), np.nan)}, {}, "3 not finite"),
    ("x.npz", {"a": np.ones((3, 0))}, {}, r"shape \(3, 0\)"),
    ("x.npz", {"a": np.ones((3, 2))}, {}, "worst length"),
]


@pytest.mark.parametrize(("name", "content", "keys", "message"), BAD_FILES)
def test_a_bad_sample_file_is_refused_by_key(tmp_path, name, content, keys, message):
    path = tmp_path / name
    np.savez(path, **content) if isinstance(content, dict) else path.write_bytes(content)
    with pytest.raises(mf.ConfigError, match=rf"run.toml: initial.*: .*{message}") as caught:
        begun({"kind": "Sample", "file": name, **keys}, tmp_path / "run.toml")
    assert str(path) in str(caught.value)


def test_every_kind_that_reads_a_file_is_tried_below():
    reading = {
        name
        for family in FAMILIES.values()
        for name in of_files(family)
        if any(p.form is DATA_FILE for p in parameters_of(family.kinds[name]).values())
    }
    assert reading == {kind["kind"] for kind in (POINTS, MATRIX, SAMPLE)}


@pytest.mark.parametrize(
    ("data", "key", "below"),
    [
        (tokens(x=POINTS), "initial", "x"),
        ({**tokens(), "initial": {"kind": "Gram", "G": POINTS}}, "initial", "G"),
        (density(initial={"kind": "Ensemble", "members": [SAMPLE]}), "initial", "members[0]"),
        (attention(Q=MATRIX), "model", "drift.Q"),
        (
            attention(V={"kind": "PerLayer", "values": [MATRIX, MATRIX]}),
            "model",
            "drift.V.values[1]",
        ),
        (tokens({"drift": {"kind": "SA", "beta": MATRIX}}), "model", "drift.beta"),
        (density(model={"drift": {"kind": "USA", "beta": MATRIX}}), "model", "drift.beta"),
        (
            tokens({"drift": SA, "feedforward": {"inner": MATRIX, "outer": [[1.0]]}}),
            "model",
            "feedforward.inner",
        ),
    ],
)
@pytest.mark.parametrize("content", [np.full((3, 3), np.nan), np.array(["x"])])
def test_numbers_that_do_not_fit_are_told_with_their_key_and_file(
    tmp_path, data, key, below, content
):
    np.save(tmp_path / "x.npy", content)
    text = refusal(data, tmp_path / "run.toml")
    assert text.startswith(f"{tmp_path / 'run.toml'}: {key}: ")
    assert f"{key}.{below}.file is {tmp_path / 'x.npy'}" in text


@pytest.mark.parametrize(
    ("data", "key"),
    [
        (density(initial={"kind": "Sample", "file": "gone.npy"}), "initial.file"),
        (tokens(x={"kind": "File", "file": "gone.npy"}), "initial.x.file"),
        (attention(Q={"kind": "FromFile", "file": "gone.npy"}), "model.drift.Q.file"),
    ],
)
def test_data_files_are_looked_for_beside_the_configuration(tmp_path, data, key):
    source = tmp_path / "run.toml"
    text = refusal(data, source)
    assert f"{key}: " in text and '"gone.npy"' in text and str(tmp_path / "gone.npy") in text
    text = refusal(json.loads(json.dumps(data).replace("gone.npy", "gone.txt")), source)
    assert f"{key}: " in text and ".npz" in text


def test_the_result_records_which_data_it_was_made_from(tmp_path):
    np.save(tmp_path / "x.npy", mf.Tokens.uniform(8, 3, rng=0).x)
    np.save(tmp_path / "q.npy", np.eye(3))
    drift = {"kind": "Attention", "Q": {"kind": "FromFile", "file": "q.npy"}}
    data, source = (
        tokens({"drift": drift}, {"kind": "File", "file": "x.npy"}),
        tmp_path / "run.toml",
    )
    before = solved(data, source).provenance["data_files"]
    assert [Path(name).name for name in sorted(before)] == ["q.npy", "x.npy"]
    assert all(len(entry["sha256"]) == 64 for entry in before.values())
    np.save(tmp_path / "q.npy", 2 * np.eye(3))
    after = solved(data, source).provenance["data_files"]
    assert {name for name in after if after[name] != before[name]} == {str(tmp_path / "q.npy")}
