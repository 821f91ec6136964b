"""Clusters: of tokens by single linkage, of a density by its maxima, and the parts of a measure.

Characteristics find their own clusters (`Characteristics.clusters`). The masses of their nodes
differ by many orders of magnitude, so that a drawing of all of them would show the quadrature and
not the measure: `quantiles` and `equal_masses` choose nodes that stand for equal masses.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from ..dynamics.observables import cluster_labels
from ..spaces import Sphere
from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..states import Tokens
from ..states.clusters import MOST_PAIRED_TOKENS
from . import theme

GATHERED = 0.1  # radians: tokens and nodes nearer to a cluster belong to it
CLUSTERED = 0.75  # least share of the mass in all clusters, or
HEAVY_SHARE = 0.25  # in one of them, for clusters to be drawn
LEAST_WRITTEN_SHARE = 0.03  # of the mass: shares of lighter clusters are not written
CLUSTER_GAP = 0.3  # least distance between two such clusters
LEAST_PEAK = 2.0  # times the mean
PROMINENT = 0.1  # least dip between two separate peaks, relative to the lower one
GRID = Sphere(48)
SPACING = np.radians(2.4)  # of the points of GRID
CUBE_NEIGHBOURS = np.array(list(product((-1.0, 0.0, 1.0), repeat=3)))


@dataclass(frozen=True)
class DrawnCluster:
    """Mass in one place: its mean or maximum `point`, (d,), its share of the mass, its tokens."""

    point: np.ndarray
    mass: float
    tokens: np.ndarray | None = None


def evenly(count: int, most: int) -> np.ndarray:
    """At most `most` of the indices below `count`, evenly spread, with the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


# Tokens --------------------------------------------------------------------------------------


def clusters_of_tokens(tokens: Tokens) -> list[DrawnCluster]:
    """The clusters of a single set, the heaviest first; none if most tokens are by themselves.

    A cluster is two tokens or more, linked by single linkage, that stay within 0.1 of their mean
    in the root mean square. With no more tokens than colours, a single token may be a cluster.
    """
    kept = np.arange(len(tokens))
    if len(tokens) > MOST_PAIRED_TOKENS and tokens.dimension > 3:
        kept = evenly(len(tokens), MOST_PAIRED_TOKENS // 4)
    x, masses = tokens.x[kept], tokens.masses[kept]
    labels = cluster_labels(Tokens(x, on_sphere=tokens.on_sphere))
    least = 1 if len(tokens) <= len(theme.PALETTE) else 2
    order = np.argsort(labels, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    clusters = [_cluster(x, masses, part) for part in parts if len(part) >= least]
    clusters = [g for g in clusters if g is not None]
    whole = [DrawnCluster(g.point, g.mass / masses.sum(), kept[g.tokens]) for g in clusters]
    shares = [g.mass for g in whole]
    if sum(shares) < CLUSTERED and max(shares, default=0.0) < HEAVY_SHARE:
        return []
    return sorted(whole, key=lambda g: (-round(g.mass, 12), int(g.tokens[0])))


def separate(tokens: Tokens) -> list[DrawnCluster]:
    """Clusters on the sphere whose shares can be written without one hiding another."""
    chosen: list[DrawnCluster] = []
    for cluster in clusters_of_tokens(tokens):
        near = any(np.linalg.norm(cluster.point - other.point) < CLUSTER_GAP for other in chosen)
        if cluster.mass >= LEAST_WRITTEN_SHARE and not near:
            chosen.append(cluster)
    return chosen


def _cluster(x: np.ndarray, masses: np.ndarray, part: np.ndarray) -> DrawnCluster | None:
    """The cluster of the tokens `part`; None if it has no mass or is wider than GATHERED."""
    mass = masses[part].sum()
    if not mass > 0:
        return None
    shares = masses[part] / mass
    mean = shares @ x[part]
    wide = shares @ ((x[part] - mean) ** 2).sum(axis=1) > GATHERED**2
    return None if wide else DrawnCluster(mean, float(mass), part)


# Densities on the sphere ---------------------------------------------------------------------


def clusters_of_density(density: Density) -> list[DrawnCluster]:
    """Maxima above twice the mean, the heaviest first; two within 2.4 degrees may count as one.

    The basin of a maximum is what steepest ascent leads to it. Peaks that are parted by a dip of
    less than a tenth of the lower one count as one.
    """
    poles = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    points = np.concatenate([GRID.points, poles])
    values = density.at(points)
    peak_of = _basins(values, _neighbours(GRID.z.size, GRID.longitudes.size))
    masses = np.append(GRID.weights, [0.0, 0.0]) * values
    shares = np.bincount(peak_of, masses, minlength=values.size) / masses.sum()
    peaks = np.unique(peak_of)
    peaks = peaks[values[peaks] > LEAST_PEAK]
    if not peaks.size:
        return []
    places = _climbed(density, points[peaks])
    clusters = [
        DrawnCluster(place, float(share))
        for place, share in zip(places, shares[peaks], strict=True)
    ]
    return sorted(clusters, key=lambda cluster: -cluster.mass)


def _climbed(density: Density, places: np.ndarray) -> np.ndarray:
    """Points (n, 3) moved to nearby maxima, by a search with decreasing steps."""
    for step in SPACING * 0.6 ** np.arange(12):
        tried = places[:, None] + step * CUBE_NEIGHBOURS
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
    """Index of the peak of every point; points are visited in order of decreasing value."""
    peak = np.full(values.size, -1)  # of visited points
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


# Nodes of characteristics that stand for equal masses ------------------------------------------


def quantiles(state: Characteristics, angles: np.ndarray, count: int) -> np.ndarray:
    """Indices (count,) of the nodes at the quantiles (k + 1/2)/count, in order of their `angles`.

    The quantiles are met up to the mass of one node.
    """
    order = np.argsort(angles, kind="stable")
    below = np.cumsum(state.masses[order]) - state.masses[order] / 2
    wanted = (np.arange(count) + 0.5) / count * state.mass
    after = np.clip(np.searchsorted(below, wanted), 1, below.size - 1)
    nearer = np.abs(below[after - 1] - wanted) < np.abs(below[after] - wanted)
    return order[after - nearer]


def equal_masses(state: Characteristics, halvings: int) -> tuple[np.ndarray, np.ndarray]:
    """A node in the middle of each of 2^halvings pieces of about equal mass, and their masses.

    All nodes are halved by mass across the direction in which they spread most, then each half,
    and so on: points evenly distributed over the mass, whatever the order of the nodes.
    """
    parts = [np.arange(len(state))]
    for _ in range(halvings):
        parts = [half for part in parts for half in _halved(state, part)]
    middles = np.empty(len(parts), dtype=int)
    for i, part in enumerate(parts):
        mean = state.masses[part] @ state.points[part] / state.masses[part].sum()
        # A node of no mass next to the middle would be a poor representative of its piece.
        heavy = part[state.masses[part] > 0.1 * state.masses[part].max()]
        middles[i] = heavy[np.linalg.norm(state.points[heavy] - mean, axis=1).argmin()]
    return middles, np.array([state.masses[part].sum() for part in parts])


def _halved(state: Characteristics, part: np.ndarray) -> list[np.ndarray]:
    """The nodes `part` cut in two; each half keeps at least one node."""
    masses, points = state.masses[part], state.points[part]
    if len(part) < 2 or not masses.sum() > 0:
        return [part]
    centred = points - masses @ points / masses.sum()
    _, directions = np.linalg.eigh((centred * masses[:, None]).T @ centred)
    order = np.argsort(centred @ directions[:, -1], kind="stable")
    below = np.cumsum(masses[order])
    cut = np.clip(np.searchsorted(below, below[-1] / 2) + 1, 1, len(part) - 1)
    if cut > 1 and below[cut - 1] - below[-1] / 2 > below[-1] / 2 - below[cut - 2]:
        cut -= 1
    return [part[order[:cut]], part[order[cut:]]]
