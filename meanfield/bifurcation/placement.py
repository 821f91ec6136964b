"""From a density to its moments in a basis of one symmetry, and back."""

from typing import Any

import numpy as np

from ..core.errors import MeanfieldError
from ..spaces import Circle, Geometry, Sphere, Zonal
from ..spaces.density import Density
from ..spaces.sphere_points import harmonics_at
from .basis import Basis
from .harmonics import Harmonics
from .polyhedral import GROUPS, Polyhedral, polyhedral, spectrum

__all__ = ["SYMMETRIES", "basis_of", "density_of", "moments_of", "usual_axis"]

AXISYMMETRIC = "axisymmetric"
SYMMETRIES = (AXISYMMETRIC, *GROUPS)
ROUNDING = 1e-12
VISIBLE = 1e-6  # of the largest moment: what is smaller may be the noise of a run


def basis_of(symmetry: str, geometry: Any, degree: int | None = None) -> Basis:
    """The functions on a space with a symmetry.

    By default of the degree of the space and at least of the least one of the basis; for polyhedra
    of the least one.

    Raises
    ------
    MeanfieldError
        For other spaces.
    ValueError
        For other symmetries, and polyhedral ones elsewhere than on S^2.
    """
    if not isinstance(geometry, Circle | Sphere | Zonal):
        raise MeanfieldError(
            f"Stationary states are known on Circle, Sphere and Zonal; got {geometry!r}."
        )
    if symmetry == AXISYMMETRIC:
        chosen = degree or max(Harmonics.least, geometry.degree)
        return Harmonics(geometry.dimension, 0, chosen)
    if symmetry not in GROUPS or not isinstance(geometry, Sphere):
        raise ValueError(
            f"symmetry is {AXISYMMETRIC!r}, or on Sphere {', '.join(map(repr, GROUPS))}; got "
            f"{symmetry!r} on {geometry!r}."
        )
    return polyhedral(symmetry, 0, degree or Polyhedral.least)


def usual_axis(geometry: Geometry) -> Any:
    """Where the axis of a state is, if nothing else is known: angle 0, and z."""
    if isinstance(geometry, Circle):
        return 0.0
    return np.array([0.0, 0.0, 1.0]) if isinstance(geometry, Sphere) else None


def moments_of(density: Density, basis: Basis) -> tuple[np.ndarray, Any]:
    """Moments (N,) in a basis of order 0, and the axis of the density.

    The axis is the direction of the first moment that does not vanish: an angle on the circle, a
    unit vector on S^2 (of degree 1, or the principal one of degree 2), None for Zonal. Polyhedra
    lie as `Polyhedral` says, with None as axis.
    """
    geometry = density.geometry
    if isinstance(basis, Polyhedral):
        degree = min(basis.degree, geometry.degree)
        space = Sphere(degree)
        c = space.parseval * geometry.resample(density.coefficients, degree)
        a = (spectrum(basis.group, degree).conj() @ c).real
        return np.pad(a, (0, len(basis.degrees) - len(a))), None
    a, axis = _about_axis(density)
    a = a[: len(basis.degrees)]
    return np.pad(a, (0, len(basis.degrees) - len(a))), axis


def density_of(a: np.ndarray, basis: Basis, geometry: Geometry, axis: Any) -> Density:
    """The density with these moments, of the degree of the basis."""
    degree = basis.degree
    if isinstance(basis, Polyhedral):
        series = a @ spectrum(basis.group, degree)
        series[0] = 1.0
        return Density(Sphere(degree), series)
    if isinstance(geometry, Zonal):
        return Density(Zonal(geometry.dimension, degree), np.concatenate([[1.0], a]))
    if isinstance(geometry, Circle):
        k = np.arange(degree + 1)
        series = np.concatenate([[1.0], a / np.sqrt(2)])
        return Density(Circle(degree), series * np.exp(-1j * k * axis))
    space, l = Sphere(degree), np.arange(degree + 1)
    sizes = np.concatenate([[1.0], a]) / np.sqrt(2 * l + 1)  # int P_l dmu
    return Density(space, sizes[space.degrees] * np.conj(harmonics_at(axis, degree)))


def _about_axis(density: Density) -> tuple[np.ndarray, Any]:
    geometry, c = density.geometry, density.coefficients
    match geometry:
        case Zonal():
            return c[1:].copy(), None
        case Circle():
            k = np.arange(1, geometry.degree + 1)
            sizes = np.abs(c[1:])
            seen = np.flatnonzero((sizes > VISIBLE * sizes.max()) & (sizes > ROUNDING))
            angle = -np.angle(c[1 + seen[0]]) / k[seen[0]] if seen.size else 0.0
            return np.sqrt(2) * (c[1:] * np.exp(1j * k * angle)).real, float(angle)
    axis = _axis(density)
    masses = geometry.weights * density.values
    l = np.arange(1, geometry.degree + 1)
    legendre = np.polynomial.legendre.legvander(geometry.points @ axis, geometry.degree)
    return np.sqrt(2 * l + 1) * (masses @ legendre)[1:], axis


def _axis(density: Density) -> np.ndarray:
    masses = density.geometry.weights * density.values
    x = density.geometry.points
    first = masses @ x
    values, vectors = np.linalg.eigh((x * masses[:, None]).T @ x - np.eye(3) / 3)
    size = np.linalg.norm(first)
    if size > ROUNDING and size > VISIBLE * np.abs(values).max():
        return first / size
    return vectors[:, np.abs(values).argmax()]
