"""Distances from the orbit of a measure under rotations of the circle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield.distances.kernel_norms import aligning_angles
from meanfield.distances.wasserstein import best_rotations

LAW = mf.Circle(32).von_mises(0.3, 1.0)
seeds = st.integers(0, 2**32 - 1)


def tokens(seed, n=12):
    rng = np.random.default_rng(seed)
    return mf.Tokens(mf.Tokens.on_circle(2 * np.pi * rng.random(n)).x, rng.dirichlet(np.ones(n)))


def turned(state, angle):
    """Tokens or a density, turned by an angle."""
    if isinstance(state, mf.Density):
        return state.rotate(angle)
    c, s = np.cos(angle), np.sin(angle)
    return mf.Tokens(state.x @ np.array([[c, s], [-s, c]]), state.masses)


@pytest.mark.long
@settings(max_examples=6, deadline=None)
@given(seed=seeds, p=st.sampled_from([1, 2, 3]), smooth=st.booleans())
def test_it_is_the_least_over_a_fine_grid_of_rotations(seed, p, smooth):
    a, b = tokens(seed), LAW if smooth else tokens(seed + 1, 9)
    found = mf.wasserstein(a, b, p, up_to_rotation=True)
    grid = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    least = min(float(mf.wasserstein(turned(a, angle), b, p)) for angle in grid)
    assert found - found.error <= least  # a bound for every rotation
    assert least - np.pi / 64 <= found <= least * (1 + 1e-6) + (0 if p == 2 else 1e-3 * least)
    assert found.error <= (1e-6 if p == 2 else 1e-3) * found * 1.001


@settings(max_examples=10, deadline=None)
@given(seed=seeds, angle=st.floats(-4, 4))
def test_it_is_the_distance_of_orbits(seed, angle):
    a, b = tokens(seed), tokens(seed + 1)
    first = mf.wasserstein(a, b, up_to_rotation=True)
    assert mf.wasserstein(turned(a, angle), b, up_to_rotation=True) == pytest.approx(
        float(first), rel=3e-6
    )
    assert mf.wasserstein(b, a, up_to_rotation=True) == pytest.approx(float(first), rel=3e-6)
    assert mf.wasserstein(a, turned(a, angle), up_to_rotation=True) < 1e-6
    near = mf.sobolev_distance(a, b, degree=20, up_to_rotation=True)
    again = mf.sobolev_distance(turned(a, angle), b, degree=20, up_to_rotation=True)
    assert again == pytest.approx(float(near), rel=1e-9)


@pytest.mark.repeats
@pytest.mark.parametrize(
    "state", [LAW.rotate(2.0), mf.Circle(8).fourier([1, 0.3, 0.2j]), tokens(5)]
)
def test_sobolev_distances_are_the_least_over_rotations(state):
    found = mf.sobolev_distance(state, LAW, up_to_rotation=True)
    grid = np.linspace(0, 2 * np.pi, 2000)
    least = min(float(mf.sobolev_distance(turned(state, angle), LAW)) for angle in grid)
    assert found - 1e-12 <= least and least == pytest.approx(float(found), rel=1e-4, abs=2e-3)
    assert found.error < 1e-6


def test_replicas_have_rotations_of_their_own():
    x = LAW.sample(4 * 50, rng=0).x.reshape(4, 50, 2)
    together = mf.wasserstein(mf.Tokens(x), LAW, up_to_rotation=True)
    alone = [float(mf.wasserstein(mf.Tokens(one), LAW, up_to_rotation=True)) for one in x]
    np.testing.assert_allclose(together.value, alone, rtol=1e-6)
    assert together.shape == (4,)


def test_no_rotation_changes_the_distance_from_the_uniform_law():
    uniform, x = mf.Circle(8).uniform(), tokens(1, 200)
    near = mf.wasserstein(x, uniform, up_to_rotation=True)
    assert near == mf.wasserstein(x, uniform) and near.error < 1e-10


def test_symmetric_series_are_aligned_over_their_period():
    wave = mf.Circle(16).density(lambda t: 1 + 0.5 * np.cos(8 * t))
    turned_by = mf.sobolev_distance(wave, wave.rotate(0.3), up_to_rotation=True)
    assert turned_by < 1e-7 and turned_by.error < 1e-6


@pytest.mark.long
def test_the_bound_holds_for_a_cost_with_many_minima():
    """W_2 of a density of 5 peaks from one of 5 unequal peaks has 5 minima."""
    first = mf.Circle(64).density(lambda t: 1 + 0.9 * np.cos(5 * t))
    second = mf.Circle(64).density(lambda t: (1 + 0.9 * np.cos(5 * t)) * (1 + 0.1 * np.cos(t)))
    found = mf.wasserstein(first, second, up_to_rotation=True)
    angles = np.linspace(0, 2 * np.pi / 5, 61)
    values = [float(mf.wasserstein(first.rotate(a), second)) for a in angles]
    assert found <= min(values) * (1 + 1e-6) and found.error < 1e-5 * found


def test_branch_and_bound_of_a_known_function():
    """|angle - c|: the bound by the slope 1 is attained."""
    centres = np.array([-2.0, 0.1, 3.0])

    def measure(angles, members):
        return np.abs((angles - centres[members] + np.pi) % (2 * np.pi) - np.pi), 0 * angles + 1e-9

    for p in (1, 2):
        least, errors = best_rotations(measure, 3, p)
        assert np.all(least <= 1e-8) and np.all(errors < 1e-6)


@given(seed=seeds, degree=st.integers(1, 30))
def test_the_largest_value_of_a_series(seed, degree):
    rng = np.random.default_rng(seed)
    series = rng.standard_normal((2, degree + 1)) + 1j * rng.standard_normal((2, degree + 1))
    places, doubt = aligning_angles(series)
    k = np.arange(degree + 1)
    values = (series @ np.exp(-1j * np.outer(k, np.linspace(0, 2 * np.pi, 5000)))).real
    found = (series * np.exp(-1j * k * places[:, None])).sum(axis=1).real
    assert np.all(found + doubt >= values.max(axis=1) - 1e-12 * np.abs(series).sum(axis=1))
    assert np.all(doubt <= 0.01 * np.abs(series).sum(axis=1))
    assert aligning_angles(series[:, :1])[0].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("distance", "match"),
    [
        (lambda: mf.wasserstein(mf.Sphere(4).uniform(), mf.Sphere(4).uniform(), 2,
                                up_to_rotation=True), "known on the circle"),
        (lambda: mf.sobolev_distance(tokens(0), tokens(1), up_to_rotation=True), "with a density"),
        (lambda: mf.sobolev_distance(mf.Sphere(4).uniform(), mf.Sphere(4).uniform(),
                                     up_to_rotation=True), "known on the circle"),
    ],
)  # fmt: skip
def test_where_it_is_not_known(distance, match):
    with pytest.raises(ValueError, match=match):
        distance()
    law = mf.Gaussian(np.zeros(2), np.eye(2))
    with pytest.raises((TypeError, ValueError)):
        mf.wasserstein(law, law, up_to_rotation=True)
    with pytest.raises(TypeError, match="up_to_rotation must be True or False"):
        mf.wasserstein(LAW, LAW, up_to_rotation="yes")
