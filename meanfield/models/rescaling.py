"""Tokens of R^d seen in the frame that the values alone would carry them along with."""

import numpy as np

from ..core.checks import finite, real_array

__all__ = ["rescaled"]


def rescaled(x, V, t: float) -> np.ndarray:
    """z = e^(-t V) x, in which x' = V (weighted mean of the tokens) is

        z_i' = sum_j A_ij V (z_j - z_i),    A_ij the softmax weights.

    Parameters
    ----------
    x : array, shape (..., n, d)
        Tokens of R^d.
    V : number or array, shape (d, d)
        Values; a number c is c times the identity.
    t : float
        Time at which the tokens are x.

    Returns
    -------
    ndarray, shape (..., n, d)

    Raises
    ------
    ValueError
        If V is not a number or a square matrix of the tokens' dimension, or t is not finite.
    TypeError
        If x or V are not real numbers.

    Notes
    -----
    For V = 1 and Q^T K > 0 the convex hull of z never grows, and z tends to the vertices of a
    polytope, or to points on its faces.

    References
    ----------
    Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2305.05465.
    """
    from scipy.linalg import expm

    x, V = real_array("x", x), real_array("V", V)
    d = x.shape[-1] if x.ndim > 1 else None
    if d is None or V.shape not in [(), (d, d)]:
        raise ValueError(
            "rescaled expects x of shape (..., n, d) and V a number or of shape (d, d); got x "
            f"{x.shape} and V {V.shape}."
        )
    finite(t=t)
    if not np.isfinite(V).all():
        raise ValueError(f"V must be finite; got V = {V.tolist()}.")
    return x * np.exp(-t * V) if V.ndim == 0 else x @ expm(-t * V).T
