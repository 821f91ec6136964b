"""Nodes on the circle: angles from the antipode of the limit, which lose no digits there."""

import numpy as np
import pytest

from meanfield import Circle
from meanfield.spaces.circle import CircleNodeChart

LIMITS = [0.0, 1.0, np.pi / 2, 2.7, np.pi, -2.0]
every_limit = pytest.mark.parametrize("limit", LIMITS, ids=lambda angle: f"{angle:.2f}")


def chart_at(angle):
    """The chart whose limit has this angle."""
    return CircleNodeChart(Circle(8), np.array([np.cos(angle), np.sin(angle)]))


@every_limit
def test_nodes_come_in_pairs_about_the_limit(limit):
    chart = chart_at(limit)
    angles, weights, _ = chart.nodes(256, 3)
    assert angles.shape == weights.shape == (256,)
    np.testing.assert_array_equal(angles[:128], -angles[128:])
    assert weights.sum() == pytest.approx(1, abs=1e-15)
    points = chart.points(angles)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1, rtol=0, atol=3e-16)
    np.testing.assert_allclose(points @ chart.limit, -np.cos(angles), rtol=0, atol=2e-15)


def test_an_odd_number_of_nodes_is_one_less():
    assert len(chart_at(0.3).nodes(257, 3)[0]) == 256


@every_limit
def test_moments_are_sums_over_the_nodes(limit):
    """Degree k of the recurrence errs by k roundings. Measured: 2e-15 at degree 40."""
    rng, chart = np.random.default_rng(0), chart_at(limit)
    angles, masses = rng.uniform(-4, 4, 700), rng.dirichlet(np.ones(700))
    found = chart.moments(angles, masses, 40)
    phi = np.arctan2(*chart.points(angles).T[::-1])
    expected = np.exp(-1j * np.arange(41)[:, None] * phi) @ masses
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-14)


@every_limit
def test_the_uniform_measure_has_no_moments(limit):
    """With half of the nodes neither; measured 6e-16."""
    angles, weights, halves = chart_at(limit).nodes(1024, 1)
    for chosen, factor in [(slice(None), 1), *((half, 2) for half in halves)]:
        moments = chart_at(limit).moments(angles[chosen], factor * weights[chosen], 8)
        np.testing.assert_allclose(moments, np.eye(9)[0], rtol=0, atol=5e-15)


@every_limit
def test_distances_from_the_antipode_keep_their_digits(limit):
    """Those of a node 1e-23 from it to one rounding, those of angles that went around to 1e-15."""
    chart = chart_at(limit)
    angles = np.array([1e-23, -3e-16, 1e-8, 0.5, -3.0, np.pi, 2 * np.pi + 0.25])
    expected = [1e-23, 3e-16, 1e-8, 0.5, 3.0, np.pi, 0.25]
    np.testing.assert_allclose(chart.distances(angles, -chart.limit), expected, rtol=5e-15)


@every_limit
def test_distances_are_those_of_the_points(limit):
    """Also of angles that went around; a few roundings of 7 + pi."""
    chart, rng = chart_at(limit), np.random.default_rng(1)
    angles, phi = rng.uniform(-7, 7, 50), rng.uniform(-np.pi, np.pi)
    point, points = np.array([np.cos(phi), np.sin(phi)]), chart.points(angles)
    across = points[:, 0] * point[1] - points[:, 1] * point[0]
    expected = np.arctan2(np.abs(across), points @ point)
    np.testing.assert_allclose(chart.distances(angles, point), expected, rtol=0, atol=5e-15)


def test_lengths_and_the_mean_direction():
    chart = chart_at(0.4)
    np.testing.assert_array_equal(chart.lengths(np.zeros(2), np.array([-2.0, 0.5])), [2, 0.5])
    opposite = np.array([0.3, 0.3 + np.pi])
    np.testing.assert_array_equal(chart.mean_direction(opposite, np.full(2, 0.5)), chart.limit)
    mean = chart.mean_direction(opposite, np.array([0.4, 0.6]))
    np.testing.assert_allclose(mean, chart.points(opposite[1:])[0], rtol=0, atol=1e-15)
