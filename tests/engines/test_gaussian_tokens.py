"""Attention keeps Gaussians: tokens on a quadrature rule of N(a, S) move at the affine velocity.

With A = K^T Q and weights of temperature one (facts of Castin et al., arXiv:2501.18322):

    softmax    V (a + S A x)
    L2         V (1 + 2 S K^T K)^-1 (a + 2 S K^T Q x)
    Sinkhorn   V (a + C^T S^-1 (x - a)),   C the covariance of the optimal coupling
"""

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.stats import norm

from meanfield.engines.attention import AttentionSums
from meanfield.models import L2, Attention, Sinkhorn

MEAN = np.array([1.0, -0.5])
COVARIANCE = np.array([[1.0, 0.3], [0.3, 0.5]])
V = np.array([[0.8, 0.3], [-0.2, 0.6]])
Q = np.array([[0.7, 0.2], [0.1, 0.9]])
K = np.array([[0.5, -0.3], [0.4, 0.8]])


def gaussian_tokens(nodes=36):
    """A Gauss-Hermite rule of N(MEAN, COVARIANCE): tokens with masses."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.stack(np.meshgrid(points, points, indexing="ij"), axis=-1).reshape(-1, 2)
    masses = np.outer(weights, weights).ravel() / weights.sum() ** 2
    return MEAN + grid @ np.linalg.cholesky(COVARIANCE).T, masses


def attention(drift, x, masses):
    return AttentionSums(drift).attention(0.0, x[None], masses[None])[0]


def within_three_deviations(x):
    standard = np.linalg.solve(np.linalg.cholesky(COVARIANCE), (x - MEAN).T)
    return (standard**2).sum(axis=0) < 9


def test_softmax_moves_gaussians_affinely():
    x, masses = gaussian_tokens()
    expected = (MEAN + x @ (COVARIANCE @ K.T @ Q).T) @ V.T
    inside = within_three_deviations(x)
    result = attention(Attention(Q, K, V), x, masses)
    # The rule integrates e^(<Ax, y>) within three deviations to rounding of its outer nodes.
    np.testing.assert_allclose(result[inside], expected[inside], rtol=0, atol=1e-11)


def test_l2_attention_moves_gaussians_affinely():
    x, masses = gaussian_tokens()
    shrink = np.linalg.inv(np.eye(2) + 2 * COVARIANCE @ K.T @ K)
    expected = (MEAN + x @ (2 * COVARIANCE @ K.T @ Q).T) @ shrink.T @ V.T
    inside = within_three_deviations(x)
    result = attention(Attention(Q, K, V, weights=L2()), x, masses)
    np.testing.assert_allclose(result[inside], expected[inside], rtol=0, atol=1e-6)


def test_sinkhorn_attention_moves_gaussians_affinely():
    x, masses = gaussian_tokens(24)
    root = np.real(sqrtm(COVARIANCE))
    U, s, Wt = np.linalg.svd(root @ (K.T @ Q).T @ root)
    coupling = root @ U @ np.diag((np.sqrt(1 + 4 * s**2) - 1) / (2 * s)) @ Wt @ root
    reference = [[0.406642034809, 0.124260195591], [0.311585029017, 0.187464818750]]
    np.testing.assert_allclose(coupling, reference, atol=1e-12)
    result = attention(Attention(Q, K, V, weights=Sinkhorn()), x, masses)
    centred = (masses[:, None] * (x - MEAN)).T @ (result @ np.linalg.inv(V).T - MEAN)
    np.testing.assert_allclose(centred, coupling, atol=1e-9)
    expected = (MEAN + (x - MEAN) @ np.linalg.solve(COVARIANCE, coupling)) @ V.T
    inside = within_three_deviations(x)
    np.testing.assert_allclose(result[inside], expected[inside], rtol=0, atol=1e-6)


@pytest.mark.repeats
@pytest.mark.parametrize("beta", [0.5, 1.5, -0.8])
def test_equal_tokens_at_quantiles_on_the_line(beta):
    """1-D Sinkhorn: a + c (x - a), c = (sqrt(1 + 4 s^2) - 1)/(2 s), s = beta times the variance."""
    n, mean, variance = 400, 0.4, 0.7
    x = mean + np.sqrt(variance) * norm.ppf((np.arange(n) + 0.5) / n)[:, None]
    s = beta * variance
    slope = (np.sqrt(1 + 4 * s**2) - 1) / (2 * s)
    result = attention(Attention(beta=beta, weights=Sinkhorn()), x, np.full(n, 1 / n))
    middle = np.abs(norm.ppf((np.arange(n) + 0.5) / n)) < 1.5
    expected = mean + slope * (x - mean)
    # The variance of the quantiles is too small by about 1/n in total, so the tails bend.
    np.testing.assert_allclose(result[middle], expected[middle], rtol=0, atol=8 / n)
