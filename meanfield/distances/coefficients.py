"""Harmonic coefficients of two measures, in one space."""

from typing import Any

import numpy as np

from ..spaces import Circle, Geometry, Sphere, Zonal
from ..spaces.characteristics import Characteristics
from ..spaces.contract import dimension_of_harmonics
from ..spaces.density import Density
from ..spaces.sphere_points import empirical_coefficients
from ..states import Dirac
from .curves import is_axisymmetric

__all__ = ["coefficients_of", "common_space"]

ACCURACY = 1e-14  # of the transforms of ducc0 on the circle


def common_space(a: Any, b: Any, dimension: int, degree: int, name: str) -> Geometry:
    """Zonal for two axisymmetric measures, or the circle or S^2.

    Raises
    ------
    ValueError
        For others in higher dimension.
    """
    if dimension > 2 and is_axisymmetric(a) and is_axisymmetric(b):
        return Zonal(dimension, degree)
    if dimension not in (2, 3):
        raise ValueError(
            f"{name} is summed over harmonics on the circle, on S^2, or of axisymmetric measures; "
            f"got measures on S^{dimension - 1}."
        )
    return Circle(degree) if dimension == 2 else Sphere(degree)


def coefficients_of(state: Any, space: Geometry) -> np.ndarray:
    """Coefficients (members, modes) with respect to the harmonics of `space`.

    Exact for densities; sums over points are those of nonuniform transforms, to about 1e-12.
    """
    match state:
        case Density():
            kept = state.geometry.resample(state.coefficients, space.degree)
            return _embedded(kept.reshape(-1, kept.shape[-1]), state.geometry, space)
        case Characteristics():
            return _embedded(state.coefficients(space.degree)[None], state.geometry, space)
        case Dirac():
            x, masses = state.point[None], np.ones((1, 1))
        case _:
            x, masses = state.x, state.masses
    if isinstance(space, Zonal):  # a Dirac at a pole
        sizes = np.sqrt([dimension_of_harmonics(l, space.dimension) for l in space.degrees])
        return (sizes * np.sign(x[0, -1]) ** space.degrees)[None]
    n, d = x.shape[-2:]
    of = _on_circle if isinstance(space, Circle) else empirical_coefficients
    sets = zip(x.reshape(-1, n, d), masses.reshape(-1, n), strict=True)
    return np.stack([of(points, m, space.degree) for points, m in sets])


def _embedded(series: np.ndarray, own: Geometry, space: Geometry) -> np.ndarray:
    """Those of axisymmetric functions among all of the circle or S^2."""
    if not isinstance(own, Zonal) or isinstance(space, Zonal):
        return series
    k = np.arange(space.degree + 1)
    result = np.zeros((len(series), space.degrees.size), dtype=complex)
    if isinstance(space, Circle):  # the axis e_2 is the angle pi / 2
        series = series * np.where(k == 0, 1, np.sqrt(0.5)) * (-1j) ** k
    result[:, : k.size] = series
    return result


def _on_circle(x: np.ndarray, masses: np.ndarray, degree: int) -> np.ndarray:
    """sum_j masses_j e^{-ik theta_j}, k = 0, ..., degree."""
    from ducc0.nufft import nu2u

    modes = nu2u(
        points=masses.astype(complex),
        coord=np.arctan2(x[:, 1], x[:, 0])[:, None],
        out=np.empty(2 * degree + 1, dtype=complex),
        forward=True,
        epsilon=ACCURACY,
        nthreads=1,
        periodicity=2 * np.pi,
        fft_order=False,
    )
    return modes[degree:]
