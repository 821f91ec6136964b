"""Derivatives by a parameter of quantities computed from a drift, such as multipliers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.differences import NODES, REACHES, WEIGHTS
from ..core.errors import MeanfieldError
from .drift import Drift

STEP_AGREEMENT, DERIVATIVE_ROUNDING = 1e-8, 1e-13


def derivative_by(drift: Drift, name: str, compute: Callable[[Any], np.ndarray]) -> np.ndarray:
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
    units = dict.fromkeys(
        (min(1.0, abs(value)) or 1.0, 1.0)
    )  # for a value of 1e-9 its own scale gives only rounding
    best, error = np.zeros(0), np.inf
    for unit in units:
        if error > STEP_AGREEMENT:
            best, error = _best(drift, name, value, unit, compute)
    if not error <= STEP_AGREEMENT:
        raise MeanfieldError(
            f"The derivative by {name} of {drift!r} is needed, and differences near {name} = "
            f"{value:g} do not agree to {STEP_AGREEMENT:g}, they differ by {error:.1e}: the drift "
            f"must be a smooth function of {name} on both sides. Take another value of {name}."
        )
    return best


def _best(
    drift: Drift, name: str, value: float, unit: float, compute: Callable[[Any], np.ndarray]
) -> tuple[np.ndarray, float]:
    """The best derivative with steps in this unit, and its difference from the next."""
    last, best, error = None, np.zeros(0), np.inf
    for step in unit * np.array(REACHES):
        try:
            slope = np.tensordot(WEIGHTS / step, _at(drift, name, value + step * NODES, compute), 1)
        except ValueError:  # the drift is not defined at this distance
            last = None
            continue
        size = max(1.0, float(np.abs(slope).max(initial=0.0)))
        if last is not None and (apart := np.abs(slope - last).max() / size) < error:
            best, error = last, apart  # the longer step has less rounding
        if error < DERIVATIVE_ROUNDING:
            break
        last = slope
    return best, error


def _at(drift: Drift, name: str, values: np.ndarray, compute: Callable[..., Any]) -> np.ndarray:
    """`compute` of the drifts with these values of the parameter, (values, ...)."""
    results = compute(drift.replace(**{name: values}))
    if len(results) != len(values):
        raise MeanfieldError(
            f"The derivative by {name} of {drift!r} is needed, and {name} makes no ensemble of "
            "drifts: declare it as a field of type float."
        )
    return results


def multiplier_changes(drift: Any, name: str, degree: int, dimension: int) -> list[np.ndarray]:
    """Derivatives of the multipliers of W and, unless Z = 1, of Z by a parameter of one drift."""

    def both(many: Any) -> np.ndarray:
        rows = [many.attraction(degree, dimension), many.normaliser(degree, dimension)]
        return np.stack([row for row in rows if row is not None], axis=-2)

    return list(derivative_by(drift, name, both))
