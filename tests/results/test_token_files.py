"""Runs of tokens and of inner products on disk: bit for bit, models and all."""

import h5py
import numpy as np
import pytest

import meanfield as mf
from meanfield.core.descriptions import build, describe
from meanfield.core.forms import Reading

X = mf.Tokens.uniform(6, 4, rng=0)
GOE = mf.ensembles.goe(4, rng=1)


def run_of(model, state=X, **options):
    """A short run."""
    return mf.solve(model, state, (0, 0.5), t_eval=[0.25, 0.5], **options)


def same(loaded, run):
    """Whether two solutions have the same states, bit for bit."""
    for one, other in zip(loaded, run, strict=True):
        for name in ("x", "masses", "radii", "G", "logit", "radius"):
            a, b = getattr(one, name, None), getattr(other, name, None)
            if a is None or b is None:
                assert a is b, name
            else:
                assert a.tobytes() == b.tobytes() and a.shape == b.shape, name
    return loaded.t.tolist() == run.t.tolist()


RUNS = {
    "masses": (mf.Transformer(mf.SA(2.0)), mf.Tokens(X.x, [0.5, 0.1, 0.1, 0.1, 0.1, 0.1]), {}),
    "replicas": (mf.Transformer(mf.USA([1.0, 2.0])), X, {}),
    "radii": (mf.Transformer(mf.SA(1.0), normalisation=mf.PreLN()), X, {}),
    "reaction": (mf.Transformer(mf.USA(1.0), reaction=2.0), X, {}),
    "products": (mf.Transformer(mf.SA(1.0)), X.gram(), {}),
    "noise": (mf.Transformer(mf.SA(1.0), 3.0), X, {"rng": 1, "dt": 0.1}),
    "common noise": (
        mf.Transformer(mf.SA(1.0), common=mf.CommonTranslations([3.0, 4.0])),
        X,
        {"rng": 1, "dt": 0.1},
    ),
    "space": (
        mf.Transformer(mf.Attention(Q=GOE, weights=mf.L2())),
        mf.Tokens(2 * X.x, on_sphere=False),
        {},
    ),
    "merged": (mf.Transformer(mf.SA(1.0)), mf.Tokens.on_circle([0, 1e-4, 2]), {"merge": 1e-3}),
}


@pytest.mark.bits
@pytest.mark.parametrize("name", RUNS)
def test_states_come_back_bit_for_bit(tmp_path, name):
    model, state, options = RUNS[name]
    run = run_of(model, state, **options)
    loaded = mf.load(run.save(tmp_path / "run.nc"))
    assert same(loaded, run)
    assert repr(loaded.model) == repr(run.model)
    assert loaded.stats["engine"] == run.stats["engine"]
    assert loaded.stats.get("merges") == run.stats.get("merges")
    for name, values in run.observables.items():
        np.testing.assert_array_equal(loaded.observables[name].values, values.values)


def test_an_altered_token_is_refused(tmp_path):
    path = run_of(mf.Transformer(mf.SA(1.0))).save(tmp_path / "run.nc")
    with h5py.File(path, "r+") as file:
        file["x"][0, 0, 0] += 1e-12
    with pytest.raises(mf.StorageError, match="not an intact result"):
        mf.load(path)


def test_tokens_are_labelled():
    data = run_of(mf.Transformer(mf.SA([1.0, 2.0]), normalisation=mf.PreLN())).to_xarray()
    assert data["x"].dims == ("t", "member", "token", "component")
    assert data["radii"].dims == ("t", "member", "token")
    assert data["masses"].dims == ("member", "token")
    assert data["mean_radius"].dims == ("t", "member")
    np.testing.assert_array_equal(data["beta"], [1.0, 2.0])
    products = run_of(mf.Transformer(mf.SA(1.0)), X.gram()).to_xarray()
    assert products["inner_product"].dims == ("t", "token", "other")


MODELS = [
    mf.Transformer(mf.Attention(Q=GOE, K=0.5, V=GOE, beta=3.0, causal=True)),
    mf.Transformer(mf.Attention(weights=mf.Sigmoid(0.3), V=mf.PerLayer([1.0, 2.0], 0.5))),
    mf.Transformer(mf.Hardmax(V=GOE, ties=1e-9)),
    mf.Transformer(mf.SA(1.0), normalisation=mf.MixLN(2.0)),
    mf.Transformer(mf.SA(1.0), normalisation=mf.NGPT(0.3), reaction=0.5),
    mf.Transformer(mf.SA(1.0), kappa=2.0, noise=mf.Anisotropic(np.diag([1.0, 2.0]))),
    mf.Transformer(mf.SA(1.0), feedforward=mf.FeedForward(np.eye(2, 4), np.eye(4, 2))),
    mf.Transformer(mf.SA(1.0), feedforward=mf.FeedForward(np.eye(4), np.eye(4), None, np.sin)),
]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_models_are_described_and_built_again(model):
    again = build(mf.Transformer, describe(model), Reading(result=True))
    assert describe(again) == describe(model) and repr(again) == repr(model)


def test_functions_are_not_held_and_say_so():
    def alpha(t):
        return 1 + t

    model = mf.Transformer(mf.Attention(V=lambda t: np.eye(2)), normalisation=mf.NGPT(alpha))
    again = build(mf.Transformer, describe(model), Reading(result=True))
    with pytest.raises(mf.MeanfieldError, match="alpha is a function"):
        again.normalisation.update(0.0, X.x)
    with pytest.raises(mf.MeanfieldError, match="which files do not hold"):
        again.drift.at(0.0)


def relu(x):
    """Not that of the package, in spite of its name."""
    return np.maximum(x, 0.1)


UNHELD = {
    "parameter": mf.Transformer(mf.Attention(V=lambda t: (1 + t) * np.eye(4))),
    "feedforward": mf.Transformer(mf.SA(1.0), feedforward=lambda x: x**2),
    "activation": mf.Transformer(
        mf.SA(1.0), feedforward=mf.FeedForward(np.eye(4), np.eye(4), activation=np.sin)
    ),
    "namesake": mf.Transformer(
        mf.SA(1.0), feedforward=mf.FeedForward(np.eye(4), np.eye(4), activation=relu)
    ),
}


@pytest.mark.repeats
@pytest.mark.parametrize("name", UNHELD)
def test_observables_of_a_model_that_is_not_held_are_those_that_were_saved(tmp_path, name):
    run = run_of(UNHELD[name])
    loaded = mf.load(run.save(tmp_path / "run.nc"))
    assert set(loaded.observables) == set(run.observables)
    for name, values in run.observables.items():
        assert loaded.observables[name].dims == values.dims
        np.testing.assert_array_equal(loaded.observables[name].values, values.values)
    assert set(loaded.to_xarray()) == set(run.to_xarray())
    assert loaded.plot().axes
    assert same(mf.load(loaded.save(tmp_path / "again.nc")), run)


# Checkpoints --------------------------------------------------------------------------------

LONG = {
    "dense": ({}, np.linspace(0, 8, 200)),
    "merging": ({"merge": 1e-4}, np.linspace(0, 30, 7)),
    "layers": ({"scheme": mf.steppers.Layers, "dt": 0.05}, np.linspace(0, 2, 5)),
}


@pytest.mark.bits
@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("stop", [1, 3, 8, 15])
def test_resumed_runs_are_the_same_to_the_last_bit(tmp_path, name, stop):
    options, times = LONG[name]
    model, path = mf.Transformer(mf.SA(3.0)), tmp_path / "run.checkpoint"
    span = (0, times[-1])
    whole = mf.solve(model, X, span, t_eval=times, **options)
    mf.solve(model, X, span, t_eval=times, checkpoint=path, max_steps=stop, **options)
    resumed = mf.solve(model, X, span, t_eval=times, checkpoint=path, resume=True, **options)
    assert same(resumed, whole) and resumed.stats["merges"] == whole.stats["merges"]
    assert resumed.stats["steps"] == whole.stats["steps"]
    if name == "merging":
        assert len(whole.stats["merges"]) > 2


@pytest.mark.bits
@pytest.mark.parametrize(
    ("model", "start"),
    [
        (mf.Transformer(mf.USA(1.0), reaction=1.0), mf.Tokens.uniform(12, 3, rng=0)),
        (mf.Transformer(mf.SA(2.0), normalisation=mf.PreLN()), mf.Equiangular(range(2, 99), 0.0)),
    ],
    ids=["masses", "radii"],
)
def test_what_moves_by_its_logarithm_is_kept_as_it_is(tmp_path, model, start):
    path, options = tmp_path / "run.checkpoint", {"t_span": (0, 9), "t_eval": np.linspace(0, 9, 99)}
    whole = mf.solve(model, start, **options)
    mf.solve(model, start, checkpoint=path, max_steps=15, **options)
    assert same(mf.solve(model, start, checkpoint=path, resume=True, **options), whole)


@pytest.mark.bits
@pytest.mark.parametrize("stop", [1, 2, 5, 9])
def test_resuming_between_jumps_of_the_model(tmp_path, stop):
    layers = mf.PerLayer([np.eye(4), -np.eye(4), GOE], duration=0.37)
    model, path = mf.Transformer(mf.Attention(V=layers, beta=2.0)), tmp_path / "run.checkpoint"
    options = {"t_span": (0.1, 1.5), "t_eval": np.linspace(0.1, 1.5, 60), "rtol": 1e-9}
    whole = mf.solve(model, X, **options)
    mf.solve(model, X, checkpoint=path, max_steps=stop, **options)
    resumed = mf.solve(model, X, checkpoint=path, resume=True, **options)
    assert same(resumed, whole)


@pytest.mark.bits
def test_a_callback_that_stops_within_a_step_can_be_resumed(tmp_path):
    """Outputs within a step: the run ends at one of them, and goes on from there."""
    times, path = np.linspace(0, 2, 300), tmp_path / "run.checkpoint"
    model = mf.Transformer(mf.SA(1.0))
    whole = mf.solve(model, X, (0, 2), t_eval=times)
    assert whole.stats["steps"] < 30
    stopped = mf.solve(
        model, X, (0, 2), t_eval=times, checkpoint=path, callback=lambda t, _: t > 0.9
    )
    assert stopped.status == "stopped" and len(stopped) < 200
    assert same(mf.solve(model, X, (0, 2), t_eval=times, checkpoint=path, resume=True), whole)


@pytest.mark.long
def test_a_slope_that_was_given_is_not_guessed_from_the_potential(tmp_path):
    """Doi and Onsager's kernel has a kink at which no series knows the slope."""
    drift = mf.Interaction(
        lambda t: -np.sqrt(np.maximum(1 - t**2, 0)),
        derivative=lambda t: t / np.sqrt(np.maximum(1 - t**2, 1e-12)),
    )
    run = mf.solve(mf.Transformer(drift), mf.Tokens.uniform(6, 3, rng=0), (0, 1))
    run.save(tmp_path / "run.nc")
    again = mf.load(tmp_path / "run.nc")
    np.testing.assert_array_equal(again.observables["speed"], run.observables["speed"])
    with pytest.raises(mf.MeanfieldError, match="function, which files do not hold"):
        mf.solve(again.model, again.final, (0, 1))
    np.testing.assert_allclose(
        again.model.drift.attraction(20, 3), drift.attraction(20, 3), atol=1e-8
    )
