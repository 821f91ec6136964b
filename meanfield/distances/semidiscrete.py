"""Transport between a density and atoms on S^2, enclosed between two bounds."""

import numpy as np

from .clouds import Cells, Cloud
from .ground import between, pairwise
from .network import Plan, optimal_plan

__all__ = ["bounds"]

BLOCK = 2**22  # pairs at a time


def bounds(cells: Cells, atoms: Cloud, p: float) -> tuple[float, float]:
    """Two numbers between which the least cost is.

    From below by the potential of an optimal plan between cells and atoms, whatever it is:

        int min_j (d(x, y_j)^p - v_j) dmu(x) + sum_j masses_j v_j.

    From above by the plan itself, in which the points of a cell all go where their cell goes. Both
    are integrals of the density, by a quadrature whose error is that of another one, at most.
    """
    plan = optimal_plan(*cells.coarse, *atoms, p)
    plan = plan._replace(potential=plan.potential * plan.scale**p)
    below = _below(cells.fine, atoms, plan, p)
    error = abs(below - _below(cells.check, atoms, plan, p))
    return max(below - error, 0.0), _above(cells, atoms, plan, p) + error


def _below(fine: Cloud, atoms: Cloud, plan: Plan, p: float) -> float:
    total = float(atoms.masses @ plan.potential)
    rows = max(BLOCK // len(atoms.x), 1)
    for begin in range(0, len(fine.x), rows):
        part = slice(begin, begin + rows)
        costs = pairwise(fine.x[part], atoms.x, p, True)
        costs -= plan.potential
        total += float(fine.masses[part] @ costs.min(axis=1))
    return total


def _above(cells: Cells, atoms: Cloud, plan: Plan, p: float) -> float:
    """Each point of the fine quadrature against each atom that a part of its cell goes to."""
    rows, columns = np.nonzero(plan.masses)
    shares = plan.masses[rows, columns] / cells.coarse.masses[rows]
    order = np.argsort(cells.owner, kind="stable")
    begins = np.searchsorted(cells.owner[order], np.arange(len(cells.coarse.x) + 1))
    sizes = np.diff(begins)[rows]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    points = order[np.repeat(begins[rows], sizes) + within]
    angles = between(cells.fine.x[points], atoms.x[np.repeat(columns, sizes)])
    return float((cells.fine.masses[points] * np.repeat(shares, sizes)) @ angles**p)
