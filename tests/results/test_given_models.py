"""Results of models with functions: `load` takes the model, whose functions no file holds."""

import numpy as np
import pytest

import meanfield as mf

TOKENS = mf.Tokens.uniform(6, 3, rng=1)
MU = mf.Circle(16).von_mises(0.3, 1.0)
FIXED = {"dt": 1 / 64, "t_eval": [0.5, 1.0]}


def pull(x):
    return x * np.array([1.0, 0.0, 0.0])


def along(x):
    return np.stack([np.ones_like(x[..., 0]), 0 * x[..., 1]], axis=-1)


def falling(t):
    return 1 / (1 + t)


def tanh(x):
    return np.tanh(x)


def mlp(size=0.3, activation=tanh):
    return mf.FeedForward(size * np.ones((8, 3)), size * np.ones((3, 8)), activation=activation)


def random_matrices(slope=1.0):
    return mf.Attention(Q=mf.ensembles.Ginibre(rng=3), V=lambda t: (1 + slope * t) * np.eye(3))


def half(function):
    """Another function with the same signature."""
    return lambda x: 0.5 * function(x)


CASES = {
    "field": (mf.Transformer(mf.USA(1.0) + 0.5 * mf.Field(pull)), TOKENS, {"dense": True}),
    "density": (mf.Transformer(mf.USA(1.0) + 0.5 * mf.Field(along), 3.0), MU, {"dense": True}),
    "noise": (mf.Transformer(mf.USA(1.0), kappa=lambda t: 2 + t), TOKENS, {**FIXED, "rng": 5}),
    "feed-forward": (mf.Transformer(mf.SA(1.0), feedforward=mlp()), TOKENS, {}),
    "layers": (mf.Transformer(random_matrices()), TOKENS, {"dense": True}),
    "rates": (mf.Transformer(mf.SA(1.0), normalisation=mf.NGPT(falling)), TOKENS, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_result_with_its_model_is_extended_evaluated_and_measured(name, tmp_path):
    model, state, options = CASES[name]
    run = mf.solve(model, state, (0, 1), progress=False, **{"t_eval": [0.5, 1.0], **options})
    dense = "dense" in options
    path = run.save(tmp_path / "run.nc", dense=dense)
    again = mf.load(path, model=model)
    assert repr(again.model) == repr(run.model)
    for one, other in zip(again.observables.values(), run.observables.values(), strict=True):
        np.testing.assert_array_equal(one, other)
    for loaded, kept in ((again.extend(2.0), run.extend(2.0)), *[(again, run)] * dense):
        assert loaded.final.arrays().keys() == kept.final.arrays().keys()
        for key, (_, values) in loaded.final.arrays().items():
            np.testing.assert_array_equal(values, kept.final.arrays()[key][1])
    if dense:
        for key, (_, values) in again(0.71).arrays().items():
            np.testing.assert_array_equal(values, run(0.71).arrays()[key][1])
    blind = mf.load(path)
    with pytest.raises(mf.MeanfieldError, match=r"give the model .* mf\.load\(path, model=model\)"):
        blind.extend(2.0)


OTHERS = {  # models of the same description
    "field": mf.Transformer(mf.USA(1.0) + 0.5 * mf.Field(half(pull))),
    "density": mf.Transformer(mf.USA(1.0) + 0.5 * mf.Field(half(along)), 3.0),
    "noise": mf.Transformer(mf.USA(1.0), kappa=lambda t: 2 + 1.001 * t),
    "feed-forward": mf.Transformer(mf.SA(1.0), feedforward=mlp(activation=half(tanh))),
    "layers": mf.Transformer(random_matrices(1.001)),
    "rates": mf.Transformer(mf.SA(1.0), normalisation=mf.NGPT(half(falling))),
}


@pytest.mark.parametrize("name", CASES)
def test_other_functions_are_refused_with_both_sums_of_rates(name, tmp_path):
    model, state, options = CASES[name]
    run = mf.solve(model, state, (0, 1), progress=False, **{"t_eval": [0.5, 1.0], **options})
    path = run.save(tmp_path / "run.nc")
    for stored in (path, mf.load(path).save(tmp_path / "again.nc")):
        with pytest.raises(
            ValueError, match=r"the checksum of the rates of change at t = 0.5 is .*, not "
        ):
            mf.load(stored, model=OTHERS[name])


def test_the_first_and_the_last_state_tell_functions_apart(tmp_path):
    """The second force ends before the last state, and no rate is other there."""

    def model(strength):
        return mf.Transformer(mf.SA(1.0), normalisation=mf.NGPT(lambda t: 1 + max(strength - t, 0)))

    run = mf.solve(model(1.0), TOKENS, (0, 2), t_eval=[0.0, 2.0], progress=False)
    path = run.save(tmp_path / "run.nc")
    with pytest.raises(ValueError, match="at t = 0 is"):
        mf.load(path, model=model(1.5))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (mf.Transformer(mf.SA(2.0), feedforward=mlp()), r"drift\.beta must be 1.0, .*; got 2.0"),
        (mf.Transformer(mf.USA(1.0), feedforward=mlp()), r"drift must be SA\(...\), .* got USA"),
        (mf.Transformer(mf.SA(1.0)), r"feedforward must be FeedForward\(...\), .* got left out"),
        (mf.Transformer(mf.SA(1.0), 2.0, feedforward=mlp()), r"kappa must be left out, .* 2.0"),
        (
            mf.Transformer(mf.SA(1.0), feedforward=mlp(0.31)),
            r"feedforward\.inner\[0, 0\] must be 0.3, .*; got 0.31",
        ),
        (mf.Transformer(mf.SA(1.0), feedforward=tanh), r"feedforward must be .*; got a function"),
        (mf.SA(1.0), "model must be a Transformer; got model = SA"),
    ],
)
def test_another_model_is_refused_with_the_key_that_differs(given, words, tmp_path):
    model = mf.Transformer(mf.SA(1.0), feedforward=mlp())
    path = mf.solve(model, TOKENS, (0, 0.1), t_eval=[0.1]).save(tmp_path / "run.nc")
    with pytest.raises(ValueError, match=words):
        mf.load(path, model=given)
    with pytest.raises(ValueError, match=words):
        mf.Solution.load(path, model=given)


def test_a_result_without_a_model_takes_none(tmp_path):
    """The passages of tokens are numbers: no model goes on with them."""
    model = mf.Transformer(mf.USA(0.0), kappa=1.0)
    passages = mf.first_passages(
        *(model, mf.Tokens.on_circle([0.0]), lambda tokens: tokens.x[..., 0, 1]),
        **{"source": -0.4, "target": 0.4, "t_max": 1.0, "replicas": 32, "rng": 2, "dt": 0.02},
        progress=False,
    )
    path = passages.save(tmp_path / "passages.nc")
    with pytest.raises(TypeError, match=r"model must be left out: .* holds a First\S+, which"):
        mf.load(path, model=model)


def test_a_study_takes_the_model_of_its_density(tmp_path):
    model = mf.Transformer(mf.Kuramoto() + 0.3 * mf.Field(along), 2.0)
    study = mf.propagation_of_chaos(
        model, MU, sizes=[8, 16], times=[0.25], replicas=4, rng=0, dt=1 / 16, progress=False
    )
    again = mf.load(study.save(tmp_path / "study.nc"), model=model)
    np.testing.assert_array_equal(
        again.law.extend(0.5).final.coefficients, study.law.extend(0.5).final.coefficients
    )


def test_stationary_states_of_a_field_need_their_model(tmp_path):
    model = mf.Transformer(mf.Kuramoto() + 0.3 * mf.Field(along), 2.0)
    states = mf.stationary_states(model, mf.Circle(16), rng=0)
    path = states.save(tmp_path / "states.nc")
    with pytest.raises(mf.StorageError, match=r"Give it, mf\.load\(path, model=model\)"):
        mf.load(path)
    again = mf.load(path, model=model)
    assert repr(again) == repr(states)
    other = mf.Transformer(mf.Kuramoto() + 0.3 * mf.Field(half(along)), 2.0)
    with pytest.raises(
        ValueError,
        match=r"differ from those saved: the residual of a state, to rounding, is .*, not 0",
    ):
        mf.load(path, model=other)
    with pytest.raises(ValueError, match=r"model\.kappa must be 2.0"):
        mf.load(path, model=model.replace(kappa=2.5))
