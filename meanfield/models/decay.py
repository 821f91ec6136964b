"""How many harmonics of a drift matter."""

from collections.abc import Callable

import numpy as np
from scipy.special import gammaln

from ..core.errors import MeanfieldError
from .drift import ZonalDrift

__all__ = ["kernel_degree"]

NEGLIGIBLE = 1e-17
DEGREES = (64, 256, 1024, 4096)


def kernel_degree(drift: ZonalDrift, dimension: int, negligible: float = NEGLIGIBLE) -> int:
    """The highest degree that contributes to a velocity; to rounding, by default.

    At most the degree l contributes W_l dim H_l l (l + d - 2)/(d - 1) to the numerator of the
    velocity and Z_l dim H_l to its denominator, both at a Dirac; what is `negligible` is relative
    to the largest contribution. Of an ensemble, the highest.

    Raises
    ------
    MeanfieldError
        If the contributions do not decay.
    """
    if drift.polynomial_degree is not None:
        return max(drift.polynomial_degree, 1)

    def attraction(degree):
        l = np.arange(1, degree + 1)
        size = _log_sizes(drift, drift.attraction(degree, dimension), dimension)[..., 1:]
        return size + np.log(l * (l + dimension - 2.0) / (dimension - 1))

    def normaliser(degree):
        return _log_sizes(drift, np.asarray(drift.normaliser(degree, dimension)), dimension)

    degree = _last_degree(drift, attraction, negligible)
    # Of exponential kernels Z is W' and has no more harmonics that count than W.
    if drift.exponent is None and drift.normaliser(0, dimension) is not None:
        degree = max(degree, _last_degree(drift, normaliser, negligible))
    return degree


def _last_degree(drift, log_sizes: Callable[[int], np.ndarray], negligible: float) -> int:
    """The last degree that counts, of the sizes up to a degree."""
    for degree in DEGREES:
        size = log_sizes(degree)  # of the degrees 1, ..., degree, or with degree 0 before them
        largest = size.max(axis=-1, keepdims=True)
        if np.isneginf(largest).all():
            return 1
        counts = (size > largest + np.log(negligible)).reshape(-1, size.shape[-1]).any(axis=0)
        counted = np.flatnonzero(counts) + degree + 1 - size.shape[-1]
        if not counted.size:  # one of them is not a number
            break
        if counted[-1] - 1 < 0.9 * degree:
            return max(int(counted[-1]), 1)
    raise MeanfieldError(
        f"The harmonics of {drift!r} do not decay up to degree {DEGREES[-1]}: it has no velocity "
        "at points where mass gathers, or varies over too small angles. A sum of harmonics "
        "needs a smooth potential, as USA, Kuramoto, and SA with |beta| <= 1e5 have; else solve "
        "for the density, or sum over pairs of tokens."
    )


def _log_sizes(drift, multipliers: np.ndarray, d: int) -> np.ndarray:
    """log(|lambda_l| dim H_l), (*shape, degree + 1), -inf where lambda_l may be rounding."""
    l = np.arange(1, multipliers.shape[-1])
    harmonics = np.log((2 * l + d - 2) / l) + gammaln(l + d - 2) - gammaln(d - 1) - gammaln(l)
    harmonics = np.concatenate([[0.0], harmonics])
    size = np.abs(multipliers)
    error = drift.multiplier_error * size.max(axis=-1, keepdims=True) * np.exp(-harmonics / 2)
    with np.errstate(divide="ignore"):
        return np.log(np.where(size <= error, 0.0, size)) + harmonics
