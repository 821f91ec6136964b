"""Attention written out token by token, with the n x n weights in full: the oracle of the sums."""

import numpy as np

from meanfield.models import L2, Attention, Hardmax, Linear, Sigmoid, Sinkhorn, Unnormalised


def full(matrix, d):
    """A number as that multiple of the identity."""
    return matrix * np.eye(d) if matrix.ndim == 0 else matrix


def stacked(matrix, count, d):
    """The matrix of each of `count` heads."""
    matrix = full(matrix, d)
    return np.broadcast_to(matrix, (count, *matrix.shape[-2:]))


def kernel_row(drift, beta, q, keys):
    """k(x_i, x_j) for one i, without the overflow that normalised weights can spare."""
    products = np.array([q @ key for key in keys])
    if isinstance(drift.weights, Linear):
        return beta * products
    if isinstance(drift.weights, Sigmoid):
        return 1 / (1 + np.exp(-beta * products - drift.weights.bias))
    if isinstance(drift.weights, Unnormalised):
        return np.exp(beta * products)
    if isinstance(drift.weights, L2):
        products = np.array([-((q - key) ** 2).sum() for key in keys])
    return np.exp(beta * products - (beta * products).max())


def sinkhorn_weights(k, masses):
    """Doubly stochastic u k w by plain iteration, far beyond convergence."""
    w = np.ones(len(masses))
    for _ in range(20_000):
        u = 1 / (k @ (masses * w))
        w = 1 / (k.T @ (masses * u))
    return u[:, None] * k * w / (u * (k @ (masses * w)))[:, None]


def weights_of(drift, beta, Q, K, x, masses):
    """m_j k_ij / Z_i as a full matrix."""
    n = len(x)
    queries, keys = x @ Q.T, x @ K.T
    if isinstance(drift, Hardmax):
        table = np.zeros((n, n))
        for i in range(n):
            products = {j: queries[i] @ keys[j] for j in range(n) if j != i and masses[j] > 0}
            for j in products:
                table[i, j] = masses[j] * (products[j] >= max(products.values()) - drift.ties)
        return table / table.sum(axis=1, keepdims=True)
    if isinstance(drift.weights, Sinkhorn):
        return sinkhorn_weights(np.exp(beta * queries @ keys.T), masses) * masses
    table = np.zeros((n, n))
    for i in range(n):
        seen = slice(0, i + 1) if drift.causal else slice(0, n)
        row = masses[seen] * kernel_row(drift, beta, queries[i], keys[seen])
        normalised = not isinstance(drift.weights, Linear | Sigmoid | Unnormalised)
        table[i, seen] = row / row.sum() if normalised else row
    return table


def dense_attention(drift, x, masses, t=0.0):
    """A_i for one replica, x (n, d)."""
    d, at = x.shape[1], drift.at(t)
    count = max((m.shape[0] for name, m in at.items() if name != "beta" and m.ndim == 3), default=1)
    Q, K, V = (stacked(at[name], count, d) for name in "QKV")
    total = np.zeros_like(x)
    for h in range(count):
        table = weights_of(drift, at.get("beta"), Q[h], K[h], x, masses)
        pulled = table @ (x @ V[h].T)
        if isinstance(drift, Attention) and drift.output is not None:
            pulled = pulled @ stacked(at["output"], count, d)[h].T
        total += pulled
    return total
