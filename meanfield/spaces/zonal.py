"""Axisymmetric densities on the unit sphere of R^d, for any d."""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from math import lgamma, log
from typing import Any

import numpy as np

from ..core.cached import cached_property
from ..core.checks import check_memory, real_array, require, whole_number
from ..core.dual import differentiable
from ..core.errors import MeanfieldError
from ..core.read_only import read_only
from ..lowlevel.compilation import njit
from ..lowlevel.legendre import recurrence, values_at_the_pole
from ..states.points import unit
from .chart import LineChart, Nodes, graded_rule
from .clusters import MEAN_ROUNDING, Cluster, cap_at
from .contract import Space, bands_of
from .density import Density
from .latitudes import Latitudes, sample_heights
from .linearised import GridTransport
from .transforms import ZonalGridTransforms
from .zonal_transport import PolynomialTransport

HEIGHTS_AT_ONCE = 256
LARGEST_LOG_VALUE = 300 * log(10)
JUDGED_WEIGHT = 2.0**-40  # nodes of smaller weight are not judged
VALUE_NOISE = 2.0**-50  # rounding errors of values, relative to |mu|_2 / sqrt(weight)
MOST_DIMENSIONS = 10**6


def _overflows(dimension: int, degree: int) -> bool:
    """True if p_l(1) = sqrt(dim H_l) is beyond 1e300."""
    l, d = degree, dimension
    return (lgamma(l + d) - lgamma(d) - lgamma(l + 1)) / 2 > LARGEST_LOG_VALUE


class Zonal(Space):
    """Densities on S^(d-1) that are symmetric about the axis e_d, for any d >= 2.

    With x = <token, e_d>, and p_l the orthonormal Gegenbauer polynomials,

        mu(x) = sum_{l <= degree} c_l p_l(x),   c_l = int p_l dmu,   p_0 = 1.

    p_l = sqrt(dim H_l) P_l with Legendre's P_l(1) = 1. Zonal(3, L) holds the coefficients of
    order m = 0 of Sphere(L); Zonal(2, L) the even functions of Circle(L).

    Parameters
    ----------
    dimension : int
        d, >= 2: the tokens' dimension; the space is S^(d-1).
    degree : int
        Highest degree, >= 1.

    Attributes
    ----------
    x : ndarray, (N,)
        Gauss nodes from 1 to -1: the last coordinate of `points`.

    Raises
    ------
    ValueError
        If one of the two is not a whole number in its range, or p_degree(1) would overflow, as
        for dimension 1024 from degree 980 on.

    Notes
    -----
    In high dimension nearly all of the sphere is within 1/sqrt(d) of the equator x = 0. Far from
    the equator the weights are small and p_l is large. The rounding error of a value is eps over
    the square root of its weight, and that of integrals of values is eps |mu|_2, for example 4e-5
    for a cluster of concentration 274 in d = 50. `minimum` uses only nodes of weight above 2^-40,
    and sets values below their rounding error to 0. Coefficients and moments are more accurate.
    """

    dtype = np.dtype(float)
    axisymmetric = True
    transports = PolynomialTransport, GridTransport
    grids = ZonalGridTransforms

    def __init__(self, dimension: int, degree: int) -> None:
        self.dimension = whole_number("dimension", dimension, least=2, most=MOST_DIMENSIONS)
        self.degree = whole_number("degree", degree)
        l, d = self.degree, self.dimension
        check_memory(f"degree = {l}: a density and its values", (16, l + 1), "degree")
        fits = not _overflows(d, l)
        require("degree", l, f"lower for dimension = {d}, as the harmonics overflow", fits)
        fine = (k for k in (4096, 2048, 1024, 512, 256, 128) if not _overflows(d, k))
        self.largest_degree = next(fine, l)
        zeros = {2: "", 3: "0, "}.get(d, "0, ..., 0, ")
        self.points_advice = f"unit vectors, such as (sqrt(1 - x^2), {zeros}x) for heights x"
        self._set(degrees=np.arange(l + 1), parseval=np.ones(l + 1))

    @cached_property
    def _latitudes(self) -> Latitudes:
        return Latitudes(-(-(3 * self.degree + 1) // 4), self.degree, 0, self.dimension)

    @property
    def _sines(self) -> np.ndarray:
        """Sine of the angle from the axis at the nodes `x`."""
        return np.sqrt((1 - self.x) * (1 + self.x))

    @property
    def x(self) -> np.ndarray:
        return self._latitudes.nodes

    @cached_property
    def points(self) -> np.ndarray:
        shape = (self.x.size, self.dimension)
        check_memory(
            f"points of degree {self.degree} in R^{shape[1]}", shape, "degree or dimension"
        )
        points = np.zeros(shape)
        points[:, 0], points[:, -1] = self._sines, self.x
        return read_only(points)

    @property
    def weights(self) -> np.ndarray:
        return self._latitudes.node_weights

    @property
    def axes(self) -> dict[str, np.ndarray]:
        return {"x": self.x}

    @property
    def judged(self) -> np.ndarray:
        return self.weights > JUDGED_WEIGHT

    def judged_values(self, coefficients: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Values at the points `judged`; 0 if at most VALUE_NOISE |mu|_2 / sqrt(weight)."""
        size = VALUE_NOISE * np.linalg.norm(coefficients, axis=-1)[..., None]
        hidden = np.abs(values) <= size / np.sqrt(self.weights)
        return np.where(hidden, 0.0, values)[..., self.judged]

    @property
    def next_degree(self) -> int:
        degree = super().next_degree
        return self.degree if _overflows(self.dimension, degree) else degree

    @cached_property
    def _sizes(self) -> np.ndarray:
        """p_l(1) = sqrt(dim H_l)."""
        return values_at_the_pole(self.degree, self.dimension)

    # Densities -----------------------------------------------------------------------------

    def zonal(self, coefficients: Any) -> Density:
        """sum_l a_l P_l(x) with Legendre polynomials of R^d, P_l(1) = 1, and a_0 = 1.

        Coefficients with leading axes make an ensemble.

        Raises
        ------
        ValueError
            If there are more than degree + 1, a_0 is not 1, or the density is negative
            somewhere.
        """
        a = self._padded("a", real_array("The coefficients", coefficients))
        return Density(self, a / self._sizes).checked_positive()

    def von_mises_fisher(self, concentration: float) -> Density:
        """exp(concentration x), normalised: c_l = p_l(1) lambda_l / lambda_0.

        Parameters
        ----------
        concentration : float
            Any finite number; negative ones concentrate at -e_d.
        """
        multipliers = self._exponential(concentration, -np.inf)
        return Density(self, self._sizes * multipliers).warn_if_unresolved()

    # The contract --------------------------------------------------------------------------

    def function_values(self, f: Callable[..., Any], points: np.ndarray) -> np.ndarray:
        values, mirrored = super().function_values(f, points), points.copy()
        mirrored[:, 0] *= -1
        turned = points[:, [1, 0, *range(2, self.dimension)]] if self.dimension > 2 else mirrored
        for other in (mirrored, turned):
            change = np.abs(f(other.copy()) - 1.0 * values).max(initial=0)
            needed = f"symmetric about the axis e_d: a rotation about it changes f by {change:.2g}"
            require("f", f, needed, change <= 1e-9 * np.abs(values).max(initial=0))
        return values

    def dirac(self, degree: int) -> float:
        if self.dimension == 2:
            return np.sqrt(2)
        return np.sqrt((2 * degree + self.dimension - 2) / (self.dimension - 2))

    def perturbation(self, l: int, amplitude: float, rng: np.random.Generator) -> np.ndarray:
        return amplitude * rng.standard_normal(1)

    def synthesis(self, series: np.ndarray) -> np.ndarray:
        return self._latitudes.synthesis(series, 1)[..., 0].real

    def analysis(self, values: np.ndarray) -> np.ndarray:
        return self._latitudes.analysis(values[..., None]).real

    def synthesis_at(self, series: np.ndarray, points: np.ndarray) -> np.ndarray:
        return legendre_sums(points[:, -1], series, [0] * len(series), self.dimension)

    def moment(self, coefficients: np.ndarray, k: int) -> np.ndarray:
        """int P_k(x) dmu with Legendre's polynomial, P_k(1) = 1; 0 beyond the degree."""
        require("k", k, "the degree of a moment, >= 0", k >= 0)
        if k > self.degree:
            return np.zeros(coefficients.shape[:-1])
        return coefficients[..., k] / self._sizes[k]

    def rotate(self, coefficients: np.ndarray, rotation: Any) -> np.ndarray:
        """Coefficients after the reflection x -> -x, rotation = -1; rotation = 1 is the identity.

        Other rotations raise ValueError, as the axis is fixed.
        """
        expected = "1 or -1, the reflection of the axis, which is fixed"
        fits = real_array("rotation", rotation).ndim == 0 and rotation in (1, -1)
        require("rotation", rotation, expected, fits, advice="In d = 3, use Sphere.")
        return coefficients * float(rotation) ** self.degrees

    def sample(self, coefficients: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        x = sample_heights(coefficients, self.dimension, rng.random(n))
        equatorial = unit(rng.standard_normal((n, self.dimension - 1)))
        radius = np.sqrt((1 - x) * (1 + x))[:, None]
        return np.concatenate([radius * equatorial, x[:, None]], axis=1)

    def checked_point(self, point: Any, name: str = "point") -> np.ndarray:
        point = super().checked_point(point, name)
        expected = "e_d or -e_d, the axis of the densities"
        return require(name, point, expected, abs(point[-1]) == 1)

    def mean_direction(self, density: Density) -> np.ndarray:
        last = np.eye(self.dimension)[-1]
        return -last if density.moment(1) < -MEAN_ROUNDING else last

    def chart(self, limit: np.ndarray) -> "ZonalNodeChart":
        return ZonalNodeChart(self, limit)

    def gradient(self, coefficients: np.ndarray) -> np.ndarray:
        return self._sines * legendre_sums(self.x, coefficients[None], [1], self.dimension)

    def minus_divergence(self, field: np.ndarray) -> np.ndarray:
        slopes = self.weights * self._sines * field[0]
        return legendre_moments(self.x, 0 * slopes, slopes, self.degree, self.dimension)

    def bands(self, attraction: np.ndarray) -> np.ndarray:
        """Highest degree (n,) that counts in the velocity of each potential (n, degree + 1).

        It is judged by the terms of W' = sum_l W_l dim H_l P_l' at a cluster, which in high
        dimension are far larger than W_l.
        """
        with np.errstate(divide="ignore"):
            logs = np.log(np.abs(attraction)) + np.log(-self.laplacian) + 2 * np.log(self._sizes)
        largest = logs.max(axis=1, keepdims=True)
        return bands_of(np.exp(logs - np.where(np.isfinite(largest), largest, 0.0)))


class ZonalNodeChart(LineChart):
    """Coordinate s = log tan(theta / 2) of axisymmetric nodes, theta the angle from `limit`.

    With x = <point, limit> = -tanh(s) the flow is ds/dt = -(W * mu)'(x) / (Z * mu)(x).

    Distances from `limit` and from its antipode keep their relative accuracy.
    """

    usual_nodes = 1024
    sign = -1.0

    def nodes(self, count: int, degree: int, peak: float = 1.0) -> Nodes:
        s, weights = graded_rule(max(count, 2), self.space.dimension, peak)
        return s, weights, [np.arange(s.size) % 2 == 0]

    def variable(self, coordinates: np.ndarray) -> np.ndarray:
        return -np.tanh(coordinates)

    def by_coordinate(self, coordinates: np.ndarray) -> np.ndarray:
        return -(_sech(coordinates) ** 2)

    def turns(self, degree: int) -> np.ndarray:
        return np.sign(self.limit[-1]) ** np.arange(degree + 1)

    def points(self, coordinates: np.ndarray) -> np.ndarray:
        radii, zeros = _sech(coordinates), np.zeros((coordinates.size, self.space.dimension - 2))
        heights = -np.tanh(coordinates) * self.limit[-1]
        return np.concatenate([radii[:, None], zeros, heights[:, None]], axis=1)

    def projections(
        self, x: np.ndarray, masses: np.ndarray, slopes: np.ndarray | None, degree: int
    ) -> np.ndarray:
        return legendre_moments(x, masses, slopes, degree, self.space.dimension)

    def sums(self, x: np.ndarray, series: np.ndarray, orders: Sequence[int]) -> np.ndarray:
        return legendre_sums(x, series, orders, self.space.dimension)

    def rates(self, coordinates: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        raise MeanfieldError(
            "Axisymmetric densities stay so under zonal drifts and reactions alone; another drift, "
            "a normalisation or a feed-forward map needs all directions. Use Circle or Sphere."
        )

    def lengths(self, coordinates: np.ndarray, rates: np.ndarray) -> np.ndarray:
        return np.abs(rates) * _sech(coordinates)

    def distances(self, coordinates: np.ndarray, point: np.ndarray) -> np.ndarray:
        s = -coordinates if point @ self.limit < 0 else coordinates
        distance_to_nearer_pole = 2 * np.arctan(np.exp(-np.abs(s)))
        return np.where(s > 0, np.pi - distance_to_nearer_pole, distance_to_nearer_pole)

    def mean_direction(self, coordinates: np.ndarray, masses: np.ndarray) -> np.ndarray:
        return self.limit * (-1 if masses @ np.tanh(coordinates) > MEAN_ROUNDING else 1)

    def clusters(
        self, coordinates: np.ndarray, masses: np.ndarray, *, radius: float, least: float
    ) -> list[Cluster]:
        """Clusters at the two poles of the axis: mass at another latitude is a ring."""
        poles = (self.limit, -self.limit)
        caps = [cap_at(pole, self.distances(coordinates, pole), masses, radius) for pole in poles]
        return sorted((c for c in caps if c and c.mass >= least), key=lambda c: -c.mass)

    def relative_error(
        self, error: np.ndarray, coordinates: np.ndarray, masses: np.ndarray, finest: float
    ) -> float:
        """Root mean square error of s, a relative error of the distances to both poles."""
        return float(np.sqrt(np.mean(error**2)))


@differentiable(lambda s, ds, y: -ds * (y * np.tanh(s)))
def _sech(s: np.ndarray) -> np.ndarray:
    """1/cosh(s), without overflow for large s."""
    decay = np.exp(-np.abs(s))
    return 2 * decay / (1 + decay**2)


_recurrence = lru_cache(maxsize=16)(partial(recurrence, order=0))

# Compiled functions are called with copies: numba treats read-only arrays as another type.


def legendre_moments(
    x: np.ndarray, masses: np.ndarray, slopes: np.ndarray | None, degree: int, dimension: int
) -> np.ndarray:
    """sum_i masses_i p_l(x_i) + slopes_i p_l'(x_i), l = 0, ..., degree."""
    slopes = np.empty(0) if slopes is None else slopes
    return _moments(
        np.array(x), np.array(masses), slopes, _recurrence(degree + 1, dimension=dimension)
    )


def legendre_sums(
    x: np.ndarray, series: np.ndarray, orders: Sequence[int], dimension: int
) -> np.ndarray:
    """Sums (rows, n) of series (rows, modes) times derivatives of p_l, each row of its order."""
    e = _recurrence(series.shape[1], dimension=dimension)
    return _sums(np.array(x), np.array(series), np.array(orders), e)


@njit(cache=True)
def _moments(x: np.ndarray, masses: np.ndarray, slopes: np.ndarray, e: np.ndarray) -> np.ndarray:
    """Sums (modes,) over x (n,) of masses times p_l(x) and, if given, slopes times p_l'(x)."""
    total = np.zeros(e.size - 1)
    for begin in range(0, x.size, HEIGHTS_AT_ONCE):
        block = x[begin : begin + HEIGHTS_AT_ONCE]
        n = block.size
        p, q = masses[begin : begin + n].copy(), slopes[begin : begin + n].copy()
        p_before, q_before, slope, slope_before = np.zeros((4, n))
        for l in range(total.size):
            a, b, sum_of_p = 1 / e[l + 1], e[l], 0.0
            for i in range(n):
                sum_of_p += p[i]
                after = a * (block[i] * p[i] - b * p_before[i])
                p_before[i], p[i] = p[i], after
            if q.size > 0:
                for i in range(n):
                    sum_of_p += slope[i]
                    after = a * (q[i] + block[i] * slope[i] - b * slope_before[i])
                    slope_before[i], slope[i] = slope[i], after
                    after = a * (block[i] * q[i] - b * q_before[i])
                    q_before[i], q[i] = q[i], after
            total[l] += sum_of_p
    return total


@njit(cache=True)
def _sums(x: np.ndarray, series: np.ndarray, orders: np.ndarray, e: np.ndarray) -> np.ndarray:
    """Sums (rows, n) at x of series (rows, modes) in p_l, p_l' or p_l'' by `orders`."""
    sums, highest = np.zeros((len(series), x.size)), orders.max()
    for begin in range(0, x.size, HEIGHTS_AT_ONCE):
        block, here = x[begin : begin + HEIGHTS_AT_ONCE], sums[:, begin : begin + HEIGHTS_AT_ONCE]
        n = block.size
        p, slope, bend, p_before, slope_before, bend_before = np.zeros((6, n))
        p[:] = 1.0
        for l in range(series.shape[1]):
            for row in range(len(series)):
                weight, target, order = series[row, l], here[row], orders[row]
                values = p if order == 0 else (slope if order == 1 else bend)
                for i in range(n):
                    target[i] += weight * values[i]
            a, b = 1 / e[l + 1], e[l]
            if highest > 1:
                for i in range(n):
                    after = a * (2 * slope[i] + block[i] * bend[i] - b * bend_before[i])
                    bend_before[i], bend[i] = bend[i], after
            if highest > 0:
                for i in range(n):
                    after = a * (p[i] + block[i] * slope[i] - b * slope_before[i])
                    slope_before[i], slope[i] = slope[i], after
            for i in range(n):
                after = a * (block[i] * p[i] - b * p_before[i])
                p_before[i], p[i] = p[i], after
    return sums
