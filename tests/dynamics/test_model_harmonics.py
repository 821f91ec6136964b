"""Harmonics of the functions in a model: the degree that it needs, and what needs it."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.dynamics.model_harmonics import ModelHarmonics

CIRCLE = mf.Circle(24)


def angle(x):
    """The angle of points of the circle."""
    return np.arctan2(x[..., 1], x[..., 0])


def wave(n):
    """V = cos(n theta)."""
    return mf.Potential(lambda x: np.cos(n * angle(x)))


def cosine(n):
    """The drift of W = cos(n theta)."""
    return mf.CosineSeries(np.eye(n + 1)[n])


SCALED = mf.noise.MultiplicativeIto(lambda x: 1 + 0.01 * np.cos(70 * angle(x)))
FORWARD = mf.Transformer(
    mf.Kuramoto(), 2.0, feedforward=lambda x: np.cos(33 * angle(x))[..., None] * x[..., ::-1]
)
MODELS = {
    "Potential": (mf.Transformer(mf.USA(2.0) + wave(40), 2.0), 40, 40),
    "W of CosineSeries": (mf.Transformer(cosine(40) + 0.0 * wave(90), 2.0), 24, 80),
    "the scale of MultiplicativeIto": (mf.Transformer(cosine(2), 2.0, noise=SCALED), 24, 70),
    "the feed-forward map": (FORWARD, 30, 30),
    "": (mf.Transformer(mf.SA(2.0) + wave(24), 2.0), 24, 24),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_degree_that_a_model_needs_is_named_with_what_needs_it(name):
    """Runs do not feel multipliers of W above a density; onsets of a search need twice these."""
    model, of_runs, of_searches = MODELS[name]
    assert ModelHarmonics(model, CIRCLE).needed(24)[0] == of_runs
    needed, found = ModelHarmonics(model, CIRCLE, 512).needed(24)
    assert needed == of_searches and found.startswith(name) and bool(found) == bool(name)


def test_a_degree_that_hides_harmonics_is_refused_with_their_name():
    with pytest.raises(
        mf.MeanfieldError, match=r"degree 24 hides harmonics of degree 40 of Potential"
    ):
        ModelHarmonics(mf.Transformer(wave(40), 2.0), CIRCLE).check(24)
    ModelHarmonics(mf.Transformer(wave(40), 2.0), CIRCLE).check(40)


def test_shares_of_moments_above_a_truncation_are_those_of_the_harmonics_that_carry_them():
    V = mf.Potential(lambda x: np.cos(angle(x)) + 0.25 * np.cos(5 * angle(x)))
    shares = ModelHarmonics(mf.Transformer(V, 2.0), CIRCLE).moving(12)
    np.testing.assert_allclose(shares, [0] * 8 + [0.25] * 4 + [1.0], atol=1e-12)
    assert not ModelHarmonics(mf.Transformer(mf.USA(3.0), 2.0), CIRCLE).moving(12).any()


def test_the_first_degree_of_a_search_follows_the_scale_of_its_noise():
    """Without a drift the law is that of 1/s^2, here to the 1e-8 at which the noise is resolved."""
    model = mf.Transformer(0.0 * mf.Kuramoto(), 1.0, noise=SCALED)
    theta = 2 * np.pi * np.arange(8192) / 8192
    law = (1 + 0.01 * np.cos(70 * theta)) ** -2
    with pytest.warns(mf.UnresolvedWarning, match="scale of the noise"):  # at lower degrees
        found = mf.stationary(model, CIRCLE.uniform(), max_degree=512).density
    assert found.moment(70).real == pytest.approx((law * np.cos(70 * theta)).mean() / law.mean())


class Wave(mf.Weights):
    """k(x, y) = cos(40 angle(x, y)): on the circle W' = T_40."""

    normalised = False

    def of_logits(self, logits, squares):
        return np.cos(40 * np.arccos(np.clip(logits, -1, 1)))


def test_weights_of_ones_own_raise_the_degree_of_a_search():
    """W_41 = (T_40)_40 / (2 * 41) = 1/164 makes the uniform state unstable from kappa = 164 on."""
    drift = mf.Attention(Q=1.0, K=1.0, V=1.0, beta=1.0, weights=Wave())
    assert ModelHarmonics(mf.Transformer(drift, 2.0), CIRCLE).needed(24)[0] >= 39
    for kappa, stable in ((150.0, True), (170.0, False)):
        state = mf.stationary(mf.Transformer(drift, kappa), CIRCLE.uniform())
        assert state.density.space.degree >= 41 and state.stable == stable


def test_closed_forms_of_attention_have_no_gaps():
    drift = mf.Attention(Q=1.0, K=1.0, V=1.0, beta=9.0, weights=mf.Softmax())
    assert drift.harmonics is None
    smooth = mf.Attention(Q=1.0, K=1.0, V=1.0, beta=9.0, weights=mf.Sigmoid())
    assert ModelHarmonics(mf.Transformer(smooth, 2.0), CIRCLE).needed(4)[0] == 4


def test_products_of_moments_above_the_degree_are_felt_in_a_search():
    """The harmonic 40 of the uniform state grows at the rate 40 * 36/2 - 40^2/kappa."""
    drift, kappa = mf.Kuramoto() + 36.0 * mf.HigherOrder((40,)), 2.5
    state = mf.stationary(mf.Transformer(drift, kappa), CIRCLE.uniform())
    assert -state.stability().gap == pytest.approx(40 * 36 / 2 - 40**2 / kappa, rel=1e-9)
    with pytest.raises(mf.MeanfieldError, match=r"harmonics of degree 30 of HigherOrder"):
        ModelHarmonics(mf.Transformer(mf.HigherOrder((10, 20)), 2.5), CIRCLE).check(24)
