"""Hardmax on tokens: against sums written out, ties, and the limit of large beta."""

import numpy as np
import pytest
from dense_attention import dense_attention
from replicas import attention, random_masses, unit_vectors

from meanfield.models import Attention, Hardmax


@pytest.mark.parametrize("ties", [0.0, 1e-12, 0.3])
def test_hardmax_is_the_sum_written_out(ties, small_blocks):
    rng = np.random.default_rng(12)
    drift = Hardmax(*rng.standard_normal((3, 2, 4, 4)), ties=ties)
    x, masses = unit_vectors(rng, 14, 4), random_masses(rng, 14)
    expected = dense_attention(drift, x, masses)
    np.testing.assert_allclose(attention(drift, x, masses), expected, rtol=0, atol=1e-13)


def test_tokens_at_equal_distance_share_the_pull_by_their_masses():
    """The corners of a square: each has two neighbours and does not see itself."""
    square = np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]])
    masses = np.array([0.1, 0.2, 0.3, 0.4])
    result = attention(Hardmax(), square, masses)
    between = (0.1 * square[0] + 0.3 * square[2]) / 0.4
    np.testing.assert_allclose(result[1], between, rtol=1e-15)
    moved = square + np.array([[0, 0], [0, 0], [0, 1e-9], [0, 0]])
    np.testing.assert_array_equal(attention(Hardmax(), moved)[1], moved[2])
    np.testing.assert_allclose(attention(Hardmax(ties=1e-6), moved)[1], [0, 0], atol=1e-9)


def test_softmax_tends_to_hardmax():
    """With K = -1 no token attends to itself: the farthest is the maximiser."""
    x = unit_vectors(np.random.default_rng(13), 12, 3)
    hard = attention(Hardmax(K=-1.0), x)
    errors = [np.abs(attention(Attention(K=-1.0, beta=b), x) - hard).max() for b in (1e2, 1e4, 1e6)]
    assert errors[0] > 1e-3 > errors[1] > errors[2]
    assert errors[2] == 0  # every other weight is below exp(-1000)
