"""The exponential function of compiled loops, against numpy's."""

import numpy as np
import pytest
from numba import njit

from meanfield.lowlevel.simd import exponential


@njit(fastmath={"contract", "reassoc", "nsz"})
def in_order(y, values):
    for i in range(y.size):
        values[i] = exponential(y[i])


@njit(fastmath={"contract", "reassoc", "nsz"})
def total(y):
    """A sum that may be reordered, as the engines' sums."""
    sum_ = 0.0
    for i in range(y.size):
        sum_ += exponential(y[i])
    return sum_


def values(y):
    found = np.empty(len(y))
    in_order(np.asarray(y, dtype=float), found)
    return found


@pytest.mark.parametrize("low, high", [(-708, 0), (-1, 0), (-1e-9, 0), (0, 709)])
def test_accurate_to_two_units_in_the_last_place(low, high):
    y = np.random.default_rng(0).uniform(low, high, 100_000)
    expected = np.exp(y)
    assert (np.abs(values(y) - expected) <= 2 * np.spacing(expected)).all()


def test_small_ones_vanish():
    assert values([0.0, -0.0]).tolist() == [1.0, 1.0]
    assert (values([-708.001, -745.0, -1e5, -1e300, -np.inf]) == 0).all()
    assert values([-708.0])[0] == pytest.approx(np.exp(-708.0), rel=1e-15)


def test_nan_stays_nan():
    assert np.isnan(values([np.nan])).all()


def test_a_loop_that_reorders_sums_keeps_the_exponential():
    y = np.random.default_rng(1).uniform(-700, 0, 1000)
    assert total(y) == pytest.approx(np.exp(y).sum(), rel=1e-14)
