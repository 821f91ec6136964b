"""Tokens of any dimension projected on a circle or a sphere."""

import numpy as np

from ..core.checks import real_array

__all__ = ["principal_circle", "principal_sphere"]


def principal_circle(tokens: np.ndarray) -> np.ndarray:
    """Unit vectors (n, 2): tokens on their two leading principal directions, then normalised.

        x_i -> (<x_i, u_1>, <x_i, u_2>) / norm,   u_1, u_2 the leading eigenvectors of sum x x^T

    after normalising every token. The directions are those of the second moment, not of the
    covariance: they span the plane through the origin that keeps most of the tokens.

    Parameters
    ----------
    tokens : ndarray, shape (n, d)
        n >= 2 tokens in d >= 2 dimensions, finite, none zero.

    Raises
    ------
    ValueError
        For another shape, values that are not finite, a zero token, or a token orthogonal to
        the principal plane (it has no direction there).

    Notes
    -----
    The sign of each direction is fixed so that its entry of largest modulus is positive.
    """
    return _principal(tokens, 2, "principal_circle")


def principal_sphere(tokens: np.ndarray) -> np.ndarray:
    """Unit vectors (n, 3): tokens on their three leading principal directions, normalised.

    As `principal_circle`, with d >= 3 and one direction more.
    """
    return _principal(tokens, 3, "principal_sphere")


def _principal(tokens, count: int, name: str) -> np.ndarray:
    tokens = real_array("Tokens", tokens)
    if tokens.ndim != 2 or min(tokens.shape) < count:
        raise ValueError(
            f"{name} expects tokens of shape (n, d), n and d >= {count}; got {tokens.shape}."
        )
    norms = np.linalg.norm(tokens, axis=1, keepdims=True)
    if not np.isfinite(norms).all() or (norms == 0).any():
        raise ValueError(
            f"{name} expects finite, non-zero tokens; got "
            f"{np.count_nonzero(~np.isfinite(norms))} not finite and "
            f"{np.count_nonzero(norms == 0)} zero among {len(tokens)}."
        )
    unit = tokens / norms
    triangle = np.linalg.qr(unit, mode="r")  # the same singular vectors, at most (d, d)
    directions = np.linalg.svd(triangle, full_matrices=False)[2][:count]
    largest = np.abs(directions).argmax(axis=1)
    directions = directions * np.sign(directions[range(count), largest])[:, None]
    plane = unit @ directions.T
    radius = np.linalg.norm(plane, axis=1, keepdims=True)
    if (radius < 1e-12).any():
        raise ValueError(
            f"{np.count_nonzero(radius < 1e-12)} tokens are orthogonal to the {count} "
            "leading principal directions and have no direction among them; leave them out."
        )
    return plane / radius
