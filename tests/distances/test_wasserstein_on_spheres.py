"""Wasserstein distances off the circle: linear programs, integrals, meridians, enclosures."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references import program
from scipy.integrate import quad
from scipy.optimize import linear_sum_assignment

import meanfield as mf
from meanfield.distances.linear_programs import Plan, WeightedPoints, dual_value
from meanfield.distances.metrics import Metric

SPHERE = mf.Sphere(15)
POLE = np.array([0.0, 0.0, 1.0])
reproducible = settings(deadline=None, derandomize=True, max_examples=25)
seeds = st.integers(0, 2**32 - 1)


def atoms(n, d, seed):
    """Uniform tokens with random masses."""
    rng = np.random.default_rng(seed)
    return mf.Tokens(mf.Tokens.uniform(n, d, rng=rng).x, rng.dirichlet(np.ones(n)))


# Atoms --------------------------------------------------------------------------------------


@reproducible
@given(st.integers(1, 9), st.integers(1, 9), st.integers(3, 6), seeds, st.sampled_from([1, 2, 3.5]))
def test_atoms_are_transported_as_a_linear_program_would(n, m, d, seed, p):
    a, b = atoms(n, d, seed), atoms(m, d, seed + 1)
    found = mf.wasserstein(a, b, p)
    exact = program(a.x, a.masses, b.x, b.masses, p)
    assert found.value == pytest.approx(exact, abs=1e-12)
    assert found.error <= 1e-10


@pytest.mark.parametrize("d", [3, 16, 300])
def test_equal_masses_are_assigned(d):
    a, b = mf.Tokens.uniform(150, d, rng=1), mf.Tokens.uniform(150, d, rng=2)
    angles = np.arccos(np.clip(a.x @ b.x.T, -1, 1))
    rows, columns = linear_sum_assignment(angles**2)
    exact = np.sqrt((angles[rows, columns] ** 2).mean())
    assert mf.wasserstein(a, b).value == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("angle", [1e-12, 1e-7, 1.0, np.pi - 1e-7, np.pi])
def test_angles_keep_their_digits(angle):
    a = mf.Tokens([POLE, POLE])
    b = mf.Tokens([[np.sin(angle), 0, np.cos(angle)]] * 2)
    assert mf.wasserstein(a, b, 1).value == pytest.approx(angle, rel=1e-9)


def test_the_circle_is_a_sphere_too():
    """Quantiles on the circle against the linear program for the same points in a plane of R^3."""
    a, b = atoms(30, 2, 0), atoms(40, 2, 1)
    lifted = (mf.Tokens(np.pad(s.x, ((0, 0), (0, 1))), s.masses) for s in (a, b))
    assert mf.wasserstein(*lifted).value == pytest.approx(mf.wasserstein(a, b).value, abs=1e-12)


@pytest.mark.parametrize("d", [1, 3])
def test_tokens_in_space(d):
    rng = np.random.default_rng(d)
    x, y = rng.standard_normal((12, d)), rng.standard_normal((12, d))
    gaps = np.linalg.norm(x[:, None] - y, axis=2)
    rows, columns = linear_sum_assignment(gaps**2)
    a, b = (mf.Tokens(points, on_sphere=False) for points in (x, y))
    exact = np.sqrt((gaps[rows, columns] ** 2).mean())
    assert mf.wasserstein(a, b).value == pytest.approx(exact, abs=1e-12)


@reproducible
@given(seeds, st.sampled_from([1, 2, 3]))
def test_it_is_a_metric_that_rotations_keep(seed, p):
    a, b, c = (atoms(8, 4, seed + k) for k in range(3))
    ab, bc, ac = (mf.wasserstein(*pair, p).value for pair in ((a, b), (b, c), (a, c)))
    assert mf.wasserstein(b, a, p).value == pytest.approx(ab, abs=1e-12)
    assert ac <= ab + bc + 1e-12
    assert mf.wasserstein(a, a, p).value <= 1e-12
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((4, 4)))[0]
    turned = (mf.Tokens(s.x @ turn, s.masses) for s in (a, b))
    assert mf.wasserstein(*turned, p).value == pytest.approx(ab, abs=1e-12)


# One point ----------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2, 2.5])
@pytest.mark.parametrize("d", [2, 3, 8, 100])
def test_all_mass_goes_to_the_pole(d, p):
    """1 + x/2 has the law (1 + cos(theta)/2) sin^(d-2)(theta) of the angle from it."""
    weight = lambda t: np.sin(t) ** (d - 2) * (1 + np.cos(t) / 2)  # noqa: E731
    options = {"epsabs": 1e-14, "epsrel": 1e-13, "limit": 200}
    total = quad(weight, 0, np.pi, **options)[0]
    exact = (quad(lambda t: t**p * weight(t), 0, np.pi, **options)[0] / total) ** (1 / p)
    law = mf.Zonal(d, 8).zonal([1, 0.5])
    pole = np.eye(d)[-1]
    assert mf.wasserstein(law, mf.Dirac(pole), p).value == pytest.approx(exact, abs=1e-11)
    nodes = mf.Characteristics(law)
    assert mf.wasserstein(mf.Dirac(pole), nodes, p).value == pytest.approx(exact, abs=1e-8)


def test_a_density_and_a_point_off_its_axis():
    law, point = SPHERE.von_mises_fisher(POLE, 3.0), np.array([0.6, 0.0, 0.8])
    fine = mf.Sphere(300)
    angles = np.arccos(np.clip(fine.points @ point, -1, 1))
    exact = np.sqrt(fine.weights * law.at(fine.points) @ angles**2)
    assert mf.wasserstein(law, mf.Dirac(point)).value == pytest.approx(exact, abs=1e-6)
    many = mf.wasserstein(mf.Density.stack([law, law.rotate(-np.eye(3))]), mf.Dirac(point))
    assert many.shape == (2,) and many.value[0] == mf.wasserstein(law, mf.Dirac(point)).value


def test_distances_of_points():
    a, b = mf.Dirac(POLE), mf.Dirac([1.0, 0.0, 0.0])
    assert mf.wasserstein(a, b, 1).value == pytest.approx(np.pi / 2, abs=1e-15)
    run = mf.Characteristics(SPHERE.von_mises_fisher(POLE, 1.0))
    assert mf.wasserstein(run, a).value == pytest.approx(run.w2_to_dirac(POLE), rel=1e-14)


# Densities ----------------------------------------------------------------------------------


@pytest.mark.repeats
@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("d", [2, 3, 5, 64])
def test_axisymmetric_densities_move_along_meridians(d, p):
    """Against the quantiles of fine atoms of the polar angle."""
    zonal = mf.Zonal(d, 24)
    a, b = zonal.von_mises_fisher(2.0), zonal.zonal([1, -0.4])
    t = (np.arange(200_000) + 0.5) * np.pi / 200_000
    x = np.cos(t)[:, None]
    levels = []
    for law in (a, b):
        mass = law.space.at(law.coefficients, x) * np.sin(t) ** (d - 2)
        levels.append(np.cumsum(mass) / mass.sum())
    s = (np.arange(100_000) + 0.5) / 100_000
    gaps = np.interp(s, levels[0], t) - np.interp(s, levels[1], t)
    exact = np.mean(np.abs(gaps) ** p) ** (1 / p)
    assert mf.wasserstein(a, b, p).value == pytest.approx(exact, rel=1e-5)


def test_the_axisymmetric_circle_is_the_circle():
    a = mf.Zonal(2, 24).von_mises_fisher(2.0)
    b = mf.Circle(24).von_mises(np.pi / 2, 2.0)
    other = mf.Circle(24).von_mises(1.0, 3.0)
    assert mf.wasserstein(a, b).value < 1e-7
    assert mf.wasserstein(a, other).value == pytest.approx(
        mf.wasserstein(b, other).value, abs=1e-12
    )


@pytest.mark.repeats
@pytest.mark.parametrize("p", [1, 2])
def test_a_density_and_atoms_are_enclosed(p):
    """Two enclosures of one number, of different width, overlap; and so does a finer one."""
    law = SPHERE.von_mises_fisher(POLE, 2.0)
    tokens = law.sample(40, rng=1)
    found = [mf.wasserstein(law, tokens, p, cells=cells) for cells in (200, 400, 1600)]
    errors = [w.error for w in found]
    assert errors[0] > errors[1] > errors[2] and errors[2] < 0.01 * found[2].value
    least = max(w.value - w.error for w in found)
    most = min(w.value + w.error for w in found)
    assert least <= most + 1e-4  # of the quadrature
    assert mf.wasserstein(tokens, law, p, cells=200).value == found[0].value


def test_an_enclosure_holds_what_is_known():
    """The distance of an axisymmetric density from both poles is that along meridians."""
    law, poles = mf.Zonal(3, 15).zonal([1, 0.3]), mf.Tokens([POLE, -POLE], [0.6, 0.4])
    t = np.linspace(0, np.pi, 200_001)
    weight = np.sin(t) / 2 * (1 + 0.3 * np.cos(t))
    below = np.concatenate([[0], np.cumsum((weight[1:] + weight[:-1]) / 2 * np.diff(t))])
    cut = np.interp(0.6, below, t)
    gaps = np.where(t < cut, t, np.pi - t)
    exact = np.sqrt(np.trapezoid(gaps**2 * weight, t))
    found = mf.wasserstein(law, poles)
    assert abs(found.value - exact) <= found.error + 1e-4


def test_two_densities_on_the_sphere_by_cells():
    """The error holds the distance that is known along meridians."""
    zonal = mf.Zonal(3, 15)
    a, b = zonal.von_mises_fisher(3.0), zonal.uniform()
    exact = mf.wasserstein(a, b).value
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    sphere = SPHERE.von_mises_fisher(POLE, 3.0).rotate(turn)
    found = mf.wasserstein(sphere, SPHERE.uniform(), cells=600)
    assert found.method == "cells" and abs(found.value - exact) <= found.error < 0.15
    assert found.value == pytest.approx(exact, rel=0.03)


# Gaussians ----------------------------------------------------------------------------------


def test_gaussians_have_the_formula_of_bures():
    import ot

    rng = np.random.default_rng(0)
    means, roots = rng.standard_normal((2, 4)), rng.standard_normal((2, 4, 4))
    covs = roots @ np.swapaxes(roots, 1, 2)
    a, b = (mf.Gaussian(m, c) for m, c in zip(means, covs, strict=True))
    exact = ot.gaussian.bures_wasserstein_distance(*means, *covs)
    assert mf.wasserstein(a, b).value == pytest.approx(exact, rel=1e-12)
    near = mf.Gaussian(a.mean, a.cov * (1 + 1e-10) ** 2)
    assert mf.wasserstein(a, near).value == pytest.approx(1e-10 * np.trace(a.cov) ** 0.5, rel=1e-4)
    flat = (mf.Gaussian(np.zeros(2), np.diag(v)) for v in ([1.0, 0.0], [0.0, 4.0]))
    assert mf.wasserstein(*flat).value == pytest.approx(np.sqrt(5), rel=1e-14)
    sample = mf.Gaussian([1.0, 2.0], [[2.0, 1.0], [1.0, 1.0]]).sample(40_000, rng=1).x
    np.testing.assert_allclose(sample.mean(axis=0), [1, 2], atol=5 * 2**0.5 / 200)
    np.testing.assert_allclose(np.cov(sample.T), [[2, 1], [1, 1]], atol=5 * 2.83 / 200)


@pytest.mark.parametrize("p", [1, 1.5, 2, 4])
def test_least_costs_are_those_over_all_pairs(p):
    """Chords leave no arc out that counts: points that coincide and antipodes are among them."""
    rng = np.random.default_rng(0)
    x = mf.Tokens.uniform(400, 3, rng=1).x
    y = np.concatenate([mf.Tokens.uniform(60, 3, rng=2).x, x[:20], -x[20:40]])
    v = rng.normal(size=len(y)) * 0.3
    points = WeightedPoints(y, np.full(len(y), 1 / len(y)))
    plan = Plan(0.0, 0.0, np.empty(0), v, 1.0)
    for i in range(len(x)):  # one point at a time: no error can cancel
        fine = WeightedPoints(x[i : i + 1], np.ones(1))
        exact = (Metric(3, 3).pairwise(fine.x, y, p) - v).min() + points.masses @ v
        assert dual_value(Metric(3, 3), fine, points, plan, p) == pytest.approx(exact, abs=1e-14)
