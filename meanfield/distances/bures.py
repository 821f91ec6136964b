"""The Wasserstein distance of Gaussians."""

import numpy as np

from ..states import Gaussian

__all__ = ["bures_wasserstein"]


def bures_wasserstein(a: Gaussian, b: Gaussian) -> float:
    """W_2 of normal laws: (|m - n|^2 + tr(A + B - 2 (A^(1/2) B A^(1/2))^(1/2)))^(1/2).

    The trace of the root is the sum of the singular values of L^T M, A = L L^T, B = M M^T.

    References
    ----------
    Dowson and Landau, J. Multivariate Anal. 12 (1982).
    """
    first, second = a.root, b.root
    u, _, v = np.linalg.svd(first.T @ second)
    apart = first @ u - second @ v.T  # |L U - M V|^2 for the best rotation: no cancellation
    return float(np.sqrt(((a.mean - b.mean) ** 2).sum() + (apart**2).sum()))
