"""The sphere: harmonics, quadrature and conventions, values anywhere, rotations, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from scipy.special import sph_harm_y

from meanfield import Circle, Density, Sphere

EPS = np.finfo(float).eps
reproducible = settings(deadline=None, derandomize=True, max_examples=25)
degrees = st.integers(1, 40)
POLES = np.array([[0.0, 0, 1], [0, 0, -1]])
ON_THE_DATE_LINE = np.array([[-1.0, 0, 0], [-0.6, 0, 0.8], [-0.6, -0.0, 0.8], [-0.6, 1e-300, -0.8]])
TILT = Rotation.from_euler("zyz", [0.4, 1e-12, 0.3]).as_matrix()
MATRICES = {
    "identity": np.eye(3),
    "antipode": -np.eye(3),
    "about z": Rotation.from_euler("z", 0.7).as_matrix(),
    "about z the other way": Rotation.from_euler("z", -2.9).as_matrix(),
    "about x": Rotation.from_euler("x", 1.1).as_matrix(),
    "about y": Rotation.from_euler("y", -0.4).as_matrix(),
    "half turn about x": np.diag([1.0, -1, -1]),
    "half turn about y": np.diag([-1.0, 1, -1]),
    "half turn about z": np.diag([-1.0, -1, 1]),
    "half turn that swaps x and y": np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, -1]]),
    "reflection in x": np.diag([-1.0, 1, 1]),
    "reflection in z": np.diag([1.0, 1, -1]),
    "permutation": np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]]),
    "almost the identity": Rotation.from_rotvec([1e-9, 2e-9, 0]).as_matrix(),
    "almost about z": TILT,
    "almost about z, rounded": Rotation.random(rng=3).as_matrix()
    @ (Rotation.random(rng=3).as_matrix().T @ TILT),
    "almost a half turn": Rotation.from_euler("y", np.pi - 1e-13).as_matrix(),
    "random": Rotation.random(rng=1).as_matrix(),
    "random and improper": -Rotation.random(rng=2).as_matrix(),
}
every_matrix = pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)


def rough(degree, seed=0, ensemble=()):
    """Random coefficients of a real function that do not decay; of mass 1."""
    sphere = Sphere(degree)
    rng = np.random.default_rng(seed)
    c = rng.standard_normal((*ensemble, sphere.degrees.size, 2)) @ [1, 1j]
    c[..., sphere.orders == 0] = c[..., sphere.orders == 0].real
    c[..., 0] = 1
    return c


def vectors(n, seed=0):
    """n random unit vectors."""
    x = np.random.default_rng(seed).standard_normal((n, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def harmonics(degree, x):
    """Y_lm at unit vectors (n, 3) from scipy, in the order of the coefficients, (n, modes)."""
    sphere = Sphere(degree)
    theta, phi = np.arctan2(np.hypot(x[:, 0], x[:, 1]), x[:, 2]), np.arctan2(x[:, 1], x[:, 0])
    values = sph_harm_y(sphere.degrees, sphere.orders, theta[:, None], phi[:, None])
    return np.sqrt(4 * np.pi) * (-1.0) ** sphere.orders * values


def direct(degree, c, x):
    """The values of a series as its direct sum."""
    return (harmonics(degree, x) @ (Sphere(degree).parseval * c)).real


# Conventions -------------------------------------------------------------------------------


def test_the_first_harmonics_are_the_documented_ones():
    """Y_00 = 1, Y_10 = sqrt(3) z, Y_11 = sqrt(3/2) (x + iy), ordered by m and then l."""
    x = vectors(20)
    expected = [np.ones(20), np.sqrt(3) * x[:, 2], np.sqrt(1.5) * (x[:, 0] + 1j * x[:, 1])]
    np.testing.assert_allclose(harmonics(1, x), np.stack(expected, axis=1), atol=4 * EPS)
    sphere = Sphere(2)
    assert list(zip(sphere.degrees, sphere.orders, strict=True)) == [
        *((0, 0), (1, 0), (2, 0), (1, 1), (2, 1), (2, 2))
    ]
    np.testing.assert_array_equal(sphere.laplacian, [0, -2, -6, -2, -6, -6])
    np.testing.assert_array_equal(sphere.parseval, [1, 1, 1, 2, 2, 2])
    assert sphere.dimension == 3


@pytest.mark.parametrize("degree", [1, 2, 5, 12])
def test_every_single_harmonic_has_the_values_of_scipy(degree):
    """On the grid: the coefficient 1 gives Re Y_l0 or 2 Re Y_lm, the coefficient i -2 Im Y_lm."""
    sphere = Sphere(degree)
    table = harmonics(degree, sphere.points)
    for factor in (1, 1j):
        c = factor * np.eye(sphere.degrees.size, dtype=complex)
        c[sphere.orders == 0] = c[sphere.orders == 0].real
        expected = (sphere.parseval * c) @ table.T
        np.testing.assert_allclose(sphere.to_values(c), expected.real, rtol=0, atol=1e-13)


def test_a_coefficient_is_the_integral_of_the_conjugate_harmonic():
    sphere = Sphere(9)
    f = np.exp(sphere.points @ [0.3, -0.2, 0.4])
    expected = (sphere.weights * f) @ np.conj(harmonics(9, sphere.points))
    np.testing.assert_allclose(sphere.to_coefficients(f), expected, rtol=0, atol=20 * EPS)


@reproducible
@given(degrees, st.sampled_from([(), (2,), (2, 3)]))
def test_values_and_coefficients_are_inverse_to_each_other(degree, ensemble):
    sphere, c = Sphere(degree), rough(degree, degree, ensemble)
    values = sphere.to_values(c)
    assert values.shape == (*ensemble, len(sphere.points))
    np.testing.assert_allclose(sphere.to_coefficients(values), c, rtol=0, atol=2e-13)
    # Parseval, relative to a sum of positive terms.
    power = (sphere.parseval * np.abs(c) ** 2).sum(axis=-1)
    np.testing.assert_allclose(power, values**2 @ sphere.weights, rtol=1e-13)


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 7, 8])
def test_quadrature_is_exact_to_three_times_the_degree(degree):
    """This is the aliasing guard: a product of two states tested against a third."""
    sphere = Sphere(degree)
    assert sphere.weights.sum() == pytest.approx(1, abs=100 * EPS)  # rounding of the sum
    means = sphere.weights @ harmonics(3 * degree, sphere.points)
    assert means[0] == pytest.approx(1) and np.abs(means[1:]).max() <= 1e-14
    points, count = sphere.points, len(sphere.axes["phi"])
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1, rtol=0, atol=4 * EPS)
    np.testing.assert_array_equal(points.reshape(-1, count, 3)[:, 0, 2], sphere.axes["z"])
    assert len(sphere.axes["z"]) * count == len(points) and sphere.axes["phi"][0] == 0


def test_a_high_degree_goes_to_the_grid_and_back():
    """Degree 300 uses the passing over of latitudes near the poles."""
    c = rough(300)
    found = Sphere(300).to_coefficients(Sphere(300).to_values(c))
    np.testing.assert_allclose(found, c, rtol=0, atol=1e-11)


def test_expect_and_moment_are_integrals():
    mu = Density(Sphere(6), rough(6))
    z = np.polynomial.legendre.Legendre.basis(3)
    assert mu.expect(lambda x: z(x[:, 2])) == pytest.approx(mu.moment(3)[0].real, abs=1e-14)
    mean = [mu.expect(lambda x, i=i: x[:, i]) for i in range(3)]
    first = mu.moment(1)  # int z, and int (x - iy) / sqrt(2)
    np.testing.assert_allclose(first[0], mean[2], atol=1e-14)
    np.testing.assert_allclose(np.sqrt(2) * first[1], mean[0] - 1j * mean[1], atol=1e-14)
    for k in range(7):
        of_degree = Sphere(6).degrees == k
        expected = mu.coefficients[of_degree] / np.sqrt(2 * k + 1)
        np.testing.assert_array_equal(mu.moment(k), expected)
        square = (Sphere(6).parseval[of_degree] * np.abs(mu.moment(k)) ** 2).sum()
        turned = mu.rotate(Rotation.random(rng=3)).moment(k)
        assert (Sphere(6).parseval[of_degree] * np.abs(turned) ** 2).sum() == pytest.approx(square)
    assert mu.moment(7).shape == (8,) and not mu.moment(7).any()
    assert Density(Sphere(6), rough(6, 0, (2, 3))).moment(2).shape == (2, 3, 3)
    with pytest.raises(ValueError, match=">= 0; got k = -1"):
        mu.moment(-1)
    with pytest.raises(TypeError, match="whole number"):
        mu.moment(1.0)


# Values anywhere ---------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [1, 2, 16, 60])
@pytest.mark.parametrize(
    "points", [POLES, ON_THE_DATE_LINE, vectors(1), vectors(40)], ids=["poles", "line", "one", "40"]
)
def test_values_at_any_points_are_the_direct_sum(degree, points):
    c = rough(degree, 1)
    scale = np.sqrt((Sphere(degree).parseval * np.abs(c) ** 2).sum() * (degree + 1) ** 2)
    found = Density(Sphere(degree), c).at(points)
    np.testing.assert_allclose(found, direct(degree, c, points), rtol=0, atol=1e-12 * scale)


def test_values_have_the_shape_of_ensemble_and_points():
    mu = Density(Sphere(5), rough(5, 2, (4, 2)))
    x = vectors(6).reshape(2, 3, 3)
    assert mu.at(x).shape == (4, 2, 2, 3)
    assert mu[0, 0].at(x).shape == (2, 3) and mu[0, 0].at(x[0, 0]).shape == ()
    assert mu.at(np.empty((0, 3))).shape == (4, 2, 0)
    np.testing.assert_allclose(mu.at(x)[3, 1, 1, 2], mu[3, 1].at(x[1, 2]), rtol=0, atol=1e-12)
    np.testing.assert_allclose(mu.at(mu.space.points), mu.values, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([1.0, 0.0], r"points.shape must be \(..., 3\).* got points.shape = \(2,\)"),
        ([1.0, 0.1, 0.0], "the worst length is off by 0.005"),
        ([np.nan, 0.0, 1.0], "1 entries are not finite"),
        (0.5, r"got points.shape = \(\)"),
    ],
)
def test_points_that_are_no_unit_vectors_are_refused(points, message):
    with pytest.raises(ValueError, match=message):
        Sphere(3).uniform().at(points)


# Rotations ---------------------------------------------------------------------------------


@pytest.mark.repeats
@every_matrix
@pytest.mark.parametrize("degree", [1, 7, 20])
def test_a_rotated_density_has_the_old_values_at_the_points_turned_back(matrix, degree):
    """The pushforward by R has the value mu(R^T x) at x."""
    mu, x = Density(Sphere(degree), rough(degree, 3)), vectors(30, 5)
    turned = mu.rotate(matrix).coefficients
    expected = direct(degree, mu.coefficients, x @ matrix)
    np.testing.assert_allclose(direct(degree, turned, x), expected, rtol=0, atol=1e-12 * degree**2)
    assert np.abs(turned.imag[Sphere(degree).orders == 0]).max() <= 1e-13


@pytest.mark.repeats
@every_matrix
def test_a_rotation_after_another_is_their_product(matrix):
    mu = Density(Sphere(12), rough(12, 4))
    for other in MATRICES.values():
        twice, once = mu.rotate(other).rotate(matrix), mu.rotate(matrix @ other)
        np.testing.assert_allclose(twice.coefficients, once.coefficients, rtol=0, atol=2e-12)


def test_a_rotation_of_scipy_and_of_an_ensemble():
    mu, turn = Density(Sphere(5), rough(5, 5, (2, 2))), Rotation.random(rng=9)
    turned = mu.rotate(turn)
    assert turned.shape == (2, 2)
    for i in range(2):
        alone = mu[i, 1].rotate(turn.as_matrix())
        np.testing.assert_array_equal(turned[i, 1].coefficients, alone.coefficients)


@pytest.mark.parametrize(
    "rotation",
    [np.diag([1, 1, 1.1]), np.zeros((3, 3)), np.eye(2), 0.3, np.full((3, 3), np.nan), np.ones(3)],
    ids=["stretched", "zero", "small", "angle", "nan", "vector"],
)
def test_what_is_no_rotation_is_refused(rotation):
    with pytest.raises(ValueError, match=r"orthogonal matrix \(3, 3\)"):
        Sphere(3).uniform().rotate(rotation)


# Identity and degrees ----------------------------------------------------------------------


@pytest.mark.parametrize("degree", [0, -3, 1.5, True, "8", None, np.nan, np.inf], ids=repr)
def test_a_degree_is_a_whole_number_from_one(degree):
    message = "degree must be a whole number >= 1; got degree = "
    with pytest.raises(ValueError, match=message):
        Sphere(degree)


def test_spheres_of_one_degree_are_equal():
    assert Sphere(8) == Sphere(8.0) == Sphere(np.int64(8))
    assert Sphere(8) != Sphere(9) and Sphere(8) != 8
    assert Sphere(8) != Circle(8) and Circle(8) != Sphere(8)
    assert {Sphere(8): "a"}[Sphere(8)] == "a" and len({Sphere(8), Circle(8)}) == 2
    assert Sphere(8).with_degree(3) == Sphere(3)
    assert repr(Sphere(8.0)) == "Sphere(degree=8)"
    assert repr(Sphere(8).uniform()) == "Density(Sphere(degree=8), spectral tail 0.0e+00)"


@reproducible
@given(degrees, degrees, st.sampled_from([(), (2, 1)]))
def test_resampling_cuts_off_or_fills_up(low, high, ensemble):
    low, high = sorted([low, high])
    c = rough(low, 7, ensemble)
    up = Density(Sphere(low), c).resample(high)
    assert up.space == Sphere(high) and up.shape == ensemble
    assert not up.coefficients[..., Sphere(high).degrees > low].any()
    np.testing.assert_array_equal(up.coefficients[..., Sphere(high).degrees <= low], c)
    np.testing.assert_array_equal(up.resample(low).coefficients, c)
    down = Density(Sphere(high), rough(high, 8)).resample(low)
    for l, m, value in zip(Sphere(low).degrees, Sphere(low).orders, down.coefficients, strict=True):
        here = (Sphere(high).degrees == l) & (Sphere(high).orders == m)
        assert value == rough(high, 8)[here][0]


def test_coefficients_of_a_real_function_have_real_ones_of_order_zero():
    """c_l0 = int P_l dmu: an imaginary part would be lost without a word."""
    c = rough(3)
    c[2] += 0.1j
    with pytest.raises(ValueError, match="real"):
        Density(Sphere(3), c)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c[:-1], r"coefficients.shape must be \(..., 10\) on .*\(9,\)"),
        (lambda c: np.append(c, 0), r"coefficients.shape = \(11,\)"),
        (lambda c: c * np.nan, "finite, but 10 are not"),
        (lambda c: 0.5 * c, "mass off by 0.5"),
    ],
    ids=["few", "many", "nan", "mass"],
)
def test_coefficients_that_make_no_density_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Density(Sphere(3), change(rough(3)))
