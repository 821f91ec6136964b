"""States as measures: what distances ask of a state.

A state is made of points, or has a density. `measure_of` finds the class that answers for it. A
state from elsewhere takes part if it has a method ``as_measure()`` that returns a state known here,
for instance `Tokens`.
"""

from abc import ABC, abstractmethod
from functools import singledispatch
from math import exp, lgamma, pi
from typing import Any

import numpy as np

from ..spaces import Circle, Density, Space, Sphere
from ..spaces.characteristics import Characteristics
from ..spaces.contract import dimension_of_harmonics
from ..spaces.kernels import legendre_averages
from ..spaces.sphere_points import empirical_coefficients
from ..states import Dirac, Tokens
from .linear_programs import Cells, Points, angles_between
from .quantiles import curves_of_densities, curves_of_points

ON_AXIS = 1e-15
ACCURACY = 1e-14  # of the transforms of ducc0 on the circle
NODES, WAVES = 60, 30  # beyond the degree: for any power, and for sin^(d - 2) in d dimensions
FINE = 40  # points of the quadrature in a cell, about
LLOYD = 8  # iterations that place the cells
WITHOUT_AXIS = (
    "Polar angles and axial coefficients need a measure that is symmetric about the last axis, for "
    "instance a Density on Zonal; got {}."
)
ALL, UNTURNED = slice(None), np.zeros(1)


class Measure(ABC):
    """A state, or an ensemble of states, as a measure.

    Attributes
    ----------
    state : object
    shape : tuple of int
        Of the ensemble; its members are counted flat.
    dimension : int
        The ambient dimension d.
    on_sphere : bool
        Whether it lives on S^(d-1) rather than in R^d.
    smooth : bool
        Whether it has a density.
    pointwise : bool
        Whether it is a sum of points with masses >= 0.
    axisymmetric : bool
        Whether it is known to be symmetric about the last axis; it then has `polar_curves` and
        `axial_coefficients`.
    uniform : bool
        Whether it is the uniform measure.
    single_point : ndarray (d,), or None
        The point that has all mass.
    """

    on_sphere = True
    smooth = False
    pointwise = False
    axisymmetric = False
    uniform = False
    single_point: np.ndarray | None = None

    def __init__(self, state: Any):
        self.state, self.shape, self.dimension = state, state.shape, state.dimension

    def __str__(self) -> str:
        d = self.dimension
        return f"{type(self.state).__name__} {f'on S^{d - 1}' if self.on_sphere else f'in R^{d}'}"

    def check_divisible(self) -> None:
        """Raise ValueError for what neither is made of points nor can be divided into cells."""
        return

    @abstractmethod
    def points(self, member: int, cells: int) -> Points:
        """A member as points; a density as about this number of cells."""

    @abstractmethod
    def curves_on_circle(self, members: Any = ALL, angles: np.ndarray = UNTURNED) -> np.ndarray:
        """Quantile functions (members, pieces + 1, columns) on the circle, each turned."""

    @abstractmethod
    def polar_curves(self) -> np.ndarray:
        """Quantile functions of the angle to the last axis of an axisymmetric measure."""

    @abstractmethod
    def distance_to(self, point: np.ndarray, p: float) -> np.ndarray:
        """W_p to the Dirac at a unit vector, (*ensemble,): (int d(x, point)^p dmu)^(1/p)."""

    @abstractmethod
    def coefficients(self, space: Space) -> np.ndarray:
        """Coefficients (members, modes) with respect to the harmonics of the circle or S^2."""

    def axial_coefficients(self, degree: int) -> np.ndarray:
        """Coefficients (members, degree + 1) as those of `Zonal`; TypeError without an axis."""
        raise TypeError(WITHOUT_AXIS.format(self))


def checked_pair(name: str, a: Any, b: Any) -> tuple[Measure, Measure, tuple[int, ...], np.ndarray]:
    """Two states as measures, the shape of the ensemble of pairs, and their members (pairs, 2).

    Raises
    ------
    TypeError
        If a state is no measure.
    ValueError
        For different spaces, ensembles that do not broadcast, and negative densities.
    """
    first = measure_of(name, a)
    second = first if b is a else measure_of(name, b)
    if (first.dimension, first.on_sphere) != (second.dimension, second.on_sphere):
        raise ValueError(f"{name} needs two states of one space; got {first}, {second}.")
    try:
        shape = np.broadcast_shapes(first.shape, second.shape)
    except ValueError:
        raise ValueError(
            f"{name} needs ensembles whose shapes broadcast; got {first.shape} and {second.shape}."
        ) from None
    members = [
        np.broadcast_to(np.arange(int(np.prod(m.shape))).reshape(m.shape), shape).ravel()
        for m in (first, second)
    ]
    return first, second, shape, np.stack(members, axis=1)


def measure_of(name: str, state: Any) -> Measure:
    """The measure that a state is; raises TypeError, in the name of a distance, if it is none."""
    if hasattr(state, "as_measure"):
        return measure_of(name, state.as_measure())
    measure = _known(state)
    if measure is None:
        *names, last = [known.__name__ for known in _known.registry if known is not object]
        raise TypeError(
            f"{name} is between states: {', '.join(names)} or {last}, or a state whose method "
            f"as_measure() returns one of these; got {type(state).__name__}."
        )
    return measure


# Densities ----------------------------------------------------------------------------------


class SmoothMeasure(Measure):
    """A density with respect to the uniform measure, by its harmonics."""

    smooth = True

    def __init__(self, state: Density):
        super().__init__(state.checked_positive())
        self.space = state.space
        self.axisymmetric = self.space.axisymmetric
        self.series = state.coefficients.reshape(-1, state.coefficients.shape[-1])
        self.uniform = not np.any(self.series[:, 1:])

    def check_divisible(self) -> None:
        if self.dimension > 3:
            raise ValueError(
                f"A density on S^{self.dimension - 1} has a distance from axisymmetric states and "
                "from Diracs only. Compare tokens: density.sample(n, rng=0)."
            )

    def points(self, member: int, cells: int) -> Points:
        return self.cells(member, cells).coarse

    def cells(self, member: int, count: int) -> Cells:
        """About `count` cells, placed by Lloyd's iteration from a seeded sample.

        On the circle the cells are points at equal distances.
        """
        from scipy.spatial import cKDTree

        if self.dimension == 2:
            fine = self._quadrature(member, Circle(max(count // 3, self.space.degree)))
            return Cells(fine, np.arange(len(fine.x)), fine, fine)
        degree = max(int((FINE * count / 4.5) ** 0.5), self.space.degree)
        x, masses = fine = self._quadrature(member, Sphere(max(degree, 2)))
        centres = x[np.random.default_rng(0).choice(len(x), count, replace=False, p=masses)]
        for _ in range(LLOYD):
            owner = cKDTree(centres).query(x)[1]
            sums = np.stack([np.bincount(owner, masses * c, len(centres)) for c in x.T], axis=1)
            kept = np.bincount(owner, minlength=len(centres)) > 0
            centres = sums[kept] / np.linalg.norm(sums[kept], axis=1, keepdims=True)
        owner = cKDTree(centres).query(x)[1]
        coarse = Points(centres, np.bincount(owner, masses, len(centres)))
        check = self._quadrature(member, Sphere(max(int(0.7 * degree), 2)))
        return Cells(fine, owner, coarse, check)

    def _quadrature(self, member: int, grid: Space) -> Points:
        """The density on a grid, where it is positive."""
        masses = grid.weights * self.space.at(self.series[member], grid.points)
        some = masses > 0
        return Points(grid.points[some], masses[some] / masses[some].sum())

    def curves_on_circle(self, members: Any = ALL, angles: np.ndarray = UNTURNED) -> np.ndarray:
        circle = Circle(self.space.degree)
        series = self.coefficients(circle)[members] * np.exp(-1j * circle.degrees * angles[:, None])

        def density(angle: np.ndarray) -> np.ndarray:
            return circle.at(series, np.stack([np.cos(angle), np.sin(angle)], axis=-1)) / (2 * pi)

        return curves_of_densities(density, 2 * pi)

    def polar_curves(self) -> np.ndarray:
        def density(angle: np.ndarray) -> np.ndarray:
            values = self.space.at(self.series, np.cos(angle)[:, None])
            return _polar_weight(self.dimension, angle) * values

        return curves_of_densities(density, pi)

    def distance_to(self, point: np.ndarray, p: float) -> np.ndarray:
        """The harmonics of angle^p, by Funk and Hecke, against those of the density."""
        from scipy.special import roots_jacobi

        d = self.dimension
        size = self.space.degree + NODES + int(min(d, WAVES * d**0.5))
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


def _polar_weight(dimension: int, angle: np.ndarray) -> np.ndarray:
    """The density of the polar angle of the uniform measure on S^(d-1)."""
    constant = exp(lgamma(dimension / 2) - lgamma((dimension - 1) / 2)) / pi**0.5
    return constant * np.sin(angle) ** (dimension - 2)


def _about_the_last_axis(series: np.ndarray, space: Space) -> np.ndarray:
    """Coefficients of axisymmetric functions, (members, degree + 1), on the circle or S^2."""
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
        self.on_sphere = getattr(state, "on_sphere", True)

    def points(self, member: int, _cells: int) -> Points:
        return Points(self.x[member], self.masses[member])

    def angles_on_circle(self) -> tuple[np.ndarray, np.ndarray]:
        """Angles in [0, 2 pi) and masses, (members, n) each."""
        return np.arctan2(self.x[..., 1], self.x[..., 0]) % (2 * pi), self.masses

    def curves_on_circle(self, members: Any = ALL, angles: np.ndarray = UNTURNED) -> np.ndarray:
        places, masses = self.angles_on_circle()
        return curves_of_points((places[members] + angles[:, None]) % (2 * pi), masses[members])

    def polar_curves(self) -> np.ndarray:
        return curves_of_points(self.angles_to(np.eye(self.dimension)[-1]), self.masses)

    def angles_to(self, point: np.ndarray) -> np.ndarray:
        """Geodesic distances from a unit vector, (members, n)."""
        return angles_between(self.x, point)

    def distance_to(self, point: np.ndarray, p: float) -> np.ndarray:
        angles = self.angles_to(point)
        scale = angles.max(axis=-1, initial=0.0)
        size = np.where(scale > 0, scale, 1.0)
        powers = (self.masses * (angles / size[:, None]) ** p).sum(axis=-1)
        return (scale * powers ** (1 / p)).reshape(self.shape)

    def coefficients(self, space: Space) -> np.ndarray:
        """Exact to about 1e-12, the accuracy of nonuniform transforms."""
        transform = _circle_transform if space.dimension == 2 else empirical_coefficients
        members = zip(self.x, self.masses, strict=True)
        return np.stack([transform(x, masses, space.degree) for x, masses in members])


class PointMass(PointMeasure):
    """All mass at one point."""

    def __init__(self, state: Dirac):
        super().__init__(state, state.point[None], np.ones(1))
        self.single_point = state.point
        self.axisymmetric = float(np.abs(state.point[:-1]).max()) <= ON_AXIS

    def axial_coefficients(self, degree: int) -> np.ndarray:
        l = range(degree + 1)
        sizes = np.sqrt([dimension_of_harmonics(k, self.dimension) for k in l])
        return (sizes * np.sign(self.state.point[-1]) ** np.array(l))[None]


class NodeMeasure(PointMeasure):
    """The nodes of a quadrature that the flow carries; rounding makes some masses -1e-19."""

    def __init__(self, state: Characteristics):
        super().__init__(state, state.points, np.maximum(state.masses, 0.0))

    def points(self, member: int, _cells: int) -> Points:
        return Points(self.x[0], self.masses[0] / self.masses.sum())

    def angles_to(self, point: np.ndarray) -> np.ndarray:
        return self.state.chart.distances(self.state.coordinates, point)[None]

    def coefficients(self, space: Space) -> np.ndarray:
        return self.axial_coefficients(space.degree)

    def axial_coefficients(self, degree: int) -> np.ndarray:
        return self.state.coefficients(degree)[None]


class LatitudeMeasure(NodeMeasure):
    """Nodes of an axisymmetric density, each of which is a circle of latitude."""

    pointwise = False
    axisymmetric = True

    def check_divisible(self) -> None:
        raise ValueError(
            "Characteristics of an axisymmetric density are circles of latitude, not points: "
            "their distance is known from other axisymmetric states only. Use Sphere in d = 3."
        )

    def distance_to(self, point: np.ndarray, p: float) -> np.ndarray:
        if np.abs(point[:-1]).max() > ON_AXIS:
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
    options = {"forward": True, "epsilon": ACCURACY, "nthreads": 1, "fft_order": False}
    nu2u(points=masses.astype(complex), coord=angles, out=modes, periodicity=2 * pi, **options)
    return modes[degree:]


@singledispatch
def _known(_state: Any) -> Measure | None:
    """The measure that a state of a known class is; None for others."""
    return None


_known.register(Density, SmoothMeasure)
_known.register(Tokens, PointMeasure)
_known.register(Dirac, PointMass)
_known.register(
    Characteristics,
    lambda state: (LatitudeMeasure if state.space.axisymmetric else NodeMeasure)(state),
)
