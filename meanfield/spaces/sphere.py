"""The 2-sphere: coefficients c_lm = int conj(Y_lm) dmu of orders m >= 0."""

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..core.cached import cached_property
from ..core.checks import check_memory, real_array, require, whole_number
from ..core.read_only import read_only
from ..lowlevel.fourier import good_length
from ..states.points import unit
from . import sphere_points
from .chart import HarmonicChart, Multipliers, Nodes, graded_rule
from .contract import Space, orthogonal
from .density import Density
from .latitudes import Latitudes
from .samples import checked_sample, cross_validated_bandwidth
from .sphere_transport import SphereTransport
from .transforms import SphereGridTransforms

if TYPE_CHECKING:
    import pyshtools

FEWEST_LONGITUDES = 32  # least number of longitudes for the nodes of characteristics
PROPORTIONAL_WEIGHTS = 1e-12  # relative variation of Z/W by degree, where they are proportional


class Sphere(Space):
    """The unit sphere S^2 with spherical harmonics of degree 0, ..., `degree`.

    A density mu, with respect to the uniform probability measure sigma, is

        mu(x) = sum_{l <= degree} sum_{|m| <= l} c_lm Y_lm(x),   c_lm = int conj(Y_lm) dmu,

    with harmonics that are orthonormal in L2(sigma) and without the phase of Condon and
    Shortley: Y_00 = 1, Y_10 = sqrt(3) z, Y_11 = sqrt(3/2) (x + iy). As mu is real, c_{l,-m} is
    the conjugate of c_lm; only coefficients with m >= 0 are stored, order by order: c_00, c_10,
    c_20, ..., c_11, c_21, .... pyshtools calls this the complex "4pi" normalisation with
    csphase = 1.

    Parameters
    ----------
    degree : int
        Highest degree, >= 1; another value raises ValueError.

    Attributes
    ----------
    orders : ndarray of int, (modes,)
        The order m of every coefficient.
    z, longitudes : ndarray
        Gauss latitudes from north to south, and angles, whose product is `points`.
    """

    dimension = 3
    points_advice = "unit vectors (x, y, z), such as (sqrt(1 - z^2), 0, z)"
    largest_degree = 512
    halfway = True
    transports = SphereTransport, SphereTransport
    grids = SphereGridTransforms
    _elsewhere: ClassVar[dict[str, str]] = {
        "dimension": "it is S^2; Zonal(dimension, degree) holds axisymmetric densities on S^(d-1)"
    }

    def __init__(self, degree: int) -> None:
        self.degree = whole_number("degree", degree)
        subject = f"degree = {self.degree}: a density and its values"
        check_memory(subject, (50, self.degree + 1, self.degree + 1), "degree")
        self.orders = read_only(sphere_points.orders_of(self.degree))
        degrees = sphere_points.degrees_of(self.degree)
        self._set(degrees=degrees, parseval=np.where(self.orders == 0, 1.0, 2.0))

    @cached_property
    def _latitudes(self) -> Latitudes:
        return Latitudes(-(-(3 * self.degree + 1) // 4), self.degree, self.degree)

    @property
    def z(self) -> np.ndarray:
        return self._latitudes.nodes

    @cached_property
    def longitudes(self) -> np.ndarray:
        length = good_length(3 * self.degree + 1)
        return read_only(2 * np.pi * np.arange(length) / length)

    @cached_property
    def points(self) -> np.ndarray:
        z, phi = self.z, self.longitudes
        subject = f"points of degree {self.degree}, {z.size} x {phi.size} of them"
        check_memory(subject, (8, z.size, phi.size), "degree")
        return read_only(sphere_points.on_rings(z, phi))

    @cached_property
    def weights(self) -> np.ndarray:
        count = self.longitudes.size
        return read_only(np.repeat(self._latitudes.node_weights / count, count))

    @property
    def axes(self) -> dict[str, np.ndarray]:
        return {"z": self.z, "phi": self.longitudes}

    @property
    def arguments(self) -> dict[str, np.ndarray]:
        return dict(zip("xyz", self.points.T, strict=True))

    @property
    def mode_axes(self) -> dict[str, np.ndarray]:
        return {"mode": np.arange(self.degrees.size), "l": self.degrees, "m": self.orders}

    # Densities -----------------------------------------------------------------------------

    def zonal(self, coefficients: Any, axis: Any = (0.0, 0.0, 1.0)) -> Density:
        """sum_l a_l P_l(<x, axis>) with Legendre polynomials, P_l(1) = 1, and a_0 = 1.

        Parameters
        ----------
        coefficients : array
            a_0 = 1, a_1, ..., at most degree + 1; with leading axes an ensemble.
        axis : array, (3,)
            A unit vector; by default e_z.

        Raises
        ------
        ValueError
            If there are too many coefficients, a_0 is not 1, the axis is not a unit vector, or
            the density is negative somewhere.
        """
        a = self._padded("a", real_array("The coefficients", coefficients))
        a = a / (2 * np.arange(self.degree + 1) + 1)
        return self._around("axis", axis, a).checked_positive()

    def von_mises_fisher(self, mean: Any = (0.0, 0.0, 1.0), concentration: float = 0.0) -> Density:
        """concentration / sinh(concentration) exp(concentration <x, mean>).

        Parameters
        ----------
        mean : array, (3,)
            A unit vector.
        concentration : float
            >= 0; 0 is the uniform density.
        """
        return self._around("mean", mean, self._exponential(concentration, 0)).warn_if_unresolved()

    def estimate(self, sample: Any, bandwidth: float | None = None) -> Density:
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
        points = checked_sample(sample, 3)
        masses = np.full(len(points), 1 / len(points))
        modes = sphere_points.empirical_coefficients(points, masses, self.degree)
        if bandwidth is None:
            power = np.bincount(self.degrees, self.parseval * np.abs(modes) ** 2)
            bandwidth = cross_validated_bandwidth(power, len(points))
        return self._smoothed(modes, bandwidth).warn_if_unresolved()

    def _around(self, name: str, axis: Any, multipliers: np.ndarray) -> Density:
        """Density sum_l multipliers_l sum_m conj(Y_lm(axis)) Y_lm; `name` is that of the axis."""
        at_axis = sphere_points.harmonics_at(self.checked_point(axis, name), self.degree)
        return Density(self, multipliers[..., self.degrees] * np.conj(at_axis))

    # The contract --------------------------------------------------------------------------

    def with_modes(self, modes: int) -> "Sphere":
        return Sphere(int(np.sqrt(2 * modes)) - 1)  # modes = (degree + 1) (degree + 2)/2

    def resample(self, coefficients: np.ndarray, degree: int) -> np.ndarray:
        target_degrees = self.with_degree(degree).degrees
        result = np.zeros((*coefficients.shape[:-1], target_degrees.size), dtype=complex)
        result[..., target_degrees <= self.degree] = coefficients[..., self.degrees <= degree]
        return result

    def dirac(self, degree: int) -> float:
        return np.sqrt(2 * degree + 1)

    def perturbation(self, l: int, amplitude: float, rng: np.random.Generator) -> np.ndarray:
        noise = rng.standard_normal((l + 1, 2)) * [1, -1j]
        noise[0, 1] = 0  # coefficients of order 0 are real
        return amplitude * noise.sum(axis=1) / np.append(1, np.full(l, sqrt(2)))

    def synthesis(self, series: np.ndarray) -> np.ndarray:
        length = self.longitudes.size
        spectra = self._latitudes.synthesis(series, length // 2 + 1)
        return np.fft.irfft(spectra, n=length, norm="forward")

    def analysis(self, values: np.ndarray) -> np.ndarray:
        values = values.reshape(-1, self.z.size, self.longitudes.size)
        spectra = np.fft.rfft(values, norm="forward")[..., : self.degree + 1]
        return self._latitudes.analysis(spectra)

    def synthesis_at(self, series: np.ndarray, points: np.ndarray) -> np.ndarray:
        return sphere_points.evaluate(series, self.degree, points)

    def moment(self, coefficients: np.ndarray, k: int) -> np.ndarray:
        """int conj(C_km) dmu for m = 0, ..., k, complex (*ensemble, k + 1); 0 beyond the degree.

        C_km are Racah's harmonics, Y_km / sqrt(2k + 1): C_10 = z, C_k0 = P_k(z).
        """
        if not 0 <= k <= self.degree:
            require("k", k, "the degree of a moment, >= 0", k >= 0)
            shape = (*coefficients.shape[:-1], k + 1)
            check_memory(f"k = {k}, of which a moment has {k + 1} numbers", (*shape, 2), "k")
            return np.zeros(shape, dtype=complex)
        return coefficients[..., self.degrees == k] / np.sqrt(2 * k + 1)

    def rotate(self, coefficients: np.ndarray, rotation: Any) -> np.ndarray:
        """Rotation by an orthogonal matrix (3, 3), or a scipy Rotation."""
        matrix = rotation.as_matrix() if hasattr(rotation, "as_matrix") else rotation
        matrix = orthogonal(matrix, 3, "an orthogonal matrix (3, 3)", reflections=True)
        members = coefficients.reshape(-1, self.degrees.size)
        rotated = sphere_points.rotation(self.degree, matrix)
        return np.reshape([rotated(member) for member in members], coefficients.shape)

    def sample(self, coefficients: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        return sphere_points.sample_points(coefficients, self.degree, n, rng)

    def point_masses(self, points: np.ndarray, masses: np.ndarray) -> np.ndarray:
        series = sphere_points.empirical_coefficients(points, masses, self.degree)
        series[0] = masses.sum()  # to rounding, as fast transforms are not
        return series

    def chart(self, limit: np.ndarray) -> "SphereNodeChart":
        return SphereNodeChart(self, limit)

    @cached_property
    def rings(self) -> sphere_points.Rings:
        """Transforms on the grid of the space for harmonics of any degree."""
        return sphere_points.Rings(self.z, self._latitudes.node_weights, self.longitudes.size)

    @cached_property
    def frame(self) -> np.ndarray:
        """Unit vectors to the south and to the east at `points`, (2, N, 3)."""
        x = self.points
        radius = np.hypot(x[:, 0], x[:, 1])
        cosine, sine, zero = x[:, 0] / radius, x[:, 1] / radius, np.zeros(len(x))
        south = np.stack([x[:, 2] * cosine, x[:, 2] * sine, -radius], axis=1)
        return read_only(np.stack([south, np.stack([-sine, cosine, zero], axis=1)]))

    def gradient(self, coefficients: np.ndarray) -> np.ndarray:
        return self.rings.gradient(coefficients, self.degree)

    def minus_divergence(self, field: np.ndarray) -> np.ndarray:
        return self.rings.minus_divergence(field, self.degree)


class SphereNodeChart(HarmonicChart):
    """Coordinates on S^2: unit vectors. Initial nodes are graded latitudes times longitudes."""

    usual_nodes = 16384
    space: Sphere

    def nodes(self, count: int, degree: int, peak: float = 1.0) -> Nodes:
        """Product of a graded rule for the height -tanh s along `limit` and of equal longitudes."""
        around = max(FEWEST_LONGITUDES, 4 * (degree + 1), 2 * int(sqrt(count) / 4))
        s, weights = graded_rule(max(count // around, 2), 3, peak)
        phi = 2 * np.pi * np.arange(around) / around
        upright = np.empty((s.size, around, 3))
        upright[..., 0] = np.cos(phi) / np.cosh(s)[:, None]
        upright[..., 1] = np.sin(phi) / np.cosh(s)[:, None]
        upright[..., 2] = -np.tanh(s)[:, None]
        row, column = np.indices((s.size, around)).reshape(2, -1)
        z = self.limit
        x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
        x /= np.linalg.norm(x)
        points = self.projected(upright.reshape(-1, 3) @ np.stack([x, np.cross(z, x), z]))
        return points, np.repeat(weights / around, around), [row % 2 == 0, column % 2 == 0]

    def points(self, coordinates: np.ndarray) -> np.ndarray:
        return coordinates

    def moments(self, coordinates: np.ndarray, masses: np.ndarray, degree: int) -> np.ndarray:
        return sphere_points.empirical_coefficients(coordinates, masses, degree)

    def velocity_tangents(
        self, coordinates: np.ndarray, masses: np.ndarray, changes: np.ndarray,
        by_masses: np.ndarray, multipliers: Multipliers, by_multipliers: Sequence[Multipliers],
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Gradients of W * mu, over Z * mu, by fast sums; tangents by `field_tangents`."""
        if len(changes):
            arguments = coordinates, masses, changes, by_masses, multipliers, by_multipliers
            return self.field_tangents(*arguments)[:2]
        attraction, normaliser = multipliers
        degree = attraction.size - 1
        degrees = sphere_points.degrees_of(degree)
        moments = sphere_points.empirical_coefficients(coordinates, masses, degree)
        velocity = sphere_points.gradient(attraction[degrees] * moments, degree, coordinates)
        if normaliser is not None:
            denominator = (normaliser[degrees] * moments)[None]
            velocity /= sphere_points.evaluate(denominator, degree, coordinates)[0, :, None]
        return velocity, changes

    def field_tangents(
        self, coordinates: np.ndarray, masses: np.ndarray, changes: np.ndarray,
        by_masses: np.ndarray, multipliers: Multipliers, by_multipliers: Sequence[Multipliers],
        accuracy: float = sphere_points.TRANSFORM_ACCURACY, velocity: np.ndarray | None = None,
        moments: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, float]:  # fmt: skip
        """Result of `velocity_tangents`, and the least value of Z * mu at a node (inf if Z = 1).

        Parameters
        ----------
        accuracy : float
            Accuracy of the transforms, relative to the norm.
        velocity : ndarray, (n, 3), optional
            Velocities at the nodes, computed if not given.
        moments : ndarray, (modes,), optional
            Coefficients of the measure, computed if not given.
        """
        degree = multipliers[0].size - 1
        degrees = sphere_points.degrees_of(degree)
        transforms = sphere_points.ScatteredTransforms(coordinates, degree, accuracy)
        attraction, normaliser = (m if m is None else m[degrees] for m in multipliers)
        moments = transforms.moments(masses) if moments is None else moments
        hessian = transforms.hessian(attraction * moments)
        field = self._quotient(transforms, attraction, normaliser, moments, velocity)
        gradient, denominator, _ = field
        v, dv = velocity, np.empty(changes.shape)
        if v is None:
            v = np.empty(coordinates.shape)
            sphere_points.embed_quotient(transforms.frame, gradient, denominator, v)
        tangents = transforms.parts(changes) / transforms.frame[4]
        for a, dm in enumerate(by_masses):
            moved = transforms.moment_changes(masses * tangents[a])
            if dm.any():
                moved = moved + transforms.moments(dm)
            dW, dZ = by_multipliers[a]
            by_gradient = transforms.gradient(attraction * moved + dW[degrees] * moments)
            by_denominator = np.empty(0)
            if normaliser is not None:
                by_denominator = transforms.values(normaliser * moved + dZ[degrees] * moments)
            moving = tangents[a], by_gradient, by_denominator
            sphere_points.embed_change(transforms.frame, field, hessian, moving, dv[a])
        return v, dv, np.inf if normaliser is None else float(np.min(denominator))

    @staticmethod
    def _quotient(
        transforms: sphere_points.ScatteredTransforms, attraction: Any, normaliser: Any,
        moments: np.ndarray, velocity: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
        """Gradient of W * mu (2, n), Z * mu (n,) and its gradient; the last are empty if Z = 1.

        The gradient of W * mu follows from the velocity where that is known.
        """
        denominator, slope = np.empty(0), np.empty((0, 0))
        if normaliser is not None:
            denominator = transforms.values(normaliser * moments)
        if velocity is None:
            gradient = transforms.gradient(attraction * moments)
        else:
            factor = 1.0 if normaliser is None else denominator
            gradient = transforms.parts(velocity[None])[0] * factor
        if normaliser is not None:
            ratio = normaliser[1:] / attraction[1:]
            if np.ptp(ratio) <= PROPORTIONAL_WEIGHTS * np.abs(ratio).max():  # exponential kernels
                slope = ratio[0] * gradient
            else:
                slope = transforms.gradient(normaliser * moments)
        return gradient, denominator, slope

    def rates(self, coordinates: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        radial = np.einsum("nd,nd->n", coordinates, vectors)
        return vectors - radial[:, None] * coordinates

    def lengths(self, coordinates: np.ndarray, rates: np.ndarray) -> np.ndarray:
        return np.linalg.norm(rates, axis=1)

    def distances(self, coordinates: np.ndarray, point: np.ndarray) -> np.ndarray:
        sines = np.linalg.norm(np.cross(coordinates, point), axis=1)
        return np.arctan2(sines, coordinates @ point)

    def projected(self, coordinates: np.ndarray) -> np.ndarray:
        return unit(coordinates)


# pyshtools ------------------------------------------------------------------------------------


def from_pyshtools(field: "pyshtools.SHCoeffs | pyshtools.SHGrid") -> Density:
    """Density with the coefficients, or the values on a grid, of a pyshtools object.

    Parameters
    ----------
    field : SHCoeffs or SHGrid
        Real coefficients in any normalisation and phase, which the object knows, or a real grid
        (expanded by pyshtools to its own degree). The mean value must be 1.

    Raises
    ------
    TypeError
        For another object.
    ValueError
        For a complex field, a mass other than 1, or a density that is negative somewhere.
    """
    if hasattr(field, "expand") and hasattr(field, "to_array") and not hasattr(field, "coeffs"):
        field = field.expand(normalization="4pi", csphase=1)
    fits = hasattr(field, "convert")
    require("field", field, "an SHCoeffs or SHGrid of pyshtools", fits, TypeError)
    require("field.kind", field.kind, "real, as a density is", field.kind == "real")
    real = field.convert(normalization="4pi", csphase=1).coeffs
    sphere = Sphere(real.shape[1] - 1)
    cos, sin = real[:, sphere.degrees, sphere.orders]
    coefficients = np.where(sphere.orders == 0, cos, (cos - 1j * sin) / np.sqrt(2))
    return Density(sphere, coefficients).checked_positive()


def to_pyshtools(density: Density) -> "pyshtools.SHCoeffs":
    """Real coefficients in the normalisation "4pi" with csphase = 1, pyshtools' default.

    Raises
    ------
    ImportError
        If pyshtools is not installed: it has no wheel for Python 3.13 on macOS with Apple silicon.
    TypeError
        Unless the density is a single one on S^2.
    """
    try:
        from pyshtools import SHCoeffs
    except ImportError as error:
        raise ImportError(
            "to_pyshtools needs pyshtools, which pip does not install where it has no wheel: "
            "conda install -c conda-forge pyshtools, or pip install pyshtools with a compiler."
        ) from error
    sphere = density.space if isinstance(density, Density) else None
    is_single = isinstance(sphere, Sphere) and not density.shape
    require("density", density, "a single one on a Sphere", is_single, TypeError)
    real = np.zeros((2, sphere.degree + 1, sphere.degree + 1))
    scale = np.where(sphere.orders == 0, 1, np.sqrt(2))
    real[0, sphere.degrees, sphere.orders] = scale * density.coefficients.real
    real[1, sphere.degrees, sphere.orders] = -scale * density.coefficients.imag
    return SHCoeffs.from_array(real, normalization="4pi", csphase=1)
