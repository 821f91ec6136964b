"""Clusters of the tokens of a layer: modes by mean-shift, and Renyi centres of sequences."""

import numpy as np

from .quantities import directions
from .trace import Trace

REST_STEP, SAME_MODE = 1e-7, 0.01  # in bandwidths
MERGED_PATHS = 1e-5  # radians: mean-shift paths within this distance have one limit
MEAN_SHIFT_BETAS = (3.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 24.0)  # tried for clusters of words
SMALLEST_CLUSTER = 3  # tokens
MEAN_SHIFT_STEPS, STEPS_BETWEEN_MERGERS = 2000, 10


def linked(products: np.ndarray, angle: float) -> np.ndarray:
    """Labels (n,) of single linkage up to an angle, from inner products (n, n) of unit vectors."""
    from scipy.sparse.csgraph import connected_components

    return connected_components(products >= np.cos(angle), directed=False)[1].astype(np.int64)


def modes_of(x: np.ndarray, beta: float) -> np.ndarray:
    """Labels of the modes that tokens reach by mean-shift with the kernel exp(beta <x, y>).

    Parameters
    ----------
    x : ndarray, (n, d)
        Unit vectors.
    beta : float
        beta^(-1/2) is the bandwidth.

    Returns
    -------
    ndarray of int, (n,)
        Modes are numbered from 0, by decreasing number of tokens that reach them.
    """
    width = beta**-0.5
    y, path = x.copy(), np.arange(len(x))  # path[i]: the row of y that token i follows
    moving = np.arange(len(y))
    for step in range(MEAN_SHIFT_STEPS):
        new = np.exp(beta * (y[moving] @ x.T - 1)) @ x
        new /= np.linalg.norm(new, axis=1, keepdims=True)
        moves = np.linalg.norm(new - y[moving], axis=1)
        y[moving] = new
        moving = moving[moves > REST_STEP * width]
        if not len(moving):
            break
        if step % STEPS_BETWEEN_MERGERS == STEPS_BETWEEN_MERGERS - 1:
            labels = linked(y @ y.T, min(MERGED_PATHS, SAME_MODE * width))
            first = np.unique(labels, return_index=True)[1]
            y, path = y[first], labels[path]
            moving = np.unique(labels[moving])
    modes = linked(y @ y.T, SAME_MODE * width)[path]
    sizes = np.bincount(modes)
    return np.argsort(np.argsort(-sizes, kind="stable"), kind="stable")[modes]


def renyi_centres(products: np.ndarray, angle: float) -> tuple[int, int]:
    """Numbers of Renyi centres and of strong ones, from inner products (n, n) of a sequence.

    A centre is farther than the angle from all earlier centres; a strong centre, from all earlier
    tokens.
    """
    is_near = products >= np.cos(angle)
    strong = int((~np.tril(is_near, -1).any(axis=1)).sum())
    centres: list[int] = []
    for j in range(len(products)):
        if not is_near[j, centres].any():
            centres.append(j)
    return len(centres), strong


def clusters_of(trace: Trace) -> tuple[float, list[list[str]]]:
    """Clusters of words in the last layer of the first text, by mean-shift.

    Uses the inverse temperature, of `MEAN_SHIFT_BETAS`, that puts most tokens into clusters of
    three tokens or more other than the largest: for small ones all tokens form one cluster, for
    large ones each token is alone. Returns it, and the words of each cluster of three tokens or
    more, the largest first.
    """
    x, _ = directions(trace.hidden[0][-1])
    by_beta = {beta: modes_of(x, beta) for beta in MEAN_SHIFT_BETAS}

    def outside(beta: float) -> int:
        """Number of tokens in clusters other than the largest, which is the first."""
        sizes = np.bincount(by_beta[beta])[1:]
        return int(sizes[sizes >= SMALLEST_CLUSTER].sum())

    beta = max(MEAN_SHIFT_BETAS, key=outside)
    labels, numbers = by_beta[beta], list(map(str, range(len(x))))
    words = np.array(trace.words[0] if trace.words else numbers, object)
    clusters = [list(words[labels == k]) for k in range(labels.max() + 1)]
    return beta, [cluster for cluster in clusters if len(cluster) >= SMALLEST_CLUSTER]
