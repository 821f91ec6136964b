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


@pytest.mark.parametrize(
    ("drift", "rate"),
    [
        (mf.SA(1.0), 1.0),
        (mf.SA(-0.5), 0.5),
        (mf.USA(3.0), 3.0),
        (mf.Interaction(np.exp, "e"), 1.0),
        (mf.Interaction(lambda t: t + t**2), 2 / 3),
        (mf.Interaction(np.exp, derivative=np.exp), 1.0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("log_gap", [-30.0, -600.0, -1e4])
def test_close_tokens_are_answered_with_all_digits(drift, rate, log_gap):
    """1 - rho -> (rate/n)^2 (1 - rho)^3, rate = W''(1)/W'(1): a logit z becomes 3 z + ..."""
    n = 5.0
    state = mf.Equiangular.computed(np.array(n), np.log(n**2) - log_gap, np.array(1.0))
    close = state.log_gap + 2 * (state.log_gap + np.log(rate / n))
    np.testing.assert_allclose(mf.attend(drift, state).log_gap, close, rtol=1e-12)


def test_gaps_below_the_least_number_cube_on():
    state, found = mf.Equiangular(5, 0.5), []
    for _ in range(6):
        state = mf.attend(mf.SA(1.0), state)
        found.append(float(state.log_gap))
    np.testing.assert_allclose(found[:2], [-4.519438526378, -16.761909185598], rtol=1e-12)
    np.testing.assert_allclose(np.array(found[3:]) - 3 * np.array(found[2:-1]), -2 * np.log(5))


def test_a_slope_that_is_not_smooth_gives_no_answer_for_close_tokens():
    drift = mf.Interaction(
        lambda t: -np.sqrt(1 - t**2), derivative=lambda t: t / np.sqrt(1 - t**2 + 1e-9)
    )
    with pytest.raises(mf.MeanfieldError, match="W''"):
        mf.attend(drift, mf.Equiangular(5, gap=1e-9))


def test_general_attention_answers_tokens():
    Q, tokens = mf.ensembles.ginibre(3, 0), mf.Tokens.uniform(5, 3, rng=1, shape=2)
    drift = mf.Attention(Q, V=2.0, beta=0.7)
    weights = np.exp(0.7 * np.einsum("rid,rjd->rij", tokens.x @ Q.T, tokens.x))
    A = 2 * (weights / weights.sum(axis=-1, keepdims=True)) @ tokens.x
    answered = mf.attend(drift, tokens)
    np.testing.assert_allclose(answered.x * answered.radii[..., None], A, rtol=1e-13)


def test_what_has_no_answer_is_refused():
    with pytest.raises(TypeError, match="state must be Tokens or Equiangular"):
        mf.attend(mf.SA(1.0), mf.Circle(8).uniform())
    with pytest.raises(mf.MeanfieldError, match="answers 0 to 2 tokens"):
        mf.attend(mf.Kuramoto(), mf.Tokens([[1.0, 0], [-1.0, 0]]))
    with pytest.raises(mf.MeanfieldError, match=re.escape("live in R^d")):
        mf.attend(mf.SA(1.0), mf.Tokens([[1.0, 2]], on_sphere=False))
    with pytest.raises(mf.MeanfieldError, match="causal"):
        mf.attend(mf.Attention(causal=True), mf.Equiangular(3, 0.0))
    with pytest.raises(ValueError, match=re.escape("model of shape (3,), state of shape (2,)")):
        mf.attend(mf.SA([1.0, 2.0, 3.0]), mf.Equiangular([5, 6], 0.1))


def test_scalings():
    np.testing.assert_allclose(logarithmic([10, 100], 2, 1), 1 + 2 * np.log([10, 100]))
    np.testing.assert_allclose(mf.scalings.power(100, 3, 0.5), 50)
    for bad in (1, np.inf, []):
        with pytest.raises(ValueError, match=r"n >= 2|n must be finite"):
            logarithmic(bad)
    with pytest.raises(ValueError, match="d must be a whole number >= 2"):
        mf.scalings.power(10, 1)
    with pytest.raises(ValueError, match="gamma must be finite"):
        logarithmic(10, np.nan)
    with pytest.raises(ValueError, match=re.escape("n of shape (2,), gamma of shape (3,)")):
        logarithmic([2, 3], [1, 2, 3])
    with pytest.raises(ValueError, match=r"exceeds 1\.8e308"):
        mf.scalings.power(1e200, 2)


@pytest.mark.parametrize("d", [1, 3])
def test_in_space_it_is_a_step_of_blurring_mean_shift(d):
    rng, beta = np.random.default_rng(d), 3.0
    x, masses = rng.standard_normal((9, d)), rng.dirichlet(np.ones(9))
    weights = masses * np.exp(-beta / 2 * ((x[:, None] - x) ** 2).sum(axis=-1))
    answered = mf.attend(
        mf.Attention(beta=beta / 2, weights=mf.L2()), mf.Tokens(x, masses, on_sphere=False)
    )
    assert not answered.on_sphere and answered.radii is None
    np.testing.assert_allclose(answered.x, weights @ x / weights.sum(axis=1)[:, None], rtol=1e-13)
