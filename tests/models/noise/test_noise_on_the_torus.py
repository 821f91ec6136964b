"""Noise with a scale on the torus: densities, tokens, and one against the other."""

from itertools import product

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import norm

import meanfield as mf
from meanfield.core.errors import MeanfieldError
from meanfield.models.noise import MultiplicativeIto, MultiplicativeStratonovich

POWERS = {MultiplicativeStratonovich: 1, MultiplicativeIto: 2}
each_kind = pytest.mark.parametrize("kind", POWERS)
STEPS = 1e-3 / 2.0 ** np.arange(4)


def scale(x):
    """1 + 0.2 cos x_1 - 0.1 sin x_2 cos x_1."""
    return 1 + 0.2 * x[..., 0] - 0.1 * x[..., -1] * x[..., 0]


def differentiation(n):
    """The matrix of d/dx on n equally spaced points, n odd, by exact Fourier series."""
    k = np.fft.fftfreq(n, 1 / n)
    return np.fft.ifft(1j * k[:, None] * np.fft.fft(np.eye(n), axis=0), axis=0).real


def on_grid(n, power):
    """Angles (n^2, 2) and L = s^2 Lap + (2 - p) s <grad s, grad>, (n^2, n^2)."""
    x = 2 * np.pi * np.arange(n) / n
    angles = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    each = np.kron(differentiation(n), np.eye(n)), np.kron(np.eye(n), differentiation(n))
    values = scale(mf.Torus(2).embed(angles))
    fields = [values[:, None] ** (2 - power) * d @ (values[:, None] ** power * d) for d in each]
    return angles, fields[0] + fields[1] if power == 1 else values[:, None] ** 2 * sum(
        d @ d for d in each
    )


@pytest.mark.repeats
@each_kind
def test_densities_follow_the_adjoint_of_the_generator(kind):
    """int L* mu f = int mu L f, by derivatives on another grid."""
    space, rng = mf.Torus(16), np.random.default_rng(2)
    coefficients = rng.standard_normal(space.degrees.size) / 4.0**space.degrees + 0j
    coefficients[0] = 1.0
    change = (kind(scale).generator(space) @ coefficients.view(float)).view(complex)
    angles, operator = on_grid(31, POWERS[kind])
    points = space.embed(angles)
    for f in (np.cos(angles[:, 0]), np.sin(angles[:, 0] - 2 * angles[:, 1])):
        expected = np.mean(space.at(coefficients, points) * (operator @ f))
        assert np.mean(space.at(change, points) * f) == pytest.approx(expected, abs=2e-12)


@pytest.mark.repeats
@each_kind
def test_the_stationary_density_is_a_power_of_the_scale(kind):
    space = mf.Torus(16)
    expected = space.to_coefficients(scale(space.points) ** -POWERS[kind]).view(float)
    matrix = kind(scale).generator(space)
    assert np.abs(matrix @ expected / expected[0]).max() < 1e-13 * np.abs(matrix).max()


@each_kind
def test_one_angle_is_the_circle(kind):
    def first(x):
        return 1 + 0.3 * x[..., 0]

    one, other = (kind(first).generator(space) for space in (mf.Torus(24, 1), mf.Circle(24)))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-13 * np.abs(other).max())


@each_kind
def test_a_constant_scale_is_a_factor_of_the_laplacian(kind):
    space = mf.Torus(4)
    matrix = kind(lambda x: np.full(x.shape[:-1], 0.7)).generator(space)
    expected = np.diag(0.49 * np.repeat(space.laplacian, 2))
    np.testing.assert_allclose(matrix, expected, rtol=0, atol=1e-13)


class Nodes:
    """Normal numbers at the nodes of Gauss and Hermite, for m angles and one more sign."""

    def __init__(self, m, count):
        x, w = np.polynomial.hermite_e.hermegauss(count)
        self.numbers = np.array([(*n, sign) for *n, sign in product(*[x] * m, (-1, 1))])
        self.weights = np.array([np.prod(p) / 2 for *p, _ in product(*[w / w.sum()] * m, (1, 1))])

    def standard_normal(self, shape):
        return np.broadcast_to(self.numbers, shape)


def slope(x):
    """The gradient of the scale in R^4."""
    d = np.zeros_like(x)
    d[..., 0], d[..., -1] = 0.2 - 0.1 * x[..., -1], -0.1 * x[..., 0]
    return d


NOISES = [
    MultiplicativeStratonovich(scale),
    MultiplicativeIto(scale),
    MultiplicativeIto(scale, slope),
]


@pytest.mark.parametrize("noise", NOISES, ids=["stratonovich", "ito", "gradient"])
def test_a_step_of_tokens_has_a_local_error_of_third_order(noise):
    nodes = Nodes(2, 10)
    angles, operator = on_grid(17, noise.power)
    f, start = np.sin(angles[:, 0] - angles[:, 1]), 40
    errors = []
    for s in STEPS:
        many = np.tile(angles[start], (1, len(nodes.weights), 1))
        x, y = noise.turned(many, np.array([s]), nodes)[0].T
        errors.append(nodes.weights @ np.sin(x - y) - (expm(s * operator) @ f)[start])
    orders = np.log2(np.abs(np.divide(errors[:-1], errors[1:])))
    np.testing.assert_allclose(orders, 3, atol=0.1)


@pytest.mark.long
@pytest.mark.repeats
@each_kind
def test_tokens_have_the_law_of_the_density(kind):
    model = mf.Transformer(mf.USA(1.0), kappa=1.0, noise=kind(scale))
    start = mf.Torus(10).von_mises([0.5, 2.0], 0.7)
    density = mf.solve(model, start, (0, 0.5), rtol=1e-3, min_degree=10, max_degree=14).final
    n, rng = 4000, np.random.default_rng(8)
    start = start.sample(n, rng=rng)
    tokens = mf.solve(model, start, (0, 0.5), dt=0.05, rng=rng).final
    for f in (lambda x: x, lambda x: x[..., :2] * x[..., 2:]):
        most = norm.isf(1e-4) * np.std(f(tokens.x), axis=0) / n**0.5
        assert (np.abs(tokens.expect(f) - density.expect(f)) < most).all()


@each_kind
def test_replicas_without_noise_do_not_jump(kind):
    angles = np.random.default_rng(1).uniform(0, 6, (2, 3, 2))
    moved = kind(scale).turned(angles, np.array([0.0, 0.1]), np.random.default_rng(2))
    assert np.array_equal(moved[0], angles[0]) and not np.array_equal(moved[1], angles[1])


def test_what_is_not_known_there_is_refused():
    model = mf.Transformer(mf.USA(1.0), kappa=2.0, noise=mf.Anisotropic(np.eye(4)))
    tokens = mf.Tokens.on_torus(np.zeros((3, 2)))
    with pytest.raises(MeanfieldError, match=r"projections onto a sphere.* a scale"):
        mf.solve(model, tokens, (0, 0.1), dt=0.1, rng=1)
    zero = MultiplicativeIto(lambda x: 1 - x[..., 0])
    with pytest.raises(MeanfieldError, match="scale > 0"):
        zero.generator(mf.Torus(4))
