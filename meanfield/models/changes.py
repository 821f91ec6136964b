"""Derivatives by a parameter of quantities computed from a drift, such as multipliers."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..core.annotations import Narrowed, Values
from ..core.differences import AGREEMENT, best_difference
from ..core.errors import MeanfieldError
from .drift import Drift

if TYPE_CHECKING:
    from ..spaces import Space

EXACT_DERIVATIVE = 1e-13  # errors of derivatives below which no shorter step is tried


def derivative_by(drift: Drift, name: str, compute: Callable[[Values], np.ndarray]) -> np.ndarray:
    """The derivative by a parameter of a quantity computed from a single drift.

    Central differences of order 10 are computed with decreasing steps until two successive ones
    agree to rounding. The error is about 1e-13 for a function that is smooth at the scale of the
    parameter or of 1.

    Parameters
    ----------
    drift : Drift
        A single drift.
    name : str
    compute : callable
        Ensemble of drifts -> the quantity for each, (members, ...).

    Raises
    ------
    MeanfieldError
        If no two steps agree to 1e-8, or the drift exists on one side of the parameter only.
    """
    value = float(drift.parameters[name])

    def computed(steps: np.ndarray) -> np.ndarray:
        results = compute(drift.replace(**{name: value + steps}))
        if len(results) != len(steps):
            raise MeanfieldError(
                f"The derivative by {name} of {drift!r} is needed, and {name} makes no ensemble of "
                "drifts: declare it as a field of type float."
            )
        return results

    error = np.full((), np.inf)
    for unit in dict.fromkeys((min(1.0, abs(value)) or 1.0, 1.0)):  # 1e-9 as unit: only rounding
        if not (error <= AGREEMENT).all():
            estimate, error = best_difference(
                computed, unit=unit, one_step=True, rounding=EXACT_DERIVATIVE, undefined=ValueError
            )
    if not (error <= AGREEMENT).all():
        raise MeanfieldError(
            f"The derivative by {name} of {drift!r} is needed, and differences near {name} = "
            f"{value:g} do not agree to {AGREEMENT:g}, they differ by {error.max():.1e}: the drift "
            f"must be a smooth function of {name} on both sides. Take another value of {name}."
        )
    return estimate


def multiplier_changes(drift: Narrowed, name: str, degree: int, dimension: int) -> list[np.ndarray]:
    """Derivatives of the multipliers of W and, unless Z = 1, of Z by a parameter of one drift."""

    def stacked_tables(drifts: Values) -> np.ndarray:
        rows = [drifts.attraction(degree, dimension), drifts.normaliser(degree, dimension)]
        return np.stack([row for row in rows if row is not None], axis=-2)

    return list(derivative_by(drift, name, stacked_tables))


def table_changes(drift: Narrowed, name: str, space: "Space") -> list[np.ndarray]:
    """Derivatives of the tables of multipliers on a space: see `multiplier_changes`."""

    def stacked_tables(drifts: Values) -> np.ndarray:
        rows = [space.attraction(drifts), space.normaliser(drifts)]
        return np.stack([row for row in rows if row is not None], axis=-2)

    return list(derivative_by(drift, name, stacked_tables))
