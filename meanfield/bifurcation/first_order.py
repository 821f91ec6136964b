"""The fold curve and the first-order line: where they begin, which way they go, why they end."""

import numpy as np

from ..core.errors import MeanfieldError
from ..spaces import Geometry
from .branches import branches
from .family import Family
from .following import Following
from .loci import Folds, Locus, Transitions
from .normal_form import normal_form
from .tricritical import Tricritical

__all__ = ["Curves", "Ends", "between", "first_order_curves"]

SMALL = 0.03  # amplitude at which a curve has come to its tricritical point
MOST = 2000

Curves = dict[str, tuple[Locus, np.ndarray]]
Ends = dict[str, tuple[str, str]]


def first_order_curves(
    family: Family,
    geometry: Geometry,
    span: tuple[float, float],
    corners: list[Tricritical],
    max_step: float,
    following: Following,
) -> tuple[Curves, Ends]:
    """Both, with their points (n, N + 2), from points on a branch beyond the corner.

    And why they end, at the lowest and at the highest beta.
    """
    loci: Curves = {}
    ends: Ends = {}
    if following.stopped:
        return loci, {"fold": ("interrupted", "interrupted")}
    lowest = min((corner.beta for corner in corners if corner.degree == 1), default=span[0])
    beta = min(lowest + 1.0, (lowest + span[1]) / 2)
    form = normal_form(family.at(beta), 1)
    if form.kind != "subcritical":
        return loci, ends
    diagram = branches(
        family.drift(beta), geometry, (form.kappa / 20, 1.2 * form.kappa), degrees=[1],
        stability=False, secondary=False, progress=False,
    )  # fmt: skip
    cut = "interrupted" if following.stopped or "interrupted" in diagram.ends else "not located"
    for name in ("fold", "transition") if family.drift.gradient_flow else ("fold",):
        ends[name] = cut, cut
        for special in diagram.special(name)[:1] if cut == "not located" else []:
            locus, z = _locus(name, family, special.state, beta, max_step)
            points, ends[name] = _both_ways(locus, name, z, span, following)
            loci[name] = locus, points
    return loci, ends


def _locus(name: str, family: Family, state, beta: float, max_step: float):
    size = len(family.basis.degrees)
    a = np.pad(state.moments, (0, max(size - len(state.moments), 0)))[:size]
    z = np.concatenate([a, [np.log(state.kappa), beta]])
    if name == "transition":
        return Transitions(family, max_step), z
    member = family.at(beta)
    null = np.linalg.svd(member.legendre_jacobian(member.mean(a, state.kappa), state.kappa))[2][-1]
    return Folds(family, null, max_step), z


def _both_ways(locus: Locus, name: str, z: np.ndarray, span: tuple[float, float], following):
    """The curve from its tricritical point, or the lowest beta, to the highest; why it ends."""
    start = locus.at_beta(z, float(z[-1]))
    if start is None:
        raise MeanfieldError(f"The special point at beta = {z[-1]:g} was not found again.")
    down, low = _one_way(locus, name, start, -1.0, span, following)
    up, high = _one_way(locus, name, start, 1.0, span, following)
    return np.array([*down[::-1], start, *up]), (low, high)


def _one_way(locus: Locus, name: str, start: np.ndarray, sign: float, span, following):
    """The points after a start, and why they end."""
    row, points = np.append(np.zeros(len(start) - 1), sign), [start]
    for point in locus.follow(start, row, locus.max_step / 4):
        if abs(point[0]) < SMALL or point[0] * start[0] < 0:
            return points[1:], "tricritical"
        if not span[0] <= point[-1] <= span[1]:
            last = span[int(point[-1] > span[1])]
            end = locus.at_beta(between(np.array([points[-1], point]), last), last)
            return [*points[1:], *([] if end is None else [end])], "range"
        points.append(point)
        if following.at(locus, name, float(point[-1])):
            return points[1:], "interrupted"
        if len(points) > MOST:
            return points[1:], "max_points"
    return points[1:], "not continued"


def between(points: np.ndarray, beta: float) -> np.ndarray:
    """A point of the polygon through these at a beta."""
    order = np.argsort(points[:, -1])
    betas = points[order, -1]
    return np.array([np.interp(beta, betas, column) for column in points[order].T])
