"""Stationary states and branches under products of moments, against closed forms.

Even states of identical oscillators are exp(a cos x)/const, of moments r_1 and r_2, where
a = kappa (K_1 r_1 + K_2 r_2 r_1 + K_3 r_1^3).
"""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import ive

import meanfield as mf
from meanfield.bifurcation.families import basis_of, transport_equation

K1, K2, K3 = 0.5, 5.0, 4.0
DRIFT = K1 * mf.Kuramoto() + K2 * mf.HigherOrder((2, -1)) + K3 * mf.HigherOrder((1, 1, -1))


def kappa_of(a, first=K1):
    one, two = ive([1, 2], a) / ive(0, a)
    return a / (first * one + K2 * two * one + K3 * one**3)


def fold(first=K1):
    """Amplitude and kappa at the fold."""
    found = minimize_scalar(lambda a: kappa_of(a, first), (1.0, 2.5, 6.0), options={"xtol": 1e-12})
    return found.x, found.fun


def orders(kappa):
    """The order parameters at a kappa between fold and onset."""
    ends = (1e-6, fold()[0], 60.0)
    roots = [brentq(lambda a: kappa_of(a) - kappa, *pair) for pair in pairwise(ends)]
    return [ive(1, a) / ive(0, a) for a in roots]


@pytest.fixture(scope="module")
def diagram():
    return mf.branches(DRIFT, mf.Circle(16), (0.5, 6))


def test_both_states_are_lost_at_the_folds_of_the_closed_form(diagram):
    (turn,), (onset,) = (diagram.special(kind) for kind in ("fold", "bifurcation"))
    assert turn.value == pytest.approx(fold()[1], rel=1e-11)
    assert onset.value == pytest.approx(2 / K1, rel=1e-11)
    assert [state.order_parameter for _, state in diagram.states_at(0.99 * fold()[1])] == [0.0]
    between = sorted(
        (state for _, state in diagram.states_at(2.0)), key=lambda s: s.order_parameter
    )
    assert [s.order_parameter for s in between] == pytest.approx([0.0, *orders(2.0)], abs=1e-10)
    assert [s.stability(2).stable for s in between] == [True, False, True]
    above = [s for _, s in diagram.states_at(4.2)]
    assert [s.stability(2).stable for s in above] == [False, True]
    assert all(np.isnan(s.free_energy) for s in above)


def test_the_fold_moves_with_the_coupling_as_the_closed_form_does(diagram):
    (turn,) = diagram.special("fold")
    expected = (fold(K1 + 0.01)[1] - fold(K1 - 0.01)[1]) / 0.02
    third = (fold(K1 + 0.02)[1] - fold(K1 - 0.02)[1]) / 0.04  # differences of order 4
    found = turn.derivative("factors[0]")
    assert found == pytest.approx((4 * expected - third) / 3, rel=1e-6)


@pytest.mark.long
def test_branches_in_a_coupling_turn_at_the_same_fold():
    model = mf.Transformer(DRIFT, kappa=0.67)
    diagram = mf.branches(model, mf.Circle(16), vary={"factors[0]": (0.5, 3.5)})
    (turn,) = diagram.special("fold")
    assert fold(turn.value)[1] == pytest.approx(0.67, rel=1e-10)


@pytest.mark.parametrize("modes", [(2, -1), (1, 1, -1), (3, -1, -2), (-2, 5), (2, 2, -1)])
def test_derivatives_are_those_of_differences(modes):
    uneven = mf.Potential(lambda x: 0.3 * x[..., 0] + 0.2 * x[..., 0] * x[..., 1])
    model = mf.Transformer(mf.Kuramoto() - 1.5 * mf.HigherOrder(modes) + uneven, kappa=2.0)
    basis = basis_of([model], mf.Circle(8))
    equation, rng = transport_equation(model, basis), np.random.default_rng(5)
    m, way, left, right = rng.standard_normal((4, len(basis.degrees))) / (1 + basis.degrees) ** 2

    def block(t):
        return equation.jacobian(equation.mean(m + t * way, 2.0))

    def residual(t):
        return m + t * way - equation.mean(m + t * way, 2.0).moments

    def change(f, h=1e-2):
        return (45 * (f(h) - f(-h)) - 9 * (f(2 * h) - f(-2 * h)) + f(3 * h) - f(-3 * h)) / (60 * h)

    assert np.abs(block(0.0) @ way - change(residual)).max() < 1e-9
    found = equation.block_change(equation.mean(m, 2.0), m, basis.even, left, right)[: len(m)]
    expected = change(lambda t: left @ block(t) @ right)
    assert found @ way == pytest.approx(expected, rel=1e-8)
    turned = equation.block_change(equation.mean(m, 2.0), m, basis.even, left, 1j * right)
    assert np.abs(turned[: len(m)] - 1j * found).max() < 1e-12  # linear in complex directions
    series = equation.series(np.array([m, way, 0 * m]), np.array([2.0, 0.0, 0.0]))
    assert np.abs(series[1] - change(residual)).max() < 1e-8
