"""States as measures: the interface that distances need.

A state consists of points or has a density. `measure_of` returns it as a `Measure`. A state defined
elsewhere can be measured if it has a method ``as_measure()`` that returns one of the states
registered here, for instance `Tokens`.
"""

from abc import ABC, abstractmethod
from functools import singledispatch
from math import exp, lgamma, pi
from typing import Any

import numpy as np

from ..core.checks import common_shape
from ..spaces import Circle, Density, Space, Sphere
from ..spaces.characteristics import Characteristics
from ..spaces.circle import evaluate
from ..spaces.contract import dimension_of_harmonics
from ..spaces.kernels import legendre_averages
from ..spaces.sphere_points import empirical_coefficients
from ..states import Dirac, Tokens, TorusTokens
from ..states.points import unit
from .linear_programs import Cells, WeightedPoints
from .metrics import Metric
from .quantiles import curves_of_densities, curves_of_points

AXIS_TOLERANCE = 1e-15
NUFFT_ACCURACY = 1e-14  # of the transforms of ducc0 on the circle
POWER_NODES, SINE_NODES = 60, 30  # beyond the degree: for angle^p, and for sin^(d - 2)
POINTS_PER_CELL = 40  # quadrature points in a cell, about
LEAST_GRID = 8  # degree of a quadrature on a torus
LLOYD_STEPS = 8
EXTRA_LATITUDES = 24  # nodes along a meridian beyond the degree
WITHOUT_AXIS = (
    "Polar angles and axial coefficients need a measure that is symmetric about the last axis, for "
    "instance a Density on Zonal; got {}."
)
ALL_MEMBERS, NO_ROTATION = slice(None), np.zeros(1)


class Measure(ABC):
    """The measure that a state, or an ensemble of states, represents.

    Attributes
    ----------
    state : object
    shape : tuple of int
        Shape of the ensemble; members are numbered in C order.
    dimension : int
        The ambient dimension d.
    metric : Metric
        The distance of its points: that of S^(d-1), of a torus, or of R^d.
    is_density : bool
        True if it has a density.
    pointwise : bool
        True if it is a sum of points with masses >= 0.
    axisymmetric : bool
        True if it is represented as symmetric about the last axis; it then has `polar_curves` and
        `axial_coefficients`.
    uniform : bool
        True for the uniform measure.
    single_point : ndarray (d,), or None
        The point that carries all mass.
    """

    is_density = False
    pointwise = False
    axisymmetric = False
    uniform = False
    single_point: np.ndarray | None = None
    factor: int | None = None  # of its metric; by default the dimension

    def __init__(self, state: Any):
        self.state, self.shape, self.dimension = state, state.shape, state.dimension
        self.metric = Metric(state.dimension, self.factor or state.dimension)

    def __str__(self) -> str:
        return f"{type(self.state).__name__} {self.metric}"

    def check_divisible(self) -> None:
        """Raise ValueError unless it consists of points or can be divided into cells."""
        return

    @abstractmethod
    def points(self, member: int, cells: int) -> WeightedPoints:
        """The points of a member; a density is divided into about `cells` cells."""

    @abstractmethod
    def curves_on_circle(
        self, members: Any = ALL_MEMBERS, angles: np.ndarray = NO_ROTATION
    ) -> np.ndarray:
        """Quantile functions (members, pieces + 1, columns) on the circle, rotated by `angles`."""

    @abstractmethod
    def projected(self, directions: np.ndarray) -> np.ndarray:
        """Quantile functions (count, pieces + 1, columns) of `Metric.directions`, of one member."""

    @abstractmethod
    def polar_curves(self) -> np.ndarray:
        """Quantile functions of the angle from the last axis of an axisymmetric measure."""

    @abstractmethod
    def distance_to(self, point: np.ndarray, p: float) -> np.ndarray:
        """W_p from the Dirac measure at a point, (*ensemble,): (int d(x, point)^p dmu)^(1/p)."""

    @abstractmethod
    def coefficients(self, space: Space) -> np.ndarray:
        """Coefficients (members, modes) in the harmonics of the circle, S^2 or a torus."""

    def axial_coefficients(self, degree: int) -> np.ndarray:
        """Coefficients (members, degree + 1) in the basis of `Zonal`; TypeError without an axis."""
        raise TypeError(WITHOUT_AXIS.format(self))


def checked_pair(name: str, a: Any, b: Any) -> tuple[Measure, Measure, tuple[int, ...], np.ndarray]:
    """Two states as measures, the shape of the ensemble of pairs, and the members (pairs, 2).

    Raises
    ------
    TypeError
        If a state cannot be compared.
    ValueError
        For different spaces, ensembles that do not broadcast, and negative densities.
    """
    first = measure_of(name, a, "a")
    second = first if b is a else measure_of(name, b, "b")
    if first.metric != second.metric:
        raise ValueError(f"{name} compares two states of one space; got {first} and {second}.")
    shape = common_shape("Ensembles", {"a": first.shape, "b": second.shape})
    members = [
        np.broadcast_to(np.arange(int(np.prod(m.shape))).reshape(m.shape), shape).ravel()
        for m in (first, second)
    ]
    return first, second, shape, np.stack(members, axis=1)


def measure_of(name: str, state: Any, argument: str) -> Measure:
    """The measure that a state represents; raises TypeError if it represents none."""
    if hasattr(state, "as_measure"):
        return measure_of(name, state.as_measure(), argument)
    measure = _measure_of_state(state)
    if measure is None:
        *names, last = [cls.__name__ for cls in _measure_of_state.registry if cls is not object]
        raise TypeError(
            f"{name} compares states: {', '.join(names)} or {last}, or a state whose method "
            f"as_measure() returns one of these; got {argument} of type {type(state).__name__}."
        )
    return measure


# Densities ----------------------------------------------------------------------------------


class SmoothMeasure(Measure):
    """A density with respect to the uniform measure, given by its harmonics."""

    is_density = True
    check = 0.7  # degree of the second quadrature, relative to the first

    def __init__(self, state: Density):
        super().__init__(state.checked_positive())
        self.space = state.space
        self.axisymmetric = self.space.axisymmetric
        self.series = state.coefficients.reshape(-1, state.coefficients.shape[-1])
        self.uniform = not np.any(self.series[:, 1:])

    def check_divisible(self) -> None:
        if self.dimension > 3:
            raise ValueError(
                f"A density on S^{self.dimension - 1} can be compared only with axisymmetric "
                "states and Dirac measures. Compare a sample: density.sample(n, rng=0)."
            )

    def points(self, member: int, cells: int) -> WeightedPoints:
        return self.cells(member, cells).coarse

    def cells(self, member: int, count: int) -> Cells:
        """About `count` cells, placed by Lloyd's iteration from a seeded sample.

        On the circle the cells are points at equal distances.
        """
        from scipy.spatial import cKDTree

        if self.dimension == 2:
            fine = self._quadrature(member, Circle(max(count // 3, self.space.degree)))
            return Cells(self.metric, fine, np.arange(len(fine.x)), fine, fine)
        grid = self.grid(POINTS_PER_CELL * count)
        x, masses = fine = self._quadrature(member, grid)
        centres = x[np.random.default_rng(0).choice(len(x), count, replace=False, p=masses)]
        for _ in range(LLOYD_STEPS):
            owner = cKDTree(centres).query(x)[1]
            sums = np.stack([np.bincount(owner, masses * c, len(centres)) for c in x.T], axis=1)
            used = np.bincount(owner, minlength=len(centres)) > 0
            centres = self.onto_space(sums[used])
        owner = cKDTree(centres).query(x)[1]
        coarse = WeightedPoints(centres, np.bincount(owner, masses, len(centres)))
        check = self._quadrature(member, grid.with_degree(max(int(self.check * grid.degree), 2)))
        return Cells(self.metric, fine, owner, coarse, check)

    def grid(self, points: float) -> Space:
        """A space with about so many quadrature points, or more for a density of high degree."""
        return Sphere(max(int((points / 4.5) ** 0.5), self.space.degree, 2))

    def onto_space(self, x: np.ndarray) -> np.ndarray:
        """The nearest points of the space to x, (n, d)."""
        return unit(x)

    def _quadrature(self, member: int, grid: Space) -> WeightedPoints:
        """The density on a grid, where it is positive."""
        masses = grid.weights * self.space.at(self.series[member], grid.points)
        positive = masses > 0
        return WeightedPoints(grid.points[positive], masses[positive] / masses[positive].sum())

    def curves_on_circle(
        self, members: Any = ALL_MEMBERS, angles: np.ndarray = NO_ROTATION
    ) -> np.ndarray:
        """Curves of `curves_of_densities` of the members, turned by `angles`, from their series."""
        circle = Circle(self.space.degree)
        series = self.coefficients(circle)[members] * np.exp(-1j * circle.degrees * angles[:, None])

        def density(angle: np.ndarray) -> np.ndarray:
            return circle.at(series, np.stack([np.cos(angle), np.sin(angle)], axis=-1)) / (2 * pi)

        return curves_of_densities(density, 2 * pi)

    def projected(self, directions: np.ndarray) -> np.ndarray:
        series = np.stack([self.law_along(each) for each in directions])
        return curves_of_densities(lambda angles: evaluate(series, angles) / (2 * pi), 2 * pi)

    def law_along(self, direction: np.ndarray) -> np.ndarray:
        """Fourier coefficients (degree + 1,) of the projection of a single density.

        It is the law of the longitude about the normal of a frame (3, 2).
        """
        degree = self.space.degree
        nodes, weights = np.polynomial.legendre.leggauss(degree + EXTRA_LATITUDES)
        polar = pi * (1 + nodes) / 2
        longitudes = pi * np.arange(2 * degree + 2) / (degree + 1)
        circle = (
            np.cos(longitudes)[:, None] * direction[:, 0]
            + np.sin(longitudes)[:, None] * direction[:, 1]
        )
        axis = np.cross(direction[:, 0], direction[:, 1])
        points = np.sin(polar)[:, None, None] * circle + np.cos(polar)[:, None, None] * axis
        values = self.space.at(self.state.coefficients, points)
        law = (weights * np.sin(polar)) @ values * pi / 4
        return np.fft.rfft(law)[: degree + 1] / law.size

    def polar_curves(self) -> np.ndarray:
        def density(angle: np.ndarray) -> np.ndarray:
            values = self.space.at(self.series, np.cos(angle)[:, None])
            return _polar_weight(self.dimension, angle) * values

        return curves_of_densities(density, pi)

    def distance_to(self, point: np.ndarray, p: float) -> np.ndarray:
        """Integrate angle^p against the density, by the Funk-Hecke formula."""
        from scipy.special import roots_jacobi

        d = self.dimension
        size = self.space.degree + POWER_NODES + int(min(d, SINE_NODES * d**0.5))
        nodes, weights = roots_jacobi(size, 0, p)
        angles = pi * (1 + nodes) / 2
        weights = (pi / 2) ** (p + 1) * weights * _polar_weight(d, angles)
        multipliers = legendre_averages(self.space.degree, d, np.cos(angles), weights)
        series = self.state.coefficients * multipliers[self.space.degrees]
        return np.maximum(self.space.at(series, point), 0.0) ** (1 / p)

    def coefficients(self, space: Space) -> np.ndarray:
        series = self.axial_coefficients(space.degree)
        return _about_the_last_axis(series, space) if self.axisymmetric else series

    def axial_coefficients(self, degree: int) -> np.ndarray:
        return self.space.resample(self.series, degree)


class SmoothTorusMeasure(SmoothMeasure):
    """A density on a torus."""

    factor = 2
    check = 0.5  # the trapezoidal rule has an error of order 2 at kinks of distances

    def check_divisible(self) -> None:
        return

    def grid(self, points: float) -> Space:
        degree = int(points ** (1 / self.metric.factors) / 3)
        return self.space.with_degree(max(degree, -(-3 * self.space.degree // 4), LEAST_GRID))

    def onto_space(self, x: np.ndarray) -> np.ndarray:
        return self.space.embed(self.space.angles_of(x))

    def law_along(self, direction: np.ndarray) -> np.ndarray:
        """The coefficients of the waves j k, j = 0, 1, ..., of a direction k (m,)."""
        law = np.zeros(self.space.degree + 1, dtype=complex)
        waves = np.arange(self.space.degree // np.abs(direction).max() + 1)[:, None] * direction
        law[: len(waves)] = self.series[0, self.space.places(waves)]
        return law


def _polar_weight(dimension: int, angle: np.ndarray) -> np.ndarray:
    """The density of the polar angle of the uniform measure on S^(d-1)."""
    constant = exp(lgamma(dimension / 2) - lgamma((dimension - 1) / 2)) / pi**0.5
    return constant * np.sin(angle) ** (dimension - 2)


def _about_the_last_axis(series: np.ndarray, space: Space) -> np.ndarray:
    """Coefficients on the circle or S^2 of axial ones, (members, degree + 1)."""
    k = np.arange(space.degree + 1)
    result = np.zeros((len(series), space.degrees.size), dtype=complex)
    if space.dimension == 2:  # the axis e_2 is the angle pi / 2
        series = series * np.where(k == 0, 1, np.sqrt(0.5)) * (-1j) ** k
    result[:, : k.size] = series
    return result


# Points -------------------------------------------------------------------------------------


class PointMeasure(Measure):
    """Points with masses, flattened: x (members, n, d), masses (members, n)."""

    pointwise = True

    def __init__(self, state: Any, x: Any = None, masses: Any = None):
        super().__init__(state)
        x, masses = (state.x, state.masses) if x is None else (x, masses)
        self.x, self.masses = x.reshape(-1, *x.shape[-2:]), masses.reshape(-1, x.shape[-2])
        if not getattr(state, "on_sphere", True):
            self.metric = Metric(self.dimension, 0)

    def points(self, member: int, _cells: int) -> WeightedPoints:
        return WeightedPoints(self.x[member], self.masses[member])

    def angles_on_circle(self) -> tuple[np.ndarray, np.ndarray]:
        """Angles in [0, 2 pi) and masses, (members, n) each."""
        return np.arctan2(self.x[..., 1], self.x[..., 0]) % (2 * pi), self.masses

    def curves_on_circle(
        self, members: Any = ALL_MEMBERS, angles: np.ndarray = NO_ROTATION
    ) -> np.ndarray:
        positions, masses = self.angles_on_circle()
        return curves_of_points((positions[members] + angles[:, None]) % (2 * pi), masses[members])

    def projected(self, directions: np.ndarray) -> np.ndarray:
        plane = self.points(0, 0).x @ directions  # (count, n, 2)
        return self._curves_at(np.arctan2(plane[..., 1], plane[..., 0]))

    def _curves_at(self, angles: np.ndarray) -> np.ndarray:
        """Quantile functions of the points of a single member at angles (count, n)."""
        masses = np.broadcast_to(self.points(0, 0).masses, angles.shape)
        return curves_of_points(angles % (2 * pi), masses)

    def polar_curves(self) -> np.ndarray:
        return curves_of_points(self.angles_to(np.eye(self.dimension)[-1]), self.masses)

    def angles_to(self, point: np.ndarray) -> np.ndarray:
        """Geodesic distances from a unit vector, (members, n)."""
        return self.metric.between(self.x, point)

    def distance_to(self, point: np.ndarray, p: float) -> np.ndarray:
        angles = self.angles_to(point)
        scale = angles.max(axis=-1, initial=0.0)
        size = np.where(scale > 0, scale, 1.0)
        powers = (self.masses * (angles / size[:, None]) ** p).sum(axis=-1)
        return (scale * powers ** (1 / p)).reshape(self.shape)

    def coefficients(self, space: Space) -> np.ndarray:
        """Exact to about 1e-12, the accuracy of nonuniform transforms."""
        if not space.spherical:
            return space.empirical(self.x, self.masses)
        transform = _circle_transform if space.dimension == 2 else empirical_coefficients
        members = zip(self.x, self.masses, strict=True)
        return np.stack([transform(x, masses, space.degree) for x, masses in members])


class TorusPoints(PointMeasure):
    """Tokens on a torus."""

    factor = 2

    def projected(self, directions: np.ndarray) -> np.ndarray:
        return self._curves_at(directions @ self.state.angles.T)


class PointMass(PointMeasure):
    """The Dirac measure at one point."""

    def __init__(self, state: Dirac):
        super().__init__(state, state.point[None], np.ones(1))
        self.single_point = state.point
        self.axisymmetric = float(np.abs(state.point[:-1]).max()) <= AXIS_TOLERANCE

    def axial_coefficients(self, degree: int) -> np.ndarray:
        l = range(degree + 1)
        sizes = np.sqrt([dimension_of_harmonics(k, self.dimension) for k in l])
        return (sizes * np.sign(self.state.point[-1]) ** np.array(l))[None]


class NodeMeasure(PointMeasure):
    """The quadrature nodes of characteristics; rounding makes some masses about -1e-19."""

    def __init__(self, state: Characteristics):
        super().__init__(state, state.points, np.maximum(state.masses, 0.0))

    def points(self, member: int, _cells: int) -> WeightedPoints:
        return WeightedPoints(self.x[0], self.masses[0] / self.masses.sum())

    def angles_to(self, point: np.ndarray) -> np.ndarray:
        return self.state.chart.distances(self.state.coordinates, point)[None]

    def coefficients(self, space: Space) -> np.ndarray:
        return self.axial_coefficients(space.degree)

    def axial_coefficients(self, degree: int) -> np.ndarray:
        return self.state.coefficients(degree)[None]


class LatitudeMeasure(NodeMeasure):
    """The nodes of an axisymmetric density, each a circle of latitude."""

    pointwise = False
    axisymmetric = True

    def check_divisible(self) -> None:
        raise ValueError(
            "Characteristics of an axisymmetric density are circles of latitude, not points: "
            "they can be compared only with axisymmetric states. Use Sphere in d = 3."
        )

    def distance_to(self, point: np.ndarray, p: float) -> np.ndarray:
        if np.abs(point[:-1]).max() > AXIS_TOLERANCE:
            self.check_divisible()
        return super().distance_to(point, p)

    def angles_on_circle(self) -> tuple[np.ndarray, np.ndarray]:
        """Both points of each node: on the circle a latitude is a pair of points."""
        x, masses = np.concatenate([self.x[0], self.x[0] * [-1, 1]]), np.tile(self.masses / 2, 2)
        return (np.arctan2(x[:, 1], x[:, 0]) % (2 * pi))[None], masses

    def coefficients(self, space: Space) -> np.ndarray:
        return _about_the_last_axis(super().coefficients(space), space)


def _circle_transform(x: np.ndarray, masses: np.ndarray, degree: int) -> np.ndarray:
    """sum_j masses_j e^{-ik theta_j}, k = 0, ..., degree."""
    from ducc0.nufft import nu2u

    angles, modes = np.arctan2(x[:, 1], x[:, 0])[:, None], np.empty(2 * degree + 1, dtype=complex)
    options = {"forward": True, "epsilon": NUFFT_ACCURACY, "nthreads": 1, "fft_order": False}
    nu2u(points=masses.astype(complex), coord=angles, out=modes, periodicity=2 * pi, **options)
    return modes[degree:]


@singledispatch
def _measure_of_state(_state: Any) -> Measure | None:
    """The measure of a state of a registered class; None for other classes."""
    return None


_measure_of_state.register(
    Density, lambda state: (SmoothMeasure if state.space.spherical else SmoothTorusMeasure)(state)
)
_measure_of_state.register(Tokens, PointMeasure)
_measure_of_state.register(TorusTokens, TorusPoints)
_measure_of_state.register(Dirac, PointMass)
_measure_of_state.register(
    Characteristics,
    lambda state: (LatitudeMeasure if state.space.axisymmetric else NodeMeasure)(state),
)
