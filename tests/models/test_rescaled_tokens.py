"""Rescaled tokens z = e^(-tV) x: the frame in which values alone move nothing."""

import numpy as np
import pytest

from meanfield.engines.attention import AttentionSums
from meanfield.models import Attention, rescaled


def test_they_follow_differences_of_tokens():
    """z_i' = sum_j A_ij V (z_j - z_i), with A the softmax weights at x = e^(tV) z."""
    rng = np.random.default_rng(1)
    x, V, t, h = rng.standard_normal((6, 3)), rng.standard_normal((3, 3)), 0.7, 1e-4
    velocity = AttentionSums(Attention(V=V)).attention(0.0, x[None], np.full((1, 6), 1 / 6))[0]
    later, sooner = (rescaled(x + s * velocity, V, t + s) for s in (h, -h))
    logits = x @ x.T
    weights = np.exp(logits - logits.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    z = rescaled(x, V, t)
    expected = (weights @ z - z) @ V.T
    # Central differences: h^2 times a third derivative of order |V|^3.
    np.testing.assert_allclose((later - sooner) / (2 * h), expected, rtol=0, atol=1e-6)


def test_numbers_times_and_replicas():
    x = np.random.default_rng(2).standard_normal((2, 5, 3))
    V = np.array([[0.0, 1, 0], [0, 0, 0], [0, 0, 2]])
    np.testing.assert_array_equal(rescaled(x, V, 0.0), x)
    np.testing.assert_allclose(rescaled(x, 2.0, 0.3), np.exp(-0.6) * x, rtol=1e-15)
    expected = np.stack([x[..., 0] - 0.3 * x[..., 1], x[..., 1], np.exp(-0.6) * x[..., 2]], -1)
    np.testing.assert_allclose(rescaled(x, V, 0.3), expected, rtol=1e-14)
    np.testing.assert_allclose(rescaled(rescaled(x, V, 0.3), V, -0.3), x, rtol=1e-13)


@pytest.mark.parametrize(
    ("x", "V", "t", "message"),
    [
        (np.ones((4, 3)), np.eye(2), 1.0, r"x.shape, V.shape must be .*got \(\(4, 3\), \(2, 2\)\)"),
        (np.ones(3), np.eye(3), 1.0, r"x.shape, V.shape must be .*got \(\(3,\)"),
        (np.ones((4, 3)), np.nan, 1.0, "V must be finite"),
        (np.ones((4, 3)), 1.0, np.inf, "t must be a finite number"),
    ],
)
def test_refusals(x, V, t, message):
    with pytest.raises(ValueError, match=message):
        rescaled(x, V, t)
