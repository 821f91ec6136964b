"""Dual Sobolev distances and mean discrepancies: against sums over pairs and over many modes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meanfield as mf

CIRCLE, SPHERE = mf.Circle(16), mf.Sphere(10)
LAW = CIRCLE.fourier([1, 0.3 + 0.1j, -0.05j])
OTHER = SPHERE.von_mises_fisher([0.0, 0.6, 0.8], 1.0)
reproducible = settings(deadline=None, derandomize=True, max_examples=30)
seeds = st.integers(0, 2**32 - 1)


def atoms(n, d, seed):
    """Uniform tokens with random masses."""
    rng = np.random.default_rng(seed)
    return mf.Tokens(mf.Tokens.uniform(n, d, rng=rng).x, rng.dirichlet(np.ones(n)))


def modes(state, count):
    """int e^{-ik theta} of a measure on the circle, k = 1, ..., count."""
    k = np.arange(1, count + 1)
    if isinstance(state, mf.Density):
        return np.pad(state.coefficients[1:], (0, count))[:count]
    angles = np.arctan2(state.x[:, 1], state.x[:, 0])
    return np.exp(-1j * np.outer(k, angles)) @ state.masses


@reproducible
@given(st.integers(1, 8), seeds, st.sampled_from([1, 2, 3]))
def test_atoms_on_the_circle_have_all_their_harmonics(n, seed, s):
    a, count = atoms(n, 2, seed), 4000
    for b in (atoms(5, 2, seed + 1), LAW):
        k = np.arange(1, count + 1)
        cut = (2 * np.abs(modes(a, count) - modes(b, count)) ** 2 / k ** (2.0 * s)).sum()
        rest = 8 * count ** (1.0 - 2 * s) / (2 * s - 1)
        square = mf.sobolev_distance(a, b, s).value ** 2
        assert cut - 1e-13 <= square <= cut + rest + 1e-13


def test_the_first_norm_is_that_of_distribution_functions():
    """|a - b|^2 in H^-1 = 4 pi^2 times the variance of F - G for the uniform law."""
    a, b = atoms(7, 2, 0), atoms(5, 2, 1)
    theta = (np.arange(10**6) + 0.5) * 2 * np.pi / 10**6
    below = np.zeros_like(theta)
    for state, sign in ((a, 1), (b, -1)):
        angles = np.arctan2(state.x[:, 1], state.x[:, 0]) % (2 * np.pi)
        order = np.argsort(angles)
        sums = np.concatenate([[0], np.cumsum(state.masses[order])])
        below += sign * sums[np.searchsorted(angles[order], theta)]
    exact = 2 * np.pi * below.std()
    assert mf.sobolev_distance(a, b).value == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("s", [0.5, 1, 2.5])
def test_a_single_mode_has_its_weight(s):
    a = CIRCLE.fourier([1, 0, 0, 0.2])
    exact = np.sqrt(2) * 0.2 / 3**s
    assert mf.sobolev_distance(a, CIRCLE.uniform(), s).value == pytest.approx(exact, rel=1e-14)
    b = mf.Zonal(5, 8).zonal([1, 0, 0.5])  # P_2 has the norm (dim H_2)^(-1/2), dim H_2 = 14
    exact = 0.5 / np.sqrt(14) / 10 ** (s / 2)
    found = mf.sobolev_distance(b, mf.Zonal(5, 8).uniform(), s).value
    assert found == pytest.approx(exact, rel=1e-13)


def test_sums_over_harmonics_of_a_sphere_are_sums_over_pairs():
    a, b, degree = atoms(20, 3, 0), atoms(30, 3, 1), 12
    x, m = np.concatenate([a.x, b.x]), np.concatenate([a.masses, -b.masses])
    l = np.arange(1, degree + 1)
    series = np.concatenate([[0], (2 * l + 1) / (l * (l + 1.0)) ** 1.5])
    kernel = np.polynomial.legendre.legval(np.clip(x @ x.T, -1, 1), series)
    found = mf.sobolev_distance(a, b, 1.5, degree=degree).value
    assert found == pytest.approx(np.sqrt(m @ kernel @ m), rel=1e-10)


@pytest.mark.parametrize("beta", [0.01, 1.0, 30.0, 1000.0])
@pytest.mark.parametrize("d", [2, 3, 5])
def test_the_discrepancy_is_a_sum_over_pairs(d, beta):
    a, b = atoms(20, d, 0), atoms(30, d, 1)
    x, m = np.concatenate([a.x, b.x]), np.concatenate([a.masses, -b.masses])
    squares = ((x[:, None] - x) ** 2).sum(axis=2)
    exact = np.sqrt(m @ np.exp(-beta * squares / 2) @ m)
    found = mf.mmd(a, b, beta)
    assert found.value == pytest.approx(exact, rel=1e-9)
    assert found.method == ("harmonics" if d < 4 else "all pairs")


@pytest.mark.parametrize("distance", [mf.mmd, mf.sobolev_distance])
def test_densities_are_fine_atoms(distance):
    """Their quadrature has the same harmonics up to the degree that it integrates."""
    options = {"degree": 10} if distance is mf.sobolev_distance else {}
    fine = mf.Sphere(40)
    nodes = mf.Tokens(fine.points, fine.weights * OTHER.at(fine.points))
    tokens = atoms(50, 3, 2)
    exact = distance(OTHER, tokens, **options).value
    assert distance(nodes, tokens, **options).value == pytest.approx(exact, rel=1e-9)
    assert distance(OTHER, nodes, **options).value < 1e-7


def test_spaces_of_one_sphere_agree():
    zonal, sphere = mf.Zonal(3, 10).von_mises_fisher(1.0), SPHERE.von_mises_fisher([0, 0, 1], 1.0)
    assert mf.sobolev_distance(zonal, sphere).value < 1e-15
    even, circle = mf.Zonal(2, 16).von_mises_fisher(1.0), CIRCLE.von_mises(np.pi / 2, 1.0)
    assert mf.sobolev_distance(even, circle).value < 1e-15
    assert mf.mmd(zonal, mf.Dirac([0, 0, 1.0])).value == pytest.approx(
        mf.mmd(sphere, mf.Tokens([[0, 0, 1.0]])).value, rel=1e-12
    )


def test_ensembles_are_distances_of_their_members():
    a, b = mf.Tokens.uniform(6, 3, rng=0, shape=(3,)), OTHER
    found = mf.mmd(a, b, 2.0)
    assert found.shape == (3,)
    for i in range(3):
        assert found.value[i] == pytest.approx(mf.mmd(a[i], b, 2.0).value, rel=1e-14)


def test_fluctuations_of_independent_tokens():
    """n E |mu^n - mu|^2 in H^-1 = sum 2/k^2 = pi^2/3 for the uniform law: four standard errors."""
    n, sets = 200, 4000
    tokens = mf.Tokens.uniform(n, 2, rng=0, shape=(sets,))
    squares = n * mf.sobolev_distance(tokens, CIRCLE.uniform()).value ** 2
    assert abs(squares.mean() - np.pi**2 / 3) < 4 * squares.std() / sets**0.5
