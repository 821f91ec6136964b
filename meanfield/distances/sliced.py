"""Wasserstein distances averaged over great circles, and over positions in a sequence."""

from math import pi
from typing import Any

import numpy as np

from ..core.checks import generator, whole_number
from ..spaces.circle import evaluate
from ..states import Tokens
from .distance import Distance
from .linear_programs import angles_between
from .measures import Measure, checked_pair
from .optimal_shift import SLIVER, transport_costs_around_circle
from .quantile_functions import curves_of_densities, curves_of_points, levels_of
from .wasserstein import checked_power, wasserstein

__all__ = ["conditional_wasserstein", "sliced_wasserstein"]

LATITUDES = 24  # beyond the degree: nodes of the integral along a meridian
TOGETHER = 16  # great circles
ROUNDING = 1e-15  # of levels


def sliced_wasserstein(
    a: Any, b: Any, p: float = 2, *, projections: int = 256, rng: Any = 0
) -> Distance:
    """(mean over great circles of W_p(a', b')^p)^(1/p), a' the projection of a on a circle.

    A point x goes to U^T x / |U^T x|, the nearest point of the great circle that the orthonormal
    pair U (d, 2) spans.

    Parameters
    ----------
    a, b : Density, Tokens, Characteristics or Dirac
        Single states on one sphere. On the circle this is `wasserstein` itself.
    p : float
        From 1 to 20.
    projections : int
        Number of random great circles, >= 2.
    rng : numpy.random.Generator or seed
        Of the circles. Take the same seed for all distances that are to be compared.

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
    The cost is O(n log n) for each circle, whatever d. The result is at most W_p, and it does not
    approximate W_p.

    References
    ----------
    Bonet, Berg, Courty, Septier, Drumetz and Pham, Spherical sliced-Wasserstein, ICLR 2023.
    """
    p = checked_power(p)
    count = whole_number("projections must be a number", "projections", projections)
    if count < 2:
        raise ValueError("sliced_wasserstein needs projections >= 2 for an error; got 1.")
    first, second, shape, _ = checked_pair("sliced_wasserstein", a, b)
    if shape or not first.on_sphere:
        raise ValueError(
            "sliced_wasserstein is between single states on a sphere; got "
            f"{first} {first.shape} and {second} {second.shape}. Take members one by one."
        )
    rng = generator(rng)
    if first.dimension == 2:
        return wasserstein(a, b, p)
    for measure in (first, second):
        measure.check_divisible()
    frames = np.linalg.qr(rng.standard_normal((count, first.dimension, 2)))[0]
    parts = []
    for begin in range(0, count, TOGETHER):
        some = frames[begin : begin + TOGETHER]
        X, Y = _projected(first, some), _projected(second, some)
        pairs = np.stack([np.arange(len(some))] * 2, axis=1)
        parts.append(transport_costs_around_circle(X, Y, p, pairs)[0])
    costs = np.concatenate(parts)
    mean, deviation = float(costs.mean()), float(costs.std(ddof=1) / count**0.5)
    value = mean ** (1 / p)
    return Distance(value, deviation * value / (p * mean) if mean else 0.0, f"{count} circles")


def _projected(measure: Measure, frames: np.ndarray) -> np.ndarray:
    """Quantile functions of the projections on great circles, (projections, ...)."""
    if measure.smooth:
        series = np.stack([_marginal(measure.state, frame) for frame in frames])
        return curves_of_densities(lambda angles: evaluate(series, angles) / (2 * pi), 2 * pi)
    x, masses = measure.points(0, 0)
    plane = x @ frames  # (projections, n, 2)
    angles = np.arctan2(plane[..., 1], plane[..., 0]) % (2 * pi)
    return curves_of_points(angles, np.broadcast_to(masses, angles.shape))


def _marginal(density: Any, frame: np.ndarray) -> np.ndarray:
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


def conditional_wasserstein(
    a: Tokens, b: Tokens, p: float = 2, *, blocks: int | None = None
) -> Distance:
    """(int_0^1 W_p(a_s, b_s)^p ds)^(1/p), where s is the place of a token in its sequence.

    a_s is the law of tokens given that a mass s comes before them. For n equal masses, a_s is the
    Dirac at token i for s between (i - 1)/n and i/n, or the law of a block of neighbours.

    Parameters
    ----------
    a, b : Tokens
        Single sets in one space, in the order of their sequences, of equal or different lengths.
    p : float
        From 1 to 20.
    blocks : int, optional
        Number of blocks of equal mass. It must divide the number of tokens of both, whose masses
        must be equal. By default every token is a block of its own.

    Raises
    ------
    TypeError, ValueError
        For other states, and blocks that do not divide both sequences.

    Notes
    -----
    The plans keep s, and so the distance is at least `wasserstein(a, b, p)`.

    References
    ----------
    Castin, Ablin and Peyre, arXiv:2312.14820 (masked attention).
    """
    p = checked_power(p)
    for state in (a, b):
        if not isinstance(state, Tokens) or state.shape:
            raise TypeError(
                f"conditional_wasserstein is between single sets of Tokens; got {state!r}."
            )
    if blocks is not None:
        return _of_blocks(a, b, p, whole_number("blocks must be a number", "blocks", blocks))
    if a.dimension != b.dimension or a.on_sphere != b.on_sphere:
        raise ValueError(f"Both need to be tokens of one space; got {a!r} and {b!r}.")
    ends = [levels_of(tokens.masses[None])[0, 1:] for tokens in (a, b)]
    edges = np.union1d(*ends)
    middles = (edges + np.concatenate([[0.0], edges[:-1]])) / 2
    first, second = (
        tokens.x[np.minimum(np.searchsorted(end, middles), len(tokens) - 1)]
        for tokens, end in zip((a, b), ends, strict=True)
    )
    lengths = np.diff(edges, prepend=0.0)
    lengths[lengths <= SLIVER] = 0.0  # rounding errors of the levels
    gaps = angles_between(first, second) if a.on_sphere else np.linalg.norm(first - second, axis=1)
    scale = float(gaps.max())
    value = scale * (lengths @ (gaps / (scale or 1.0)) ** p) ** (1 / p)
    most = (value**p + ROUNDING * scale**p) ** (1 / p) if scale < 1e3 else value
    return Distance(value, most - value, "along the sequence")


def _of_blocks(a: Tokens, b: Tokens, p: float, blocks: int) -> Distance:
    for tokens in (a, b):
        if len(tokens) % blocks or np.ptp(tokens.masses) > 0:
            raise ValueError(
                f"{blocks} blocks of equal mass need a number of tokens that they divide, of equal "
                f"masses; got {tokens!r}."
            )
    first, second = (
        Tokens(t.x.reshape(blocks, -1, t.dimension), on_sphere=t.on_sphere) for t in (a, b)
    )
    slices = wasserstein(first, second, p)
    values, highest = np.asarray(slices.value), np.asarray(slices.value) + slices.error
    mean, most = (float((x**p).mean() ** (1 / p)) for x in (values, highest))
    return Distance(mean, most - mean, "along the sequence")
