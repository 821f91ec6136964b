"""Clusters by single linkage: tokens joined by chains of gaps up to a given angle."""

from collections.abc import Callable

import numpy as np
from numba import njit

from ..core.checks import positive, whole_number
from ..states import Gram, Tokens

__all__ = ["LINKED", "cluster_labels", "merge_events"]

LINKED = float(np.arccos(0.9999))  # radians
MANY = 20_000  # beyond, all pairs are too many


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
    if not isinstance(state, Tokens | Gram):
        raise TypeError(f"Clusters are those of Tokens or a Gram; got {state!r}.")
    if state.shape:
        raise ValueError("Clusters are those of a single set of tokens; take replicas one by one.")
    positive(angle=angle)
    if isinstance(state, Gram):
        return _numbered(_linked_by_products(state.G, float(np.cos(angle))))
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
    for i in range(n):
        parents[i] = _root(parents, i)
    return parents


@njit(cache=True)
def _linked_by_products(G, cosine):
    n = len(G)
    parents = np.arange(n)
    for i in range(n):
        for j in range(i):
            if G[i, j] >= cosine:
                parents[_root(parents, i)] = _root(parents, j)
    for i in range(n):
        parents[i] = _root(parents, i)
    return parents


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
    for i in range(parents.size):
        parents[i] = _root(parents, i)
    return parents


@njit(cache=True)
def _touch(x, begins, a, b, square):
    for i in range(begins[a], begins[a + 1]):
        for j in range(begins[b], begins[b + 1]):
            if ((x[i] - x[j]) ** 2).sum() <= square:
                return True
    return False
