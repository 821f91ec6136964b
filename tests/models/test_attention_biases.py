"""Biases of queries, keys, values and outputs: a layer like that of GPT-2, ensembles, refusals."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.core.descriptions import build, describe
from meanfield.core.differences import derivative_at_zero
from meanfield.core.dual import Dual, constant
from meanfield.engines.attention import AttentionSums

N, D, H, K = 9, 8, 2, 4
RNG = np.random.default_rng(0)
MATRICES = dict(zip("QKV", RNG.standard_normal((3, H, K, D)), strict=True))
BIASES = dict(zip(("Q_bias", "K_bias", "V_bias"), RNG.standard_normal((3, H, K)), strict=True))
OUTPUT, C = RNG.standard_normal((H, D, K)), RNG.standard_normal(D)


def drift(**changes):
    given = {**MATRICES, **BIASES, "output": OUTPUT, "output_bias": C, "causal": True}
    return mf.Attention(**given | changes)


def attention(x, beta=1.0, b=BIASES, c=C):
    """Query by query."""
    found = np.tile(c, (len(x), 1))
    for h in range(H):
        q, k, v = (x @ MATRICES[m][h].T + b[f"{m}_bias"][h] for m in "QKV")
        for i in range(len(x)):
            share = np.exp(beta * k[: i + 1] @ q[i])
            found[i] += OUTPUT[h] @ (share @ v[: i + 1]) / share.sum()
    return found


def test_a_layer_like_that_of_gpt2():
    """Pre-LN without a bias of the norm, all other biases, the tanh form of GELU."""
    inner, outer = RNG.standard_normal((2, 16, D))
    b, c = RNG.standard_normal(16), RNG.standard_normal(D)
    h = 3 * RNG.standard_normal((N, D))
    lengths = np.linalg.norm(h, axis=1)
    mlp = mf.FeedForward(inner, outer.T, b, "gelu_tanh", outer_bias=c)
    model = mf.Transformer(drift(beta=1.5), normalisation=mf.PreLN(), feedforward=mlp)
    tokens = mf.Tokens(h / lengths[:, None], radii=lengths)
    final = mf.solve(model, tokens, (0, 1), scheme=mf.steppers.Layers, dt=1.0).final
    h = h + attention(h / lengths[:, None], 1.5)
    u = (h / np.linalg.norm(h, axis=1)[:, None]) @ inner.T + b
    h = h + u * (1 + np.tanh(np.sqrt(2 / np.pi) * (u + 0.044715 * u**3))) / 2 @ outer + c
    np.testing.assert_allclose(final.radii[:, None] * final.x, h, rtol=0, atol=1e-12)


def test_ensembles_layers_and_files():
    x, m = RNG.standard_normal((3, N, D)), np.full((3, N), 1 / N)
    many = drift(Q_bias=RNG.standard_normal((3, H, K)), output_bias=RNG.standard_normal((3, D)))
    assert many.shape == (3,) and many.dimension == D
    found = AttentionSums(many).attention(0.0, x, m)
    for r in range(3):
        b = BIASES | {"Q_bias": many.Q_bias[r]}
        wanted = attention(x[r], b=b, c=many.output_bias[r])
        np.testing.assert_allclose(found[r], wanted, rtol=0, atol=1e-12)
        one = many.member(r)
        assert one.shape == () and build(mf.Drift, {"kind": "Attention", **describe(one)}) == one
    layers = drift(V_bias=mf.PerLayer([BIASES["V_bias"], 0 * BIASES["V_bias"]]))
    assert build(mf.Drift, {"kind": "Attention", **describe(layers)}) == layers
    later = AttentionSums(layers).attention(1.5, x[:1], m[:1])[0]
    np.testing.assert_allclose(later, attention(x[0], b=BIASES | {"V_bias": np.zeros((H, K))}))
    assert mf.Attention(K_bias=np.zeros(D)).dimension == D


@pytest.mark.parametrize("weights", [mf.Softmax(), mf.L2(), mf.Linear(), mf.Sinkhorn()])
def test_tangents(weights):
    sums = AttentionSums(drift(weights=weights, causal=False, beta=0.3))
    x, dx = 0.3 * RNG.standard_normal((2, 1, 5, D))
    m = np.full((1, 5), 0.2)
    result = sums.with_tangents([None]).attention(0.0, Dual(x, dx[None]), constant(m, 1))
    np.testing.assert_allclose(result.value, sums.attention(0.0, x, m), rtol=0, atol=1e-11)
    by = derivative_at_zero(lambda h: sums.attention(0.0, x + h * dx, m), "A")
    np.testing.assert_allclose(result.changes[0], by, rtol=0, atol=1e-8)


def test_what_has_no_biases_refuses_them():
    own = mf.Attention(weights=mf.Unnormalised(), V_bias=np.ones(3))
    assert not own.is_gradient(3)
    with pytest.raises(mf.MeanfieldError, match="attention with biases is known for tokens only"):
        mf.solve(mf.Transformer(own), mf.Sphere(4).uniform(), (0, 1))
    with pytest.raises(mf.MeanfieldError, match="attention with biases is known for tokens only"):
        mf.solve(
            mf.Transformer(mf.Attention(Q_bias=np.ones(2))),
            mf.Gaussian(np.zeros(2), np.eye(2)),
            (0, 1),
        )
    with pytest.raises(mf.MeanfieldError, match="output_bias is no sum"):
        model = mf.Transformer(own.replace(output_bias=np.ones(3)), causal="mean")
        mf.solve(model, mf.Tokens.uniform(4, 3, rng=0), (0, 1))
    with pytest.raises(mf.MeanfieldError, match="heads with biases have none"):
        tokens = mf.Tokens.uniform(40, 3, rng=0)
        mf.solve(mf.Transformer(own), tokens, (0, 1), engine=mf.engines.Modes())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"Q_bias": np.ones(3)}, r"Q_bias \(k\).* one k; got .*Q_bias \(3,\)"),
        ({"V_bias": np.ones((3, K))}, r"V_bias \(H, v\).* one H; got .*V_bias \(3, "),
        ({"output_bias": np.ones(3)}, r"output_bias \(d\).* one d; got .*output_bias \(3,\)"),
        ({"K_bias": 1.0}, "K_bias must be None or an array"),
        ({"K_bias": [np.nan] * K}, "K_bias"),
    ],
)
def test_biases_that_do_not_fit(given, message):
    with pytest.raises(ValueError, match=message):
        drift(**given)
