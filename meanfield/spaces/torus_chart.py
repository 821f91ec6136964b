"""Characteristics on the torus: nodes by their angles, at first on an equally spaced grid."""

import numpy as np

from ..states.points import along_circles, on_circles, turns, unit
from .chart import NodeChart, Nodes
from .clusters import MEAN_ROUNDING, Cluster, clusters_among
from .contract import Space

USUAL_NODES = {1: 4096, 2: 4096, 3: 32768}  # by the number of angles


class TorusNodeChart(NodeChart):
    """Angles (n, m) of the nodes, of which `limit` is no origin: differences keep absolute errors.

    Parameters
    ----------
    space : Torus
    limit : ndarray, (2m,)
        A point of the torus, the mean direction of nodes without one.
    """

    smallest_w2 = 3e-8

    def __init__(self, space: Space, limit: np.ndarray) -> None:
        super().__init__(space, limit)
        self._circles = space.dimension // 2
        self.usual_nodes = USUAL_NODES[self._circles]

    def nodes(self, count: int, degree: int, peak: float = 1.0) -> Nodes:
        m = self._circles
        side = max(round(count ** (1 / m)), 2 * degree + 2)
        side += side % 2
        grids = np.meshgrid(*[np.arange(side)] * m, indexing="ij")
        places = np.stack([grid.ravel() for grid in grids], axis=1)
        weights = np.full(len(places), 1 / len(places))
        return 2 * np.pi * places / side, weights, list((places % 2 == 0).T)

    def points(self, coordinates: np.ndarray) -> np.ndarray:
        return on_circles(coordinates)

    def moments(self, coordinates: np.ndarray, masses: np.ndarray, degree: int) -> np.ndarray:
        return self.space.with_degree(degree).point_masses(self.points(coordinates), masses)

    def rates(self, coordinates: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        return along_circles(self.points(coordinates), vectors)

    def lengths(self, coordinates: np.ndarray, rates: np.ndarray) -> np.ndarray:
        return np.linalg.norm(rates, axis=1)

    def distances(self, coordinates: np.ndarray, point: np.ndarray) -> np.ndarray:
        return np.linalg.norm(turns(self.points(coordinates), point), axis=1)

    def mean_direction(self, coordinates: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """The point of the mean directions of each angle; that of `limit` where there is none."""
        pairs = (masses @ self.points(coordinates)).reshape(-1, 2)
        lengths = np.linalg.norm(pairs, axis=1, keepdims=True)
        found = lengths > MEAN_ROUNDING
        directions = pairs / np.where(found, lengths, 1.0)
        return np.where(found, directions, self.limit.reshape(-1, 2)).ravel()

    def clusters(
        self, coordinates: np.ndarray, masses: np.ndarray, *, radius: float, least: float
    ) -> list[Cluster]:
        size = self._circles**0.5  # radius of the sphere on which the points are
        u = self.points(coordinates) / size
        found = clusters_among(u, masses, radius=radius / size, least=least)
        return [Cluster(unit(point.reshape(-1, 2)).ravel(), mass) for point, mass in found]
