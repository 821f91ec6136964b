"""The circle S^1: Fourier coefficients c_k = int e^{-ik theta} dmu, k = 0, ..., degree."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.cached import cached_property
from ..core.checks import check_memory, complex_array, finite_array, plain_array, whole_number
from ..core.read_only import read_only
from ..lowlevel.compilation import njit
from ..lowlevel.fourier import good_length, to_coefficients, to_values
from ..states.points import along_circles, on_circles
from .chart import LineChart, Nodes, graded_rule
from .circle_transport import CircleTransport
from .contract import Space, bands_of, one_number, orthogonal
from .density import Density
from .samples import checked_sample, plug_in_bandwidth
from .torus_transforms import TorusGridTransforms

ANGLES_AT_ONCE = 256
INVERSION_STEPS, INVERSION_ACCURACY = 60, 1e-14  # of the inversion of a cumulative law


class Circle(Space):
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
    points_advice = "circle.embed(theta) for angles theta"
    transports = CircleTransport, CircleTransport
    grids = TorusGridTransforms

    def __init__(self, degree: int) -> None:
        self.degree = whole_number("degree", degree)
        subject = f"degree = {self.degree}: a density and its values"
        check_memory(subject, (24, self.degree + 1), "degree")
        degrees = np.arange(self.degree + 1)
        self._set(degrees=degrees, parseval=np.where(degrees == 0, 1.0, 2.0))

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
    def embed(theta: Any) -> np.ndarray:
        """Unit vectors (cos theta, sin theta), shape (..., 2), of angles in radians."""
        return on_circles(finite_array("theta", theta)[..., None])

    # Densities -----------------------------------------------------------------------------

    def fourier(self, coefficients: Any) -> Density:
        """Density with Fourier coefficients c_0 = 1, c_1, ..., padded with zeros.

        Raises
        ------
        ValueError
            If there are more than degree + 1, c_0 is not 1, or the density is negative
            somewhere.
        """
        series = self._padded("c", complex_array("coefficients", coefficients))
        return Density(self, series).checked_positive()

    def von_mises(self, mean: float, concentration: float) -> Density:
        """exp(concentration cos(theta - mean)) / I_0: c_k = e^{-ik mean} I_k / I_0.

        Parameters
        ----------
        mean : float
            Mean direction in radians.
        concentration : float
            >= 0; 0 is the uniform density.
        """
        phases = np.exp(-1j * self.degrees * one_number("mean", mean, "angle mean in radians"))
        return Density(self, phases * self._exponential(concentration, 0)).warn_if_unresolved()

    def estimate(self, sample: Any, bandwidth: float | None = None) -> Density:
        """A smooth density from data: the empirical measure after a short heat flow.

            c_k = e^{-k^2 bandwidth^2 / 2} (1/n) sum_j e^{-ik theta_j}

        a kernel estimate with the wrapped normal kernel, hence positive.

        Parameters
        ----------
        sample : array or path
            Angles (n,) in radians, unit vectors (n, 2), or a .npy or .csv file of either.
        bandwidth : float, optional
            Standard deviation of the kernel in radians. By default the plug-in rule of Botev,
            Grotowski and Kroese on the circle; see `samples.plug_in_bandwidth`.

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
        angles = checked_sample(sample, 2)
        modes = moments_of_angles(angles, np.ones(angles.size), self.degree) / angles.size
        if bandwidth is None:
            bandwidth = plug_in_bandwidth(angles)
        return self._smoothed(modes, bandwidth).warn_if_unresolved()

    # The contract --------------------------------------------------------------------------

    def perturbation(self, l: int, amplitude: float, rng: np.random.Generator) -> np.ndarray:
        cosine, sine = rng.standard_normal(2)
        return amplitude * np.array([cosine + 1j * sine]) / 2

    def synthesis(self, series: np.ndarray) -> np.ndarray:
        return to_values(series, self.angles.size)

    def analysis(self, values: np.ndarray) -> np.ndarray:
        return to_coefficients(values, self.degree)

    def synthesis_at(self, series: np.ndarray, points: np.ndarray) -> np.ndarray:
        return evaluate(series, np.arctan2(points[..., 1], points[..., 0]))

    def moment(self, coefficients: np.ndarray, k: int) -> np.ndarray:
        """int e^{ik theta} dmu, complex; 0 beyond the degree."""
        if abs(k) > self.degree:
            return np.zeros(coefficients.shape[:-1], dtype=complex)
        return np.conj(coefficients[..., k]) if k >= 0 else coefficients[..., -k]

    def rotate(self, coefficients: np.ndarray, rotation: float) -> np.ndarray:
        """Rotation by an angle in radians, anticlockwise, or by a rotation matrix (2, 2)."""
        if plain_array("rotation", rotation).ndim == 2:
            expected = "an angle, or a rotation matrix (2, 2)"
            matrix = orthogonal(rotation, 2, expected, reflections=False)
            rotation = np.arctan2(matrix[1, 0], matrix[0, 0])
        angle = one_number("rotation", rotation, "angle rotation in radians")
        return coefficients * np.exp(-1j * self.degrees * angle)

    def sample(self, coefficients: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        return self.embed(sample_angles(coefficients, n, rng))

    def point_masses(self, points: np.ndarray, masses: np.ndarray) -> np.ndarray:
        return moments_of_angles(np.arctan2(points[:, 1], points[:, 0]), masses, self.degree)

    @cached_property
    def frame(self) -> np.ndarray:
        x = self.points
        return read_only(np.stack([-x[:, 1], x[:, 0]], axis=1)[None])

    def gradient(self, coefficients: np.ndarray) -> np.ndarray:
        return to_values(1j * self.degrees * coefficients, self.angles.size)[None]

    def minus_divergence(self, field: np.ndarray) -> np.ndarray:
        return -1j * self.degrees * to_coefficients(field[0], self.degree)

    def chart(self, limit: np.ndarray) -> "CircleNodeChart":
        return CircleNodeChart(self, limit)

    def bands(self, attraction: np.ndarray) -> np.ndarray:
        return bands_of(self.degrees * attraction)


# Fourier series at any angles -----------------------------------------------------------------
# Compiled functions are called with copies: numba treats read-only arrays as another type.


def evaluate(coefficients: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """sum_{|k| <= K} c_k e^{ik theta} at any angles: (*ensemble, *angles.shape). O(n K)."""
    series = np.array(coefficients.reshape(-1, coefficients.shape[-1]), order="C")
    points = np.array(angles, dtype=float).ravel()
    values = np.empty((len(series), points.size))
    _series_values(series, points, np.empty((4, ANGLES_AT_ONCE)), values)
    return values.reshape((*coefficients.shape[:-1], *np.shape(angles)))


@njit(cache=True, nogil=True)
def _series_values(
    series: np.ndarray, angles: np.ndarray, waves: np.ndarray, values: np.ndarray
) -> None:
    """Fill `values` (members, n), with room `waves` (4, ANGLES_AT_ONCE) for cosines and sines."""
    cosine, sine, re, im = waves[0], waves[1], waves[2], waves[3]
    for begin in range(0, angles.size, ANGLES_AT_ONCE):
        block = angles[begin : begin + ANGLES_AT_ONCE]
        for i in range(block.size):
            cosine[i], sine[i], re[i], im[i] = np.cos(block[i]), np.sin(block[i]), 1.0, 0.0
        for member in range(len(series)):
            row, mean = values[member, begin : begin + ANGLES_AT_ONCE], series[member, 0].real
            for i in range(block.size):
                row[i] = mean
        for k in range(1, series.shape[1]):
            for i in range(block.size):
                real = re[i] * cosine[i] - im[i] * sine[i]
                re[i], im[i] = real, re[i] * sine[i] + im[i] * cosine[i]
            for member in range(len(series)):
                c, row = series[member, k], values[member, begin : begin + ANGLES_AT_ONCE]
                twice_re, twice_im = 2 * c.real, 2 * c.imag
                for i in range(block.size):
                    row[i] += twice_re * re[i] - twice_im * im[i]


def moments_of_angles(angles: np.ndarray, masses: np.ndarray, degree: int) -> np.ndarray:
    """sum_j masses_j e^{-ik theta_j}, k = 0, ..., `degree`. O(n degree)."""
    total, waves = np.zeros(degree + 1, dtype=complex), np.empty((4, ANGLES_AT_ONCE))
    _sum_moments(np.array(angles, dtype=float), np.array(masses, dtype=float), waves, total)
    return total


@njit(cache=True, nogil=True)
def _sum_moments(
    angles: np.ndarray, masses: np.ndarray, waves: np.ndarray, total: np.ndarray
) -> None:
    """Add sum_i masses_i e^{-ik angle_i} to total_k; room `waves` as for `_series_values`."""
    cosine, sine, re, im = waves[0], waves[1], waves[2], waves[3]
    for begin in range(0, angles.size, ANGLES_AT_ONCE):
        block, mass = angles[begin : begin + ANGLES_AT_ONCE], masses[begin : begin + ANGLES_AT_ONCE]
        for i in range(block.size):
            cosine[i], sine[i], re[i], im[i] = np.cos(block[i]), np.sin(block[i]), mass[i], 0.0
        for k in range(total.size):
            real, imaginary = 0.0, 0.0
            for i in range(block.size):
                real += re[i]
                imaginary -= im[i]
                turned = re[i] * cosine[i] - im[i] * sine[i]
                re[i], im[i] = turned, re[i] * sine[i] + im[i] * cosine[i]
            total[k] += complex(real, imaginary)


def sample_angles(coefficients: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """n independent angles in [-pi, pi) by inversion of the cumulative law.

        F(theta) = (theta + pi)/2 pi + (1/pi) Re sum_{k >= 1} c_k (e^{ik theta} - (-1)^k)/(ik)

    F is tabulated on 16 points per wavelength and inverted by Newton steps, or bisection where
    those leave the cell of the table, to about 1e-15. O(n K).
    """
    primitive, offset = primitive_of(coefficients)
    grid = np.linspace(-np.pi, np.pi, 16 * coefficients.size + 1)
    table = (grid + np.pi) / (2 * np.pi) + evaluate(primitive, grid) - offset
    level = rng.random(n)
    cell = np.clip(np.searchsorted(table, level, side="right") - 1, 0, grid.size - 2)
    series = np.stack([primitive, coefficients], axis=1)
    return _inverted(series, offset, grid, table, level, cell)


def primitive_of(law: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Series (..., modes) of periodic primitives of laws c, divided by 2 pi; and values at -pi."""
    k, primitive = np.arange(1, law.shape[-1]), np.zeros(law.shape, dtype=complex)
    primitive[..., 1:] = law[..., 1:] / (2j * np.pi * k)
    return primitive, 2 * np.sum(primitive[..., 1:] * (-1.0) ** k, axis=-1).real


@njit(cache=True, nogil=True)
def _inverted(
    series: np.ndarray, offset: float, grid: np.ndarray, table: np.ndarray, level: np.ndarray,
    cell: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Angles (n,) where a cumulative law is `level` (n,): Newton's method with bisection."""
    theta = np.empty(level.size)
    for j in range(level.size):
        low, high = grid[cell[j]], grid[cell[j] + 1]
        rise = table[cell[j] + 1] - table[cell[j]]
        part = (level[j] - table[cell[j]]) / rise if rise > 0 else 0.5
        angle = low + (high - low) * min(max(part, 0.0), 1.0)
        for _ in range(INVERSION_STEPS):
            z, law, density = np.exp(1j * angle), 0j, 0j
            for k in range(len(series) - 1, 0, -1):
                law = (law + series[k, 0]) * z
                density = (density + series[k, 1]) * z
            excess = (angle + np.pi) / (2 * np.pi) + 2 * law.real - offset - level[j]
            if excess < 0:
                low = angle
            else:
                high = angle
            slope = (series[0, 1].real + 2 * density.real) / (2 * np.pi)
            new = angle - excess / slope if slope != 0 else low
            if not low < new < high:
                new = (low + high) / 2
            close = abs(new - angle) < INVERSION_ACCURACY
            angle = new
            if close:
                break
        theta[j] = angle
    return theta


# Nodes of characteristics ---------------------------------------------------------------------


class CircleNodeChart(LineChart):
    """Coordinates on the circle: the angle of a node is that of -limit plus its coordinate.

    Rounding displaces the repelling point -limit by about 1e-16, and so about as much mass.
    """

    usual_nodes = 4096
    smallest_w2 = 3e-8

    @property
    def _origin(self) -> float:
        return float(np.arctan2(-self.limit[1], -self.limit[0]))

    def nodes(self, count: int, degree: int, peak: float = 1.0) -> Nodes:
        half = max(count // 2, 2)
        s, weights = graded_rule(half, 2, peak)
        side = 2 * np.arctan(np.exp(-s))
        every_second = np.tile(np.arange(half) % 2 == 0, 2)
        return np.concatenate([side, -side]), np.tile(weights / 2, 2), [every_second]

    def points(self, coordinates: np.ndarray) -> np.ndarray:
        return on_circles((coordinates + self._origin)[:, None])

    def variable(self, coordinates: np.ndarray) -> np.ndarray:
        return coordinates

    def turns(self, degree: int) -> np.ndarray:
        return np.exp(-1j * self._origin * np.arange(degree + 1))

    def projections(
        self, x: np.ndarray, masses: np.ndarray, slopes: np.ndarray | None, degree: int
    ) -> np.ndarray:
        moments = moments_of_angles(x, masses, degree)
        if slopes is None:
            return moments
        return moments - 1j * np.arange(degree + 1) * moments_of_angles(x, slopes, degree)

    def sums(self, x: np.ndarray, series: np.ndarray, orders: Sequence[int]) -> np.ndarray:
        return evaluate(derivatives(series, orders), x)

    def rates(self, coordinates: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        return along_circles(self.points(coordinates), vectors)[:, 0]

    def lengths(self, coordinates: np.ndarray, rates: np.ndarray) -> np.ndarray:
        return np.abs(rates)

    def distances(self, coordinates: np.ndarray, point: np.ndarray) -> np.ndarray:
        turned = coordinates + (self._origin - np.arctan2(point[1], point[0]))
        return np.abs(turned - 2 * np.pi * np.round(turned / (2 * np.pi)))


def derivatives(series: np.ndarray, orders: Sequence[int]) -> np.ndarray:
    """Fourier series (rows, modes) of the derivatives of some orders, by the angle."""
    powers = (1j * np.arange(series.shape[-1])) ** np.arange(3)[:, None]
    return powers[list(orders)] * series
