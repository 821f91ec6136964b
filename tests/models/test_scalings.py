"""beta as a function of the number of tokens."""

import numpy as np
import pytest

import meanfield as mf


def test_values():
    np.testing.assert_allclose(mf.scalings.logarithmic(np.exp([1.0, 3.0]), 2.0, 0.5), [2.5, 6.5])
    np.testing.assert_allclose(mf.scalings.power([16.0, 81.0], 5, factor=3.0), [12.0, 27.0])


@pytest.mark.parametrize("d", [2, 3, 6])
def test_the_power_keeps_the_keys_in_reach(d):
    """n keys of S^(d-1) are n^(-1/(d-1)) apart: beta times the square of that stays."""
    n = np.array([1e2, 1e4, 1e8])
    np.testing.assert_allclose(mf.scalings.power(n, d) * n ** (-2 / (d - 1)), 1.0)
