"""Tokens on the torus: what they hold, and how they move."""

import numpy as np
import pytest

import meanfield as mf

ANGLES = np.random.default_rng(0).uniform(-np.pi, np.pi, (3, 12, 2))


def test_points_are_pairs_and_moments_are_sums():
    tokens = mf.Tokens.on_torus(ANGLES[0], np.arange(1, 13) / 78)
    assert isinstance(tokens, mf.TorusTokens) and tokens.x.shape == (12, 4)
    np.testing.assert_array_equal(tokens.x[:, 2], np.cos(ANGLES[0, :, 1]))
    moment = (np.arange(1, 13) / 78) @ np.exp(2j * ANGLES[0])
    np.testing.assert_allclose(tokens.moment(2), moment, rtol=1e-14)
    found = tokens.expect(lambda x: x[:, 0] + 1j * x[:, 1])
    assert found == pytest.approx(tokens.moment(1)[0], rel=1e-14)


@pytest.mark.parametrize("angles", [np.zeros(3), np.zeros((0, 2)), [[np.nan, 0.0]]], ids=repr)
def test_angles_are_finite_numbers_of_each_token(angles):
    with pytest.raises(ValueError, match="angles"):
        mf.Tokens.on_torus(angles)


@pytest.mark.parametrize(
    "drift", [mf.USA(1.3), mf.SA(1.3), mf.USA(3.0), mf.SA(3.0), mf.Kuramoto()], ids=repr
)
@pytest.mark.parametrize("few", [0, 512], ids=["waves", "pairs"])
def test_velocities_are_tangential_parts_of_sums_over_pairs(drift, few, monkeypatch):
    """P of each pair (cos, sin); sums over waves and over pairs agree."""
    monkeypatch.setattr("meanfield.dynamics.torus_tokens.FEW_TOKENS", few)
    x = mf.Tokens.on_torus(ANGLES[0]).x
    inner = x @ x.T
    weights = np.exp(float(drift.exponent) * inner)
    output = weights @ x / (weights.sum(axis=1, keepdims=True) if drift.normalised else 12)
    pairs = x.reshape(12, 2, 2)
    expected = pairs[..., 0] * output[:, 1::2] - pairs[..., 1] * output[:, ::2]
    from meanfield.dynamics import TorusTokenMotion

    motion = TorusTokenMotion(mf.Transformer(drift), mf.Tokens.on_torus(ANGLES[0]))
    found = motion.velocity(ANGLES[:1], 0.0)[0]
    scale = np.abs(weights).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14 * scale)


def test_tokens_of_one_angle_move_as_on_the_circle():
    angles = ANGLES[0, :, :1]
    model, span = mf.Transformer(mf.SA(2.0)), {"t_span": (0, 1), "t_eval": [1], "rtol": 1e-10}
    torus = mf.solve(model, mf.Tokens.on_torus(angles), **span).final
    circle = mf.solve(model, mf.Tokens.on_circle(angles[:, 0]), **span).final
    np.testing.assert_allclose(torus.x, circle.x, rtol=0, atol=1e-8)


def test_replicas_are_as_alone_and_follow_the_ensemble_of_a_model():
    drift = mf.USA(np.array([0.5, 1.0, 3.0]))
    together = mf.solve(mf.Transformer(drift), mf.Tokens.on_torus(ANGLES), (0, 0.5)).final
    for i in range(3):
        model = mf.Transformer(drift.member(i))
        alone = mf.solve(model, mf.Tokens.on_torus(ANGLES[i]), (0, 0.5)).final
        np.testing.assert_array_equal(together[i].angles, alone.angles)


def test_noise_alone_is_a_brownian_motion_of_the_angles():
    """E e^{ix} falls by e^{-t/kappa}, of 10 000 tokens that begin at 0."""
    tokens = mf.Tokens.on_torus(np.zeros((10_000, 2)))
    model = mf.Transformer(0.0 * mf.Kuramoto(), kappa=2.0)
    final = mf.solve(model, tokens, (0, 1), dt=0.5, t_eval=[1], rng=5).final
    np.testing.assert_allclose(final.moment(1), np.exp(-0.5), rtol=0, atol=4.5 / 100)


def test_noisy_tokens_approach_their_density():
    """Means of 64 replicas of 64 tokens, within 4.5 standard errors and the bias of order 1/n."""
    torus, model = mf.Torus(16), mf.Transformer(mf.USA(0.8), kappa=1.0)
    mu = torus.von_mises([0.3, 1.0], 1.0)
    angles = mu.sample(64 * 64, rng=0).angles.reshape(64, 64, 2)
    final = mf.solve(
        model, mf.Tokens.on_torus(angles), (0, 0.4), dt=0.02, t_eval=[0.4], rng=1
    ).final
    expected = mf.solve(model, mu, (0, 0.4), t_eval=[0.4]).final.moment(1)
    moments = final.moment(1)
    error = np.abs(moments.mean(axis=0) - expected)
    spread = np.sqrt((np.abs(moments - moments.mean(axis=0)) ** 2).mean(axis=0) / 64)
    assert (error < 4.5 * spread + 2 / 64).all()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (mf.Transformer(mf.Attention(beta=1.0)), "does not move tokens on the torus"),
        (mf.Transformer(mf.USA(1.0), noise=mf.Anisotropic(np.eye(4)), kappa=1.0), "Anisotropic"),
        (mf.Transformer(mf.USA(1.0), reaction=0.2), "moves without reaction"),
    ],
    ids=["attention", "noise", "reaction"],
)
def test_models_that_need_a_sphere_are_refused(model, message):
    rng = {"rng": 0} if model.noisy else {}
    with pytest.raises(mf.MeanfieldError, match=message):
        mf.solve(model, mf.Tokens.on_torus(ANGLES[0]), (0, 1), **rng)
