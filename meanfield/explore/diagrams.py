"""The diagrams of the page: order parameter over kappa at one beta, and the plane of both."""

from itertools import pairwise
from typing import Any

import numpy as np

from ..bifurcation import branches, phase_diagram
from ..bifurcation.stability import GROWING_RATE
from ..models import SA, USA
from .scene import SPACES, Scene

DEGREE = {"Circle": 64, "Sphere": 32}
BELOW, ABOVE = 0.3, 4.0  # the range of kappa of the branches, in units of kappa_1
STEP = 0.3  # along branches
PLANE = (0.25, 6.0)  # range of beta
STEP_OF_CURVES = 0.5
FAMILIES = {"USA": USA, "SA": SA}


def branches_of(scene: Scene) -> dict[str, Any]:
    """The stationary states of degree 1 over kappa, as plain data.

    Returns
    -------
    dict
        onset : kappa_1
        span : the range of kappa
        stretches : list of dict with kappa and order, arrays, and whether it is stable
    """
    onset = scene.onset
    span = (BELOW * onset, ABOVE * onset)
    space = SPACES[scene.space](DEGREE[scene.space])
    found = branches(
        scene.zonal, space, kappa=span, degrees=(1,), secondary=False, max_step=STEP, progress=False
    )
    data, stretches = found.data, []
    for number in range(len(found.ends) + 1):
        here = data.branch.values == number
        kappa, order = data.kappa.values[here], data.order_parameter.values[here]
        stable = data.growth.values[here] <= GROWING_RATE
        cuts = [0, *(np.flatnonzero(stable[1:] != stable[:-1]) + 1), len(kappa)]
        for first, last in pairwise(cuts):
            until = slice(first, min(last + 1, len(kappa)))  # neighbours share a point
            stretches.append({
                "kappa": kappa[until].tolist(),
                "order": order[until].tolist(),
                "stable": bool(stable[first]),
            })  # fmt: skip
    return {"onset": onset, "span": list(span), "stretches": stretches, "warnings": found.warnings}


def plane_of(scene: Scene) -> dict[str, Any]:
    """The plane of beta and kappa of a drift on a space, as plain data.

    Returns
    -------
    dict
        beta : the range
        curves : dict of critical, fold, transition, each with beta and kappa
        corner : beta and kappa of the tricritical point, or None
    """
    if scene.drift not in FAMILIES:  # no beta: the onset is everywhere the same
        line = {"beta": list(PLANE), "kappa": [scene.onset] * 2}
        return {"beta": list(PLANE), "curves": {"critical": line}, "corner": None, "warnings": []}
    space = SPACES[scene.space](DEGREE[scene.space])
    found = phase_diagram(
        FAMILIES[scene.drift], space, PLANE, degrees=(1,), max_step=STEP_OF_CURVES, progress=False
    )
    data, curves = found.data, {}
    for name in np.unique(data.curve.values):
        here = data.curve.values == name
        order = np.argsort(data.beta.values[here])
        curves[str(name)] = {
            "beta": data.beta.values[here][order].tolist(),
            "kappa": data.kappa.values[here][order].tolist(),
        }
    corner = next(((c.beta, c.kappa) for c in found.tricritical if c.degree == 1), None)
    return {"beta": list(PLANE), "curves": curves, "corner": corner, "warnings": found.warnings}
