"""The schemes: the algebra of their weights, and the order they show.

Every test runs over `steppers.EXPONENTIAL`, so a new scheme is tested the day it is listed.
"""

import mpmath
import numpy as np
import pytest
from python_function import PythonFunction
from riccati import PROBLEMS, Riccati, orders

from meanfield.steppers import EXPONENTIAL, SCHEMES, DormandPrince, Scheme, Stepper, Term

POINTS = [0j, -1e-3 + 0j, -0.7 + 0j, -30 + 0j, 2j, -1 + 5j, -4 - 0.5j]
ROUNDING = 1e-14  # sums of at most 20 terms of size <= 8, known to 30 digits, taken in doubles

every_scheme = pytest.mark.parametrize("scheme", EXPONENTIAL, ids=lambda scheme: scheme.name)
at_every_point = pytest.mark.parametrize("z", POINTS, ids=str)


def phi(order, z):
    """phi_order(z), which solves k phi = 1/k! + z phi_next, by its integral: no recurrence."""
    if order == 0:
        return complex(mpmath.exp(z))
    factorial = mpmath.factorial(order - 1)
    with mpmath.workdps(30):
        integral = mpmath.quad(lambda s: mpmath.exp((1 - s) * z) * s ** (order - 1), [0, 1])
        return complex(integral / factorial)


def matrix(scheme, z):
    """All weights at z: rows are the first stage (empty), the stages, solution and estimate."""
    rows = [{}, *scheme.rows()]
    weights = np.zeros((len(rows), len(rows) - 1), dtype=complex)
    for i, row in enumerate(rows):
        for j, terms in row.items():
            weights[i, j] = sum(t.factor * phi(t.order, t.node * z) for t in terms)
    return weights


def nodes(scheme):
    """c_0 = 0, the nodes of the stages, and 1 for the solution, a stage of the estimate."""
    return np.array([0.0, *scheme.nodes, 1.0])


# Algebra -----------------------------------------------------------------------------------


@pytest.mark.repeats
@every_scheme
@at_every_point
def test_constant_forcing_is_integrated_exactly(scheme, z):
    """sum_j a_ij = c_i phi_1(c_i z), sum_j b_j = phi_1, and the estimate sees no error: 0."""
    expected = [c * phi(1, c * z) for c in nodes(scheme)] + [0]
    np.testing.assert_allclose(matrix(scheme, z).sum(axis=1), expected, atol=ROUNDING)


@pytest.mark.repeats
@every_scheme
@at_every_point
def test_polynomial_forcing_is_integrated_exactly(scheme, z):
    """sum_j b_j c_j^q / q! = phi_{q+1} for q = 1, 2: the stiff quadrature conditions."""
    b, c = matrix(scheme, z)[-2], nodes(scheme)
    for q, factorial in ((1, 1), (2, 2)):
        np.testing.assert_allclose(b @ c**q / factorial, phi(q + 1, z), atol=ROUNDING)


@every_scheme
def test_without_linear_part_all_eight_conditions_of_order_four_hold(scheme):
    weights, c = matrix(scheme, 0).real, nodes(scheme)
    np.testing.assert_allclose(_residuals(weights[-2], weights, c), 0, atol=ROUNDING)


@every_scheme
def test_the_embedded_scheme_is_of_order_three_and_no_more(scheme):
    """A companion of order 4 would measure nothing; one of order 2 would cost step size."""
    weights, c = matrix(scheme, 0).real, nodes(scheme)
    residuals = _residuals(weights[-2] + weights[-1], weights, c)
    assert scheme.estimate_order == 3
    np.testing.assert_allclose(residuals[:4], 0, atol=ROUNDING)
    assert np.abs(residuals[4:]).max() > 0.01


def _residuals(b, weights, c):
    """Butcher's conditions of order 1, 2, 3, 3, 4, 4, 4, 4 for explicit schemes."""
    a = weights[:-1]
    return np.array(
        [
            b.sum() - 1,
            b @ c - 1 / 2,
            b @ c**2 - 1 / 3,
            b @ a @ c - 1 / 6,
            b @ c**3 - 1 / 4,
            (b * c) @ a @ c - 1 / 8,
            b @ a @ c**2 - 1 / 12,
            b @ a @ a @ c - 1 / 24,
        ]
    )


@pytest.mark.repeats
@at_every_point
def test_hochbruck_ostermann_meets_the_stage_conditions_that_order_four_needs_when_stiff(z):
    """sum_j a_ij c_j = c_i^2 phi_2(c_i z) in every stage that enters the solution; (5.7)."""
    scheme = next(scheme for scheme in EXPONENTIAL if scheme.name == "HochbruckOstermann")
    weights, c = matrix(scheme, z), nodes(scheme)
    entering = [j for j in scheme.solution if j > 0]
    assert entering == [3, 4]
    for i in entering:
        np.testing.assert_allclose(weights[i] @ c, c[i] ** 2 * phi(2, c[i] * z), atol=ROUNDING)


@every_scheme
def test_a_scheme_is_explicit(scheme):
    """Stage i uses earlier stages only; the estimate alone may use the solution itself."""
    for i, row in enumerate(scheme.rows(), start=1):
        assert max(row) < i
    assert scheme.evaluations == len(scheme.stages) + 1 == len(scheme.nodes) + 1


def test_a_phi_function_that_does_not_exist_is_refused():
    wrong = Scheme("wrong", 1, 1, (), (), {0: [Term(1, 4, 1.0)]}, {}, "")
    with pytest.raises(ValueError, match="available up to order 3"):
        assert wrong.table


# Observed order ----------------------------------------------------------------------------


@pytest.mark.repeats
@every_scheme
@pytest.mark.parametrize("linear", PROBLEMS, ids=str)
def test_order_is_as_stated(scheme, linear):
    """Complex L matters: weights that lose their imaginary part drop to order 1."""
    problem = Riccati(linear)
    errors = [problem.error(scheme, steps) for steps in (64, 128, 256)]
    assert errors[-1] > 100 * np.finfo(float).eps, "rounding hides the order"
    np.testing.assert_allclose(orders(errors), scheme.order, atol=0.1)


@every_scheme
@pytest.mark.parametrize("linear", PROBLEMS, ids=str)
def test_estimate_is_of_the_order_that_the_step_control_assumes(scheme, linear):
    """The estimate of one step is of size dt^(estimate_order + 1)."""
    stepper = Riccati(linear).stepper(scheme)
    steps = [0.1 / abs(linear) / 2**i for i in (3, 4, 5)]
    estimates = [stepper.step(stepper.state, dt)[1] for dt in steps]
    assert estimates[-1] > 1e-14, "rounding hides the order"
    np.testing.assert_allclose(orders(estimates), scheme.estimate_order + 1, atol=0.1)


@every_scheme
def test_a_linear_equation_is_solved_exactly_by_one_step(scheme):
    """N = 0: the step is e^{dt L}, whatever dt, and the estimate is 0."""
    linear = np.array([[-1000.0, -40, -1 + 5j, 2j, 0]])
    state = np.ones((1, 5), dtype=complex)
    stepper = Stepper(scheme, linear, PythonFunction(np.zeros_like, 5), state)
    moved, estimate = stepper.step(state, 3.0)
    np.testing.assert_allclose(moved, np.exp(3 * linear), rtol=1e-14, atol=1e-300)
    assert estimate == 0


@pytest.mark.bits
@every_scheme
def test_members_with_their_own_linear_part_move_as_if_alone(scheme):
    linear = np.array([[-3.0, 2j], [-40, -1 + 5j], [0, -0.1]])
    state = np.array([[0.5, 0.2j], [1, -1], [0.3, 0.4]])

    def nonlinear(u):
        return 0.3 * u**2 + 1j * u[:, ::-1]

    together = Stepper(scheme, linear, PythonFunction(nonlinear, 2), state)
    moved, estimate = together.step(state, 0.1)
    errors = []
    for i in range(3):
        mine = slice(i, i + 1)
        alone = Stepper(scheme, linear[mine], PythonFunction(nonlinear, 2), state[mine])
        one, error = alone.step(state[mine], 0.1)
        np.testing.assert_array_equal(moved[i], one[0])
        errors.append(error)
    assert estimate == max(errors)


# Estimates in time ---------------------------------------------------------------------------


@pytest.mark.long
def test_which_estimates_see_time():
    """Where N is a function of t alone that of an exponential scheme is 0: those of `in_time` not.

    The law: the weights at each time cancel, here taken as numbers at some z.
    """
    for scheme in (*SCHEMES, *(scheme.in_time for scheme in SCHEMES)):
        for z in (-0.7, -30):
            weights, times = matrix(scheme, z), nodes(scheme)
            rows = weights[len(scheme.stages) + 2 :, : times.size]
            sums = [[row[times == t].sum() for t in np.unique(times)] for row in rows]
            assert scheme.sees_time == bool(np.abs(sums).max() > 1e-6)
        assert scheme.in_time.sees_time and scheme.in_time.in_time is scheme.in_time
    assert [scheme.sees_time for scheme in SCHEMES] == [False, False, True]
    assert DormandPrince.in_time is DormandPrince


@every_scheme
@pytest.mark.parametrize("linear", PROBLEMS, ids=str)
def test_the_estimate_in_time_is_of_the_same_order(scheme, linear):
    """And the solution is the same, to the bit."""
    seeing, blind = (Riccati(linear).stepper(one) for one in (scheme.in_time, scheme))
    steps = [0.1 / abs(linear) / 2**i for i in (3, 4, 5)]
    found = [seeing.step(seeing.state, dt) for dt in steps]
    for dt, (moved, estimate) in zip(steps, found, strict=True):
        same, least = blind.step(blind.state, dt)
        np.testing.assert_array_equal(moved, same)
        assert estimate >= least > 0
    estimates = [estimate for _, estimate in found]
    np.testing.assert_allclose(orders(estimates), scheme.estimate_order + 1, atol=0.1)


class Forcing(PythonFunction):
    """N(t) = f(t), the same for all modes."""

    def __init__(self, f, modes=1):
        super().__init__(lambda u: np.full(u.shape, f(float(self.time[0]))), modes, np.float64)


@every_scheme
@pytest.mark.parametrize("linear", [0.0, -3.0, -40.0], ids=str)
def test_the_estimate_in_time_sees_a_forcing(scheme, linear):
    """Of order dt^4, where that of the scheme itself is 0, whatever it misses."""

    def estimates(one, f, dts):
        stepper = Stepper(one, np.array([[linear]]), Forcing(f), np.ones((1, 1)))
        return np.array([stepper.step(stepper.state, dt)[1] for dt in dts])

    rate = max(1.0, abs(linear))
    steps = 0.1 / rate / 2.0 ** np.arange(3)
    assert np.all(estimates(scheme, lambda t: np.exp(5 * t), [0.1, 3.0]) == 0)
    found = estimates(scheme.in_time, lambda t: np.exp(rate * t), steps)
    np.testing.assert_allclose(orders(found), scheme.estimate_order + 1, atol=0.1)
    exact = estimates(scheme.in_time, lambda t: 3 - t + 2 * t * t, steps)
    assert exact.max() < 1e-15  # of a parabola, which is integrated exactly


@every_scheme
def test_the_error_of_a_step_across_a_jump_is_seen(scheme):
    """It is at most three times the estimate, wherever the jump is."""
    for place in np.linspace(0.004, 0.996, 125):
        forcing = Forcing(lambda t, place=place: 1e-6 * (t >= place))
        stepper = Stepper(scheme.in_time, np.zeros((1, 1)), forcing, np.ones((1, 1)))
        (moved,), estimate = stepper.step(stepper.state, 1.0)
        assert abs(moved[0] - 1 - 1e-6 * (1 - place)) < 3 * estimate


def test_a_blind_estimate_without_a_parabola_is_refused(monkeypatch):
    """There is nothing to compare N with."""
    monkeypatch.setattr(Scheme, "known", dict(Scheme.known))
    blind = Scheme(
        name="blind",
        order=2,
        estimate_order=1,
        nodes=(1.0,),
        stages=({0: [Term(1, 1, 1)]},),
        solution={0: [Term(1, 1, 1), Term(-1, 2, 1)], 1: [Term(1, 2, 1)]},
        estimate={1: [Term(1, 2, 1)], 2: [Term(-1, 2, 1)]},
        reference="",
    )
    with pytest.raises(ValueError, match="ParabolicOutput"):
        assert blind.in_time
