"""The energy that attention increases on normal laws, where it is a gradient flow of W2.

With A = beta K^T Q symmetric, and V = c A, one head moves N(a, S) with v = grad dE/dmu for

    Linear      E = (c/4) int int <Ax, y>^2 dmu dmu = (c/4) tr((A (S + a a^T))^2)
    Softmax     E = (c/4) tr((A S)^2), if a = 0
    Sinkhorn    E = (c/2) (<Aa, a> + sum_i s_i D_i + log(1 - D_i^2) / 2), s_i the singular values
                of L^T A L, s = D / (1 - D^2): -c/2 times the entropic cost of mu to itself for the
                cost -<Ax, y>
    L2          E = (c/2) (<Aa, a> + tr(A S) - log det(1 + A S)), if Q = K, A = 2 beta K^T K

so that dE/dt = int |v|^2 dmu. For Gaussians W2 is the distance of Bures and Wasserstein.
"""

import numpy as np

from ..models import Attention
from ..models.heads import heads
from ..models.transformer import Transformer
from ..models.weights import L2, Linear, Sinkhorn, Softmax
from ..states import Gaussian
from .gaussian_attention import full

__all__ = ["energy"]

EQUAL = 1e-12


def energy(model: Transformer, state: Gaussian, t: float = 0.0) -> float:
    """E of a law at time t.

    It is nan where the motion is no gradient flow of one of these, where numbers overflow, and
    where L2 weights have no integral.

    Raises
    ------
    ValueError, TypeError, MeanfieldError
        For what a callable parameter returned, as `Attention.at`.
    """
    drift = model.drift
    assert isinstance(drift, Attention)
    matrices, d = drift.at(t), state.dimension
    beta = matrices.pop("beta")
    found = list(heads(matrices))
    if len(found) > 1 or not drift.constant:
        return np.nan
    Q, K = full(found[0]["Q"], d), full(found[0]["K"], d)
    V = full(found[0].get("output", np.array(1.0)), d) @ full(found[0]["V"], d)
    is_l2 = isinstance(drift.weights, L2)
    A = (2 if is_l2 else 1) * beta * K.T @ Q
    c = (V * A).sum() / ((A**2).sum() or 1.0)
    gradient = _equal(A, A.T) and _equal(V, c * A) and (not is_l2 or _equal(Q, K))
    if isinstance(drift.weights, Softmax):
        gradient = gradient and not state.mean.any()
    with np.errstate(over="ignore", invalid="ignore"):
        value = float(c * _of(drift.weights, A, state)) if gradient else np.nan
    return value if np.isfinite(value) else np.nan


def _of(weights, A: np.ndarray, state: Gaussian) -> float:
    """E / c."""
    a, cov, root = state.mean, state.cov, state.root
    if isinstance(weights, Linear | Softmax):
        moment = A @ (cov + np.outer(a, a))
        return np.trace(moment @ moment) / 4
    products = root.T @ A @ root
    if not np.isfinite(products).all():
        return np.nan
    if isinstance(weights, Sinkhorn):
        s = np.linalg.svd(products, compute_uv=False)
        D = 2 * s / (1 + np.hypot(1.0, 2 * s))
        logs = -np.log1p(s * D)  # of 1 - D^2 = D / s = 1 / (1 + s D)
        return (a @ A @ a + (s * D + logs / 2).sum()) / 2
    values = np.linalg.eigvalsh(products)
    if not (values > -1).all():
        return np.nan
    return (a @ A @ a + (values - np.log1p(values)).sum()) / 2


def _equal(A: np.ndarray, B: np.ndarray) -> bool:
    return bool(np.abs(A - B).max() <= EQUAL * np.abs(A).max())
