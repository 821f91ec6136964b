"""A range shows every state in it, wherever the branches begin and whatever they meet."""

import numpy as np
import pytest
from scipy.special import ive

import meanfield as mf
from meanfield.stationary.curve import Curve
from meanfield.stationary.locating import located
from meanfield.stationary.mirror import image, symmetric_part
from meanfield.stationary.path import path_of
from meanfield.stationary.placement import basis_of

CIRCLE = mf.Circle(24)
TURNS = mf.Interaction.chebyshev([0, -0.63, 0.23, 0.7, 0.66])  # a fourfold state bends twice
MEETS = mf.Interaction.chebyshev([0, -0.61, 1.59, -1.19, 0.35])  # a polar one meets a nematic one
SIDEWAYS = mf.Interaction.chebyshev([0, -0.2, 1.5, 0.8])  # two clusters move towards each other


def shapes(states) -> set:
    """Legendre moments but for what turns and reflections change."""
    return {tuple(np.abs(s.legendre_moments[:6]).round(7) + 0.0) for s in states}


def states_of(drift, space, span, value, range_of_beta=None):
    found = mf.branches(drift, space, span, beta=range_of_beta)
    assert not found.doubts
    return [state for _, state in found.states_at(value)]


@pytest.mark.parametrize("span", [(0.393, 0.405), (0.3995, 0.4005), (0.2, 0.8), (0.4, 0.42)])
def test_a_subcritical_branch_comes_down_into_the_range(span):
    found = mf.branches(mf.USA(4.0), CIRCLE, span, stability=False)
    assert not found.doubts and len(found.states_at(0.4)) == 3
    assert found.ground_state(0.4).free_energy == pytest.approx(-0.0377935680936, abs=1e-12)
    assert found.special("fold")[0].value == pytest.approx(0.387068995952, abs=1e-11)


def test_a_branch_comes_in_after_it_has_turned_twice():
    """It falls to its fold at 4.42, rises to that at 5.22, and only then comes down to 4.14."""
    found = mf.branches(MEETS, mf.Zonal(5, 24), (4.1, 4.3), stability=False)
    wide = mf.branches(MEETS, mf.Zonal(5, 24), (0.5, 8.0), stability=False)
    states, others = ([s for _, s in d.states_at(4.2)] for d in (found, wide))
    assert not found.doubts and len(states) == 4 and shapes(states) == shapes(others)


def test_a_branch_comes_up_into_the_range():
    found = mf.branches(mf.Kuramoto(), CIRCLE, (3.0, 8.0))
    r = found.ground_state(5.0).order_parameter
    assert r == pytest.approx(ive(1, 5 * r) / ive(0, 5 * r), abs=1e-12) and r > 0.8
    assert found.transition().kappa == 2.0


def test_a_transition_below_the_range_is_that_of_a_wide_range():
    options = {"stability": False}
    above = mf.branches(mf.USA(4.0), CIRCLE, (0.5, 0.7), **options).transition()
    wide = mf.branches(mf.USA(4.0), CIRCLE, (0.3, 0.7), **options).transition()
    assert above.order == wide.order == "discontinuous"
    assert above.kappa == pytest.approx(wide.kappa, abs=1e-11)
    assert above.hysteresis == pytest.approx(wide.hysteresis, abs=1e-11)


@pytest.mark.parametrize("span, beta", [((1.0, 1.9), 1.5), ((1.9, 4.0), 3.0)])
def test_branches_enter_a_range_of_beta(span, beta):
    """kappa = 3 is beyond every onset of degree 1 for beta > 0."""
    states = states_of(mf.USA, CIRCLE, 3.0, beta, range_of_beta=span)
    searched = mf.stationary_states(mf.Transformer(mf.USA(beta), 3.0), CIRCLE)
    assert len(states) == len(shapes(states)) and shapes(searched) <= shapes(states)
    assert max(s.order_parameter for s in states) > 0.8


def test_a_branch_between_two_onsets_is_followed_once():
    """SA attracts degree 2 most at a medium beta: its branch begins and ends there."""
    found = mf.branches(mf.SA, CIRCLE, 12.0, beta=(0.5, 12.0), degrees=[2], stability=False)
    assert [s.degree for s in found.special("bifurcation", 0)] == [2, 2]
    assert found.ends == ["uniform"] and not found.doubts
    states = found.states_at(4.0)
    assert len(states) == 2 and states[1][1].legendre_moments[1] > 0.1


@pytest.mark.parametrize("drift, kappa", [(TURNS, 6.204), (SIDEWAYS, 7.0)])
def test_narrow_ranges_have_the_states_of_wide_ones(drift, kappa):
    narrow = states_of(drift, CIRCLE, (0.97 * kappa, 1.03 * kappa), kappa)
    wide = states_of(drift, CIRCLE, (0.1 * kappa, 1.1 * kappa), kappa)
    searched = mf.stationary_states(mf.Transformer(drift, kappa), CIRCLE)
    assert len(narrow) == len(shapes(narrow)) and len(narrow) > 4
    assert shapes(narrow) == shapes(wide) and shapes(searched) <= shapes(wide)
    assert all(s.residual < 1e-12 for s in wide)


def test_a_branch_ends_where_it_meets_one_of_more_symmetry():
    found = mf.branches(MEETS, mf.Zonal(5, 24), (0.5, 8.0), stability=False)
    assert not found.doubts and found.ends == ["bifurcation", "range", "range"]
    (polar,), (nematic,) = (found.special("bifurcation", branch) for branch in (1, 2))
    assert polar.value == pytest.approx(nematic.value, abs=1e-10)
    one, other = (s.state.legendre_moments[:24] for s in (polar, nematic))
    np.testing.assert_allclose(one, other, atol=1e-9)
    assert np.abs(polar.state.stability(4).eigenvalues).min() < 1e-8
    for kappa in (polar.value * 1.0005, 4.3, 4.8):
        states = [state for _, state in found.states_at(kappa)]
        assert len(states) == len(shapes(states))
    assert found.data.moments.values[found.data.branch.values == 1][:-1, 0].min() > 0


def test_images_of_states():
    circle, sphere = basis_of("axisymmetric", CIRCLE), basis_of("axisymmetric", mf.Sphere(24))
    a = np.zeros(len(circle.degrees))
    a[[3, 7]] = 0.5, 0.1
    assert image(circle, a)[[3, 7]].tolist() == [-1, 1]
    assert image(sphere, a)[:4].tolist() == [-1, 1, -1, 1]
    noise = a + 1e-9
    kept = [symmetric_part(basis, a, noise) > 0 for basis in (circle, sphere)]
    np.testing.assert_array_equal(kept[0], circle.degrees % 4 == 0)
    np.testing.assert_array_equal(kept[1], sphere.degrees % 2 == 0)


def test_zeros_are_found_in_few_steps():
    """A smooth function of the parameter, at superlinear speed and from both sides."""
    curve = Curve(path_of(mf.Kuramoto(), basis_of("axisymmetric", CIRCLE), None), 0.1)
    calls = []
    state = mf.stationary(mf.Transformer(mf.Kuramoto(), 2.6), CIRCLE.von_mises(0.0, 2.0))
    z = np.append(state.moments, np.log(2.6))
    start = curve.point(z, np.append(np.zeros(len(z) - 1), 1.0))
    end = curve.ahead(start, 0.1)

    def f(point):
        calls.append(point.value)
        return np.expm1(3 * (point.value - 2.65))

    found = located(curve, start, 0.1, f, f(start), f(end))
    assert found.status == "converged" and found.point.value == pytest.approx(2.65, abs=1e-12)
    assert len(calls) < 16 and found.interval[0] <= found.point.value <= found.interval[1]
