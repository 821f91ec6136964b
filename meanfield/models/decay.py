"""How many harmonics of a drift matter."""

import numpy as np
from scipy.special import gammaln

from ..core.errors import MeanfieldError
from .contract import ZonalDrift
from .interaction import Interaction

__all__ = ["kernel_degree"]

NEGLIGIBLE = 1e-17
ROUNDED = 3e-14  # times max W / sqrt(dim H_l) is at least the error of multipliers by quadrature
DEGREES = (64, 256, 1024, 4096)


def kernel_degree(drift: ZonalDrift, dimension: int, negligible: float = NEGLIGIBLE) -> int:
    """The highest degree that contributes to a velocity; to rounding, by default.

    At most the degree l contributes lambda_l dim H_l l (l + d - 2)/(d - 1), at a Dirac; what is
    `negligible` is relative to the largest contribution. Of an ensemble, the highest.

    Raises
    ------
    MeanfieldError
        If the contributions do not decay.
    """
    if isinstance(drift, Interaction) and isinstance(drift.potential, np.polynomial.Chebyshev):
        return max(drift.potential.trim().degree(), 1)
    for degree in DEGREES:
        size = _contributions(drift, degree, dimension)
        largest = size.max(axis=-1, keepdims=True)
        if np.isneginf(largest).all():
            return 1
        counts = (size > largest + np.log(negligible)).reshape(-1, degree).any(axis=0)
        counted = np.flatnonzero(counts)
        if not counted.size:  # one of them is not a number
            break
        if counted[-1] < 0.9 * degree:
            return int(counted[-1]) + 1
    raise MeanfieldError(
        f"The harmonics of {drift!r} do not decay up to degree {DEGREES[-1]}: it has no velocity "
        "at points where mass gathers, or varies over too small angles. A sum of harmonics "
        "needs a smooth potential, as USA, Kuramoto, and SA with |beta| <= 1e5 have; else solve "
        "for the density, or sum over pairs of tokens."
    )


def _contributions(drift, degree, d):
    """Logarithms of the contributions of the degrees 1, ..., `degree`, (*shape, degree)."""
    l = np.arange(1, degree + 1)
    harmonics = np.log((2 * l + d - 2) / l) + gammaln(l + d - 2) - gammaln(d - 1) - gammaln(l)
    multipliers = np.abs(drift.attraction(degree, d))
    if isinstance(drift, Interaction):
        rounding = ROUNDED * multipliers.max() * np.exp(-harmonics / 2)
        multipliers[1:] *= multipliers[1:] > rounding
    with np.errstate(divide="ignore"):
        size = np.log(multipliers[..., 1:]) + harmonics
    return size + np.log(l * (l + d - 2.0) / (d - 1))
