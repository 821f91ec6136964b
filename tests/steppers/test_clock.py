"""The clock: equal steps to the next time that is due, and the size that errors ask for."""

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from meanfield.steppers import clock as clocks

ORDER = 8.0


def planned(proposal, target, fixed=True):
    """A clock that has just planned its way to the target."""
    return clocks.planned_to(clocks.started(proposal), target, fixed)


def walked(clock, target, relative=-1.0):
    """The clock at the target, and the times on the way."""
    times = []
    while clock.t != target:
        clock = clocks.planned_to(clock, target, relative < 0)
        clock = clocks.accepted(clock, relative, ORDER, target)
        times.append(clock.t)
    return clock, times


@seed(0)
@settings(max_examples=60, deadline=None)
@given(st.floats(1e-3, 10), st.floats(1e-6, 1e6))
def test_a_plan_is_equal_steps_not_longer_than_proposed(proposal, scale):
    target = proposal * scale if scale > 1 else scale
    clock = planned(proposal, target)
    assert clock.step <= proposal * (1 + 1e-9)
    assert clock.planned * clock.step == pytest.approx(target, rel=1e-12)
    assert clock.planned == 1 or (clock.planned - 1) * proposal <= target


def test_a_whole_number_of_steps_is_not_rounded_up():
    for steps in (1, 3, 7, 10, 1000):
        assert planned(0.1, steps * 0.1).planned == steps


@pytest.mark.parametrize("target", [0.3, 1.0, np.pi])
def test_the_target_is_hit_exactly(target):
    clock, times = walked(clocks.started(0.07), target)
    assert clock.t == target and len(times) == np.ceil(target / 0.07)
    np.testing.assert_allclose(np.diff([0, *times]), target / len(times), rtol=1e-12)


def test_a_plan_is_kept_until_it_is_done():
    clock = planned(0.3, 1.0)
    assert clocks.planned_to(clock, 5.0, True) == clock
    clock, _ = walked(clock, 1.0)
    assert clocks.planned_to(clock, 5.0, True).start == 1.0


def test_a_small_error_lengthens_the_steps_at_most_threefold():
    clock = clocks.accepted(planned(0.01, 1.0), 1e-30, ORDER, 1.0)
    assert clock.proposal == pytest.approx(0.03) and clock.planned == clock.taken == 0


def test_an_error_that_has_grown_shortens_them_in_time():
    """Accepted still, but from 1e-4 of the bound to all of it: 0.9 (1e-4)^(0.4/8) = 0.57."""
    clock = planned(0.01, 1.0)._replace(previous_error=1e-4)
    clock = clocks.accepted(clock, 1.0, ORDER, 1.0)
    assert clock.proposal == pytest.approx(0.01 * 0.9 * 1e-4**0.05) and clock.planned == 0


def test_a_good_size_is_left_alone():
    """No factor between 0.9 and 1.2 changes the plan."""
    clock = planned(0.01, 1.0, fixed=False)
    for relative in (0.15, 0.4, 0.9):
        after = clocks.accepted(clock._replace(previous_error=relative), relative, ORDER, 1.0)
        assert after.proposal == clock.proposal and after.planned == clocks.MANY_STEPS


@pytest.mark.parametrize("relative", [1.001, 10.0, 1e6, np.inf, np.nan])
def test_a_rejected_step_is_shortened(relative):
    clock = planned(0.1, 1.0)
    after = clocks.rejected(clock, relative, ORDER)
    assert after.t == clock.t and after.planned == 0
    expected = 0.25 if not np.isfinite(relative) else max(0.2, 0.9 * relative ** (-1 / ORDER))
    assert after.proposal == pytest.approx(0.1 * expected)


@pytest.mark.parametrize("target", [0.1999, 0.2, 0.25, 0.3001, 0.35, 7.77, 1e6, 1e300])
def test_with_error_control_only_the_last_two_steps_depend_on_the_target(target):
    """They are equal, and none is longer than the error control allows."""
    if target > 10:
        clock = planned(0.1, target, fixed=False)
        assert clock.step == 0.1
        return
    _, times = walked(clocks.started(0.1), target, relative=0.5)
    steps = np.diff([0.0, *times])
    assert times[-1] == target and (steps <= 0.1 * (1 + 1e-9)).all()
    np.testing.assert_allclose(steps[:-2], 0.1, rtol=1e-12)
    np.testing.assert_allclose(steps[-2], steps[-1], rtol=1e-9)


def test_fixed_steps_stay_fixed():
    clock, times = walked(clocks.started(0.1), 1.0)
    assert clock.proposal == 0.1 and len(times) == 10
    clock, times = walked(clock, 1.05)  # a shorter one before the next output
    assert len(times) == 1
    assert len(walked(clock, 2.05)[1]) == 10


def test_a_clock_survives_being_written_down():
    clock = clocks.accepted(planned(0.03, 1.0), 0.5, ORDER, 1.0)
    again = clocks.restored(np.array(tuple(clock)))
    assert again == clock and isinstance(again.planned, int)
