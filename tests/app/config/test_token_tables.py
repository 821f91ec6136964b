"""Configuration files with tokens: what is valid, and what is built from them."""

import json
from pathlib import Path

import numpy as np
import pytest
from meanfield.app.config import parse_config, plain, read_config
from meanfield.app.config.build import build_model, build_state, solve_arguments
from token_files import DENSITY, GOE, NOISY, SA, TRIANGLE, UNIFORM, attention, refusal, valid

import meanfield as mf

EXAMPLES = sorted((Path(__file__).resolve().parents[3] / "examples").glob("*.toml"))


def tokens_of(tokens, model=None, solve=None, source=None, **tables):
    """The state that such a table [tokens] describes."""
    return build_state(parse_config(valid(model, tokens, solve, **tables), source=source))


def drift_of(**keys):
    """The drift of a table [model] with drift = "Attention"."""
    return build_model(parse_config(attention(**keys))).drift


# Reading -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        valid(),
        valid(NOISY, {**UNIFORM, "replicas": 2}, {"seed": 2, "engine": "modes", "tolerance": 1e-9}),
        valid(tokens={**UNIFORM, "gram": True}),
        valid(tokens={"n": 5, "seed": 1}, **DENSITY),
        valid({**SA, "normalisation": {"kind": "mix_ln", "tau": 0.5}}, {**TRIANGLE, "radii": 2.0}),
        valid(
            {**NOISY, "noise": {"kind": "anisotropic", "sigma": [[1, 0], [0, 2]]}},
            TRIANGLE,
            {"seed": 0},
        ),
        valid(
            {"drift": "Hardmax"},
            {"points": [[0.6, 0.8], [1.0, 0.0]]},
            {"scheme": "Layers", "dt": 0.1},
        ),
        attention(Q=GOE, V={"per_layer": [GOE, GOE], "duration": 2.0}, weights={"kind": "l2"}),
        attention(beta={"per_layer": [1, 2]}, heads=2, K={**GOE, "scale": -1.0}, causal=True),
        attention(feedforward={"inner": 2.0, "outer": np.eye(3).tolist(), "bias": [0, 1, 2]}),
    ],
    ids=lambda data: json.dumps(data["model"])[:40],
)
def test_a_configuration_survives_its_own_json(data):
    """Provenance must be enough to run again, defaults included."""
    config = parse_config(data)
    assert parse_config(json.loads(json.dumps(plain(config), allow_nan=False))) == config


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_files_of_the_experiments_are_valid(path):
    config = read_config(path)
    assert parse_config(plain(config), source=path) == config


# Building tokens ---------------------------------------------------------------------------


def test_positions_are_those_of_python():
    uniform = tokens_of({**UNIFORM, "replicas": 2})
    assert np.array_equal(uniform.x, mf.Tokens.uniform(6, 3, rng=1, shape=(2,)).x)
    assert np.array_equal(tokens_of(TRIANGLE).x, mf.Tokens.on_circle([0.0, 1.0, 2.0]).x)
    basis = tokens_of({"n": 2, "dimension": 4, "initial": "orthonormal", "masses": [0.25, 0.75]})
    assert np.array_equal(basis.x, np.eye(2, 4)) and basis.masses.tolist() == [0.25, 0.75]
    gram = tokens_of({"points": [[0.6, 0.8], [1.0, 0.0]], "gram": True})
    assert isinstance(gram, mf.Gram) and gram.G[0, 1] == 0.6
    normal = {**UNIFORM, "initial": "normal", "space": "euclidean"}
    plane = tokens_of(normal, {"drift": "Attention"})
    assert not plane.on_sphere
    assert np.array_equal(plane.x, np.random.default_rng(1).standard_normal((6, 3)))


def test_positions_from_a_file(tmp_path):
    expected = mf.Tokens.uniform(5, 4, rng=0, shape=(2,))
    np.savez(tmp_path / "x.npz", a=expected.x, b=np.ones(3))
    source = tmp_path / "run.toml"
    found = tokens_of({"file": "x.npz", "key": "a"}, source=source)
    assert np.array_equal(found.x, expected.x)
    text = refusal(valid(NOISY, {"file": "x.npz", "key": "a", "replicas": 3}, {"seed": 2}), source)
    assert "tokens: the positions have 2 replicas already" in text
    assert "tokens: " in refusal(valid(tokens={"file": "x.npz", "key": "c"}), source)


def test_tokens_without_positions_are_sampled_from_the_density():
    tokens = tokens_of({"n": 4000, "seed": 5, "replicas": 4}, **DENSITY)
    assert tokens.shape == (4,) and len(tokens) == 4000
    means = tokens.x[..., 0].mean(axis=1)  # 1/4, with variance 1/2 - 1/16 + (4th moment: 0)
    assert np.abs(means - 0.25).max() < 4 * np.sqrt(0.4375 / 4000)
    assert len(set(means)) == 4


def test_replicas_come_before_the_ensemble_of_the_model():
    model = {"drift": "SA", "beta": [[1.0], [2.0]], "kappa": [3.0, 4.0, 5.0]}
    config = parse_config(valid(model, {**UNIFORM, "replicas": 7}, {"seed": 2}))
    state = build_state(config)
    assert np.broadcast_shapes(state.shape, build_model(config).shape) == (7, 2, 3)
    same = tokens_of({**TRIANGLE, "replicas": 2}, NOISY, {"seed": 1})
    assert same.shape == (2,) and np.array_equal(same.x[0], same.x[1])


# Building models ---------------------------------------------------------------------------


def test_random_matrices_are_those_of_the_ensembles():
    drift = drift_of(
        heads=2,
        Q={"ensemble": "ginibre", "rows": 2, "seed": 3},
        K={"ensemble": "ginibre", "rows": 2, "seed": 4, "scale": 0.5},
        V={"per_layer": [GOE, {"ensemble": "wishart", "seed": 5}], "duration": 0.5},
    )
    assert np.array_equal(drift.Q, mf.ensembles.ginibre(3, 3, (2,), rows=2))
    assert np.array_equal(drift.K, 0.5 * mf.ensembles.ginibre(3, 4, (2,), rows=2))
    expected = [mf.ensembles.goe(3, 3, (2,)), mf.ensembles.wishart(3, 5, (2,))]
    assert np.array_equal(drift.V.values, expected) and drift.V.duration == 0.5


def test_matrices_may_be_numbers_arrays_or_files(tmp_path):
    np.savez(tmp_path / "weights.npz", q=np.diag([1.0, 2.0, 3.0]), v=np.eye(3))
    source = tmp_path / "run.toml"
    weights = {"file": "weights.npz", "key": "q"}
    data = attention(Q=weights, V=[[0, 1, 0], [1, 0, 0], [0, 0, 1]], beta={"per_layer": [1, 2]})
    drift = build_model(parse_config(data, source=source)).drift
    assert np.array_equal(drift.Q, np.diag([1.0, 2.0, 3.0])) and drift.K == 1.0
    assert drift.V[0, 1] == 1 and drift.beta.values.tolist() == [1, 2]
    text = refusal(attention(Q={"file": "weights.npz", "key": "x"}), source)
    assert "model.Q: " in text and "could not be read" in text


PARTS = [
    ({"normalisation": {"kind": "post_ln"}}, mf.PostLN()),
    ({"normalisation": {"kind": "pre_ln"}}, mf.PreLN()),
    ({"normalisation": {"kind": "mix_ln", "tau": 2}}, mf.MixLN(2.0)),
    ({"normalisation": {"kind": "peri_ln"}}, mf.PeriLN()),
    ({"normalisation": {"kind": "ngpt"}}, mf.NGPT()),
    ({"normalisation": {"kind": "ngpt", "alpha": 0.5}}, mf.NGPT(0.5)),
    ({"normalisation": {"kind": "sqrt_scaling"}}, mf.SqrtScaling()),
    ({"noise": {"kind": "isotropic"}, "kappa": 1}, mf.Isotropic()),
    ({"noise": {"kind": "common"}, "kappa": 1}, mf.CommonNoise()),
]


@pytest.mark.parametrize("keys, part", PARTS, ids=lambda value: repr(value)[:60])
def test_every_kind_of_part_is_the_object_of_that_name(keys, part):
    solve = {"seed": 2} if "kappa" in keys else {}
    model = build_model(parse_config(valid({**SA, **keys}, solve=solve)))
    assert part in (model.normalisation, model.noise)


WEIGHTS = [
    ({"kind": "softmax"}, mf.Softmax()),
    ({"kind": "unnormalised"}, mf.Unnormalised()),
    ({"kind": "l2"}, mf.L2()),
    ({"kind": "sigmoid", "bias": -1.5}, mf.Sigmoid(-1.5)),
    ({"kind": "sinkhorn", "tolerance": 1e-9}, mf.Sinkhorn(tolerance=1e-9)),
]


@pytest.mark.parametrize("table, weights", WEIGHTS, ids=lambda value: repr(value)[:60])
def test_every_kind_of_weights_is_the_object_of_that_name(table, weights):
    assert drift_of(weights=table).weights == weights


def test_what_is_left_out_is_as_in_python():
    for model in ({"drift": "Attention"}, {"drift": "Hardmax"}):
        built = build_model(parse_config(valid(model)))
        default = mf.Transformer(getattr(mf, model["drift"])())
        assert built.describe() == default.describe()
    assert build_model(parse_config(valid())).describe() == mf.Transformer(mf.SA(1.0)).describe()


def test_a_perceptron_and_a_reaction_reach_the_model():
    table = {"inner": [[1, 2, 3]], "outer": [[1], [0], [0]], "bias": [2], "activation": "tanh"}
    model = build_model(parse_config(valid({**SA, "feedforward": table, "reaction": 0.5})))
    assert model.feedforward(np.ones(3)).tolist() == [np.tanh(8.0), 0, 0]
    assert model.reaction == 0.5


# Solving -----------------------------------------------------------------------------------


def test_every_key_of_solve_for_tokens_reaches_solve():
    options = {"scheme": "Layers", "dt": 0.1, "merge": 1e-6, "engine": "direct", "threads": 2}
    arguments = solve_arguments(parse_config(valid(solve=options)))
    assert arguments["scheme"] is mf.steppers.Layers and arguments["merge"] == 1e-6
    assert arguments["engine"] == mf.engines.Direct(threads=2) and arguments["rng"] is None
    arguments = solve_arguments(parse_config(valid(NOISY, solve={"seed": 7, "threads": 2})))
    assert arguments["rng"] == 7 and arguments["engine"] == mf.engines.Automatic(threads=2)
    assert solve_arguments(parse_config(valid()))["engine"] is None
    assert "max_degree" not in arguments
