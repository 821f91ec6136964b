"""Nodes of characteristics on the torus: their rule, halves of it, means and clusters."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.spaces.torus_chart import TorusNodeChart


def chart(m, angles):
    return TorusNodeChart(mf.Torus(6, m), mf.Torus(6, m).embed(np.array([angles]))[0])


@pytest.mark.parametrize(
    ("m", "count", "degree", "side"),
    [(2, 16, 8, 18), (2, 900, 8, 30), (3, 27, 3, 8), (2, 81, 3, 10)],
)
def test_nodes_are_an_even_grid_that_resolves_the_degree(m, count, degree, side):
    """Each half has every second angle of one circle, and all of the others."""
    nodes, weights, halves = chart(m, np.zeros(m)).nodes(count, degree)
    grid = 2 * np.pi * np.arange(side) / side
    assert nodes.shape == (side**m, m) and weights.sum() == pytest.approx(1, rel=1e-14)
    assert len(halves) == m
    for k, half in enumerate(halves):
        for i in range(m):
            np.testing.assert_allclose(np.unique(nodes[half, i]), grid[:: 1 + (i == k)], rtol=1e-15)
        assert half.sum() == side**m / 2


def test_the_mean_of_an_angle_without_one_is_that_of_the_limit():
    limit = np.array([0.4, 2.0])
    one = chart(2, limit)
    around = 2 * np.pi * np.arange(16) / 16
    nodes = np.stack(np.meshgrid([0.9, 1.3], around), axis=-1).reshape(-1, 2)
    mean = one.mean_direction(nodes, np.full(32, 1 / 32)).reshape(2, 2)
    np.testing.assert_allclose(mean[0], [np.cos(1.1), np.sin(1.1)], rtol=1e-12)
    np.testing.assert_allclose(mean[1], [np.cos(2.0), np.sin(2.0)], rtol=1e-12)


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize(("share", "masses"), [(1.8, []), (2.2, [0.5, 0.5])])
def test_the_radius_of_clusters_is_a_distance_on_the_torus(m, share, masses):
    """Caps are isolated if no mass is within twice the radius, a distance of angles."""
    gap = np.array([0.1, 0.12, 0.2])[:m]
    nodes = np.repeat([np.full(m, 0.5), 0.5 + gap], 20, axis=0)
    found = chart(m, np.zeros(m)).clusters(
        nodes, np.full(40, 1 / 40), radius=np.linalg.norm(gap) / share, least=0.01
    )
    assert [cluster.mass for cluster in found] == pytest.approx(masses)
