"""What is measured along a run: observables of each state, inner products of tokens."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..models.transformer import Transformer
from ..states import Gram, Tokens
from .motion import motion_for

__all__ = [
    "MOMENTS",
    "effective_rank",
    "inner_product_histogram",
    "mean_cosine",
    "measure",
    "measure_all",
    "rank_of",
]

MOMENTS = 8
ROWS = 512


def measure(model: Transformer, state: Any, t: float = 0.0) -> dict[str, np.ndarray]:
    """Observables of a state under a model: see `measure` of the motion of its class.

    Parameters
    ----------
    model : Transformer
    state : Density, Characteristics, Tokens, Gram, Equiangular, Gaussian or another one
    t : float
        The time, for models that depend on it.

    Returns
    -------
    dict of ndarray
        By name; of ensembles and replicas one entry each.
    """
    found = motion_for(state)(model, state).measure(state, t)
    return {name: np.asarray(value) for name, value in found.items()}


def measure_all(
    model: Transformer, states: Sequence[Any], times: Sequence[float] | np.ndarray
) -> dict[str, np.ndarray]:
    """`measure` at every time, stacked on a first axis; lists of clusters padded with nan.

    For densities also the degree of each.
    """
    rows: list[dict[str, Any]] = [
        {**measure(model, state, float(t)), **motion_for(state).resolution(state)}
        for state, t in zip(states, times, strict=True)
    ]
    return {name: _stacked([np.asarray(row[name]) for row in rows]) for name in rows[0]}


def _stacked(arrays: list[np.ndarray]) -> np.ndarray:
    """Arrays on a new first axis; those shorter on their own first axis are padded with nan."""
    if len({array.shape for array in arrays}) > 1:
        most = max(len(array) for array in arrays)
        pads = [[(0, most - len(array))] + [(0, 0)] * (array.ndim - 1) for array in arrays]
        arrays = [
            np.pad(array, pad, constant_values=np.nan)
            for array, pad in zip(arrays, pads, strict=True)
        ]
    return np.stack(arrays)


def effective_rank(tokens: Tokens) -> np.ndarray:
    """exp(-sum_k p_k log p_k), p the eigenvalues of sum_i m_i x_i x_i^T over their sum."""
    weighted = np.sqrt(tokens.masses)[..., None] * tokens.x
    values = np.linalg.svd(weighted, compute_uv=False) ** 2
    return rank_of(values / values.sum(axis=-1, keepdims=True))


def rank_of(shares: np.ndarray) -> np.ndarray:
    """exp of the entropy of shares >= 0 (..., k) of sum 1."""
    logs = np.log(np.where(shares > 0, shares, 1.0))
    return np.exp(-(shares * logs).sum(axis=-1))


def inner_product_histogram(state: Tokens | Gram, bins: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """The law of <x_i, x_j> over pairs i != j, by their masses.

    Parameters
    ----------
    state : Tokens or Gram
        A single set; tokens of R^d by their directions, without those at 0.
    bins : int
        Equal ones on [-1, 1].

    Returns
    -------
    (shares, edges) : ndarray, (bins,) and (bins + 1,)
        Shares of sum 1, nan if no pair has a mass. Inner products beyond +-1 by rounding are in
        the outermost bins.

    Raises
    ------
    TypeError
        For other states.
    ValueError
        For replicas, a single token, or bins that are not a whole number >= 1.

    Notes
    -----
    Cost: n^2 d operations and memory for 512 rows.
    """
    _check(state)
    if state.shape:
        raise ValueError("The histogram is that of a single set; take replicas one by one.")
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
        raise ValueError(f"bins must be a whole number >= 1; got bins = {bins!r}.")
    if len(state) < 2:
        raise ValueError("Inner products are those of pairs; there is only one token.")
    edges = np.linspace(-1, 1, int(bins) + 1)
    n, points = len(state), np.zeros((len(state), 0))
    shares, masses = np.zeros(int(bins)), state.masses
    if isinstance(state, Tokens):
        points, masses = _directions(state)
    for begin in range(0, n, ROWS):
        rows = slice(begin, min(begin + ROWS, n))
        products = state.G[rows] if isinstance(state, Gram) else points[rows] @ points.T
        weights = masses[rows, None] * masses
        weights[np.arange(len(weights)), np.arange(begin, begin + len(weights))] = 0
        inside = np.minimum(np.maximum(products, -1), 1)
        shares += np.histogram(inside, edges, weights=weights)[0]
    with np.errstate(invalid="ignore"):
        return shares / shares.sum(), edges


def mean_cosine(state: Tokens | Gram) -> np.ndarray:
    """The mean of <x_i, x_j> over pairs i != j, by their masses, (*replicas,).

    Tokens at 0 in R^d have no direction and are left out. nan where no pair has a mass.
    """
    _check(state)
    masses = state.masses
    if isinstance(state, Gram):
        off = state.G * (1 - np.eye(len(state)))
        total = np.einsum("...i,...ij,...j->...", masses, off, masses)
        return _ratio(total, _of_pairs(np.ones((*masses.shape, 1)), masses))
    points, masses = _directions(state)
    return _ratio(_of_pairs(points, masses), _of_pairs(np.ones((*masses.shape, 1)), masses))


def _of_pairs(points: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """sum_(i != j) masses_i masses_j <points_i, points_j>.

    The heaviest token is kept apart: what the others have together may be little beside its square.
    """
    heaviest = masses.argmax(axis=-1)[..., None]
    others = masses.copy()
    np.put_along_axis(others, heaviest, 0.0, axis=-1)
    rest = np.einsum("...i,...id->...d", others, points)
    first = np.take_along_axis(points, heaviest[..., None], axis=-2)[..., 0, :]
    squares = (points**2).sum(axis=-1)
    mass = np.take_along_axis(masses, heaviest, axis=-1)[..., 0]
    own = (others**2 * squares).sum(axis=-1)
    return 2 * mass * (first * rest).sum(axis=-1) + (rest**2).sum(axis=-1) - own


def _ratio(total: np.ndarray, weight: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return total / weight


def _check(state) -> None:
    if not isinstance(state, Tokens | Gram):
        raise TypeError(f"Pairs are those of Tokens or a Gram; got {state!r}.")


def _directions(tokens: Tokens) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors and masses; 0 for both where a token of R^d is 0."""
    if tokens.on_sphere:
        return tokens.x, tokens.masses
    lengths = np.linalg.norm(tokens.x, axis=-1)
    some = lengths > 0
    directions = tokens.x / np.where(some, lengths, 1.0)[..., None]
    return directions, np.where(some, tokens.masses, 0.0)
