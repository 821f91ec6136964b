"""The circle: its grid and conventions, the densities it makes, and what it refuses."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ive

from meanfield import Circle, UnresolvedWarning, Zonal

EPS = np.finfo(float).eps
reproducible = settings(deadline=None, derandomize=True, max_examples=50)
degrees = st.integers(1, 120)


# Grid and conventions ----------------------------------------------------------------------


@reproducible
@given(degrees)
def test_quadrature_is_exact_to_three_times_the_degree(degree):
    """This is the aliasing guard: a product of two states tested against a third."""
    circle = Circle(degree)
    assert circle.weights.sum() == pytest.approx(1, abs=100 * EPS)  # rounding of the sum
    waves = np.exp(1j * np.outer(np.arange(1, 3 * degree + 1), circle.angles))
    # Means of waves; their arguments reach 2 pi times the degree, rounded relatively.
    assert np.abs(waves @ circle.weights).max() < 20 * EPS * degree


@reproducible
@given(degrees, st.sampled_from([(), (2,), (2, 3)]))
def test_values_and_coefficients_are_inverse_to_each_other(degree, ensemble):
    circle = Circle(degree)
    c = np.random.default_rng(degree).standard_normal((*ensemble, degree + 1, 2)) @ [1, 1j]
    c[..., 0] = c[..., 0].real
    values = circle.to_values(c)
    assert values.shape == (*ensemble, circle.angles.size)
    np.testing.assert_allclose(circle.to_coefficients(values), c, rtol=0, atol=200 * EPS)
    # Parseval, relative to a sum of positive terms.
    np.testing.assert_allclose(
        (circle.parseval * np.abs(c) ** 2).sum(axis=-1),
        values**2 @ circle.weights,
        rtol=1e-13,
    )


def test_a_coefficient_is_the_integral_of_the_conjugate_wave():
    """c_k = int e^{-ik theta} dmu, so 1 + 2 Re c_1 e^{i theta} = 1 + 0.6 cos + 0.4 sin."""
    circle = Circle(5)
    theta = circle.angles
    c = circle.to_coefficients(1 + 0.6 * np.cos(theta) + 0.4 * np.sin(theta))
    np.testing.assert_allclose(c, [1, 0.3 - 0.2j, 0, 0, 0, 0], rtol=0, atol=10 * EPS)  # rounding


def test_the_laplacian_is_the_second_derivative():
    circle = Circle(6)
    np.testing.assert_array_equal(circle.laplacian, -(np.arange(7.0) ** 2))
    np.testing.assert_array_equal(circle.degrees, np.arange(7))


def test_angles_start_at_zero_and_points_are_unit_vectors():
    circle = Circle(9)
    assert circle.angles[0] == 0
    assert circle.points.shape == (circle.angles.size, 2)
    np.testing.assert_allclose(np.diff(circle.angles), 2 * np.pi / circle.angles.size)
    np.testing.assert_allclose(circle.points, circle.embed(circle.angles), rtol=0, atol=0)
    assert circle.embed(np.zeros((2, 3))).shape == (2, 3, 2)
    assert circle.embed([]).shape == (0, 2)
    np.testing.assert_allclose(circle.embed(np.pi / 2), [0, 1], rtol=0, atol=EPS)  # of pi / 2


@pytest.mark.parametrize("degree", [0, -3, 1.5, True, "8", None, np.nan, np.inf], ids=repr)
def test_a_degree_is_a_whole_number_from_one(degree):
    message = "degree must be a whole number >= 1; got degree = "
    with pytest.raises((ValueError, TypeError), match=message):
        Circle(degree)


def test_circles_of_one_degree_are_equal():
    assert Circle(8) == Circle(8.0) == Circle(np.int64(8))
    assert Circle(8) != Circle(9)
    assert Circle(8) != 8
    assert {Circle(8): "a"}[Circle(8)] == "a"
    assert Circle(8).with_degree(3) == Circle(3)
    assert repr(Circle(8.0)) == "Circle(degree=8)"


# Densities from functions and coefficients -------------------------------------------------


@reproducible
@given(st.floats(1e-3, 1e3), st.integers(1, 20))
def test_a_function_is_normalised_to_mass_one(scale, degree):
    mu = Circle(max(degree, 8)).density(lambda theta: scale * (2 + np.cos(theta)))
    # 2 + cos, normalised: 1 + cos / 2, hence c_1 = 1/4. Rounding of one transform.
    np.testing.assert_allclose(mu.coefficients[:2], [1, 0.25], rtol=0, atol=10 * EPS)
    assert np.abs(mu.coefficients[2:]).max() < 10 * EPS


def test_the_uniform_density_is_the_constant_one():
    mu = Circle(4).uniform()
    np.testing.assert_array_equal(mu.coefficients, [1, 0, 0, 0, 0])
    np.testing.assert_array_equal(mu.values, 1)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda theta: 1.0, r"f\(theta\) must be \(\d+,\); got \(\)"),
        (lambda theta: theta[:4], r"got \(4,\). Write it with numpy"),
        (lambda theta: np.cos(theta), "minimum -1.0 and 0 values that are not finite"),
        (lambda theta: 0 * theta, "not all zero"),
        (lambda theta: np.where(theta == theta[-1], np.nan, 1), "1 values that are not finite"),
        (lambda theta: np.where(theta > 0, np.nan, 1), r"finite, the first at \(theta\) = \("),
        (
            lambda theta: theta * np.ones(3),
            r"f raised ValueError.* be a function f\(theta\)",
        ),
        (lambda theta: np.where(theta == 0, np.inf, 1), "1 values that are not finite"),
    ],
    ids=["number", "short", "negative", "zero", "nan", "first nan", "unfit", "inf"],
)
def test_a_function_must_be_a_density(f, message):
    with pytest.raises(ValueError, match=message):
        Circle(4).density(f)


def test_an_unresolved_function_is_reported_where_it_was_written():
    with pytest.warns(UnresolvedWarning, match="Use a degree above 8") as caught:
        Circle(8).density(lambda theta: np.exp(9 * np.cos(theta)))
    assert caught[0].filename == __file__


def test_fourier_coefficients_are_filled_up_with_zeros():
    np.testing.assert_array_equal(Circle(3).fourier([1, 0.2j]).coefficients, [1, 0.2j, 0, 0])
    ensemble = Circle(3).fourier([[1, 0.2], [1, 0.1]])
    assert ensemble.shape == (2,)
    np.testing.assert_array_equal(ensemble[1].coefficients, [1, 0.1, 0, 0])


@pytest.mark.parametrize(
    ("coefficients", "message"),
    [
        ([1, 0, 0, 0, 0], r"c_0, ..., c_3 at most.* got \(5,\). Use a degree of 4"),
        ([0.9, 0.1], "mass off by 0.1"),
        ([1, 0.6], "must not be negative; its minimum is -0.2"),
        ([[1, 0.1], [1, 0.7]], "minimum is -0.4"),
        ([1, 0, 0, 0.9], "minimum is -0.8"),
        ([1, np.nan], "finite, but 1 are not"),
    ],
    ids=["many", "mass", "negative", "one member", "last mode", "nan"],
)
def test_fourier_refuses_what_is_no_density(coefficients, message):
    with pytest.raises(ValueError, match=message):
        Circle(3).fourier(coefficients)


# Von Mises ---------------------------------------------------------------------------------


@reproducible
@given(st.floats(-20, 20), st.floats(0, 60, allow_subnormal=False))
def test_von_mises_has_moments_of_bessel_functions(mean, concentration):
    mu = Circle(64).von_mises(mean, concentration)
    k = np.arange(65)
    expected = np.exp(1j * k * mean) * ive(k, concentration) / ive(0, concentration)
    moments = np.array([mu.moment(j) for j in range(65)])
    # The argument k mean is rounded relatively and reaches 64 * 20; times |moment| <= 1.
    np.testing.assert_allclose(moments, expected, rtol=0, atol=20 * 64 * EPS)


def test_von_mises_is_the_exponential_of_the_cosine():
    circle = Circle(64)
    mu = circle.von_mises(0.7, 30.0)
    other = circle.density(lambda theta: np.exp(30 * (np.cos(theta - 0.7) - 1)))
    # Modes beyond 64 are below e^{-64^2/60} = 1e-30: rounding of values up to 14.
    np.testing.assert_allclose(mu.coefficients, other.coefficients, rtol=0, atol=20 * EPS)
    np.testing.assert_array_equal(
        circle.von_mises(2.0, 0).coefficients, circle.uniform().coefficients
    )


@pytest.mark.parametrize(
    ("mean", "concentration"), [(0, -1.0), (np.nan, 1.0), (0, np.inf), (np.inf, 1), (0, np.nan)]
)
def test_von_mises_refuses_what_has_no_meaning(mean, concentration):
    with pytest.raises(ValueError, match=r"(angle mean|concentration >= 0)"):
        Circle(8).von_mises(mean, concentration)


def test_a_narrow_von_mises_asks_for_a_higher_degree():
    with pytest.warns(UnresolvedWarning, match="Use a degree above 16") as caught:
        Circle(16).von_mises(0, 500.0)
    assert caught[0].filename == __file__


# Perturbations -----------------------------------------------------------------------------


def test_a_perturbation_has_the_stated_standard_deviation():
    circle, amplitude, n = Circle(8), 1e-2, 400
    c = np.array([circle.perturbed(amplitude, rng=i).coefficients[1:] for i in range(n)])
    cosines, sines = 2 * c.real, -2 * c.imag
    for part in (cosines, sines):
        # 5 standard errors of a standard deviation and of a mean of 8 n numbers.
        assert abs(part.std() / amplitude - 1) < 5 / np.sqrt(2 * part.size)
        assert abs(part.mean()) < 5 * amplitude / np.sqrt(part.size)


@pytest.mark.bits
@reproducible
@given(st.integers(1, 7), st.integers(8, 60), st.integers(0, 2**32 - 1))
def test_a_seed_gives_one_perturbation_on_every_circle(low, high, seed):
    coarse, fine = (Circle(degree).perturbed(1e-3, rng=seed) for degree in (low, high))
    np.testing.assert_array_equal(fine.coefficients[: low + 1], coarse.coefficients)
    np.testing.assert_array_equal(fine.coefficients[9:], 0)


def test_a_perturbation_takes_the_generator_on():
    rng = np.random.default_rng(0)
    first, second = (Circle(8).perturbed(1e-3, rng=rng) for _ in range(2))
    assert (first.coefficients != second.coefficients)[1:].all()


def test_only_the_chosen_degrees_are_perturbed():
    c = Circle(20).perturbed(1e-2, rng=0, degrees=[3, 15]).coefficients
    np.testing.assert_array_equal(np.flatnonzero(c), [0, 3, 15])


@pytest.mark.parametrize("degrees", [[0, 1], [9], [], [-1]], ids=str)
def test_a_perturbation_stays_within_the_degrees(degrees):
    with pytest.raises(ValueError, match=r"degrees .* 1 and 8"):
        Circle(8).perturbed(1e-2, rng=0, degrees=degrees)


def test_a_large_perturbation_is_refused_not_clipped():
    with pytest.raises(ValueError, match="must not be negative"):
        Circle(8).perturbed(1.0, rng=0)


def test_a_space_with_another_degree_is_one_object_for_all_who_ask():
    assert Circle(5).with_degree(7) is Circle(9).with_degree(7) == Circle(7)
    assert Zonal(4, 5).with_degree(7) is not Zonal(5, 5).with_degree(7)
    for degree in (0, 7.5, "7"):
        with pytest.raises(ValueError, match="degree must be a whole number >= 1"):
            Circle(5).with_degree(degree)


def test_a_function_of_one_angle_is_told_that_it_gets_an_array():
    for f in (math.cos, lambda angle: math.cos(angle)):
        with pytest.raises(TypeError, match=r"arrays of shape .*np[.]cos in place of math"):
            Circle(8).density(f)
