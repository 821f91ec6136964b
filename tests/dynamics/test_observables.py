"""Observables: closed forms, the energy balance along the flow, and what SA does not have."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import i0, i1, iv, ive

from meanfield import SA, USA, Circle, Density, Interaction, Kuramoto, Transformer
from meanfield.dynamics import DensityEvolution
from meanfield.dynamics.observables import MOMENT_COUNT, measure, measure_all

EPS = np.finfo(float).eps
reproducible = settings(deadline=None, derandomize=True, max_examples=40)
CIRCLE = Circle(64)
GRADIENT_FLOWS = [
    (USA(2.0), 3.0),
    (USA(5.0), 0.3),
    (USA(1.0), np.inf),
    (USA(-2.0), 1.0),
    (Kuramoto(), 2.5),
    (Interaction(lambda t: np.exp(t) - 2 * t**2), 4.0),
]
NAMES = ["usa", "usa strong", "usa deterministic", "usa repulsive", "kuramoto", "interaction"]


def lopsided():
    """A smooth positive density without symmetry."""
    return 0.5 * CIRCLE.von_mises(0.3, 2.0) + 0.5 * CIRCLE.von_mises(2.5, 5.0)


def rate_of_change(model, mu):
    """Coefficients of d mu/dt of a single density."""
    evolution = DensityEvolution(model, mu.space)
    c = mu.coefficients[None]
    return (evolution.linear * c + evolution.nonlinear(c))[0]


# Closed forms ------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [-2.0, 0.0, 1.0, 9.0])
@pytest.mark.parametrize("drift", [USA, SA])
def test_the_uniform_state(beta, drift):
    table = measure(Transformer(drift(beta), 2.0), CIRCLE.uniform())
    energy = i0(beta) / (2 * beta) if beta else 0.0  # the constant is dropped in the limit
    assert table["mass"] == table["minimum"] == 1
    assert table["entropy"] == table["order_parameter"] == table["spectral_tail"] == 0
    np.testing.assert_array_equal(table["moment"], np.zeros(MOMENT_COUNT))
    assert table["interaction_energy"] == pytest.approx(energy, rel=1e-14)  # rounding
    if drift is USA:
        assert table["free_energy"] == pytest.approx(-energy, rel=1e-14)
        assert abs(table["dissipation"]) < 1e-14  # rounding of the transport


@reproducible
@given(st.floats(0.01, 30), st.floats(-4, 4))
def test_von_mises_densities_in_closed_form(concentration, mean):
    """Entropy z I_1/I_0 - log I_0 at concentration z; moments I_k/I_0; mu log mu = mu z cos."""
    mu = CIRCLE.von_mises(mean, concentration)
    table = measure(Transformer(USA(1.5), 2.0), mu)
    order = i1(concentration) / i0(concentration)
    # Modes beyond 64 are below 1e-26; the logarithm is smooth, and resolved as well.
    expected = concentration * order - np.log(i0(concentration))
    assert table["entropy"] == pytest.approx(expected, rel=1e-12, abs=1e-12)
    k = np.arange(1, MOMENT_COUNT + 1)
    moments = np.exp(1j * k * mean) * ive(k, concentration) / ive(0, concentration)
    np.testing.assert_allclose(table["moment"], moments, rtol=0, atol=1e-13)
    assert table["order_parameter"] == pytest.approx(order, rel=1e-12)


@reproducible
@given(st.floats(0.05, 20), st.integers(0, 2**32 - 1))
def test_the_interaction_energy_is_the_double_integral(beta, seed):
    """E = (1/2 beta) int int e^{beta <x, y>} dmu dmu, by direct quadrature, for rough data."""
    rng = np.random.default_rng(seed)
    c = rng.standard_normal((17, 2)) @ [1, 1j]
    c *= 0.45 / np.abs(c[1:]).sum()
    c[0] = 1
    mu = Density(Circle(16), c)
    theta = 2 * np.pi * np.arange(160) / 160
    masses = mu.at(Circle.embed(theta)) / 160
    # I_100(20) < 1e-50 at the first alias of 160 points.
    expected = masses @ np.exp(beta * np.cos(theta[:, None] - theta)) @ masses / (2 * beta)
    for drift in (USA(beta), SA(beta), Interaction(lambda t: np.exp(beta * t) / beta)):
        energy = measure(Transformer(drift), mu)["interaction_energy"]
        assert energy == pytest.approx(expected, rel=1e-12)  # sums of positive terms


@pytest.mark.parametrize(
    ("beta", "moments", "energy"),
    [
        (1.0, (0.285415739419, 0.135451699055, 0.019900322220), 0.681571452773),
        (1.0, (0.276781151744, 0.119903384069, 0.009909397770), 0.678282338715),
        (4.0, (0.263294463412, 0.116130006206, 0.002667910354), 1.603540348309),
    ],
    ids=["USA beta 1", "SA beta 1", "SA beta 4"],
)
def test_reference_energies_of_the_deterministic_flow(beta, moments, energy):
    """Three moments of a flow at t = 0.25 and its energy, from an independent program."""
    mu = CIRCLE.fourier([1, *moments])
    error = energy - measure(Transformer(USA(beta)), mu)["interaction_energy"]
    # The moments from the fourth on are missing: they add at most a few I_4 m_3^2 / beta.
    assert -1e-11 < error < 3 * iv(4, beta) * moments[2] ** 2 / beta + 1e-11


def test_kuramoto_has_the_energy_of_its_order_parameter():
    mu = lopsided()
    table = measure(Transformer(Kuramoto()), mu)
    expected = table["order_parameter"] ** 2 / 2  # (1/2) |int x dmu|^2
    assert table["interaction_energy"] == pytest.approx(expected, rel=1e-14)
    assert measure(Transformer(USA(0.0)), mu)["interaction_energy"] == table["interaction_energy"]


# The energy balance ------------------------------------------------------------------------


@pytest.mark.parametrize(("drift", "kappa"), GRADIENT_FLOWS, ids=NAMES)
def test_free_energy_falls_at_the_rate_of_dissipation(drift, kappa):
    """dF/dt = -dissipation, by central differences along the flow."""
    model, mu = Transformer(drift, kappa), lopsided()
    change, step = rate_of_change(model, mu), 1e-5
    step /= np.abs(change).max()
    energies = [
        measure(model, Density(CIRCLE, mu.coefficients + sign * step * change))["free_energy"]
        for sign in (1, -1)
    ]
    slope = (energies[0] - energies[1]) / (2 * step)
    dissipation = measure(model, mu)["dissipation"]
    # The difference errs by step^2 F''' ~ 1e-9 relative, and by rounding of F / step ~ 1e-10.
    assert slope == pytest.approx(-dissipation, rel=1e-7)
    assert dissipation > 0


@pytest.mark.parametrize(("drift", "kappa"), GRADIENT_FLOWS, ids=NAMES)
def test_dissipation_is_the_mean_square_of_the_flux_velocity(drift, kappa):
    """int mu |grad(log mu / kappa - W * mu)|^2 dsigma, with derivatives of the logarithm."""
    mu, k = lopsided(), 1j * CIRCLE.degrees
    weights = drift.attraction(CIRCLE.degree, 2)
    slope = CIRCLE.to_values(k * mu.coefficients) / mu.values
    velocity = CIRCLE.to_values(k * weights * mu.coefficients)
    expected = (mu.values * (slope / kappa - velocity) ** 2).mean()
    table = measure(Transformer(drift, kappa), mu)
    # Both are quadratures of smooth functions resolved to rounding, with factors k^2.
    assert table["dissipation"] == pytest.approx(expected, rel=1e-11)


def test_energy_of_the_deterministic_flow_rises_by_the_mean_square_velocity():
    table = measure(Transformer(USA(2.0)), lopsided())
    assert table["free_energy"] == -table["interaction_energy"]
    assert table["dissipation"] > 0


def test_a_stationary_state_dissipates_nothing():
    mu = CIRCLE.von_mises(0.4, 3 * 0.724158717626)  # noisy Kuramoto at kappa = 3
    table = measure(Transformer(Kuramoto(), 3.0), mu)
    assert abs(table["dissipation"]) < 1e-13  # quadratic in an error of 12 digits; rounding


# Softmax, ensembles, tables ----------------------------------------------------------------


@pytest.mark.parametrize("kappa", [np.inf, 2.0])
def test_softmax_has_no_free_energy_but_all_the_rest(kappa):
    mu = lopsided()
    softmax, other = (measure(Transformer(d, kappa), mu) for d in (SA(3.0), USA(3.0)))
    for name in ("free_energy", "dissipation"):
        assert np.isnan(softmax.pop(name))
        assert np.isfinite(other.pop(name))
    for name, value in softmax.items():
        np.testing.assert_array_equal(value, other[name])


def test_softmax_of_large_beta_can_be_measured():
    """exp(1000) is too large for its energy, which must not hide what is finite."""
    table = measure(Transformer(SA(1000.0), 2.0), lopsided())
    assert table["order_parameter"] == abs(lopsided().moment(1))


@pytest.mark.parametrize("drift", [USA, SA])
def test_an_ensemble_is_measured_member_by_member(drift):
    betas, kappas = np.array([[0.0], [3.0]]), np.array([1.0, 5.0, np.inf])
    members = [lopsided().rotate(i) for i in range(3)]
    mu = Density.stack([Density.stack(members), Density.stack(members[::-1])])
    table = measure(Transformer(drift(betas), kappas), mu)
    for name, value in table.items():
        assert value.shape == ((2, 3, MOMENT_COUNT) if name == "moment" else (2, 3)), name
    for i, j in np.ndindex(2, 3):
        alone = measure(Transformer(drift(betas[i, 0]), kappas[j]), mu[i, j])
        for name, value in alone.items():
            # Sums in another order, of values up to a few units, with factors k.
            np.testing.assert_allclose(table[name][i, j], value, rtol=1e-11, atol=1e-12)


def test_a_table_over_time_keeps_each_degree():
    model, states = Transformer(USA(1.0), 2.0), [Circle(8).uniform(), lopsided()]
    table = measure_all(model, states, range(len(states)))
    np.testing.assert_array_equal(table["degree"], [8, 64])
    assert table["moment"].shape == (2, MOMENT_COUNT)
    assert table["entropy"][1] == measure(model, states[1])["entropy"]


def test_moments_beyond_the_degree_are_zero():
    table = measure(Transformer(Kuramoto()), Circle(3).fourier([1, 0.1, 0.1, 0.1]))
    np.testing.assert_array_equal(table["moment"], [0.1] * 3 + [0] * 5)


def test_a_truncated_series_below_zero_keeps_a_finite_entropy():
    """1 + cos, taken below 0 at its zero; x log |x| is small there."""
    mu = Density(CIRCLE, [1, 0.5, *[0] * 62, -1e-7])
    table = measure(Transformer(USA(1.0), 2.0), mu)
    assert table["minimum"] == pytest.approx(-2e-7, rel=1e-6)
    # int (1 + cos) log(1 + cos) = 1 - log 2; the quadrature of a double zero times its
    # logarithm converges like N^(-3), N about 200.
    assert table["entropy"] == pytest.approx(1 - np.log(2), abs=2e-6)
