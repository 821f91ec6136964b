"""Covariances under S' = F(S), F quadratic, as a direction D = S / tr S and a trace.

In the time tau of d tau = tr S dt the direction follows an equation of its own,

    D' = F(D) - tr F(D) D,    (log tr S)' = tr F(D),    t' = 1 / tr S,

which has no blow-up: S blows up at the limit of t if tr F(D) > 0 in the end.
"""

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

__all__ = ["Fates", "fates", "heads", "integrated", "softmax"]


@dataclass(frozen=True)
class Fates:
    """Of n starts: limits (n, 2, 2), infinite where they blow up, and times (n,) of that or inf."""

    limits: np.ndarray
    blow_up: np.ndarray


def symmetric(M: np.ndarray) -> np.ndarray:
    return M + M.swapaxes(-1, -2)


def softmax(Q, K, V):
    """F(S) = V S A S + transpose, A = K^T Q / sqrt(2)."""
    A = K.T @ Q / np.sqrt(2)
    return lambda S: symmetric(V @ S @ A @ S)


def heads(Q, K, V):
    """F(S) = sum_h e_h V_h S K_h^T Q_h S + transpose, with rows Q_h, K_h, V_h."""
    parts = [
        (np.outer(e, v), np.outer(k, q)) for e, v, k, q in zip(np.eye(2), V, K, Q, strict=True)
    ]
    return lambda S: sum(symmetric(C @ S @ A @ S) for C, A in parts)


def fates(F, starts, tau: float) -> Fates:
    """Integrated to `tau` by another scheme than those of the package, all starts at once.

    What is left of the time to a blow-up is 1 / (tr F(D) tr S), as D does not move any more.
    """
    covs = np.array(starts)
    n = len(covs)

    def rates(_tau, y):
        D, grown = y[: 4 * n].reshape(n, 2, 2), y[4 * n : 5 * n]
        moved = F(D)
        trace = np.trace(moved, axis1=1, axis2=2)
        turned = moved - trace[:, None, None] * D
        return np.concatenate([turned.ravel(), trace, np.exp(-grown)])

    traces = np.trace(covs, axis1=1, axis2=2)
    begun = [(covs / traces[:, None, None]).ravel(), np.log(traces), np.zeros(n)]
    found = solve_ivp(
        rates, (0, tau), np.concatenate(begun), method="DOP853", rtol=1e-12, atol=1e-13
    )
    y = found.y[:, -1]
    D, grown, elapsed = y[: 4 * n].reshape(n, 2, 2), y[4 * n : 5 * n], y[5 * n :]
    rate = np.trace(F(D), axis1=1, axis2=2)
    blows_up = rate > 1e-3
    left = np.exp(-grown) / np.where(blows_up, rate, 1.0)
    limits = np.exp(np.where(blows_up, np.inf, grown))[:, None, None] * D
    return Fates(limits, np.where(blows_up, elapsed + left, np.inf))


def integrated(rates, starts, end: float) -> np.ndarray:
    """S' = rates(S) itself, by the same scheme, at time `end`, all starts at once."""
    covs = np.array(starts)

    def derivative(_t, y):
        return rates(y.reshape(covs.shape)).ravel()

    found = solve_ivp(derivative, (0, end), covs.ravel(), method="DOP853", rtol=1e-12, atol=1e-14)
    return found.y[:, -1].reshape(covs.shape)
