"""Axisymmetric densities on S^(d-1): bases, integrals, samples, transport, what is refused."""

import numpy as np
import pytest
from scipy.special import eval_gegenbauer

import meanfield as mf
from meanfield.lowlevel.legendre import gauss
from meanfield.spaces.contract import dimension_of_harmonics

EPS = np.finfo(float).eps
every_dimension = pytest.mark.parametrize("d", [2, 3, 4, 5, 8, 64, 1024])


def rough(degree, seed=0, size=0.02):
    """Coefficients of a density without symmetry, which do not decay."""
    c = size * np.random.default_rng(seed).standard_normal(degree + 1)
    c[0] = 1
    return c


def legendre(l, d, x):
    """P_l(x), P_l(1) = 1, in R^d."""
    if d == 2:
        return np.cos(l * np.arccos(x))
    return eval_gegenbauer(l, d / 2 - 1, x) / eval_gegenbauer(l, d / 2 - 1, 1.0)


# The basis ---------------------------------------------------------------------------------


@every_dimension
def test_a_series_has_the_values_of_legendre_polynomials(d):
    zonal, a = mf.Zonal(d, 6), [1, 0.2, -0.1, 0.05, 0.02, 0.01, -0.03]
    expected = sum(a[l] * legendre(l, d, zonal.x) for l in range(7))
    density = zonal.zonal(a)
    scale = np.where(zonal.judged, 1e-13, np.inf)
    assert (np.abs(density.values - expected) <= scale).all()
    assert np.abs(density.at(zonal.points) - expected)[zonal.judged].max() <= 1e-13
    for l in range(7):
        assert density.moment(l) == pytest.approx(a[l] / dimension_of_harmonics(l, d), rel=1e-13)


@every_dimension
def test_coefficients_and_values_determine_each_other(d):
    zonal, c = mf.Zonal(d, 20), rough(20)
    np.testing.assert_allclose(zonal.to_coefficients(zonal.to_values(c)), c, rtol=0, atol=3e-15)


@every_dimension
def test_quadrature_is_exact_to_three_times_the_degree(d):
    """Even moments of <x, e>: (k - 1)!! / (d (d + 2) ... (d + k - 2))."""
    uniform, moment = mf.Zonal(d, 6).uniform(), 1.0
    for k in range(2, 19, 2):
        moment *= (k - 1) / (d + k - 2)
        found = uniform.expect(lambda x, k=k: x[:, -1] ** k)
        assert found == pytest.approx(moment, rel=1e-13)


@pytest.mark.parametrize(("n", "d"), [(5, 3), (40, 3), (40, 4), (200, 8), (64, 1024)])
def test_gauss_weights_have_relative_accuracy(n, d):
    """The recurrence of the moments of P_l holds for every l < 2 n."""
    x, w = gauss(n, d)
    assert (np.diff(x) < 0).all() and (w > 0).all()
    np.testing.assert_array_equal(x, -x[::-1])
    if d == 3:
        nodes, weights = np.polynomial.legendre.leggauss(n)
        np.testing.assert_allclose(x, nodes[::-1], rtol=0, atol=2 * EPS)
        np.testing.assert_allclose(w, weights[::-1] / 2, rtol=1e-12)


@every_dimension
def test_the_size_of_a_space_of_harmonics(d):
    assert dimension_of_harmonics(0, d) == 1
    assert dimension_of_harmonics(1, d) == d
    assert dimension_of_harmonics(2, d) == pytest.approx((d + 2) * (d - 1) / 2)


# Densities ---------------------------------------------------------------------------------


@every_dimension
def test_von_mises_fisher_in_closed_form(d):
    from scipy.special import hyp0f1

    zonal, k = mf.Zonal(d, 40), 3.0
    density = zonal.von_mises_fisher(k)
    assert density.moment(1) == pytest.approx(
        k / d * hyp0f1(d / 2 + 1, k * k / 4) / hyp0f1(d / 2, k * k / 4), rel=1e-12
    )
    ratio = density.at(zonal.points) / np.exp(k * zonal.x)
    assert np.ptp(ratio[zonal.judged]) <= 1e-9 * ratio[zonal.judged].max()
    assert mf.Zonal(d, 40).von_mises_fisher(-k).moment(1) == pytest.approx(-density.moment(1))


@pytest.mark.repeats
@pytest.mark.parametrize("d", [2, 3, 4, 8, 1024])
def test_a_sample_has_the_moments_of_its_density(d):
    n, density = 10_000, mf.Zonal(d, 30).von_mises_fisher(2.0)
    tokens = density.sample(n, rng=5)
    np.testing.assert_allclose(np.linalg.norm(tokens.x, axis=1), 1, rtol=0, atol=1e-14)
    for k in (1, 2, 3):
        values = legendre(k, d, tokens.x[:, -1])
        assert abs(values.mean() - density.moment(k)) <= 4 * values.std() / np.sqrt(n)
    across = tokens.x[:, 0]
    assert abs(across.mean()) <= 4 * across.std() / np.sqrt(n)


def test_a_function_of_the_inner_product():
    density = mf.Zonal(5, 12).density(lambda x: 3 + x**2)
    assert density.expect(lambda x: x[:, -1] ** 2) == pytest.approx((3 / 5 + 3 / 35) / (3 + 1 / 5))
    same = mf.Zonal(5, 30).perturbed(1e-3, rng=7).resample(12)
    np.testing.assert_array_equal(
        same.coefficients, mf.Zonal(5, 12).perturbed(1e-3, rng=7).coefficients
    )
    assert density.rotate(-1).moment(1) == -density.moment(1)


# The same as circle and sphere -------------------------------------------------------------

every_model = pytest.mark.parametrize(
    "model",
    [
        mf.Transformer(mf.USA(2.0), 6.0),
        mf.Transformer(mf.SA(4.0)),
        mf.Transformer(mf.Kuramoto(), 5.0),
        mf.Transformer(mf.Interaction(lambda t: t**2 + t), 8.0),
    ],
    ids=["USA", "SA", "Kuramoto", "Interaction"],
)


@every_model
def test_in_two_dimensions_it_is_the_circle(model):
    circle = mf.solve(model, mf.Circle(24).fourier([1, 0.25, 0.1]), (0, 0.5)).final
    zonal = mf.solve(model, mf.Zonal(2, 24).zonal([1, 0.5, 0.2]), (0, 0.5)).final
    for k in range(1, 12):
        assert abs(circle.moment(k) - zonal.moment(k)) <= 1e-14


@pytest.mark.repeats
@every_model
def test_in_three_dimensions_it_is_the_sphere(model):
    sphere = mf.solve(model, mf.Sphere(24).zonal([1, 0.5, 0.2]), (0, 0.5))
    zonal = mf.solve(model, mf.Zonal(3, 24).zonal([1, 0.5, 0.2]), (0, 0.5))
    for k in range(1, 12):
        assert abs(sphere.final.moment(k)[0] - zonal.final.moment(k)) <= 1e-14
    for name in ("entropy", "order_parameter", "interaction_energy", "dissipation"):
        np.testing.assert_allclose(
            sphere.observables[name], zonal.observables[name], rtol=1e-10, atol=1e-12
        )


def test_moments_of_the_reference_on_the_sphere():
    """facts: f0 = 1 + 0.5 cos(polar angle), (E P_1, E P_2, E P_3) at t = 1."""
    expected = {
        mf.USA(1.0): (0.343882819150, 0.096723216195, 0.026996342478),
        mf.SA(1.0): (0.305608403731, 0.049281047527, 0.004157427565),
        mf.SA(4.0): (0.241157403152, 0.010248136389, -0.001787552864),
    }
    for drift, moments in expected.items():
        start = mf.Zonal(3, 16).zonal([1, 0.5])
        final = mf.solve(mf.Transformer(drift), start, (0, 1), t_eval=[1], rtol=1e-10).final
        assert [final.moment(k) for k in (1, 2, 3)] == pytest.approx(moments, abs=1e-9)


# Laws --------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [3, 4, 8])
def test_kuramoto_follows_moebius_flow(d):
    """mu_a = ((1 - a^2)/|x - a|^2)^(d - 1), a' = (1 - a^2) m(a) / 2, for d = 3, 4, 8."""
    from scipy.integrate import solve_ivp

    nodes, weights = gauss(400, d)

    def density(a, x):
        return ((1 - a * a) / (1 - 2 * a * x + a * a)) ** (d - 1)

    def slope(_t, a):
        return (1 - a * a) / 2 * ((density(a[0], nodes) * nodes) @ weights)

    ode = solve_ivp(slope, (0, 1), [0.2], rtol=1e-13, atol=1e-15, method="DOP853")
    zonal = mf.Zonal(d, 64)
    start = zonal.density(lambda x: density(0.2, x))
    final = mf.solve(mf.Transformer(mf.Kuramoto()), start, (0, 1), t_eval=[1], rtol=1e-11).final
    expected = density(ode.y[0, -1], nodes)
    for k in (1, 2, 3, 6):
        exact = (expected * legendre(k, d, nodes)) @ weights
        assert final.moment(k) == pytest.approx(exact, abs=1e-10)


@pytest.mark.parametrize("d", [2, 5, 64])
@pytest.mark.parametrize("softmax", [False, True], ids=["USA", "SA"])
def test_perturbations_of_the_uniform_state_grow_at_the_known_rate(d, softmax):
    from meanfield.spaces.kernels import exponential_multipliers

    beta, kappa, size, t = 5.0, 0.7 * d, 1e-6, 0.05
    drift = mf.SA(beta) if softmax else mf.USA(beta)
    multipliers = exponential_multipliers(beta, 6, d) * np.exp(beta)
    for l in range(1, 7):
        scale = multipliers[0] if softmax else 1.0
        rate = l * (l + d - 2) * (multipliers[l] / (beta * scale) - 1 / kappa)
        c = np.zeros((2, 17))  # of both signs: what is of second order cancels
        c[:, 0], c[:, l] = 1, [size, -size]
        start = mf.Density(mf.Zonal(d, 16), c)
        model = mf.Transformer(drift, kappa)
        final = mf.solve(model, start, (0, t), t_eval=[t], rtol=1e-13).final
        found = np.log(np.abs(final.coefficients[:, l]) / size).mean() / t
        assert found == pytest.approx(rate, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("d", [4, 8, 1024])
def test_mass_stays_and_free_energy_falls(d):
    start = mf.Zonal(d, 16).zonal([1, 0.4, 0.3])
    run = mf.solve(mf.Transformer(mf.USA(1.0), 2.0 * d), start, (0, 3))
    assert run.success and (run.observables.mass == 1).all()
    assert (np.diff(run.observables.free_energy) <= 1e-15).all()


def test_an_ensemble_in_high_dimension_is_its_members():
    beta, start = np.array([0.5, 2.0]), mf.Zonal(64, 12).von_mises_fisher(3.0)
    runs = mf.solve(mf.Transformer(mf.USA(beta), 80.0), start, (0, 1), rtol=1e-10)
    for i in range(2):
        single = mf.solve(mf.Transformer(mf.USA(beta[i]), 80.0), start, (0, 1), rtol=1e-10)
        assert abs(single.final.moment(1) - runs.final[i].moment(1)) <= 1e-10


def test_a_run_is_kept_in_a_file(tmp_path):
    run = mf.solve(mf.Transformer(mf.USA(1.0)), mf.Zonal(8, 12).zonal([1, 0.3]), (0, 0.5))
    again = mf.load(run.save(tmp_path / "run.nc"))
    assert again.final.space == run.final.space
    for one, two in zip(again, run, strict=True):
        np.testing.assert_array_equal(one.coefficients, two.coefficients)


# Refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: mf.Zonal(1, 4),
        lambda: mf.Zonal(3, 0),
        lambda: mf.Zonal(2.5, 4),
        lambda: mf.Zonal(1024, 2000),
        lambda: mf.Zonal(4, 2).zonal([1, 0, 0, 0.1]),
        lambda: mf.Zonal(4, 2).zonal([1, 1.5]),
        lambda: mf.Zonal(4, 2).zonal([0.9]),
        lambda: mf.Zonal(4, 8).von_mises_fisher(np.nan),
        lambda: mf.Zonal(4, 8).density(lambda x: x),
        lambda: mf.Zonal(4, 8).density(lambda x: 1.0),
        lambda: mf.Zonal(4, 8).uniform().rotate(np.eye(4)[0, 1]),
        lambda: mf.Zonal(4, 8).uniform().moment(-1),
        lambda: mf.Zonal(4, 8).uniform().at([[1.0, 0.0, 0.0]]),
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValueError, match=r"[A-Za-z]+.*(needs|must|got|overflow)"):
        wrong()


@pytest.mark.parametrize(
    ("space", "advice"),
    [
        (mf.Circle(4), r"circle\.embed\(theta\)"),
        (mf.Sphere(2), r"such as \(sqrt\(1 - z\^2\), 0, z\)"),
        (mf.Torus(2), r"torus\.embed\(angles\)"),
        (mf.Zonal(2, 4), r"such as \(sqrt\(1 - x\^2\), x\)"),
        (mf.Zonal(3, 4), r"such as \(sqrt\(1 - x\^2\), 0, x\)"),
        (mf.Zonal(5, 4), r"such as \(sqrt\(1 - x\^2\), 0, \.\.\., 0, x\)"),
    ],
    ids=repr,
)
def test_a_number_in_place_of_points_is_told_the_points_of_the_space(space, advice):
    with pytest.raises(ValueError, match=rf"points\.shape must be .*{advice}"):
        space.uniform().at(0.3)


def test_coefficients_are_real():
    with pytest.raises(TypeError, match="must be real numbers"):
        mf.Density(mf.Zonal(4, 2), [1, 0.1j, 0])
