"""Nodes of axisymmetric densities: s = log tan(theta/2), which keeps digits at both poles."""

import numpy as np
import pytest
from scipy.special import eval_gegenbauer

from meanfield import Zonal
from meanfield.spaces.contract import dimension_of_harmonics
from meanfield.spaces.zonal import ZonalNodeChart

every_dimension = pytest.mark.parametrize("d", [2, 3, 8, 64])
both_limits = pytest.mark.parametrize("sign", [1.0, -1.0], ids=["e_d", "-e_d"])


def chart_at(d, sign=1.0):
    """The chart whose limit is e_d or -e_d."""
    return ZonalNodeChart(Zonal(d, 8), sign * np.eye(d)[-1])


def p(l, d, x):
    """Orthonormal: sqrt(dim H_l) P_l(x), P_l(1) = 1."""
    if d == 2:
        values = np.cos(l * np.arccos(x))
    else:
        values = eval_gegenbauer(l, d / 2 - 1, x) / eval_gegenbauer(l, d / 2 - 1, 1.0)
    return np.sqrt(dimension_of_harmonics(l, d)) * values


@every_dimension
@both_limits
def test_points_lie_on_one_meridian(d, sign):
    chart = chart_at(d, sign)
    s, weights, _ = chart.nodes(100, 3)
    points = chart.points(s)
    assert points.shape == (100, d) and weights.shape == (100,)
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1, rtol=0, atol=3e-16)
    theta = 2 * np.arctan(np.exp(s))
    np.testing.assert_allclose(points @ chart.limit, np.cos(theta), rtol=0, atol=3e-16)
    np.testing.assert_allclose(points[:, 0], np.sin(theta), rtol=0, atol=1e-15)


@every_dimension
@both_limits
def test_moments_are_sums_over_the_nodes(d, sign):
    """Of polynomials as large as sqrt(dim H_l), by which errors are measured."""
    chart, rng = chart_at(d, sign), np.random.default_rng(0)
    s, masses = rng.normal(0, 1, 600), rng.dirichlet(np.ones(600))
    found = chart.moments(s, masses, 12)
    x = chart.points(s)[:, -1]
    for l in range(13):
        scale = p(l, d, 1.0)
        assert found[l] / scale == pytest.approx(masses @ p(l, d, x) / scale, abs=2e-14)


@every_dimension
def test_the_uniform_measure_has_no_moments(d):
    s, weights, halves = chart_at(d).nodes(512, 1)
    for chosen, factor in [(slice(None), 1), *((half, 2) for half in halves)]:
        moments = chart_at(d).moments(s[chosen], factor * weights[chosen], 8)
        np.testing.assert_allclose(moments, np.eye(9)[0], rtol=0, atol=3e-14)


@both_limits
def test_distances_from_both_poles_keep_their_digits(sign):
    """theta = 2 arctan(e^s), a few roundings of s; 1e-24 from a pole s is -55."""
    chart = chart_at(3, sign)
    for theta in (1e-24, 1e-9, 0.3, 1.5):
        s = np.log(np.tan(theta / 2))
        near = chart.distances(np.array([s]), chart.limit)
        far = chart.distances(np.array([-s]), -chart.limit)
        assert near == far == pytest.approx(theta, rel=5e-14)
    angles = chart.distances(np.array([0.7, -0.7]), chart.limit)
    assert angles.sum() == pytest.approx(np.pi, rel=1e-15)


@both_limits
def test_lengths_are_those_of_the_points(sign):
    """By a difference quotient, whose error is h^2 / 6."""
    chart, s, h = chart_at(5, sign), np.linspace(-3, 3, 13), 1e-4
    rates = np.cos(s)
    moved = chart.points(s + h * rates) - chart.points(s - h * rates)
    lengths = np.linalg.norm(moved, axis=1) / (2 * h)
    np.testing.assert_allclose(chart.lengths(s, rates), lengths, rtol=0, atol=1e-8)


@both_limits
def test_the_mean_direction_is_a_pole(sign):
    chart, masses = chart_at(4, sign), np.array([0.5, 0.5])
    np.testing.assert_array_equal(chart.mean_direction(np.array([-1.0, 0.0]), masses), chart.limit)
    np.testing.assert_array_equal(chart.mean_direction(np.array([1.0, 0.0]), masses), -chart.limit)
    np.testing.assert_array_equal(chart.mean_direction(np.array([1.0, -1.0]), masses), chart.limit)
