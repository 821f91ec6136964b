"""Values that are right to the error that they state, where rounding could spoil them."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import meanfield as mf

T = mf.Tokens.on_circle


def in_space(x):
    """Tokens of R^d."""
    return mf.Tokens(np.array(x, dtype=float), on_sphere=False)


@pytest.mark.repeats
@pytest.mark.parametrize("p", [1, 2, 5, 10, 20])
def test_assignments_on_the_circle(p):
    rng = np.random.default_rng(0)
    for _ in range(60):
        x, y = 2 * np.pi * rng.random((2, rng.integers(1, 9)))
        gaps = np.abs(x[:, None] - y)
        gaps = np.minimum(gaps, 2 * np.pi - gaps)
        rows, columns = linear_sum_assignment(gaps**p)
        exact = np.mean(gaps[rows, columns] ** p) ** (1 / p)
        found = mf.wasserstein(T(x), T(y), p)
        assert abs(found.value - exact) <= found.error + 1e-14 and found.value <= np.pi


@pytest.mark.repeats
@pytest.mark.parametrize("p", [1, 2, 4])
def test_equal_measures_that_are_split_differently(p):
    angles = np.where(np.arange(20_000) % 2, 0.0, np.pi)
    found = mf.wasserstein(T(angles), T(np.repeat(angles, 2)), p)
    assert found.value <= found.error
    tokens = mf.Tokens.uniform(1000, 3, rng=3)
    twice = mf.Tokens(np.repeat(tokens.x, 2, axis=0))
    assert mf.conditional_wasserstein(tokens, twice, p).value < 1e-12


@pytest.mark.parametrize("scale", [1e-150, 1e-5, 1e5, 1e150])
@pytest.mark.parametrize("p", [1, 2, 20])
def test_space_has_any_scale(p, scale):
    for x, y in (([[0.0]], [[1.0]]), ([[0.0, 0.0]], [[0.6, 0.8]])):
        a, b = in_space(x), in_space(np.array(y) * scale)
        for distance in (mf.wasserstein, mf.conditional_wasserstein):
            assert distance(a, b, p).value == pytest.approx(scale, rel=1e-14)


def test_circles_of_latitude_are_no_points():
    nodes = mf.Characteristics(mf.Zonal(3, 24).von_mises_fisher(3.0))
    with pytest.raises(ValueError, match="circles of latitude"):
        mf.wasserstein(nodes, mf.Dirac([1.0, 0.0, 0.0]))


@pytest.mark.parametrize(
    ("concentration", "degree", "p", "exact"),
    [(100.0, 128, 10, 0.199583834196), (1000.0, 300, 10, 0.062776), (100.0, 128, 2, None)],
)
def test_concentrated_densities_and_their_centre(concentration, degree, p, exact):
    law = mf.Circle(degree).von_mises(0.0, concentration)
    found = mf.wasserstein(law, mf.Dirac([1.0, 0.0]), p)
    if exact is None:
        t = np.linspace(-np.pi, np.pi, 400_001)
        weight = np.exp(concentration * (np.cos(t) - 1))
        exact = np.sqrt(np.trapezoid(t**2 * weight, t) / np.trapezoid(weight, t))
        assert found.error < 1e-12
    assert abs(found.value - exact) <= found.error + 1e-11


@pytest.mark.long
def test_nodes_of_mass_that_rounding_made_negative():
    law = mf.Sphere(48).von_mises_fisher([0, 0.6, 0.8], 20.0)
    nodes = mf.Characteristics(law, nodes=20_000)
    assert nodes.masses.min() < 0
    tokens = mf.Tokens.uniform(20, 3, rng=0)
    found, exact = mf.wasserstein(nodes, tokens), mf.wasserstein(law, tokens)
    assert abs(found.value - exact.value) < 1e-3 and found.error < 1e-9


@pytest.mark.parametrize("beta", [1e5, 1e6, 1e8])
def test_narrow_kernels(beta):
    gap = 2 - 2 * np.cos(1e-3)
    exact = np.sqrt(2 - 2 * np.exp(-beta / 2 * gap))
    assert mf.mmd(T([0.0]), T([1e-3]), beta).value == pytest.approx(exact, rel=1e-9)
    far = mf.mmd(in_space([[1e8, 0.0]]), in_space([[1e8 + 1e-3, 0.0]]), beta).value
    assert far == pytest.approx(exact, rel=1e-3)


def test_quantiles_of_densities_that_touch_zero():
    """The order of the two does not matter."""
    touching = mf.Circle(24).density(lambda t: 1 + np.cos(2 * (t - 0.77)))
    for other in (mf.Circle(24).von_mises(0.0, 1.0), mf.Circle(128).von_mises(3.0, 20.0)):
        one, two = mf.wasserstein(touching, other), mf.wasserstein(other, touching)
        assert one.value == two.value and one.error < 1e-9


def test_plans_that_are_nearly_permutations_end_without_a_traceback():
    a, b = mf.Tokens.uniform(30, 3, rng=0), mf.Tokens.uniform(30, 3, rng=1)
    with pytest.warns(mf.UnresolvedWarning, match="Use a larger blur"):
        found = mf.sinkhorn_divergence(a, b, blur=1e-4)
    assert found.value == pytest.approx(mf.wasserstein(a, b).value, rel=1e-3)
    with pytest.raises(ValueError, match="between 1e-100 and 1e100"):
        mf.sinkhorn_divergence(a, b, blur=1e-200)


def test_what_would_not_fit_is_refused():
    a = mf.Tokens.uniform(4, 3, rng=0)
    with pytest.raises(ValueError, match=r"degree must be .* at most 2048"):
        mf.sobolev_distance(a, a, degree=10**6)
    with pytest.raises(ValueError, match=r"cells must be .* at most 20000"):
        mf.wasserstein(mf.Sphere(8).uniform(), a, cells=10**12)
    with pytest.raises(ValueError, match="on a sphere or a torus; got Tokens in R"):
        mf.sobolev_distance(in_space(np.eye(2)), in_space(np.eye(2)))
