"""Clusters of tokens: single linkage, by angles on the sphere and by distances in R^d."""

import numpy as np

from ..lowlevel.compilation import njit

LINKED_ANGLE = float(np.arccos(0.9999))  # radians
MOST_PAIRED_TOKENS = 20_000  # tokens beyond which all pairs are too many


def labels_of_points(x: np.ndarray, angle: float, on_sphere: bool) -> np.ndarray:
    """The cluster of every point (n, d), numbered from 0; ValueError for too many in d > 3."""
    n, d = x.shape
    if on_sphere and d == 2:
        return _along_the_circle(x, angle)
    chord = 2 * np.sin(min(angle, np.pi) / 2) if on_sphere else angle
    if n <= MOST_PAIRED_TOKENS:
        return _numbered(_linked(np.ascontiguousarray(x), chord**2))
    if d > 3:
        raise ValueError(
            f"Clusters of more than {MOST_PAIRED_TOKENS} tokens are found in d <= 3; got {n} in "
            f"d = {d}. Take some of them: Tokens(tokens.x[:20000])."
        )
    return _numbered(_linked_by_cells(x, chord))


def labels_of_inner_products(G: np.ndarray, angle: float) -> np.ndarray:
    """The cluster of every token, from the matrix of their inner products."""
    from scipy.sparse.csgraph import connected_components

    return connected_components(G >= np.cos(angle), directed=False)[1].astype(np.int64)


def _numbered(roots: np.ndarray) -> np.ndarray:
    """Labels 0, 1, ... of points, from their roots."""
    return np.unique(roots, return_inverse=True)[1]


def _along_the_circle(x: np.ndarray, angle: float) -> np.ndarray:
    """Labels of points (n, 2) of the circle: gaps larger than `angle` separate clusters."""
    theta = np.arctan2(x[:, 1], x[:, 0])
    order = np.argsort(theta, kind="stable")
    ahead = np.diff(theta[order], append=theta[order[0]] + 2 * np.pi)
    labels = np.empty(len(x), dtype=np.int64)
    labels[order] = np.concatenate([[0], np.cumsum(ahead[:-1] > angle)])
    if ahead[-1] <= angle:
        labels[labels == labels[order[-1]]] = 0
    return labels


@njit(cache=True)
def _root(parents: np.ndarray, i: int) -> int:
    """The root of element i in a union-find forest, with path halving."""
    while parents[i] != i:
        parents[i] = parents[parents[i]]
        i = parents[i]
    return i


@njit(cache=True)
def _roots(parents: np.ndarray) -> np.ndarray:
    """The roots of all elements, written into `parents`."""
    for i in range(parents.size):
        parents[i] = _root(parents, i)
    return parents


@njit(cache=True)
def _linked(x: np.ndarray, square: float) -> np.ndarray:
    """Union-find roots of points (n, d) connected by pairs of squared distance <= `square`."""
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
    """Roots (n,) that connect the same points as `_linked`, for many points in low dimension.

    All points of a grid cell are connected, and nearby cells are joined if two of their points are.
    """
    from scipy.spatial import cKDTree

    side = distance / np.sqrt(x.shape[1]) * (1 - 1e-12)
    corners, cell = np.unique(np.floor(x / side), axis=0, return_inverse=True)
    order = np.argsort(cell, kind="stable")
    begins = np.searchsorted(cell[order], np.arange(len(corners) + 1))
    pairs = cKDTree(corners).query_pairs(2 * np.sqrt(x.shape[1]) + 1e-9, output_type="ndarray")
    roots = _join_cells(np.ascontiguousarray(x[order]), begins, pairs, distance**2)
    return roots[cell]


@njit(cache=True)
def _join_cells(x: np.ndarray, begins: np.ndarray, pairs: np.ndarray, square: float) -> np.ndarray:
    """Union-find roots of cells; the `pairs` (k, 2) of cells are tested.

    The points of cell a are x[begins[a] : begins[a + 1]].
    """
    parents = np.arange(begins.size - 1)
    for k in range(len(pairs)):
        a, b = pairs[k, 0], pairs[k, 1]
        if _root(parents, a) != _root(parents, b) and _touch(x, begins, a, b, square):
            parents[_root(parents, a)] = _root(parents, b)
    return _roots(parents)


@njit(cache=True)
def _touch(x: np.ndarray, begins: np.ndarray, a: int, b: int, square: float) -> bool:
    """Whether two points of the cells a and b have a squared distance <= `square`."""
    for i in range(begins[a], begins[a + 1]):
        for j in range(begins[b], begins[b + 1]):
            if ((x[i] - x[j]) ** 2).sum() <= square:
                return True
    return False
