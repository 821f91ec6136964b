"""The classical scheme of order 8: its order, its estimate, and the runs it is made for."""

import numpy as np
import pytest
from python_function import PythonFunction

import meanfield as mf
from meanfield.steppers import DormandPrince, Krogstad, Stepper

STILL, NOISY = mf.Transformer(mf.SA(2.0)), mf.Transformer(mf.USA(1.0), 10.0)


def matrix():
    """a_ij with the solution as the last row, as an ordinary Butcher tableau."""
    rows = [{}, *DormandPrince.stages, DormandPrince.solution]
    a = np.zeros((len(rows), len(rows) - 1))
    for i, row in enumerate(rows):
        for j, (term,) in row.items():
            assert term.order == 1
            a[i, j] = term.factor
    return a


def test_the_conditions_of_bushy_and_of_tall_trees_hold():
    """sum b_i c_i^(k-1) = 1/k and b A^(k-1) 1 = 1/k! for k = 1, ..., 8, and not for k = 9."""
    a = matrix()
    b, stages = a[-1], a[:-1]
    c = stages.sum(axis=1)
    tall = np.ones(len(b))
    for k in range(1, 9):
        assert b @ c ** (k - 1) == pytest.approx(1 / k, abs=1e-14)
        assert b @ tall == pytest.approx(1 / np.prod(np.arange(1.0, k + 1)), abs=1e-14)
        tall = stages @ tall
    assert abs(b @ c**8 - 1 / 9) > 1e-8


def test_the_stability_polynomial_is_bounded_where_steps_are_called_stable():
    """|R| <= 1 on the negative real axis up to 6.39, and in the half disc of radius 5.96."""
    a = matrix()
    tall, coefficients = np.ones(a.shape[1]), [1.0]
    for _ in range(a.shape[1]):
        coefficients.append(a[-1] @ tall)
        tall = a[:-1] @ tall
    growth = np.polynomial.Polynomial(coefficients)
    x = np.linspace(0, 8, 80001)
    assert x[np.argmax(np.abs(growth(-x)) > 1 + 1e-12)] == pytest.approx(6.3937, abs=2e-4)
    angles = np.linspace(np.pi / 2, np.pi, 361)
    disc = np.linspace(0, 5.96, 400)[:, None] * np.exp(1j * angles)
    assert np.abs(growth(disc)).max() <= 1 + 1e-12
    assert DormandPrince.stability < 5.96


def stepper(linear):
    """u' = L u + N(u) = i (4 + |u|^2) u, a part of which is called L; from 1 to e^{5 i t}."""

    def nonlinear(u):
        return 1j * (4 + np.abs(u) ** 2) * u - linear * u

    start = np.ones((1, 1), dtype=complex)
    return Stepper(DormandPrince, np.array([[linear]]), PythonFunction(nonlinear, 1), start)


def error(steps, linear=2j):
    """Of the solution at t = 2 by equal steps."""
    scheme, u = stepper(linear), np.ones((1, 1), dtype=complex)
    for _ in range(steps):
        u, _ = scheme.step(u, 2 / steps)
    return abs(u[0, 0] - np.exp(10j))


def test_the_order_is_eight():
    errors = np.array([error(steps) for steps in (10, 20, 40)])
    assert errors[-1] > 1e-13
    np.testing.assert_allclose(np.log2(errors[:-1] / errors[1:]), 8, atol=0.2)


def test_what_is_called_linear_does_not_matter():
    assert error(10, linear=2j) == pytest.approx(error(10, linear=-1.0 + 0j), rel=1e-4)


def test_the_estimate_is_of_order_eight_and_bounds_the_error_of_a_step():
    """In one step from the start: the estimate falls like dt^8, the error like dt^9."""
    scheme, start = stepper(2j), np.ones((1, 1), dtype=complex)
    sizes = []
    for dt in (0.08, 0.04, 0.02):
        u, estimate = scheme.step(start, dt)
        assert abs(u[0, 0] - np.exp(5j * dt)) <= estimate
        sizes.append(estimate)
    np.testing.assert_allclose(np.log2(np.array(sizes[:-1]) / sizes[1:]), 8, atol=0.2)


SPACES = {
    "circle": mf.Circle(32).fourier([1, 0.25, 0.1]),
    "sphere": mf.Sphere(24).density(lambda x, y, z: 1 + 0.3 * z + 0.2 * x * y),
    "zonal": mf.Zonal(8, 24).zonal([1, 0.5]),
}


@pytest.mark.parametrize("model", [STILL, NOISY], ids=["still", "noisy"])
@pytest.mark.parametrize("start", SPACES.values(), ids=SPACES)
def test_it_agrees_with_the_exponential_scheme(start, model):
    options = {"t_eval": [0.5], "rtol": 1e-11}
    one = mf.solve(model, start, (0, 0.5), scheme=DormandPrince, **options)
    other = mf.solve(model, start, (0, 0.5), scheme=Krogstad, **options)
    assert one.status == other.status == "finished"
    degree = min(one.final.space.degree, other.final.space.degree)
    one_c, other_c = (run.final.resample(degree).coefficients for run in (one, other))
    np.testing.assert_allclose(one_c, other_c, rtol=0, atol=1e-10)


def test_without_noise_it_needs_fewer_than_half_of_the_evaluations():
    counts = [
        mf.solve(STILL, SPACES["sphere"], (0, 0.5), t_eval=[0.5], rtol=1e-12, scheme=s).stats[
            "evaluations"
        ]
        for s in (DormandPrince, Krogstad)
    ]
    assert counts[0] < counts[1] / 2


def test_an_ensemble_with_different_noise_is_its_members():
    start, kappa = SPACES["circle"], np.array([5.0, 50.0])
    options = {"t_eval": [0.5], "rtol": 1e-12, "scheme": DormandPrince}
    both = mf.solve(mf.Transformer(mf.USA(1.0), kappa), start, (0, 0.5), **options).final
    for i in range(2):
        model = mf.Transformer(mf.USA(1.0), kappa[i])
        single = mf.solve(model, start, (0, 0.5), **options).final
        assert abs(single.moment(1) - both[i].moment(1)) <= 1e-12


@pytest.mark.bits
def test_a_resumed_run_is_the_unbroken_one(tmp_path):
    options = {"t_eval": [0.5, 1.0], "scheme": DormandPrince}
    whole = mf.solve(NOISY, SPACES["circle"], (0, 1), **options)
    path = tmp_path / "run.ckpt"
    mf.solve(NOISY, SPACES["circle"], (0, 1), max_steps=5, checkpoint=path, **options)
    again = mf.solve(NOISY, SPACES["circle"], (0, 1), checkpoint=path, resume=True, **options)
    np.testing.assert_array_equal(again.final.coefficients, whole.final.coefficients)
    assert again.stats["steps"] == whole.stats["steps"]
