"""Comparing densities on circles that have no common origin."""

import numpy as np

import meanfield as mf

__all__ = ["aligned", "distance", "wasserstein"]

FINE = mf.Circle(degree=1024)


def aligned(density: mf.Density, *, mirrored: bool = False) -> np.ndarray:
    """Values on FINE.angles of the density turned so that its mean direction is the angle 0."""
    turned = density.rotate(-np.angle(density.moment(1))).resample(FINE.degree)
    coefficients = turned.coefficients
    return FINE.to_values(coefficients.conj() if mirrored else coefficients)


def wasserstein(p: np.ndarray, q: np.ndarray) -> float:
    """W_1 on the circle, in radians, of two densities given on equally spaced angles.

        W_1 = min_c int |F - G - c| d theta,    F, G cumulative; c their median difference.

    References
    ----------
    Delon, Salomon and Sobolevski, SIAM J. Appl. Math. 70 (2010).
    """
    excess = np.cumsum(p - q) / p.size
    return float(2 * np.pi * np.abs(excess - np.median(excess)).mean())


def distance(moved: mf.Density, fixed: mf.Density) -> tuple[float, bool]:
    """Smaller W_1 of the aligned densities, and whether `moved` is mirrored for it.

    A principal circle has no origin and no orientation: both belong to the choice of basis.
    """
    target = aligned(fixed)
    plain, mirror = (wasserstein(aligned(moved, mirrored=m), target) for m in (False, True))
    return min(plain, mirror), mirror < plain
