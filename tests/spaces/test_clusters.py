"""Clusters among hand-made points: how many, where, of which mass, and when there are none."""

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import meanfield as mf
from meanfield.spaces.characteristics import Cluster
from meanfield.spaces.clusters import cap_at, clusters_among

RADIUS = 0.1


def bunch(centre, size, n, rng):
    """n points normally distributed about a unit vector, on the sphere."""
    points = np.asarray(centre) + size * rng.standard_normal((n, len(centre)))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def bunches(centres, shares, rng, size=1e-3, n=50):
    """Points and masses of bunches with these shares of the mass."""
    points = np.concatenate([bunch(centre, size, n, rng) for centre in centres])
    return points, np.repeat(np.asarray(shares) / n, n)


def found(points, masses, radius=RADIUS, least=0.01):
    """`clusters_among`, with the laws that hold whatever it finds."""
    clusters = clusters_among(points, masses, radius=radius, least=least)
    sizes = [cluster.mass for cluster in clusters]
    assert sizes == sorted(sizes, reverse=True) and min(sizes, default=least) >= least
    assert sum(sizes) <= masses.sum() * (1 + 1e-12)
    for cluster in clusters:
        assert np.linalg.norm(cluster.point) == pytest.approx(1, abs=1e-14)
    return clusters


def on_circle(angles):
    """Unit vectors of these angles."""
    return mf.Circle.embed(np.asarray(angles, dtype=float))


# Some --------------------------------------------------------------------------------------

PLACES = {
    "date line": [[-1.0, 0.0, 0.0]],
    "poles": [[0, 0, 1.0], [0, 0, -1.0]],
    "a corner of eight cells": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    "oblique": [[2 / 3, 1 / 3, -2 / 3], [0.6, -0.8, 0.0]],
}


@pytest.mark.parametrize("centres", PLACES.values(), ids=PLACES)
def test_bunches_are_found_wherever_they_are(centres):
    """The mean of 50 points 1e-3 wide is 1.4e-4 from the centre in each direction."""
    shares = np.arange(len(centres), 0, -1) / sum(range(len(centres) + 1))
    clusters = found(*bunches(centres, shares, np.random.default_rng(0)))
    np.testing.assert_allclose([c.mass for c in clusters], shares, rtol=1e-13)
    np.testing.assert_allclose([c.point for c in clusters], centres, rtol=0, atol=6e-4)


@seed(1)
@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.sampled_from([2, 3, 8]),
    st.sampled_from([1e-6, 1e-3, 0.02]),
)
def test_any_number_of_bunches_apart_is_counted(number, count, d, size):
    """On the axes of a random frame, and opposite to them; no bunch is wider than the cap."""
    rng = np.random.default_rng(number)
    frame, _ = np.linalg.qr(rng.standard_normal((d, d)))
    centres = np.concatenate([frame, -frame])[:count]
    shares = rng.dirichlet(np.full(len(centres), 20.0))
    clusters = found(*bunches(centres, shares, rng, size=size / np.sqrt(d)), least=1e-3)
    assert len(clusters) == len(centres)
    np.testing.assert_allclose([c.mass for c in clusters], -np.sort(-shares), rtol=1e-12)


@seed(2)
@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_clusters_turn_with_the_points(number):
    rng = np.random.default_rng(number)
    points, masses = bunches(np.eye(3), [0.5, 0.3, 0.2], rng, size=0.01)
    rotation = Rotation.random(random_state=rng).as_matrix()
    before, after = found(points, masses), found(points @ rotation.T, masses)
    np.testing.assert_allclose([c.mass for c in after], [c.mass for c in before], rtol=1e-13)
    turned = [rotation @ c.point for c in before]
    np.testing.assert_allclose([c.point for c in after], turned, rtol=0, atol=1e-13)


def test_points_of_equal_place_are_one_cluster():
    (cluster,) = found(on_circle([3.0] * 4), np.full(4, 0.25))
    assert cluster.mass == 1
    np.testing.assert_allclose(cluster.point, on_circle(3.0), rtol=0, atol=1e-15)


def test_a_cluster_on_a_background_counts_what_is_in_its_cap():
    """The cap holds 2 radius / 2 pi of the background, but for a point at either end.

    One more of 8e-5 at the distance 0.1 shifts the centre by 1.6e-5.
    """
    angles = np.linspace(-np.pi, np.pi, 6000, endpoint=False)
    points = on_circle(np.concatenate([angles, np.full(10, 0.7)]))
    masses = np.concatenate([np.full(6000, 0.5 / 6000), np.full(10, 0.05)])
    (cluster,) = found(points, masses)
    assert cluster.mass == pytest.approx(0.5 + 0.5 * 2 * RADIUS / (2 * np.pi), abs=2 / 6000)
    np.testing.assert_allclose(cluster.point, on_circle(0.7), rtol=0, atol=3e-5)


# Close ones, rings, none -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gap", "count"), [(0.05, 1), (0.15, 0), (0.19, 0), (0.21, 2), (0.5, 2)], ids=str
)
def test_two_are_one_within_a_cap_and_none_until_two_radii_apart(gap, count):
    """Nearer than twice the radius each is in the ring around the other: neither is alone."""
    clusters = found(on_circle([0.3, 0.3 + gap]), np.array([0.6, 0.4]))
    assert len(clusters) == count
    assert sum(cluster.mass for cluster in clusters) == pytest.approx(float(count > 0))


def test_a_light_neighbour_does_not_hide_a_heavy_cluster():
    """The heavy one stands alone beside 5 percent of its mass; the light one does not."""
    (cluster,) = found(on_circle([0.3, 0.45]), np.array([0.95, 0.05]))
    assert cluster.mass == 0.95


def test_a_ring_is_no_cluster():
    phi = np.linspace(0, 2 * np.pi, 500, endpoint=False)
    ring = np.stack([0.8 * np.cos(phi), 0.8 * np.sin(phi), np.full(500, 0.6)], axis=1)
    assert found(ring, np.full(500, 1 / 500)) == []


def test_light_clusters_are_left_out():
    points, masses = on_circle([0.0, 2.0]), np.array([0.97, 0.03])
    assert [c.mass for c in found(points, masses, least=0.03)] == [0.97, 0.03]
    assert [c.mass for c in found(points, masses, least=0.031)] == [0.97]


def test_points_without_mass_are_none():
    assert found(on_circle([0.0, 1.0]), np.zeros(2)) == []
    assert found(np.zeros((0, 2)), np.zeros(0)) == []


def test_a_cap_alone():
    point, distances = np.array([0.0, 1.0]), np.array([0.01, 0.15, 0.3])
    alone = Cluster(point, 0.9)
    assert cap_at(point, distances, np.array([0.9, 0.09, 0.5]), RADIUS) == alone
    assert cap_at(point, distances, np.array([0.9, 0.1, 0.5]), RADIUS) is None
    assert cap_at(point, distances, np.array([0.0, 0.0, 0.5]), RADIUS) is None


# Of states ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "space", [mf.Circle(8), mf.Sphere(4), mf.Zonal(3, 4), mf.Zonal(64, 4)], ids=repr
)
def test_the_uniform_density_has_none(space):
    assert mf.Characteristics(space.uniform()).clusters() == []


def test_a_narrow_density_is_one():
    (cluster,) = mf.Characteristics(mf.Circle(512).von_mises(-2.5, 2e3)).clusters()
    assert cluster.mass == pytest.approx(1, abs=1e-4)
    np.testing.assert_allclose(cluster.point, on_circle(-2.5), rtol=0, atol=1e-14)


def test_those_of_axisymmetric_densities_are_at_the_poles():
    """0.7 and 0.3 at the poles, and a ring, which is none."""
    zonal = mf.Zonal(5, 4)
    state = mf.Characteristics(zonal.uniform(), nodes=200, limit=-np.eye(5)[-1])
    s = np.where(np.cumsum(state.masses) < 0.3, -9.0, 9.0)
    both = state.moved(s).clusters()
    np.testing.assert_array_equal([c.point for c in both], [np.eye(5)[-1], -np.eye(5)[-1]])
    assert sum(c.mass for c in both) == pytest.approx(1) and both[1].mass < 0.3
    (one,) = state.moved(np.where(s < 0, 0.1, 9.0)).clusters()
    assert one.mass == both[0].mass and (one.point == both[0].point).all()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"radius": 0.0}, "radius must be a finite number > 0; got radius = 0.0"),
        ({"radius": 1.6}, r"radius must be <= pi/2; got radius = 1\.6"),
        ({"radius": "0.1"}, "radius must be a finite number"),
        ({"least": 0}, "least must be a finite number > 0"),
        ({"least": float("nan")}, "least must be"),
    ],
    ids=str,
)
def test_radius_and_least_are_checked(options, match):
    with pytest.raises(ValueError, match=match):
        mf.Characteristics(mf.Circle(8).uniform()).clusters(**options)
