"""Tokens under `solve`: exact solutions, conservation, symmetries, and inner products alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import meanfield as mf

few = settings(deadline=None, derandomize=True, max_examples=12)
ZONAL = {
    "USA": mf.USA(2.0),
    "SA": mf.SA(3.0),
    "repelling": mf.SA(-2.0),
    "Kuramoto": mf.Kuramoto(),
    "series": mf.Interaction.chebyshev([0, 1, 0.5, 0.2]),
}


def moved(drift, tokens, t=1.0, rtol=1e-11, **model):
    """The tokens at time t."""
    return mf.solve(mf.Transformer(drift, **model), tokens, (0, t), t_eval=[t], rtol=rtol).final


def weighted(n, d, seed=0):
    """Uniform tokens with random masses."""
    rng = np.random.default_rng(seed)
    return mf.Tokens(mf.Tokens.uniform(n, d, rng=rng).x, rng.dirichlet(np.ones(n)))


def angle_of_two(beta, softmax, phi, t):
    """phi' = -2 sin phi e^(beta cos phi) / (e^beta + e^(beta cos phi)), or without the divisor."""

    def rate(_t, phi):
        weight = np.exp(beta * (np.cos(phi) - 1))
        if softmax:
            return -2 * np.sin(phi) * weight / (1 + weight)
        return -np.exp(beta) * weight * np.sin(phi)

    return solve_ivp(rate, (0, t), [phi], method="DOP853", rtol=1e-13, atol=1e-15).y[0, -1]


# Exact solutions ----------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("drift", [mf.SA, mf.USA])
@pytest.mark.parametrize("d", [2, 3, 7])
def test_two_tokens(beta, drift, d):
    x = np.zeros((2, d))
    x[:, 0], x[1, :2] = 1, [np.cos(1.3), np.sin(1.3)]
    end = moved(drift(beta), mf.Tokens(x), 0.7)
    angle = 2 * np.arcsin(np.linalg.norm(end.x[1] - end.x[0]) / 2)
    assert angle == pytest.approx(angle_of_two(beta, drift is mf.SA, 1.3, 0.7), rel=1e-9)


T_999 = {  # facts: the time at which orthonormal tokens, n = 32, reach the inner product 0.999
    ("SA", 0.0): 5.1862609811,
    ("SA", 1.0): 5.2702839076,
    ("SA", 4.0): 6.9535018488,
    ("SA", 9.0): 178.7309295190,
    ("USA", 1.0): 2.8970486230,
    ("USA", 9.0): 0.6859876689,
}


@pytest.mark.repeats
@pytest.mark.parametrize(("name", "beta"), T_999)
@pytest.mark.parametrize("products", [False, True], ids=["tokens", "gram"])
def test_orthonormal_tokens_stay_equiangular(name, beta, products):
    """1 - rho decays at most like e^(-2 e^beta t): the table's ten decimals are 1e-10 e^beta."""
    tokens = mf.Tokens.orthonormal(32)
    state = tokens.gram() if products else tokens
    end = moved(getattr(mf, name)(beta), state, T_999[name, beta], 1e-13)
    G = end.G if products else end.x @ end.x.T
    off = G[~np.eye(32, dtype=bool)]
    assert np.ptp(off) < 1e-12
    tolerance = 1e-3 * 2 * (np.exp(beta) if name == "USA" else 1.0) * 1e-10 + 1e-12
    assert off.mean() == pytest.approx(0.999, abs=tolerance)


def test_a_token_without_mass_falls_towards_a_dirac():
    """SA: c = <x, w> obeys c' = 1 - c^2 whatever beta is; the other one stays where it is."""
    c, t = -0.9, 2.5
    x = [[0, 0, 1], [np.sqrt(1 - c**2), 0, c]]
    end = moved(mf.SA(7.0), mf.Tokens(x, [1.0, 0.0]), t)
    grown = (1 + c) * np.exp(2 * t)
    assert end.x[1, 2] == pytest.approx((grown - (1 - c)) / (grown + (1 - c)), abs=1e-10)
    np.testing.assert_allclose(end.x[0], [0, 0, 1], rtol=0, atol=1e-15)


SCHEMES = {  # facts, section 8: 1 - rho at t = 1, 2, 5, of orthonormal tokens, n = 32, beta = 1
    mf.PostLN(): (0.8481507, 0.4102272, 1.715751e-3),
    mf.PreLN(): (0.8621322, 0.5389413, 8.180274e-2),
    mf.PeriLN(): (0.4638771, 0.2005645, 4.235338e-2),
    mf.NGPT(): (0.3456653, 0.05584784, 1.425545e-4),
    mf.SqrtScaling(): (0.8927758, 0.6739395, 0.1030260),
}


@pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
def test_normalisations_change_the_speed(scheme):
    model = mf.Transformer(mf.SA(1.0), normalisation=scheme)
    run = mf.solve(model, mf.Tokens.orthonormal(32), (0, 5), t_eval=[1, 2, 5], rtol=1e-10)
    found = [1 - state.x[0] @ state.x[1] for state in run]
    np.testing.assert_allclose(found, SCHEMES[scheme], rtol=5e-7)  # seven digits are printed


def test_the_mixed_scheme_is_one_and_then_the_other():
    first = moved(mf.SA(1.0), mf.Tokens.orthonormal(4), 0.7, 1e-12)
    second = moved(mf.SA(1.0), first, 0.9, 1e-12, normalisation=mf.PreLN())
    mixed = moved(mf.SA(1.0), mf.Tokens.orthonormal(4), 1.6, 1e-12, normalisation=mf.MixLN(0.7))
    np.testing.assert_allclose(mixed.x, second.x, rtol=0, atol=1e-11)
    np.testing.assert_allclose(mixed.radii, second.radii, rtol=1e-11)


def test_a_change_of_the_model_at_an_output_time_is_not_missed():
    model = mf.Transformer(mf.SA(1.0), normalisation=mf.MixLN(0.7))
    ends = [
        mf.solve(model, mf.Tokens.orthonormal(4), (0, 1.6), t_eval=times, rtol=1e-12).final.x
        for times in ([1.6], [0.7, 1.6])
    ]
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-11)


# Laws ---------------------------------------------------------------------------------------


@few
@given(st.sampled_from(sorted(ZONAL)), st.integers(2, 6), st.integers(2, 5), st.integers(0, 99))
def test_rotations_and_permutations_commute_with_the_flow(name, n, d, seed):
    tokens, rng = weighted(n, d, seed), np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    order = rng.permutation(n)
    end = moved(ZONAL[name], tokens, 0.5)
    other = moved(ZONAL[name], mf.Tokens(tokens.x[order] @ rotation, tokens.masses[order]), 0.5)
    np.testing.assert_allclose(other.x, end.x[order] @ rotation, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(end.masses, tokens.masses)
    np.testing.assert_allclose(np.linalg.norm(end.x, axis=1), 1, rtol=0, atol=4e-16)


@pytest.mark.parametrize("name", ["USA", "Kuramoto", "series"])
def test_the_energy_gains_the_square_of_the_speed(name):
    """E(T) - E(0) = int speed^2 dt, by Gauss-Legendre quadrature, converged to 1e-9."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    times = (nodes + 1) / 2
    run = mf.solve(
        mf.Transformer(ZONAL[name]), weighted(6, 3), (0, 1), t_eval=[0, *times, 1], rtol=1e-12
    )
    energy = run.observables["interaction_energy"].values
    speed = run.observables["speed"].values[1:-1]
    assert energy[-1] - energy[0] == pytest.approx(weights @ speed**2 / 2, rel=1e-9)
    assert (np.diff(energy) > 0).all()


def test_the_least_height_in_a_hemisphere_grows():
    rng = np.random.default_rng(4)
    x = mf.Tokens.uniform(40, 3, rng=rng).x * np.array([1, 1, 0.05]) + np.array([0, 0, 0.2])
    tokens = mf.Tokens(x / np.linalg.norm(x, axis=1, keepdims=True))
    run = mf.solve(
        mf.Transformer(mf.SA(2.0)), tokens, (0, 100), t_eval=np.linspace(0, 100, 81), rtol=1e-11
    )
    least = np.array([state.x[:, 2].min() for state in run])
    assert least[0] > 0 and (np.diff(least) > -1e-10).all()
    assert run.observables["cluster_count"].values[-1] == 1


@pytest.mark.parametrize("name", sorted(ZONAL))
def test_inner_products_know_enough(name):
    tokens = weighted(6, 4)
    end = moved(ZONAL[name], tokens, 0.8, 1e-12)
    products = moved(ZONAL[name], tokens.gram(), 0.8, 1e-12)
    np.testing.assert_allclose(products.G, end.x @ end.x.T, rtol=0, atol=3e-11)


@pytest.mark.parametrize(("beta", "stable"), [(-0.6, False), (-0.73, True)])
def test_three_tokens_repel_each_other_for_good_below_minus_two_thirds(beta, stable):
    """The rate of the linearisation is e^(-beta/2) (1/2 + 3 beta/4)."""
    angles = 2 * np.pi / 3 * np.arange(3) + np.array([1e-4, 0, 0])
    run = mf.solve(mf.Transformer(mf.USA(beta)), mf.Tokens.on_circle(angles), (0, 4), t_eval=[0, 4])
    # Directions in which not all turn together: |gaps - 2 pi / 3|.
    sizes = []
    for state in run:
        theta = np.unwrap(np.arctan2(state.x[:, 1], state.x[:, 0]))
        sizes.append(np.linalg.norm(np.diff(theta) - 2 * np.pi / 3))
    rate = np.log(sizes[1] / sizes[0]) / 4
    assert rate == pytest.approx(np.exp(-beta / 2) * (0.5 + 0.75 * beta), abs=1e-3)
    assert (rate < 0) == stable


MERGES = (2.44, 3.73, 6.35, 329.52)  # facts: sampled every 0.01, so rounded up


def test_five_tokens_merge_one_by_one():
    angles = [0.062197143764, 0.214322973423, 1.819122620804, 2.911071009455, -3.095248345473]

    run = mf.solve(
        mf.Transformer(mf.SA(4.0)),
        mf.Tokens.on_circle(angles),
        (0, 400),
        t_eval=[400],
        rtol=1e-10,
        events=mf.merge_events(5),
    )
    times = np.array([t[0] for t in run.t_events])
    np.testing.assert_array_equal(np.ceil(times * 100) / 100, MERGES)


# Against densities --------------------------------------------------------------------------


@pytest.mark.repeats
@pytest.mark.parametrize("drift", [mf.USA(1.5), mf.SA(4.0)], ids=repr)
@pytest.mark.parametrize("d", [2, 3])
def test_nodes_of_characteristics_are_weighted_tokens(drift, d):
    if d == 2:
        mu0 = mf.Circle(24).von_mises(0.4, 1.0)
    else:
        mu0 = mf.Sphere(24).von_mises_fisher([0, 0.6, 0.8], 1.0)
    nodes = mf.Characteristics(mu0, nodes=600 if d == 2 else 6000)
    model = mf.Transformer(drift)
    run = mf.solve(model, nodes, (0, 0.3), t_eval=[0.3], rtol=1e-10)
    tokens = mf.Tokens(nodes.points, nodes.masses / nodes.masses.sum())
    end = moved(drift, tokens, 0.3, 1e-10)
    np.testing.assert_allclose(end.x, run.final.points, rtol=0, atol=2e-9)
