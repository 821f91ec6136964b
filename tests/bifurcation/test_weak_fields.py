"""Fields that are weak beside an interaction: they alone determine the direction of a state."""

import numpy as np
import pytest
from scipy.special import iv

import meanfield as mf
from meanfield.bifurcation.families import symmetries_of

CIRCLE = mf.Circle(24)
ORDERED = 0.7241587176263531  # r = I_1(3 r)/I_0(3 r)
UP = mf.Potential(lambda x: x[..., -1])


def right(size):
    """The potential of a field of this size along the first axis."""
    return mf.Potential(lambda x: size * x[..., 0])


@pytest.mark.parametrize("size", [1e-4, 1e-6, 1e-8, 1e-10])
@pytest.mark.parametrize("factor", [1.0, 1e-3])
def test_a_weak_field_turns_a_state_towards_itself(size, factor):
    """r = I_1(x)/I_0(x) with x = kappa (2 r + h), at the angle 0 up to rounding over h."""
    drift = 2.0 * mf.Kuramoto() + factor * right(size / factor)
    found = mf.stationary(mf.Transformer(drift, 1.5), CIRCLE.von_mises(0.5, 1.0))
    moment = found.density.moment(1)
    argument = 1.5 * (2 * abs(moment) + size)
    assert found.converged and found.stable
    assert abs(moment) == pytest.approx(iv(1, argument) / iv(0, argument), abs=1e-12)
    assert abs(np.angle(moment)) < max(1e-9, 1e-14 / size)


@pytest.mark.parametrize("size", [1e-12, 1e-14, 1e-16])
def test_a_direction_within_rounding_errors_is_not_determined(size):
    model = mf.Transformer(2.0 * mf.Kuramoto() + right(size), 1.5)
    with pytest.warns(mf.UnresolvedWarning, match="direction is not determined"):
        found = mf.stationary(model, CIRCLE.von_mises(0.5, 1.0))
    assert found.converged and abs(found.density.moment(1)) == pytest.approx(ORDERED, abs=1e-11)


def test_a_weak_field_turns_a_state_on_the_sphere():
    """r = coth(x) - 1/x with x = kappa (r + h), along the field."""
    size, kappa = 1e-7, 5.0
    model = mf.Transformer(mf.Kuramoto() + size * UP, kappa)
    found = mf.stationary(model, mf.Sphere(18).von_mises_fisher((0.36, 0.48, 0.8), 3.0))
    mean = found.density.expect(lambda x: x)
    r = np.linalg.norm(mean)
    argument = kappa * (r + size)
    assert found.converged and r == pytest.approx(1 / np.tanh(argument) - 1 / argument, abs=1e-10)
    np.testing.assert_allclose(mean / r, [0, 0, 1], atol=1e-6)


@pytest.mark.parametrize("size", [1.0, 1e-5, 1e-13])
def test_each_part_of_a_sum_counts_by_its_own_size(size):
    model = mf.Transformer(mf.USA(2.0) + size * right(1.0), 2.0)
    assert symmetries_of(model, CIRCLE).reflections == (0, 2)
    assert symmetries_of(model, CIRCLE).planes == ()


def test_parts_that_cancel_leave_all_symmetries():
    model = mf.Transformer(2.0 * mf.Kuramoto() + right(0.5) - 0.5 * right(1.0), 1.5)
    found = mf.stationary(model, CIRCLE.von_mises(0.5, 1.0))
    assert symmetries_of(model, CIRCLE).planes == (0,)
    assert found.converged and np.angle(found.density.moment(1)) == pytest.approx(0.5, abs=1e-9)
