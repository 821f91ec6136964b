"""Nodes on S^2: graded latitudes about the limit times longitudes, as unit vectors."""

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from scipy.special import sph_harm_y

from meanfield import Sphere
from meanfield.spaces.sphere import SphereNodeChart

LIMITS = {
    "z": [0, 0, 1.0],
    "-z": [0, 0, -1.0],
    "x": [1.0, 0, 0],
    "-y": [0, -1.0, 0],
    "oblique": [2 / 3, -1 / 3, 2 / 3],
}
every_limit = pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)


def chart_at(limit):
    """The chart with this limit."""
    return SphereNodeChart(Sphere(8), np.array(limit))


@every_limit
def test_nodes_are_latitudes_about_the_limit(limit):
    chart = chart_at(limit)
    points, weights, (latitudes, longitudes) = chart.nodes(64 * 32, 5)
    assert points.shape == (64 * 32, 3) and weights.sum() == pytest.approx(1, abs=1e-15)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1, rtol=0, atol=3e-16)
    heights = (points @ chart.limit).reshape(64, 32)
    np.testing.assert_allclose(heights, heights[:, :1] * np.ones(32), rtol=0, atol=1e-15)
    assert (np.diff(heights[:, 0]) <= 1e-15).all()  # from the limit to its antipode
    assert latitudes.sum() == longitudes.sum() == 1024


@every_limit
def test_a_density_has_two_longitudes_for_each_of_its_waves(limit):
    points, _, _ = chart_at(limit).nodes(16384, 20)
    heights = np.round(points @ limit, 12)
    assert np.unique(heights, return_counts=True)[1].min() >= 2 * (20 + 1)


@every_limit
def test_the_uniform_measure_has_no_moments(limit):
    """Scattered transforms have the accuracy 1e-12 of the norm. Measured: 1.4e-13."""
    points, weights, halves = chart_at(limit).nodes(16384, 1)
    for chosen, factor in [(slice(None), 1), *((half, 2) for half in halves)]:
        moments = chart_at(limit).moments(points[chosen], factor * weights[chosen], 8)
        np.testing.assert_allclose(moments, np.eye(45)[0], rtol=0, atol=1e-12)


def test_moments_are_sums_over_the_nodes():
    """Of harmonics without the phase of Condon and Shortley. Measured: 2e-14."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((300, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    masses = rng.dirichlet(np.ones(300))
    theta, phi = np.arccos(points[:, 2]), np.arctan2(points[:, 1], points[:, 0])
    expected = [
        masses @ np.conj(np.sqrt(4 * np.pi) * (-1.0) ** m * sph_harm_y(l, m, theta, phi))
        for m in range(11)
        for l in range(m, 11)
    ]
    found = chart_at([0, 0, 1.0]).moments(points, masses, 10)
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-13)


@seed(0)
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(-12, 0.4))
def test_distances_keep_their_digits_at_any_point(number, exponent):
    """A point turned by an angle of 1e-12 and more is at that distance, to 1e-16 absolutely."""
    rng, angle = np.random.default_rng(number), 10**exponent
    point, across = Rotation.random(random_state=rng).as_matrix()[:2]
    moved = np.cos(angle) * point + np.sin(angle) * across
    chart = chart_at([0, 0, 1.0])
    assert chart.distances(moved[None], point)[0] == pytest.approx(angle, abs=5e-16)
    assert chart.distances(-moved[None], point)[0] == pytest.approx(np.pi - angle, abs=2e-15)


def test_what_is_off_the_sphere_goes_to_the_nearest_point():
    chart = chart_at([0, 0, 1.0])
    np.testing.assert_array_equal(chart.projected(np.array([[0, 0, 1.1]])), [[0, 0, 1]])
    assert chart.lengths(np.zeros((1, 3)), np.array([[3.0, 4.0, 0.0]])) == [5]
    poles = np.array([[0, 0, 1.0], [0, 0, -1.0]])
    np.testing.assert_array_equal(chart.mean_direction(poles, np.full(2, 0.5)), chart.limit)
