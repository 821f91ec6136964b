"""Isotropic noise: which harmonics decay as they should, and its law in long runs."""

import numpy as np
import pytest
from diffusions import orders, unit
from scipy.special import eval_jacobi

from meanfield.models.noise import Isotropic
from meanfield.models.noise_steps import chi_square_rule, stretch_of


def zonal(l, d, t):
    """P_l with P_l(1) = 1 on S^(d-1)."""
    if l == 2:
        return (d * t**2 - 1) / (d - 1)  # scipy loses digits for d = 1000
    exponent = (d - 3) / 2
    return eval_jacobi(l, exponent, exponent, t) / eval_jacobi(l, exponent, exponent, 1.0)


def decay(l, d, s):
    """E P_l(<x', x>) after one step, by quadrature over the length of the tangential normal."""
    q, weights = chi_square_rule(d - 1, nodes=200)
    x = np.zeros((1, len(q), d))
    x[..., 0] = 1
    increments = np.zeros((1, len(q), d))
    increments[0, :, 1] = np.sqrt(q)
    moved = Isotropic().moved(x, np.array([s]), increments)
    return weights @ zonal(l, d, moved[0, :, 0])


@pytest.mark.repeats
@pytest.mark.parametrize("s", [1e-12, 1e-8, 1e-5, 1e-3, 0.02, 0.3, 1.0, 10.0])
@pytest.mark.parametrize("d", [3, 4, 10, 64, 1000, 4096])
def test_degrees_one_and_two_decay_exactly(d, s):
    for l in (1, 2):
        assert decay(l, d, s) == pytest.approx(np.exp(-l * (l + d - 2) * s), abs=1e-13)


@pytest.mark.parametrize("l", [1, 2, 3, 8])
def test_on_the_circle_every_degree_decays_exactly(l):
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    x = np.tile([1.0, 0.0], (1, 60, 1))
    moved = Isotropic().moved(x, np.array([0.1]), points[None, :, None])
    mean = weights @ np.cos(l * np.arctan2(moved[0, :, 1], moved[0, :, 0])) / weights.sum()
    assert mean == pytest.approx(np.exp(-0.1 * l**2), abs=1e-14)


@pytest.mark.parametrize("l", [3, 4, 6])
@pytest.mark.parametrize("d", [3, 10, 64])
def test_higher_degrees_have_a_local_error_of_order_five(d, l):
    """Two better than weak order 2 asks: the small-time law is q (1 + s (alpha + beta q)) too."""
    steps = 0.09 / (l * (l + d - 2)) / 1.5 ** np.arange(3)
    exact = np.exp(-l * (l + d - 2) * steps)
    errors = np.abs([decay(l, d, s) for s in steps] - exact)
    np.testing.assert_allclose(orders(errors, steps), 5, atol=0.1)


@pytest.mark.parametrize("d", [3, 4, 10, 100, 4096])
def test_the_angle_is_real_for_every_step(d):
    s = np.logspace(-16, 6, 89) / d
    a, b = np.array([stretch_of(d, step) for step in s]).T
    assert (a > 0).all()
    assert (b > 0).all()
    small = (s * d > 1e-6) & (s * d < 1e-4)
    np.testing.assert_allclose(a[small] / (s[small] / 2 * (1 - (d - 2) * s[small] / 3)), 1, 0, 1e-7)
    np.testing.assert_allclose(b[small] / (s[small] / 3), 1, 2e-4)


@pytest.mark.parametrize("d", [2, 3, 10])
def test_tokens_decorrelate_at_the_heat_rate(d):
    """E <x_t, x_0> = e^(-(d-1) t/kappa) and E <x_t, x_0>^2, without an error of the time step."""
    rng = np.random.default_rng(8)
    n, steps, s = 100_000, 4, 0.3 / (d - 1)
    start = unit(rng.standard_normal((1, n, d)))
    x, noise = start, Isotropic()
    for _ in range(steps):
        x = noise.moved(x, np.array([s]), noise.increments(x.shape, rng))
    inner = (x * start).sum(axis=2)
    for l in (1, 2):
        values = zonal(l, d, inner)
        error = values.std() / np.sqrt(n)
        assert abs(values.mean() - np.exp(-l * (l + d - 2) * steps * s)) < 4.5 * error


@pytest.mark.parametrize("d", [3, 10])
def test_a_very_long_step_forgets_the_start(d):
    rng = np.random.default_rng(2)
    n, noise = 100_000, Isotropic()
    x = np.zeros((1, n, d))
    x[..., 0] = 1
    x = noise.moved(x, np.array([100.0]), noise.increments(x.shape, rng))[0]
    assert np.abs(x.mean(axis=0)).max() < 5 / np.sqrt(d * n)
    assert np.abs(x.T @ x / n - np.eye(d) / d).max() < 5 / np.sqrt(n) / d * np.sqrt(2)


def test_turning_tokens_and_increments_turns_the_step():
    """So the law of a step commutes with rotations: normals have a rotation invariant law."""
    rng = np.random.default_rng(4)
    turn, _ = np.linalg.qr(rng.standard_normal((5, 5)))
    x, s, noise = unit(rng.standard_normal((2, 7, 5))), np.array([0.1, 0.7]), Isotropic()
    increments = noise.increments(x.shape, rng)
    turned = noise.moved(x @ turn, s, increments @ turn)
    np.testing.assert_allclose(turned, noise.moved(x, s, increments) @ turn, rtol=0, atol=1e-14)
