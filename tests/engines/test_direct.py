"""Sums over all pairs, against dense sums in extended precision."""

import numpy as np
import pytest
import token_systems
from token_systems import dense, error, tokens, unit

import meanfield as mf
from meanfield.engines import DirectSums

SERIES = mf.Interaction.chebyshev([0.3, 1.0, -0.5, 0.2])
DRIFTS = {
    "Kuramoto": mf.Kuramoto(),
    "USA 0": mf.USA(0.0),
    "USA -5": mf.USA(-5.0),
    "USA 1": mf.USA(1.0),
    "USA 700": mf.USA(700.0),
    "SA -20": mf.SA(-20.0),
    "SA -1000": mf.SA(-1000.0),
    "SA 5": mf.SA(5.0),
    "SA 10000": mf.SA(1e4),
    "series": SERIES,
}
# One block, two blocks; differences on the circle, in space and beyond; Gram matrices.
SIZES = [(40, 2), (300, 2), (300, 3), (40, 5), (300, 5), (100, 12), (300, 12)]


@pytest.mark.repeats
@pytest.mark.parametrize("drift", DRIFTS.values(), ids=DRIFTS)
@pytest.mark.parametrize("n, d", SIZES)
@pytest.mark.parametrize("kind", token_systems.CONFIGURATIONS)
def test_velocity_attention_and_energy_are_those_of_the_definition(drift, n, d, kind):
    """The rounding of t, some 1e-16 |beta|, is that of the weights, and of what cancels in v."""
    x, masses = tokens(kind, n, d)
    velocity, attention, energy = dense(drift, x[0], masses[0])
    engine, rounding = DirectSums(drift), 3e-14 * (1 + abs(getattr(drift, "beta", 0)) / 10)
    size = np.abs(velocity).max() + np.abs(attention).max()
    assert np.abs(engine.velocity(x, masses)[0] - velocity).max() < rounding * size
    assert error(engine.attention(0.0, x, masses)[0], attention) < rounding
    if abs(getattr(drift, "beta", 0)) > 709:
        energy = np.sign(drift.beta) * np.inf
    assert engine.energy(x, masses)[0] == pytest.approx(energy, rel=rounding, abs=1e-15)


@pytest.mark.parametrize("d", [2, 3, 7])
@pytest.mark.parametrize("angle", [1e-8, 0.1, 1.0, 3.0])
def test_two_tokens(d, angle):
    """v_1 = m_2 e^(beta cos) sin towards the other; SA divides by m_1 e^beta + m_2 e^(beta cos)."""
    beta, masses = 200.0, np.array([[0.3, 0.7]])
    x = np.zeros((1, 2, d))
    x[0, 0, 0], x[0, 1, :2] = 1, (np.cos(angle), np.sin(angle))
    kernel = np.exp(-2 * beta * np.sin(angle / 2) ** 2)
    usa = 0.7 * np.exp(beta) * kernel * np.sin(angle)
    sa = 0.7 * kernel * np.sin(angle) / (0.3 + 0.7 * kernel)
    assert DirectSums(mf.USA(beta)).velocity(x, masses)[0, 0, 1] == pytest.approx(usa, rel=1e-12)
    assert DirectSums(mf.SA(beta)).velocity(x, masses)[0, 0, 1] == pytest.approx(sa, rel=1e-12)


@pytest.mark.parametrize("d", [2, 3, 6])
def test_tokens_that_have_met_do_not_hide_the_distant_ones(d):
    """Two clusters of 200 tokens each at one place, at 1.5 rad: a force of e^-186."""
    beta, angle = 200.0, 1.5
    x = np.zeros((1, 400, d))
    x[0, ::2, 0], x[0, 1::2, 0], x[0, 1::2, 1] = 1, np.cos(angle), np.sin(angle)
    velocity = DirectSums(mf.SA(beta)).velocity(x, np.full((1, 400), 1 / 400))
    expected = np.exp(-2 * beta * np.sin(angle / 2) ** 2) * np.sin(angle)
    assert 0 < expected < 1e-80
    np.testing.assert_allclose(velocity[0, ::2, 1], expected, rtol=1e-12)


def test_gram_matrices_leave_out_the_token_itself():
    """Tokens at right angles: every force is e^-200, next to a weight of 1 for itself."""
    x, masses = np.eye(80)[None], np.full((1, 80), 1 / 80)
    velocity = DirectSums(mf.SA(200.0)).velocity(x, masses)[0]
    expected = np.exp(-200.0) * (1 - np.eye(80))
    np.testing.assert_allclose(velocity, expected, rtol=1e-12, atol=1e-100)


def test_a_tight_cluster_that_repels_does_not_underflow():
    """At beta = -1000 every weight is about e^-2000 of the largest possible."""
    x = unit(np.array([1.0, 0, 0]) + 1e-3 * np.random.default_rng(0).standard_normal((1, 50, 3)))
    masses = np.full((1, 50), 0.02)
    drift = mf.SA(-1000.0)
    assert error(DirectSums(drift).velocity(x, masses)[0], dense(drift, x[0], masses[0])[0]) < 1e-12


def test_a_token_without_mass_far_from_all_others_follows_the_nearest():
    x = np.array([[[-1.0, 0, 0], [0, 1, 0], [0.1, 0, 1]]])
    masses = np.array([[0.0, 0.5, 0.5]])
    velocity = DirectSums(mf.SA(1e4)).velocity(x, masses)
    np.testing.assert_allclose(velocity[0, 0], [0, 1, 0], atol=1e-13)


@pytest.mark.bits
@pytest.mark.parametrize("drift", [mf.USA(3.0), mf.SA(-400.0), SERIES], ids=repr)
@pytest.mark.parametrize("d", [3, 5, 12])
def test_threads_change_no_bit(drift, d):
    x, masses = tokens("clustered", 1500, d)
    expected = DirectSums(drift).velocity(x, masses)
    for threads in (2, 3, 5):
        found = DirectSums(drift, threads).velocity(x, masses)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.bits
@pytest.mark.parametrize("n, d", [(50, 2), (300, 3), (100, 5), (100, 12)])
@pytest.mark.parametrize("threads", [1, 2])
def test_replicas_are_independent_systems(n, d, threads):
    """And an ensemble of beta is a loop over its members."""
    x, masses = tokens("clustered", n, d, replicas=3)
    betas = np.array([-2.0, 0.0, 7.0])
    for kind in (mf.USA, mf.SA):
        together, alone = DirectSums(kind(betas), threads), [DirectSums(kind(b)) for b in betas]
        for method in ("velocity", "attention", "energy"):
            time = (0.0,) if method == "attention" else ()
            found = getattr(together, method)(*time, x, masses)
            for r, one in enumerate(alone):
                expected = getattr(one, method)(*time, x[r : r + 1], masses[r : r + 1])[0]
                np.testing.assert_array_equal(found[r], expected)


@pytest.mark.parametrize("d", [2, 3, 6, 12])
def test_rotations_and_permutations_go_through(d):
    rng = np.random.default_rng(1)
    x, masses = tokens("clustered", 280, d)
    rotation, order = np.linalg.qr(rng.standard_normal((d, d)))[0], rng.permutation(280)
    engine = DirectSums(mf.SA(4.0))
    velocity = engine.velocity(x, masses)
    turned = engine.velocity(np.ascontiguousarray(x @ rotation), masses)
    assert error(turned, velocity @ rotation) < 1e-13
    permuted = engine.velocity(np.ascontiguousarray(x[:, order]), masses[:, order])
    assert error(permuted, velocity[:, order]) < 1e-13


@pytest.mark.parametrize("d", [2, 3, 12])
def test_only_directions_count(d):
    x, masses = tokens("clustered", 100, d)
    longer = x * np.random.default_rng(2).uniform(0.9, 1.1, (1, 100, 1))
    engine = DirectSums(mf.USA(3.0))
    velocity = engine.velocity(longer, masses)
    assert error(velocity, engine.velocity(x, masses)) < 1e-13
    assert np.abs((velocity * x).sum(axis=2)).max() < 1e-13 * np.abs(velocity).max()


@pytest.mark.parametrize("drift", [mf.USA(3.0), mf.USA(-2.0), mf.Kuramoto(), SERIES], ids=repr)
def test_energy_grows_at_the_rate_of_the_velocities(drift):
    """dE/dt = sum_i m_i |v_i|^2 if Z = 1."""
    x, masses = tokens("uniform", 70, 3)
    engine, dt = DirectSums(drift), 1e-5
    velocity = engine.velocity(x, masses)
    later, earlier = (engine.energy(x + s * dt * velocity, masses) for s in (1, -1))
    expected = (masses * (velocity**2).sum(axis=2)).sum(axis=1)
    np.testing.assert_allclose((later - earlier) / (2 * dt), expected, rtol=1e-7)


def test_the_slope_of_a_smooth_potential_is_found():
    x, masses = tokens("uniform", 90, 3)
    smooth = mf.Interaction(lambda t: np.exp(3 * t) / 3)
    found = DirectSums(smooth).velocity(x, masses)
    assert error(found, DirectSums(mf.USA(3.0)).velocity(x, masses)) < 1e-11


def test_a_potential_with_a_root_needs_its_slope():
    with pytest.raises(mf.MeanfieldError, match=r"up to 1024 terms.*derivative=\.\.\."):
        DirectSums(mf.Interaction(lambda t: -np.sqrt(1 - t**2)))


def test_a_slope_is_taken_and_inner_products_do_not_exceed_one():
    """|x|^2 is 1 + 2e-16 for some of the tokens, where the root would not be a number."""
    drift = mf.Interaction(
        lambda t: -np.sqrt(1 - t**2), derivative=lambda t: t / np.sqrt(1 + 1e-9 - t**2)
    )
    x, masses = tokens("uniform", 300, 3)
    engine = DirectSums(drift)
    velocity = dense(mf.Interaction(lambda t: t, derivative=drift.derivative), x[0], masses[0])[0]
    assert error(engine.velocity(x, masses)[0], velocity) < 1e-9
    assert np.isfinite(engine.energy(x, masses)).all()


def test_other_drifts_are_refused():
    with pytest.raises(TypeError, match=r"ZonalDrift.*got 'sa'"):
        DirectSums("sa")
