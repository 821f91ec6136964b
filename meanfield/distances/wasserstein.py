"""Wasserstein distances between any two states on the same sphere."""

from collections.abc import Callable
from functools import cache
from numbers import Real
from typing import Any

import numpy as np

from ..core.checks import boolean, whole_number
from ..spaces import Zonal
from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..states import Dirac, Gaussian
from .bures import bures_wasserstein
from .clouds import Cells, cells_of, cloud_of
from .curves import along_meridians, around_circle, is_axisymmetric, on_line
from .distance import Distance
from .network import optimal_plan
from .pairing import checked_states, dimension_of, on_sphere
from .rotations import around_circle_up_to_rotation
from .semidiscrete import bounds
from .to_dirac import distance_to_point

__all__ = ["check_atoms", "checked_power", "wasserstein"]

LARGEST_POWER = 20  # beyond, rounding errors of masses decide
CELLS, MOST_CELLS = 2000, 20_000
Divided = Callable[[Any, int], Cells]  # a density and which member of it
ROUNDING = 1e-14  # of an integral, relative to its largest value


def wasserstein(
    a: Any, b: Any, p: float = 2, *, cells: int = CELLS, up_to_rotation: bool = False
) -> Distance:
    """W_p(a, b) = (min over plans of int d(x, y)^p dplan)^(1/p), in radians.

    d is the geodesic distance of the sphere, from 0 to pi; for tokens in R^d the Euclidean one.

    Parameters
    ----------
    a, b : Density, Tokens, Characteristics or Dirac; or two Gaussians
        On the same sphere. Ensembles and replicas are broadcast against each other.
    p : float
        From 1 to 20.
    cells : int
        Of a density on S^2 whose partner has no closed form: more are more accurate and cost more.
    up_to_rotation : bool
        On the circle: the least distance over all rotations of one of the two. It is found to
        1e-6, relative, for p = 2, at the cost of about 40 distances, else to 1e-3 by hundreds; or,
        where rotations hardly matter, to what 1000 distances tell, as the error says.

    Returns
    -------
    Distance
        To be used as a number, or an array of the shape of the ensemble; its `error` is a bound.

    Raises
    ------
    TypeError, ValueError
        For states of different spheres, other states, and p outside its range.
    MeanfieldError
        For more than 2^28 pairs of atoms where all are needed.

    Warns
    -----
    UnresolvedWarning
        If the linear program stopped before its optimum.

    Notes
    -----
    ============================================  ==================  ==========================
    between                                       how                 error
    ============================================  ==================  ==========================
    anything on the circle                        quantiles and the   rounding
                                                  best shift
    anything and a Dirac                          an integral         rounding
    axisymmetric densities, any d                 along meridians     rounding
    tokens, characteristics                       network simplex     rounding
    Gaussians, p = 2                              Bures' formula      rounding
    a density on S^2 and tokens                   `cells`, semi-      half the distance of two
                                                  discrete            bounds
    two densities on S^2                          `cells`             distance of densities from
                                                                      their cells
    ============================================  ==================  ==========================

    Characteristics are the measure of their nodes. On the circle the cost of n atoms is
    O(n log n); a density takes about 0.3 microseconds for each atom and each shift that is tried.
    The linear program is of cost about n^2.5 and needs n^2 numbers.

    Two samples of n points of one law are not at distance 0 but near the sampling floor: n^(-1/2)
    on the circle, (log n / n)^(1/2) on S^2, n^(-1/(d-1)) for d > 3. And W_p of a density from
    itself turned by an angle can be less than the angle: mass may go round.

    References
    ----------
    Delon, Salomon and Sobolevski, Fast transport optimization for Monge costs on the circle, SIAM
    J. Appl. Math. 70 (2010).
    """
    p = checked_power(p)
    cells = whole_number("wasserstein needs a number of cells", "cells", cells)
    if cells > MOST_CELLS:
        raise ValueError(f"cells must be at most {MOST_CELLS}; got cells = {cells}.")
    rotated = boolean("up_to_rotation", up_to_rotation)
    if isinstance(a, Gaussian) or isinstance(b, Gaussian):
        return _of_gaussians(a, b, p, rotated)
    shape, pairs = checked_states("wasserstein", a, b)
    if rotated:
        return _from_orbit(a, b, p, shape, pairs)
    for state, other in ((a, b), (b, a)):
        if isinstance(other, Dirac) and not _has_quantiles(state, other):
            return _to_point(state, other, p, shape)
    values, errors, method = _members(a, b, p, pairs, cells)
    return Distance(np.reshape(values, shape), np.reshape(errors, shape), method)


def _from_orbit(a: Any, b: Any, p: float, shape: tuple[int, ...], pairs: np.ndarray) -> Distance:
    if dimension_of(a) != 2 or not on_sphere(a):
        raise ValueError(
            "Distances up to rotation are known on the circle; got "
            f"{type(a).__name__} in dimension {dimension_of(a)}."
        )
    values, errors = around_circle_up_to_rotation(a, b, p, pairs)
    return Distance(np.reshape(values, shape), np.reshape(errors, shape), "quantiles, rotated")


def _has_quantiles(state: Any, point: Dirac) -> bool:
    """Whether a density and a point are better compared by quantiles."""
    on_circle = dimension_of(state) == 2
    return isinstance(state, Density) and (
        on_circle or (is_axisymmetric(state) and is_axisymmetric(point))
    )


def _to_point(state: Any, point: Dirac, p: float, shape: tuple[int, ...]) -> Distance:
    rings = isinstance(state, Characteristics) and isinstance(state.geometry, Zonal)
    if rings and not is_axisymmetric(point):
        check_atoms(state)
    value = np.broadcast_to(distance_to_point(state, point.point, p), shape)
    rounding = ROUNDING * np.pi**p if isinstance(state, Density) else 0.0
    error = (value**p + rounding) ** (1 / p) - value + ROUNDING * value
    return Distance(value, error, "integral")


def _of_gaussians(a: Any, b: Any, p: float, rotated: bool) -> Distance:
    if not (isinstance(a, Gaussian) and isinstance(b, Gaussian)):
        raise TypeError(
            "A Gaussian has a distance from another Gaussian, p = 2; got "
            f"{type(a).__name__} and {type(b).__name__}. For tokens compare a sample: "
            "gaussian.sample(n, rng=0)."
        )
    if a.dimension != b.dimension:
        raise ValueError(
            "wasserstein needs two Gaussians of one dimension; got "
            f"dimensions {a.dimension} and {b.dimension}."
        )
    if p != 2 or rotated:
        raise ValueError(
            "Gaussians have a closed distance for p = 2, not up to rotation; got "
            f"p = {p:g}, up_to_rotation = {rotated}."
        )
    size = np.trace(a.cov) + np.trace(b.cov)  # roots of rounding errors, where both are singular
    return Distance(bures_wasserstein(a, b), (np.finfo(float).eps * size) ** 0.5, "Bures")


def _members(a, b, p: float, pairs: np.ndarray, cells: int):
    if dimension_of(a) == 2 and on_sphere(a):
        return *around_circle(a, b, p, pairs), "quantiles"
    if is_axisymmetric(a) and is_axisymmetric(b):
        return *along_meridians(a, b, p, pairs), "quantiles"
    if dimension_of(a) == 1:
        return *on_line(a, b, p, pairs), "quantiles"
    for state in (a, b):
        check_atoms(state)
    densities = isinstance(a, Density) + isinstance(b, Density)
    of_pair = (_plan_of_atoms, _enclosed, _of_cells)[densities]
    divided = cache(lambda state, member: cells_of(state, member, cells))
    found = np.array([of_pair(a, b, i, j, p, divided) for i, j in pairs])
    method = ("network simplex", "semi-discrete", "cells")[densities]
    return found[:, 0], found[:, 1], method


def _plan_of_atoms(a, b, i: int, j: int, p: float, _divided: Divided) -> tuple[float, float]:
    x, y = cloud_of(a, i), cloud_of(b, j)
    plan = optimal_plan(*x, *y, p, on_sphere(a))
    distance = plan.cost ** (1 / p)
    error = distance - max(plan.bound, 0.0) ** (1 / p) + ROUNDING * distance
    return plan.scale * distance, plan.scale * error


def _enclosed(a, b, i: int, j: int, p: float, divided: Divided) -> tuple[float, float]:
    if isinstance(b, Density):
        a, b, i, j = b, a, j, i
    least, most = (x ** (1 / p) for x in bounds(divided(a, i), cloud_of(b, j), p))
    return (least + most) / 2, abs(most - least) / 2 + ROUNDING * most


def _of_cells(a, b, i: int, j: int, p: float, divided: Divided) -> tuple[float, float]:
    first, second = divided(a, i), divided(b, j)
    plan = optimal_plan(*first.coarse, *second.coarse, p)
    return plan.scale * plan.cost ** (1 / p), first.radius(p) + second.radius(p)


def checked_power(p: Any) -> float:
    """p as a float; raises ValueError outside [1, 20]."""
    if isinstance(p, bool) or not isinstance(p, Real) or not 1 <= float(p) <= LARGEST_POWER:
        raise ValueError(
            f"A Wasserstein distance needs 1 <= p <= {LARGEST_POWER}, a number; got p = {p!r}."
        )
    return float(p)


def check_atoms(state: Any) -> None:
    """Raise ValueError for what has neither atoms nor cells."""
    if isinstance(state, Characteristics) and isinstance(state.geometry, Zonal):
        raise ValueError(
            "Characteristics of an axisymmetric density are circles of latitude, not points: "
            "their distance is known from other axisymmetric states only. Use Sphere in d = 3."
        )
    if isinstance(state, Density) and state.geometry.dimension > 3:
        raise ValueError(
            f"A density on S^{state.geometry.dimension - 1} has a distance from axisymmetric "
            "states and from Diracs only. Compare tokens: density.sample(n, rng=0)."
        )
