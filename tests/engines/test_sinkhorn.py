"""Doubly stochastic weights: their marginals, and what is said when they are not reached."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replicas import unit_vectors

from meanfield import MeanfieldError
from meanfield.engines import attention
from meanfield.engines.attention import AttentionSums, Head
from meanfield.models import Attention, Sinkhorn


def log_scaling(queries, keys, masses, weights):
    """log w of one replica; logits are the inner products of queries and keys."""
    head = Head(queries[None], keys[None], keys[None], masses[None], np.array(1.0))
    return head.doubly_stochastic(weights.tolerance, weights.most_iterations).bias[0]


def kernel(queries, keys, potential, masses):
    """k_ij, normalised along rows, from log w."""
    logits = queries @ keys.T + potential
    k = np.exp(logits - logits.max(axis=1, keepdims=True))
    return k / (k @ masses)[:, None]


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.integers(1, 20), st.integers(1, 4), st.floats(-20, 20), st.integers(0, 2**32))
def test_both_marginals_are_one(n, d, beta, seed):
    rng = np.random.default_rng(seed)
    queries, keys = rng.standard_normal((2, n, d)) / np.sqrt(d)
    masses = rng.random(n) + 0.05
    masses /= masses.sum()
    potential = log_scaling(beta * queries, keys, masses, Sinkhorn(1e-11, 100_000))
    k = kernel(beta * queries, keys, potential, masses)
    np.testing.assert_allclose(k @ masses, 1, rtol=1e-13)
    np.testing.assert_allclose(masses @ k, 1, rtol=2e-11)


def test_newton_and_the_plain_iteration_agree(monkeypatch):
    rng = np.random.default_rng(3)
    x, masses = unit_vectors(rng, 4, 25, 3), rng.random((4, 25))
    masses[2, :5] = 0.0
    masses /= masses.sum(axis=1, keepdims=True)
    sums = AttentionSums(Attention(beta=8.0, weights=Sinkhorn(1e-13)))
    dense = sums.attention(0.0, x, masses)
    monkeypatch.setattr(attention, "MOST_DENSE_TOKENS", 0)
    # The error of the potential is that of the marginal times the condition of the iteration.
    np.testing.assert_allclose(sums.attention(0.0, x, masses), dense, rtol=0, atol=1e-10)


@pytest.mark.parametrize("beta", [-100.0, 30.0, 300.0])
@pytest.mark.parametrize("spread", [0.2, 1.0, 100.0])
def test_narrow_kernels_are_balanced(beta, spread):
    """Clusters that hardly see each other, where the plain iteration takes over 10 000 steps."""
    rng = np.random.default_rng(4)
    centres = np.eye(3)[rng.integers(0, 3, 60)]
    x = centres + spread * rng.standard_normal((60, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    masses = np.full(60, 1 / 60)
    potential = log_scaling(beta * x, x, masses, Sinkhorn())
    k = kernel(beta * x, x, potential, masses)
    np.testing.assert_allclose(masses @ k, 1, rtol=2e-12)


def test_the_total_pull_is_the_mean_value():
    """sum_i m_i A_i = V sum_j m_j x_j, the law that both marginals give."""
    rng = np.random.default_rng(1)
    x, V = unit_vectors(rng, 3, 40, 3), rng.standard_normal((3, 3))
    masses = np.full((3, 40), 1 / 40)
    drift = Attention(rng.standard_normal((3, 3)), None, V, 5.0, weights=Sinkhorn())
    pulled = AttentionSums(drift).attention(0.0, x, masses)
    # tolerance times the sum of |V x|
    np.testing.assert_allclose(pulled.mean(1), x.mean(1) @ V.T, rtol=0, atol=1e-11)


def test_too_few_iterations_say_what_to_change():
    x = unit_vectors(np.random.default_rng(2), 1, 30, 2)
    drift = Attention(beta=30.0, weights=Sinkhorn(most_iterations=3))
    with pytest.raises(MeanfieldError, match="after 3 iterations"):
        AttentionSums(drift).attention(0.0, x, np.full((1, 30), 1 / 30))
