"""The transforms: what they compute, that they are planned alike, and their errors."""

import gc
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba import njit

from meanfield import MeanfieldError
from meanfield.lowlevel import fourier
from meanfield.lowlevel.callbacks import call
from meanfield.lowlevel.fourier import RealTransform, fftw_version, good_length

EPS = np.finfo(float).eps
reproducible = settings(deadline=None, derandomize=True, max_examples=60)

LENGTHS = [2, 4, 6, 10, 30, 128, 200, 1458, 3072]


@njit
def _execute(function, plan, source, target):
    call(function, plan, source, target)


def inverse(transform):
    """Run the inverse transform on the buffers."""
    _execute(*transform.inverse, transform.spectrum.ctypes.data, transform.values.ctypes.data)


def forward(transform):
    """Run the forward transform on the buffers."""
    _execute(*transform.forward, transform.values.ctypes.data, transform.spectrum.ctypes.data)


def random_spectrum(n, rows, seed=0):
    """Half spectra of real signals: entries 0 and n/2 are real."""
    rng = np.random.default_rng(seed)
    spectrum = rng.standard_normal((rows, n // 2 + 1, 2)) @ [1, 1j]
    spectrum[:, [0, -1]] = spectrum[:, [0, -1]].real
    return spectrum


def synthesis(spectrum, n):
    """The definition: sum over |k| <= n/2, the last entry counted once."""
    k = np.arange(n // 2 + 1)
    both_signs = np.where((k == 0) | (k == n // 2), 1.0, 2.0)
    waves = np.exp(2j * np.pi * (np.outer(k, np.arange(n)) % n) / n)
    return ((both_signs * spectrum) @ waves).real


# Lengths -----------------------------------------------------------------------------------


def has_only_factors_2_3_5(n):
    for prime in (2, 3, 5):
        while n % prime == 0:
            n //= prime
    return n == 1


@reproducible
@given(st.integers(1, 200_000))
@example(16_384)
@example(16_385)
def test_a_good_length_is_long_enough_even_and_has_small_factors(n):
    length = good_length(n)
    assert length >= n
    assert length % 2 == 0
    assert has_only_factors_2_3_5(length)
    assert good_length(length) == length  # the shortest of its kind: none lies between


@reproducible
@given(st.integers(1, 200_000), st.integers(1, 200_000))
def test_good_lengths_grow_with_what_is_asked_for(n, m):
    assert (good_length(n) <= good_length(m)) or n > m


@reproducible
@given(st.integers(12, 200_000))
def test_good_lengths_waste_less_than_two_thirds(n):
    """The widest relative gap between fast lengths is from 20 to 32; large ones are dense."""
    assert good_length(n) <= 32 / 21 * n
    if n > 2000:
        assert good_length(n) <= 1.26 * n  # from 2048 to 2560 and from 5120 to 6400


# The planned transforms --------------------------------------------------------------------


@pytest.mark.repeats
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_inverse_is_the_trigonometric_sum_in_every_row(n, rows):
    transform, spectrum = RealTransform(n, rows), random_spectrum(n, rows)
    transform.spectrum[:, : n // 2 + 1] = spectrum
    inverse(transform)
    # The sum of n/2 terms of size 1 by definition: rounding grows like its norm sqrt(n).
    np.testing.assert_allclose(
        transform.values[:, :n], synthesis(spectrum, n), rtol=0, atol=40 * EPS * np.sqrt(n)
    )


@pytest.mark.parametrize("n", LENGTHS)
def test_forward_undoes_inverse_up_to_the_factor_n(n):
    transform, spectrum = RealTransform(n, 1), random_spectrum(n, 1)
    transform.spectrum[:, : n // 2 + 1] = spectrum
    inverse(transform)
    forward(transform)
    # Two transforms of O(log n) roundings each, of entries of size 1.
    np.testing.assert_allclose(
        transform.spectrum[:, : n // 2 + 1] / n, spectrum, rtol=0, atol=100 * EPS
    )


def test_forward_takes_the_first_row_only():
    transform = RealTransform(30, rows=3)
    transform.values[:] = np.random.default_rng(1).standard_normal(transform.values.shape)
    expected = np.fft.rfft(transform.values[0, :30])
    transform.spectrum[:] = 7
    forward(transform)
    # 30 terms of size 1.
    np.testing.assert_allclose(transform.spectrum[0, :16], expected, rtol=0, atol=100 * EPS)
    assert (transform.spectrum[1:] == 7).all()


def test_every_row_starts_on_a_cache_line():
    for n in LENGTHS:
        transform = RealTransform(n, rows=3)
        for row in (*transform.spectrum, *transform.values):
            assert row.ctypes.data % 64 == 0


@pytest.mark.bits
def test_equal_transforms_give_equal_bits():
    """FFTW_ESTIMATE plans without timing, so a restart reproduces a run exactly."""
    results = []
    for _ in range(3):
        transform = RealTransform(1458, rows=2)
        transform.spectrum[:, :730] = random_spectrum(1458, 2)
        inverse(transform)
        results.append(transform.values[:, :1458].tobytes())
    assert len(set(results)) == 1


def test_plans_are_not_timed_unless_asked(monkeypatch):
    """A timed plan differs between runs, in speed and in its last bits."""
    estimate, plan, used = 64, fourier._plan, []  # FFTW_ESTIMATE in fftw3.h
    monkeypatch.setattr(fourier, "_plan", lambda *given: used.append(given[-1]) or plan(*given))
    RealTransform(30, rows=2)
    assert used == [estimate, estimate]
    RealTransform(30, rows=2, measure=True)
    assert used[2:] == [0, 0]  # FFTW_MEASURE


def test_a_measured_plan_computes_the_same_transform():
    transform, spectrum = RealTransform(200, 1, measure=True), random_spectrum(200, 1)
    transform.spectrum[:, :101] = spectrum
    inverse(transform)
    # As above: rounding of a sum of norm sqrt(200).
    np.testing.assert_allclose(
        transform.values[:, :200], synthesis(spectrum, 200), rtol=0, atol=40 * EPS * np.sqrt(200)
    )


def test_plans_die_with_their_transform():
    transform = RealTransform(30, rows=2)
    alive = weakref.ref(transform)
    del transform
    gc.collect()
    assert alive() is None


# The convenient transforms -----------------------------------------------------------------


@reproducible
@given(st.integers(1, 40), st.integers(0, 9), st.sampled_from([(), (3,), (2, 3)]))
def test_values_and_coefficients_are_inverse_to_each_other(degree, excess, ensemble):
    rng = np.random.default_rng(degree)
    coefficients = rng.standard_normal((*ensemble, degree + 1, 2)) @ [1, 1j]
    coefficients[..., 0] = 1
    values = fourier.to_values(coefficients, 2 * degree + 1 + excess)
    assert values.shape == (*ensemble, 2 * degree + 1 + excess)
    back = fourier.to_coefficients(values, degree)
    np.testing.assert_allclose(back, coefficients, rtol=0, atol=100 * EPS)  # rounding only


def test_coefficient_k_is_the_wave_exp_ik_theta():
    theta = 2 * np.pi * np.arange(20) / 20
    for k in range(1, 8):
        coefficients = (np.arange(8) == k) * (0.5 - 0.25j)
        values = fourier.to_values(coefficients, 20)
        # Rounding of the arguments of cos and sin, which reach 7 times 2 pi.
        np.testing.assert_allclose(
            values, np.cos(k * theta) + 0.5 * np.sin(k * theta), rtol=0, atol=100 * EPS
        )


# The library -------------------------------------------------------------------------------


def test_version_is_that_of_fftw_3():
    assert fftw_version().startswith("fftw-3.")


def test_a_pyfftw_without_fftw_is_told_how_to_be_repaired(monkeypatch, tmp_path):
    """Files that are no libraries are passed over, and one that is not linked to FFTW."""
    import _ctypes

    (tmp_path / "pyfftw.pyx").write_text("a source file")
    (tmp_path / "pyfftw.so").write_bytes(Path(_ctypes.__file__).read_bytes())
    found = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(fourier.importlib.util, "find_spec", lambda name: found)
    with pytest.raises(MeanfieldError, match="Reinstall pyfftw"):
        fourier._library.__wrapped__()


def test_an_impossible_length_is_refused():
    with pytest.raises(MeanfieldError, match="could not plan a transform of length 0"):
        RealTransform(0, rows=1)
