"""Funk-Hecke multipliers: against their definition, their recurrence and 30 digits of mpmath."""

import tracemalloc
from math import comb, gamma

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainc, roots_jacobi

from meanfield import MeanfieldError
from meanfield.spaces.kernels import exponential_multipliers, quadrature_multipliers

DIMENSIONS = [2, 3, 4, 8]
reproducible = settings(deadline=None, derandomize=True, max_examples=60)
betas = st.floats(1e-2, 1e4)
dimensions = st.integers(2, 12)


def legendre(degree, d, t):
    """P_l with P_l(1) = 1 on S^(d-1), from its power series, l = 0, ..., degree."""
    if d == 2:
        return np.cos(np.arange(degree + 1)[:, None] * np.arccos(np.clip(t, -1, 1)))
    table = []
    for l in range(degree + 1):
        a = mpmath.mpf(d - 2) / 2
        scale = mpmath.gegenbauer(l, a, 1)
        table.append([float(mpmath.gegenbauer(l, a, x) / scale) for x in t])
    return np.array(table)


def harmonics(l, d):
    """Number of independent harmonics of degree l on S^(d-1)."""
    return comb(l + d - 1, d - 1) - (comb(l + d - 3, d - 1) if l >= 2 else 0)


def integral(f, c, d, nodes=80):
    """int f(<x, y>, <e, y>) dsigma(y) on S^(d-1) for <x, e> = c, by product quadrature."""
    s = np.sqrt(1 - c * c)
    if d == 2:
        angles = 2 * np.pi * np.arange(4 * nodes) / (4 * nodes)
        x, e = np.cos(angles - np.arccos(c)), np.cos(angles)
        return f(x, e).mean()
    first, first_weights = roots_jacobi(nodes, (d - 3) / 2, (d - 3) / 2)
    second, second_weights = roots_jacobi(nodes, (d - 4) / 2, (d - 4) / 2)
    weights = np.outer(first_weights / first_weights.sum(), second_weights / second_weights.sum())
    e = np.broadcast_to(first[:, None], weights.shape)
    x = c * first[:, None] + s * np.sqrt(1 - first[:, None] ** 2) * second
    return (weights * f(x, e)).sum()


# exp(beta t) -------------------------------------------------------------------------------


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("beta", [0.0, 0.5, -2.0, 9.0, -40.0])
def test_convolution_multiplies_a_zonal_harmonic(d, beta):
    """Funk and Hecke's law itself: int K(<x, y>) P_l(<e, y>) dsigma(y) = lambda_l P_l(<x, e>)."""
    multipliers = exponential_multipliers(beta, 3, d)
    for l, c in [(0, 0.3), (1, 0.3), (2, -0.6), (3, 0.8)]:

        def integrand(x, e, l=l):
            basis = np.polynomial.Polynomial(power_series(l, d))(e)
            return np.exp(beta * x - abs(beta)) * basis

        expected = multipliers[l] * legendre(3, d, [c])[l, 0]
        # The rule is exact to rounding for these entire functions; values are at most 1.
        assert integral(integrand, c, d) == pytest.approx(expected, rel=0, abs=1e-14)


def power_series(l, d):
    """Coefficients of P_l, l <= 3, on S^(d-1), written out by hand."""
    return {
        0: [1],
        1: [0, 1],
        2: [-1 / (d - 1), 0, d / (d - 1)],
        3: [0, -3 / (d - 1), 0, (d + 2) / (d - 1)],
    }[l]


@pytest.mark.repeats
@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("beta", [1e-9, 0.1, 0.7, 4.0, 30.0, 700.0, 2e8, 1e13])
def test_multipliers_have_the_digits_of_mpmath(d, beta):
    computed = exponential_multipliers(beta, 40, d)
    with mpmath.workdps(30):
        half, b = mpmath.mpf(d) / 2, mpmath.mpf(beta)
        factor = mpmath.gamma(half) * (2 / b) ** (half - 1) * mpmath.exp(-b)
        exact = [float(factor * mpmath.besseli(l + half - 1, b)) for l in range(41)]
    # AMOS states about 1e-13 relative for high orders; below 1e-290 doubles lose digits.
    np.testing.assert_allclose(computed, exact, rtol=2e-13, atol=1e-290)


@pytest.mark.parametrize("d", DIMENSIONS)
def test_zero_beta_has_the_constant_alone(d):
    np.testing.assert_array_equal(exponential_multipliers(0.0, 4, d), [1, 0, 0, 0, 0])


@pytest.mark.parametrize("d", DIMENSIONS)
def test_small_beta_tends_to_zero_beta_like_beta_over_d(d):
    for beta in (1e-3, 1e-6, -1e-6):
        first = exponential_multipliers(beta, 2, d)[1] * np.exp(abs(beta)) / beta
        # The next term of the Bessel series is beta^2 / (2 (d + 2)) relative.
        assert first == pytest.approx(1 / d, rel=beta**2 + 1e-14)


@reproducible
@given(betas, dimensions)
def test_multipliers_obey_the_recurrence_of_bessel_functions(beta, d):
    """I_{v-1} - I_{v+1} = (2v / beta) I_v at v = l + d/2 - 1."""
    m = exponential_multipliers(beta, 30, d)
    l = np.arange(1, 30)
    # The relative error of AMOS, as above, in differences of terms up to m[0].
    np.testing.assert_allclose(
        m[:-2] - m[2:], (2 * l + d - 2) / beta * m[1:-1], rtol=0, atol=2e-13 * m[0]
    )


@reproducible
@given(betas, dimensions)
def test_multipliers_of_attraction_are_positive_and_decreasing(beta, d):
    m = exponential_multipliers(beta, 12, d)
    assert (m > 0).all()
    assert (np.diff(m) < 1e-13 * m[0]).all()  # at large beta neighbours differ by rounding


@reproducible
@given(st.floats(1e-2, 50), dimensions)
def test_the_expansion_sums_to_the_kernel_at_one(beta, d):
    """K(1) = sum_l dim(H_l) lambda_l, which fixes the normalisation in every dimension."""
    dim = np.array([harmonics(l, d) for l in range(120)], dtype=float)
    # 120 terms, of size at most 1, with AMOS's relative error.
    assert exponential_multipliers(beta, 119, d) @ dim == pytest.approx(1, abs=1e-12)


@reproducible
@given(betas, dimensions)
def test_negative_beta_alternates_the_sign(beta, d):
    sign = (-1.0) ** np.arange(13)
    np.testing.assert_array_equal(
        exponential_multipliers(-beta, 12, d), sign * exponential_multipliers(beta, 12, d)
    )


def test_an_array_of_betas_is_its_entries():
    table = np.array([[0.0, 1.0, -3.0], [40.0, -700.0, 1e-5]])
    result = exponential_multipliers(table, 6, 3)
    assert result.shape == (2, 3, 7)
    for index, beta in np.ndenumerate(table):
        np.testing.assert_array_equal(result[index], exponential_multipliers(beta, 6, 3))


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("beta", [1e-320, 1e-110, 1e-9, 1e4, 1e9, 1e12, 1e300])
def test_every_entry_is_finite_whatever_beta_is(beta, d):
    m = exponential_multipliers(beta, 5, d)
    assert np.isfinite(m).all()
    assert (m[:-1] >= m[1:] * (1 - 1e-12)).all()  # decreasing, up to AMOS's rounding


# Any kernel --------------------------------------------------------------------------------


def rounding(d):
    """Relative error of a converged rule: its nodes are exact on the circle only.

    Elsewhere scipy computes them; for 2048 and more the weights next to t = 1, all that a
    narrow kernel sees, are good to 5e-11.
    """
    return 1e-13 if d == 2 else 1e-10


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize(("beta", "degree"), [(-3.0, 5), (12.0, 5), (12.0, 200), (150.0, 20)])
def test_quadrature_agrees_with_bessel_functions(d, beta, degree):
    """Degree 200 exceeds the first rule of 128 nodes, which would alias."""
    computed = quadrature_multipliers(lambda t: np.exp(beta * t - abs(beta)), degree, d)
    exact = exponential_multipliers(beta, degree, d)
    np.testing.assert_allclose(computed, exact, rtol=0, atol=rounding(d) * np.abs(exact).max())


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("l", [0, 1, 2, 3])
def test_a_harmonic_has_one_multiplier_one_over_its_multiplicity(d, l):
    computed = quadrature_multipliers(np.polynomial.Polynomial(power_series(l, d)), 6, d)
    expected = (np.arange(7) == l) / harmonics(l, d)
    np.testing.assert_allclose(computed, expected, rtol=0, atol=rounding(d))


@reproducible
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=12))
def test_on_the_circle_multipliers_are_half_the_chebyshev_series(series):
    computed = quadrature_multipliers(np.polynomial.Chebyshev(series), 15, 2)
    expected = np.pad(np.array(series) * ([1.0] + [0.5] * (len(series) - 1)), (0, 16 - len(series)))
    # Clenshaw's sum of 12 terms of size 5, then a mean of 256 values.
    np.testing.assert_allclose(computed, expected, rtol=0, atol=1e-13)


def doi_onsager(t):
    """-|sin| on the circle: smooth but for kinks at t = 1 and t = -1."""
    return -np.sqrt(1 - t**2)


def test_a_kernel_with_a_kink_is_resolved_to_its_rate():
    computed = quadrature_multipliers(doi_onsager, 20, 2)
    k = np.arange(0, 21, 2)
    # The midpoint rule errs by (pi / N)^2 / (6 pi) at a kink: 3e-11 for N = 2^17 nodes.
    np.testing.assert_allclose(computed[::2], 2 / np.pi / (k**2 - 1), rtol=0, atol=1e-10)
    np.testing.assert_allclose(computed[1::2], 0, rtol=0, atol=1e-10)  # even in t


def test_multipliers_of_a_kernel_with_a_kink_need_little_memory():
    """Of the order of the 2^17 nodes, not of nodes times degrees (8 GB at degree 4096)."""
    tracemalloc.start()
    try:
        quadrature_multipliers(doi_onsager, 48, 2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 * 2**17 * 8  # twenty arrays of that length


@pytest.mark.parametrize("d", [2, 3])
def test_a_kernel_with_a_jump_is_refused(d):
    with pytest.raises(MeanfieldError, match=r"Interaction\.chebyshev"):
        quadrature_multipliers(lambda t: np.sign(t - 0.3), 4, d)


def test_the_tolerance_that_was_missed_is_named():
    with pytest.raises(MeanfieldError, match=r"tolerance = 1e-08,"):
        quadrature_multipliers(lambda t: np.sin(1e9 * t), 4, 3, tolerance=1e-8)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda t: 1.0, r"got shape \(\)"),
        (lambda t: t[:3], r"got shape \(3,\)"),
        (lambda t: np.where(t > 0, np.nan, t), "64 that are not finite, the first at t = 0.9999"),
    ],
    ids=["number", "short", "nan"],
)
def test_a_kernel_must_map_arrays_to_finite_arrays(kernel, message):
    with pytest.raises(ValueError, match=message):
        quadrature_multipliers(kernel, 4, 2)


@pytest.mark.parametrize(("beta", "dimension"), [(40.0, 1024), (100.0, 1024), (25.0, 300)])
def test_multipliers_do_not_underflow_with_the_bessel_function(beta, dimension):
    """I_511(40) is below 1e-308, the mean of exp(40 (t - 1)) is not; errors of lgamma: 1e-12."""
    found = exponential_multipliers(beta, 6, dimension)
    expected = quadrature_multipliers(lambda t: np.exp(beta * (t - 1)), 6, dimension)
    np.testing.assert_allclose(found[:3], expected[:3], rtol=1e-9)


@pytest.mark.parametrize("d", [2, 3, 4, 8])
def test_kinks_and_jumps_are_found(d):
    """E max(t, 0) and E t max(t, 0) = 1/(2d); of the step function E t 1_{t>0} = E max(t, 0)."""
    mean = gamma(d / 2) / gamma((d + 1) / 2) / (2 * np.sqrt(np.pi))
    found = quadrature_multipliers(lambda t: np.maximum(t, 0), 8, d)
    np.testing.assert_allclose(found[:2], [mean, 1 / (2 * d)], rtol=0, atol=1e-15)
    step = quadrature_multipliers(lambda t: np.where(t > 0, 1.0, 0.0), 8, d, continuous=False)
    np.testing.assert_allclose(step[:2], [0.5, mean], rtol=0, atol=1e-12)


@pytest.mark.parametrize("dimension", [2, 3, 5])
@pytest.mark.parametrize("cut", [0.999, 0.9999, 0.99999, 0.999999, -0.99999])
def test_a_jump_beyond_the_outermost_nodes_is_not_overlooked(dimension, cut):
    """E[1 + (t > cut)] = 1 + P(t > cut), an incomplete beta function; to the narrowest angle."""
    found = quadrature_multipliers(lambda t: 1.0 + (t > cut), 4, dimension, continuous=False)
    half = (dimension - 1) / 2
    above = betainc(half, half, (1 - cut) / 2)
    assert found[0] == pytest.approx(1 + above, abs=1e-13)
