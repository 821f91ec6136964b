"""Latitudes and Legendre sums against closed forms, numpy and scipy."""

import numpy as np
import pytest
from numba import njit
from numpy.polynomial.legendre import leggauss
from scipy.special import assoc_legendre_p, gammaln

from meanfield.lowlevel import legendre
from meanfield.lowlevel.legendre import BLOCK, gauss, recurrence, rules_at, two_steps
from meanfield.spaces.latitudes import Latitudes

EPS = np.finfo(float).eps
DIMENSIONS = [2, 3, 4, 8, 64, 1024]


# Only compiled code calls these.


@njit
def fold(m, address, *arguments):
    return legendre.fold(m, rules_at(address), *arguments)


@njit
def unfold(m, address, *arguments):
    legendre.unfold(m, rules_at(address), *arguments)


@njit
def synthesise(m, address, *arguments):
    legendre.synthesise(m, rules_at(address), *arguments)


@njit
def analyse(m, address, *arguments):
    legendre.analyse(m, rules_at(address), *arguments)


def moment(power, dimension):
    """E t^power for t = <x, e>, x uniform on S^(d-1); t^2 is Beta(1/2, (d-1)/2)."""
    half = power / 2
    beta = gammaln(half + 0.5) - gammaln(0.5) + gammaln(dimension / 2)
    return np.exp(beta - gammaln(half + dimension / 2))


def legendre_table(degree, order, x, dimension=3):
    """p_m, ..., p_degree at x, (latitudes, degrees), by the recurrence in its simplest form."""
    e = recurrence(degree + 1, order, dimension)
    start = Latitudes(4, degree, order).start  # at other latitudes; only its law is used
    assert start.shape == (order + 1, 4)
    sine = np.sqrt((1 - x) * (1 + x))
    steps = np.sqrt((2 * np.arange(1, order + 1) + 1) / (2 * np.arange(1, order + 1)))
    table = [np.prod(steps) * sine**order]
    before = np.zeros_like(x)
    for l in range(order, degree):
        after = (x * table[-1] - e[l] * before) / e[l + 1]
        before = table[-1]
        table.append(after)
    return np.stack(table, axis=1)


def scipy_table(degree, order, x):
    """The same from scipy, whose functions are of norm 1 in dx and carry a sign (-1)^m."""
    l = np.arange(order, degree + 1)
    values = assoc_legendre_p(l, order, x[:, None], norm=True)[0]
    return np.sqrt(2) * (-1.0) ** order * values


# Gauss rules -------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("size", [1, 2, 3, 8, 33, 100])
def test_gauss_rules_are_exact_to_degree_two_n_minus_one(dimension, size):
    """Even moments relative to themselves, positive sums; odd ones vanish by symmetry."""
    nodes, weights = gauss(size, dimension)
    assert nodes.shape == weights.shape == (size,) and (weights > 0).all()
    assert (np.diff(nodes) < 0).all() and (np.abs(nodes) < 1).all()
    np.testing.assert_allclose(nodes, -nodes[::-1], rtol=0, atol=4 * EPS)
    powers = np.arange(0, 2 * size, 2)
    found = np.array([weights @ nodes**k for k in powers])
    # A node is rounded relative to 1: k times that in its k-th power, and gammaln's rounding.
    tolerance = 1e-13 * (1 + powers) + 4 * EPS * gammaln(size + dimension / 2)
    assert (np.abs(found / moment(powers, dimension) - 1) <= tolerance).all()
    odd = np.array([weights @ nodes**k for k in powers + 1])
    assert np.abs(odd).max() <= 4 * EPS


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_a_gauss_rule_is_not_exact_at_degree_two_n(dimension):
    nodes, weights = gauss(4, dimension)
    assert abs(weights @ nodes**8 / moment(8, dimension) - 1) > 1e-3


@pytest.mark.parametrize("size", [1, 2, 17, 64, 401])
def test_the_rule_on_the_sphere_is_that_of_legendre(size):
    nodes, weights = leggauss(size)
    found, found_weights = gauss(size, 3)
    np.testing.assert_allclose(found, nodes[::-1], rtol=0, atol=4 * EPS)
    # numpy's weights are rounded relative to the largest, ours relative to themselves.
    np.testing.assert_allclose(found_weights, weights / 2, rtol=2e-10)


# Recurrence --------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_polynomials_of_order_zero_are_orthonormal(dimension):
    degree = 40
    x, weights = gauss(degree + 1, dimension)
    p = legendre_table(degree, 0, x, dimension)
    np.testing.assert_allclose((p.T * weights) @ p, np.eye(degree + 1), rtol=0, atol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 7, 30])
def test_the_functions_of_every_order_are_orthonormal(order):
    degree = 40
    x, weights = gauss(degree + 1, 3)
    p = legendre_table(degree, order, x)
    np.testing.assert_allclose((p.T * weights) @ p, np.eye(p.shape[1]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("order", [0, 1, 5, 40])
def test_they_are_the_associated_legendre_functions(order):
    x = np.linspace(-0.999, 0.999, 41)
    table = legendre_table(40, order, x)
    np.testing.assert_allclose(table, scipy_table(40, order, x), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_derivative_identity_holds_in_every_dimension(dimension):
    """(1 - x^2) p_l' = (l + d - 2) e_l p_{l-1} - l e_{l+1} p_{l+1}, as polynomials of degree 9."""
    e = recurrence(10, 0, dimension)
    x = np.polynomial.Polynomial([0, 1])
    p = [np.polynomial.Polynomial([1.0]), x / e[1]]
    for l in range(1, 10):
        p.append((x * p[l] - e[l] * p[l - 1]) / e[l + 1])
    t = np.linspace(-1, 1, 21)
    for l in range(1, 10):
        expected = (l + dimension - 2) * e[l] * p[l - 1](t) - l * e[l + 1] * p[l + 1](t)
        scale = l * np.abs(p[l + 1].coef).sum()  # of the powers that cancel
        error = np.abs((1 - t**2) * p[l].deriv()(t) - expected).max()
        assert error <= 20 * EPS * scale


@pytest.mark.parametrize("order", [1, 3, 12])
def test_the_derivative_identity_holds_for_every_order(order):
    """sin d/dtheta p_l = l e_{l+1} p_{l+1} - (l + 1) e_l p_{l-1}, scipy's derivative."""
    degree, x = 20, np.linspace(-0.99, 0.99, 15)
    e, p = recurrence(degree + 2, order, 3), scipy_table(degree + 1, order, x)
    l = np.arange(order, degree + 1)
    slope = assoc_legendre_p(l, order, x[:, None], norm=True, diff_n=1)[1]
    slope *= -np.sqrt(2) * (-1.0) ** order * (1 - x[:, None] ** 2)
    below = np.hstack([np.zeros((x.size, 1)), p[:, :-2]])
    expected = l * e[l + 1] * p[:, 1:] - (l + 1) * e[l] * below
    np.testing.assert_allclose(slope, expected, rtol=0, atol=1e-11)


# Sums --------------------------------------------------------------------------------------


def sums_of(rules, order, series):
    """`synthesise` for one order: complex values at x and at -x."""
    record, folded = rules.rules(), np.full((4, rules.pairs(order)), np.nan)
    count, sums = series.size, np.zeros((4, record.width))
    n = fold(order, record.address, series.astype(complex).view(float), count, folded)
    synthesise(order, record.address, folded, n, sums)
    sums = sums[:, : rules.x.size]
    even, odd = sums[0] + 1j * sums[1], rules.x * (sums[2] + 1j * sums[3])
    return even + odd, even - odd


def analysis_of(rules, order, functions):
    """`analyse` for one order of two complex functions, given at x and -x with weights."""
    record, half = rules.rules(), rules.x.size
    count, values = rules.degree - order + 1, np.zeros((8, record.width))
    for f, (north, south) in enumerate(functions):
        plus, minus = north + south, rules.x * (north - south)
        values[2 * f : 2 * f + 2, :half] = plus.real, plus.imag
        values[4 + 2 * f : 6 + 2 * f, :half] = minus.real, minus.imag
    pairs = -(-count // 2)
    folded = np.full((rules.pairs(order), 8), np.nan)
    found = []
    analyse(order, record.address, values, folded, -(-pairs // 2) * 2)
    for rows in (folded, np.roll(folded, -2, axis=1)):
        series = np.empty(2 * pairs, dtype=complex)
        unfold(order, record.address, rows, pairs, series.view(float))
        found.append(series[:count])
    return found


@pytest.mark.repeats
@pytest.mark.parametrize("degree", [1, 2, 3, 5, 8, 31])
def test_sums_over_degrees_are_the_direct_sums(degree):
    rules, rng = Latitudes(10, degree, degree), np.random.default_rng(degree)
    for order in range(degree + 1):
        c = rng.standard_normal((degree - order + 1, 2)) @ [1, 1j]
        north, south = sums_of(rules, order, c)
        scale = np.abs(c).sum() * (degree + 1)
        for x, found in [(rules.x, north), (-rules.x, south)]:
            expected = scipy_table(degree, order, x) @ c
            np.testing.assert_allclose(found, expected, rtol=0, atol=20 * EPS * scale)


@pytest.mark.repeats
@pytest.mark.parametrize("degree", [1, 2, 3, 5, 8, 31])
def test_sums_over_latitudes_are_the_direct_sums(degree):
    rules, rng = Latitudes(10, degree, degree), np.random.default_rng(degree)
    for order in range(degree + 1):
        functions = rng.standard_normal((2, 2, rules.x.size, 2)) @ [1, 1j]
        north, south = (scipy_table(degree, order, x) for x in (rules.x, -rules.x))
        for f, found in zip(functions, analysis_of(rules, order, functions), strict=True):
            expected = f[0] @ north + f[1] @ south
            scale = np.abs(f).sum() * (degree + 1)
            np.testing.assert_allclose(found, expected, rtol=0, atol=20 * EPS * scale)


@pytest.mark.repeats
@pytest.mark.parametrize("order", [0, 1, 100, 300, 595, 600])
def test_high_degrees_neither_overflow_nor_lose_digits(order):
    """Degree 600, against scipy at all latitudes; those passed over are below 2^-60."""
    rules = Latitudes(452, 600, 600)
    first = rules.first[order]
    expected = scipy_table(600, order, rules.x)
    assert np.abs(expected[:first]).max(initial=0) <= 2.0**-60
    assert (first > 0) == (order > 1) and first % 8 == 0
    for l in {order, order + 1, (order + 600) // 2, 600}:
        if l <= 600:
            c = np.zeros(601 - order, dtype=complex)
            c[l - order] = 1
            north, south = sums_of(rules, order, c)
            sign = (-1) ** (l - order)
            assert np.isfinite(north).all()
            # Near the pole p_600 has the slope 5e6: rounding of x alone gives EPS times that.
            np.testing.assert_allclose(north, expected[:, l - order], rtol=0, atol=1e-10)
            np.testing.assert_allclose(south, sign * north, rtol=0, atol=1e-14)


def test_high_degrees_are_orthonormal_as_sums():
    """Synthesis and then analysis of one order is the identity on rough coefficients."""
    rules = Latitudes(302, 600, 600)
    for order in (0, 3, 250, 580):
        c = np.random.default_rng(order).standard_normal((601 - order, 2)) @ [1, 1j]
        north, south = (rules.weights * part for part in sums_of(rules, order, c))
        one, turned = analysis_of(rules, order, [(north, south), (1j * north, 1j * south)])
        np.testing.assert_allclose(one, c, rtol=0, atol=1e-11)
        np.testing.assert_allclose(turned, 1j * c, rtol=0, atol=1e-11)


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("order", [0, 1, 20])
def test_a_step_of_two_degrees_is_two_steps_of_one(order, dimension):
    """q_k = p_{m+2k} / c_k by its own recurrence, against the p_l by theirs."""
    if order > 0 and dimension != 3:
        return
    x, pairs = np.linspace(0, 0.999, 12), 12
    e = recurrence(order + 2 * pairs + 4, order, dimension)
    a, b, c, _, _ = two_steps(e[order:], pairs)
    table = legendre_table(order + 2 * pairs, order, x, dimension)
    before, q = np.zeros_like(x), table[:, 0]
    for k in range(pairs):
        size = np.abs(table[:, : 2 * k + 1]).max()
        np.testing.assert_allclose(c[k] * q, table[:, 2 * k], rtol=0, atol=1e-12 * size)
        before, q = q, (a[k] * x**2 + b[k]) * q - before


def test_the_table_is_padded_to_whole_blocks():
    rules = Latitudes(4, 9, 9)
    assert [rules.pairs(m) for m in (0, 1, 2, 3, 9)] == [8, 8, 4, 4, 4] and BLOCK == 4
    assert (np.diff(rules.first_steps) == [rules.pairs(m) for m in range(10)]).all()
    np.testing.assert_allclose(rules.sines_squared, 1 - rules.x**2, atol=4 * EPS)


def test_folding_keeps_the_size_of_coefficients():
    """The odd ones are found from the top down: the errors made on the way must not grow."""
    for dimension in DIMENSIONS:
        rules = Latitudes(4, 2001, 0, dimension)
        folded, record = np.empty((4, rules.pairs(0))), rules.rules()
        for l in (1, 101, 2001):
            unit = np.zeros((2002, 2))
            unit[l] = 1
            fold(0, record.address, unit.ravel(), 2002, folded)
            g = folded[2] / rules.two_steps[2]
            assert np.abs(g).max() <= 1.001 * np.sqrt(2) / recurrence(1, 0, dimension)[1]
