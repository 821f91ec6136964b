"""The graded quadrature: moments of the uniform measure, convergence, reach towards the poles."""

import numpy as np
import pytest
from scipy.special import gammaln

from meanfield.spaces.chart import graded_rule

every_dimension = pytest.mark.parametrize("d", [2, 3, 8, 64, 1024])


def even_moment(k, d):
    """E[<x, e>^k] of the uniform measure: (k - 1)!! / (d (d + 2) ... (d + k - 2))."""
    return np.prod([(j - 1) / (d + j - 2) for j in range(2, k + 1, 2)])


def moment_of_the_distance(q, d):
    """E[tan(theta/2)^q] = G((p + q)/2) G((p - q)/2) / G(p/2)^2, p = d - 1."""
    p = d - 1
    return np.exp(gammaln((p + q) / 2) + gammaln((p - q) / 2) - 2 * gammaln(p / 2))


@every_dimension
def test_moments_of_the_uniform_measure_are_exact_to_rounding(d):
    """Measured: 6e-15 relative, in d = 64 and 1024, where E[x^8] is 1e-13 and 1e-22."""
    s, weights = graded_rule(256, d)
    x = -np.tanh(s)
    assert weights.sum() == pytest.approx(1, abs=1e-15)
    for k in range(2, 9, 2):
        assert weights @ x**k == pytest.approx(even_moment(k, d), rel=5e-14)
    for k in range(1, 40, 2):
        assert abs(weights @ x**k) <= 1e-15


@pytest.mark.parametrize("d", [2, 3, 8])
def test_high_moments_too(d):
    """In high dimension they come from where the mass is less than e^-40. Measured: 8e-15."""
    s, weights = graded_rule(256, d)
    for k in range(10, 41, 2):
        assert weights @ np.tanh(s) ** k == pytest.approx(even_moment(k, d), rel=5e-14)


@every_dimension
def test_nodes_increase_and_weigh_something(d):
    for nodes in (2, 3, 17, 1024):
        s, weights = graded_rule(nodes, d)
        assert s.shape == weights.shape == (nodes,)
        assert (np.diff(s) > 0).all() and (weights > 0).all()


@pytest.mark.parametrize("d", [2, 3, 8, 64])
def test_powers_of_the_distance_to_both_poles_are_integrated(d):
    """theta^(+-q), q = (d - 1)/4: what is cut off near 0 is about e^{-40 (3/4)} = 1e-13.

    Measured: 1e-13 for d <= 8; 7e-12 for d = 64, where cosh(s)^63 is no exponential yet.
    """
    s, weights = graded_rule(512, d)
    q, near = (d - 1) / 4, 5e-13 if d <= 8 else 3e-11
    assert weights @ np.exp(-q * s) == pytest.approx(moment_of_the_distance(q, d), rel=near)
    assert weights @ np.exp(q * s) == pytest.approx(moment_of_the_distance(q, d), rel=1e-13)


@every_dimension
def test_the_rule_reaches_as_far_as_it_says(d):
    """A cap at the first node, of mass about the first weight, is e^-40; at the last e^-55."""
    s, _ = graded_rule(4096, d)
    p = d - 1
    constant = gammaln(d / 2) - gammaln(p / 2) - np.log(np.pi) / 2
    for end, amount in ((s[0], 40), (s[-1], 55)):
        height = constant - p * np.logaddexp(abs(end), -abs(end)) + p * np.log(2)
        assert height == pytest.approx(-amount, rel=0.02)


@every_dimension
def test_it_converges_exponentially(d):
    """Twice the nodes make an error e of a bump that fills the bulk less than e^1.5.

    Of e^2, because it begins late: 1e-4 at 32 nodes and 1e-11 at 128 for d = 2, the worst.
    """

    def integral(nodes):
        s, weights = graded_rule(nodes, d)
        return weights @ np.exp(np.sqrt(d) * (np.tanh(s) - 1))

    exact = integral(1024)
    errors = np.array([abs(integral(n) / exact - 1) for n in (16, 32, 64, 128)])
    assert (errors[2:] <= np.maximum(errors[1:-1] ** 1.5, 3e-14)).all()
    assert 1e-6 < errors[0] < 1e-2 and errors[-1] <= 3e-11


def test_every_second_node_is_a_rule_as_well():
    """The trapezoidal rule shifted by half a step."""
    s, weights = graded_rule(256, 3)
    for half in (slice(None, None, 2), slice(1, None, 2)):
        assert 2 * weights[half].sum() == pytest.approx(1, abs=1e-14)
        assert 2 * weights[half] @ np.tanh(s[half]) ** 2 == pytest.approx(1 / 3, abs=1e-14)
