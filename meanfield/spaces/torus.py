"""The torus (R / 2 pi)^m: Fourier coefficients c_k = int e^{-i<k, x>} dmu of waves k in Z^m."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.annotations import FromAbove
from ..core.cached import cached_property
from ..core.checks import check_memory, finite_array, real_array, require, whole_number
from ..core.read_only import read_only
from ..lowlevel.compilation import njit
from ..lowlevel.fourier import good_length
from ..states.points import UNIT, on_circles
from .circle import Circle, _inverted, primitive_of
from .clusters import MEAN_ROUNDING
from .contract import Space, bands_of, one_number
from .density import Density
from .torus_transforms import TorusGridTransforms, WaveRows, wave_rows

if TYPE_CHECKING:
    from ..states.torus_tokens import TorusTokens
    from .chart import NodeChart

MOST_CIRCLES = 3
PRODUCTS_AT_ONCE = 2**22  # complex numbers in sums over waves and points


class WavesAt:
    """Waves e^{i<k, x>} at points x, by blocks of points; a single block is kept.

    Iteration gives (block, rows, last): a slice of the points, e^{i<k, x>} of the rows of waves
    without their last number, (n, rows), and of the last wave numbers, (n, degree + 1).

    Parameters
    ----------
    waves : WaveRows
    points : ndarray, (n, 2m)
    """

    def __init__(self, waves: WaveRows, points: np.ndarray) -> None:
        self._waves, self._points, self.count = waves, points, len(points)
        size = max(1, PRODUCTS_AT_ONCE // (len(waves.waves) + waves.degree + 1))
        self._blocks = [slice(i, i + size) for i in range(0, self.count, size)]
        self._kept: tuple[np.ndarray, np.ndarray] | None = None

    def __iter__(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        for block in self._blocks:
            factors = self._kept or self._factors(self._points[block])
            if len(self._blocks) == 1:
                self._kept = factors
            yield block, *factors

    def _factors(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z, rows = points[:, ::2] + 1j * points[:, 1::2], self._waves.waves.T
        powers = [_powers(each, self._waves.degree) for each in (z / np.abs(z)).T]
        total: np.ndarray = np.ones((len(z), 1), dtype=complex)
        for i, (power, k) in enumerate(zip(powers[:-1], rows, strict=True)):
            each = np.where(k < 0, power[:, np.abs(k)].conj(), power[:, np.abs(k)])
            total = total * each if i else each
        return total, powers[-1]


class Torus(Space):
    """The torus (R / 2 pi)^m with Fourier modes |k_i| <= `degree` in each direction.

    A density mu, with respect to the uniform probability measure, is

        mu(x) = sum_k c_k e^{i<k, x>},   c_k = int e^{-i<k, x>} dmu,

    c_{-k} = conj(c_k), of which one is stored: see `waves`. A point has the Cartesian coordinates
    (cos x_1, sin x_1, ..., cos x_m, sin x_m) in R^(2m), so that inner products of points are
    sum_i cos(x_i - y_i). Drifts that are functions W of inner products act on the coefficients by
    multipliers, one for each wave; for exp(beta <x, y>) these are prod_i I_{k_i}(beta).

    Parameters
    ----------
    degree : int
        Highest wave number in each direction, >= 1.
    dimension : int
        Number m of angles, 1, 2 or 3; 1 is the circle.

    Attributes
    ----------
    circles : int
        Number m of angles. The attribute `dimension` is 2m, that of the points, as in every space.
    waves : ndarray of int, (modes, m)
        Wave vector k of every coefficient.
    degrees : ndarray of int, (modes,)
        max |k_i|.
    angles : ndarray, (n,)
        Angles of the grid in each direction, equally spaced from 0, n >= 3 degree + 1.

    Raises
    ------
    ValueError
        If the two are not whole numbers in their ranges, or memory does not suffice.

    References
    ----------
    Carrillo, Gvalani, Pavliotis and Schlichting, Arch. Ration. Mech. Anal. 235 (2020).
    """

    grids = TorusGridTransforms
    spherical = False
    points_advice = "torus.embed(angles)"
    largest_degree = 512

    def __init__(self, degree: int, dimension: int = 2) -> None:
        self.degree = whole_number("degree", degree)
        self.circles = whole_number("dimension", dimension, most=MOST_CIRCLES)
        self.dimension, self.radius = 2 * self.circles, self.circles**0.5
        modes = ((2 * self.degree + 1) ** self.circles + 1) // 2
        what = f"degree = {self.degree}: a density and its values"
        check_memory(what, (24 * self.circles, modes), "degree")
        self.largest_degree = {1: 4096, 2: 512, 3: 64}[self.circles]
        degrees = np.abs(self.waves).max(axis=1)
        self._set(degrees=degrees, parseval=np.where(degrees == 0, 1.0, 2.0))

    @property
    def directions(self) -> int:
        return self.circles

    @property
    def described(self) -> dict[str, Any]:
        return {"degree": self.degree, "dimension": self.circles}

    @property
    def rows(self) -> WaveRows:
        return wave_rows(self.degree, self.circles)

    @cached_property
    def waves(self) -> np.ndarray:
        return read_only(self.rows.all)

    @cached_property
    def laplacian(self) -> np.ndarray:
        """Eigenvalue -|k|^2 of every coefficient."""
        return read_only(-(self.waves**2).sum(axis=1).astype(float))

    @cached_property
    def levels(self) -> np.ndarray:
        return read_only(np.arange(self.degrees.size))

    @cached_property
    def angles(self) -> np.ndarray:
        length = good_length(3 * self.degree + 1)
        return read_only(2 * np.pi * np.arange(length) / length)

    @property
    def axes(self) -> dict[str, np.ndarray]:
        names = ["theta"] if self.circles == 1 else [f"theta_{i + 1}" for i in range(self.circles)]
        return dict.fromkeys(names, self.angles)

    @property
    def arguments(self) -> dict[str, np.ndarray]:
        grid = np.meshgrid(*self.axes.values(), indexing="ij")
        return {name: each.ravel() for name, each in zip(self.axes, grid, strict=True)}

    @cached_property
    def points(self) -> np.ndarray:
        return read_only(self.embed(np.stack(list(self.arguments.values()), axis=-1)))

    @cached_property
    def weights(self) -> np.ndarray:
        size = self.angles.size**self.circles
        return read_only(np.full(size, 1 / size))

    def embed(self, angles: Any) -> np.ndarray:
        """Points (..., 2m) with these angles in radians, (..., m); (...,) if m = 1."""
        angles = finite_array("angles", angles)
        if self.circles == 1 and angles.shape[-1:] != (1,):
            angles = angles[..., None]
        wanted = f"(..., {self.circles}), of angles in radians"
        require("angles.shape", angles.shape, wanted, angles.shape[-1:] == (self.circles,))
        return on_circles(angles)

    def angles_of(self, points: np.ndarray) -> np.ndarray:
        """Angles (..., m) in radians of points (..., 2m)."""
        return np.arctan2(points[..., 1::2], points[..., ::2])

    # Densities -----------------------------------------------------------------------------

    def von_mises(self, mean: float | Sequence[float], concentration: float) -> Density:
        """prod_i exp(concentration cos(x_i - mean_i)) / I_0(concentration).

        Parameters
        ----------
        mean : float or sequence of m floats
            Mean angles in radians; one number is that of all.
        concentration : float
            >= 0; 0 is the uniform density.
        """
        from scipy.special import ive

        angles = self._one_each("mean", mean)
        number = one_number("concentration", concentration, "concentration >= 0", 0)
        series = ive(np.arange(self.degree + 1), number) / ive(0, number)
        fits = np.isfinite(series).all()
        require("concentration", number, "smaller: its law is one point", fits)
        series = series[np.abs(self.waves)].prod(axis=1) * np.exp(-1j * self.waves @ angles)
        return Density(self, series).warn_if_unresolved()

    def fourier(self, coefficients: Any) -> Density:
        """The mean over the angles, sum_i f(theta_i) / m, of a density f on the circle.

        Parameters
        ----------
        coefficients : array of complex
            Fourier coefficients c_0 = 1, c_1, ... of f, at most degree + 1.

        Raises
        ------
        ValueError
            If there are more, c_0 is not 1, or f is negative somewhere.
        """
        on_circle = Circle(self.degree).fourier(coefficients).coefficients
        series = np.zeros(self.degrees.size, dtype=complex)
        series[0] = 1
        for k, c in enumerate(on_circle[1:], start=1):
            series[self.harmonics(k)[0]] = c / self.circles
        return Density(self, series).checked_positive()

    def product(self, factors: Sequence[Density]) -> Density:
        """The product mu_1(x_1) ... mu_m(x_m) of densities on the circle, one for each direction.

        Factors of a higher degree are truncated.
        """
        kinds = [getattr(one, "space", None) for one in factors]
        fits = len(factors) == self.circles and all(
            kind is not None and kind.dimension == 2 and not kind.axisymmetric for kind in kinds
        )
        require("factors", factors, f"{self.circles} densities on a Circle", fits, TypeError)
        series = np.ones(self.degrees.size, dtype=complex)
        for factor, k in zip(factors, self.waves.T, strict=True):
            c = factor.resample(self.degree).coefficients[np.abs(k)]
            series *= np.where(k < 0, c.conj(), c)
        return Density(self, series).warn_if_unresolved()

    # The contract --------------------------------------------------------------------------

    def attraction(self, drift: FromAbove) -> np.ndarray:
        return drift.on_torus("attraction", self)

    def normaliser(self, drift: FromAbove) -> np.ndarray | None:
        return drift.on_torus("normaliser", self) if drift.normalised else None

    def interaction(self, drift: FromAbove) -> np.ndarray:
        return drift.on_torus("interaction", self)

    def shortened(self, table: np.ndarray) -> np.ndarray:
        modes = table.shape[-1]
        if modes == self.degrees.size:
            return table
        return table[..., self.with_modes(modes).places(self.waves)]

    def check_points(self, who: str, points: np.ndarray) -> None:
        error = np.abs(np.hypot(points[..., ::2], points[..., 1::2]) - 1).max(initial=0)
        if not error <= UNIT:
            raise ValueError(
                f"{who} expects points of a torus, {self.circles} pairs (cos, sin); the worst "
                f"length of a pair is off by {error:.2g}. Angles: torus.embed(angles)."
            )

    def checked_point(self, point: Any, name: str = "point") -> np.ndarray:
        point = real_array(name, point)
        d = self.dimension
        require(name, point, f"a point of the torus of shape ({d},)", point.shape == (d,))
        self.check_points(name, point)
        return on_circles(self.angles_of(point))

    def mean_direction(self, density: Density) -> np.ndarray:
        means = density.moment(1)
        angles = np.where(np.abs(means) > MEAN_ROUNDING, np.angle(means), np.pi / 2)
        return on_circles(angles)

    def tokens(self, points: np.ndarray, masses: np.ndarray | None = None) -> "TorusTokens":
        from ..states.torus_tokens import TorusTokens

        return TorusTokens(self.angles_of(points), masses)

    def with_modes(self, modes: int) -> "Torus":
        root = round((2 * modes - 1) ** (1 / self.circles))
        return self.with_degree((root - 1) // 2)

    def resample(self, coefficients: np.ndarray, degree: int) -> np.ndarray:
        if degree == self.degree:
            return coefficients.astype(self.dtype)
        other = self.with_degree(degree)
        if degree < self.degree:
            return coefficients[..., self.places(other.waves)].astype(self.dtype)
        result = np.zeros((*coefficients.shape[:-1], other.degrees.size), dtype=self.dtype)
        result[..., other.places(self.waves)] = coefficients
        return result

    def places(self, waves: np.ndarray) -> np.ndarray:
        """Indices (n,) of the coefficients of waves (n, m) that are stored."""
        keys = self._keys(self.waves)
        order = np.argsort(keys)
        return order[np.searchsorted(keys, self._keys(waves), sorter=order)]

    def _keys(self, waves: np.ndarray) -> np.ndarray:
        """A number (n,) for each wave (n, m) with |k_i| <= degree."""
        base = (2 * self.degree + 1) ** np.arange(self.circles)[::-1]
        return (waves + self.degree) @ base

    def harmonics(self, k: int) -> tuple[np.ndarray, float]:
        """Indices of the waves k e_i in the moment of degree k, and 2m."""
        if not 0 < abs(k) <= self.degree:
            first = np.arange(1 if k == 0 else 0)
            return first, 1.0
        return self.places(abs(k) * np.eye(self.circles, dtype=int)), 2.0 * self.circles

    def moment(self, coefficients: np.ndarray, k: int) -> np.ndarray:
        """int e^{ik x_i} dmu in each direction i, (*ensemble, m), complex; 0 beyond the degree."""
        shape = (*coefficients.shape[:-1], self.circles)
        if k == 0:
            return np.broadcast_to(coefficients[..., :1], shape).copy()
        if abs(k) > self.degree:
            return np.zeros(shape, dtype=complex)
        c = coefficients[..., self.harmonics(k)[0]]
        return np.conj(c) if k > 0 else c

    def perturbation(self, l: int, amplitude: float, rng: np.random.Generator) -> np.ndarray:
        parts = rng.standard_normal((np.count_nonzero(self.degrees == l), 2))
        return amplitude * (parts[:, 0] + 1j * parts[:, 1]) / 2

    def _spectrum(self, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Indices in half spectra of all modes; of modes k, and of -k where that is needed too."""
        rows, (row, last) = self.rows, self.rows.places
        here, mirrored = rows.entries(length)[row] + last, rows.entries(length, -1)
        return here, rows.place[rows.mirrored], mirrored[rows.mirrored]

    def synthesis(self, series: np.ndarray) -> np.ndarray:
        n, m = self.angles.size, self.circles
        here, starts, mirrored = self._spectrum(n)
        spectrum = np.zeros((len(series), n ** (m - 1) * (n // 2 + 1)), dtype=complex)
        spectrum[:, here] = series
        spectrum[:, mirrored] = series[:, starts].conj()
        shape, axes = (len(series), *(n,) * (m - 1), n // 2 + 1), tuple(range(1, m + 1))
        values = np.fft.irfftn(spectrum.reshape(shape), s=(n,) * m, axes=axes, norm="forward")
        return values.reshape(len(series), -1)

    def analysis(self, values: np.ndarray) -> np.ndarray:
        n, m = self.angles.size, self.circles
        grid = values.reshape(len(values), *(n,) * m)
        spectrum = np.fft.rfftn(grid, axes=tuple(range(1, m + 1)), norm="forward")
        return spectrum.reshape(len(values), -1).take(self._spectrum(n)[0], axis=1)

    def synthesis_at(self, series: np.ndarray, points: "np.ndarray | WavesAt") -> np.ndarray:
        at = points if isinstance(points, WavesAt) else WavesAt(self.rows, points)
        square = np.zeros((len(series), len(self.rows.waves), self.degree + 1), dtype=complex)
        square[(slice(None), *self.rows.places)] = self.parseval * series
        values = np.empty((len(series), at.count))
        for block, rows, last in at:
            for one, target in zip(square, values, strict=True):
                target[block] = np.einsum("nr,nr->n", rows, last @ one.T).real
        return values

    def point_masses(self, points: "np.ndarray | WavesAt", masses: np.ndarray) -> np.ndarray:
        at = points if isinstance(points, WavesAt) else WavesAt(self.rows, points)
        square = np.zeros((len(self.rows.waves), self.degree + 1), dtype=complex)
        for block, rows, last in at:
            square += (masses[block, None] * rows).conj().T @ last.conj()
        series = square[self.rows.places]
        series[0] = masses.sum()
        return series

    def rotate(self, coefficients: np.ndarray, rotation: Any) -> np.ndarray:
        """Translation by an angle in radians in each direction, (m,), or by one in all."""
        return coefficients * np.exp(-1j * self.waves @ self._one_each("rotation", rotation))

    def _one_each(self, name: str, values: Any) -> np.ndarray:
        """An angle in each direction, (m,), from m angles or one; `name` is for the message."""
        angles = finite_array(name, values)
        wanted = f"{self.circles} angles in radians, or one"
        require(name, values, wanted, angles.shape in ((), (self.circles,)))
        return np.broadcast_to(np.fmod(angles, 2 * np.pi), (self.circles,))

    def sample(self, coefficients: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """n independent points: each angle by inversion of its law, given the angles before."""
        angles, levels = np.empty((n, self.circles)), rng.random((self.circles, n))
        for i, level in enumerate(levels):
            angles[:, i] = _conditional(self._given(coefficients, angles[:, :i]), level)
        return on_circles(angles)

    def _given(self, coefficients: np.ndarray, angles: np.ndarray) -> np.ndarray:
        """Coefficients (n, degree + 1) of the law of the next angle, given the first (n, i) ones.

        It is int mu e^{-ik x_i} over the angles that follow: of waves that are 0 in these. The
        first coefficient is the density of the given angles.
        """
        i, last = angles.shape[1], np.arange(self.degree + 1)
        if i == self.circles - 1:
            return self._given_all_but_one(coefficients, angles)
        result = np.zeros((len(angles), last.size), dtype=complex)
        kept = (self.waves[:, i + 1 :] == 0).all(axis=1)
        for k, c in zip(self.waves[kept], coefficients[kept], strict=True):
            wave = c * np.exp(1j * angles @ k[:i])
            if k[i] >= 0:
                result[:, k[i]] += wave
            if k[i] <= 0 and np.any(k):
                result[:, -k[i]] += wave.conj()
        return result

    def _given_all_but_one(self, coefficients: np.ndarray, angles: np.ndarray) -> np.ndarray:
        square = np.zeros((len(self.rows.waves), self.degree + 1), dtype=complex)
        square[self.rows.places] = coefficients
        result = np.empty((len(angles), self.degree + 1), dtype=complex)
        for block, rows, _ in WavesAt(self.rows, on_circles(np.pad(angles, ((0, 0), (0, 1))))):
            result[block] = rows @ square
        result[:, 0] = 2 * result[:, 0].real - coefficients[0].real
        return result

    @property
    def frame(self) -> np.ndarray:
        x, m = self.points, self.circles
        frame, i = np.zeros((m, len(x), 2 * m)), np.arange(m)
        frame[i, :, 2 * i], frame[i, :, 2 * i + 1] = -x[:, 1::2].T, x[:, ::2].T
        return frame

    def gradient(self, coefficients: np.ndarray) -> np.ndarray:
        return self.synthesis(1j * self.waves.T * coefficients)

    def minus_divergence(self, field: np.ndarray) -> np.ndarray:
        return -1j * (self.waves.T * self.analysis(field)).sum(axis=0)

    def chart(self, limit: np.ndarray) -> "NodeChart":
        from .torus_chart import TorusNodeChart

        return TorusNodeChart(self, limit)

    def bands(self, attraction: np.ndarray) -> np.ndarray:
        sizes = np.abs(attraction) * np.sqrt(-self.laplacian)
        by_degree = np.zeros((len(sizes), self.degree + 1))
        for row, size in zip(by_degree, sizes, strict=True):
            np.maximum.at(row, self.degrees, size)
        return bands_of(by_degree)


def _powers(z: np.ndarray, most: int) -> np.ndarray:
    """Powers 0, ..., `most` of complex numbers (n,), by doubling, (n, most + 1)."""
    powers = np.ones((z.size, most + 1), dtype=complex)
    known, power = 1, z[:, None]
    while known <= most:
        new = powers[:, known : 2 * known]
        np.multiply(powers[:, : new.shape[1]], power, out=new)
        known, power = 2 * known, power**2
    return powers


def _conditional(series: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Angles (n,) at which the laws with Fourier series (n, modes) have these levels."""
    law = series / series[:, :1].real
    primitive, offsets = primitive_of(law)
    return _each_inverted(np.stack([primitive, law], axis=2), offsets, levels)


@njit(cache=True, nogil=True)
def _each_inverted(series: np.ndarray, offsets: np.ndarray, levels: np.ndarray) -> np.ndarray:
    angles, ends = np.empty(levels.size), np.array([-np.pi, np.pi])
    table, cell = np.array([0.0, 1.0]), np.zeros(1, dtype=np.int64)
    for j in range(levels.size):
        one = levels[j : j + 1]
        angles[j] = _inverted(series[j], offsets[j], ends, table, one, cell)[0]
    return angles
