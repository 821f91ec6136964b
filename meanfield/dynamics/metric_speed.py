"""How fast a normal law moves in the distance of Bures and Wasserstein.

It is the length of the shortest velocity that moves the law as it moves, (int |v|^2 dmu)^(1/2) for
v(x) = a' + U (x - a) with a symmetric U. Velocities beyond that only turn the law into itself.
"""

import numpy as np

from .gaussian_attention import length

__all__ = ["metric_speed"]


def metric_speed(root: np.ndarray, root_rate: np.ndarray, mean_rate: np.ndarray) -> float:
    """(|a'|^2 + sum_ij (u_i S' u_j)^2 / (2 (s_i^2 + s_j^2)))^(1/2), S = L L^T, L = U s W^T.

    u_i S' u_j = b_ij s_j + s_i b_ji with B = U^T L' W; nan where the rates are not finite. Where
    two s vanish no attention moves the law: L' = M L.
    """
    if not (np.isfinite(root).all() and np.isfinite(root_rate).all()):
        return np.nan
    U, s, Wt = np.linalg.svd(root)
    B, sizes = U.T @ root_rate @ Wt.T, np.hypot.outer(s, s)
    shares = s / np.where(sizes > 0, sizes, 1.0)  # of column j in the pair i, j
    moved = B * shares
    with np.errstate(over="ignore"):
        return length(np.append(np.sqrt(0.5) * (moved + moved.T), mean_rate))
