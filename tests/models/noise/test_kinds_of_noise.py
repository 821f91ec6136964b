"""What is special about anisotropic and multiplicative noise."""

import numpy as np
import pytest
from diffusions import normal_rule, orders, unit

from meanfield.core.errors import MeanfieldError
from meanfield.models.noise import (
    Anisotropic,
    Isotropic,
    MultiplicativeIto,
    MultiplicativeStratonovich,
)


def uneven(x):
    return 1 + 0.5 * x[..., 0]


def test_noise_along_one_axis_moves_along_meridians():
    """Sigma = e e^T: a deterministic flow with a random time, whose law is explicit."""
    noise, s = Anisotropic(np.diag([0.0, 0.0, 2.0])), np.array([0.2])
    x = unit(np.random.default_rng(1).standard_normal((1, 9, 3)))
    increments = noise.increments(x.shape, np.random.default_rng(2))
    moved = noise.moved(x, s, increments)
    time = np.sqrt(2 * s) * np.sqrt(2.0) * increments[..., 2]
    np.testing.assert_allclose(
        np.arctanh(moved[..., 2]), np.arctanh(x[..., 2]) + time, rtol=0, atol=1e-13
    )
    longitude, before = np.arctan2(moved[..., 1], moved[..., 0]), np.arctan2(x[..., 1], x[..., 0])
    np.testing.assert_allclose(longitude, before, rtol=0, atol=1e-14)


def test_no_covariance_is_no_noise():
    x = unit(np.random.default_rng(1).standard_normal((1, 9, 3)))
    noise = Anisotropic(np.zeros((3, 3)))
    moved = noise.moved(x, np.ones(1), noise.increments(x.shape, np.random.default_rng(2)))
    np.testing.assert_allclose(moved, x, rtol=0, atol=1e-15)


def test_messages_for_what_is_not_a_covariance():
    for sigma, message in [
        (np.ones(3), r"sigma.shape must be \(d, d\) with d >= 2; got sigma.shape = \(3,\)"),
        ([[1, np.nan], [np.nan, 1]], "sigma must be finite"),
        ([[1, 0.5], [0, 1]], r"sigma - sigma.T must be 0.* got 0\.5.*B @ B\.T"),
        ([[1, 2], [2, 1]], r"eigenvalue of sigma .* semidefinite; got -1"),
    ]:
        with pytest.raises(ValueError, match=message):
            Anisotropic(sigma)
    with pytest.raises(TypeError, match="sigma must be real"):
        Anisotropic("identity")
    x, noise = np.array([[[1.0, 0, 0]]]), Anisotropic(np.eye(2))
    with pytest.raises(ValueError, match=r"shape \(2, 2\), and the tokens have d = 3"):
        noise.moved(x, np.ones(1), noise.increments(x.shape, np.random.default_rng(0)))
    noise = Anisotropic(1e3 * np.eye(3))
    with pytest.raises(MeanfieldError, match="Shorten dt"):
        noise.moved(x, np.ones(1), noise.increments(x.shape, np.random.default_rng(0)))


def drift_of_the_mean(noise, density, f, s, points=256):
    """E f(x') - E f(x) for x of a density on the circle, by quadrature over both."""
    theta = 2 * np.pi * np.arange(points) / points
    x = np.stack([np.cos(theta), np.sin(theta)], axis=1)
    masses = density(x) / density(x).sum()
    normals, weights = normal_rule(2, 10)
    change = 0.0
    for coin in (-1.0, 1.0):
        increments = np.insert(normals, 2, coin, axis=1)[:, None].repeat(points, axis=1)
        tokens = np.broadcast_to(x, (len(weights), points, 2))
        moved = noise.moved(tokens, np.full(len(weights), s), increments)
        change += weights @ (f(moved) - f(tokens)) @ masses / 2
    return change


@pytest.mark.repeats
@pytest.mark.parametrize("power, kind", [(1, MultiplicativeStratonovich), (2, MultiplicativeIto)])
def test_stationary_density_is_one_over_a_power_of_the_scale(power, kind):
    """1/scale for Stratonovich and 1/scale^2 for Ito: a step changes its means by O(s^3)."""

    def f(x):
        return x[..., 0] + 0.3 * x[..., 0] ** 2

    steps = 4e-3 / 2.0 ** np.arange(3)
    right = [drift_of_the_mean(kind(uneven), lambda x: uneven(x) ** -power, f, s) for s in steps]
    other = [
        drift_of_the_mean(kind(uneven), lambda x: uneven(x) ** (power - 3.0), f, s) for s in steps
    ]
    np.testing.assert_allclose(orders(np.abs(right), steps), 3, atol=0.1)
    np.testing.assert_allclose(orders(np.abs(other), steps), 1, atol=0.1)


def test_a_constant_scale_is_isotropic_noise_of_another_strength():
    """Both kinds, in law: means of <x', x> after one step, 4 standard errors."""
    rng, n, s = np.random.default_rng(3), 100_000, 0.01
    x = np.tile([0.6, 0.0, 0.8], (1, n, 1))
    for kind in (MultiplicativeStratonovich, MultiplicativeIto):
        noise = kind(lambda x: np.full(x.shape[:-1], 2.0))
        inner = noise.moved(x, np.array([s]), noise.increments(x.shape, rng)) @ x[0, 0]
        reference = Isotropic()
        exact = reference.moved(x, np.array([4 * s]), reference.increments(x.shape, rng)) @ x[0, 0]
        error = np.hypot(inner.std(), exact.std()) / np.sqrt(n)
        assert abs(inner.mean() - exact.mean()) < 4 * error
        assert abs(inner.mean() - np.exp(-8 * s)) < 4 * error


def test_central_differences_give_the_gradient():
    x = unit(np.random.default_rng(1).standard_normal((2, 50, 4)))
    slopes = np.array([0.2, -0.1, 0.3, 0.1])
    plain_class = MultiplicativeIto(
        lambda x: np.exp(x @ slopes), gradient=lambda x: np.exp(x @ slopes)[..., None] * slopes
    )
    by_differences = MultiplicativeIto(lambda x: np.exp(x @ slopes))
    increments = plain_class.increments(x.shape, np.random.default_rng(2))
    s = np.array([0.1, 0.5])
    np.testing.assert_allclose(
        by_differences.moved(x, s, increments),
        plain_class.moved(x, s, increments),
        rtol=0,
        atol=1e-9,
    )


@pytest.mark.parametrize("kind", [MultiplicativeStratonovich, MultiplicativeIto])
def test_messages_for_a_scale_that_is_none(kind):
    x = np.array([[[1.0, 0, 0], [0, 1.0, 0]]])
    with pytest.raises(TypeError, match="scale must be a function"):
        kind(2.0)
    for scale, error, message in [
        (lambda x: x, ValueError, r"scale.* of shape \(1, 2\); got shape \(1, 2, 3\)"),
        (lambda x: 1.0, ValueError, r"scale.* of shape \(1, 2\); got shape \(\)"),
        (lambda x: x[..., 0] / 0.0 + np.inf, ValueError, "scale.* must return finite numbers"),
        (lambda x: x[..., 0] - 2, ValueError, r"scale.* must return finite numbers >= 0; got -"),
        (lambda x: 1j * x[..., 0], TypeError, "scale.* must return an array of real numbers"),
    ]:
        noise = kind(scale)
        increments = noise.increments(x.shape, np.random.default_rng(0))
        with np.errstate(all="ignore"), pytest.raises(error, match=message):
            noise.moved(x, np.ones(1), increments)


def test_messages_for_a_gradient_that_is_none():
    x = np.array([[[1.0, 0, 0], [0, 1.0, 0]]])
    with pytest.raises(TypeError, match="gradient must be a function"):
        MultiplicativeIto(uneven, gradient=[0.5, 0, 0])
    noise = MultiplicativeIto(uneven, gradient=uneven)
    with pytest.raises(ValueError, match=r"gradient must return .* of shape \(1, 2, 3\)"):
        noise.moved(x, np.ones(1), noise.increments(x.shape, np.random.default_rng(0)))


@pytest.mark.parametrize("kind", [MultiplicativeStratonovich, MultiplicativeIto])
@pytest.mark.parametrize("strength", [1.0, 1e6, 1e12])
def test_a_step_that_is_too_long_is_told_from_a_scale_that_is_not_finite(kind, strength):
    x = unit(np.random.default_rng(1).standard_normal((1, 9, 3)))
    noise = kind(lambda x: strength * (1 + x[..., 0] ** 2))
    increments = noise.increments(x.shape, np.random.default_rng(2))
    shorter = noise.moved(x, np.array([1e-3 / strength**2]), increments)
    np.testing.assert_allclose(np.linalg.norm(shorter, axis=-1), 1, rtol=1e-15)
    if strength > 1:
        with pytest.raises(MeanfieldError, match=r"step of noise .* too long .*Shorten dt"):
            noise.moved(x, np.array([0.05]), increments)
