"""Intervals by bootstrap over tokens and texts."""

from collections.abc import Callable

import numpy as np

from .quantities import directions

Kernel = Callable[[np.ndarray], np.ndarray]
RESAMPLED_TEXTS = 5  # from this number of texts on, texts are resampled, too
CONFIDENCE_LEVEL = 0.95


def means_over_pairs(
    texts: list[np.ndarray], kernels: list[Kernel], draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Means of k(<x_i, x_j>) over pairs i != j of every state, (kernels, states, 1 + draws).

    Index 0 of the last axis is the mean itself, averaged over texts; the others are bootstrap
    draws, with tokens drawn with replacement and without pairs of a token with itself. All states
    have the same draws. From 5 texts on, texts are drawn with replacement, too.

    Parameters
    ----------
    texts : sequence of ndarray, (states, n, d)
        Hidden states, by layer or by sublayer.
    kernels : sequence of functions of arrays
    draws : int
    rng : numpy.random.Generator
    """
    count = len(texts)
    shares = np.ones((count, draws + 1)) / count
    if count >= RESAMPLED_TEXTS:
        shares[:, 1:] = rng.multinomial(count, np.full(count, 1 / count), size=draws).T / count
    total = np.zeros((len(kernels), len(texts[0]), draws + 1))
    for states, share in zip(texts, shares, strict=True):
        n = states.shape[1]
        weights = np.ones((draws + 1, n))
        weights[1:] = rng.multinomial(n, np.full(n, 1 / n), size=draws)
        squares = weights**2
        pairs = weights.sum(axis=1) ** 2 - squares.sum(axis=1)
        for s, h in enumerate(states):
            x, _ = directions(h)
            products = x @ x.T
            for k, kernel in enumerate(kernels):
                values = kernel(products)
                sums = ((weights @ values) * weights).sum(axis=1) - squares @ np.diag(values)
                total[k, s] += share * sums / pairs
    return total


def interval(draws: np.ndarray, level: float = CONFIDENCE_LEVEL) -> np.ndarray:
    """The percentile interval (..., 2) of draws (..., draws), of probability `level`."""
    ends = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=-1)
    return np.moveaxis(ends, 0, -1)


def rank_correlation(
    a: np.ndarray, b: np.ndarray, rng: np.random.Generator, draws: int = 2000
) -> tuple[float, float, float]:
    """Spearman's rank correlation, and its interval by bootstrap over pairs (a_i, b_i).

    Returns the correlation and both ends. Draws without a defined correlation, as all a_i or all
    b_i are equal, are left out; the ends are nan if no draw is left.
    """
    a, b = np.ravel(a), np.ravel(b)
    from scipy.stats import rankdata

    def spearman(rows: np.ndarray) -> float:
        """Spearman's rank correlation; nan if all entries of a or of b are equal."""
        return float(np.corrcoef(rankdata(a[rows]), rankdata(b[rows]))[0, 1])

    with np.errstate(divide="ignore", invalid="ignore"):
        values = [spearman(rows) for rows in rng.integers(len(a), size=(draws, len(a)))]
        correlation = spearman(np.arange(len(a)))
    defined = np.array(values)[~np.isnan(values)]
    low, high = interval(defined) if len(defined) else (np.nan, np.nan)
    return correlation, float(low), float(high)
