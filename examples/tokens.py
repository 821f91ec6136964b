r"""
256 tokens on the 2-sphere gather in clusters, which shrink at a known rate
===========================================================================

Softmax attention at :math:`\beta = 9`, from uniform tokens. A token near the cluster at c, for
clusters at :math:`c_a` of masses :math:`m_a` and :math:`w_a` proportional to
:math:`m_a e^{\beta \langle c, c_a\rangle}`, is at :math:`c + \delta` with

.. math:: \delta' = J \delta, \qquad J = P (\beta\, \mathrm{Cov} - \langle c, A\rangle) P, \qquad
    P = I - c c^T,

where A and Cov are the mean and the covariance of the :math:`c_a` under the weights w. The area of
a cluster therefore shrinks at the rate :math:`-\mathrm{tr} J`, which is 2 for an isolated cluster.
This rate is compared with the area of every cluster. Also checked: the energy never decreases (SA
is a gradient flow in a suitable metric), and its final value is that of point masses at the
clusters.

:Source: Survey, section 4.1, Theorem 1, the dynamics (SA) and the energy (3).
:Run time: 3 s, ``python examples/tokens.py``
:Look at: the dots, which gather cluster by cluster, and the decreasing number of clusters.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf

CONFIG = Path(__file__).with_suffix(".toml")
BETA = 9.0  # as in the configuration
EARLY, LATE = 15.0, 18.0  # clusters are small, and not yet so small that digits are lost


def run(out: Path) -> list[Row]:
    """Solve, write tokens.nc and .png, compare."""
    solution = mf.run_config(mf.read_config(CONFIG), out=out / f"{CONFIG.stem}.nc")
    solution.plot().savefig(out / f"{CONFIG.stem}.png")
    labels = mf.cluster_labels(solution.final)
    masses = np.bincount(labels) / len(labels)
    energy = solution.observables.interaction_energy.values
    late = (solution.t >= EARLY) & (solution.t <= LATE)
    states = [state.x for state, chosen in zip(solution, late, strict=True) if chosen]
    areas = np.array([cluster_areas(x, labels) for x in states])
    rates = np.array([shrinking_rates(centres(x, labels), masses) for x in states])
    measured = np.log(areas[0] / areas[-1]) / np.ptp(solution.t[late])
    predicted = np.trapezoid(rates, solution.t[late], axis=0) / np.ptp(solution.t[late])
    rows = [
        Row(f"shrinking of the cluster of {mass * len(labels):.0f}", m, p, 1e-5, relative=True)
        for mass, m, p in zip(masses, measured.tolist(), predicted.tolist(), strict=True)
    ]
    points = float(energy_of(centres(solution.final.x, labels), masses))
    return [
        *rows,
        Row("largest loss of energy", float(max(0, -np.diff(energy).min())), 0.0, 1e-9),
        Row("energy at the end", float(energy[-1]), points, 1e-8, relative=True),
        Row("clusters at the end", len(masses), "", remark="shown"),
    ]


def centres(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The mean directions of the clusters."""
    means = np.stack([x[labels == a].mean(axis=0) for a in range(labels.max() + 1)])
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def cluster_areas(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Products of the two largest standard deviations of each cluster."""
    areas = []
    for a in range(labels.max() + 1):
        cluster = x[labels == a]
        spread = np.linalg.svd(cluster - cluster.mean(axis=0), compute_uv=False)
        areas.append(spread[0] * spread[1] / len(cluster))
    return np.array(areas)


def shrinking_rates(points: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """-tr J of the clusters at these points."""
    rates = []
    for c in points:
        weights = masses * np.exp(BETA * (points @ c - 1))
        weights /= weights.sum()
        attention = weights @ points
        projected = (points - attention) - np.outer((points - attention) @ c, c)
        variance = weights @ (projected**2).sum(axis=1)
        rates.append(2 * (c @ attention) - BETA * variance)
    return np.array(rates)


def energy_of(points: np.ndarray, masses: np.ndarray) -> float:
    """(1 / 2 beta) sum_ab m_a m_b e^(beta <c_a, c_b>)."""
    return masses @ np.exp(BETA * points @ points.T) @ masses / (2 * BETA)


if __name__ == "__main__":
    run_alone(__doc__, run)
