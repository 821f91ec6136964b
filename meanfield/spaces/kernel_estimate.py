"""Samples checked, and the bandwidth of their kernel density estimate."""

from pathlib import Path

import numpy as np

from ..core.checks import real_array
from ..core.files import read_numbers
from ..states import Tokens

__all__ = [
    "checked_angles",
    "checked_vectors",
    "cross_validated_bandwidth",
    "plug_in_bandwidth",
]

STAGES = 7


def checked_angles(sample) -> np.ndarray:
    """Angles (n,) in radians of angles (n,) or unit vectors (n, 2).

    Raises
    ------
    ValueError
        For another shape, n < 2, values that are not finite or vectors not of unit length.
    """
    sample = _array_of(sample)
    if sample.ndim not in (1, 2) or (sample.ndim == 2 and sample.shape[1] != 2) or len(sample) < 2:
        raise ValueError(
            "A sample on the circle is at least 2 angles (n,) in radians or unit vectors (n, 2); "
            f"got shape {sample.shape}. Tokens of higher dimension: see principal_circle."
        )
    if not np.isfinite(sample).all():
        raise ValueError(
            f"The sample has {np.count_nonzero(~np.isfinite(sample))} values that are not finite."
        )
    if sample.ndim == 1:
        return sample
    _check_lengths(sample)
    return np.arctan2(sample[:, 1], sample[:, 0])


def checked_vectors(sample, dimension: int) -> np.ndarray:
    """Unit vectors (n, d) of a sample, or of tokens of equal masses.

    Raises
    ------
    ValueError
        For another shape, n < 2, values that are not finite, vectors not of unit length, or
        tokens of different masses.
    """
    sample = _array_of(sample)
    if sample.ndim != 2 or sample.shape[1] != dimension or len(sample) < 2:
        raise ValueError(
            f"A sample here is at least 2 unit vectors (n, {dimension}); got shape {sample.shape}."
        )
    if not np.isfinite(sample).all():
        raise ValueError(
            f"The sample has {np.count_nonzero(~np.isfinite(sample))} values that are not finite."
        )
    _check_lengths(sample)
    return sample


def _array_of(sample) -> np.ndarray:
    if isinstance(sample, str | Path):
        sample = read_numbers(sample)
    if isinstance(sample, Tokens):
        if np.ptp(sample.masses) > 1e-12:
            raise ValueError("estimate expects tokens of equal masses.")
        sample = sample.x
    return real_array("A sample", sample)


def _check_lengths(vectors: np.ndarray) -> None:
    error = np.abs(np.linalg.norm(vectors, axis=1) - 1).max()
    if error > 1e-6:
        raise ValueError(
            f"The sample's vectors must have length 1; the worst is off by {error:.2g}. "
            "Divide them by their norms first if only their directions matter."
        )


def cross_validated_bandwidth(power: np.ndarray, n: int) -> float:
    """Bandwidth, in radians, of the heat kernel on S^2, by least-squares cross-validation.

    The integrated squared error of sum_lm g_l c_lm Y_lm, g_l = e^{-l(l+1) bandwidth^2 / 2}, is
    up to a constant estimated without bias by

        sum_l g_l^2 S_l - 2 g_l (n S_l - (2l + 1)) / (n - 1),   S_l = sum_m |c_lm|^2,

    the second term leaving out each point in turn. The least of it over bandwidths from 0.5/L
    to pi, on a grid of 2 per cent.

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
        If all angles coincide, or all but a few strays.

    References
    ----------
    Botev, Grotowski and Kroese, Annals of Statistics 38 (2010), Algorithm 1, from the line to
    the circle.
    """
    centre = np.angle(np.mean(np.exp(1j * angles)))
    deviations = np.angle(np.exp(1j * (angles - centre)))
    reach = np.abs(deviations).max()
    if reach < 1e-12:
        raise ValueError(
            "All points of the sample coincide, so that no bandwidth follows from it; give one: "
            "estimate(sample, bandwidth=...)."
        )
    stretch = max(1.0, np.pi / 2 / reach)
    return _sheather_jones(deviations * stretch) / stretch


def _sheather_jones(angles: np.ndarray) -> float:
    from scipy.optimize import brentq

    n, cells = angles.size, 2**20
    counts = np.bincount((angles / (2 * np.pi) * cells).astype(int) % cells, minlength=cells)
    k = np.arange(1, cells // 4 + 1)
    power = np.abs(np.fft.rfft(counts)[1 : k.size + 1] / n) ** 2

    def squared_norm(derivative: int, t: float) -> float:
        kept = k[: 1 + int(min(k.size, 27 / np.sqrt(t)))]  # e^(-27^2) is 0
        weights = np.exp(2 * derivative * np.log(kept) - kept**2 * t)
        return np.sum(weights * power[: kept.size]) / np.pi

    def excess(t: float) -> float:
        norm = squared_norm(STAGES, t)
        with np.errstate(divide="ignore", over="ignore"):  # no modes left: infinitely smooth
            for stage in range(STAGES - 1, 1, -1):
                odd = np.prod(np.arange(1, 2 * stage, 2)) / np.sqrt(2 * np.pi)
                constant = (1 + 0.5 ** (stage + 0.5)) / 3
                width = (2 * constant * odd / np.float64(n * norm)) ** (2 / (3 + 2 * stage))
                norm = squared_norm(stage, width)
            return t - np.float64(2 * n * np.sqrt(np.pi) * norm) ** (-0.4)

    high = np.pi**2
    above = excess(high) >= 0
    while (low := high / 1.2) > (4 / k.size) ** 2:
        below = excess(low) < 0
        if above and below:
            return float(np.sqrt(brentq(excess, low, high, xtol=1e-14 * high)))
        high, above = low, not below
    if not above:
        return float(np.pi)
    raise ValueError(
        f"The sample is so uneven that its bandwidth is below {4 / k.size:.1g} of its width: "
        "give one, estimate(sample, bandwidth=...)."
    )
