"""Derivatives of the multipliers of a zonal drift by its parameters."""

import numpy as np

from ..core.errors import MeanfieldError
from ..models import ZonalDrift
from ..spaces.circle_linearised import Tables

NODES = np.arange(1, 6)
WEIGHTS = np.array([5 / 6, -5 / 21, 5 / 84, -5 / 504, 1 / 1260])  # of order 10
REACHES = (0.1, 0.05, 0.02, 0.005, 0.001, 2e-4)  # of a step, in units of the parameter, or of 1
AGREEMENT = 1e-8


def tables_of(drift: ZonalDrift, degree: int, dimension: int) -> Tables:
    """The multipliers of a single drift."""
    return Tables(drift.attraction(degree, dimension), drift.normaliser(degree, dimension))


def changes_of(drift: ZonalDrift, name: str, degree: int, dimension: int) -> Tables:
    """Derivatives of the multipliers of a single drift by one of its parameters.

    By central differences of order 10 at six lengths of steps, of which two that follow each other
    agree best: to about 1e-13 for a function that is smooth at the scale of the parameter or of 1.

    Raises
    ------
    MeanfieldError
        If no two agree to 1e-8, or the drift exists on one side of the parameter only.
    """
    value = float(drift.parameters[name])
    found: list[np.ndarray] = []
    best, error = None, np.inf
    for reach in REACHES:
        step = reach * (min(1.0, abs(value)) if value else 1.0)
        try:
            found.append(_difference(drift, name, value, step, degree, dimension))
        except ValueError:  # no drift as far away as that
            found.clear()
            continue
        if len(found) > 1:
            apart = np.abs(found[-1] - found[-2]).max()
            if apart < error:
                best, error = found[-2], apart  # the longer step has less rounding
    if best is None or not error <= AGREEMENT * max(1.0, float(np.abs(best).max())):
        raise MeanfieldError(
            f"The derivative by {name} of {drift!r} is needed, and differences of its multipliers "
            f"at values near {name} = {value:g} do not agree to {AGREEMENT:g} (they differ by "
            f"{error:.1e}): the drift must be a smooth function of {name} on both sides of it. Take "
            "another value, or another parameter."
        )
    normalised = drift.normaliser(degree, dimension) is not None
    return Tables(best[0], best[1] if normalised else None)


def _difference(drift, name, value, step, degree, dimension) -> np.ndarray:
    total = np.zeros((2, degree + 1))
    for node, weight in zip(NODES, WEIGHTS, strict=True):
        ahead, behind = (
            tables_of(drift.replace(**{name: value + s * node * step}), degree, dimension)
            for s in (1, -1)
        )
        for row, (a, b) in enumerate(zip(ahead, behind, strict=True)):
            if a is not None:
                total[row] += weight / step * (a - b)
    return total
