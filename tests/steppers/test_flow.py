"""The flow of points: order, error control, and what becomes of velocities that are no numbers."""

import numpy as np
import pytest

from meanfield.steppers import DormandPrince
from meanfield.steppers.clock import ACCEPTED, GIVES_UP, LOST, REJECTED, STUCK, restored
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


def moved_to(target, step, limit=10**6, **options):
    """A flow after steps towards a time, the first of the given length, and the last code."""
    moved, code = flow(steps=step, **options), ACCEPTED
    for _ in range(limit):
        (code,) = moved.advance(target)
        if code not in (ACCEPTED, REJECTED) or moved.clocks[0, 0] == target:
            break
    return moved, code


def exact(t):
    """The solution at a time."""
    return np.tanh(t + np.arctanh(START))


@pytest.mark.parametrize("steps", [3, 4, 5])
def test_the_order_is_eight(steps):
    """Two-sided: 8 +- 0.3, where errors are 7e-10 to 6e-14. Measured: 7.75, 7.83, 7.87."""
    errors = []
    for count in (steps, 2 * steps):
        moved, code = moved_to(1.0, 1 / count, rtol=0.0)
        assert code == ACCEPTED and moved.counts[:2].tolist() == [[count], [0]]
        errors.append(np.abs(moved.x - exact(1.0)).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(8, abs=0.3)


@pytest.mark.parametrize("rtol", [1e-4, 1e-7, 1e-10, 1e-13])
def test_error_control_keeps_what_it_promises(rtol):
    """The points attract each other's past errors, so that those of all steps do not add up."""
    moved, code = moved_to(3.0, 1e-3, rtol=rtol)
    assert code == ACCEPTED and moved.clocks[0, 0] == 3.0
    assert np.abs(moved.x - exact(3.0)).max() <= max(2 * rtol, 3e-15)


def test_a_step_that_is_much_too_long_is_tried_again():
    moved, _ = moved_to(3.0, 3.0, limit=1)
    clock = restored(moved.clocks[0])
    assert moved.counts[:2].tolist() == [[0], [1]] and clock.t == 0 and clock.proposal < 3
    np.testing.assert_array_equal(moved.x, START)


def test_velocities_are_evaluated_as_often_as_counted():
    """Twelve a step, of which the last is the first of the next; one to begin with."""
    motion = Riccati()
    moved, _ = moved_to(2.0, 0.1, motion=motion)
    assert (
        motion.calls
        == 1 + DormandPrince.evaluations * moved.counts[:2].sum()
        == 1 + moved.counts[2]
    )


def test_nothing_given_is_written_into():
    x = START.copy()
    moved, _ = moved_to(1.0, 0.1, x=x)
    np.testing.assert_array_equal(x, START)
    new, velocity, _ = moved.step(x, 1 - x**2, 0.0, 0.1)
    np.testing.assert_array_equal(x, START)
    other, _, _ = moved.step(x, 1 - x**2, 0.0, 0.2)
    assert not np.shares_memory(new, other) and velocity.shape == x.shape


def test_a_flow_made_anew_at_each_step_takes_the_same_steps():
    whole, broken = moved_to(2.0, 0.01)[0], flow(steps=0.01)
    while broken.clocks[0, 0] < 2.0:
        broken.advance(2.0)
        again = flow(x=broken.x)  # as if it were resumed from what is known
        for name in ("clocks", "stalls", "counts"):
            getattr(again, name)[:] = getattr(broken, name)
        broken = again
    assert broken.x.tobytes() == whole.x.tobytes()
    assert broken.counts.tolist() == whole.counts.tolist()


def test_points_are_put_back_on_the_sphere():
    x = np.array([[1.0, 0.0, 0.0], [0.6, 0.0, 0.8]])
    moved, _ = moved_to(2 * np.pi, 0.3, motion=Rotation(), x=x, rtol=0.0)
    np.testing.assert_allclose(np.linalg.norm(moved.x, axis=1), 1, rtol=0, atol=3e-16)
    np.testing.assert_allclose(moved.x, x, rtol=0, atol=1e-6)


class Broken(Riccati):
    """Velocities that are no numbers beyond x = 0.5."""

    def velocity(self, x, t):
        return np.where(x > 0.5, np.nan, 1 - x**2)


def test_velocities_that_are_no_numbers_end_the_run():
    x = np.array([0.0])
    moved, code = moved_to(2.0, 0.1, motion=Broken(), x=x)
    assert code in (STUCK, GIVES_UP) and moved.clocks[0, 0] == pytest.approx(
        np.arctanh(0.5), abs=1e-3
    )
    moved, code = moved_to(2.0, 0.1, motion=Broken(), x=x, rtol=0.0)
    assert code == LOST and moved.clocks[0, 0] < np.arctanh(0.5) and np.isfinite(moved.x).all()


def test_a_state_that_is_not_finite_is_rejected_whatever_its_error():
    """A measure of errors may overlook numbers that are none."""

    class Blind(Riccati):
        def velocity(self, x, t):
            return np.where(t > 0.5, np.inf, 1.0) * np.ones_like(x)

        def relative_error(self, error, x):
            return 0.0

    moved, code = moved_to(2.0, 0.1, motion=Blind(), x=np.array([0.0]))
    assert code in (STUCK, GIVES_UP) and np.isfinite(moved.x).all()


class Each(Riccati):
    """Groups whose velocities depend on time, each at its own."""

    autonomous = False

    def velocity(self, x, t):
        return np.cos(t) * (1 - x**2)

    def relative_errors(self, error, x):
        return np.abs(error).max(axis=1)

    def of_members(self, members):
        return self


@pytest.mark.bits
def test_groups_take_the_steps_that_they_take_alone():
    x = np.array([START, START / 2, -START])
    steps, times = [0.1, 0.2, 0.3], [0.3, 0.4, 0.5]
    moved = flow(Each(), x.copy(), groups=3, steps=steps)
    for chosen in ([0, 1, 2], [0, 2], [2], [0, 1, 2]):
        moved.advance(3.0, np.array(chosen))
    states = [moved.within(t, np.array([r])) for r, t in enumerate(times)]
    for r, count in enumerate((3, 2, 4)):
        alone, _ = moved_to(3.0, steps[r], limit=count, motion=Each(), x=x[r])
        np.testing.assert_array_equal(alone.x, moved.x[r])
        np.testing.assert_array_equal(alone.clocks[0], moved.clocks[r])
        np.testing.assert_array_equal(alone.within(times[r]), states[r][0])
        assert alone.counts[:, 0].tolist() == moved.counts[:, r].tolist()
