"""Zonal kernels K(<x, y>) on the unit sphere of R^d and their Funk-Hecke multipliers."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .errors import MeanfieldError

__all__ = ["exponential_multipliers", "quadrature_multipliers"]


def exponential_multipliers(beta, degree: int, dimension: int) -> np.ndarray:
    """Multipliers of exp(beta t) divided by exp(|beta|), for degrees 0, ..., `degree`.

        lambda_l = Gamma(d/2) (2/beta)^(d/2 - 1) I_(l + d/2 - 1)(beta)

    The exponential scaling keeps every entry finite whatever beta is.

    Parameters
    ----------
    beta : float or ndarray, shape (*ensemble,)
        Inverse temperature, finite; beta = 0 gives 1, 0, 0, ...
    degree : int
    dimension : int
        Ambient dimension d >= 2.

    Returns
    -------
    ndarray, shape (*ensemble, degree + 1)
        For beta >= 0 nonnegative and decreasing in l. For beta < 0 the sign alternates.

    References
    ----------
    DLMF 10.32.2 for l = 0, Rodrigues' formula and integration by parts for the others.
    """
    from scipy.special import gammaln, ive

    beta = np.asarray(beta, dtype=float)[..., None]
    l, order = np.arange(degree + 1), dimension / 2 - 1
    size = np.where(beta == 0, 1.0, np.abs(beta))
    scaled = np.exp(gammaln(dimension / 2) + order * np.log(2 / size)) * ive(l + order, size)
    sign = np.where((beta < 0) & (l % 2 == 1), -1.0, 1.0)
    return np.where(beta == 0, (l == 0) * 1.0, sign * scaled)


@dataclass(frozen=True)
class _Rule:
    """Gauss-Gegenbauer rule for the law of <x, y>, x uniform on S^(d-1)."""

    nodes: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, size: int, dimension: int) -> "_Rule":
        if dimension == 2:  # Gauss-Chebyshev in closed form
            angles = np.pi * (np.arange(size) + 0.5) / size
            return cls(np.cos(angles), np.full(size, 1 / size))
        from scipy.special import roots_jacobi

        exponent = (dimension - 3) / 2
        nodes, weights = roots_jacobi(size, exponent, exponent)
        return cls(nodes, weights / weights.sum())

    def multipliers(self, kernel: Callable, degree: int, dimension: int) -> np.ndarray:
        values = np.asarray(kernel(self.nodes), dtype=float)
        if values.shape != self.nodes.shape or not np.isfinite(values).all():
            raise ValueError(
                "A zonal kernel must map an array of inner products in [-1, 1] to finite "
                f"numbers of the same shape; got shape {values.shape} for "
                f"{self.nodes.shape}, {np.count_nonzero(~np.isfinite(values))} not finite."
            )
        return _gegenbauer(degree, dimension, self.nodes) @ (self.weights * values)


def _gegenbauer(degree: int, dimension: int, t: np.ndarray) -> np.ndarray:
    """Legendre polynomials of R^d, P_l(1) = 1, at t: shape (degree + 1, t.size)."""
    if dimension == 2:
        return np.cos(np.arange(degree + 1)[:, None] * np.arccos(t))
    p = np.empty((degree + 1, t.size))
    p[0] = 1
    p[1:2] = t
    for l in range(1, degree):
        p[l + 1] = ((2 * l + dimension - 2) * t * p[l] - l * p[l - 1]) / (l + dimension - 2)
    return p


def quadrature_multipliers(
    kernel: Callable, degree: int, dimension: int, *, tolerance: float = 1e-14
) -> np.ndarray:
    """Multipliers of any zonal kernel by Gauss-Gegenbauer quadrature.

        lambda_l = E[K(t) P_l(t)],   t = <x, y>,  x uniform on S^(d-1),  P_l(1) = 1

    The rule is doubled until two answers agree. A kernel with a kink converges algebraically
    only: the largest rule (2^17 nodes on the circle, 2^12 elsewhere) is then accepted if it
    agrees with the one before to 1e-9.

    Parameters
    ----------
    kernel : callable
        K(t) for an array t in [-1, 1].
    tolerance : float
        Accepted difference between two rules, relative to the largest multiplier.

    Raises
    ------
    ValueError
        If the kernel returns something that is not finite or has another shape.
    MeanfieldError
        If the largest rule has not converged to 1e-9.
    """
    sizes = [2**j for j in range(7, 18 if dimension == 2 else 13) if 2**j > degree]
    current = _Rule.of(sizes[0], dimension).multipliers(kernel, degree, dimension)
    change = np.inf
    for size in sizes[1:]:
        previous = current
        current = _Rule.of(size, dimension).multipliers(kernel, degree, dimension)
        change = np.abs(current - previous).max() / max(np.abs(current).max(), 1e-300)
        if change <= tolerance:
            break
    if change <= max(tolerance, 1e-9):
        return current
    raise MeanfieldError(
        f"The multipliers of the kernel did not converge: {sizes[-1]} quadrature nodes change "
        f"them by {change:.1e} (relative), expected <= 1e-9. Give a kernel without "
        "singularities, or its Chebyshev series, by Interaction.chebyshev."
    )
