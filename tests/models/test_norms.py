"""Norms with gain, bias and epsilon: placements in R^d, layers that differ, derivatives."""

import math

import numpy as np
import pytest

import meanfield as mf
from meanfield.core.descriptions import build, describe
from meanfield.core.differences import derivative_at_zero
from meanfield.core.dual import Dual
from meanfield.dynamics.tokens import TokenMotion
from meanfield.models.norms import standardised

N, D = 6, 5
RNG = np.random.default_rng(0)
GAIN, BIAS, H = RNG.standard_normal(D), RNG.standard_normal(D), 3 * RNG.standard_normal((N, D))
FIRST, SECOND = mf.LayerNorm(GAIN, BIAS, 0.1), mf.RMSNorm(BIAS, 0.2)
MLP = mf.FeedForward(*RNG.standard_normal((2, D, D)), BIAS, "gelu_tanh", gate=np.eye(D))
LAYERS = {"scheme": mf.steppers.Layers, "dt": 1.0, "progress": False}
TOKENS = mf.Tokens(H, on_sphere=False)


def model(normalisation, **options):
    matrices = np.random.default_rng(1).standard_normal((3, 2, D, D)) / 2
    given = {"feedforward": MLP, **options}
    return mf.Transformer(mf.Attention(*matrices), normalisation=normalisation, **given)


def attention(x, m):
    return sum(
        w / w.sum(axis=1, keepdims=True) @ x @ V.T
        for Q, K, V in zip(m.drift.Q, m.drift.K, m.drift.V, strict=True)
        for w in [np.exp(x @ Q.T @ K @ x.T)]
    )


def test_norms_are_their_formulas():
    for x, found, other in zip(H, FIRST(H), SECOND(H), strict=True):
        wanted = GAIN * (x - x.mean()) / math.sqrt(x.var() + 0.1) + BIAS
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-14)
        wanted = BIAS * x / math.sqrt(sum(x**2) / D + 0.2)
        np.testing.assert_allclose(other, wanted, rtol=0, atol=1e-14)
    np.testing.assert_allclose((mf.RMSNorm()(H) ** 2).sum(axis=1), D, rtol=1e-14)
    assert standardised(H.astype(np.float32), 1e-5, centred=True).dtype == np.float32


@pytest.mark.parametrize("norm", [FIRST, SECOND, mf.LayerNorm(), mf.RMSNorm()], ids=repr)
def test_derivatives_and_files(norm):
    dx = RNG.standard_normal((2, N, D))
    for change, e in zip(norm(Dual(H, dx)).changes, dx, strict=True):
        by = derivative_at_zero(lambda h, e=e: norm(H + h * e), "norm")
        np.testing.assert_allclose(change, by, rtol=0, atol=1e-10)
    assert build(mf.Norm, describe(norm) | {"kind": type(norm).__name__}) == norm


def test_pre_ln_with_norms_is_a_flow_and_layers():
    m = model(mf.PreLN(FIRST, SECOND))
    velocity = TokenMotion(m, TOKENS).velocity(H[None].copy(), 0.0)[0]
    wanted = attention(FIRST(H), m) + MLP(SECOND(H))
    np.testing.assert_allclose(velocity, wanted, rtol=0, atol=1e-12)
    final = mf.solve(m, TOKENS, (0, 1), **LAYERS).final.x
    h = H + attention(FIRST(H), m)
    np.testing.assert_allclose(final, h + MLP(SECOND(h)), rtol=0, atol=1e-12)


def test_post_ln_with_norms_is_layers_alone():
    m = model(mf.PostLN(FIRST, SECOND))
    run = mf.solve(m, TOKENS, (0, 1), **LAYERS)
    h = FIRST(H + attention(H, m))
    np.testing.assert_allclose(run.final.x, SECOND(h + MLP(h)), rtol=0, atol=1e-12)
    assert np.isnan(run.observables["speed"]).all()
    with pytest.raises(mf.MeanfieldError, match=r"has no flow: .*scheme=steppers\.Layers"):
        mf.solve(m, TOKENS, (0, 1))


@pytest.mark.parametrize("scheme", [None, mf.steppers.Layers])
def test_pre_ln_with_rms_norms_is_pre_ln_on_the_sphere(scheme):
    """Where RMSNorm, of vectors of length sqrt(d), is that multiple of h/|h|."""
    root = math.sqrt(D)
    inside = mf.Transformer(mf.Attention(V=0.5), normalisation=mf.PreLN(mf.RMSNorm()))
    outside = mf.Transformer(mf.Attention(V=0.5 * root, beta=root**2), normalisation=mf.PreLN())
    options = {"scheme": scheme, "dt": 0.5} if scheme else {"rtol": 1e-11}
    found = mf.solve(inside, TOKENS, (0, 1), progress=False, **options).final.x
    other = mf.solve(outside, mf.Tokens.from_hidden(H), (0, 1), progress=False, **options).final
    np.testing.assert_allclose(found, other.radii[:, None] * other.x, rtol=0, atol=1e-9)


@pytest.mark.parametrize("placement", [mf.PreLN, mf.PostLN])
def test_tangents_of_layers(placement):
    m, dx = model(placement(FIRST, SECOND)), RNG.standard_normal((N, D))
    run = mf.solve(m, TOKENS, (0, 2), tangents=[dx], **LAYERS)

    def final(h):
        return mf.solve(m, mf.Tokens(H + h * dx, on_sphere=False), (0, 2), **LAYERS).final.x

    by = derivative_at_zero(final, "layers")
    np.testing.assert_allclose(run.tangents["direction_0"][-1].x, by, rtol=0, atol=1e-8)


@pytest.mark.parametrize("placement", [mf.PreLN, mf.PostLN])
def test_each_layer_has_its_own_norms_and_map(placement):
    def mlp(k):
        rng = np.random.default_rng(k)
        a, b, c = rng.standard_normal((3, D, D)) / 2
        bias = dict(
            zip(("bias", "outer_bias", "gate_bias"), rng.standard_normal((3, D)), strict=True)
        )
        return mf.FeedForward(a, b, gate=c, activation="silu", **bias)

    def norms(k):
        gain, bias = np.random.default_rng(k).standard_normal((2, D))
        return mf.LayerNorm(gain, bias, 0.1), mf.RMSNorm(gain, 0.2)

    h = TOKENS
    for k in range(3):
        h = mf.solve(model(placement(*norms(k)), feedforward=mlp(k)), h, (0, 1), **LAYERS).final

    def layers(parts, name):
        return mf.PerLayer(np.stack([getattr(part, name) for part in parts]))

    names = "inner", "outer", "bias", "outer_bias", "gate", "gate_bias"
    maps = [mlp(k) for k in range(3)]
    whole = mf.FeedForward(activation="silu", **{name: layers(maps, name) for name in names})
    first, second = zip(*map(norms, range(3)), strict=True)
    placed = placement(
        mf.LayerNorm(layers(first, "gain"), layers(first, "bias"), 0.1),
        mf.RMSNorm(layers(second, "gain"), 0.2),
    )
    together = model(placed, feedforward=whole)
    assert not placed.constant and placed.autonomous and not whole.constant
    found = mf.solve(together, TOKENS, (0, 3), **LAYERS).final.x
    np.testing.assert_allclose(found, h.x, rtol=0, atol=1e-12)
    assert build(mf.Drift, {"kind": "FeedForward", **describe(whole)}) == whole


def test_a_map_of_layers_is_a_drift_that_jumps():
    values = np.array([1.0, -1.0])
    drift = mf.FeedForward(mf.PerLayer(values[:, None, None] * np.eye(2)), 1.0, activation=np.tanh)
    x = np.array([[0.5, 0.2], [-0.3, 1.0]])
    tokens = mf.Tokens(x, on_sphere=False)
    final = mf.solve(mf.Transformer(drift), tokens, (0, 2), rtol=1e-11, progress=False).final.x
    np.testing.assert_allclose(final, x, rtol=0, atol=1e-9)  # forth and back
    for own in (mf.Transformer(drift), mf.Transformer(mf.SA(1.0), feedforward=drift)):
        with pytest.raises(mf.MeanfieldError, match="layers is known for tokens only"):
            mf.solve(own, mf.Circle(8).uniform(), (0, 1))
    with pytest.raises(ValueError, match="inner must be finite"):
        mf.FeedForward(mf.PerLayer([[[np.inf]]]), 1.0)


def test_norms_are_refused_where_they_mean_nothing():
    own = mf.Transformer(mf.SA(1.0), normalisation=mf.PreLN(mf.RMSNorm()))
    with pytest.raises(mf.MeanfieldError, match=r"Tokens\(h, on_sphere=False\)"):
        mf.solve(own, mf.Tokens.uniform(4, 3, rng=0), (0, 1))
    circle = mf.Circle(8)
    for state in (circle.uniform(), mf.Characteristics(circle.uniform())):
        with pytest.raises(mf.MeanfieldError, match="acts on hidden states"):
            mf.solve(own, state, (0, 1))
    with pytest.raises(mf.MeanfieldError, match=r"acts on hidden states of R\^d"):
        mf.solve(own, mf.Equiangular(4, 0.1), (0, 1))
    with pytest.raises(mf.MeanfieldError, match=r"or with one that has norms"):
        mf.solve(mf.Transformer(mf.Attention(), normalisation=mf.PeriLN()), TOKENS, (0, 1))
    with pytest.raises(ValueError, match="dimension 5; got points of dimension 3"):
        wide = model(mf.PreLN(FIRST), feedforward=None).replace(drift=mf.Attention())
        mf.solve(wide, mf.Tokens(H[:, :3], on_sphere=False), (0, 1))
    with pytest.raises(ValueError, match=r"one d; got gain \(3,\), bias \(4,\)"):
        mf.LayerNorm(np.ones(3), np.ones(4))
    with pytest.raises(ValueError, match="gate_bias must be left out"):
        mf.FeedForward(np.eye(2), np.eye(2), gate_bias=np.ones(2))
