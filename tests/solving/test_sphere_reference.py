"""The sphere against numbers from elsewhere: a table, exact solutions, another discretisation."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
from sphere_galerkin import Galerkin

import meanfield as mf
from meanfield.steppers import EXPONENTIAL

# E P_1, E P_2, E P_3 from 1 + z/2 without noise, by characteristics: 12 digits, the last row 9.
ZONAL = [
    ("USA", 1, 0.25, [0.200240894197, 0.011684495564, 0.000676406191]),
    ("USA", 1, 0.5, [0.240304569172, 0.029771759481, 0.003659213157]),
    ("USA", 1, 1.0, [0.343882819150, 0.096723216195, 0.026996342478]),
    ("SA", 1, 0.25, [0.194465779497, 0.006657492577, -0.000345350713]),
    ("SA", 1, 0.5, [0.226584039209, 0.016343122137, -0.000172480895]),
    ("SA", 1, 1.0, [0.305608403731, 0.049281047527, 0.004157427565]),
    ("SA", 4, 0.25, [0.182872204408, 0.001492282729, -0.000317943032]),
    ("SA", 4, 1.0, [0.241157403152, 0.010248136389, -0.001787552864]),
    ("USA", 4, 0.25, [0.321758026190, 0.109886350497, 0.04841075116]),
]
every_row = pytest.mark.parametrize(("drift", "beta", "t", "expected"), ZONAL)


def vectors(n, seed=0):
    """n random unit vectors."""
    x = np.random.default_rng(seed).standard_normal((n, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


# The table ---------------------------------------------------------------------------------


@every_row
def test_moments_of_the_deterministic_flow(drift, beta, t, expected):
    """Asked: 1e-9. A run at 1e-10 errs by 1e-10 or less; the table by half a unit of its last."""
    mu0 = mf.Sphere(16).zonal([1, 0.5])
    model = mf.Transformer(getattr(mf, drift)(beta))
    run = mf.solve(model, mu0, (0, t), t_eval=[t], rtol=1e-10)
    found = [run.final.moment(k)[0].real for k in (1, 2, 3)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-10)


@pytest.mark.repeats
@every_row
def test_the_rotated_state_has_the_rotated_solution(drift, beta, t, expected):
    """The same steps up to rounding, which dense rotations of 65 degrees add up."""
    turn = Rotation.random(rng=5)
    model = mf.Transformer(getattr(mf, drift)(beta))
    mu0 = mf.Sphere(16).zonal([1, 0.5])
    options = {"t_eval": [t], "dt": t / 64, "rtol": 1e-3, "min_degree": 64, "max_degree": 64}
    one = mf.solve(model, mu0.rotate(turn), (0, t), **options).final
    other = mf.solve(model, mu0, (0, t), **options).final
    difference = one.coefficients - other.rotate(turn).coefficients
    assert np.abs(difference).max() <= 1e-11
    axis = turn.as_matrix()[:, 2]
    assert one.expect(lambda x: x @ axis) == pytest.approx(expected[0], abs=1e-6)  # fixed steps


@pytest.mark.parametrize("axis", [[0, 0, -1.0], [0, 1.0, 0], [2 / 3, -1 / 3, 2 / 3]])
def test_error_control_takes_the_same_steps_in_every_direction(axis):
    model = mf.Transformer(mf.USA(1))
    options = {"t_span": (0, 1), "t_eval": [1], "rtol": 1e-10}
    one = mf.solve(model, mf.Sphere(16).zonal([1, 0.5], axis=axis), **options)
    other = mf.solve(model, mf.Sphere(16).zonal([1, 0.5]), **options)
    # Where the largest speed is met on the grid differs a little, so do the steps it limits.
    assert abs(one.stats["steps"] - other.stats["steps"]) <= 2
    mean = one.final.expect(lambda x: x @ np.array(axis))
    assert mean == pytest.approx(ZONAL[2][3][0], abs=2e-10)


# Exact solutions ---------------------------------------------------------------------------


def mean_length(s):
    """|int x dmu_a| for |a| = s, of mu_a = ((1 - s^2)/|x - a|^2)^2."""
    logarithm = np.log1p(2 * s / (1 - s))
    return ((1 + s**2) - (1 - s**2) ** 2 / (2 * s) * logarithm) / (2 * s)


def moebius(a):
    """The density mu_a as a function of x, y, z."""
    a = np.asarray(a)

    def f(x, y, z):
        square = (x - a[0]) ** 2 + (y - a[1]) ** 2 + (z - a[2]) ** 2
        return ((1 - a @ a) / square) ** 2

    return f


@pytest.mark.repeats
@pytest.mark.parametrize("direction", [[0, 0, 1.0], [1.0, 0, 0], [2 / 3, -1 / 3, 2 / 3]])
def test_kuramoto_without_noise_is_a_moebius_flow(direction):
    """mu_a stays of that form, with |a|' = (1 - |a|^2) m(|a|)/2; a grows from 0.2 to 0.6."""
    direction, times = np.array(direction), [1.0, 2.0]
    exact = solve_ivp(
        lambda _t, s: (1 - s**2) * mean_length(s) / 2,
        *((0, 2.0), [0.2], "DOP853", times),
        rtol=1e-13,
        atol=1e-15,
    ).y[0]
    mu0 = mf.Sphere(32).density(moebius(0.2 * direction))
    run = mf.solve(mf.Transformer(mf.Kuramoto()), mu0, (0, 2), t_eval=times, rtol=1e-11)
    x = np.vstack([vectors(200), direction, -direction])
    for s, density in zip(exact, run, strict=True):
        expected = moebius(s * direction)(*x.T)
        np.testing.assert_allclose(density.at(x), expected, rtol=0, atol=1e-9 * expected.max())
        assert density.expect(lambda y: y @ direction) == pytest.approx(mean_length(s), abs=1e-10)
    assert exact[-1] > 0.5


@pytest.mark.parametrize("t", [1e-3, 1.0, 30.0])
def test_without_drift_the_heat_equation_is_solved_exactly(t):
    """Degree l decays like exp(-l (l + 1) t/kappa), in a single step of any length."""
    still, kappa = mf.Interaction(lambda s: 0 * s), np.array([0.5, 2.0, np.inf])
    mu0 = mf.Sphere(16).perturbed(0.02, rng=1)
    run = mf.solve(mf.Transformer(still, kappa), mu0, (0, t), t_eval=[t], dt=t)
    l = run.final.space.degrees
    expected = mu0.coefficients * np.exp(-l * (l + 1) * t / kappa[:, None])
    np.testing.assert_allclose(run.final.coefficients, expected, rtol=1e-14, atol=1e-17)
    assert run.stats["steps"].tolist() == [1, 1, 1]


def test_noisy_kuramoto_ends_at_von_mises_and_fisher():
    """r = I_{3/2}(kappa r)/I_{1/2}(kappa r) = coth(kappa r) - 1/(kappa r); kappa_c = 3."""
    kappa, r = 6.0, 0.9
    for _ in range(200):
        r = 1 / np.tanh(kappa * r) - 1 / (kappa * r)
    axis = np.array([2 / 3, -1 / 3, 2 / 3])
    mu0 = mf.Sphere(32).von_mises_fisher(axis, 1.0)
    model = mf.Transformer(mf.Kuramoto(), kappa)
    run = mf.solve(model, mu0, (0, 1000), t_eval=[1000], rtol=1e-10, until="steady")
    assert run.status == "steady"
    expected = mf.Sphere(32).von_mises_fisher(axis, kappa * r).resample(run.final.space.degree)
    np.testing.assert_allclose(run.final.coefficients, expected.coefficients, rtol=0, atol=1e-9)
    below = mf.solve(mf.Transformer(mf.Kuramoto(), 2.5), mu0, (0, 1000), until="steady")
    assert np.abs(below.final.coefficients[1:]).max() < 1e-8


# Another discretisation --------------------------------------------------------------------


def oblique(x, y, z):
    """No symmetry at all."""
    return 1 + 0.3 * z + 0.2 * x * y + 0.1 * (x**2 - z**2)


CASES = {
    "USA": (mf.USA(4.0), lambda t: np.exp(4 * t) / 4, 8.0),
    "USA repelling": (mf.USA(-2.0), lambda t: -np.exp(-2 * t) / 2, 20.0),
    "Kuramoto": (mf.Kuramoto(), lambda t: t, np.inf),
    "a potential": (
        *(mf.Interaction(lambda t: t + 0.7 * t**2 - 0.4 * t**3),),
        *(lambda t: t + 0.7 * t**2 - 0.4 * t**3, 5.0),
    ),
}


@pytest.mark.repeats
@pytest.mark.parametrize("name", CASES)
def test_another_discretisation_of_the_same_degree_agrees(name):
    """Asked: 1e-9. The same Galerkin projection; 800 steps of order 4 err by 1e-11."""
    drift, potential, kappa = CASES[name]
    other = Galerkin(24, potential, kappa)
    expected = other.solve(oblique, [0.25, 0.5])
    mu0 = mf.Sphere(24).density(oblique)
    options = {"rtol": 1e-3, "dt": 1 / 1600, "min_degree": 24, "max_degree": 24}
    run = mf.solve(mf.Transformer(drift, kappa), mu0, (0, 0.5), t_eval=[0.25, 0.5], **options)
    found = [density.at(other.points) for density in run]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("scheme", EXPONENTIAL, ids=lambda scheme: scheme.name)
def test_fixed_steps_converge_at_the_order_of_the_scheme(scheme):
    """With members of all orders m; the other discretisation is exact to 1e-11."""
    other = Galerkin(16, lambda t: np.exp(t), 8.0)
    expected = other.solve(oblique, [0.5])
    mu0, errors = mf.Sphere(16).density(oblique), []
    for steps in (4, 8, 16):
        options = {"rtol": 1e-3, "dt": 0.5 / steps, "max_degree": 16, "scheme": scheme}
        run = mf.solve(mf.Transformer(mf.USA(1.0), 8.0), mu0, (0, 0.5), t_eval=[0.5], **options)
        errors.append(np.abs(run.final.at(other.points) - expected[0]).max())
    assert errors[-1] > 1e-10, "the reference hides the order"
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    np.testing.assert_allclose(orders, scheme.order, atol=0.3)
