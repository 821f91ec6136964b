"""The densities that the sphere makes, and their estimates from data."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.special import eval_legendre, sph_harm_y, spherical_in

from meanfield import Sphere, Tokens, UnresolvedWarning

EPS = np.finfo(float).eps
AXES = {
    "north": [0.0, 0.0, 1.0],
    "south": [0.0, 0.0, -1.0],
    "equator": [0.0, -1.0, 0.0],
    "anywhere": [2 / 3, -1 / 3, 2 / 3],
}
every_axis = pytest.mark.parametrize("axis", AXES.values(), ids=AXES)


def lumpy(degree=24):
    """A density without any symmetry."""
    return Sphere(degree).density(
        lambda x, y, z: np.exp(0.8 * x - 0.5 * y * z + 0.4 * z**3 + x * y)
    )


def vectors(n, seed=0):
    """n random unit vectors."""
    x = np.random.default_rng(seed).standard_normal((n, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


# From functions and series -----------------------------------------------------------------


def test_the_uniform_density_is_the_constant_one():
    mu = Sphere(4).uniform()
    np.testing.assert_array_equal(mu.coefficients, np.arange(15) == 0)
    np.testing.assert_allclose(mu.values, 1, rtol=0, atol=EPS)


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 1.0, 1e300])
def test_a_function_is_normalised_to_mass_one(scale):
    """2 + x + z/2 of mean 2; x gives c_11 = 1 / sqrt(6), z gives c_10 = 1 / sqrt(3)."""
    mu = Sphere(8).density(lambda x, y, z: scale * (2 + x + z / 2 + 0 * y))
    expected = np.zeros(45)
    expected[[0, 1, 9]] = 1, 0.25 / np.sqrt(3), 0.5 / np.sqrt(6)
    np.testing.assert_allclose(mu.coefficients, expected, rtol=0, atol=10 * EPS)


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (lambda x, y, z: 1.0, ValueError, r"same|f\(x, y, z\) must be \(\d+,\); got \(\)"),
        (lambda x, y, z: z[:4], ValueError, r"got \(4,\). Write it with numpy"),
        (lambda x, y, z: z, ValueError, r"minimum -0\.\d+ and 0 values that are not finite"),
        (lambda x, y, z: 0 * z, ValueError, "not all zero"),
        (lambda x, y, z: np.where(z == z[0], np.nan, 1), ValueError, r"\d+ values that are not"),
        (lambda x, y, z: np.where(z == z[0], np.inf, 1), ValueError, r"\d+ values that are not"),
        (lambda x, y, z: 1 + 0j * z, TypeError, "must be real"),
    ],
    ids=["number", "short", "negative", "zero", "nan", "inf", "complex"],
)
def test_a_function_must_be_a_density(f, error, message):
    with pytest.raises(error, match=message):
        Sphere(4).density(f)


def test_an_unresolved_function_is_reported_where_it_was_written():
    with pytest.warns(UnresolvedWarning, match="Use a degree above 8") as caught:
        Sphere(8).density(lambda x, y, z: np.exp(9 * x))
    assert caught[0].filename == __file__


@every_axis
def test_a_zonal_density_is_its_legendre_series(axis):
    a, x = [1, 0.5, 0.2, -0.1, 0.05], vectors(50)
    mu = Sphere(7).zonal(a, axis=axis)
    expected = sum(a[l] * eval_legendre(l, x @ axis) for l in range(5))
    np.testing.assert_allclose(mu.at(x), expected, rtol=0, atol=2e-12)
    assert mu.mass == 1 and not mu.coefficients[mu.space.degrees > 4].any()
    if axis == AXES["north"]:
        moments = [mu.moment(l)[0].real for l in range(5)]  # E P_l = a_l / (2l + 1)
        np.testing.assert_allclose(moments, a / (2 * np.arange(5) + 1), rtol=0, atol=EPS)


@pytest.mark.parametrize(
    ("coefficients", "axis", "error", "message"),
    [
        ([1, 0, 0, 0, 0], [0, 0, 1], ValueError, r"a_0, ..., a_3 at most.* got \(5,\)"),
        ([[1, 0.1], [1, 1.2]], [0, 0, 1], ValueError, r"its minimum is -0\.119"),
        ([0.9, 0.1], [0, 0, 1], ValueError, "mass off by 0.1"),
        ([], [0, 0, 1], ValueError, "mass off by 1"),
        ([1, 1.2], [0, 0, 1], ValueError, r"must not be negative; its minimum is -0\.1"),
        ([1, np.nan], [0, 0, 1], ValueError, "finite, but 2 are not"),
        ([1, 0.1j], [0, 0, 1], TypeError, "must be real numbers"),
        ([1, 0.1], [0, 0, 1.01], ValueError, "must be a unit vector"),
        ([1, 0.1], [0, 1], ValueError, "must be a unit vector"),
        ([1, 0.1], 1.0, ValueError, "must be a unit vector"),
        ([1, 0.1], [0, 0, np.nan], ValueError, "must be a unit vector"),
        ([1, 0.1], [0, 0, 1j], TypeError, "must be real numbers"),
    ],
)
def test_zonal_refuses_what_is_no_density(coefficients, axis, error, message):
    with pytest.raises(error, match=message):
        Sphere(3).zonal(coefficients, axis=axis)


@every_axis
@pytest.mark.parametrize("concentration", [0, 1e-3, 2.0, 60.0])
def test_von_mises_fisher_is_the_closed_form(axis, concentration):
    """concentration / sinh(concentration) exp(concentration <x, mean>), written not to overflow."""
    k, x = concentration, np.vstack([vectors(50), AXES["north"], axis])
    mu = Sphere(80).von_mises_fisher(axis, k)
    expected = 2 * k / -np.expm1(-2 * k) * np.exp(k * (x @ axis - 1)) if k else np.ones(len(x))
    np.testing.assert_allclose(mu.at(x), expected, rtol=0, atol=1e-11 * max(1, k))
    assert mu.mass == 1


def test_a_narrow_von_mises_fisher_density():
    """Concentration 1000 has modes up to 270: E P_l = i_l / i_0, and its value at the mean."""
    mean, k = np.array(AXES["anywhere"]), 1000.0
    mu = Sphere(320).von_mises_fisher(mean, k)
    assert mu.at(mean) == pytest.approx(2 * k, rel=1e-10) and abs(mu.at(-mean)) < 1e-8
    north = mu.rotate(Rotation.align_vectors([[0, 0, 1]], [mean])[0])
    # i_1/i_0 = coth - 1/k, i_2/i_0 = 1 - 3 (i_1/i_0)/k
    first = 1 - 1 / k
    found = [north.moment(l)[0].real for l in (1, 2)]
    np.testing.assert_allclose(found, [first, 1 - 3 * first / k], rtol=1e-12)
    with pytest.warns(UnresolvedWarning, match="Use a degree above 100") as caught:
        Sphere(100).von_mises_fisher(mean, k)
    assert caught[0].filename == __file__


def test_von_mises_fisher_has_moments_of_bessel_functions():
    mu = Sphere(60).von_mises_fisher([0, 0, 1], 7.0)
    l = np.arange(61)
    found = np.array([mu.moment(k)[0].real for k in l])
    np.testing.assert_allclose(found, spherical_in(l, 7.0) / spherical_in(0, 7.0), atol=1e-14)


@pytest.mark.parametrize("concentration", [-1.0, np.inf, np.nan, [1.0, 2.0]], ids=repr)
def test_von_mises_fisher_refuses_what_has_no_meaning(concentration):
    with pytest.raises(ValueError, match="one finite concentration >= 0; got"):
        Sphere(8).von_mises_fisher([0, 0, 1], concentration)


# Perturbations -----------------------------------------------------------------------------


@pytest.mark.bits
@pytest.mark.parametrize(("low", "high"), [(1, 5), (3, 8), (8, 9), (9, 30)])
def test_a_seed_gives_one_perturbation_on_every_sphere(low, high):
    coarse, fine = (Sphere(degree).perturbed(1e-3, rng=7) for degree in (low, high))
    np.testing.assert_array_equal(fine.resample(low).coefficients, coarse.coefficients)
    assert not fine.coefficients[fine.space.degrees > 8].any()


def test_a_perturbation_has_the_stated_standard_deviation():
    """That of the coefficients of 1, sqrt(2) Re Y and sqrt(2) Im Y; 5 standard errors."""
    sphere, amplitude, n = Sphere(4), 1e-2, 300
    c = np.array([sphere.perturbed(amplitude, rng=i).coefficients[1:] for i in range(n)])
    zonal = sphere.orders[1:] == 0
    parts = [c[:, zonal].real, np.sqrt(2) * c[:, ~zonal].real, -np.sqrt(2) * c[:, ~zonal].imag]
    for part in parts:
        assert abs(part.std() / amplitude - 1) < 5 / np.sqrt(2 * part.size)
        assert abs(part.mean()) < 5 * amplitude / np.sqrt(part.size)
    assert np.abs(np.mean(parts[1] * parts[2])) < 5 * amplitude**2 / np.sqrt(parts[1].size)


def test_only_the_chosen_degrees_are_perturbed():
    mu = Sphere(12).perturbed(1e-2, rng=0, degrees=[3, 10])
    assert set(mu.space.degrees[mu.coefficients != 0]) == {0, 3, 10}


@pytest.mark.parametrize("degrees", [[0, 1], [9], [], [-1], [2, 2], [1.5]], ids=str)
def test_a_perturbation_stays_within_the_degrees(degrees):
    with pytest.raises(ValueError, match=r"degrees .* 1 and 8"):
        Sphere(8).perturbed(1e-2, rng=0, degrees=degrees)


def test_a_large_perturbation_is_refused_not_clipped():
    with pytest.raises(ValueError, match="must not be negative"):
        Sphere(8).perturbed(1.0, rng=0)


# Estimates ---------------------------------------------------------------------------------


def test_an_estimate_is_the_heat_flow_of_the_empirical_measure():
    x, sphere, bandwidth = vectors(5), Sphere(30), 0.5
    theta, phi = np.arccos(x[:, 2:]), np.arctan2(x[:, 1:2], x[:, :1])
    l, m = sphere.degrees, sphere.orders
    modes = np.sqrt(4 * np.pi) * (-1.0) ** m * np.conj(sph_harm_y(l, m, theta, phi)).mean(axis=0)
    expected = modes * np.exp(-l * (l + 1) * bandwidth**2 / 2)
    mu = sphere.estimate(x, bandwidth=bandwidth)
    np.testing.assert_allclose(mu.coefficients, expected, rtol=0, atol=1e-11)
    assert mu.minimum > 0 and mu.mass == pytest.approx(1, abs=1e-12)
    tokens = sphere.estimate(Tokens(x), bandwidth=bandwidth)
    np.testing.assert_array_equal(tokens.coefficients, mu.coefficients)


def test_a_heat_kernel_is_positive_at_any_bandwidth():
    for bandwidth in (0.15, 0.3, 1.0):
        mu = Sphere(64).estimate(vectors(3), bandwidth=bandwidth)
        assert mu.minimum > -1e-10 * mu.values.max()


def test_the_estimate_converges():
    """The squared error of a smooth density falls like n^(-4/5) or faster: 16^(-4/5) = 1/9."""
    mu = lumpy(48)
    errors = []
    for n in (200, 3200):
        samples = [mu.sample(n, rng=seed) for seed in range(6)]
        found = [Sphere(48).estimate(sample) for sample in samples]
        square = [np.abs(f.coefficients - mu.coefficients) ** 2 @ mu.space.parseval for f in found]
        errors.append(np.mean(square))
    assert errors[1] < errors[0] / 6
    assert errors[1] < 0.02


def test_a_sample_from_a_file(tmp_path):
    x = vectors(20)
    np.save(tmp_path / "x.npy", x)
    np.savetxt(tmp_path / "x.csv", x, delimiter=",", header="x,y,z", comments="")
    expected = Sphere(8).estimate(x, bandwidth=0.8).coefficients
    for name in ("x.npy", "x.csv"):
        found = Sphere(8).estimate(tmp_path / name, bandwidth=0.8).coefficients
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("sample", "options", "error", "message"),
    [
        (np.eye(3)[:1], {}, ValueError, r"at least 2 unit vectors \(n, 3\); got \(1, 3\)"),
        (np.eye(2), {}, ValueError, r"got \(2, 2\)"),
        (np.zeros(9), {}, ValueError, r"got \(9,\)"),
        (np.full((3, 3), np.nan), {}, ValueError, "must be finite; got 9 nan"),
        (2 * np.eye(3), {}, ValueError, "worst length is off by 1"),
        (np.eye(3) * 1j, {}, TypeError, "must be real numbers"),
        (np.eye(3), {"bandwidth": 0.0}, ValueError, "bandwidth must be a finite number > 0"),
        (np.eye(3), {"bandwidth": np.nan}, ValueError, "bandwidth must be a finite number > 0"),
        (Tokens(np.eye(3), [0.5, 0.3, 0.2]), {}, ValueError, "masses of a sample must be equal"),
    ],
)
def test_what_is_no_sample_is_refused(sample, options, error, message):
    with pytest.raises(error, match=message):
        Sphere(8).estimate(sample, **options)


def test_a_bandwidth_too_small_for_the_degree_is_reported():
    with pytest.warns(UnresolvedWarning, match="Use a degree above 8"):
        Sphere(8).estimate(vectors(10), bandwidth=0.1)
