"""Sliced, entropic and conditional distances, and what all distances are."""

import numpy as np
import ot
import pytest

import meanfield as mf
from meanfield.distances import entropic
from meanfield.distances.metrics import Metric

POLE = np.array([0.0, 0.0, 1.0])
SPHERE = mf.Sphere(12)
X, Y = mf.Tokens.uniform(60, 3, rng=0), mf.Tokens.uniform(40, 3, rng=1)


# Sliced -------------------------------------------------------------------------------------


def test_slices_are_distances_on_great_circles():
    found = mf.sliced_wasserstein(X, Y, 2, projections=20, rng=3)
    frames = np.linalg.qr(np.random.default_rng(3).standard_normal((20, 3, 2)))[0]
    costs = []
    for frame in frames:
        a, b = (mf.Tokens.on_circle(np.arctan2(*(s.x @ frame).T[::-1])) for s in (X, Y))
        costs.append(mf.wasserstein(a, b).value ** 2)
    assert found.value == pytest.approx(np.sqrt(np.mean(costs)), rel=1e-12)
    error = np.std(costs, ddof=1) / np.sqrt(20) / (2 * found.value)
    assert found.error == pytest.approx(error, rel=1e-12)


@pytest.mark.long
def test_a_library_agrees_on_slices():
    """POT's, with its own circles, in turns: four standard errors."""
    theirs = ot.sliced_wasserstein_sphere(X.x, Y.x, n_projections=2000, p=2, seed=0)
    found = mf.sliced_wasserstein(X, Y, projections=2000)
    assert abs(2 * np.pi * theirs - found.value) < 4 * 2**0.5 * found.error


def test_slices_of_a_density_are_those_of_fine_atoms():
    law = SPHERE.von_mises_fisher(POLE, 1.0)
    fine = mf.Sphere(120)
    nodes = mf.Tokens(fine.points, fine.weights * law.at(fine.points))
    exact = mf.sliced_wasserstein(law, X, projections=8).value
    assert mf.sliced_wasserstein(nodes, X, projections=8).value == pytest.approx(exact, rel=1e-4)
    assert mf.sliced_wasserstein(law, law, projections=8).value < 1e-7


def test_on_the_circle_there_is_one_slice():
    a, b = mf.Circle(8).uniform(), mf.Tokens.uniform(5, 2, rng=0)
    assert mf.sliced_wasserstein(a, b).value == mf.wasserstein(a, b).value


# Entropic -----------------------------------------------------------------------------------


def test_a_library_agrees_on_the_entropic_cost():
    found = mf.sinkhorn_divergence(X, Y, blur=0.5)
    parts = []
    for a, b in ((X, Y), (X, X), (Y, Y)):
        angles = np.arccos(np.clip(a.x @ b.x.T, -1, 1))
        options = {"method": "sinkhorn_log", "numItermax": 20_000, "stopThr": 1e-13}
        plan = ot.sinkhorn(a.masses, b.masses, angles**2, 0.25, **options)
        entropy = np.sum(plan * np.log(plan / np.outer(a.masses, b.masses)))
        parts.append(np.sum(plan * angles**2) + 0.25 * entropy)
    exact = np.sqrt(parts[0] - parts[1] / 2 - parts[2] / 2)
    assert found.value == pytest.approx(exact, rel=1e-9) and found.error < 1e-8


def test_it_tends_to_the_distance_and_vanishes_where_that_does():
    exact = mf.wasserstein(X, Y).value
    gaps = [abs(mf.sinkhorn_divergence(X, Y, blur=blur).value - exact) for blur in (0.2, 0.05)]
    assert gaps[1] < gaps[0] / 2 and gaps[1] < 0.02 * exact
    assert mf.sinkhorn_divergence(X, X, blur=0.2).value < 1e-6


def test_the_energy_of_points_is_exact():
    a, b = mf.Dirac(POLE), mf.Dirac([1.0, 0.0, 0.0])
    assert mf.sinkhorn_divergence(a, b).value == pytest.approx(np.pi / 2, rel=1e-12)


def test_densities_are_taken_by_cells():
    for law, tokens in (
        (SPHERE.von_mises_fisher(POLE, 1.0), X),
        (mf.Circle(8).fourier([1, 0.3]), mf.Tokens.uniform(30, 2, rng=0)),
    ):
        coarse, fine = (
            mf.sinkhorn_divergence(law, tokens, blur=0.3, cells=cells).value for cells in (150, 500)
        )
        assert coarse == pytest.approx(fine, rel=0.02)


@pytest.mark.parametrize(("p", "blur"), [(1, 0.05), (2, 0.5), (2, 0.02), (6, 0.3)])
def test_the_fixed_point_of_a_measure_is_the_limit_of_halved_strengths(p, blur):
    masses = np.random.default_rng(4).uniform(0.1, 1.0, len(X))
    masses /= masses.sum()
    costs, strength = Metric(X.dimension, X.dimension).pairwise(X.x, X.x, p), blur**p
    shown = []
    fixed = entropic._fixed_point(costs.copy(), masses, strength, shown.append)
    halved = entropic._annealed(costs, masses, masses, strength, lambda _: None)
    sums = [masses @ f + masses @ g for f, g, _ in (fixed, halved)]
    errors = [off * (np.ptp(g) + strength) for _, g, off in (fixed, halved)]
    assert abs(sums[0] - sums[1]) <= sum(errors) + 1e-13 * max(strength, abs(sums[1]))
    assert fixed[2] <= 1e-10 and len(shown) < 40 and 0 <= min(shown) <= max(shown) <= 1


def test_masses_that_underflow_take_the_logarithms():
    masses = np.array([1e-200, 0.5, 0.5])
    tiny, without = mf.Tokens(np.eye(3), masses), mf.Tokens(np.eye(3)[1:])
    exact = mf.sinkhorn_divergence(without, Y, blur=0.5).value
    assert mf.sinkhorn_divergence(tiny, Y, blur=0.5).value == pytest.approx(exact, rel=1e-12)


def test_each_pair_of_members_is_computed_once(monkeypatch):
    calls, cost = [], entropic._cost
    monkeypatch.setattr(entropic, "_cost", lambda *a: calls.append(a) or cost(*a))
    many = mf.Tokens.uniform(5, 3, rng=0, shape=(3,))
    mf.sinkhorn_divergence(many, X, blur=0.5)
    assert len(calls) == 3 + 3 + 1
    calls.clear()
    assert mf.sinkhorn_divergence(many, many, blur=0.5).value.tolist() == [0.0] * 3
    assert len(calls) == 3


# Conditional --------------------------------------------------------------------------------


def test_positions_are_kept():
    order = np.random.default_rng(0).permutation(60)
    shuffled = mf.Tokens(X.x[order])
    angles = np.arccos(np.clip((X.x * shuffled.x).sum(axis=1), -1, 1))
    found = mf.conditional_wasserstein(X, shuffled, 3).value
    assert found == pytest.approx(np.mean(angles**3) ** (1 / 3), rel=1e-9)
    assert mf.wasserstein(X, shuffled).value < 1e-7
    assert mf.conditional_wasserstein(X, X).value == 0


def test_sequences_of_different_lengths():
    """Each of two tokens is the law on half the sequence, each of three on a third."""
    a, b = mf.Tokens(np.eye(3)[:2]), mf.Tokens(np.eye(3))
    quarter = np.pi / 2
    shares = {(0, 0): 2 / 6, (0, 1): 1 / 6, (1, 1): 1 / 6, (1, 2): 2 / 6}
    cost = sum(share * (0 if i == j else quarter) for (i, j), share in shares.items())
    assert mf.conditional_wasserstein(a, b, 1).value == pytest.approx(cost, rel=1e-14)


def test_blocks_lie_between_all_and_none():
    a, b = X, mf.Tokens.uniform(60, 3, rng=5)
    found = [mf.conditional_wasserstein(a, b, blocks=k).value for k in (1, 4, 12, 60)]
    assert found[0] == pytest.approx(mf.wasserstein(a, b).value, rel=1e-12)
    assert found[3] == pytest.approx(mf.conditional_wasserstein(a, b).value, rel=1e-12)
    assert (np.diff(found) > 0).all()


# What they are ------------------------------------------------------------------------------


def test_a_distance_is_used_as_a_number():
    found = mf.wasserstein(X, Y)
    assert float(found) == found.value == np.asarray(found)
    assert found < 2 * found and (found + 1) - 1 == pytest.approx(found.value)
    assert f"{found:.3f}" == f"{found.value:.3f}" and np.sqrt(found) == found.value**0.5
    assert repr(found).startswith("Distance(0.") and "network simplex" in repr(found)
    assert found == pytest.approx(found.value)
    total = found
    total += 1.0
    assert total == found.value + 1 and bool(found) and hash(found) == hash(found.value)
    with pytest.raises(TypeError, match="not a sequence"):
        list(found)
    many = mf.wasserstein(mf.Tokens.uniform(5, 2, rng=0, shape=(3,)), mf.Dirac([1.0, 0.0]))
    assert len(many) == 3 and many.shape == (3,) and many[1].shape == ()
    assert "error <=" in repr(many) and (many - many == 0).all()


def test_sinkhorns_steps_alone_give_what_newtons_give(monkeypatch):
    """To the error of the marginals, with exponentials of costs and without, either order."""
    a, b = (mf.Tokens.uniform(n, 3, rng=n) for n in (60, 90))
    expected = mf.sinkhorn_divergence(a, b, blur=0.5)
    for name, value in (("UNKNOWNS_PER_SWEEP", 1), ("MAX_EXPONENT", 0.0)):
        monkeypatch.setattr(f"meanfield.distances.entropic.{name}", value)
        for one, other in ((a, b), (b, a)):
            found = mf.sinkhorn_divergence(one, other, blur=0.5)
            assert abs(found.value - expected.value) <= found.error + expected.error + 1e-14


def test_sinkhorn_takes_fewer_newton_steps_between_many_points(monkeypatch):
    sizes, newton = [], entropic._newton

    def counted(plan, *given):
        sizes.append(len(plan.T))
        return newton(plan, *given)

    monkeypatch.setattr(entropic, "_newton", counted)
    a, b = mf.Tokens.uniform(600, 2, rng=1), mf.Tokens.uniform(400, 2, rng=2)
    counts, values = [], []
    for unknowns in (entropic.UNKNOWNS_PER_SWEEP, 10**9):
        monkeypatch.setattr(entropic, "UNKNOWNS_PER_SWEEP", unknowns)
        sizes.clear()
        values.append(mf.sinkhorn_divergence(a, b, blur=0.5).value)
        counts.append(len(sizes))
        assert set(sizes) <= {400}  # the unknowns are those of the fewer points
    assert counts[1] > 2 and 2 * counts[0] <= counts[1] and abs(values[0] - values[1]) < 1e-9
