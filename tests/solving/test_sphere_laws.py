"""Laws and services of runs on the sphere: growth, mass, energy, ensembles, events, resuming."""

import warnings

import numpy as np
import pytest
from scipy.special import eval_legendre

import meanfield as mf

DEGREES = np.arange(1, 7)
DRIFTS = {"USA": mf.USA, "SA": mf.SA}
MODELS = {
    "USA with noise": mf.Transformer(mf.USA(4.0), 6.0),
    "SA with noise": mf.Transformer(mf.SA(4.0), 6.0),
    "SA without noise": mf.Transformer(mf.SA(2.0)),
    "Kuramoto": mf.Transformer(mf.Kuramoto(), 5.0),
    "a potential": mf.Transformer(mf.Interaction(lambda t: t**2 - 0.5 * t**3), 5.0),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(80)


def bumps(degree=16):
    """A density without any symmetry."""
    return mf.Sphere(degree).density(
        lambda x, y, z: 1 + 0.3 * z + 0.2 * x * y + 0.1 * (x**2 - z**2) + 0.05 * x * y * z
    )


# Growth ------------------------------------------------------------------------------------


def mean_of(kernel, l):
    """(1/2) int kernel(t) P_l(t) dt, exact to rounding."""
    return WEIGHTS @ (kernel(NODES) * eval_legendre(l, NODES)) / 2


def growth_rates(drift, beta, kappa):
    """l (l + 1) (w_l - 1/kappa), w_l the multiplier of W = e^{beta t}/beta, or t; /lambda_0."""
    if beta == 0:
        w = np.array([mean_of(lambda t: t, l) for l in DEGREES])
    else:
        w = np.array([mean_of(lambda t: np.exp(beta * t), l) / beta for l in DEGREES])
        w /= 1 if drift == "USA" else mean_of(lambda t: np.exp(beta * t), 0)
    return DEGREES * (DEGREES + 1) * (w - 1 / kappa)


@pytest.mark.repeats
@pytest.mark.parametrize("noisy", [False, True], ids=["deterministic", "noisy"])
@pytest.mark.parametrize("beta", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("drift", DRIFTS)
def test_small_perturbations_of_the_uniform_state_grow_at_the_known_rate(drift, beta, noisy):
    """Asked: 1e-6. One member for each degree, of order m > 0, whose square has no such order.

    Order 4 with |s dt| <= 0.01 errs by 1e-8/120 of the rate, rounding by 1e-9.
    """
    fastest = np.abs(growth_rates(drift, beta, np.inf)).max()
    kappa = 4 * 9 / fastest if noisy else np.inf
    expected = growth_rates(drift, beta, kappa)
    sphere, size, t = mf.Sphere(16), 1e-7 * np.exp(0.4j), 1 / fastest
    modes = [
        np.flatnonzero((sphere.degrees == l) & (sphere.orders == (l + 1) // 2))[0] for l in DEGREES
    ]
    c = np.zeros((6, sphere.degrees.size), dtype=complex)
    c[:, 0], c[np.arange(6), modes] = 1, size
    model = mf.Transformer(DRIFTS[drift](beta), kappa)
    run = mf.solve(model, mf.Density(sphere, c), (0, t), t_eval=[t], dt=t / 100)
    after = run.final.resample(16).coefficients[np.arange(6), modes]
    measured = np.log(after / size) / t
    scale = np.maximum(np.abs(expected), 1e-3 * fastest)  # rates that are 0, or almost
    assert (np.abs(measured - expected) <= 3e-8 * scale).all()


# Conservation, energy, symmetry ------------------------------------------------------------


@every_model
def test_mass_is_conserved_and_densities_stay_positive(model):
    run = mf.solve(model, bumps(), (0, 0.5), t_eval=np.linspace(0, 0.5, 6), rtol=1e-8)
    assert run.success
    for density in run:
        assert abs(density.mass - 1) <= 1e-13 and density.minimum > -1e-8
        assert abs(density.values @ density.space.weights - 1) <= 1e-12


def free_energy(density, multipliers, kappa):
    """entropy/kappa - (1/2) int int W dmu dmu, by quadrature and Parseval."""
    space, mu = density.space, density.values
    entropy = (mu * np.log(np.maximum(mu, 1e-300))) @ space.weights
    power = space.parseval * np.abs(density.coefficients) ** 2
    return entropy / kappa - 0.5 * multipliers[space.degrees] @ power


@pytest.mark.repeats
@pytest.mark.parametrize("name", ["orders", "disorders", "first order", "a potential", "no noise"])
def test_free_energy_never_increases(name):
    W, drift, kappa, t = {
        "orders": (lambda s: np.exp(2 * s) / 2, mf.USA(2.0), 4.0, 4.0),
        "disorders": (np.exp, mf.USA(1.0), 1.5, 4.0),
        "first order": (lambda s: np.exp(5 * s) / 5, mf.USA(5.0), 0.5, 1.5),
        "a potential": (lambda s: s**2 - s**3 / 2, MODELS["a potential"].drift, 5.0, 4.0),
        "no noise": (lambda s: np.exp(2 * s) / 2, mf.USA(2.0), np.inf, 0.5),
    }[name]
    multipliers = np.array([mean_of(W, l) for l in range(70)])
    times = np.linspace(0, t, 101)
    run = mf.solve(mf.Transformer(drift, kappa), bumps(), (0, t), t_eval=times, rtol=1e-9)
    assert run.success
    resampled = [d if d.space.degree < 70 else d.resample(69) for d in run]
    energy = np.array([free_energy(density, multipliers, kappa) for density in resampled])
    # Near the end it is stationary: steps of a relative error of 1e-9 show only squared there.
    assert np.diff(energy).max() <= 1e-13 * np.abs(energy).max()
    assert energy[-1] < energy[0] - 1e-3


@every_model
def test_symmetric_data_stay_symmetric(model):
    """Even data keep no odd degree; data even in y keep real coefficients."""
    even = mf.Sphere(16).density(lambda x, y, z: 1 + 0.3 * x * z + 0.2 * z**2 - 0.1 * x**2)
    final = mf.solve(model, even, (0, 0.5), t_eval=[0.5], rtol=1e-8).final
    odd = final.space.degrees % 2 == 1
    assert np.abs(final.coefficients[odd]).max() <= 1e-14
    assert np.abs(final.coefficients.imag).max() <= 1e-13


@every_model
def test_the_uniform_density_stays_as_it_is(model):
    run = mf.solve(model, mf.Sphere(16).uniform(), (0, 10), t_eval=[10])
    assert np.abs(run.final.coefficients[1:]).max() == 0


# Ensembles, events, endings ----------------------------------------------------------------


@pytest.mark.parametrize("drift", [mf.USA, mf.SA], ids=lambda drift: drift.__name__)
def test_members_of_an_ensemble_are_like_alone(drift):
    betas, kappas = np.array([0.0, 1.0, 3.0]), np.array([[4.0], [np.inf]])
    mu0 = mf.Density.stack([bumps(), mf.Sphere(16).zonal([1, 0.5]), bumps()])
    run = mf.solve(mf.Transformer(drift(betas), kappas), mu0, (0, 0.4), t_eval=[0.4], rtol=1e-9)
    assert run.shape == (2, 3)
    for i, j in [(0, 0), (0, 2), (1, 1), (1, 2)]:
        model = mf.Transformer(drift(betas[j]), kappas[i, 0])
        alone = mf.solve(model, mu0[j], (0, 0.4), t_eval=[0.4], rtol=1e-9).final
        degree = max(alone.space.degree, run.final.space.degree)
        together = run.final[i, j].resample(degree).coefficients
        np.testing.assert_allclose(together, alone.resample(degree).coefficients, atol=3e-9)


def test_an_event_is_located_and_can_end_the_run():
    """E z = 0.3 along Kuramoto's Moebius flow from a uniform density moved by a = 0.2."""

    def passes(_t, density):
        return density.moment(1)[0].real - 0.3

    passes.terminal = True
    mu0 = mf.Sphere(32).density(lambda x, y, z: (0.96 / (1.04 - 0.4 * z)) ** 2)
    run = mf.solve(mf.Transformer(mf.Kuramoto()), mu0, (0, 5), events=passes, rtol=1e-10)
    assert run.status == "event" and run.t[-1] == run.t_events[0][0]
    assert run.final.moment(1)[0].real == pytest.approx(0.3, abs=1e-12)
    again = mf.solve(mf.Transformer(mf.Kuramoto()), mu0, (0, run.t[-1]), rtol=1e-10).final
    assert again.moment(1)[0].real == pytest.approx(0.3, abs=1e-9)


@pytest.mark.bits
@pytest.mark.parametrize("most", [1, 7, 40])
def test_a_run_that_was_cut_short_goes_on_to_the_last_bit(tmp_path, most):
    """Two members, one of which needs more modes as it gathers; states are kept on the way."""
    model = mf.Transformer(mf.USA([1.0, 4.0]), [4.0, 6.0])
    options = {"t_eval": [0.0, 0.05, 0.2, 0.6], "rtol": 1e-9}
    unbroken = mf.solve(model, bumps(), (0, 0.6), **options)
    assert max(unbroken.stats["degree_changes"]) > 0 and max(unbroken.stats["steps"]) > 40
    keeping = {"checkpoint": tmp_path / "run.ckpt", "checkpoint_every": 0}
    cut = mf.solve(model, bumps(), (0, 0.6), max_steps=most, **options, **keeping)
    assert cut.status == "max_steps"
    resumed = mf.solve(model, bumps(), (0, 0.6), resume=True, **options, **keeping)
    assert resumed.status == "finished" and resumed.t.tolist() == unbroken.t.tolist()
    for one, other in zip(resumed, unbroken, strict=True):
        assert one.space == other.space
        np.testing.assert_array_equal(one.coefficients, other.coefficients)
    assert resumed.stats.keys() == unbroken.stats.keys()
    for name in resumed.stats.keys() - {"seconds"}:
        assert np.array_equal(resumed.stats[name], unbroken.stats[name]), name


def test_a_deterministic_collapse_is_reported_as_unresolved():
    with pytest.warns(mf.UnresolvedWarning, match="not resolved by max_degree = 64 modes"):
        run = mf.solve(mf.Transformer(mf.USA(2.0)), bumps(), (0, 10), max_degree=64)
    assert run.status == "unresolved" and not run.success and not run.resolved
    assert run.final.space.degree == 64 and 0.3 < run.t[-1] < 3
    assert (
        run.final.spectral_tail <= 1e-9 * np.sqrt(129) and np.isfinite(run.final.coefficients).all()
    )


def test_rounding_does_not_ask_for_more_modes():
    """Exact coefficients at t = 2.9 fall below 1e-13 at degree 200; about e_x 256 is enough."""
    mu0 = mf.Sphere(32).density(lambda x, y, z: (0.96 / (1.04 - 0.4 * z)) ** 2)
    options = {"t_eval": [2.9], "rtol": 1e-12, "max_degree": 512}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mf.UnresolvedWarning)
        run = mf.solve(mf.Transformer(mf.Kuramoto()), mu0, (0, 2.9), **options)
    assert run.status == "finished" and run.stats["highest_degree"] in (192, 256)
