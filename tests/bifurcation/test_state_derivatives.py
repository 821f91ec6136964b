"""Derivatives of stationary states and of special points."""

from functools import cache

import numpy as np
import pytest
from scipy.special import iv

import meanfield as mf

CIRCLE = mf.Circle(32)
FOURTH = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
STEP = 2e-3


def difference(f):
    """The derivative of f at 0 by a central difference of order 4."""
    return sum(weight * f(node * STEP) for node, weight in FOURTH.items()) / STEP


def ordered(drift, beta, kappa):
    return mf.stationary(
        mf.Transformer(drift(beta=beta), kappa=kappa), CIRCLE.von_mises(0, 2.0), tolerance=1e-14
    )


@cache
def diagram():
    return mf.branches(mf.USA(beta=5.0), CIRCLE, kappa=(0.18, 0.21))


def test_the_order_parameter_under_kuramoto():
    kappa = 3.0
    state = mf.stationary(mf.Transformer(mf.Kuramoto(), kappa=kappa), CIRCLE.von_mises(0, 1.0))
    r = state.order_parameter
    expected = r * (1 - 1 / kappa - r**2) / (2 - kappa + kappa * r**2)
    assert state.derivative("kappa").order_parameter == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("drift", [mf.USA, mf.SA], ids=["USA", "SA"])
@pytest.mark.parametrize("name", ["beta", "kappa"])
def test_derivatives_are_those_of_states(drift, name):
    def at(e):
        by = {"beta": 2.0, "kappa": 4.0}
        by[name] += e
        return ordered(drift, by["beta"], by["kappa"])

    found = at(0.0).derivative(name)
    moments = difference(lambda e: at(e).legendre_moments[:16])
    assert np.abs(found.legendre_moments[:16] - moments).max() < 1e-9
    assert found.density.moment(1) == pytest.approx(found.order_parameter, abs=1e-14)
    assert found.density.mass == pytest.approx(0, abs=1e-15)
    rates = difference(lambda e: at(e).stability(4).eigenvalues)
    assert np.abs(found.eigenvalues(4) - rates).max() < 1e-8
    energy = difference(lambda e: at(e).free_energy)
    assert found.free_energy == pytest.approx(energy, abs=1e-9, nan_ok=True)


def test_growth_rates_of_the_uniform_state():
    beta, kappa, l = 2.0, 1.2, np.arange(1, 4)
    state = mf.stationary(mf.Transformer(mf.USA(beta=beta), kappa=kappa), CIRCLE.uniform())
    expected = l**2 * ((iv(l - 1, beta) + iv(l + 1, beta)) / (2 * beta) - iv(l, beta) / beta**2)
    found = state.derivative("beta").eigenvalues(6)
    assert np.abs(found - np.repeat(expected, 2)).max() < 1e-11
    by_kappa = state.derivative("kappa").eigenvalues(6)
    assert np.abs(by_kappa - np.repeat(l**2 / kappa**2, 2)).max() < 1e-11


def test_special_points_move():
    """That of the onset beta/I_1(beta); others by differences of diagrams, as in `validation`."""
    slope = (iv(0, 5.0) + iv(2, 5.0)) / 2
    onset = 1 / iv(1, 5.0) - 5.0 * slope / iv(1, 5.0) ** 2
    known = {"bifurcation": onset, "fold": -0.14192719338, "transition": -0.14328361406}
    for kind, expected in known.items():
        point = diagram().special(kind)[0]
        assert point.derivative("beta") == pytest.approx(expected, abs=1e-10)
    with pytest.raises(ValueError, match="kappa"):
        point.derivative("kappa")


def test_a_fold_has_no_derivative_of_its_state():
    with pytest.raises(mf.MeanfieldError, match="psi"):
        diagram().special("fold")[0].state.derivative("beta")
    with pytest.raises(ValueError, match="gamma"):
        ordered(mf.USA, 2.0, 4.0).derivative("gamma")
