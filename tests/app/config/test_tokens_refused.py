"""What the errors of configuration files with tokens say: the key, what was expected, what came."""

import re

import pytest
from meanfield.app.config import parse_config
from meanfield.app.config.blame import blaming
from meanfield.app.config.build import build_model
from token_files import DENSITY, GOE, NOISY, SA, TRIANGLE, UNIFORM, attention, refusal, valid

import meanfield as mf

MEMBERS = {"kind": "ensemble", "members": [{"kind": "uniform"}]}
SKEW = {"kind": "anisotropic", "sigma": [[1, 2], [0, 1]]}
REFUSED = [
    # The kinds of tables
    (valid(tokens={**UNIFORM, "sed": 1}), r"tokens.sed: unknown key; did you mean seed\?"),
    (valid(tokens={**UNIFORM, "n": 1}), r"tokens.n: expected a number >= 2; got 1"),
    (valid(tokens={**UNIFORM, "initial": "unifrm"}), 'tokens.initial: .*did you mean "uniform"'),
    (valid(tokens={"file": "gone.npy"}), "tokens.file: there is no file 'gone.npy'"),
    (valid(tokens={"points": [[1, 0], [1]]}), "tokens.points: .*rows of equal length"),
    (valid(tokens={"points": [1, 0]}), r"tokens.points: expected points .* of shape \(2,\)"),
    (valid(solve={"engine": "mode"}), 'solve.engine: .*did you mean "modes"'),
    (valid(solve={"merge": 0.2}), "solve.merge: expected a number <= 0.1; got 0.2"),
    (valid({**SA, "normalisation": {"kind": "preln"}}), 'normalisation.kind: .*mean "pre_ln"'),
    (
        valid({**SA, "noise": "common"}),
        'model.noise: expected a table, such as { kind = "common" }',
    ),
    (valid({**SA, "normalisation": {"kind": "mix_ln"}}), "model.normalisation.tau: this key"),
    (valid({**SA, "noise": {"kind": "common", "sigma": 1}}), "model.noise.sigma: unknown key"),
    (valid({**SA, "weights": {"kind": "l2"}}), "model.weights: unknown key; weights does not bel"),
    (attention(reaction=1.0), "model.reaction: unknown key"),
    (attention(weights={"kind": "l3"}), 'model.weights.kind: expected .*; got "l3"; did you mean'),
    (attention(Q="x"), "model.Q: expected a finite number, or an array of them; got 'x'"),
    (attention(Q=[1, 2]), r"model.Q: expected a number, a matrix .* got an array of shape \(2,\)"),
    (attention(Q={"x": 1}), r"model.Q: expected a number, a matrix .*; got a table"),
    (attention(Q={"ensembl": "goe", "seed": 1}), r"model.Q.ensembl: .*did you mean ensemble\?"),
    (attention(K={"ensemble": "gue", "seed": 1}), 'model.K.ensemble: expected .*; got "gue"'),
    (attention(V={"ensemble": "goe"}), "model.V.seed: this key is required"),
    (attention(V={"per_layer": [1, {**GOE, "seed": -1}]}), r"V.per_layer\[1\].seed: .*>= 0"),
    (attention(beta={"per_layer": []}), "model.beta.per_layer: .*at least 1 entries; got"),
    # Densities
    ({**valid({"drift": "Hardmax"}, **DENSITY), "tokens": None}, 'model.drift: "Hardmax" moves'),
    ({**valid({**SA, "reaction": 1}, **DENSITY), "tokens": None}, "model.reaction: densities"),
    ({**valid(solve={"seed": 1}, **DENSITY), "tokens": None}, "solve.seed is for tokens"),
    ({**valid(), "tokens": None}, "geometry: this key is required .*; or give .tokens."),
    # Tables that exclude each other
    (valid(characteristics={}), r"\[characteristics\] follow a density; with \[tokens\] leave"),
    (valid(solve={"max_degree": 64}), "solve.max_degree bounds the modes of a density; tokens"),
    (valid(**DENSITY), r"tokens.initial and \[geometry\] exclude each other"),
    (valid(tokens={**UNIFORM, **TRIANGLE}), "tokens.initial and tokens.angles exclude each other"),
    (valid(tokens={"n": 4, "seed": 1}), 'tokens.initial: expected "uniform", "normal" or "orthon'),
    (
        valid(tokens={"n": 4, "seed": 1}, **{**DENSITY, "initial": MEMBERS}),
        'initial.kind: tokens are sampled from one density; got "ensemble"',
    ),
    # Positions
    (valid(tokens={"dimension": 3, "initial": "uniform", "seed": 1}), "tokens.n: this key is requ"),
    (valid(tokens={"n": 3, "initial": "uniform", "seed": 1}), "tokens.dimension: this key is"),
    (valid(tokens={"n": 3, "dimension": 2, "initial": "uniform"}), "tokens.seed: this key is"),
    (valid(tokens={"n": 3}, **DENSITY), "tokens.seed: this key is required"),
    (valid(tokens={"n": 3, "initial": "orthonormal", "seed": 1}), "tokens.seed: .*not drawn"),
    (valid(tokens={**TRIANGLE, "n": 3}), "tokens.n: the angles say it; leave it out"),
    (valid(tokens={**TRIANGLE, "dimension": 2}), "tokens.dimension: the angles say it; leave it"),
    (valid(tokens={"n": 3, "seed": 1, "dimension": 2}, **DENSITY), r"dimension: \[geometry\] says"),
    (valid(tokens={**TRIANGLE, "key": "x"}), "tokens.key names an array in tokens.file"),
    (valid(tokens={**UNIFORM, "dimension": 1}), "tokens.dimension: expected a number >= 2 on"),
    (valid(tokens={**UNIFORM, "masses": [1.0]}), "tokens.masses: expected n = 6 masses; got 1"),
    (valid(tokens={**UNIFORM, "radii": 2.0}), "tokens.radii: .* matter only with .*pre_ln"),
    (valid(tokens={**TRIANGLE, "replicas": 2}), "tokens.replicas: all would be equal"),
    (valid(tokens={**UNIFORM, "initial": "normal"}), 'tokens.initial: "normal" points are in R.d'),
    (valid(tokens={**UNIFORM, "space": "euclidean"}), 'model.drift: "SA" is defined on the sphere'),
    (valid(tokens={**TRIANGLE, "masses": [1, 1, 1]}), "tokens: Tokens expects 3 masses"),
    (valid(tokens={"points": [[1, 1], [1, 0]]}), "tokens: Tokens expects unit vectors"),
    (valid(tokens={"n": 3, "initial": "orthonormal", "dimension": 2}), "tokens: .* n <= d"),
    # Noise
    (valid(NOISY), "solve.seed: this key is required and is missing: with it a run .* repeated"),
    (valid(solve={"seed": 2}), "solve.seed: without noise"),
    (valid({**SA, "noise": {"kind": "common"}}), "model.noise has an effect only with a finite"),
    (valid(tokens={**UNIFORM, "n": 10**15}), "tokens: 1000000000000000 tokens take 2.4e.07 GB"),
    (valid(tokens={**UNIFORM, "n": 10**15, "gram": True}), "tokens: .* 10{15} x 10{15} numbers"),
    (valid(tokens={"n": 10**30, "initial": "orthonormal"}), "tokens: .* GB; expected a smaller n"),
    (valid(tokens={"n": 10**30, "seed": 1}, **DENSITY), "tokens: .* GB; expected a smaller n"),
    (valid(NOISY, solve={"seed": 1}), "tokens.seed and solve.seed are both 1: the same random num"),
    (valid(NOISY, solve={"seed": 2, "merge": 1e-8}), "solve.merge: noise separates"),
    (valid(NOISY, solve={"seed": 2, "scheme": "Layers", "dt": 1}), 'solve.scheme: .*need "Strang"'),
    (
        valid({**NOISY, "noise": SKEW}, solve={"seed": 2}),
        "model.noise: Anisotropic expects a symmetric sigma",
    ),
    # Steps and sums
    (valid(solve={"scheme": "Strang"}), 'solve.scheme: "Strang" is for noise'),
    (valid(solve={"scheme": "Layers"}), 'solve.dt: this key is required by scheme "Layers"'),
    (valid(solve={"engine": "direct", "tolerance": 1e-6}), 'engine = "direct" sums to rounding'),
    (valid({"drift": "Hardmax"}, solve={"engine": "modes"}), "solve.engine: Hardmax has one way"),
    (valid(tokens={**UNIFORM, "replicas": 2}, solve={"merge": 1e-8}), "solve.merge: .*single runs"),
    (valid({"drift": "SA", "beta": [1, 2]}, solve={"merge": 1e-8}), "solve.merge: .*single runs"),
    # Inner products
    (valid(NOISY, {**UNIFORM, "gram": True}, {"seed": 2}), "model.kappa: inner products .* noise"),
    (valid({"drift": "Hardmax"}, {**UNIFORM, "gram": True}), "model.drift: inner products"),
    (valid({**SA, "reaction": 1.0}, {**UNIFORM, "gram": True}), "model.reaction: inner products"),
    (valid(tokens={**UNIFORM, "gram": True}, solve={"engine": "direct"}), "solve.engine: inner"),
    # Matrices
    (attention(heads=2), "model.heads is for random matrices; the shapes of others tell"),
    (attention(V={**GOE, "rows": 2}), 'model.V.rows: "goe" is square; leave it out'),
    (attention(V={**GOE, "seed": 1}), "tokens.seed and model.V.seed are both 1"),
    (attention(V={"per_layer": [1.0, GOE]}), r"model.V: expected one shape .* got \(\), \(3, 3\)"),
    (attention(Q=[[1, 2]], K=[[1, 2, 3]]), "model: Q and K must have equal shapes"),
]


@pytest.mark.parametrize("data, message", REFUSED, ids=[message for _, message in REFUSED])
def test_what_does_not_fit_is_refused_by_key(data, message):
    text = refusal(data)
    assert re.search(message, text), text
    assert all(re.match(r"(\[?[a-zA-Z_.\[\]0-9]+\]?)[: ]", line) for line in text.splitlines())


def test_all_reasons_are_given_at_once_each_with_the_file():
    data = valid(NOISY, {"initial": "uniform"}, {"max_degree": 64}, characteristics={})
    lines = refusal(data, source="run.toml").splitlines()
    assert all(line.startswith("run.toml: ") for line in lines)
    keys = ["[characteristics]", "solve.max_degree", "tokens.n", "tokens.dimension", "tokens.seed"]
    assert [line.split()[1].rstrip(":") for line in lines] == [*keys, "solve.seed"]


def test_memory_that_is_not_there_is_told_by_key():
    config = parse_config(valid(), source="run.toml")
    with (
        pytest.raises(mf.ConfigError, match=r"run.toml: solve: .*more memory .*allocate 9 PiB"),
        blaming(config, "solve"),
    ):
        raise MemoryError("Unable to allocate 9 PiB")


def test_isotropic_noise_needs_no_kappa():
    """It is the default, also of `Transformer`."""
    config = parse_config(valid({**SA, "noise": {"kind": "isotropic"}}))
    assert not build_model(config).noisy
