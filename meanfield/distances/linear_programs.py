"""Optimal transport between weighted points as a linear program, and between cells of densities.

The program is solved by the network simplex of POT. Its dual potential certifies the plan. Between
a density on S^2 and points the two together enclose the distance (semi-discrete transport).
"""

import warnings
from typing import NamedTuple

import numpy as np

from ..core.checks import check_memory
from ..core.errors import MeanfieldError, UnresolvedWarning
from ..lowlevel.compilation import njit

SMALL_ANGLE = 0.01  # closer to 0 or pi than this, the arc cosine loses digits
MAX_PAIRS = 2**28  # costs and plan take 4 GiB
MAX_PIVOTS = 10**9
OPTIMALITY_GAP = 1e-9  # between plan and certificate, relative to the largest cost
PAIRS_IN_CACHE = 2**17
CHORD_ROUNDING = 1e-14  # error of 2 - 2 <x, y> as the square of a chord


class WeightedPoints(NamedTuple):
    """WeightedPoints with masses: x (n, d), masses (n,)."""

    x: np.ndarray
    masses: np.ndarray


class Cells(NamedTuple):
    """A density divided into cells: a fine quadrature, and one point per cell.

    Attributes
    ----------
    fine : WeightedPoints
    owner : ndarray of int, (fine n,)
        The cell of each point of the fine quadrature.
    coarse : WeightedPoints
        Centres of the cells, with their masses.
    check : WeightedPoints
        Another quadrature, of about half as many points, that shows the error of the fine one.
    """

    fine: WeightedPoints
    owner: np.ndarray
    coarse: WeightedPoints
    check: WeightedPoints

    def radius(self, p: float) -> float:
        """An upper bound of W_p between the density and its centres."""
        angles = angles_between(self.fine.x, self.coarse.x[self.owner])
        return float((self.fine.masses @ angles**p) ** (1 / p))


class Plan(NamedTuple):
    """An optimal plan between points, and its certificate.

    Attributes
    ----------
    cost : float
        sum_ij plan_ij (d(x_i, y_j) / scale)^p.
    bound : float
        A lower bound of the cost of every plan: sum masses u + sum masses v, where
        u_i + v_j <= (d(x_i, y_j) / scale)^p.
    masses : ndarray, (n, m)
    potential : ndarray, (m,)
        v.
    scale : float
        The largest distance.
    """

    cost: float
    bound: float
    masses: np.ndarray
    potential: np.ndarray
    scale: float


def optimal_plan(
    x: np.ndarray, a: np.ndarray, y: np.ndarray, b: np.ndarray, p: float, on_sphere: bool = True
) -> Plan:
    """The plan of least cost between sum_i a_i delta_{x_i} and sum_j b_j delta_{y_j}.

    Raises
    ------
    MeanfieldError
        For more than 2^28 pairs of points.

    Warns
    -----
    UnresolvedWarning
        If the network simplex stopped before the optimum.
    """
    from ot import emd

    if len(x) * len(y) > MAX_PAIRS:
        raise MeanfieldError(
            f"Optimal transport between {len(x)} and {len(y)} points needs all pairs, at most "
            f"{MAX_PAIRS}. Take fewer tokens, or sliced_wasserstein, sobolev_distance or mmd, "
            "whose cost is nearly linear."
        )
    sizes = (4, len(x), len(y))
    check_memory(f"costs between {len(x)} and {len(y)} points", sizes, "cells, or the tokens")
    costs, scale = _scaled_costs(x, y, p, on_sphere)
    options = {"numItermax": MAX_PIVOTS, "center_dual": False, "check_marginals": False}
    plan, log = emd(a / a.sum(), b / b.sum(), costs, log=True, **options)
    v = log["v"]
    u = np.min(costs - v, axis=1)
    dual = float(a @ u + b @ v)
    unmoved = np.abs(plan.sum(axis=1) - a / a.sum()).sum()  # mass that an unfinished plan leaves
    cost = float(np.vdot(plan, costs) + unmoved * costs.max())
    if cost - dual > OPTIMALITY_GAP * costs.max():
        warnings.warn(
            f"The network simplex stopped {cost - dual:.1e} above its lower bound, at {cost:.3e}: "
            "the distance is between the two, as its error says.",
            UnresolvedWarning,
            stacklevel=5,
        )
    return Plan(cost, min(dual, cost), plan, v, scale)


# Semi-discrete transport --------------------------------------------------------------------


def semidiscrete_bounds(cells: Cells, points: WeightedPoints, p: float) -> tuple[float, float]:
    """A lower and an upper bound of the least cost between a density and points.

    From below by the potential of an optimal plan between the cells and the points:

        int min_j (d(x, y_j)^p - v_j) dmu(x) + sum_j masses_j v_j.

    From above by the plan itself, with all points of a cell moved like the cell. Both are integrals
    of the density by a quadrature, whose error a second quadrature estimates.
    """
    plan = optimal_plan(*cells.coarse, *points, p)
    plan = plan._replace(potential=plan.potential * plan.scale**p)
    dual = dual_value(cells.fine, points, plan, p)
    error = abs(dual - dual_value(cells.check, points, plan, p))
    return max(dual - error, 0.0), _cost_of_cells(cells, points, plan, p) + error


def dual_value(fine: WeightedPoints, points: WeightedPoints, plan: Plan, p: float) -> float:
    """The lower bound of `semidiscrete_bounds`.

    Chords bound arcs from below and are cheaper: with them few arcs have to be computed.
    """
    total = float(points.masses @ plan.potential)
    rows = max(PAIRS_IN_CACHE // len(points.x), 1)
    for begin in range(0, len(fine.x), rows):
        x = fine.x[begin : begin + rows]
        chords = 2 - CHORD_ROUNDING - 2 * (x @ points.x.T)
        if p != 2:
            np.maximum(chords, 0, out=chords)
            chords **= p / 2
        chords -= plan.potential
        nearest = chords.argmin(axis=1)
        costs = _least_costs(x, points.x, plan.potential, float(p), chords, nearest)
        total += float(fine.masses[begin : begin + rows] @ costs)
    return total


@njit(cache=True, nogil=True)
def _least_costs(
    x: np.ndarray, y: np.ndarray, potential: np.ndarray, p: float, chords: np.ndarray,
    nearest: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """min_j (d(x_i, y_j)^p - v_j), starting at j = first_i, with lower bounds `chords` (n, m)."""
    costs = np.empty(len(x))
    for i in range(len(x)):
        cost = _arc(x[i], y[nearest[i]]) ** p - potential[nearest[i]]
        for j in range(len(y)):
            if chords[i, j] < cost:
                cost = min(cost, _arc(x[i], y[j]) ** p - potential[j])
        costs[i] = cost
    return costs


@njit(cache=True, nogil=True)
def _arc(x: np.ndarray, y: np.ndarray) -> float:
    """The angle between unit vectors, to relative rounding."""
    difference = total = 0.0
    for k in range(len(x)):
        difference += (x[k] - y[k]) ** 2
        total += (x[k] + y[k]) ** 2
    return 2 * np.arctan2(np.sqrt(difference), np.sqrt(total))


def _cost_of_cells(cells: Cells, points: WeightedPoints, plan: Plan, p: float) -> float:
    """The cost of a plan in which each fine point is distributed like its cell."""
    rows, columns = np.nonzero(plan.masses)
    shares = plan.masses[rows, columns] / cells.coarse.masses[rows]
    order = np.argsort(cells.owner, kind="stable")
    begins = np.searchsorted(cells.owner[order], np.arange(len(cells.coarse.x) + 1))
    sizes = np.diff(begins)[rows]
    offsets = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    fine = order[np.repeat(begins[rows], sizes) + offsets]
    angles = angles_between(cells.fine.x[fine], points.x[np.repeat(columns, sizes)])
    return float((cells.fine.masses[fine] * np.repeat(shares, sizes)) @ angles**p)


# Distances between points -------------------------------------------------------------------


def angles_between(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Angles in radians between unit vectors (..., d), broadcast, to relative rounding."""
    chord, co_chord = (np.linalg.norm(x - sign * y, axis=-1) for sign in (1, -1))
    return 2 * np.arctan2(chord, co_chord)


def pairwise_distances(x: np.ndarray, y: np.ndarray, p: float, on_sphere: bool) -> np.ndarray:
    """d(x_i, y_j)^p for points (n, d) and (m, d), (n, m).

    d is the geodesic distance of the sphere, to 1e-14, or the Euclidean one.
    """
    if on_sphere:
        distances = x @ y.T
        np.clip(distances, -1, 1, out=distances)
        np.arccos(distances, out=distances)
        _refine(x, y, distances)
    else:
        from scipy.spatial.distance import cdist

        distances = cdist(x, y)
    return _to_the_power(distances, p)


def _scaled_costs(
    x: np.ndarray, y: np.ndarray, p: float, on_sphere: bool
) -> tuple[np.ndarray, float]:
    """(d(x_i, y_j) / scale)^p and the scale, the largest distance, so that no power overflows."""
    radius = 1.0 if on_sphere else float(np.abs(x).max() + np.abs(y).max()) or 1.0
    distances = pairwise_distances(x / radius, y / radius, 1, on_sphere)
    largest = float(distances.max()) or 1.0
    distances /= largest
    return _to_the_power(distances, p), radius * largest


def _to_the_power(distances: np.ndarray, p: float) -> np.ndarray:
    """distances^p, in place."""
    if p == 2:
        return np.multiply(distances, distances, out=distances)
    return distances if p == 1 else np.power(distances, p, out=distances)


@njit(cache=True, nogil=True)
def _refine(x: np.ndarray, y: np.ndarray, angles: np.ndarray) -> None:
    """Recompute angles near 0 and pi from the difference and the sum of the vectors."""
    for i in range(len(x)):
        for j in range(len(y)):
            if angles[i, j] < SMALL_ANGLE or angles[i, j] > np.pi - SMALL_ANGLE:
                angles[i, j] = _arc(x[i], y[j])
