"""Scattered points of S^2: values of harmonic series, empirical coefficients, rotations, samples.

The transforms are those of ducc0, whose harmonics are orthonormal on the surface of area 4 pi
and carry the Condon-Shortley phase: Y = sqrt(4 pi) (-1)^m Y_ducc. Its fast transforms at
scattered points are accurate to 1e-12 of the norm.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.read_only import read_only
from ..lowlevel.compilation import WITHIN, njit
from ..lowlevel.legendre import recurrence
from .latitudes import sample_heights

TRANSFORM_ACCURACY = 1e-12
SMALLEST_RADIUS = 1e-150  # squares of smaller numbers underflow


def orders_of(degree: int) -> np.ndarray:
    """The order m of every coefficient."""
    return np.repeat(np.arange(degree + 1), degree + 1 - np.arange(degree + 1))


@lru_cache(maxsize=16)
def degrees_of(degree: int) -> np.ndarray:
    """The degree l of every coefficient."""
    return read_only(np.concatenate([np.arange(m, degree + 1) for m in range(degree + 1)]))


@lru_cache(maxsize=16)
def factors(degree: int) -> np.ndarray:
    """Ratio (modes,) of the coefficients of a function here and in ducc0."""
    return read_only(np.sqrt(4 * np.pi) * (-1.0) ** orders_of(degree))


def on_rings(heights: np.ndarray, longitudes: np.ndarray) -> np.ndarray:
    """Points (n, 3) at all longitudes of the rings at some heights, ring by ring."""
    radius = np.sqrt((1 - heights) * (1 + heights))
    x, y = np.outer(radius, np.cos(longitudes)), np.outer(radius, np.sin(longitudes))
    return np.stack([x.ravel(), y.ravel(), np.repeat(heights, longitudes.size)], axis=1)


def _angles(points: np.ndarray) -> np.ndarray:
    """Colatitudes and longitudes in [0, 2 pi), (n, 2), of points (n, 3)."""
    x, y, z = points[:, 0], points[:, 1], points[:, 2]
    theta, phi = np.arctan2(np.hypot(x, y), z), np.arctan2(y, x) % (2 * np.pi)
    return np.ascontiguousarray(np.stack([theta, phi], axis=1))


def harmonics_at(point: np.ndarray, degree: int) -> np.ndarray:
    """Y_lm at one unit vector, (modes,), to rounding."""
    horizontal = complex(point[0], point[1])
    turn = horizontal / abs(horizontal) if horizontal else 1.0
    turns = np.cumprod(np.append(1 + 0j, np.full(degree, turn)))
    orders = orders_of(degree)
    heights = np.empty(orders.size)
    _legendre_at(point[2], abs(horizontal), degree, *_recurrences(degree), heights)
    return heights * turns[orders]


def evaluate(coefficients: np.ndarray, degree: int, points: np.ndarray) -> np.ndarray:
    """Values (members, n) of series (members, modes) at unit vectors (n, 3)."""
    if not len(points):
        return np.empty((len(coefficients), 0))
    transforms = AngleTransforms(_angles(points), degree)
    return np.array([transforms.values(series) for series in coefficients])


def gradient(series: np.ndarray, degree: int, points: np.ndarray) -> np.ndarray:
    """Gradients (n, 3) on the sphere of one series (modes,) at unit vectors (n, 3)."""
    angles = _angles(points)
    slope, turn = AngleTransforms(angles, degree).gradient(series)
    cosine, sine = np.cos(angles[:, 1]), np.sin(angles[:, 1])
    height, radius = np.cos(angles[:, 0]), np.sin(angles[:, 0])
    along = slope * height
    return np.stack(
        [along * cosine - turn * sine, along * sine + turn * cosine, -slope * radius], 1
    )


def empirical_coefficients(points: np.ndarray, masses: np.ndarray, degree: int) -> np.ndarray:
    """sum_i masses_i conj(Y_lm(x_i)), (modes,)."""
    return AngleTransforms(_angles(points), degree).moments(masses)


class AngleTransforms:
    """Transforms between series (modes,) up to a degree and values at n scattered points.

    `angles` (n, 2) are colatitudes and longitudes in [0, 2 pi). `accuracy` is relative to the norm.
    """

    def __init__(self, angles: np.ndarray, degree: int, accuracy: float = TRANSFORM_ACCURACY):
        self._factors, self._degree = factors(degree), degree
        self._options = {"loc": angles, "lmax": degree, "epsilon": accuracy, "nthreads": 1}

    def moments(self, masses: np.ndarray) -> np.ndarray:
        """sum_i masses_i conj(Y_lm(x_i)), (modes,)."""
        return self._adjoint(masses[None], spin=0)

    def values(self, series: np.ndarray) -> np.ndarray:
        """Values (n,) of a series (modes,)."""
        return self._synthesis(series, spin=0)[0]

    def gradient(self, series: np.ndarray) -> np.ndarray:
        """Gradients (2, n), their components to the south and to the east."""
        return self._synthesis(series, spin=1, mode="DERIV1")

    def _synthesis(self, series: np.ndarray, **kind: Any) -> np.ndarray:
        from ducc0.sht import synthesis_general

        return synthesis_general(alm=(series * self._factors)[None], **kind, **self._options)

    def _adjoint(self, values: np.ndarray, **kind: Any) -> np.ndarray:
        from ducc0.sht import adjoint_synthesis_general

        values = np.ascontiguousarray(values, dtype=float)
        return adjoint_synthesis_general(map=values, **kind, **self._options)[0] * self._factors


class ScatteredTransforms(AngleTransforms):
    """Transforms of many series at the same points, and components of tangent vectors there.

    Tangent vectors have components to the south and to the east.

    Parameters
    ----------
    points : ndarray, (n, 3)
        Points, of which only the directions are used.
    degree : int
        Highest degree of the series.
    accuracy : float
        Accuracy of the transforms, relative to the norm.

    Attributes
    ----------
    frame : ndarray, (5, n)
        Cosine and sine of the longitudes; cosine and sine of the colatitudes; lengths.
    """

    def __init__(
        self, points: np.ndarray, degree: int, accuracy: float = TRANSFORM_ACCURACY
    ) -> None:
        self.frame, angles = np.empty((5, len(points))), np.empty((len(points), 2))
        angles[:, 1] = np.arctan2(points[:, 1], points[:, 0])
        _write_frame(points, angles, self.frame)
        angles[:, 0] = np.arctan2(self.frame[3], self.frame[2])
        super().__init__(angles, degree, accuracy)

    def moment_changes(self, vectors: np.ndarray) -> np.ndarray:
        """sum_i <vectors_i, grad conj(Y_lm)(x_i)>, (modes,), for tangent vectors (2, n)."""
        return self._adjoint(vectors, spin=1, mode="DERIV1")

    def hessian(self, series: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Hessian of a series: its trace (n,), and the components (2, n) of its trace-free part.

        The components are east-east minus south-south, and minus twice south-east.
        """
        l = degrees_of(self._degree)
        trace = self.values(-l * (l + 1.0) * series)
        if self._degree < 2:  # the Hessian of a linear function of x has no trace-free part
            return trace, np.zeros((2, trace.size))
        root = np.sqrt(np.maximum((l + 2.0) * (l + 1) * l * (l - 1), 0.0))
        return trace, self._synthesis(root * series, spin=2, mode="GRAD_ONLY")

    def parts(self, vectors: np.ndarray) -> np.ndarray:
        """Components (p, 2, n) of vectors (p, n, 3) to the south and to the east."""
        parts = np.empty((len(vectors), 2, self.frame.shape[1]))
        _write_parts(self.frame, vectors, parts)
        return parts


@njit(cache=True, nogil=True)
def _write_frame(points: np.ndarray, angles: np.ndarray, frame: np.ndarray) -> None:
    """Fill `ScatteredTransforms.frame`, and turn longitudes of angles (n, 2) into [0, 2 pi)."""
    for i in range(len(points)):
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        across = np.sqrt(x * x + y * y)
        length = np.sqrt(across * across + z * z)
        phi = angles[i, 1]
        if across > SMALLEST_RADIUS:
            frame[0, i], frame[1, i] = x / across, y / across
        else:
            frame[0, i], frame[1, i] = np.cos(phi), np.sin(phi)
        frame[2, i], frame[3, i], frame[4, i] = z / length, across / length, length
        angles[i, 1] = phi + 2 * np.pi if phi < 0 else phi


@njit(cache=True, nogil=True)
def _write_parts(frame: np.ndarray, vectors: np.ndarray, parts: np.ndarray) -> None:
    for a in range(len(vectors)):
        for i in range(vectors.shape[1]):
            cosine, sine, height, radius = frame[0, i], frame[1, i], frame[2, i], frame[3, i]
            x, y, z = vectors[a, i, 0], vectors[a, i, 1], vectors[a, i, 2]
            parts[a, 0, i] = height * (x * cosine + y * sine) - radius * z
            parts[a, 1, i] = y * cosine - x * sine


@njit(cache=True, nogil=True)
def embed_quotient(
    frame: np.ndarray, gradient: np.ndarray, denominator: np.ndarray, velocity: np.ndarray
) -> None:
    """Fill `velocity` (n, 3) with the gradient (2, n), over `denominator` (n,) if not empty."""
    for i in range(len(velocity)):
        part = 1.0 / denominator[i] if denominator.size > 0 else 1.0
        _embed(frame, i, part * gradient[0, i], part * gradient[1, i], 0.0, velocity[i])


@njit(cache=True, nogil=True)
def embed_change(
    frame: np.ndarray, field: tuple[np.ndarray, ...], hessian: tuple[np.ndarray, ...],
    moving: tuple[np.ndarray, ...], change: np.ndarray,
) -> None:  # fmt: skip
    """Fill `change` (n, 3) with the derivative of the result of `embed_quotient`.

    Parameters
    ----------
    field : three ndarrays, (2, n), (n,) and (2, n)
        Gradient, denominator, and gradient of the denominator; the last are empty if it is 1.
    hessian : (ndarray, ndarray)
        Result of `ScatteredTransforms.hessian` for the potential of the gradient.
    moving : three ndarrays, (2, n), (2, n) and (n,)
        Tangents of the points; derivatives of gradient and denominator at fixed points.
    """
    gradient, denominator, slope = field
    trace, traceless = hessian
    tangents, by_gradient, by_denominator = moving
    for i in range(len(change)):
        south, east = tangents[0, i], tangents[1, i]
        mean, unlike, mixed = 0.5 * trace[i], 0.5 * traceless[0, i], -0.5 * traceless[1, i]
        along = by_gradient[0, i] + (mean - unlike) * south + mixed * east
        across = by_gradient[1, i] + mixed * south + (mean + unlike) * east
        inwards = -(gradient[0, i] * south + gradient[1, i] * east)
        if denominator.size > 0:
            part = 1.0 / denominator[i]
            by = (by_denominator[i] + slope[0, i] * south + slope[1, i] * east) * part
            along = (along - gradient[0, i] * by) * part
            across = (across - gradient[1, i] * by) * part
            inwards *= part
        _embed(frame, i, along, across, inwards, change[i])


@njit(**WITHIN)
def _embed(
    frame: np.ndarray, i: int, south: float, east: float, outwards: float, vector: np.ndarray
) -> None:
    """Fill a vector (3,) from its components to the south, to the east and outwards."""
    cosine, sine, height, radius = frame[0, i], frame[1, i], frame[2, i], frame[3, i]
    horizontal = south * height + outwards * radius
    vector[0] = horizontal * cosine - east * sine
    vector[1] = horizontal * sine + east * cosine
    vector[2] = outwards * height - south * radius


class Rings:
    """Transforms on a grid of latitudes times longitudes: harmonics of any degree, divergences.

    Parameters
    ----------
    z, weights : ndarray, (rings,)
        Heights of the rings, from north to south, and their quadrature weights, of sum 1.
    longitudes : int
        Number of points of each ring, the first of them at the longitude 0.
    """

    def __init__(self, z: np.ndarray, weights: np.ndarray, longitudes: int) -> None:
        self.count = longitudes
        self._weights = weights / longitudes
        self._options = {
            "theta": np.arctan2(np.sqrt((1 - z) * (1 + z)), z),
            "nphi": np.full(z.size, longitudes, dtype=np.uint64),
            "phi0": np.zeros(z.size),
            "ringstart": longitudes * np.arange(z.size, dtype=np.uint64),
            "nthreads": 1,
        }

    def synthesis(self, series: np.ndarray, degree: int) -> np.ndarray:
        """Values (r, N) of series (r, modes) of this degree, whatever it is."""
        return self._synthesis(series[:, None], degree, spin=0)[:, 0]

    def analysis(self, values: np.ndarray, degree: int) -> np.ndarray:
        """int conj(Y_lm) f dsigma of functions with values (r, N), as series (r, modes)."""
        return self._adjoint(np.ascontiguousarray(values)[:, None], degree, spin=0)[:, 0]

    def gradient(self, series: np.ndarray, degree: int) -> np.ndarray:
        """The gradient, southwards and east (2, N), of a series (modes,)."""
        return self._synthesis(series[None], degree, spin=1, mode="DERIV1")

    def minus_divergence(self, field: np.ndarray, degree: int) -> np.ndarray:
        """Coefficients of -div F, int <F, grad conj(Y_lm)> dsigma; F southwards and east (2, N)."""
        return self._adjoint(field, degree, spin=1, mode="DERIV1")[0]

    def _synthesis(self, series: np.ndarray, degree: int, **kind: Any) -> np.ndarray:
        from ducc0.sht import synthesis

        return synthesis(alm=series * factors(degree), lmax=degree, **kind, **self._options)

    def _adjoint(self, values: np.ndarray, degree: int, **kind: Any) -> np.ndarray:
        from ducc0.sht import adjoint_synthesis

        kind |= {"lmax": degree, "ringfactor": self._weights}
        return adjoint_synthesis(map=values, **kind, **self._options) * factors(degree)


def rotation(degree: int, matrix: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Function of a series (modes,): its pushforward by an orthogonal matrix (3, 3), exact."""
    from ducc0.sht import rotate_alm

    before = after = factors(degree)  # of ducc0's harmonics
    if np.array_equal(matrix, np.eye(3)):
        return lambda coefficients: coefficients
    if np.linalg.det(matrix) < 0:  # minus the identity turns Y_l into (-1)^l Y_l
        matrix, before = -matrix, before * (-1.0) ** np.triu_indices(degree + 1)[1]
    beta = np.arctan2(np.hypot(matrix[0, 2], matrix[1, 2]), matrix[2, 2])
    alpha = np.arctan2(matrix[1, 2], matrix[0, 2])  # any angle if the axis stays vertical
    axis = np.cos(alpha) * matrix[1] - np.sin(alpha) * matrix[0]  # of R_y(beta) R_z(gamma)
    gamma = np.arctan2(axis[0], axis[1])

    def rotated(coefficients: np.ndarray) -> np.ndarray:
        return rotate_alm(coefficients * before, degree, gamma, beta, alpha, nthreads=1) / after

    return rotated


def sample_points(
    coefficients: np.ndarray, degree: int, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Independent points (n, 3): first the height, then the longitude given the height.

    Both cumulative laws are known in closed form, and inverted by bisection to rounding.
    """
    levels = rng.random((n, 2))
    z = sample_heights(np.ascontiguousarray(coefficients[: degree + 1].real), 3, levels[:, 0])
    points = np.empty((n, 3))
    _sample_longitudes(coefficients, degree, *_recurrences(degree), z, levels, points)
    return points


@lru_cache(maxsize=16)
def _recurrences(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Factors a, b of p_{l+1} = a z p_l - b p_{l-1}, (modes,) each, in the order of the modes."""
    rows = [recurrence(degree + 1, m, 3)[m:] for m in range(degree + 1)]
    return np.concatenate([1 / e[1:] for e in rows]), np.concatenate([e[:-1] / e[1:] for e in rows])


@njit(cache=True)
def _sample_longitudes(
    coefficients: np.ndarray, degree: int, a: np.ndarray, b: np.ndarray, heights: np.ndarray,
    levels: np.ndarray, points: np.ndarray,
) -> None:  # fmt: skip
    """Write points (n, 3) with longitudes where the law at their height is levels[:, 1]."""
    series, p = np.empty(degree + 1, dtype=np.complex128), np.empty(coefficients.size)
    for i in range(len(levels)):
        z = heights[i]
        radius, begin = np.sqrt((1 - z) * (1 + z)), 0
        _legendre_at(z, radius, degree, a, b, p)
        for m in range(degree + 1):
            series[m] = 0
            for at in range(begin, begin + degree + 1 - m):
                series[m] += coefficients[at] * p[at]
            begin += degree + 1 - m
        low, high = 0.0, 2 * np.pi
        for _ in range(54):
            middle = (low + high) / 2
            if _before(series, middle) < levels[i, 1] * 2 * np.pi * series[0].real:
                low = middle
            else:
                high = middle
        phi = (low + high) / 2
        points[i, 0], points[i, 1], points[i, 2] = radius * np.cos(phi), radius * np.sin(phi), z


@njit(cache=True)
def _legendre_at(
    z: float, sine: float, degree: int, a: np.ndarray, b: np.ndarray, values: np.ndarray
) -> None:
    """Fill `values` (modes,) with p_l of every order at one height."""
    start, begin = 1.0, 0
    for m in range(degree + 1):
        if m > 0:
            start *= np.sqrt((2 * m + 1) / (2 * m)) * sine
        before, p = 0.0, start
        for i in range(begin, begin + degree + 1 - m):
            values[i] = p
            before, p = p, a[i] * z * p - b[i] * before
        begin += degree + 1 - m


@njit(cache=True)
def _before(series: np.ndarray, phi: float) -> float:
    """int_0^phi of sum_m 2 Re(f_m e^{im phi})."""
    total = series[0].real * phi
    turn, power = np.exp(1j * phi), 1.0 + 0j
    for m in range(1, series.size):
        power *= turn
        total += 2 * (series[m] * (power - 1) / (1j * m)).real
    return total
