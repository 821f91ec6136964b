"""The diagrams of the page: order parameter over kappa at one beta; curves in (beta, kappa)."""

from itertools import pairwise
from typing import Any

import numpy as np

from meanfield import SA, USA, branches, phase_diagram

from .scene import PAGE_SPACES, Scene

DIAGRAM_DEGREES = {"Circle": 64, "Sphere": 32, "Torus": 8}
LOWEST_KAPPA, HIGHEST_KAPPA = 0.3, 4.0  # the range of kappa of the branches, in units of kappa_1
BRANCH_STEP = 0.3  # largest step along branches
PLANE_BETAS = (0.25, 6.0)  # range of beta
CURVE_STEP = 0.5  # largest step along curves in (beta, kappa)
PLANE_DRIFTS = {"USA": USA, "SA": SA}


def branches_of(scene: Scene) -> dict[str, Any]:
    """The stationary states of degree 1 over kappa, as plain data.

    Returns
    -------
    dict
        onset : kappa_1
        span : the range of kappa
        stretches : list of dict, one for each part of a branch: lists kappa and order, bool stable
        warnings : sentences on the diagram
    """
    onset = scene.onset
    span = (LOWEST_KAPPA * onset, HIGHEST_KAPPA * onset)
    space = PAGE_SPACES[scene.space](DIAGRAM_DEGREES[scene.space])
    diagram = branches(scene.zonal, space, kappa=span, degrees=(1,), secondary=False,
                       max_step=BRANCH_STEP, progress=False)  # fmt: skip
    data, stretches = diagram.data, []
    for number in range(len(diagram.ends) + 1):
        mask = data.branch.values == number
        kappa, order = data.kappa.values[mask], data.order_parameter.values[mask]
        stable = data.unstable.values[mask].sum(axis=1) == 0
        cuts = [0, *(np.flatnonzero(stable[1:] != stable[:-1]) + 1), len(kappa)]
        for first, last in pairwise(cuts):
            until = slice(first, min(last + 1, len(kappa)))  # neighbours share a point
            stretches.append({
                "kappa": kappa[until].tolist(),
                "order": order[until].tolist(),
                "stable": bool(stable[first]),
            })  # fmt: skip
    table = {"onset": onset, "span": list(span), "stretches": stretches}
    return table | {"warnings": diagram.warnings}


def plane_of(scene: Scene) -> dict[str, Any]:
    """Curves of a drift on a space in the plane of beta and kappa, as plain data.

    Returns
    -------
    dict
        beta : the range of beta
        curves : dict by name (critical, fold, transition), each with lists beta and kappa
        tricritical : beta and kappa of the tricritical point, or None
        warnings : sentences on the diagram
    """
    betas = {"beta": list(PLANE_BETAS)}
    if scene.drift not in PLANE_DRIFTS:  # no beta: the onset is everywhere the same
        line = betas | {"kappa": [scene.onset] * 2}
        return betas | {"curves": {"critical": line}, "tricritical": None, "warnings": []}
    space = PAGE_SPACES[scene.space](DIAGRAM_DEGREES[scene.space])
    diagram = phase_diagram(PLANE_DRIFTS[scene.drift], space, PLANE_BETAS, degrees=(1,),
                            max_step=CURVE_STEP, progress=False)  # fmt: skip
    data, curves = diagram.data, {}
    for name in np.unique(data.curve.values):
        mask = data.curve.values == name
        order = np.argsort(data.beta.values[mask])
        curves[str(name)] = {
            "beta": data.beta.values[mask][order].tolist(),
            "kappa": data.kappa.values[mask][order].tolist(),
        }
    point = next(((c.beta, c.kappa) for c in diagram.tricritical if c.degree == 1), None)
    return betas | {"curves": curves, "tricritical": point, "warnings": diagram.warnings}
