"""Densities by the method of characteristics: quadrature nodes that are transported by the flow."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..core.cached import cached_property
from ..core.checks import check_memory, positive, real_array, require, whole_number
from ..core.dual import Dual, value_of
from ..core.read_only import read_only
from ..states.contract import Arrays, State
from ..states.points import check_unit
from .clusters import Cluster
from .density import Density, checked_degree

if TYPE_CHECKING:
    from .chart import NodeChart
    from .contract import Space

COMPARED_MOMENTS = 8  # highest degree of the moments from which `quadrature_error` is computed
QUADRATURE_TOLERANCE = 1e-10  # accuracy of the initial quadrature
RESOLVED_QUADRATURE_ERROR = 1e-2
MOST_CHARACTERISTICS = 10**8


class Characteristics(State):
    """A density as weighted points that move with the noiseless flow.

    mu_t = sum_i masses_i delta_{x_i(t)}, a quadrature transported by the flow.

    Without noise the points of a density move by x' = v[mu_t](x), and a reaction changes their
    masses. A density that collapses to points cannot be resolved on a grid, but moving quadrature
    nodes represent it to rounding.

    The nodes are graded: their number per e-fold of the distance from `limit`, and from its
    antipode, is constant, and about half of them are in between. If the mass near the antipode
    arrives last, W2 to the limit is accurate down to 4e-11, on the circle down to 3e-8. For a
    density without symmetry the last mass comes from elsewhere: the run then reports the limit
    point; repeat it with this `limit`.

    Parameters
    ----------
    density : Density
        Single density on the circle or S^2, an axisymmetric one, or one on a torus.
    nodes : int, optional
        Approximate number of nodes, at most 10^8; by default 4096 on the circle, 16384 on S^2,
        1024 for axisymmetric densities, which have one node for each latitude, and on tori 4096, or
        32768 of three angles, on an equally spaced grid, whatever the `limit`. Drifts that are not
        zonal are summed over pairs of nodes, at a cost O(n^2) per evaluation: for smooth densities
        512 nodes on the circle and 4096 on S^2 suffice.
    limit : array (d,), optional
        The unit vector at which the density is expected to gather; by default its mean
        direction, or the last axis if it has none. For axisymmetric densities e_d or -e_d.

    Attributes
    ----------
    space : Space
        Space of the density.
    coordinates : ndarray
        Coordinates of the nodes: on the circle angles from the antipode of `limit`; on S^2 unit
        vectors (n, 3); for axisymmetric densities log tan(theta / 2), theta the angle from `limit`;
        on a torus angles (n, m).
    masses : ndarray, (n,)
        Masses of the nodes.
    limit : ndarray, (d,)
        Unit vector about which the nodes are graded.
    halves : ndarray of bool, (1, 2 or 3, n)
        Masks of every second node along one direction. With twice the masses each is a quadrature.

    Raises
    ------
    TypeError
        If `density` is not a Density.
    ValueError
        For an ensemble, a density that is negative somewhere, too few nodes for it (the error
        says how large its quadrature error is), or a `limit` that is no unit vector.

    Notes
    -----
    Velocities of zonal drifts are sums over a small number of harmonics, at a cost of O(n) for
    each. They are exact to rounding relative to the largest velocity and, for SA, to the largest
    Z * mu: far from all mass a relative error of 1e-16 e^(2 beta) remains. Velocities of other
    drifts are sums over pairs of nodes, as for tokens. In R^d use weighted `Tokens` as
    characteristics: see `Gaussian.quadrature`.
    """

    has_table = False  # a configuration names the law of its density
    words: ClassVar[dict[str, str]] = {
        "coordinates": "coordinates of the nodes, see Characteristics",
        "masses": "masses of the nodes",
        "w2_to_dirac": "W2 to the Dirac at limit_point, in radians",
        "limit_point": "direction of the mean",
    }
    fixed = ("masses", "half", "limit")

    space: "Space"
    chart: "NodeChart"
    coordinates: np.ndarray
    masses: np.ndarray
    limit: np.ndarray
    halves: np.ndarray

    def __init__(
        self, density: Density, *, nodes: int | None = None, limit: np.ndarray | None = None
    ) -> None:
        require("density", density, "a Density", isinstance(density, Density), TypeError)
        advice = "Choose a member: Characteristics(density[i])."
        require("density", density, "a single density", not density.shape, advice=advice)
        density.checked_positive()
        space = density.space
        if limit is None:
            limit = space.mean_direction(density)
        limit = space.checked_point(limit, "limit")
        chart = space.chart(limit)
        usual = chart.usual_nodes
        count = usual if nodes is None else whole_number("nodes", nodes, most=MOST_CHARACTERISTICS)
        check_memory(f"nodes = {count}", (2 * space.dimension + 6, count), "nodes")
        significant = np.abs(density.coefficients) > 1e-14 * space.dirac(space.degree)
        degree = int(space.degrees[significant].max())
        peak = max(1.0, float(density.values[..., space.judged].max()))
        coordinates, weights, halves = chart.nodes(count, degree, peak)
        masses = weights * density.at(chart.points(coordinates))
        self._enter(space, coordinates, masses, halves, limit)
        self._check_quadrature(density, degree, usual)

    def _enter(self, space: "Space", coordinates: Any, masses: Any, half: Any, limit: Any) -> None:
        self._set(coordinates=_array(coordinates), masses=_array(masses), limit=np.asarray(limit))
        self._set(space=space, chart=space.chart(self.limit), halves=np.array(half) > 0)

    def _check_quadrature(self, density: Density, degree: int, usual: int) -> None:
        """Raise ValueError if nodes miss moments of the density by > QUADRATURE_TOLERANCE."""
        degree = max(degree, 1)
        exact = density.resample(degree).coefficients
        moments = self.chart.moments(self.coordinates, self.masses, degree)
        error = np.abs(moments - exact).max() / np.abs(exact).max()
        if error > QUADRATURE_TOLERANCE:
            raise ValueError(
                f"{len(self)} nodes do not integrate this density: they change its moments by "
                f"{error:.1e}, expected <= {QUADRATURE_TOLERANCE:.0e}. Use more nodes, for "
                f"instance nodes = {max(usual, 4 * len(self))}; if that changes nothing, in high "
                "dimension, a less narrow density."
            )

    @property
    def dimension(self) -> int:
        return self.space.dimension

    @property
    def size_in_words(self) -> str:
        return f"{len(self)} nodes"

    def header(self) -> dict[str, Any]:
        return {"space": self.space}

    def arrays(self) -> Arrays:
        dims = ("node", "coordinate")[: self.coordinates.ndim]
        return {
            "coordinates": (dims, self.coordinates),
            "masses": (("node",), self.masses),
            "half": (("halving", "node"), self.halves.astype(np.int8)),
            "limit": (("component",), self.limit),
        }

    @classmethod
    def of_arrays(cls, space: Any, coordinates: Any, masses: Any, half: Any, limit: Any) -> Self:
        """State with these nodes, which are not checked."""
        state = object.__new__(cls)
        state._enter(space, coordinates, masses, half, limit)
        return state

    def moved(self, coordinates: Any, masses: np.ndarray | None = None) -> "Characteristics":
        """Nodes with other coordinates, and with other masses if they are given."""
        coordinates = real_array("coordinates", coordinates)
        fits = coordinates.shape == self.coordinates.shape and np.isfinite(coordinates).all()
        expected = f"finite, of shape {self.coordinates.shape}"
        require("coordinates", coordinates, expected, fits)
        if coordinates.ndim > 1 and self.space.spherical:
            check_unit("moved", value_of(coordinates))
        masses = self.masses if masses is None else masses
        return self.of_arrays(self.space, coordinates, masses, self.halves, self.limit)

    def __len__(self) -> int:
        return len(self.masses)

    def __repr__(self) -> str:
        where = f"S^{self.dimension - 1}" if self.space.spherical else repr(self.space)
        return (
            f"Characteristics({len(self)} nodes on {where}, W2 to a Dirac "
            f"{self.w2_to_dirac():.3g} rad, quadrature error {self.quadrature_error:.1e})"
        )

    # Reading -------------------------------------------------------------------------------

    @cached_property
    def points(self) -> np.ndarray:
        """Nodes as unit vectors (n, d); for an axisymmetric density they are on one meridian."""
        return read_only(self.chart.points(self.coordinates))

    @property
    def mass(self) -> np.ndarray:
        """int dmu, 1 to the accuracy of the quadrature; no model changes it."""
        return np.asarray(self.masses.sum())

    def expect(self, f: Callable[[np.ndarray], np.ndarray]) -> Any:
        """int f dmu; f maps unit vectors (n, d) to (n,) or (n, ...), with the space's symmetry."""
        return np.tensordot(self.masses, self.space.function_values(f, self.points), axes=1)

    def coefficients(self, degree: int) -> np.ndarray:
        """Harmonic coefficients (modes,) up to `degree`, as of a Density of this degree."""
        degree = whole_number("degree", degree)
        self.space.with_degree(degree)  # raises ValueError if memory cannot hold it
        return self.chart.moments(self.coordinates, self.masses, degree)

    def moment(self, k: int) -> Any:
        """Moment of degree k, as `Density.moment`."""
        k = checked_degree(k)
        check_memory(f"k = {k}: a moment by harmonics up to that", (24, abs(k)), "k")
        fine = self.space.with_degree(max(abs(int(k)), 1))
        return fine.moment(self.coefficients(fine.degree), k)

    # Where the mass is ---------------------------------------------------------------------

    @property
    def mean_direction(self) -> np.ndarray:
        """Direction of int x dmu, (d,); `limit` if the integral is 0 to rounding."""
        return self.chart.mean_direction(self.coordinates, self.masses)

    def w2_to_dirac(self, point: Any = None) -> float:
        """W2 to the Dirac at a unit vector (d,), in radians; by default at `mean_direction`.

        (sum_i masses_i theta_i^2)^(1/2) with the angles theta_i of the nodes from the point.
        """
        centre = self.mean_direction if point is None else self.space.checked_point(point)
        squares = self.masses @ self.chart.distances(self.coordinates, centre) ** 2
        return float(np.sqrt(max(squares, 0.0)))

    def clusters(self, radius: float = 0.1, least: float = 0.01) -> list[Cluster]:
        """Clusters (point, mass), the heaviest first: isolated caps of mass.

        Parameters
        ----------
        radius : float
            Radius of a cap, in radians. The ring around it, up to 2 radius, contains at most a
            tenth of its mass.
        least : float
            Least mass of a cluster.

        Notes
        -----
        Clusters of an axisymmetric density are at the poles of its axis; mass that gathers at
        another latitude is a ring, not a cluster.
        """
        radius, least = positive("radius", radius), positive("least", least)
        require("radius", radius, "<= pi/2", radius <= np.pi / 2)
        return self.chart.clusters(self.coordinates, self.masses, radius=radius, least=least)

    # Judging -------------------------------------------------------------------------------

    @property
    def resolved(self) -> bool:
        """True while the nodes resolve the density: a quadrature error <= 1e-2."""
        return self.quadrature_error <= RESOLVED_QUADRATURE_ERROR

    @cached_property
    def w2_error(self) -> float:
        """Relative change of `w2_to_dirac()` if only every second node is used."""
        w2, centre = self.w2_to_dirac(), self.mean_direction
        squares = self.masses * self.chart.distances(self.coordinates, centre) ** 2
        halved = [np.sqrt(max(2 * squares[half].sum(), 0.0)) for half in self.halves]
        return max(abs(w2 - other) for other in halved) / max(w2, np.finfo(float).tiny)

    @cached_property
    def quadrature_error(self) -> float:
        """Largest change of the moments of degree 1 to 8 if only every second node is used.

        It bounds their error if the flow is smooth; if the density splits between two clusters, it
        is about the mass of one node at the boundary.
        """
        order = COMPARED_MOMENTS
        fine, exact = self.space.with_degree(order), self.coefficients(order)
        halved = [
            self.chart.moments(self.coordinates[half], 2 * self.masses[half], order)
            for half in self.halves
        ]
        return max(fine.amplitude(m - exact, k).item() for m in halved for k in range(1, order + 1))


def _array(values: Any) -> Any:
    return values if isinstance(values, Dual) else np.asarray(values)
