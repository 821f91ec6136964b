"""Powers of n fitted to means over replicas, and their intervals."""

import numpy as np
import pytest

from meanfield.chaos import rate_of


def test_rates_are_those_of_powers():
    rng, sizes = np.random.default_rng(0), np.array([10, 100, 1000])
    values = 3 * sizes[:, None] ** -0.5 * (1 + 0.1 * rng.standard_normal((3, 400)))
    rate = rate_of(sizes, values)
    assert rate.exponent == pytest.approx(-0.5, abs=0.01) and rate.constant == pytest.approx(
        3, 0.02
    )
    assert rate.interval[0] < -0.5 < rate.interval[1] and "n^-0.5" in repr(rate)
    values[1, 200:] = np.nan
    assert rate_of(sizes, values).exponent == pytest.approx(-0.5, abs=0.01)


def test_rates_of_odd_tables():
    sizes = np.array([10, 40, 160])
    same = rate_of(sizes, np.broadcast_to(sizes[:, None] ** -0.5, (3, 4)))
    assert same.exponent == pytest.approx(-0.5) and np.ptp(same.interval) < 1e-9
    signs = np.array([0.1, -0.1, 0.1])[:, None] * np.ones((3, 5))
    assert np.isnan(rate_of(sizes, signs).exponent)
    values = sizes[:, None] ** -1.0 * np.random.default_rng(0).exponential(size=(3, 50))
    values[2] = np.nan  # a size that was not begun
    assert rate_of(sizes, values).exponent == rate_of(sizes[:2], values[:2]).exponent


@pytest.mark.repeats
@pytest.mark.parametrize("replicas", [2, 4, 16])
def test_intervals_of_few_replicas_are_not_too_short(replicas):
    rng, sizes, held = np.random.default_rng(2), np.array([10, 40, 160, 640]), 0
    for _ in range(200):
        values = sizes[:, None] ** -0.5 * rng.rayleigh(size=(4, replicas))
        low, high = rate_of(sizes, values).interval
        held += low < -0.5 < high
    assert held / 200 > 0.88


def test_intervals_hold_the_exponent_as_often_as_they_say():
    rng, sizes, held = np.random.default_rng(1), np.array([10, 40, 160]), 0
    for _ in range(200):
        values = sizes[:, None] ** -1.0 * rng.exponential(size=(3, 60))
        low, high = rate_of(sizes, values).interval
        held += low < -1 < high
    assert 0.88 < held / 200 <= 1
