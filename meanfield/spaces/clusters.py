"""Clusters among weighted points of a sphere: how many, where, and of which mass."""

from typing import NamedTuple

import numpy as np

ISOLATED = 0.1  # largest mass of the ring around a cluster, relative to the mass of the cluster
CENTRES_AT_ONCE = 256
MEAN_ROUNDING = 1e-12  # lengths of means below this count as 0


class Cluster(NamedTuple):
    """Isolated cap of points: its centre of mass on the sphere, (d,), and its mass."""

    point: np.ndarray
    mass: float


def mean_direction(points: np.ndarray, masses: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Direction (d,) of sum_i masses_i x_i; `otherwise` if the sum is 0 to rounding."""
    mean = masses @ points
    length = np.linalg.norm(mean)
    return mean / length if length > MEAN_ROUNDING else otherwise


def cap_at(
    point: np.ndarray, distances: np.ndarray, masses: np.ndarray, radius: float
) -> Cluster | None:
    """Cap of this radius about `point` if it is isolated, else None.

    `distances` (n,) are those of the points from `point`. See `clusters_among`.
    """
    mass = float(masses[distances < radius].sum())
    around = float(masses[distances < 2 * radius].sum())
    return Cluster(point, mass) if 0 < around <= (1 + ISOLATED) * mass else None


def clusters_among(
    points: np.ndarray, masses: np.ndarray, *, radius: float, least: float
) -> list[Cluster]:
    """Isolated caps of this radius, in radians, with at least the mass `least`, heaviest first.

    A cap is isolated if the ring around it, up to twice its radius, has at most a tenth of its
    mass. No point is counted twice.

    Cost: O(n) for each of the cells of side `radius` that the points occupy.
    """
    unassigned, clusters = masses.copy(), []
    centres, shares = _occupied(points, masses, radius)
    heights = _masses_around(centres, shares, 1.25 * radius)  # roughly those of the caps there
    for centre in centres[np.argsort(-heights, kind="stable")[: np.sum(heights >= least / 2)]]:
        for _ in range(3):
            in_cap = _distances(points, centre) < radius
            centre = mean_direction(points, np.where(in_cap, unassigned, 0), centre)
        distances = _distances(points, centre)
        cap, mass = cap_at(centre, distances, masses, radius), unassigned[distances < radius].sum()
        if cap and mass >= max(least, (1 - ISOLATED) * cap.mass):
            clusters.append(Cluster(cap.point, float(mass)))
            unassigned[distances < radius] = 0
    return sorted(clusters, key=lambda cluster: -cluster.mass)


def _distances(points: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Angles (n,) from the chord 2 sin(angle / 2), which is accurate for small angles."""
    chords = np.linalg.norm(points - centre, axis=1)
    return 2 * np.arcsin(np.minimum(chords / 2, 1.0))


def _occupied(points: np.ndarray, masses: np.ndarray, side: float) -> tuple[np.ndarray, np.ndarray]:
    """The centre of mass, on the sphere, of every cubic cell with mass in it; and its mass."""
    _, cell = np.unique(np.floor(points / side), axis=0, return_inverse=True)
    sums = np.stack([np.bincount(cell, masses * column) for column in points.T], axis=1)
    lengths, shares = np.linalg.norm(sums, axis=1), np.bincount(cell, masses)
    full = lengths > 0
    return sums[full] / lengths[full, None], shares[full]


def _masses_around(centres: np.ndarray, shares: np.ndarray, radius: float) -> np.ndarray:
    """Mass of the cells whose centres are within `radius` of each centre, (m,); in blocks."""
    sums = [
        (centres @ centres[i : i + CENTRES_AT_ONCE].T > np.cos(radius)).T @ shares
        for i in range(0, len(centres), CENTRES_AT_ONCE)
    ]
    return np.concatenate(sums) if sums else np.zeros(0)
