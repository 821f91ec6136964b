"""Distances on the torus: against assignments, circles and products, and laws of a metric."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.special import ive

import meanfield as mf
from meanfield.distances.metrics import Metric

RNG = np.random.default_rng(0)
CIRCLE = mf.Circle(12)
F = CIRCLE.density(lambda x: 1 + 0.6 * np.cos(x) + 0.2 * np.sin(2 * x))
G = CIRCLE.density(lambda x: 1 + 0.5 * np.sin(x - 1))
TORUS = mf.Torus(12)


def tokens(n, m, seed, spread=2 * np.pi):
    return mf.Tokens.on_torus(np.random.default_rng(seed).uniform(0, spread, (n, m)))


def torus_distances(a, b):
    """Distances by differences of angles, (n, n)."""
    gaps = (a.angles[:, None] - b.angles + np.pi) % (2 * np.pi) - np.pi
    return np.sqrt((gaps**2).sum(axis=-1))


def on_grid(x, y):
    return mf.Tokens.on_torus(np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2))


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("p", [1, 2, 3.5])
def test_tokens_against_an_assignment(m, p):
    a, b = tokens(40, m, 1), tokens(40, m, 2, 2.0)
    costs = torus_distances(a, b) ** p
    rows, columns = linear_sum_assignment(costs)
    expected = costs[rows, columns].mean() ** (1 / p)
    w = mf.wasserstein(a, b, p)
    assert w.value == pytest.approx(expected, rel=1e-12)
    assert w.error < 1e-9 and mf.wasserstein(b, a, p).value == pytest.approx(w.value, rel=1e-12)


def test_distances_are_precise_close_together_and_at_antipodes():
    start = tokens(6, 2, 3)
    for shift in ([3e-9, 4e-9], [np.pi - 3e-9, 0.0]):
        moved = mf.Tokens.on_torus(start.angles + shift)
        expected = np.hypot(*shift)
        x, y = start.x, moved.x
        np.testing.assert_allclose(Metric(4, 2).between(x, y), expected, rtol=3e-7 * 1e-9 / 3e-9)
        diagonal = np.diag(Metric(4, 2).pairwise(x, y, 1))
        np.testing.assert_allclose(diagonal, expected, rtol=1e-7)


@pytest.mark.parametrize("p", [1, 2])
def test_one_angle_is_the_circle(p):
    torus = mf.Torus(12, 1)
    f, g = (torus.product([one]) for one in (F, G))
    a, b = tokens(50, 1, 4), tokens(31, 1, 5)
    circle = [F, G, *(mf.Tokens.on_circle(one.angles[:, 0]) for one in (a, b))]
    for i, first in enumerate([f, g, a, b]):
        for j, second in enumerate([f, g, a, b]):
            expected = mf.wasserstein(circle[i], circle[j], p).value
            assert mf.wasserstein(first, second, p).value == pytest.approx(expected, abs=1e-13)


def test_squares_add_for_products():
    x, y, u, v = (RNG.uniform(0, 6, 15) for _ in range(4))
    on_circle = mf.Tokens.on_circle
    expected = mf.wasserstein(on_circle(x), on_circle(u)) ** 2
    expected += mf.wasserstein(on_circle(y), on_circle(v)) ** 2
    squared = mf.wasserstein(on_grid(x, y), on_grid(u, v)) ** 2
    assert squared == pytest.approx(expected, rel=1e-12)


@pytest.mark.long
def test_densities_against_densities_and_tokens():
    """The distances of products are known, and lie within the bounds."""
    uniform = CIRCLE.uniform()
    expected = (mf.wasserstein(F, G) ** 2 + mf.wasserstein(G, uniform) ** 2) ** 0.5
    a, b = TORUS.product([F, G]), TORUS.product([G, uniform])
    w = mf.wasserstein(a, b, cells=1000)
    assert abs(w.value - expected) <= w.error <= 0.2 and w.method == "cells"
    assert abs(w.value - expected) < 0.02
    points = mf.Tokens.on_torus([[0.3, -1.0]])  # a Dirac measure: an integral
    d, e = (mf.wasserstein(f, mf.Dirac([np.cos(t), np.sin(t)])).value
            for f, t in ((F, 0.3), (G, -1.0)))  # fmt: skip
    w = mf.wasserstein(a, points, cells=400)
    assert w.value == pytest.approx(np.hypot(d, e), abs=1e-4) and w.method == "semi-discrete"
    sample = a.sample(60, rng=1)
    coarse, fine = (mf.wasserstein(a, sample, cells=cells) for cells in (300, 1500))
    assert abs(coarse.value - fine.value) <= coarse.error + fine.error
    assert fine.error < 0.03 * fine.value


def test_three_angles():
    torus = mf.Torus(3, 3)
    law = torus.density(lambda x, y, z: 1 + 0.5 * np.cos(x - y) + 0.2 * np.cos(z))
    point = mf.Tokens.on_torus([[0.0, 0.0, 0.0]])
    w = mf.wasserstein(law, point, cells=200)
    expected = (np.pi**2 - 0.4) ** 0.5  # E z^2 = pi^2/3 - 2 * 0.2
    assert abs(w.value - expected) <= w.error < 0.01 * expected


def test_ensembles_are_broadcast():
    law = TORUS.product([F, G])
    replicas = mf.Tokens.on_torus(RNG.uniform(0, 6, (3, 20, 2)))
    together = mf.wasserstein(replicas, law, cells=200)
    assert together.shape == (3,)
    alone = mf.wasserstein(replicas[1], law, cells=200)
    assert together[1].value == pytest.approx(alone.value, rel=1e-13)


def test_slices():
    a, b, c = tokens(50, 2, 6), tokens(50, 2, 7, 3.0), tokens(30, 2, 8, 1.0)
    s = {(i, j): mf.sliced_wasserstein(x, y).value
         for i, x in enumerate((a, b, c)) for j, y in enumerate((a, b, c))}  # fmt: skip
    assert s[0, 0] < 1e-7 and s[0, 1] == pytest.approx(s[1, 0], rel=1e-12)
    assert 0 < s[0, 2] <= s[0, 1] + s[1, 2]
    assert s[0, 1] <= mf.wasserstein(a, b).value
    moved = mf.Tokens.on_torus(a.angles + np.array([1e-3, 2e-3]))  # short translations move as one
    directions, lengths = Metric(4, 2).directions(256, np.random.default_rng(0))
    expected = np.sqrt((((directions @ [1e-3, 2e-3]) / lengths) ** 2).mean())
    assert mf.sliced_wasserstein(a, moved).value == pytest.approx(expected, rel=1e-9)
    assert (np.gcd.reduce(directions, axis=1) == 1).all()


@pytest.mark.parametrize("p", [1, 2, 3])
def test_slices_are_distances_between_angles_over_the_length_of_the_wave(p):
    """Of <k, x>/|k| on a circle of radius 1/|k|, each by an assignment."""
    a, b = tokens(12, 2, 15), tokens(12, 2, 16, 2.0)
    waves, _ = Metric(4, 2).directions(20, np.random.default_rng(3))
    assert len({round(float(np.hypot(*k)), 9) for k in waves}) > 4
    costs = []
    for k in waves:
        gaps = np.subtract.outer(a.angles @ k, b.angles @ k)
        pairs = (np.abs((gaps + np.pi) % (2 * np.pi) - np.pi) / np.hypot(*k)) ** p
        costs.append(pairs[linear_sum_assignment(pairs)].mean())
    found = mf.sliced_wasserstein(a, b, p, projections=20, rng=3)
    assert found.value == pytest.approx(np.mean(costs) ** (1 / p), rel=1e-9)
    error = np.std(costs, ddof=1) / 20**0.5 / (p * np.mean(costs)) * found.value
    assert found.error == pytest.approx(error, rel=1e-6)


@pytest.mark.long
def test_slices_of_densities_are_those_of_many_samples():
    law, other = TORUS.product([F, G]), TORUS.uniform()
    exact = mf.sliced_wasserstein(law, other, projections=64)
    sample = law.sample(10_000, rng=2)
    floor = (np.pi**2 / 3 / len(sample)) ** 0.5  # about the distance of one projection
    estimate = mf.sliced_wasserstein(sample, other, projections=64)
    assert abs(exact.value - estimate.value) < 4.5 * floor


def test_one_projection_of_a_density():
    """x + 2 y under a product law has the coefficients f_j g_2j."""
    law = TORUS.product([F, G])
    c = mf.distances.measures.measure_of("test", law, "a").law_along(np.array([1, 2]))
    expected = np.zeros(13, dtype=complex)
    expected[:7] = F.coefficients[:7] * G.coefficients[:13:2]
    np.testing.assert_allclose(c, expected, atol=1e-15)


@pytest.mark.parametrize("m", [2, 3])
def test_mmd_of_points_and_densities(m):
    beta = 0.7
    a, b = tokens(30, m, 9), tokens(20, m, 10)
    torus = mf.Torus(10, m)
    law = torus.von_mises(0.4, beta)
    kernel = [np.exp(-beta * (m - x.x @ y.x.T)).mean() for x, y in ((a, a), (b, b), (a, b))]
    expected = kernel[0] + kernel[1] - 2 * kernel[2]
    assert mf.mmd(a, b, beta) ** 2 == pytest.approx(expected, rel=1e-10)
    k = np.abs(torus.waves)
    weights = torus.parseval * ive(k, beta).prod(axis=1)
    smooth = weights @ np.abs(law.coefficients) ** 2
    cross = (torus.parseval * ive(k, beta).prod(axis=1) * law.coefficients) @ np.exp(
        1j * torus.waves @ a.angles.T
    ).mean(axis=1)
    expected = kernel[0] + smooth - 2 * cross.real
    assert mf.mmd(a, law, beta) ** 2 == pytest.approx(expected, abs=1e-9)


def test_sobolev_distance():
    a, b = TORUS.product([F, G]), TORUS.uniform()
    c, k2 = a.coefficients[1:], (TORUS.waves[1:] ** 2).sum(axis=1)
    assert mf.sobolev_distance(a, b) ** 2 == pytest.approx(2 * (np.abs(c) ** 2 / k2).sum())
    points = tokens(20, 2, 11)
    waves = TORUS.waves[1:]
    moments = np.exp(-1j * waves @ points.angles.T).mean(axis=1)
    expected = 2 * (np.abs(moments - c) ** 2 / k2**2).sum()
    assert mf.sobolev_distance(points, a, 2, degree=12) ** 2 == pytest.approx(expected)
    with pytest.raises(ValueError, match="points on the torus of 2 angles have infinitely many"):
        mf.sobolev_distance(points, a)


def test_sinkhorn_is_near_the_distance():
    a, b = tokens(30, 2, 12), tokens(30, 2, 13, 3.0)
    w = mf.wasserstein(a, b)
    assert mf.sinkhorn_divergence(a, b, blur=0.02).value == pytest.approx(w.value, rel=1e-2)


@pytest.mark.parametrize("p", [1, 2, 3, 3.5])
def test_costs_are_powers_of_the_distances(p):
    a, b = tokens(20, 3, 17), tokens(15, 3, 18)
    expected = (((a.angles[:, None] - b.angles + np.pi) % (2 * np.pi) - np.pi) ** 2).sum(axis=-1)
    np.testing.assert_allclose(
        Metric(6, 2).pairwise(a.x, b.x, p), expected ** (p / 2), rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize("p", [1, 3])
def test_sinkhorn_is_near_the_assignment_for_other_powers(p):
    a, b = tokens(30, 2, 12), tokens(30, 2, 13, 3.0)
    costs = torus_distances(a, b) ** p
    expected = costs[linear_sum_assignment(costs)].mean() ** (1 / p)
    found = mf.sinkhorn_divergence(a, b, p, blur=0.02)
    assert found.value == pytest.approx(expected, rel=1e-2)


def test_what_is_refused():
    a = tokens(5, 2, 14)
    for other in (tokens(5, 3, 0), mf.Tokens.uniform(5, 4, rng=0), mf.Dirac([1.0, 0, 0, 0])):
        with pytest.raises(
            ValueError,
            match="two states of one space; got",
        ):
            mf.wasserstein(a, other)
    with pytest.raises(ValueError, match="up to rotation are known on the circle"):
        mf.wasserstein(a, a, up_to_rotation=True)
