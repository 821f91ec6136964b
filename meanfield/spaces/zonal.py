"""Axisymmetric densities on the unit sphere of R^d, for any d."""

from collections.abc import Callable
from functools import cached_property
from math import lgamma, log

import numpy as np

from ..core.checks import real_array, whole_number
from . import zonal_points
from .characteristics.zonal import ZonalChart
from .contract import ROUNDING, Geometry, dimension_of_harmonics, read_only
from .density import Density
from .kernels import exponential_multipliers
from .latitudes import Latitudes
from .zonal_transport import ZonalTransport

__all__ = ["Zonal"]

LARGEST = 300 * log(10)
HEAVY = 2.0**-40
MOST = 10**6


def _overflows(dimension: int, degree: int) -> bool:
    """Whether p_l(1) = sqrt(dim H_l) is beyond 1e300."""
    l, d = degree, dimension
    return (lgamma(l + d) - lgamma(d) - lgamma(l + 1)) / 2 > LARGEST


class Zonal(Geometry):
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
    In high dimension nearly all of the sphere is near the equator x = 0, within 1/sqrt(d). Far
    from it p_l is as large as the mass there is small: values have an error of rounding over
    the square root of that mass, while integrals lose nothing. `minimum` looks at nodes of
    weight 2^-40 or more only.
    """

    dtype = np.dtype(float)
    axisymmetric = True

    def __init__(self, dimension: int, degree: int):
        self.dimension = whole_number("Zonal needs a dimension", "dimension", dimension)
        self.degree = whole_number("Zonal needs a degree that is a whole number", "degree", degree)
        if not 2 <= self.dimension <= MOST:
            raise ValueError(f"Zonal needs a dimension from 2 to {MOST}; got {dimension!r}.")
        l, d = self.degree, self.dimension
        if _overflows(d, l):
            raise ValueError(
                f"Zonal(dimension={d}, degree={l}): the harmonics overflow. Use a lower degree."
            )
        fine = (k for k in (4096, 2048, 1024, 512, 256, 128) if not _overflows(d, k))
        self.largest_degree = next(fine, l)
        self.degrees = read_only(np.arange(l + 1))
        self.parseval = read_only(np.ones(l + 1))

    def __repr__(self) -> str:
        return f"Zonal(dimension={self.dimension}, degree={self.degree})"

    def __eq__(self, other) -> bool:
        mine = self.dimension, self.degree
        return isinstance(other, Zonal) and (other.dimension, other.degree) == mine

    def __hash__(self) -> int:
        return hash((Zonal, self.dimension, self.degree))

    @cached_property
    def _latitudes(self) -> Latitudes:
        return Latitudes(-(-(3 * self.degree + 1) // 4), self.degree, 0, self.dimension)

    @cached_property
    def x(self) -> np.ndarray:
        half = self._latitudes.x
        return read_only(np.concatenate([half, -half[::-1]]))

    @cached_property
    def points(self) -> np.ndarray:
        points = np.zeros((self.x.size, self.dimension))
        points[:, 0], points[:, -1] = np.sqrt((1 - self.x) * (1 + self.x)), self.x
        return read_only(points)

    @cached_property
    def weights(self) -> np.ndarray:
        half = self._latitudes.weights
        return read_only(np.concatenate([half, half[::-1]]))

    @property
    def axes(self) -> dict[str, np.ndarray]:
        return {"x": self.x}

    @property
    def judged(self) -> np.ndarray:
        return self.weights > HEAVY

    @cached_property
    def _sizes(self) -> np.ndarray:
        """p_l(1) = sqrt(dim H_l)."""
        return np.sqrt([dimension_of_harmonics(l, self.dimension) for l in self.degrees])

    # Densities -----------------------------------------------------------------------------

    def uniform(self) -> Density:
        """The uniform density: the constant 1."""
        return self.zonal([1.0])

    def density(self, f: Callable[[np.ndarray], np.ndarray]) -> Density:
        """The density proportional to f(x), x = <token, e_d>, normalised to mass 1.

        Parameters
        ----------
        f : callable
            Maps inner products in [-1, 1], an array, to values >= 0 of the same shape.

        Raises
        ------
        ValueError
            If f returns another shape, values that are not finite or negative, or mass 0.

        Warns
        -----
        UnresolvedWarning
            If the highest modes are not small: f needs a higher degree.
        """
        density = self.density_of_values(f(self.x.copy()), "f(x)")
        density.warn_if_unresolved()
        return density

    def zonal(self, coefficients) -> Density:
        """sum_l a_l P_l(x) with Legendre polynomials of R^d, P_l(1) = 1, and a_0 = 1.

        Raises
        ------
        ValueError
            If there are more than degree + 1, a_0 is not 1, or the density is negative
            somewhere.
        """
        a = np.atleast_1d(real_array("The coefficients", coefficients))
        if a.ndim != 1 or a.size > self.degree + 1:
            raise ValueError(
                f"{self!r} holds a_0, ..., a_{self.degree}; got coefficients of shape {a.shape}."
            )
        c = np.zeros(self.degree + 1)
        c[: a.size] = a / self._sizes[: a.size]
        return Density(self, c).checked_positive()

    def von_mises_fisher(self, concentration: float) -> Density:
        """exp(concentration x), normalised: c_l = p_l(1) lambda_l / lambda_0.

        Parameters
        ----------
        concentration : float
            Any finite number; negative ones concentrate at -e_d.
        """
        given = real_array("concentration", concentration)
        if given.shape != () or not np.isfinite(given):
            raise ValueError(
                "von_mises_fisher expects one finite concentration; got "
                f"{concentration!r}. For an ensemble: Density.stack."
            )
        multipliers = exponential_multipliers(float(given), self.degree, self.dimension)
        density = Density(self, self._sizes * multipliers / multipliers[0])
        density.warn_if_unresolved()
        return density

    def perturbed(self, amplitude: float, *, rng, degrees=None) -> Density:
        """The uniform density plus normal random coefficients c_l.

        Parameters
        ----------
        amplitude : float
            Their standard deviation.
        rng : numpy.random.Generator or seed
            The same seed gives the same density for every degree of the geometry.
        degrees : sequence of int, optional
            The l to perturb; by default 1, ..., min(8, degree).

        Raises
        ------
        ValueError
            If a degree is outside 1, ..., degree, or the density is negative somewhere.
        """
        chosen = self.chosen_degrees(degrees)
        amplitude = float(real_array("The amplitude", amplitude))
        coefficients = np.zeros(self.degree + 1)
        coefficients[0] = 1
        coefficients[chosen] = amplitude * np.random.default_rng(rng).standard_normal(chosen.size)
        return Density(self, coefficients).checked_positive()

    # The contract --------------------------------------------------------------------------

    def check_symmetry(self, f, points: np.ndarray, values: np.ndarray) -> None:
        mirrored = points.copy()
        mirrored[:, 0] *= -1
        turned = points[:, [1, 0, *range(2, self.dimension)]] if self.dimension > 2 else mirrored
        for other in (mirrored, turned):
            change = np.abs(np.asarray(f(other.copy())) - values).max(initial=0)
            if not change <= 1e-9 * np.abs(values).max(initial=0):
                raise ValueError(
                    "f must be symmetric about the axis e_d, a function of the last coordinate: "
                    f"it changes by {change:.2g} under a rotation about it."
                )

    def with_degree(self, degree: int) -> "Zonal":
        return Zonal(self.dimension, degree)

    def with_modes(self, modes: int) -> "Zonal":
        return Zonal(self.dimension, modes - 1)

    def dirac(self, degree: int) -> float:
        if self.dimension == 2:
            return np.sqrt(2)
        return np.sqrt((2 * degree + self.dimension - 2) / (self.dimension - 2))

    def resample(self, coefficients: np.ndarray, degree: int) -> np.ndarray:
        kept = min(coefficients.shape[-1], degree + 1)
        result = np.zeros((*coefficients.shape[:-1], degree + 1))
        result[..., :kept] = coefficients[..., :kept]
        return result

    def to_values(self, coefficients: np.ndarray) -> np.ndarray:
        series = coefficients.reshape(-1, self.degrees.size)
        values = zonal_points.to_values(self._latitudes, series)
        return values.reshape(*coefficients.shape[:-1], -1)

    def to_coefficients(self, values: np.ndarray) -> np.ndarray:
        rows = (values * self.weights).reshape(-1, self.x.size)
        series = zonal_points.to_coefficients(self._latitudes, rows)
        return series.reshape(*values.shape[:-1], -1)

    def at(self, coefficients: np.ndarray, points: np.ndarray) -> np.ndarray:
        series = coefficients.reshape(-1, self.degrees.size)
        values = zonal_points.evaluate(self._latitudes, series, points[..., -1].ravel())
        return values.reshape((*coefficients.shape[:-1], *points.shape[:-1]))  # () for one point

    def moment(self, coefficients: np.ndarray, k: int) -> np.ndarray:
        """int P_k(x) dmu with Legendre's polynomial, P_k(1) = 1; 0 beyond the degree."""
        if k < 0:
            raise ValueError(f"A moment has a degree k >= 0; got k = {k}.")
        if k > self.degree:
            return np.zeros(coefficients.shape[:-1])
        return coefficients[..., k] / self._sizes[k]

    def scalar_moment(self, coefficients: np.ndarray, k: int) -> np.ndarray:
        return self.moment(coefficients, k)

    def rotate(self, coefficients: np.ndarray, rotation) -> np.ndarray:
        """Refused but for the reflection x -> -x, rotation = -1, or 1: the axis is fixed."""
        if np.ndim(rotation) or rotation not in (1, -1):
            raise ValueError(
                "Zonal densities are symmetric about the fixed axis e_d: rotate takes 1 or -1, "
                f"the reflection of the axis; got {rotation!r}. In d = 3, use Sphere."
            )
        return coefficients * float(rotation) ** self.degrees

    def sample(self, coefficients: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        return zonal_points.sample_points(coefficients, self.dimension, n, rng)

    def checked_point(self, point) -> np.ndarray:
        point = super().checked_point(point)
        if abs(point[-1]) < 1:
            raise ValueError(f"For axisymmetric densities a point is e_d or -e_d; got {point}.")
        return point

    def mean_direction(self, density: Density) -> np.ndarray:
        last = np.eye(self.dimension)[-1]
        return -last if density.moment(1) < -ROUNDING else last

    def chart(self, limit: np.ndarray) -> ZonalChart:
        return ZonalChart(self, limit)

    def transport(self, attraction, normaliser, members) -> ZonalTransport:
        return ZonalTransport(attraction, normaliser, members, self.dimension)
