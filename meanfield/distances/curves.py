"""Transport where order decides: around the circle, along meridians, on the line."""

from math import exp, lgamma, pi
from typing import Any

import numpy as np

from ..characteristics import Characteristics
from ..geometry import Zonal
from ..states import Density, Dirac, Tokens
from .quantiles import RISE, of_atoms, of_densities
from .search import best_shifts, costs
from .shift import rules_for

__all__ = [
    "along_meridians",
    "around_circle",
    "atoms_on_circle",
    "best_costs",
    "is_axisymmetric",
    "on_line",
]

NODES = 12
ON_AXIS = 1e-15
ROUNDING = 1e-15


def around_circle(a: Any, b: Any, p: float, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """W_p and its error, (pairs,), of the members (i, j) that `pairs` lists, on the circle."""
    return _rooted(*best_costs(_circular(a), _circular(b), p, pairs), p, pi)


def best_costs(X, Y, p: float, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """W_p^p of curves around the circle, and a bound from below, (pairs,) each."""
    X, Y, pairs = _ordered(X, Y, pairs)
    found = np.empty((len(pairs), 3))
    best_shifts(X, Y, pairs, p, 2 * pi, rules_for(p, NODES), found)
    return found[:, 1], found[:, 2]


def along_meridians(a: Any, b: Any, p: float, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for two measures symmetric about the last axis, of whatever dimension.

    The geodesic distance is no less than the difference of the polar angles, and equal to it on a
    meridian: the optimal plan keeps every point on its meridian.
    """
    return _without_shift(_polar(a), _polar(b), p, pairs, pi)


def on_line(a: Tokens, b: Tokens, p: float, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for tokens in R."""
    longest = max(a.x.max(), b.x.max()) - min(a.x.min(), b.x.min())
    X, Y = _atoms(a.x[..., 0], a.masses), _atoms(b.x[..., 0], b.masses)
    return _without_shift(X, Y, p, pairs, longest)


def is_axisymmetric(state: Any) -> bool:
    """Whether it is known to be symmetric about the last axis."""
    if isinstance(state, Dirac):
        return float(np.abs(state.point[:-1]).max()) <= ON_AXIS
    if isinstance(state, Density | Characteristics):
        return isinstance(state.geometry, Zonal)
    return False


def _without_shift(X, Y, p: float, pairs: np.ndarray, longest: float):
    X, Y, pairs = _ordered(X, Y, pairs)
    found = np.empty(len(pairs))
    costs(X, Y, pairs, p, rules_for(p, NODES), found)
    return _rooted(found, found, p, longest)


def _rooted(costs: np.ndarray, bounds: np.ndarray, p: float, longest: float):
    """Distances and their errors: rounding misplaces a mass of 1e-15, by `longest` at most."""
    rounding = ROUNDING * longest**p
    distance = np.maximum(costs, 0.0) ** (1 / p)
    least, most = np.maximum(bounds - rounding, 0.0), np.maximum(costs, 0.0) + rounding
    return distance, np.maximum(distance - least ** (1 / p), most ** (1 / p) - distance)


def _ordered(X, Y, pairs):
    """A curve with smooth pieces comes first."""
    if X.shape[2] == RISE < Y.shape[2]:
        return Y, X, np.ascontiguousarray(pairs[:, ::-1])
    return X, Y, pairs


def _atoms(places: np.ndarray, masses: np.ndarray) -> np.ndarray:
    n = places.shape[-1]
    return of_atoms(places.reshape(-1, n), masses.reshape(-1, n))


def _circular(state: Any) -> np.ndarray:
    atoms = atoms_on_circle(state)
    if atoms is None:
        return of_densities(lambda theta: _values(state, _embed(theta)) / (2 * pi), 2 * pi)
    return of_atoms(*atoms)


def atoms_on_circle(state: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Angles in [0, 2 pi) and masses (members, n); None for a density."""
    match state:
        case Density():
            return None
        case Characteristics():
            x, masses = state.points, state.masses
            if isinstance(state.geometry, Zonal):  # a node is two points
                x, masses = np.concatenate([x, x * [-1, 1]]), np.tile(masses / 2, 2)
        case Dirac():
            x, masses = state.point[None], np.ones(1)
        case _:
            x, masses = state.x, state.masses
    n = x.shape[-2]
    angles = np.arctan2(x[..., 1], x[..., 0]) % (2 * pi)
    return angles.reshape(-1, n), masses.reshape(-1, n)


def _polar(state: Any) -> np.ndarray:
    if isinstance(state, Dirac):
        return _atoms(np.array([0.0 if state.point[-1] > 0 else pi]), np.ones(1))
    d = state.geometry.dimension
    if isinstance(state, Characteristics):
        pole = np.eye(d)[-1]
        return _atoms(state.chart.distances(state.coordinates, pole), state.masses)
    constant = exp(lgamma(d / 2) - lgamma((d - 1) / 2)) / pi**0.5

    def density(angle: np.ndarray) -> np.ndarray:
        return constant * np.sin(angle) ** (d - 2) * _values(state, np.cos(angle)[:, None])

    return of_densities(density, pi)


def _values(density: Density, points: np.ndarray) -> np.ndarray:
    """Values (members, n) at points (n, d), or at their last coordinates if it is zonal."""
    return density.geometry.at(density.coefficients, points).reshape(-1, len(points))


def _embed(theta: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(theta), np.sin(theta)], axis=-1)
