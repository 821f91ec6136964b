"""The circle S^1: Fourier coefficients c_k = int e^{-ik theta} dmu, k = 0, ..., degree."""

from collections.abc import Callable
from functools import cached_property

import numpy as np

from ..core.checks import positive, real_array, whole_number
from ..lowlevel.fourier import good_length, to_coefficients, to_values
from . import circle_points, kernel_estimate
from .characteristics.circle import CircleChart
from .circle_transport import CircleTransport
from .contract import Geometry, read_only
from .density import Density
from .kernels import exponential_multipliers

__all__ = ["Circle"]


class Circle(Geometry):
    """The unit circle with Fourier modes of degree 0, ..., `degree`.

    A density mu, with respect to the uniform probability measure d theta / 2 pi, is

        mu(theta) = sum_{|k| <= degree} c_k e^{ik theta},   c_k = int e^{-ik theta} dmu,

    c_{-k} = conj(c_k), c_0 = 1 its mass, stored as c_0, ..., c_degree.

    Parameters
    ----------
    degree : int
        Highest mode, >= 1.

    Attributes
    ----------
    angles : ndarray, (N,)
        Equally spaced from 0, N >= 3 degree + 1: the angles of `points`.

    Raises
    ------
    ValueError
        If the degree is not a whole number >= 1.
    """

    dimension = 2

    def __init__(self, degree: int):
        self.degree = whole_number("Circle needs a degree that is a whole number", "degree", degree)
        self.degrees = read_only(np.arange(self.degree + 1))
        self.parseval = read_only(np.where(self.degrees == 0, 1.0, 2.0))

    def __repr__(self) -> str:
        return f"Circle(degree={self.degree})"

    def __eq__(self, other) -> bool:
        return isinstance(other, Circle) and other.degree == self.degree

    def __hash__(self) -> int:
        return hash((Circle, self.degree))

    @cached_property
    def angles(self) -> np.ndarray:
        length = good_length(3 * self.degree + 1)
        return read_only(2 * np.pi * np.arange(length) / length)

    @cached_property
    def points(self) -> np.ndarray:
        return read_only(self.embed(self.angles))

    @cached_property
    def weights(self) -> np.ndarray:
        return read_only(np.full(self.angles.size, 1 / self.angles.size))

    @property
    def axes(self) -> dict[str, np.ndarray]:
        return {"theta": self.angles}

    @staticmethod
    def embed(theta) -> np.ndarray:
        """Unit vectors (cos theta, sin theta), shape (..., 2), of angles in radians."""
        theta = real_array("Angles", theta)
        return np.stack([np.cos(theta), np.sin(theta)], axis=-1)

    # Densities -----------------------------------------------------------------------------

    def uniform(self) -> Density:
        """The uniform density: the constant 1."""
        return self.fourier([1.0])

    def density(self, f: Callable[[np.ndarray], np.ndarray]) -> Density:
        """The density proportional to f(theta), normalised to mass 1.

        Parameters
        ----------
        f : callable
            Maps angles in radians, an array, to values >= 0 of the same shape.

        Raises
        ------
        ValueError
            If f returns another shape, values that are not finite or negative, or mass 0.

        Warns
        -----
        UnresolvedWarning
            If the highest modes are not small: f needs a higher degree.
        """
        density = self.density_of_values(f(self.angles.copy()), "f(theta)")
        density.warn_if_unresolved()
        return density

    def fourier(self, coefficients) -> Density:
        """The density with Fourier coefficients c_0 = 1, c_1, ..., filled up with zeros.

        Raises
        ------
        ValueError
            If there are more than degree + 1, c_0 is not 1, or the density is negative
            somewhere.
        """
        coefficients = np.atleast_1d(np.asarray(coefficients, dtype=complex))
        if coefficients.shape[-1] > self.degree + 1:
            raise ValueError(
                f"{self!r} holds c_0, ..., c_{self.degree}; got {coefficients.shape[-1]} "
                f"coefficients. Use Circle(degree={coefficients.shape[-1] - 1})."
            )
        return Density(self, self.resample(coefficients, self.degree)).checked_positive()

    def von_mises(self, mean: float, concentration: float) -> Density:
        """exp(concentration cos(theta - mean)) / I_0: c_k = e^{-ik mean} I_k / I_0.

        Parameters
        ----------
        mean : float
            Mean direction in radians.
        concentration : float
            >= 0; 0 is the uniform density.
        """
        given = real_array("mean and concentration", [mean, concentration])
        if given.shape != (2,) or not np.isfinite(given).all() or given[1] < 0:
            raise ValueError(
                "von_mises expects a finite mean and a finite concentration >= 0; got "
                f"mean = {mean!r}, concentration = {concentration!r}. For an ensemble: "
                "Density.stack."
            )
        multipliers = exponential_multipliers(concentration, self.degree, 2)
        phases = np.exp(-1j * self.degrees * mean)
        density = Density(self, phases * multipliers / multipliers[0])
        density.warn_if_unresolved()
        return density

    def perturbed(self, amplitude: float, *, rng, degrees=None) -> Density:
        """The uniform density plus a random perturbation: c_k = amplitude (X + iY)/2.

        X and Y are independent standard normal numbers for each k.

        Parameters
        ----------
        amplitude : float
            Standard deviation of the cosine and sine coefficients.
        rng : numpy.random.Generator or seed
            The same seed gives the same density for every degree of the circle.
        degrees : sequence of int, optional
            The k to perturb; by default 1, ..., min(8, degree).

        Raises
        ------
        ValueError
            If a degree is outside 1, ..., degree, or the density is negative somewhere.
        """
        amplitude = float(real_array("The amplitude", amplitude))
        chosen = self.chosen_degrees(degrees)
        noise = np.random.default_rng(rng).standard_normal((chosen.size, 2))
        coefficients = np.zeros(self.degree + 1, dtype=complex)
        coefficients[0] = 1
        coefficients[chosen] = amplitude * (noise[:, 0] + 1j * noise[:, 1]) / 2
        return Density(self, coefficients).checked_positive()

    def estimate(self, sample, bandwidth: float | None = None) -> Density:
        """A smooth density from data: the empirical measure after a short heat flow.

            c_k = e^{-k^2 bandwidth^2 / 2} (1/n) sum_j e^{-ik theta_j}

        a kernel estimate with the wrapped normal kernel, hence positive.

        Parameters
        ----------
        sample : array or path
            Angles (n,) in radians, unit vectors (n, 2), or a .npy or .csv file of either.
        bandwidth : float, optional
            Standard deviation of the kernel in radians. By default the plug-in rule of Botev,
            Grotowski and Kroese on the circle; see `kernel_estimate.plug_in_bandwidth`.

        Raises
        ------
        ValueError
            For fewer than 2 points, values that are not finite, vectors that are not of unit
            length, or a bandwidth <= 0.

        Warns
        -----
        UnresolvedWarning
            If the bandwidth is too small for the degree: about degree < 6 / bandwidth.
        """
        angles = kernel_estimate.checked_angles(sample)
        modes = circle_points.empirical_coefficients(angles, self.degree)
        if bandwidth is None:
            bandwidth = kernel_estimate.plug_in_bandwidth(angles)
        positive(bandwidth=bandwidth)
        density = Density(self, modes * np.exp(-0.5 * (self.degrees * bandwidth) ** 2))
        density.warn_if_unresolved()
        return density

    # The contract --------------------------------------------------------------------------

    def with_degree(self, degree: int) -> "Circle":
        return Circle(degree)

    def with_modes(self, modes: int) -> "Circle":
        return Circle(modes - 1)

    def resample(self, coefficients: np.ndarray, degree: int) -> np.ndarray:
        kept = min(coefficients.shape[-1], degree + 1)
        result = np.zeros((*coefficients.shape[:-1], degree + 1), dtype=complex)
        result[..., :kept] = coefficients[..., :kept]
        return result

    def to_values(self, coefficients: np.ndarray) -> np.ndarray:
        return to_values(coefficients, self.angles.size)

    def to_coefficients(self, values: np.ndarray) -> np.ndarray:
        return to_coefficients(values, self.degree)

    def at(self, coefficients: np.ndarray, points: np.ndarray) -> np.ndarray:
        angles = np.arctan2(points[..., 1], points[..., 0])
        return circle_points.evaluate(coefficients, angles)

    def moment(self, coefficients: np.ndarray, k: int) -> np.ndarray:
        """int e^{ik theta} dmu, complex; 0 beyond the degree."""
        if abs(k) > self.degree:
            return np.zeros(coefficients.shape[:-1], dtype=complex)
        return np.conj(coefficients[..., k]) if k >= 0 else coefficients[..., -k]

    def scalar_moment(self, coefficients: np.ndarray, k: int) -> np.ndarray:
        return self.moment(coefficients, k)

    def rotate(self, coefficients: np.ndarray, rotation: float) -> np.ndarray:
        """Rotation by an angle in radians, anticlockwise."""
        angle = real_array("The angle of a rotation", rotation)
        if angle.shape != () or not np.isfinite(angle):
            raise ValueError(f"rotate expects one finite angle in radians; got {rotation!r}.")
        return coefficients * np.exp(-1j * self.degrees * angle)

    def sample(self, coefficients: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        return self.embed(circle_points.sample_angles(coefficients, n, rng))

    def chart(self, limit: np.ndarray) -> CircleChart:
        return CircleChart(self, limit)

    def transport(self, attraction, normaliser, members) -> CircleTransport:
        return CircleTransport(attraction, normaliser, members)
