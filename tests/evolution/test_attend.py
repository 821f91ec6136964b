"""One attention layer without residual: equiangular tokens and tokens agree, limits are known."""

import re

import numpy as np
import pytest

import meanfield as mf
from meanfield.steppers import Layers

logarithmic = mf.scalings.logarithmic


@pytest.mark.parametrize("drift", [mf.SA(4.0), mf.SA(-1.0), mf.USA(1.5)], ids=repr)
@pytest.mark.parametrize("rho", [-0.1, 0.0, 0.6])
def test_equiangular_tokens_are_answered_like_tokens(drift, rho):
    state = mf.Equiangular(7, rho)
    one, all_of_them = mf.attend(drift, state), mf.attend(drift, state.to_tokens())
    np.testing.assert_allclose(all_of_them.gram().G[0, 1:], one.rho, rtol=1e-12)
    np.testing.assert_allclose(all_of_them.radii, one.radius, rtol=1e-13)


def test_it_is_the_limit_of_a_layer_with_a_large_step():
    state, model = mf.Equiangular(9, 0.3), mf.Transformer(mf.SA(2.0))
    layer = mf.solve(model, state, (0, 1e12), scheme=Layers, dt=1e12).final
    np.testing.assert_allclose(layer.gap, mf.attend(model.drift, state).gap, rtol=1e-9)


@pytest.mark.parametrize(
    ("gamma", "n", "rho"),
    [
        (2, 1e2, 0.80279678),
        (2, 1e4, 0.80002800),
        (1.5, 1e2, 0.94836526),
        (1.5, 1e8, 0.99990198),
        (3, 1e2, 0.54798632),
        (3, 1e4, 0.50497550),
    ],
)
def test_the_known_values_of_long_contexts(gamma, n, rho):
    drift = mf.SA(logarithmic(n, gamma))
    np.testing.assert_allclose(mf.attend(drift, mf.Equiangular(n, 0.5)).rho, rho, atol=5e-9)


def test_the_critical_window():
    """gamma = (1 + c/log n)/(1 - rho): beta (1 - rho) = log n + c."""
    c, n = np.array([-2, -1, 0, 1, 2]), 1e100
    drift = mf.SA(logarithmic(n, 2.0, 2 * c[None, :]))
    expected = [0.98598974, 0.93254919, 0.8, 0.65170073, 0.56312537]
    found = mf.attend(drift, mf.Equiangular(n, [[0.5]]))
    np.testing.assert_allclose(found.rho[0], expected, atol=5e-9)


def test_where_attention_is_uniform_all_outputs_are_one():
    assert mf.attend(mf.Kuramoto(), mf.Equiangular(32, 0.0)).gap == 0


def test_general_attention_answers_tokens():
    Q, tokens = mf.ensembles.ginibre(3, 0), mf.Tokens.uniform(5, 3, rng=1, shape=2)
    drift = mf.Attention(Q, V=2.0, beta=0.7)
    weights = np.exp(0.7 * np.einsum("rid,rjd->rij", tokens.x @ Q.T, tokens.x))
    A = 2 * (weights / weights.sum(axis=-1, keepdims=True)) @ tokens.x
    answered = mf.attend(drift, tokens)
    np.testing.assert_allclose(answered.x * answered.radii[..., None], A, rtol=1e-13)


def test_what_has_no_answer_is_refused():
    with pytest.raises(TypeError, match="attend takes a drift and Tokens"):
        mf.attend(mf.SA(1.0), mf.Circle(8).uniform())
    with pytest.raises(mf.MeanfieldError, match="answers 0 to 2 tokens"):
        mf.attend(mf.Kuramoto(), mf.Tokens([[1.0, 0], [-1.0, 0]]))
    with pytest.raises(mf.MeanfieldError, match=re.escape("live in R^d")):
        mf.attend(mf.SA(1.0), mf.Tokens([[1.0, 2]], on_sphere=False))
    with pytest.raises(mf.MeanfieldError, match="Causal"):
        mf.attend(mf.Attention(causal=True), mf.Equiangular(3, 0.0))


def test_scalings():
    np.testing.assert_allclose(logarithmic([10, 100], 2, 1), 1 + 2 * np.log([10, 100]))
    np.testing.assert_allclose(mf.scalings.power(100, 3, 0.5), 50)
    for bad in (1, np.inf, []):
        with pytest.raises(ValueError, match="finite n >= 2"):
            logarithmic(bad)
    with pytest.raises(ValueError, match="d >= 2"):
        mf.scalings.power(10, 1)
    with pytest.raises(ValueError, match="gamma must be finite numbers"):
        logarithmic(10, np.nan)
