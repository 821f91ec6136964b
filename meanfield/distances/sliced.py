"""The spherical sliced Wasserstein distance: the mean over great circles."""

from math import pi
from typing import Any

import numpy as np

from ..core.checks import generator, whole_number
from ..spaces.circle_points import evaluate
from ..spaces.density import Density
from .clouds import cloud_of
from .curves import best_costs
from .distance import Distance
from .pairing import checked_states, dimension_of, on_sphere, place_of
from .quantiles import of_atoms, of_densities
from .wasserstein import check_atoms, checked_power, wasserstein

__all__ = ["sliced_wasserstein"]

LATITUDES = 24
TOGETHER = 16  # circles


def sliced_wasserstein(
    a: Any, b: Any, p: float = 2, *, projections: int = 256, rng: Any = 0
) -> Distance:
    """(mean over great circles of W_p(a', b')^p)^(1/p), a' the projection of a on a circle.

    A point x goes to U^T x / |U^T x|, the nearest point of the great circle that the orthonormal
    pair U (d, 2) spans.

    Parameters
    ----------
    a, b : Density, Tokens, Characteristics or Dirac
        On one sphere; single ones. On the circle this is `wasserstein` itself.
    p : float
        From 1 to 20.
    projections : int
        Number of random great circles, >= 2.
    rng : numpy.random.Generator or seed
        Of the circles. The same for all distances that are to be compared.

    Returns
    -------
    Distance
        Its error is the standard error of the mean over circles.

    Raises
    ------
    TypeError, ValueError
        For other states, ensembles, and axisymmetric densities in d > 3.

    Notes
    -----
    O(n log n) for each circle, whatever d. It is less than W_p and no approximation of it.

    References
    ----------
    Bonet, Berg, Courty, Septier, Drumetz and Pham, Spherical sliced-Wasserstein, ICLR 2023.
    """
    p = checked_power(p)
    count = whole_number("projections must be a number", "projections", projections)
    if count < 2:
        raise ValueError("sliced_wasserstein needs projections >= 2 for an error; got 1.")
    shape, _ = checked_states("sliced_wasserstein", a, b)
    if shape or not on_sphere(a):
        raise ValueError(
            "sliced_wasserstein is between single states on a sphere; got "
            f"{place_of(a)} {a.shape} and {place_of(b)} {b.shape}. Take members one by one."
        )
    rng = generator(rng)
    if dimension_of(a) == 2:
        return wasserstein(a, b, p)
    for state in (a, b):
        check_atoms(state)
    numbers = rng.standard_normal((count, dimension_of(a), 2))
    frames = np.linalg.qr(numbers)[0]
    parts = []
    for begin in range(0, count, TOGETHER):
        some = frames[begin : begin + TOGETHER]
        pairs = np.stack([np.arange(len(some))] * 2, axis=1)
        parts.append(best_costs(_projected(a, some), _projected(b, some), p, pairs)[0])
    costs = np.concatenate(parts)
    mean, deviation = float(costs.mean()), float(costs.std(ddof=1) / count**0.5)
    value = mean ** (1 / p)
    return Distance(value, deviation * value / (p * mean) if mean else 0.0, f"{count} circles")


def _projected(state: Any, frames: np.ndarray) -> np.ndarray:
    """Curves of the projections on great circles, (projections, ...)."""
    if isinstance(state, Density):
        series = np.stack([_marginal(state, frame) for frame in frames])
        return of_densities(lambda angles: evaluate(series, angles) / (2 * pi), 2 * pi)
    x, masses = cloud_of(state, 0)
    plane = x @ frames  # (projections, n, 2)
    angles = np.arctan2(plane[..., 1], plane[..., 0]) % (2 * pi)
    return of_atoms(angles, np.broadcast_to(masses, angles.shape))


def _marginal(density: Density, frame: np.ndarray) -> np.ndarray:
    """Fourier coefficients of the law of the longitude around the axis across a frame (3, 2)."""
    degree = density.geometry.degree
    nodes, weights = np.polynomial.legendre.leggauss(degree + LATITUDES)
    polar = pi * (1 + nodes) / 2
    longitudes = pi * np.arange(2 * degree + 2) / (degree + 1)
    circle = np.cos(longitudes)[:, None] * frame[:, 0] + np.sin(longitudes)[:, None] * frame[:, 1]
    axis = np.cross(frame[:, 0], frame[:, 1])
    points = np.sin(polar)[:, None, None] * circle + np.cos(polar)[:, None, None] * axis
    values = density.geometry.at(density.coefficients, points)
    law = (weights * np.sin(polar)) @ values * pi / 4
    return np.fft.rfft(law)[: degree + 1] / law.size
