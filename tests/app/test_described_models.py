"""The models that configurations describe are those of Python."""

import numpy as np
import pytest
from configurations import (
    ANGLES,
    GOE,
    LAW,
    SA,
    attention,
    density,
    equiangular,
    gaussian,
    refusal,
    solved,
    tokens,
)

import meanfield as mf
from meanfield.app.configuration import parse_config, run_config


def test_a_series_of_cosines_is_the_potential_over_the_angle():
    """W = cos(theta) is Kuramoto, whatever its constant."""
    drift = {"kind": "CosineSeries", "coefficients": [7.0, 1.0]}
    found = parse_config(density(model={"drift": drift})).tables["model"].drift
    known = mf.Kuramoto().attraction(8, 2)
    np.testing.assert_allclose(found.attraction(8, 2)[1:], known[1:], atol=1e-15)


def test_matrices_are_drawn_read_or_written(tmp_path):
    np.savez(tmp_path / "weights.npz", q=np.diag([1.0, 2.0, 3.0]), v=np.eye(3))
    two = {"heads": 2}
    q = {"kind": "Ginibre", "rows": 2, "rng": 3, **two}
    v = {"kind": "PerLayer", "values": [{**GOE, **two}, {"kind": "Wishart", "rng": 5, **two}]}
    run = solved(attention(Q=q, K={**q, "rng": 4, "scale": 0.5}, V={**v, "duration": 0.5}))
    drift = run.model.drift
    assert np.array_equal(drift.Q, mf.ensembles.ginibre(3, 3, (2,), rows=2))
    assert np.array_equal(drift.K, 0.5 * mf.ensembles.ginibre(3, 4, (2,), rows=2))
    expected = [mf.ensembles.goe(3, 3, (2,)), mf.ensembles.wishart(3, 5, (2,))]
    assert np.array_equal(drift.V.values, expected) and drift.V.duration == 0.5
    read = {"kind": "FromFile", "file": "weights.npz", "key": "q"}
    per_layer = {"kind": "PerLayer", "values": [1, 2]}
    drift = solved(attention(Q=read, beta=per_layer), tmp_path / "run.toml").model.drift
    assert np.array_equal(drift.Q, np.diag([1.0, 2.0, 3.0])) and drift.K == 1.0
    assert drift.beta.values.tolist() == [1, 2]
    text = refusal(attention(Q={**read, "key": "x"}), tmp_path / "run.toml")
    assert "run.toml: model: " in text and "'x'" in text


def test_matrices_are_drawn_for_each_replica():
    """In the axes of the replicas of the state; those of arrays of the model come after."""
    given = attention(Q={**GOE, "per_replica": True}, beta=[1.0, 2.0])
    given["initial"]["x"] = {"kind": "Uniform", "n": 4, "d": 3, "rng": 9, "replicas": 5}
    run = solved(given)
    assert run.shape == (5, 2) and run.model.drift.Q.shape == (5, 1, 1, 3, 3)
    np.testing.assert_array_equal(run.model.drift.Q[:, 0, 0], mf.ensembles.goe(3, 3, (5,)))
    given["initial"]["x"] = {"kind": "Uniform", "n": 4, "d": 3, "rng": 9}
    assert solved(given).model.drift.Q.shape == (3, 3)


def test_a_perceptron_and_a_reaction_reach_the_model():
    table = {"inner": [[1, 2, 3]], "outer": [[1], [0], [0]], "bias": [2], "activation": "tanh"}
    given = tokens({"drift": SA, "feedforward": table, "reaction": 0.5})
    model = parse_config(given).tables["model"]
    assert model.feedforward(np.ones(3)).tolist() == [np.tanh(8.0), 0, 0]
    assert model.reaction == 0.5


@pytest.mark.parametrize(
    ("beta", "expected"),
    [
        ({"kind": "Logarithmic", "gamma": 2.0}, 2 * np.log([32, 1e12])),
        (
            {"kind": "Logarithmic", "gamma": [1.0, 2.0], "offset": 1},
            [1 + np.log(32), 1 + 2 * np.log(1e12)],
        ),
        ({"kind": "Power", "d": 5, "factor": 0.5}, np.sqrt([32, 1e12]) / 2),
    ],
)
def test_beta_may_grow_with_the_number_of_tokens(beta, expected):
    run = solved(equiangular({"drift": {"kind": "SA", "beta": beta}}, n=[32.0, 1e12]))
    np.testing.assert_allclose(run.model.drift.beta, expected, rtol=1e-15)
    assert run.provenance["config"]["model"]["drift"]["beta"] == beta


@pytest.mark.parametrize("drift", ["SA", "Attention"])
def test_beta_of_tokens_knows_their_number(drift):
    beta = {"kind": "Logarithmic", "gamma": [1.0, 2.0]}
    run = solved(tokens({"drift": {"kind": drift, "beta": beta}}, x=ANGLES))
    np.testing.assert_allclose(run.observables["beta"], np.log(3) * np.array([1, 2]), rtol=1e-15)


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("normalisation", "gap"),
    [("PostLN", 7.8028862e-8), ("PreLN", 1.590707e-2), ("NGPT", 6.4724415e-9)],
)
def test_equiangular_tokens_end_at_the_known_gap(normalisation, gap):
    times = {"t_span": [0.0, 10.0], "t_eval": [10.0], "rtol": 1e-12}
    run = solved(equiangular({"drift": SA, "normalisation": normalisation}, times))
    np.testing.assert_allclose(run.final.gap, gap, rtol=4e-7)


def test_arrays_make_an_ensemble_and_layers_are_taken():
    solve = {"t_span": [0.0, 2.0], "t_eval": {"kind": "Linspace", "count": 5}}
    given = equiangular(
        {"drift": {"kind": "SA", "beta": [[0.0], [1.0]]}}, {**solve, "scheme": "Layers", "dt": 0.5}
    )
    given["initial"] = {"kind": "Equiangular", "n": [4.0, 1e12, 8.5], "gap": 1e-3}
    run = solved(given)
    assert run.shape == (2, 3) and len(run) == 5 and run.stats["schemes"] == {"Layers": 4}


@pytest.mark.repeats
@pytest.mark.parametrize("kind", ["Softmax", "L2", "Sinkhorn", "Linear"])
def test_a_gaussian_is_solved_as_in_python(kind, tmp_path):
    config = parse_config(gaussian({"V": [[1, 2], [0, 1]], "weights": kind}))
    run = run_config(config, tmp_path / "run.nc", progress=False)
    model = mf.Transformer(mf.Attention(V=[[1, 2], [0, 1]], weights=getattr(mf, kind)()))
    same = mf.solve(model, mf.Gaussian(LAW["mean"], LAW["cov"]), (0, 0.1), t_eval=[0, 0.05, 0.1])
    np.testing.assert_array_equal(run.final.cov, same.final.cov)
    np.testing.assert_array_equal(mf.load(tmp_path / "run.nc").final.mean, same.final.mean)


def test_random_matrices_have_the_dimension_of_the_gaussian():
    run = solved(gaussian({"Q": GOE, "weights": "L2"}))
    np.testing.assert_array_equal(run.model.drift.Q, mf.ensembles.goe(2, 3))
