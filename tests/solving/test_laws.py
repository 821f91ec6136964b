"""Laws that hold for every model: growth, conservation, dissipation, symmetry, limits."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.steppers import EXPONENTIAL

DEGREES = np.arange(1, 7)
DRIFTS = {"USA": mf.USA, "SA": mf.SA}
MODELS = {
    "USA with noise": mf.Transformer(mf.USA(4.0), 6.0),
    "SA with noise": mf.Transformer(mf.SA(4.0), 6.0),
    "SA without noise": mf.Transformer(mf.SA(2.0)),
    "Kuramoto": mf.Transformer(mf.Kuramoto(), 3.0),
    "a potential": mf.Transformer(mf.Interaction(lambda t: t**2 - 0.5 * t**3), 5.0),
}

every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def bumps(degree=32):
    """A density without any symmetry."""
    return mf.Circle(degree).density(
        lambda x: 1 + 0.3 * np.cos(x) + 0.1 * np.cos(2 * x) + 0.05 * np.sin(3 * x)
    )


# Growth ------------------------------------------------------------------------------------


def mean_of(kernel, k):
    """(1/2 pi) int kernel(cos x) cos(k x) dx by the trapezoidal rule, exact to rounding."""
    x = 2 * np.pi * np.arange(256) / 256
    return np.mean(kernel(np.cos(x)) * np.cos(k * x))


def growth_rates(drift, beta, kappa):
    """k^2 (w_k - 1/kappa), w_k the Fourier coefficient of W; W = e^{beta t}/beta, or t; /Z."""
    if beta == 0:
        w = [mean_of(lambda t: t, k) for k in DEGREES]
    else:
        w = [mean_of(lambda t: np.exp(beta * (t - 1)), k) / beta for k in DEGREES]
        scale = np.exp(beta) if drift == "USA" else 1 / mean_of(lambda t: np.exp(beta * (t - 1)), 0)
        w = np.array(w) * scale
    return DEGREES**2 * (np.array(w) - 1 / kappa)


@pytest.mark.parametrize("noisy", [False, True], ids=["deterministic", "noisy"])
@pytest.mark.parametrize("beta", [0.0, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("drift", DRIFTS)
def test_small_perturbations_of_the_uniform_state_grow_at_the_known_rate(drift, beta, noisy):
    """One member for each degree. Order 4 with |s dt| <= 0.01 errs by 1e-8/120 of the rate."""
    fastest = np.abs(growth_rates(drift, beta, np.inf)).max()
    kappa = 3 * 9 / fastest if noisy else np.inf
    expected = growth_rates(drift, beta, kappa)
    size, t = 1e-7 * np.exp(0.4j), 1 / fastest
    mu0 = mf.Density.stack([mf.Circle(16).fourier([1, *[0] * (k - 1), size]) for k in DEGREES])
    model = mf.Transformer(DRIFTS[drift](beta), kappa)
    run = mf.solve(model, mu0, (0, t), t_eval=[0, t], dt=t / 100)
    before, after = (d.coefficients[np.arange(6), DEGREES] for d in (run[0], run[1]))
    measured = np.log(after / before) / t
    scale = np.maximum(np.abs(expected), 1e-3 * fastest)  # rates that are 0, or almost
    assert (np.abs(measured - expected) <= 1e-8 * scale).all()


# Conservation ------------------------------------------------------------------------------


@pytest.mark.repeats
@every_model
@pytest.mark.parametrize("scheme", EXPONENTIAL, ids=lambda scheme: scheme.name)
def test_mass_is_conserved_to_rounding(model, scheme):
    """Nothing renormalises it: the constant coefficient of a divergence is 0."""
    run = mf.solve(model, bumps(), (0, 0.7), rtol=1e-6, scheme=scheme)
    assert np.abs(run.observables.mass - 1).max() <= 1e-13
    for density in run:
        assert abs(density.expect(lambda x: np.ones(len(x))) - 1) <= 1e-13


@every_model
def test_a_density_stays_positive(model):
    """As far as it is resolved: no more negative than the coefficients that were cut off."""
    run = mf.solve(model, bumps(), (0, 0.7), rtol=1e-8)
    assert run.observables.minimum.min() > -1e-8


# Energy ------------------------------------------------------------------------------------

FLOWS = {
    "orders": (mf.Transformer(mf.USA(2.0), 3.0), 10.0),
    "disorders": (mf.Transformer(mf.USA(1.0), 1.2), 10.0),
    "first order": (mf.Transformer(mf.USA(5.0), 0.25), 10.0),
    "Kuramoto": (mf.Transformer(mf.Kuramoto(), 6.0), 10.0),
    "a potential": (mf.Transformer(mf.Interaction(lambda t: t**2 - 0.5 * t**3), 5.0), 10.0),
    "without noise": (mf.Transformer(mf.USA(2.0)), 0.7),
}


@pytest.mark.repeats
@pytest.mark.parametrize("name", FLOWS)
def test_free_energy_never_increases(name):
    """F = entropy/kappa - E; without noise -E. Up to the rounding of two sums of 64 terms."""
    model, t = FLOWS[name]
    run = mf.solve(model, bumps(), (0, t), t_eval=np.linspace(0, t, 401), rtol=1e-9)
    energy = run.observables.free_energy.values
    assert np.diff(energy).max() <= 1e-13 * np.abs(energy).max()
    assert energy[-1] < energy[0] - 1e-3


@pytest.mark.parametrize("name", FLOWS)
def test_free_energy_decreases_by_what_is_dissipated(name):
    """F(0) - F(t) = int dissipation dt, by Gauss's rule: the output times are its nodes."""
    model, t = FLOWS[name]
    t = t / 10  # the rates are at most 30, so 40 nodes leave an error far below 1e-10
    nodes, weights = np.polynomial.legendre.leggauss(40)
    times = [0, *(t * (1 + nodes) / 2), t]
    data = mf.solve(model, bumps(), (0, t), t_eval=times, rtol=1e-11).observables
    dissipated = t / 2 * weights @ data.dissipation.values[1:-1]
    energy = data.free_energy.values
    assert energy[0] - energy[-1] == pytest.approx(dissipated, rel=1e-10)


def test_softmax_attention_has_no_free_energy():
    run = mf.solve(mf.Transformer(mf.SA(1.0), 3.0), bumps(), (0, 0.1), t_eval=[0, 0.1])
    assert np.isnan(run.observables.free_energy).all()
    assert np.isnan(run.observables.dissipation).all()


# Heat --------------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [1e-3, 1.0, 30.0])
def test_without_drift_the_heat_equation_is_solved_exactly(t):
    """Degree k decays like exp(-k^2 t/kappa), in a single step of any length."""
    still = mf.Interaction(lambda s: 0 * s)
    kappa = np.array([0.5, 2.0, np.inf])
    run = mf.solve(mf.Transformer(still, kappa), bumps(), (0, t), t_eval=[t], dt=t)
    k = run.final.space.degrees
    start = bumps().resample(k[-1]).coefficients
    expected = start * np.exp(-(k**2) * t / kappa[:, None])
    np.testing.assert_allclose(run.final.coefficients, expected, rtol=1e-14, atol=1e-17)
    assert run.stats["steps"].tolist() == [1, 1, 1]


# Symmetry ----------------------------------------------------------------------------------


def final(model, density):
    """The end of a run on fixed steps and modes, which a symmetry must not change."""
    options = {"dt": 0.002, "min_degree": 128, "max_degree": 128, "rtol": 1e-6}
    return mf.solve(model, density, (0, 0.3), t_eval=[0.3], **options).final


@every_model
@pytest.mark.parametrize("angle", [0.3, 2.0, np.pi, -1.1])
def test_rotated_data_have_the_rotated_solution(model, angle):
    """Up to rounding: 600 evaluations, each relative to coefficients <= 1."""
    one, other = final(model, bumps().rotate(angle)), final(model, bumps()).rotate(angle)
    np.testing.assert_allclose(one.coefficients, other.coefficients, rtol=0, atol=1e-12)


@every_model
def test_reflected_data_have_the_reflected_solution(model):
    """theta -> -theta conjugates the coefficients."""
    mirrored = mf.Density(bumps().space, bumps().coefficients.conj())
    one, other = final(model, mirrored).coefficients, final(model, bumps()).coefficients.conj()
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


@every_model
def test_symmetric_data_stay_symmetric(model):
    """Two bumps half a turn apart: odd coefficients stay 0. Even data: imaginary parts do."""
    even = mf.Circle(16).density(lambda x: 1 + 0.4 * np.cos(2 * x))
    run = mf.solve(model, even, (0, 0.5), rtol=1e-8)
    odd = run.final.space.degrees % 2 == 1
    assert np.abs(run.final.coefficients[odd]).max() <= 1e-14
    assert np.abs(run.final.coefficients.imag).max() <= 1e-14


@every_model
def test_the_uniform_density_stays_as_it_is(model):
    run = mf.solve(model, mf.Circle(16).uniform(), (0, 10), t_eval=[10])
    assert np.abs(run.final.coefficients[1:]).max() == 0


# Limits and composition --------------------------------------------------------------------


def test_attention_at_beta_zero_is_kuramoto():
    """USA and SA to rounding, W(t) = t by quadrature as well; and beta -> 0 is continuous."""
    reference = final(mf.Transformer(mf.Kuramoto(), 3.0), bumps()).coefficients
    for drift in (mf.USA(0.0), mf.SA(0.0), mf.Interaction(lambda t: t)):
        found = final(mf.Transformer(drift, 3.0), bumps()).coefficients
        np.testing.assert_allclose(found, reference, rtol=0, atol=1e-14)
    for drift in (mf.USA(1e-7), mf.SA(1e-7), mf.USA(-1e-7)):
        found = final(mf.Transformer(drift, 3.0), bumps()).coefficients
        np.testing.assert_allclose(found, reference, rtol=0, atol=1e-7)


def test_no_noise_is_the_limit_of_little_noise():
    reference = final(mf.Transformer(mf.SA(2.0)), bumps()).coefficients
    found = final(mf.Transformer(mf.SA(2.0), 1e9), bumps()).coefficients
    np.testing.assert_allclose(found, reference, rtol=0, atol=1e-7)


@every_model
def test_going_on_from_where_one_stopped_is_going_all_the_way(model):
    """And time has no origin: the second half starts at t = 5."""
    whole = mf.solve(model, bumps(), (0, 0.6), t_eval=[0.6], rtol=1e-10).final
    half = mf.solve(model, bumps(), (0, 0.3), t_eval=[0.3], rtol=1e-10).final
    rest = mf.solve(model, half, (5, 5.3), t_eval=[5.3], rtol=1e-10).final
    for k in (1, 2, 3, 8):
        assert abs(rest.moment(k) - whole.moment(k)) <= 1e-9


def test_far_from_zero_no_digit_of_time_is_lost():
    """At t = 2^40 doubles are 2e-4 apart, which the steps, of 1e-2, would otherwise feel."""
    far, model = 2.0**40, mf.Transformer(mf.USA(2.0), 6.0)
    near = mf.solve(model, bumps(), (0, 1), t_eval=[0.25, 1.0])
    late = mf.solve(model, bumps(), (far, far + 1), t_eval=[far + 0.25, far + 1])
    assert late.t.tolist() == [far + 0.25, far + 1]
    for one, two in zip(near, late, strict=True):
        np.testing.assert_array_equal(one.coefficients, two.coefficients)
