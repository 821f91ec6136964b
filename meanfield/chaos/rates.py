"""Powers of n fitted to means over replicas: least squares of logarithms, bootstrap intervals."""

from typing import NamedTuple

import numpy as np

__all__ = ["Rate", "rate_of"]

DRAWS = 1000
LEVEL = 0.95
ROUNDING = 1e-12


class Rate(NamedTuple):
    """D ~ constant * n^exponent.

    Attributes
    ----------
    exponent, constant : float
    interval : (float, float)
        A confidence interval of the exponent, at the level 0.95.
    """

    exponent: float
    constant: float
    interval: tuple[float, float]

    def __repr__(self) -> str:
        low, high = self.interval
        return f"Rate({self.constant:.3g} n^{self.exponent:.3f}, [{low:.3f}, {high:.3f}])"


def rate_of(sizes: np.ndarray, values: np.ndarray, *, rng=0, seen: float = 0.0) -> Rate:
    """The power of n fitted to the means of values (sizes, replicas), without those that are nan.

    The weight of each size is the precision of the logarithm of its mean. The interval is that of
    1000 bootstrap samples of the replicas, widened by Student's quantile for few replicas. Sizes
    without replicas, or whose mean is below `seen` standard errors, are left out. The result is nan
    for fewer than two sizes, if a mean is 0, and if means have different signs.
    """
    rng = np.random.default_rng(rng)
    rows = {n: row[np.isfinite(row)] for n, row in zip(sizes, values, strict=True)}
    rows = {n: row for n, row in rows.items() if row.size and _is_seen(row, seen)}
    means = np.array([row.mean() for row in rows.values()])
    if len(rows) < 2 or not (np.all(means > 0) or np.all(means < 0)):
        return Rate(np.nan, np.nan, (np.nan, np.nan))
    x = np.log(list(rows))
    weights = np.array([np.abs(row.mean()) / _error(row) for row in rows.values()])
    draws = np.stack(
        [row[rng.integers(len(row), size=(DRAWS, len(row)))].mean(axis=1) for row in rows.values()]
    )
    exponent, logarithm = _line(x, np.log(np.abs(means))[:, None], weights)
    with np.errstate(divide="ignore"):
        logs = np.log(np.abs(draws))
    spread = _line(x, logs[:, np.isfinite(logs).all(axis=0)], weights)[0]
    ends = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    low, high = np.quantile(spread, ends) if spread.size else (np.nan, np.nan)
    wider = _widening(min(map(len, rows.values())))
    best = float(exponent[0])
    interval = (best - wider * (best - float(low)), best + wider * (float(high) - best))
    return Rate(best, float(np.exp(logarithm[0])), interval)


def _is_seen(row: np.ndarray, errors: float) -> bool:
    return not errors or abs(float(row.mean())) >= errors * _error(row)


def _widening(replicas: int) -> float:
    """The factor for bootstrap intervals of few replicas: Student's quantile, unbiased variance."""
    from scipy.special import stdtrit

    if replicas < 2:
        return float("inf")
    student = stdtrit(replicas - 1, (1 + LEVEL) / 2) / 1.959964
    return float(student * (replicas / (replicas - 1)) ** 0.5)


def _error(row: np.ndarray) -> float:
    """The standard error of a mean: its size for one replica, and at least rounding."""
    size = float(np.abs(row.mean()))
    error = float(row.std(ddof=1) / len(row) ** 0.5) if len(row) > 1 else size
    return max(error, ROUNDING * size)


def _line(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and intercepts of weighted least-squares lines for the columns of y."""
    design = np.stack([x, np.ones_like(x)], axis=1) * weights[:, None]
    slope, intercept = np.linalg.lstsq(design, y * weights[:, None], rcond=None)[0]
    return slope, intercept
