"""Densities from data: files, samples, and the bandwidth that the plug-in rule chooses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meanfield import Circle, MeanfieldError, UnresolvedWarning
from meanfield.spaces.samples import checked_sample, plug_in_bandwidth

reproducible = settings(deadline=None, derandomize=True, max_examples=40)
ANGLES = np.array([0.1, -2.5, 3.0, 7.25])
CIRCLE, LAWS = Circle(128), Circle(64)


def sample(density, n, seed):
    """Angles of n tokens with this density."""
    x = density.sample(n, rng=seed).x
    return np.arctan2(x[:, 1], x[:, 0])


def integrated_error(density, n, bandwidth):
    """E int (estimate - density)^2 dsigma: exact, by Parseval and independence."""
    k = np.arange(1, density.coefficients.size)
    power = np.abs(density.coefficients[1:]) ** 2
    kept = np.exp(-0.5 * np.multiply.outer(np.square(bandwidth), k**2))
    return 2 * (power * (1 - kept) ** 2 + kept**2 * (1 - power) / n).sum(axis=-1)


# The estimate ------------------------------------------------------------------------------


@reproducible
@given(st.lists(st.floats(-9, 9), min_size=2, max_size=20), st.floats(0.1, 2))
def test_an_estimate_is_a_sum_of_wrapped_normal_kernels(angles, bandwidth):
    mu = CIRCLE.estimate(np.array(angles), bandwidth)
    turns = 2 * np.pi * np.arange(-5, 6)
    distance = CIRCLE.angles[:, None, None] - np.array(angles)[:, None] - turns
    kernel = np.exp(-0.5 * (distance / bandwidth) ** 2).sum(axis=-1)
    expected = kernel.mean(axis=-1) * np.sqrt(2 * np.pi) / bandwidth
    # Modes beyond 128 are below e^{-128^2/200} < 1e-35, images beyond 5 turns below e^{-40}
    # of 2 radians; rounding of values up to 25 summed over 128 modes.
    np.testing.assert_allclose(mu.values, expected, rtol=0, atol=1e-11)
    assert mu.minimum > -1e-11


def test_angles_vectors_and_files_give_the_same_density(tmp_path):
    vectors = CIRCLE.embed(ANGLES)
    np.save(tmp_path / "angles.npy", ANGLES)
    np.save(tmp_path / "vectors.npy", vectors)
    np.savetxt(tmp_path / "angles.csv", ANGLES)
    np.savetxt(tmp_path / "vectors.csv", vectors, delimiter=",", header="x,y", comments="")
    expected = CIRCLE.estimate(ANGLES, 0.3).coefficients
    samples = [vectors, list(ANGLES), tmp_path / "vectors.npy", str(tmp_path / "vectors.csv")]
    for source in [*samples, tmp_path / "angles.npy", str(tmp_path / "angles.csv")]:
        # Angles and vectors differ by a rounding of each angle, times the degree.
        np.testing.assert_allclose(
            CIRCLE.estimate(source, 0.3).coefficients, expected, rtol=0, atol=1e-13
        )


@pytest.mark.parametrize("bandwidth", [0, -0.1, np.nan, np.inf])
def test_a_bandwidth_is_positive(bandwidth):
    with pytest.raises(ValueError, match=r"bandwidth .* > 0"):
        CIRCLE.estimate(ANGLES, bandwidth)


def test_a_bandwidth_below_the_resolution_is_reported_where_it_was_asked_for():
    with pytest.warns(UnresolvedWarning, match="Use a degree above 128") as caught:
        CIRCLE.estimate(ANGLES, 0.01)
    assert caught[0].filename == __file__


# Samples -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [np.ones(1), np.empty(0), np.ones((3, 3)), np.ones((2, 2, 2)), np.ones((1, 2)), 3.0],
    ids=lambda value: str(np.shape(value)),
)
def test_a_sample_has_at_least_two_points_of_the_circle(values):
    with pytest.raises(ValueError, match=r"angles \(n,\) .*principal_circle"):
        CIRCLE.estimate(values)


def test_values_that_are_not_finite_are_counted():
    with pytest.raises(ValueError, match="2 nan or inf"):
        checked_sample([0.1, np.nan, np.inf], 2)


def test_vectors_must_have_length_one():
    with pytest.raises(ValueError, match=r"the worst length is off by 0\.5"):
        checked_sample([[1, 0], [0, 1.5]], 2)


@reproducible
@given(st.lists(st.floats(-3.1, 3.1), min_size=2, max_size=20))
def test_unit_vectors_give_back_their_angles(angles):
    # One rounding of cos, sin and atan2 each.
    np.testing.assert_allclose(checked_sample(Circle.embed(angles), 2), angles, rtol=0, atol=1e-15)


# The bandwidth rule ------------------------------------------------------------------------


MIXTURES = {
    "one cluster": LAWS.von_mises(0, 4.0),
    "two clusters": 0.5 * LAWS.von_mises(0, 20.0) + 0.5 * LAWS.von_mises(2.0, 5.0),
    "broad": LAWS.von_mises(0, 1.0),
    "three clusters": 0.2 * LAWS.von_mises(-2, 60.0)
    + 0.3 * LAWS.von_mises(0.0, 60.0)
    + 0.5 * LAWS.von_mises(2, 10.0),
}


@pytest.mark.repeats
@pytest.mark.parametrize("name", MIXTURES)
def test_the_bandwidth_is_nearly_the_best_there_is(name):
    """Its mean integrated squared error is within 10 per cent of an oracle's."""
    density, n = MIXTURES[name], 4000
    best = integrated_error(density, n, np.geomspace(0.01, 3, 2000)).min()
    chosen = [plug_in_bandwidth(sample(density, n, seed)) for seed in range(3)]
    # The rule's own scatter is n^(-5/14), some 5 per cent, and enters squared.
    assert integrated_error(density, n, np.array(chosen)).max() < 1.1 * best


def test_the_bandwidth_shrinks_like_the_fifth_root_of_the_sample():
    density, sizes = MIXTURES["one cluster"].resample(24), (1000, 16_000)
    logs = [
        np.mean([np.log(plug_in_bandwidth(sample(density, n, seed))) for seed in range(4)])
        for n in sizes
    ]
    rate = (logs[1] - logs[0]) / np.log(sizes[1] / sizes[0])
    # 7 per cent scatter over log 16, from 4 samples, and a bias of order n^(-2/7) at n = 1000.
    assert rate == pytest.approx(-1 / 5, abs=0.03)


def test_the_bandwidth_does_not_depend_on_where_zero_is():
    angles = sample(MIXTURES["two clusters"], 500, 0)
    reference = plug_in_bandwidth(angles)
    for moved in (angles + 1.3, -angles, angles + 2 * np.pi, np.flip(angles)):
        assert plug_in_bandwidth(moved) == pytest.approx(reference, rel=1e-9)  # root finding


@pytest.mark.parametrize("width", [0.1, 0.01, 1e-3, 1e-5])
def test_the_bandwidth_follows_the_width_of_a_narrow_sample(width):
    """A normal sample of 1000 has the best bandwidth 1.06 n^(-1/5) = 0.266 of its width."""
    angles = width * np.random.default_rng(0).standard_normal(1000)
    # The rule's scatter at n = 1000 is below 10 per cent.
    assert plug_in_bandwidth(angles) == pytest.approx(0.266 * width, rel=0.1)


def test_a_narrow_sample_with_strays_is_not_taken_for_uniform():
    """990 tokens within 1e-4 of each other, 10 anywhere: as at the end of a clustering run."""
    rng = np.random.default_rng(0)
    angles = np.append(1e-4 * rng.standard_normal(990), rng.uniform(-np.pi, np.pi, 10))
    assert plug_in_bandwidth(angles) < 0.01  # a hundred widths; the uniform density has pi


@pytest.mark.repeats
@pytest.mark.parametrize("n", [10, 100, 1000, 10_000])
def test_a_uniform_sample_gives_a_nearly_uniform_density(n):
    mu = CIRCLE.estimate(np.random.default_rng(n).uniform(-np.pi, np.pi, n))
    # Modes of a uniform sample have size n^(-1/2); the rule keeps a few of them at most.
    assert np.abs(mu.values - 1).max() < 5 / np.sqrt(n)


@pytest.mark.parametrize(
    "angles", [np.arange(16) * np.pi / 8, np.array([0, np.pi])], ids=["sixteen", "opposite"]
)
def test_equally_spaced_points_have_some_bandwidth(angles):
    assert 0 < plug_in_bandwidth(angles) <= np.pi


def test_a_sample_of_one_repeated_point_is_no_density():
    """Its best bandwidth is 0: neither a smooth density nor, least of all, the uniform one."""
    with pytest.raises((ValueError, MeanfieldError), match="bandwidth"):
        CIRCLE.estimate(np.full(50, 0.3))
