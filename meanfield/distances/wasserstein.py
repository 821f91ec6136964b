"""Wasserstein distances between any two states on the same sphere, and between Gaussians."""

from collections.abc import Callable
from functools import cache
from itertools import product
from math import pi
from numbers import Real
from typing import Any

import numpy as np

from ..core.checks import boolean, whole_number
from ..states import Gaussian
from .distance import Distance
from .linear_programs import Cells, optimal_plan, semidiscrete_bounds
from .measures import Measure, checked_pair, is_measure
from .optimal_shift import transport_around_circle, transport_on_interval
from .quantile_functions import curves_of_points
from .rotations import transport_up_to_rotation

__all__ = ["CLOSED_FORMS", "checked_power", "wasserstein"]

LARGEST_POWER = 20  # beyond, rounding errors of masses decide
CELLS, MOST_CELLS = 2000, 20_000
ROUNDING = 1e-14  # of an integral, relative to its largest value

Found = tuple[float, float]  # a distance and its error
Divided = Callable[[Any, int], Cells]  # a density and which member of it


def wasserstein(
    a: Any, b: Any, p: float = 2, *, cells: int = CELLS, up_to_rotation: bool = False
) -> Distance:
    """W_p(a, b) = (min over plans of int d(x, y)^p dplan)^(1/p), in radians.

    d is the geodesic distance of the sphere, from 0 to pi; for tokens in R^d the Euclidean one.

    Parameters
    ----------
    a, b : Density, Tokens, Characteristics or Dirac; or two Gaussians
        On the same sphere. Ensembles and replicas are broadcast against each other. Another state
        takes part if its method ``as_measure()`` returns one of these.
    p : float
        From 1 to 20.
    cells : int
        Number of cells into which a density on S^2 is divided where no closed form is known: more
        are more accurate and cost more.
    up_to_rotation : bool
        On the circle: the least distance over all rotations of one of the two. Its relative error
        is 1e-6 for p = 2, at the cost of about 40 distances, and 1e-3 for other p, at the cost of
        hundreds. The search ends after 1000 distances, and `error` tells what is left.

    Returns
    -------
    Distance
        A number, or an array of the shape of the ensemble; its `error` is a bound.

    Raises
    ------
    TypeError, ValueError
        For states of different spheres, other states, and p outside its range.
    MeanfieldError
        For more than 2^28 pairs of points where all are needed.

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

    Characteristics are the measure of their nodes. On the circle n points take O(n log n) time; a
    density takes about 0.3 microseconds for each point and each shift that is tried. The linear
    program takes time of about n^2.5 and stores n^2 numbers.

    Two samples of n points of one law are not at distance 0 but near the sampling floor: n^(-1/2)
    on the circle, (log n / n)^(1/2) on S^2, n^(-1/(d-1)) for d > 3. The distance of a density from
    its rotation by an angle can be less than the angle, since mass may go the other way round.

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
    for pair in product(type(a).__mro__, type(b).__mro__):
        if pair in CLOSED_FORMS:
            return CLOSED_FORMS[pair](a, b, p, rotated)
    for state in (a, b):
        _check_partner(state, a, b)
    a, b, shape, pairs = checked_pair("wasserstein", a, b)
    for measure, other in ((a, b), (b, a)):
        if other.single_point is not None and not (rotated or _have_quantiles(measure, other)):
            return _to_point(measure, other.single_point, p, shape)
    values, errors, method = _of_members(a, b, p, pairs, cells, rotated)
    return Distance(np.reshape(values, shape), np.reshape(errors, shape), method)


def checked_power(p: Any) -> float:
    """p as a float; raises ValueError outside [1, 20]."""
    if isinstance(p, bool) or not isinstance(p, Real) or not 1 <= float(p) <= LARGEST_POWER:
        raise ValueError(
            f"A Wasserstein distance needs 1 <= p <= {LARGEST_POWER}, a number; got p = {p!r}."
        )
    return float(p)


# Closed forms -------------------------------------------------------------------------------


def _bures(a: Gaussian, b: Gaussian, p: float, rotated: bool) -> Distance:
    """W_2 of normal laws: (|m - n|^2 + tr(A + B - 2 (A^(1/2) B A^(1/2))^(1/2)))^(1/2).

    The trace of the root is the sum of the singular values of L^T M, A = L L^T, B = M M^T.

    References
    ----------
    Dowson and Landau, J. Multivariate Anal. 12 (1982).
    """
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
    u, _, v = np.linalg.svd(a.root.T @ b.root)
    apart = a.root @ u - b.root @ v.T  # |L U - M V|^2 for the best rotation: no cancellation
    value = float(np.sqrt(((a.mean - b.mean) ** 2).sum() + (apart**2).sum()))
    size = np.trace(a.cov) + np.trace(b.cov)  # roots of rounding errors, where both are singular
    return Distance(value, (np.finfo(float).eps * size) ** 0.5, "Bures")


CLOSED_FORMS: dict[tuple[type, type], Callable[[Any, Any, float, bool], Distance]] = {
    (Gaussian, Gaussian): _bures
}


def _check_partner(state: Any, a: Any, b: Any) -> None:
    """Raise TypeError for a state of a and b whose distances are closed forms only."""
    partners = [second for first, second in CLOSED_FORMS if isinstance(state, first)]
    if partners and not is_measure(state):
        raise TypeError(
            f"{type(state).__name__} has a distance from {partners[0].__name__} only; got "
            f"{type(a).__name__} and {type(b).__name__}. Compare a sample: "
            f"{type(state).__name__.lower()}.sample(n, rng=0)."
        )


# All mass at one point ----------------------------------------------------------------------


def _have_quantiles(measure: Measure, point: Measure) -> bool:
    """Whether quantile functions are used, which are more accurate for a density and a point."""
    axisymmetric = measure.axisymmetric and point.axisymmetric
    return measure.smooth and (measure.dimension == 2 or axisymmetric)


def _to_point(measure: Measure, point: np.ndarray, p: float, shape: tuple[int, ...]) -> Distance:
    value = np.broadcast_to(measure.distance_to(point, p), shape)
    rounding = ROUNDING * np.pi**p if measure.smooth else 0.0
    error = (value**p + rounding) ** (1 / p) - value + ROUNDING * value
    return Distance(value, error, "integral")


# Members ------------------------------------------------------------------------------------


def _of_members(a: Measure, b: Measure, p: float, pairs: np.ndarray, cells: int, rotated: bool):
    """Distances and errors of the pairs of members, and the method."""
    on_circle = a.dimension == 2 and a.on_sphere
    if rotated:
        if not on_circle:
            raise ValueError(f"Distances up to rotation are known on the circle; got {a} and {b}.")
        return *transport_up_to_rotation(a, b, p, pairs), "quantiles, rotated"
    if on_circle:
        X, Y = a.curves_on_circle(), b.curves_on_circle()
        return *transport_around_circle(X, Y, p, pairs), "quantiles"
    if a.axisymmetric and b.axisymmetric:  # the optimal plan keeps every point on its meridian
        X, Y = a.polar_curves(), b.polar_curves()
        return *transport_on_interval(X, Y, p, pairs, pi), "quantiles"
    if a.dimension == 1:
        return *_on_line(a, b, p, pairs), "quantiles"
    for measure in (a, b):
        measure.check_divisible()
    densities = a.smooth + b.smooth
    of_pair = (_between_points, _density_and_points, _between_densities)[densities]
    divided = cache(lambda measure, member: measure.cells(member, cells))
    found = np.array([of_pair(a, b, i, j, p, divided) for i, j in pairs])
    method = ("network simplex", "semi-discrete", "cells")[densities]
    return found[:, 0], found[:, 1], method


def _on_line(a: Any, b: Any, p: float, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points of R, which are scaled to the interval [0, 1]."""
    lowest = min(a.x.min(), b.x.min())
    longest = float(max(a.x.max(), b.x.max()) - lowest) or 1.0
    X, Y = (
        curves_of_points(
            ((m.x - lowest) / longest).reshape(-1, m.x.shape[-2]),
            m.masses.reshape(-1, m.x.shape[-2]),
        )
        for m in (a, b)
    )
    distances, errors = transport_on_interval(X, Y, p, pairs, 1.0)
    return longest * distances, longest * errors


def _between_points(a: Measure, b: Measure, i: int, j: int, p: float, _: Divided) -> Found:
    plan = optimal_plan(*a.points(i, 0), *b.points(j, 0), p, a.on_sphere)
    distance = plan.cost ** (1 / p)
    error = distance - max(plan.bound, 0.0) ** (1 / p) + ROUNDING * distance
    return plan.scale * distance, plan.scale * error


def _density_and_points(
    a: Measure, b: Measure, i: int, j: int, p: float, divided: Divided
) -> Found:
    if b.smooth:
        a, b, i, j = b, a, j, i
    bounds = semidiscrete_bounds(divided(a, i), b.points(j, 0), p)
    least, most = (x ** (1 / p) for x in bounds)
    return (least + most) / 2, abs(most - least) / 2 + ROUNDING * most


def _between_densities(a: Measure, b: Measure, i: int, j: int, p: float, divided: Divided) -> Found:
    first, second = divided(a, i), divided(b, j)
    plan = optimal_plan(*first.coarse, *second.coarse, p)
    return plan.scale * plan.cost ** (1 / p), first.radius(p) + second.radius(p)
