"""Coordinates of moving nodes on a space, which keep the relative accuracy of small distances."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import lgamma, log, pi, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dual import Dual, changes_of, value_of
from .clusters import Cluster, clusters_among, mean_direction

if TYPE_CHECKING:
    from .contract import Space

Multipliers = tuple[np.ndarray, Any]  # multipliers of W and of Z by degree; None if Z = 1
Nodes = tuple[np.ndarray, np.ndarray, list[np.ndarray]]  # coordinates, weights, halves

NEAR_MASS, FAR_MASS = 40.0, 55.0  # the rule omits masses e^-40 at theta = 0, e^-55 at the antipode


class NodeChart(ABC):
    """Coordinates on S^(d-1) about the point `limit`, at which the nodes may gather.

    Coordinates are arrays with the nodes on the first axis. A point is a unit vector (d,).

    Attributes
    ----------
    space : Space
        Space of the density; its degree is not used.
    limit : ndarray, (d,)
        Unit vector.
    usual_nodes : int
        Default number of nodes.
    smallest_w2 : float
        Smallest W2 to a Dirac that is accurate, because of rounding or the mass the rule omits.
    """

    usual_nodes: int
    smallest_w2 = 4e-11

    def __init__(self, space: "Space", limit: np.ndarray) -> None:
        self.space, self.limit = space, limit

    @abstractmethod
    def nodes(self, count: int, degree: int, peak: float = 1.0) -> Nodes:
        """Quadrature for a density of this degree: coordinates, weights, halves.

        There are about `count` nodes, or more if the degree needs them. `peak` is the maximum of
        the density. A half is a mask (n,) of every second node along one direction; with twice the
        weights it is a quadrature.
        """

    @abstractmethod
    def points(self, coordinates: np.ndarray) -> np.ndarray:
        """Unit vectors (n, d)."""

    @abstractmethod
    def moments(self, coordinates: np.ndarray, masses: np.ndarray, degree: int) -> np.ndarray:
        """Harmonic coefficients (modes,) of sum_i masses_i delta_{x_i} up to a degree."""

    @abstractmethod
    def rates(self, coordinates: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Rates of change of the coordinates under the tangential parts of velocities (n, d)."""

    @abstractmethod
    def lengths(self, coordinates: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """Speeds (n,) of the nodes, from rates of change of the coordinates."""

    @abstractmethod
    def distances(self, coordinates: np.ndarray, point: np.ndarray) -> np.ndarray:
        """Geodesic distances (n,) of the nodes to a point, in radians."""

    def projected(self, coordinates: np.ndarray) -> np.ndarray:
        """Coordinates of the nearest points of the space."""
        return coordinates

    def mean_direction(self, coordinates: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Direction (d,) of sum_i masses_i x_i; `limit` if the sum is 0 to rounding."""
        return mean_direction(self.points(coordinates), masses, self.limit)

    def relative_error(
        self, error: np.ndarray, coordinates: np.ndarray, masses: np.ndarray, finest: float
    ) -> float:
        """Root mean square of an error, relative to that of the distances to the mean direction.

        By this norm W2 to a Dirac keeps its relative accuracy, down to `finest` radians.
        """
        centre = self.mean_direction(coordinates, masses)
        squares = masses @ self.distances(coordinates, centre) ** 2
        size = masses @ self.lengths(coordinates, error) ** 2
        return float(np.sqrt(abs(size)) / max(np.sqrt(abs(squares)), finest))

    def clusters(
        self, coordinates: np.ndarray, masses: np.ndarray, *, radius: float, least: float
    ) -> list[Cluster]:
        """Clusters among the nodes, the heaviest first: see `Characteristics.clusters`."""
        return clusters_among(self.points(coordinates), masses, radius=radius, least=least)


class HarmonicChart(NodeChart):
    """Chart of nodes whose velocities under zonal drifts are sums of harmonics by degree."""

    def velocity(
        self, coordinates: np.ndarray | Dual, masses: np.ndarray | Dual,
        attraction: np.ndarray | Dual, normaliser: np.ndarray | Dual | None,
    ) -> Any:  # fmt: skip
        """Rate of change of the coordinates under grad (W * mu) / (Z * mu) at the nodes.

        `attraction` and `normaliser` are the multipliers of W and Z by degree. Either all
        arguments are `Dual`, with tangents, or none is.
        """
        arguments: Any = (coordinates, masses, attraction, normaliser)
        if not isinstance(coordinates, Dual):
            empty = np.empty((0, *coordinates.shape))
            return self.velocity_tangents(coordinates, masses, empty, empty, arguments[2:], [])[0]
        x, m, *tables = (value_of(each) for each in arguments)
        moved, dm, dW, dZ = (changes_of(each, len(coordinates.changes)) for each in arguments)
        pairs = list(zip(dW, [None] * len(dW) if normaliser is None else dZ, strict=True))
        moved = np.ascontiguousarray(moved)
        return Dual(*self.velocity_tangents(x, m, moved, dm, tuple(tables), pairs))

    @abstractmethod
    def velocity_tangents(
        self, coordinates: np.ndarray, masses: np.ndarray, changes: np.ndarray,
        by_masses: np.ndarray, multipliers: Multipliers, by_multipliers: Sequence[Multipliers],
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Velocities, and their derivatives (p, *coordinates.shape) in p directions.

        Parameters
        ----------
        coordinates, masses : as for `velocity`
        changes : ndarray, (p, *coordinates.shape)
            Tangents of the coordinates.
        by_masses : ndarray, (p, n)
            Tangents of the masses.
        multipliers : (attraction, normaliser or None)
            Multipliers of W and Z by degree.
        by_multipliers : sequence of p such pairs
            Tangents of the multipliers.
        """


class LineChart(HarmonicChart):
    """Chart with one coordinate for each node, on which harmonics are functions of one variable x.

    x is the coordinate on the circle, and <point, limit> for axisymmetric densities.
    """

    sign = 1.0  # of the rate of change of the coordinate along the derivative by x

    @abstractmethod
    def variable(self, coordinates: np.ndarray) -> np.ndarray:
        """The variable x at the nodes, (n,)."""

    def by_coordinate(self, coordinates: np.ndarray) -> np.ndarray | float:
        """Derivative of the variable x by the coordinate, (n,)."""
        return 1.0

    @abstractmethod
    def turns(self, degree: int) -> np.ndarray:
        """Factors from coefficients with respect to x to those with respect to the space."""

    @abstractmethod
    def projections(
        self, x: np.ndarray, masses: np.ndarray, slopes: np.ndarray | None, degree: int
    ) -> np.ndarray:
        """Sums of masses times conj(Y_l)(x), plus slopes times its derivative by x, (modes,)."""

    @abstractmethod
    def sums(self, x: np.ndarray, series: np.ndarray, orders: Sequence[int]) -> np.ndarray:
        """Derivatives by x, of the order of each row, of series (rows, modes), (rows, n)."""

    def moments(self, coordinates: np.ndarray, masses: np.ndarray, degree: int) -> np.ndarray:
        x = self.variable(coordinates)
        return self.turns(degree) * self.projections(x, masses, None, degree)

    def velocity_tangents(
        self, coordinates: np.ndarray, masses: np.ndarray, changes: np.ndarray,
        by_masses: np.ndarray, multipliers: Multipliers, by_multipliers: Sequence[Multipliers],
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Sums of series at the nodes and, by the product and quotient rules, their derivatives."""
        x, degree = self.variable(coordinates), multipliers[0].size - 1
        moments = self.projections(x, masses, None, degree)
        if len(changes):
            changes = self.by_coordinate(coordinates) * changes
        moved = [
            self.projections(x, dm, masses * by, degree)
            for by, dm in zip(changes, by_masses, strict=True)
        ]
        rows = self.sums(x, *velocity_series(multipliers, by_multipliers, moments, moved))
        half = len(rows) if multipliers[1] is None else len(rows) // 2
        v, dv = self.sign * rows[0], changes
        if len(changes):
            dv = self.sign * (rows[2:half] + rows[1] * changes)
        if multipliers[1] is not None:
            denominator = rows[half]
            v = v / denominator
            if len(changes):
                dv = (dv - v * (rows[half + 2 :] + rows[half + 1] * changes)) / denominator
        return v, dv


def velocity_series(
    multipliers: Multipliers, changes: Sequence[Multipliers], moments: np.ndarray,
    moved: Sequence[np.ndarray],
) -> tuple[np.ndarray, list[int]]:  # fmt: skip
    """Series (rows, modes) from which v = (W * mu)' / (Z * mu) and its tangents follow.

    The second result is the order of the derivative by x of each row. The rows are those of the
    numerator, of its derivative and of its p tangents if p > 0; then, unless Z = 1, the same of the
    denominator.

    Parameters
    ----------
    multipliers : (attraction, normaliser or None)
        Multipliers of W and Z.
    changes : sequence of p such pairs
        Tangents of the multipliers.
    moments : ndarray, (modes,)
        Coefficients of mu.
    moved : sequence of p ndarray, (modes,)
        Tangents of the coefficients.
    """
    rows, orders = [], []
    for i, order in ((0, 1), (1, 0)):
        table = multipliers[i]
        if table is not None:
            rows += [table * moments] * (2 if moved else 1)
            rows += [table * by + dt[i] * moments for by, dt in zip(moved, changes, strict=True)]
            orders += [order, order + 1, *[order] * len(moved)] if moved else [order]
    return np.array(rows), orders


def graded_rule(nodes: int, dimension: int, peak: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Quadrature of the uniform measure on S^(d-1) in the logarithm of the distance to a point.

    With the polar angle theta = 2 arctan(e^s) the points near theta = 0 lie at s -> -infinity and
    those near the antipode at s -> infinity, all with the relative accuracy of their distance, and
    the uniform measure has the density

        rho(s) = Gamma(d/2) / (sqrt(pi) Gamma((d - 1)/2)) cosh(s)^-(d - 1).

    The trapezoidal rule in a variable u with s + R tanh(s/b) = u converges exponentially: about
    half of its nodes are in the bulk |s| < b, the others equally spaced in s. A flow that leaves
    the antipode and gathers at theta = 0 shifts s, so that the rule resolves it however long it
    goes on.

    Returns
    -------
    s, weights
        s increasing, weights of sum 1, for densities with the maximum `peak`.
    """
    power = dimension - 1
    constant = lgamma(dimension / 2) - lgamma(power / 2) - log(pi) / 2
    ends = ((amount + log(peak) + constant) / power for amount in (NEAR_MASS, FAR_MASS))
    lower_end, upper_end = (y + np.log1p(np.sqrt(-np.expm1(-2 * y))) for y in ends)  # arccosh(e^y)
    bulk, margin = 3 / sqrt(power), (lower_end + upper_end) / 2
    first, last = (s + margin * np.tanh(s / bulk) for s in (-lower_end, upper_end))
    s = _solved(first + (last - first) / nodes * (np.arange(nodes) + 0.5), bulk, margin)
    slope = 1 / (1 + margin / bulk / np.cosh(s / bulk) ** 2)
    size = np.abs(s)
    log_cosh = size + np.log1p(np.exp(-2 * size)) - log(2)
    weights = slope * np.exp(-power * log_cosh)
    return s, weights / weights.sum()


def _solved(u: np.ndarray, bulk: float, margin: float) -> np.ndarray:
    """s with s + margin tanh(s / bulk) = u, by bisection."""
    low, high = u - margin, u + margin
    for _ in range(64):
        s = (low + high) / 2
        overshoots = s + margin * np.tanh(s / bulk) > u
        low, high = np.where(overshoots, low, s), np.where(overshoots, s, high)
    return (low + high) / 2
