"""What every noise keeps to: the sphere, its input, its random numbers, replicas apart."""

import json

import numpy as np
import pytest
from diffusions import unit

from meanfield.core.descriptions import describe
from meanfield.models.noise import (
    Anisotropic,
    Isotropic,
    MultiplicativeIto,
    MultiplicativeStratonovich,
    Noise,
)


def uneven(x):
    return 1 + 0.5 * x[..., 0]


def noises(d):
    return [
        Isotropic(),
        Anisotropic(np.diag(np.linspace(0, 1, d))),
        MultiplicativeStratonovich(uneven),
        MultiplicativeIto(uneven),
    ]


everywhere = pytest.mark.parametrize(
    "noise, d",
    [(noise, d) for d in (2, 3, 5) for noise in noises(d)],
    ids=lambda value: type(value).__name__ if isinstance(value, Noise) else str(value),
)


def tokens(d, replicas=3, n=4):
    return unit(np.random.default_rng(d).standard_normal((replicas, n, d)))


@everywhere
def test_tokens_stay_on_the_sphere(noise, d):
    rng, x = np.random.default_rng(0), tokens(d)
    for _ in range(50):
        x = noise.moved(x, np.array([0.3, 0.01, 1e-9]), noise.increments(x.shape, rng))
        assert np.abs(np.linalg.norm(x, axis=2) - 1).max() < 1e-15


@pytest.mark.repeats
@everywhere
def test_a_seed_gives_one_result_and_the_input_is_left_alone(noise, d):
    x, s = tokens(d), np.full(3, 0.1)
    x.setflags(write=False)
    increments = noise.increments(x.shape, np.random.default_rng(1))
    again = noise.increments(x.shape, np.random.default_rng(1))
    np.testing.assert_array_equal(increments, again)
    increments.setflags(write=False)
    first, second = noise.moved(x, s, increments), noise.moved(x, s, again)
    np.testing.assert_array_equal(first, second)
    assert first.flags.writeable
    assert not np.shares_memory(first, x)


@pytest.mark.bits
@everywhere
def test_replicas_without_noise_keep_every_bit(noise, d):
    x = tokens(d) * (1 + 1e-15)  # a length that normalising would change
    increments = noise.increments(x.shape, np.random.default_rng(1))
    moved = noise.moved(x, np.array([0.1, 0.0, 0.2]), increments)
    np.testing.assert_array_equal(moved[1], x[1])
    assert (moved[[0, 2]] != x[[0, 2]]).any()
    still = noise.moved(x, np.zeros(3), increments)
    np.testing.assert_array_equal(still, x)
    assert not np.shares_memory(still, x)


@pytest.mark.bits
@everywhere
def test_a_replica_depends_on_its_own_tokens_strength_and_increments_alone(noise, d):
    x, s = tokens(d), np.array([0.1, 0.0, 0.2])
    increments = noise.increments(x.shape, np.random.default_rng(1))
    together = noise.moved(x, s, increments)
    for r in range(3):
        alone = noise.moved(x[r : r + 1], s[r : r + 1], increments[r : r + 1])
        np.testing.assert_allclose(alone[0], together[r], rtol=0, atol=1e-15)


@everywhere
def test_replicas_are_independent(noise, d):
    n = 6_000
    x = np.tile(tokens(d, 1, 1), (n, 1, 1))
    moved = noise.moved(x, np.full(n, 0.1), noise.increments(x.shape, np.random.default_rng(3)))
    first, second = moved[::2, 0] - moved[::2, 0].mean(axis=0), moved[1::2, 0]
    second = second - second.mean(axis=0)
    covariance = first.T @ second / len(first)
    bound = 5 * np.outer(first.std(axis=0), second.std(axis=0)) / np.sqrt(len(first))
    assert (np.abs(covariance) <= bound).all()


@everywhere
def test_the_same_increments_couple_two_systems(noise, d):
    """Equal tokens stay equal, and close ones close, whatever the steps in between."""
    x, rng = tokens(d, 1), np.random.default_rng(5)
    y = unit(x + 1e-8 * rng.standard_normal(x.shape))
    for _ in range(10):
        increments = noise.increments(x.shape, rng)
        x = noise.moved(x, np.array([0.02]), increments)
        y = noise.moved(y, np.array([0.02]), increments)
    assert 0 < np.abs(x - y).max() < 1e-6


@everywhere
def test_increments_do_not_depend_on_the_strength(noise, d):
    """The tokens of two kappas share their Brownian paths: they differ by O(change of s)."""
    x = tokens(d)
    increments = noise.increments(x.shape, np.random.default_rng(5))
    assert increments.shape == noise.increments_shape(*x.shape)
    near = noise.moved(x, np.full(3, 0.1 + 1e-8), increments)
    assert np.abs(noise.moved(x, np.full(3, 0.1), increments) - near).max() < 1e-6


@everywhere
def test_a_description_is_plain_data_with_the_name(noise, d):
    described = json.loads(json.dumps(describe(noise)))
    assert described["kind"] == type(noise).__name__
    assert repr(noise).startswith(type(noise).__name__)


@pytest.mark.parametrize("noise", noises(3), ids=lambda noise: type(noise).__name__)
def test_messages_for_what_does_not_fit(noise):
    x = tokens(3)
    increments = noise.increments(x.shape, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"shape \(R, n, d\).*got \(4, 3\).*x\[None\]"):
        noise.moved(x[0], np.ones(3), increments)
    with pytest.raises(ValueError, match=r"shape \(R, n, d\).*got \(4, 3\)"):
        noise.increments((4, 3), np.random.default_rng(0))
    for bad in ([0.1, 0.1], 0.1, [0.1, -0.1, 0.1], [0.1, np.nan, 0.1], [np.inf, 0, 0]):
        with pytest.raises(ValueError, match=r"one finite s = dt/kappa >= 0 for each of 3"):
            noise.moved(x, np.array(bad), increments)
    with pytest.raises(ValueError, match=r"Increments of .* must be of shape .* Draw them with"):
        noise.moved(x, np.ones(3), increments[:2])
