"""Wasserstein distances on the circle: exact, for atoms and densities, for every power."""

import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references import by_quadrature, program

import meanfield as mf

POWERS = (1, 1.5, 2, 3, 7)
CIRCLE = mf.Circle(32)
reproducible = settings(deadline=None, derandomize=True, max_examples=40)
seeds, sizes, powers = st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from(POWERS)


def atoms(n, seed, spread=2 * np.pi):
    """Random atoms with random masses, some of them 0, some at one place."""
    rng = np.random.default_rng(seed)
    masses = rng.dirichlet(np.ones(n))
    angles = spread * rng.random(n)
    if n > 3:
        angles[1], masses[0], masses[2] = angles[0], masses[0] + masses[2], 0
    return mf.Tokens(mf.Tokens.on_circle(angles).x, masses)


def density(seed=0):
    """One without symmetry, and far from uniform."""
    c = np.random.default_rng(seed).standard_normal((4, 2)) @ [1, 1j]
    return CIRCLE.fourier([1, *(0.4 * c / np.abs(c).sum())])


def states(seed):
    """A density, atoms, a Dirac."""
    return density(seed), atoms(9, seed), mf.Dirac([np.cos(seed), np.sin(seed)])


# Atoms --------------------------------------------------------------------------------------


@reproducible
@given(sizes, sizes, seeds, powers)
def test_atoms_are_transported_as_a_linear_program_would(n, m, seed, p):
    a, b = atoms(n, seed), atoms(m, seed + 1)
    exact = program(a.x, a.masses, b.x, b.masses, p)
    found = mf.wasserstein(a, b, p)
    assert found.value == pytest.approx(exact, abs=1e-12)
    assert found.error <= 1e-11


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("n", [40, 400])
def test_a_library_agrees(n, p):
    """POT takes turns for angles and returns the p-th power."""
    a, b = atoms(n, 1), atoms(n + 3, 2)
    u, v = (np.arctan2(s.x[:, 1], s.x[:, 0]) / (2 * np.pi) % 1 for s in (a, b))
    turns = ot.wasserstein_circle(u, v, a.masses, b.masses, p=p, eps=1e-14)[0]
    assert mf.wasserstein(a, b, p).value == pytest.approx(
        2 * np.pi * turns ** (1 / p), abs=1e-12 if p < 3 else 1e-9
    )


def test_a_million_atoms_at_equal_distances():
    """n-th roots of unity turned by an angle less than half their distance."""
    n, turn = 10**6, 1e-6
    angles = 2 * np.pi * np.arange(n) / n
    a, b = mf.Tokens.on_circle(angles), mf.Tokens.on_circle(angles[::-1] + turn)
    assert mf.wasserstein(a, b, 2).value == pytest.approx(turn, rel=1e-9)


# Densities ----------------------------------------------------------------------------------


@pytest.mark.repeats
@pytest.mark.parametrize("p", POWERS)
def test_densities_by_quadrature(p):
    """1 + a cos theta has the distribution function (theta + a sin theta) / 2 pi."""
    below = lambda t: (t + 0.9 * np.sin(t)) / (2 * np.pi)  # noqa: E731
    above = lambda t: (t - 0.5 * np.cos(t) + 0.5) / (2 * np.pi)  # noqa: E731
    a = CIRCLE.density(lambda t: 1 + 0.9 * np.cos(t))
    b = CIRCLE.density(lambda t: 1 + 0.5 * np.sin(t))
    assert mf.wasserstein(a, b, p).value == pytest.approx(by_quadrature(below, above, p), rel=3e-6)


@pytest.mark.repeats
@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("turn", [1e-8, 1e-3, 0.5, 1.0])
def test_a_turn_costs_its_angle(p, turn):
    """If next to nothing is on the far side, by which mass could go round."""
    a = mf.Circle(64).von_mises(0.3, 60.0)
    found = mf.wasserstein(a, a.rotate(turn), p)
    assert abs(found.value - turn) <= found.error
    assert found.error < 1e-9 or turn < 0.1


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("turn", [1e-9, 1e-3, 1.0])
def test_a_turn_of_atoms_on_an_arc_costs_its_angle(p, turn):
    a = atoms(50, 0, spread=1.0)
    c, s = np.cos(turn), np.sin(turn)
    found = mf.wasserstein(a, mf.Tokens(a.x @ [[c, s], [-s, c]], a.masses), p)
    assert found.value == pytest.approx(turn, abs=1e-14)


def test_a_turn_may_cost_less_than_its_angle():
    a = CIRCLE.von_mises(0.3, 1.0)
    assert mf.wasserstein(a, a.rotate(1.0)).value < 0.9


@pytest.mark.repeats
@pytest.mark.parametrize("p", POWERS)
def test_atoms_tend_to_their_density(p):
    """W_p of n cells of equal mass falls like 1/n."""
    a, b = density(1), density(2)
    exact = mf.wasserstein(a, b, p).value
    errors = []
    for n in (2000, 4000):
        fine = CIRCLE.with_degree(4 * n).density
        masses = fine(lambda t: b.at(CIRCLE.embed(t))).values[::1]
        circle = mf.Circle(4 * n)
        tokens = mf.Tokens(circle.points, masses * circle.weights)
        errors.append(abs(mf.wasserstein(a, tokens, p).value - exact))
    assert errors[0] < 1e-3 and errors[1] < 0.7 * errors[0]


# Laws ---------------------------------------------------------------------------------------


@reproducible
@given(seeds, powers)
def test_it_is_a_metric(seed, p):
    a, b, c = (states(seed + k)[(seed + k) % 3] for k in range(3))
    ab, ba, bc, ac = (mf.wasserstein(*pair, p).value for pair in ((a, b), (b, a), (b, c), (a, c)))
    assert ab == pytest.approx(ba, abs=1e-11)
    assert ac <= ab + bc + 1e-11
    assert mf.wasserstein(a, a, p).value <= 1e-11
    assert 0 <= ab <= np.pi + 1e-12


@reproducible
@given(seeds, st.floats(-20, 20), powers)
def test_turning_both_changes_nothing(seed, angle, p):
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[c, s], [-s, c]])
    a, b = density(seed), atoms(7, seed)
    turned = mf.wasserstein(a.rotate(angle), mf.Tokens(b.x @ turn, b.masses), p).value
    assert turned == pytest.approx(mf.wasserstein(a, b, p).value, abs=1e-11)


@pytest.mark.long
@settings(reproducible, max_examples=10)
@given(seeds)
def test_it_grows_with_the_power(seed):
    for a, b in ((density(seed), atoms(5, seed)), (density(seed), density(seed + 1))):
        found = [mf.wasserstein(a, b, p).value for p in POWERS]
        assert (np.diff(found) >= -1e-12).all()


@pytest.mark.parametrize("p", POWERS)
def test_mass_that_is_split_costs_nothing(p):
    a, b = density(3), atoms(6, 3)
    halves = mf.Tokens(np.concatenate([b.x, b.x]), np.concatenate([b.masses, b.masses]) / 2)
    whole, split = (mf.wasserstein(a, tokens, p).value for tokens in (b, halves))
    assert split == pytest.approx(whole, abs=1e-13)


@pytest.mark.parametrize("p", POWERS)
def test_ensembles_are_distances_of_their_members(p):
    a = mf.Density.stack([density(k) for k in range(3)])
    b = mf.Tokens.uniform(6, 2, rng=0, shape=(2, 1))
    found = mf.wasserstein(a, b, p)
    assert found.shape == (2, 3)
    for i in range(2):
        for j in range(3):
            single = mf.wasserstein(a[j], b[i, 0] if b.shape[1:] else b[i], p).value
            assert found[i, j].value == single


def test_the_metric_speed_of_a_gradient_flow_is_that_of_its_velocity():
    """W_2(mu_t, mu_(t+h)) / h tends to (int |v|^2 dmu)^(1/2), with an error of order h."""
    model = mf.Transformer(mf.USA(2.0))
    errors = []
    for h in (1e-2, 5e-3):
        run = mf.solve(model, density(4), (0, 0.3 + h), t_eval=[0.3, 0.3 + h], rtol=1e-11)
        speed = run.observables["dissipation"].values[0] ** 0.5
        errors.append(abs(mf.wasserstein(run[0], run[1]).value / h - speed))
    assert errors[0] < 0.05 and errors[0] / errors[1] == pytest.approx(2, abs=0.2)
