"""Zonal kernels K(<x, y>) on the unit sphere of R^d and their Funk-Hecke multipliers."""

from collections.abc import Callable

import numpy as np

from ..core.checks import real_array
from ..core.errors import MeanfieldError
from ..lowlevel.legendre import gauss

FEWEST = 128  # nodes of the first rule

FAR = 1e300  # beyond it scaled Bessel functions are (2 pi x)^(-1/2), and scipy's are not finite


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
    from scipy.special import gammaln, xlogy

    beta = np.asarray(beta, dtype=float)[..., None]
    l, order = np.arange(degree + 1), dimension / 2 - 1
    size, half = np.abs(beta), l + dimension / 2
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        small = size**2 <= 0.4 * half
        large, constant = np.where(small, 1.0, size), gammaln(dimension / 2)
        near = np.minimum(large, FAR)
        bessel = np.log(_scaled_bessel(l + order, near)) + 0.5 * np.log(near / large)
        closed = np.exp(constant + order * np.log(2 / large) + bessel)
        small |= np.isneginf(bessel)  # I_l underflows, the multiplier need not
        x = np.where(small, size, 0.0)
        logs = constant - gammaln(half) + xlogy(l, x / 2) - x + _log_hypergeometric(half, x)
        sign = np.where((beta < 0) & (l % 2 == 1), -1.0, 1.0)
        return sign * np.where(small, np.exp(logs), closed)


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


def values_at(what: str, f: Callable, t: np.ndarray, *, finite: bool = False) -> np.ndarray:
    """The values of a zonal function f at inner products t, of which it gets a copy.

    Raises TypeError for values that are not real, ValueError for another shape than that of t, and
    for values that are not finite where they must be.
    """
    values = real_array(f"The values of a {what}", f(t.copy()))
    bad = np.count_nonzero(~np.isfinite(values)) if finite else 0
    if values.shape != t.shape or bad:
        raise ValueError(
            f"A zonal {what} must map an array of inner products in [-1, 1] to finite numbers of "
            f"the same shape; got shape {values.shape} for {t.shape}, {bad} not finite."
        )
    return values


def _by_rule(kernel: Callable, size: int, degree: int, dimension: int) -> np.ndarray:
    """Multipliers by the Gauss-Gegenbauer rule of this size for the law of <x, y>."""
    nodes, weights = gauss(size, dimension)
    values = values_at("kernel", kernel, nodes, finite=True)
    if dimension == 2:
        from scipy.fft import dct

        return dct(values, type=2)[: degree + 1] / (2 * values.size)
    return legendre_averages(degree, dimension, nodes, weights * values)


def legendre_averages(degree: int, dimension: int, t: np.ndarray, f: np.ndarray) -> np.ndarray:
    """sum f P_l(t) for the Legendre polynomials of R^d, P_l(1) = 1, l = 0, ..., `degree`."""
    averages = np.empty(degree + 1)
    p, following = np.ones_like(t), t
    for l in range(degree + 1):
        averages[l] = f @ p
        ahead = ((2 * l + dimension) * t * following - (l + 1) * p) / (l + dimension - 1)
        p, following = following, ahead
    return averages


def polynomial_multipliers(
    kernel: Callable, kernel_degree: int, degree: int, dimension: int
) -> np.ndarray:
    """Multipliers of a polynomial kernel, by a rule that is exact for it."""
    needed = max((kernel_degree + degree) // 2 + 1, degree + 1, FEWEST)
    size = 2 ** (needed - 1).bit_length()
    return _by_rule(kernel, size, degree, dimension)


def quadrature_multipliers(
    kernel: Callable, degree: int, dimension: int, *, tolerance: float = 1e-14
) -> np.ndarray:
    """Multipliers of any zonal kernel by Gauss-Gegenbauer quadrature.

        lambda_l = E[K(t) P_l(t)],   t = <x, y>,  x uniform on S^(d-1),  P_l(1) = 1

    The rule is doubled until two answers agree to `tolerance`. A kernel with a kink converges
    algebraically only: the largest rule (2^17 nodes on the circle, 2^12 elsewhere, or more for
    degrees above 2^10) is then accepted if it agrees with the one before to 1e-9, and those
    before it with each other to 1e-7.

    Parameters
    ----------
    kernel : callable
        K(t) for an array t in [-1, 1].
    tolerance : float
        Accepted difference between two rules, relative to the largest value of the kernel.

    Raises
    ------
    ValueError
        If the kernel returns something that is not finite or has another shape.
    MeanfieldError
        If the largest rule has converged neither to `tolerance` nor to 1e-9.
    """
    largest = max(17 if dimension == 2 else 12, degree.bit_length() + 1)
    sizes = [2**j for j in range(largest + 1) if 2**j > max(degree, FEWEST - 1)]
    current = _by_rule(kernel, sizes[0], degree, dimension)
    scale = max(np.abs(kernel(gauss(sizes[0], dimension)[0])).max(), 1e-300)
    changes = []
    for size in sizes[1:]:
        previous = current
        current = _by_rule(kernel, size, degree, dimension)
        changes.append(np.abs(current - previous).max() / scale)
        if changes[-1] <= tolerance:
            return current
    if changes[-1] <= 1e-9 and max(changes[-4:]) <= 1e-7:
        return current
    raise MeanfieldError(
        f"The multipliers of the kernel did not converge: {sizes[-1]} quadrature nodes change "
        f"them by {changes[-1]:.1e}, relative to its largest value, and fewer nodes by up to "
        f"{max(changes[-4:]):.1e}; expected <= tolerance = {tolerance:g}, or <= 1e-9 after changes "
        "<= 1e-7. Its singularities, such as kinks, are too strong: smooth them; or raise the "
        "tolerance of an Interaction, or use Interaction.chebyshev; or give a drift of your own "
        "the methods attraction and normaliser."
    )
