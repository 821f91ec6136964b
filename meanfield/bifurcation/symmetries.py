"""The symmetries that states on a space can have: their moments from a density, and back."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from ..spaces import Circle, Geometry, Sphere, Zonal
from ..spaces.contract import dimension_of_harmonics
from ..spaces.density import Density
from ..spaces.sphere_points import harmonics_at
from .bases import Basis, Harmonics
from .polyhedral import GROUPS, Polyhedral, polyhedral, spectrum

__all__ = ["AXISYMMETRIC", "Symmetry", "symmetry_on"]

AXISYMMETRIC = "axisymmetric"
ROUNDING = 1e-12
VISIBLE = 1e-6  # of the largest moment: what is smaller may be the noise of a run


class Symmetry(ABC):
    """The states of one symmetry on one kind of space.

    A subclass says which symmetries it is for, by name, and on which kind of space.

    Parameters
    ----------
    name : str
    geometry : Geometry

    Attributes
    ----------
    axis
        Where the axis of a state lies if nothing else is known.
    """

    kinds: ClassVar[dict[tuple[str, type[Geometry]], type["Symmetry"]]] = {}
    axis: Any = None

    def __init_subclass__(
        cls, names: tuple[str, ...] = (), space: type[Geometry] = Geometry, **options
    ):
        super().__init_subclass__(**options)
        Symmetry.kinds.update({(name, space): cls for name in names})

    def __init__(self, name: str, geometry: Any):
        self.name, self.geometry = name, geometry

    @abstractmethod
    def basis(self, degree: int | None = None) -> Basis:
        """Functions with the symmetry, by default up to the degree at which states are sought."""

    @abstractmethod
    def moments(self, density: Density, basis: Basis) -> tuple[np.ndarray, Any]:
        """Legendre moments (N,) in a basis of order 0, and the axis of the density."""

    @abstractmethod
    def density(self, m: np.ndarray, basis: Basis, axis: Any) -> Density:
        """The density with these moments, of the degree of the basis."""


def symmetry_on(geometry: Any, name: str = AXISYMMETRIC) -> Symmetry:
    """A symmetry of states on a space.

    Raises
    ------
    TypeError
        For spaces on which stationary states are not known.
    ValueError
        For symmetries that the space lacks.
    """
    here: dict[str, type[Symmetry]] = {}
    for kind in reversed(type(geometry).__mro__):
        here |= {known: found for (known, space), found in Symmetry.kinds.items() if space is kind}
    if not here:
        *names, last = dict.fromkeys(space.__name__ for _, space in Symmetry.kinds)
        raise TypeError(
            f"Stationary states are known on {', '.join(names)} or {last}; got {geometry!r}."
        )
    if name not in here:
        raise ValueError(
            f"symmetry is {' or '.join(map(repr, here))} on {geometry!r}; got {name!r}."
        )
    return here[name](name, geometry)


class Axisymmetric(Symmetry):
    """States with an axis: that of the first moment of a density that does not vanish."""

    def basis(self, degree: int | None = None) -> Harmonics:
        chosen = degree or max(Harmonics.least, self.geometry.degree)
        return Harmonics(self.geometry.dimension, 0, chosen)

    def moments(self, density: Density, basis: Basis) -> tuple[np.ndarray, Any]:
        m, axis = self._about_axis(density)
        return basis.padded(m[: len(basis.degrees)]), axis

    @abstractmethod
    def _about_axis(self, density: Density) -> tuple[np.ndarray, Any]:
        """All Legendre moments about the axis, and the axis."""


class OnCircle(Axisymmetric, names=(AXISYMMETRIC,), space=Circle):
    """Even states on the circle: int cos(k (theta - axis)) dmu, about an angle."""

    axis = 0.0

    def _about_axis(self, density: Density) -> tuple[np.ndarray, Any]:
        c = density.coefficients[1:]
        k, sizes = np.arange(1, len(c) + 1), np.abs(c)
        seen = np.flatnonzero((sizes > VISIBLE * sizes.max()) & (sizes > ROUNDING))
        angle = -np.angle(c[seen[0]]) / k[seen[0]] if seen.size else 0.0
        return (c * np.exp(1j * k * angle)).real, float(angle)

    def density(self, m: np.ndarray, basis: Basis, axis: Any) -> Density:
        series = np.concatenate([[1.0], m])
        return Density(Circle(basis.degree), series * np.exp(-1j * np.arange(len(series)) * axis))


class OnSphere(Axisymmetric, names=(AXISYMMETRIC,), space=Sphere):
    """States on S^2 about a unit vector: the first moment, or a principal axis of the second."""

    axis = np.array([0.0, 0.0, 1.0])

    def _about_axis(self, density: Density) -> tuple[np.ndarray, Any]:
        masses, x = density.geometry.weights * density.values, density.geometry.points
        axis = self._axis(masses, x)
        legendre = np.polynomial.legendre.legvander(x @ axis, density.geometry.degree)
        return (masses @ legendre)[1:], axis

    @staticmethod
    def _axis(masses: np.ndarray, x: np.ndarray) -> np.ndarray:
        first = masses @ x
        values, vectors = np.linalg.eigh((x * masses[:, None]).T @ x - np.eye(3) / 3)
        size = np.linalg.norm(first)
        if size > ROUNDING and size > VISIBLE * np.abs(values).max():
            return first / size
        return vectors[:, np.abs(values).argmax()]

    def density(self, m: np.ndarray, basis: Basis, axis: Any) -> Density:
        space = Sphere(basis.degree)
        moments = np.concatenate([[1.0], m])[space.degrees]
        return Density(space, moments * np.conj(harmonics_at(axis, basis.degree)))


class OnZonal(Axisymmetric, names=(AXISYMMETRIC,), space=Zonal):
    """States of `Zonal`, which have an axis already."""

    def _about_axis(self, density: Density) -> tuple[np.ndarray, Any]:
        l, d = range(1, density.geometry.degree + 1), density.geometry.dimension
        return density.coefficients[1:] / np.sqrt([dimension_of_harmonics(k, d) for k in l]), None

    def density(self, m: np.ndarray, basis: Basis, axis: Any) -> Density:
        space = Zonal(basis.dimension, basis.degree)
        return Density(space, np.concatenate([[1.0], m * basis.sizes]))


class OfPolyhedron(Symmetry, names=tuple(GROUPS), space=Sphere):
    """States on S^2 with the symmetry of a polyhedron, which lies as `Polyhedral` says."""

    def basis(self, degree: int | None = None) -> Polyhedral:
        return polyhedral(self.name, 0, degree or Polyhedral.least)

    def moments(self, density: Density, basis: Basis) -> tuple[np.ndarray, Any]:
        degree = min(basis.degree, density.geometry.degree)
        space = Sphere(degree)
        c = space.parseval * density.geometry.resample(density.coefficients, degree)
        a = (spectrum(self.name, degree).conj() @ c).real
        return basis.padded(a / basis.sizes[: len(a)]), None

    def density(self, m: np.ndarray, basis: Basis, axis: Any) -> Density:
        series = (m * basis.sizes) @ spectrum(self.name, basis.degree)
        series[0] = 1.0
        return Density(Sphere(basis.degree), series)
