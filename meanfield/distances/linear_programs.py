"""Optimal transport between weighted points as a linear program, and between cells of densities.

The program is solved by the network simplex of POT. Its dual potential certifies the plan. Between
a density on S^2 or a torus and points the two together enclose the distance (semi-discrete
transport).
"""

import warnings
from typing import NamedTuple

import numpy as np

from ..core.checks import check_memory
from ..core.errors import MeanfieldError, UnresolvedWarning
from ..lowlevel.compilation import njit
from .metrics import Metric, arc

MAX_PAIRS = 2**28  # costs and plan take 4 GiB
MAX_PIVOTS = 10**9
OPTIMALITY_GAP = 1e-9  # between plan and certificate, relative to the largest cost
PAIRS_IN_CACHE = 2**17
CHORD_ROUNDING = 1e-14  # error of 2 - 2 <x, y> as the square of a chord


class WeightedPoints(NamedTuple):
    """Points with masses: x (n, d), masses (n,)."""

    x: np.ndarray
    masses: np.ndarray


class Cells(NamedTuple):
    """A density divided into cells: a fine quadrature, and one point per cell.

    Attributes
    ----------
    metric : Metric
    fine : WeightedPoints
    owner : ndarray of int, (fine n,)
        The cell of each point of the fine quadrature.
    coarse : WeightedPoints
        Centres of the cells, with their masses.
    check : WeightedPoints
        Another quadrature, of about half as many points, that shows the error of the fine one.
    """

    metric: Metric
    fine: WeightedPoints
    owner: np.ndarray
    coarse: WeightedPoints
    check: WeightedPoints

    def radius(self, p: float) -> float:
        """An upper bound of W_p between the density and its centres."""
        gaps = self.metric.between(self.fine.x, self.coarse.x[self.owner])
        return float((self.fine.masses @ gaps**p) ** (1 / p))


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
    metric: Metric, x: np.ndarray, a: np.ndarray, y: np.ndarray, b: np.ndarray, p: float
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
    costs, scale = metric.scaled_costs(x, y, p)
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
    metric = cells.metric
    plan = optimal_plan(metric, *cells.coarse, *points, p)
    plan = plan._replace(potential=plan.potential * plan.scale**p)
    dual = dual_value(metric, cells.fine, points, plan, p)
    error = abs(dual - dual_value(metric, cells.check, points, plan, p))
    return max(dual - error, 0.0), _cost_of_cells(cells, points, plan, p) + error


def dual_value(
    metric: Metric, fine: WeightedPoints, points: WeightedPoints, plan: Plan, p: float
) -> float:
    """The lower bound of `semidiscrete_bounds`.

    Chords bound arcs from below and are cheaper: with them few arcs have to be computed.
    """
    total = float(points.masses @ plan.potential)
    rows = max(PAIRS_IN_CACHE // len(points.x), 1)
    for begin in range(0, len(fine.x), rows):
        x = fine.x[begin : begin + rows]
        chords = 2 * metric.factors - CHORD_ROUNDING - 2 * (x @ points.x.T)
        if p != 2:
            np.maximum(chords, 0, out=chords)
            chords **= p / 2
        chords -= plan.potential
        nearest = chords.argmin(axis=1)
        potential, factor = plan.potential, metric.factor
        costs = _least_costs(x, points.x, potential, float(p), chords, nearest, factor)
        total += float(fine.masses[begin : begin + rows] @ costs)
    return total


@njit(cache=True, nogil=True)
def _least_costs(
    x: np.ndarray, y: np.ndarray, potential: np.ndarray, p: float, chords: np.ndarray,
    nearest: np.ndarray, factor: int,
) -> np.ndarray:  # fmt: skip
    """min_j (d(x_i, y_j)^p - v_j), starting at j = nearest_i, with lower bounds `chords` (n, m)."""
    costs = np.empty(len(x))
    for i in range(len(x)):
        cost = arc(x[i], y[nearest[i]], factor) ** p - potential[nearest[i]]
        for j in range(len(y)):
            if chords[i, j] < cost:
                cost = min(cost, arc(x[i], y[j], factor) ** p - potential[j])
        costs[i] = cost
    return costs


def _cost_of_cells(cells: Cells, points: WeightedPoints, plan: Plan, p: float) -> float:
    """The cost of a plan in which each fine point is distributed like its cell."""
    rows, columns = np.nonzero(plan.masses)
    shares = plan.masses[rows, columns] / cells.coarse.masses[rows]
    order = np.argsort(cells.owner, kind="stable")
    begins = np.searchsorted(cells.owner[order], np.arange(len(cells.coarse.x) + 1))
    sizes = np.diff(begins)[rows]
    offsets = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    fine = order[np.repeat(begins[rows], sizes) + offsets]
    gaps = cells.metric.between(cells.fine.x[fine], points.x[np.repeat(columns, sizes)])
    return float((cells.fine.masses[fine] * np.repeat(shares, sizes)) @ gaps**p)
