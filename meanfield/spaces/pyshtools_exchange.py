"""Densities on S^2 from pyshtools and to it, whatever its normalisation and phase."""

from typing import TYPE_CHECKING

import numpy as np

from .density import Density
from .sphere import Sphere

if TYPE_CHECKING:
    import pyshtools

__all__ = ["from_pyshtools", "to_pyshtools"]


def from_pyshtools(field: "pyshtools.SHCoeffs | pyshtools.SHGrid") -> Density:
    """The density with the coefficients, or the values on a grid, of a pyshtools object.

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
    if not hasattr(field, "convert"):
        raise TypeError(f"Expected pyshtools' SHCoeffs or SHGrid; got {type(field).__name__}.")
    if field.kind != "real":
        raise ValueError("A density is real; got complex coefficients. Take the real part first.")
    real = field.convert(normalization="4pi", csphase=1).coeffs
    sphere = Sphere(real.shape[1] - 1)
    cos, sin = real[:, sphere.degrees, sphere.orders]
    coefficients = np.where(sphere.orders == 0, cos, (cos - 1j * sin) / np.sqrt(2))
    return Density(sphere, coefficients).checked_positive()


def to_pyshtools(density: Density) -> "pyshtools.SHCoeffs":
    """Real coefficients in the normalisation "4pi" with csphase = 1, pyshtools' default.

    Raises
    ------
    TypeError
        Unless the density is a single one on S^2.
    """
    from pyshtools import SHCoeffs

    sphere = density.geometry if isinstance(density, Density) else None
    if not isinstance(sphere, Sphere) or density.shape:
        raise TypeError(f"to_pyshtools expects a single density on a Sphere; got {density!r}.")
    real = np.zeros((2, sphere.degree + 1, sphere.degree + 1))
    scale = np.where(sphere.orders == 0, 1, np.sqrt(2))
    real[0, sphere.degrees, sphere.orders] = scale * density.coefficients.real
    real[1, sphere.degrees, sphere.orders] = -scale * density.coefficients.imag
    return SHCoeffs.from_array(real, normalization="4pi", csphase=1)
