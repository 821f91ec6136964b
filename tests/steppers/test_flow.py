"""The flow of points: order, error control, and what becomes of velocities that are no numbers."""

import numpy as np
import pytest

from meanfield.steppers import DormandPrince
from meanfield.steppers.advance import NOT_FINITE, PAUSED, REACHED, TOO_SMALL
from meanfield.steppers.clock import started
from meanfield.steppers.flow import ExplicitFlow


class Riccati:
    """x' = 1 - x^2 for each point: x = tanh(t + arctanh x_0). No point depends on another."""

    calls = 0

    def velocity(self, x, t):
        self.calls += 1
        return 1 - x**2

    def relative_error(self, error, x):
        return float(np.abs(error).max())

    def projected(self, x):
        return x


class Rotation(Riccati):
    """Points (n, 3) that turn about e_z once in 2 pi, put back on the sphere at every step."""

    def velocity(self, x, t):
        return np.stack([-x[:, 1], x[:, 0], 0 * x[:, 2]], axis=1)

    def projected(self, x):
        return x / np.linalg.norm(x, axis=1, keepdims=True)


START = np.array([-0.9, 0.0, 0.3, 0.8])


def flow(motion=None, x=START, **options):
    """A flow with error control, unless it is switched off."""
    options = {"rtol": 1e-10, "smallest_change": 1e-14, **options}
    return ExplicitFlow(DormandPrince, motion or Riccati(), x, **options)


def exact(t):
    """The solution at a time."""
    return np.tanh(t + np.arctanh(START))


@pytest.mark.parametrize("steps", [3, 4, 5])
def test_the_order_is_eight(steps):
    """Two-sided: 8 +- 0.3, where errors are 7e-10 to 6e-14. Measured: 7.75, 7.83, 7.87."""
    errors = []
    for count in (steps, 2 * steps):
        moved = flow(rtol=0.0)
        code, _ = moved.advance(started(1 / count), 1.0, 10**6)
        assert code == REACHED and moved.counts[:2].tolist() == [count, 0]
        errors.append(np.abs(moved.x - exact(1.0)).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(8, abs=0.3)


@pytest.mark.parametrize("rtol", [1e-4, 1e-7, 1e-10, 1e-13])
def test_error_control_keeps_what_it_promises(rtol):
    """The points attract each other's past errors, so that those of all steps do not add up."""
    moved = flow(rtol=rtol)
    code, _ = moved.advance(started(1e-3), 3.0, 10**6)
    assert code == REACHED
    assert np.abs(moved.x - exact(3.0)).max() <= max(2 * rtol, 3e-15)


def test_a_step_that_is_much_too_long_is_tried_again():
    moved = flow()
    _, clock = moved.advance(started(3.0), 3.0, 1)
    assert moved.counts[:2].tolist() == [0, 1] and clock.t == 0 and clock.proposal < 3
    np.testing.assert_array_equal(moved.x, START)


def test_velocities_are_evaluated_as_often_as_counted():
    """Twelve a step, of which the last is the first of the next; one to begin with."""
    motion = Riccati()
    moved = flow(motion)
    moved.advance(started(0.1), 2.0, 10**6)
    assert (
        motion.calls
        == 1 + DormandPrince.evaluations * moved.counts[:2].sum()
        == 1 + moved.counts[2]
    )


def test_nothing_given_is_written_into():
    x = START.copy()
    moved = flow(x=x)
    moved.advance(started(0.1), 1.0, 10**6)
    np.testing.assert_array_equal(x, START)
    new, velocity, _ = moved.step(x, 1 - x**2, 0.0, 0.1)
    np.testing.assert_array_equal(x, START)
    other, _, _ = moved.step(x, 1 - x**2, 0.0, 0.2)
    assert not np.shares_memory(new, other) and velocity.shape == x.shape


def test_where_it_pauses_has_no_influence():
    whole, broken = flow(), flow()
    whole.advance(started(0.01), 2.0, 10**6)
    code, clock = PAUSED, started(0.01)
    while code == PAUSED:
        code, clock = broken.advance(clock, 2.0, 1)
        again = flow(x=broken.x)  # as if it were resumed from what is known
        again.counts[:], broken = broken.counts, again
    assert broken.x.tobytes() == whole.x.tobytes()
    assert broken.counts.tolist() == whole.counts.tolist()


def test_points_are_put_back_on_the_sphere():
    x = np.array([[1.0, 0.0, 0.0], [0.6, 0.0, 0.8]])
    moved = flow(Rotation(), x, rtol=0.0)
    moved.advance(started(0.3), 2 * np.pi, 10**6)
    np.testing.assert_allclose(np.linalg.norm(moved.x, axis=1), 1, rtol=0, atol=3e-16)
    np.testing.assert_allclose(moved.x, x, rtol=0, atol=1e-6)


class Broken(Riccati):
    """Velocities that are no numbers beyond x = 0.5."""

    def velocity(self, x, t):
        return np.where(x > 0.5, np.nan, 1 - x**2)


def test_velocities_that_are_no_numbers_end_the_run():
    x = np.array([0.0])
    code, clock = flow(Broken(), x).advance(started(0.1), 2.0, 10**6)
    assert code == TOO_SMALL and clock.t == pytest.approx(np.arctanh(0.5), abs=1e-3)
    moved = flow(Broken(), x, rtol=0.0)
    code, clock = moved.advance(started(0.1), 2.0, 10**6)
    assert code == NOT_FINITE and clock.t < np.arctanh(0.5) and np.isfinite(moved.x).all()


def test_a_state_that_is_not_finite_is_rejected_whatever_its_error():
    """A measure of errors may overlook numbers that are none."""

    class Blind(Riccati):
        def velocity(self, x, t):
            return np.where(t > 0.5, np.inf, 1.0) * np.ones_like(x)

        def relative_error(self, error, x):
            return 0.0

    moved = flow(Blind(), np.array([0.0]))
    code, _ = moved.advance(started(0.1), 2.0, 10**5)
    assert code == TOO_SMALL and np.isfinite(moved.x).all()
