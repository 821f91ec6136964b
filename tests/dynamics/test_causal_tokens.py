"""Tokens that see what comes before: Transformer(causal=...)."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.engines import Direct, Modes
from meanfield.steppers import Layers

N = 40
MEANS = [mf.SA(3.0), mf.USA(2.0), mf.Kuramoto()]


def start(d, shape=(), n=N):
    return mf.Tokens.uniform(n, d, rng=0, shape=shape)


def attention(drift):
    """The same with matrices."""
    weights = mf.Softmax() if drift.normalised else mf.Unnormalised()
    return mf.Attention(beta=getattr(drift, "beta", 0.0), weights=weights, causal=True)


@pytest.mark.repeats
@pytest.mark.parametrize("d", [2, 5])
@pytest.mark.parametrize("drift", MEANS, ids=repr)
def test_causal_attention_is_the_same(drift, d):
    """That of weights that are not normalised is "sum"."""
    options = {"t_span": (0, 1), "rtol": 1e-11}
    one = mf.solve(mf.Transformer(drift, causal="sum"), start(d), **options)
    two = mf.solve(mf.Transformer(attention(drift)), start(d), **options)
    assert np.abs(one.final.x - two.final.x).max() < 1e-10
    assert np.isnan(one.observables["interaction_energy"].values).all()


@pytest.mark.repeats
@pytest.mark.parametrize("drift", MEANS, ids=repr)
def test_other_normalisations_and_layers(drift):
    for options in ({"dt": 0.1, "scheme": Layers}, {"rtol": 1e-11}):
        one, two = (
            mf.solve(
                mf.Transformer(*parts, normalisation=mf.PreLN(), **causal),
                start(3),
                t_span=(0, 1),
                **options,
            ).final
            for parts, causal in (((drift,), {"causal": "sum"}), ((attention(drift),), {}))
        )
        assert np.abs(one.x - two.x).max() < 1e-10 and np.abs(one.radii - two.radii).max() < 1e-10


@pytest.mark.bits
@pytest.mark.parametrize("engine", [Direct(), Modes(), None])
@pytest.mark.parametrize("drift", [*MEANS, 2 * mf.SA(2.0) + mf.Kuramoto()], ids=repr)
def test_the_past_is_what_it_is_alone(drift, engine):
    """The first token stays, and what comes after token 300 changes no bit of those before."""
    model, x = mf.Transformer(drift, causal="mean"), start(2, n=600)
    later = np.concatenate([np.arange(300), 300 + np.random.default_rng(0).permutation(300)])
    one, two = (
        mf.solve(model, tokens, (0, 1), dt=0.1, engine=engine).final.x
        for tokens in (x, mf.Tokens(x.x[later]))
    )
    assert np.array_equal(one[:300], two[:300]) and not np.array_equal(one, two)
    assert np.abs(one[0] - x.x[0]).max() < 1e-15


@pytest.mark.parametrize("d", [2, 3])
def test_two_tokens(d):
    """The first stays; tan(phi/2) of their angle falls as exp(-m_1 t), as all mass is seen."""
    x = np.eye(d)[:2]
    tokens = mf.Tokens(x, masses=[0.3, 0.7])
    for drift, causal in ((mf.Kuramoto(), "sum"), (mf.Kuramoto(), "mean"), (mf.SA(0.0), True)):
        end = mf.solve(mf.Transformer(drift, causal=causal), tokens, (0, 2), rtol=1e-12).final
        angle = np.arccos(end.x[1] @ end.x[0])
        assert np.tan(angle / 2) == pytest.approx(np.exp(-2 * 0.3), rel=1e-10)


def test_three_tokens_tell_mean_from_sum():
    """Token 2 of three of mass 1/3 has the rate 1/3 under "sum", and 1/2 under "mean"."""
    tokens = mf.Tokens.on_circle([0.0, 1.5, 3.0])
    for causal, rate in (("sum", 1 / 3), ("mean", 1 / 2)):
        end = mf.solve(mf.Transformer(mf.Kuramoto(), causal=causal), tokens, (0, 2), rtol=1e-12)
        angle = np.arccos(end.final.x[1] @ end.final.x[0])
        assert np.tan(angle / 2) == pytest.approx(np.tan(0.75) * np.exp(-2 * rate), rel=1e-10)


@pytest.mark.bits
@pytest.mark.parametrize("kappa", [np.inf, 5.0])
@pytest.mark.parametrize("drift", [mf.SA(np.array([1.0, 4.0])), mf.Kuramoto()], ids=repr)
def test_replicas_are_what_they_are_alone(drift, kappa):
    tokens = mf.Tokens.uniform(500, 2, rng=0, shape=(2,))
    options = {"t_span": (0, 0.2), "rng": 1, "engine": Modes()}
    if kappa == np.inf:
        del options["rng"]
    model = mf.Transformer(drift, kappa, causal="mean")
    both = mf.solve(model, tokens, **options).final.x
    alone = mf.solve(model.member(0) if model.shape else model, tokens[:1], **options).final.x
    assert np.array_equal(both[0], alone[0])


@pytest.mark.bits
@pytest.mark.parametrize("kappa", [np.inf, pytest.param(5.0, marks=pytest.mark.long)])
def test_runs_are_resumed_to_the_last_bit(tmp_path, kappa):
    model = mf.Transformer(mf.SA(3.0), kappa, causal=True)
    options = {"t_span": (0, 0.5), "dt": 0.1, "engine": Modes()}
    options |= {} if kappa == np.inf else {"rng": 1}
    whole = mf.solve(model, start(3, n=600), **options).final.x
    options |= {"checkpoint": tmp_path / "run.checkpoint", "resume": True}
    for steps in (2, 4):
        mf.solve(model, start(3, n=600), max_steps=steps, **options)
    assert np.array_equal(mf.solve(model, start(3, n=600), **options).final.x, whole)


@pytest.mark.parametrize("masses", ["equal", "random"])
@pytest.mark.parametrize("drift", [mf.SA(3.0), mf.USA(1.0)], ids=repr)
def test_a_window_with_a_sink_is_a_mask(drift, masses):
    """One layer of 700 tokens, several blocks of rows, against the whole matrix."""
    n, window, sink = 700, 0.1, 0.02
    x, rng = start(3, n=n).x, np.random.default_rng(1)
    m = np.full(n, 1 / n) if masses == "equal" else rng.dirichlet(np.ones(n))
    places = np.cumsum(m)
    apart = places[:, None] - places
    seen = (apart >= 0) & ((apart <= window + 1e-12) | (places <= sink + 1e-12))
    weights = np.where(seen, m * np.exp(drift.beta * x @ x.T), 0.0)
    assert seen[-1, 0] and not seen[-1, n // 2]
    divided = weights if drift.normalised else np.where(seen, m, 0.0)
    pull = weights @ x / divided.sum(axis=1, keepdims=True)
    causal = mf.Causal("mean", window=window, sink=sink)
    model, tokens = mf.Transformer(drift, causal=causal), mf.Tokens(x, masses=m)
    end = mf.solve(model, tokens, (0, 0.1), dt=0.1, scheme=Layers).final.x
    moved = x + 0.1 * pull
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    assert np.abs(end - moved).max() < 1e-14


def test_files_keep_what_is_seen(tmp_path):
    model = mf.Transformer(mf.USA(2.0), causal=mf.Causal("mean", window=0.25, sink=0.1))
    run = mf.solve(model, start(2), (0, 0.1))
    again = mf.load(run.save(tmp_path / "run.nc"))
    assert again.model == model and again.model.causal.sink == 0.1
    assert mf.Transformer(mf.SA(1.0), causal=False) == mf.Transformer(mf.SA(1.0))


def test_tangents_under_attention_are_known():
    options = {"t_span": (0, 0.5), "dt": 0.1, "tangents": ["beta"]}
    plain = mf.Attention(beta=2.0)
    one = mf.solve(mf.Transformer(plain, causal=True), start(3), **options)
    two = mf.solve(mf.Transformer(plain.replace(causal=True)), start(3), **options)
    assert np.array_equal(one.tangents["beta"][-1].x, two.tangents["beta"][-1].x)


UNNORMALISED = mf.Attention(weights=mf.Unnormalised())


@pytest.mark.parametrize(
    "drift, parts, options, words",
    [
        (mf.USA(1.0), {"causal": "sum", "reaction": 1.0}, {}, "reaction needs a potential"),
        (mf.SA(1.0), {"causal": True}, {"merge": 1e-6}, "at the same place alike"),
        (mf.SA(1.0), {"causal": True}, {"tangents": ["beta"]}, "are not known"),
        (UNNORMALISED, {"causal": "mean"}, {"tangents": ["beta"]}, "are not known"),
        (mf.Attention(), {"causal": True}, {"engine": Modes()}, "summed over pairs"),
        (mf.SA(1.0), {"causal": mf.Causal(window=0.1)}, {"engine": Modes()}, "use Direct"),
        (mf.SA(1.0), {"causal": mf.Causal(window=0.1), "kappa": 2.0}, {}, "needs dt"),
    ],
)
def test_what_has_no_meaning_is_refused(drift, parts, options, words):
    with pytest.raises((mf.MeanfieldError, ValueError), match=words):
        mf.solve(mf.Transformer(drift, **parts), start(2), (0, 1), **options)


@pytest.mark.parametrize(
    "drift, words",
    [
        (mf.USA(1.0), '"mean" divides'),
        (mf.SA(1.0) + mf.USA(1.0), '"mean" divides'),
        (mf.Hardmax(), "none attends to itself"),
        (mf.SA(1.0) + mf.Hardmax(), "none attends to itself"),
        (mf.Attention(weights=mf.Sinkhorn()), "cannot be causal"),
    ],
)
def test_drifts_that_cannot_be_causal_are_refused(drift, words):
    with pytest.raises(ValueError, match=words):
        mf.Transformer(drift, causal=True)
