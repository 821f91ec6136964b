"""Ensembles of densities, sampling, and how a density judges itself."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from meanfield import Circle, Density, Sphere, UnresolvedWarning, Zonal

reproducible = settings(deadline=None, derandomize=True, max_examples=30)


def ensemble(*shape, degree=5):
    """Densities 1 + a cos(theta), each with another amplitude a."""
    c = np.zeros((*shape, degree + 1), dtype=complex)
    c[..., 0] = 1
    c[..., 1] = 0.5 * np.arange(1, 1 + np.prod(shape)).reshape(shape) / (1 + np.prod(shape))
    return Density(Circle(degree), c)


# Ensembles ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "index",
    [0, -1, (1, 2), (0, -1), slice(None), (slice(None), 1), (0, slice(1, 3)), ([0, 1], [2, 0])],
    ids=str,
)
def test_indexing_picks_members_like_an_array(index):
    mu = ensemble(2, 3)
    picked = mu[index]
    np.testing.assert_array_equal(picked.moment(1), mu.moment(1)[index])
    assert picked.shape == mu.moment(1)[index].shape


def test_a_mask_picks_members():
    mu = ensemble(4)
    assert mu[mu.moment(1).real > 0.15].shape == (3,)


@pytest.mark.parametrize("index", [2, (0, 3), (0, 0, 0), (0, 0, 6), -3], ids=str)
def test_a_member_that_does_not_exist_is_an_index_error(index):
    """Above all the modes are not members: (0, 0, 0) has one index too many."""
    with pytest.raises(IndexError):
        ensemble(2, 3)[index]


def test_iteration_and_length_run_over_the_first_axis():
    mu = ensemble(2, 3)
    assert len(mu) == 2
    assert [member.shape for member in mu] == [(3,), (3,)]
    assert [float(m.moment(1).real) for m in ensemble(3)] == [0.125, 0.25, 0.375]


def test_a_single_density_has_no_members():
    mu = Circle(4).uniform()
    for use in (len, list, lambda density: density[0]):
        with pytest.raises(TypeError, match="single"):
            use(mu)


@reproducible
@given(st.lists(st.integers(1, 30), min_size=1, max_size=5))
def test_stacking_uses_the_highest_degree_and_loses_nothing(degrees):
    members = [ensemble(1, degree=degree)[0] for degree in degrees]
    stacked = Density.stack(members)
    assert stacked.space == Circle(max(degrees))
    assert stacked.shape == (len(degrees),)
    for member, density in zip(stacked, members, strict=True):
        np.testing.assert_array_equal(
            member.resample(density.space.degree).coefficients, density.coefficients
        )


def test_ensembles_can_be_stacked_to_ensembles():
    assert Density.stack([ensemble(2, 3), ensemble(2, 3)]).shape == (2, 2, 3)
    with pytest.raises(ValueError, match="at least one density"):
        Density.stack([])


def test_coefficients_are_a_copy_that_cannot_be_changed():
    c = np.array([1, 0.1 + 0j])
    mu = Density(Circle(1), c)
    c[1] = 9
    assert mu.moment(1) == 0.1
    for array in (mu.coefficients, mu.values):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


# Sampling ----------------------------------------------------------------------------------


def cumulative(mu, theta):
    """Mass between -pi and theta, by a fine trapezoidal rule and linear interpolation."""
    grid = np.linspace(-np.pi, np.pi, 40_001)
    values = mu.at(Circle.embed(grid))
    steps = (values[1:] + values[:-1]) / 2 / (grid.size - 1)
    return np.interp(theta, grid, np.concatenate([[0], np.cumsum(steps)]))


LAWS = {
    "uniform": Circle(2).uniform(),
    "one mode": Circle(4).fourier([1, 0.5]),
    "two clusters": 0.2 * Circle(128).von_mises(2.5, 90.0) + 0.8 * Circle(32).von_mises(-1, 5),
    "nearly a point": Circle(800).von_mises(0.7, 1e4),
}


@pytest.mark.parametrize("name", LAWS)
def test_a_sample_has_the_law_of_the_density(name):
    """Kolmogorov and Smirnov: a seeded sample whose p-value is nothing special."""
    mu, n = LAWS[name], 2000
    tokens = mu.sample(n, rng=1)
    theta = np.arctan2(tokens.x[:, 1], tokens.x[:, 0])
    # The rule's error, (2 pi / 40000)^2 times curvature, is far below 1/sqrt(n).
    assert kstest(theta, lambda t: cumulative(mu, t)).pvalue > 1e-3
    for k in (1, 2, 5):
        moment = tokens.expect(lambda x, k=k: (x[:, 0] + 1j * x[:, 1]) ** k)
        # 5 standard errors of a mean of unit vectors about their mean.
        error = np.sqrt((1 - abs(mu.moment(k)) ** 2) / n)
        assert abs(moment - mu.moment(k)) < 5 * error


@pytest.mark.bits
def test_a_seed_gives_one_sample_and_a_generator_moves_on():
    mu, rng = LAWS["one mode"], np.random.default_rng(3)
    np.testing.assert_array_equal(mu.sample(9, rng=3).x, mu.sample(9, rng=3).x)
    np.testing.assert_array_equal(mu.sample(9, rng=rng).x, mu.sample(9, rng=3).x)
    assert not np.isin(mu.sample(9, rng=rng).x, mu.sample(9, rng=3).x).any()


def test_a_sample_is_equally_weighted_unit_vectors():
    tokens = LAWS["one mode"].sample(7.0, rng=0)
    assert tokens.x.shape == (7, 2)
    np.testing.assert_array_equal(tokens.masses, 1 / 7)


@pytest.mark.parametrize("n", [0, -1, 2.5, "3", np.nan, np.inf], ids=repr)
def test_the_size_of_a_sample_is_a_whole_number(n):
    with pytest.raises(ValueError, match="n must be a whole number >= 1; got"):
        LAWS["one mode"].sample(n, rng=0)


def test_an_ensemble_is_sampled_member_by_member():
    with pytest.raises(ValueError, match=r"density\[i\].sample\(n\)"):
        ensemble(2).sample(5, rng=0)


def test_a_negative_density_has_no_sample():
    with pytest.raises(ValueError, match=r"negative; its minimum is -0\.2"):
        Density(Circle(8), [1, 0.6, *[0] * 7]).sample(5, rng=0)


# Judging -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("coefficients", "message"),
    [
        ([1, 0], r"\(..., 4\) on Circle\(degree=3\); got coefficients.shape = \(2,\)"),
        (1.0, r"coefficients.shape = \(\)"),
        ([1, np.nan, np.inf, 0], "2 are not"),
        ([1.5, 0, 0, 0], r"mass 1, its first coefficient; got a mass off by 0\.5"),
        ([[1, 0, 0, 0], [1j, 0, 0, 0]], r"mass off by 1\.41"),
    ],
    ids=["modes", "number", "nan", "mass", "member"],
)
def test_coefficients_must_be_those_of_a_density(coefficients, message):
    with pytest.raises(ValueError, match=message):
        Density(Circle(3), coefficients)


def test_the_mass_may_be_off_by_rounding_only():
    assert Density(Circle(1), [1 + 9e-13, 0]).mass == 1 + 9e-13
    with pytest.raises(ValueError, match="mass off by"):
        Density(Circle(1), [1 + 2e-12, 0])


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: x[1:], r"to values of shape \(\d+,\).*; got shape \(\d+, 2\)"),
        (lambda x: 1.0, r"f must map points \(\d+, 2\) .* got shape \(\)"),
    ],
    ids=["fewer", "number"],
)
def test_an_integrand_maps_points_to_numbers(f, message):
    with pytest.raises(ValueError, match=message):
        ensemble(2).expect(f)


def test_an_integrand_may_be_a_vector():
    mu = ensemble(2)
    parts = [mu.expect(lambda x, i=i: x[:, i]) for i in range(2)]
    np.testing.assert_allclose(mu.expect(lambda x: x), np.stack(parts, axis=-1), rtol=0, atol=1e-15)


@pytest.mark.parametrize("shape", [(), (5,), (4, 3)], ids=str)
def test_values_are_asked_for_at_unit_vectors(shape):
    with pytest.raises(ValueError, match=r"points.shape must be \(..., 2\).*circle.embed\(theta"):
        Circle(3).uniform().at(np.ones(shape))


def test_an_unresolved_density_warns_with_its_tail():
    mu = Density(Circle(8), [1, *[0] * 7, 3e-4])
    with pytest.warns(UnresolvedWarning, match=r"3\.0e-04, expected <= 1e-08"):
        mu.warn_if_unresolved()
    mu.warn_if_unresolved(tolerance=1e-3)  # a warning would be an error here


SHARP = [(Circle, lambda t: np.exp(50 * np.cos(t))), (Sphere, lambda x, y, z: np.exp(30 * z)),
         (lambda degree: Zonal(4, degree), lambda x: np.exp(30 * x))]  # fmt: skip


@pytest.mark.parametrize(("space", "f"), SHARP, ids=["circle", "sphere", "zonal"])
def test_a_degree_is_advised_that_resolves_the_density(space, f):
    """From degree 16: by the decay of its coefficients, not twice as high as needed."""
    with pytest.warns(UnresolvedWarning, match="Use a degree above 16: about") as caught:
        space(16).density(f)
    advised = int(re.search(r"about (\d+)", str(caught[0].message))[1])
    assert space(advised).density(f).spectral_tail <= 1e-8
    with pytest.warns(UnresolvedWarning):
        space(3 * advised // 4).density(f)


@pytest.mark.parametrize("degree", [64, 512])
def test_no_degree_beyond_the_largest_is_advised(degree):
    with pytest.warns(UnresolvedWarning, match="a smoother density.* degree 4096"):
        Circle(degree).density(lambda t: 1 + np.abs(np.sin(t)))


@pytest.mark.parametrize("width", [1.0, 2.0])
def test_no_degree_is_advised_without_steady_decay(width):
    """Coefficients of a box oscillate: no fit agrees with the largest of all three tails."""
    with pytest.warns(UnresolvedWarning, match=r"Use a degree above 16\.$"):
        Circle(16).density(lambda t: np.where(np.abs(t - np.pi) < width, 1.0, 0.0))


def test_a_density_may_touch_zero_to_rounding():
    touching = Density(Circle(8), [1, 0.5, *[0] * 7])
    assert touching.checked_positive() is touching
    with pytest.raises(ValueError, match="must not be negative"):
        Density(Circle(8), [1, 0.5 + 1e-9, *[0] * 7]).checked_positive()
