"""L that is diagonal in another basis: the same steps as in that basis."""

import numpy as np
import pytest
from python_function import PythonFunction

from meanfield.steppers import DormandPrince, HochbruckOstermann, Krogstad, Rules, Stepper
from meanfield.steppers.advance import REACHED
from meanfield.steppers.clock import started
from meanfield.steppers.eigenbasis import NO_BASIS, Eigenbasis

RATES = np.array([0.0, -1.0, -3.0, -0.5, -30.0, -2.0])
BLOCKS = [np.array([0, 3, 4]), np.array([1]), np.array([5, 2])]
START = np.array([[1.0, 0.3, -0.2, 0.5, 0.1, 0.4], [1.0, -0.1, 0.6, 0.2, -0.3, 0.1]])
RULES = Rules(1e-9, 4.0, 0.0, np.inf, 0.0, np.inf, 0.0)


def matrices(seed=3):
    """E and E^-1 in blocks, no coordinate next to the others of its block."""
    rng, back, blocks = np.random.default_rng(seed), np.zeros((6, 6)), []
    for mine in BLOCKS:
        square = np.eye(len(mine)) + 0.3 * rng.standard_normal((len(mine), len(mine)))
        back[np.ix_(mine, mine)] = square
        blocks.append((mine, np.linalg.inv(square), square))
    return back, Eigenbasis.of(blocks)


def nonlinear(u):
    return 0.5 * np.sin(u) * np.roll(u, 1, axis=1) - 0.3 * np.roll(u, -1, axis=1)


def test_a_change_of_coordinates_and_back():
    back, basis = matrices()
    np.testing.assert_allclose(basis.out_of(START), START @ back.T, rtol=1e-15)
    np.testing.assert_allclose(basis.into(START), START @ np.linalg.inv(back).T, atol=1e-15)
    assert NO_BASIS.into(START) is START


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 17, 64])
def test_blocks_of_any_size(size):
    matrix = np.random.default_rng(size).standard_normal((size, size))
    order = np.random.default_rng(0).permutation(size)
    basis = Eigenbasis.of([(order, matrix, np.eye(size))])
    u = np.random.default_rng(1).standard_normal((2, size))
    np.testing.assert_allclose(basis.into(u)[:, order], u[:, order] @ matrix.T, atol=1e-14 * size)
    np.testing.assert_array_equal(basis.out_of(u), u)


@pytest.mark.parametrize("scheme", [Krogstad, HochbruckOstermann, DormandPrince], ids=repr)
@pytest.mark.parametrize("rows", [1, 2], ids=["shared", "own"])
def test_steps_are_those_in_the_eigenbasis(scheme, rows):
    """v = E^-1 u solves dv/dt = diag(rates) v + E^-1 N(E v): ends, errors and states within."""
    back, basis = matrices()
    forth, linear = np.linalg.inv(back), RATES * np.array([[1.0], [0.4]])[:rows]
    mine = PythonFunction(nonlinear, 6, np.float64)
    theirs = PythonFunction(lambda v: nonlinear(v @ back.T) @ forth.T, 6, np.float64)
    stepper = Stepper(scheme, linear, mine, START, basis=basis)
    twin = Stepper(scheme, linear, theirs, START @ forth.T)
    moved, error = stepper.step(START, 0.05)
    expected, _ = twin.step(START @ forth.T, 0.05)
    np.testing.assert_allclose(moved, expected @ back.T, rtol=0, atol=1e-14)
    assert 0 < error < 1e-2
    for each in (stepper, twin):
        each.advance(started(0.05), RULES._replace(rtol=0.0), 0.3, 3, output=0.12)
    np.testing.assert_allclose(stepper.within(0.12), twin.within(0.12) @ back.T, atol=1e-14)
    at_first = stepper.within(stepper.before.t)
    np.testing.assert_allclose(at_first, stepper.state_before, rtol=0, atol=1e-15)


@pytest.mark.parametrize("scheme", [Krogstad, DormandPrince], ids=repr)
def test_complex_states_are_seen_as_real_ones(scheme):
    back, basis = matrices()
    real = Stepper(
        scheme, RATES[None], PythonFunction(nonlinear, 6, np.float64), START, basis=basis
    )

    def of_complex(u):
        return nonlinear(u.view(float)).view(complex)

    weights = {"metric": np.array([1.0, 2.0, 0.5]), "parseval": np.array([1.0, 2.0, 2.0])}
    seen = Stepper(
        scheme,
        RATES[None],
        PythonFunction(of_complex, 3),
        START.view(complex),
        basis=basis,
        **weights,
    )
    assert seen.state.dtype == complex
    np.testing.assert_array_equal(seen.state, START.view(complex))
    for each in (real, seen):
        code, _ = each.advance(started(0.01), RULES._replace(rtol=0.0), 0.2, 100)
        assert code == REACHED
    np.testing.assert_array_equal(seen.state.view(float), real.state)
    slope = START @ (back * RATES @ np.linalg.inv(back)).T + nonlinear(START)
    seen.state = START.view(complex)
    found = np.sqrt(np.repeat([1.0, 2.0, 2.0], 2) @ slope.T**2).max()
    assert abs(seen.rate - found) < 1e-14


def test_the_exponential_is_exact_however_long_the_step():
    back, basis = matrices()
    none = PythonFunction(np.zeros_like, 6, np.float64)
    stepper = Stepper(Krogstad, RATES[None], none, START, basis=basis)
    moved, error = stepper.step(START, 40.0)
    exact = START @ np.linalg.inv(back).T * np.exp(40 * RATES) @ back.T
    np.testing.assert_allclose(moved, exact, rtol=0, atol=1e-15)
    assert error == 0
