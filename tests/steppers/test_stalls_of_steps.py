"""When error control gives up: only where nothing comes of going on."""

import itertools

import numpy as np

from meanfield.steppers.clock import Stall, stall_accepted, stall_rejected, stalled_for_good


def given_up(steps, moved=False):
    """The number of accepted steps after which it is enough; None if it never is."""
    stall = Stall()
    for count, step in enumerate(steps, start=1):
        stall = stall_accepted(stall, step, moved)
        if stalled_for_good(stall):
            return count
    return None


def test_a_collapse_of_600_orders_of_magnitude_is_waited_for():
    """Down by a tenth at each step, and up again by a tenth: 14000 steps, each way."""
    down = 10 ** np.linspace(292, -302, 13_000)
    assert given_up([*down, *down[::-1]]) is None


def test_steps_that_stay_as_short_as_they_are_are_not():
    """However they vary: after at most two times 500 steps, and a few."""
    rng = np.random.default_rng(0)
    for steps in (itertools.repeat(1e-30), iter(lambda: 1e-30 * rng.uniform(0.2, 3), None)):
        count = given_up(itertools.islice(steps, 10_000))
        assert count is not None and 500 < count < 1800


def test_a_clock_that_moves_is_never_too_slow():
    assert given_up(itertools.repeat(1e-30, 10_000), moved=True) is None


def test_a_step_that_moves_the_clock_ends_the_wait():
    stall = Stall()
    for _ in range(2):
        for _ in range(480):
            stall = stall_accepted(stall, 1.0, has_moved=False)
            assert not stalled_for_good(stall) and stall.shortest > 0
        stall = stall_accepted(stall, 1.0, has_moved=True)
        assert stall == Stall()


def test_sixty_rejections_in_a_row_are_enough():
    stall = Stall()
    for _ in range(5):
        for _ in range(60):
            stall = stall_rejected(stall)
            assert not stalled_for_good(stall)
        last, stall = stall, stall_accepted(stall, 1.0, has_moved=True)
    assert stalled_for_good(stall_rejected(last))


def test_no_step_is_shorter_than_a_number():
    """Towards a singularity steps shrink until nothing is left of them."""
    assert given_up(0.5 ** np.arange(1, 1100)) == 1023
    assert given_up([0.0]) == 1
