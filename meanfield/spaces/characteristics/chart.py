"""What a space offers to nodes that move on it: coordinates in which they lose no digits."""

from abc import ABC, abstractmethod

import numpy as np

from .. import Geometry

__all__ = ["Chart"]

ROUNDING = 1e-12


class Chart(ABC):
    """Coordinates on S^(d-1) about the point `limit`, at which the nodes may gather.

    Coordinates are arrays with the nodes on the first axis. A point is a unit vector (d,).

    Attributes
    ----------
    geometry : Geometry
        The space; of its degree nothing is used.
    limit : ndarray, (d,)
    smallest_w2 : float
        W2 to a Dirac is lost below it: by the mass that the rule leaves out, or by rounding.
    """

    smallest_w2 = 4e-11

    def __init__(self, geometry: Geometry, limit: np.ndarray):
        self.geometry, self.limit = geometry, limit

    @abstractmethod
    def nodes(
        self, count: int, degree: int, peak: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """At most `count` nodes, if a density of this degree allows: coordinates, weights, halves.

        `peak` is the maximum of the density. A half is a mask of every second node along one
        direction; with twice the weights it is a quadrature too.
        """

    @abstractmethod
    def points(self, coordinates: np.ndarray) -> np.ndarray:
        """Unit vectors (n, d)."""

    @abstractmethod
    def moments(self, coordinates: np.ndarray, masses: np.ndarray, degree: int) -> np.ndarray:
        """Coefficients of sum_i masses_i delta_{x_i}, those of the geometry of this degree."""

    @abstractmethod
    def velocity(
        self,
        coordinates: np.ndarray,
        masses: np.ndarray,
        attraction: np.ndarray,
        normaliser: np.ndarray | None,
    ) -> np.ndarray:
        """Rate of change of the coordinates under grad (W * mu) / (Z * mu) at the nodes.

        `attraction` and `normaliser` are the multipliers of W and Z by degree.
        """

    @abstractmethod
    def lengths(self, coordinates: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """Lengths of the tangent vectors that these rates of change of the coordinates are."""

    @abstractmethod
    def distances(self, coordinates: np.ndarray, point: np.ndarray) -> np.ndarray:
        """Geodesic distances to a point, in radians."""

    def projected(self, coordinates: np.ndarray) -> np.ndarray:
        """Coordinates of the nearest points of the space."""
        return coordinates

    def mean_direction(self, coordinates: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """The direction of sum_i masses_i x_i; `limit` if that is 0 to rounding."""
        mean = masses @ self.points(coordinates)
        length = float(np.linalg.norm(mean))
        return mean / length if length > ROUNDING else self.limit

    def relative_error(
        self, error: np.ndarray, coordinates: np.ndarray, masses: np.ndarray, finest: float
    ) -> float:
        """Root mean square of an error over that of the distances to the mean direction.

        W2 to a Dirac thus keeps its relative accuracy, down to distances of `finest` radians.
        """
        centre = self.mean_direction(coordinates, masses)
        squares = masses @ self.distances(coordinates, centre) ** 2
        size = masses @ self.lengths(coordinates, error) ** 2
        return float(np.sqrt(abs(size)) / max(np.sqrt(abs(squares)), finest))
