"""Many-body interactions on the circle: sums over tokens, densities, Ott and Antonsen."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.core.descriptions import build, describe
from meanfield.engines import MomentSums

RNG = np.random.default_rng(0)
ANGLES = RNG.uniform(0, 2 * np.pi, 40)
MASSES = RNG.uniform(0.5, 1.0, 40) / 30
MASSES /= MASSES.sum()
MODES = [(1,), (2, -1), (1, 1, -1), (3, -1, -2), (-2, 5), (-1, -2)]
CIRCLE = mf.Circle(24)


def on_circle(theta):
    return np.stack([np.cos(theta), np.sin(theta)], axis=-1)


TOKENS = mf.Tokens(on_circle(ANGLES), MASSES)


def ring(r, degree=64):
    """The density (1 - r^2)/(1 - 2 r cos(theta) + r^2), of moments r^k."""
    return mf.Circle(degree).density(lambda t: (1 - r * r) / (1 - 2 * r * np.cos(t) + r * r))


@pytest.mark.parametrize("modes", MODES, ids=str)
def test_velocities_are_sums_over_all_tuples_of_tokens(modes):
    """sum sin(k_1 theta_j1 + ... - m theta_i), one token after another."""
    found = MomentSums(mf.HigherOrder(modes)).attention(0.0, TOKENS.x[None], MASSES[None])[0]
    phases, weights = np.zeros(1), np.ones(1)
    for k in modes:
        phases = np.add.outer(phases, k * ANGLES).ravel()
        weights = np.multiply.outer(weights, MASSES).ravel()
    speeds = [weights @ np.sin(phases - sum(modes) * theta) for theta in ANGLES]
    tangent = np.stack([-np.sin(ANGLES), np.cos(ANGLES)], axis=-1)
    np.testing.assert_allclose(found, np.array(speeds)[:, None] * tangent, rtol=0, atol=1e-13)


def test_two_bodies_are_zonal():
    """(1,) is Kuramoto, and (2,) the gradient of cos(2 theta)/2, for tokens and densities."""
    doubled = mf.Interaction(lambda t: (2 * t**2 - 1) / 2)
    mu = CIRCLE.von_mises(0.7, 1.0)
    for modes, zonal in (((1,), mf.Kuramoto()), ((2,), doubled)):
        for state in (TOKENS, mf.Characteristics(mu)):
            one, two = (
                mf.solve(mf.Transformer(drift), state, (0, 1), rtol=1e-10).final
                for drift in (mf.HigherOrder(modes), zonal)
            )
            moment = [one.expect(lambda x: x), two.expect(lambda x: x)]
            assert np.abs(moment[0] - moment[1]).max() < 1e-9
        one, two = (
            mf.solve(mf.Transformer(drift, 3.0), mu, (0, 1), rtol=1e-10).final
            for drift in (mf.HigherOrder(modes), zonal)
        )
        assert np.abs(one.coefficients[:8] - two.coefficients[:8]).max() < 1e-10


def test_densities_are_limits_of_tokens():
    """4000 tokens at the nodes of a quadrature, under a sum of three interactions."""
    drift = mf.Kuramoto() - 2.0 * mf.HigherOrder((2, -1)) + 0.5 * mf.HigherOrder((-2, 5))
    theta = 2 * np.pi * np.arange(4000) / 4000
    masses = 1 + 0.4 * np.cos(theta) + 0.2 * np.sin(2 * theta)
    tokens = mf.solve(
        mf.Transformer(drift), mf.Tokens(on_circle(theta), masses / 4000), (0, 1), rtol=1e-10
    ).final
    start = CIRCLE.density(lambda t: 1 + 0.4 * np.cos(t) + 0.2 * np.sin(2 * t))
    final = mf.solve(mf.Transformer(drift), start, (0, 1), rtol=1e-10).final
    z = (tokens.masses * np.exp(-3j * np.arctan2(tokens.x[:, 1], tokens.x[:, 0]))).sum()
    assert abs(final.coefficients[3] - z) < 1e-9


def test_ott_and_antonsen():
    """r' = -w r + (K_1 + K_23 r^2) r (1 - r^2)/2, K_23 = K_2 + K_3, with Lorentzian frequencies."""
    K1, K2, K3, w = 0.5, 5.0, 4.0, 1.0
    drift = K1 * mf.Kuramoto() + K2 * mf.HigherOrder((2, -1)) + K3 * mf.HigherOrder((1, 1, -1))
    model = mf.Transformer(drift, frequency=mf.Lorentzian(w, 0.3))
    run = mf.solve(model, ring(0.5), (0, 1), t_eval=[0.0, 0.5, 1.0], rtol=1e-10)

    def rate(_t, r):
        return -w * r + (K1 + (K2 + K3) * r**2) * r * (1 - r**2) / 2

    exact = solve_ivp(rate, (0, 1), [0.5], t_eval=run.t, rtol=1e-12, atol=1e-13).y[0]
    found = np.array([state.coefficients[1] for state in run.states])
    assert np.abs(np.abs(found) - exact).max() < 1e-9
    turned = np.angle(found[-1])
    assert min(abs(turned - 0.3), abs(turned + 0.3)) < 1e-9


def test_tokens_in_the_field_of_a_run_of_densities():
    """`MeanField`: nodes of a quadrature move as the density that they represent."""
    drift = mf.Kuramoto() + 2.0 * mf.HigherOrder((2, -1))
    start = CIRCLE.density(lambda t: 1 + 0.4 * np.cos(t) + 0.2 * np.sin(2 * t))
    times = np.linspace(0, 0.5, 101)
    run = mf.solve(mf.Transformer(drift), start, (0, 0.5), t_eval=times, rtol=1e-10)
    theta = 2 * np.pi * np.arange(256) / 256
    masses = (1 + 0.4 * np.cos(theta) + 0.2 * np.sin(2 * theta)) / 256
    tokens = mf.Tokens(on_circle(theta), masses)
    final = mf.solve(mf.Transformer(mf.MeanField(run)), tokens, (0, 0.5), rtol=1e-10).final
    z = masses @ (final.x[:, 0] - 1j * final.x[:, 1])
    assert abs(z - run.final.coefficients[1]) < 1e-8


def test_tangents_are_differences():
    moved = {"x": 0.3 * np.stack([-TOKENS.x[:, 1], TOKENS.x[:, 0]], axis=-1) * ANGLES[:, None]}

    def solved(by, shift, tangents=()):
        drift = mf.Kuramoto() + (2.0 + by) * mf.HigherOrder((2, -1))
        tokens = mf.Tokens(on_circle(ANGLES + shift * 0.3 * ANGLES), MASSES)
        model = mf.Transformer(drift)
        return mf.solve(model, tokens, (0, 0.5), dt=0.05, tangents=tangents)

    run, h = solved(0, 0, ["factors[1]", moved]), 1e-4
    for key, (b, s) in {"factors[1]": (1, 0), "direction_0": (0, 1)}.items():
        expected = (solved(b * h, s * h).final.x - solved(-b * h, -s * h).final.x) / (2 * h)
        assert np.abs(run.tangents[key][-1].x - expected).max() < 1e-7


def test_descriptions():
    drift = mf.HigherOrder([2, -1])
    assert describe(drift) == {"kind": "HigherOrder", "modes": [2, -1]}
    assert build(mf.Drift, describe(drift)) == drift
    assert drift.harmonic == 1


@pytest.mark.parametrize("modes", [(), (0,), (1, 70), (1,) * 17])
def test_other_modes_are_refused(modes):
    with pytest.raises((TypeError, ValueError), match="modes"):
        mf.HigherOrder(modes)


def test_what_it_does_not_move_is_refused():
    model = mf.Transformer(mf.HigherOrder((2, -1)))
    x = np.eye(3)
    with pytest.raises(ValueError, match="is for dimension 2"):
        mf.solve(model, mf.Tokens(x), (0, 1))
    with pytest.raises(ValueError, match="is for dimension 2"):
        mf.solve(model, mf.Sphere(8).uniform(), (0, 1))
    with pytest.raises(ValueError, match="products of moments"):
        mf.Transformer(mf.HigherOrder((2, -1)), causal=True)
    with pytest.raises(mf.MeanfieldError, match="no quotient of linear sums"):
        both = mf.Transformer(2.0 * model.drift + mf.Kuramoto())
        mf.solve(both, CIRCLE.uniform(), (0, 1), tangents=["factors[0]"])
    wide = mf.Transformer(mf.HigherOrder((2, 1)), frequency=mf.Lorentzian(1.0))
    with pytest.raises(mf.MeanfieldError, match="Lorentzian frequencies are exact"):
        mf.solve(wide, CIRCLE.uniform(), (0, 1))
