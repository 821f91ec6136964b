"""Transforms of eight columns and the lanes they run in, against numpy."""

import numpy as np
import pytest
from numba import njit

from meanfield.lowlevel.batched_fft import good_length, radices, transform, twiddles
from meanfield.lowlevel.simd import (
    LANES,
    address_of,
    load,
    spread,
    store,
    store_first_two,
    store_middle_two,
    sums_of,
    turned,
)

EPS = np.finfo(float).eps
LENGTHS = [4, 8, 12, 16, 20, 24, 60, 64, 96, 160, 200, 300, 320, 576, 1000, 4096]


@njit
def _transform(source, target, scratch, factors, table):
    transform(source, target, scratch, factors, table)


def values_of(spectrum):
    """`transform` of complex columns, (n, 8); what it reads must be left as it was."""
    n, factors = len(spectrum), radices(len(spectrum))
    source = np.stack([spectrum.real, spectrum.imag], axis=1)
    target, scratch = np.full_like(source, np.nan), np.full_like(source, np.nan)
    before = source.copy()
    addresses = (array.ctypes.data for array in (source, target, scratch))
    table = twiddles(factors)
    _transform(*addresses, np.array(factors), table.ctypes.data)
    assert source.shape == (n, 2, LANES) and np.array_equal(source, before, equal_nan=True)
    return target[:, 0] + 1j * target[:, 1]


@pytest.mark.repeats
@pytest.mark.parametrize("length", LENGTHS)
def test_values_are_those_of_numpy(length):
    rng = np.random.default_rng(length)
    spectrum = rng.standard_normal((length, LANES, 2)) @ [1, 1j]
    expected = np.fft.ifft(spectrum, axis=0, norm="forward")
    tolerance = 4 * EPS * np.log2(length) * np.sqrt(length)  # values are of size sqrt(length)
    np.testing.assert_allclose(values_of(spectrum), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("length", [12, 160])
def test_columns_do_not_mix(length):
    spectrum = np.zeros((length, LANES), dtype=complex)
    spectrum[3, 5] = 1
    values = values_of(spectrum)
    assert (np.delete(values, 5, axis=1) == 0).all()
    np.testing.assert_allclose(np.abs(values[:, 5]), 1, rtol=4 * EPS)


def test_what_is_not_finite_stays_in_its_column():
    spectrum = np.ones((24, LANES), dtype=complex)
    spectrum[7, 2] = np.nan
    finite = np.isfinite(values_of(spectrum))
    assert not finite[:, 2].any() and np.delete(finite, 2, axis=1).all()


@pytest.mark.repeats
@pytest.mark.parametrize("n", range(1, 700))
def test_a_good_length_is_long_enough_and_not_much_longer(n):
    length = good_length(n)
    assert n <= length <= max(n + 7, 4 / 3 * n) and length % 4 == 0
    assert np.prod(radices(length)) == length and set(radices(length)) <= {8, 5, 4, 3}


def test_a_length_with_other_factors_has_no_radices():
    assert radices(28) == [] and radices(44) == []
    assert radices(16) == [4, 4] and radices(128) == [8, 4, 4] and radices(480) == [8, 5, 4, 3]


# Lanes -------------------------------------------------------------------------------------


@njit
def _combined(a, b, target):
    x, y = load(address_of(a)), load(address_of(b))
    store(address_of(target), 2.0 * x + x * y - spread(1.0))


@njit
def _all_sums(rows, target):
    a = address_of(rows)
    x, y, z, t = load(a), load(a + 64), load(a + 128), load(a + 192)
    p, q, r, s = load(a + 256), load(a + 320), load(a + 384), load(a + 448)
    store(address_of(target), sums_of(x, y, z, t, p, q, r, s))


@njit
def _places(source, target):
    value, a = load(address_of(source)), address_of(target)
    store(a, turned(value))
    store_first_two(a + 72, value)
    store_middle_two(a + 96, value)


def test_arithmetic_acts_on_every_lane():
    a, b, found = np.arange(8.0), np.arange(8.0) ** 2, np.empty(8)
    _combined(a, b, found)
    np.testing.assert_array_equal(found, 2 * a + a * b - 1)


def test_sums_of_eight_values_are_in_their_order():
    rows, found = np.random.default_rng(0).standard_normal((8, 8)), np.empty(8)
    _all_sums(rows, found)
    np.testing.assert_allclose(found, rows.sum(axis=1), rtol=0, atol=20 * EPS)


def test_parts_are_stored_in_their_places():
    found = np.zeros(16)
    _places(np.arange(1.0, 9.0), found)
    np.testing.assert_array_equal(found[:8], [8, -7, 6, -5, 4, -3, 2, -1])
    np.testing.assert_array_equal(found[8:], [0, 1, 2, 0, 5, 6, 0, 0])
