"""The 2-sphere: coefficients c_lm = int conj(Y_lm) dmu of orders m >= 0."""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from ..core.checks import positive, real_array, whole_number
from . import kernel_estimate, sphere_points
from .characteristics.sphere import SphereChart
from .contract import Geometry, read_only
from .density import Density
from .kernels import exponential_multipliers
from .sphere_grid import SphereGrid
from .sphere_transport import SphereTransport

__all__ = ["Sphere"]


class Sphere(Geometry):
    """The unit sphere S^2 with spherical harmonics of degree 0, ..., `degree`.

    A density mu, with respect to the uniform probability measure sigma, is

        mu(x) = sum_{l <= degree} sum_{|m| <= l} c_lm Y_lm(x),   c_lm = int conj(Y_lm) dmu,

    with harmonics that are orthonormal in L2(sigma) and without the phase of Condon and
    Shortley: Y_00 = 1, Y_10 = sqrt(3) z, Y_11 = sqrt(3/2) (x + iy). As mu is real, c_{l,-m} is
    the conjugate of c_lm; those of m >= 0 are stored, order by order: c_00, c_10, c_20, ...,
    c_11, c_21, .... pyshtools calls this the complex "4pi" normalisation with csphase = 1.

    Parameters
    ----------
    degree : int
        Highest degree, >= 1; another value raises ValueError.

    Attributes
    ----------
    orders : ndarray of int, (modes,)
        The order m of every coefficient.
    grid : SphereGrid
        Heights and longitudes whose product is `points`.
    """

    dimension = 3
    largest_degree = 512
    halfway = True

    def __init__(self, degree: int):
        self.degree = whole_number("Sphere needs a degree that is a whole number", "degree", degree)
        m = np.arange(self.degree + 1)
        self.degrees = read_only(np.concatenate([np.arange(k, self.degree + 1) for k in m]))
        self.orders = read_only(sphere_points.orders_of(self.degree))
        self.parseval = read_only(np.where(self.orders == 0, 1.0, 2.0))

    def __repr__(self) -> str:
        return f"Sphere(degree={self.degree})"

    def __eq__(self, other) -> bool:
        return isinstance(other, Sphere) and other.degree == self.degree

    def __hash__(self) -> int:
        return hash((Sphere, self.degree))

    @cached_property
    def grid(self) -> SphereGrid:
        return SphereGrid(self.degree)

    @cached_property
    def points(self) -> np.ndarray:
        z, phi = self.grid.z[:, None], self.grid.longitudes
        radius = np.sqrt((1 - z) * (1 + z))
        parts = [radius * np.cos(phi), radius * np.sin(phi), np.broadcast_to(z, (z.size, phi.size))]
        return read_only(np.stack(parts, axis=-1).reshape(-1, 3))

    @cached_property
    def weights(self) -> np.ndarray:
        count = self.grid.longitudes.size
        return read_only(np.repeat(self.grid.weights / count, count))

    @property
    def axes(self) -> dict[str, np.ndarray]:
        return {"z": self.grid.z, "phi": self.grid.longitudes}

    @property
    def mode_axes(self) -> dict[str, np.ndarray]:
        return {"mode": np.arange(self.degrees.size), "l": self.degrees, "m": self.orders}

    # Densities -----------------------------------------------------------------------------

    def uniform(self) -> Density:
        """The uniform density: the constant 1."""
        return self.zonal([1.0])

    def density(self, f: Callable[..., np.ndarray]) -> Density:
        """The density proportional to f(x, y, z), normalised to mass 1.

        Parameters
        ----------
        f : callable
            Maps three arrays, the Cartesian coordinates of points of the sphere, to values
            >= 0 of their shape.

        Raises
        ------
        ValueError
            If f returns another shape, values that are not finite or negative, or mass 0.

        Warns
        -----
        UnresolvedWarning
            If the highest modes are not small: f needs a higher degree.
        """
        density = self.density_of_values(f(*self.points.T.copy()), "f(x, y, z)")
        density.warn_if_unresolved()
        return density

    def zonal(self, coefficients, axis=(0.0, 0.0, 1.0)) -> Density:
        """sum_l a_l P_l(<x, axis>) with Legendre polynomials, P_l(1) = 1, and a_0 = 1.

        Parameters
        ----------
        coefficients : array
            a_0 = 1, a_1, ..., at most degree + 1.
        axis : array, (3,)
            A unit vector; by default e_z.

        Raises
        ------
        ValueError
            If there are too many coefficients, a_0 is not 1, the axis is not a unit vector, or
            the density is negative somewhere.
        """
        a = np.atleast_1d(real_array("The coefficients", coefficients))
        if a.ndim != 1 or a.size > self.degree + 1:
            raise ValueError(
                f"{self!r} holds a_0, ..., a_{self.degree}; got coefficients of shape {a.shape}."
            )
        multipliers = np.zeros(self.degree + 1)
        multipliers[: a.size] = a / (2 * np.arange(a.size) + 1)
        return self._around(axis, multipliers).checked_positive()

    def von_mises_fisher(self, mean=(0.0, 0.0, 1.0), concentration: float = 0.0) -> Density:
        """concentration / sinh(concentration) exp(concentration <x, mean>).

        Parameters
        ----------
        mean : array, (3,)
            A unit vector.
        concentration : float
            >= 0; 0 is the uniform density.
        """
        given = real_array("concentration", concentration)
        if given.shape != () or not 0 <= given < np.inf:
            raise ValueError(
                "von_mises_fisher expects one finite concentration >= 0; got "
                f"{concentration!r}. For an ensemble: Density.stack."
            )
        multipliers = exponential_multipliers(float(given), self.degree, 3)
        density = self._around(mean, multipliers / multipliers[0])
        density.warn_if_unresolved()
        return density

    def perturbed(self, amplitude: float, *, rng, degrees=None) -> Density:
        """The uniform density plus a random perturbation.

        The coefficients of the real orthonormal harmonics, those of sqrt(2) Re Y_lm and
        sqrt(2) Im Y_lm among them, are independent normal numbers.

        Parameters
        ----------
        amplitude : float
            Their standard deviation.
        rng : numpy.random.Generator or seed
            The same seed gives the same density for every degree of the sphere.
        degrees : sequence of int, optional
            The l to perturb; by default 1, ..., min(8, degree).

        Raises
        ------
        ValueError
            If a degree is outside 1, ..., degree, or the density is negative somewhere.
        """
        amplitude, rng = float(real_array("The amplitude", amplitude)), np.random.default_rng(rng)
        coefficients = np.zeros(self.degrees.size, dtype=complex)
        coefficients[0] = 1
        for l in self.chosen_degrees(degrees):
            noise = rng.standard_normal((l + 1, 2)) * [1, -1j]
            of_degree = np.flatnonzero(self.degrees == l)  # in the order of m
            coefficients[of_degree] = amplitude * noise.sum(axis=1) / np.sqrt(2)
            coefficients[l] = amplitude * noise[0, 0]
        return Density(self, coefficients).checked_positive()

    def estimate(self, sample, bandwidth: float | None = None) -> Density:
        """A smooth density from data: the empirical measure after a short heat flow.

            c_lm = e^{-l(l+1) bandwidth^2 / 2} (1/n) sum_j conj(Y_lm(x_j))

        a kernel estimate with the heat kernel of the sphere, hence positive.

        Parameters
        ----------
        sample : Tokens, array or path
            Unit vectors (n, 3), or a .npy or .csv file of them.
        bandwidth : float, optional
            In radians. By default the minimum of the unbiased estimate of the integrated
            squared error, by cross-validation, over the modes that the degree allows.

        Raises
        ------
        ValueError
            For fewer than 2 points, values that are not finite, vectors that are not of unit
            length, or a bandwidth <= 0.

        Warns
        -----
        UnresolvedWarning
            If the bandwidth is too small for the degree.

        References
        ----------
        Rudemo, Scandinavian J. Statistics 9 (1982), least-squares cross-validation.
        """
        points = kernel_estimate.checked_vectors(sample, 3)
        masses = np.full(len(points), 1 / len(points))
        modes = sphere_points.empirical_coefficients(points, masses, self.degree)
        if bandwidth is None:
            power = np.bincount(self.degrees, self.parseval * np.abs(modes) ** 2)
            bandwidth = kernel_estimate.cross_validated_bandwidth(power, len(points))
        positive(bandwidth=bandwidth)
        density = Density(self, modes * np.exp(self.laplacian * bandwidth**2 / 2))
        density.warn_if_unresolved()
        return density

    def _around(self, axis, multipliers: np.ndarray) -> Density:
        """sum_l multipliers_l sum_m conj(Y_lm(axis)) Y_lm."""
        axis = real_array("The axis", axis)
        if axis.shape != (3,) or not abs(np.linalg.norm(axis) - 1) <= 1e-9:
            raise ValueError(f"Expected a unit vector (3,) as the axis or mean; got {axis}.")
        at_axis = sphere_points.harmonics_at(axis / np.linalg.norm(axis), self.degree)
        return Density(self, multipliers[self.degrees] * np.conj(at_axis))

    # The contract --------------------------------------------------------------------------

    def with_degree(self, degree: int) -> "Sphere":
        return Sphere(degree)

    def with_modes(self, modes: int) -> "Sphere":
        return Sphere(int(np.sqrt(2 * modes)) - 1)  # modes = (degree + 1) (degree + 2)/2

    def dirac(self, degree: int) -> float:
        return np.sqrt(2 * degree + 1)

    def resample(self, coefficients: np.ndarray, degree: int) -> np.ndarray:
        other, given = Sphere(degree), self.with_modes(coefficients.shape[-1])
        result = np.zeros((*coefficients.shape[:-1], other.degrees.size), dtype=complex)
        result[..., other.degrees <= given.degree] = coefficients[..., given.degrees <= degree]
        return result

    def to_values(self, coefficients: np.ndarray) -> np.ndarray:
        members = coefficients.reshape(-1, self.degrees.size).astype(complex)
        return self.grid.values(members).reshape(*coefficients.shape[:-1], -1)

    def to_coefficients(self, values: np.ndarray) -> np.ndarray:
        members = values.reshape(-1, self.grid.z.size, self.grid.longitudes.size)
        return self.grid.coefficients(members).reshape(*values.shape[:-1], -1)

    def at(self, coefficients: np.ndarray, points: np.ndarray) -> np.ndarray:
        members = coefficients.reshape(-1, self.degrees.size)
        values = sphere_points.evaluate(members, self.degree, points.reshape(-1, 3))
        return values.reshape((*coefficients.shape[:-1], *points.shape[:-1]))  # () for one point

    def moment(self, coefficients: np.ndarray, k: int) -> np.ndarray:
        """int conj(C_km) dmu for m = 0, ..., k, complex (*ensemble, k + 1); 0 beyond the degree.

        C_km are Racah's harmonics, Y_km / sqrt(2k + 1): C_10 = z, C_k0 = P_k(z).
        """
        if not 0 <= k <= self.degree:
            if k < 0:
                raise ValueError(f"A moment has a degree k >= 0; got k = {k}.")
            return np.zeros((*coefficients.shape[:-1], k + 1), dtype=complex)
        return coefficients[..., self.degrees == k] / np.sqrt(2 * k + 1)

    def rotate(self, coefficients: np.ndarray, rotation) -> np.ndarray:
        """Rotation by an orthogonal matrix (3, 3), or a scipy Rotation."""
        matrix = rotation.as_matrix() if hasattr(rotation, "as_matrix") else rotation
        matrix = real_array("A rotation", matrix)
        if matrix.shape != (3, 3) or not np.abs(matrix @ matrix.T - np.eye(3)).max() <= 1e-12:
            raise ValueError(f"rotate expects an orthogonal matrix (3, 3); got {matrix}.")
        members = coefficients.reshape(-1, self.degrees.size)
        rotated = [sphere_points.rotate(member, self.degree, matrix) for member in members]
        return np.reshape(rotated, coefficients.shape)

    def sample(self, coefficients: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        return sphere_points.sample_points(coefficients, self.degree, n, rng)

    def chart(self, limit: np.ndarray) -> SphereChart:
        return SphereChart(self, limit)

    def transport(self, attraction, normaliser, members) -> SphereTransport:
        return SphereTransport(attraction, normaliser, members)
