"""Kernels of attention applied to densities on a grid, and Sinkhorn's factors of a density."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import meanfield as mf
from meanfield.core.errors import MeanfieldError
from meanfield.engines.attention import AttentionSums
from meanfield.engines.density_heads import GridDensity
from meanfield.engines.fields import AttentionField
from meanfield.engines.kernels import LinearKernel, SphereKernels, kernels_of

TURN = Rotation.random(random_state=1).as_matrix()


@pytest.mark.parametrize(
    "A",
    [3 * np.eye(3), -3 * np.eye(3), 20 * TURN, -20 * TURN, 3 * np.diag([1.0, -1.0, 1.0])],
    ids=["1", "-1", "rotation", "improper", "mirror"],
)
def test_multiples_of_orthogonal_matrices_are_convolutions(A):
    sphere = mf.Sphere(20)
    density = sphere.von_mises_fisher((2 / 3, 1 / 3, 2 / 3), 1.0)
    values = sphere.to_values(density.coefficients) * np.stack(
        [*sphere.points.T, sphere.points[:, 0] ** 2]
    )
    kernel = SphereKernels(sphere).exponential(A)
    x = sphere.points
    direct = (np.exp(x @ A.T @ x.T - kernel.top) @ (sphere.weights * values).T).T
    np.testing.assert_allclose(kernel(values), direct, atol=1e-12 * np.abs(direct).max())


@pytest.mark.repeats
@pytest.mark.parametrize("seed", [0, 5])
def test_uneven_keys_keep_the_symmetries_of_l2_weights(seed):
    """Eight blocks of few degrees, and the digits of sums over all pairs."""
    sphere = mf.Sphere(15)
    Q, K, V = np.random.default_rng(seed).standard_normal((3, 3, 3))
    beta = 5 / np.linalg.norm(K.T @ Q, 2)
    drift = mf.Attention(Q, K, V, beta, weights=mf.L2())
    density = sphere.von_mises_fisher((0.6, 0, 0.8), 1.0)
    grid = GridDensity(sphere, density.coefficients, density.values)
    found = AttentionField(drift, sphere).attention(0.0, grid)
    pairs = AttentionSums(drift).attention(0.0, sphere.points[None], grid.masses[None])[0]
    np.testing.assert_allclose(found, pairs, atol=1e-12 * np.abs(pairs).max())
    kernel = SphereKernels(sphere).gaussian(2 * beta * K.T @ Q, -beta * K.T @ K)
    assert kernel.degrees[0] <= 44


def test_narrow_convolutions_need_no_sums_over_pairs():
    assert SphereKernels(mf.Sphere(16)).exponential(200 * np.eye(3)) is not None
    assert SphereKernels(mf.Sphere(16)).exponential(np.diag([200.0, 1.0, 1.0])) is None


@pytest.mark.parametrize(
    ("beta", "K"), [(4.0, 1.0), (256.0, 1.0), (16.0, np.array([[1.0, 0.05], [0.05, 0.95]]))]
)
def test_equal_factors_of_sinkhorn_take_few_iterations(beta, K):
    """Alternating between rows and columns takes hundreds at beta = 256."""
    circle = mf.Circle(32)
    density = circle.density(lambda a: np.exp(0.5 * np.cos(a) + 0.3 * np.sin(2 * a)))
    values = circle.to_values(density.coefficients)
    drift = mf.Attention(K=K, beta=beta, weights=mf.Sinkhorn(most_iterations=40))
    field = AttentionField(drift, circle)
    head = field.heads(0.0, GridDensity(circle, density.coefficients, values))[0]
    balanced = head.doubly_stochastic(1e-12, 40)
    x, masses = circle.points, circle.weights * values
    k = np.exp(x @ head.A.T @ x.T + balanced.bias - head.beta)
    rows = k / (k @ masses)[:, None]
    np.testing.assert_allclose(masses @ rows, 1, atol=1e-12)


def test_a_kernel_that_is_rounding_is_refused_at_once():
    circle = mf.Circle(32)
    density = circle.density(lambda a: np.exp(0.5 * np.cos(a)))
    drift = mf.Attention(K=np.diag([1.0, 0.2]), beta=256.0, weights=mf.Sinkhorn())
    with pytest.raises(MeanfieldError, match="positive sums"):
        mf.solve(mf.Transformer(drift), density, (0, 0.1))


def kernels(space):
    A = (np.eye(space.dimension) + np.eye(space.dimension, k=1) / 3) @ np.diag(
        [1.5, 1.0, 0.4][: space.dimension]
    )
    of, form = kernels_of(space), -np.diag([0.3, 0.9, 0.1][: space.dimension])
    yield of.exponential(A)
    yield of.gaussian(A, form)
    yield of.smooth(A, lambda x, y: np.exp(-((2 - x @ A.T @ y.T) ** 2) / 8))
    yield LinearKernel(space, A)
    if space.dimension == 3:
        yield of.exponential(2 * TURN)


@pytest.mark.parametrize("beta", [0.01, 4.0])
def test_slopes_of_kernels_are_sums_of_products(beta):
    """<A x, y> k is sum_a (A x)_a y_a k."""
    sphere, A = mf.Sphere(9), np.random.default_rng(3).standard_normal((3, 3))
    A /= np.linalg.norm(A, 2)
    kernel = SphereKernels(sphere).exponential(beta * A)
    f = sphere.to_values(np.random.default_rng(4).standard_normal((2, sphere.degrees.size)))
    found = kernel.slope(beta * A, A).of_parts(kernel.parts(f))
    products = (kernel(y * f) for y in sphere.points.T)
    wanted = sum(w * each for w, each in zip((sphere.points @ A.T).T, products, strict=True))
    np.testing.assert_allclose(found, wanted, atol=1e-13 * np.abs(wanted).max())


def test_kernels_without_slopes_of_their_own_take_products():
    """Convolutions, quadratic forms, and slopes that the harmonics of a kernel do not resolve."""
    of, A = SphereKernels(mf.Sphere(9)), np.diag([1.5, 1.0, 0.4])
    assert of.exponential(2 * np.eye(3)).slope(2 * np.eye(3), np.eye(3)) is None
    assert of.gaussian(A, -A).slope(A, A) is None
    assert of.exponential(A).slope(9 * A, A) is None


@pytest.mark.parametrize("space", [mf.Circle(16), mf.Sphere(9)], ids=repr)
def test_transposed_kernels_are_those_of_the_weighted_sums(space):
    f, g = np.random.default_rng(0).standard_normal((2, 3, space.weights.size))
    for kernel in kernels(space):
        forth, back = (kernel(f) * g) @ space.weights, (f * kernel.transposed(g)) @ space.weights
        np.testing.assert_allclose(back, forth, rtol=1e-9)
