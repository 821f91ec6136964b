"""From a density to its moments about an axis, and back."""

from typing import Any

import numpy as np

from ..errors import MeanfieldError
from ..geometry import Circle, Sphere, Zonal
from ..geometry.sphere_points import harmonics_at
from ..states import Density

__all__ = ["density_about", "moments_about"]

VISIBLE = 1e-12


def moments_about(density: Density) -> tuple[np.ndarray, Any]:
    """Moments a_1, ..., a_degree of the part symmetric about an axis, and that axis.

    The axis is the direction of the first moment that does not vanish: an angle on the circle, a
    unit vector on S^2 (of degree 1, or the principal one of degree 2), None for Zonal.
    """
    geometry, c = density.geometry, density.coefficients
    match geometry:
        case Zonal():
            return c[1:].copy(), None
        case Circle():
            k = np.arange(1, geometry.degree + 1)
            seen = np.flatnonzero(np.abs(c[1:]) > VISIBLE)
            angle = -np.angle(c[1 + seen[0]]) / k[seen[0]] if seen.size else 0.0
            return np.sqrt(2) * (c[1:] * np.exp(1j * k * angle)).real, float(angle)
        case Sphere():
            axis = _axis(density)
            masses = geometry.weights * density.values
            l = np.arange(1, geometry.degree + 1)
            legendre = np.polynomial.legendre.legvander(geometry.points @ axis, geometry.degree)
            return np.sqrt(2 * l + 1) * (masses @ legendre)[1:], axis
    raise MeanfieldError(
        f"Stationary states are known on Circle, Sphere and Zonal; got {geometry!r}."
    )


def density_about(moments: np.ndarray, geometry: Any, axis: Any) -> Density:
    """The density with these moments about an axis, of their degree."""
    degree = len(moments)
    if isinstance(geometry, Zonal):
        return Density(Zonal(geometry.dimension, degree), np.concatenate([[1.0], moments]))
    if isinstance(geometry, Circle):
        k = np.arange(degree + 1)
        series = np.concatenate([[1.0], moments / np.sqrt(2)])
        return Density(Circle(degree), series * np.exp(-1j * k * axis))
    space, l = Sphere(degree), np.arange(degree + 1)
    sizes = np.concatenate([[1.0], moments]) / np.sqrt(2 * l + 1)  # int P_l dmu
    return Density(space, sizes[space.degrees] * np.conj(harmonics_at(axis, degree)))


def _axis(density: Density) -> np.ndarray:
    masses = density.geometry.weights * density.values
    x = density.geometry.points
    first = masses @ x
    if np.linalg.norm(first) > VISIBLE:
        return first / np.linalg.norm(first)
    values, vectors = np.linalg.eigh((x * masses[:, None]).T @ x - np.eye(3) / 3)
    return vectors[:, np.abs(values).argmax()]
