"""The right-hand side against exact solutions, growth rates and stationary states."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ive

from meanfield import SA, USA, Circle, Density, Interaction, Kuramoto, Sphere, Transformer, Zonal
from meanfield.dynamics import DensityEvolution
from meanfield.dynamics.density import DensityMotion
from meanfield.dynamics.motion import Failure

EPS = np.finfo(float).eps
reproducible = settings(deadline=None, derandomize=True, max_examples=40)
seeds = st.integers(0, 2**32 - 1)


def rate_of_change(model, mu):
    """Coefficients of d mu/dt, shaped like those of mu."""
    evolution = DensityEvolution(model, mu.space, mu.shape)
    c = mu.coefficients.reshape(evolution.members, -1)
    return (evolution.linear * c + evolution.nonlinear(c)).reshape(mu.coefficients.shape)


def rough(degree, seed=0, shape=()):
    """A density whose coefficients do not decay, between 0.1 and 1.9."""
    c = np.random.default_rng(seed).standard_normal((*shape, degree + 1, 2)) @ [1, 1j]
    c *= 0.45 / np.abs(c[..., 1:]).sum(axis=-1, keepdims=True)
    c[..., 0] = 1
    return Density(Circle(degree), c)


# Laws --------------------------------------------------------------------------------------


@reproducible
@given(st.integers(1, 60), seeds, st.floats(0.01, 100))
def test_without_interaction_each_degree_decays_at_the_heat_rate(degree, seed, kappa):
    model = Transformer(Interaction.chebyshev([1.0]), kappa)
    mu = rough(degree, seed)
    change = rate_of_change(model, mu)
    k = np.arange(degree + 1)
    # The transport of a constant potential is rounding of its multipliers, 1e-16, times k^2.
    np.testing.assert_allclose(
        change, -(k**2) / kappa * mu.coefficients, rtol=4 * EPS, atol=1e-14 * degree**2
    )


@pytest.mark.parametrize("drift", [USA(4.0), SA(4.0), Kuramoto()], ids=repr)
@pytest.mark.parametrize("kappa", [np.inf, 2.0])
def test_mass_is_conserved_exactly(drift, kappa):
    assert (rate_of_change(Transformer(drift, kappa), rough(20, shape=(3,)))[:, 0] == 0).all()


@pytest.mark.parametrize("d", [USA, SA])
@pytest.mark.parametrize("beta", [-2.0, 0.0, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("kappa", [np.inf, 3.0])
def test_small_perturbations_of_the_uniform_state_grow_at_the_known_rates(d, beta, kappa):
    """k^2 (W_k - 1/kappa), W_k = I_k / beta (USA) or I_k / (beta I_0) (SA), 1/2 at beta = 0."""
    k, size = np.arange(1, 9), 1e-7
    scaled = ive(k, beta) * (np.exp(abs(beta)) if d is USA else 1 / ive(0, beta))
    weight = scaled / beta if beta else (k == 1) / 2
    for degree in k:
        c = (np.arange(9) == 0) + size * np.exp(0.3j) * (np.arange(9) == degree)
        mu = Density(Circle(8), c)
        change = rate_of_change(Transformer(d(beta), kappa), mu)
        expected = degree**2 * (weight[degree - 1] - 1 / kappa)
        # Quadratic terms are of relative size `size` or smaller, rounding 1e-16 / size.
        scale = degree**2 * (np.abs(weight).max() + 1)
        assert change[degree] / c[degree] == pytest.approx(expected, rel=0, abs=1e-7 * scale)


@pytest.mark.parametrize("drift", [USA(3.0), SA(3.0), Kuramoto()], ids=repr)
def test_rotations_and_reflections_commute_with_the_evolution(drift):
    model, mu = Transformer(drift, 5.0), Circle(64).von_mises(0.3, 2.0)
    mixed = 0.6 * mu + 0.4 * Circle(64).von_mises(2.0, 6.0)
    change = rate_of_change(model, mixed)
    turned = rate_of_change(model, mixed.rotate(1.1))
    mirrored = rate_of_change(model, Density(mixed.space, np.conj(mixed.coefficients)))
    # Smooth data: no aliases; rounding times k^2 / kappa and speeds up to e^3 times k.
    atol = 100 * EPS * 64 * (64 / 5 + np.exp(3))
    k = np.arange(65)
    np.testing.assert_allclose(turned, change * np.exp(-1.1j * k), rtol=0, atol=atol)
    np.testing.assert_allclose(mirrored, np.conj(change), rtol=0, atol=atol)


# Exact solutions ---------------------------------------------------------------------------


@reproducible
@given(st.floats(0.01, 0.95), st.floats(-4, 4), st.sampled_from([Kuramoto(), USA(0), SA(0)]))
def test_kuramoto_keeps_poisson_kernels(r, angle, drift):
    """Ott and Antonsen: c_k = (r e^{-i angle})^k stays so, with r' = r (1 - r^2) / 2."""
    degree = 40
    k = np.arange(degree + 1)
    c = (r * np.exp(-1j * angle)) ** k
    change = rate_of_change(Transformer(drift), Density(Circle(degree), c))
    expected = k * c * (1 - r**2) / 2
    # Mode k hears of k + 1 only, which the last one lacks; SA(0) has Z = 1 up to rounding.
    np.testing.assert_allclose(change[:-1], expected[:-1], rtol=0, atol=100 * EPS * degree)


@pytest.mark.parametrize(
    ("kappa", "r"), [(2.1, 0.303689343806), (3, 0.724158717626), (6, 0.902152779065)]
)
def test_noisy_kuramoto_rests_at_its_von_mises_density(kappa, r):
    """r = I_1(kappa r) / I_0(kappa r), concentration kappa r; second moment 1 - 2/kappa."""
    mu = Circle(64).von_mises(0.4, kappa * r)
    # r has 12 digits; d mu/dt is at most k^2 = 64^2 / kappa of that where c_k is not small.
    assert np.abs(rate_of_change(Transformer(Kuramoto(), kappa), mu)).max() < 1e-11
    assert abs(mu.moment(1)) == pytest.approx(r, abs=1e-11)
    assert abs(mu.moment(2)) == pytest.approx(1 - 2 / kappa, abs=1e-11)


@pytest.mark.parametrize("family", [USA, SA])
@pytest.mark.parametrize(("beta", "kappa"), [(1.0, 3.0), (5.0, 0.25), (2.0, 4.0)])
def test_gibbs_densities_of_their_own_potential_rest(family, beta, kappa):
    """mu = exp(kappa g[mu]) / Z, g = (K * mu) / beta or its logarithm, found by iteration."""
    circle = Circle(64)
    weights = ive(circle.degrees, beta) * np.exp(beta)
    mu = circle.von_mises(0.0, 3.0)
    for _ in range(3000):
        smoothed = circle.to_values(weights * mu.coefficients)
        potential = (smoothed if family is USA else np.log(smoothed)) / beta
        after = circle.density(lambda _, g=potential: np.exp(kappa * (g - g.max())))
        step, mu = np.abs(after.coefficients - mu.coefficients).max(), after
        if step < 1e-15:
            break
    # The fixed point to rounding, times k^2 / kappa over the resolved degrees.
    assert np.abs(rate_of_change(Transformer(family(beta), kappa), mu)).max() < 1e-11


# Reference data of the noisy flow ----------------------------------------------------------


@pytest.mark.parametrize(
    ("drift", "first"),
    [(USA(1.0), 0.285415739419), (SA(1.0), 0.276781151744), (SA(4.0), 0.263294463412)],
    ids=repr,
)
def test_the_first_moment_of_a_reference_flow_starts_in_the_right_direction(drift, first):
    """f_0 = 1 + 0.5 cos + 0.2 cos 2 under the deterministic flow: the moment at t = 0.25."""
    mu = Circle(32).fourier([1, 0.25, 0.1])
    model, dt, c = Transformer(drift), 0.25 / 64, mu.coefficients
    for _ in range(64):  # the classical Runge-Kutta method, written out

        def f(u):
            return rate_of_change(model, Density(mu.space, u))

        k1 = f(c)
        k2 = f(c + dt / 2 * k1)
        k3 = f(c + dt / 2 * k2)
        c = c + dt / 6 * (k1 + 2 * k2 + 2 * k3 + f(c + dt * k3))
    # Fourth order with dt = 0.004 and rates of order e: dt^4 = 2e-10 times 0.25.
    assert c[1].real == pytest.approx(first, abs=1e-10)


# Ensembles and the metric ------------------------------------------------------------------


def test_a_table_of_parameters_acts_on_the_members_it_belongs_to():
    betas, kappas = np.array([0.5, 6.0]), np.array([1.0, 4.0, np.inf])
    mu = rough(12, shape=(2, 3))
    together = rate_of_change(Transformer(USA(betas[:, None]), kappas), mu)
    for i, j in np.ndindex(2, 3):
        beta, kappa = betas[i], kappas[j]
        alone = rate_of_change(Transformer(USA(beta), kappa), mu[i, j])
        # Grids of the two may differ: rounding times k and a speed below e^6.
        np.testing.assert_allclose(
            together[i, j], alone, rtol=0, atol=20 * EPS * 12 * (12 + np.exp(beta))
        )


def test_shared_parameters_are_not_repeated():
    evolution = DensityEvolution(Transformer(USA(1.0), 2.0), Circle(5), (4,))
    assert evolution.members == 4
    assert evolution.linear.shape == (1, 6)
    table = DensityEvolution(Transformer(USA(1.0), np.ones(4)), Circle(5), (4,))
    assert table.linear.shape == (4, 6)


def test_the_metric_is_that_of_the_inverse_laplacian():
    evolution = DensityEvolution(Transformer(Kuramoto()), Circle(4))
    np.testing.assert_array_equal(evolution.metric, [1, 2, 2 / 4, 2 / 9, 2 / 16])


# Members apart ------------------------------------------------------------------------------

BETAS = np.array([-30.0, -1.0, -1e-9, 0.0, 1e-300, 80.0, *np.linspace(0.3, 6, 30)])


@pytest.mark.bits
@pytest.mark.parametrize("drift", [USA, SA], ids=lambda drift: drift.__name__)
@pytest.mark.parametrize("space", [Circle(16), Circle(70), Sphere(9), Zonal(5, 12)], ids=repr)
def test_members_apart_have_the_equation_of_each_alone_in_every_bit(space, drift):
    """Their multipliers, L and N, and the width of the band, whatever the others are."""
    kappas = np.geomspace(0.3, 40, BETAS.size)
    together = Transformer(drift(BETAS), kappas)
    evolution = DensityEvolution(together, space, (BETAS.size,), separate_members=True)
    u = space.perturbed(0.02, rng=1).coefficients
    bands = set()
    for i, (beta, kappa) in enumerate(zip(BETAS, kappas, strict=True)):
        alone = DensityEvolution(Transformer(drift(beta), kappa), space)
        linear, transport, number = evolution.of_member(i)
        np.testing.assert_array_equal(linear, alone.linear)
        found = np.empty_like(u)
        transport.compiled(transport.context, number, u.ctypes.data, found.ctypes.data)
        np.testing.assert_array_equal(found, alone.nonlinear(u[None])[0])
        assert transport.band == alone.nonlinear.band
        bands.add(transport.band)
    assert len(bands) > 2


def test_those_beyond_doubt_are_those_of_which_nothing_is_doubted():
    """Each on the grid that it has alone."""
    deep = [0.0, 1e-5, 2e-4, 0.01]
    rows = [np.array([1, 0.5 + d, 0j]) for d in deep]
    rows += [np.array([1, 0.5, 0, d, 0, 0, 0j]) for d in deep]
    states = Density.of_rows(Circle(2), rows)
    assert states.member_degrees.tolist() == [2] * 4 + [6] * 4
    motion = DensityMotion(Transformer(USA(np.ones(8)), 2.0), states)
    failure = Failure(0.0, 0.0, rows[0], 0.1, False, None, 1e-8, {}, False)
    alone = [motion.of_members(i).warning(states[i], 0.0, failure) is None for i in range(8)]
    assert motion.without_warning(states, 0.0, 1e-8).tolist() == alone
    assert 2 <= sum(alone) <= 6
