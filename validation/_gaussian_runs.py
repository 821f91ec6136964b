"""Runs of Gaussians from a grid of starts, and how far their ends are from limits."""

import numpy as np
from _gaussian_cases import attention
from _report import successful

import meanfield as mf

__all__ = [
    "EARLY",
    "LAW",
    "Runs",
    "blown_up",
    "distance",
    "followed",
    "gaps",
    "lines_of",
    "settled",
]

Runs = dict[str, list[mf.Solution]]
LAW = 1e-6
EARLY = np.append(0.0, np.geomspace(1e-2, 300, 30))  # what a path shows
AT_REST = {"until": "steady", "steady_tolerance": 1e-11}


def followed(kind: str, matrices, cov, times, **options) -> mf.Solution:
    """The run from one start, to the last of `times`."""
    model = mf.Transformer(attention(kind, *matrices))
    law = mf.Gaussian(np.zeros(2), cov)
    return mf.solve(model, law, (0, times[-1]), t_eval=times, **options)


def settled(kind: str, matrices, starts) -> list[mf.Solution]:
    """Runs that stop at rest."""
    times = np.append(EARLY, 1e7)
    runs = [followed(kind, matrices, cov, times, **AT_REST) for cov in starts]
    return [successful(run) for run in runs]


def distance(runs: list[mf.Solution], limits) -> float:
    """Of the run that is farthest from its limit, relative to the trace of that."""
    pairs = zip(runs, limits, strict=True)
    return np.max([np.abs(run.final.cov - end).max() / np.trace(end) for run, end in pairs])


def blown_up(kind: str, matrices, cov, T: float) -> mf.Solution:
    """A run past the time of blow-up, saved ever more densely towards it."""
    return followed(kind, matrices, cov, T * np.append(1 - np.geomspace(1, 1e-4, 40), 2))


def lines_of(Q, K) -> np.ndarray:
    """u u^T of the two unit vectors with <u, A u> = 0, (2, 2, 2)."""
    A = K.T @ Q
    slopes = np.roots([A[1, 1], A[0, 1] + A[1, 0], A[0, 0]]).real
    vectors = np.stack([np.ones(2), slopes]) / np.hypot(1, slopes)
    return np.stack([np.outer(u, u) for u in vectors.T])


def gaps(runs: list[mf.Solution], lines: np.ndarray) -> np.ndarray:
    """Distances of directions from the lines, (runs, lines)."""
    ends = np.array([run.final.trace_one for run in runs])
    return np.abs(ends[:, None] - lines).max(axis=(-2, -1))
