"""Transport where order decides: around the circle, along meridians, on the line."""

from math import exp, lgamma, pi
from typing import Any

import numpy as np

from ..spaces import Zonal
from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..states import Dirac, Tokens
from .quantiles import LEVEL, RISE, WIDTH, of_atoms, of_densities
from .search import best_shifts, costs
from .shift import rules_for

__all__ = [
    "along_meridians",
    "around",
    "around_circle",
    "atoms_on_circle",
    "best_costs",
    "curves_on_circle",
    "is_axisymmetric",
    "on_line",
]

NODES = 12
ON_AXIS = 1e-15
ROUNDING, RELATIVE = 1e-15, 1e-15


def around_circle(a: Any, b: Any, p: float, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """W_p and its error, (pairs,), of the members (i, j) that `pairs` lists, on the circle."""
    return around(curves_on_circle(a), curves_on_circle(b), p, pairs)


def around(X, Y, p: float, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same from curves."""
    return _rooted(*best_costs(X, Y, p, pairs), p, pi, X.shape[1] + Y.shape[1])


def best_costs(X, Y, p: float, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """W_p^p of curves around the circle, and a bound from below, (pairs,) each."""
    X, Y, pairs = _ordered(X, Y, pairs)
    found = np.empty((len(pairs), 3))
    best_shifts(X, Y, pairs, p, 2 * pi, rules_for(p, NODES), found)
    if Y.shape[2] > RISE:  # where quantiles are not smooth a finer rule shows it
        finer, rules = np.empty(len(pairs)), rules_for(p, 2 * NODES)
        costs(X, Y, pairs, found[:, 0].copy(), p, 2 * pi, rules, finer)
        found[:, 2] -= np.abs(finer - found[:, 1])
        found[:, 1] = finer
    return found[:, 1], found[:, 2]


def along_meridians(a: Any, b: Any, p: float, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for two measures symmetric about the last axis, of whatever dimension.

    The geodesic distance is no less than the difference of the polar angles, and equal to it on a
    meridian: the optimal plan keeps every point on its meridian.
    """
    return _without_shift(_polar(a), _polar(b), p, pairs, pi)


def on_line(a: Tokens, b: Tokens, p: float, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for tokens in R."""
    lowest = min(a.x.min(), b.x.min())
    longest = float(max(a.x.max(), b.x.max()) - lowest) or 1.0
    X, Y = (_atoms((s.x[..., 0] - lowest) / longest, s.masses) for s in (a, b))
    distances, errors = _without_shift(X, Y, p, pairs, 1.0)
    return longest * distances, longest * errors


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
    costs(X, Y, pairs, np.zeros(len(pairs)), p, 0.0, rules_for(p, NODES), found)
    return _rooted(found, found, p, longest, X.shape[1] + Y.shape[1])


def _rooted(costs: np.ndarray, bounds: np.ndarray, p: float, longest: float, pieces: int):
    """Distances and their errors: rounding misplaces a little mass, by `longest` at most.

    1e-15 times the root of the number of pieces, whose levels have errors of either sign.
    """
    rounding = ROUNDING * pieces**0.5
    costs = np.minimum(np.maximum(costs / longest**p, 0.0), 1.0)
    bounds = np.minimum(bounds / longest**p, costs)
    distance = costs ** (1 / p)
    least, most = np.maximum(bounds - rounding, 0.0) ** (1 / p), (costs + rounding) ** (1 / p)
    error = np.maximum(distance - least, most - distance) + RELATIVE * distance
    return longest * distance, longest * error


def _ordered(X, Y, pairs):
    """A curve with smooth pieces comes first, of two the one with the less dense place.

    The quantiles of the second are integrated over, and are not smooth where it has little mass.
    """
    smooth = X.shape[2] == Y.shape[2] > RISE
    if X.shape[2] == RISE < Y.shape[2] or (smooth and _least_density(Y) < _least_density(X)):
        return Y, X, np.ascontiguousarray(pairs[:, ::-1])
    return X, Y, pairs


def _least_density(curves: np.ndarray) -> float:
    return float((np.diff(curves[:, :, LEVEL]) / curves[:, :-1, WIDTH]).min())


def _atoms(places: np.ndarray, masses: np.ndarray) -> np.ndarray:
    n = places.shape[-1]
    return of_atoms(places.reshape(-1, n), masses.reshape(-1, n))


def curves_on_circle(state: Any) -> np.ndarray:
    """Curves (members, pieces + 1, columns) of a state on the circle."""
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
            x, masses = state.points, np.maximum(state.masses, 0.0)  # some are -1e-19
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
        return _atoms(state.chart.distances(state.coordinates, pole), np.maximum(state.masses, 0.0))
    constant = exp(lgamma(d / 2) - lgamma((d - 1) / 2)) / pi**0.5

    def density(angle: np.ndarray) -> np.ndarray:
        return constant * np.sin(angle) ** (d - 2) * _values(state, np.cos(angle)[:, None])

    return of_densities(density, pi)


def _values(density: Density, points: np.ndarray) -> np.ndarray:
    """Values (members, n) at points (n, d), or at their last coordinates if it is zonal."""
    return density.geometry.at(density.coefficients, points).reshape(-1, len(points))


def _embed(theta: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(theta), np.sin(theta)], axis=-1)
