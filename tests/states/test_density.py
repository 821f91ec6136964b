"""Densities: integrals, values, mixtures and ensembles, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield import Circle, Density

EPS = np.finfo(float).eps
reproducible = settings(deadline=None, derandomize=True, max_examples=50)
degrees, seeds, angles = st.integers(1, 60), st.integers(0, 2**32 - 1), st.floats(-20, 20)


def rough(degree, seed=0, shape=()):
    """A density whose coefficients do not decay, between 0.1 and 1.9."""
    c = np.random.default_rng(seed).standard_normal((*shape, degree + 1, 2)) @ [1, 1j]
    c *= 0.45 / np.abs(c[..., 1:]).sum(axis=-1, keepdims=True)
    c[..., 0] = 1
    return Density(Circle(degree), c)


def polynomial(degree, seed):
    """A random real trigonometric polynomial as a function of unit vectors; coefficients."""
    a = np.random.default_rng(seed).standard_normal((degree + 1, 2)) @ [1, 1j]

    def f(x):
        z = x[..., 0] + 1j * x[..., 1]
        return np.polynomial.Polynomial(a)(z).real

    return f, a


# Integrals and values ----------------------------------------------------------------------


@reproducible
@given(degrees, seeds)
def test_expectations_are_exact_to_twice_the_degree(degree, seed):
    """Rough density against rough function of degree 2K: Parseval on the first K modes."""
    mu = rough(degree, seed)
    f, a = polynomial(2 * degree, seed + 1)
    expected = (a[: degree + 1] * np.conj(mu.coefficients)).real.sum()
    # Rounding of the points, whose powers reach twice the degree, in a sum of random terms.
    scale = np.abs(a).sum()
    assert mu.expect(f) == pytest.approx(expected, rel=0, abs=10 * EPS * degree * scale)


def test_expectations_of_an_ensemble_have_its_shape():
    mu = rough(6, shape=(2, 3))
    assert mu.expect(lambda x: x[:, 0]).shape == (2, 3)
    # cos = Re e^{i theta}: rounding of a mean of values below 2.
    np.testing.assert_allclose(
        mu.expect(lambda x: x[:, 0]), mu.moment(1).real, rtol=0, atol=10 * EPS
    )


@reproducible
@given(degrees, seeds, st.integers(-70, 70))
def test_moments_are_integrals_of_waves(degree, seed, k):
    mu, circle = rough(degree, seed), Circle(degree)
    wave = np.exp(1j * k * circle.angles)
    moment = mu.moment(k)
    if abs(k) > degree:
        assert moment == 0
    else:
        assert moment == pytest.approx((mu.values * wave).mean(), rel=0, abs=20 * EPS * degree)
    assert mu.moment(-k) == np.conj(moment)


def test_a_moment_turns_with_the_tokens():
    """int e^{i theta} dmu, not its conjugate: a cluster at angle 1 has moment near e^{i}."""
    mu = Circle(128).von_mises(1.0, 100.0)
    assert np.angle(mu.moment(1)) == pytest.approx(1.0, abs=1e-14)
    assert np.angle(mu.moment(2)) == pytest.approx(2.0, abs=1e-14)


@reproducible
@given(degrees, seeds)
def test_values_anywhere_agree_with_values_on_the_grid(degree, seed):
    mu = rough(degree, seed, shape=(2,))
    # Two evaluations of 60 terms, of sum at most 2, at angles that differ by a rounding.
    np.testing.assert_allclose(mu.at(mu.space.points), mu.values, rtol=0, atol=20 * EPS * degree)


@pytest.mark.parametrize("ensemble", [(), (3,)], ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (4,), (2, 5)], ids=str)
def test_values_have_the_shape_of_ensemble_and_points(ensemble, shape):
    mu = rough(5, shape=ensemble)
    assert np.shape(mu.at(Circle.embed(np.full(shape, 0.2)))) == (*ensemble, *shape)
    assert mu.values.shape == (*ensemble, mu.space.angles.size)
    for number in (mu.mass, mu.minimum, mu.spectral_tail, mu.moment(1)):
        assert np.shape(number) == ensemble


def test_mass_minimum_and_tail_are_read_off():
    mu = Circle(16).fourier([1, 0.25, *[0] * 13, 1e-5j, 1e-6])
    assert mu.mass == 1
    assert mu.minimum == pytest.approx(0.5, abs=5e-5)  # 1 + 2 (1/4) cos, and small terms
    assert mu.spectral_tail == 1e-5  # degrees above 14
    assert mu.resample(32).spectral_tail == 0


def test_text_shows_degree_ensemble_and_tail():
    assert repr(Circle(8).uniform()) == "Density(Circle(degree=8), spectral tail 0.0e+00)"
    assert "ensemble (2, 3)" in repr(rough(8, shape=(2, 3)))


# Rotation and resampling -------------------------------------------------------------------


@reproducible
@given(degrees, seeds, angles, angles)
def test_rotations_move_points_and_compose(degree, seed, first, second):
    mu = rough(degree, seed)
    theta = np.linspace(0, 6, 13)
    moved = mu.rotate(first)
    # Angles are rounded relative to 20 and multiplied by the degree; coefficients sum to 1.
    atol = 20 * EPS * 20 * degree
    np.testing.assert_allclose(
        moved.at(Circle.embed(theta + first)), mu.at(Circle.embed(theta)), rtol=0, atol=atol
    )
    np.testing.assert_allclose(
        moved.rotate(second).coefficients,
        mu.rotate(first + second).coefficients,
        rtol=0,
        atol=atol,
    )
    for k in (1, degree):
        expected = mu.moment(k) * np.exp(1j * k * first)
        assert moved.moment(k) == pytest.approx(expected, rel=0, abs=atol)


@reproducible
@given(degrees, st.integers(0, 40), seeds)
def test_more_degrees_change_nothing(degree, more, seed):
    mu = rough(degree, seed)
    fine = mu.resample(degree + more)
    assert fine.space == Circle(degree + more)
    np.testing.assert_array_equal(fine.coefficients[: degree + 1], mu.coefficients)
    np.testing.assert_array_equal(fine.coefficients[degree + 1 :], 0)
    np.testing.assert_array_equal(fine.resample(degree).coefficients, mu.coefficients)


def test_fewer_degrees_cut_the_series_off():
    mu = rough(9, shape=(2,))
    np.testing.assert_array_equal(mu.resample(4).coefficients, mu.coefficients[:, :5])
    with pytest.raises(ValueError, match="whole number >= 1"):
        mu.resample(2.5)


# Mixtures ----------------------------------------------------------------------------------


@reproducible
@given(degrees, degrees, st.floats(0, 1), st.sampled_from([float, np.float64]))
def test_a_mixture_is_the_weighted_sum_on_the_finer_circle(first, second, weight, number):
    a, b = rough(first, 1), rough(second, 2)
    mixture = number(weight) * a + b * number(1 - weight)
    assert mixture.space == Circle(max(first, second))
    x = Circle.embed(np.linspace(0, 6, 7))
    expected = weight * a.at(x) + (1 - weight) * b.at(x)
    np.testing.assert_allclose(mixture.at(x), expected, rtol=0, atol=20 * EPS * 60)  # Horner


def test_mixtures_of_three_and_more():
    parts = [rough(4, seed) for seed in range(10)]
    expected = np.mean([part.coefficients for part in parts], axis=0)
    tenth = 0.1 * parts[0]
    for part in parts[1:]:
        tenth = tenth + part * 0.1
    # Ten roundings of numbers below 1.
    np.testing.assert_allclose(tenth.coefficients, expected, rtol=0, atol=10 * EPS)
    mixture = Density.mixture([0.1] * 10, parts)
    np.testing.assert_allclose(mixture.coefficients, expected, rtol=0, atol=10 * EPS)


def test_a_part_of_weight_zero_may_come_last():
    a, b, c = (rough(4, seed) for seed in range(3))
    mixture = 0.5 * a + 0.5 * b + 0.0 * c
    np.testing.assert_allclose(mixture.coefficients, (0.5 * a + 0.5 * b).coefficients, rtol=0)


@pytest.mark.parametrize("number", [float, np.float64])
def test_ensembles_mix_member_by_member(number):
    a, b = rough(4, 0, shape=(3,)), rough(4, 1, shape=(3,))
    mixture = number(0.25) * a + number(0.75) * b
    assert mixture.shape == (3,)
    expected = 0.25 * a.coefficients + 0.75 * b.coefficients
    np.testing.assert_allclose(mixture.coefficients, expected, rtol=0, atol=4 * EPS)


def test_an_unfinished_mixture_says_so():
    assert "total weight 0.3: add up to weight 1" in repr(0.3 * rough(4))
    with pytest.raises(TypeError):
        0.3 * rough(4) + 1


@pytest.mark.parametrize("weights", [[0.5, 0.6], [1.5, -0.5], [1.0], [], [np.nan, 1]], ids=str)
def test_weights_of_a_mixture_are_a_probability(weights):
    with pytest.raises(ValueError, match="weights must be 2 numbers >= 0 of sum 1"):
        Density.mixture(weights, [rough(4), rough(4)])


def test_a_negative_weight_is_refused_by_the_sum_too():
    with pytest.raises(ValueError, match="weights must be 2 numbers >= 0"):
        1.5 * rough(4) + (-0.5) * rough(4)


# What is shared cannot be changed ------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["angles", "points", "weights", "degrees", "parseval", "laplacian"]
)
def test_the_arrays_of_a_circle_are_read_only(name):
    with pytest.raises(ValueError, match="read-only"):
        getattr(mf.Circle(4), name)[0] = 7


def test_a_function_may_work_in_place_on_what_it_is_given():
    circle = mf.Circle(8)

    def from_the_other_side(theta):
        theta -= np.pi
        return 1 + 0.5 * np.cos(theta)

    density = circle.density(from_the_other_side)
    assert density.moment(1) == pytest.approx(-0.25)
    np.testing.assert_array_equal(circle.angles, mf.Circle(8).angles)

    def first(x):
        x *= 2
        return x[:, 0]

    assert density.expect(first) == pytest.approx(-0.5)
    assert density.expect(first) == pytest.approx(-0.5)


# Only real numbers ---------------------------------------------------------------------------


def test_complex_numbers_are_refused_where_they_would_lose_their_imaginary_part():
    circle = mf.Circle(8)
    for wrong in (
        lambda: circle.density(lambda theta: 1 + 0.1 * np.exp(1j * theta)),
        lambda: circle.von_mises(1j, 2.0),
        lambda: circle.estimate(np.exp(1j * circle.angles), bandwidth=1.0),
        lambda: mf.Tokens([[1.0 + 0j, 0.0]]),
        lambda: mf.USA(1j),
        lambda: mf.Transformer(mf.Kuramoto(), 2j),
        lambda: circle.uniform().rotate(1j),
        lambda: mf.principal_circle(np.eye(3) * 1j),
    ):
        with pytest.raises(TypeError, match=r"real numbers; got .* complex128"):
            wrong()
    assert circle.fourier([1, 0.25]).expect(lambda x: x @ [1, 1j]) == pytest.approx(0.25)


def test_values_are_asked_for_at_unit_vectors():
    with pytest.raises(ValueError, match="worst length is off by 1"):
        mf.Circle(4).uniform().at([[1.0, 0.0], [0.0, 2.0]])


def test_an_ensemble_has_members():
    with pytest.raises(ValueError, match=r"coefficients.shape must be \(..., 5\)"):
        mf.Density(mf.Circle(4), np.empty((0, 5)))
    for wrong in (lambda: mf.USA([]), lambda: mf.Transformer(mf.Kuramoto(), [])):
        with pytest.raises(ValueError, match=r"an array|must be > 0"):
            wrong()


def test_expectations_are_those_of_functions():
    states = (
        mf.Circle(4).uniform(),
        mf.Tokens(np.eye(3)),
        mf.Characteristics(mf.Circle(4).uniform()),
    )
    for state in states:
        with pytest.raises(TypeError, match=r"a function of points \(..., d\); got f = 3"):
            state.expect(3)
