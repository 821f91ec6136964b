"""Harmonics beyond the degree that leave no trace in the coefficients: a warning says so."""

import warnings

import numpy as np
import pytest
from numpy.polynomial.legendre import Legendre

import meanfield as mf

CIRCLE = mf.Circle(16)


@pytest.mark.parametrize("degree", [8, 16, 33])
def test_every_fourier_mode_beyond_the_degree_is_noticed(degree):
    """Modes between the degree and the grid vanish; beyond they appear as lower modes."""
    for k in range(degree + 1, 4 * degree + 1):
        for shape in (np.cos, np.sin):
            with pytest.warns(mf.UnresolvedWarning, match=f"degree above {degree}"):
                mf.Circle(degree).density(lambda a, k=k, f=shape: 1 + 1e-3 * f(k * a))


@pytest.mark.parametrize("k", range(7, 25))
def test_every_spherical_harmonic_beyond_the_degree_is_noticed(k):
    """Also about an axis that is none of the grid."""
    zonal = Legendre.basis(k)
    with pytest.warns(mf.UnresolvedWarning):
        mf.Sphere(6).density(lambda x, y, z: 1 + 0.1 * zonal((x + 2 * y + 2 * z) / 3))
    with pytest.warns(mf.UnresolvedWarning):
        mf.Zonal(5, 6).density(lambda x: 1 + 0.1 * zonal(x))


def test_indexed_densities_are_checked_at_each_index():
    with pytest.warns(mf.UnresolvedWarning):
        CIRCLE.indexed(lambda s, a: 1 + 0.5 * s * np.cos(25 * a))


def test_resolved_densities_and_tables_of_values_do_not_warn():
    table = 1 + 0.3 * np.cos(CIRCLE.angles)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for f in (
            lambda a: np.exp(2 * np.cos(a)),
            lambda a: 1 + 0.5 * np.cos(10 * a),
            lambda _: table,
            lambda a: table * (1 + 0.1 * np.sin(a)),
        ):
            CIRCLE.density(f)
        mf.Sphere(6).density(lambda x, y, z: 1 + 0.5 * z**3 + x * y)
        CIRCLE.indexed(lambda s, a: 1 + 0.5 * s * np.cos(5 * a))
