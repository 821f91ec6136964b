"""What pairs of tokens have: inner products, their histogram, their mean."""

import numpy as np

from ..states import Gram, Tokens

__all__ = ["inner_product_histogram", "mean_cosine"]

ROWS = 512


def inner_product_histogram(state: Tokens | Gram, bins: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """The law of <x_i, x_j> over pairs i != j, by their masses.

    Parameters
    ----------
    state : Tokens or Gram
        A single set; tokens of R^d by their directions.
    bins : int
        Equal ones on [-1, 1].

    Returns
    -------
    (shares, edges) : ndarray, (bins,) and (bins + 1,)
        Shares of sum 1. Inner products beyond +-1 by rounding are in the outermost bins.

    Notes
    -----
    Cost: n^2 d operations and memory for 512 rows.
    """
    if state.shape:
        raise ValueError("The histogram is that of a single set; take replicas one by one.")
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
        raise ValueError(f"bins must be a whole number >= 1; got bins = {bins!r}.")
    if len(state) < 2:
        raise ValueError("Inner products are those of pairs; there is only one token.")
    edges = np.linspace(-1, 1, int(bins) + 1)
    shares, masses, n = np.zeros(int(bins)), state.masses, len(state)
    points = np.zeros((n, 0)) if isinstance(state, Gram) else _directions(state)
    for begin in range(0, n, ROWS):
        rows = slice(begin, min(begin + ROWS, n))
        products = state.G[rows] if isinstance(state, Gram) else points[rows] @ points.T
        weights = masses[rows, None] * masses
        weights[np.arange(len(weights)), np.arange(begin, begin + len(weights))] = 0
        inside = np.minimum(np.maximum(products, -1), 1)
        shares += np.histogram(inside, edges, weights=weights)[0]
    return shares / shares.sum(), edges


def mean_cosine(state: Tokens | Gram) -> np.ndarray:
    """The mean of <x_i, x_j> over pairs i != j, by their masses, (*replicas,)."""
    masses = state.masses
    own = (masses**2).sum(axis=-1)
    if isinstance(state, Gram):
        square = np.einsum("...i,...ij,...j->...", masses, state.G, masses)
    else:
        mean = np.einsum("...i,...id->...d", masses, _directions(state))
        square = (mean**2).sum(axis=-1)
    with np.errstate(invalid="ignore"):
        return (square - own) / (1 - own)


def _directions(tokens: Tokens) -> np.ndarray:
    if tokens.on_sphere:
        return tokens.x
    with np.errstate(invalid="ignore"):
        return tokens.x / np.linalg.norm(tokens.x, axis=-1, keepdims=True)
