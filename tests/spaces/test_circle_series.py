"""Fourier series at scattered angles, their cumulative law, and the modes of a sample."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import i0e

from meanfield import Circle
from meanfield.spaces.circle import evaluate, moments_of_angles, sample_angles

EPS = np.finfo(float).eps
reproducible = settings(deadline=None, derandomize=True, max_examples=50)


def series(*shape, seed=0):
    """Random coefficients of the given shape, of a real function each."""
    c = np.random.default_rng(seed).standard_normal((*shape, 2)) @ [1, 1j]
    c[..., 0] = c[..., 0].real
    return c


def direct(c, angles):
    """c_0 + 2 Re sum_{k >= 1} c_k e^{ik theta}, term by term."""
    waves = np.exp(1j * np.multiply.outer(np.arange(c.shape[-1]), angles))
    both_signs = np.where(np.arange(c.shape[-1]) == 0, 1.0, 2.0)
    return np.tensordot(both_signs * c, waves, axes=1).real


# Evaluation --------------------------------------------------------------------------------


@reproducible
@given(
    st.sampled_from([(), (1,), (3,), (2, 3)]),
    st.integers(1, 60),
    st.sampled_from([(1,), (0,), (7,), (3, 4)]),
)
def test_evaluation_is_the_sum_for_every_shape(ensemble, modes, shape):
    c = series(*ensemble, modes)
    angles = np.random.default_rng(1).uniform(-9, 9, shape)
    values = evaluate(c, angles)
    assert values.shape == (*ensemble, *shape)
    # Horner's rule: each of `modes` terms is rounded as often as it is multiplied; angle errors
    # grow with k too.
    np.testing.assert_allclose(values, direct(c, angles), rtol=0, atol=10 * EPS * modes**2)


@pytest.mark.parametrize("ensemble", [(), (1,), (3,), (2, 3)], ids=str)
def test_evaluation_at_one_angle_has_no_axis_for_it(ensemble):
    c = series(*ensemble, 9)
    value = evaluate(c, np.array(0.3))
    assert np.shape(value) == ensemble
    np.testing.assert_array_equal(value, evaluate(c, np.array([0.3]))[..., 0])


def test_evaluation_on_the_grid_is_the_fast_transform():
    circle, c = Circle(50), series(2, 51)
    # 51 terms of size 1 by two methods.
    np.testing.assert_allclose(
        evaluate(c, circle.angles), circle.to_values(c), rtol=0, atol=10 * EPS * 51**1.5
    )


# Empirical modes ---------------------------------------------------------------------------


def test_empirical_modes_are_the_means_of_waves():
    angles = np.random.default_rng(0).uniform(-4, 9, 500)
    expected = np.exp(-1j * np.multiply.outer(np.arange(81), angles)).mean(axis=1)
    computed = moments_of_angles(angles, np.ones(500), 80) / 500
    assert computed[0] == 1
    # Powers by repeated multiplication lose one rounding per degree, as the angles do.
    np.testing.assert_allclose(computed, expected, rtol=0, atol=10 * EPS * 80)


def test_modes_of_one_point_have_modulus_one_to_high_degree():
    computed = moments_of_angles(np.array([2.0]), np.ones(1), 4096)
    # The modulus of a product of 4096 rounded factors.
    np.testing.assert_allclose(np.abs(computed), 1, rtol=0, atol=4096 * EPS)


# Sampling ----------------------------------------------------------------------------------


def mixture_of_two():
    circle = Circle(256)
    return (0.3 * circle.von_mises(2.0, 400.0) + 0.7 * circle.von_mises(-1.0, 2.0)).coefficients


LAWS = {
    "uniform": np.array([1.0 + 0j, 0]),
    "one mode": np.array([1, 0.2 - 0.3j]),
    "zero at pi": np.array([1, 0.5 + 0j]),
    "zero at 0": np.array([1, -0.5 + 0j]),
    "two clusters": mixture_of_two(),
    "nearly a point": Circle(1400).von_mises(0.7, 3e4).coefficients,
    "a point at pi": Circle(800).von_mises(np.pi, 1e4).coefficients,
}


def cumulative(c, theta):
    """F(theta) from -pi, written term by term."""
    k = np.arange(1, c.size)
    start = (-1.0) ** k
    waves = np.exp(1j * np.multiply.outer(theta, k)) - start
    return (theta + np.pi) / (2 * np.pi) + (waves @ (c[1:] / (1j * k))).real / np.pi


@pytest.mark.parametrize("name", LAWS)
def test_sampling_inverts_the_cumulative_law(name):
    """F(theta_j) is the j-th uniform number of the generator: no acceptance, no waste."""
    c, n = LAWS[name], 400
    theta = sample_angles(c, n, np.random.default_rng(5))
    level = np.random.default_rng(5).random(n)
    assert (theta >= -np.pi).all()
    assert (theta <= np.pi).all()
    # The iteration stops when theta moves by less than 1e-14: that times the largest density;
    # and the rounding of F in up to 1400 terms c_k / k.
    peak = (1 + 2 * np.abs(c[1:]).sum()) / (2 * np.pi)
    np.testing.assert_allclose(cumulative(c, theta), level, rtol=0, atol=1e-14 * peak + 1e-13)


def test_a_level_at_either_end_is_inverted_too():
    class Ends:
        """A generator of the extreme uniform numbers."""

        def random(self, n):
            return np.resize([0.0, 1 - EPS / 2, EPS], n)

    for name, c in LAWS.items():
        theta = sample_angles(c, 3, Ends())
        assert np.isfinite(theta).all(), name
        assert (np.abs(theta) <= np.pi).all(), name


def test_sampling_a_narrow_law_has_its_width():
    """The von Mises law of concentration 3e4 is normal with variance 1/3e4, to 1/3e4."""
    theta = sample_angles(LAWS["nearly a point"], 4000, np.random.default_rng(2))
    error = 1 / np.sqrt(2 * 4000)  # relative standard error of a standard deviation
    assert abs(theta.std() * np.sqrt(3e4) - 1) < 5 * error
    assert abs(theta.mean() - 0.7) < 5 / np.sqrt(3e4 * 4000)  # 5 standard errors


def test_the_laws_above_are_what_their_names_say():
    """Guards the two limits of this file: peak 1/I_0e(3e4) and zeros that touch the axis."""
    peak = evaluate(LAWS["nearly a point"], np.array([0.7]))[0]
    assert peak == pytest.approx(1 / i0e(3e4), rel=1e-11)  # 1400 modes of tail exp(-1400^2 / 6e4)
    for name, at in [("zero at pi", np.pi), ("zero at 0", 0.0)]:
        assert abs(evaluate(LAWS[name], np.array([at]))[0]) < 10 * EPS  # rounding of 1 - 1
