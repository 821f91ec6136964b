"""Rates in n, by least squares of logarithms, with intervals by the bootstrap."""

from typing import NamedTuple

import numpy as np

__all__ = ["Rate", "rate_of"]

DRAWS = 1000
LEVEL = 0.95


class Rate(NamedTuple):
    """D ~ constant * n^exponent.

    Attributes
    ----------
    exponent, constant : float
    interval : (float, float)
        That contains the exponent, with the confidence 0.95.
    """

    exponent: float
    constant: float
    interval: tuple[float, float]

    def __repr__(self) -> str:
        low, high = self.interval
        return f"Rate({self.constant:.3g} n^{self.exponent:.3f}, [{low:.3f}, {high:.3f}])"


def rate_of(sizes: np.ndarray, values: np.ndarray, *, rng=0) -> Rate:
    """The rate of the means of values (sizes, replicas); nan are left out.

    Each size counts by the precision of the logarithm of its mean. The interval is that of means of
    replicas which are drawn anew, 1000 times. All are nan for fewer than two sizes, and where a
    mean is 0.
    """
    rng = np.random.default_rng(rng)
    rows = [row[np.isfinite(row)] for row in values]
    if len(rows) < 2 or not all(row.size and row.mean() for row in rows):
        return Rate(np.nan, np.nan, (np.nan, np.nan))  # nothing has a logarithm
    weights = np.array([np.abs(row.mean()) / _error(row) for row in rows])
    draws = np.stack(
        [row[rng.integers(len(row), size=(DRAWS, len(row)))].mean(axis=1) for row in rows]
    )
    means = np.array([row.mean() for row in rows])
    exponent, logarithm = _line(np.log(sizes), np.log(np.abs(means))[:, None], weights)
    spread = _line(np.log(sizes), np.log(np.abs(draws)), weights)[0]
    interval = np.quantile(spread, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Rate(
        float(exponent[0]), float(np.exp(logarithm[0])), (float(interval[0]), float(interval[1]))
    )


def _error(row: np.ndarray) -> float:
    return float(row.std(ddof=1) / len(row) ** 0.5) if len(row) > 1 else float(np.abs(row.mean()))


def _line(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and intercepts of weighted lines through the columns of y."""
    design = np.stack([x, np.ones_like(x)], axis=1) * weights[:, None]
    slope, intercept = np.linalg.lstsq(design, y * weights[:, None], rcond=None)[0]
    return slope, intercept
