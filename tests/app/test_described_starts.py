"""The states that configurations describe are those of Python."""

import numpy as np
import pytest
from configurations import ANGLES, FOURIER, SPAN, UNIFORM, begun, solved, state_of, tokens
from hypothesis import given
from hypothesis import strategies as st

import meanfield as mf


@given(a=st.floats(-0.3, 0.3), b=st.floats(-0.3, 0.3))
def test_fourier_is_the_series_it_says(a, b):
    found = begun({**FOURIER, "cos": [a, 0.1], "sin": [b]})
    theta = found.space.angles
    expected = 1 + a * np.cos(theta) + 0.1 * np.cos(2 * theta) + b * np.sin(theta)
    np.testing.assert_allclose(found.values, expected, atol=1e-14)


def test_laws_are_the_methods_of_spaces():
    axis, circle, sphere = [0.0, 0.6, 0.8], mf.Circle(16), mf.Sphere(16)
    fisher = {"kind": "VonMisesFisher", "concentration": 3.0}
    noise = {"kind": "Perturbed", "amplitude": 0.01, "rng": 3}
    pairs = [
        (begun("Uniform"), circle.uniform()),
        (
            begun({"kind": "VonMises", "concentration": 2.0, "mean": 1.0}),
            circle.von_mises(1.0, 2.0),
        ),
        (begun({**noise, "degrees": [1, 2]}), circle.perturbed(0.01, rng=3, degrees=[1, 2])),
        (begun({**fisher, "mean": axis}, kind="Sphere"), sphere.von_mises_fisher(axis, 3.0)),
        (
            begun(fisher, kind="Zonal", dimension=64),
            mf.Zonal(64, 16).von_mises_fisher(concentration=3.0),
        ),
        (
            begun({"kind": "Legendre", "coefficients": [0.5], "axis": axis}, kind="Sphere"),
            sphere.zonal([1, 0.5], axis=axis),
        ),
        (begun(noise, kind="Zonal", dimension=3), mf.Zonal(3, 16).perturbed(0.01, rng=3)),
    ]
    for found, expected in pairs:
        assert found.space == expected.space
        np.testing.assert_array_equal(found.coefficients, expected.coefficients)


def test_a_mixture_is_the_weighted_mean_of_its_components():
    peak = {"kind": "VonMises", "mean": 1.0, "concentration": 2.0}
    parts = [{"law": peak, "weight": 3.0}, {"law": "Uniform", "weight": 1.0}]
    mixed = begun({"kind": "Mixture", "components": parts})
    np.testing.assert_allclose(mixed.values, 0.75 * begun(peak).values + 0.25, atol=1e-15)


def test_an_ensemble_has_the_members_it_lists():
    members = [{"kind": "Perturbed", "amplitude": 0.01, "rng": seed} for seed in (1, 2, 1)]
    found = begun({"kind": "Ensemble", "members": members})
    assert found.shape == (3,)
    one, two, again = found.coefficients
    assert np.array_equal(one, again) and not np.allclose(one, two)


def test_characteristics_of_a_law():
    law = {"kind": "Legendre", "coefficients": [0.5]}
    given = {"kind": "AlongCharacteristics", "law": law, "nodes": 4096, "limit": [0.0, 0.0, 1.0]}
    found = begun(given, kind="Sphere", degree=8)
    assert isinstance(found, mf.Characteristics) and len(found) <= 4096
    assert found.limit.tolist() == [0, 0, 1]
    for wrong, message in ((4, "integrate"), (0, ">= 1")):
        with pytest.raises(mf.ConfigError, match=f"initial.*{message}"):
            begun({**given, "nodes": wrong}, kind="Sphere", degree=8)
    with pytest.raises(mf.ConfigError, match=r"initial.limit: must be a unit vector"):
        begun({**given, "limit": [0.0, 1.0]}, kind="Sphere", degree=8)


def test_positions_are_those_of_python(tmp_path):
    uniform = state_of(tokens(x={**UNIFORM, "replicas": 2}))
    assert np.array_equal(uniform.x, mf.Tokens.uniform(6, 3, rng=1, shape=(2,)).x)
    assert np.array_equal(state_of(tokens(x=ANGLES)).x, mf.Tokens.on_circle([0.0, 1.0, 2.0]).x)
    basis = state_of(tokens(x={"kind": "Orthonormal", "n": 2, "d": 4}, masses=[0.25, 0.75]))
    assert np.array_equal(basis.x, np.eye(2, 4)) and basis.masses.tolist() == [0.25, 0.75]
    plane = state_of(tokens(x={**UNIFORM, "kind": "Normal"}, on_sphere=False))
    assert np.array_equal(plane.x, np.random.default_rng(1).standard_normal((6, 3)))
    np.savez(tmp_path / "x.npz", a=uniform.x, b=[0.5, 1.5])
    for key, expected in (("a", uniform.x), ("b", mf.Tokens.on_circle([0.5, 1.5]).x)):
        found = state_of(
            tokens(x={"kind": "File", "file": "x.npz", "key": key}), tmp_path / "run.toml"
        )
        assert np.array_equal(found.x, expected)
    gram = state_of({**tokens(), "initial": {"kind": "Gram", "G": ANGLES}})
    assert isinstance(gram, mf.Gram) and gram.G[0, 1] == pytest.approx(np.cos(1.0), rel=1e-15)


def test_tokens_are_sampled_from_a_law():
    drawn = {"kind": "SampledTokens", "law": {**FOURIER, "cos": [0.5]}, "n": 4000, "rng": 5}
    found = begun({**drawn, "replicas": 4}, degree=8)
    assert found.shape == (4,) and len(found) == 4000
    means = found.x[..., 0].mean(axis=1)  # 1/4, with variance 1/2 - 1/16
    assert np.abs(means - 0.25).max() < 4 * np.sqrt(0.4375 / 4000)
    assert len(set(means)) == 4


def test_tokens_are_sampled_on_the_torus():
    """The tokens of `Density.sample` with their angles; with masses and replicas, without radii."""
    torus = mf.Torus(degree=16)
    law = {"kind": "VonMises", "mean": 0.4, "concentration": 2.0}
    sampled = mf.build(mf.Start, {"kind": "SampledTokens", "law": law, "n": 30, "rng": 5})
    expected = torus.von_mises(0.4, 2.0).sample(30, rng=5)
    assert isinstance(sampled.begin(torus), mf.TorusTokens)
    np.testing.assert_array_equal(sampled.begin(torus).angles, expected.angles)
    masses = np.arange(3) / 3
    table = {"kind": "SampledTokens", "law": law, "n": 3, "rng": 5, "masses": masses.tolist()}
    many = mf.build(mf.Start, {**table, "replicas": 10}).begin(torus)
    assert many.shape == (10,) and np.array_equal(many.masses[7], masses)
    np.testing.assert_allclose(np.cos(many.angles.reshape(30, 2) - expected.angles), 1, atol=1e-15)
    with pytest.raises(ValueError, match="radii must be None"):
        mf.build(mf.Start, {**table, "radii": [1.0, 1.0, 2.0]}).begin(torus)


def test_replicas_come_before_the_ensemble_of_the_model():
    model = {"drift": {"kind": "SA", "beta": [[1.0], [2.0]]}}
    for initial in (
        {"kind": "Tokens", "x": {**UNIFORM, "replicas": 4}},
        {"kind": "Gram", "G": {**UNIFORM, "replicas": 4}},
    ):
        given = {"model": {**model, "kappa": [np.inf] * 3}, "initial": initial, "solve": SPAN}
        assert solved(given).shape == (4, 2, 3)
