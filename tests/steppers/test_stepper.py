"""A scheme applied to an equation: single steps, and the loop that decides about them."""

import numpy as np
import pytest
from python_function import PythonFunction

from meanfield.steppers import EXPONENTIAL, Krogstad, Rules, Stepper
from meanfield.steppers.advance import (
    COARSER,
    FINER,
    NOT_FINITE,
    PAUSED,
    REACHED,
    STEADY,
    TOO_SMALL,
)
from meanfield.steppers.clock import Clock

LINEAR = np.array([[-3.0, -1 + 5j, 0, -40]])
START = np.array([[1.0, 0.3 - 0.2j, 0.5, 0.1j], [0.2, -0.4, 0.6j, 1.0]])
METRIC = np.array([1.0, 2.0, 0.5, 0.25])

RULES = Rules(
    rtol=1e-7,
    error_order=4.0,
    tail=0.0,
    tail_degree=2.0,
    coarse_tail=0.0,
    coarse_degree=1.0,
    steady=0.0,
)


def nonlinear(u):
    """Every mode depends on its neighbours."""
    return 0.5 * u * np.roll(u, 1, axis=1) - 0.3j * np.roll(u, -1, axis=1) + 0.2


def build(function=nonlinear, *, scheme=Krogstad, linear=LINEAR, state=START, **weights):
    """A stepper for a small system that no symmetry makes easy."""
    state = np.asarray(state, dtype=complex)
    return Stepper(scheme, linear, PythonFunction(function, state.shape[1]), state, **weights)


def clock(proposal, t=0.0):
    """A clock that is about to plan steps of the proposed size."""
    return Clock(t, t, 0.0, 0, 0, proposal, 1.0)


def changed(**rules):
    """The rules with some of them changed."""
    return RULES._replace(**rules)


# One step ----------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", EXPONENTIAL, ids=lambda scheme: scheme.name)
def test_a_step_is_a_pure_function(scheme):
    """The same input gives the same bits, is not written to, and the stepper forgets it."""
    stepper = build(scheme=scheme)
    elsewhere = START + 0.25
    kept, counts = elsewhere.copy(), stepper.counts.copy()
    first, first_error = stepper.step(elsewhere, 0.05)
    stepper.step(START, 0.4)
    second, second_error = stepper.step(elsewhere, 0.05)
    np.testing.assert_array_equal(first, second)
    assert first_error == second_error
    np.testing.assert_array_equal(elsewhere, kept)
    np.testing.assert_array_equal(stepper.state, START)
    np.testing.assert_array_equal(stepper.counts, counts)


def test_steps_do_not_share_memory():
    stepper = build()
    first, _ = stepper.step(START, 0.05)
    kept = first.copy()
    stepper.step(first, 0.05)
    np.testing.assert_array_equal(first, kept)


def test_the_state_that_is_read_is_a_copy():
    stepper = build()
    stepper.state[:] = 7
    np.testing.assert_array_equal(stepper.state, START)


def test_the_estimate_is_relative_to_the_larger_state_in_the_metric():
    """Doubling u and N doubles error and size: a relative estimate must not change."""
    one = build(lambda u: 0.3j * u[:, ::-1], metric=METRIC)
    two = build(lambda u: 0.3j * u[:, ::-1], metric=4 * METRIC)
    error = one.step(START, 0.1)[1]
    assert error > 1e-6
    assert two.step(START, 0.1)[1] == error
    assert one.step(2 * START, 0.1)[1] == error


@pytest.mark.parametrize("failing", [0, 1], ids=["first", "last"])
def test_a_member_that_fails_is_seen_among_members_that_do_not(failing):
    """An estimate of nan must survive the maximum over the members, in whatever order."""
    state = np.array(START)
    state[failing, 0] = 1e200
    with np.errstate(all="ignore"):
        _, error = build(lambda u: u**3, state=np.ones_like(START)).step(state, 0.1)
    assert not np.isfinite(error)


def test_real_states_and_real_weights_work_too():
    """A space with real harmonics has float64 coefficients throughout."""
    linear, state = np.array([[-3.0, -0.5]]), np.array([[1.0, 0.5]])
    real = Stepper(Krogstad, linear, PythonFunction(np.sin, 2, np.float64), state)
    twin = Stepper(Krogstad, linear + 0j, PythonFunction(np.sin, 2), state + 0j)
    moved, _ = real.step(state, 0.1)
    assert moved.dtype == np.float64
    np.testing.assert_allclose(moved, twin.step(state + 0j, 0.1)[0], rtol=1e-15)


# Rates -------------------------------------------------------------------------------------


def test_the_rate_of_change_is_that_of_the_worst_member():
    stepper = build(metric=METRIC, parseval=METRIC**2)
    change = LINEAR * START + np.vstack([nonlinear(row[None]) for row in START])
    expected = np.sqrt((METRIC**2 * np.abs(change) ** 2).sum(axis=1)).max()
    assert stepper.rate == pytest.approx(expected, rel=1e-15)
    expected = np.sqrt((METRIC * np.abs(change) ** 2).sum(axis=1)).max()
    (rate,) = stepper.rows.rates_of_change(np.array([0]), stepper.rows.metric)
    assert rate == pytest.approx(expected, rel=1e-15)


def test_the_first_stage_is_always_that_of_the_present_state():
    """After steps, and after a state was put in, `rate` knows N(u) without evaluating it."""
    stepper = build()
    stepper.advance(clock(0.01), RULES, 0.1, 1000)
    fresh = build(state=stepper.state)
    assert stepper.rate == fresh.rate
    stepper.state = 2 * START
    assert stepper.rate == build(state=2 * START).rate


# The loop ----------------------------------------------------------------------------------


def test_the_loop_arrives_at_the_target_exactly():
    for target in (0.1, 1 / 3, np.nextafter(0.1, 1)):
        code, reached = build().advance(clock(0.013), RULES, target, 10_000)
        assert (code, reached.t) == (REACHED, target)


def test_the_loop_takes_the_steps_that_step_takes():
    stepper, state = build(), START
    stepper.advance(clock(0.01), changed(rtol=0.0), 0.05, 1000)
    for _ in range(5):
        state, _ = stepper.step(state, 0.05 / 5)
    np.testing.assert_array_equal(stepper.state, state)


def test_where_the_loop_pauses_has_no_influence():
    """All memory is in the clock and the state: this is what makes a resumed run bit-identical."""
    whole, pieces = build(), build()
    code, end = whole.advance(clock(0.01), RULES, 1.0, 10_000)
    now, steps = clock(0.01), 0
    while now.t < 1.0:
        paused, now = pieces.advance(now, RULES, 1.0, 1)
        steps += 1
        if steps % 3 == 0:  # a new stepper at this state, as after a restart
            pieces = build(state=pieces.state)
    assert (code, paused) == (REACHED, REACHED) and now == end and steps > 10
    np.testing.assert_array_equal(pieces.state, whole.state)


def test_a_fixed_step_divides_the_way_into_equal_parts():
    """Steps of at most dt: 0.25 in steps of 0.1 makes three of 1/12."""
    stepper, times, now = build(), [], clock(0.1)
    while now.t < 0.25:
        _, now = stepper.advance(now, changed(rtol=0.0), 0.25, 1)
        times.append(now.t)
    np.testing.assert_allclose(times, [0.25 / 3, 0.5 / 3, 0.25], rtol=1e-15)


def test_a_rejected_step_changes_nothing_but_the_plan():
    stepper = build()
    rate = stepper.rate
    code, now = stepper.advance(clock(0.5), changed(rtol=1e-10), 0.5, 1)
    assert code == PAUSED and now.t == 0 and now.proposal < 0.5
    np.testing.assert_array_equal(stepper.state, START)
    assert stepper.rate == rate
    assert stepper.counts[:2].tolist() == [0, 1]


def test_every_accepted_step_meets_the_tolerance():
    stepper, now, accepted = build(), clock(0.5), 0
    while now.t < 0.5:
        before, t = stepper.state, now.t
        _, now = stepper.advance(now, RULES, 0.5, 1)
        if now.t > t:
            _, error = stepper.step(before, now.step)
            assert error <= RULES.rtol
            accepted += 1
    assert accepted == stepper.counts[0] > 5 and stepper.counts[1] > 0


def test_the_step_size_follows_the_solution():
    """A decaying mode allows ever longer steps; none is longer than three times the last."""
    stepper = build(lambda u: u**2, linear=np.array([[-3.0, -4, -5, -6]]))
    steps, now = [], clock(1e-4)
    while now.t < 9:
        _, now = stepper.advance(now, RULES, 9.0, 1)
        steps.append(now.step)
    growth = np.array(steps[1:]) / np.array(steps[:-1])
    assert steps[-1] > 100 * steps[0] and growth.max() <= 3 * (1 + 1e-12)


# Why the loop comes back -------------------------------------------------------------------


def test_a_step_that_cannot_be_small_enough_is_reported():
    """du/dt = u^2 from 1 is 1/(1 - t): steps shrink to nothing at t = 1, to the tolerance."""
    stepper = build(lambda u: u**2, linear=np.zeros((1, 1)), state=np.ones((1, 1)))
    with np.errstate(all="ignore"):
        code, now = stepper.advance(clock(0.1), RULES, 2.0, 10_000)
    assert code == TOO_SMALL
    assert abs(now.t - 1) < 1e-4
    assert np.abs(stepper.state) > 1e4


def test_a_fixed_step_that_overflows_is_reported():
    with np.errstate(all="ignore"):
        stepper = build(lambda u: 1e200 * u**3)
        code, now = stepper.advance(clock(0.1), changed(rtol=0.0), 1.0, 1000)
    assert (code, now.t) == (NOT_FINITE, 0.0)
    np.testing.assert_array_equal(stepper.state, START)


def test_a_step_into_the_last_degrees_is_not_taken():
    """FINER comes before the step counts: it is taken again with more modes."""
    state = np.array([[1.0, 0, 0, 0]])
    stepper = build(lambda u: np.roll(u, 1, axis=1), linear=0 * LINEAR, state=state)
    rules = changed(rtol=0.0, tail=1e-9)
    code, now = stepper.advance(clock(0.1), rules, 1.0, 1000)
    assert (code, now.t) == (FINER, 0.0)
    np.testing.assert_array_equal(stepper.state, state)
    below = changed(rtol=0.0, tail=1.0)
    assert stepper.advance(clock(0.1), below, 0.1, 1000)[0] == REACHED


def test_degrees_that_are_not_needed_any_more_are_reported():
    state = np.array([[1.0, 0.1, 1e-3, 1e-3]])
    linear = np.array([[0.0, -1, -4, -9]])
    stepper = build(np.zeros_like, linear=linear, state=state)
    rules = changed(rtol=0.0, coarse_tail=1e-6)
    code, now = stepper.advance(clock(0.1), rules, 10.0, 1000)
    assert code == COARSER
    assert now.t == pytest.approx(1.8)  # the first multiple of 0.1 beyond log(1e3)/4 = 1.73
    assert now.planned == now.taken == 0


def test_the_loop_stops_where_nothing_moves_any_more():
    """du/dt = -(u - 1): the rate is e^{-t}, 1e-3 at t = log(1000)."""
    linear, state = np.array([[-1.0]]), np.zeros((1, 1))
    stepper = build(np.ones_like, linear=linear, state=state)
    code, now = stepper.advance(clock(0.01), changed(rtol=0.0, steady=1e-3), 100.0, 10**6)
    assert code == STEADY
    assert np.log(1000) <= now.t <= np.log(1000) + 0.0101
    assert stepper.rate <= 1e-3
