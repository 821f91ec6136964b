"""Tokens on the torus: what they hold, and how they move."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.dynamics import TorusTokenMotion
from meanfield.dynamics.density import DensityMotion
from meanfield.states.points import on_circles

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
@pytest.mark.parametrize("cost", [0.0, 1.0], ids=["waves", "pairs"])
def test_velocities_are_tangential_parts_of_sums_over_pairs(drift, cost, monkeypatch):
    """P of each pair (cos, sin); sums over waves and over pairs agree."""
    monkeypatch.setattr("meanfield.engines.torus.FEWEST_FOR_WAVES", 0)
    monkeypatch.setattr("meanfield.engines.torus.WAVE_COST", cost)
    x = mf.Tokens.on_torus(ANGLES[0]).x
    inner = x @ x.T
    weights = np.exp(float(drift.exponent) * inner)
    output = weights @ x / (weights.sum(axis=1, keepdims=True) if drift.normalised else 12)
    pairs = x.reshape(12, 2, 2)
    expected = pairs[..., 0] * output[:, 1::2] - pairs[..., 1] * output[:, ::2]
    motion = TorusTokenMotion(mf.Transformer(drift), mf.Tokens.on_torus(ANGLES[0]))
    found = motion.velocity(ANGLES[:1], 0.0)[0]
    assert (motion._sums._summed is None) == (cost == 0 and 0 < 2 * drift.exponent <= 4)
    scale = np.abs(weights).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14 * scale)


def test_tokens_of_one_angle_move_as_on_the_circle():
    angles = ANGLES[0, :, :1]
    model, span = mf.Transformer(mf.SA(2.0)), {"t_span": (0, 1), "t_eval": [1], "rtol": 1e-10}
    torus = mf.solve(model, mf.Tokens.on_torus(angles), **span).final
    circle = mf.solve(model, mf.Tokens.on_circle(angles[:, 0]), **span).final
    np.testing.assert_allclose(torus.x, circle.x, rtol=0, atol=1e-8)


def turned(x, y):
    """A kernel that is no function of the inner product."""
    return np.exp(0.5 * np.cos(x[..., :1] - 2 * y[..., 3:])) * y[..., ::-1]


MATRICES = np.eye(4) + 0.3 * np.random.default_rng(1).standard_normal((3, 4, 4))
OUTPUTS = {
    "potential": (
        mf.Potential(lambda x: x[..., 0] * x[..., 3] + 0.5 * x[..., 2] ** 2),
        lambda x, m: np.stack([x[:, 3], 0 * x[:, 0], x[:, 2], x[:, 0]], axis=1),
    ),
    "pairs": (mf.PairKernel(turned), lambda x, m: np.einsum("j,ijd->id", m, turned(x[:, None], x))),
    "matrices": (
        mf.Attention(*MATRICES, beta=0.8),
        lambda x, m: attended(0.8 * (x @ MATRICES[0].T) @ (x @ MATRICES[1].T).T, m, x),
    ),
}


def attended(logits, masses, x):
    weights = np.exp(logits) * masses
    return weights @ (x @ MATRICES[2].T) / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("name", OUTPUTS)
def test_any_drift_moves_tokens_by_its_part_along_each_circle(name):
    drift, output = OUTPUTS[name]
    masses = np.arange(1, 13) / 78
    tokens = mf.Tokens.on_torus(ANGLES, masses)
    for factor, part in ((1.0, drift), (0.5, mf.USA(1.3) + 0.5 * drift)):
        motion = TorusTokenMotion(mf.Transformer(part), tokens)
        for angles, found in zip(ANGLES, motion.velocity(ANGLES, 0.0), strict=True):
            x = on_circles(angles)
            u = factor * output(x, masses)
            if part is not drift:
                u += (np.exp(1.3 * x @ x.T) * masses) @ x
            expected = x[:, ::2] * u[:, 1::2] - x[:, 1::2] * u[:, ::2]
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


def test_attention_without_matrices_is_sa():
    tokens, span = mf.Tokens.on_torus(ANGLES[0]), {"t_span": (0, 1), "rtol": 1e-10, "t_eval": [1]}
    runs = [
        mf.solve(mf.Transformer(d), tokens, **span) for d in (mf.SA(1.3), mf.Attention(beta=1.3))
    ]
    np.testing.assert_allclose(runs[1].final.angles, runs[0].final.angles, rtol=0, atol=1e-9)


def test_a_potential_alone_has_its_stationary_law():
    """exp(kappa V): means over 4000 tokens after a long time, within 4.5 standard errors."""
    potential = mf.Potential(lambda x: 0.6 * x[..., 0] + 0.4 * x[..., 1] * x[..., 2])
    torus, kappa = mf.Torus(16), 2.0
    x = torus.points
    law = np.exp(kappa * (0.6 * x[:, 0] + 0.4 * x[:, 1] * x[:, 2]))
    law /= law.sum()
    tokens = torus.uniform().sample(4000, rng=0)
    model = mf.Transformer(potential, kappa=kappa)
    final = mf.solve(model, tokens, (0, 20), dt=0.1, t_eval=[20], rng=1).final
    for f in (lambda x: x[:, 0], lambda x: x[:, 1] * x[:, 2], lambda x: x[:, 1]):
        values = f(final.x)
        assert abs(values.mean() - law @ f(x)) < 4.5 * values.std() / 4000**0.5


def test_energies_of_parts_add():
    energy = mf.solve(
        mf.Transformer(mf.USA(1.3) + OUTPUTS["potential"][0]), mf.Tokens.on_torus(ANGLES[0]), (0, 1)
    ).observables["interaction_energy"]
    x = on_circles(ANGLES[0])
    pairs = np.exp(1.3 * x @ x.T).mean() / 2.6
    level = (x[:, 0] * x[:, 3] + 0.5 * x[:, 2] ** 2).mean()
    assert float(energy[0]) == pytest.approx(pairs + level, rel=1e-13)
    assert (np.diff(energy) > 0).all()


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


def test_each_half_step_of_noise_has_the_kappa_of_its_middle():
    """One step: dt/kappa at dt/4 and at 3 dt/4, with numbers in their order."""
    dt, start = 0.5, 0.3
    model = mf.Transformer(0.0 * mf.Kuramoto(), kappa=lambda t: 1 + 3 * t**2)
    motion = TorusTokenMotion(model, mf.Tokens.on_torus(ANGLES))
    found = motion.step(mf.steppers.Strang, ANGLES, start, dt, np.random.default_rng(7))
    numbers = np.random.default_rng(7).standard_normal((2, *ANGLES.shape))
    sizes = [np.sqrt(dt / (1 + 3 * (start + share * dt) ** 2)) for share in (0.25, 0.75)]
    expected = ANGLES + sizes[0] * numbers[0] + sizes[1] * numbers[1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_noisy_steps_resolve_the_fastest_tokens(m):
    """Forces of USA are up to exp(m beta); noise moves a token, or a density, along m circles."""
    tokens = mf.Tokens.on_torus(np.random.default_rng(2).uniform(0, 6, (5, m)))
    common = mf.noise.CommonRotations(4.0)
    for drift, pull in ((mf.USA(1.5), np.exp(1.5 * m)), (mf.SA(1.5), 1 + 1.5 / 2)):
        model = mf.Transformer(drift, kappa=2.0, common=common)
        found = TorusTokenMotion(model, tokens).noisy_step(0.0)
        assert found == pytest.approx(0.05 / (pull + m / 2 + m / 4), rel=1e-12)
        density = DensityMotion(model, mf.Torus(3, m).uniform())
        assert density.chosen_scheme(None, None, 0.0)[1] == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("kind", [mf.noise.CommonRotations, mf.noise.CommonTranslations])
def test_common_noise_moves_each_angle_as_a_point_of_the_circle(kind):
    noise, rng = kind(2.0), np.random.default_rng(4)
    x, s = on_circles(ANGLES), np.array([0.1, 0.2, 0.3])
    increments = noise.increments(3, 4, rng, circles=2)
    found = noise.moved_on_torus(x, s, increments)
    for i, numbers in enumerate(np.split(increments, 2, axis=1)):
        pair = slice(2 * i, 2 * i + 2)
        expected = noise.moved(x[..., pair], s, numbers)
        np.testing.assert_allclose(found[..., pair], expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("kind", [mf.noise.CommonRotations, mf.noise.CommonTranslations])
def test_common_noise_moves_tokens_and_their_density_alike(kind):
    """Weighted tokens at quadrature nodes, with the common path of the density."""
    torus = mf.Torus(8)
    density = torus.von_mises([0.3, 1.0], 0.1)
    masses = torus.weights * density.values
    tokens = mf.Tokens.on_torus(torus.angles_of(torus.points), masses / masses.sum())
    model = mf.Transformer(mf.Kuramoto(), common=kind(20.0))
    options = {"t_span": (0, 0.2), "t_eval": [0.2], "dt": 0.1, "rng": 3}
    of_density = mf.solve(model, density, **options, rtol=1e-4, min_degree=8).final
    of_tokens = mf.solve(model, tokens, **options).final
    np.testing.assert_allclose(of_density.moment(1), of_tokens.moment(1), rtol=0, atol=1e-7)


@pytest.mark.repeats
@pytest.mark.parametrize(
    "drift",
    [
        mf.USA(0.7),
        mf.SA(1.3),
        mf.Interaction(lambda t: t + t**3 / 6),
        mf.USA(0.5) + 0.3 * mf.Potential(lambda x: x[..., 0] * x[..., 2]),
    ],
    ids=["USA", "SA", "waves", "potential"],
)
def test_tangents_are_derivatives_of_runs(drift):
    """Central differences of order 4 of runs, in a direction and by each parameter."""
    angles, turn = ANGLES[0, :5], np.random.default_rng(3).standard_normal((5, 2))
    names, h = [*drift.parameters], 1e-3

    def final(shift, name=None):
        moved = drift.replace(**{name: drift.parameters[name] + shift}) if name else drift
        start = angles if name else angles + shift * turn
        return mf.solve(mf.Transformer(moved), mf.Tokens.on_torus(start), (0, 0.5),
                        rtol=1e-12).final.angles  # fmt: skip

    run = mf.solve(mf.Transformer(drift), mf.Tokens.on_torus(angles), (0, 0.5), rtol=1e-11,
                   tangents=[{"angles": turn}, *names])  # fmt: skip
    for key, name in (("direction_0", None), *((name, name) for name in names)):
        one, two = (final(k * h, name) - final(-k * h, name) for k in (1, 2))
        expected = (8 * one - two) / (12 * h)
        np.testing.assert_allclose(run.tangents[key][-1]["angles"], expected, rtol=0, atol=1e-8)


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
        (mf.Transformer(mf.CosineSeries([0, 1.0])), "a series in the angle between two points"),
        (mf.Transformer(mf.USA(1.0), noise=mf.Anisotropic(np.eye(4)), kappa=1.0), "Anisotropic"),
        (mf.Transformer(mf.USA(1.0), reaction=0.2), "moves without reaction"),
    ],
    ids=["angles", "noise", "reaction"],
)
def test_models_that_need_a_sphere_are_refused(model, message):
    rng = {"rng": 0} if model.noisy else {}
    with pytest.raises(mf.MeanfieldError, match=message):
        mf.solve(model, mf.Tokens.on_torus(ANGLES[0]), (0, 1), **rng)
