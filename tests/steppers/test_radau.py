"""Radau IIA: its order, and steps that do not mind what decays fast."""

import numpy as np
import pytest

from meanfield.steppers.clock import ACCEPTED, REJECTED
from meanfield.steppers.radau import Radau, StiffFlow, jacobian


class Pendulum:
    """x'' = -sin x, and a third coordinate that follows cos t at a rate."""

    def __init__(self, rate: float = 1.0):
        self.rate_of_third = rate

    def velocity(self, x, t):
        position, speed, third = np.moveaxis(x, -1, 0)
        follows = self.rate_of_third * (np.cos(t) - third) - np.sin(t)
        return np.stack([speed, -np.sin(position), follows], axis=-1)

    def relative_error(self, error, x):
        return float(np.abs(error).max())

    def projected(self, x):
        return x

    def rate(self, x, velocity):
        return float(np.abs(velocity).max())


def at(motion, end, rtol, dt):
    flow = StiffFlow(Radau, motion, np.array([1.0, 0.0, 1.0]), rtol=rtol, steps=dt)
    while flow.clocks[0, 0] < end:
        (code,) = flow.advance(end)
        assert code in (ACCEPTED, REJECTED)
    return flow


@pytest.mark.parametrize("rate", [1.0, 1e9])
def test_accuracy_is_as_asked_in_few_steps_however_stiff(rate):
    exact = at(Pendulum(), 3.0, 1e-13, 0.01).x
    for rtol in (1e-5, 1e-8, 1e-11):
        flow = at(Pendulum(rate), 3.0, rtol, 0.01)
        assert np.abs(flow.x[:2] - exact[:2]).max() < 20 * rtol
        assert flow.x[2] == pytest.approx(np.cos(3.0), abs=20 * rtol)
        assert flow.counts[0] < 120


def test_order_nine():
    exact, errors = at(Pendulum(), 2.0, 1e-13, 0.01).x, []
    for steps in (2, 4):
        flow = at(Pendulum(), 2.0, 0.0, 2.0 / steps)
        assert flow.counts[:2].tolist() == [[steps], [0]]
        errors.append(np.abs(flow.x - exact).max())
    assert 8.5 < np.log2(errors[0] / errors[1]) < 9.8


def test_jacobians_of_cubic_velocities_are_exact():
    class Cubic(Pendulum):
        def velocity(self, x, t):
            return x**3 + x[..., ::-1, :] * x**2

    x = np.array([[1.0, 1e9], [-2.0, 3e8]])
    found = jacobian(Cubic(), x, 0.0)
    first = np.diag((3 * x**2 + 2 * x * x[::-1]).ravel())
    expected = first + np.roll(np.eye(4), 2, axis=0) * (x**2).ravel()[:, None]
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
