"""The rotation that aligns two Fourier series best: where a real series is largest."""

import numpy as np

__all__ = ["place_of_largest"]

FINE = 64  # points of the grid in the shortest wave
TRIED = 4  # maxima that are refined
NEWTON = 5
ROUNDING = 1e-14  # of a product of series, relative


def place_of_largest(series: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The angle of max f, f = Re sum_k g_k e^{-ik angle}, and what max f may exceed f there by.

    g is (members, K + 1), the results are (members,).

    On a grid of spacing h a maximum is lower than the true one by (K h)^2/8 sum |g_k| at most, as
    |f''| <= K^2 sum |g_k|. The 4 largest values with lower neighbours are refined by Newton steps;
    the fifth, plus as much, bounds all others.
    """
    series, period = _over_a_period(series)
    degree = series.shape[1] - 1
    if degree == 0:
        return np.zeros(len(series)), np.zeros(len(series))
    points = FINE * degree
    values = np.fft.fft(series, points, axis=1).real
    peaks = (values >= np.roll(values, 1, axis=1)) & (values >= np.roll(values, -1, axis=1))
    ranked = np.where(peaks, values, -np.inf)
    best = np.argpartition(-ranked, TRIED, axis=1)[:, : TRIED + 1]
    best = np.take_along_axis(best, np.argsort(-np.take_along_axis(ranked, best, 1), axis=1), 1)
    heights = np.take_along_axis(ranked, best, axis=1)
    angles = _refined(series, 2 * np.pi / points * best[:, :TRIED])
    refined = _value(series, angles)
    rows, top = np.arange(len(series)), refined.argmax(axis=1)
    slack = (2 * np.pi / FINE) ** 2 / 8 * np.abs(series).sum(axis=1)
    return angles[rows, top] / period, np.maximum(
        heights[:, TRIED] + slack - refined[rows, top], 0.0
    )


def _over_a_period(series: np.ndarray) -> tuple[np.ndarray, int]:
    """Without the degrees that are no multiples of a period common to all, and that."""
    sizes = np.abs(series)
    present = np.flatnonzero(np.any(sizes[:, 1:] > ROUNDING * sizes.max(), axis=0)) + 1
    period = int(np.gcd.reduce(present)) if present.size else 0
    return (series[:, ::period], period) if period else (series[:, :1], 1)


def _value(series: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """f at angles (members, tried)."""
    k = np.arange(series.shape[1])
    return (series[:, None] * np.exp(-1j * k * angles[..., None])).sum(axis=2).real


def _refined(series: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Where Newton steps for f' = 0 lead from `angles`."""
    k = np.arange(series.shape[1])
    for _ in range(NEWTON):
        waves = series[:, None] * np.exp(-1j * k * angles[..., None])
        first, second = (waves * -1j * k).sum(axis=2).real, -(waves * k**2).sum(axis=2).real
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(second < 0, -first / second, 0.0)
        angles = angles + np.clip(step, -np.pi / k[-1] / FINE, np.pi / k[-1] / FINE)
    return angles
