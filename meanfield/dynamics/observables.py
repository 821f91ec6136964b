"""What is measured along a run: observables of states, inner products and clusters of tokens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from ..core.checks import positive, whole_number
from ..models.transformer import Transformer
from ..states import Gram, Tokens
from .motion import motion_for

MOMENTS = 8
ROWS = 512
LINKED = float(np.arccos(0.9999))  # radians
MANY = 20_000  # tokens beyond which all pairs are too many


@dataclass(frozen=True)
class Quantity:
    """How figures show an observable.

    Attributes
    ----------
    symbol : str
        Label of its axis.
    log_from : float
        The factor that positive values span from which on the axis is logarithmic.
    offset : float
        Subtracted before drawing.
    steps : bool
        Whether it is a whole number, constant between saved times.
    noise : float
        The share of earlier values below which it is rounding; 0 for what keeps its digits.
    """

    symbol: str
    log_from: float = np.inf
    offset: float = 0.0
    steps: bool = False
    noise: float = 1e-20


QUANTITIES: dict[tuple[str, bool], Quantity] = {}


def declare(name: str, symbol: str, *, flat: bool = False, **scale: Any) -> None:
    """Tell how figures show the observable of this name, in R^d only if `flat`.

    Parameters
    ----------
    name, symbol : str
    flat : bool
    **scale
        Other attributes of `Quantity`.
    """
    QUANTITIES[name, flat] = Quantity(symbol, **scale)


def quantity_of(name: str, *, flat: bool = False) -> Quantity:
    """How an observable is shown, in R^d if `flat`; by its name if nobody declared it."""
    plain = QUANTITIES.get((name, False), Quantity(name.replace("_", " ")))
    return QUANTITIES.get((name, flat), plain)


declare("order_parameter", r"order parameter $|m_1|$")
declare("order_parameter", r"length of the mean $|\bar{x}|$", flat=True, log_from=100.0)
declare("mean_cosine", "mean cosine")
declare("mean_cosine", "mean cosine of directions", flat=True)
declare("speed", r"speed in $W_2$", log_from=100.0)
declare("cluster_count", "clusters", log_from=50.0, steps=True)
declare("interaction_energy", r"interaction energy $E(\mu_t)$")
declare("effective_rank", "effective rank", log_from=1e4)
declare("spread", "spread (r.m.s.)", log_from=100.0)
declare("mass", r"mass drift $\int \mathrm{d}\mu_t - 1$", offset=1.0)


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
    if len({array.shape for array in arrays}) == 1:
        return np.stack(arrays)
    found = np.full((len(arrays), max(map(len, arrays)), *arrays[0].shape[1:]), np.nan)
    for row, array in zip(found, arrays, strict=True):
        row[: len(array)] = array
    return found


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
    bins = whole_number("bins must be a whole number", "bins", bins)
    if len(state) < 2:
        raise ValueError("Inner products are those of pairs; there is only one token.")
    edges = np.linspace(-1, 1, bins + 1)
    n, points = len(state), np.zeros((len(state), 0))
    shares, masses = np.zeros(bins), state.masses
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
    if isinstance(state, Gram):
        masses, off = state.masses, state.G * (1 - np.eye(len(state)))
        total = np.einsum("...i,...ij,...j->...", masses, off, masses)
    else:
        points, masses = _directions(state)
        total = _of_pairs(points, masses)
    with np.errstate(invalid="ignore"):
        return total / _of_pairs(np.ones((*masses.shape, 1)), masses)


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


def _check(state: Any, what: str = "Pairs") -> None:
    if not isinstance(state, Tokens | Gram):
        raise TypeError(f"{what} are those of Tokens or a Gram; got {state!r}.")


def _directions(tokens: Tokens) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors and masses; 0 for both where a token of R^d is 0."""
    if tokens.on_sphere:
        return tokens.x, tokens.masses
    lengths = np.linalg.norm(tokens.x, axis=-1)
    some = lengths > 0
    directions = tokens.x / np.where(some, lengths, 1.0)[..., None]
    return directions, np.where(some, tokens.masses, 0.0)


# Clusters ------------------------------------------------------------


def cluster_counts(state: Any) -> np.ndarray:
    """The number of clusters of every replica of Tokens or Gram."""
    sets = [state] if not state.shape else [state[i] for i in np.ndindex(state.shape)]
    counts = [cluster_labels(one).max() + 1 for one in sets]
    return np.array(counts, dtype=float).reshape(state.shape)


def cluster_labels(state: Tokens | Gram, angle: float = LINKED) -> np.ndarray:
    """The cluster of every token, numbered from 0: single linkage with gaps up to `angle`.

    Parameters
    ----------
    state : Tokens or Gram
        A single set. In R^d the gap is a distance rather than an angle.
    angle : float
        In radians; by default arccos 0.9999.

    Returns
    -------
    ndarray of int, (n,)

    Raises
    ------
    ValueError
        For replicas; for more than 20000 tokens in d > 3.

    Notes
    -----
    On the circle O(n log n); otherwise O(n^2), and for many tokens in d <= 3 about O(n): those in
    the same cell of side angle / sqrt(d) are linked, and only cells next to each other compared.
    """
    _check(state, "Clusters")
    if state.shape:
        raise ValueError("Clusters are those of a single set of tokens; take replicas one by one.")
    positive(angle=angle)
    if isinstance(state, Gram):
        from scipy.sparse.csgraph import connected_components

        return connected_components(state.G >= np.cos(angle), directed=False)[1].astype(np.int64)
    if state.on_sphere and state.dimension == 2:
        return _along_the_circle(state.x, angle)
    chord = 2 * np.sin(min(angle, np.pi) / 2) if state.on_sphere else angle
    if len(state) <= MANY:
        return _numbered(_linked(np.ascontiguousarray(state.x), chord**2))
    if state.dimension > 3:
        raise ValueError(
            f"Clusters of more than {MANY} tokens are found in d <= 3; got {state!r}. Take some "
            "of them: Tokens(tokens.x[:20000])."
        )
    return _numbered(_linked_by_cells(state.x, chord))


def merge_events(n: int, angle: float = LINKED) -> list[Callable]:
    """Events, for `solve`, at which the number of clusters falls to n - 1, n - 2, ..., 1.

    The times are then `run.t_events`, one array for each.

    Parameters
    ----------
    n : int
        The number of tokens, or of clusters at the start.
    angle : float
        As for `cluster_labels`.
    """
    n = whole_number("merge_events needs a whole number n", "n", n)
    positive(angle=angle)
    return [_falls_to(count, angle) for count in range(n - 1, 0, -1)]


def _falls_to(count: int, angle: float) -> Callable:
    def excess(_t: float, state: Tokens | Gram) -> float:
        return float(cluster_labels(state, angle).max() + 0.5 - count)

    excess.__qualname__ = f"falls to {count} clusters"
    excess.direction = -1  # type: ignore[attr-defined]
    return excess


def _numbered(roots: np.ndarray) -> np.ndarray:
    return np.unique(roots, return_inverse=True)[1]


def _along_the_circle(x: np.ndarray, angle: float) -> np.ndarray:
    theta = np.arctan2(x[:, 1], x[:, 0])
    order = np.argsort(theta, kind="stable")
    ahead = np.diff(theta[order], append=theta[order[0]] + 2 * np.pi)
    labels = np.empty(len(x), dtype=np.int64)
    labels[order] = np.concatenate([[0], np.cumsum(ahead[:-1] > angle)])
    if ahead[-1] <= angle:
        labels[labels == labels[order[-1]]] = 0
    return labels


@njit(cache=True)
def _root(parents, i):
    while parents[i] != i:
        parents[i] = parents[parents[i]]
        i = parents[i]
    return i


@njit(cache=True)
def _roots(parents):
    for i in range(parents.size):
        parents[i] = _root(parents, i)
    return parents


@njit(cache=True)
def _linked(x, square):
    """Roots of points (n, d) that chains of squared distances <= `square` join."""
    n, d = x.shape
    parents = np.arange(n)
    for i in range(n):
        for j in range(i):
            gap = 0.0
            for c in range(d):
                gap += (x[i, c] - x[j, c]) ** 2
            if gap <= square:
                parents[_root(parents, i)] = _root(parents, j)
    return _roots(parents)


def _linked_by_cells(x: np.ndarray, distance: float) -> np.ndarray:
    """The same for many points of low dimension."""
    from scipy.spatial import cKDTree

    side = distance / np.sqrt(x.shape[1]) * (1 - 1e-12)
    corners, cell = np.unique(np.floor(x / side), axis=0, return_inverse=True)
    order = np.argsort(cell, kind="stable")
    begins = np.searchsorted(cell[order], np.arange(len(corners) + 1))
    near = cKDTree(corners).query_pairs(2 * np.sqrt(x.shape[1]) + 1e-9, output_type="ndarray")
    roots = _join_cells(np.ascontiguousarray(x[order]), begins, near, distance**2)
    return roots[cell]


@njit(cache=True)
def _join_cells(x, begins, near, square):
    parents = np.arange(begins.size - 1)
    for k in range(len(near)):
        a, b = near[k, 0], near[k, 1]
        if _root(parents, a) != _root(parents, b) and _touch(x, begins, a, b, square):
            parents[_root(parents, a)] = _root(parents, b)
    return _roots(parents)


@njit(cache=True)
def _touch(x, begins, a, b, square):
    for i in range(begins[a], begins[a + 1]):
        for j in range(begins[b], begins[b + 1]):
            if ((x[i] - x[j]) ** 2).sum() <= square:
                return True
    return False
