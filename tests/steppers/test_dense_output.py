"""The state within a step: its order, what it keeps, and that nobody pays for it who does not ask.

Every test runs over `steppers.SCHEMES`, all of which have dense output, or over `EXPONENTIAL`.
"""

import numpy as np
import pytest
from phi import write_phi
from python_function import PythonFunction
from riccati import PROBLEMS, Riccati, orders

from meanfield.steppers import EXPONENTIAL, SCHEMES, Rules, Stepper
from meanfield.steppers.advance import REACHED
from meanfield.steppers.clock import started
from meanfield.steppers.dense_output import ParabolicInterpolant
from meanfield.steppers.stepper import FIXED_STEP

RULES = Rules(1e-7, 4.0, 0.0, np.inf, 0.0, np.inf, 0.0)
LINEAR = np.array([[0.0, -1.0, -20.0 + 3j], [0.0, -0.1, 5j]])
START = np.array([[1.0, 0.3 - 0.2j, 0.5], [1.0, -0.4, 0.6j]])

every_scheme = pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
every_exponential_scheme = pytest.mark.parametrize("scheme", EXPONENTIAL, ids=repr)


def nonlinear(u):
    """Modes act on each other, but for the first, which is conserved."""
    slope = 0.5 * u * np.roll(u, 1, axis=1) - 0.3j * np.roll(u, -1, axis=1) + 0.2
    slope[:, 0] = 0
    return slope


def build(scheme, linear=LINEAR, state=START):
    """A stepper for a small system of two members."""
    state = np.asarray(state, dtype=complex)
    return Stepper(scheme, linear, PythonFunction(nonlinear, state.shape[1]), state)


def stepped(scheme, dt=0.05, **options):
    """A stepper after one step, which an output within it has asked to keep."""
    stepper = build(scheme, **options)
    code, _ = stepper.advance(started(dt), FIXED_STEP, 2 * dt, 1, dt / 2)
    assert code == REACHED and stepper.before.step == dt
    return stepper


# Order -------------------------------------------------------------------------------------


def errors(problem, scheme, steps):
    """Largest errors within steps, and the largest estimate of the error of a step, absolute."""
    stepper, clock = problem.stepper(scheme), started(problem.end / steps)
    inner, estimates = [], []
    while clock.t < problem.end:
        start = stepper.state
        new, relative = stepper.step(start, clock.proposal)
        estimates.append(relative * max(map(np.linalg.norm, (start, new))))
        _, clock = stepper.advance(clock, FIXED_STEP, problem.end, 1, np.nextafter(clock.t, 9))
        if clock.t < problem.end:  # a step to the end is not kept
            for t in stepper.before.t + np.arange(1, 8) / 8 * stepper.before.step:
                inner.append(np.linalg.norm(stepper.within(t)[0] - problem.exact(t)))
    return max(inner), max(estimates)


@pytest.mark.repeats
@every_exponential_scheme
@pytest.mark.parametrize("linear", PROBLEMS, ids=str)
def test_the_order_at_any_time_is_four(scheme, linear):
    """Two-sided. The error within a step is that of all steps before, and of order 3 + 1 locally.

    It is measured to be 0.4 to 5 times the estimate of the error of a step.
    """
    found = [errors(Riccati(linear), scheme, steps) for steps in (64, 128, 256)]
    inner, estimates = np.transpose(found)
    assert inner[-1] > 100 * np.finfo(float).eps, "rounding hides the order"
    np.testing.assert_allclose(orders(inner), 4, atol=0.15)
    assert (0.1 * estimates < inner).all() and (inner < 10 * estimates).all()


@every_exponential_scheme
def test_a_slope_that_is_a_parabola_in_time_is_integrated_exactly(scheme):
    """u = e^{sz} u_0 + dt sum_j s^{j+1} phi_{j+1}(sz) P^{(j)}(0), by variation of constants."""
    dt, parts, value = 0.7, (0.2, 0.5, 0.9), np.empty(4, dtype=complex)
    linear, u = np.array([[-2.0, 3j, 0]]), np.array([[0.3, 0.4j, 1.0]], dtype=complex)
    first, second, third = np.array([[1.0, 2j, -1]]), np.array([[0.5, 1, 2]]), np.ones((1, 3))

    def exact(s):
        state = np.empty_like(u)
        for k in range(3):
            write_phi(s * dt * linear[0, k], value)
            by_powers = [p[0, k] for p in (first, second, 2 * third)]
            powers = [s * value[1], s**2 * value[2], s**3 * value[3]]
            state[0, k] = value[0] * u[0, k] + dt * np.dot(powers, by_powers)
        return state

    times = [0.0, *scheme.nodes, 1.0]
    slopes = np.stack([first + c * second + c**2 * third for c in times], axis=1)
    within = ParabolicInterpolant(scheme.dense, linear, u, exact(1.0), slopes, dt)
    for s in parts:
        np.testing.assert_allclose(within(s), exact(s), rtol=0, atol=2e-15)


# What is kept ------------------------------------------------------------------------------


@every_scheme
def test_it_joins_the_ends_of_the_step(scheme):
    stepper = stepped(scheme)
    np.testing.assert_array_equal(stepper.state_before, START)
    np.testing.assert_array_equal(stepper.within(0.0), START)
    np.testing.assert_allclose(stepper.within(0.05), stepper.state, rtol=0, atol=4e-16)


@pytest.mark.bits
@every_scheme
def test_what_does_not_change_is_kept_to_the_bit(scheme):
    """The first mode of a density is its mass."""
    stepper = stepped(scheme)
    for t in np.linspace(0, 0.05, 11):
        np.testing.assert_array_equal(stepper.within(t)[:, 0], START[:, 0])


@pytest.mark.bits
@every_scheme
def test_each_member_is_as_if_it_were_alone(scheme):
    together = stepped(scheme)
    for i in range(2):
        own = slice(i, i + 1)
        alone = stepped(scheme, linear=LINEAR[own], state=START[own])
        np.testing.assert_array_equal(together.within(0.02)[own], alone.within(0.02))


@every_scheme
def test_real_states_stay_real(scheme):
    """As on the sphere. Half a step agrees with a step of half the length to dt^4 |N'''| / 384."""
    function = PythonFunction(lambda u: 0.5 * u * np.roll(u, 1, axis=1), 3, np.float64)
    start = np.array([[1.0, 0.3, 0.1]])
    stepper = Stepper(scheme, np.array([[0.0, -1, -20]]), function, start)
    half, _ = stepper.step(start, 0.01)
    stepper.advance(started(0.02), FIXED_STEP, 1.0, 1, 0.01)
    assert stepper.within(0.01).dtype == float
    np.testing.assert_allclose(stepper.within(0.01), half, rtol=0, atol=2e-7)  # |N'''| = 400


# Nothing else ------------------------------------------------------------------------------


@every_scheme
def test_outputs_have_no_influence_on_the_steps(scheme):
    """Neither where the loop comes back for them nor that they are looked at."""
    rules = RULES._replace(error_order=scheme.estimate_order + 1.0)
    plain, asked = build(scheme), build(scheme)
    code, end = plain.advance(started(0.01), rules, 1.0, 10_000)
    clock, seen = started(0.01), 0
    for output in np.linspace(0, 1, 37)[1:]:
        while clock.t < output:
            _, clock = asked.advance(clock, rules, 1.0, 10_000, output)
        if clock.t > output:
            asked.within(output)
            seen += 1
    assert code == REACHED and clock == end and seen > 20
    np.testing.assert_array_equal(asked.state, plain.state)
    np.testing.assert_array_equal(asked.counts, plain.counts)


@every_scheme
def test_the_loop_comes_back_at_the_first_step_that_reaches_the_output(scheme):
    stepper, clock = build(scheme), started(0.01)
    for output in (0.005, 0.03, 0.045):
        code, clock = stepper.advance(clock, FIXED_STEP, 1.0, 1000, output)
        assert code == REACHED
        assert stepper.before.t < output <= clock.t
