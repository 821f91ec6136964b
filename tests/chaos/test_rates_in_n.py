"""Powers of n fitted to means over replicas, and their intervals."""

from types import SimpleNamespace

import numpy as np
import pytest

from meanfield.chaos import Study, rate_of


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


def test_sizes_count_by_the_precision_of_their_means():
    """The exponent of the weighted least squares, from the normal equations by hand."""
    rng, sizes = np.random.default_rng(3), np.array([10.0, 40, 160])
    spread = np.array([0.02, 0.02, 0.9])[:, None]
    values = sizes[:, None] ** -0.5 * (1 + spread * rng.standard_normal((3, 50)))
    means = values.mean(axis=1)
    w = (means / (values.std(axis=1, ddof=1) / 50**0.5)) ** 2
    x, y = np.log(sizes), np.log(means)
    x0, y0 = (w @ x) / w.sum(), (w @ y) / w.sum()
    slope = (w @ ((x - x0) * (y - y0))) / (w @ (x - x0) ** 2)
    assert rate_of(sizes, values).exponent == pytest.approx(slope, rel=1e-12)
    assert abs(np.polyfit(x, y, 1)[0] - slope) > 1e-3  # without weights


def weak_study(limits, errors, noise=0.0):
    """A study with one functional F: `limits` at two times, and weak errors (sizes, times)."""
    xr = pytest.importorskip("xarray")
    errors = np.asarray(errors)[:, :, None]
    draws = noise * np.random.default_rng(0).standard_normal((*errors.shape[:2], 64))
    draws -= draws.mean(axis=-1, keepdims=True)
    values = np.asarray(limits)[None, :, None] + errors + draws
    tables = {"F": (("n", "t", "replica"), values), "limit of F": ("t", np.asarray(limits))}
    attributes = {"distances": [], "functionals": ["F"], "model": "", "status": "finished"}
    coordinates = {"n": [10, 100, 1000][: len(values)], "t": [0.5, 1.0]}
    law = SimpleNamespace(final=SimpleNamespace(space=None))
    return Study(xr.Dataset(tables, coordinates, attributes), law)


def test_weak_errors_are_taken_from_the_limit_at_their_time():
    n = np.array([10.0, 100, 1000])
    found = weak_study([0.3, 0.7], np.stack([2 / n, 5 / n**2], axis=1), 1e-9)
    early, late = found.weak_rate("F", t=0.5), found.weak_rate("F")
    assert early.exponent == pytest.approx(-1, abs=1e-4)
    assert early.constant == pytest.approx(2, rel=1e-3)
    assert late.exponent == pytest.approx(-2, abs=1e-2)


def test_weak_errors_below_three_standard_errors_are_left_out():
    n, noise = np.array([10.0, 100, 1000]), 0.04  # standard errors of 0.005
    errors = np.stack([1 / n, np.array([0.1, 0.025, -0.001])], axis=1)
    found = weak_study([0.3, 0.7], errors, noise).weak_rate("F")
    assert found.exponent == pytest.approx(np.log10(0.25), abs=1e-6)  # of 10 and 100 alone
    assert np.isnan(weak_study([0.3, 0.7], errors, 0.2).weak_rate("F", t=0.5).exponent)
