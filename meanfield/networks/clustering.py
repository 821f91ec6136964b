"""Clusters of the tokens of a layer: modes by mean-shift, and Renyi centres of sequences."""

import numpy as np

from ..states.clusters import labels_of_inner_products

REST_STEP, SAME_MODE = 1e-7, 0.01  # in bandwidths
MERGED_PATHS = 1e-5  # radians: paths that are so close have one limit
MEAN_SHIFT_STEPS, STEPS_BETWEEN_MERGERS = 2000, 10


def modes_of(x: np.ndarray, beta: float) -> np.ndarray:
    """The mode that each token reaches by mean-shift with the kernel exp(beta <x, y>), from 0.

    Parameters
    ----------
    x : ndarray, (n, d)
        Unit vectors.
    beta : float
        beta^(-1/2) is the bandwidth.

    Returns
    -------
    ndarray of int, (n,)
        Modes are numbered by the tokens that reach them, the most first.
    """
    width = beta**-0.5
    y, path = x.copy(), np.arange(len(x))  # the row of y that a token follows
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
            same = labels_of_inner_products(y @ y.T, min(MERGED_PATHS, SAME_MODE * width))
            first = np.unique(same, return_index=True)[1]
            y, path = y[first], same[path]
            moving = np.unique(same[moving])
    apart = labels_of_inner_products(y @ y.T, SAME_MODE * width)[path]
    sizes = np.bincount(apart)
    return np.argsort(np.argsort(-sizes, kind="stable"), kind="stable")[apart]


def renyi_centres(products: np.ndarray, angle: float) -> tuple[int, int]:
    """Numbers of Renyi centres and of strong ones, from inner products (n, n) of a sequence.

    A centre is farther than the angle from all centres before it, a strong one from all tokens.
    """
    near = products >= np.cos(angle)
    strong = int((~np.tril(near, -1).any(axis=1)).sum())
    centres: list[int] = []
    for j in range(len(products)):
        if not near[j, centres].any():
            centres.append(j)
    return len(centres), strong
