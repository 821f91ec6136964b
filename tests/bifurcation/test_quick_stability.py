"""Stability by inertia, and steps of Newton's method by the degrees that attract alone."""

import numpy as np
import pytest
from scipy.special import iv

import meanfield as mf
from meanfield.bifurcation.bases import basis_on
from meanfield.bifurcation.equation import MomentEquation
from meanfield.bifurcation.newton import Coupled

SPACES = [mf.Circle(32), mf.Sphere(24), mf.Zonal(6, 24)]
TWO = mf.Interaction(lambda t: t**2 - 0.5 * t)  # of multipliers of both signs


def ordered(space, concentration):
    """A density with one maximum."""
    if isinstance(space, mf.Circle):
        return space.von_mises(0.0, concentration)
    return space.density(lambda *x: np.exp(concentration * x[-1]))


@pytest.mark.repeats
@pytest.mark.parametrize("space", SPACES, ids=repr)
@pytest.mark.parametrize("drift", [mf.USA(1.0), mf.USA(3.0), TWO, mf.SA(2.0)], ids=repr)
@pytest.mark.parametrize("kappa", [1.0, 4.0, 30.0])
def test_the_verdict_is_that_of_the_spectrum(space, drift, kappa):
    """Of ordered states and the uniform one, stable or not, about every axis."""
    model, _axis = mf.Transformer(drift, kappa), np.eye(space.dimension)[-1]
    model = mf.Transformer(drift, kappa)
    guesses = [space.uniform(), ordered(space, 2.0)]
    for guess in guesses:
        state = mf.stationary(model, guess)
        stability = state.stability(2)
        if state.converged and abs(stability.gap) > 1e-6:
            assert state.stable == stability.stable


def test_both_verdicts_occur():
    """Uniform states below and above the onset, and a saddle between two stable states."""
    onset = 4.0 / iv(1, 4.0)
    circle = mf.Circle(64)
    below, above = (
        mf.stationary(mf.Transformer(mf.USA(4.0), part * onset), circle.uniform()).stable
        for part in (0.99, 1.01)
    )
    assert below and not above
    model = mf.Transformer(mf.USA(4.0), 0.98 * onset)
    states = [mf.stationary(model, circle.von_mises(0.0, c)) for c in (0.2, 0.4, 0.8, 5.0)]
    found = {(state.stable, state.order_parameter > 1e-6) for state in states if state.converged}
    assert {(False, True), (True, True)} <= found


@pytest.mark.parametrize("space", SPACES, ids=repr)
@pytest.mark.parametrize("drift", [mf.USA(2.0), mf.SA(2.0)], ids=repr)
def test_a_step_by_few_columns_is_that_of_the_whole_matrix(space, drift):
    equation = MomentEquation(drift, basis_on(space).finer(96))
    m = 0.4 ** np.arange(1, len(equation.degrees) + 1)
    mean = equation.mean(m, 5.0)
    small, whole = equation.coupled(mean), equation.jacobian(mean)
    assert isinstance(small, Coupled) and small.indices.size < 48
    right = np.random.default_rng(0).standard_normal(len(m))
    np.testing.assert_allclose(small.solve(right), np.linalg.solve(whole, right), atol=1e-12)


def test_where_all_degrees_attract_the_matrix_is_whole():
    equation = MomentEquation(mf.USA(300.0), basis_on(mf.Circle(32)))
    mean = equation.mean(np.zeros(len(equation.degrees)), 1.0)
    assert isinstance(equation.coupled(mean), np.ndarray)
