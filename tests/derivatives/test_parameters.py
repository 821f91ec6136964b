"""Derivatives of multipliers by parameters of a drift."""

import numpy as np
import pytest
from scipy.special import iv

import meanfield as mf
from meanfield.derivatives.densities import slope_tables


class Kinked(mf.ZonalDrift):
    """W' = 1 for b > 0, else 0."""

    b: float

    def slope(self, t):
        return (self.b > 0) + 0 * t


def test_bessel_functions():
    beta, l = 2.5, np.arange(20)
    slopes = (iv(l - 1, beta) + iv(l + 1, beta)) / 2
    found = slope_tables(mf.USA(beta=beta), "beta", mf.Circle(19))
    expected = slopes / beta - iv(l, beta) / beta**2
    assert np.abs(found.attraction[1:] - expected[1:]).max() < 1e-12


def test_a_parameter_in_which_the_drift_is_not_smooth_is_refused():
    with pytest.raises(mf.MeanfieldError, match="smooth"):
        slope_tables(Kinked(b=0.0), "b", mf.Circle(8))


@pytest.mark.parametrize("value", [1e-300, 1e-9, -1e-7, 1e-3, 0.0])
def test_a_parameter_may_be_close_to_0(value):
    """On the circle w_1 = I_1(beta)/beta has the slope beta/8 + ..., and w_2 the slope 1/8 + ..."""
    found = slope_tables(mf.USA(value), "beta", mf.Circle(3)).attraction
    np.testing.assert_allclose(found[1:3], [value / 8, 1 / 8], rtol=0, atol=1e-7)
