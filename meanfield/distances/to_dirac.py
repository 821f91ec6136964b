"""Transport to one point: everything goes there, W_p^p = int d(x, point)^p dmu."""

from math import exp, lgamma
from typing import Any

import numpy as np

from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..spaces.kernels import legendre_averages
from ..states import Dirac, Tokens
from .ground import between

__all__ = ["distance_to_point"]

NODES, WAVES = 60, 30  # beyond the degree: for any power, and for sin^(d - 2) in d dimensions


def distance_to_point(state: Any, point: np.ndarray, p: float) -> np.ndarray:
    """W_p to the Dirac at a unit vector, (*ensemble,), in radians."""
    match state:
        case Density():
            return np.maximum(_integral(state, point, p), 0.0) ** (1 / p)
        case Characteristics():
            angles = state.chart.distances(state.coordinates, point)
            masses = np.maximum(state.masses, 0.0)  # some are -1e-19
        case Dirac():
            angles, masses = between(state.point, point)[None], np.ones(1)
        case Tokens():
            angles, masses = between(state.x, point), state.masses
    scale = angles.max(axis=-1, initial=0.0)
    size = np.where(scale > 0, scale, 1.0)
    powers = (masses * (angles / size[..., None]) ** p).sum(axis=-1)
    return np.asarray(scale * powers ** (1 / p))


def _integral(density: Density, point: np.ndarray, p: float) -> np.ndarray:
    """The harmonics of angle^p, by Funk and Hecke, against those of the density."""
    from scipy.special import roots_jacobi

    geometry = density.geometry
    d = geometry.dimension
    size = geometry.degree + NODES + int(min(d, WAVES * d**0.5))
    nodes, weights = roots_jacobi(size, 0, p)
    angles = np.pi * (1 + nodes) / 2
    constant = (np.pi / 2) ** (p + 1) * exp(lgamma(d / 2) - lgamma((d - 1) / 2)) / np.pi**0.5
    weights = constant * weights * np.sin(angles) ** (d - 2)
    multipliers = legendre_averages(geometry.degree, d, np.cos(angles), weights)
    return geometry.at(density.coefficients * multipliers[geometry.degrees], point)
