"""Clusters of a density on the sphere: its high maxima, and the mass that belongs to each."""

from dataclasses import dataclass
from itertools import product

import numpy as np

from ..spaces import Sphere
from ..spaces.density import Density

__all__ = ["Cluster", "clusters_of"]

HIGH = 2.0  # times the mean
PROMINENT = 0.1  # a lesser dip, relative to the lower peak, does not separate two peaks
GRID = Sphere(48)
SPACING = np.radians(2.4)  # of its points
AROUND = np.array(list(product((-1.0, 0.0, 1.0), repeat=3)))


@dataclass(frozen=True)
class Cluster:
    """A local maximum at `point`, (3,), of value `height`, and its basin's share of the mass."""

    point: np.ndarray
    height: float
    share: float


def clusters_of(density: Density) -> list[Cluster]:
    """Maxima above twice the mean, the heaviest first; two within 2.4 degrees may count as one.

    The basin of a maximum is what steepest ascent leads to it. Peaks that are parted by a dip of
    less than a tenth of the lower one count as one.
    """
    poles = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    points = np.concatenate([GRID.points, poles])
    values = density.at(points)
    peak_of = _basins(values, _neighbours(GRID.grid.z.size, GRID.grid.longitudes.size))
    masses = np.append(GRID.weights, [0.0, 0.0]) * values
    shares = np.bincount(peak_of, masses, minlength=values.size) / masses.sum()
    peaks = np.unique(peak_of)
    peaks = peaks[values[peaks] > HIGH]
    if not peaks.size:
        return []
    places = _climbed(density, points[peaks])
    found = [
        Cluster(place, float(height), float(share))
        for place, height, share in zip(places, density.at(places), shares[peaks], strict=True)
    ]
    return sorted(found, key=lambda cluster: -cluster.share)


def _climbed(density: Density, places: np.ndarray) -> np.ndarray:
    """The places (n, 3) moved up to the maxima near them, by a search in steps that shrink."""
    for step in SPACING * 0.6 ** np.arange(12):
        tried = places[:, None] + step * AROUND
        tried /= np.linalg.norm(tried, axis=-1, keepdims=True)
        places = tried[np.arange(len(tried)), density.at(tried).argmax(axis=1)]
    return places


def _neighbours(rows: int, columns: int) -> list[np.ndarray]:
    """The eight neighbours of every grid point, and the first or last row for a pole."""
    index = np.arange(rows * columns).reshape(rows, columns)
    north, south = rows * columns, rows * columns + 1
    padded = np.vstack([np.full(columns, north), index, np.full(columns, south)])
    shifted = [np.roll(padded, turn, axis=1) for turn in (-1, 0, 1)]
    around = [s[1 + step : 1 + step + rows] for s in shifted for step in (-1, 0, 1)]
    table = np.stack(around, axis=-1).reshape(-1, 9)
    return [*table, index[0], index[-1]]


def _basins(values: np.ndarray, neighbours: list[np.ndarray]) -> np.ndarray:
    """Index of the peak that every point belongs to; points are met from high to low."""
    peak = np.full(values.size, -1)  # of the points met
    parent = np.arange(values.size)  # of a peak that was merged into another

    def root(i: int) -> int:
        while parent[i] != i:
            i = parent[i]
        return int(i)

    for i in np.argsort(-values, kind="stable"):
        met = [j for j in neighbours[i] if peak[j] >= 0]
        if not met:
            peak[i] = i
            continue
        peak[i] = root(peak[max(met, key=lambda j: values[j])])
        high, *others = sorted({root(peak[j]) for j in met}, key=lambda j: -values[j])
        for other in others:
            if values[other] - values[i] < PROMINENT * values[other]:
                parent[other] = high
    return np.array([root(i) for i in peak])
