"""Zonal kernels K(<x, y>) on the unit sphere of R^d and their Funk-Hecke multipliers."""

from collections.abc import Callable
from functools import partial
from math import lgamma, log, pi
from typing import Any

import numpy as np

from ..core.checks import real_array
from ..core.errors import MeanfieldError
from ..lowlevel.legendre import gauss, values_at_the_pole

Kernel = Callable[[np.ndarray], np.ndarray]  # of inner products

FEWEST_RULE_NODES = 128  # nodes of the smallest Gauss-Gegenbauer rule
PIECE_NODES = 16  # Chebyshev nodes on an interval, from which smoothness is judged
NARROWEST = 1e-13  # angle: bisection ends at intervals of this length
NEAREST = 1.5e-8  # smallest distance of angles from 0 and pi; the cosine is not rounded to 1
TIGHTEST = 1e-14  # tolerance of the integral beyond the outermost nodes, relative to the kernel
FEW_ROUNDINGS = 1e-15  # angle: bisection for primitives ends at intervals of this length
EVEN_EDGES = np.linspace(0, np.pi, PIECE_NODES + 1)  # first intervals of the angle for multipliers
GRADED_EDGES = EVEN_EDGES[1] * 2.0 ** -np.arange(1, 24)  # down to 1.5e-8, with cosine 1 - 1e-16
PRIMITIVE_EDGES = np.concatenate(
    [[0.0], GRADED_EDGES[::-1], EVEN_EDGES[1:-1], np.pi - GRADED_EDGES, [np.pi]]
)  # first intervals of the angle for primitives
MOST_PIECES = 400  # largest number of intervals that are bisected at the same time
MOST_OF_ONE = 4096  # the same limit for a primitive, which is computed once
ACCURACIES = (1e-15, 1e-13, 1e-11, 1e-9)  # tolerances, tried in turn until MOST_PIECES suffice
TIGHT = (1e-15, 1e-14, 1e-13)  # the same for primitives
UNCERTAIN = 1e-12  # accepted error of a primitive, relative to the integral of |f|
ACCEPTED_ERROR = 1e-9  # error of multipliers that is accepted whatever the tolerance is
LEAST_JUMP = 1e-6  # change within the narrowest interval from which a kernel is discontinuous
AVERAGE_ROUNDING = 1e-14  # E[K p_l] below this, relative to the largest, is rounding
FAR_APART = 100.0  # accepted ratio of the change from rules to pieces and the last rules' changes

INSIDE = np.cos(np.pi * (np.arange(PIECE_NODES) + 0.5) / PIECE_NODES)  # Chebyshev nodes
INSIDE_AND_ENDS = np.append(INSIDE, [1.0, -1.0])
# Chebyshev nodes with both ends, so that a jump next to an end is detected
WITH_ENDS = np.cos(np.pi * np.arange(PIECE_NODES + 1) / PIECE_NODES)

FAR_NODES = 1e300  # beyond it scaled Bessel functions are (2 pi x)^(-1/2), where scipy overflows


def exponential_multipliers(beta: Any, degree: int, dimension: int) -> np.ndarray:
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
    from scipy.special import gammaln, xlogy

    beta = np.asarray(beta, dtype=float)[..., None]
    l, order = np.arange(degree + 1), dimension / 2 - 1
    size, half = np.abs(beta), l + dimension / 2
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        use_series = size**2 <= 0.4 * half
        safe_size, constant = np.where(use_series, 1.0, size), gammaln(dimension / 2)
        capped = np.minimum(safe_size, FAR_NODES)
        bessel = np.log(_scaled_bessel(l + order, capped)) + 0.5 * np.log(capped / safe_size)
        closed = np.exp(constant + order * np.log(2 / safe_size) + bessel)
        use_series |= np.isneginf(bessel)  # I_l underflows, the multiplier need not
        x = np.where(use_series, size, 0.0)
        logs = constant - gammaln(half) + xlogy(l, x / 2) - x + _log_hypergeometric(half, x)
        sign = np.where((beta < 0) & (l % 2 == 1), -1.0, 1.0)
        return sign * np.where(use_series, np.exp(logs), closed)


def _log_hypergeometric(half: np.ndarray, x: np.ndarray) -> np.ndarray:
    """log 0F1(half; x^2 / 4) for x >= 0, by its series, whose terms are positive."""
    total = np.ones(np.broadcast_shapes(half.shape, x.shape))
    term, log_scale, k = total.copy(), np.zeros_like(total), 0
    while (term > 1e-17 * total).any():
        k += 1
        term *= x**2 / 4 / (k * (half + k - 1))
        total += term
        large = np.where(total > 1e200, 1e200, 1.0)
        term, total, log_scale = term / large, total / large, log_scale + np.log(large)
    return np.log(total) + log_scale


def _scaled_bessel(order: np.ndarray, x: np.ndarray) -> np.ndarray:
    """exp(-x) I_order(x), by Hankel's expansion (DLMF 10.40.1) where scipy has none."""
    from scipy.special import ive

    far = x > 1e8
    total = np.ones(np.broadcast_shapes(order.shape, x.shape))
    for k in range(12, 0, -1):
        total = 1 - total * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k * np.where(far, x, 1e8))
    expansion = total / np.sqrt(2 * np.pi * x)
    return np.where(far, expansion, ive(order, np.where(far, 1.0, x)))


def values_at(role: str, f: Kernel, t: np.ndarray, *, finite: bool = False) -> np.ndarray:
    """Values of a zonal function f at inner products t; f is called with a copy of t.

    Raises TypeError for values that are not real, ValueError for another shape than that of t, and
    with `finite` for values that are not finite. `role` names f in the messages.
    """
    values = real_array(f"The values of a {role}", f(t.copy()))
    fits = values.shape == t.shape
    bad = t[~np.isfinite(values)] if finite and fits else t[:0]
    if not fits or bad.size:
        text = f"{bad.size} that are not finite, the first at t = {bad[0]:.6g}" if bad.size else ""
        raise ValueError(
            f"A zonal {role} must map an array of inner products t in [-1, 1] to finite numbers of "
            f"the same shape; got {text or f'shape {values.shape} for {t.shape}'}."
        )
    return values


def _by_rule(kernel: Kernel, size: int, degree: int, dimension: int) -> np.ndarray:
    """Multipliers (degree + 1,) by the Gauss-Gegenbauer rule with `size` nodes for <x, y>."""
    nodes, weights = gauss(size, dimension)
    values = values_at("kernel", kernel, nodes, finite=True)
    if dimension == 2:
        from scipy.fft import dct

        return dct(values, type=2)[: degree + 1] / (2 * values.size)
    return legendre_averages(degree, dimension, nodes, weights * values)


def legendre_averages(degree: int, dimension: int, t: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Sums (degree + 1,) of f P_l(t) over nodes t, with Legendre polynomials of R^d, P_l(1) = 1."""
    averages = np.empty(degree + 1)
    p, following = np.ones_like(t), t
    for l in range(degree + 1):
        averages[l] = f @ p
        ahead = ((2 * l + dimension) * t * following - (l + 1) * p) / (l + dimension - 1)
        p, following = following, ahead
    return averages


def polynomial_multipliers(
    kernel: Kernel, kernel_degree: int, degree: int, dimension: int
) -> np.ndarray:
    """Multipliers of a kernel that is a polynomial of `kernel_degree`, by an exact rule."""
    least_nodes = max((kernel_degree + degree) // 2 + 1, degree + 1, FEWEST_RULE_NODES)
    size = 2 ** (least_nodes - 1).bit_length()
    return _without_rounding(_by_rule(kernel, size, degree, dimension), dimension)


def _without_rounding(multipliers: np.ndarray, dimension: int) -> np.ndarray:
    """Multipliers, with zeros after the last one that exceeds its rounding error, for d > 3.

    lambda_l = E[K P_l] has the error eps/p_l(1). At a cluster its weight is dim H_l = p_l(1)^2, so
    that in high dimension the errors of the last degrees would exceed the kernel.
    """
    if dimension > 3:
        sizes = np.abs(multipliers) * values_at_the_pole(multipliers.size - 1, dimension)
        significant = np.flatnonzero(sizes > AVERAGE_ROUNDING * sizes.max())
        multipliers[significant.max(initial=0) + 1 :] = 0
    return multipliers


def quadrature_multipliers(
    kernel: Kernel, degree: int, dimension: int, *, tolerance: float = 1e-14,
    continuous: bool = True,
) -> np.ndarray:  # fmt: skip
    """Multipliers of any zonal kernel by Gauss-Gegenbauer quadrature.

        lambda_l = E[K(t) P_l(t)],   t = <x, y>,  x uniform on S^(d-1),  P_l(1) = 1

    The rule is doubled, up to 2^10 nodes (more for degrees above 2^8), until two results agree to
    `tolerance` and K is smooth beyond the outermost nodes, where the rules have no nodes. For a
    kernel with kinks this converges too slowly. Then intervals of the angle theta, t = cos(theta),
    are bisected where K is not smooth, down to a length of 1e-13, and Gauss rules on the pieces
    give the integrals to rounding, or to the accuracy to which K is smooth on the pieces.
    Smoothness is judged at 18 points of an interval, both ends included. Features between two of
    them, such as a peak far narrower than pi/256, and features within 1.5e-8 of theta = 0 or pi
    are not detected.

    Parameters
    ----------
    kernel : callable
        K(t) for an array t in [-1, 1].
    tolerance : float
        Accepted error, relative to the largest value of the kernel; 1e-9 is accepted in any case.
    continuous : bool
        Whether kernels with jumps are refused.

    Raises
    ------
    ValueError
        If the kernel returns something that is not finite or has another shape.
    MeanfieldError
        If neither converges.
    """
    largest = max(10, degree.bit_length() + 1)
    sizes = [2**j for j in range(largest + 1) if 2**j > max(degree, FEWEST_RULE_NODES - 1)]
    current = _by_rule(kernel, sizes[0], degree, dimension)
    scale = max(np.abs(kernel(gauss(sizes[0], dimension)[0])).max(), 1e-300)
    changes, unseen = [], False  # unseen: rules agree, but K is not smooth beyond their nodes
    for size in sizes[1:]:
        previous = current
        current = _by_rule(kernel, size, degree, dimension)
        changes.append(np.abs(current - previous).max() / scale)
        if changes[-1] <= tolerance:
            if _is_smooth_at_the_ends(kernel, size, dimension, scale):
                return _without_rounding(current, dimension)
            unseen = True
    pieces, error, jump = _in_pieces(kernel, degree, dimension, scale)
    allowed = max(tolerance, ACCEPTED_ERROR)
    disagreement = np.abs(pieces - current).max() / scale
    agree = unseen or disagreement <= FAR_APART * max(changes[-2:])
    if error <= allowed and agree and not (continuous and jump):
        return _without_rounding(pieces, dimension)
    reason = f"it jumps by {jump * scale:.1e} within an angle of {NARROWEST:g}"
    if not (continuous and jump):
        uncertainty = max(error, changes[-1])
        reason = (
            f"relative errors of {uncertainty:.1e} exceed tolerance = {allowed:g}, at least 1e-9"
        )
    raise MeanfieldError(
        f"The multipliers of the kernel did not converge: {reason}. Smooth its singularities; or "
        "raise the tolerance of an Interaction, or use Interaction.chebyshev; or give a drift of "
        "your own the methods attraction and normaliser."
    )


def _in_pieces(
    kernel: Kernel, degree: int, dimension: int, scale: float
) -> tuple[np.ndarray, float, float]:
    """Multipliers by Gauss rules on intervals of the angle, their error, and the largest jump.

    On each interval K times the law of the angle is close to a polynomial of degree 15; the
    tolerance is the first of ACCURACIES for which there are not too many intervals. The error is
    the change with 1.5 times as many nodes. Error and jump are relative to `scale`.
    """

    for accuracy in ACCURACIES:
        roughness = partial(_roughness, kernel, dimension)
        ends = _intervals(roughness, EVEN_EDGES, accuracy * scale)
        if ends is not None:
            break
    else:
        return np.zeros(degree + 1), np.inf, 0.0
    low, high = ends
    is_narrow = high - low < 2 * NARROWEST
    steps = values_at("kernel", kernel, np.cos(np.append(low[is_narrow], high[is_narrow])))
    jump = np.abs(np.diff(steps.reshape(2, -1), axis=0)).max(initial=0.0) / scale
    results = []
    for refinement in (1.0, 1.5):
        counts = np.ceil(refinement * (PIECE_NODES + 0.6 * degree * (high - low))).astype(int)
        nodes, weights = [], []
        for count in np.unique(counts):
            x, w = gauss(int(count), 3)
            of_count = counts == count
            middle, half = (low + high)[of_count, None] / 2, (high - low)[of_count, None] / 2
            nodes.append((middle + half * x).ravel())
            weights.append((2 * half * w).ravel())
        theta, masses = np.concatenate(nodes), np.concatenate(weights)
        cosines = np.cos(theta)
        values = values_at("kernel", kernel, cosines, finite=True)
        law = masses * _law_of_angle(theta, dimension)
        results.append(legendre_averages(degree, dimension, cosines, law * values))
    error = np.abs(results[1] - results[0]).max() / scale
    return results[1], float(max(error, accuracy)), float(jump if jump > LEAST_JUMP else 0.0)


def _roughness(kernel: Kernel, dimension: int, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Distance (m,) of K times the law of the angle from polynomials of degree 15, on m intervals.

    It is the largest of the last four coefficients of the Chebyshev interpolant and of the errors
    of the interpolant at the two ends, which are no nodes.
    """
    from scipy.fft import dct

    theta = np.clip(_nodes(low, high, INSIDE_AND_ENDS), NEAREST, np.pi - NEAREST)
    values = values_at("kernel", kernel, np.cos(theta.ravel()), finite=True)
    product = (values * _law_of_angle(theta.ravel(), dimension)).reshape(theta.shape)
    series = dct(product[:, :PIECE_NODES]) / PIECE_NODES
    series[:, 0] /= 2
    even, odd = series[:, ::2].sum(axis=1), series[:, 1::2].sum(axis=1)
    missed = np.abs(np.stack([even + odd, even - odd], axis=1) - product[:, PIECE_NODES:])
    return np.concatenate([np.abs(series[:, -4:]), missed], axis=1).max(axis=1)


def _is_smooth_at_the_ends(kernel: Kernel, size: int, dimension: int, scale: float) -> bool:
    """True if K is smooth between the outermost nodes of a rule and t = 1 and -1, to rounding."""
    outermost = float(np.arccos(gauss(size, dimension)[0].max()))
    low, high = np.array([0.0, np.pi - outermost]), np.array([outermost, np.pi])
    return bool((_roughness(kernel, dimension, low, high) * outermost <= TIGHTEST * scale).all())


def _intervals(
    roughness: Callable[[np.ndarray, np.ndarray], np.ndarray], edges: np.ndarray, accuracy: float,
    narrowest: float = NARROWEST, largest_count: int = MOST_PIECES,
) -> tuple[np.ndarray, np.ndarray] | None:  # fmt: skip
    """Intervals of the angle on which a function is smooth, or that are narrow, by bisection.

    Parameters
    ----------
    roughness : callable
        Error (m,) of polynomials on m intervals, from their lower and upper ends (m,).
    edges : ndarray
        Ends of the first intervals, increasing.
    accuracy : float
        Largest roughness times length of an interval that is accepted.
    narrowest : float
        Intervals shorter than twice this are not bisected.
    largest_count : int
        Largest number of intervals that are bisected at the same time.

    Returns
    -------
    (lower, upper) or None
        Ends of the intervals, not in order; None if there are too many.
    """
    low, high, accepted_parts = edges[:-1], edges[1:], []
    while low.size:
        is_fine = (roughness(low, high) * (high - low) <= accuracy) | (high - low < 2 * narrowest)
        accepted_parts.append((low[is_fine], high[is_fine]))
        low, high = low[~is_fine], high[~is_fine]
        if low.size > largest_count:
            return None
        middle = (low + high) / 2
        low, high = np.append(low, middle), np.append(middle, high)
    first, last = (np.concatenate(ends) for ends in zip(*accepted_parts, strict=True))
    return first, last


def _nodes(low: np.ndarray, high: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Nodes (m, k) of m intervals, from k reference nodes in [-1, 1]."""
    return (low + high)[:, None] / 2 + (high - low)[:, None] / 2 * reference


def _law_of_angle(theta: np.ndarray, dimension: int) -> np.ndarray:
    """The density of the angle between a fixed and a uniform point of S^(d-1), on (0, pi)."""
    size = lgamma(dimension / 2) - lgamma((dimension - 1) / 2) - log(pi) / 2
    return np.exp(size + (dimension - 2) * np.log(np.sin(theta)))


# Primitives --------------------------------------------------------------------------------------


class Primitive:
    """Primitive F of a function f of inner products, with F(0) = 0.

        F(t) = int_0^t f(s) ds = int_theta^(pi/2) f(cos a) sin(a) da,   t = cos(theta)

    It is computed by Chebyshev series of degree 16 on intervals of the angle, which are bisected
    where f is not smooth: at kinks, jumps, roots at t = +-1, and where f is steep. A value of F
    costs about 60 ns, whatever f costs.

    Parameters
    ----------
    f : callable
        f(t) for an array t in [-1, 1].

    Raises
    ------
    MeanfieldError
        If f is not finite somewhere, or too rough for an accuracy of 1e-12 times the integral of
        |f|. The message begins with "it".
    """

    def __init__(self, f: Callable[[np.ndarray], np.ndarray]) -> None:
        def series(low: np.ndarray, high: np.ndarray) -> np.ndarray:
            return _chebyshev_series(_integrand(f, low, high))

        def roughness(low: np.ndarray, high: np.ndarray) -> np.ndarray:
            return np.abs(series(low, high)[:, -4:]).max(axis=1)

        edges, limits = PRIMITIVE_EDGES, (FEW_ROUNDINGS, MOST_OF_ONE)
        scale = np.diff(edges) @ np.abs(_integrand(f, edges[:-1], edges[1:])).mean(axis=1)
        for accuracy in TIGHT:
            ends = _intervals(roughness, edges, accuracy * scale, *limits)
            if ends is not None:
                break
        else:
            raise MeanfieldError(f"it varies too fast to be integrated to {accuracy:g}")
        low, high = np.sort(ends)
        half, chebyshev = (high - low) / 2, series(low, high)
        integrals = np.polynomial.chebyshev.chebint(chebyshev, lbnd=-1, axis=1) * half[:, None]
        end_values = np.append(0.0, np.cumsum(integrals.sum(axis=1)))
        # The error on each interval is larger if it is too narrow for bisection.
        remainders = np.abs(chebyshev[:, -4:]).max(axis=1) * half
        if remainders.sum() > UNCERTAIN * np.abs(np.diff(end_values)).sum():
            t = np.cos(low[remainders.argmax()])
            raise MeanfieldError(f"it is singular near {t:.6g}, and cannot be integrated")
        self._edges, self._middle, self._half = np.append(low, np.pi), (low + high) / 2, half
        self._series = -integrals.T
        self._series[0] += end_values[self._edges == np.pi / 2] - end_values[:-1]

    def __call__(self, t: np.ndarray) -> np.ndarray:
        """Values of F at inner products t in [-1, 1]."""
        theta = np.arccos(t)
        piece = np.searchsorted(self._edges[1:-1], theta, side="right")
        x = (theta - self._middle[piece]) / self._half[piece]
        last, second_last, twice = np.zeros_like(x), np.zeros_like(x), 2 * x
        for coefficients in self._series[:0:-1]:  # Clenshaw's recurrence; numpy needs more memory
            last, second_last = coefficients[piece] + twice * last - second_last, last
        return self._series[0][piece] + x * last - second_last


def _integrand(f: Kernel, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """f(cos theta) sin(theta) at nodes (m, PIECE_NODES + 1) of intervals of theta, ends included.

    A rounded cosine is that of a slightly different angle. Where f is steep this error exceeds the
    rounding error of f, and is corrected by the slope of the interpolant.
    """
    theta = _nodes(low, high, WITH_ENDS)
    t = np.cos(theta)
    with np.errstate(all="ignore"):
        values = values_at("function", f, t.ravel()).reshape(t.shape)
    if not np.isfinite(values).all():
        raise MeanfieldError(f"it is not finite at {t[~np.isfinite(values)][0].item()!r}")
    steepness = np.polynomial.chebyshev.chebder(_chebyshev_series(values), axis=1)
    shift = (theta - np.arccos(t)) * 2 / (high - low)[:, None]
    values = values + shift * np.polynomial.chebyshev.chebval(WITH_ENDS, steepness.T)
    return values * np.sin(theta)


def _chebyshev_series(values: np.ndarray) -> np.ndarray:
    """Chebyshev coefficients (m, PIECE_NODES + 1) of the interpolants of values of this shape."""
    from scipy.fft import dct

    series = dct(values, type=1) / PIECE_NODES
    series[:, [0, -1]] /= 2
    return series
