"""Equations side by side: each row has the steps that it has alone."""

import numpy as np
import pytest
from python_function import PythonFunction

from meanfield.steppers import DormandPrince, Krogstad, Rules, Stepper
from meanfield.steppers.advance import Task
from meanfield.steppers.clock import started
from meanfield.steppers.rows import Rows
from meanfield.steppers.stepper import advance_rows

LINEARS = [np.array([[-1.0, -3.0, -20.0]]), np.array([[0.0, -1.0, -2.0]]), np.array([[-4.0] * 3])]
STARTS = [np.array([[1.0, 0.3, 0.5j]]), np.array([[0.2, 0.6j, 1.0]]), np.array([[0.0, 2.0, 0.1]])]
PROPOSALS, TARGETS, LIMITS = [0.05, 0.01, 0.2], [1.0, 3.0, 0.7], [100, 3, 40]
RULES = Rules(1e-7, 4.0, 0.0, 2.0, 0.0, 1.0, 0.0)


class Turning(PythonFunction):
    """Every mode depends on its neighbours and on time; it meets a speed of its own."""

    def __init__(self, factor):
        def nonlinear(u):
            self.speed[0] = max(self.speed[0], factor * abs(u).max())
            return factor * u * np.roll(u, 1, axis=1) + 0.2 * np.cos(self.time[0])

        super().__init__(nonlinear, 3)


def rows_of(scheme):
    """The three equations side by side, at their starts."""
    rows = Rows(scheme, LINEARS[0], (1, 3), complex, count=3, start=0.25)
    steppers = [
        Stepper.of_row(rows, i, linear, Turning(i + 1.0), 0) for i, linear in enumerate(LINEARS)
    ]
    rows.begin(np.arange(3), np.array(STARTS), 0.0)
    return rows, steppers


def alone(scheme, i):
    return Stepper(scheme, LINEARS[i], Turning(i + 1.0), STARTS[i].astype(complex), start=0.25)


@pytest.mark.bits
@pytest.mark.parametrize("scheme", [Krogstad, DormandPrince], ids=lambda scheme: scheme.name)
def test_rows_have_the_bits_that_they_have_alone(scheme):
    """With clocks, ends and limits of their own, in any order, and in several calls."""
    _, steppers = rows_of(scheme)
    clocks = [started(proposal) for proposal in PROPOSALS]
    for order in ([2, 0, 1], [1, 2]):
        tasks = [Task(clocks[i], RULES, TARGETS[i], np.inf, LIMITS[i]) for i in order]
        found = advance_rows([steppers[i] for i in order], tasks)
        for i, (_, clock) in zip(order, found, strict=True):
            clocks[i] = clock
    for i, stepper in enumerate(steppers):
        single, clock = alone(scheme, i), started(PROPOSALS[i])
        for _ in range(1 if i == 0 else 2):
            _, clock = single.advance(clock, RULES, TARGETS[i], LIMITS[i])
        np.testing.assert_array_equal(stepper.state, single.state)
        np.testing.assert_array_equal(stepper.state_before, single.state_before)
        np.testing.assert_array_equal(stepper.counts, single.counts)
        np.testing.assert_array_equal(stepper.made, single.made)
        assert (clock, stepper.elapsed) == (clocks[i], single.elapsed)
        assert (stepper.rate, stepper.speed) == (single.rate, single.speed)
        assert stepper.before == single.before and stepper.weighed_step == single.weighed_step


def test_growths_and_rates_are_those_of_each_row_alone():
    rows, _ = rows_of(Krogstad)
    every = np.arange(3)
    together = rows.growths(every, 0.01, 0.0), rows.rates_of_change(every, rows.metric)
    for i in range(3):
        single, first = alone(Krogstad, i).rows, np.zeros(1, dtype=int)
        assert single.growths(first, 0.01, 0.0)[0] == together[0][i] > 0
        assert single.rates_of_change(first, single.metric)[0] == together[1][i] > 0


@pytest.mark.bits
def test_a_step_elsewhere_leaves_all_rows_alone():
    rows, steppers = rows_of(Krogstad)
    kept = [np.copy(array) for array in rows.memory], rows.speeds.copy()
    new, error = steppers[1].step(STARTS[2], 0.1)
    for array, before in zip(rows.memory, kept[0], strict=True):
        if array is not rows.memory.modal:  # scratch memory
            np.testing.assert_array_equal(array, before)
    np.testing.assert_array_equal(rows.speeds, kept[1])
    expected, own = alone(Krogstad, 1).step(STARTS[2], 0.1)
    np.testing.assert_array_equal(new, expected)
    assert error == own > 0


def test_a_known_rate_is_forgotten_with_the_state():
    _, steppers = rows_of(Krogstad)
    stepper = steppers[1]
    stepper.advance(started(0.1), RULES, 1.0, 2)
    stepper.elapsed = 0.0
    stepper.state = STARTS[1]
    assert stepper.rate == alone(Krogstad, 1).rate
