"""Samples: checked, projected on a circle or a sphere, and the bandwidth of kernel estimates."""

from pathlib import Path
from typing import Any

import numpy as np

from ..core.arrays import read_numbers
from ..core.checks import finite_array, path_of, real_array, require
from ..states import Tokens
from ..states.points import check_unit

PLUG_IN_STAGES = 7
SAMPLE_LENGTH_ERROR, SAMPLE_MASS_ERROR = 1e-6, 1e-12  # tolerances of lengths and of equal masses


def checked_sample(sample: Any, dimension: int) -> np.ndarray:
    """Unit vectors (n, d) of a sample, or for d = 2 angles (n,) in radians.

    `sample` is an array of unit vectors, or for d = 2 also of angles; the path of a file with such
    an array; or Tokens of equal masses.

    Raises
    ------
    ValueError
        For another shape, n < 2, values that are not finite, vectors not of unit length (to 1e-6),
        or tokens of different masses.
    """
    if isinstance(sample, str | Path):
        sample = read_numbers(path_of("sample", sample))
    if isinstance(sample, Tokens):
        equal, advice = np.ptp(sample.masses) <= SAMPLE_MASS_ERROR, "Draw tokens by their masses."
        require("The masses of a sample", sample.masses, "equal", equal, advice=advice)
        sample = sample.x
    sample = finite_array("A sample", sample)
    angles = dimension == 2 and sample.ndim == 1
    fits = (angles or sample.shape[1:] == (dimension,)) and len(sample) >= 2
    alternative = " or angles (n,) in radians" if dimension == 2 else ""
    expected = f"that of at least 2 unit vectors (n, {dimension}){alternative}"
    advice = "Tokens of higher dimension: see principal_circle and principal_sphere."
    require("The shape of a sample", sample.shape, expected, fits, advice=advice)
    if not angles:
        check_unit("A sample", sample, SAMPLE_LENGTH_ERROR)
    return np.arctan2(sample[:, 1], sample[:, 0]) if sample.shape[1:] == (2,) else sample


def cross_validated_bandwidth(power: np.ndarray, n: int) -> float:
    """Bandwidth, in radians, of the heat kernel on S^2, by least-squares cross-validation.

    The integrated squared error of sum_lm g_l c_lm Y_lm, g_l = e^{-l(l+1) bandwidth^2 / 2}, is
    up to a constant, estimated without bias by

        sum_l g_l^2 S_l - 2 g_l (n S_l - (2l + 1)) / (n - 1),   S_l = sum_m |c_lm|^2,

    where the second term comes from leaving out each point in turn. The result is its minimum over
    500 bandwidths from 0.5/L to pi, in geometric progression.

    Parameters
    ----------
    power : ndarray, (L + 1,)
        S_l of the empirical measure.
    n : int
        Size of the sample.
    """
    l = np.arange(power.size)
    bandwidths = np.geomspace(np.pi, 0.5 / (power.size - 1), 500)
    damping = np.exp(-0.5 * l * (l + 1) * bandwidths[:, None] ** 2)
    left_out = (n * power - (2 * l + 1)) / (n - 1)
    risk = (damping**2 * power - 2 * damping * left_out)[:, 1:].sum(axis=1)
    return float(bandwidths[np.argmin(risk)])


def plug_in_bandwidth(angles: np.ndarray) -> float:
    """Bandwidth, in radians, of the wrapped normal kernel: the improved Sheather-Jones rule.

    The kernel of variance t = bandwidth^2 minimises the mean integrated squared error of the
    density p with respect to d theta at

        t = (2 n sqrt(pi) |p''|^2)^(-2/5),

    and |p''|^2 is estimated from the data with a kernel whose own bandwidth comes from
    |p'''|^2, and so on for 7 stages; t is the fixed point. On the circle the norms are exact
    sums, |p^(j)|^2 = (1/pi) sum_k k^(2j) e^{-k^2 t} |m_k|^2.

    A sample on a short arc is stretched to half the circle first, so that the rule follows
    its scale down to any width.

    Returns
    -------
    float
        Between 0 and pi. Where there is no fixed point below pi, as for a sample that looks
        uniform, the estimate pi smooths away all modes: the uniform density.

    Raises
    ------
    ValueError
        If all angles coincide, or all but a few outliers.

    References
    ----------
    Botev, Grotowski and Kroese, Annals of Statistics 38 (2010), Algorithm 1, from the line to
    the circle.
    """
    centre = np.angle(np.mean(np.exp(1j * angles)))
    deviations = np.angle(np.exp(1j * (angles - centre)))
    reach = np.abs(deviations).max()
    advice = "All points of the sample coincide: estimate(sample, bandwidth=...)."
    require("bandwidth", None, "a number", reach >= 1e-12, advice=advice)
    stretch = max(1.0, np.pi / 2 / reach)
    return _sheather_jones(deviations * stretch) / stretch


def _sheather_jones(angles: np.ndarray) -> float:
    """Bandwidth of angles (n,) in (-pi, pi] by the rule of Sheather and Jones."""
    from scipy.optimize import brentq

    n, cells = angles.size, 2**20
    counts = np.bincount((angles / (2 * np.pi) * cells).astype(int) % cells, minlength=cells)
    k = np.arange(1, cells // 4 + 1)
    power = np.abs(np.fft.rfft(counts)[1 : k.size + 1] / n) ** 2

    def squared_norm(derivative: int, t: float) -> float:
        significant = k[: 1 + int(min(k.size, 27 / np.sqrt(t)))]  # e^(-27^2) is 0
        weights = np.exp(2 * derivative * np.log(significant) - significant**2 * t)
        return np.sum(weights * power[: significant.size]) / np.pi

    def excess(t: float) -> float:
        norm = squared_norm(PLUG_IN_STAGES, t)
        with np.errstate(divide="ignore", over="ignore"):  # no modes left: infinitely smooth
            for stage in range(PLUG_IN_STAGES - 1, 1, -1):
                odd = np.prod(np.arange(1, 2 * stage, 2)) / np.sqrt(2 * np.pi)
                constant = (1 + 0.5 ** (stage + 0.5)) / 3
                width = (2 * constant * odd / np.float64(n * norm)) ** (2 / (3 + 2 * stage))
                norm = squared_norm(stage, width)
            return t - np.float64(2 * n * np.sqrt(np.pi) * norm) ** (-0.4)

    high = np.pi**2
    high_is_above = excess(high) >= 0
    while (low := high / 1.2) > (4 / k.size) ** 2:
        low_is_below = excess(low) < 0
        if high_is_above and low_is_below:
            return float(np.sqrt(brentq(excess, low, high, xtol=1e-14 * high)))
        high, high_is_above = low, not low_is_below
    if not high_is_above:
        return float(np.pi)
    raise ValueError(
        f"The sample is so uneven that its bandwidth is below {4 / k.size:.1g} of its width: "
        "give one, estimate(sample, bandwidth=...)."
    )


# Tokens of higher dimension ---------------------------------------------------------------------


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

    If the mean of the tokens is not 0, the first direction is close to that of the mean, and on the
    circle the tokens are far more clustered than in R^d: an order parameter of 0.45 in R^64
    becomes 0.93.
    """
    return _principal(tokens, 2, "principal_circle")


def principal_sphere(tokens: np.ndarray) -> np.ndarray:
    """Unit vectors (n, 3): tokens on their three leading principal directions, normalised.

    See `principal_circle`; here d >= 3, and there is one direction more.
    """
    return _principal(tokens, 3, "principal_sphere")


def _principal(tokens: Any, count: int, name: str) -> np.ndarray:
    """Unit vectors (n, count) along the leading principal directions; `name` is for messages."""
    tokens = real_array("Tokens", tokens)
    expected, fits = f"(n, d), n and d >= {count}", tokens.ndim == 2 and min(tokens.shape) >= count
    require("tokens.shape", tokens.shape, expected, fits)
    norms = np.linalg.norm(tokens, axis=1, keepdims=True)
    lost_counts = np.count_nonzero(~np.isfinite(norms)), np.count_nonzero(norms == 0)
    if any(lost_counts):
        got = f"{lost_counts[0]} not finite and {lost_counts[1]} zero among {len(tokens)}"
        raise ValueError(f"{name} expects finite, non-zero tokens; got {got}.")
    unit = tokens / norms
    triangle = np.linalg.qr(unit, mode="r")  # the same singular vectors, at most (d, d)
    directions = np.linalg.svd(triangle, full_matrices=False)[2][:count]
    largest = np.abs(directions).argmax(axis=1)
    directions = directions * np.sign(directions[range(count), largest])[:, None]
    plane = unit @ directions.T
    radius = np.linalg.norm(plane, axis=1, keepdims=True)
    lost = np.count_nonzero(radius < 1e-12)
    if lost:
        where = f"the {count} leading principal directions"
        raise ValueError(f"{lost} tokens are orthogonal to {where}; leave them out.")
    return plane / radius
