"""Derivatives of multipliers by parameters of a drift."""

import numpy as np
import pytest
from scipy.special import iv

import meanfield as mf
from meanfield.derivatives.parameters import changes_of


class Kinked(mf.ZonalDrift):
    """W' = 1 for b > 0, else 0."""

    b: float

    def slope(self, t):
        return (self.b > 0) + 0 * t


def test_bessel_functions():
    beta, l = 2.5, np.arange(20)
    slopes = (iv(l - 1, beta) + iv(l + 1, beta)) / 2
    found = changes_of(mf.USA(beta=beta), "beta", 19, 2)
    expected = slopes / beta - iv(l, beta) / beta**2
    assert np.abs(found.attraction[1:] - expected[1:]).max() < 1e-12


def test_a_parameter_in_which_the_drift_is_not_smooth_is_refused():
    with pytest.raises(mf.MeanfieldError, match="smooth"):
        changes_of(Kinked(b=0.0), "b", 8, 2)
