"""Optimal transport between atoms: the linear program, by POT's network simplex."""

import warnings
from typing import NamedTuple

import numpy as np

from ..core.errors import MeanfieldError, UnresolvedWarning
from .ground import scaled

__all__ = ["Plan", "optimal_plan"]

MOST_PAIRS = 2**28  # their costs and the plan are 4 GiB
PIVOTS = 10**9
OPTIMAL = 1e-9  # gap between plan and certificate, relative to the largest cost


class Plan(NamedTuple):
    """An optimal plan between atoms, and its certificate.

    Attributes
    ----------
    cost : float
        sum_ij plan_ij (d(x_i, y_j) / scale)^p.
    bound : float
        What no plan is below: sum masses u + sum masses v, u_i + v_j <= (d(x_i, y_j) / scale)^p.
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


def optimal_plan(x, a, y, b, p: float, on_sphere: bool = True) -> Plan:
    """The plan between sum_i a_i delta_{x_i} and sum_j b_j delta_{y_j}.

    Raises
    ------
    MeanfieldError
        For more than 2^28 pairs of atoms.

    Warns
    -----
    UnresolvedWarning
        If the network simplex stopped before the optimum.
    """
    from ot import emd

    if len(x) * len(y) > MOST_PAIRS:
        raise MeanfieldError(
            f"Optimal transport between {len(x)} and {len(y)} atoms needs all pairs, at most "
            f"{MOST_PAIRS}. Take fewer tokens, or sliced_wasserstein, sobolev_distance or mmd, "
            "which are made for many."
        )
    costs, scale = scaled(x, y, p, on_sphere)
    options = {"numItermax": PIVOTS, "center_dual": False, "check_marginals": False}
    plan, log = emd(a / a.sum(), b / b.sum(), costs, log=True, **options)
    v = log["v"]
    u = np.min(costs - v, axis=1)
    bound = float(a @ u + b @ v)
    missing = np.abs(plan.sum(axis=1) - a / a.sum()).sum()  # what an unfinished plan leaves behind
    cost = float(np.vdot(plan, costs) + missing * costs.max())
    if cost - bound > OPTIMAL * costs.max():
        warnings.warn(
            f"The network simplex stopped {cost - bound:.1e} above its lower bound, at {cost:.3e}: "
            "the distance is known between the two, as its error says.",
            UnresolvedWarning,
            stacklevel=4,
        )
    return Plan(cost, min(bound, cost), plan, v, scale)
