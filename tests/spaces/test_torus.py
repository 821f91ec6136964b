"""The torus: its grid and conventions, the densities it makes, and what it refuses."""

import numpy as np
import pytest
from scipy.special import iv

import meanfield as mf

EPS = np.finfo(float).eps
TORI = [mf.Torus(9, 1), mf.Torus(6), mf.Torus(3, 3)]


def random_density(torus, seed=0):
    return torus.perturbed(0.5 / torus.degrees.size, rng=seed)


def grid_of(torus):
    """Angles (N, m) of the points."""
    return np.stack(list(torus.arguments.values()), axis=1)


# Grid and conventions ----------------------------------------------------------------------


@pytest.mark.parametrize("torus", TORI, ids=repr)
def test_of_each_wave_and_its_opposite_one_is_stored(torus):
    both = {tuple(k) for k in torus.waves} | {tuple(-k) for k in torus.waves}
    assert len(both) == (2 * torus.degree + 1) ** torus.circles == 2 * torus.degrees.size - 1
    assert not torus.waves[0].any()
    np.testing.assert_array_equal(torus.degrees, np.abs(torus.waves).max(axis=1))
    np.testing.assert_array_equal(torus.laplacian, -(torus.waves**2).sum(axis=1))


@pytest.mark.parametrize("torus", TORI, ids=repr)
def test_values_are_those_of_the_sum_of_waves(torus):
    mu = random_density(torus)
    waves = np.exp(1j * grid_of(torus) @ torus.waves.T)
    direct = (torus.parseval * mu.coefficients * waves).sum(axis=1).real
    tolerance = 4 * EPS * torus.degrees.size  # rounding of the sum
    np.testing.assert_allclose(mu.values, direct, rtol=0, atol=tolerance)
    np.testing.assert_allclose(mu.at(torus.points), direct, rtol=0, atol=tolerance)
    np.testing.assert_allclose(
        torus.to_coefficients(mu.values), mu.coefficients, rtol=0, atol=20 * EPS
    )


@pytest.mark.parametrize("torus", TORI, ids=repr)
def test_quadrature_is_exact_to_three_times_the_degree(torus):
    x, last = grid_of(torus)[:, -1], np.arange(1, 3 * torus.degree + 1)
    assert torus.weights.sum() == pytest.approx(1, abs=100 * EPS)
    assert np.abs(np.exp(1j * np.outer(last, x)) @ torus.weights).max() < 100 * EPS


@pytest.mark.parametrize("torus", TORI, ids=repr)
def test_gradient_and_divergence_are_those_of_waves(torus):
    c = random_density(torus).coefficients
    field = torus.gradient(c)
    assert field.shape == (torus.circles, torus.weights.size)
    np.testing.assert_allclose(
        torus.minus_divergence(field), -torus.laplacian * c, rtol=0, atol=100 * EPS
    )


@pytest.mark.parametrize("torus", TORI, ids=repr)
def test_the_frame_is_orthonormal_and_tangential(torus):
    frame, x = torus.frame, torus.points
    products = np.einsum("ind,jnd->nij", frame, frame)
    expected = np.broadcast_to(np.eye(torus.circles), products.shape)
    np.testing.assert_allclose(products, expected, rtol=0, atol=4 * EPS)
    assert np.abs(np.einsum("ind,nd->in", frame, x)).max() < 4 * EPS
    assert x.shape == (torus.weights.size, 2 * torus.circles)


@pytest.mark.parametrize("torus", TORI, ids=repr)
def test_another_degree_keeps_the_coefficients_that_both_have(torus):
    mu = random_density(torus)
    finer = mu.resample(torus.degree + 2)
    np.testing.assert_allclose(finer.at(torus.points), mu.values, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(finer.resample(torus.degree).coefficients, mu.coefficients)
    assert torus.with_modes(finer.coefficients.size) == finer.space
    table = finer.space.attraction(mf.USA(1.0))
    np.testing.assert_array_equal(torus.shortened(table), torus.attraction(mf.USA(1.0)))


@pytest.mark.parametrize("torus", TORI, ids=repr)
def test_an_empirical_measure_at_the_grid_is_the_density(torus):
    mu = random_density(torus)
    found = torus.empirical(torus.points[None], (mu.values * torus.weights)[None])[0]
    np.testing.assert_allclose(found, mu.coefficients, rtol=0, atol=1e-14)


def test_torus_of_one_angle_is_the_circle():
    torus, circle = mf.Torus(12, 1), mf.Circle(12)
    mu, nu = (space.density(lambda x: np.exp(np.cos(x - 0.3))) for space in (torus, circle))
    np.testing.assert_array_equal(mu.coefficients, nu.coefficients)
    np.testing.assert_allclose(torus.points, circle.points, rtol=0, atol=0)
    np.testing.assert_array_equal(mu.values, nu.values)


def test_parameters_and_equality():
    assert mf.Torus(8) == mf.Torus(8.0, 2) != mf.Torus(8, 3)
    assert repr(mf.Torus(8, dimension=3)) == "Torus(degree=8, dimension=3)"
    assert mf.Torus(8).dimension == 4 and mf.Torus(8).circles == 2
    for dimension in (0, 4, 1.5):
        with pytest.raises(ValueError, match="dimension must be a whole number"):
            mf.Torus(8, dimension)


# Densities ---------------------------------------------------------------------------------


def test_density_of_a_function_of_angles():
    mu = mf.Torus(6).density(lambda a, b: 2 + np.cos(a) + np.sin(b - 2 * a))
    waves = mu.space.waves.tolist()
    expected = {(1, 0): 0.25, (-2, 1): -0.25j}
    for k, c in expected.items():
        assert mu.coefficients[waves.index(list(k))] == pytest.approx(c, abs=1e-15)
    others = [i for i, k in enumerate(waves) if tuple(k) not in expected and any(k)]
    assert np.abs(mu.coefficients[others]).max() < 1e-15


@pytest.mark.parametrize("torus", TORI, ids=repr)
def test_fourier_is_the_mean_over_the_angles(torus):
    series = [1.0, 0.1 - 0.2j, 0.0, 0.05j]
    on_circle = mf.Circle(torus.degree).fourier(series)
    mean = np.mean(
        [on_circle.at(np.stack([np.cos(a), np.sin(a)], axis=1)) for a in grid_of(torus).T], axis=0
    )
    np.testing.assert_allclose(torus.fourier(series).values, mean, atol=20 * EPS)
    with pytest.raises(ValueError, match="negative"):
        torus.fourier([1.0, 0.9])


def test_von_mises_is_the_product_of_its_factors():
    circle, torus = mf.Circle(20), mf.Torus(20)
    mu = torus.von_mises([0.3, -1.0], 2.0)
    factors = [circle.von_mises(0.3, 2.0), circle.von_mises(-1.0, 2.0)]
    np.testing.assert_allclose(
        mu.coefficients, torus.product(factors).coefficients, rtol=0, atol=1e-15
    )
    points = torus.embed(np.array([[0.1, 0.2], [2.0, 5.0]]))
    product = factors[0].at(points[:, :2]) * factors[1].at(points[:, 2:])
    np.testing.assert_allclose(mu.at(points), product, rtol=1e-13)
    same = torus.von_mises(0.3, 2.0).coefficients  # as configurations give it
    np.testing.assert_array_equal(same, torus.von_mises([0.3, 0.3], 2.0).coefficients)
    with pytest.raises(TypeError, match="2 densities on a Circle"):
        torus.product([circle.uniform(), mf.Sphere(3).uniform()])


def test_moments_and_translations():
    mu = mf.Torus(20).von_mises([0.3, -1.0], 2.0)
    r = iv(1, 2.0) / iv(0, 2.0)
    np.testing.assert_allclose(mu.moment(1), r * np.exp([0.3j, -1j]), rtol=0, atol=1e-15)
    np.testing.assert_array_equal(mu.moment(-1), mu.moment(1).conj())
    np.testing.assert_array_equal(mu.moment(30), 0)
    assert mu.space.amplitude(mu.coefficients, 1) == pytest.approx(r, abs=1e-15)
    turned = mu.rotate([0.5, 0.2])
    np.testing.assert_allclose(turned.moment(1), r * np.exp([0.8j, -0.8j]), rtol=0, atol=1e-15)
    np.testing.assert_allclose(mu.expect(lambda x: x[:, 0]), r * np.cos(0.3), rtol=1e-14)


@pytest.mark.parametrize("torus", [mf.Torus(12), mf.Torus(5, 3)], ids=repr)
def test_a_sample_has_the_moments_of_the_density(torus):
    n, waves = 20_000, (1, 1, 0)[: torus.circles]
    place = torus.places(np.array([waves[::-1]]))[0]
    c = torus.uniform().coefficients.copy()
    c[place] = 0.4  # 1 + 0.8 cos<k, x>: angles depend on each other
    mu = mf.Density(torus, c)
    tokens = mu.sample(n, rng=3)
    found = torus.empirical(tokens.x[None], tokens.masses[None])[0]
    assert np.abs(found - mu.coefficients).max() < 4.5 / np.sqrt(n)  # standard errors <= 1/sqrt(n)
    assert mu.sample(5, rng=3).angles.shape == (5, torus.circles)


# Refusals ----------------------------------------------------------------------------------


def test_points_are_pairs_of_unit_length():
    mu = mf.Torus(4).uniform()
    with pytest.raises(ValueError, match=r"2 pairs \(cos, sin\); the worst length .* off by 1"):
        mu.at(np.array([1.0, 0.0, 0.0, 0.0]))
    with pytest.raises(ValueError, match=r"\(\.\.\., 2\), of angles in radians"):
        mu.space.embed(np.zeros((3, 3)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"normalisation": mf.NGPT(1.0)}, "leave the normalisation out"),
        ({"noise": mf.Anisotropic(np.eye(4))}, "Anisotropic is known on spheres"),
        ({"drift": mf.Attention(beta=1.0)}, "Attention moves densities on Circle and Sphere"),
    ],
    ids=["normalisation", "noise", "attention"],
)
def test_models_of_spheres_are_refused(change, message):
    model = mf.Transformer(**{"drift": mf.USA(1.0), "kappa": 3.0, **change})
    with pytest.raises(mf.MeanfieldError, match=message):
        mf.solve(model, mf.Torus(8).von_mises([0, 0], 0.2), (0, 0.1))


def test_what_is_known_on_spheres_alone_is_refused():
    mu = mf.Torus(8).von_mises([0, 0], 0.2)
    with pytest.raises(ValueError, match="two states of one space; got"):
        mf.wasserstein(mu, mf.Dirac([1.0, 0, 0, 0]))
    with pytest.raises(mf.MeanfieldError, match="densities on Circle and Sphere; got Torus"):
        mf.solve(mf.Transformer(mf.Attention(beta=1.0)), mu, (0, 0.1))
