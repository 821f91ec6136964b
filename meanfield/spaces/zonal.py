"""Axisymmetric densities on the unit sphere of R^d, for any d."""

from collections.abc import Callable, Sequence
from math import lgamma, log
from typing import Any

import numpy as np

from ..core.cached import cached_property
from ..core.checks import check_memory, fitting, real_array, whole_number
from ..core.dual import differentiable
from ..core.errors import MeanfieldError
from ..lowlevel.compilation import njit
from ..lowlevel.legendre import recurrence, values_at_the_pole
from .chart import Multipliers, NodeChart, Nodes, graded_rule
from .clusters import MEAN_ROUNDING, Cluster, cap_at
from .contract import Space, Transport, read_only
from .density import Density
from .latitudes import Latitudes, sample_heights
from .transforms import ZonalGridTransforms
from .zonal_transport import zonal_bands, zonal_transport

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
    it the weights are small and p_l is large: values have a rounding error over the square root of
    the weight, and integrals of values an error eps |mu|_2, which for a cluster of concentration
    274 in d = 50 is 4e-5. `minimum` uses only nodes of weight above 2^-40, and sets values that
    are rounding errors to 0. Coefficients and moments are more accurate.
    """

    dtype = np.dtype(float)
    axisymmetric = True

    def __init__(self, dimension: int, degree: int) -> None:
        self.dimension = whole_number("dimension", dimension, least=2, most=MOST_DIMENSIONS)
        self.degree = whole_number("degree", degree)
        l, d = self.degree, self.dimension
        check_memory(f"degree = {l}: a density and its values", (16, l + 1), "degree")
        if _overflows(d, l):
            raise ValueError(
                f"Zonal(dimension={d}, degree={l}): the harmonics overflow. Use a lower degree."
            )
        fine = (k for k in (4096, 2048, 1024, 512, 256, 128) if not _overflows(d, k))
        self.largest_degree = next(fine, l)
        self._set(degrees=np.arange(l + 1), parseval=np.ones(l + 1))

    @cached_property
    def _latitudes(self) -> Latitudes:
        return Latitudes(-(-(3 * self.degree + 1) // 4), self.degree, 0, self.dimension)

    @cached_property
    def _slopes(self) -> tuple[Latitudes, np.ndarray, np.ndarray, np.ndarray]:
        """Latitudes, sin(theta), up and down, for (1 - x^2) p_l' = up p_(l-1) - down p_(l+1).

        The latitudes are those of `x`, for sums to `degree` + 1.
        """
        latitudes = Latitudes(self._latitudes.x.size, self.degree + 1, 0, self.dimension)
        e, l = recurrence(self.degree + 1, 0, self.dimension), self.degrees
        sines = np.sqrt((1 - self.x) * (1 + self.x))
        return latitudes, sines, (l + self.dimension - 2) * e[:-1], l * e[1:]

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
        points[:, 0], points[:, -1] = np.sqrt((1 - self.x) * (1 + self.x)), self.x
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
            if not change <= 1e-9 * np.abs(values).max(initial=0):
                raise ValueError(
                    "f must be symmetric about the axis e_d, a function of the last coordinate: "
                    f"it changes by {change:.2g} under a rotation about it."
                )
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
        e = recurrence(self.degree + 1, 0, self.dimension)
        return _sums(np.array(points[:, -1]), np.array(series), np.zeros((0, 0)), e)

    def moment(self, coefficients: np.ndarray, k: int) -> np.ndarray:
        """int P_k(x) dmu with Legendre's polynomial, P_k(1) = 1; 0 beyond the degree."""
        if k < 0:
            raise ValueError(f"A moment has a degree k >= 0; got k = {k}.")
        if k > self.degree:
            return np.zeros(coefficients.shape[:-1])
        return coefficients[..., k] / self._sizes[k]

    def scalar_moment(self, coefficients: np.ndarray, k: int) -> np.ndarray:
        return self.moment(coefficients, k)

    def scalar_moment_change(
        self, coefficients: np.ndarray, change: np.ndarray, k: int
    ) -> np.ndarray:
        return self.moment(change, k)

    def rotate(self, coefficients: np.ndarray, rotation: Any) -> np.ndarray:
        """Coefficients after the reflection x -> -x, rotation = -1; rotation = 1 is the identity.

        Other rotations raise ValueError, as the axis is fixed.
        """
        wanted = "1 or -1, the reflection of the axis, which is fixed"
        fits = real_array("rotation", rotation).ndim == 0 and rotation in (1, -1)
        fitting("rotation", rotation, wanted, fits, advice="In d = 3, use Sphere.")
        return coefficients * float(rotation) ** self.degrees

    def sample(self, coefficients: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        x = sample_heights(coefficients, self.dimension, rng.random(n))
        across = rng.standard_normal((n, self.dimension - 1))
        across /= np.linalg.norm(across, axis=1, keepdims=True)
        radius = np.sqrt((1 - x) * (1 + x))[:, None]
        return np.concatenate([radius * across, x[:, None]], axis=1)

    def checked_point(self, point: Any, name: str = "point") -> np.ndarray:
        point = super().checked_point(point, name)
        if abs(point[-1]) < 1:
            raise ValueError(f"{name} of axisymmetric densities is e_d or -e_d; got {point}.")
        return point

    def mean_direction(self, density: Density) -> np.ndarray:
        last = np.eye(self.dimension)[-1]
        return -last if density.moment(1) < -MEAN_ROUNDING else last

    def chart(self, limit: np.ndarray) -> "ZonalNodeChart":
        return ZonalNodeChart(self, limit)

    def gradient(self, coefficients: np.ndarray) -> np.ndarray:
        latitudes, sines, up, down = self._slopes
        series = np.zeros(self.degree + 2)
        series[:-2] = (up * coefficients)[1:]
        series[1:] -= down * coefficients
        return latitudes.synthesis(series[None], 1)[:, :, 0].real / sines

    def minus_divergence(self, field: np.ndarray) -> np.ndarray:
        latitudes, sines, up, down = self._slopes
        sums = latitudes.analysis((field / sines)[..., None]).real[0]
        series = -down * sums[1:]
        series[1:] += up[1:] * sums[:-2]
        return series

    def transport(
        self, attraction: np.ndarray, normaliser: np.ndarray | None, members: int,
        pairs: bool = False,
    ) -> Transport:  # fmt: skip
        return zonal_transport(attraction, normaliser, members, self.dimension, pairs)

    def bands(self, attraction: np.ndarray) -> np.ndarray:
        return zonal_bands(attraction, self.dimension)

    def transforms(self, points: int) -> ZonalGridTransforms:
        return ZonalGridTransforms(self.degree, points, self.dimension)


class ZonalNodeChart(NodeChart):
    """Coordinate s = log tan(theta / 2) of axisymmetric nodes, theta the angle from `limit`.

    With x = <point, limit> = -tanh(s) the flow is ds/dt = -(W * mu)'(x) / (Z * mu)(x).

    Distances from `limit` and from its antipode keep their relative accuracy.
    """

    usual_nodes = 1024

    def nodes(self, count: int, degree: int, peak: float = 1.0) -> Nodes:
        s, weights = graded_rule(max(count, 2), self.space.dimension, peak)
        return s, weights, [np.arange(s.size) % 2 == 0]

    def _heights(self, coordinates: np.ndarray) -> np.ndarray:
        """Inner products <point, limit>, (n,), of nodes with these coordinates."""
        return -np.tanh(coordinates)

    def points(self, coordinates: np.ndarray) -> np.ndarray:
        across, nothing = _sech(coordinates), np.zeros((coordinates.size, self.space.dimension - 2))
        along = self._heights(coordinates) * self.limit[-1]
        return np.concatenate([across[:, None], nothing, along[:, None]], axis=1)

    def moments(self, coordinates: np.ndarray, masses: np.ndarray, degree: int) -> np.ndarray:
        e = recurrence(degree + 1, 0, self.space.dimension)
        return _moments(self._heights(coordinates) * self.limit[-1], np.array(masses), e)

    def velocity_of_nodes(
        self, coordinates: np.ndarray, masses: np.ndarray, attraction: np.ndarray,
        normaliser: np.ndarray | None,
    ) -> np.ndarray:  # fmt: skip
        x, e = self._heights(coordinates), recurrence(attraction.size, 0, self.space.dimension)
        moments = _moments(x, np.array(masses), e)
        weights = np.eye(1) if normaliser is None else (normaliser * moments)[None]
        level, slope = _sums(x, weights, (attraction * moments)[None], e)
        return -slope / level

    def velocity_tangents(
        self, coordinates: np.ndarray, masses: np.ndarray, changes: np.ndarray,
        by_masses: np.ndarray, multipliers: Multipliers, by_multipliers: Sequence[Multipliers],
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        (attraction, normaliser), x = multipliers, self._heights(coordinates)
        e = recurrence(attraction.size + 1, 0, self.space.dimension)
        dx = -(_sech(coordinates) ** 2) * changes
        moments = _moments(x, np.array(masses), e[:-1])
        derivatives = np.empty((2 + len(changes), x.size))
        slopes = [attraction * moments]
        levels = [] if normaliser is None else [normaliser * moments]
        for by, dm, (of_slope, of_level) in zip(dx, by_masses, by_multipliers, strict=True):
            moved = _moments(x, np.array(dm), e[:-1]) + _slope_moments(x, masses * by, e[:-1])
            slopes.append(attraction * moved + of_slope * moments)
            if normaliser is not None:
                levels.append(normaliser * moved + of_level * moments)
        bends, tilts = slopes[:1], levels[:1]
        derivatives = _derivatives(x, np.array(slopes), 1, e)
        by_slope = derivatives[1:] + _derivatives(x, np.array(bends), 2, e) * dx
        if normaliser is None:
            return -derivatives[0], -by_slope
        level, *by_level = _derivatives(x, np.array(levels), 0, e)
        moved = np.reshape(by_level, dx.shape) + _derivatives(x, np.array(tilts), 1, e) * dx
        v = -derivatives[0] / level
        return v, -(by_slope + v * moved) / level

    def rates(self, coordinates: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        raise MeanfieldError(
            "Axisymmetric densities stay so under zonal drifts and reactions alone; another drift, "
            "a normalisation or a feed-forward map needs all directions. Use Circle or Sphere."
        )

    def lengths(self, coordinates: np.ndarray, rates: np.ndarray) -> np.ndarray:
        return np.abs(rates) * _sech(coordinates)

    def distances(self, coordinates: np.ndarray, point: np.ndarray) -> np.ndarray:
        s = -coordinates if point @ self.limit < 0 else coordinates
        near = 2 * np.arctan(np.exp(-np.abs(s)))
        return np.where(s > 0, np.pi - near, near)

    def mean_direction(self, coordinates: np.ndarray, masses: np.ndarray) -> np.ndarray:
        mean = masses @ self._heights(coordinates)
        return -self.limit if mean < -MEAN_ROUNDING else self.limit

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
    small = np.exp(-np.abs(s))
    return 2 * small / (1 + small**2)


@njit(cache=True)
def _moments(x: np.ndarray, masses: np.ndarray, e: np.ndarray) -> np.ndarray:
    """sum_i masses_i p_l(x_i), l = 0, ..., e.size - 2."""
    total = np.zeros(e.size - 1)
    for begin in range(0, x.size, HEIGHTS_AT_ONCE):
        block, mass = x[begin : begin + HEIGHTS_AT_ONCE], masses[begin : begin + HEIGHTS_AT_ONCE]
        before, p = np.zeros(block.size), np.empty(block.size)
        for i in range(block.size):
            p[i] = mass[i]
        for l in range(total.size):
            a, b, sum_of_p = 1 / e[l + 1], e[l], 0.0
            for i in range(block.size):
                sum_of_p += p[i]
                after = a * (block[i] * p[i] - b * before[i])
                before[i], p[i] = p[i], after
            total[l] += sum_of_p
    return total


@njit(cache=True)
def _slope_moments(x: np.ndarray, weights: np.ndarray, e: np.ndarray) -> np.ndarray:
    """sum_i weights_i p_l'(x_i), l = 0, ..., e.size - 2."""
    total = np.zeros(e.size - 1)
    p, before = np.ones(x.size), np.zeros(x.size)
    slope, slope_before = np.zeros(x.size), np.zeros(x.size)
    for l in range(total.size):
        a, b, sum_of_slopes = 1 / e[l + 1], e[l], 0.0
        for i in range(x.size):
            sum_of_slopes += weights[i] * slope[i]
            after = a * (p[i] + x[i] * slope[i] - b * slope_before[i])
            slope_before[i], slope[i] = slope[i], after
            after = a * (x[i] * p[i] - b * before[i])
            before[i], p[i] = p[i], after
        total[l] = sum_of_slopes
    return total


@njit(cache=True)
def _derivatives(x: np.ndarray, series: np.ndarray, order: int, e: np.ndarray) -> np.ndarray:
    """Sums (rows, n) of series_l times the derivative of p_l, of order 0, 1 or 2, at x (n,)."""
    result = np.zeros((len(series), x.size))
    p, before = np.zeros((3, x.size)), np.zeros((3, x.size))
    p[0] = 1.0
    for l in range(series.shape[1]):
        for row in range(len(series)):
            weight, target = series[row, l], result[row]
            for i in range(x.size):
                target[i] += weight * p[order, i]
        a, b = 1 / e[l + 1], e[l]
        for k in range(order, -1, -1):
            for i in range(x.size):
                lower = k * p[k - 1, i] if k > 0 else 0.0
                after = a * (lower + x[i] * p[k, i] - b * before[k, i])
                before[k, i], p[k, i] = p[k, i], after
    return result


@njit(cache=True)
def _sums(x: np.ndarray, series: np.ndarray, potentials: np.ndarray, e: np.ndarray) -> np.ndarray:
    """Sums (rows, n): sum series_l p_l(x) for each series, then sum potentials_l p_l'(x).

    There is at most one row of `potentials`.
    """
    members, sums = len(series), np.zeros((len(series) + len(potentials), x.size))
    for begin in range(0, x.size, HEIGHTS_AT_ONCE):
        block, here = x[begin : begin + HEIGHTS_AT_ONCE], sums[:, begin : begin + HEIGHTS_AT_ONCE]
        before, p = np.zeros(block.size), np.ones(block.size)
        before_slope, p_slope = np.zeros(block.size), np.zeros(block.size)
        for l in range(max(series.shape[1], potentials.shape[1])):
            for member in range(members if l < series.shape[1] else 0):
                row, weight = here[member], series[member, l]
                for i in range(block.size):
                    row[i] += weight * p[i]
            a, b = 1 / e[l + 1], e[l]
            for member in range(len(potentials)):
                row, weight = here[members + member], potentials[member, l]
                for i in range(block.size):
                    row[i] += weight * p_slope[i]
                    after_slope = a * (p[i] + block[i] * p_slope[i] - b * before_slope[i])
                    before_slope[i], p_slope[i] = p_slope[i], after_slope
            for i in range(block.size):
                after = a * (block[i] * p[i] - b * before[i])
                before[i], p[i] = p[i], after
    return sums
